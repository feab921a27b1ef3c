"""Metadata that were changed since an artifact was compiled are noticed, if its kernels tell."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from native import PREBUILT
from test_memory_artifacts import packed

from neml2_capi import FatalError, Model, examples
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.source import native_source
from neml2_capi.artifact.files import describe
from neml2_capi.kernels.build import build
from neml2_capi.kernels.folder import checksum_of_metadata

pytestmark = pytest.mark.numbers

CHANGED = "not as it was when the model was compiled"


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    """A copy of an example, whose kernels tell the checksum of its metadata."""
    return Path(shutil.copytree(examples.path("elasticity"), tmp_path / "elasticity"))


def edit(artifact: Path, change: Callable[[Any], object]) -> None:
    file = artifact / "metadata.json"
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def harden(document: Any) -> None:
    document["parameters"][0]["values"][0] *= 2.0


def test_the_examples_tell_their_checksums() -> None:
    for name in ("elasticity", "chaboche", "isotropic_hardening"):
        folder = Path(examples.path(name)) / "kernels" / "float64"
        document = json.loads((folder / "kernels.json").read_text())
        assert document["metadata_checksum"] == checksum_of_metadata(folder)


def test_changed_metadata_are_refused_and_told_by_every_reader(artifact: Path) -> None:
    Model(artifact)
    edit(artifact, harden)
    for read in (Model, describe):
        with pytest.raises(FatalError, match=CHANGED) as caught:
            read(artifact)
        assert caught.value.status == lib.NEML2_ERROR_ARTIFACT
        assert str(artifact / "metadata.json") in str(caught.value)
    source = native_source(content=packed(artifact))
    with pytest.raises(FatalError, match=CHANGED):
        check(lib.neml2_model_open(ffi.new("neml2_model **"), source))


def test_doctor_tells_changed_metadata(artifact: Path) -> None:
    pytest.importorskip("click")
    from neml2_capi.cli.findings import examine

    def told() -> bool:
        return any(CHANGED in finding.problem for finding in examine(artifact).findings)

    assert not told()
    edit(artifact, harden)
    assert told()


def test_an_intended_change_is_taken_when_kernels_are_built(artifact: Path) -> None:
    edit(artifact, harden)
    folder = artifact / "kernels" / "float64"
    build(folder, [json.loads((folder / "kernels.json").read_text())["objects"][0]["target"]])
    assert Model(artifact).parameters


def test_artifacts_without_a_checksum_are_read_as_they_are(tmp_path: Path, artifact: Path) -> None:
    plain = Path(shutil.copytree(PREBUILT / "elasticity", tmp_path / "plain"))
    shutil.rmtree(plain / "kernels", ignore_errors=True)
    older = artifact / "kernels" / "float64" / "kernels.json"
    document = json.loads(older.read_text())
    del document["metadata_checksum"]
    older.write_text(json.dumps(document))
    for root in (plain, artifact):
        edit(root, harden)
        Model(root)


def test_a_path_of_any_bytes_is_an_error_that_tells_it(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    shutil.copytree(PREBUILT / "elasticity", path)
    with pytest.raises(FatalError, match="not UTF-8") as caught:
        describe(path)
    assert caught.value.status == lib.NEML2_ERROR_UNSUPPORTED
    model = ffi.new("neml2_model **")
    check(lib.neml2_model_open(model, native_source(path)))
    lib.neml2_model_free(model)
