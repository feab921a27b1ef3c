"""A tension test by simcoon, whose solver controls stresses, with a compiled model as the law.

    python simcoon_law.py ARTIFACT

simcoon calls a law in Python with strains in the order 11, 22, 33, 12, 13, 23, of which shears are
doubled, and takes back the stress, the tangent and the state.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import simcoon
from numpy.typing import NDArray

from neml2_capi import ConvergenceError, Model, mandel

Array = NDArray[np.float64]

PRIMED = 1e-9  # seconds, of the call that asks for the tangent alone


def of_strain(strain: Array) -> Array:
    return mandel.from_voigt(strain, shear="engineering", order="abaqus")


def of_stress(stress: Array) -> Array:
    return mandel.to_voigt(stress, shear="tensor", order="abaqus")


class Law(simcoon.PythonUMAT):  # type: ignore[misc]
    """The small-strain law of an artifact, whose state is side by side in statev."""

    def __init__(self, artifact: str) -> None:
        self.model = Model(artifact)
        shapes = {v.name: v.base_shape for v in self.model.inputs}
        self.states = [
            (h.input, h.output, shapes[h.input]) for h in self.model.histories if h.output
        ]
        self.ends = np.cumsum([int(np.prod(shape)) for *_, shape in self.states])
        self.nstatev = int(self.ends[-1])

    def integrate(
        self, *, Etot: Array, DEtot: Array, statev: Array, Time: float, DTime: float, **given: Any
    ) -> tuple[Array, ...]:
        if not np.isfinite([Etot, DEtot]).all():  # which no smaller increment mends
            raise ValueError(f"the strain is not finite: {Etot} + {DEtot}")
        step = DTime or PRIMED
        inputs: dict[str, Array] = {
            "strain": of_strain(Etot + DEtot),
            "strain~1": of_strain(Etot),
            "t": np.array(Time + step),
            "t~1": np.array(Time),
        }
        inputs = {v.name: inputs[v.name] for v in self.model.inputs if v.name in inputs}
        for (old, _, shape), values in zip(
            self.states, np.split(statev, self.ends[:-1]), strict=True
        ):
            inputs[old] = values.reshape(shape)
        try:
            outputs, tangents = self.model.jacobian(inputs)
        except ConvergenceError as error:
            raise simcoon.StepCut(float(error.report["suggested_cut"])) from error
        stress = of_stress(outputs["stress"])
        tangent = of_stress(of_stress(tangents["stress"]["strain"]).T).T
        state = np.concatenate([np.ravel(outputs[name]) for _, name, _ in self.states])
        work = given["Wm"] + np.array([(given["sigma"] + stress) @ DEtot / 2, 0, 0, 0])
        return stress, tangent, state, work


if __name__ == "__main__":
    pull = simcoon.solver.StepMeca(
        control=["strain"] + ["stress"] * 5, value=[0.01, 0, 0, 0, 0, 0], time=10, ninc=10
    )
    found = simcoon.solver.solve(pull, Law(sys.argv[1]))
    print("  time  axial strain  axial stress  lateral strain")
    rows = zip(found["Time"], found["Strain"].T, found["Stress"].T, strict=True)
    for time, strain, stress in rows:
        print(f"{time:4.1f} s {strain[0]:12.4%} {stress[0]:10.4f} MPa {strain[1]:14.5%}")
