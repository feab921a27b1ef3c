"""Commands of build.py."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.bench import against, bench
from tools.environments import (
    Environment,
    build_environment,
    prepare,
    requirements,
    torch_to_be_had,
)
from tools.fortran import SOURCES
from tools.fuzz import coverage, fuzz
from tools.matrix import matrix
from tools.native import configured, slowest
from tools.platforms import PLATFORMS, platform_wheel
from tools.process import CACHE, ROOT, Command, Failure, jobs, openly, quietly
from tools.testing import test
from tools.wheel import built_wheel, repaired_wheel, source_distribution

ARTIFACTS = ROOT / "examples" / "artifacts"


def run(arguments: argparse.Namespace, others: list[str]) -> int:
    """Carry out a command; the exit status."""
    commands: dict[str, Callable[[], int]] = {
        "demo": lambda: demo(arguments.compile, Path(arguments.output).absolute()),
        "test": lambda: test(arguments.tier, arguments.interpreters, arguments.platform, others),
        "matrix": lambda: matrix(arguments.parts),
        "models": lambda: models(arguments.examples),
        "build": build,
        "wheel": lambda: wheel(arguments.platform),
        "generate": generate,
        "docs": docs,
        "site": site,
        "check": lambda: check(arguments.fix),
        "bench": lambda: _bench(arguments),
        "fuzz": lambda: _fuzz(arguments),
    }
    return commands[arguments.command]()


def _bench(arguments: argparse.Namespace) -> int:
    options = arguments.quick, arguments.only, Path(arguments.output).absolute()
    return against(arguments.against, *options) if arguments.against else bench(*options)


def _fuzz(arguments: argparse.Namespace) -> int:
    if arguments.coverage:
        return coverage()
    given = arguments.readers, arguments.minutes, arguments.jobs, arguments.fast, arguments.minimise
    return fuzz(*given)


def demo(compile_first: bool, output: Path) -> int:
    """Two material models at work, from Python, C and Fortran."""
    artifacts = _compiled_examples() if compile_first else ARTIFACTS
    wheel_file = built_wheel()
    environment = prepare("demo", requirements("demo"), ["demo"])
    environment.install_wheel(wheel_file)
    programs = [f"--{key}-program={path}" for key, path in _example_programs(environment).items()]
    script = ROOT / "examples" / "demo.py"
    places: Command = ["--artifacts", artifacts, "--output", output]
    return openly([environment.python, script, *places, *programs])


def _example_programs(environment: Environment) -> dict[str, Path]:
    """The C and the Fortran example, built against the installed package."""
    query = "import neml2_capi, pathlib; print(pathlib.Path(neml2_capi.__file__).parent)"
    # Isolated: the package of the checkout has no library.
    answer = quietly("finding the library", [environment.python, "-I", "-c", query])
    package = Path(answer.strip().splitlines()[-1])
    folder = environment.folder / "examples"
    folder.mkdir(exist_ok=True)
    library = [f"-L{package / 'lib'}", f"-Wl,-rpath,{package / 'lib'}", "-lneml2_capi", "-lm"]

    c = os.environ.get("CC") or next(name for name in ("cc", "gcc", "clang") if shutil.which(name))
    programs = {"c": folder / "example_c"}
    include, source = f"-I{package / 'include'}", ROOT / "examples" / "c" / "example.c"
    flags: Command = ["-std=c99", "-O2", "-o", programs["c"]]
    quietly("building the example in C", [*c.split(), *flags, include, source, *library])

    fortran = os.environ.get("FC") or shutil.which("gfortran")
    if not fortran:
        print("no gfortran here: the example in Fortran is left out")
        return programs
    programs["fortran"] = folder / "example_fortran"
    modules = [package / "include" / name for name in SOURCES]
    source = ROOT / "examples" / "fortran" / "example.f90"
    flags = ["-std=f2018", "-O2", f"-J{folder}", "-o", programs["fortran"]]
    command: Command = [*fortran.split(), *flags, *modules, source, *library]
    quietly("building the example in Fortran", command)
    return programs


def _compiled_examples() -> Path:
    """The artifacts of the examples, by neml2-compile, or from the cache of what it compiled."""
    compiler = _compile_environment()
    folder = CACHE / "demo-artifacts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    recipes = ROOT / "tests" / "models" / "compile.py"
    for number, name in enumerate(("elasticity", "viscoplastic"), 1):
        print(f"[{number}/2] {name}", flush=True)
        result = subprocess.run(
            [compiler.python, recipes, name], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        if result.returncode:
            raise Failure(f"neml2-compile failed for {name}; its output stands above.")
        (folder / name).symlink_to(result.stdout.split()[-1])
    return folder


def _compile_environment() -> Environment:
    """Return an environment with neml2-compile and torch."""
    torch = torch_to_be_had(build_environment())
    if not torch:
        raise Failure(
            f"Compiling needs torch, and there is none for this Python ({sys.version.split()[0]}) "
            "in the package index. Try another Python, or PIP_EXTRA_INDEX_URL."
        )
    return prepare("compile", requirements("compile", "cli"), [torch])


def build() -> int:
    """The library, the tests and the examples."""
    folder = ROOT / "build"
    made = configured(folder=folder)
    made.make("all", "examples", title="building the library, the tests and the examples")
    print(
        f"library:  {folder / 'lib'}\nexamples: {folder / 'bin'}\ntests:    ctest --test-dir build"
        f"\n\nseconds   file\n{slowest(folder)}"
    )
    return 0


def wheel(platform: str | None) -> int:
    """The wheel, repaired by auditwheel, in dist/: for this machine, or a platform.

    For all platforms the sources are packed too: that is what is published.
    """
    if platform not in (None, "all", *PLATFORMS):
        raise Failure(f"unknown platform {platform}; there are all, {', '.join(PLATFORMS)}")
    if platform is None:
        wheels = [repaired_wheel()]
    else:
        dist = ROOT / "dist"
        dist.mkdir(exist_ok=True)
        tags = PLATFORMS if platform == "all" else [platform]
        wheels = [Path(shutil.copy2(platform_wheel(tag), dist)) for tag in tags]
        if platform == "all":
            wheels.append(source_distribution(dist))
    for path in wheels:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{digest}  {path.relative_to(ROOT)}  {path.stat().st_size / 1e6:.1f} MB")
    return 0


def models(examples: bool) -> int:
    """Compile what the archive of the tests' models lacks, and write it again."""
    compiler = _compile_environment()
    compiler.install_wheel(built_wheel())  # some are exported
    recipes = ROOT / "tests" / "models" / "compile.py"
    options: Command = ["--archive", "--jobs", jobs(), *(["--examples"] if examples else [])]
    return openly([compiler.python, recipes, *options])


