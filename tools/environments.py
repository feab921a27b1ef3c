"""Virtual environments for the commands, in the user's cache; made once, renewed on change."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.prerequisites import index_problem
from tools.process import CACHE, ROOT, Command, Failure, child_variables, quietly

# Releases of torch, the newest first, whose libtorch must run the packages of the one
# of constraints.txt. PyPI's are for CUDA, and their libtorch_cpu.so needs two of its libraries.
OTHER_TORCHES = {
    "2.15.0": ("nvidia-cuda-cupti==13.2.86", "nvidia-cuda-runtime==13.2.86"),
    "2.10.0": ("nvidia-cuda-cupti-cu12==12.8.90", "nvidia-cuda-runtime-cu12==12.8.90"),
}


def _pyproject_list(table: str, key: str, source: Path = ROOT) -> list[str]:
    """A list of texts in pyproject.toml (CPython 3.10 has no parser for it)."""
    text = (source / "pyproject.toml").read_text(encoding="utf-8")
    section = text.split(f"\n[{table}]\n", 1)[1] if not text.startswith(f"[{table}]") else text
    line = next(line for line in section.splitlines() if line.startswith(f"{key} = ["))
    values: list[str] = json.loads(line.partition("=")[2])
    return values


def requirements(*extras: str) -> list[str]:
    """Return the packages that this one needs to run, and its extras'."""
    wanted = _pyproject_list("project", "dependencies")
    for extra in extras:
        wanted += _pyproject_list("project.optional-dependencies", extra)
    return wanted


def build_requirements(source: Path = ROOT) -> list[str]:
    """Return the packages that a checkout's build needs, with the tools that the system lacks."""
    # A newer pip is asked for, since some Pythons' pip cannot pass settings on to the build.
    wanted = [*_pyproject_list("build-system", "requires", source), "pip>=23.1", "ninja"]
    if not _system_has_cmake():
        wanted.append("cmake")
    return wanted


def _system_has_cmake() -> bool:
    """Tell whether CMake is there in version 3.20 or later."""
    try:
        answer = subprocess.run(["cmake", "--version"], capture_output=True, text=True)
    except OSError:
        return False
    version = re.search(r"version (\d+)\.(\d+)", answer.stdout)
    return version is not None and (int(version[1]), int(version[2])) >= (3, 20)


@dataclass(frozen=True)
class Environment:
    """Virtual environment with the packages that were asked for."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    @property
    def variables(self) -> dict[str, str]:
        """Variables of child processes that look for the tools installed here."""
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
        return {"PATH": path, "VIRTUAL_ENV": str(self.folder)}

    def add_program(self, name: str, module: str, function: str) -> None:
        """Write a program that calls a function of a module, as pip does."""
        # Workers of the program import it once more.
        call = f'import sys\nfrom {module} import {function}\nif __name__ == "__main__":\n'
        self.program(name).write_text(f"#!{self.python}\n{call}    sys.exit({function}())\n")
        self.program(name).chmod(0o755)

    def install_wheel(self, wheel: Path) -> None:
        """Replace the installed package by the wheel's, unless it is the same."""
        stamp = self.folder / "wheel.sha256"
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if stamp.exists() and stamp.read_text() == digest:
            return
        stamp.unlink(missing_ok=True)
        options = ["--no-deps", "--no-index", "--force-reinstall"]
        command: Command = [self.python, "-m", "pip", "install", *options, wheel]
        quietly(f"installing the wheel into {self.folder.name}", command)
        stamp.write_text(digest)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def prepare(
    name: str, wanted: Sequence[str], python: str = "", alone: Sequence[str] = ()
) -> Environment:
    """The environment `name` of this checkout, with the packages `wanted`.

    Those `alone` are installed without what they ask for, of releases that they name themselves.
    """
    python = python or sys.executable
    version = _version_of(python)
    folder = CACHE / "environments" / f"{name}-cp{version.replace('.', '')}-{checkout()}"
    stamp = folder / "installed.json"
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    content = json.dumps(
        [sorted(wanted), list(alone), constraints, os.path.realpath(python), version]
    )
    with locked(folder.with_suffix(".lock")):
        # The link of an environment whose interpreter has gone leads nowhere.
        there = stamp.exists() and Environment(folder).python.exists()
        if not there or stamp.read_text() != content:
            _create(folder, python, wanted, alone)
            stamp.write_text(content)
    return Environment(folder)


