#!/bin/bash
# Build CalculiX 2.20 from Debian's source, with UMATs in shared objects, which Debian's own ccx has not:
#
#   bash $(python -m neml2_capi --calculix)
#
# The program is ~/.cache/neml2_capi/hosts/calculix-2.20/ccx; OPTIMIZE=-O2 builds a faster one in calculix-2.20-O2.
# Needs Debian or Ubuntu with `deb-src` among the sources of apt, and gfortran. On one core: about three minutes.
set -euo pipefail
place=${XDG_CACHE_HOME:-$HOME/.cache}/neml2_capi/hosts/calculix-2.20${OPTIMIZE:-}
level=${OPTIMIZE:--O0}
flags="-w $level -I/usr/include/spooles -DARCH=\"Linux\" -DSPOOLES -DARPACK -DMATRIXSTORAGE -DNETWORKOUT"
flags="$flags -DCALCULIX_EXTERNAL_BEHAVIOURS_SUPPORT"
packages="libspooles-dev libarpack2-dev libblas-dev liblapack-dev dpkg-dev"
# shellcheck disable=SC2086
dpkg -s $packages > /dev/null 2>&1 || { echo "Packages are missing: apt-get install $packages" >&2; exit 1; }
mkdir -p "$place"
cd "$place"
apt-get source -q calculix-ccx=2.20-1
cd calculix-ccx-2.20/ccx_2.20/src
make -s -j"${JOBS:-1}" CFLAGS="$flags" FFLAGS="-w $level -fopenmp -fallow-argument-mismatch" ccx_2.20.a
eval "cc $flags -c ccx_2.20.c"
gfortran -fopenmp -o "$place/ccx" ccx_2.20.o ccx_2.20.a -lspooles -larpack -llapack -lblas -lpthread -ldl -lm
echo "$place/ccx"
