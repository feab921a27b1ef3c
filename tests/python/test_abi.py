"""The binary interface: what is exported, what is declared, what the past was promised."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from native import CC, CXX, INCLUDE, LIBRARIES, LINK, PREBUILT, ROOT, TESTS, command, folder, run

from neml2_capi._ffi.library import lib
from neml2_capi._ffi.raw import ffi

sys.path.insert(0, str(TESTS / "abi"))

from declarations import declarations, function_name

pytestmark = pytest.mark.native

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
    for name in ("neml2_capi.h", "neml2_capi.hpp", "neml2_capi.f90"):
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


def test_no_structure_has_a_layout_at_the_boundary() -> None:
    # What a program was compiled with can then not differ from what the library has.
    code = re.sub(r"/\*.*?\*/", " ", (INCLUDE / "neml2_capi.h").read_text(), flags=re.DOTALL)
    assert not re.search(r"\b(struct|union)\b[^;(]*\{", code)
    handles = set(re.findall(r"typedef struct (\w+) \1;", code)) | {"DLManagedTensorVersioned"}
    functions = set(re.findall(r"typedef int32_t \(\*(\w+)\)\(", code))
    numbers = {"int32_t", "int64_t", "double", "char", "void"}
    for line in SYMBOLS:
        if "(" not in line:
            continue
        words = set(
            re.findall(r"\b(?:neml2_\w+|DL\w+|\w+_t|double|float|char|void|long|int)\b", line)
        )
        assert words - {function_name(line)} <= handles | functions | numbers, line
        # A handle is only ever pointed to.
        assert not re.search(rf"\b({'|'.join(handles)})\b(?!\s*\*)", line), line


def test_the_declarations_of_cffi_are_those_of_the_header() -> None:
    """The compiler compares the types, without `const`, which cffi does not keep."""
    lines = ['#include "neml2_capi.h"']
    for symbol in SYMBOLS:
        if "(" in symbol:
            name = function_name(symbol)
            pointer = ffi.getctype(ffi.typeof(getattr(lib, name)), f"check_{name}")
            lines.append(f"{pointer} = {name};")
        else:
            name = symbol.split()[0]
            lines.append(f'_Static_assert({name} == {getattr(lib, name)}, "{name}");')
    source = folder() / "declarations.c"
    source.write_text("\n".join(lines) + "\n")
    flags = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-Dconst=", f"-I{INCLUDE}")
    command(CC, *flags, "-c", source, "-o", folder() / "declarations.o")


FROZEN = TESTS / "abi" / "1.0"


@pytest.mark.parametrize("program", sorted(path.stem for path in FROZEN.glob("*.c")))
def test_what_was_compiled_for_1_0_runs_with_this_library(program: str) -> None:
    """The header and the programs are those of the first release of the ABI: never change them."""
    built = folder() / f"frozen-{program}"
    source = FROZEN / f"{program}.c"
    command(CC, "-std=c99", "-O1", f"-I{FROZEN}", source, "-o", built, *LINK)
    models = (PREBUILT / "elasticity", PREBUILT / "viscoplastic") if program == "example" else ()
    run(built, *models)


def test_the_header_of_1_0_declares_nothing_that_has_changed() -> None:
    assert set(declarations((FROZEN / "neml2_capi.h").read_text())) <= set(SYMBOLS)
