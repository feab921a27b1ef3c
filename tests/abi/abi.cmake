# Programs of frozen releases of the ABI, and a library of a later one.
#
#   abi_1_0_c, abi_1_0_fortran   hosts built with the headers and the modules of 1.0, which the release keeps in tests/abi/1.0;
#                                until then with those of include/
#   neml2_capi_later             this library with one more function, one more option, and a field more in two structures
#   abi_later_function           a host that calls that function
#   abi_later_field              a host that sets that field and that option

add_executable(abi_1_0_c abi/1.0/host.c)
target_include_directories(abi_1_0_c BEFORE PRIVATE abi/1.0)
target_link_libraries(abi_1_0_c PRIVATE neml2_capi m)
add_program(abi_1_0_c)

function(add_frozen_fortran)
  add_executable(abi_1_0_fortran abi/1.0/host.f90)
  file(GLOB frozen CONFIGURE_DEPENDS abi/1.0/neml2_capi*.f90)
  if(frozen)
    set(modules ${CMAKE_CURRENT_BINARY_DIR}/abi_1_0_modules)
    add_library(abi_1_0_module STATIC ${frozen})
    set_target_properties(abi_1_0_module PROPERTIES Fortran_MODULE_DIRECTORY ${modules})
    target_compile_options(abi_1_0_module PRIVATE $<$<Fortran_COMPILER_ID:GNU>:-frecursive>)
    target_link_libraries(abi_1_0_module PUBLIC neml2_capi)
    target_include_directories(abi_1_0_fortran BEFORE PRIVATE ${modules})
    target_link_libraries(abi_1_0_fortran PRIVATE abi_1_0_module)
  else()
    target_link_libraries(abi_1_0_fortran PRIVATE neml2_capi::fortran)
  endif()
  add_program(abi_1_0_fortran)
endfunction()

set(later ${CMAKE_CURRENT_BINARY_DIR}/abi_later)
set(changed include/neml2_capi.h include/neml2_capi_experimental.h capi/abi/neml2_capi.map
  capi/abi/error.cpp capi/model/options.cpp)
list(TRANSFORM changed PREPEND ${PROJECT_SOURCE_DIR}/)
add_custom_command(
  OUTPUT ${later}/neml2_capi.h ${later}/neml2_capi_experimental.h ${later}/neml2_capi.map ${later}/error.cpp ${later}/options.cpp
  COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/abi/later.py ${later}
  DEPENDS abi/later.py ${changed})

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/capi/abi/*.cpp)
list(FILTER sources EXCLUDE REGEX "/error.cpp$")
add_library(neml2_capi_later SHARED EXCLUDE_FROM_ALL ${sources}
  ${later}/neml2_capi.h ${later}/neml2_capi_experimental.h ${later}/neml2_capi.map ${later}/error.cpp
  ${later}/options.cpp)
set_source_files_properties(${later}/error.cpp PROPERTIES COMPILE_DEFINITIONS NEML2_CAPI_VERSION="1.1.0")
target_compile_options(neml2_capi_later PRIVATE -Wno-missing-field-initializers)  # the added ones
target_include_directories(neml2_capi_later BEFORE PUBLIC ${later})
target_include_directories(neml2_capi_later PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(neml2_capi_later PRIVATE
  $<FILTER:$<TARGET_OBJECTS:neml2_capi_objects>;$<TARGET_OBJECTS:neml2_capi_small>,EXCLUDE,/abi/|unity_abi|model/options|\\.gch$>
  nlohmann_json::nlohmann_json neml2_blocks neml2_lanes Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(neml2_capi_later PRIVATE LINKER:--version-script=${later}/neml2_capi.map LINKER:-z,nodelete)
add_dependencies(neml2_capi_later neml2_capi_objects)
# Under the SONAME of this one, with the provider beside it.
set_target_properties(neml2_capi_later PROPERTIES OUTPUT_NAME neml2_capi SOVERSION ${PROJECT_VERSION_MAJOR}
  LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY ${later})
if(TARGET neml2_builtin)
  add_custom_command(TARGET neml2_capi_later POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:neml2_builtin> ${later})
endif()

foreach(name function field)
  add_executable(abi_later_${name} EXCLUDE_FROM_ALL abi/later/${name}.c)
  target_link_libraries(abi_later_${name} PRIVATE neml2_capi_later)
endforeach()
