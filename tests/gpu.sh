#!/usr/bin/env bash
# A card of CUDA: the tests that need one, then points per second beside the card's ceilings and lanes, and last beside
# NEML2's packages. docs/devices.md and benchmarks/README.md want these numbers after each change of the kernels.
#
#   tests/gpu.sh [PYTHON]
#
# PYTHON has the wheel, pytest, click, nvidia-cuda-nvrtc and torch for CUDA, and perhaps jax[cuda13] and neml2. No network
# is needed.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
failed=0
"$python" -m pytest -q --tier full -m gpu tests/python || failed=1
measure() {
  "$python" benchmarks/device.py elasticity isotropic_hardening_parallel combined_hardening --device cuda:0 \
    --points 1000 1000000 "$@" || failed=1
}
measure
measure --jacobian
measure --packages
exit $failed
