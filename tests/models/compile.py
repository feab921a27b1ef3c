"""Compile the models of the tests and examples with the real neml2-compile, once.

    python tests/models/compile.py             compile all that is not in the archive
    python tests/models/compile.py NAME ...    compile these, and print where the artifacts are
    python tests/models/compile.py NAME ... --into DIR   and copy them to DIR/NAME
    python tests/models/compile.py --archive   renew the archive of archive.py
    python tests/models/compile.py --examples  renew examples/artifacts, small and without paths,
                                               and neml2_capi/examples

The archive has what was compiled from these recipes. An artifact that it lacks is cached by content
(the input, the options, the versions of neml2, torch and the compiler, the instruction set) under
$XDG_CACHE_HOME/neml2_capi/artifacts, for every checkout. NEML2_CAPI_COMPILER names the Python
interpreter that has neml2 and torch, if this one has not.
"""

from __future__ import annotations

import argparse
import ast
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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archive import GRAPHS, archived, digest, made_once, write
from recipes import EXAMPLES, KERNEL_RECIPES, MODELS, RECIPES, ROOT, SHIPPED, Recipe
from shrink import shrink, shrink_all

# Code for any x86-64 of the last decade: packages are built with -march=native otherwise.
ISA = {"TORCHINDUCTOR_CPP_MARCH": "x86-64-v3", "ATEN_CPU_CAPABILITY": "avx2"}


# Last version whose output folder is itself the artifact.
_FLAT = "3.0.3"


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
    """The artifact of a model; "cuda" needs a GPU."""
    recipe = _recipe_named(name)
    folder = made(name, device=device)
    return folder if recipe.version and recipe.version <= _FLAT else folder / recipe.model


@dataclass(frozen=True)
class Making:
    """Way to make a folder: a command, which its path ends, and the texts and options."""

    content: list[Any]
    command: list[str]
    version: str = ""  # of neml2
    python: str = ""  # instead of the compiler's


def made(name: str, archive: bool = True, device: str = "") -> Path:
    """The folder of a name: from the archive, or compiled if that has another or none."""
    making = _making_of(name, device)
    found = archived(name, _recipe(making)) if archive and not device else None
    return found or _cached(name, making)


def recipe_of(name: str) -> Any:
    """Return the recipe of a name, without the versions of the tools."""
    return _recipe(_making_of(name, ""))


def _recipe(making: Making) -> Any:
    return [*making.content, sorted(ISA.items())]


def _recipe_named(name: str) -> Recipe:
    return RECIPES[name] if name in RECIPES else KERNEL_RECIPES[name]


def captured(name: str) -> Path:
    """The folder of the scalar operations of a model's graphs, which capture.py writes."""
    making = _capture_of(name)
    found = archived(name, _recipe(making), GRAPHS)
    return found or _cached(f"the graphs of {name}", making)


def capture_recipe_of(name: str) -> Any:
    """Return the recipe of captured(), without the versions of the tools."""
    return _recipe(_capture_of(name))


def _capture_of(name: str) -> Making:
    recipe = _recipe_named(name)
    kernels = ROOT / "neml2_capi" / "kernels"
    parts = "arrays backward capture dropped elementwise folding handlers lowered operators"
    parts += " pointwise program quotients scalar signs trace walk"
    content = [_text(recipe.input), recipe.model, recipe.options, recipe.version]
    content += [_code(kernels / f"{part}.py") for part in parts.split()]
    chosen = ["--driver", recipe.driver] if recipe.driver else ["--model", recipe.model]
    command = [str(MODELS / "capture.py"), str(recipe.input), *chosen, *recipe.options]
    return Making(content, command, recipe.version)


def with_kernels(name: str, target: str) -> Path:
    """The artifact of a model with kernels, built by the C compiler once for each content."""
    sources = sorted((ROOT / "neml2_capi" / "kernels").rglob("*.*"))
    recipe = [recipe_of(name), capture_recipe_of(name), target]
    recipe += [path.read_text() for path in sources if path.suffix in (".py", ".h")]
    prebuilt = EXAMPLES / "artifacts" / name
    packages = prebuilt if prebuilt.is_dir() else artifact(name)

    def make(output: Path) -> None:
        root = output / packages.name
        shutil.copytree(packages, root, ignore=shutil.ignore_patterns("kernels"))
        add_kernels(name, root, [target])

    return made_once(cache_root().parent / "kernels" / digest(recipe), make) / packages.name


