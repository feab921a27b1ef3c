#!/bin/bash -eu
# Builds the harnesses as OSS-Fuzz asks: with $CC, $CXX, $CFLAGS, $CXXFLAGS and $LIB_FUZZING_ENGINE, into $OUT. $WORK is a
# folder to build in. Programs stand beside their seeds (NAME_seed_corpus.zip), words (NAME.dict) and limits (NAME.options).
#
# By hand, with clang in Debian:
#   CC=clang-14 CXX=clang++-14 CFLAGS="-O1 -fsanitize=fuzzer-no-link,address" CXXFLAGS="$CFLAGS" \
#     LIB_FUZZING_ENGINE=-fsanitize=fuzzer,address OUT=/tmp/out WORK=/tmp/work tests/fuzz/oss-fuzz/build.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && git rev-parse --show-toplevel 2>/dev/null || echo "${SRC:?}/neml2_capi")
fuzz=$root/tests/fuzz
mkdir -p "$OUT" "$WORK"

python3 -m venv "$WORK/env"
"$WORK/env/bin/pip" install --quiet 'nlohmann-json>=3.11.2,<4'

cmake -G Ninja -S "$root" -B "$WORK/build" -DPython_EXECUTABLE="$WORK/env/bin/python" -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" \
  -DCMAKE_C_FLAGS="${CFLAGS:-}" -DCMAKE_CXX_FLAGS="${CXXFLAGS:-}" -DNEML2_CAPI_FUZZ_ENGINE="$LIB_FUZZING_ENGINE"
cmake --build "$WORK/build" --target fuzzers

rm -rf "$WORK/corpus"
python3 "$fuzz/seeds.py" "$WORK/corpus"
if [[ -f $fuzz/corpus.tar.xz ]]; then tar xf "$fuzz/corpus.tar.xz" -C "$WORK/corpus"; fi
cp "$WORK"/build/lib/libn2*.so "$OUT/"
for program in "$WORK"/build/lib/fuzz_*; do
  [[ -x $program ]] || continue
  name=$(basename "$program") reader=$(basename "$program" | cut -d_ -f2-)
  cp "$program" "$OUT/"
  rm -f "$OUT/${name}_seed_corpus.zip"
  (cd "$WORK/corpus/$reader" && python3 -m zipfile -c "$OUT/${name}_seed_corpus.zip" ./*)
  if [[ -f $fuzz/dictionaries/$reader.dict ]]; then cp "$fuzz/dictionaries/$reader.dict" "$OUT/$name.dict"; fi
  printf '[libfuzzer]\ntimeout = 5\nrss_limit_mb = 1024\n' > "$OUT/$name.options"
done
