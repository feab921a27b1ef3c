"""Derivatives with respect to promoted parameters, stored and overridden, one value or many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest
from differences import central_differences
from numpy.typing import NDArray
from oracle import elastic_stress
from states import Artifacts, load, random_like, recorded

from neml2_capi import Model

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]
Arrays = Mapping[str, Array]

NAMES = [
    "elasticity_parameters",
    "isotropic_hardening",
    "radial_return",
    "relaxation",
    "bicgstab",
    "substepping",
]


class Case(NamedTuple):
    model: Model
    inputs: Arrays
    stored: Arrays
    varied: Arrays  # one value per point

    @property
    def points(self) -> int:
        return len(next(iter(self.inputs.values())))


@pytest.fixture(scope="module", params=NAMES)
def case(request: pytest.FixtureRequest, artifacts: Artifacts) -> Case:
    model, inputs = load(artifacts, request.param), recorded(request.param, "in")
    if request.param == "radial_return":
        model.options["rtol"] = 1e-16  # from a first residual of 3e4 to round-off
    stored = {name: np.array(value) for name, value in model.named_parameters().items()}
    factors = np.linspace(0.95, 1.05, len(next(iter(inputs.values()))))
    return Case(model, inputs, stored, {name: value * factors for name, value in stored.items()})


def assert_close(actual: Array, expected: Array, tolerance: float = 1e-10) -> None:
    assert actual.shape == expected.shape
    scale = float(np.abs(expected).max())
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def gradients(case: Case, cotangents: Arrays, overrides: Arrays) -> dict[str, Array]:
    """Of each point, from the Jacobian."""
    jacobian = case.model.param_jacobian(case.inputs, overrides)[1]
    result: dict[str, Array] = {}
    for output, row in jacobian.items():
        for name, block in row.items():
            terms = (cotangents[output] * block).reshape(case.points, -1).sum(axis=-1)
            result[name] = result.get(name, np.zeros(case.points)) + terms
    return result


@pytest.mark.parametrize("overridden", [False, True], ids=["stored", "by point"])
def test_a_block_is_what_differences_say(case: Case, overridden: bool) -> None:
    overrides = case.varied if overridden else {}
    outputs, jacobian = case.model.param_jacobian(case.inputs, overrides)
    assert case.model.parameter_derivatives
    for derivative in case.model.parameter_derivatives:
        output, name = derivative.output, derivative.variable
        at = np.broadcast_to(overrides.get(name, case.stored[name]), case.points)

        def forward(value: Array, output: str = output, name: str = name) -> Array:
            changed = {**overrides, name: value}
            result: Array = case.model.forward(case.inputs, changed)[output]
            return result

        differences = central_differences(forward, at, 1e-3 * float(at.max()), 0)
        block = jacobian[output][name]
        assert block.shape == outputs[output].shape
        assert_close(block, differences, 1e-6)


@pytest.mark.parametrize("overridden", [False, True], ids=["stored", "by point"])
def test_param_vjp_is_the_cotangents_times_the_jacobian(case: Case, overridden: bool) -> None:
    overrides = case.varied if overridden else {}
    cotangents = random_like(case.model.forward(case.inputs))
    products = case.model.param_vjp(case.inputs, cotangents, overrides)
    expected = gradients(case, cotangents, overrides)
    assert products.keys() == expected.keys()
    for name, value in expected.items():
        # One value for all points has the sum of their gradients.
        assert_close(products[name], value if overridden else value.sum())


def test_points_with_their_own_values_are_like_points_alone(case: Case) -> None:
    """NEML2's own runtime takes the first value for all points of an implicit model."""
    outputs, jacobian = case.model.param_jacobian(case.inputs, case.varied)
    input_jacobian = case.model.jacobian(case.inputs, case.varied)[1]
    for point in range(case.points):
        inputs = {name: value[point] for name, value in case.inputs.items()}
        alone = {name: value[point] for name, value in case.varied.items()}
        outputs_alone, jacobian_alone = case.model.param_jacobian(inputs, alone)
        input_jacobian_alone = case.model.jacobian(inputs, alone)[1]
        for output, value in outputs_alone.items():
            np.testing.assert_array_equal(outputs[output][point], value)
        for blocks, blocks_alone in (
            (jacobian, jacobian_alone),
            (input_jacobian, input_jacobian_alone),
        ):
            for output, row in blocks_alone.items():
                for name, block in row.items():
                    np.testing.assert_array_equal(blocks[output][name][point], block)


