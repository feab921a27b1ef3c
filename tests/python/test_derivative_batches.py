"""Derivatives for any batch, from any holder of the values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from states import Artifacts, load, random_like, recorded

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]
Arrays = Mapping[str, Array]

NAMES = [
    "elasticity_parameters",
    "radial_return",
    "relaxation",
    "polycrystal",
    "gmres",
    "bicgstab",
    "substepping",
]
BATCHES = [(), (1,), (4,), (2, 2), (1, 4, 1), (0,), (2, 0)]


def in_batch(values: Arrays, batch: tuple[int, ...]) -> dict[str, Array]:
    """As many of four points as the batch takes."""
    points = int(np.prod(batch))
    return {name: v[:points].reshape((*batch, *v.shape[1:])) for name, v in values.items()}


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_have_the_batch_of_the_inputs(
    artifacts: Artifacts, name: str, batch: tuple[int, ...]
) -> None:
    model, inputs = load(artifacts, name), recorded(name, "in")
    tangents, cotangents = random_like(inputs), random_like(recorded(name, "out"))
    given = in_batch(inputs, batch)
    jvp = model.jvp(given, in_batch(tangents, batch))[1]
    for output, value in model.jvp(inputs, tangents)[1].items():
        np.testing.assert_array_equal(jvp[output], in_batch({output: value}, batch)[output])
    vjp = model.vjp(given, in_batch(cotangents, batch))[1]
    for variable, value in model.vjp(inputs, cotangents)[1].items():
        np.testing.assert_array_equal(vjp[variable], in_batch({variable: value}, batch)[variable])
    for method in (model.jacobian, model.param_jacobian):
        if method == model.param_jacobian and not model.parameter_derivatives:
            continue
        jacobian = method(given)[1]
        for output, row in method(inputs)[1].items():
            for variable, block in row.items():
                expected = in_batch({variable: block}, batch)[variable]
                np.testing.assert_array_equal(jacobian[output][variable], expected)


def test_one_value_for_many_points_has_the_sum_of_their_adjoints(artifacts: Artifacts) -> None:
    model, inputs = load(artifacts, "relaxation"), recorded("relaxation", "in")
    cotangents = random_like(recorded("relaxation", "out"))
    by_point = model.vjp(inputs, cotangents)[1]
    shared = {**inputs, "t": inputs["t"][0], "t~1": inputs["t~1"][:1]}
    adjoints = model.vjp(shared, cotangents)[1]
    assert {name: value.shape for name, value in adjoints.items()} == {
        name: np.shape(shared[name]) for name in adjoints
    }
    np.testing.assert_allclose(adjoints["t"], by_point["t"].sum(), rtol=1e-12)
    np.testing.assert_allclose(adjoints["t~1"], by_point["t~1"].sum(keepdims=True), rtol=1e-12)
    np.testing.assert_array_equal(adjoints["strain"], by_point["strain"])


def test_tangents_and_cotangents_broadcast(artifacts: Artifacts) -> None:
    model, inputs = load(artifacts, "relaxation"), recorded("relaxation", "in")
    tangent = random_like(inputs)["strain"][0]
    repeated = np.broadcast_to(tangent, inputs["strain"].shape)
    expected = model.jvp(inputs, {"strain": repeated})[1]["stress"]
    np.testing.assert_array_equal(model.jvp(inputs, {"strain": tangent})[1]["stress"], expected)
    # Several directions for each point are one more batch axis.
    directions = np.eye(6)[:, np.newaxis]
    columns = model.jvp(inputs, {"strain": directions})[1]["stress"]
    block = model.jacobian(inputs)[1]["stress"]["strain"]
    np.testing.assert_allclose(np.moveaxis(columns, 0, -1), block, rtol=0, atol=1e-10 * 2e5)
    # An adjoint has the shape of its input still.
    adjoint = model.vjp(inputs, {"stress": directions})[1]["strain"]
    np.testing.assert_allclose(adjoint, block.sum(axis=1), rtol=0, atol=1e-10 * 2e5)
    repeated = np.broadcast_to(inputs["strain"], (6, 4, 6))
    rows = model.vjp({**inputs, "strain": repeated}, {"stress": directions})[1]["strain"]
    np.testing.assert_allclose(np.moveaxis(rows, 0, 1), block, rtol=0, atol=1e-10 * 2e5)


@pytest.mark.parametrize("name", NAMES)
def test_torch_in_is_torch_out(artifacts: Artifacts, name: str) -> None:
    torch = pytest.importorskip("torch")
    model, inputs = load(artifacts, name), recorded(name, "in")
    tangents, cotangents = random_like(inputs), random_like(recorded(name, "out"))

    def tensors(values: Arrays) -> dict[str, Any]:
        return {key: torch.tensor(value) for key, value in values.items()}

    products: list[tuple[Any, Any]] = [
        (model.jvp(tensors(inputs), tangents)[1], model.jvp(inputs, tangents)[1]),
        (model.jvp(inputs, tensors(tangents))[1], model.jvp(inputs, tangents)[1]),
        (model.vjp(tensors(inputs), cotangents)[1], model.vjp(inputs, cotangents)[1]),
    ]
    if model.parameter_derivatives:
        products.append(
            (
                model.param_vjp(tensors(inputs), cotangents),
                model.param_vjp(inputs, cotangents),
            )
        )
    blocks, blocks_expected = model.jacobian(tensors(inputs))[1], model.jacobian(inputs)[1]
    products += [(blocks[output], blocks_expected[output]) for output in blocks]
    for actual, expected in products:
        assert actual.keys() == expected.keys()
        for key, value in expected.items():
            assert isinstance(actual[key], torch.Tensor)
            np.testing.assert_array_equal(actual[key].numpy(), value)
