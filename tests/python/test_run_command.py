"""neml2-capi run: a model driven by a file."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from command_line import answer, command, error
from numpy.typing import NDArray
from states import Artifacts
from test_physics import STATE, relative_error

from neml2_capi import Model, Results, drive

Array = NDArray[np.float64]
Write = Callable[..., Path]

DIRECTION = np.array([1.0, -0.3, -0.3, 0.0, 0.0, 0.0])
HEAD = """
artifact = "{artifact}"
[times]
end = 10.0
steps = 20
"""
RAMP = "[forces.strain]\nramp = 0.01\ndirection = { xx = 1.0, yy = -0.3, zz = -0.3 }\n"


@pytest.fixture
def write(artifacts: Artifacts, tmp_path: Path) -> Write:
    """A file for a model, with the times of HEAD."""

    def written(body: str, name: str = "viscoplastic", head: str = HEAD) -> Path:
        (tmp_path / "artifact").unlink(missing_ok=True)
        (tmp_path / "artifact").symlink_to(artifacts[name])
        file = tmp_path / "drive.toml"
        file.write_text(head.format(artifact="artifact") + body)
        return file

    return written


def results_of(file: Path, *arguments: str) -> Results:
    output = file.parent / "results.npz"
    answer("run", file, "--output", output, *arguments)
    return Results.load(output)


def equal(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


# ------------------------------------------------------------------------------------------------
# What is driven
# ------------------------------------------------------------------------------------------------


def test_a_ramp_is_what_drive_and_the_oracle_give(artifacts: Artifacts, write: Write) -> None:
    found = results_of(write(RAMP))
    times = np.linspace(0.0, 10.0, 21)
    strain = (0.01 * (times / 10.0))[:, np.newaxis] * DIRECTION
    equal(found, drive(Model(artifacts["viscoplastic"]), times, {"strain": strain}))
    state = np.zeros(19)
    for step in range(1, len(times)):
        state = oracle.VISCOPLASTIC.advance(state, strain[step], strain[step - 1], 0.5)
        for name, where in STATE.items():
            np.testing.assert_allclose(found[name][step], state[where], rtol=1e-7, atol=1e-8)


def test_a_law_under_a_hypothesis(artifacts: Artifacts, write: Write) -> None:
    file = write("[forces.strain]\nxx.ramp = 0.01\n", "isotropic_hardening")
    file.write_text(f'hypothesis = "plane_stress"\n{file.read_text()}')
    found = results_of(file)
    model = Model(artifacts["isotropic_hardening"], hypothesis="plane_stress")
    strain = np.outer(np.linspace(0.0, 0.01, 21), np.eye(len(found["strain"][0]))[0])
    expected = drive(model, np.linspace(0.0, 10.0, 21), {"strain": strain})
    assert found["stress"].shape == (21, 3)
    np.testing.assert_allclose(found["stress"], expected["stress"], rtol=1e-12, atol=1e-10)


def test_an_unknown_hypothesis_is_refused_with_those_there_are(write: Write) -> None:
    file = write("[forces.strain]\nxx.ramp = 0.01\n")
    file.write_text(f'hypothesis = "plain_stress"\n{file.read_text()}')
    said = error("run", file)
    assert "drive.toml: hypothesis" in said
    assert "plane_stress" in said


def strain_of(write: Write, body: str) -> Array:
    strain: Array = results_of(write(body, "elasticity"))["strain"]
    return strain


TIMES = np.linspace(0.0, 10.0, 21)


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        (
            "ramp = { from = 0.01, to = -0.01, until = 5.0 }",
            np.maximum(0.01 - 0.004 * TIMES, -0.01),
        ),
        (
            "cycle = { amplitude = 0.02, period = 8.0, mean = 0.01 }",
            0.01 + 0.02 * np.sin(2.0 * np.pi * TIMES / 8.0),
        ),
        (
            'cycle = { amplitude = 0.02, period = 8.0, shape = "triangle" }',
            np.interp(TIMES, [0, 2, 6, 10], [0, 0.02, -0.02, 0.02]),
        ),
        (
            "points = [[0, 0], [3, 0.01], [10, -0.01]]",
            np.interp(TIMES, [0, 3, 10], [0, 0.01, -0.01]),
        ),
        ("constant = 0.005", np.full(21, 0.005)),
    ],
)
def test_signals(write: Write, signal: str, expected: Array) -> None:
    if signal.startswith("constant"):
        body = "forces.strain.xx = 0.005\noutput.variables = ['strain', 'stress']\n"
        file = write("", "elasticity", body + HEAD)
    else:
        file = write(f"[forces.strain.xx]\n{signal}\n", "elasticity")
    strain = np.broadcast_to(results_of(file)["strain"], (21, 6))
    np.testing.assert_allclose(strain[:, 0], expected, rtol=0, atol=1e-16)
    assert not strain[:, 1:].any()


def test_components_are_of_the_tensor_and_lists_are_as_stored(write: Write) -> None:
    """xy is half of an engineering shear; Mandel's notation stores it times sqrt(2)."""
    ends = (0.01, -0.003, -0.002, 1e-3, 2e-3, 3e-3)
    named = zip(("xx", "yy", "zz", "yz", "xz", "xy"), ends, strict=True)
    strain = strain_of(write, "[forces.strain]\n" + "".join(f"{n}.ramp = {v}\n" for n, v in named))
    stored = np.array(ends) * [1, 1, 1, *[np.sqrt(2.0)] * 3]
    np.testing.assert_allclose(strain[-1], stored, rtol=1e-15)
    along = f"[forces.strain]\nramp = 1.0\ndirection = {stored.tolist()}\n"
    np.testing.assert_allclose(strain_of(write, along), strain, rtol=1e-14, atol=1e-18)
    file = write(f"[forces]\nstrain = {stored.tolist()}\n", "elasticity")
    stress = oracle.elastic_stress(stored, 200e3, 0.3)
    assert relative_error(results_of(file)["stress"][-1], stress) < 1e-12
    output = file.parent / "results.csv"
    answer("run", file, "--output", output)
    rows = list(csv.DictReader(output.open()))
    assert float(rows[3]["stress.xy"]) == pytest.approx(stress[5] / np.sqrt(2.0), rel=1e-12)


