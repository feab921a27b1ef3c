"""What the tests of a platform of wheels need here: its Python with the wheel, and programs."""

from __future__ import annotations

import shutil

from tools.environments import Environment, build_environment, checkout, locked, requirements
from tools.interpreters import VERSION, interpreter
from tools.native import Build, configured
from tools.platforms import nmhit_source, platform_wheel
from tools.process import CACHE, ROOT, Command, Failure, quietly

# Tags of wheels on the index that run on a platform, the newest first.
_TAGS = {
    "manylinux_2_17_aarch64": [f"manylinux_2_{age}_aarch64" for age in (34, 28, 27, 17)]
    + ["manylinux2014_aarch64"],
}
TESTED = tuple(_TAGS)

# Started by a name of the environment, pytest does not look for modules where it is started.
_PYTEST = """#!{python}
import sys
import pytest
sys.exit(pytest.console_main())
"""


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
            program = environment.program("pytest")
            program.write_text(_PYTEST.format(python=environment.python))
            program.chmod(0o755)
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
    options += [f"-DNMHIT_SOURCE={nmhit_source(build_environment())}"]
    build = configured(*options, folder=CACHE / "cmake" / f"aarch64-{checkout()}")
    build.make(title="building the test programs for aarch64")
    return build
