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

# Megabytes to download and on disk, for a message: measured once, on CPython 3.11.
SIZES = {
    "build": (5, 25),
    "cmake": (30, 100),
    "bench": (20, 100),
    "demo": (50, 200),
    "test": (60, 250),
    "full": (40, 150),
    "arrays": (90, 390),
    "sweeps": (20, 85),
    "check": (50, 200),
    "torch": (220, 900),
    "torch with CUDA": (3000, 8000),
    "torch 2.10.0": (920, 1200),
    "torch 2.15.0": (560, 750),
    "hosts": (190, 560),
    "site": (20, 90),
    "wheel": (2, 10),
    "cross": (100, 350),
}

# Releases of torch, the newest first, whose libtorch must run the packages of the one
# of constraints.txt. PyPI's are for CUDA, and their libtorch_cpu.so needs two of its libraries.
OTHER_TORCHES = {
    "2.15.0": ("nvidia-cuda-cupti==13.2.86", "nvidia-cuda-runtime==13.2.86"),
    "2.10.0": ("nvidia-cuda-cupti-cu12==12.8.90", "nvidia-cuda-runtime-cu12==12.8.90"),
}
NEWEST_TORCH = next(iter(OTHER_TORCHES))


def _pyproject_list(table: str, key: str) -> list[str]:
    """A list of texts in pyproject.toml (CPython 3.10 has no parser for it)."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
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


def build_requirements() -> list[str]:
    """Return the packages that the build needs, with the tools that the system lacks."""
    # A newer pip is asked for, since some Pythons' pip cannot pass settings on to the build.
    wanted = [*_pyproject_list("build-system", "requires"), "pip>=23.1", "ninja"]
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

    def install_wheel(self, wheel: Path) -> None:
        """Replace the installed package by the wheel's, unless it is the same."""
        stamp = self.folder / "wheel.sha256"
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if stamp.exists() and stamp.read_text() == digest:
            return
        stamp.unlink(missing_ok=True)
        options = ["--no-deps", "--no-index", "--force-reinstall"]
        quietly(
            f"installing the wheel into {self.folder.name}",
            [self.python, "-m", "pip", "install", *options, wheel],
        )
        stamp.write_text(digest)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def prepare(
    name: str,
    wanted: Sequence[str],
    sizes: Sequence[str],
    python: str = "",
    alone: Sequence[str] = (),
) -> Environment:
    """The environment `name` of this checkout, with the packages `wanted`.

    Those `alone` are installed without what they ask for.
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
        if not stamp.exists() or stamp.read_text() != content or not _works(folder):
            _create(folder, python, wanted, sizes, alone)
            stamp.write_text(content)
    return Environment(folder)


def checkout() -> str:
    """Tells the environments and builds of this checkout from another's."""
    return hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]


def _version_of(python: str) -> str:
    query = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", query], capture_output=True, text=True).stdout.strip()


def _works(folder: Path) -> bool:
    """Tell whether the interpreter that the environment was made from is still there."""
    try:
        return subprocess.run([folder / "bin" / "python", "-c", ""]).returncode == 0
    except OSError:
        return False


def _create(
    folder: Path, python: str, wanted: Sequence[str], sizes: Sequence[str], alone: Sequence[str]
) -> None:
    download, disk = (sum(SIZES[size][i] for size in sizes) for i in (0, 1))
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free / 1e6
    shutil.rmtree(folder, ignore_errors=True)
    problems = []
    if free < disk:
        problems.append(
            f"{folder.parent} has {free:.0f} MB free and {disk} MB are needed. Free some, or name "
            "another folder in XDG_CACHE_HOME."
        )
    quietly(f"making the environment {folder.name}", [python, "-m", "venv", folder])
    pip: Command = [folder / "bin" / "python", "-m", "pip"]
    if reason := index_problem(str(folder / "bin" / "python")):
        problems.append(reason)
    if problems:
        shutil.rmtree(folder, ignore_errors=True)
        raise Failure("This is missing:\n\n  - " + "\n  - ".join(problems))
    print(f"downloading about {download} MB (less if pip has them cached)", flush=True)
    options: Command = ["--no-input", "--progress-bar", "off", "-c", ROOT / "constraints.txt"]
    command: Command = [*pip, "install", *options, *sorted(wanted)]
    _count(quietly(f"installing into {folder.name}", command))
    if alone:
        command = [*pip, "install", *options, "--no-deps", *alone]
        _count(quietly(f"installing {', '.join(alone)}", command))


