"""Models among jax' transforms, by the function of examples/calibrate_jax.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, Artifacts
from patience import PATIENCE

from neml2_capi import Model

jax = pytest.importorskip("jax")
jnp = jax.numpy

EXAMPLE = ROOT / "examples" / "calibrate_jax.py"
E, NU = "elasticity.E", "elasticity.nu"
PARAMETERS = {E: 70e3, NU: 0.3}
RANDOM = np.random.default_rng(5)


@pytest.fixture(scope="module", autouse=True)
def double_precision() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture(scope="module")
def as_jax() -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location("calibrate_jax", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.as_jax


@pytest.fixture
def elasticity(artifacts: Artifacts) -> Model:
    return Model(artifacts["elasticity_parameters"])


def strains(*batch: int) -> Any:
    return jnp.asarray(RANDOM.normal(0, 1e-3, (*batch, 6)))


@pytest.mark.parametrize("points", [1, 100_000])
def test_the_function_gives_what_the_model_gives_also_under_jit(
    elasticity: Model, as_jax: Any, points: int
) -> None:
    strain = strains(points)
    expected = elasticity.forward({"strain": strain}, PARAMETERS)["stress"]
    function = as_jax(elasticity)
    for evaluate in (function, jax.jit(function)):
        outputs = evaluate({"strain": strain}, PARAMETERS)
        np.testing.assert_array_equal(outputs["stress"], expected)


def slope(function: Any, at: Any, step: float = 1e-4) -> Any:
    """The derivative of a function of a number, by differences of fourth order."""
    near, far = (function(at + s * step) - function(at - s * step) for s in (1, 2))
    return (8 * near - far) / (12 * step)


@pytest.mark.parametrize("nu", [0.3, np.array([0.1, 0.2, 0.3, 0.4])], ids=["one", "per point"])
def test_gradients_agree_with_differences(elasticity: Model, as_jax: Any, nu: Any) -> None:
    function, strain, weights = as_jax(elasticity), strains(4), strains(4)

    def energy(strain: Any, E: Any, nu: Any) -> Any:
        stress = function({"strain": strain}, {"elasticity.E": E, "elasticity.nu": nu})["stress"]
        return (weights * stress**2).sum()

    at = [strain, jnp.asarray(70e3), jnp.asarray(nu)]
    gradients = jax.grad(energy, argnums=(0, 1, 2))(*at)
    for index, (value, gradient) in enumerate(zip(at, gradients, strict=True)):
        assert gradient.shape == value.shape
        direction = value * RANDOM.uniform(0.5, 1.5, value.shape)

        def along(factor: float, index: int = index, direction: Any = direction) -> Any:
            changed = [*at[:index], at[index] + factor * direction, *at[index + 1 :]]
            return energy(*changed)

        np.testing.assert_allclose((gradient * direction).sum(), slope(along, 0.0), rtol=1e-8)


def test_gradients_through_a_newton_solve_agree_with_differences(
    artifacts: Artifacts, as_jax: Any
) -> None:
    model = Model(artifacts["isotropic_hardening"])
    function = as_jax(model)
    shapes = {variable.name: variable.base_shape for variable in model.inputs}
    inputs = {name: np.zeros(shape) for name, shape in shapes.items()}
    inputs |= {"t": np.array(1.0), "strain": np.array([5e-3, -2e-3, -2e-3, 0.0, 1e-3, 0.0])}
    names = [model.parameters.names[model.parameters.resolve(n)] for n in ("E", "yield_stress")]

    def stress(factors: Any, strain: Any) -> Any:
        parameters = {names[0]: 180e3 * factors[0], names[1]: 120.0 * factors[1]}
        return jnp.linalg.norm(function({**inputs, "strain": strain}, parameters)["stress"])

    found = jax.jit(jax.grad(stress))(jnp.ones(2), inputs["strain"])
    for index, unit in enumerate(np.eye(2)):
        expected = slope(lambda x, unit=unit: stress(1.0 + x * unit, inputs["strain"]), 0.0)
        np.testing.assert_allclose(found[index], expected, rtol=1e-7)


def test_vmap_is_one_batch(elasticity: Model, as_jax: Any) -> None:
    function = as_jax(elasticity)
    strain, nu = strains(5, 3), jnp.linspace(0.1, 0.4, 5)

    def stress(strain: Any, nu: Any) -> Any:
        return function({"strain": strain}, {E: 70e3, NU: nu})["stress"]

    expected = elasticity.forward({"strain": strain}, {E: 70e3, NU: nu[:, None]})["stress"]
    mapped = jax.vmap(stress)(strain, nu)
    np.testing.assert_allclose(mapped, expected, rtol=1e-14)
    gradients = jax.vmap(jax.grad(lambda s, n: stress(s, n).sum(), argnums=1))(strain, nu)
    one_by_one = [
        jax.grad(lambda n, s=s: stress(s, n).sum())(n) for s, n in zip(strain, nu, strict=True)
    ]
    np.testing.assert_allclose(gradients, one_by_one, rtol=1e-12)


def test_a_jacobian_by_rows_is_the_tangent(elasticity: Model, as_jax: Any) -> None:
    function, strain = as_jax(elasticity), strains()
    rows = jax.jacrev(lambda s: function({"strain": s}, {})["stress"])(strain)
    tangent = elasticity.jacobian({"strain": strain})[1]["stress"]["strain"]
    np.testing.assert_allclose(rows, tangent, rtol=1e-14)


def test_the_example_recovers_the_truth(artifacts: Artifacts) -> None:
    pytest.importorskip("scipy")
    command = [sys.executable, "-I", str(EXAMPLE), str(artifacts["isotropic_hardening"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("recovered E = 180000.0 MPa, yield_stress = 120.0 MPa\n")
