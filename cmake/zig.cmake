# Toolchain: zig compiles for another machine, system or C library, and puts its C++ runtime, libc++, inside.
# tools/platforms.py and CMakePresets.json set the environment:
#
#   ZIG           the program zig; if it is not set, the one on the path
#   ZIG_TARGET    such as aarch64-linux-gnu.2.17, x86_64-windows-gnu, aarch64-macos

if(NOT DEFINED ENV{ZIG})
  find_program(zig zig REQUIRED)
  set(ENV{ZIG} ${zig})
endif()
set(CMAKE_SYSTEM_NAME Linux)
if("$ENV{ZIG_TARGET}" MATCHES "-windows")
  set(CMAKE_SYSTEM_NAME Windows)
  # So that equal functions are folded, which takes a seventh of the library.
  find_program(python NAMES python3 python REQUIRED)
  set(CMAKE_CXX_COMPILE_OBJECT "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -o <OBJECT> -c <SOURCE>"
    "\"${python}\" \"${CMAKE_CURRENT_LIST_DIR}/../tools/coff.py\" <OBJECT>")
elseif("$ENV{ZIG_TARGET}" MATCHES "-macos")
  set(CMAKE_SYSTEM_NAME Darwin)
endif()
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "$ENV{ZIG_TARGET}")
set(CMAKE_C_COMPILER "$ENV{ZIG}" cc -target $ENV{ZIG_TARGET})
set(CMAKE_CXX_COMPILER "$ENV{ZIG}" c++ -target $ENV{ZIG_TARGET})
set(CMAKE_AR "$ENV{ZIG}")
foreach(language C CXX)
  set(CMAKE_${language}_ARCHIVE_CREATE "<CMAKE_AR> ar qc <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_APPEND "<CMAKE_AR> ar q <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_FINISH "<CMAKE_AR> ranlib <TARGET>")
endforeach()
set(NEML2_CAPI_CXX_RUNTIME libc++)
# No path of the machine that builds, and no table of symbols: the same sources give the same bytes everywhere. No
# sanitizer, which zig adds to what is not optimised.
get_filename_component(sources "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
# Options, and no flags: a folder that was built in before would keep the flags of its first time.
add_compile_options(-g0 -fno-sanitize=undefined -ffile-prefix-map=${sources}=.)
add_link_options(-g0 -fno-sanitize=undefined)
if(CMAKE_SYSTEM_NAME STREQUAL Darwin)
  # There a table of symbols takes another option, and tables for exceptions are written once, in Apple's own form,
  # which knows functions with frame pointers.
  add_link_options(-Wl,-x -Wl,-S)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-asynchronous-unwind-tables>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
else()
  # Other tables know functions without frame pointers, which zig adds: a fifteenth of the code.
  add_compile_options(-fomit-frame-pointer)
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>:-s>)
endif()
