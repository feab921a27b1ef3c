# The library is built with the headers of nlohmann-json, which a Python package ships; the system's serve as well.
#
#   nlohmann_json::nlohmann_json     target to link with

# A project that contains this one may have the target already.
if(TARGET nlohmann_json::nlohmann_json)
  return()
endif()

find_package(Python COMPONENTS Interpreter QUIET)
set(package "")
if(Python_EXECUTABLE)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import importlib.util as u; print(*u.find_spec('nlohmann_json').submodule_search_locations)"
    OUTPUT_VARIABLE package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_path(NLOHMANN_JSON_INCLUDE nlohmann/json.hpp HINTS ${package}/include)
if(NOT NLOHMANN_JSON_INCLUDE)
  message(FATAL_ERROR
    "nlohmann/json.hpp was not found: the library is built with the headers of a Python package.\n"
    "Install it, and name the Python that has it:\n"
    "  python3 -m pip install 'nlohmann-json>=3.11.2'\n"
    "  cmake -DPython_EXECUTABLE=$(which python3) ...")
endif()
add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
target_include_directories(nlohmann_json::nlohmann_json SYSTEM INTERFACE ${NLOHMANN_JSON_INCLUDE})
