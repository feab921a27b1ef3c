"""Derivatives of models with grains: sub-batch axes between the points and the components."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import central_differences
from numpy.typing import NDArray
from oracle import elastic_stress
from states import Artifacts, load, random_like, recorded

from neml2_capi import FatalError, Model
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]

STIFFNESS = elastic_stress(np.eye(6), 200e3, 0.3).T


@pytest.fixture(scope="module")
def grains(artifacts: Artifacts) -> Model:
    """Strain of four grains to their stress and to the mean stress."""
    return load(artifacts, "grains")


def close(actual: Array, expected: Array) -> bool:
    return actual.shape == expected.shape and bool(
        np.abs(actual - expected).max() <= 1e-12 * np.abs(expected).max()
    )


# ---- each grain on its own ----


def test_one_block_is_that_of_all_points_and_grains(artifacts: Artifacts) -> None:
    model = load(artifacts, "elasticity_grains")
    block = model.jacobian(recorded("elasticity_grains", "in"))[1]["stress"]["strain"]
    assert close(block, STIFFNESS[np.newaxis])  # an axis of grains of length one, none of points
    (derivative,) = model.derivatives
    assert (derivative.shape, derivative.batched) == ((1, 6, 6), False)


def test_grains_have_directions_of_their_own(artifacts: Artifacts) -> None:
    """NEML2's own runtime has no product here."""
    model, inputs = load(artifacts, "elasticity_grains"), recorded("elasticity_grains", "in")
    tangents, cotangents = random_like(inputs), random_like(model.forward(inputs))
    jvp = model.jvp(inputs, tangents)[1]["stress"]
    assert close(jvp, elastic_stress(tangents["strain"], 200e3, 0.3))
    vjp = model.vjp(inputs, cotangents)[1]["strain"]
    assert close(vjp, elastic_stress(cotangents["stress"], 200e3, 0.3))


# ---- a mean over the grains ----


def test_the_block_of_a_mean_is_that_of_a_common_strain(grains: Model) -> None:
    inputs = recorded("grains", "in")

    def mean_stress(strain: Array) -> Array:
        result: Array = grains.forward({"strain": strain})["mean_stress"]
        return result

    block = grains.jacobian(inputs)[1]["mean_stress"]["strain"]
    assert close(block, STIFFNESS)
    of_each_grain = central_differences(mean_stress, inputs["strain"], 1e-4, 2)
    common = of_each_grain.sum(axis=-2)  # the same change in every grain
    np.testing.assert_allclose(common, np.broadcast_to(block, (3, 6, 6)), atol=1e-6 * 200e3)


def test_a_mean_follows_a_tangent_that_all_grains_share(grains: Model) -> None:
    inputs = recorded("grains", "in")
    tangent = np.random.default_rng(0).standard_normal((3, 1, 6))
    shared = np.ascontiguousarray(np.broadcast_to(tangent, (3, 4, 6)))
    derivatives = grains.jvp(inputs, {"strain": shared})[1]
    expected = elastic_stress(shared, 200e3, 0.3)
    assert close(derivatives["mean_stress"], expected[:, 0])
    assert close(derivatives["stress"], expected)


@pytest.mark.parametrize("product", ["jvp", "vjp"])
def test_what_the_packages_cannot_tell_is_an_error_that_says_why(
    grains: Model, product: str
) -> None:
    inputs = recorded("grains", "in")
    directions = random_like(inputs if product == "jvp" else grains.forward(inputs))
    with pytest.raises(FatalError, match="same change at all 4 sub-batch sites") as caught:
        getattr(grains, product)(inputs, directions)
    assert caught.value.status == lib.NEML2_ERROR_UNSUPPORTED
    assert caught.value.subject == "mean_stress:strain"


def test_what_the_packages_can_tell_is_no_error(grains: Model) -> None:
    inputs = recorded("grains", "in")
    cotangent = np.random.default_rng(0).standard_normal((3, 4, 6))
    adjoint = grains.vjp(inputs, {"stress": cotangent})[1]["strain"]
    assert close(adjoint, elastic_stress(cotangent, 200e3, 0.3))


# ---- grains inside an implicit model ----


def test_only_pairs_without_grains_count(artifacts: Artifacts) -> None:
    """Of a polycrystal the strain depends on the stresses of the grains, by no compiled pair."""
    model, inputs = load(artifacts, "polycrystal"), recorded("polycrystal", "in")
    derivatives = model.jvp(inputs, {"stress~1": np.ones_like(inputs["stress~1"])})[1]
    assert derivatives.keys() == {"strain"}
    np.testing.assert_array_equal(derivatives["strain"], np.zeros((4, 6)))
    adjoints = model.vjp(inputs, random_like(model.forward(inputs)))[1]
    assert adjoints.keys() == {"applied_stress", "strain~1", "t", "t~1"}


def test_a_call_whose_derivative_is_refused_writes_nothing(artifacts: Artifacts) -> None:
    model = load(artifacts, "grains")
    strain = np.linspace(0.0, 1e-3, 2 * 4 * 6).reshape(2, 4, 6)
    jvp, stress = np.full((2, 6), -1.0), np.full((2, 4, 6), -1.0)
    call = ffi.gc(ffi.new("neml2_call **"), lib.neml2_call_free)
    check(lib.neml2_call_create(call, model._engine._open()[0]))

    def bind(role: int, name: bytes, array: Any) -> None:
        data = ffi.cast("void *", array.ctypes.data)
        check(lib.neml2_call_bind(call[0], role, name, data, lib.NEML2_FLOAT64, array[0].size))

    bind(lib.NEML2_INPUT, b"strain", strain)
    bind(lib.NEML2_TANGENT, b"strain", strain)  # not the same at all grains
    bind(lib.NEML2_OUTPUT, b"stress", stress)
    bind(lib.NEML2_JVP, b"mean_stress", jvp)
    assert lib.neml2_call_run(call[0], 2) == lib.NEML2_ERROR_UNSUPPORTED
    assert np.all(jvp == -1.0) and np.all(stress == -1.0)
