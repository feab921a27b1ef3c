# Parsers that the library is built with: nlohmann-json (headers) and nmhit (headers and a static library). Both are
# Python packages that ship C++; an installed nlohmann-json of the system serves as well.
#
#   nlohmann_json::nlohmann_json, nmhit::nmhit     targets to link with

find_package(Python COMPONENTS Interpreter QUIET)

# Sets `folder` to the folder of the Python package `name`, or to nothing.
function(find_python_package folder name)
  set(found "")
  if(Python_EXECUTABLE)
    execute_process(
      COMMAND ${Python_EXECUTABLE} -c "import importlib.util as u; print(*u.find_spec('${name}').submodule_search_locations)"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(${folder} "${found}" PARENT_SCOPE)
endfunction()

find_python_package(nlohmann_json_package nlohmann_json)
find_path(NLOHMANN_JSON_INCLUDE nlohmann/json.hpp HINTS ${nlohmann_json_package}/include)
set(required NLOHMANN_JSON_INCLUDE)

set(NMHIT_SOURCE "" CACHE PATH "Sources of nmhit, if its static library does not fit the compiler or its target")
if(NMHIT_SOURCE)
  add_library(nmhit_from_source STATIC
    ${NMHIT_SOURCE}/generated/Lexer.cpp ${NMHIT_SOURCE}/generated/Parser.cpp
    ${NMHIT_SOURCE}/src/Node.cpp ${NMHIT_SOURCE}/src/BraceExpr.cpp)
  target_include_directories(nmhit_from_source PRIVATE ${NMHIT_SOURCE}/src ${NMHIT_SOURCE}/generated)
  target_include_directories(nmhit_from_source SYSTEM PUBLIC ${NMHIT_SOURCE}/include)
  target_compile_options(nmhit_from_source PRIVATE -w)
  add_library(nmhit::nmhit ALIAS nmhit_from_source)
else()
  find_python_package(nmhit_package nmhit)
  find_path(NMHIT_INCLUDE nmhit/nmhit.h HINTS ${nmhit_package}/include)
  find_library(NMHIT_LIBRARY NAMES libnmhit.a HINTS ${nmhit_package}/lib)
  list(APPEND required NMHIT_INCLUDE NMHIT_LIBRARY)
endif()

foreach(variable IN LISTS required)
  if(NOT ${variable})
    message(FATAL_ERROR
      "${variable} was not found: the library is built with the parsers of two Python packages.\n"
      "Install them, and name the Python that has them:\n"
      "  python3 -m pip install 'nlohmann-json>=3.11.2' 'nmhit>=0.3.6,<0.4'\n"
      "  cmake -DPython_EXECUTABLE=$(which python3) ...")
  endif()
endforeach()

# A project that contains this one may have the target already.
if(NOT TARGET nlohmann_json::nlohmann_json)
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
  target_include_directories(nlohmann_json::nlohmann_json SYSTEM INTERFACE ${NLOHMANN_JSON_INCLUDE})
endif()

if(NOT NMHIT_SOURCE)
  add_library(nmhit::nmhit STATIC IMPORTED)
  set_target_properties(nmhit::nmhit PROPERTIES
    IMPORTED_LOCATION ${NMHIT_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${NMHIT_INCLUDE}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${NMHIT_INCLUDE})
endif()
