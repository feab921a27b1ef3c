"""The binary interface: exports, declarations, sizes and offsets, and what CHANGELOG tells."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from native import CC, CXX, INCLUDE, LIBRARIES, LINK, ROOT, TESTS, command, folder, run

from neml2_capi._ffi.library import lib
from neml2_capi._ffi.raw import ffi

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools import abi
from tools.header import EXPERIMENTAL, STABLE, contract, parts_of

pytestmark = pytest.mark.native

PARTS = contract(INCLUDE)
FUNCTIONS = {part.title for part in PARTS if part.is_function}
STRUCTURES = [part for part in PARTS if part.fields]
LIBRARY = LIBRARIES / "libneml2_capi.so.1"


def exported(library: Path) -> set[str]:
    lines = command("nm", "--dynamic", "--defined-only", "--no-demangle", library).splitlines()
    # A version of symbols is a symbol itself, an absolute one.
    return {line.split()[-1].split("@")[0] for line in lines if " A " not in line}


def test_the_description_is_that_of_the_header() -> None:
    lines = (TESTS / "abi" / "declarations.txt").read_text().splitlines()
    described = [line.partition(" ")[2] for line in lines]
    told = [line for line in described if not line.startswith("removed ")]
    assert told == abi.declarations(PARTS), "python3 build.py generate"


HEADER = """
/** Opens. */
NEML2_CAPI int32_t neml2_open(const char *path);

/** What is reported. */
typedef struct neml2_info {
  int64_t size;
  int32_t kind; /**< of it */
  int32_t dtype;
} neml2_info;
"""


def test_what_changes_is_of_the_release_under_way_and_must_be_told() -> None:
    before = abi.described(parts_of(HEADER), "", "0.1.0")
    assert "0.1.0 neml2_info.dtype at 12: int32_t\n" in before
    header = HEADER.replace("neml2_open(const char *path)", "neml2_open(const char *name)")
    header = header.replace("int32_t dtype", "int32_t device")
    after = abi.described(parts_of(header), before, "0.2.0")
    assert "0.2.0 int32_t neml2_open(const char *name)\n" in after
    assert "0.2.0 neml2_info.device at 12: int32_t\n" in after
    assert "0.1.0 neml2_info of 16 bytes\n" in after
    assert abi.untold(after, "## 0.2.0\n- `neml2_info`\n## 0.1.0\n- `neml2_open`", "0.2.0") == [
        "neml2_open"
    ]
    assert abi.untold(after, "## 0.2.0\n- `neml2_info`, `neml2_open`", "0.2.0") == []


def test_what_is_removed_must_be_told_until_the_next_release() -> None:
    before = abi.described(parts_of(HEADER), "", "0.1.0")
    header = HEADER[HEADER.index("/** What is reported") :]
    after = abi.described(parts_of(header), before, "0.2.0")
    assert "0.2.0 removed neml2_open\n" in after
    assert abi.untold(after, "## 0.2.0", "0.2.0") == ["neml2_open"]
    assert abi.described(parts_of(header), after, "0.2.0") == after
    assert "removed" not in abi.described(parts_of(header), after, "0.3.0")


def test_a_function_of_the_library_without_a_declaration_is_found(tmp_path: Path) -> None:
    source = tmp_path / "source.cpp"
    source.write_text("int32_t neml2_open(const char* path) {\n}\nvoid neml2_shut(void) {}\n")
    assert abi.undeclared(parts_of(HEADER), [source]) == ["neml2_shut"]


def test_the_installed_headers_are_those_of_the_tree() -> None:
    for name in (path.name for path in (ROOT / "include").iterdir()):
        assert (INCLUDE / name).read_bytes() == (ROOT / "include" / name).read_bytes(), (
            f"{name} was installed from another tree; install the package again"
        )


def test_the_library_exports_what_is_declared_and_nothing_else() -> None:
    assert exported(LIBRARY) == FUNCTIONS


def test_the_provider_exports_only_its_own_names() -> None:
    providers = [path for path in LIBRARIES.glob("lib*.so*") if "neml2_" not in path.name]
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


def test_only_plain_types_cross_the_boundary() -> None:
    header = "".join((INCLUDE / name).read_text() for name in (STABLE, EXPERIMENTAL))
    code = re.sub(r"/\*.*?\*/", " ", header, flags=re.DOTALL)
    assert not re.search(r"\bunion\b", code)
    handles = set(re.findall(r"typedef struct (\w+) \1;", code)) | {"DLManagedTensorVersioned"}
    handles |= set(re.findall(r"^ *struct (\w+);", code, re.MULTILINE))  # defined elsewhere
    sized = {part.title for part in STRUCTURES}
    callbacks = set(re.findall(r"typedef int32_t \(\*(\w+)\)\(", code)) | {"function"}
    numbers = {"int32_t", "int64_t", "double"}
    for part in PARTS:
        for variable in [*part.parameters, *part.fields]:
            known = numbers | callbacks if not variable.stars else numbers | {"char", "void"}
            # A handle is only ever pointed to, and so is a structure.
            assert variable.base in known | (handles | sized if variable.stars else set()), variable


def test_structures_begin_with_their_size_and_have_no_gaps() -> None:
    """The compiler asserts the sizes and offsets that the description has."""
    lines = ["#include <stddef.h>", '#include "neml2_capi_experimental.h"']
    for part in STRUCTURES:
        assert part.fields[0].name == "size"
        lines.append(f'_Static_assert(sizeof({part.title}) == {part.size}, "{part.title}");')
        offset = 0
        for field in part.fields:
            place = f"offsetof({part.title}, {field.name})"
            lines.append(f'_Static_assert({place} == {offset}, "{part.title}.{field.name}");')
            offset += field.size
        assert part.size % 8 == 0, "a field would fill a gap, and no size would tell of it"
    source = folder() / "layouts.c"
    source.write_text("\n".join(lines) + "\n")
    command(CC, "-std=c11", f"-I{INCLUDE}", "-c", source, "-o", folder() / "layouts.o")
    for part in STRUCTURES:
        assert ffi.sizeof(part.title) == part.size


def test_the_declarations_of_cffi_are_those_of_the_header() -> None:
    """The compiler compares the types, without `const`, which cffi does not keep."""
    lines = ['#include "neml2_capi_experimental.h"']
    for name in sorted(FUNCTIONS):
        pointer = ffi.getctype(ffi.typeof(getattr(lib, name)), f"check_{name}")
        lines.append(f"{pointer} = {name};")
    for part in PARTS:
        for name, _ in part.enumerators:
            lines.append(f'_Static_assert({name} == {getattr(lib, name)}, "{name}");')
    source = folder() / "declarations.c"
    source.write_text("\n".join(lines) + "\n")
    flags = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-Dconst=", f"-I{INCLUDE}")
    command(CC, *flags, "-c", source, "-o", folder() / "declarations.o")