def torch_to_be_had(environment: Environment) -> str:
    """Return the key in SIZES of the torch for this Python; empty if the index has none."""
    constraints = ROOT / "constraints.txt"
    known = environment.folder / f"torch-{hashlib.sha256(constraints.read_bytes()).hexdigest()[:8]}"
    if known.exists():  # asked before: the network may be gone since
        return known.read_text()
    options = ["--dry-run", "--no-deps", "--ignore-installed", "--only-binary", ":all:"]
    options += ["--quiet", "--report", "-", "-c", str(constraints)]
    result = subprocess.run(
        [environment.python, "-m", "pip", "install", *options, "torch"],
        capture_output=True,
        text=True,
        env=child_variables(),
    )
    if result.returncode:
        return ""
    report = json.loads(result.stdout)
    cpu = "cpu" in report["install"][0]["download_info"]["url"].rpartition("/")[2]
    kind = "torch" if cpu else "torch with CUDA"
    known.write_text(kind)
    return kind


def other_torch(release: str = NEWEST_TORCH) -> Path | None:
    """Return the folder of a torch of OTHER_TORCHES, or print why it cannot be had.

    Only its libtorch is for use: the packages that torch needs in Python are not there.
    """
    version = "cp{}{}".format(*sys.version_info[:2])
    folder = CACHE / "environments" / f"torch-{release}-{version}"
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            download, disk = SIZES[f"torch {release}"]
            free = shutil.disk_usage(folder.parent).free / 1e6
            if free < 2 * disk:  # wheels are unpacked beside the folder first
                print(f"no torch {release} for the tests: {folder.parent} has {free:.0f} MB free")
                return None
            part = Path(f"{folder}.part")
            shutil.rmtree(part, ignore_errors=True)
            print(f"downloading about {download} MB (less if pip has them cached)", flush=True)
            options = ["--no-deps", "--no-compile", "--only-binary", ":all:", "--retries", "1"]
            options += ["--no-input", "--progress-bar", "off", "--target", str(part)]
            pip: Command = [build_environment().python, "-m", "pip", "install", *options]
            wanted = [f"torch=={release}", *OTHER_TORCHES[release]]
            try:
                _count(quietly(f"installing torch {release} for the tests", [*pip, *wanted]))
            except Failure as failure:
                errors = re.findall("^ERROR: .*", str(failure), re.MULTILINE) or [str(failure)]
                print(f"no torch {release} for the tests: {errors[-1]}")
                return None
            for unused in (part / "torch" / "lib").glob("libtorch_cuda*"):  # half of it
                unused.unlink()
            part.rename(folder)
    return folder / "torch"


def build_environment() -> Environment:
    """Return the environment that builds the package."""
    wanted = build_requirements()
    sizes = ["build", "cmake"] if "cmake" in wanted else ["build"]
    return prepare("build", wanted, sizes)


# Line of pip for each file that is neither on this machine nor in its cache.
_DOWNLOADING = re.compile(r"^ *Downloading \S+ \(([\d.]+) (kB|MB|GB)\)", re.MULTILINE)
_megabytes = 0.0


def _count(output: str) -> None:
    global _megabytes
    units = {"kB": 1e-3, "MB": 1.0, "GB": 1e3}
    _megabytes += sum(float(size) * units[unit] for size, unit in _DOWNLOADING.findall(output))


def downloaded() -> float:
    """Return the megabytes that pip downloaded for this command, so far."""
    return _megabytes
