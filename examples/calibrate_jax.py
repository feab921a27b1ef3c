"""Calibrate a viscoplastic model to stress-strain curves: gradients through time in jax.

    python examples/calibrate_jax.py [ARTIFACT]

neml2_capi.jax.Function makes of a compiled model a function of jax, for jit, vmap and grad. Three
specimens are stretched at different rates. Their stresses are made up, by the model itself with
known parameters; from a guess that is far off, the optimizer finds these again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import neml2_capi
from neml2_capi import examples
from neml2_capi.jax import Function

jax.config.update("jax_enable_x64", True)  # else jax makes single precision of all numbers

Arrays = Mapping[str, Any]

TRUTH = {"E": 180e3, "yield_stress": 120.0}  # MPa
GUESS = {"E": 250e3, "yield_stress": 200.0}

STEPS = 20
RATES = np.array([1e-4, 1e-3, 1e-2])  # 1/s
# Uniaxial stretch to 0.8 % with lateral contraction, in Mandel notation.
STRETCH = 0.008
DIRECTION = np.array([1.0, -0.4, -0.4, 0.0, 0.0, 0.0])


def simulation(model: neml2_capi.Model) -> Callable[[Arrays], Any]:
    """A function of parameters: [step, specimen, 6] stresses in MPa, from the virgin state."""
    material, histories = Function(model), model.histories
    shapes = {variable.name: variable.base_shape for variable in model.inputs}
    start = {h.input: jnp.zeros((len(RATES), *shapes[h.input])) for h in histories}

    def simulate(parameters: Arrays) -> Any:
        def step(old: Arrays, value: Any) -> Any:
            forces = {"strain": jnp.broadcast_to(value * DIRECTION, (len(RATES), 6))}
            forces["t"] = value / RATES
            now = {**forces, **material({**forces, **old}, parameters)}
            # What is now, is the history of the next step.
            return {h.input: now[h.output or h.current or ""] for h in histories}, now["stress"]

        return jax.lax.scan(step, start, jnp.linspace(0.0, STRETCH, STEPS + 1)[1:])[1]

    return simulate


def main() -> None:
    model = neml2_capi.Model(sys.argv[1] if sys.argv[1:] else examples.path("isotropic_hardening"))
    simulate = simulation(model)
    measured = simulate(TRUTH)

    def error(logarithms: Any) -> Any:
        """The mean square error; a parameter that is found by its logarithm is positive."""
        parameters = dict(zip(TRUTH, jnp.exp(logarithms), strict=True))
        return jnp.mean((simulate(parameters) - measured) ** 2)

    error_and_gradient = jax.jit(jax.value_and_grad(error))

    def report(intermediate_result: Any) -> None:
        values = ", ".join(f"{v:.6g} MPa" for v in np.exp(intermediate_result.x))
        print(f"mean square error {intermediate_result.fun:9.3e} MPa^2: {values}")

    def objective(logarithms: Any) -> tuple[float, Any]:
        value, gradient = error_and_gradient(logarithms)
        return float(value), np.asarray(gradient)

    found = minimize(
        objective,
        np.log(list(GUESS.values())),
        jac=True,
        method="L-BFGS-B",
        callback=report,
        options={"ftol": 0.0, "gtol": 1e-8},
    )
    for (name, value), logarithm in zip(TRUTH.items(), found.x, strict=True):
        recovered = np.exp(logarithm)
        assert abs(recovered - value) < 1e-5 * value, f"{name} is {recovered}, not {value}"
    print("recovered", ", ".join(f"{name} = {value} MPa" for name, value in TRUTH.items()))


if __name__ == "__main__":
    main()
