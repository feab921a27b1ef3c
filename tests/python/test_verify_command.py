"""neml2-capi verify: laws beside what is expected of them, by a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from native import ROOT

from neml2_capi import Model, drive, examples

pytest.importorskip("click")
pytest.importorskip("rich")

from click.testing import CliRunner, Result

from neml2_capi.cli.commands import neml2_capi as command_line
from neml2_capi.cli.expressions import Expression

LAME = 200e3 * 0.7 / (1.3 * 0.4)
HEAD = """
artifact = "{artifact}"
rtol = 1e-9
times = {{ end = 1.0, steps = 4 }}
forces.strain.xx.ramp = 0.01
"""


def verify(*arguments: object) -> Result:
    return CliRunner().invoke(command_line, ["verify", *map(str, arguments)])


def written(folder: Path, tests: str, law: str = "elasticity") -> Path:
    file = folder / "verify.toml"
    file.write_text(HEAD.format(artifact=examples.path(law)) + tests)
    return file


def told(file: Path, *arguments: object) -> dict[str, dict[str, object]]:
    """Return the command's results for each column of the only test."""
    (test,) = json.loads(verify(file, "--json", *arguments).stdout)["tests"]
    assert not test["error"], test["error"]
    return {each["column"]: each for each in test["columns"]}


def refusal(folder: Path, test: str, law: str = "elasticity") -> str:
    """Why the only test cannot be made, which is no failure of the law."""
    done = verify(written(folder, f"[[test]]\n{test}\n", law), "--junit", folder / "j.xml")
    assert done.exit_code == 1 and not isinstance(done.exception, Exception)
    (error,) = ElementTree.parse(folder / "j.xml").iter("error")
    assert error.get("message", "") in done.output
    return error.get("message", "")


# ------------------------------------------------------------------------------------------------
# Laws
# ------------------------------------------------------------------------------------------------


def test_the_shipped_laws_give_their_closed_forms() -> None:
    done = verify(ROOT / "examples" / "verify.toml")
    assert done.exit_code == 0, done.output
    assert done.output.count("passed") == 5


@pytest.mark.parametrize("law", examples.NAMES)
def test_a_template_passes_as_it_stands_and_sees_another_modulus(law: str, tmp_path: Path) -> None:
    file = tmp_path / "law.toml"
    done = verify("--template", examples.path(law), "--output", file)
    assert done.exit_code == 0, done.output
    assert verify(file).exit_code == 0
    assert "not overwritten" in verify("--template", examples.path(law), "--output", file).output
    done = verify(file, "--set", "parameters.E=201e3")
    assert done.exit_code == 1 and "stress.xx in step" in done.output


# ------------------------------------------------------------------------------------------------
# Expected values
# ------------------------------------------------------------------------------------------------


def test_each_way_of_saying_a_curve(tmp_path: Path) -> None:
    """Closed form, points, constant, ramp, columns of a file, another artifact."""
    (tmp_path / "bar.csv").write_text(
        f"time,sxx\n0.1,{LAME * 1e-3}\n0.9,{LAME * 9e-3}\n"  # between steps
    )
    times = np.linspace(0.0, 1.0, 5)
    strain = np.zeros((5, 6))
    strain[:, 0] = 0.01 * times
    drive(Model(examples.path("elasticity")), times, {"strain": strain}).save(tmp_path / "all.csv")
    ways = {
        "expression = 'E * (1 - nu) / ((1 + nu) * (1 - 2*nu)) * strain.xx'": 5,
        f"points = [[0.3, {LAME * 3e-3}]]": 1,
        f"points = [[0.0, 0.0], [1.0, {LAME * 1e-2}]]\nat = 'steps'": 5,
        f"constant = {LAME * 5e-3}\nat = [0.5]": 1,
        f"ramp = {LAME * 1e-2}\nbetween = [0.2, 0.8]": 3,
        "file = 'bar.csv'\ncolumn = 'sxx'\ntime = 'time'": 2,
        "file = 'all.csv'": 5,
        f"artifact = '{examples.path('elasticity')}'": 5,
    }
    for way, compared in ways.items():
        file = written(
            tmp_path, f"[[test]]\nconstants.nu = 0.3\n[test.expect.stress.xx]\natol = 1e-9\n{way}\n"
        )
        column = told(file)["stress.xx"]
        assert column["passed"] and column["compared"] == compared, (way, column)
        column = told(file, "--set", "expect.stress.xx.rtol=0", "--set", "parameters.E=200000.01")[
            "stress.xx"
        ]
        assert column["passed"] is (way.startswith(("artifact", "expression"))), way


