# Two layouts of the installed files: lib/ and include/ of a prefix, and the folder of the Python package. One build
# folder installs both, so that the wheel and the tests share its objects:
#
#   cmake --install build --prefix PREFIX
#   cmake --install build --prefix SITE-PACKAGES --component wheel
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(headers include/neml2_capi.h include/neml2_capi.hpp
  include/neml2_capi_experimental.h include/neml2_capi_experimental.hpp
  include/neml2_capi_c.f90 include/neml2_capi.f90 include/neml2_capi_experimental.f90
  # Headers for hosts with MPI, with which nothing here is linked.
  include/neml2_capi_mpi.h include/neml2_capi_mpi.f90)

# Installs everything below the folders `libraries` and `include_folder` of a prefix; further arguments go to every
# install command.
function(install_layout component libraries include_folder)
  set(rule COMPONENT ${component} ${ARGN})
  set(namelink "")
  if(component STREQUAL wheel AND (WIN32 OR APPLE))
    set(namelink NAMELINK_SKIP)
  elseif(component STREQUAL wheel)
    # A wheel holds no symbolic links, and a second copy of the library could be loaded beside the first. So the library
    # is there once, under its SONAME, and the name that `-lneml2_capi` looks for is a linker script that points to it.
    set(namelink NAMELINK_SKIP)
    file(WRITE ${PROJECT_BINARY_DIR}/wheel/libneml2_capi.so "INPUT(libneml2_capi.so.${PROJECT_VERSION_MAJOR})\n")
    install(FILES ${PROJECT_BINARY_DIR}/wheel/libneml2_capi.so DESTINATION ${libraries} ${rule})
  endif()

  install(TARGETS neml2_capi EXPORT neml2_capi-${component}
    LIBRARY DESTINATION ${libraries} ${rule} ${namelink}
    RUNTIME DESTINATION ${libraries} ${rule}
    ARCHIVE DESTINATION ${libraries} ${rule}
    INCLUDES DESTINATION ${include_folder})
  if(TARGET neml2_builtin)
    # The provider is opened at run time, from the folder of the library: nobody links with it.
    install(TARGETS neml2_builtin LIBRARY DESTINATION ${libraries} ${rule})
  endif()
  if(TARGET neml2_plugin)
    install(TARGETS neml2_plugin LIBRARY DESTINATION ${libraries} ${rule} RUNTIME DESTINATION ${libraries} ${rule})
  endif()
  install(FILES ${headers} DESTINATION ${include_folder} ${rule})

  # Files for find_package(neml2_capi).
  set(package ${libraries}/cmake/neml2_capi)
  set(generated ${PROJECT_BINARY_DIR}/package/${component})
  configure_package_config_file(cmake/neml2_capi-config.cmake.in ${generated}/neml2_capi-config.cmake
    INSTALL_DESTINATION ${package}
    PATH_VARS include_folder)
  # A program that was built with a release runs with every later one of the same major version.
  write_basic_package_version_file(${generated}/neml2_capi-config-version.cmake
    VERSION ${NEML2_CAPI_RELEASE} COMPATIBILITY SameMajorVersion)
  install(EXPORT neml2_capi-${component} FILE neml2_capi-targets.cmake NAMESPACE neml2_capi:: DESTINATION ${package}
    ${rule})
  install(FILES ${generated}/neml2_capi-config.cmake ${generated}/neml2_capi-config-version.cmake cmake/fortran.cmake
    DESTINATION ${package} ${rule})

  # File for pkg-config.
  set(description ${libraries}/pkgconfig)
  get_filename_component(from ${description} ABSOLUTE BASE_DIR ${CMAKE_INSTALL_PREFIX})
  get_filename_component(to ${include_folder} ABSOLUTE BASE_DIR ${CMAKE_INSTALL_PREFIX})
  file(RELATIVE_PATH include_from_description ${from} ${to})
  configure_file(cmake/neml2_capi.pc.in ${generated}/neml2_capi.pc @ONLY)
  install(FILES ${generated}/neml2_capi.pc DESTINATION ${description} ${rule})
endfunction()

install_layout(prefix ${CMAKE_INSTALL_LIBDIR} ${CMAKE_INSTALL_INCLUDEDIR})
install_layout(wheel neml2_capi/lib neml2_capi/include EXCLUDE_FROM_ALL)
