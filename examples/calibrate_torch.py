"""Calibrate a viscoplastic model to stress-strain curves: backpropagation through time in torch.

    python examples/calibrate_torch.py [ARTIFACT]

Three specimens are stretched at different rates. Their stresses are made up, by the model itself
with known parameters; from a guess that is far off, the optimizer finds these again.
"""

from __future__ import annotations

import sys

import torch
from torch.nn.utils import parametrize

from neml2_capi import examples
from neml2_capi.torch import Module

TRUTH = {"E": 180e3, "yield_stress": 120.0}  # MPa
GUESS = {"E": 250e3, "yield_stress": 200.0}

STEPS = 20
RATES = torch.tensor([1e-4, 1e-3, 1e-2], dtype=torch.float64)  # 1/s
# Uniaxial stretch to 0.8 % with lateral contraction, in Mandel notation.
STRETCH = 0.008
DIRECTION = torch.tensor([1.0, -0.4, -0.4, 0.0, 0.0, 0.0], dtype=torch.float64)


class Positive(torch.nn.Module):  # type: ignore[misc]
    """A parameter that is trained by its logarithm: positive, and of any magnitude."""

    def forward(self, logarithm: torch.Tensor) -> torch.Tensor:
        return logarithm.exp()

    def right_inverse(self, value: torch.Tensor) -> torch.Tensor:
        return value.log()


def simulate(material: Module) -> torch.Tensor:
    """[step, specimen, 6] stresses in MPa, from the virgin state."""
    stretch = torch.linspace(0.0, STRETCH, STEPS + 1, dtype=torch.float64)[1:]
    histories = material.model.histories
    shapes = {variable.name: variable.base_shape for variable in material.model.inputs}
    old = {h.input: torch.zeros(shapes[h.input], dtype=torch.float64) for h in histories}
    stresses = []
    for value in stretch:
        forces = {"strain": value * DIRECTION, "t": value / RATES}
        now = {**forces, **material({**forces, **old})}
        stresses.append(now["stress"])
        # What is now, is the history of the next step, with the graph behind it.
        old = {h.input: now[str(h.output or h.current)] for h in histories}
    return torch.stack(stresses)


def main() -> None:
    material = Module(sys.argv[1] if sys.argv[1:] else examples.path("isotropic_hardening"))
    for name, value in TRUTH.items():
        material[name] = value
    measured = simulate(material).detach()

    for name, value in GUESS.items():
        material[name] = value
    for attribute, _ in list(material.named_parameters()):
        parametrize.register_parametrization(material, attribute, Positive())
    optimizer = torch.optim.LBFGS(
        material.parameters(), max_iter=50, tolerance_change=0.0, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        error = (simulate(material) - measured).square().mean()
        error.backward()
        print(f"mean square error {error.item():9.3e} MPa^2", end="")
        print("".join(f", {name} {material[name].item():.6g} MPa" for name in TRUTH))
        return error

    optimizer.step(loss)
    for name, value in TRUTH.items():
        found = material[name].item()
        assert abs(found - value) < 1e-5 * value, f"{name} is {found}, not {value}"
    print("recovered", ", ".join(f"{name} = {value} MPa" for name, value in TRUTH.items()))


if __name__ == "__main__":
    main()
