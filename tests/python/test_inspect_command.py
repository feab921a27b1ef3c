"""neml2-capi inspect: what an artifact is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from command_line import answer, error

from neml2_capi import Model

Artifacts = Mapping[str, Path]


PREBUILT = ["elasticity", "viscoplastic", "combined_hardening"]


KEYS = [
    *("artifact", "schema", "compiled_for", "dtype", "inputs", "outputs", "parameters"),
    *("histories", "unknowns", "derivatives", "parameter_derivatives", "segments", "solver"),
    *("packages", "kernels"),
]


@pytest.mark.parametrize("name", [*PREBUILT, "isotropic_hardening", "radial_return", "creep_3.0.0"])
def test_inspect_says_what_the_loaded_model_says(artifacts: Artifacts, name: str) -> None:
    told = json.loads(answer("inspect", artifacts[name], "--json"))
    model = Model(artifacts[name])
    assert list(told) == KEYS
    for kind in ("inputs", "outputs"):
        assert [v["name"] for v in told[kind]] == getattr(model, kind).names
        assert [tuple(v["base_shape"]) for v in told[kind]] == [
            v.base_shape for v in getattr(model, kind)
        ]
    assert [p["name"] for p in told["parameters"]] == model.parameters.names
    for parameter in told["parameters"]:
        value = model.named_parameters()[parameter["name"]]
        np.testing.assert_array_equal(np.ravel(value), parameter["values"])
    assert {(h["input"], h["age"], h["output"], h["current"]) for h in told["histories"]} == {
        (h.input, h.age, h.output, h.current) for h in model.histories
    }
    for kind in ("derivatives", "parameter_derivatives"):
        pairs = {(pair["output"], pair["variable"]) for pair in told[kind]}
        assert pairs == {(pair.output, pair.variable) for pair in getattr(model, kind)}
    assert len(told["unknowns"]) == len(model.unknowns)


def test_inspect_tells_what_packages_are_for(artifacts: Artifacts) -> None:
    told = json.loads(answer("inspect", artifacts["viscoplastic"], "--json"))
    assert told["schema"] == 14
    assert told["compiled_for"] == ["cpu/float64"]
    assert told["solver"]["miters"] == 50
    (segment,) = told["segments"]
    assert segment["packages"] == [package["file"] for package in told["packages"]]
    assert len(told["packages"]) == 4
    for package in told["packages"]:
        assert package["instruction_sets"] == "AVX2"
        assert (
            package["bytes"]
            == (artifacts["viscoplastic"] / "cpu/float64" / package["file"]).stat().st_size
        )


def test_inspect_shows_tables(artifacts: Artifacts) -> None:
    text = answer("inspect", artifacts["viscoplastic"])
    for row in (
        r"equivalent_plastic_strain~1 +Scalar +scalar +equivalent_plastic_strain",
        r"stress~1 +SR2 +6 +stress",
        r"Unknowns of the nonlinear system, 19 per point",
        r"none was compiled +neml2-compile -d",
        r"miters +50",
        r"viscoplastic_residual.pt2 +\d+ +x86_64 AVX2",
    ):
        assert re.search(row, text), text
    text = answer("inspect", artifacts["elasticity"])
    assert re.search(r"elasticity\.E +float64 +scalar +200000", text)
    assert re.search(r"stress +strain", text)


def test_a_device_folder_a_file_and_a_stub_are_the_artifact(artifacts: Artifacts) -> None:
    root = artifacts["elasticity"]
    told = {
        answer("inspect", path, "--json").replace(str(path), "")
        for path in (root, root / "cpu", root / "metadata.json", root.parent / "elasticity_aoti.i")
    }
    assert len(told) == 1


def test_inspect_finds_the_only_element_type(artifacts: Artifacts) -> None:
    root = artifacts["elasticity_float32"]
    assert json.loads(answer("inspect", root, "--json"))["dtype"] == "float32"
    assert "cpu/float32" in error("inspect", root, "--dtype", "float64")
