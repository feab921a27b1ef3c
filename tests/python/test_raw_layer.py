"""The generated cffi layer, how the library is found, and what cannot be reached from above it."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import shutil
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import neml2_capi
from neml2_capi import Tensor
from neml2_capi._ffi.errors import last_message
from neml2_capi._ffi.library import ffi, lib

ROOT = Path(__file__).resolve().parents[2]
HEADER = "".join(
    (ROOT / "include" / name).read_text(encoding="utf-8")
    for name in ("neml2_capi.h", "neml2_capi_experimental.h")
)
CODE = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def check_generated(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.generate", "--check"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_what_is_generated_is_what_the_header_asks_for() -> None:
    checked = check_generated(ROOT)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("edited", "before", "after", "stale"),
    [
        (
            "include/neml2_capi.h",
            "NEML2_SINGULAR = 3",
            "NEML2_SINGULAR = 4",
            "neml2_capi/_ffi/raw.py",
        ),
        ("include/neml2_capi.h", "neml2_log_count(", "neml2_log_size(", "include/neml2_capi_c.f90"),
        (
            "include/neml2_capi_experimental.f90",
            "outcome = c_scheduler_create(",
            "outcome = c_scheduler_open(",
            "include/neml2_capi_experimental.f90",
        ),
        (
            "include/neml2_capi.f90",
            "!= call_bind_input: bind(neml2_input) -> name",
            "!= call_bind_input: bind(neml2_input) -> variable",
            "include/neml2_capi.f90",
        ),
    ],
)
def test_a_stale_file_is_named_with_the_command_that_mends_it(
    edited: str, before: str, after: str, stale: str, tmp_path: Path
) -> None:
    checked = check_edited(edited, before, after, tmp_path)
    assert checked.returncode == 1
    assert stale in checked.stderr
    assert "python3 build.py generate" in checked.stderr


def test_a_row_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    before, after = "!= model_dtype: model_inspect", "!= model_dtype: model_ask"
    checked = check_edited("include/neml2_capi.f90", before, after, tmp_path)
    assert checked.returncode == 1
    assert "neml2_model_ask" in checked.stderr.splitlines()[-1]


def check_edited(
    edited: str, before: str, after: str, tmp_path: Path
) -> subprocess.CompletedProcess[str]:
    """What the generator says of a copy in which a text is replaced."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    for path in (
        "CHANGELOG.md",
        "CMakeLists.txt",
        "include/neml2_capi.h",
        "include/neml2_capi_experimental.h",
        "include/neml2_capi_c.f90",
        "include/neml2_capi.f90",
        "include/neml2_capi_experimental.f90",
        "neml2_capi/_ffi/raw.py",
        "tests/abi/declarations.txt",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    source = (tmp_path / edited).read_text(encoding="utf-8")
    assert before in source
    (tmp_path / edited).write_text(source.replace(before, after, 1), encoding="utf-8")
    return check_generated(tmp_path)


@pytest.mark.parametrize("name", re.findall(r"NEML2_CAPI [^;(]*?\b(neml2_\w+)\(", CODE))
def test_every_function_of_the_header_is_in_the_library(name: str) -> None:
    assert ffi.typeof(getattr(lib, name)).kind == "function"


@pytest.mark.parametrize(("name", "value"), re.findall(r"\b(NEML2_[A-Z0-9_]+) = (-?\d+)", CODE))
def test_every_enumerator_has_its_value(name: str, value: str) -> None:
    assert getattr(lib, name) == int(value)


def test_importing_needs_no_parser_and_no_torch() -> None:
    done = python(
        "import sys, neml2_capi\nprint(sorted({'cffi', 'pycparser', 'torch'} & set(sys.modules)))"
    )
    assert done.stdout == "[]\n", done.stderr


def test_a_missing_library_is_named() -> None:
    done = python("import neml2_capi", NEML2_CAPI_LIBRARY="/nowhere/libneml2_capi.so.1")
    assert "ImportError: NEML2_CAPI_LIBRARY is set to /nowhere/libneml2_capi.so.1" in done.stderr


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "libneml2_capi.so.1"
    path.write_text("not ELF")
    done = python("import neml2_capi", NEML2_CAPI_LIBRARY=str(path))
    assert f"ImportError: {path} is not a usable neml2_capi library" in done.stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("version", [2000, 999])
def test_a_library_of_another_abi_is_refused(tmp_path: Path, version: int) -> None:
    source, path = tmp_path / "other.c", tmp_path / "libneml2_capi.so.1"
    source.write_text(f"int neml2_abi_version(void) {{ return {version}; }}\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source], check=True)
    done = python("import neml2_capi", NEML2_CAPI_LIBRARY=str(path))
    assert f"has the ABI version {version}" in done.stderr
    assert "ImportError" in done.stderr


def test_the_version_is_that_of_the_library() -> None:
    assert neml2_capi.__version__ == ffi.string(lib.neml2_version()).decode()


def test_each_thread_has_its_own_last_error() -> None:
    messages: list[str] = []

    def fail(ndim: int) -> None:
        lib.neml2_tensor_create(ffi.new("neml2_tensor **"), lib.NEML2_FLOAT64, ndim, ffi.NULL)
        barrier.wait()
        messages.append(last_message())

    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=fail, args=(ndim,)) for ndim in (-1, 999)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum("-1" in message for message in messages) == 1
    assert sum("999" in message for message in messages) == 1


