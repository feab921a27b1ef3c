# Toolchain: zig compiles for another machine or an older C library, and puts its C++ runtime, libc++, inside.
# tools/platforms.py sets the environment:
#
#   ZIG           the program zig
#   ZIG_TARGET    such as aarch64-linux-gnu.2.17

set(CMAKE_SYSTEM_NAME Linux)
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
# No path of the machine that builds, and no table of symbols: the same sources give the same bytes everywhere.
get_filename_component(sources "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(CMAKE_C_FLAGS_INIT "-g0 -ffile-prefix-map=${sources}=.")
set(CMAKE_CXX_FLAGS_INIT "-g0 -ffile-prefix-map=${sources}=.")
set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