def checkout() -> str:
    """Tells the environments and builds of this checkout from another's."""
    return hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]


def _version_of(python: str) -> str:
    query = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", query], capture_output=True, text=True).stdout.strip()


def _create(folder: Path, python: str, wanted: Sequence[str], alone: Sequence[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    quietly(f"making the environment {folder.name}", [python, "-m", "venv", folder])
    pip: Command = [folder / "bin" / "python", "-m", "pip", "install", "--no-input"]
    pip = [*pip, "--progress-bar", "off", "--retries", "1"]
    try:
        if wanted:
            command: Command = [*pip, "-c", ROOT / "constraints.txt", *sorted(wanted)]
            quietly(f"installing into {folder.name}", command)
        if alone:
            command = [*pip, "--no-deps", "--no-compile", *alone]
            quietly(f"installing {', '.join(alone)}", command)
    except Failure as failure:
        reason = index_problem(str(folder / "bin" / "python"))
        shutil.rmtree(folder, ignore_errors=True)
        raise Failure(f"{failure}\n\n{reason}".rstrip()) from None


def has_torch() -> bool:
    """Tell whether the index has a torch for this Python."""
    builder = build_environment()
    constraints = ROOT / "constraints.txt"
    known = builder.folder / f"torch-{hashlib.sha256(constraints.read_bytes()).hexdigest()[:8]}"
    if known.exists():  # asked before: the network may be gone since
        return True
    options = ["--dry-run", "--no-deps", "--ignore-installed", "--only-binary", ":all:"]
    command: Command = [builder.python, "-m", "pip", "install", *options, "-c", constraints]
    found = subprocess.run([*command, "torch"], capture_output=True, env=child_variables())
    if found.returncode == 0:
        known.touch()
    return found.returncode == 0


def other_torch(release: str) -> Path | None:
    """Return the folder of a torch of OTHER_TORCHES, or print why it cannot be had.

    Only its libtorch is for use: the packages that torch needs in Python are not there.
    """
    wanted = [f"torch=={release}", *OTHER_TORCHES[release]]
    environment = _prepared_if_possible(f"torch-{release}", wanted, f"torch {release}")
    if not environment:
        return None
    (torch,) = environment.folder.glob("lib/python*/site-packages/torch")
    for unused in torch.glob("lib/libtorch_cuda*"):  # half of it
        unused.unlink()
    return torch


def _prepared_if_possible(name: str, alone: Sequence[str], what: str) -> Environment | None:
    """Return an environment for tests, or print why it cannot be had."""
    try:
        return prepare(name, [], alone=alone)
    except Failure as failure:
        errors = re.findall("^ERROR: .*", str(failure), re.MULTILINE) or [str(failure)]
        print(f"no {what} for the tests: {errors[-1]}")
        return None


def device_variables() -> dict[str, str]:
    """Return what leads the tests to OpenCL and NVRTC, or print why they cannot be had."""
    wanted = _pyproject_list("project.optional-dependencies", "devices")
    environment = _prepared_if_possible("devices", wanted, "OpenCL of Intel and NVRTC")
    return {"NEML2_CAPI_TEST_DEVICES": str(environment.folder)} if environment else {}


def build_environment(source: Path = ROOT) -> Environment:
    """Return the environment that builds the package, or the one of another checkout."""
    name = "build" if source == ROOT else f"build-{source.name}"
    return prepare(name, build_requirements(source))
