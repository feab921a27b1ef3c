"""Where the operators of the table run: torch, kernels of several targets, packages."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from table import OPERATORS

from neml2_capi import Graph, export
from neml2_capi.export._compile import traced
from neml2_capi.kernels.build import build
from neml2_capi.kernels.folder import write_sources
from neml2_capi.kernels.trace import read

sys.path.append(str(Path(__file__).resolve().parents[1] / "python" / "kernels"))

from loaded import load

Numbers = NDArray[Any]
#: The results of operators by their names, in their order.
Route = Callable[[Numbers, Numbers], list[Numbers]]


def laws(names: list[str]) -> Callable[..., Any]:
    """All operators as one function of two tensors."""
    return lambda x, y: tuple(OPERATORS[name].law(torch, x, y).clone() for name in names)


def eager(names: list[str], x: Numbers, y: Numbers) -> list[Numbers]:
    with torch.no_grad():
        return [
            OPERATORS[name].law(torch, torch.tensor(x), torch.tensor(y)).numpy() for name in names
        ]


def kernels(names: list[str], dtype: str, targets: list[str]) -> Iterator[tuple[str, Route]]:
    """A route for each target."""
    program = read(traced(laws(names), _examples(dtype), [0, 0]))
    for target in targets:
        with tempfile.TemporaryDirectory() as scratch:
            folder = write_sources(
                Path(scratch) / "all", f"cpu/{dtype}", {"all.pt2": program}, {}, {}
            )
            (made,) = build(folder, [target])
            yield target, _of_kernel(load(made)["all"])


def _of_kernel(kernel: Any) -> Route:
    def run(x: Numbers, y: Numbers) -> list[Numbers]:
        return [found[:, 0] for found in kernel(x[:, None], y[:, None])]

    return run


def _examples(dtype: str) -> tuple[Any, Any]:
    """Two tensors: torch takes one tensor given twice for one input."""
    return torch.zeros(2, dtype=getattr(torch, dtype)), torch.ones(2, dtype=getattr(torch, dtype))


def package(names: list[str], dtype: str, path: Path) -> Path:
    return export.package(laws(names), _examples(dtype), path)


def of_package(path: Path, runtime: str) -> Route:
    """Results of whole vectors, and of the rest that compiled code leaves to scalar functions."""
    graph = Graph(path, runtime=runtime)

    def run(x: Numbers, y: Numbers) -> list[Numbers]:
        whole = [np.asarray(found) for found in graph(x, y)]
        pieces = [
            [np.asarray(found) for found in graph(x[k : k + 3], y[k : k + 3])]
            for k in range(0, len(x), 3)
        ]
        return [
            np.stack([found, np.concatenate([piece[n] for piece in pieces])])
            for n, found in enumerate(whole)
        ]

    return run
