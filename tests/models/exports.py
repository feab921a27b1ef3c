"""Compile laws of torch alone, without input files of NEML2, for the tests of neml2_capi.export.

    python tests/models/exports.py FOLDER        needs torch and the installed neml2_capi

FOLDER/network.pt2      a multilayer perceptron of weights and biases
FOLDER/table.pt2        integers, float32 and bools in and out
FOLDER/hardening.pt2    constants of one element, of two, and of equal elements
FOLDER/convolution.pt2  what the built-in provider has not
FOLDER/elasticity       a forward law, whose arguments have the names of its variables
FOLDER/perzyna          a residual: viscoplasticity with linear hardening
FOLDER/single           a law in float32, with a tensor of a shape that no type has
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from neml2_capi import export

Tensors = Mapping[str, Any]

YOUNG, POISSON = 200e3, 0.3  # MPa
YIELD, HARDENING, VISCOSITY, EXPONENT = 150.0, 1000.0, 100.0, 2.0  # MPa, MPa, MPa s^(1/n)


def network() -> torch.nn.Module:
    """Two hidden layers, the same weights at every call."""
    torch.manual_seed(1)
    layers = [torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 16)]
    layers += [torch.nn.Softplus(), torch.nn.Linear(16, 6)]
    return torch.nn.Sequential(*layers).to(torch.float64)


class Table(torch.nn.Module):  # type: ignore[misc]
    """(phase int64, count int32, value float32), each (n) -> four tensors of as many types."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.arange(12, dtype=torch.float32).reshape(4, 3))

    def forward(self, phase: Any, count: Any, value: Any) -> dict[str, Any]:
        return {
            "scaled": self.rows[phase] * value.unsqueeze(-1),
            "half": count // 2,
            "many": (count > 3) & (phase != 0),
            "next": phase + 1,
        }


class Hardening(torch.nn.Module):  # type: ignore[misc]
    """yield_stress + moduli . (x, 1 - exp(-rates x)), summed over three rates that are equal."""

    def __init__(self) -> None:
        super().__init__()
        self.yield_stress = torch.nn.Parameter(torch.tensor(150.0, dtype=torch.float64))
        self.register_buffer("moduli", torch.tensor([1000.0, 200.0], dtype=torch.float64))
        self.register_buffer("rates", torch.full((3,), 10.0, dtype=torch.float64))

    def forward(self, plastic_strain: Any) -> Any:
        moduli: Any = self.moduli
        saturation = (1 - torch.exp(-self.rates * plastic_strain.unsqueeze(-1))).sum(-1)
        return self.yield_stress + moduli[0] * plastic_strain + moduli[1] * saturation


def some_table_inputs(points: int) -> tuple[Any, ...]:
    number = torch.arange(points)
    return number % 4, number.to(torch.int32) + 2, 0.25 * number.to(torch.float32)


def _trace(tensor: Any) -> Any:
    """tr(tensor) times the second-order identity, in Mandel notation."""
    return torch.cat([tensor[:3].sum().expand(3), torch.zeros_like(tensor[3:])])


def hooke(strain: Any, young: Any, poisson: Any) -> Any:
    lame = young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    return lame * _trace(strain) + young / (1 + poisson) * strain


def elasticity(strain: Any, E: Any, nu: Any) -> dict[str, Any]:
    return {"stress": hooke(strain, E, nu), "energy": (strain * hooke(strain, E, nu)).sum() / 2}


def mixture(fractions: Any, strain: Any) -> Any:
    """Four phases, each twice as stiff as the one before."""
    return (fractions * 2.0 ** torch.arange(4)).sum() * strain


def perzyna(unknowns: Tensors, givens: Tensors, parameters: Tensors) -> dict[str, Any]:
    """Perzyna, Quart. Appl. Math. 20 (1963) 321, integrated by the backward Euler method.

    rate = <(sigma_vm - sigma_y - H p) / eta>^n, flow along 3/2 s / sigma_vm.
    """
    stress, p = unknowns["stress"], unknowns["p"]
    deviator = stress - _trace(stress) / 3
    mises = torch.sqrt(1.5 * (deviator * deviator).sum() + 1e-16)
    over = mises - parameters["yield_stress"] - HARDENING * p
    rate = torch.where(over > 0, over / VISCOSITY, 0.0 * over) ** EXPONENT
    step = givens["t"] - givens["t~1"]
    flow = step * rate * 1.5 * deviator / mises
    elastic = givens["strain"] - givens["strain~1"] - flow
    trial = givens["stress~1"] + hooke(elastic, parameters["E"], POISSON)
    return {"stress": (stress - trial) / YIELD, "p": (p - givens["p~1"] - step * rate) * 1e3}


PERZYNA: dict[str, Any] = {
    "unknowns": {"stress": "SR2", "p": "Scalar"},
    "givens": {
        "strain": "SR2",
        "strain~1": "SR2",
        "t": "Scalar",
        "t~1": "Scalar",
        "stress~1": "SR2",
        "p~1": "Scalar",
    },
    "parameters": {"E": YOUNG, "yield_stress": YIELD},
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    strains = torch.zeros(1, 6, dtype=torch.float64)
    export.package(network(), (strains,), folder / "network.pt2", backward=True)
    export.package(Table(), some_table_inputs(3), folder / "table.pt2")
    plastic_strain = torch.zeros(3, dtype=torch.float64)
    export.package(Hardening(), (plastic_strain,), folder / "hardening.pt2")
    kernel = torch.nn.Conv1d(2, 3, 3, dtype=torch.float64)
    with warnings.catch_warnings(record=True) as caught:
        example = torch.zeros(4, 2, 8, dtype=torch.float64)
        export.package(kernel, (example,), folder / "convolution.pt2")
    (folder / "warnings.txt").write_text("".join(f"{w.message}\n" for w in caught))
    export.model(
        elasticity,
        folder / "elasticity",
        inputs={"strain": "SR2"},
        outputs={"stress": "SR2", "energy": "Scalar"},
        parameters={"E": YOUNG, "nu": POISSON},
        derivatives=["stress:strain", "energy:strain", "stress:E"],
        kernels="no",
    )
    export.model(
        mixture,
        folder / "single",
        inputs={"fractions": (4,), "strain": "SR2"},
        outputs={"stress": "SR2"},
        derivatives=["stress:fractions"],
        dtype="float32",
        kernels="no",
    )
    export.model(perzyna, folder / "perzyna", **PERZYNA, rtol=1e-12, kernels="no")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
