"""The host may be anything: torch, symbols of our names, no memfd; results are bitwise the same."""

from __future__ import annotations

import importlib.util
import shutil
import zipfile
from functools import cache
from pathlib import Path

import pytest
from native import (
    CC,
    CXX,
    HOSTS,
    LIBRARIES,
    LINK,
    PREBUILT,
    ROOT,
    c_program,
    command,
    folder,
    python,
    run,
)
from programs import built

EXAMPLE = ROOT / "examples" / "c" / "example.c"

found = importlib.util.find_spec("torch")
TORCH = Path(found.origin).parent / "lib" if found and found.origin else Path()
needs_torch = pytest.mark.skipif(found is None, reason="torch is not installed")


def history(*arguments: str | Path, **environment: str) -> tuple[list[str], set[str]]:
    """The results of tests/hosts/history.py, and the names of what was mapped."""
    lines = python("history.py", PREBUILT, *arguments, **environment).splitlines()
    results = [line for line in lines if line.startswith("result ")]
    return results, {line.removeprefix("mapped ") for line in lines if line.startswith("mapped ")}


@cache
def alone() -> list[str]:
    """The results in a process where nothing is in the way."""
    results, _ = history()
    assert len(results) == 3 + 2 * 8 * 4
    return results


def test_without_torch_nothing_of_libtorch_is_mapped() -> None:
    results, mapped = history()
    assert results == alone()
    assert any("neml2_capi" in name for name in mapped)
    assert any("memfd" in name for name in mapped)
    assert not any("torch" in name for name in mapped)


@needs_torch
@pytest.mark.parametrize("when", ["before", "after"])
def test_torch_in_the_process_changes_no_bit(when: str) -> None:
    results, mapped = history(f"--{when}", "torch")
    assert any("libtorch_cpu" in name for name in mapped)
    assert results == alone()


@needs_torch
def test_another_package_in_the_global_scope_changes_no_bit(tmp_path: Path) -> None:
    package = tmp_path / "package.so"
    with zipfile.ZipFile(
        PREBUILT / "viscoplastic/cpu/float64/viscoplastic_residual.pt2"
    ) as archive:
        (entry,) = [name for name in archive.namelist() if name.endswith(".wrapper.so")]
        package.write_bytes(archive.read(entry))
    results, _ = history("--before", "torch", "--global", package)
    assert results == alone()


def test_input_checks_that_the_host_switches_on_change_no_bit() -> None:
    # Packages then refuse a batch of one, which this runs as well.
    results, _ = history(AOTI_RUNTIME_CHECK_INPUTS="1")
    assert results == alone()


def test_without_memfd_a_file_that_is_gone_serves(tmp_path: Path) -> None:
    results, mapped = history(NEML2_CAPI_NO_MEMFD="1", TMPDIR=str(tmp_path))
    assert results == alone()
    assert not any("memfd" in name for name in mapped)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("build", ["the same", "another"])
def test_two_copies_of_the_library_do_not_meet(tmp_path: Path, build: str) -> None:
    copy = tmp_path / "lib"
    shutil.copytree(LIBRARIES, copy)
    if build == "another":
        # Builds differ in the name of the provider, which holds their hash.
        provider = next(copy.glob("libn2???????.so"))
        renamed = "libn2fffffff.so"
        for library in (provider, copy / "libneml2_capi.so.1"):
            content = library.read_bytes()
            assert provider.name.encode() in content
            library.write_bytes(content.replace(provider.name.encode(), renamed.encode()))
        provider.rename(copy / renamed)
    python("two_copies.py", PREBUILT, copy / "libneml2_capi.so.1")


@cache
def printed_alone() -> str:
    return run(built("example_c"), PREBUILT / "elasticity", PREBUILT / "viscoplastic")


def test_a_host_with_symbols_of_our_names_changes_no_bit() -> None:
    program = c_program(EXAMPLE, HOSTS / "same_symbols.c", flags=("-rdynamic",))
    assert run(program, PREBUILT / "elasticity", PREBUILT / "viscoplastic") == printed_alone()


@needs_torch
def test_a_host_that_is_linked_with_libtorch_changes_no_bit() -> None:
    program, object_file = folder() / "linked_with_torch", folder() / "example.o"
    command(CC, "-std=c99", "-O1", f"-I{ROOT / 'include'}", "-c", EXAMPLE, "-o", object_file)
    source = HOSTS / "linked_with_torch.cpp"
    torch = (f"-L{TORCH}", f"-Wl,-rpath,{TORCH}", "-ltorch_cpu", "-lc10")
    command(CXX, "-std=c++17", source, object_file, "-o", program, *torch, *LINK)
    assert "libtorch_cpu.so" in command("readelf", "--dynamic", program)
    assert run(program, PREBUILT / "elasticity", PREBUILT / "viscoplastic") == printed_alone()
