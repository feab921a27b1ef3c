"""CPythons of other platforms that run here: Debian's for aarch64 by qemu, one built with musl."""

from __future__ import annotations

import platform
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.environments import locked
from tools.process import CACHE, Command, Failure, jobs, quietly

# Release of Debian, and the version of its CPython.
_RELEASE = "bookworm"
VERSION = "3.11"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

# apt for another architecture and for sources, away from the system's own packages.
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

# CPython asks the compiler for the folder of libraries, and would take those of glibc; musl-gcc does
# not know the headers of the kernel.
_MUSL_CC = """#!/bin/sh
case "$1" in
-print-multiarch | --print-multiarch) echo x86_64-linux-musl ;;
*) exec musl-gcc -idirafter {headers} "$@" ;;
esac
"""

# What CPython's modules are built with, and the options that leave out programs and libtool's rest.
_LIBRARIES = {
    "zlib": ["--static"],
    "libffi": ["--disable-shared", "--disable-docs", "--disable-multi-os-directory"],
    "xz-utils": ["--disable-shared", "--disable-nls", "--disable-doc", "--disable-scripts"]
    + [f"--disable-{name}" for name in ("xz", "xzdec", "lzmadec", "lzmainfo", "lzma-links")],
}


def interpreter(tag: str) -> Path:
    """Return a python for the wheels of a platform, made once; a Failure where none can be had."""
    if tag == "musllinux_1_2_x86_64" and platform.machine() == "x86_64":
        return _made(tag, ["musl-gcc", "gcc", "make"], _build_with_musl)
    if tag == "manylinux_2_17_aarch64" and platform.machine() != "aarch64":
        return _made(tag, ["qemu-aarch64", "dpkg"], _unpack_for_aarch64)
    raise Failure(f"there is no Python for {tag} here")


def _made(tag: str, programs: Sequence[str], make: Callable[[Path, Path], None]) -> Path:
    missing = [program for program in ("apt-get", *programs) if not shutil.which(program)]
    if missing:
        raise Failure(
            f"A Python for {tag} needs {', '.join(missing)}. In Debian 12: "
            "apt-get install qemu-user musl-tools gcc make"
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
    source = f"[signed-by={_KEYRING}] {sites[0]} {_RELEASE} main\n"
    (folder / "sources.list").write_text(f"deb {source}deb-src {source}")
    settings = folder / "apt.conf"
    settings.write_text(_APT.format(architecture=architecture, folder=folder))
    title = f"reading Debian's list of packages for {architecture}"
    quietly(title, ["apt-get", "--quiet", "update"], {"APT_CONFIG": str(settings)})


def _unpack_for_aarch64(folder: Path, program: Path) -> None:
    apt = folder / "apt"
    _apt(apt, "arm64")
    fetch: Command = ["apt-get", "--quiet", "--yes", "--download-only", "install"]
    variables = {"APT_CONFIG": str(apt / "apt.conf")}
    # numpy needs the run time of C++.
    quietly("fetching Python for arm64", [*fetch, f"python{VERSION}", "libstdc++6"], variables)
    unpack = 'for package in "$1"/*.deb; do dpkg -x "$package" "$2"; done'
    quietly("unpacking it", ["sh", "-euc", unpack, "sh", apt / "cache" / "archives", folder])
    shutil.rmtree(apt)
    real = program.rename(program.with_name("python.aarch64"))
    _write_script(program, _BY_QEMU.format(machine="aarch64", root=folder, program=real))


def _build_with_musl(folder: Path, program: Path) -> None:
    _apt(folder / "apt", "amd64")
    headers = folder / "headers"
    headers.mkdir()
    for name in ("linux", "asm-generic", "x86_64-linux-gnu/asm"):
        (headers / Path(name).name).symlink_to(Path("/usr/include") / name)
    _write_script(folder / "cc", _MUSL_CC.format(headers=headers))
    prefix = program.parents[1]
    variables = {
        "CC": str(folder / "cc"),
        "CFLAGS": "-O1 -fPIC",
        "PKG_CONFIG_LIBDIR": str(prefix / "lib" / "pkgconfig"),
    }
    paths = [f"CPPFLAGS=-I{prefix / 'include'}", f"LDFLAGS=-L{prefix / 'lib'}"]
    python = ["--without-ensurepip", "--disable-test-modules", *paths]
    for name, options in {**_LIBRARIES, f"python{VERSION}": python}.items():
        source = _unpacked_source(folder / "apt", name)
        configure = shlex.join(["./configure", f"--prefix={prefix}", *options])
        make = f"make -j{jobs()} && make install"
        script: Command = ["sh", "-c", f"cd {shlex.quote(str(source))} && {configure} && {make}"]
        quietly(f"building {name} with musl", script, variables, expected=30)
    shutil.rmtree(folder / "apt")


def _unpacked_source(apt: Path, name: str) -> Path:
    """Return the folder of a source package, as its authors released it."""
    place = apt / name
    place.mkdir()
    fetch = f"cd {shlex.quote(str(place))} && apt-get --quiet --download-only source {name}"
    quietly(f"fetching {name}", ["sh", "-c", fetch], {"APT_CONFIG": str(apt / "apt.conf")})
    (archive,) = (path for path in place.glob("*.orig.tar.*") if path.suffix != ".asc")
    shutil.unpack_archive(archive, place)
    (source,) = (path for path in place.iterdir() if path.is_dir())
    return source


def _write_script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
