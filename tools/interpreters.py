"""CPythons of other platforms that run here: Debian's for aarch64, by qemu."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.environments import locked
from tools.process import CACHE, Command, Failure, quietly

# Release of Debian, and the version of its CPython.
_RELEASE = "bookworm"
VERSION = "3.11"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

# apt for another architecture, away from the system's own packages.
_APT = """
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::SourceList "{folder}/sources.list";
Dir::Etc::SourceParts "/dev/null";
"""

# Stands where the interpreter stood, and says that name to it: it finds its library and a virtual
# environment from there, and what starts sys.executable starts this.
_BY_QEMU = """#!/bin/sh
exec qemu-{machine} -L {root} -0 "$0" {program} "$@"
"""


def interpreter(tag: str) -> Path:
    """Return a python for the wheels of a platform, made once; a Failure if none can be had."""
    if tag == "manylinux_2_17_aarch64" and platform.machine() != "aarch64":
        return _made(tag, ["qemu-aarch64", "dpkg"], _unpack_for_aarch64)
    raise Failure(f"there is no Python for {tag} here")


def _made(tag: str, programs: Sequence[str], make: Callable[[Path, Path], None]) -> Path:
    missing = [program for program in ("apt-get", *programs) if not shutil.which(program)]
    if missing:
        raise Failure(
            f"A Python for {tag} needs {', '.join(missing)}. In Debian 12: "
            "apt-get install qemu-user"
        )
    folder = CACHE / "interpreters" / tag
    with locked(folder.with_suffix(".lock")):
        if not (folder / "python").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            program = folder / "usr" / "bin" / f"python{VERSION}"
            make(folder, program)
            (folder / "python").symlink_to(program)
    return (folder / "python").readlink()


def _apt(folder: Path, architecture: str) -> None:
    """Make a folder for apt-get, by its apt.conf, which knows the packages of an architecture."""
    indexes = quietly(
        "finding Debian's mirror", ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)"]
    )
    sites = [line.split()[0] for line in indexes.splitlines() if line.split()[1:] == [_RELEASE]]
    if not sites:
        raise Failure(f"apt knows no mirror of Debian {_RELEASE}, whose packages are wanted")
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    source = f"deb [signed-by={_KEYRING}] {sites[0]} {_RELEASE} main\n"
    (folder / "sources.list").write_text(source)
    settings = folder / "apt.conf"
    settings.write_text(_APT.format(architecture=architecture, folder=folder))
    title = f"reading Debian's list of packages for {architecture}"
    quietly(title, ["apt-get", "--quiet", "update"], {"APT_CONFIG": str(settings)})


def _unpack_for_aarch64(folder: Path, program: Path) -> None:
    apt = folder / "apt"
    _apt(apt, "arm64")
    fetch: Command = ["apt-get", "--quiet", "--yes", "--download-only", "install"]
    variables = {"APT_CONFIG": str(apt / "apt.conf")}
    # numpy needs the run time of C++; programs for musl run from the same folder.
    wanted = [f"python{VERSION}", "libstdc++6", "musl"]
    quietly("fetching Python for arm64", [*fetch, *wanted], variables)
    unpack = 'for package in "$1"/*.deb; do dpkg -x "$package" "$2"; done'
    quietly("unpacking it", ["sh", "-euc", unpack, "sh", apt / "cache" / "archives", folder])
    shutil.rmtree(apt)
    real = program.rename(program.with_name("python.aarch64"))
    _write_script(program, _BY_QEMU.format(machine="aarch64", root=folder, program=real))


def _write_script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
