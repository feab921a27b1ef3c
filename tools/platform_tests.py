"""What the tests of a platform of wheels need here: its Python with the wheel, and programs.

CPythons of other platforms run here by qemu: Debian's for aarch64.
"""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

from tools.environments import Environment, build_environment, checkout, locked, requirements
from tools.native import Build, configured
from tools.platforms import platform_wheel
from tools.process import CACHE, ROOT, Command, Failure, quietly

# Release of Debian, and the version of its CPython.
_RELEASE = "bookworm"
VERSION = "3.11"

# Stands where the interpreter stood, and says that name to it: it finds its library and a virtual
# environment from there, and what starts sys.executable starts this.
_BY_QEMU = """#!/bin/sh
exec qemu-{machine} -L {root} -0 "$0" {program} "$@"
"""

# Tags of wheels on the index that run on a platform, the newest first.
_TAGS = {
    "manylinux_2_17_aarch64": [f"manylinux_2_{age}_aarch64" for age in (34, 28, 27, 17)]
    + ["manylinux2014_aarch64"],
}
TESTED = tuple(_TAGS)


def platform_environment(tag: str) -> Environment:
    """Return an environment of a platform's own Python, with its wheel and what the tests need."""
    if tag not in TESTED:
        raise Failure(f"There is no Python for {tag} here; there is for {', '.join(TESTED)}")
    wheel, python = platform_wheel(tag), interpreter(tag)
    environment = Environment(CACHE / "environments" / f"{tag}-{checkout()}")
    folder, stamp = environment.folder, environment.folder / "installed"
    wanted = [*requirements("test"), str(wheel)]
    with locked(folder.with_suffix(".lock")):
        if not stamp.exists() or stamp.read_text() != "\n".join(wanted):
            shutil.rmtree(folder, ignore_errors=True)
            making: Command = [python, "-m", "venv", "--without-pip", folder]
            quietly(f"making the environment {folder.name}", making)
            site = folder / "lib" / f"python{VERSION}" / "site-packages"
            # By pip of this machine: another's is slow, and may have no TLS.
            options = ["--no-compile", f"--target={site}", f"--python-version={VERSION}"]
            options += ["--implementation=cp", "--only-binary=:all:"]
            options += [f"--platform={known}" for known in _TAGS[tag]]
            options += [f"--constraint={ROOT / 'constraints.txt'}", *wanted]
            pip: Command = [build_environment().python, "-m", "pip", "install", *options]
            quietly(f"installing into {folder.name}", pip)
            # Started by a name of the environment, it does not look for modules where it starts.
            environment.add_program("pytest", "pytest", "console_main")
            stamp.write_text("\n".join(wanted))
    return environment


def programs_for_aarch64() -> Build:
    """The programs of tests/ for aarch64, which ctest runs by qemu; by GNU's compilers."""
    compilers = [f"aarch64-linux-gnu-{name}" for name in ("gcc", "g++", "gfortran")]
    if missing := [name for name in (*compilers, "qemu-aarch64") if not shutil.which(name)]:
        raise Failure(
            f"{', '.join(missing)} not found. In Debian: apt-get install qemu-user "
            "g++-aarch64-linux-gnu gfortran-aarch64-linux-gnu"
        )
    options = [f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake' / 'aarch64.cmake'}"]
    build = configured(*options, folder=CACHE / "cmake" / f"aarch64-{checkout()}")
    build.make(title="building the test programs for aarch64")
    return build


def interpreter(tag: str) -> Path:
    """Return a python for the wheels of a platform, made once; a Failure if none can be had."""
    if tag != "manylinux_2_17_aarch64" or platform.machine() == "aarch64":
        raise Failure(f"there is no Python for {tag} here")
    folder = CACHE / "interpreters" / tag
    with locked(folder.with_suffix(".lock")):
        if not (folder / "python").exists():
            programs = ("mmdebstrap", "qemu-aarch64")
            if missing := [program for program in programs if not shutil.which(program)]:
                raise Failure(
                    f"A Python for {tag} needs {', '.join(missing)}. In Debian 12: "
                    "apt-get install mmdebstrap qemu-user"
                )
            shutil.rmtree(folder, ignore_errors=True)
            # numpy needs the run time of C++; programs for musl run from the same folder.
            options = ["--variant=extract", "--architectures=arm64"]
            options.append(f"--include=python{VERSION},libstdc++6,musl")
            fetch: Command = ["mmdebstrap", *options, _RELEASE, folder]
            quietly("fetching Python for arm64", fetch)
            program = folder / "usr" / "bin" / f"python{VERSION}"
            real = program.rename(program.with_name("python.aarch64"))
            program.write_text(_BY_QEMU.format(machine="aarch64", root=folder, program=real))
            program.chmod(0o755)
            (folder / "python").symlink_to(program)
    return (folder / "python").readlink()
