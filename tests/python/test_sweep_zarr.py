"""The Zarr store of a sweep, each file of it damaged in each way: an error of ours, or it mends."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from damaging import OF_FILES, Damage, made, put, right

from neml2_capi import FatalError, SweepResults, sweep

pytestmark = [pytest.mark.filterwarnings("ignore:batch = 3"), pytest.mark.numbers]

OF_ARRAYS: dict[str, Damage] = {
    **OF_FILES,
    **{
        f"{key} = {str(value)[:9]}": put(key, value)
        for key in ("shape", "data_type", "chunk_grid", "codecs", "attributes")
        for value in (None, 3, "int64", [4], {}, {"names": 3, "forms": 3}, {"forms": {"x": 1}})
    },
}


@pytest.mark.full("zarr")
@pytest.mark.parametrize(
    "file",
    [
        "zarr.json",
        "done/zarr.json",
        "results/zarr.json",
        "results/row/zarr.json",
        "done/c/0",
        "results/row/c/3/0",
        "results/row",
        "results",
        "done",
        "",
    ],
)
def test_a_damaged_store_of_zarr_is_refused_by_its_file_or_mended(
    tmp_path: Path, file: str
) -> None:
    pytest.importorskip("zarr")
    whole = made(tmp_path / "whole", store="zarr")
    place = Path("results.zarr") / file
    whole_is_folder = (tmp_path / "whole" / place).is_dir()
    for number, (name, damage) in enumerate((OF_ARRAYS if "json" in file else OF_FILES).items()):
        if whole_is_folder and name in ("cut", "flipped"):
            continue
        folder = shutil.copytree(tmp_path / "whole", tmp_path / str(number))
        damage(folder / place)
        readers: list[Callable[[Path], SweepResults]]
        readers = [SweepResults.load, partial(made, store="zarr")]
        for mended, read in enumerate(readers):
            try:
                results = read(folder)
                right(results, whole)
                assert not mended or results.done.sum() == 7, name
            except FatalError as error:
                assert "results.zarr" in str(error) and "again" in str(error), (name, error)
        # The folder stays: tasks of Zarr may still write to it after an error.


@pytest.mark.full("zarr")
def test_sets_of_other_names_are_refused_by_zarr(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    with pytest.raises(FatalError, match=r"set 1 has the results b, and others a; .*store='npz'"):
        sweep(
            lambda parameters: {"b" if parameters["a"] else "a": 1.0},
            {"a": [0, 1]},
            directory=tmp_path / "s",
            store="zarr",
        )


@pytest.mark.full("zarr")
@pytest.mark.parametrize("name", ["../x", "a/./b", "", "/a", "a/", "a\\b", "a\0b"])
def test_a_result_that_zarr_cannot_name_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    pytest.importorskip("zarr")
    with pytest.raises(FatalError) as caught:
        sweep(lambda parameters: {name: 1.0}, {"a": [0, 1]}, directory=tmp_path / "s", store="zarr")
    assert f"result {name!r} of set 0 cannot be an array of Zarr" in str(caught.value)
    assert caught.value.subject == name and "store='npz'" in str(caught.value)


@pytest.mark.full("zarr")
def test_a_result_in_a_folder_of_zarr_is_found_again(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    sweep(lambda parameters: {"a/b": 1.0}, {"a": [0, 1]}, directory=tmp_path / "s", store="zarr")
    assert SweepResults.load(tmp_path / "s")["a/b"].tolist() == [1.0, 1.0]
