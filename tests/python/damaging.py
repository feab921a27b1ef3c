"""A sweep whose files are damaged, and what damages a file; for tests of sweeps."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from neml2_capi import SweepResults, sweep

Damage = Callable[[Path], Any]
SETS = {"a": np.arange(9.0), "b": np.full(9, 0.5)}


def run(calls: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves a line for each call; two sets fail."""
    with Path(calls).open("a", encoding="utf-8") as lines:
        lines.write(f"{int(parameters['a'])}\n")
    if parameters["a"] in (1.0, 7.0):
        raise ValueError("fails")
    return {"sum": parameters["a"] + parameters["b"], "row": np.full(3, parameters["a"])}


def made(folder: Path, **options: Any) -> SweepResults:
    calls = folder.parent / "calls"
    calls.write_text("")
    return sweep(partial(run, str(calls)), SETS, directory=folder, **options)


def called(folder: Path) -> list[int]:
    return sorted(map(int, (folder.parent / "calls").read_text().split()))


def right(results: SweepResults, whole: SweepResults) -> None:
    """What is done is what was computed; what is not, is known not to be."""
    for item in np.flatnonzero(results.done):
        for name, value in whole.at(int(item)).items():
            np.testing.assert_array_equal(results.at(int(item))[name], value)
            np.testing.assert_array_equal(results[name][item], value)


def removed(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def replaced(content: bytes) -> Damage:
    def damage(path: Path) -> None:
        removed(path)
        path.write_bytes(content)

    return damage


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for place in range(0, len(content), 37):
        content[place] ^= 0x5A
    path.write_bytes(content)


def a_folder(path: Path) -> None:
    removed(path)
    path.mkdir()
    (path / "x").touch()


def a_loop(path: Path) -> None:
    removed(path)
    path.symlink_to(path.name)


def a_pipe(path: Path) -> None:
    removed(path)
    os.mkfifo(path)


OF_ANY: dict[str, Damage] = {
    "missing": removed,
    "empty": replaced(b""),
    "random": replaced(np.random.default_rng(1).bytes(3000)),
    "zeros": replaced(bytes(3000)),
    "not UTF-8": replaced(b"\xff\xfe{}"),
    "a folder": a_folder,
    "a loop": a_loop,
    "a pipe": a_pipe,
}
OF_FILES: dict[str, Damage] = {**OF_ANY, "cut": cut, "flipped": flipped}


def in_json(change: Callable[[dict[str, Any]], Any]) -> Damage:
    def damage(path: Path) -> None:
        document = json.loads(path.read_text())
        changed = change(document)
        path.write_text(json.dumps(document if changed is None else changed))

    return damage


def put(key: str, value: Any) -> Damage:
    """A value at a key, "digests.run"."""
    *above, last = key.split(".")

    def change(document: dict[str, Any]) -> None:
        table = document[above[0]] if above else document
        table[last] = value

    return in_json(change)
