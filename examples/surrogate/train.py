"""Train a small network on a material law, and export it for C, C++, Fortran and Python.

    python examples/surrogate/train.py FOLDER        writes the artifact FOLDER/surrogate

It needs torch and a C++ compiler: pip install 'neml2_capi[compile]'. It takes a minute.

The law is uniaxial viscoplasticity whose yield stress falls with temperature. One step with the
time step DT, by the backward Euler method, takes the trial stress s and gives the increment p of
plastic strain with

    p = DT <(s - E p - Y(T)) / ETA>^2,

which the network learns, as a fraction of what is above the yield stress, from (s / Y0, T). The
rest of the law is exact, so that a bar that does not flow unloads exactly.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import torch

from neml2_capi import export

E, Y0, ETA, DT = 200e3, 200.0, 50.0, 1e-4  # MPa, MPa, MPa s^(1/2), s
HOT = 0.5  # the part of the yield stress that is lost at T = 1


def increment(trial: Any, temperature: Any) -> Any:
    """The plastic increment for trial stresses of at least 0: the root of a quadratic equation."""
    over = (trial - Y0 * (1 - HOT * temperature)).clamp(min=0)
    rate = DT / ETA**2
    half = E * over + 0.5 / rate
    return over**2 / (half + torch.sqrt((half**2 - (E * over) ** 2).clamp(min=0)))


class Surrogate(torch.nn.Module):  # type: ignore[misc]
    """One step of the law at one point, with the increment from the network."""

    def __init__(self) -> None:
        super().__init__()
        layers = [torch.nn.Linear(2, 24), torch.nn.Tanh(), torch.nn.Linear(24, 24)]
        layers += [torch.nn.Tanh(), torch.nn.Linear(24, 1)]
        self.network = torch.nn.Sequential(*layers).double()

    def increment(self, trial: Any, temperature: Any) -> Any:
        """p E / Y0 for s / Y0 >= 0 and T."""
        over = torch.relu(trial - (1 - HOT * temperature))
        return over * self.network(torch.stack([trial, temperature], dim=-1)).squeeze(-1)

    def forward(self, inputs: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
        old = inputs["plastic_strain~1"]
        trial = parameters["E"] * (inputs["strain"] - old)
        size = self.increment(trial.abs() / Y0, inputs["temperature"]) * Y0 / parameters["E"]
        plastic = old + torch.sign(trial) * size
        return {
            "stress": parameters["E"] * (inputs["strain"] - plastic),
            "plastic_strain": plastic,
        }


def train(surrogate: Surrogate) -> float:
    """Fit the increment for trial stresses up to 2 Y0; the error that is left, relative to Y0."""
    torch.manual_seed(1)
    trial = 2 * torch.rand(1000, dtype=torch.float64)
    temperature = torch.rand(1000, dtype=torch.float64)
    wanted = increment(Y0 * trial, temperature) * E / Y0
    optimizer = torch.optim.LBFGS(
        surrogate.parameters(), max_iter=300, line_search_fn="strong_wolfe"
    )

    def loss() -> Any:
        optimizer.zero_grad()
        value = (surrogate.increment(trial, temperature) - wanted).square().mean()
        value.backward()
        return value

    optimizer.step(loss)
    error: float = loss().item() ** 0.5
    return error


def main(folder: Path) -> None:
    torch.set_num_threads(1)  # so small a network is not for more
    surrogate = Surrogate()
    start = time.perf_counter()
    error = train(surrogate)
    print(f"trained in {time.perf_counter() - start:.0f} s, error {error:.1e} of the yield stress")
    made = export.model(
        surrogate,
        folder / "surrogate",
        inputs={"strain": "Scalar", "temperature": "Scalar", "plastic_strain~1": "Scalar"},
        outputs={"stress": "Scalar", "plastic_strain": "Scalar"},
        parameters={"E": E},
        derivatives=["stress:strain"],
    )
    print(f"wrote {made}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
