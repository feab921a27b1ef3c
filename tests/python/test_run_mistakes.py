"""What is wrong in a file of neml2-capi run, and how it is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import error
from running import RAMP, Write
from states import Artifacts

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
def test_an_error_names_the_file_the_key_and_what_was_expected(write_run: Write, case: str) -> None:
    body, expected = WRONG[case]
    file = write_run(body)
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
def test_an_error_in_the_head(write_run: Write, head: str, expected: str) -> None:
    said = error("run", write_run(RAMP, head=head))
    assert expected in said, said


def test_arguments_that_do_not_fit(write_run: Write, artifacts: Artifacts, tmp_path: Path) -> None:
    file = write_run(RAMP, "combined_hardening")
    assert "KEY=VALUE" in error("run", file, "--set", "steps")
    assert "times.stps" in error("run", file, "--set", "times.stps=3")
    assert "--template ARTIFACT" in error("run")
    assert "or --template" in error("run", file, "--template", artifacts["elasticity"])
    arguments = ("--output", tmp_path / "a.csv", "--set", "output.derivatives=['stress:strain']")
    assert "derivatives are not written to csv" in error("run", file, *arguments)
