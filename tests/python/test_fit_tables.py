"""Tables of measurements, as machines, spreadsheets and numpy write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neml2_capi import FatalError
from neml2_capi.fit import Experiment

ROWS = np.array([[0.0, 0.0, 0.0], [1.0, 1e-3, 200.0], [2.0, 2e-3, 300.0]])


def read(file: Path, text: str = "") -> Experiment:
    if text:
        file.write_text(text, encoding="utf-8")
    return Experiment.from_csv(file)


@pytest.mark.parametrize(
    "text",
    [
        "t,strain,stress\n0,0,0\n1,1e-3,200\n2,2e-3,300\n",
        "\ufeff# of a machine\n\nt,strain [%],stress [MPa]\n0,0,0\n1,0.1,200\n2,0.2,300\n\n",
        "t,strain (true) [%],stress (N/mm²)\n0,0,0\n1,0.1,200\n2,0.2,300\n",
        "t\tstrain\tstress\n0\t0\t0\n1\t1e-3\t200\n2\t2e-3\t300\n",
        "  t strain   stress\n  0 0 0\n  1 1e-3   200 \n2 2e-3 300\n",
        '"t";"strain";"stress"\r\n0;0;0\r\n1;1e-3;200\r\n2;2e-3;300\r\n',
        "t,strain,stress\ns,%,GPa\n0,0,0\n1,0.1,0.2\n2,0.2,0.3\n",
        "t;strain;stress\n[s];[µε];[N/mm^2]\n0;0;0\n1;1000;200\n2;2000;300\n",
        "Time / s\tStrain / %\tStress / MPa\n0\t0\t0\n1\t0.1\t200\n2\t0.2\t300\n",
        "Machine,A\nDate,\n\ntime (sec),eps (um/m),sigma (kPa)\n0,0,0\n1,1e3,2e5\n2,2e3,3e5\n",
    ],
    ids=[
        "csv",
        "comments",
        "remarks",
        "tabs",
        "blanks",
        "quoted",
        "units",
        "brackets",
        "slashes",
        "machine",
    ],
)
def test_separators_comments_and_units(tmp_path: Path, text: str) -> None:
    test = read(tmp_path / "a.csv", text)
    np.testing.assert_allclose(test.strain["xx"], ROWS[:, 1], rtol=1e-15)
    np.testing.assert_allclose(test.stress["xx"], ROWS[:, 2], rtol=1e-15)


@pytest.mark.parametrize("delimiter", [" ", ","])
def test_names_behind_the_mark_of_a_comment(tmp_path: Path, delimiter: str) -> None:
    """numpy.savetxt() puts a # before them."""
    header = delimiter.join(("t", "strain", "stress"))
    np.savetxt(tmp_path / "a.txt", ROWS, delimiter=delimiter, header=header)
    assert read(tmp_path / "a.txt").stress["xx"].tolist() == ROWS[:, 2].tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a line with names of columns"),
        ("t,strain,stress\n", "expected rows of numbers after the names"),
        ("0,0,0\n1,1e-3,200\n", "line 1 holds numbers; expected the names of its 3 columns"),
        ("# of a machine\n0,0,0\n", "line 2 holds numbers; expected the names"),
        ("t strain [%] stress\n0 0 0\n", "line 2 has 3 fields, and there are 4 names"),
        ("t,strain,strain,stress\n0,0,0,0\n", "'strain' and 'strain' could be the strain"),
        ("t,eps,strain [%],stress\n0,0,0,0\n", r"'eps' and 'strain \[%\]' could be the strain"),
        ("t,strain,stress [at]\n0,0,0\n", "unknown unit of stress 'at'.*say units = {stress = "),
        ("t,strain (axial),stress\n0,0,0\n", "unknown unit of strain 'axial'"),
        ("t,strain,stress\n0,0,0\n1,abc,2\n", "line 3, column 'strain': 'abc' is no number"),
        ("t,strain,stress\n0,0,0\n1,1,2,3\n", "line 3 has 4 fields, and there are 3 names"),
        ("t,strain,stress\n0,0,0\n1,1_0,2\n", "line 3, column 'strain': '1_0' is no number"),
        ("t,strain,stress\ns,at,MPa\n0,0,0\n", "unknown unit of strain 'at'"),
        ("t,strain,stress\n0,0,0\n1,900,2\n", "seems to be in microstrain. Divide it by 1e6"),
        ("t,axial strain,stress\n0,0,0\n", 'columns = {strain = "axial strain"}'),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.csv"
    file.touch()
    with pytest.raises(FatalError, match=message):
        read(file, text)


def test_another_encoding_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes("t,strain,stress [N/mm²]\n0,0,0\n".encode("latin-1"))
    with pytest.raises(FatalError, match=r"is no text in UTF-8: .* Save it as UTF-8"):
        read(file)


def test_a_name_is_matched_whole_before_its_unit_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("t,strain,strain [%],stress\n0,0,0,0\n1,1e-3,0.5,200\n", encoding="utf-8")
    chosen = {"t": "t", "stress": "stress"}
    test = Experiment.from_csv(file, columns={**chosen, "strain": "strain"})
    assert test.strain["xx"].tolist() == [0, 1e-3]
    test = Experiment.from_csv(file, columns={**chosen, "strain": "strain [%]"})
    assert test.strain["xx"].tolist() == [0, 0.005]


def test_rows_of_a_rate_may_repeat_a_strain_or_lack_it() -> None:
    """An extensometer repeats rows; a missing strain is no way to 0 and back."""
    nan, measured = np.nan, np.arange(6.0)
    test = Experiment.of("a", strain=[0, 1e-3, 1e-3, nan, 2e-3, 1e-3], stress=measured, rate=1e-3)
    assert test.t == pytest.approx([0, 1, 1.001, 2.001, 3.001])
    assert test.stress["xx"].tolist() == [0, 1, 2, 4, 5]
