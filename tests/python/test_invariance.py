"""The result of a point is bitwise the same, whatever batch and chunk it is evaluated in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from states import ALL, Artifacts, load, random_like, recorded, repeated

from neml2_capi import Model

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


@pytest.mark.parametrize("name", ALL)
def test_a_point_does_not_see_its_batch(artifacts: Artifacts, name: str) -> None:
    model = load(artifacts, name)
    thousand = evaluate(model, name, 1000)
    for points in (1, 3, 64):
        evaluate(model, name, points).expect(thousand)


@pytest.mark.parametrize("name", ALL)
def test_a_point_does_not_see_its_chunk(artifacts: Artifacts, name: str) -> None:
    model = load(artifacts, name)
    expected = evaluate(model, name, 99)
    for chunk in (1, 7, 32, 5000):
        model.options["chunk"] = chunk
        evaluate(model, name, 99).expect(expected)
