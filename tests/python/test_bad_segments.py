"""Metadata of implicit segments that do not fit are refused when the model is loaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import states
from test_reference import recorded

from neml2_capi import ConvergenceError, FatalError, Model

pytestmark = pytest.mark.numbers

Segment = dict[str, Any]


def given(segment: Segment, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(g for g in segment["givens"] if g["name"] == name)
    return found


def edit(name: str, **fields: Any) -> Callable[[Segment], None]:
    return lambda segment: given(segment, name).update(fields)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edit("stress~1", pair="strain"), ("stress~1", "old state of 'strain'")),
        (edit("stress~1", pair="t"), ("stress~1", "different shapes")),
        (edit("strain", pair="t~1"), ("strain", "different shapes")),
        (edit("equivalent_plastic_strain~1", pair="stress"), ("different shapes",)),
        (edit("strain", pair="stress"), ("strain", "which is solved for")),
        (edit("strain", pair="nothing"), ("nothing", "no earlier segment")),
        (edit("strain", role="sideways"), ("sideways", "expected one of")),
        (lambda s: s.update(max_substepping_level=1000), ("max_substepping_level", "at most")),
    ],
)
def test_substeps_that_do_not_fit_are_refused(
    artifacts: Mapping[str, Path],
    tmp_path: Path,
    change: Callable[[Segment], None],
    words: tuple[str, ...],
) -> None:
    root = edited(artifacts["substepping"], tmp_path, change)
    with pytest.raises(FatalError) as error:
        Model(root)
    assert all(word in str(error.value) for word in words), error.value


def edited(artifact: Path, folder: Path, change: Callable[[Segment], Any]) -> Path:
    """A copy of an artifact with another first segment."""
    root = Path(shutil.copytree(artifact, folder / "edited"))
    document = json.loads((root / "metadata.json").read_text())
    change(document["segments"][0])
    (root / "metadata.json").write_text(json.dumps(document))
    return root


def test_derivatives_need_a_jacobian(artifacts: Mapping[str, Path], tmp_path: Path) -> None:
    root = edited(artifacts["gmres"], tmp_path, lambda segment: segment.pop("jacobian_package"))
    with pytest.raises(FatalError, match="without the Jacobian"):
        Model(root)


def test_a_predictor_may_take_more_than_the_residual(
    artifacts: Mapping[str, Path], tmp_path: Path
) -> None:
    # Nothing is divided here; but the parts of an increment begin with the whole of it.
    given, root = recorded("crystal", "in"), artifacts["crystal"]
    expected = Model(root).forward(given)
    root = edited(root, tmp_path, lambda segment: segment.update(max_substepping_level=3))
    for engine in ("native", "python"):
        outputs = Model(root, engine=engine).forward(given)
        for name, value in expected.items():
            np.testing.assert_allclose(outputs[name], value, rtol=1e-8, atol=1e-10)


def edit_pair(**fields: Any) -> Callable[[Segment], None]:
    return lambda segment: segment["jacobian_pairs"][0].update(fields)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("bicgstab", edit_pair(row_offset=7), "does not fit"),
        ("bicgstab", edit_pair(col_offset=1000), "does not fit"),
        ("grains", edit_pair(out_var="strain"), "not of an output"),
    ],
)
def test_derivatives_that_lead_nowhere_are_refused(
    artifacts: Mapping[str, Path],
    tmp_path: Path,
    name: str,
    change: Callable[[Segment], None],
    words: str,
) -> None:
    root = edited(artifacts[name], tmp_path, change)
    with pytest.raises(FatalError, match=words):
        Model(root)


def test_a_sensitivity_that_is_not_found_is_nan(
    artifacts: Mapping[str, Path], tmp_path: Path
) -> None:
    def one_iteration(segment: Segment) -> None:
        segment["param_sensitivity"]["krylov"]["max_its"] = 1

    given = states.recorded("bicgstab", "in")
    _, expected = Model(artifacts["bicgstab"]).param_jacobian(given)
    root = edited(artifacts["bicgstab"], tmp_path, one_iteration)
    for engine in ("native", "python"):
        with pytest.raises(ConvergenceError, match="Of point 1, the derivative of") as caught:
            Model(root, engine=engine).param_jacobian(given)
        assert caught.value.derivatives is not None
        block = caught.value.derivatives["stress"]["residual.elasticity.E"]
        lost = np.isnan(block).any(axis=-1)
        assert np.all(np.isfinite(caught.value.outputs["stress"]))
        # One iteration is enough for the first point, which is elastic.
        np.testing.assert_array_equal(lost, [False, True, True, True])
        np.testing.assert_allclose(
            block[0], expected["stress"]["residual.elasticity.E"][0], rtol=1e-9
        )
