"""Packages that give a point what depends on other points are refused: models divide batches."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import handmade
import numpy as np
import pytest
from click import ClickException
from handmade import scalar

from neml2_capi import FatalError, Graph, Model
from neml2_capi.cli.made import try_out

pytestmark = [pytest.mark.full("packages are compiled by torch"), pytest.mark.native]

LAWS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: x + x.mean(0, keepdim=True),
    "greatest": lambda x: x / x.amax(0, keepdim=True),
    "neighbour": lambda x: x - x.roll(1, 0),
    "sum, one for all points": lambda x: x.sum(0),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_model_of_points_together_is_refused(tmp_path: Path, law: str) -> None:
    """The mean was of whatever part of the batch was evaluated at once."""
    torch = pytest.importorskip("torch")
    export = pytest.importorskip("neml2_capi.export")
    package = tmp_path / "cpu" / "float64" / "seg0.pt2"
    package.parent.mkdir(parents=True)
    export.package(LAWS[law], (torch.zeros(8, dtype=torch.float64),), package)
    metadata = handmade.described([({"x": ()}, {"y": ()})], [scalar("x")], [scalar("y")])
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(FatalError, match="depends on other points: output 0 changes if they do"):
        Model(tmp_path)
    with pytest.raises(ClickException, match=r"cannot be opened: .*depends on other points"):
        try_out(tmp_path, "float64")  # the last that neml2-capi compile does
    given = torch.linspace(1, 2, 1000, dtype=torch.float64)
    (found,) = Graph(package)(given)
    np.testing.assert_allclose(found, LAWS[law](given), rtol=1e-14)
