"""Compile what calls custom operators that are registered as functions of the host.

    python tests/models/operators.py FOLDER        needs torch and the installed neml2_capi

FOLDER/saturate.pt2    saturate(x, scale=0.5, twice=True, order=2) + 1, of 4 values per point
FOLDER/overload.pt2    saturate.mode(x, "half") + 1
FOLDER/collect.pt2     collect(...), with arguments of all kinds that there are, a column-major one,
                       and three outputs of as many element types, which are used in place
FOLDER/hardening       a law: stress = curve(strain) = limit (1 - exp(-rate strain)), and an output
                       that needs no operator. Derivatives of operators cannot be exported.
FOLDER/NAME.npz        inputs and outputs of each package, as torch has them: in_0, out_0 and so on
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

# Code for any x86-64 of the last decade: packages are built with -march=native otherwise.
os.environ.setdefault("TORCHINDUCTOR_CPP_MARCH", "x86-64-v3")
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")

import numpy as np
import torch
from operator_schemas import COLLECT, CURVE, LIBRARY, LIMIT, MODE, RATE, SATURATE
from torch.export import Dim

from neml2_capi import export


def saturate(x: Any, scale: float = 1.0, twice: bool = False, order: int = 1) -> Any:
    y = scale * x**order / (1 + x**order)
    return 2 * y if twice else y


def mode(x: Any, mode: str) -> Any:
    return {"half": 0.5, "full": 1.0}[mode] * x


def collect(
    x: Any,
    n: int,
    f: float,
    b: bool,
    s: str,
    axes: Any,
    weights: Any,
    flags: Any,
    missing: Any = None,
    more: Any = None,
    some: Any = None,
    m: int = 3,
    none: Any = None,
) -> tuple[Any, ...]:
    total = n * f + b + len(s) + sum(axes) + sum(weights) + sum(flags) + m
    total += sum(value.sum() for value in (*(more or ()), *(some or ())) if value is not None)
    total += (missing is not None) + (none is not None)
    return x * total, x > 0.5, (10 * x).sum(-1).to(torch.int64)


def curve(x: Any, limit: float, rate: float) -> Any:
    return limit * (1 - torch.exp(-rate * x))


def define() -> None:
    """Register them with torch, which traces them and computes what is expected."""
    for schema, function, fake in (
        (SATURATE, saturate, lambda x, *rest, **named: torch.empty_like(x)),
        (MODE, mode, lambda x, mode: torch.empty_like(x)),
        (
            COLLECT,
            collect,
            lambda x, *rest, **named: (
                torch.empty_like(x),
                torch.empty_like(x, dtype=torch.bool),
                torch.empty(x.shape[:-1], dtype=torch.int64),
            ),
        ),
        (CURVE, curve, lambda x, *rest: torch.empty_like(x)),
    ):
        name, _, rest = schema.partition("(")
        torch.library.define(name, f"({rest}")
        torch.library.impl(name, "cpu")(function)
        torch.library.register_fake(name)(fake)
    torch.library.register_vmap(
        f"{LIBRARY}::curve",
        lambda info, axes, x, *numbers: (hardening(x, *numbers), axes[0]),
    )


def hardening(strain: Any, *numbers: float) -> Any:
    return getattr(torch.ops, LIBRARY).curve(strain, *numbers)


class Saturate(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return getattr(torch.ops, LIBRARY).saturate(x, 0.5, twice=True, order=2) + 1


class Overload(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return getattr(torch.ops, LIBRARY).saturate.mode(x, "half") + 1


class Collect(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any, y: Any) -> tuple[Any, ...]:
        a, b, c = getattr(torch.ops, LIBRARY).collect(
            *(x.t().contiguous().t(), 3, 2.5, True, "sum", [0, 1], [1.0, 2.5], [True, False]),
            *(None, [x, y], [None, y], 2 * x.shape[0] + 1),
        )
        return a + 1, torch.where(b, x, y), 2 * c


def compile_package(package: Path, module: Any, inputs: tuple[Any, ...]) -> None:
    batch = {0: Dim("batch", min=2, max=1 << 12)}
    with torch.no_grad():
        exported = torch.export.export(module, inputs, dynamic_shapes=(batch,) * len(inputs))
        torch._inductor.aoti_compile_and_package(exported, package_path=str(package))
        made = module(*inputs)
    outputs = made if isinstance(made, tuple) else (made,)
    arrays = {f"in_{i}": value.numpy() for i, value in enumerate(inputs)}
    arrays |= {f"out_{i}": value.numpy() for i, value in enumerate(outputs)}
    np.savez(package.with_suffix(".npz"), **arrays)


def law(strain: Any) -> dict[str, Any]:
    return {"stress": hardening(strain, LIMIT, RATE), "square": strain * strain}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    define()
    torch.manual_seed(0)
    pair = torch.rand(6, 4, dtype=torch.float64), torch.rand(6, 4, dtype=torch.float64)
    compile_package(folder / "saturate.pt2", Saturate(), pair[:1])
    compile_package(folder / "overload.pt2", Overload(), pair[:1])
    compile_package(folder / "collect.pt2", Collect(), pair)
    export.model(
        law,
        folder / "hardening",
        inputs={"strain": "Scalar"},
        outputs={"stress": "Scalar", "square": "Scalar"},
        derivatives=False,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
