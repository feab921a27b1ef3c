"""Registers, stack and spills that laws take on devices, as compilers count them.

    python benchmarks/registers.py [LAW ...] [--nvrtc]

prints a table, for which no device is needed. A law is an artifact, an example of the package
("isotropic_hardening"), or a model of tests/models. CUDA is compiled by nvcc if it is on the path,
else by NVRTC of the wheel nvidia-cuda-nvrtc; --nvrtc takes that anyway. OpenCL for AMD is compiled
by clang; the first OpenCL runtime's compiler is timed, too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from device_compilers import KERNEL, Compiler, Cost, NoCompilerError, amd, cuda, nvrtc
from opencl_compiler import opencl

from neml2_capi import Model, examples
from neml2_capi.header import header
from neml2_capi.kernels.folder import KernelError

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "models"))

_NAMES = {"c++": "CUDA", "opencl": "AMD"}
NVIDIA, AMD = ("sm_80", "sm_90", "sm_100"), ("gfx90a",)
#: A point whose systems have to exchange rows is left to another kernel.
_CUDA = f"""
extern "C" __global__ void {KERNEL}(
    long points, const law::real *inputs, const law::real *parameters, law::real *outputs,
    law::real *tangent, int *reports, double *norms) {{
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < points && !law::update_point_by(0, i, points, inputs, parameters, false, outputs,
                                          tangent, reports, norms, law::settings()))
    reports[i] = -1;
}}
"""
_OPENCL = f"""
__kernel void {KERNEL}(
    long points, __global const real *inputs, __global const real *parameters,
    __global real *outputs, __global real *tangent, __global int *reports, __global double *norms,
    settings rules) {{
  const long i = get_global_id(0);
  if (i < points && !update_point(0, i, points, inputs, parameters, 0, outputs, tangent, reports,
                                  norms, rules))
    reports[i] = -1;
}}
"""


def folder_of(law: str) -> Path:
    """An artifact with kernels, by its path or its name."""
    if Path(law).is_dir():
        return Path(law)
    if law in examples.NAMES:
        return examples.path(law)
    import compile as models

    return models.with_kernels(law, "x86-64-v3")


def text(folder: Path, language: str, *, derivatives: bool) -> str:
    """The law, and a kernel that evaluates each point."""
    with Model(folder) as model:
        made = header(folder, model, language, "law", derivatives=derivatives)
    return made + (_CUDA if language == "c++" else _OPENCL)


def costs(
    folder: Path, derivatives: bool, compilers: Sequence[tuple[str, str, Compiler]]
) -> list[Cost]:
    """Measure a law on each architecture, which comes with its language and its compiler."""
    texts = {x: text(folder, x, derivatives=derivatives) for x in {of for _, of, _ in compilers}}
    return [compiler(texts[of], architecture) for architecture, of, compiler in compilers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("laws", nargs="*", default=examples.NAMES)
    parser.add_argument("--nvrtc", action="store_true")
    given = parser.parse_args()
    compilers: list[tuple[str, str, Compiler]] = []
    families: list[tuple[Sequence[str], str, Callable[[], Compiler]]] = [
        (NVIDIA, "c++", nvrtc if given.nvrtc else cuda),
        (AMD, "opencl", amd),
    ]
    for names, language, compiler in families:
        try:
            compilers += [(name, language, compiler()) for name in names]
        except NoCompilerError as error:
            print(f"{', '.join(names)}: {error}", file=sys.stderr)
    languages = sorted({language for _, language, _ in compilers})
    heads = ["law", *(name for name, _, _ in compilers), *(f"{_NAMES[x]} in" for x in languages)]
    try:
        runtime, seconds_of = opencl()
        heads.append(f"{runtime} in")
    except NoCompilerError as error:
        print(error, file=sys.stderr)
        seconds_of = None
    print("| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|")
    for law in given.laws:
        for derivatives in (False, True):
            label = f"{law}, with its tangent" if derivatives else law
            try:
                found = costs(folder_of(law), derivatives, compilers)
            except KernelError as error:
                print(f"| {label} | {error} |")
                continue
            cells = [f"{c.registers} / {c.stack} / {c.spills}" for c in found]
            for language in languages:
                of = zip(found, compilers, strict=True)
                seconds = max(cost.seconds for cost, (_, x, _) in of if x == language)
                cells.append(f"{seconds:.1f} s")
            if seconds_of:
                made = text(folder_of(law), "opencl", derivatives=derivatives)
                cells.append(f"{seconds_of(made):.1f} s")
            print(f"| {label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
