"""Plug-ins for macOS, read by LIEF and llvm's tools: nothing here runs them.

A small library stands for the shell; test_platforms.py makes plug-ins of the wheels.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_setup import with_kernels
from native import PREBUILT, ROOT

from neml2_capi.kernels.build import build
from neml2_capi.plugin import PluginError, make
from neml2_capi.plugin.dylib import universal, with_segment
from neml2_capi.plugin.trie import names_of, trie_of

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools.platforms import cross_environment, zig, zig_variables
from tools.process import Command

pytestmark = pytest.mark.native
TARGETS = {"arm64": "aarch64-macos.11.0", "x86_64": "x86_64-macos.10.15"}
NUMBERS = {"NEML2_E_LowerBound": 1.5, "NEML2_E_UpperBound": 2e5, "NEML2_nu_UpperBound": 0.5}
CONTENT = b"neml2 artifact\n\0" + bytes(range(256)) * 77
# As a linker makes it: functions of its own and of the system, data, pointers that are moved.
SHELL = """
#include <math.h>
#include <stdio.h>
int NEML2_count = 3, *NEML2_pointer = &NEML2_count;
double umat_(double x) { return puts("here") + exp(x); }
double vumat_(double x) { return umat_(x) + sin(x); }
"""
FULL = pytest.mark.full("zig compiles libraries for macOS")


def test_a_table_of_exports_has_all_names() -> None:
    """Of names that begin alike, that are a part of others, and of many: places of two bytes."""
    names = {"_a": b"\0\1", "_ab": b"\0\2", "_abc": b"\0\x80\1", "_b": b"\0\3", "x": b"\0\4"}
    names |= {f"_NEML2_{i}_UpperBound": b"\0" + bytes([i % 128]) for i in range(700)}
    assert names_of(trie_of(names)) == names
    assert names_of(trie_of({})) == {}


def test_a_plug_in_for_macos_asks_for_its_wheel(tmp_path: Path) -> None:
    root = PREBUILT / "combined_hardening"
    with pytest.raises(PluginError, match=r"--platform macosx_11_0_arm64.*file with --shell"):
        make(root, tmp_path / "libsteel.dylib")
    with pytest.raises(PluginError, match="has the ending of linux, and the plug-in is for macos"):
        make(root, tmp_path / "libsteel.so", system="macos")
    with pytest.raises(PluginError, match="Packages are Linux's: a plug-in for macos"):
        make(root, tmp_path / "libsteel.dylib", packages=True)
    with pytest.raises(PluginError, match="A plug-in for windows is of one wheel"):
        make(root, tmp_path / "steel.dll", shell=["one.whl", "two.whl"])
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def shells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, builder = tmp_path_factory.mktemp("shells"), cross_environment()
    (folder / "shell.c").write_text(SHELL)
    found = {}
    for name, target in TARGETS.items():
        found[name] = folder / f"{name}.dylib"
        command: Command = [zig(builder), "cc", "-target", target, "-shared", "-O1", "-g0"]
        command = [*command, "-Wl,-headerpad_max_install_names", folder / "shell.c"]
        variables = os.environ | zig_variables(builder, target)
        subprocess.run([*command, "-o", found[name]], env=variables, check=True)
    return found


# What LIEF, of the environment with zig, finds in a library.
_READ = """
import json, sys, lief
file = lief.MachO.parse(sys.argv[1])
library = file.at(0)
sound, why = lief.MachO.check_layout(library)
segment = library.get_segment("__NEML2")
print(json.dumps({
    "faults": "" if sound else why,
    "segments": [each.name for each in library.segments],
    "exports": {each.symbol.name: each.address for each in library.dyld_info.exports},
    "segment": segment and {
        "protection": [segment.init_protection, segment.max_protection],
        "address": segment.virtual_address,
        "content": bytes(segment.content).hex(),
    },
}))
"""


def read_by_lief(path: Path) -> dict[str, Any]:
    """What LIEF reads in a library of one processor."""
    command: Command = [cross_environment().python, "-c", _READ, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def told(path: Path, *words: str) -> str:
    """What llvm's tools say of a library, without its name."""
    if not shutil.which("llvm-objdump"):
        pytest.skip("llvm-objdump is not installed: apt-get install llvm")
    done = subprocess.run(
        ["llvm-objdump", "--macho", *words, path], capture_output=True, text=True, check=True
    )
    assert not done.stderr
    return done.stdout.replace(str(path), "")


def place_of(wanted: int, file: bytes) -> int:
    """Return the offset of a load command in a file."""
    (count,) = struct.unpack_from("<I", file, 16)
    place = 32
    for _ in range(count):
        kind, length = struct.unpack_from("<2I", file, place)
        if kind == wanted:
            return place
        place += length
    raise AssertionError(f"no command {wanted:#x}")


