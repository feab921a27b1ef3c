"""What a driver assumes of sites, and of history that nothing makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import handmade
import numpy as np
import pytest
from handmade import scalar

from neml2_capi import FatalError, Model, drive

pytestmark = [pytest.mark.usefixtures("any_cc"), pytest.mark.numbers]


@pytest.fixture
def doubling(tmp_path: Path) -> Model:
    """d at each of three sites is twice what it was."""
    segments = [({"d~1": (3,)}, {"d": (3,)})]
    return Model(handmade.model(tmp_path / "m", segments, [scalar("d~1", [3])], [scalar("d")]))


@pytest.mark.parametrize(
    ("initial", "first"),
    [
        (1.5, [1.5, 1.5, 1.5]),
        (np.array(1.5), [1.5, 1.5, 1.5]),
        ([1.5], [1.5, 1.5, 1.5]),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        ([[1.5], [2.0]], [[1.5] * 3, [2.0] * 3]),
    ],
    ids=["a number", "an array", "one site", "three sites", "a batch of one site"],
)
def test_an_initial_value_without_sites_holds_at_all(
    doubling: Model, initial: Any, first: Any
) -> None:
    rows = drive(doubling, [0.0, 1.0, 2.0], {}, {"d": initial})["d"]
    np.testing.assert_array_equal(rows, [np.multiply(k, first) for k in (1, 2, 4)])


def test_an_initial_value_of_other_sites_is_refused(doubling: Model) -> None:
    with pytest.raises(FatalError, match=r"'d' has the shape \(4,\)"):
        drive(doubling, [0.0, 1.0], {}, {"d": np.ones(4)})


@pytest.fixture
def orphan(tmp_path: Path) -> Model:
    """y is twice w~1; the model has no w."""
    segments = [({"w~1": (), "x": ()}, {"y": ()})]
    return Model(
        handmade.model(tmp_path / "m", segments, [scalar("w~1"), scalar("x")], [scalar("y")])
    )


def test_history_that_nothing_makes_is_zero(orphan: Model) -> None:
    assert drive(orphan, [0.0, 1.0], {"x": 1.0})["y"].tolist() == [0, 0]
    state = orphan.state(2)
    assert orphan.forward(state.inputs(x=np.ones(2)))["y"].tolist() == [0, 0]


def test_history_that_nothing_makes_can_be_given(orphan: Model) -> None:
    assert drive(orphan, [0.0, 1.0], {"x": 1.0, "w~1": 3.0})["y"].tolist() == [6, 6]
    state = orphan.state(2)
    assert orphan.forward(state.inputs({"x": np.ones(2), "w~1": 3.0}))["y"].tolist() == [6, 6]


def test_other_forces_are_not_zero(orphan: Model) -> None:
    with pytest.raises(FatalError, match="force 'x' is missing"):
        drive(orphan, [0.0, 1.0], {})
