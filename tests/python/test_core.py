"""The core alone, a library without backends: it runs all that has kernels, on any system."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from kernel_setup import with_kernels
from native import ROOT, TESTS
from other_systems import PRESETS, core_for, passes, starter
from recipes import RECIPES

from neml2_capi._ffi.library import library_path
from neml2_capi.kernels.build import build as build_kernels

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools.environments import checkout
from tools.native import Build, configured
from tools.process import CACHE, Command

pytestmark = [pytest.mark.native, pytest.mark.full("builds the library once more")]

# They compare with stored references, or ask for what needs a tensor: substeps, a batch that
# converges as a whole, solving oneself, kernels that are switched off.
REFERENCES = ["test_reference.py", "test_reference_derivatives.py", "test_derivatives.py"]
REFERENCES += ["test_predicted_inputs.py"]
OPTIONS = ["test_solvers.py", "test_reports.py", "test_bind.py", "test_parameters.py"]
OPTIONS += ["test_invariance.py"]

# Writes what every model of the tests with all its kernels gives in a state: in lanes, by tensors.
EVALUATED = """
import shutil, sys
from pathlib import Path
import numpy as np
from kernel_setup import models, native_target
from states import state_of
from neml2_capi import Model
results, scratch = {}, Path(sys.argv[1])
for name in filter(models.RECIPES.get, models.graph_names()):
    try:
        made = models.for_another_machine(name, native_target())
    except models.NotCompiledError:
        continue
    root = shutil.copytree(made, scratch / name, ignore=shutil.ignore_patterns("*.pt2"))
    for kernels in ("auto", "off"):
        model = Model(root, dtype="float32" if name == "elasticity_float32" else "float64")
        model.options["kernels"] = kernels
        state = state_of(name, model)
        known = bool(model.derivatives)
        outputs, jacobian = model.jacobian(state) if known else (model.forward(state), {})
        for output, value in outputs.items():
            results[f"{name} {kernels} {output}"] = value
            for by, block in jacobian.get(output, {}).items():
                results[f"{name} {kernels} {output} {by}"] = block
np.savez(scratch / "results.npz", **results)
"""

REFUSED = """
from neml2_capi import FatalError, Graph, Model, examples
from neml2_capi._ffi import runtime
on_device = lambda: Model(examples.path("elasticity"), device="opencl")
for call in (lambda: Graph("some.pt2"), runtime.libtorch, on_device):
    try:
        call()
    except FatalError as error:
        assert "it was built with: none" in str(error), error
    else:
        raise AssertionError("it is there")
"""


@pytest.fixture(scope="module")
def core() -> Build:
    folder = CACHE / "cmake" / f"core-{checkout()}"
    build = configured("-DNEML2_CAPI_BACKENDS=", folder=folder)
    build.make(title="building the core and its programs")
    return build


def run(core: Build, *command: str | Path) -> None:
    (library,) = core.folder.glob("lib/libneml2_capi.so.?")
    names = {"NEML2_CAPI_LIBRARY": str(library), "NEML2_CAPI_FOREIGN_PACKAGES": "1"}
    passes(command, **names)


def test_it_has_no_provider(core: Build) -> None:
    assert not list(core.folder.glob("lib/libn2*.so"))


def test_its_programs_pass(core: Build) -> None:
    command: Command = ["ctest", "--test-dir", core.folder, "--output-on-failure", "-j2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.parametrize("files", [REFERENCES, OPTIONS], ids=["references", "options"])
def test_python_tests_pass_on_kernels(core: Build, files: list[str]) -> None:
    tests = [TESTS / "python" / file for file in files]
    chosen = ("-m", "not native and not full", f"--rootdir={ROOT}")
    run(core, sys.executable, "-m", "pytest", "-q", *chosen, *tests)


def test_every_model_of_kernels_has_the_bits_of_the_whole_library(
    core: Build, tmp_path: Path
) -> None:
    folders = [TESTS / place for place in ("models", "python", "python/kernels")]
    path = os.pathsep.join([*(str(folder) for folder in folders), os.environ.get("PYTHONPATH", "")])
    command = ["env", f"PYTHONPATH={path}", sys.executable, "-c", EVALUATED]
    for library in ("core", "whole"):
        (tmp_path / library).mkdir()
    run(core, *command, tmp_path / "core")
    passes([*command, tmp_path / "whole"], NEML2_CAPI_LIBRARY=library_path())
    found, expected = (dict(np.load(tmp_path / x / "results.npz")) for x in ("core", "whole"))
    lacking = {"elasticity_static", "gmres"}  # docs/design/lane-engine.md
    models = {name for name, recipe in RECIPES.items() if not recipe.version}
    assert {name.split()[0] for name in expected} == models - lacking
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].tobytes() == value.tobytes(), name


def test_what_needs_a_backend_is_unsupported(core: Build) -> None:
    run(core, sys.executable, "-c", REFUSED)


@pytest.mark.everything("compiles the library for another system")
@pytest.mark.parametrize("preset", PRESETS)
def test_it_is_compiled_and_linked_for_another_system(
    core: Build, preset: str, tmp_path: Path
) -> None:
    there, program = core_for(preset), tmp_path / "host.exe"
    assert not there.compile(ROOT / "examples" / "c" / "example.c", program)
    assert program.stat().st_size > 0
    start = starter(preset)
    if start is None:
        return
    names, here = ("elasticity", "viscoplastic"), tmp_path / "here"
    for name in names:
        without = shutil.ignore_patterns("*.pt2")
        root = shutil.copytree(with_kernels(name), here / name, ignore=without)
        (kernels,) = shutil.copytree(root, tmp_path / name).glob("kernels/*")
        system = "windows" if preset == "core-windows" else "linux"
        build_kernels(kernels, ["x86-64-v3"], system=system)
    shutil.copytree(there.folder / "lib", tmp_path, dirs_exist_ok=True)  # beside a program
    found = {"LD_LIBRARY_PATH": str(tmp_path), "WINEPREFIX": str(tmp_path / "wine")}
    printed = passes([*start, program, *(tmp_path / name for name in names)], **found)
    assert printed == passes([core.folder / "bin" / "example_c", *(here / name for name in names)])


@pytest.mark.everything("compiles the library by another compiler")
def test_clang_compiles_it(tmp_path: Path) -> None:
    if not shutil.which("clang++"):
        pytest.skip("clang++ is not installed")
    folder = CACHE / "cmake" / f"core-clang-{checkout()}"
    compilers = ["-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++"]
    build = configured(
        "-DNEML2_CAPI_BACKENDS=", "-DNEML2_CAPI_TESTS=OFF", *compilers, folder=folder
    )
    build.make("neml2_capi", title="building the core by clang")
    run(build, sys.executable, "-c", REFUSED)