def _check_environment() -> Environment:
    if sys.version_info < (3, 11):
        found = ".".join(map(str, sys.version_info[:2]))
        raise Failure(f"Python {found}; griffe needs 3.11. Run build.py with 3.11 or later.")
    return prepare("check", requirements("check"), ["check"])


def generate() -> int:
    """Renew what is generated from the public header."""
    return openly([_check_environment().python, ROOT / "tools" / "generate.py"])


def docs() -> int:
    """Renew the reference from the docstrings and the comments of the headers."""
    return openly([_check_environment().python, ROOT / "tools" / "docs.py"])


def site() -> int:
    """The documentation as pages for a browser; a link that leads nowhere is an error."""
    environment = prepare("site", requirements("site"), ["site"])
    pages = ROOT / "build" / "site"
    shutil.rmtree(pages, ignore_errors=True)
    strict: Command = ["-W", "--keep-going", "--nitpicky", "--quiet", "-d", f"{pages}.cache"]
    status = openly(
        [environment.program("sphinx-build"), *strict, "-c", ROOT / "docs", ROOT, pages]
    )
    if status == 0:
        print(f"wrote {(pages / 'docs' / 'index.html').relative_to(ROOT)}")
    return status


def _c_family_files() -> list[Path]:
    tops = ("capi", "include", "tests", "examples", "benchmarks")
    files = (file for top in tops for file in _below(ROOT / top))
    files = (file for file in files if not (file.parent / "kernels.json").exists())  # generated
    return sorted(file for file in files if file.suffix in {".c", ".h", ".cpp", ".hpp"})


def _below(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def check(fix: bool) -> int:
    """Check generated files, rooms, docstrings, words, format, lint, types; say what mends each."""
    environment = _check_environment()
    python, ruff = environment.python, environment.program("ruff")
    generator, reference = ROOT / "tools" / "generate.py", ROOT / "tools" / "docs.py"
    clang_format, imports = (environment.program(n) for n in ("clang-format", "lint-imports"))
    if fix:
        mending: list[Command] = [
            [python, generator],
            [python, reference],
            [ruff, "check", "--fix", "--quiet", "."],
            [ruff, "format", "."],
            [clang_format, "-i", *_c_family_files()],
        ]
        for command in mending:
            openly(command)

    mend = "python3 build.py check --fix"
    typed = ["neml2_capi", "tools", "build.py", "examples", "tests", "benchmarks"]
    checks: list[tuple[str, Command, str]] = [
        ("generated files", [python, generator, "--check"], "python3 build.py generate"),
        ("reference", [python, reference, "--check"], "python3 build.py docs"),
        ("rooms of capi/", [python, ROOT / "tools" / "includes.py"], "do what each line says"),
        ("rooms of neml2_capi/", [imports, "--no-cache"], "move what both need into a lower room"),
        ("locks", [python, ROOT / "tools" / "locks.py"], "do what each line says"),
        ("docstrings", [python, ROOT / "tools" / "docstrings.py"], "do what each line says"),
        ("words", [python, ROOT / "tools" / "prose.py"], "write what each line says"),
        (
            "spelling",
            [environment.program("codespell"), ROOT],
            "edit what codespell names; names are listed in pyproject.toml",
        ),
        ("format of Python", [ruff, "format", "--check", "."], mend),
        ("lint of Python", [ruff, "check", "."], f"{mend}, and by hand what that leaves"),
        ("types of Python", [environment.program("mypy"), *typed], "edit what mypy names"),
        (
            "format of C and C++",
            [clang_format, "--dry-run", "-Werror", *_c_family_files()],
            mend,
        ),
    ]
    failed = False
    for title, command, cure in checks:
        try:
            quietly(f"checking the {title}", command)
        except Failure as failure:
            failed = True
            print(f"{failure}\nTo mend it: {cure}\n", flush=True)
    return int(failed)
