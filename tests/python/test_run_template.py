"""Templates of files for neml2-capi run, and the example."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from command_line import answer, error
from states import Artifacts

from neml2_capi import Model, Results


@pytest.mark.parametrize(
    "name",
    ["elasticity", "viscoplastic", "combined_hardening", "relaxation", "warm_start", "grains"],
)
def test_a_template_runs_as_it_stands(artifacts: Artifacts, tmp_path: Path, name: str) -> None:
    file = tmp_path / "drive.toml"
    answer("run", "--template", artifacts[name], "--output", file)
    answer("run", file)
    model = Model(artifacts[name])
    rows = list(csv.DictReader((tmp_path / "results.csv").open()))
    assert len(rows) == 101
    for output in model.outputs.names:
        assert any(column.startswith(output) for column in rows[0])


def test_what_a_template_has_commented_out_runs_too(artifacts: Artifacts, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    text = answer("run", "--template", artifacts["combined_hardening"])
    lines = [
        line[2:] if re.match(r"# (?!list|hypothesis)\w+ = ", line) else line
        for line in text.splitlines()
        if not line.startswith("#  ")
    ]
    (tmp_path / "all.toml").write_text("\n".join(lines).replace("results.csv", "results.npz"))
    answer("run", tmp_path / "all.toml")
    assert (tmp_path / "plot.png").exists()
    results = Results.load(tmp_path / "results.npz")
    assert "stress:strain" in results and "report.iterations" in results


def test_a_template_overwrites_nothing(artifacts: Artifacts, tmp_path: Path) -> None:
    file = tmp_path / "drive.toml"
    file.write_text("mine")
    arguments = ("run", "--template", artifacts["elasticity"], "--output", file)
    assert "not overwritten" in error(*arguments)
    assert file.read_text() == "mine"


def test_the_example(artifacts: Artifacts, tmp_path: Path) -> None:
    example = artifacts["elasticity"].parents[1] / "drive.toml"
    output = tmp_path / "drive.csv"
    answer("run", example, "--output", output)
    rows = list(csv.DictReader(output.open()))
    last = [float(row["equivalent_plastic_strain"]) for row in rows[-3:]]
    assert last[0] > last[1] > last[2] > 0.05  # less where the yield stress is greater
