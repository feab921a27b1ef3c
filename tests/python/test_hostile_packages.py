"""What tells of packages without loading them reads no more than they hold."""

from __future__ import annotations

import json
import shutil
import tracemalloc
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from native import PREBUILT

from neml2_capi import FatalError, Model, examples
from neml2_capi.artifact.files import arity, read_package

pytestmark = pytest.mark.numbers


def written(path: Path, entries: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for suffix, content in entries.items():
            archive.writestr(f"m/data/aotinductor/model/x{suffix}", content)
    return path


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    zeros = bytes(1 << 24)
    entries = {".wrapper_metadata.json": b"{}", ".wrapper.so": zeros, ".wrapper.cpp": zeros}
    path = written(tmp_path / "bomb.pt2", entries, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    assert arity(path) is None
    assert read_package(path).target == "unknown"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(zeros) / 4


@pytest.mark.parametrize("document", [b"[" * 100000, b"[]", b"\xff", b""], ids=len)
def test_a_malformed_document_is_unknown(tmp_path: Path, document: bytes) -> None:
    path = written(tmp_path / "m.pt2", {".wrapper_metadata.json": document})
    assert read_package(path).target == "unknown"


def test_numbers_are_sensible(tmp_path: Path) -> None:
    source = b": AOTInductorModelBase(" + b"9" * 10000 + b", 1,"
    assert arity(written(tmp_path / "m.pt2", {".wrapper.cpp": source})) is None


def test_doctor_tells_what_is_wrong_with_hostile_files(tmp_path: Path) -> None:
    pytest.importorskip("click")
    from neml2_capi.cli.findings import examine

    root = Path(shutil.copytree(PREBUILT / "elasticity", tmp_path / "elasticity"))
    (root / "metadata.json").write_bytes(b"[" * 1000000)
    assert any("nested" in finding.problem for finding in examine(root).findings)


def test_doctor_and_inspect_read_hostile_kernels(tmp_path: Path) -> None:
    pytest.importorskip("click")
    pytest.importorskip("rich")
    from neml2_capi.cli.findings import examine
    from neml2_capi.cli.summary import summary

    root = Path(shutil.copytree(examples.path("elasticity"), tmp_path / "elasticity"))
    file = root / "kernels" / "float64" / "kernels.json"
    good = json.loads(file.read_text())
    del good["metadata_checksum"]
    hostile = [
        "[" * 100000,
        "{}",
        json.dumps({**good, "objects": [{}]}),
        json.dumps({**good, "kernels": {"a": 1}}),
        json.dumps({**good, "missing": None}),
    ]
    for document in hostile:
        file.write_text(document)
        assert any("kernels.json" in finding.problem for finding in examine(root).findings), (
            document[:60]
        )
        assert summary(root, None)["inputs"]


@pytest.mark.parametrize("name", ["../float64/elasticity.x86-64-v3.so", "/tmp/kernels.so", ""])
def test_kernels_are_loaded_from_their_folder_alone(tmp_path: Path, name: str) -> None:
    root = Path(shutil.copytree(examples.path("elasticity"), tmp_path / "elasticity"))
    file = root / "kernels" / "float64" / "kernels.json"
    document = json.loads(file.read_text())
    for entry in document["objects"]:
        entry["file"] = name
    file.write_text(json.dumps(document))
    with pytest.raises(FatalError, match="expected the plain name of a file") as caught:
        Model(root)
    assert "kernels.json" in str(caught.value)
