"""Compile the models of the tests and examples with the real neml2-compile, once.

    python tests/models/compile.py             compile all that is neither cached nor prebuilt
    python tests/models/compile.py NAME ...    compile these, and print where the artifacts are
    python tests/models/compile.py NAME ... --into DIR   and copy them to DIR/NAME
    python tests/models/compile.py --examples  renew examples/artifacts, small and without paths

An artifact is cached by content (the input, the options, the versions of neml2, torch and the
compiler, the instruction set) under $XDG_CACHE_HOME/neml2_capi/artifacts, so that every checkout
and process shares it. NEML2_CAPI_COMPILER names the Python interpreter that has neml2 and torch,
where this one has not.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shrink import shrink

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
MODELS = ROOT / "tests" / "models"

# Code for any x86-64 of the last decade: packages are built with -march=native otherwise.
ISA = {"TORCHINDUCTOR_CPP_MARCH": "x86-64-v3", "ATEN_CPU_CAPABILITY": "avx2"}


@dataclass(frozen=True)
class Recipe:
    """What neml2-compile is asked for."""

    input: Path
    model: str
    options: tuple[str, ...] = ()
    version: str = ""  # of neml2, where it is not the installed one
    driver: str = ""  # of that model, which the stub keeps


# Until this version the output folder itself is the artifact.
_FLAT = "3.0.3"


def _derivatives(*pairs: str) -> tuple[str, ...]:
    """Those of OUT:IN, where a missing OUT is all outputs; of ":", all but the parameters'."""
    return tuple(argument for pair in pairs for argument in ("-d", pair))


def _parameters(*names: str) -> tuple[str, ...]:
    """Parameters that can change at run time, and their derivatives."""
    promoted = tuple(argument for name in names for argument in ("-p", name))
    return promoted + _derivatives(*(f":{name}" for name in names))


_ELASTICITY = EXAMPLES / "models" / "elasticity.i"
_CHABOCHE = EXAMPLES / "models" / "viscoplastic.i"
_HARDENING = MODELS / "isotropic_hardening.i"
_CREEP = MODELS / "creep.i"
_E = "residual.elasticity.E"
_SY = "residual.normality.yield_surface.yield_function.sy"
_RETURN_SY = "update.return_map.surface.yield_function.sy"