def for_another_machine(name: str, target: str) -> Path:
    """The artifact of a model whose packages do not run here, with all kernels that it needs."""
    if name not in graph_names():
        raise NotCompiledError(NO_PACKAGES)
    root = with_kernels(name, target)
    (kernels,) = root.glob("kernels/*/kernels.json")
    # The engine itself solves dense systems, and makes products with derivatives from these.
    needed = [
        lost
        for lost in json.loads(kernels.read_text())["missing"]
        if "linalg_solve" not in lost["reason"] and not lost["package"].endswith("_pvjp.pt2")
    ]
    if needed:
        raise NotCompiledError(NO_PACKAGES)
    return root


def add_kernels(name: str, root: Path, targets: Sequence[str] = ()) -> None:
    """Write and build the kernels of the artifact in a folder."""
    from neml2_capi.kernels.build import build
    from neml2_capi.kernels.folder import write_sources
    from neml2_capi.kernels.program import Program

    programs: dict[str, Any] = {}
    for file in sorted(captured(name).glob("*.json")):
        document = json.loads(file.read_text())
        found = document.get("program")
        package = Path(document["package"]).name
        programs[package] = Program.from_json(json.dumps(found)) if found else document["reason"]
    metadata = json.loads((root / "metadata.json").read_text())
    (leaf,) = {path.parent for path in root.rglob("*.pt2")}
    where = leaf.relative_to(root).as_posix()
    versions = {"neml2": "3.1.0", "torch": "2.13.0"}
    build(write_sources(root, where, programs, metadata, versions), targets)


def graph_names() -> list[str]:
    """The models whose graphs are archived. Older schemas are compiled by a NEML2 without them."""
    return [name for name, recipe in {**RECIPES, **KERNEL_RECIPES}.items() if not recipe.version]


def names() -> list[str]:
    """Everything that is made here, but the prebuilt examples."""
    prebuilt = {path.name for path in (EXAMPLES / "artifacts").iterdir()}
    return [*_SCRIPTS, *(name for name in RECIPES if name not in prebuilt)]


def _making_of(name: str, device: str) -> Making:
    if name in _SCRIPTS:
        return _making_by_script(name)
    recipe = _recipe_named(name)
    content = [_text(recipe.input), recipe.model, recipe.options]
    content += [choice for choice in (recipe.version, recipe.driver, device) if choice]
    chosen = ["--driver", recipe.driver] if recipe.driver else ["--model", recipe.model]
    options = [*chosen, *recipe.options, *(("--device", device) if device else ())]
    command = ["-m", "neml2.cli.aoti_compile", str(recipe.input), *options, "--output-dir"]
    return Making(content, command, recipe.version)


def _text(path: Path) -> str:
    """An input file and, after it, those that it includes."""
    text = path.read_text()
    included = re.findall(r"^!include (\S+)$", text, re.MULTILINE)
    return "".join([text, *(_text(path.parent / name) for name in included)])


def old_neml2(version: str) -> Path:
    """The folder of another version of neml2. It depends on the packages of the installed one."""
    packages = [f"neml2=={version}", "pyzag==1.1.4"]
    tag = [compiler_python(), "-c", "import sys; print(sys.implementation.cache_tag)"]
    python = subprocess.run(tag, capture_output=True, text=True, check=True).stdout
    command = ["-m", "pip", "install", "--quiet", "--no-deps", *packages, "--target"]
    return _cached(f"neml2 {version}", Making([*packages, python], command))


# Scripts that compile graphs, each with the modules that it imports.
_SCRIPTS = {
    "graphs": (MODELS / "graphs.py",),
    "signatures": (MODELS / "signatures.py", MODELS / "graphs.py"),
    "networks": (MODELS / "networks.py", MODELS / "scaling.py"),
    "exports": (MODELS / "exports.py",),
    "operators": (MODELS / "operators.py", MODELS / "operator_schemas.py"),
    "surrogate": (EXAMPLES / "surrogate" / "train.py",),
}
# Scripts that use neml2_capi.export, which is a part of their recipe.
_EXPORTED = ("exports", "operators", "surrogate")


def _making_by_script(name: str) -> Making:
    scripts = _SCRIPTS[name]
    exported = name in _EXPORTED
    exporter = sorted((ROOT / "neml2_capi" / "export").glob("*.py")) if exported else []
    content = [_code(source) for source in (*scripts, *exporter)]
    return Making(content, [str(scripts[0])], python=sys.executable if exported else "")


