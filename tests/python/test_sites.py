"""Segments that disagree about the sub-batch sites of a value, and sites that became points."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import handmade
import numpy as np
import pytest
from handmade import Shapes, scalar

from neml2_capi import FatalError, Model

pytestmark = [pytest.mark.usefixtures("any_cc"), pytest.mark.numbers]


def chain(
    root: Path, given: tuple[int, ...], made: tuple[int, ...], taken: tuple[int, ...]
) -> Path:
    """x with `given` sites -> y with `made`; y with `taken` -> z."""
    segments: list[tuple[Shapes, Shapes]] = [({"x": given}, {"y": made}), ({"y": taken}, {"z": ()})]
    return handmade.model(root, segments, [scalar("x")], [scalar("z")])


@pytest.mark.parametrize(
    ("made", "taken"),
    [((3,), ()), ((), (3,)), ((3,), (4,)), ((3, 3), (3,)), ((2, 3), (3, 2)), ((2, 3), (6,))],
)
def test_segments_that_disagree_about_sites_are_named(
    tmp_path: Path, made: tuple[int, ...], taken: tuple[int, ...]
) -> None:
    def text(sites: tuple[int, ...]) -> str:
        return f"({', '.join(map(str, sites))}{',' if len(sites) == 1 else ''})"

    with pytest.raises(FatalError) as error:
        Model(chain(tmp_path / "m", (3,), made, taken))
    words = str(error.value)
    assert f"'y' is float64 of shape {text(taken)} per point to seg1.pt2" in words
    assert f"but float64 of shape {text(made)} to seg0.pt2" in words
    assert "neml2-capi compile" in words


def test_segments_that_agree_open(tmp_path: Path) -> None:
    model = Model(chain(tmp_path / "m", (3,), (3,), (3,)))
    np.testing.assert_array_equal(model.forward({"x": np.full((2, 3), 1.5)})["z"], [6, 6])


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"),
    [
        ([scalar("x", [4])], [scalar("y")], r"'x' has the sub-batch shape \(4,\).*but \(3,\) to"),
        ([scalar("x", [])], [scalar("y")], r"'x' has the sub-batch shape \(\).*but \(3,\) to"),
        ([scalar("x", [3])], [scalar("y", [])], r"'y' has the sub-batch shape \(\).*but \(3,\) to"),
        ([scalar("x", [3])], [scalar("y", [3, 3])], r"'y' has the sub-batch shape \(3, 3\)"),
    ],
)
def test_sites_that_the_metadata_tells_are_those_of_the_packages(
    tmp_path: Path, inputs: list[Any], outputs: list[Any], words: str
) -> None:
    root = handmade.model(tmp_path / "m", [({"x": (3,)}, {"y": (3,)})], inputs, outputs)
    with pytest.raises(FatalError, match=words + r".*seg0\.pt2"):
        Model(root)


@pytest.mark.parametrize("sites", [(3,), (2, 3)])
def test_an_outer_product_of_sites_is_refused(tmp_path: Path, sites: tuple[int, ...]) -> None:
    """What neml2-compile makes of the product of a value with a constant of each site."""
    segments = [({"x": sites}, {"y": sites + sites})]
    root = handmade.model(tmp_path / "m", segments, [scalar("x", sites)], [scalar("y")])
    with pytest.raises(FatalError, match=r"'y' has the sub-batch sites .* of 'x' .* for points"):
        Model(root)


def test_an_outer_product_that_is_meant_is_told(tmp_path: Path) -> None:
    """Three grains with three slip systems each."""
    segments = [({"x": (3,)}, {"y": (3, 3)})]
    outputs = [scalar("y", [3, 3])]
    model = Model(handmade.model(tmp_path / "m", segments, [scalar("x", [3])], outputs))
    assert model.forward({"x": np.ones((2, 3))})["y"].shape == (2, 3, 3)


def test_a_table_of_kernels_that_are_not_there_is_refused(tmp_path: Path) -> None:
    root = chain(tmp_path / "m", (3,), (3,), (3,))
    (file,) = root.glob("kernels/*/kernels.json")
    document = json.loads(file.read_text())
    for array in (document["kernels"][0]["outputs"][0], document["kernels"][1]["inputs"][0]):
        array["shape"] = [2]
    file.write_text(json.dumps(document))
    with pytest.raises(FatalError, match=r"kernels\.json has other shapes for seg0"):
        Model(root)


def test_a_residual_takes_what_the_metadata_says(
    artifacts: Mapping[str, Path], tmp_path: Path
) -> None:
    """Metadata that agrees with itself, and not with the package."""
    root = Path(shutil.copytree(artifacts["isotropic_hardening"], tmp_path / "edited"))
    document = json.loads((root / "metadata.json").read_text())
    (segment,) = document["segments"]
    for variable in (*document["inputs"], *segment["givens"]):
        if variable["name"] in ("strain", "strain~1"):
            variable.update(base_shape=[5], var_size=5)
    document["derivatives"], segment["jacobian_pairs"] = [], []
    (root / "metadata.json").write_text(json.dumps(document))
    with pytest.raises(FatalError, match=r"residual\.pt2 takes input 1 with the shape .*strain"):
        Model(root)
