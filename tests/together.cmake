# Programs of one kind in few: headers are read once for several, and fewer programs are linked. Each keeps its name, a
# link by which the program knows what to run, and has a namespace of its own. Run as a script, it writes their source.
#
#   add_programs(KIND LIBRARIES ... [ARGUMENTS ...] FILES ... [ALONE FILE ...])
#
# adds a test for each file, and sets `made` to the programs; those of files that are ALONE come first.

if(CMAKE_SCRIPT_MODE_FILE)
  set(includes "")
  foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME_WE)
    file(STRINGS ${file} lines REGEX "^#include ")
    list(APPEND includes ${lines})
    string(APPEND parts "namespace ${name} {\n#include \"${file}\"\n}\n")
    string(APPEND rows "    if (name == \"${KIND}_${name}\") return call(${name}::program, argc, argv);\n")
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  file(WRITE ${INTO} "${includes}
#include <string>
#define main program
${parts}#undef main
int call(int program(), int, char**) { return program(); }
int call(int program(int, char**), int argc, char** argv) { return program(argc, argv); }
int main(int argc, char** argv) {
    std::string name = argv[0];
    name.erase(0, name.rfind('/') + 1);
${rows}    return 1;
}
")
  return()
endif()

# The rooms of the library, too, are compiled together then.
set(together OFF)
if(NEML2_CAPI_UNITY AND NEML2_CAPI_PRECOMPILE AND CMAKE_SYSTEM_NAME STREQUAL Linux AND NOT CMAKE_CROSSCOMPILING)
  set(together ON)
endif()

function(add_programs kind)
  cmake_parse_arguments(PARSE_ARGV 1 with "" "" "LIBRARIES;ARGUMENTS;FILES;ALONE")
  set(alone ${with_FILES})
  set(files "")
  if(together)
    set(alone ${with_ALONE})
    set(files ${with_FILES})
    list(REMOVE_ITEM files ${alone})
  endif()
  set(programs "")
  foreach(file IN LISTS alone)
    get_filename_component(name ${file} NAME_WE)
    add_executable(${kind}_${name} ${file})
    list(APPEND programs ${kind}_${name})
  endforeach()
  set(number 0)
  while(files)
    list(SUBLIST files 0 8 some)
    list(REMOVE_ITEM files ${some})
    math(EXPR number "${number} + 1")
    set(program ${kind}_together_${number})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${program}.cpp)
    add_custom_command(OUTPUT ${source} VERBATIM DEPENDS ${some} ${CMAKE_CURRENT_SOURCE_DIR}/together.cmake
      COMMAND ${CMAKE_COMMAND} -DKIND=${kind} "-DFILES=${some}" -DINTO=${source}
        -P ${CMAKE_CURRENT_SOURCE_DIR}/together.cmake)
    add_executable(${program} ${source})
    list(APPEND programs ${program})
    foreach(file IN LISTS some)
      get_filename_component(name ${file} NAME_WE)
      get_filename_component(folder ${file} DIRECTORY)
      target_include_directories(${program} PRIVATE ${folder})
      set(link $<TARGET_FILE_DIR:${program}>/${kind}_${name})
      add_custom_command(TARGET ${program} POST_BUILD VERBATIM
        COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE_NAME:${program}> ${link})
      add_custom_target(${kind}_${name})
      set_target_properties(${kind}_${name} PROPERTIES PROGRAM ${link})
      add_dependencies(${kind}_${name} ${program})
    endforeach()
  endwhile()
  foreach(program IN LISTS programs)
    target_link_libraries(${program} PRIVATE ${with_LIBRARIES})
  endforeach()
  foreach(file IN LISTS with_FILES)
    get_filename_component(name ${file} NAME_WE)
    add_program(${kind}_${name} ${with_ARGUMENTS})
  endforeach()
  set(made ${programs} PARENT_SCOPE)
endfunction()