RECIPES = {
    "elasticity": Recipe(_ELASTICITY, "elasticity", ("-p", "elasticity.E", "-d", "stress:strain")),
    # No derivatives.
    "viscoplastic": Recipe(_CHABOCHE, "viscoplastic"),
    # What a finite-element host wants: a tangent, and constants from its input file.
    "combined_hardening": Recipe(
        _CHABOCHE,
        "viscoplastic",
        (
            *("-p", _E, "--rename-parameter", f"{_E}:E"),
            *("-p", _SY, "--rename-parameter", f"{_SY}:yield_stress"),
            *_derivatives("stress:strain"),
        ),
    ),
    "chaboche": Recipe(_CHABOCHE, "viscoplastic", _derivatives(":")),
    "elasticity_float32": Recipe(_ELASTICITY, "elasticity", ("--dtype", "float32")),
    # A batch of exactly two points.
    "elasticity_static": Recipe(
        _ELASTICITY, "elasticity", ("--no-dynamic-batch", "--example-batch-shape", "(2,)")
    ),
    # Five grains per point, on a sub-batch axis of the input and the output.
    "elasticity_grains": Recipe(
        _ELASTICITY,
        "elasticity",
        ("--example-batch-shape", "strain=(2;5)", *_derivatives(":")),
    ),
    "elasticity_parameters": Recipe(
        _ELASTICITY,
        "elasticity",
        (*_parameters("elasticity.E", "elasticity.nu"), *_derivatives(":")),
    ),
    # One output has the axis of the grains, the other has not.
    "grains": Recipe(MODELS / "grains.i", "grains", _derivatives(":")),
    "isotropic_hardening": Recipe(
        _HARDENING,
        "viscoplastic",
        (*_parameters(_E, _SY), *_derivatives(":"), "--rename-parameter", f"{_SY}:yield_stress"),
    ),
    # Traced with a large batch: the packages hold OpenMP regions.
    "isotropic_hardening_parallel": Recipe(
        _HARDENING, "viscoplastic", ("--example-batch-shape", "(100000,)")
    ),
    # What a caller sees has other names than what the model has inside.
    "radial_return": Recipe(
        MODELS / "radial_return.i",
        "radial_return",
        (
            *_parameters(_RETURN_SY),
            *_derivatives(":"),
            *("--rename-input", "strain:total_strain", "--rename-output", "stress:cauchy_stress"),
            *("--rename-parameter", f"{_RETURN_SY}:yield_stress"),
        ),
    ),
    # Both segments take the modulus.
    "relaxation": Recipe(
        MODELS / "relaxation.i",
        "relaxation",
        (*_parameters("update.residual.elasticity.E"), *_derivatives(":")),
    ),
    # Derivatives with sub-batch axes cannot be compiled.
    "polycrystal": Recipe(
        MODELS / "polycrystal.i",
        "polycrystal",
        _derivatives(*(f"strain:{name}" for name in ("applied_stress", "strain~1", "t", "t~1"))),
    ),
    "crystal": Recipe(
        MODELS / "crystal.i",
        "crystal",
        _derivatives(
            *(
                f"{out}:{given}"
                for out in ("stress", "elastic_strain", "orientation")
                for given in ("deformation_rate", "vorticity", "t", "orientation~1")
            )
        ),
    ),
    "gmres": Recipe(_CREEP, "creep", (*_derivatives(":"), "Solvers/newton/linear_solver:=gmres")),
    # Stopped before inner products fall below NEML2's absolute 2e-16.
    "bicgstab": Recipe(
        _CREEP,
        "creep",
        (
            *_parameters(_E),
            *_derivatives(":"),
            "Solvers/newton/linear_solver:=bicgstab",
            "Solvers/newton/abs_tol:=2e-8",
            "Solvers/bicgstab/abs_tol:=2e-8",
            "Solvers/bicgstab/rel_tol:=1e-6",
            "Models/creep/input_sensitivity_solver=accurate_gmres",
            "Models/creep/param_sensitivity_solver=accurate_bicgstab",
        ),
    ),
    # The initial guess of an unknown that is not predicted is an input, of the output's name.
    "warm_start": Recipe(
        _CREEP, "creep", (*_derivatives(":"), "Models/predictor/unknowns_Scalar:=''")
    ),
    # Twelve iterations are too few for a large increment.
    "substepping": Recipe(
        _CREEP,
        "creep",
        (
            *_parameters(_E),
            *_derivatives(":"),
            "Solvers/newton/max_its:=12",
            "Models/creep/max_substepping_level=5",
        ),
    ),
    "transient": Recipe(MODELS / "transient.i", "relaxation", driver="driver"),
    # Older schemas: 2, 3, 7 and 12. Until 3.0.3 there is no choice of derivatives.
    "elasticity_3.0.0": Recipe(_ELASTICITY, "elasticity", ("-p", "E"), version="3.0.0"),
    "elasticity_3.0.3": Recipe(_ELASTICITY, "elasticity", ("-p", "E"), version="3.0.3"),
    "elasticity_3.0.6": Recipe(
        _ELASTICITY,
        "elasticity",
        (*_parameters("elasticity.E"), *_derivatives(":")),
        version="3.0.6",
    ),
    "creep_3.0.0": Recipe(_CREEP, "creep", version="3.0.0"),
    "creep_3.0.3": Recipe(_CREEP, "creep", version="3.0.3"),
    "creep_3.0.6": Recipe(_CREEP, "creep", (*_parameters(_E), *_derivatives(":")), version="3.0.6"),
    "creep_3.0.7": Recipe(_CREEP, "creep", (*_parameters(_E), *_derivatives(":")), version="3.0.7"),
}

