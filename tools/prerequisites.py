"""Prerequisites of this machine for a build; all missing ones are told at once.

Python 3.6 and later understand this file, so that the user of an old one is told, too.
"""

import glob
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "neml2_capi"
)
PYTHONS = [(3, 10), (3, 11), (3, 12), (3, 13), (3, 14)]

# The names of what is needed, by package manager.
_PACKAGES = {
    "apt-get": {"venv": "python3-venv", "c++": "g++", "c": "gcc", "python": "python3"},
    "dnf": {"venv": "python3", "c++": "gcc-c++", "c": "gcc", "python": "python3"},
    "zypper": {"venv": "python3", "c++": "gcc-c++", "c": "gcc", "python": "python3"},
}

# Megabytes that a command needs on disk when it runs for the first time.
_DISK = {"bench": 2500, "demo": 500, "test": 1500, "build": 400, "wheel": 300}

_CXX20 = """
#include <concepts>
#include <filesystem>
#include <span>
template <std::integral T> struct Point { T x = 0; };
int main(int, char **names) {
  Point<int> point{.x = static_cast<int>(std::span(names, 1).size())};
  return std::filesystem::path("a").string().size() == 1 ? point.x - 1 : 1;
}
"""


def met(command):
    # type: (str) -> bool
    """Tell whether all is there. Print what is missing, with the command that mends it."""
    problems = []  # what is wrong, in words
    needed = []  # keys of _PACKAGES
    if platform.system() != "Linux":
        problems.append(
            "neml2_capi runs on Linux; this is " + (platform.system() or "an unknown system") + "."
        )
    if platform.python_implementation() != "CPython" or sys.version_info[:2] not in PYTHONS:
        found = f"{platform.python_implementation()} {platform.python_version()}"
        problems.append(f"CPython 3.10 to 3.14 is needed; this is {found}.")
        other = _other_python()
        if other:
            problems[-1] += f" Here there is: {other} build.py {command}"
        else:
            needed.append("python")
    has_venv = all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))
    if not has_venv:
        problems.append("Python's venv module cannot make environments: ensurepip is missing.")
        needed.append("venv")
    if not _compiler(os.environ.get("CC", ""), "cc", "gcc", "clang"):
        problems.append("There is no C compiler.")
        needed.append("c")
    # Compiling takes seconds, of which an edit and its test have few: a compiler is tried once.
    built = glob.glob(os.path.join(CACHE, "cmake", "*", "CMakeCache.txt"))
    reason = "" if built else _cxx_problem()
    if reason:
        problems.append("A compiler for C++20 is needed. " + reason)
        needed.append("c++")
    if not glob.glob(os.path.join(CACHE, "environments", "*", "installed.json")):
        # This is the first run, without any environment.
        problems += _first_run_problems(command, has_venv)
    if not problems:
        return True
    print("Before neml2_capi can be built, this is missing:\n", file=sys.stderr)
    for problem in problems:
        print("  - " + problem, file=sys.stderr)
    if needed:
        print("\n" + _mend(needed), file=sys.stderr)
    return False


def _mend(needed):
    # type: (list[str]) -> str
    sudo = "" if os.geteuid() == 0 else "sudo "
    for manager, names in _PACKAGES.items():
        if shutil.which(manager):
            wanted = " ".join(sorted({names[key] for key in needed}))
            update = sudo + "apt-get update && " if manager == "apt-get" else ""
            return f"To mend it:  {update}{sudo}{manager} install -y {wanted}"
    words = {"venv": "Python's venv", "c++": "g++ 10 or newer", "c": "gcc", "python": "CPython"}
    return "Install, with your system's package manager: " + ", ".join(words[k] for k in needed)


def _first_run_problems(command, has_venv):
    # type: (str, bool) -> list[str]
    problems = []
    wanted = _DISK.get(command, 200)
    folder = CACHE
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    free = shutil.disk_usage(folder).free // 10**6
    if free < wanted:
        problems.append(
            f"{folder} has {free} MB free, and {wanted} MB are needed. Free some, or name another "
            "folder in XDG_CACHE_HOME."
        )
    reason = ""
    if importlib.util.find_spec("pip"):
        reason = index_problem(sys.executable)
    elif has_venv:
        with tempfile.TemporaryDirectory() as scratch:
            _run([sys.executable, "-m", "venv", scratch])
            reason = index_problem(os.path.join(scratch, "bin", "python"))
    if reason:
        problems.append(reason)
    return problems


def index_problem(python):
    # type: (str) -> str
    """Tell why this Python's pip can get no package, and what to do; empty if it can."""
    with tempfile.TemporaryDirectory() as folder:
        # pycparser is small, and cffi needs it anyway.
        wanted = ["download", "--no-deps", "--quiet", "--dest", folder, "pycparser"]
        pip = [python, "-m", "pip", "--retries", "1", "--timeout", "15"]
        status, lines = _run([*pip, *wanted])
    if status == 0:
        return ""
    errors = [line for line in lines if line.startswith("ERROR")] or lines or ["pip fails"]
    return (
        f"No package index could be reached ({errors[-1]}). Connect this machine to the network, "
        "or name an index that it reaches in PIP_INDEX_URL."
    )


def _other_python():
    # type: () -> str
    """The command of a Python that serves, if there is one."""
    for version in reversed(PYTHONS):
        name = "python{}.{}".format(*version)
        if shutil.which(name) and _run([name, "-c", "import venv, ensurepip"])[0] == 0:
            return name
    return ""


def _compiler(*names):
    # type: (str) -> str
    """The first of some commands that is there; empty if none is."""
    return next((name for name in names if name and shutil.which(name.split()[0])), "")


def _cxx_problem():
    # type: () -> str
    """Tell why no C++20 program can be built here; empty if one can."""
    compiler = _compiler(os.environ.get("CXX", ""), "c++", "g++", "clang++")
    if not compiler:
        return "None was found (CXX, c++, g++, clang++)."
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "check.cpp")
        with open(source, "w") as file:
            file.write(_CXX20)
        command = [*compiler.split(), "-std=c++20", source, "-o", source + ".out"]
        status, lines = _run(command)
    if status == 0:
        return ""
    return f"{compiler} does not compile it: {[*lines, 'it fails'][0]}"


def _run(command):
    # type: (list[str]) -> tuple[int, list[str]]
    """The exit status of a program, and the lines that it prints."""
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    done = subprocess.run(command, stdin=null, stdout=pipe, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode(errors="replace").strip().splitlines()
