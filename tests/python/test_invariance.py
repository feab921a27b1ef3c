"""The result of a point is bitwise the same, whatever batch, chunk and thread it is in."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from agreement import assert_one_answer, in_every_way
from numpy.typing import NDArray
from states import ALL, Artifacts, load, random_like, recorded, repeated

from neml2_capi import Model

pytestmark = pytest.mark.numbers

_LATER = pytest.mark.full("seconds for each")
CRYSTAL_LATER = [pytest.param(name, marks=_LATER if name == "crystal" else ()) for name in ALL]

Array = NDArray[np.float64]
Arrays = Mapping[str, Array]


class Results:
    """Everything that is computed of a batch of points, by name."""

    def __init__(self, model: Model, inputs: Arrays, tangents: Arrays) -> None:
        self.points = len(next(iter(inputs.values())))
        self.values: dict[str, Array] = {}
        outputs, report = model.evaluate(inputs)
        self.add("forward", outputs)
        self.add("report", report)
        for output, row in model.jacobian(inputs)[1].items():
            self.add(f"jacobian {output}", row)
        self.add("jvp", model.jvp(inputs, tangents)[1])

    def add(self, what: str, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            self.values[f"{what} {name}"] = value

    def expect(self, expected: Results) -> None:
        """The first points of `expected`."""
        for name, value in expected.values.items():
            if len(value) == expected.points:
                value = value[: self.points]  # else one block for all points
            np.testing.assert_array_equal(self.values[name], value, err_msg=name)


def evaluate(model: Model, name: str, points: int) -> Results:
    inputs = repeated(recorded(name, "in"), 1000)
    tangents = random_like(inputs)
    if name == "grains":  # of which only the derivative by a common strain is compiled
        tangents["strain"][...] = tangents["strain"][:, :1]
    first = ({key: value[:points] for key, value in v.items()} for v in (inputs, tangents))
    return Results(model, *first)


@pytest.mark.parametrize("name", CRYSTAL_LATER)
def test_a_point_does_not_see_its_batch(artifacts: Artifacts, name: str) -> None:
    model = load(artifacts, name)
    thousand = evaluate(model, name, 1000)
    for points in (1, 3, 64):
        evaluate(model, name, points).expect(thousand)


@pytest.mark.parametrize("name", CRYSTAL_LATER)
def test_a_point_does_not_see_its_chunk(artifacts: Artifacts, name: str) -> None:
    model = load(artifacts, name)
    expected = evaluate(model, name, 99)
    for chunk in (1, 7, 32, 5000):
        model.options["chunk"] = chunk
        evaluate(model, name, 99).expect(expected)


@pytest.mark.parametrize("name", CRYSTAL_LATER)
def test_a_point_does_not_see_the_number_of_threads(artifacts: Artifacts, name: str) -> None:
    model = load(artifacts, name)
    model.options["threads"] = 1
    expected = evaluate(model, name, 500)
    for threads, chunk in ((2, 0), (3, 7), (5, 16), (0, 64)):
        model.options["threads"], model.options["chunk"] = threads, chunk
        evaluate(model, name, 500).expect(expected)


@pytest.mark.parametrize("name", ALL)
def test_a_result_does_not_see_what_else_is_asked(artifacts: Artifacts, name: str) -> None:
    model = load(artifacts, name)
    assert_one_answer(in_every_way(model, name, recorded(name, "in")))


@pytest.mark.parametrize("name", ["isotropic_hardening", "relaxation", "bicgstab", "substepping"])
def test_a_point_does_not_see_the_parameters_of_others(artifacts: Artifacts, name: str) -> None:
    """Runs of equal values, of one point and of many."""
    model, inputs = load(artifacts, name), repeated(recorded(name, "in"), 60)
    values = np.array([200e3, 190e3, 200e3, 210e3, 180e3])
    E = np.repeat(values, [1, 2, 30, 26, 1])

    def everything(points: Any) -> dict[str, Array]:
        given = {key: value[points] for key, value in inputs.items()}
        overrides = {"E": E[points]}
        outputs: dict[str, Array]
        outputs, blocks = model.param_jacobian(given, overrides)
        derivatives: dict[str, Array] = {
            f"{output}/{variable}": block
            for jacobian in (blocks, model.jacobian(given, overrides)[1])
            for output, row in jacobian.items()
            for variable, block in row.items()
        }
        return outputs | derivatives

    expected = everything(slice(None))
    shuffled = np.random.default_rng(0).permutation(60)
    for key, value in everything(shuffled).items():
        np.testing.assert_array_equal(value, expected[key][shuffled], err_msg=key)
    model.options["chunk"] = 4
    for key, value in everything(slice(None)).items():
        np.testing.assert_array_equal(value, expected[key], err_msg=key)


@pytest.mark.parametrize("name", ["elasticity_parameters", "radial_return", "bicgstab"])
def test_a_sum_over_points_does_not_see_the_chunks(artifacts: Artifacts, name: str) -> None:
    model, inputs = load(artifacts, name), repeated(recorded(name, "in"), 300)
    cotangents = random_like(model.forward(inputs))
    shared = {n: v[0] if n in ("t", "t~1") else v for n, v in inputs.items()}
    expected = model.param_vjp(shared, cotangents) | model.vjp(shared, cotangents)[1]
    for chunk, threads in ((1, 1), (7, 1), (5000, 1), (0, 2), (7, 4), (1, 3)):
        model.options["chunk"], model.options["threads"] = chunk, threads
        sums = model.param_vjp(shared, cotangents) | model.vjp(shared, cotangents)[1]
        for key, value in expected.items():
            np.testing.assert_array_equal(sums[key], value, err_msg=key)


@pytest.mark.parametrize("name", ["radial_return", "polycrystal", "gmres", "substepping"])
def test_a_point_does_not_see_other_threads(artifacts: Artifacts, name: str) -> None:
    model = load(artifacts, name)
    expected = evaluate(model, name, 64)
    with ThreadPoolExecutor(4) as threads:
        for results in threads.map(lambda points: evaluate(model, name, points), [64, 3, 20] * 4):
            results.expect(expected)