def _code(path: Path) -> str:
    """The lines of a script that decide what it makes: no imports, docstrings, comments."""
    text = path.read_text()
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr):
            continue
        if not isinstance(node, ast.Expr) or isinstance(node.value, ast.Constant):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = (line.rstrip() for n, line in enumerate(text.splitlines(), 1) if n not in left_out)
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))


def _cached(name: str, making: Making) -> Path:
    """The folder that is made once for each content, in the cache of all checkouts."""
    if os.environ.get("NEML2_CAPI_COMPILE") == "0":
        raise NotCompiledError(
            "a model would have to be compiled, and NEML2_CAPI_COMPILE is 0; if its recipe has "
            "changed, renew the archive: python3 build.py models"
        )
    known = json.dumps([*_recipe(making), toolchain()])
    folder = cache_root() / hashlib.sha256(known.encode()).hexdigest()[:16]

    def make(output: Path) -> None:
        command = [making.python or compiler_python(), *making.command, str(output)]
        _compile(name, command, making.version)

    return made_once(folder, make)


class NotCompiledError(Exception):
    """Model that is not in the archive, and may not be compiled here."""


NO_PACKAGES = "packages of the archive are for another machine"


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
        root = EXAMPLES / "artifacts" / name
        shrink(artifact(name), root)
        add_kernels(name, root, ["x86-64-v3", "x86-64-v4", "aarch64"])
        for source in root.glob("kernels/*/*.[ch]"):  # they stand in neml2_capi/examples
            source.unlink()
        print(f"renewed {root}")
    for name, recipe in SHIPPED.items():
        _renew_shipped(ROOT / "neml2_capi" / "examples" / name, recipe)


def _renew_shipped(root: Path, recipe: Recipe) -> None:
    """Write an artifact that comes with the package, by this checkout's own command."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "neml2_capi.cli", "compile", str(recipe.input)]
        command += ["--model", recipe.model, "--output-dir", scratch, "--kernels", "only", "-q"]
        for target in ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"):
            command += ["--target", target]
        # -m looks in the working directory first, where the checkout has no library.
        subprocess.run([*command, *recipe.options], check=True, cwd=scratch)
        made = Path(scratch) / recipe.model
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        shutil.copy(made / "metadata.json", root)
        # The headers are those of neml2_capi/kernels/c.
        no_headers = shutil.ignore_patterns("*.h")
        shutil.copytree(made / "kernels", root / "kernels", ignore=no_headers)
    print(f"renewed {root}")


def renew_archive(jobs: int) -> None:
    """Compile what the archive lacks, and write it again, each package shrunk."""
    with ThreadPoolExecutor(jobs) as pool:
        folders = dict(zip(names(), pool.map(made, names()), strict=True))
    with tempfile.TemporaryDirectory() as scratch:
        for name, folder in folders.items():
            shrink_all(folder, Path(scratch) / name)
        write((name, Path(scratch) / name, recipe_of(name)) for name in folders)
    print(f"renewed {MODELS / 'models.tar.xz'}")
    write(((name, captured(name), capture_recipe_of(name)) for name in graph_names()), GRAPHS)
    print(f"renewed {MODELS / 'graphs.tar.xz'}")


def main() -> None:
    layout = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECIPES)}")
    parser.add_argument("--archive", action="store_true", help="renew the archive")
    parser.add_argument("--examples", action="store_true", help="renew examples/artifacts")
    parser.add_argument("--into", type=Path, metavar="DIR", help="copy each artifact to DIR/NAME")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="compile N at a time")
    arguments = parser.parse_args()
    if arguments.examples:
        renew_examples()
    if arguments.archive:
        renew_archive(arguments.jobs)
    if arguments.examples or arguments.archive:
        return
    prebuilt = {path.name for path in (EXAMPLES / "artifacts").iterdir()}
    chosen = arguments.names or [name for name in RECIPES if name not in prebuilt]
    unknown = [name for name in chosen if name not in RECIPES]
    if unknown:
        parser.error(f"no model {unknown[0]!r}; there are {', '.join(RECIPES)}")
    with ThreadPoolExecutor(arguments.jobs) as pool:
        roots = list(pool.map(artifact, chosen))
    for name, root in zip(chosen, roots, strict=True):
        if arguments.into:
            root = shutil.copytree(root, arguments.into / name, dirs_exist_ok=True)
        print(name, root)


if __name__ == "__main__":
    main()
