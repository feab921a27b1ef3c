"""What neml2-capi run writes and prints."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from command_line import answer, command, error
from running import RAMP, TIMES, Write, results_of

from neml2_capi import Results


def test_csv_has_all_digits_and_a_row_per_time_and_point(write_run: Write, tmp_path: Path) -> None:
    file = write_run(RAMP + "[parameters]\nyield_stress = [110.0, 210.0]\n", "combined_hardening")
    output = tmp_path / "results.csv"
    answer("run", file, "--output", output)
    rows = list(csv.DictReader(output.open()))
    results = results_of(file)
    assert len(rows) == 42
    assert list(rows[0])[:3] == ["t", "point", "strain.xx"]
    for row in rows:
        step, point = int(np.searchsorted(TIMES, float(row["t"]))), int(row["point"])
        assert float(row["stress.xx"]) == results["stress"][step, point, 0]
        assert float(row["strain.xx"]) == results["strain"][step, 0]
        assert (
            float(row["equivalent_plastic_strain"])
            == (results["equivalent_plastic_strain"][step, point])
        )


def test_the_summary_is_json(write_run: Write, tmp_path: Path) -> None:
    told = json.loads(answer("run", write_run(RAMP), "--json"))
    assert told["completed"] and told["error"] is None and told["output"] is None
    assert (told["times"], told["substeps"]) == (21, 20)
    assert told["results"]["stress"] == [21, 6]
    assert told["last"]["strain.xx"] == 0.01


def test_a_table_and_nothing_else_in_a_pipe(write_run: Write) -> None:
    done = command("run", write_run(RAMP))
    assert done.returncode == 0 and not done.stderr
    assert "20 steps to t = 10" in done.stdout and "stress.xx" in done.stdout
    assert "not written" in done.stdout


def test_a_plot_is_written(write_run: Write, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    body = RAMP + "[plot]\ncurves = ['strain.xx:stress.xx', 't:equivalent_plastic_strain']\n"
    image = tmp_path / "plot.png"
    answer("run", write_run(body), "--plot-file", image)
    assert image.read_bytes().startswith(b"\x89PNG")
    answer("run", write_run(RAMP), "--plot", "t:stress.xx", "--plot-file", tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()
    united = body + "units = { t = 's', stress = 'MPa' }\n"
    answer("run", write_run(united), "--plot-file", tmp_path / "units.svg")
    assert "stress.xx (MPa)" in (tmp_path / "units.svg").read_text()
    said = error("run", write_run(united.replace("t = 's'", "stres = 's'")), "--plot-file", image)
    assert "plot.units" in said and "did you mean 'stress'" in said
    body += "[output]\nfile = 'results.csv'\nvariables = ['stress']\n"
    answer("run", write_run(body), "--plot-file", image)
    assert "strain.xx" not in (tmp_path / "results.csv").read_text().splitlines()[0]
    said = error("run", write_run(RAMP), "--plot", "strain.xx:stres.xx", "--plot-file", image)
    assert "'stres.xx'; did you mean 'stress.xx'?" in said
    assert "X:Y" in error("run", write_run(RAMP), "--plot", "stress.xx", "--plot-file", image)
    said = error("run", write_run(RAMP), "--plot", "t:stress.xx", "--plot-file", tmp_path / "a.txt")
    assert "png" in said


def test_what_a_plot_needs_is_said_before_the_run(write_run: Write, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = ("run", write_run(RAMP), "--plot", "t:stress.xx")
    assert "--plot-file" in error(*arguments, MPLBACKEND="agg")
    (tmp_path / "matplotlib.py").write_text("raise ImportError('hidden')")
    said = error(*arguments, PYTHONPATH=str(tmp_path))
    assert "pip install 'neml2_capi[plot]'" in said


def test_steps_before_a_failure_are_written(write_run: Write, tmp_path: Path) -> None:
    body = (
        "[forces.strain.xx]\npoints = [[0, 0], [5, 0.001], [5.5, 1e30], [10, 1e30]]\n"
        "[output]\nfile = 'results.npz'\n"
    )
    said = error("run", write_run(body))
    assert "step 11 failed" in said
    results = Results.load(tmp_path / "results.npz")
    assert len(results["t"]) == 11
    done = command("run", write_run(body), "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1 and not told["completed"] and "step 11" in told["error"]
