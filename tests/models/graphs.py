"""Compile small graphs that no NEML2 model yields, each for one trap of loading packages.

    python tests/models/graphs.py FOLDER        needs torch

FOLDER/integer_division.pt2   a // b: its kernel raises a flag at a division by zero
FOLDER/large_batch.pt2        traced with a large batch: its kernel has OpenMP regions
FOLDER/static_batch.pt2       a batch of exactly two
FOLDER/two_batches.pt2        two dynamic sizes, one of them shared
FOLDER/no_inputs.pt2          a constant
FOLDER/aliases.pt2            outputs that are an input, a view of one, and views of one another
FOLDER/root_residual.pt2      the residual of u^2 = a in float32, unlike neml2-compile's,
FOLDER/root_jacobian.pt2      its operator and residual,
FOLDER/root_solve.pt2         and the solve of its Newton step
FOLDER/transposed_solve.pt2   the solve of A^T x = b, which calls what one of A x = b calls
FOLDER/weights.pt2            a small network: two layers, whose weights and biases are constants
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Code for any x86-64 of the last decade: packages are built with -march=native otherwise.
os.environ.setdefault("TORCHINDUCTOR_CPP_MARCH", "x86-64-v3")
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")

import torch
from torch.export import Dim


class Graph(torch.nn.Module):  # type: ignore[misc]
    """A function as a module, which is what torch exports."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def compile_graph(
    package: Path,
    function: Callable[..., Any],
    inputs: tuple[torch.Tensor, ...],
    dynamic: tuple[Any, ...] | None = None,
) -> None:
    is_module = isinstance(function, torch.nn.Module)
    shapes = dynamic if is_module else (dynamic,) if dynamic else None
    module = function if is_module else Graph(function)
    exported = torch.export.export(module, inputs, dynamic_shapes=shapes)
    torch._inductor.aoti_compile_and_package(exported, package_path=str(package))


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    batch, other = Dim("batch", min=2, max=1 << 20), Dim("other", min=2, max=1 << 20)
    whole = torch.arange(1, 9, dtype=torch.int64)
    real = torch.ones(8, 3, dtype=torch.float64)

    compile_graph(
        folder / "integer_division.pt2",
        lambda a, b: a // b,
        (whole, whole.clone()),
        ({0: batch}, {0: batch}),
    )
    large = torch.ones(1 << 18, 6, dtype=torch.float64)
    compile_graph(folder / "large_batch.pt2", lambda a: a * a + 1, (large,), ({0: batch},))
    compile_graph(folder / "static_batch.pt2", lambda a: 2 * a, (real[:2].clone(),))
    compile_graph(
        folder / "two_batches.pt2",
        lambda a, b, c: a.unsqueeze(1) * b.unsqueeze(0) + c.unsqueeze(1),
        (real, torch.ones(5, 3, dtype=torch.float64), real.clone()),
        ({0: batch}, {0: other}, {0: batch}),
    )

    def aliases(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        doubled = 2 * a
        return a, a[:, 1:], doubled, doubled.transpose(0, 1)

    compile_graph(folder / "aliases.pt2", aliases, (real,), ({0: batch},))
    u, operator = torch.ones(8, 1), torch.ones(8, 1, 1)
    pair = ({0: batch}, {0: batch})
    compile_graph(folder / "root_residual.pt2", lambda u, a: a - u * u, (u, u.clone()), pair)
    compile_graph(
        folder / "root_jacobian.pt2",
        lambda u, a: ((2 * u).unsqueeze(-1), a - u * u),
        (u, u.clone()),
        pair,
    )
    compile_graph(
        folder / "root_solve.pt2",
        lambda operator, b: torch.linalg.solve(operator, b.unsqueeze(-1)).squeeze(-1),
        (operator, u.clone()),
        pair,
    )
    matrix = torch.eye(3, dtype=torch.float64).expand(8, 3, 3).clone()
    compile_graph(
        folder / "transposed_solve.pt2",
        lambda a, b: torch.linalg.solve(a.mT, b.unsqueeze(-1)).squeeze(-1),
        (matrix, real.clone()),
        pair,
    )
    network = torch.nn.Sequential(
        torch.nn.Linear(3, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2)
    ).double()
    compile_graph(folder / "weights.pt2", network, (real,), ({0: batch},))
    compile_graph(folder / "no_inputs.pt2", lambda: torch.full((3,), 7.0, dtype=torch.float64), ())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