def test_a_whole_tensor_by_its_columns_in_a_file_and_by_another_artifact(tmp_path: Path) -> None:
    body = f"""
[[test]]
name = "elastic below the yield stress"
forces.strain = {{ xx.ramp = 1e-4, xy.ramp = 2e-4 }}
[test.expect.stress]
artifact = "{examples.path("elasticity")}"
parameters = {{ E = 200e3 }}
atol = 1e-8
"""
    file = written(tmp_path, body, "chaboche")
    columns = told(file)
    assert list(columns) == [f"stress.{name}" for name in ("xx", "yy", "zz", "yz", "xz", "xy")]
    assert all(column["passed"] for column in columns.values())
    columns = told(file, "--set", "expect.stress.parameters.E=210e3")
    assert not columns["stress.xy"]["passed"] and columns["stress.yz"]["passed"]


def test_a_value_for_each_point(tmp_path: Path) -> None:
    body = "[[test]]\nparameters.E = [1.0, 2.0]\n[test.expect.stress.xx]\n"
    per_point = f"points = [[1.0, [{LAME / 200e3 * 0.01}, {LAME / 200e3 * 0.03}]]]\n"
    column = told(written(tmp_path, body + per_point))["stress.xx"]
    assert column["missed"] == 1 and column["point"] == [1] and column["compared"] == 2
    assert column["value"] == pytest.approx(LAME / 100e3 * 0.01)
    three = refusal(tmp_path, body.partition("\n")[2] + "constant = [1.0, 2.0, 3.0]\n")
    assert "values for the points (3,), but results are of (2,)" in three


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_an_expected_value_for_all_points(tmp_path: Path, steps: int) -> None:
    """With as many points as times, times were taken for points."""
    factor = LAME / 200e3
    body = f"""
[[test]]
times.steps = {steps}
times.end = 1.0
parameters.E = [200e3, 200e3, 200e3]
expect.stress.xx.ramp = {LAME * 0.01}
expect.strain.xx.expression = "0.01 * t"
[[test]]
times.steps = {steps}
times.end = 1.0
constants.c = [1, 1, 1]
expect.strain.xx.expression = "strain.xx + t * 0 * c"
expect.stress.xx.expression = "{factor} * E * strain.xx"
"""
    done = verify(written(tmp_path, body), "--json")
    assert done.exit_code == 0, done.output
    for test in json.loads(done.stdout)["tests"]:
        assert [each["missed"] for each in test["columns"]] == [0, 0]


def test_an_artifact_given_to_the_command_is_in_the_place_of_the_files(tmp_path: Path) -> None:
    body = "[[test]]\n[test.expect]\nequivalent_plastic_strain.constant = 0.0\n"
    file = written(tmp_path, body, "isotropic_hardening")
    assert verify(file).exit_code == 1
    done = verify(file, examples.path("elasticity"))
    assert "unknown variable 'equivalent_plastic_strain'" in done.output


# ------------------------------------------------------------------------------------------------
# Failures
# ------------------------------------------------------------------------------------------------