#: Models that the tests of kernels take besides.
KERNEL_RECIPES = {
    # Powers that are no products, on twelve slip systems.
    "crystal_powers": Recipe(MODELS / "crystal_powers.i", "crystal"),
}


def _recipe(name: str) -> Recipe:
    return RECIPES[name] if name in RECIPES else KERNEL_RECIPES[name]


def cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "neml2_capi" / "artifacts"


def compiler_python() -> str:
    return os.environ.get("NEML2_CAPI_COMPILER") or sys.executable


def _compile_environment() -> dict[str, str]:
    # The compiler's own folder first, so that the tools installed beside an interpreter are found.
    tools = str(Path(compiler_python()).parent)
    return {**os.environ, **ISA, "PATH": tools + os.pathsep + os.environ.get("PATH", "")}


@functools.cache
def toolchain() -> str:
    """The versions that decide what a compilation yields."""
    query = (
        "from importlib.metadata import version; import platform;"
        "print(version('neml2'), version('torch'), platform.machine())"
    )
    answer = subprocess.run(
        [compiler_python(), "-c", query], capture_output=True, text=True, env=_compile_environment()
    )
    if answer.returncode:
        raise RuntimeError(
            f"{compiler_python()} has no neml2 and torch to compile the models with; install them "
            "with: pip install 'neml2_capi[compile]', or name an interpreter that has them in "
            "NEML2_CAPI_COMPILER"
        )
    cxx = os.environ.get("CXX", "g++")
    compiler = subprocess.run([cxx, "--version"], capture_output=True, text=True, check=True)
    return answer.stdout + compiler.stdout


def artifact(name: str, device: str = "") -> Path:
    """The artifact of a model, compiled when it is not in the cache; "cuda" needs a GPU."""
    recipe = _recipe(name)
    content = [_text(recipe.input), recipe.model, recipe.options]
    content += [choice for choice in (recipe.version, recipe.driver, device) if choice]
    chosen = ["--driver", recipe.driver] if recipe.driver else ["--model", recipe.model]
    options = [*chosen, *recipe.options, *(("--device", device) if device else ())]
    command = ["-m", "neml2.cli.aoti_compile", str(recipe.input), *options, "--output-dir"]
    folder = _cached(name, content, command, recipe.version)
    return folder if recipe.version and recipe.version <= _FLAT else folder / recipe.model


def captured(name: str) -> Path:
    """The folder of the scalar operations of a model's graphs, which capture.py writes."""
    recipe = _recipe(name)
    kernels = ROOT / "neml2_capi" / "kernels"
    parts = "arrays capture folding handlers operators program scalar trace"
    content = [_text(recipe.input), recipe.model, recipe.options, recipe.version]
    content += [(kernels / f"{part}.py").read_text() for part in parts.split()]
    chosen = ["--driver", recipe.driver] if recipe.driver else ["--model", recipe.model]
    script = str(MODELS / "capture.py")
    command = [script, str(recipe.input), *chosen, *recipe.options]
    return _cached(f"the graphs of {name}", content, command, recipe.version)


def _text(path: Path) -> str:
    """An input file and, after it, those that it includes."""
    text = path.read_text()
    included = re.findall(r"^!include (\S+)$", text, re.MULTILINE)
    return "".join([text, *(_text(path.parent / name) for name in included)])


def old_neml2(version: str) -> Path:
    """The folder of another version of neml2. What it depends on is that of the installed one."""
    packages = [f"neml2=={version}", "pyzag==1.1.4"]
    tag = [compiler_python(), "-c", "import sys; print(sys.implementation.cache_tag)"]
    python = subprocess.run(tag, capture_output=True, text=True, check=True).stdout
    command = ["-m", "pip", "install", "--quiet", "--no-deps", *packages, "--target"]
    return _cached(f"neml2 {version}", [*packages, python], command)


def graphs() -> Path:
    """The folder of the graphs that graphs.py compiles."""
    script = MODELS / "graphs.py"
    return _cached("the test graphs", [script.read_text()], [str(script)])


