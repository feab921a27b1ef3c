"""Prepare the contestants, NEML2's own runtime among them, and measure: `build.py bench`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.environments import (
    Environment,
    build_environment,
    checkout,
    has_torch,
    locked,
    prepare,
    requirements,
)
from tools.native import configured
from tools.process import CACHE, ROOT, Command, Failure, openly, quietly
from tools.wheel import built_wheel

# Packages that NEML2's own runtime is built with from its sources.
REFERENCE = ["cmake", "ninja", "nlohmann-json", "nmhit==0.3.6", "pip", "pybind11", "pyzag==2.0.0"]
REFERENCE += ["numpy", "scikit-build-core", "torch==2.13.0"]


def bench(options: Command) -> int:
    """Measure everything side by side; the options are of run.py."""
    environment = prepare("bench", requirements())
    environment.install_wheel(built_wheel())
    reference = _reference()
    compiler = os.environ.get("NEML2_CAPI_COMPILER") or reference or _compiler()
    options = ["--programs", _programs(reference), *options]
    if reference:
        options = [*options, "--reference", reference]
    variables = {"NEML2_CAPI_COMPILER": str(compiler)} if compiler else {"NEML2_CAPI_COMPILE": "0"}
    # neml2-compile needs the tools of the builder.
    path = [build_environment().program(""), os.environ.get("PATH", "")]
    variables["PATH"] = os.pathsep.join(map(str, path))
    return openly([environment.python, ROOT / "benchmarks" / "run.py", *options], variables)


def against(commit: str, options: Command) -> int:
    """Measure this checkout beside an earlier commit, contestant for contestant, in turns."""
    environment = prepare("bench", requirements())
    environment.install_wheel(built_wheel())
    tree = _checked_out(commit)
    before = prepare("bench-before", requirements())
    before.install_wheel(_wheel_of(tree))
    programs = _contestants(
        CACHE / "cmake" / f"bench-{tree.name}", tree, "bench_ours", "neml2_builtin"
    )
    options = ["--programs", _programs(None), *options, "--before", tree, before.python, programs]
    variables = {"NEML2_CAPI_COMPILE": "0"}
    return openly([environment.python, ROOT / "benchmarks" / "against.py", *options], variables)


def _checked_out(commit: str) -> Path:
    """The files of a commit, in a folder of their own."""
    question: Command = ["git", "rev-parse", "--short=12", "--verify", f"{commit}^{{commit}}"]
    tree = CACHE / "commits" / quietly(f"looking for the commit {commit}", question).strip()
    with locked(tree.with_suffix(".lock")):
        if not tree.exists():
            archive = tree.with_suffix(".tar")
            pack: Command = ["git", "archive", "--format=tar", "--output", archive, tree.name]
            quietly(f"reading the files of {tree.name}", pack)
            shutil.unpack_archive(archive, tree.with_suffix(".part"))
            archive.unlink()
            tree.with_suffix(".part").rename(tree)
    return tree


def _wheel_of(tree: Path) -> Path:
    """The wheel that a checkout builds itself."""
    if not any((tree / "dist").glob("*.whl")):
        title = f"building the wheel of {tree.name}"
        quietly(title, [sys.executable, tree / "build.py", "wheel"])
    return next((tree / "dist").glob("*.whl"))


def _programs(reference: Path | None) -> Path:
    """The folder of the contestants in C and C++."""
    site = _site_packages(reference) if reference else ""
    folder = CACHE / "cmake" / f"bench-{checkout()}"
    return _contestants(folder, ROOT, reference=f"{site}")


def _contestants(folder: Path, source: Path, *targets: str, reference: str = "") -> Path:
    options = ["-DNEML2_CAPI_BENCHMARKS=ON", f"-DNEML2_CAPI_REFERENCE={reference}"]
    options += ["-DNEML2_CAPI_TESTS=OFF"]
    build = configured(*options, folder=folder, source=source)
    build.make(*targets, title=f"building the benchmarks in {folder.name}")
    return build.folder / "lib"


def _site_packages(python: Path) -> Path:
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(quietly("asking for NEML2's libraries", [python, "-c", query]).strip())


def _compiler() -> Path | None:
    """A Python with neml2-compile, if NEML2's own runtime could not be built."""
    return prepare("compile", requirements("compile")).python if has_torch() else None


