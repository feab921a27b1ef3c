"""The directory of a sweep, each file of it damaged in each way: an error of ours, or it mends."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damaging import (
    OF_ANY,
    OF_FILES,
    SETS,
    Damage,
    a_folder,
    a_loop,
    a_pipe,
    called,
    in_json,
    made,
    put,
    removed,
    replaced,
    right,
)
from patience import PATIENCE

from neml2_capi import FatalError, SweepResults, sweep

pytestmark = [pytest.mark.filterwarnings("ignore:batch = 3"), pytest.mark.numbers]


def same(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    return parameters


# ------------------------------------------------------------------------------------------------
# What a file becomes
# ------------------------------------------------------------------------------------------------


def rewritten(change: Callable[[dict[str, Any]], Any]) -> Damage:
    """An npz file with other arrays."""

    def damage(path: Path) -> None:
        with np.load(path) as loaded:
            arrays = dict(loaded)
        change(arrays)
        np.savez(path, **arrays)

    return damage


def entry(name: str, header: dict[str, Any], data: bytes, **options: Any) -> Damage:
    """An npz file one of whose entries is written byte by byte."""

    def damage(path: Path) -> None:
        with np.load(path) as loaded:
            arrays = dict(loaded)
        arrays.pop(name, None)
        np.savez(path, **arrays)
        stream = io.BytesIO()
        np.lib.format.write_array_header_1_0(stream, header)
        with zipfile.ZipFile(path, "a", **options) as archive:
            archive.writestr(f"{name}.npy", stream.getvalue() + data)

    return damage


def header(shape: tuple[int, ...], dtype: str = "<f8") -> dict[str, Any]:
    return {"shape": shape, "descr": dtype, "fortran_order": False}


KEY = "__items__"
OF_RESULTS: dict[str, Damage] = {
    **OF_FILES,
    "three numbers over one row": rewritten(lambda f: f.update({KEY: np.arange(3)})),
    "no numbers": rewritten(lambda f: f.pop(KEY)),
    "numbers of another type": rewritten(lambda f: f.update({KEY: f[KEY] * 1.0})),
    "numbers that are NaN": rewritten(lambda f: f.update({KEY: f[KEY] * np.nan})),
    "a single number": rewritten(lambda f: f.update({KEY: f[KEY][0]})),
    "numbers twice": rewritten(lambda f: f.update({KEY: f[KEY] * 0})),
    "numbers below 0": rewritten(lambda f: f.update({KEY: -1 - f[KEY]})),
    "numbers beyond the sets": rewritten(lambda f: f.update({KEY: 100 + f[KEY]})),
    "numbers of others": rewritten(lambda f: f.update({KEY: 5 - f[KEY]})),
    "fewer rows": rewritten(lambda f: f.update({"sum": f["sum"][:1]})),
    "more rows": rewritten(lambda f: f.update({"row": np.zeros((7, 3))})),
    "no rows": rewritten(lambda f: f.update({"row": np.zeros(())})),
    "objects": rewritten(lambda f: f.update({"row": np.array([{}, [], ()], dtype=object)})),
    "a header of objects": entry("row", header((3,), "|O"), b"x" * 24),
    "a header of terabytes": entry("row", header((3, 10**12)), b""),
    "a negative header": entry("row", header((3, -1)), b""),
    "data that is too short": entry("row", header((3, 3)), b"x" * 71),
    "data that is too long": entry("row", header((3, 3)), b"x" * 73),
    "a bomb": entry(
        "row", header((3, 10**6)), bytes(3 * 8 * 10**6), compression=zipfile.ZIP_DEFLATED
    ),
    "no array": lambda path: zipfile.ZipFile(path, "a").writestr("row", "text"),
    "an entry twice": lambda path: zipfile.ZipFile(path, "a").writestr("row.npy", "text"),
}
OF_PARAMETERS: dict[str, Damage] = {
    **OF_FILES,
    "another value": rewritten(lambda f: f["a"].__setitem__(3, 7.0)),
    "NaN": rewritten(lambda f: f["a"].__setitem__(3, np.nan)),
    "fewer": rewritten(lambda f: f.update({"a": f["a"][:3]})),
    "no column": rewritten(lambda f: f.clear()),
    "a column more": rewritten(lambda f: f.update(c=f["a"])),
    "another type": rewritten(lambda f: f.update(a=f["a"].astype("f4"))),
    "objects": rewritten(lambda f: f.update(a=np.array([{}] * 9, dtype=object))),
    "terabytes": entry("a", header((10**12,)), b""),
}
VALUES: tuple[Any, ...] = (
    None,
    3,
    -1,
    10**400,
    1.5,
    float("nan"),
    "x",
    True,
    [],
    [1],
    {},
    {"x": 1},
)


def without(key: str) -> Damage:
    *above, last = key.split(".")

    def change(document: dict[str, Any]) -> None:
        (document[above[0]] if above else document).pop(last)

    return in_json(change)


def alone(value: Any) -> Damage:
    return in_json(lambda _: [value])


def each_key() -> dict[str, Damage]:
    damages: dict[str, Damage] = {}
    for key in ("format", "store", "digests", "digests.run", "digests.parameters"):
        damages[f"no {key}"] = without(key)
        for value in VALUES:
            damages[f"{key} = {str(value)[:9]}"] = put(key, value)
    return damages


OF_SWEEP: dict[str, Damage] = {
    **OF_FILES,
    **each_key(),
    **{f"{str(value)[:9]} alone": alone(value) for value in VALUES},
    "deep": replaced(b"[" * 10**5),
    "deep tables": replaced(b'{"a":' * 10**5 + b"1" + b"}" * 10**5),
    "a key more": in_json(lambda d: d.update(more=1)),
}
OF_FAILURES: dict[str, Damage] = {
    **OF_FILES,
    **{
        f"item {str(value)[:9]}": replaced(
            b"\n" + json.dumps({"item": value, "type": "E", "message": "m"}).encode()
        )
        for value in VALUES
    },
    **{
        f"message {str(value)[:9]}": replaced(
            b"\n" + json.dumps({"item": 1, "type": "E", "message": value}).encode()
        )
        for value in VALUES
        if value != "x"
    },
    "a list": replaced(b"[]\n3\nnull\n"),
    "deep": replaced(b"[" * 10**5),
    "item of no set": replaced(b'{"item": 99, "type": "E", "message": "m"}'),
}
OF_LOCK = {name: OF_ANY[name] for name in ("a folder", "a loop", "a pipe", "random")}
TABLE: dict[str, dict[str, Damage]] = {
    "sweep.json": OF_SWEEP,
    "parameters.npz": OF_PARAMETERS,
    "failures.jsonl": OF_FAILURES,
    "items/00000003.npz": OF_RESULTS,
    "items": {"missing": removed, "a file": replaced(b"x"), "a loop": a_loop},
    ".lock": OF_LOCK,
    "parameters.part": {"a folder": a_folder, "a pipe": a_pipe},
    "items/00000003.part": {"a folder": a_folder, "a pipe": a_pipe},
    "sweep.part": {"a folder": a_folder},
}
#: Such a directory is refused; all others are mended by the same call.
REFUSED = {"sweep.json": set(OF_SWEEP), "failures.jsonl": {"a folder", "a loop", "a pipe"}}
REFUSED[".lock"] = {"a folder", "a loop", "a pipe"}


@pytest.mark.full("files damaged at each key")
@pytest.mark.parametrize("file", TABLE)
def test_a_damaged_directory_is_refused_by_its_file_or_mended(tmp_path: Path, file: str) -> None:
    """Read and made again: nothing that was computed well is lost, or wrong."""
    whole = made(tmp_path / "whole", batch=3)
    for number, (name, damage) in enumerate(TABLE[file].items()):
        folder = shutil.copytree(tmp_path / "whole", tmp_path / str(number))
        (folder / file).touch() if not (folder / file).exists() else None
        damage(folder / file)
        kept = {
            path.name: path.read_bytes()
            for path in folder.glob("items/*.npz")
            if path.is_file() and path.name not in file
        }
        try:
            right(SweepResults.load(folder), whole)
        except FatalError as error:
            assert Path(file).name in str(error), (name, error)
            assert "again" in str(error) or "copy" in str(error), (name, error)
        try:
            results = made(folder, batch=3)
        except FatalError as error:
            assert name in REFUSED.get(file, set()), (name, error)
            assert Path(file).name in str(error) or "differs in" in str(error), (name, error)
        else:
            assert name not in REFUSED.get(file, set()) or file == "sweep.json", name
            right(results, whole)
            assert results.done.sum() == 7 and list(results.failures) == [1, 7], name
            allowed = {"items": {*range(9)} - {1, 7}, "failures.jsonl": {1, 7}}
            allowed["items/00000003.npz"] = {3, 4, 5}
            assert set(called(folder)) <= allowed.get(file, set()), name
            right(SweepResults.load(folder), whole)
        for path, content in kept.items():
            if (folder / "items" / path).exists():
                assert (folder / "items" / path).read_bytes() == content, (name, path)
        shutil.rmtree(folder)


def test_a_copy_of_a_file_counts_once(tmp_path: Path) -> None:
    whole = made(tmp_path / "s", batch=3)
    items = tmp_path / "s" / "items"
    shutil.copy(items / "00000003.npz", items / "00000008.npz")
    shutil.copy(items / "00000003.npz", items / "99999999.npz")
    right(SweepResults.load(tmp_path / "s"), whole)
    right(made(tmp_path / "s", batch=3), whole)
    assert called(tmp_path / "s") == []


def test_what_is_put_aside_is_never_lost(tmp_path: Path) -> None:
    made(tmp_path / "s", batch=3)
    file = tmp_path / "s" / "items" / "00000003.npz"
    for number in range(3):
        file.write_bytes(f"damage {number}".encode())
        made(tmp_path / "s", batch=3)
    kept = sorted(path.read_text() for path in file.parent.glob("*.damaged*"))
    assert kept == ["damage 0", "damage 1", "damage 2"]


def test_loading_changes_no_file(tmp_path: Path) -> None:
    made(tmp_path / "s", batch=3)
    file = tmp_path / "s" / "items" / "00000003.npz"
    file.write_bytes(b"")
    before = sorted(tmp_path.rglob("*"))
    assert not SweepResults.load(tmp_path / "s").done[3]
    assert sorted(tmp_path.rglob("*")) == before


def test_results_of_any_name_and_type_are_kept(tmp_path: Path) -> None:
    def odd(parameters: Mapping[str, Any]) -> dict[str, Any]:
        whole = parameters["a"] < 2
        return {"file": 1, "allow_pickle": 2, "a/b": 3, "x": 1 if whole else 1.5, "": 4}

    results = sweep(odd, {"a": [0, 1, 2, 3]}, directory=tmp_path / "s")
    assert not results.failures and results["x"].tolist() == [1.0, 1.0, 1.5, 1.5]
    assert dict(SweepResults.load(tmp_path / "s").at(0)) == dict(results.at(0))
    failed = sweep(lambda parameters: {KEY: 1}, {"a": [0]}, directory=tmp_path / "t")
    assert "a result '__items__'" in failed.failures[0].message


# ------------------------------------------------------------------------------------------------
# Two at once
# ------------------------------------------------------------------------------------------------


STARTED, GO = threading.Event(), threading.Event()


def waiting(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    STARTED.set()
    assert GO.wait(PATIENCE)
    return parameters


def test_two_threads_do_not_share_a_directory_and_the_first_keeps_its_lock(tmp_path: Path) -> None:
    options = {"directory": tmp_path / "s"}
    first = threading.Thread(target=sweep, args=(waiting, SETS), kwargs=options)
    first.start()
    assert STARTED.wait(PATIENCE)
    (tmp_path / "link").symlink_to(tmp_path / "s")
    for directory in ("s", "link", "s/../s"):
        with pytest.raises(FatalError, match="in use: another thread of this process makes"):
            sweep(waiting, SETS, directory=tmp_path / directory)
    code = (
        "import sys; from neml2_capi import sweep; sweep(dict, {'a': [1]}, directory=sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "s")], capture_output=True, text=True
    )
    GO.set()
    first.join()
    assert "in use: another process makes this sweep" in done.stderr
    assert SweepResults.load(tmp_path / "s").done.all()
    assert not (tmp_path / "s" / ".lock").exists()


def test_threads_sweep_in_directories_of_their_own(tmp_path: Path) -> None:
    found: list[SweepResults] = []

    def own(number: int) -> None:
        sets = {"a": np.arange(5.0) + number}
        found.append(sweep(same, sets, directory=tmp_path / str(number)))

    threads = [threading.Thread(target=own, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(results.done.all() for results in found)


def test_a_sweep_inside_itself_is_refused(tmp_path: Path) -> None:
    def inside(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        sweep(same, SETS, directory=tmp_path / "s")
        return parameters

    results = sweep(inside, SETS, directory=tmp_path / "s")
    assert "in use: another thread of this process" in results.failures[0].message