def test_a_message_is_cut_to_the_buffer_and_its_whole_size_told() -> None:
    lib.neml2_tensor_create(ffi.NULL, lib.NEML2_FLOAT64, 0, ffi.NULL)
    whole = last_message()
    buffer, needed = ffi.new("char[8]", b"xxxxxxx"), ffi.new("int64_t *")
    assert lib.neml2_error_message(buffer, 8, needed) == lib.NEML2_OK
    assert ffi.string(buffer).decode() == whole[:7]
    assert needed[0] == len(whole.encode()) + 1


# DLPack at the C level; Python arrays take the shorter way through numpy.

_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_USED = b"used_dltensor_versioned"  # PyCapsule_SetName keeps the pointer, not a copy


class _Exported:
    """What a DLPack consumer is given: a capsule over the library's structure."""

    def __init__(self, tensor: Tensor) -> None:
        managed = ffi.new("struct DLManagedTensorVersioned **")
        assert lib.neml2_tensor_to_dlpack(managed, tensor._open()[0]) == lib.NEML2_OK
        address = int(ffi.cast("intptr_t", managed[0]))
        self.capsule = _api.PyCapsule_New(address, b"dltensor_versioned", None)

    def __dlpack__(self, **_: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_a_dlpack_consumer_keeps_the_memory_when_the_tensor_is_freed() -> None:
    tensor = Tensor.zeros((2, 3))
    tensor.numpy()[...] = [[1, 2, 3], [4, 5, 6]]
    torch = pytest.importorskip("torch")
    consumer = torch.from_dlpack(_Exported(tensor))
    assert consumer.data_ptr() == tensor.numpy().ctypes.data
    tensor.close()
    gc.collect()
    assert consumer.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_dlpack_tensor_is_taken_over_and_released_once() -> None:
    torch = pytest.importorskip("torch")
    producer = torch.arange(6, dtype=torch.float64).reshape(2, 3).t()
    alive = weakref.ref(producer.untyped_storage())
    capsule = producer.__dlpack__(max_version=(1, 0))
    address = _api.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
    out = ffi.new("neml2_tensor **")
    managed = ffi.cast("struct DLManagedTensorVersioned *", address)
    assert lib.neml2_tensor_from_dlpack(out, managed) == lib.NEML2_OK
    _api.PyCapsule_SetName(capsule, _USED)

    tensor = Tensor._adopt(ffi.gc(out, lib.neml2_tensor_free), None)
    del producer, capsule, alive
    gc.collect()
    assert tensor.shape == (3, 2)
    assert tensor.strides == (1, 3)
    assert tensor.numpy().tolist() == [[0, 3], [1, 4], [2, 5]]
    tensor.numpy()[...] = 0
    tensor.close()


def test_taking_over_calls_the_deleter_when_the_storage_is_free() -> None:
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("this numpy does not export versioned DLPack")
    array = np.arange(3.0)
    alive = weakref.ref(array)
    capsule = array.__dlpack__(max_version=(1, 0))
    out = ffi.new("neml2_tensor **")
    address = _api.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
    managed = ffi.cast("struct DLManagedTensorVersioned *", address)
    assert lib.neml2_tensor_from_dlpack(out, managed) == lib.NEML2_OK
    _api.PyCapsule_SetName(capsule, _USED)
    shared = ffi.new("neml2_tensor **")
    assert lib.neml2_tensor_share(shared, out[0]) == lib.NEML2_OK
    del array, capsule
    lib.neml2_tensor_free(out)
    assert out[0] == ffi.NULL
    assert alive() is not None
    lib.neml2_tensor_free(shared)
    assert alive() is None


def test_a_wrapped_tensor_calls_its_deleter_once_after_the_last_handle() -> None:
    calls = []

    @ffi.callback("void(void *)")  # type: ignore[untyped-decorator]
    def deleter(context: object) -> None:
        calls.append(context)

    data, context = ffi.new("double[6]"), ffi.cast("void *", 7)
    out, shared = ffi.new("neml2_tensor **"), ffi.new("neml2_tensor **")
    status = lib.neml2_tensor_wrap(
        out, data, lib.NEML2_FLOAT64, 2, [2, 3], ffi.NULL, deleter, context
    )
    assert status == lib.NEML2_OK
    assert lib.neml2_tensor_share(shared, out[0]) == lib.NEML2_OK
    lib.neml2_tensor_free(out)
    lib.neml2_tensor_free(out)
    assert calls == []
    lib.neml2_tensor_free(shared)
    assert calls == [context]
