"""Calibrate a viscoplastic model to stress-strain curves: scipy's least squares, without torch.

    python examples/calibrate_scipy.py [ARTIFACT]

Three specimens are stretched at different rates. Their stresses are made up, by the model itself
with known parameters; from a guess that is far off, least squares finds these again. The Jacobian
is exact: the sensitivities of the state are carried along with it, from step to step,

    ds/dp = (partial s / partial p) + (partial s / partial s~1) ds~1/dp.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from neml2_capi import Model, examples

Array = NDArray[np.float64]

TRUTH = {"E": 180e3, "yield_stress": 120.0}  # MPa
GUESS = {"E": 250e3, "yield_stress": 200.0}

STEPS = 20
RATES = np.array([1e-4, 1e-3, 1e-2])  # 1/s
# Uniaxial stretch to 0.8 % with lateral contraction, in Mandel notation.
STRETCH = 0.008
DIRECTION = np.array([1.0, -0.4, -0.4, 0.0, 0.0, 0.0])


def simulate(model: Model, parameters: dict[str, float]) -> tuple[Array, Array]:
    """[step, specimen, 6] stresses in MPa, and [step, specimen, 6, parameter] sensitivities."""
    specimens = len(RATES)
    names = [model.parameters.names[model.parameters.resolve(name)] for name in parameters]
    state = {history.output: history.input for history in model.histories if history.output}
    sizes = {variable.name: math.prod(variable.base_shape) for variable in model.outputs}
    call = model.bind(
        {v.name: np.zeros((specimens, *v.base_shape)) for v in model.inputs},
        parameters=parameters,
        derivatives={output: dict.fromkeys([*names, *state.values()], True) for output in state},
    )

    def block(output: str, variable: str) -> Array:
        """[specimen, component of the output, component of the variable]"""
        values: Array = call.derivatives[output][variable]
        return values.reshape(specimens, sizes[output], -1)

    slopes = {output: np.zeros((specimens, sizes[output], len(names))) for output in state}
    stresses, sensitivities = [], []
    for stretch in np.linspace(0.0, STRETCH, STEPS + 1)[1:]:
        call.inputs["strain"][:] = stretch * DIRECTION
        call.inputs["t"][:] = stretch / RATES
        call()
        slopes = {
            output: np.concatenate([block(output, name) for name in names], axis=-1)
            + sum(block(output, old) @ slopes[new] for new, old in state.items())
            for output in state
        }
        stresses.append(call.outputs["stress"].copy())
        sensitivities.append(slopes["stress"])
        now = {**call.inputs, **call.outputs}
        for history in model.histories:
            call.inputs[history.input][:] = now[history.output or str(history.current)]
    return np.stack(stresses), np.stack(sensitivities)


def main() -> None:
    model = Model(sys.argv[1] if sys.argv[1:] else examples.path("isotropic_hardening"))
    measured, _ = simulate(model, TRUTH)

    # The logarithms of the parameters: these stay positive, and are of one magnitude.
    def at(logarithms: Array) -> dict[str, float]:
        return dict(zip(TRUTH, np.exp(logarithms).tolist(), strict=True))

    def residual(logarithms: Array) -> Array:
        return (simulate(model, at(logarithms))[0] - measured).ravel()

    def jacobian(logarithms: Array) -> Array:
        _, slopes = simulate(model, at(logarithms))
        return slopes.reshape(-1, len(TRUTH)) * np.exp(logarithms)

    start = np.log(list(GUESS.values()))
    found = least_squares(residual, start, jacobian, xtol=1e-12, ftol=1e-12, gtol=1e-12)
    print(f"{found.nfev} evaluations, {found.njev} Jacobians, cost {found.cost:.3e} MPa^2")
    for name, value in at(found.x).items():
        print(f"{name} = {value:.6f} MPa")
        assert abs(value - TRUTH[name]) < 1e-6 * TRUTH[name], f"not {TRUTH[name]}"


if __name__ == "__main__":
    main()
