"""Compile graphs that call what only libtorch has, and record what torch itself makes of them.

    python tests/models/networks.py FOLDER        needs torch

FOLDER/convolution.pt2   a small convolutional network
FOLDER/attention.pt2     a block of self-attention
FOLDER/eigenvalues.pt2   an operator of torch's that is not compiled but called by its name
FOLDER/scaled.pt2        a custom operator with arguments of all kinds, and of none but a tensor and
                         a number
FOLDER/twice.pt2         one that tests/hosts/custom_operator.c registers
FOLDER/NAME.npz          inputs and outputs of each: in_0, in_1, out_0 and so on
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Code for any x86-64 of the last decade: packages are built with -march=native otherwise.
os.environ.setdefault("TORCHINDUCTOR_CPP_MARCH", "x86-64-v3")
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")

import numpy as np
import torch
from scaling import NAMESPACE, define
from torch.export import Dim


class Convolution(torch.nn.Module):  # type: ignore[misc]
    """Two convolutions and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.second = torch.nn.Conv2d(8, 4, 3, stride=2)
        self.last = torch.nn.Linear(4, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        image = torch.relu(self.second(torch.relu(self.first(image))))
        return self.last(image.mean((-2, -1)))


class Attention(torch.nn.Module):  # type: ignore[misc]
    """Self-attention and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.last = torch.nn.Linear(8, 8)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.last(self.attention(tokens, tokens, tokens)[0])


class Eigenvalues(torch.nn.Module):  # type: ignore[misc]
    """Eigenvalues of a symmetric matrix."""

    def forward(self, matrix: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvalsh(matrix + matrix.transpose(-1, -2))


class Scaled(torch.nn.Module):  # type: ignore[misc]
    """The custom operator, twice."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scale = getattr(torch.ops, NAMESPACE).scale
        every = scale(
            *(x, 2.5, 1, y, [3, x.shape[0]], True, "sum", torch.float64, 0.5, x.shape[0]),
            *([1.0, 2.0], torch.device("cpu"), None, True, "text"),
            more=[x, y],
        )
        return *every, *scale(x, 3.0)


class Twice(torch.nn.Module):  # type: ignore[misc]
    """The custom operator of a library in C."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.neml2_capi_host.twice(x) + 1


def define_twice() -> None:
    name = "neml2_capi_host::twice"
    torch.library.define(name, "(Tensor x) -> Tensor")
    torch.library.impl(name, "cpu")(lambda x: 2 * x)
    torch.library.register_fake(name)(torch.empty_like)


def compile_network(
    package: Path, network: torch.nn.Module, inputs: tuple[torch.Tensor, ...]
) -> None:
    network.eval()
    batch = {0: Dim("batch", min=2, max=1 << 12)}
    with torch.no_grad():
        exported = torch.export.export(network, inputs, dynamic_shapes=(batch,) * len(inputs))
        torch._inductor.aoti_compile_and_package(exported, package_path=str(package))
        made = network(*inputs)
    outputs = made if isinstance(made, tuple) else (made,)
    arrays = {f"in_{i}": value.numpy() for i, value in enumerate(inputs)}
    arrays |= {f"out_{i}": value.numpy() for i, value in enumerate(outputs)}
    np.savez(package.with_suffix(".npz"), **arrays)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    define()
    define_twice()
    torch.manual_seed(0)
    compile_network(folder / "convolution.pt2", Convolution(), (torch.rand(6, 3, 9, 9),))
    compile_network(folder / "attention.pt2", Attention(), (torch.rand(6, 7, 8),))
    matrix = torch.rand(6, 3, 3, dtype=torch.float64)
    compile_network(folder / "eigenvalues.pt2", Eigenvalues(), (matrix,))
    pair = torch.rand(6, 3, dtype=torch.float64), torch.rand(6, 3, dtype=torch.float64)
    compile_network(folder / "scaled.pt2", Scaled(), pair)
    compile_network(folder / "twice.pt2", Twice(), pair[:1])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
