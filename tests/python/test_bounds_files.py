"""Bounds in files: what is read, written and refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounded import FIVE_PERCENT, bounded, quiet  # noqa: F401  (a fixture)

from neml2_capi import (
    ConvergenceError,
    FatalError,
    Model,
    examples,
)
from neml2_capi._ffi.library import lib
from neml2_capi.artifact import bounds as files

pytestmark = pytest.mark.numbers


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"strian": (0, 1)}, "unknown input or parameter 'strian'; did you mean 'strain'"),
        ({"stress": (0, 1)}, "unknown input or parameter 'stress'"),
        ({"strain": (1, 0)}, "are 1 to 0: give the lower first"),
        ({"strain": (float("nan"), 0)}, "must not be NaN"),
        ({"strain": ([0, 0, 0], 1)}, "are 3 numbers, and it has 6 components"),
        ({"strain": ([0, 0], [1, 1, 1])}, "2 lower and 3 upper ones"),
        ({"strain": (None, None)}, "open on both sides"),
        ({"strain": ("low", 1)}, "must be numbers"),
        ({"strain": 5}, r"must be a pair \(lower, upper\)"),
        ({"strain": ([], 1)}, "empty list"),
    ],
)
def test_bounds_that_make_no_sense_are_refused_by_name(
    tmp_path: Path, bounds: Mapping[str, Any], words: str
) -> None:
    with pytest.raises(FatalError, match=words) as caught:
        bounded(tmp_path, examples.path("elasticity"), bounds)
    assert caught.value.subject == next(iter(bounds))
    assert not (tmp_path / "elasticity" / files.FILE).exists()


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"E": (1e5, 3e5)}, "'E' have the lower one 100000, beyond the physical one, 200000"),
        ({"strain": (-1, [0.1] * 5 + [0.2])}, "the upper one 0.2, beyond the physical one, 0.1"),
    ],
)
def test_what_is_valid_has_a_meaning(tmp_path: Path, bounds: Mapping[str, Any], words: str) -> None:
    law, physical = examples.path("elasticity"), {"E": (2e5, None), "strain": (None, [0.1] * 6)}
    with pytest.raises(FatalError, match=words):
        bounded(tmp_path / "refused", law, bounds, physical)
    bounded(tmp_path, law, {"E": (None, 3e5), "strain": (-1, 0.1)}, physical)


@pytest.mark.parametrize("text", ["E=1_0:20", "E=a:", "E", "=1:2", "E=1-2"])
def test_a_word_that_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(FatalError, match="is no bound: expected NAME=LOWER:UPPER"):
        files.parsed(text)


def test_a_file_of_toml_has_a_table_for_each_variable(tmp_path: Path) -> None:
    path = tmp_path / "bounds.toml"
    path.write_text(
        "E = {lower = 1e3, physical.lower = 0}\n[strain]\nlower = -0.05\n"
        "upper = [0.05, 0.05, 0.05, inf, inf, inf]\n"
    )
    validity, physical, strain = files.from_toml(path)
    assert validity == ("E", "validity", [1e3], [np.inf])
    assert physical == ("E", "physical", [0], [np.inf])
    assert strain.lower == [-0.05] and strain.upper[3:] == [np.inf] * 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("strain = 5", "expected a table"),
        ("[strain]\nleast = 1", "least"),
        ("[strain]", "expected lower, upper or both"),
        ("[strain]\nlower = nan", "must not be NaN"),
        ("[strain]\nlower = 2\nupper = 1", "give the lower first"),
        ("[strain]\nlower = 'a'", "must be numbers"),
        ("[strain]\nphysical = 5", "expected a table"),
        ("[strain", "not TOML"),
    ],
)
def test_a_file_of_toml_is_refused_with_its_name(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bounds.toml"
    path.write_text(text)
    with pytest.raises(FatalError, match=words) as caught:
        files.from_toml(path)
    assert "bounds.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"variable": "nothing"}, "'nothing' is no input and no parameter"),
        ({"lower": [0, 0]}, "has 6 components, and bounds for 2"),
        ({"lower": [1.0], "upper": [0.5]}, "has the lower bound 1 above the upper one, 0.5"),
        ({"lower": []}, "is empty"),
        ({"kind": "maybe"}, "'maybe', expected one of"),
        ({"upper": ["1"]}, "expected a number"),
    ],
)
def test_a_damaged_file_of_an_artifact_is_refused(
    tmp_path: Path, change: Mapping[str, Any], words: str
) -> None:
    path = bounded(tmp_path, examples.path("elasticity"), FIVE_PERCENT)
    document = json.loads((path / files.FILE).read_text())
    document["bounds"][0].update(change)
    (path / files.FILE).write_text(json.dumps(document))
    with pytest.raises(FatalError, match=words) as caught:
        Model(path)
    assert caught.value.status in (lib.NEML2_ERROR_ARTIFACT, lib.NEML2_ERROR_UNSUPPORTED)
    assert files.FILE in str(caught.value)


def test_a_file_that_is_not_json_or_of_later_is_refused(tmp_path: Path) -> None:
    path = bounded(tmp_path, examples.path("elasticity"), FIVE_PERCENT)
    (path / files.FILE).write_text("{")
    with pytest.raises(FatalError, match="not JSON"):
        Model(path)
    (path / files.FILE).write_text('{"version": 2, "bounds": []}')
    with pytest.raises(FatalError, match="version is 2; this version reads 1"):
        Model(path)


def test_the_command_writes_shows_and_removes(tmp_path: Path) -> None:
    click_testing = pytest.importorskip("click.testing")
    from neml2_capi.cli.commands import neml2_capi as command

    path = tmp_path / "elasticity"
    shutil.copytree(examples.path("elasticity"), path)

    def called(*words: str) -> Any:
        return click_testing.CliRunner().invoke(command, ["bounds", str(path), *words])

    assert called().output == ""
    done = called("strain=-0.05:0.05", "--physical", "E=0:")
    assert done.exit_code == 0, done.output
    assert done.output == "strain: -0.05 to 0.05 (validity)\nE: 0 to inf (physical)\n"
    assert called().output == done.output
    failed = called("strian=0:1")
    assert failed.exit_code == 1 and "did you mean 'strain'" in failed.output
    assert called("strain").exit_code == 1
    assert called().output == done.output  # nothing was lost
    assert called("--remove").exit_code == 0 and not (path / files.FILE).exists()


def test_an_option_of_compile_is_understood_before_anything_is_compiled(tmp_path: Path) -> None:
    click_testing = pytest.importorskip("click.testing")
    from neml2_capi.cli.commands import neml2_capi as command

    source = tmp_path / "input.i"
    source.touch()
    words = ["compile", str(source), "--model", "a", "--output-dir", str(tmp_path / "aoti")]
    for bad, told in (("temperature=600:20", "lower first"), ("hot", "NAME=LOWER:UPPER")):
        done = click_testing.CliRunner().invoke(command, [*words, "--bounds", bad])
        assert done.exit_code == 1 and told in done.output
    assert not (tmp_path / "aoti").exists()


@pytest.mark.full("it needs torch")
def test_a_law_in_torch_is_exported_with_its_bounds(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from neml2_capi import export

    def law(strain: Any, temperature: Any, E: Any) -> Any:
        return E * (1 - 1e-3 * temperature) * strain

    def exported(**options: Any) -> Path:
        return export.model(
            law,
            tmp_path / "law",
            inputs={"strain": "SR2", "temperature": "Scalar"},
            outputs={"stress": "SR2"},
            parameters={"E": 2e5},
            kernels="only",
            **options,
        )

    path = exported(bounds={"temperature": (20, 600)}, physical_bounds={"E": (0, None)})
    model = Model(path)
    assert [bound.variable for bound in model.bounds] == ["temperature", "E"]
    model.options["bounds"] = "fail"
    with pytest.raises(ConvergenceError, match="'temperature' is 700, above 600"):
        model.forward({"strain": np.zeros((2, 6)), "temperature": np.array([20.0, 700.0])})
    model.close()
    with pytest.raises(FatalError, match="did you mean 'temperature'"):
        exported(bounds={"temperatur": (20, 600)})
    assert Model(path).bounds  # what was there stayed
    assert Model(exported()).bounds == ()