def test_a_failing_test_says_where_and_by_how_much(tmp_path: Path) -> None:
    body = """
[[test]]
name = "soft"
expect.stress.yy = { points = [[0.5, 576.9], [1.0, 1153.8]], rtol = 1e-3, atol = 0.1 }
[[test]]
name = "sound"
expect.strain.xx.ramp = 0.01
"""
    file, junit = written(tmp_path, body), tmp_path / "junit.xml"
    done = verify(file, "--junit", junit)
    assert done.exit_code == 0, done.output
    done = verify(file, "--junit", junit, "--set", "parameters.E=220e3")
    assert done.exit_code == 1
    line = (
        "soft: stress.yy in step 4 (t = 1) is 1269.230769; expected 1153.8, +- 1.25 (rtol 0.001, "
        "atol 0.1); 2 of 2 values differ, first in step 2"
    )
    assert line in done.output and "1 of 2 tests failed: soft" in done.output
    suite = next(ElementTree.parse(junit).iter("testsuite"))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    soft, sound = suite
    assert soft.get("name") == "soft" and soft[0].get("message") == line and not len(sound)


def test_steps_that_do_not_converge_and_numbers_that_are_none_fail(tmp_path: Path) -> None:
    body = "forces.strain.xx.ramp = 1.0\noptions.miters = 1\nstep.least = 1.0\n"
    line = refusal(tmp_path, body + "expect.strain.xx.ramp = 1.0", "chaboche")
    assert "step 1 failed at t = 0.25" in line
    for expression, value in (("0 / strain.yy", "nan"), ("exp(1e9)", "inf"), ("-9**9**9", "-inf")):
        bad = f"[[test]]\nexpect.stress.xx = {{ expression = '{expression}', atol = 1e300 }}"
        done = verify(written(tmp_path, bad))
        assert done.exit_code == 1 and f"expected {value}," in done.output


def test_an_expression_that_cannot_be_computed_ends_its_test_alone(tmp_path: Path) -> None:
    body = """
[[test]]
name = "lists"
parameters.E = [1, 2]
constants.c = [1, 2, 3]
expect.strain.xx.expression = "E * c"
[[test]]
name = "sound"
expect.strain.xx.expression = "strain.xx * (strain.xx > 0) - 0 * (t < 0.5)"
"""
    done = verify(written(tmp_path, body), "--junit", tmp_path / "j.xml")
    assert "1 of 2 tests failed: lists" in done.output, done.output
    suite = next(ElementTree.parse(tmp_path / "j.xml").iter("testsuite"))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "1")


def test_both_curves_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    body = "[[test]]\nname = 'a/b'\nexpect.stress.xx.ramp = 1.0\nexpect.strain.xx.ramp = 0.01\n"
    done = verify(written(tmp_path, body), "--figures", tmp_path / "figures")
    assert done.exit_code == 1
    (figure,) = (tmp_path / "figures").iterdir()
    assert figure.name == "1-a-b-stress.xx.png" and figure.name in done.output
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("", "test[0]: 'expect' is missing"),
        ("expect = {}", "test[0].expect: expected a table of outputs"),
        ("expect.stres.xx.constant = 0", "did you mean 'stress'?"),
        ("expect.stress.xX.constant = 0", "expect.stress.xX: unknown component 'xX'"),
        ("expect.stress.constant = 0", "has no component; expected one of xx"),
        ("expect.stress.xx = 0", "expected a table with one of constant"),
        ("expect.stress.xx = {constant = 0, ramp = 1}", "exactly one of"),
        ("expect.stress.xx = {constant = 0, atoll = 1}", "unknown key 'atoll'"),
        ("expect.stress.xx = {constant = 0, atol = -1}", "expected a number, 0 at least"),
        ("expect.stress.xx = {constant = 0, at = [1, 1]}", "a list of increasing times"),
        ("expect.stress.xx = {constant = 0, at = [2]}", "from time 2 to 2, but [times] goes"),
        ("expect.stress.xx = {points = [[0.5, 1]], at = 'steps'}", "but its values go from 0.5"),
        ("expect.stress.xx = {constant = 0, between = [2, 3]}", "no time is left"),
        (
            "expect.stress.xx.expression = 'E * strain.xq'",
            "unknown column, constant or parameter 'strain.xq'; did you mean 'strain.xz'? The "
            "columns, constants or parameters are: t, strain.xx",
        ),
        (
            "parameters.E = [1, 2]\nconstants.c = [1, 2, 3]\nexpect.stress.xx.expression = 'E * c'",
            "expect.stress.xx.expression: holds lists of different lengths",
        ),
        ("expect.stress.xx.expression = '__import__(\"os\")'", "no function '__import__'"),
        ("expect.stress.xx.expression = 'strain.xx.real[0]'", "may not hold 'strain.xx.real[0]'"),
        ("expect.stress.xx.expression = '1 +'", "no expression"),
        (
            "constants.t = 1\nexpect.stress.xx.expression = 't'",
            "constants.t: is a column of the results, too",
        ),
        ("expect.stress.xx.file = 'none.csv'", "none.csv: "),
        ("expect.stress.xx.artifact = 'none'", "none"),
        ("forces.strain.xx.rampe = 1\nexpect.strain.xx.constant = 0", "forces.strain.xx"),
    ],
)
def test_what_cannot_be_made_names_the_key(tmp_path: Path, test: str, expected: str) -> None:
    assert expected in refusal(tmp_path, test)


