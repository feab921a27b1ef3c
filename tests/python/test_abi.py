"""The binary interface: what is exported, what is declared, that compilers accept the header."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from native import CC, CXX, INCLUDE, LIBRARIES, LINK, ROOT, TESTS, command, folder, run

sys.path.insert(0, str(TESTS / "abi"))

from declarations import declarations, function_name

SYMBOLS = (TESTS / "abi" / "symbols.txt").read_text().splitlines()
LIBRARY = LIBRARIES / "libneml2_capi.so.1"


def exported(library: Path) -> set[str]:
    lines = command("nm", "--dynamic", "--defined-only", "--no-demangle", library).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def test_the_declarations_are_those_that_were_agreed() -> None:
    assert declarations((INCLUDE / "neml2_capi.h").read_text()) == SYMBOLS, (
        "the ABI has changed. If that is meant, and nothing was removed or has another meaning:\n"
        "  python tests/abi/declarations.py > tests/abi/symbols.txt"
    )


def test_the_installed_headers_are_those_of_the_tree() -> None:
    for name in ("neml2_capi.h", "neml2_capi.f90"):
        assert (INCLUDE / name).read_bytes() == (ROOT / "include" / name).read_bytes(), (
            f"{name} was installed from another tree; install the package again"
        )


def test_the_library_exports_what_is_declared_and_nothing_else() -> None:
    assert exported(LIBRARY) == {function_name(line) for line in SYMBOLS if "(" in line}


def test_the_provider_exports_only_its_own_names() -> None:
    providers = [path for path in LIBRARIES.glob("lib*.so*") if "neml2_capi" not in path.name]
    assert len(providers) == 1
    names = exported(providers[0])
    assert names
    assert {name for name in names if not name.startswith("nml2")} == set()


def test_the_soname_is_the_major_version() -> None:
    assert "SONAME" in (dynamic := command("readelf", "--dynamic", LIBRARY))
    assert "[libneml2_capi.so.1]" in dynamic


def test_no_library_of_the_package_needs_libtorch() -> None:
    for path in LIBRARIES.glob("lib*.so.*"):
        assert "torch" not in command("readelf", "--dynamic", path)


@pytest.mark.parametrize("standard", ["c99", "c11", "c++17", "c++20"])
def test_the_header_compiles_as(standard: str) -> None:
    compiler, language = (CXX, "c++") if "++" in standard else (CC, "c")
    program = folder() / f"header-{standard}"
    warnings = ("-pedantic", "-Wall", "-Wextra", "-Werror")
    source = TESTS / "abi" / "header.c"
    flags = (f"-std={standard}", *warnings, f"-I{INCLUDE}", "-x", language)
    command(compiler, *flags, source, "-x", "none", "-o", program, *LINK)
    run(program)
