#!/usr/bin/env bash
# The wheel for glibc 2.17 in the oldest Debian to be had, 11: glibc 2.31, gcc 10. The demo, with its program in C, and
# the quick tests of Python, whose packages were compiled on Debian 12.
#
#   tests/oldest.sh [ROOT] [PYTEST ARGUMENTS]
#
# ROOT keeps the system for the next time, with a CPython of its own: Debian 11's is too old. The arguments choose
# among the tests.
set -euo pipefail
root=${1:-$(mktemp -d)}
shift || true
. "$(dirname "$0")/debian.sh"
if [[ -z ${IN_NAMESPACE:-} ]]; then
  wheel=$(cd "$source" && python3 build.py wheel --platform "manylinux_2_17_$(uname -m)" | awk 'END {print $2}')
  export WHEEL=$source/$wheel
fi
debian bullseye gcc,g++,make,ca-certificates,xz-utils,zlib1g-dev,libffi-dev,libssl-dev,liblzma-dev,libbz2-dev
enter "$@"
rm -rf "$root/wheel" && mkdir "$root/wheel"
cp "$WHEEL" "$root/wheel"

python=$root/opt/python/bin/python3.11
if [[ ! -x $python ]]; then
  curl -sSfL "${mirror%/}/pool/main/p/python3.11/python3.11_3.11.2.orig.tar.gz" -o "$root/opt/python.tar.gz"
  echo "2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849  $root/opt/python.tar.gz" | sha256sum --check --quiet
  tar -xzf "$root/opt/python.tar.gz" -C "$root/opt"
  chroot "$root" "${inside[@]}" bash -euc '
    cd /opt/Python-3.11.2
    ./configure --prefix=/opt/python --enable-shared LDFLAGS=-Wl,-rpath,/opt/python/lib >/dev/null
    make -j"$(nproc)" >/dev/null 2>&1
    make altinstall >/dev/null 2>&1'
fi

chroot "$root" "${inside[@]}" bash -euc '
  ldd --version | head -1
  [[ -x /opt/venv/bin/pip ]] || /opt/python/bin/python3.11 -m venv /opt/venv
  /opt/venv/bin/pip install -q -c /src/constraints.txt "$(ls /wheel/*.whl)[test,demo]"
  /opt/venv/bin/pip install -q --no-deps --force-reinstall /wheel/*.whl
  cd /
  package=$(/opt/venv/bin/python -c "import neml2_capi, pathlib; print(pathlib.Path(neml2_capi.__file__).parent)")
  gcc -std=c99 -O2 -I"$package/include" /src/examples/c/example.c -L"$package/lib" -Wl,-rpath,"$package/lib" \
    -lneml2_capi -lm -o /tmp/example_c
  /opt/venv/bin/python /src/examples/demo.py --artifacts /src/examples/artifacts --output /tmp/demo \
    --c-program /tmp/example_c
  cd /src
  NEML2_CAPI_COMPILE=0 /opt/venv/bin/pytest -q -m "not native" --tier=quick -n "$(nproc)" "$@"' oldest "$@"
