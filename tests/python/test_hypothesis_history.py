"""Derivatives of whole histories of laws under a hypothesis, which the library carries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from test_hypotheses import HYPOTHESES as ALL_HYPOTHESES

from neml2_capi import Model, drive, examples
from neml2_capi.driver import gradients, slopes

Array = NDArray[np.float64]
TIMES = np.linspace(0, 3, 13)
#: Those that share their components with plane strain are left out.
HYPOTHESES = {
    name: parts
    for name, parts in ALL_HYPOTHESES.items()
    if name not in ("axisymmetrical", "generalised_plane_strain")
}
LAWS = ("chaboche", "isotropic_hardening", "elasticity")


def opened(law: str, **view: Any) -> Model:
    model = Model(examples.path(law), **view)
    model.options.update({"atol": 1e-11, "rtol": 1e-13})
    return model


def cycle(hypothesis: str) -> Array:
    """Tensor components of three specimens over time, (n, 3, given)."""
    given = HYPOTHESES[hypothesis][0].split()
    size = {"xx": 6e-3, "yy": -2e-3, "zz": -2.5e-3, "yz": 1e-3, "xz": 2e-3, "xy": 3e-3}
    waves = np.sin(2 * np.pi * TIMES / 3)[:, None, None] * np.array([0.5, 1.0, 1.4])[:, None]
    return np.asarray(waves * [size[part] for part in given])


def as_stored(strain: Array, hypothesis: str) -> Array:
    given = HYPOTHESES[hypothesis][0].split()
    return strain * [np.sqrt(2.0) if part in ("yz", "xz", "xy") else 1.0 for part in given]


def driven(model: Model, hypothesis: str, names: Any, **more: Any) -> Any:
    strain = as_stored(cycle(hypothesis), hypothesis)
    return drive(model, TIMES, {"strain": strain}, derivatives=names, **more)


def never(*_: Any) -> Iterator[Any]:
    raise AssertionError("the library did not carry the derivatives")


@pytest.fixture
def only_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if numpy has to go from increment to increment."""
    monkeypatch.setattr(gradients, "stepped", never)


