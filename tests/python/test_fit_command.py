"""The command neml2-capi fit, and the files that it reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from neml2_capi import FatalError, Model, examples, experiments
from neml2_capi.cli.commands import neml2_capi as command_line
from neml2_capi.fit import Experiment

pytestmark = pytest.mark.numbers
pytest.importorskip("scipy")

TIMES = np.linspace(0.0, 10.0, 31)
STRAIN = 0.006 * TIMES / 10


@pytest.fixture(scope="module")
def stress() -> Any:
    with Model(examples.path("isotropic_hardening")) as steel:
        truth = {"E": 180e3, "yield_stress": 120.0}
        return experiments.tension(steel, TIMES, STRAIN, parameters=truth)["stress"][:, 0]


def measured(
    folder: Path,
    stress: Any,
    *,
    head: str = "time,strain,stress",
    separator: str = ",",
    decimal: str = ".",
) -> Path:
    rows = [
        separator.join(f"{value:.9g}".replace(".", decimal) for value in row)
        for row in zip(TIMES, STRAIN, stress, strict=True)
    ]
    file = folder / "pull.csv"
    file.write_text("\n".join([head.replace(",", separator), *rows]) + "\n")
    return file


def task(folder: Path, more: str = "", experiment: str = "") -> Path:
    file = folder / "steel.toml"
    file.write_text(
        f"""artifact = "{examples.path("isotropic_hardening")}"
[parameters]
E = {{ value = 220e3, log = true }}
yield_stress = {{ value = 150, lower = 50, upper = 400 }}
[[experiments]]
file = "pull.csv"
{experiment}
{more}"""
    )
    return file


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(command_line, ["fit", *map(str, arguments)])


def test_a_fit_from_files(tmp_path: Path, stress: Any) -> None:
    measured(tmp_path, stress)
    file = task(tmp_path)
    done = run(file, "--json", "--output", tmp_path / "fitted.toml")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["parameters"] == pytest.approx({"E": 180e3, "yield_stress": 120.0}, rel=1e-5)
    assert found["success"] and found["unseen"] == []
    for name, value in found["parameters"].items():
        low, high = found["intervals"][name]
        assert low < value < high < value + 3 * found["deviations"][name]
    # The written parameters go back in.
    text = file.read_text()
    begin, end = text.index("[parameters]"), text.index("[[experiments]]")
    file.write_text(text[:begin] + (tmp_path / "fitted.toml").read_text() + text[end:])
    again = json.loads(run(file, "--json").stdout)
    assert again["evaluations"] < found["evaluations"]
    shown = run(file)
    assert "yield_stress" in shown.output and "standard deviation" in shown.output


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"decimal": ",", "separator": ";"}, 'decimal = ","'),
        ({"head": "time,strain [%],stress [GPa]"}, ""),
        ({"head": "a,b,c"}, 'columns = { t = "a", strain = "b", stress = "c" }'),
    ],
)
def test_files_as_machines_write_them(
    tmp_path: Path, stress: Any, written: dict[str, str], said: str
) -> None:
    file = measured(tmp_path, stress, **written)
    if "GPa" in written.get("head", ""):
        lines = [line.split(",") for line in file.read_text().splitlines()]
        rows = [[t, str(100 * float(e)), str(float(s) / 1e3)] for t, e, s in lines[1:]]
        file.write_text("\n".join(",".join(row) for row in [lines[0], *rows]))
    done = run(task(tmp_path, experiment=said), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["parameters"]["yield_stress"] == pytest.approx(120, rel=1e-4)


@pytest.mark.parametrize(
    ("written", "factors", "said", "message"),
    [
        (
            {},
            (1, 1e-3),
            "",
            'it seems to be in GPa, and the model in MPa. Say units = {stress = "GPa"}',
        ),
        (
            {},
            (100, 1),
            "",
            'it seems to be in percent. Divide it by 100, or say units = {strain = "%"}',
        ),
        (
            {"head": "time,strain,force"},
            (1, 1),
            "",
            "there is no column 'stress'. The columns are: ",
        ),
        (
            {},
            (1, 1),
            'columns = { stress = "sterss" }',
            "unknown column 'sterss'; did you mean 'stress'?",
        ),
        (
            {"decimal": ",", "separator": ";"},
            (1, 1),
            "",
            "line 3, column 'time': '0,333333333' is no number: it has a decimal comma",
        ),
        (
            {"decimal": ","},
            (1, 1),
            "",
            "decimal commas look like separators",
        ),
        (
            {},
            (1, 1),
            'units = { stress = "MPA" }',
            "unit of stress 'MPA'; did you mean 'MPa'?",
        ),
        ({}, (1, 1), "decmial = ','", "unknown key 'decmial'; did you mean 'decimal'?"),
        ({}, (1, 1), "loss = 'peak'", "loss of 'pull' must be of values, curve, peaks, ratcheting"),
    ],
)
def test_mistakes_are_said_in_words(
    tmp_path: Path,
    stress: Any,
    written: dict[str, str],
    factors: tuple[float, float],
    said: str,
    message: str,
) -> None:
    global STRAIN
    whole = STRAIN
    try:
        STRAIN = whole * factors[0]
        measured(tmp_path, stress * factors[1], **written)
    finally:
        STRAIN = whole
    done = run(task(tmp_path, experiment=said))
    assert done.exit_code == 1
    assert message in done.output.replace("\n", " "), done.output


def test_the_task_is_checked_by_key(tmp_path: Path, stress: Any) -> None:
    measured(tmp_path, stress)
    for more, message in (
        ("[fit]\nstarts = 0", "fit.starts: expected a whole number, 1 at least; got 0"),
        ("[fit]\nordered = [['E', 'F']]", "unknown ordered parameter 'F'"),
        ("labels = { T = [20] }", "labels.T: expected a text or a number or true or false"),
        ("[outputs]", "unknown section 'outputs'; did you mean 'output'?"),
        ("[output]\nreport = 'none/fit.html'", "there is no folder"),
    ):
        done = run(task(tmp_path, more))
        assert done.exit_code == 1 and message in done.output, done.output


def test_data_frames(stress: Any) -> None:
    frame = {"eps": 100 * STRAIN, "sigma [GPa]": stress / 1e3, "time": TIMES}
    test = Experiment.from_frame(
        frame, columns={"strain": "eps", "stress": "sigma", "t": "time"}, units={"strain": "%"}
    )
    np.testing.assert_allclose(test.stress["xx"], stress)
    np.testing.assert_allclose(test.strain["xx"], STRAIN)
    with pytest.raises(FatalError, match="unknown column 'eps2'; did you mean 'eps'"):
        Experiment.from_frame(frame, columns={"strain": "eps2"})


def test_a_test_without_its_virgin_state_gets_one(stress: Any) -> None:
    test = Experiment.of("late", t=TIMES[1:], strain=STRAIN[1:], stress=stress[1:])
    assert len(test.t) == len(TIMES) and test.t[0] == 0.0 == test.strain["xx"][0]
    assert np.isnan(test.stress["xx"][0])
    rated = Experiment.of("rated", rate=1e-3, strain=STRAIN, stress=stress)
    np.testing.assert_allclose(rated.t, STRAIN / 1e-3)
