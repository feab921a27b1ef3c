"""Compile graphs with the kinds of inputs and outputs that torch has.

    python tests/models/signatures.py FOLDER        needs torch

FOLDER/named.pt2       a law with keywords and a dictionary of arguments; it returns a dictionary
FOLDER/transposed.pt2  an input whose columns lie side by side, and one of one element
FOLDER/columns.pt2     the same with a batch of any size
FOLDER/types.pt2       bfloat16, float16, int32 and bool, in and out
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TORCHINDUCTOR_CPP_MARCH", "x86-64-v3")
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")

import torch
from graphs import compile_graph
from torch import Tensor
from torch.export import Dim


class Named(torch.nn.Module):  # type: ignore[misc]
    """A constant of two elements, which becomes two numbers in the code."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("moduli", torch.tensor([2.0, 3.0], dtype=torch.float64))

    def forward(
        self, strain: Tensor, state: dict[str, Tensor], *, temperature: Tensor, count: Tensor
    ) -> dict[str, Any]:
        moduli: Any = self.moduli
        elastic = moduli[0] * strain - moduli[1] * state["old"]
        operator = torch.eye(3, dtype=torch.float64) + strain.unsqueeze(-1) * strain.unsqueeze(-2)
        return {
            "stress": elastic * temperature.unsqueeze(-1),
            "parts": (elastic, count + 1),
            "solved": torch.linalg.solve(operator, strain.unsqueeze(-1)),
        }


def types(a: Tensor, b: Tensor, n: Tensor, m: Tensor) -> tuple[Tensor, ...]:
    return 2 * a, b + 1, a.float().sum(-1), torch.where(m, n, 0), m.logical_not()


def products(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    return a.sin() * b, a.t() @ a, a[:, 1:], b


def compile_named(package: Path, batch: Any) -> None:
    strain, count = torch.ones(8, 3, dtype=torch.float64), torch.ones(2, dtype=torch.int32)
    exported = torch.export.export(
        Named(),
        (strain, {"old": strain.clone()}),
        {"temperature": strain[:, 0].clone(), "count": count},
        dynamic_shapes={
            "strain": {0: batch},
            "state": {"old": {0: batch}},
            "temperature": {0: batch},
            "count": None,
        },
    )
    torch._inductor.aoti_compile_and_package(exported, package_path=str(package))


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    batch = Dim("batch", min=2, max=1 << 20)
    compile_named(folder / "named.pt2", batch)
    transposed = torch.ones(4, 3, dtype=torch.float64).t()
    compile_graph(
        folder / "transposed.pt2", products, (transposed, torch.ones(1, dtype=torch.float64))
    )
    columns = torch.ones(3, 8, dtype=torch.float64).t()
    compile_graph(folder / "columns.pt2", lambda a: a.sin() + 1, (columns,), ({0: batch},))
    a = torch.ones(8, 3, dtype=torch.bfloat16)
    every = (a, a.half(), a.int(), a.bool())
    compile_graph(folder / "types.pt2", types, every, ({0: batch},) * 4)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
