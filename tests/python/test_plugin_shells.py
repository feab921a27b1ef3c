"""Shells of plug-ins, `--shell`, that are none or damaged: refused by the name of the file."""

from __future__ import annotations

import os
import random
import struct
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from native import PREBUILT

from neml2_capi._ffi.library import library_path
from neml2_capi.cli.commands import neml2_capi as command_line
from neml2_capi.plugin import PluginError, _library, make
from neml2_capi.plugin.shell import Shell, shells_of

pytestmark = pytest.mark.native

HARDENING = PREBUILT / "combined_hardening"
OURS = Path(library_path()).with_name("libneml2_plugin.so")
EXPORTED = b"vumat_\0"
#: Heads of libraries for other systems, with what leads astray behind them.
PE = (
    b"MZ"
    + bytes(58)
    + struct.pack("<I", 64)
    + b"PE\0\0"
    + struct.pack("<2H12x2H", 0x8664, 1, 240, 0)
)
MACHO = struct.pack("<8I", 0xFEEDFACF, 0x1000007, 3, 6, 0xFFFFFFFF, 0, 0, 0)
SHELLS = {
    "text": ("linux", b"root:x:0:0:root:/root:/bin/bash\n", "does not export vumat_"),
    "empty": ("linux", b"", "does not export vumat_"),
    "another library": ("linux", b"\x7fELF\2\1\1" + bytes(200), "does not export vumat_"),
    "no ELF": ("linux", EXPORTED, "not an ELF file of 64 bits"),
    "ELF of 32 bits": (
        "linux",
        b"\x7fELF\1\1\1" + bytes(57) + EXPORTED,
        "not an ELF file of 64 bits",
    ),
    "head of ELF": ("linux", b"\x7fELF\2\1\1" + bytes(57) + EXPORTED, "not an ELF file of 64 bits"),
    "no DLL": ("windows", EXPORTED * 20, "not a DLL"),
    "short DLL": ("windows", b"MZ" + EXPORTED, "is damaged"),
    "no pages": ("windows", PE + b"\x0b\2" + bytes(300) + EXPORTED, "pages of 0 bytes"),
    "large pages": (
        "windows",
        PE + b"\x0b\2" + bytes(30) + b"\xff" * 8 + bytes(300) + EXPORTED,
        "pages of 4294967295 bytes",
    ),
    "no dylib": ("macos", EXPORTED, "not a library for macOS of 64 bits"),
    "no commands": ("macos", MACHO + bytes(64) + EXPORTED, "a load command without an end"),
}


@pytest.mark.parametrize("system, content, message", SHELLS.values(), ids=SHELLS.keys())
def test_what_is_no_shell_is_refused(
    tmp_path: Path, system: str, content: bytes, message: str
) -> None:
    """Before kernels for the system are asked for, which artifacts here lack."""
    shell = tmp_path / "shell"
    shell.write_bytes(content)
    with pytest.raises(PluginError, match=message) as told:
        _library(system, shells_of(system, [shell]), b"content", "steel", {})
    assert str(shell) in str(told.value)


def test_the_command_line_names_the_file(tmp_path: Path) -> None:
    shell, library = tmp_path / "passwd", tmp_path / "libsteel.so"
    shell.write_text("root:x:0:0:root:/root:/bin/bash\n")
    for content in (b"root:x:0:0", b"vumat_"):
        shell.write_bytes(content)
        arguments = ["plugin", str(HARDENING), "-o", str(library), "--shell", str(shell)]
        done = CliRunner().invoke(command_line, arguments)
        assert done.exit_code == 1 and isinstance(done.exception, SystemExit)
        assert str(shell) in done.output and "with --shell" in done.output
    assert not library.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the shell of Linux")
def test_a_damaged_shell_is_refused_or_taken() -> None:
    """Cut off anywhere, or with other bytes in its tables."""
    content, chance = OURS.read_bytes(), random.Random(1)
    damaged = [content[:size] for size in (1, 63, 64, 200, 4096, len(content) // 2)]
    header = struct.unpack_from("<16sHHIQQQIHHHHHH", content)
    tables = [range(16, 64), range(header[5], header[5] + header[9] * header[10])]
    for _ in range(60):
        copy = bytearray(content)
        for _ in range(3):
            copy[chance.choice(chance.choice(tables))] = chance.randrange(256)
        damaged.append(bytes(copy))
    refused = 0
    for each in damaged:
        try:
            _library("linux", [Shell(OURS, each)], b"content", "steel", {"NEML2_E_LowerBound": 1.0})
        except PluginError as error:
            refused += 1
            assert str(error).startswith(f"{OURS} is not the library of a wheel")
    assert refused >= 6


def damaged_wheel(folder: Path) -> Path:
    wheel = folder / "damaged.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("neml2_capi/lib/libneml2_plugin.so", random.Random(1).randbytes(9000))
    content = bytearray(wheel.read_bytes())
    content[100:4000] = bytes(3900)
    wheel.write_bytes(content)
    return wheel


def test_what_is_no_wheel_is_refused(tmp_path: Path) -> None:
    text, folder, empty = tmp_path / "text.whl", tmp_path / "folder.whl", tmp_path / "empty.whl"
    text.write_text("no wheel")
    folder.mkdir()
    zipfile.ZipFile(empty, "w").close()
    for wheel in (text, empty, damaged_wheel(tmp_path)):
        with pytest.raises(PluginError, match=r"has no libneml2_plugin\.so: it is no wheel"):
            make(HARDENING, tmp_path / "libsteel.so", shell=wheel)
    for none in (folder, tmp_path, tmp_path / "none.whl", Path("/dev/null")):
        with pytest.raises(PluginError, match=f"There is no file {none}: name a wheel"):
            make(HARDENING, tmp_path / "libsteel.so", shell=none)
    assert not (tmp_path / "libsteel.so").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_without_a_writer_does_not_wait(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(PluginError, match=f"There is no file {pipe}"):
        make(HARDENING, tmp_path / "libsteel.so", shell=pipe)
