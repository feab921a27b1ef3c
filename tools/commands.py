"""Commands of build.py, by their names; their arguments are its options."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from tools.environments import Environment, has_torch, prepare, requirements
from tools.native import configured, slowest
from tools.platforms import PLATFORMS, platform_wheel
from tools.process import CACHE, ROOT, Command, Failure, jobs, openly, quietly
from tools.testing import test as test
from tools.wheel import built_wheel, repaired_wheel, source_distribution

ARTIFACTS = ROOT / "examples" / "artifacts"


def demo(compile_first: bool, output: str) -> int:
    """Two material models at work, from Python, C and Fortran."""
    artifacts = _compiled_examples() if compile_first else ARTIFACTS
    wheel_file = built_wheel()
    environment = prepare("demo", requirements("demo"))
    environment.install_wheel(wheel_file)
    programs = [f"--{key}-program={path}" for key, path in _example_programs(environment).items()]
    script = ROOT / "examples" / "demo.py"
    places: Command = ["--artifacts", artifacts, "--output", Path(output).absolute()]
    return openly([environment.python, script, *places, *programs])


def _example_programs(environment: Environment) -> dict[str, Path]:
    """The C and the Fortran example, built against the installed package as a user builds them."""

    def flags(*names: str) -> list[str]:
        # Isolated: the package of the checkout has no library.
        asked = [f"--{name}" for name in names]
        command: Command = [environment.python, "-I", "-m", "neml2_capi", *asked]
        return quietly("finding the library", command).split()

    folder = environment.folder / "examples"
    folder.mkdir(exist_ok=True)
    programs = {"c": folder / "example_c", "fortran": folder / "example_fortran"}
    c = os.environ.get("CC") or next(name for name in ("cc", "gcc", "clang") if shutil.which(name))
    command: Command = [*c.split(), "-std=c99", "-O2", "-o", programs["c"]]
    source = ROOT / "examples" / "c" / "example.c"
    quietly("building the example in C", [*command, source, *flags("cflags", "libs"), "-lm"])

    fortran = os.environ.get("FC") or shutil.which("gfortran")
    if not fortran:
        print("no gfortran here: the example in Fortran is left out")
        return {"c": programs["c"]}
    command = [*fortran.split(), "-std=f2018", "-O2", f"-J{folder}", "-o", programs["fortran"]]
    modules, source = flags("fortran-module"), ROOT / "examples" / "fortran" / "example.f90"
    quietly("building the example in Fortran", [*command, *modules, source, *flags("libs")])
    return programs


def _compiled_examples() -> Path:
    """The artifacts of the examples, by neml2-compile, or from the cache of what it compiled."""
    compiler = _compile_environment()
    folder = CACHE / "demo-artifacts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    recipes = ROOT / "tests" / "models" / "compile.py"
    for name in ("elasticity", "viscoplastic"):
        printed = quietly(f"compiling {name}", [compiler.python, recipes, name])
        (folder / name).symlink_to(printed.split()[-1])
    return folder


def _compile_environment() -> Environment:
    """Return an environment with neml2-compile and torch."""
    if not has_torch():
        raise Failure(
            f"Compiling needs torch, and there is none for this Python ({sys.version.split()[0]}) "
            "in the package index. Try another Python, or PIP_EXTRA_INDEX_URL."
        )
    return prepare("compile", requirements("compile", "cli"))


def bench(others: list[str]) -> int:
    """The speed, beside NEML2's own runtime."""
    return openly([sys.executable, ROOT / "benchmarks" / "bench.py", *others])


def fuzz(others: list[str]) -> int:
    """Search for bytes that break a reader."""
    return openly([sys.executable, ROOT / "tests" / "fuzz" / "search.py", *others])


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
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    tags = PLATFORMS if platform == "all" else filter(None, [platform])
    wheels = [Path(shutil.copy2(platform_wheel(tag), dist)) for tag in tags] or [repaired_wheel()]
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
    return prepare("check", requirements("check"))


