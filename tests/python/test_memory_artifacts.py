"""Artifacts that are opened from an archive in memory."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from native import PREBUILT

from neml2_capi._ffi.errors import check, read_text
from neml2_capi._ffi.inspection import _POINTED_TO
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.source import native_source

pytestmark = pytest.mark.numbers


def packed(folder: Path, method: int = zipfile.ZIP_STORED) -> bytes:
    """Return the archive of a folder."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", method) as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                file.write(path, path.relative_to(folder))
    return archive.getvalue()


def stress_of(source: Any) -> list[float]:
    """Return the stress of combined_hardening or elasticity at a strain."""
    model, call = ffi.new("neml2_model **"), ffi.new("neml2_call **")
    check(lib.neml2_model_open(model, source))
    count = ffi.new("int64_t *")
    check(lib.neml2_model_variable_count(count, model[0], lib.NEML2_INPUT))
    check(lib.neml2_call_create(call, model[0]))
    zeros = ffi.new("double[]", 6)
    strain = ffi.new("double[]", [4e-3, -1e-3, -2e-3, 3e-3, -5e-3, 2e-3])
    stress = ffi.new("double[]", 6)
    time = ffi.new("double[]", [1.0])
    info = ffi.new("neml2_variable_info *", {"size": ffi.sizeof("neml2_variable_info")})
    for index in range(count[0]):
        check(lib.neml2_model_variable_inspect(info, model[0], lib.NEML2_INPUT, index))
        name = ffi.string(info.name)
        data = {b"strain": strain, b"t": time}.get(name, zeros)
        check(lib.neml2_call_bind(call[0], lib.NEML2_INPUT, name, data, lib.NEML2_FLOAT64, 6))
    check(lib.neml2_call_bind(call[0], lib.NEML2_OUTPUT, b"stress", stress, lib.NEML2_FLOAT64, 6))
    check(lib.neml2_call_run(call[0], 1))
    lib.neml2_call_free(call)
    lib.neml2_model_free(model)
    return list(stress)


def test_what_a_structure_points_to_lives_as_long_as_it() -> None:
    sources = [native_source(f"/place/{n}", name=f"name {n}") for n in range(1000)]
    for n, source in enumerate(sources):
        assert ffi.string(source.path) == f"/place/{n}".encode()
        assert ffi.string(source.name) == f"name {n}".encode()
    given = sources[0]
    del sources, source
    assert _POINTED_TO[given]
    assert len(_POINTED_TO) < 1000


def test_bytes_live_as_long_as_the_source_that_points_to_them() -> None:
    source = native_source(content=packed(PREBUILT / "elasticity"))
    assert any(stress_of(source))


@pytest.mark.parametrize("name", ["elasticity", "combined_hardening"])
def test_an_artifact_in_memory_gives_what_its_folder_gives(name: str) -> None:
    expected = stress_of(native_source(PREBUILT / name))
    assert any(expected)
    assert stress_of(native_source(content=packed(PREBUILT / name))) == expected


def test_kernels_alone_run_from_memory(tmp_path: Path) -> None:
    kernels = tmp_path / "kernels_only"
    shutil.copytree(PREBUILT / "elasticity", kernels, ignore=shutil.ignore_patterns("cpu"))
    file = kernels / "kernels" / "float64" / "kernels.json"
    document = json.loads(file.read_text())
    for kernel in document["kernels"]:
        kernel["package_checksum"] = None
    file.write_text(json.dumps(document))
    assert stress_of(native_source(content=packed(kernels))) == stress_of(native_source(kernels))


def test_a_description_is_whole_however_many_artifacts_were_opened() -> None:
    """It names the artifact by a number, and its length is asked for first."""
    source = native_source(content=packed(PREBUILT / "elasticity"))
    lengths = {
        len(json.dumps(json.loads(read_text(lib.neml2_source_describe, source)))) for _ in range(60)
    }
    assert len(lengths) == 1


def test_an_artifact_in_memory_is_described_as_its_folder_is() -> None:
    folder, memory = (
        json.loads(read_text(lib.neml2_source_describe, source))
        for source in (
            native_source(PREBUILT / "elasticity"),
            native_source(content=packed(PREBUILT / "elasticity")),
        )
    )
    for name in ("inputs", "outputs", "parameters"):
        assert memory[name] == folder[name]


WRONG = {
    "no archive": (b"no archive", "not a zip archive.* should be a zip archive of the artifact's"),
    "compressed": (packed(PREBUILT / "elasticity", zipfile.ZIP_DEFLATED), "entries must be stored"),
    "the folder above": (packed(PREBUILT), "metadata.json"),
}


@pytest.mark.parametrize("content, message", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_artifact_is_refused(content: bytes, message: str) -> None:
    model = ffi.new("neml2_model **")
    with pytest.raises(Exception, match=message):
        check(lib.neml2_model_open(model, native_source(content=content)))
    assert model[0] == ffi.NULL


def test_element_types_that_are_there_are_told() -> None:
    model = ffi.new("neml2_model **")
    source = native_source(content=packed(PREBUILT / "elasticity"))
    source.dtype = lib.NEML2_FLOAT32
    with pytest.raises(Exception, match=r"cpu/float32. Present: cpu/float64. Open it with dtype="):
        check(lib.neml2_model_open(model, source))
