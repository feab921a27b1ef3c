"""Times in files of neml2-capi run and verify: finite and increasing, else refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import command, error

from neml2_capi import FatalError, Model, drive, examples
from neml2_capi.fit import Experiment

pytestmark = pytest.mark.filterwarnings("error")
TIMES = "times = { end = 1.0, steps = 2 }\n"
FORCE = "forces.strain.xx = { file = 'test.csv', column = 'exx' }\n"
RAMP = "forces.strain.xx.ramp = 0.01\n"


def said(folder: Path, body: str, times: str = TIMES) -> str:
    """Return what neml2-capi run says against a file."""
    file = folder / "run.toml"
    file.write_text(f"artifact = '{examples.path('elasticity')}'\n{times}{body}")
    return error("run", file)


@pytest.mark.parametrize(
    "rows", ["0,0\ninf,1", "-inf,0\n2,1", "0,0\n1e400,1\n1e500,2", "0,0\nnan,1", "0,0\n2,1\n1,1"]
)
def test_times_of_a_file_are_finite(tmp_path: Path, rows: str) -> None:
    """Up to an infinite time nothing moved: the model was driven by zeros."""
    (tmp_path / "test.csv").write_text(f"t,exx\n{rows}\n")
    expected = "test.csv are not finite and increasing, with one for each row"
    assert expected in said(tmp_path, FORCE)
    head = f"artifact = '{examples.path('elasticity')}'\nrtol = 1.0\n{TIMES}{RAMP}"
    file = tmp_path / "verify.toml"
    file.write_text(f"{head}[[test]]\nexpect.strain.xx = {{ file = 'test.csv', column = 'exx' }}\n")
    assert expected in command("verify", file).stdout


@pytest.mark.parametrize("shape", [(0,), (3, 2)])
def test_times_of_an_array_are_a_list(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.savez(tmp_path / "test.npz", t=np.ones(shape), exx=np.ones(shape))
    assert "are not finite and increasing" in said(tmp_path, FORCE.replace("csv", "npz"))


@pytest.mark.parametrize("rows", ["0,0\n1,1e400", "0,0\n1,-inf\n2,1e308", "0,0\n1,nan"])
def test_values_of_a_file_are_finite(tmp_path: Path, rows: str) -> None:
    """A component that the file does not have was said to be NaN."""
    (tmp_path / "test.csv").write_text(f"t,exx\n{rows}\n")
    value = rows.split(",")[2].split()[0].replace("1e400", "inf")
    expected = f"strain.xx.column: has {value} in row 2; expected finite numbers"
    assert expected in said(tmp_path, FORCE)
    assert expected in said(tmp_path, FORCE.replace("}", ", scale = 1e10 }"))


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("{ start = -1e308, end = 1e308, steps = 2 }", "end: expected a time after the start"),
        ("{ list = [-1e308, 1e308] }", "list: expected a list of increasing times"),
    ],
)
def test_times_of_a_run_have_a_finite_distance(tmp_path: Path, times: str, message: str) -> None:
    assert f"times.{message}" in said(tmp_path, RAMP, f"times = {times}\n")
    points = "forces.strain.xx.points = [[-1e308, 0], [1e308, 1]]\n"
    assert "the times of the points do not increase over a finite" in said(tmp_path, points)


def test_times_of_arrays_are_compared_without_a_warning() -> None:
    with pytest.raises(FatalError, match="do not increase in step 2"):
        drive(Model(examples.path("elasticity")), [-1e308, 1e308, 0.0], {"strain": np.zeros(6)})
    with pytest.raises(FatalError, match="does not increase after row 1"):
        Experiment.of("pull", t=[-1e308, 1e308, 0.0], strain=[0.0, 0.01, 0.02], stress=[0, 1, 2])
