# Where things go: lib/ and include/ of a prefix, or of the Python package when a wheel is built.
include(GNUInstallDirs)

set(headers include/neml2_capi.h include/neml2_capi.hpp include/neml2_capi.f90)

if(DEFINED SKBUILD)
  set(package neml2_capi/)
  set(libraries ${package}lib)
  # A wheel holds no symbolic links, and a second copy of the library could be loaded beside the first. So the library is
  # there once, under its SONAME, and the name that `-lneml2_capi` looks for is a linker script that points to it.
  set(namelink NAMELINK_SKIP)
  file(WRITE ${CMAKE_BINARY_DIR}/libneml2_capi.so "INPUT(libneml2_capi.so.1)\n")
  install(FILES ${CMAKE_BINARY_DIR}/libneml2_capi.so DESTINATION ${libraries})
else()
  set(libraries ${CMAKE_INSTALL_LIBDIR})
endif()

install(TARGETS neml2_capi LIBRARY DESTINATION ${libraries} ${namelink})
install(TARGETS neml2_builtin LIBRARY DESTINATION ${libraries})
install(FILES ${headers} DESTINATION ${package}include)
