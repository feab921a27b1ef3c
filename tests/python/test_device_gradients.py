"""Gradients through models whose text runs on a device: torch, jax and whole histories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from states import repeated, state_of
from test_opencl import cache_of_pocl  # noqa: F401  (a fixture)
from test_opencl_models import DEVICES, QUICK, opened

from neml2_capi import experiments

pytestmark = [pytest.mark.numbers, pytest.mark.full("compiles texts")]

POINTS = 40


@pytest.mark.parametrize("device", DEVICES)
def test_a_history_on_a_device_has_the_gradients_of_lanes(device: str, tmp_path: Path) -> None:
    pair = opened(QUICK, tmp_path, device)
    times = np.linspace(0, 10, 9)
    asked = ["E", "yield_stress", "initial:stress", "strain.xx"]
    found = []
    for model in pair:
        results = experiments.tension(model, times, 0.004, derivatives=asked)
        slope = results.derivative("stress", "E")
        gradient = results.gradient({"stress": np.ones_like(results["stress"])})
        found.append({**gradient, "slope": slope})
    for name, expected in found[0].items():
        np.testing.assert_allclose(
            found[1][name], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max(), err_msg=name
        )


@pytest.mark.parametrize("device", DEVICES)
def test_a_module_on_a_device_trains_as_in_lanes(device: str, tmp_path: Path) -> None:
    """By inputs and by parameters, of one value for all points and of one for each."""
    torch = pytest.importorskip("torch")
    from neml2_capi.torch import Module

    pair = opened(QUICK, tmp_path, device)
    inputs = repeated(state_of(QUICK, pair[0]), POINTS)
    found: list[dict[str, Any]] = []
    for model in pair:
        module = Module(model)
        module["E"] = float(module["E"]) * np.linspace(0.9, 1.1, POINTS)
        tensors = {name: torch.tensor(value) for name, value in inputs.items()}
        tensors["strain"].requires_grad_()
        outputs = module(tensors)
        loss = sum((value**2).sum() for value in outputs.values())
        loss.backward()
        found.append(
            {"strain": tensors["strain"].grad, **{n: p.grad for n, p in module.named_parameters()}}
        )
    assert found[0].keys() == found[1].keys()
    for name, expected in found[0].items():
        assert torch.count_nonzero(expected) > 0, name
        assert torch.equal(found[1][name], expected), name


@pytest.mark.parametrize("device", DEVICES)
def test_a_function_of_jax_on_a_device_has_the_gradients_of_lanes(
    device: str, tmp_path: Path
) -> None:
    jax = pytest.importorskip("jax")
    from neml2_capi.jax import Function

    jax.config.update("jax_enable_x64", True)
    try:
        pair = opened(QUICK, tmp_path, device)
        inputs = repeated(state_of(QUICK, pair[0]), POINTS)
        values = {name: np.asarray(value) for name, value in pair[0].named_parameters().items()}
        found = []
        for model in pair:
            law = Function(model, ["stress"])

            def loss(parameters: Any, given: Any, law: Function = law) -> Any:
                return (law(given, parameters)["stress"] ** 2).sum()

            by_parameters, by_inputs = jax.grad(loss, (0, 1))(values, inputs)
            found.append({**by_parameters, "strain": by_inputs["strain"]})
        for name, expected in found[0].items():
            np.testing.assert_array_equal(found[1][name], expected, err_msg=name)
    finally:
        jax.config.update("jax_enable_x64", False)