def _tool(name: str, *options: str) -> Command:
    return [_check_environment().python, "-m", f"tools.{name}", *options]


def generate() -> int:
    """Renew what is generated from the public header."""
    return openly(_tool("generate"))


def docs() -> int:
    """Renew the reference from the docstrings and the comments of the headers."""
    return openly(_tool("generate", "--reference"))


def site() -> int:
    """The documentation as pages for a browser; a link that leads nowhere is an error."""
    environment = prepare("site", requirements("site"))
    pages = ROOT / "build" / "site"
    shutil.rmtree(pages, ignore_errors=True)
    strict: Command = ["-W", "--keep-going", "--nitpicky", "--quiet", "-d", f"{pages}.cache"]
    status = openly(
        [environment.program("sphinx-build"), *strict, "-c", ROOT / "docs", ROOT, pages]
    )
    if status == 0:
        _write_laws(pages / "docs" / "laws")
        print(f"wrote {(pages / 'docs' / 'index.html').relative_to(ROOT)}")
    return status


def _write_laws(folder: Path) -> None:
    """The shipped laws as live pages: docs/law-page.md links to them."""
    environment = prepare("laws", requirements("cross"))
    environment.install_wheel(built_wheel())
    folder.mkdir()
    code = """if True:
        import sys
        from neml2_capi import examples, page
        for name in examples.NAMES:
            page.make(examples.path(name), f"{sys.argv[1]}/{name}.html")"""
    quietly("writing the shipped laws as pages", [environment.python, "-Ic", code, folder])


def _c_family_files() -> list[Path]:
    """The sources in C and C++, without kernels, which are generated."""
    tops = ("capi", "include", "tests", "examples", "benchmarks")
    files = [file for top in tops for file in (ROOT / top).rglob("*.[ch]*")]
    written = [file for file in files if file.suffix in {".c", ".h", ".cpp", ".hpp"}]
    return sorted(file for file in written if not (file.parent / "kernels.json").exists())


def check(fix: bool) -> int:
    """Check generated files, rooms, docstrings, words, format, lint, types; say what mends each."""
    program = _check_environment().program
    formats: Command = [program("clang-format"), *_c_family_files()]
    mend, lines = "python3 build.py check --fix", "do what each line says"
    below, by_hand = "move what both need into a lower room", f"{mend}, then by hand"
    # A title, a command, its options to check and, if it can, to mend, and what else mends.
    checks: list[tuple[str, Command, Command, Command | None, str]] = [
        ("generated files", _tool("generate"), ["--check"], [], "python3 build.py generate"),
        ("reference", _tool("generate", "--reference"), ["--check"], [], "python3 build.py docs"),
        ("rooms of capi/", _tool("includes"), [], None, lines),
        ("rooms of neml2_capi/", [program("lint-imports")], ["--no-cache"], None, below),
        ("locks", _tool("locks"), [], None, lines),
        ("docstrings", _tool("docstrings"), [], None, lines),
        ("words", _tool("prose"), [], None, lines),
        ("spelling", [program("codespell"), ROOT], [], None, "edit it, or list it: pyproject.toml"),
        ("lint of Python", [program("ruff"), "check", "."], [], ["--fix", "-q"], by_hand),
        ("format of Python", [program("ruff"), "format", "."], ["--check"], [], mend),
        ("types of Python", [program("mypy")], [], None, "edit what mypy names"),
        ("format of C and C++", formats, ["--dry-run", "-Werror"], ["-i"], mend),
    ]
    failed = False
    for title, command, checking, mending, cure in checks:
        if fix and mending is not None:
            openly([*command, *mending])
        try:
            quietly(f"checking the {title}", [*command, *checking])
        except Failure as failure:
            failed = True
            print(f"{failure}\nTo mend it: {cure}\n", flush=True)
    return int(failed)