def signatures() -> Path:
    """The folder of the graphs that signatures.py compiles."""
    scripts = [MODELS / "signatures.py", MODELS / "graphs.py"]
    return _cached("the signatures", [s.read_text() for s in scripts], [str(scripts[0])])


def exports() -> Path:
    """The folder of what exports.py compiles, with this interpreter's torch and neml2_capi."""
    return _exported("the exported laws", MODELS / "exports.py")


def operators() -> Path:
    """The folder of what operators.py compiles."""
    scripts = MODELS / "operators.py", MODELS / "operator_schemas.py"
    return _exported("the packages that call operators", *scripts)


def surrogate() -> Path:
    """The artifact of examples/surrogate."""
    folder = _exported("the surrogate", EXAMPLES / "surrogate" / "train.py")
    return folder / "surrogate"


def _exported(name: str, script: Path, *modules: Path) -> Path:
    import neml2_capi.export

    package = sorted(Path(neml2_capi.export.__file__).parent.glob("*.py"))
    content = [source.read_text() for source in (script, *modules, *package)]
    return _cached(name, content, [str(script)], python=sys.executable)


def networks() -> Path:
    """The folder of the graphs that networks.py compiles."""
    script = MODELS / "networks.py"
    content = [script.read_text(), (MODELS / "scaling.py").read_text()]
    return _cached("the test networks", content, [str(script)])


def _cached(
    name: str, content: list[Any], command: list[str], version: str = "", python: str = ""
) -> Path:
    """The folder that `command`, followed by its path, fills; one for each `content`.

    It runs with the neml2 of `version`, or with the installed one, and with `python` or the
    compiler's.
    """
    known = json.dumps([*content, sorted(ISA.items()), toolchain()])
    folder = cache_root() / hashlib.sha256(known.encode()).hexdigest()[:16]
    with _locked(folder.with_suffix(".lock")):
        if not folder.exists():
            # Renamed when complete: a folder of this name is always whole.
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                output = Path(scratch) / "output"
                _compile(name, [python or compiler_python(), *command, str(output)], version)
                output.rename(folder)
    return folder


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(name: str, command: list[str], version: str) -> None:
    print(f"making {name} (a minute or two, once) ...", file=sys.stderr, flush=True)
    start = time.monotonic()
    environment = {**_compile_environment(), "PYTHONUNBUFFERED": "1"}
    if version:
        environment["PYTHONPATH"] = str(old_neml2(version))
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    output = ""
    for line in process.stdout or ():
        output += line
        if line.startswith("["):  # "[2/5] cpu/float64/viscoplastic_jacobian.pt2"
            print("  " + line.rstrip(), file=sys.stderr, flush=True)
    if process.wait():
        raise RuntimeError(f"making {name} failed:\n{output[-4000:]}")
    print(f"made {name} in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def renew_examples() -> None:
    """Write the prebuilt artifacts of the example models."""
    for name in ("elasticity", "viscoplastic", "combined_hardening"):
        shrink(artifact(name), EXAMPLES / "artifacts" / name)
        print(f"renewed {EXAMPLES / 'artifacts' / name}")


def main() -> None:
    layout = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECIPES)}")
    parser.add_argument("--examples", action="store_true", help="renew examples/artifacts")
    parser.add_argument("--into", type=Path, metavar="DIR", help="copy each artifact to DIR/NAME")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="compile N at a time")
    arguments = parser.parse_args()
    if arguments.examples:
        renew_examples()
        return
    prebuilt = {path.name for path in (EXAMPLES / "artifacts").iterdir()}
    names = arguments.names or [name for name in RECIPES if name not in prebuilt]
    unknown = [name for name in names if name not in RECIPES]
    if unknown:
        parser.error(f"no model {unknown[0]!r}; there are {', '.join(RECIPES)}")
    with ThreadPoolExecutor(arguments.jobs) as pool:
        roots = list(pool.map(artifact, names))
    for name, root in zip(names, roots, strict=True):
        if arguments.into:
            root = shutil.copytree(root, arguments.into / name, dirs_exist_ok=True)
        print(name, root)


if __name__ == "__main__":
    main()
