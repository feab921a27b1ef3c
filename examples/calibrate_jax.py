"""Calibrate a viscoplastic model to stress-strain curves: gradients through time in jax.

    python examples/calibrate_jax.py [ARTIFACT]

`as_jax` makes of a compiled model a function of jax, for jit, vmap and grad. Three specimens are
stretched at different rates. Their stresses are made up, by the model itself with known parameters;
from a guess that is far off, the optimizer finds these again.
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

jax.config.update("jax_enable_x64", True)  # else jax makes single precision of all numbers

Arrays = Mapping[str, Any]

TRUTH = {"E": 180e3, "yield_stress": 120.0}  # MPa
GUESS = {"E": 250e3, "yield_stress": 200.0}

STEPS = 20
RATES = np.array([1e-4, 1e-3, 1e-2])  # 1/s
# Uniaxial stretch to 0.8 % with lateral contraction, in Mandel notation.
STRETCH = 0.008
DIRECTION = np.array([1.0, -0.4, -0.4, 0.0, 0.0, 0.0])


def as_jax(model: neml2_capi.Model) -> Callable[[Arrays, Arrays], dict[str, Any]]:
    """A function (inputs, parameters) -> outputs, mappings of names to arrays (*B, *shape).

    Batches broadcast; parameters have their full names, and those that are missing their stored
    values. Derivatives are there in reverse mode, as far as they were compiled: zero elsewhere.
    """
    shapes = {
        variable.name: variable.sub_batch_shape + variable.base_shape
        for variable in (*model.inputs, *model.parameters, *model.outputs)
    }

    def call(function: Callable[..., Any], like: Any, *arguments: Any) -> Any:
        # The model wants numpy's arrays here: jax' own would wait for jax, which waits for us.
        def on_host(*given: Any) -> Any:
            return function(*jax.tree.map(np.asarray, given))

        # Under vmap all arguments get the new axis, and so the batches are one still.
        return jax.pure_callback(on_host, like, *arguments, vmap_method="broadcast_all")

    def outputs(inputs: Arrays, parameters: Arrays) -> Any:
        name, array = next(iter(inputs.items()))
        batch = array.shape[: array.ndim - len(shapes[name])]
        like = {
            output.name: jax.ShapeDtypeStruct(batch + shapes[output.name], output.dtype)
            for output in model.outputs
        }
        return call(model.forward, like, inputs, parameters)

    evaluate = jax.custom_vjp(outputs)

    def forward(inputs: Arrays, parameters: Arrays) -> tuple[Any, Any]:
        return evaluate(inputs, parameters), (inputs, parameters)

    def adjoints(inputs: Arrays, parameters: Arrays, cotangents: Arrays) -> Any:
        of_inputs = model.vjp(inputs, cotangents, parameters)[1]
        of_parameters = model.param_vjp(inputs, cotangents, parameters) if parameters else {}
        return tuple(
            {name: found[name] if name in found else np.zeros_like(a) for name, a in given.items()}
            for found, given in ((of_inputs, inputs), (of_parameters, parameters))
        )

    def backward(saved: Any, cotangents: Arrays) -> Any:
        like = jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype), saved)
        return call(adjoints, like, *saved, cotangents)

    evaluate.defvjp(forward, backward)

    def function(inputs: Arrays, parameters: Arrays) -> dict[str, Any]:
        given = {name: jnp.asarray(a, model.dtype) for name, a in {**inputs, **parameters}.items()}
        batch = jnp.broadcast_shapes(
            *(a.shape[: a.ndim - len(shapes[n])] for n, a in given.items())
        )
        spread = {name: jnp.broadcast_to(a, batch + shapes[name]) for name, a in given.items()}
        results: dict[str, Any] = evaluate(
            {name: spread[name] for name in inputs}, {name: spread[name] for name in parameters}
        )
        return results

    return function


def simulation(model: neml2_capi.Model) -> Callable[[Arrays], Any]:
    """A function of parameters: [step, specimen, 6] stresses in MPa, from the virgin state."""
    material, histories = as_jax(model), model.histories
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
    names = [model.parameters.names[model.parameters.resolve(name)] for name in TRUTH]
    measured = simulate(dict(zip(names, TRUTH.values(), strict=True)))

    def error(logarithms: Any) -> Any:
        """The mean square error; a parameter that is found by its logarithm is positive."""
        parameters = dict(zip(names, jnp.exp(logarithms), strict=True))
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
