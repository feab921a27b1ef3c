"""The library that an artifact is added to: installed for this system, in a wheel for another."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from neml2_capi._ffi.library import library_path, version
from neml2_capi.artifact.targets import SYSTEM
from neml2_capi.umat.properties import PluginError

_FILES = {
    "linux": "libneml2_plugin.so",
    "windows": "neml2_plugin.dll",
    "macos": "neml2_plugin.dylib",
}
_TAGS = {
    "linux": "manylinux_2_17_x86_64",
    "windows": "win_amd64",
    "macos": "macosx_11_0_arm64, or macosx_10_15_x86_64, or of both",
}


_DAMAGE = (zipfile.BadZipFile, zlib.error)
#: A name that a shell exports, and other libraries do not.
_EXPORTED = b"vumat_"


class Shell(NamedTuple):
    """A library without an artifact, and the file that it is of."""

    file: Path
    content: bytes


def shells_of(system: str, given: Sequence[str | os.PathLike[str]]) -> list[Shell]:
    """The shells for a system, from what was given: wheels, or the shells themselves.

    Several are for several processors, which macOS has in one file. PluginError if there is none.
    """
    name = _FILES[system]
    if len(given) > 1 and system != "macos":
        raise PluginError(f"A plug-in for {system} is of one wheel: name one with --shell.")
    if given:
        return [_given(Path(each), name) for each in given]
    if system != SYSTEM:
        raise PluginError(
            f"A plug-in for {system} is made of the wheel for it: python3 -m pip download "
            f"neml2_capi=={version()} --no-deps --platform {_TAGS[system]}; name its file with "
            "--shell."
        )
    shell = Path(library_path()).with_name(name)
    if not shell.is_file():
        raise PluginError(f"There is no {shell}: install the wheel of neml2_capi.")
    return [Shell(shell, shell.read_bytes())]


def provider_of(system: str) -> bytes:
    """What packages call, which are Linux's."""
    if system != "linux":
        return b""
    folder = Path(library_path()).parent
    providers = list(folder.glob("libn2*.so"))
    if len(providers) != 1:
        raise PluginError(
            f"In {folder} there are {len(providers)} libraries libn2*.so; expected one, the "
            "library's own: install the wheel of neml2_capi, or build into an empty folder."
        )
    return providers[0].read_bytes()


def _given(file: Path, name: str) -> Shell:
    if not file.is_file():
        raise PluginError(f"There is no file {file}: name a wheel of neml2_capi with --shell.")
    content = _in_wheel(file, name) if file.suffix == ".whl" else _read(file)
    if _EXPORTED not in content:
        raise PluginError(
            f"{file} is no library for plug-ins: it does not export vumat_. Name a wheel of "
            "neml2_capi with --shell."
        )
    return Shell(file, content)


def _in_wheel(wheel: Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(f"neml2_capi/lib/{name}")
    except (OSError, KeyError, ValueError, RuntimeError, EOFError, *_DAMAGE) as error:
        raise PluginError(
            f"{wheel} has no {name}: it is no wheel for that system, or is damaged."
        ) from error


def _read(shell: Path) -> bytes:
    try:
        return shell.read_bytes()
    except OSError as error:
        raise PluginError(f"{shell} cannot be read: {error.strerror}.") from error
