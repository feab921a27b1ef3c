"""Derivatives with respect to inputs: against differences, closed forms, and one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest
from differences import central_differences
from numpy.typing import NDArray
from oracle import ISOTROPIC_HARDENING, elastic_stress
from states import ALL, Artifacts, load, random_like, recorded

from neml2_capi import Model

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]
Arrays = Mapping[str, Array]

# The others have blocks of grains, which test_grain_derivatives.py is about.
NAMES = [name for name in ALL if name not in ("elasticity_grains", "grains")]


class Case(NamedTuple):
    model: Model
    inputs: Arrays
    outputs: Arrays
    jacobian: Mapping[str, Arrays]

    def scale(self, name: str) -> float:
        """The magnitude of an input; of `x~1` also the magnitude of x."""
        current = name.split("~")[0]
        values = (self.inputs.get(name), self.inputs.get(current), self.outputs.get(current))
        return max(float(np.abs(value).max()) for value in values if value is not None)


@pytest.fixture(scope="module", params=NAMES)
def case(request: pytest.FixtureRequest, artifacts: Artifacts) -> Case:
    model, inputs = load(artifacts, request.param), recorded(request.param, "in")
    if request.param == "radial_return":
        model.options["rtol"] = 1e-16  # from a first residual of 3e4 to round-off
    return Case(model, inputs, *model.jacobian(inputs))


def apply(block: Array, tangent: Array) -> Array:
    """A block [point, *out, *in] times a tangent [point, *in]."""
    points, size = len(tangent), tangent[0].size
    product = block.reshape(len(block), -1, size) @ tangent.reshape(points, size, 1)
    result: Array = product.reshape(points, *block.shape[1 : block.ndim - tangent.ndim + 1])
    return result


def apply_transposed(block: Array, cotangent: Array) -> Array:
    """A cotangent [point, *out] times a block [point, *out, *in]."""
    points, size = len(cotangent), cotangent[0].size
    product = cotangent.reshape(points, 1, size) @ block.reshape(len(block), size, -1)
    result: Array = product.reshape(points, *block.shape[cotangent.ndim :])
    return result


def assert_close(actual: Array, expected: Array, round_off: float = 0.0) -> None:
    assert actual.shape == expected.shape
    tolerance = 1e-10 * float(np.abs(expected).max()) + round_off
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def test_every_pair_that_was_compiled_is_there(case: Case) -> None:
    pairs = [(derivative.output, derivative.variable) for derivative in case.model.derivatives]
    assert pairs
    assert pairs == [(output, name) for output, row in case.jacobian.items() for name in row]


def test_a_block_is_what_differences_say(case: Case) -> None:
    for derivative in case.model.derivatives:
        output, name = derivative.output, derivative.variable
        value, scale = case.inputs[name], case.scale(name)

        def forward(perturbed: Array, output: str = output, name: str = name) -> Array:
            result: Array = case.model.forward({**case.inputs, name: perturbed})[output]
            return result

        differences = central_differences(forward, value, 1e-3 * scale, value.ndim - 1)
        block = case.jacobian[output][name]
        assert block.shape == differences.shape
        # Round-off counts if a derivative is zero, that by an initial guess for example.
        round_off = 1e-11 * float(np.abs(case.outputs[output]).max()) / scale
        tolerance = 1e-6 * float(np.abs(differences).max()) + round_off
        error = np.abs(block - differences).max()
        assert error <= tolerance, (output, name)


def test_jvp_is_the_jacobian_times_the_tangents(case: Case) -> None:
    tangents = random_like(case.inputs)
    outputs, derivatives = case.model.jvp(case.inputs, tangents)
    assert derivatives.keys() == case.jacobian.keys()
    for output, row in case.jacobian.items():
        expected = sum(apply(block, tangents[name]) for name, block in row.items())
        assert_close(derivatives[output], np.asarray(expected))
    for name, value in outputs.items():
        np.testing.assert_array_equal(value, case.outputs[name])


def test_vjp_is_the_cotangents_times_the_jacobian(case: Case) -> None:
    cotangents = random_like(case.outputs)
    outputs, adjoints = case.model.vjp(case.inputs, cotangents)
    expected: dict[str, Array] = {}
    for output, row in case.jacobian.items():
        for name, block in row.items():
            term = apply_transposed(block, cotangents[output])
            expected[name] = expected.get(name, np.zeros_like(term)) + term
    assert adjoints.keys() == expected.keys()
    for name, value in expected.items():
        # Derivatives by gamma~1 of radial_return are zero, as differences of great terms.
        terms = (np.abs(cotangents[output] * case.outputs[output]).max() for output in outputs)
        assert_close(adjoints[name], value, 1e-14 * float(max(terms)) / case.scale(name))
    for name, value in outputs.items():
        np.testing.assert_array_equal(value, case.outputs[name])


def test_vjp_is_the_transpose_of_jvp(case: Case) -> None:
    pairs = {(derivative.output, derivative.variable) for derivative in case.model.derivatives}
    outputs = sorted({output for output, _ in pairs})
    names = sorted({name for _, name in pairs})
    assert len(pairs) == len(outputs) * len(names)
    v, w = random_like(case.inputs), random_like(case.outputs)
    jvp = case.model.jvp(case.inputs, {name: v[name] for name in names})[1]
    vjp = case.model.vjp(case.inputs, {output: w[output] for output in outputs})[1]
    terms = np.concatenate([(w[output] * jvp[output]).ravel() for output in outputs])
    other = np.concatenate([(vjp[name] * v[name]).ravel() for name in names])
    assert abs(terms.sum() - other.sum()) <= 1e-10 * np.abs(terms).sum()


def test_what_is_missing_is_zero(case: Case) -> None:
    first = case.model.derivatives[0]
    tangent = random_like(case.inputs)[first.variable]
    for output, value in case.model.jvp(case.inputs, {first.variable: tangent})[1].items():
        row = case.jacobian[output]
        if first.variable in row:
            assert_close(value, apply(row[first.variable], tangent))
    cotangent = random_like(case.outputs)[first.output]
    adjoints = case.model.vjp(case.inputs, {first.output: cotangent})[1]
    for name, block in case.jacobian[first.output].items():
        terms = np.abs(cotangent * case.outputs[first.output])  # as in the test of vjp
        round_off = 1e-14 * float(terms.max()) / case.scale(name)
        assert_close(adjoints[name], apply_transposed(block, cotangent), round_off)
    nothing = case.model.jvp(case.inputs, {})[1] | case.model.vjp(case.inputs, {})[1]
    for value in nothing.values():
        np.testing.assert_array_equal(value, np.zeros_like(value))


# ---- closed forms ----


def test_the_derivative_of_stress_is_the_stiffness(artifacts: Artifacts) -> None:
    model, strain = load(artifacts, "elasticity_parameters"), np.full((3, 6), 1e-3)
    E, nu = np.array([100e3, 200e3, 300e3]), 0.25
    overrides = {"elasticity.E": E, "elasticity.nu": np.array(nu)}
    block = model.jacobian({"strain": strain}, overrides)[1]["stress"]["strain"]
    # Column i is the stress of the unit strain i.
    expected = np.swapaxes(elastic_stress(np.eye(6), E[:, np.newaxis], nu), -1, -2)
    np.testing.assert_allclose(block, expected, rtol=1e-12, atol=1e-12 * E.max())


def test_the_tangent_of_viscoplasticity_is_that_of_its_equations(artifacts: Artifacts) -> None:
    model, inputs = load(artifacts, "isotropic_hardening"), recorded("isotropic_hardening", "in")
    old_state = np.column_stack([inputs["stress~1"], inputs["equivalent_plastic_strain~1"]])
    dt = inputs["t"] - inputs["t~1"]
    arguments = (old_state, inputs["strain"], inputs["strain~1"], dt)
    state = ISOTROPIC_HARDENING.advance(*arguments)
    by_old_state, by_strain, by_old_strain, by_dt = (
        ISOTROPIC_HARDENING.sensitivity(state, arguments, position) for position in range(4)
    )
    columns = {
        "strain": by_strain,
        "strain~1": by_old_strain,
        "t": by_dt[..., 0],
        "t~1": -by_dt[..., 0],
        "stress~1": by_old_state[..., :6],
        "equivalent_plastic_strain~1": by_old_state[..., 6],
    }
    jacobian = model.jacobian(inputs)[1]
    for name, column in columns.items():
        assert_close(jacobian["stress"][name], column[:, :6])
        assert_close(jacobian["equivalent_plastic_strain"][name], column[:, 6])
