# Where things go: lib/ and include/ of a prefix, or of the Python package when a wheel is built.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(headers include/neml2_capi.h include/neml2_capi.hpp include/neml2_capi.f90
  # For hosts with MPI, with which nothing here is linked.
  include/neml2_capi_mpi.h include/neml2_capi_mpi.f90)

if(DEFINED SKBUILD)
  set(libraries neml2_capi/lib)
  set(include_folder neml2_capi/include)
  # A wheel holds no symbolic links, and a second copy of the library could be loaded beside the first. So the library is
  # there once, under its SONAME, and the name that `-lneml2_capi` looks for is a linker script that points to it.
  set(namelink NAMELINK_SKIP)
  file(WRITE ${PROJECT_BINARY_DIR}/libneml2_capi.so "INPUT(libneml2_capi.so.1)\n")
  install(FILES ${PROJECT_BINARY_DIR}/libneml2_capi.so DESTINATION ${libraries})
else()
  set(libraries ${CMAKE_INSTALL_LIBDIR})
  set(include_folder ${CMAKE_INSTALL_INCLUDEDIR})
endif()

install(TARGETS neml2_capi EXPORT neml2_capi-targets
  LIBRARY DESTINATION ${libraries} ${namelink}
  INCLUDES DESTINATION ${include_folder})
# Opened at run time, from the folder of the library: nobody links with it.
install(TARGETS neml2_builtin LIBRARY DESTINATION ${libraries})
install(FILES ${headers} DESTINATION ${include_folder})

# For find_package(neml2_capi).
set(package ${libraries}/cmake/neml2_capi)
set(generated ${PROJECT_BINARY_DIR}/package)
configure_package_config_file(cmake/neml2_capi-config.cmake.in ${generated}/neml2_capi-config.cmake
  INSTALL_DESTINATION ${package}
  PATH_VARS include_folder)
# A program that was built with a release runs with every later one of the same major version.
write_basic_package_version_file(${generated}/neml2_capi-config-version.cmake COMPATIBILITY SameMajorVersion)
install(EXPORT neml2_capi-targets NAMESPACE neml2_capi:: DESTINATION ${package})
install(FILES ${generated}/neml2_capi-config.cmake ${generated}/neml2_capi-config-version.cmake cmake/fortran.cmake
  DESTINATION ${package})

# For pkg-config.
set(description ${libraries}/pkgconfig)
get_filename_component(from ${description} ABSOLUTE BASE_DIR ${CMAKE_INSTALL_PREFIX})
get_filename_component(to ${include_folder} ABSOLUTE BASE_DIR ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH include_from_description ${from} ${to})
configure_file(cmake/neml2_capi.pc.in ${generated}/neml2_capi.pc @ONLY)
install(FILES ${generated}/neml2_capi.pc DESTINATION ${description})