def test_overrides_leave_the_stored_values_alone(case: Case) -> None:
    model, inputs = case.model, case.inputs
    before = model.forward(inputs)
    cotangents = random_like(before)
    model.jacobian(inputs, case.varied)
    model.jvp(inputs, random_like(inputs), case.varied)
    model.vjp(inputs, cotangents, case.varied)
    model.param_jacobian(inputs, case.varied)
    model.param_vjp(inputs, cotangents, case.varied)
    for name, value in model.named_parameters().items():
        np.testing.assert_array_equal(value, case.stored[name])
    for name, value in model.forward(inputs).items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize("shape", [(), (1,), (2,), (1, 2), (2, 1), (2, 2)], ids=str)
def test_a_gradient_has_the_shape_of_its_parameter(case: Case, shape: tuple[int, ...]) -> None:
    """The points in a grid of 2 x 2."""
    grid = {name: value.reshape(2, 2, *value.shape[1:]) for name, value in case.inputs.items()}
    cotangents = random_like(case.model.forward(case.inputs))
    spread = np.linspace(0.98, 1.02, int(np.prod(shape))).reshape(shape)
    overrides = {name: value * spread for name, value in case.stored.items()}
    products = case.model.param_vjp(
        grid,
        {name: value.reshape(2, 2, *value.shape[1:]) for name, value in cotangents.items()},
        overrides,
    )
    flat = {name: np.broadcast_to(v, (2, 2)).reshape(4) for name, v in overrides.items()}
    for name, value in gradients(case, cotangents, flat).items():
        of_grid = value.reshape(2, 2)
        # Summed over the axes along which the parameter is one value.
        axes = tuple(range(2 - len(shape)))
        axes += tuple(axis + 2 - len(shape) for axis, size in enumerate(shape) if size == 1)
        assert_close(products[name], of_grid.sum(axis=axes).reshape(shape))


def test_a_gradient_of_a_stored_value_per_point_is_by_point(artifacts: Artifacts) -> None:
    model = load(artifacts, "elasticity_parameters")
    inputs = recorded("elasticity_parameters", "in")
    cotangent = np.random.default_rng(0).standard_normal((4, 6))
    model.set_parameter("E", np.linspace(100e3, 200e3, 4))
    products = model.param_vjp(inputs, {"stress": cotangent})
    expected = (cotangent * elastic_stress(inputs["strain"], 1.0, 0.3)).sum(axis=-1)
    assert_close(products["elasticity.E"], expected)
    assert products["elasticity.nu"].shape == ()


def test_the_derivatives_of_hookes_law(artifacts: Artifacts) -> None:
    model = load(artifacts, "elasticity_parameters")
    strain = recorded("elasticity_parameters", "in")["strain"]
    jacobian = model.param_jacobian({"strain": strain})[1]["stress"]
    assert_close(jacobian["elasticity.E"], elastic_stress(strain, 1.0, 0.3))
    step = 1e-40  # a complex one
    by_nu = elastic_stress(strain, 200e3, 0.3 + 1j * step).imag / step  # type: ignore[arg-type]
    assert_close(jacobian["elasticity.nu"], by_nu)


def test_missing_cotangents_are_zero(case: Case) -> None:
    outputs = case.model.forward(case.inputs)
    first = case.model.parameter_derivatives[0].output
    cotangent = random_like(outputs)[first]
    padded = {name: np.zeros_like(value) for name, value in outputs.items()}
    products = case.model.param_vjp(case.inputs, {first: cotangent})
    for name, value in case.model.param_vjp(case.inputs, {**padded, first: cotangent}).items():
        np.testing.assert_array_equal(products[name], value)
    for value in case.model.param_vjp(case.inputs, {}).values():
        assert value == 0.0