def by_numpy(results: Any, cotangents: Any) -> Any:
    """Compute the gradient as if the library could not carry it."""

    def fails(*_: Any) -> Iterator[Any]:
        raise slopes.NotCarriedError
        yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradients, "carried", fails)
        return results.gradient(cotangents)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_derivatives_are_those_in_three_dimensions_by_a_control(hypothesis: str, law: str) -> None:
    model, whole = opened(law, hypothesis=hypothesis), opened(law)
    names = list(model.parameters.names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradients, "stepped", never)
        results = driven(model, hypothesis, names)
        found = {name: results.derivative("stress", name) for name in names}
    given, vanishing = (each.split() for each in HYPOTHESES[hypothesis])
    strain = cycle(hypothesis)
    parts = {part: strain[..., k] for k, part in enumerate(given)}
    control = {"stress": dict.fromkeys(vanishing, 0.0)} if vanishing else None
    expected = drive(whole, TIMES, {"strain": parts}, control=control, derivatives=names)
    six = ["xx", "yy", "zz", "yz", "xz", "xy"]
    kept = [six.index(part) for part in given]
    for name in names:
        by_control = expected.derivative("stress", name)[..., kept]
        scale = np.abs(by_control).max()
        np.testing.assert_allclose(found[name], by_control, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("kernels", ["auto", "off"])
@pytest.mark.parametrize("hypothesis", ["plane_stress", "uniaxial", "shell"])
def test_gradients_are_those_of_differences(
    hypothesis: str, kernels: str, only_carried: None
) -> None:
    """On kernels, which solve for the strains, and in rounds around packages."""
    model = opened("chaboche", hypothesis=hypothesis)
    model.options["kernels"] = kernels
    names = list(model.parameters.names)
    weights = np.cos(np.arange(len(TIMES)))[:, None, None]

    def loss(values: dict[str, float]) -> float:
        results = driven(model, hypothesis, None, parameters=values)
        return float((weights * results["stress"]).sum())

    results = driven(model, hypothesis, names)
    found = results.gradient({"stress": weights + 0 * results["stress"]})
    for name in names:
        value = float(model[name])
        ends = [loss({name: value * (1 + step)}) for step in (1e-5, -1e-5)]
        assert found[name] == pytest.approx((ends[0] - ends[1]) / (2e-5 * value), rel=1e-7)


@pytest.mark.parametrize("kernels", ["auto", "off"])
@pytest.mark.parametrize(
    "names", [["X1"], ["stress"], ["strain_transverse"], ["stress_transverse", "stress", "X2"]]
)
@pytest.mark.parametrize("hypothesis", ["uniaxial", "plane_stress", "plane_strain"])
def test_derivatives_by_initial_values_are_carried(
    hypothesis: str, names: list[str], kernels: str, only_carried: None
) -> None:
    """Initial values with all components, or with the components of the hypothesis."""
    model = opened("chaboche", hypothesis=hypothesis)
    model.options["kernels"] = kernels
    names = [name for name in names if name in model.outputs.index_of]
    start = {name: 1e-4 * np.ones(model.outputs[name].point_shape) for name in names}
    asked = [f"initial:{name}" for name in names] + list(model.parameters.names)
    results = driven(model, hypothesis, asked, initial=start)
    expect_as_by_numpy(results)


def test_derivatives_go_through_increments_that_a_law_cuts(
    artifacts: Any, only_carried: None
) -> None:
    model = Model(artifacts["substepping"], hypothesis="plane_stress")
    model.options.update({"rtol": 1e-13, "miters": 8})
    strain = as_stored(cycle("plane_stress"), "plane_stress")
    results = drive(model, TIMES, {"strain": strain}, derivatives=["E"])
    expect_as_by_numpy(results)


def test_an_increment_that_is_cut_and_a_state_that_is_given(only_carried: None) -> None:
    """Steps that fail are cut by the driver; derivatives follow what was made."""
    model = opened("isotropic_hardening", hypothesis="uniaxial")
    model.options["miters"] = 5
    times = np.array([0.0, 1.0])
    results = drive(model, times, {"strain": [[0.0], [0.3]]}, derivatives=model.parameters.names)
    assert results["substeps"].max() > 1
    expect_as_by_numpy(results)


def expect_as_by_numpy(results: Any) -> None:
    cotangents = {"stress": np.cos(results["stress"])}
    if "strain_transverse" in results:
        cotangents["strain_transverse"] = 1e3 + 0 * results["strain_transverse"]
    found, expected = results.gradient(cotangents), by_numpy(results, cotangents)
    for key in expected:
        scale = np.abs(expected[key]).max() or 1.0
        np.testing.assert_allclose(found[key], expected[key], rtol=0, atol=1e-9 * scale)


def test_torch_and_jax_take_the_gradient_that_is_carried(only_carried: None) -> None:
    model = opened("chaboche", hypothesis="uniaxial")
    names = list(model.parameters.names)
    results = driven(model, "uniaxial", names)
    expected = results.gradient({"stress": 2 * results["stress"]})
    torch = pytest.importorskip("torch")
    values = {
        name: torch.tensor(float(model[name]), dtype=torch.float64, requires_grad=True)
        for name in names
    }
    driven(model, "uniaxial", None, parameters=values)["stress"].square().sum().backward()
    for name in names:
        assert float(values[name].grad) == pytest.approx(float(expected[name]), rel=1e-10)
    jax = pytest.importorskip("jax")
    of_jax = pytest.importorskip("neml2_capi.jax")
    jax.config.update("jax_enable_x64", True)
    try:

        def run(parameters: Any = None, derivatives: Any = None) -> Any:
            return driven(model, "uniaxial", derivatives, parameters=parameters)

        history = of_jax.driven(run, ["stress"])
        found = jax.grad(lambda p: (history(p)["stress"] ** 2).sum())(
            {name: float(model[name]) for name in names}
        )
        for name in names:
            assert float(found[name]) == pytest.approx(float(expected[name]), rel=1e-10)
    finally:
        jax.config.update("jax_enable_x64", False)