def _reference() -> Path | None:
    """A Python with NEML2's own runtime: the one of NEML2_CAPI_REFERENCE, or one built here, once.

    The published wheel does not run with the torch that it compiles with, so it is built from its
    sources. If that fails, the reason is printed, and NEML2's columns stay empty.
    """
    named = os.environ.get("NEML2_CAPI_REFERENCE")
    if named:
        # The link is not resolved, since it makes the Python a virtual environment.
        python = Path(shutil.which(named) or named).absolute()
        quietly("looking at NEML2's own runtime", [python, "-c", "import neml2.aoti"])
        return python
    if not has_torch():
        print(f"no torch for Python {sys.version.split()[0]}: NEML2's own runtime is left out")
        return None
    try:
        environment = prepare("reference", REFERENCE)
        _build_neml2(environment)
    except Failure as failure:
        print(f"{failure}\n\nNEML2's own runtime is left out.")
        return None
    return environment.python


def _build_neml2(environment: Environment) -> None:
    stamp = environment.folder / "neml2.txt"
    version = next(name for name in requirements("compile") if name.startswith("neml2=="))
    with locked(environment.folder.with_suffix(".neml2.lock")):
        if stamp.exists() and stamp.read_text() == version:
            return
        pip: Command = [environment.python, "-m", "pip"]
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            # `pip download` would build it to learn its dependencies: the sources alone are wanted.
            sources = Path(scratch)
            options = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
            quietly(
                "downloading the sources of neml2",
                [*pip, "download", *options, "--dest", scratch, version],
                environment.variables,
            )
            archive = next(sources.glob("neml2-*.tar.gz"))
            shutil.unpack_archive(archive, sources)
            tree = sources / archive.name.removesuffix(".tar.gz")
            (tree / "cmake" / "pkgconfig.cmake").touch()  # missing there
            prefix = _json_prefix(environment, sources / "json")
            quietly(
                "building NEML2's own runtime (about 6 minutes, once)",
                [*pip, "install", "--no-deps", "--no-build-isolation", tree],
                {**environment.variables, "CMAKE_PREFIX_PATH": str(prefix)},
            )
        stamp.write_text(version)


def _json_prefix(environment: Environment, prefix: Path) -> Path:
    """nlohmann-json from PyPI, laid out as its own CMake installs it."""
    query = "import nlohmann_json as j; print(*j.__path__)"
    package = quietly("looking for nlohmann-json", [environment.python, "-c", query]).strip()
    shutil.copytree(Path(package) / "include", prefix / "include")
    config = prefix / "share" / "cmake" / "nlohmann_json" / "nlohmann_jsonConfig.cmake"
    config.parent.mkdir(parents=True)
    config.write_text(
        "add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)\n"
        "target_include_directories(nlohmann_json::nlohmann_json INTERFACE\n"
        '  "${CMAKE_CURRENT_LIST_DIR}/../../../include")\n'
    )
    return prefix


def main() -> int:
    parser = argparse.ArgumentParser(prog="build.py bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples, at most 1000 points")
    parser.add_argument("--only", default="", metavar="PATTERN", help="lines whose title matches")
    parser.add_argument("--against", metavar="COMMIT", help="beside an earlier commit instead")
    parser.add_argument("--output", default="bench-output", metavar="DIR", help="for the table")
    given = parser.parse_args()
    options: Command = ["--output", Path(given.output).absolute(), "--only", given.only]
    options = [*options, *(["--quick"] if given.quick else [])]
    try:
        return against(given.against, options) if given.against else bench(options)
    except Failure as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
