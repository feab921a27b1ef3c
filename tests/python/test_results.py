"""Results of a driver, as tables, data sets, plots and files."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from neml2_capi import FatalError, Model, Results, UnknownNameError, drive, examples

TIMES = np.linspace(0, 2, 3)
STRAIN = TIMES[:, None, None] * np.array([[1e-3, -3e-4, -3e-4, 0, 0, 2e-4]] * 2)


@pytest.fixture(scope="module")
def results() -> Results:
    return drive(Model(examples.path("chaboche")), TIMES, {"strain": STRAIN}, derivatives=True)


def test_columns_are_components_of_the_tensors(results: Results) -> None:
    columns = results.columns()
    assert columns["t"].shape == (3,) and columns["strain.xy"].shape == (3, 2)
    np.testing.assert_allclose(columns["strain.xy"], STRAIN[..., 5] / np.sqrt(2))
    np.testing.assert_array_equal(columns["stress.yy"], results["stress"][..., 1])
    assert not [name for name in columns if ":" in name]


def test_csv_has_a_row_for_each_time_and_point(results: Results, tmp_path: Path) -> None:
    results.save(tmp_path / "pull.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["pull.csv"]
    with (tmp_path / "pull.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["t"], row["point"]) for row in rows[2:4]] == [("1.0", "0"), ("1.0", "1")]
    found = [float(row["stress.xx"]) for row in rows]
    np.testing.assert_array_equal(found, results["stress"][..., 0].ravel())


def test_a_link_and_a_device_stay_where_they_are(results: Results, tmp_path: Path) -> None:
    for form in ("npz", "csv"):
        link, file = tmp_path / f"link.{form}", tmp_path / f"file.{form}"
        link.symlink_to(file)
        results.save(link)
        assert link.is_symlink() and Results.load(file) if form == "npz" else file.read_text()
        nowhere = tmp_path / f"nowhere.{form}"
        nowhere.symlink_to("/dev/null")
        results.save(nowhere)
        assert Path("/dev/null").is_char_device()
    assert len(list(tmp_path.iterdir())) == 6


def test_a_pipe_without_a_path_is_written(results: Results, tmp_path: Path) -> None:
    """The path that a link leads to was looked for, `pipe:[17]`, and there is none."""
    reading, writing = os.pipe()
    with open(reading, "rb") as stream:  # noqa: PTH123
        try:
            (tmp_path / "pipe.csv").symlink_to(f"/dev/fd/{writing}")
            results.save(tmp_path / "pipe.csv")
        finally:
            os.close(writing)
        results.save(tmp_path / "pull.csv")
        assert stream.read() == (tmp_path / "pull.csv").read_bytes()


def test_what_is_loaded_has_the_same_columns(results: Results, tmp_path: Path) -> None:
    results.save(tmp_path / "pull")
    loaded = Results.load(tmp_path / "pull.npz")
    assert list(loaded) == list(results)
    for name, values in results.columns().items():
        np.testing.assert_array_equal(loaded.columns()[name], values)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_has_the_columns(results: Results, library: str) -> None:
    pytest.importorskip(library)
    frame = results.to_frame(library)
    assert list(frame["point"]) == [0, 1] * 3
    np.testing.assert_array_equal(frame["stress.xx"], results["stress"][..., 0].ravel())


def test_a_data_set_has_the_columns(results: Results) -> None:
    pytest.importorskip("xarray")
    data = results.to_xarray()
    assert data["stress.xx"].dims == ("time", "point")
    np.testing.assert_array_equal(data["stress.xx"], results["stress"][..., 0])
    np.testing.assert_array_equal(data["t"], TIMES)


def test_a_plot_has_a_line_for_each_point(results: Results) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    figure = results.plot("strain.xx:stress.xx", "t:equivalent_plastic_strain")
    first, second = figure.axes
    assert [len(axes.lines) for axes in figure.axes] == [2, 2]
    np.testing.assert_array_equal(first.lines[1].get_ydata(), results["stress"][:, 1, 0])
    assert second.get_xlabel() == "t"
    assert results.plot("t:stress.xx", axes=first) is figure
    with pytest.raises(UnknownNameError, match="did you mean 'stress"):
        results.plot("t:stress.x")
    united = results.plot("t:stress.xx", units={"stress": "MPa", "t": "s"}).axes[0]
    assert (united.get_xlabel(), united.get_ylabel()) == ("t (s)", "stress.xx (MPa)")
    with pytest.raises(UnknownNameError, match="did you mean 'stress"):
        results.plot("t:stress.xx", units={"stres": "MPa"})
    with pytest.raises(FatalError, match="expected X:Y"):
        results.plot("stress.xx")


def test_what_would_take_the_names_alone_is_refused(results: Results) -> None:
    with pytest.raises(FatalError, match=r"to_frame\(\) or to_xarray\(\)"):
        np.asarray(results)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(FatalError, match="to_frame"):
        pandas.DataFrame(results)


def test_a_library_that_is_missing_is_named(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(FatalError, match="pip install pandas"):
        results.to_frame()
