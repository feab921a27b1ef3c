"""Capsules that were written to fill memory, or that lack what a replay needs, are refused."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import error
from states import Artifacts
from test_capsule import document_of, edited, fail, only, step

from neml2_capi import FatalError, Model
from neml2_capi.cli.capsule import read_capsule

pytestmark = pytest.mark.numbers


@pytest.fixture
def capsule(artifacts: Artifacts, tmp_path: Path) -> Iterator[Path]:
    """A capsule that can be replayed."""
    folder = tmp_path / "capsules" / "whole"
    with Model(artifacts["combined_hardening"]) as model:
        model.options["capsule"] = folder
        fail(model, step(model))
    yield only(folder)


def with_entry(file: Path, name: str, content: bytes, method: int = zipfile.ZIP_STORED) -> Path:
    """A copy with one entry instead of another, or beside them."""
    copy = file.parent.parent / "changed.npz"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(copy, "w") as new:
        for entry in old.namelist():
            if entry != name:
                new.writestr(entry, old.read(entry))
        new.writestr(name, content, method)
    return copy


def npy(array: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def refused(file: Path, words: str) -> None:
    with pytest.raises(FatalError, match=words) as caught:
        read_capsule(file)
    assert str(file) in str(caught.value)


def test_a_bomb_is_not_unpacked(capsule: Path) -> None:
    zeros = npy(np.zeros(1 << 22))
    bomb = with_entry(capsule, "inputs/t.npy", zeros, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    refused(bomb, "compressed")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(zeros) / 4


def test_an_array_has_the_numbers_that_its_header_tells(capsule: Path) -> None:
    header = npy(np.zeros(8)).replace(b"(8,), }           ", b"(80000000000,), } ")
    refused(with_entry(capsule, "inputs/t.npy", header), "inputs/t.npy")
    refused(with_entry(capsule, "inputs/t.npy", npy(np.array(["a", "b"]))), "numbers")
    refused(with_entry(capsule, "inputs/t.npy", npy(np.array([{}], dtype=object))), "numbers")
    for header in (b"", b"\x93NUMPY\x01\x00\xff\xff(", b"\x93NUMPY\x01\x00\x04\x00((((", b"{" * 64):
        refused(with_entry(capsule, "inputs/t.npy", header), "is not a capsule")


def test_a_document_is_small_and_flat(capsule: Path) -> None:
    for content in (b"[" * 100000, b"{}", b"[]", b"nothing", b"\xff", b" " * (1 << 25)):
        refused(with_entry(capsule, "capsule.json", content), "is not a capsule")


def fields_of(document: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in document.items():
        yield (*path, key)
        if isinstance(value, dict) and key not in ("files", "options"):
            yield from fields_of(value, (*path, key))


def change(path: tuple[str, ...], value: Any) -> Callable[[Any], None]:
    def apply(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        if value is None:
            del document[path[-1]]
        else:
            document[path[-1]] = value

    return apply


#: What a replay does not read.
FREE = {("what",), ("subject",), ("library", "provider"), ("host", "process")}


def test_every_field_that_is_read_is_checked(capsule: Path) -> None:
    document = document_of(capsule)
    for path in fields_of(document):
        if path not in FREE and path != ("views",):  # which earlier libraries did not write
            refused(edited(capsule, change(path, None)), path[-1])
        if path not in FREE and path != ("format",):
            refused(edited(capsule, change(path, [{}])), path[-1])


def test_files_outside_of_the_artifact_are_not_read(capsule: Path) -> None:
    files = {"../../secret": {"bytes": 1, "crc32": "0"}}
    copy = edited(capsule, change(("artifact", "files"), files))
    artifact = Path(document_of(capsule)["artifact"]["path"])
    (difference,) = read_capsule(copy).differences(artifact)
    assert "missing" in difference


@pytest.mark.parametrize(
    ("entry", "content"),
    [
        ("inputs/strain.npy", np.zeros((2, 5))),
        ("inputs/nothing.npy", np.zeros(6)),
        ("points.npy", np.arange(3)),
        ("points.npy", np.zeros(6)),
        ("report/status.npy", np.zeros(2, np.int32)),
        ("parameters/nothing.npy", np.zeros(6)),
    ],
)
def test_arrays_that_do_not_fit_are_named(capsule: Path, entry: str, content: Any) -> None:
    copy = with_entry(capsule, entry, npy(content))
    assert str(copy) in error("replay", copy, "--json")


def test_bytes_of_any_kind_are_refused(capsule: Path) -> None:
    rng = np.random.default_rng(1)
    good = capsule.read_bytes()
    copy = capsule.parent.parent / "damaged.npz"
    for _ in range(100):
        damaged = bytearray(good)
        for place in rng.integers(0, len(good), 8):
            damaged[place] = rng.integers(0, 256)
        copy.write_bytes(damaged)
        try:
            read_capsule(copy)
        except FatalError:
            continue
    assert json.loads(json.dumps(document_of(capsule)))["format"] == 1
