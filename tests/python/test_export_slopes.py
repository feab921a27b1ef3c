"""Derivatives of exported laws where slopes are infinite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from neml2_capi import Model, export  # noqa: E402


def test_an_infinite_slope_of_one_output_leaves_the_others_alone(tmp_path: Path) -> None:
    def law(x: Any, y: Any) -> dict[str, Any]:
        return {"line": 2.0 * x + 3.0 * y, "root": torch.sqrt(x)}

    scalars = {"x": "Scalar", "y": "Scalar"}
    outputs = {"line": "Scalar", "root": "Scalar"}
    export.model(law, tmp_path / "law", inputs=scalars, outputs=outputs, kernels="only")
    model = Model(tmp_path / "law")
    inputs = {"x": np.array([0.0, 4.0]), "y": np.ones(2)}
    call = model.bind(inputs, derivatives=True, report=True)
    call.run()
    line, root = call.derivatives["line"], call.derivatives["root"]
    np.testing.assert_array_equal(line["x"], [2.0, 2.0])
    np.testing.assert_array_equal(line["y"], [3.0, 3.0])
    np.testing.assert_array_equal(root["x"], [np.inf, 0.25])
    np.testing.assert_array_equal(model.vjp(inputs, {"line": np.ones(2)})[1]["x"], [2.0, 2.0])
