"""Gradients through laws under a hypothesis, in torch and jax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neml2_capi import Model, drive, examples


def flowing() -> tuple[Model, dict[str, Any]]:
    """A model in plane stress, and the inputs of a step in which it flows."""
    model = Model(examples.path("isotropic_hardening"), hypothesis="plane_stress")
    model.options.update({"atol": 1e-13, "rtol": 1e-12})
    strain = np.linspace(0, 1, 4)[:, None] * [8e-3, -3e-3, 4e-3]
    results = drive(model, np.arange(4.0), {"strain": strain})
    inputs: dict[str, Any] = {"strain": strain[3], "strain~1": strain[2], "t": 3.0, "t~1": 2.0}
    for history in model.histories:
        if history.output is not None:
            inputs[history.input] = np.asarray(results[history.output])[2]
    return model, inputs


def test_torch_differentiates_through_the_solve_by_strains_and_constants() -> None:
    torch = pytest.importorskip("torch")
    module = pytest.importorskip("neml2_capi.torch").Module
    model, inputs = flowing()
    material = module(model, outputs=["stress", "strain_transverse"])
    given = {name: torch.as_tensor(value, dtype=torch.float64) for name, value in inputs.items()}
    given["strain"].requires_grad_()
    outputs = material(**given)
    weights = {name: torch.arange(1.0, 4.0, dtype=torch.float64) for name in outputs}
    loss = sum((weights[name] * value).sum() for name, value in outputs.items())
    loss.backward()

    def loss_at(strain: Any, constants: dict[str, float]) -> float:
        found = model.forward({**inputs, "strain": strain}, constants)
        names = ("stress", "strain_transverse")
        return float(sum(np.arange(1.0, 4.0) @ np.asarray(found[name]) for name in names))

    for k in range(3):
        step = 1e-7 * np.eye(3)[k]
        slope = (loss_at(inputs["strain"] + step, {}) - loss_at(inputs["strain"] - step, {})) / 2e-7
        assert float(given["strain"].grad[k]) == pytest.approx(slope, rel=1e-6)
    gradients = {name: value.grad for name, value in material.named_parameters()}
    for name, gradient in gradients.items():
        (known,) = (each for each in model.parameters.names if name.endswith(each))
        value = float(np.asarray(model.named_parameters()[known]))
        ends = [loss_at(inputs["strain"], {known: value * f}) for f in (1 + 1e-5, 1 - 1e-5)]
        assert float(gradient) == pytest.approx((ends[0] - ends[1]) / (2e-5 * value), rel=1e-6)


def test_jax_differentiates_through_the_solve() -> None:
    jax = pytest.importorskip("jax")
    function = pytest.importorskip("neml2_capi.jax").Function
    jax.config.update("jax_enable_x64", True)
    try:
        model, inputs = flowing()
        material = function(model)

        def stress(strain: Any) -> Any:
            return material({**inputs, "strain": strain})["stress"]

        tangent = model.jacobian(inputs)[1]["stress"]["strain"]
        for mode in (jax.jacfwd, jax.jacrev):
            found = mode(stress)(jax.numpy.asarray(inputs["strain"]))
            np.testing.assert_allclose(found, tangent, rtol=0, atol=1e-9 * np.abs(tangent).max())
    finally:
        jax.config.update("jax_enable_x64", False)
