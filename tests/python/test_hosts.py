"""The host may be anything: results are bitwise the same with torch, symbols of our names and no memfd."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest
from native import (
    CXX,
    LIBRARIES,
    LINK,
    PREBUILT,
    ROOT,
    TESTS,
    c_program,
    command,
    folder,
    run,
)

HOSTS = TESTS / "hosts"
EXAMPLE = ROOT / "examples" / "c" / "example.c"

found = importlib.util.find_spec("torch")
TORCH = Path(found.origin).parent / "lib" if found and found.origin else Path()
needs_torch = pytest.mark.skipif(found is None, reason="torch is not installed")


def python(script: str, *arguments: str | Path, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, HOSTS / script, PREBUILT, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=600,
    )
    assert done.returncode == 0, f"it ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.splitlines()


def split(lines: list[str]) -> tuple[list[str], set[str]]:
    """The results, and the names that were mapped."""
    results = [line for line in lines if line.startswith("result ")]
    return results, {line.removeprefix("mapped ") for line in lines if line.startswith("mapped ")}


@cache
def alone() -> list[str]:
    """The results in a process where nothing is in the way."""
    results, _ = split(python("history.py"))
    assert len(results) == 3 + 2 * 8 * 4
    return results


def test_without_torch_nothing_of_libtorch_is_mapped() -> None:
    results, mapped = split(python("history.py"))
    assert results == alone()
    assert any("neml2_capi" in name for name in mapped)
    assert not any("torch" in name for name in mapped)


@needs_torch
@pytest.mark.parametrize("when", ["before", "after"])
def test_torch_in_the_process_changes_no_bit(when: str) -> None:
    results, mapped = split(python("history.py", f"--{when}", "torch"))
    assert any("libtorch_cpu" in name for name in mapped)
    assert results == alone()


@needs_torch
def test_another_package_in_the_global_scope_changes_no_bit(tmp_path: Path) -> None:
    package = tmp_path / "package.so"
    with zipfile.ZipFile(PREBUILT / "viscoplastic/cpu/float64/viscoplastic_residual.pt2") as archive:
        (entry,) = [name for name in archive.namelist() if name.endswith(".wrapper.so")]
        package.write_bytes(archive.read(entry))
    results, _ = split(python("history.py", "--before", "torch", "--global", package))
    assert results == alone()


def test_input_checks_that_the_host_switches_on_change_no_bit() -> None:
    # Packages then refuse a batch of one, which this runs as well.
    results, _ = split(python("history.py", AOTI_RUNTIME_CHECK_INPUTS="1"))
    assert results == alone()


def test_without_memfd_a_file_that_is_gone_serves(tmp_path: Path) -> None:
    results, mapped = split(python("history.py", NEML2_CAPI_NO_MEMFD="1", TMPDIR=str(tmp_path)))
    assert results == alone()
    assert not any("memfd" in name for name in mapped)
    assert list(tmp_path.iterdir()) == []


def test_two_copies_of_the_library_do_not_meet(tmp_path: Path) -> None:
    shutil.copytree(LIBRARIES, tmp_path / "lib")
    python("two_copies.py", tmp_path / "lib" / "libneml2_capi.so.1")


@cache
def printed_alone() -> str:
    return run(c_program(EXAMPLE), PREBUILT / "elasticity", PREBUILT / "viscoplastic")


def test_a_host_with_symbols_of_our_names_changes_no_bit() -> None:
    program = c_program(EXAMPLE, HOSTS / "same_symbols.c", flags=("-rdynamic",))
    assert run(program, PREBUILT / "elasticity", PREBUILT / "viscoplastic") == printed_alone()


@needs_torch
def test_a_host_that_is_linked_with_libtorch_changes_no_bit() -> None:
    program, object_file = folder() / "linked_with_torch", folder() / "example.o"
    command("cc", "-std=c99", "-O1", f"-I{ROOT / 'include'}", "-c", EXAMPLE, "-o", object_file)
    source = HOSTS / "linked_with_torch.cpp"
    torch = (f"-L{TORCH}", f"-Wl,-rpath,{TORCH}", "-ltorch_cpu", "-lc10")
    command(CXX, "-std=c++17", source, object_file, "-o", program, *torch, *LINK)
    assert "libtorch_cpu.so" in command("readelf", "--dynamic", program)
    assert run(program, PREBUILT / "elasticity", PREBUILT / "viscoplastic") == printed_alone()