def test_a_file_without_tests_or_tolerances(tmp_path: Path) -> None:
    file = tmp_path / "verify.toml"
    for text, expected in {
        "": "'test' is missing",
        "test = []": "expected a list of [[test]]",
        "tests = 1": "unknown key 'tests'",
        "[[test]]\nname = 'a'\n[[test]]\nname = 'a'": "two tests have the name 'a'",
        f"[[test]]\nartifact = '{examples.path('elasticity')}'\ntimes = {{end = 1, steps = 1}}\n"
        "forces.strain.xx = 1.0\nexpect.stress.xx.constant = 0": "'rtol' or 'atol' is missing",
    }.items():
        file.write_text(text)
        done = verify(file)
        assert done.exit_code == 1 and expected in done.output, done.output
    assert "give a FILE.toml" in verify().output
    assert "or --template" in verify(file, "--template", "x").output


# ------------------------------------------------------------------------------------------------
# Closed forms
# ------------------------------------------------------------------------------------------------


def test_closed_forms_are_arithmetic() -> None:
    x = np.array([-1.0, 4.0])
    values = {"x": x, "a.b": 2.0 * x, "3.xy": x}
    expected: dict[str, Any] = {
        "2**-1 * x + a.b / 4": x,
        "sqrt(abs(x)) if x > 0 else -x": [1.0, 2.0],
        "min(x, 0) - max(x, 0)": [-1.0, -4.0],
        "'3.xy' * (x >= 0)": [0.0, 4.0],
        "exp(log(abs(x))) * sign(+x)": x,
        "(x > 0) - (x < 0)": [-1.0, 1.0],
        "(x > 0) + (x >= 4)": [0.0, 2.0],
        "-(x > 0)": [0.0, -1.0],
        "sign(x < 0)": [1.0, 0.0],
        "exp(x >= 0)": [1.0, np.e],  # of half precision it was
        "1 if (x > 0) * 2 else 3": [3.0, 1.0],
    }
    for text, value in expected.items():
        np.testing.assert_allclose(Expression(text)(values), value, rtol=1e-15, err_msg=text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x; y", "x = 1", "lambda: 1", "[x]", "f'{x}'", "x[0]", "x.y()", "min(*x)", "x and y"),
        *("min(x, key=y)", "exp(1, 2)", "True", "1j", "None", "x < y < z", "(x := 1)", "x if y"),
        *("(" * 3000, "-" * 3000 + "x", "lambda: " * 400 + "1", "+".join("x" * 1500), "x" * 9000),
        *("await x", "x @ y", "x // y", "9" * 3990 + "0" * 9, "().__class__", "'a'.join", "\0"),
    ],
)
def test_what_is_no_closed_form_is_refused(text: str) -> None:
    if text in ("'a'.join", "9" * 3990 + "0" * 9):  # a name; an infinite number
        Expression(text)
        return
    with pytest.raises(ValueError, match=r"it |takes|no function"):
        Expression(text)
