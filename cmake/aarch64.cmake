# Toolchain: GNU's compilers for aarch64, as of the packages g++-aarch64-linux-gnu and gfortran-aarch64-linux-gnu of Debian,
# and qemu-user to run what they make. `python3 build.py test --platform manylinux_2_17_aarch64` runs the programs of tests/.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_Fortran_COMPILER aarch64-linux-gnu-gfortran)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