def test_a_list_in_the_place_of_a_number_is_one_value_per_point(
    artifacts: Artifacts, write: Write
) -> None:
    body = (
        "[forces.strain]\nramp = [0.01, 0.02]\ndirection = { xx = 1.0 }\n"
        "[parameters]\nyield_stress = [100.0, 200.0]\n"
        "[initial]\nequivalent_plastic_strain = [0.0, 0.1]\n"
    )
    found = results_of(write(body, "combined_hardening"))
    strain = np.zeros((21, 2, 6))
    strain[..., 0] = (TIMES / 10.0)[:, np.newaxis] * [0.01, 0.02]
    expected = drive(
        Model(artifacts["combined_hardening"]),
        TIMES,
        {"strain": strain},
        {"equivalent_plastic_strain": np.array([0.0, 0.1])},
        parameters={"yield_stress": np.array([100.0, 200.0])},
    )
    assert found["stress"].shape == (21, 2, 6)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-12)


def test_measured_columns_drive_a_model(write: Write, tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("time, exx, who\n0, 0, me\n4, 2.0, me\n20, -2.0, you\n")
    body = (
        "[forces.strain.xx]\nfile = 'test.csv'\ncolumn = 'exx'\ntime = 'time'\nscale = 0.01\n"
        "[forces.strain.xy]\nfile = 'test.npz'\ncolumn = 'exy'\n"
    )
    exy = np.linspace(0.0, 1e-3, 21) ** 2
    np.savez(tmp_path / "test.npz", exy=exy)
    strain = strain_of(write, body)
    np.testing.assert_allclose(strain[:, 0], np.interp(TIMES, [0, 4, 20], [0, 0.02, -0.02]))
    np.testing.assert_allclose(strain[:, 5], np.sqrt(2.0) * exy)
    said = error("run", write(body.replace("'exx'", "'who'"), "elasticity"))
    assert "forces.strain.xx.column: the column 'who' of" in said and "not hold numbers" in said


def test_a_row_of_a_file_is_one_line(write: Write, tmp_path: Path) -> None:
    """A quote that is not closed took in the lines up to the next one."""
    rows = '0,0,"5 inch\n\n4,2.0,b\n8,0.0,c"\n20,-2.0,d\n'
    (tmp_path / "test.csv").write_text(f"time,exx,who\n{rows}")
    body = "[forces.strain.xx]\nfile = 'test.csv'\ncolumn = 'exx'\ntime = 'time'\nscale = 0.01\n"
    strain = strain_of(write, body)
    expected = np.interp(TIMES, [0, 4, 8, 20], [0, 0.02, 0, -0.02])
    np.testing.assert_allclose(strain[:, 0], expected, atol=1e-16)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("t,exx\n0,0\n10,1_0\n", "the column 'exx' of {file} does not hold numbers"),
        ("t;exx\n0;0\n\n10;0,01\n", "{file} has 2 columns in line 4, but 1 names; expected commas"),
        ("t,exx [µm]\n0,0\n", "{file} is no text in UTF-8: 'utf-8' codec"),
        (f"t,exx\n0,{'1' * 140_000}\n", "{file} has a line '0,1111"),
    ],
    ids=["underscore", "decimal commas", "latin-1", "a long field"],
)
def test_a_file_that_is_no_table_is_named(
    write: Write, tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "test.csv"
    file.write_bytes(content.encode("latin-1"))
    said = error("run", write("[forces.strain.xx]\nfile = 'test.csv'\ncolumn = 'exx'\n"))
    assert "forces.strain.xx.column: " in said and message.format(file=file) in said


@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_results_of_one_run_drive_the_next(write: Write, tmp_path: Path, suffix: str) -> None:
    body = "[forces.strain]\nxx.ramp = 0.01\nxy.ramp = 0.002\n"
    first = results_of(write(body))
    output = tmp_path / f"first.{suffix}"
    answer("run", write(body), "--output", output)
    second = results_of(write(f"[forces.strain]\nfile = 'first.{suffix}'\n"))
    np.testing.assert_allclose(second["stress"], first["stress"], rtol=1e-9, atol=1e-9)


def test_times_as_a_list_and_another_start(write: Write) -> None:
    head = 'artifact = "{artifact}"\n[times]\nlist = [1.0, 2.0, 4.0]\n'
    np.testing.assert_array_equal(results_of(write(RAMP, head=head))["t"], [1.0, 2.0, 4.0])
    found = results_of(write(RAMP), "--set", "times.start=5", "--set", "times.steps=5")
    np.testing.assert_array_equal(found["t"], np.linspace(5.0, 10.0, 6))


def test_options_step_and_output(artifacts: Artifacts, write: Write) -> None:
    body = RAMP + (
        "[options]\natol = 1e-3\nrtol = 1e-3\nconvergence = 'batch'\n"
        "[step]\nleast = 0.125\n"
        "[output]\nvariables = ['stress']\nderivatives = ['stress:strain']\nreport = true\n"
    )
    found = results_of(write(body, "combined_hardening"))
    model = Model(artifacts["combined_hardening"])
    model.options.update({"atol": 1e-3, "rtol": 1e-3, "convergence": "batch"})
    strain = (0.01 * (TIMES / 10.0))[:, np.newaxis] * DIRECTION
    expected = drive(
        model,
        TIMES,
        {"strain": strain},
        record=["stress"],
        derivatives={"stress": {"strain": True}},
        report=True,
    )
    equal(found, expected)


def test_failed_calls_are_kept_beside_the_file(write: Write, tmp_path: Path) -> None:
    body = "[forces.strain.xx]\nramp = 1e30\n[options]\ncapsule = 'failed'\n[step]\nleast = 1.0\n"
    error("run", write(body))
    (file,) = (tmp_path / "failed").iterdir()
    assert answer("replay", file).rstrip().endswith("reproduced, to the last bit")


def test_settings_replace_what_the_file_says(write: Write) -> None:
    file = write(
        RAMP + "[parameters]\nE = 1e5\n[output]\nfile = 'in_file.csv'\n", "combined_hardening"
    )
    found = results_of(
        file,
        *("--set", "parameters.E=5e4", "--set", "forces.strain.ramp=0.002"),
        *("--set", "times.steps = 2", "--set", "options.convergence=batch"),
    )
    assert len(found["t"]) == 3
    assert found["strain"][-1, 0] == 0.002
    elastic = oracle.elastic_stress(1e-3 * DIRECTION, 5e4, 0.3)
    assert relative_error(found["stress"][1], elastic) < 1e-10
    assert not (file.parent / "in_file.csv").exists()


def test_a_dotted_parameter_needs_no_quotes(write: Write) -> None:
    strain = "[forces]\nstrain = [1e-3, 0.0, 0.0, 0.0, 0.0, 0.0]\n"
    for body in ("[parameters]\nelasticity.E = 1e5\n", '[parameters]\n"elasticity.E" = 1e5\n'):
        found = results_of(write(strain + body, "elasticity"))
        again = results_of(
            write(strain + body, "elasticity"), "--set", "parameters.elasticity.E=2e5"
        )
        np.testing.assert_allclose(again["stress"], 2.0 * found["stress"], rtol=1e-14)


def test_a_scheduler_spreads_the_points(write: Write) -> None:
    body = RAMP + "[parameters]\nyield_stress = [110.0, 210.0, 310.0]\n"
    expected = results_of(write(body, "combined_hardening"))
    file = write(body + "[scheduler]\ndevice = 'cpu'\nbatch_size = 2\n", "combined_hardening")
    equal(results_of(file), expected)
    equal(results_of(file, "--set", "scheduler.batch_size=1"), expected)
    told = json.loads(answer("run", file, "--json"))
    assert told["points"] == [["cpu (auto)", 60]]
    assert "60 points evaluated on cpu (auto)" in answer("run", file)
    said = error("run", file, "--set", "scheduler.capacity=1")
    assert f"{file}: scheduler.capacity: " in said


# ------------------------------------------------------------------------------------------------
# What is written
# ------------------------------------------------------------------------------------------------


def test_csv_has_all_digits_and_a_row_per_time_and_point(write: Write, tmp_path: Path) -> None:
    file = write(RAMP + "[parameters]\nyield_stress = [110.0, 210.0]\n", "combined_hardening")
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


def test_the_summary_is_json(write: Write, tmp_path: Path) -> None:
    told = json.loads(answer("run", write(RAMP), "--json"))
    assert told["completed"] and told["error"] is None and told["output"] is None
    assert (told["times"], told["substeps"]) == (21, 20)
    assert told["results"]["stress"] == [21, 6]
    assert told["last"]["strain.xx"] == 0.01


def test_a_table_and_nothing_else_in_a_pipe(write: Write) -> None:
    done = command("run", write(RAMP))
    assert done.returncode == 0 and not done.stderr
    assert "20 steps to t = 10" in done.stdout and "stress.xx" in done.stdout
    assert "not written" in done.stdout


def test_a_plot_is_written(write: Write, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    body = RAMP + "[plot]\ncurves = ['strain.xx:stress.xx', 't:equivalent_plastic_strain']\n"
    image = tmp_path / "plot.png"
    answer("run", write(body), "--plot-file", image)
    assert image.read_bytes().startswith(b"\x89PNG")
    answer("run", write(RAMP), "--plot", "t:stress.xx", "--plot-file", tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()
    united = body + "units = { t = 's', stress = 'MPa' }\n"
    answer("run", write(united), "--plot-file", tmp_path / "units.svg")
    assert "stress.xx (MPa)" in (tmp_path / "units.svg").read_text()
    said = error("run", write(united.replace("t = 's'", "stres = 's'")), "--plot-file", image)
    assert "plot.units" in said and "did you mean 'stress'" in said
    body += "[output]\nfile = 'results.csv'\nvariables = ['stress']\n"
    answer("run", write(body), "--plot-file", image)
    assert "strain.xx" not in (tmp_path / "results.csv").read_text().splitlines()[0]
    said = error("run", write(RAMP), "--plot", "strain.xx:stres.xx", "--plot-file", image)
    assert "'stres.xx'; did you mean 'stress.xx'?" in said
    assert "X:Y" in error("run", write(RAMP), "--plot", "stress.xx", "--plot-file", image)
    said = error("run", write(RAMP), "--plot", "t:stress.xx", "--plot-file", tmp_path / "a.txt")
    assert "png" in said


def test_what_a_plot_needs_is_said_before_the_run(write: Write, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = ("run", write(RAMP), "--plot", "t:stress.xx")
    assert "--plot-file" in error(*arguments, MPLBACKEND="agg")
    (tmp_path / "matplotlib.py").write_text("raise ImportError('hidden')")
    said = error(*arguments, PYTHONPATH=str(tmp_path))
    assert "pip install 'neml2_capi[plot]'" in said


def test_steps_before_a_failure_are_written(write: Write, tmp_path: Path) -> None:
    body = (
        "[forces.strain.xx]\npoints = [[0, 0], [5, 0.001], [5.5, 1e30], [10, 1e30]]\n"
        "[output]\nfile = 'results.npz'\n"
    )
    said = error("run", write(body))
    assert "step 11 failed" in said
    results = Results.load(tmp_path / "results.npz")
    assert len(results["t"]) == 11
    done = command("run", write(body), "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1 and not told["completed"] and "step 11" in told["error"]


# ------------------------------------------------------------------------------------------------
# What is wrong
# ------------------------------------------------------------------------------------------------

WRONG = {
    "not TOML": ("[forces", "this is not TOML"),
    "a section": (RAMP + "[option]\n", "option: unknown key 'option'; did you mean 'options'?"),
    "no force": ("", "forces: 'strain' is missing: prescribe it, 6 numbers in Mandel notation"),
    "a force": ("[forces]\nstrian = 0\n", "forces.strian: unknown force 'strian'; did you mean 's"),
    "the time": (RAMP + "[forces.t]\nramp = 1\n", "forces.t: is the time: prescribe it by [times]"),
    "history": (RAMP + '[forces."stress~1"]\n', "forces.stress~1: is history, which is carried"),
    "a component": (
        "[forces.strain]\nxxx = 1\n",
        "forces.strain.xxx: unknown key 'xxx'; did you mean 'xx'? The keys are: xx, yy, zz, yz, "
        "xz, xy, constant, ramp",
    ),
    "a signal": (
        "[forces.strain]\nxx.rmp = 1\n",
        "forces.strain.xx: expected a number, or a table",
    ),
    "two signals": (
        "[forces.strain.xx]\nramp = 1\npoints = []\n",
        "forces.strain.xx: has 'ramp' and 'points'; expected one of them",
    ),
    "no direction": ("[forces.strain]\nramp = 1\n", "forces.strain: 'direction' is missing"),
    "lists": (
        "[forces.strain]\nxx.ramp = { from = [1, 2], to = [1, 2, 3] }\n",
        "forces.strain.xx: holds lists of different lengths",
    ),
    "components' lists": (
        "[forces.strain]\nxx.ramp = [1, 2]\nyy = [1, 2, 3]\n",
        "forces.strain: holds lists of different lengths",
    ),
    "a direction too many": (
        "[forces.strain.xx]\nramp = 1\ndirection = { xx = 1 }\n",
        "forces.strain.xx.direction: unknown key 'direction'. The keys are: ramp",
    ),
    "a file's key": (
        "[forces.strain]\nfile = 'a.csv'\ncolum = 'exx'\n",
        "forces.strain.colum: unknown key 'colum'; did you mean 'column'?",
    ),
    "a word": ('[forces.strain]\nxx.ramp = "fast"\n', "xx.ramp: expected a number, or a list"),
    "five numbers": ("[forces]\nstrain = [1, 2, 3, 4, 5]\n", "forces.strain: expected 6 numbers"),
    "a period": (
        "[forces.strain]\nxx.cycle = { amplitude = 1 }\n",
        "forces.strain.xx.cycle: 'period' is missing: the time of one cycle",
    ),
    "a shape": (
        "[forces.strain]\nxx.cycle = { amplitude = 1, period = 1, shape = 'sin' }\n",
        "xx.cycle.shape: unknown shape 'sin'; did you mean 'sine'?",
    ),
    "a cycle between two times": (
        "[forces.strain]\nxx.cycle = { amplitude = 0.01, period = 0.5 }\n",
        "xx.cycle.period: is 0.5, and no step of [times] is smaller than 0.5: the cycle would miss",
    ),
    "short points": (
        "[forces.strain]\nxx.points = [[0, 0], [5, 1]]\n",
        "xx.points: is prescribed from time 0 to 5, but [times] goes from 0 to 10",
    ),
    "points back": (
        "[forces.strain]\nxx.points = [[0, 0], [12, 1], [11, 1]]\n",
        "xx.points: the times of the points do not increase",
    ),
    "pairs": ("[forces.strain]\nxx.points = [1, 2]\n", "expected a list of [time, value]"),
    "no file": ("[forces.strain]\nfile = 'no.csv'\n", "no.csv"),
    "initial": (
        RAMP + "[initial]\nstres = 0\n",
        "initial.stres: unknown initial value 'stres'; did",
    ),
    "initial shape": (RAMP + "[initial]\nstress = 0\n", "initial.stress: expected 6 numbers"),
    "a parameter": (RAMP + "[parameters]\nE = 1\n", "parameters.E: unknown parameter 'E'."),
    "an option": (
        RAMP + "[options]\natool = 1\n",
        "options.atool: unknown option 'atool'; did you",
    ),
    "a bound": (RAMP + "[options]\nmiters = -1\n", "options.miters: "),
    "least": (RAMP + "[step]\nleast = 2.0\n", "step.least: expected a fraction of a step"),
    "a format": (
        RAMP + "[output]\nformat = 'cvs'\n",
        "output.format: unknown format 'cvs'; did you",
    ),
    "formats": (RAMP + "[output]\nfile = 'a.csv'\nformat = 'npz'\n", "named as a csv file"),
    "no folder": (RAMP + "[output]\nfile = 'no/a.csv'\n", "there is no folder"),
    "a variable": (RAMP + "[output]\nvariables = ['stres']\n", "unknown variable 'stres'; did you"),
    "a derivative": (
        RAMP + "[output]\nderivatives = ['stress:strain']\n",
        "unknown compiled derivative 'stress:strain'. There are no compiled derivatives",
    ),
    "a flag": (RAMP + "[output]\nreport = 1\n", "output.report: expected true or false; got 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_error_names_the_file_the_key_and_what_was_expected(write: Write, case: str) -> None:
    body, expected = WRONG[case]
    file = write(body)
    said = error("run", file)
    assert expected in said, said
    if case not in ("formats", "no folder"):
        assert str(file) in said


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("", "'artifact' is missing: the folder that neml2-compile wrote"),
        ("artifact = 'no'\n", "artifact: There is no folder"),
        ("artifact = '{artifact}'\n", "'times' is missing"),
        ("artifact = '{artifact}'\n[times]\nend = 1\n", "times: 'steps' is missing: a number of"),
        (
            "artifact = '{artifact}'\n[times]\nend = 1\nsteps = 0\n",
            "times.steps: expected a number",
        ),
        (
            "artifact = '{artifact}'\n[times]\nend = 0\nsteps = 1\n",
            "times.end: expected a time aft",
        ),
        (
            "artifact = '{artifact}'\n[times]\nlist = [0, 2, 1]\n",
            "times.list: expected a list of i",
        ),
        ("artifact = '{artifact}'\n[times]\nlist = [0, 1]\nend = 1\n", "has 'list' and 'end'"),
        (
            "artifact = '{artifact}'\n[times]\nstep = 1\n",
            "unknown key 'step'; did you mean 'steps'?",
        ),
    ],
)
def test_an_error_in_the_head(write: Write, head: str, expected: str) -> None:
    said = error("run", write(RAMP, head=head))
    assert expected in said, said


def test_arguments_that_do_not_fit(write: Write, artifacts: Artifacts, tmp_path: Path) -> None:
    file = write(RAMP, "combined_hardening")
    assert "KEY=VALUE" in error("run", file, "--set", "steps")
    assert "times.stps" in error("run", file, "--set", "times.stps=3")
    assert "--template ARTIFACT" in error("run")
    assert "or --template" in error("run", file, "--template", artifacts["elasticity"])
    arguments = ("--output", tmp_path / "a.csv", "--set", "output.derivatives=['stress:strain']")
    assert "derivatives are not written to csv" in error("run", file, *arguments)


# ------------------------------------------------------------------------------------------------
# Templates
# ------------------------------------------------------------------------------------------------


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
