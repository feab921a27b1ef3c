# neml2_capi::fortran, the Fortran modules. Their compiled form fits one compiler only, so that every project compiles
# them with its own: this file serves the build of the library, and lies beside the installed CMake package.
#
#   neml2_capi_INCLUDE_DIR     the folder of neml2_capi.f90

# The target is imported, so that its meaning can be set again, when a directory with Fortran comes after one without.
if(NOT TARGET neml2_capi::fortran)
  add_library(neml2_capi::fortran INTERFACE IMPORTED GLOBAL)
endif()

if(TARGET neml2_capi_fortran)
  return()
endif()

if(NOT CMAKE_Fortran_COMPILER_LOADED)
  # The name of a target that does not exist tells a project that links with it.
  set_target_properties(neml2_capi::fortran PROPERTIES
    INTERFACE_LINK_LIBRARIES neml2_capi::fortran_needs_the_language_Fortran_enabled_before_neml2_capi_is_found)
  return()
endif()

set(neml2_capi_modules ${CMAKE_CURRENT_BINARY_DIR}/neml2_capi_modules)
file(MAKE_DIRECTORY ${neml2_capi_modules})
add_library(neml2_capi_fortran STATIC EXCLUDE_FROM_ALL ${neml2_capi_INCLUDE_DIR}/neml2_capi_c.f90
  ${neml2_capi_INCLUDE_DIR}/neml2_capi.f90 ${neml2_capi_INCLUDE_DIR}/neml2_capi_experimental.f90)
set_target_properties(neml2_capi_fortran PROPERTIES
  Fortran_FORMAT FREE
  Fortran_MODULE_DIRECTORY ${neml2_capi_modules}
  POSITION_INDEPENDENT_CODE ON)
# Procedures are recursive, as in Fortran 2018: local variables must not be shared between threads. References are counted
# by atomic operations, which need nothing of the library of OpenMP.
target_compile_options(neml2_capi_fortran PRIVATE "$<$<Fortran_COMPILER_ID:GNU>:-frecursive;-fopenmp>")
target_include_directories(neml2_capi_fortran INTERFACE ${neml2_capi_modules})
target_link_libraries(neml2_capi_fortran PUBLIC neml2_capi::neml2_capi)
set_target_properties(neml2_capi::fortran PROPERTIES INTERFACE_LINK_LIBRARIES neml2_capi_fortran)