def require_signed(file: bytes, name: str) -> None:
    """Compare each hash of an ad-hoc signature, which ends the file, with its page.

    Apple's tools want it at once behind the strings, the last table.
    """
    begin, size = struct.unpack_from("<2I", file, place_of(0x1D, file) + 8)
    strings = sum(struct.unpack_from("<2I", file, place_of(0x2, file) + 16))
    assert begin == -(-strings // 16) * 16
    assert begin + size == len(file)
    magic, blob, blobs, kind, first = struct.unpack_from(">5I", file, begin)
    assert (magic, blobs, kind, first) == (0xFADE0CC0, 1, 0, 20)
    directory = file[begin + first : begin + blob]
    head = struct.unpack_from(">9I", directory)
    magic, length, version, flags, hashes, named, special, pages, limit = head
    assert (magic, version, special, limit) == (0xFADE0C02, 0x20400, 0, begin)
    assert flags & 2  # ad hoc
    assert struct.unpack_from("4B", directory, 36) == (32, 2, 0, 12)
    assert directory[named : directory.index(0, named)] == name.encode()
    assert pages == math.ceil(begin / 4096)
    assert len(directory) == length == hashes + 32 * pages
    for page in range(pages):
        content = file[4096 * page : min(4096 * (page + 1), begin)]
        found = directory[hashes + 32 * page : hashes + 32 * (page + 1)]
        assert found == hashlib.sha256(content).digest(), page


def of_long_double(content: bytes, name: str) -> float:
    """A number of C's long double, which is a double on Apple's processors."""
    if name == "arm64":
        return float(struct.unpack_from("<d", content)[0])
    mantissa, exponent = struct.unpack_from("<QH", content)
    return math.ldexp(mantissa, exponent - 16383 - 63)


@FULL
@pytest.mark.parametrize("name", TARGETS)
def test_the_content_is_a_segment_before_the_tables_of_the_linker(
    shells: dict[str, Path], name: str, tmp_path: Path
) -> None:
    made = tmp_path / "libsteel.dylib"
    made.write_bytes(with_segment(shells[name].read_bytes(), CONTENT, made.name, NUMBERS))
    before, found = read_by_lief(shells[name]), read_by_lief(made)
    assert found["faults"] == ""
    assert found["segments"][-2:] == ["__NEML2", "__LINKEDIT"]
    assert found["segment"]["protection"] == [1, 1]
    content, exports = bytes.fromhex(found["segment"]["content"]), found["exports"]
    assert content.startswith(CONTENT)
    for number, value in NUMBERS.items():
        place = exports.pop(f"_{number}") - found["segment"]["address"]
        assert of_long_double(content[place:], name) == value
    assert exports == before["exports"]
    assert {"_umat_", "_vumat_", "_NEML2_pointer"} <= exports.keys()
    require_signed(made.read_bytes(), made.name)


@FULL
@pytest.mark.parametrize("name", TARGETS)
def test_strings_of_any_length_are_followed_by_the_signature(
    shells: dict[str, Path], name: str
) -> None:
    """Whatever gap the linker left before its own, and however the table of exports grows."""
    shell = bytearray(shells[name].read_bytes())
    size = place_of(0x2, bytes(shell)) + 20
    for _ in range(16):
        struct.pack_into("<I", shell, size, struct.unpack_from("<I", shell, size)[0] - 1)
        for numbers in ({}, NUMBERS, dict.fromkeys(map(str, range(5)), 0.5)):
            made = with_segment(bytes(shell), CONTENT, "steel", numbers)
            require_signed(made, "steel")


@FULL
@pytest.mark.parametrize("name", TARGETS)
def test_what_the_linker_wrote_stays(shells: dict[str, Path], name: str, tmp_path: Path) -> None:
    """Symbols, and what the loader binds and moves; the library has the name of its file."""
    made = tmp_path / "libsteel.dylib"
    made.write_bytes(with_segment(shells[name].read_bytes(), CONTENT, made.name, NUMBERS))
    for words in (
        ("--bind",),
        ("--lazy-bind",),
        ("--rebase",),
        ("--syms",),
        ("--indirect-symbols",),
    ):
        assert told(made, *words) == told(shells[name], *words), words
    assert told(made, "--dylib-id").split()[-1] == "@rpath/libsteel.dylib"
    uuid = re.compile(r"uuid (\S+)")
    ours, theirs = (uuid.findall(told(p, "--private-headers")) for p in (made, shells[name]))
    assert len(ours) == 1
    assert ours != theirs


@FULL
def test_a_file_of_both_processors_has_each_library(
    shells: dict[str, Path], tmp_path: Path
) -> None:
    if not shutil.which("llvm-lipo-14"):
        pytest.skip("llvm-lipo-14 is not installed: apt-get install llvm-14")
    libraries = [with_segment(s.read_bytes(), CONTENT, "steel") for s in shells.values()]
    made = tmp_path / "libsteel.dylib"
    made.write_bytes(universal(libraries))
    for name, library in zip(shells, libraries, strict=True):
        part = tmp_path / name
        subprocess.run(["llvm-lipo-14", made, "-thin", name, "-output", part], check=True)
        assert part.read_bytes() == library
    with pytest.raises(ValueError, match="two libraries for one processor"):
        universal([libraries[0], libraries[0]])


@FULL
def test_a_plug_in_is_made_of_kernels_for_macos(
    shells: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, made = tmp_path / "steel", tmp_path / "libsteel.dylib"
    ignored = shutil.ignore_patterns("*.pt2")
    shutil.copytree(with_kernels("combined_hardening"), root, ignore=ignored)
    with pytest.raises(PluginError, match=r"no kernels for macos.*--system macos"):
        make(root, made, shell=shells["arm64"])
    for variable, value in zig_variables(cross_environment(), "").items():
        monkeypatch.setenv(variable, value)
    for kernels in root.glob("kernels/*"):
        build(kernels, ["aarch64"], system="macos")
    with pytest.raises(PluginError, match=r"or is damaged \(not a library for macOS"):
        make(root, made, shell=__file__)
    with pytest.raises(PluginError, match="two libraries for one processor"):
        make(root, made, shell=[shells["arm64"], shells["arm64"]])
    assert not made.exists()
    lines = make(root, made, shell=[*shells.values()])
    assert lines[0].endswith("MB, kernels")
    assert [line.split() for line in lines[1:3]] == [["STRAN", "strain"], ["STRESS", "stress"]]
    assert lines[3].split() == ["STATEV", "1", "equivalent_plastic_strain"]
    content = made.read_bytes()
    assert content.startswith(b"\xca\xfe\xba\xbe\0\0\0\2")
    assert content.count(b"neml2 artifact\n\0") == 2
    assert content.count(b'"material": "steel"') == 2
