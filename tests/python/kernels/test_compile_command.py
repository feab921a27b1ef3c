"""neml2-capi compile --kernels: what it writes, with and without packages."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from kernel_setup import ROOT, native_target, require_compiler
from loaded import load

import neml2_capi
from neml2_capi.artifact.targets import level_here
from neml2_capi.kernels.folder import directory_checksum, read_metadata

#: With a constant whose element type is torch's default.
HARDENING = """\
[Tensors]
  [K]
    type = Python
    expr = "Scalar(torch.tensor(0.1))"
  []
[]
[Models]
  [law]
    type = LinearIsotropicHardening
    hardening_modulus = 'K'
    equivalent_plastic_strain = 'ep'
    isotropic_hardening = 'k'
  []
[]
"""
#: More iterations than the library takes.
ENDLESS = """\
[Models]
  [rate]
    type = ScalarBackwardEulerTimeIntegration
    variable = 'x'
    time = 't'
  []
  [law]
    type = ImplicitUpdate
    equation_system = 'system'
    solver = 'newton'
  []
[]
[EquationSystems]
  [system]
    type = NonlinearSystem
    model = 'rate'
    unknowns = 'x'
    residuals = 'x_residual'
  []
[]
[Solvers]
  [newton]
    type = Newton
    max_its = 2000000
    linear_solver = 'lu'
  []
  [lu]
    type = DenseLU
  []
[]
"""
ELASTICITY = ROOT / "examples" / "models" / "elasticity.i"

pytestmark = pytest.mark.full("it compiles models")


def compiled(
    into: Path, *options: str, source: Path = ELASTICITY, model: str = "elasticity"
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "neml2_capi.cli", "compile", str(source), "--model", model]
    command += ["--output-dir", str(into), *options]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def compiler() -> None:
    if not os.environ.get("NEML2_CAPI_COMPILER") and not importlib.util.find_spec("neml2"):
        pytest.skip("there is no neml2 to compile with")
    require_compiler("cc")


@pytest.mark.usefixtures("compiler")
def test_kernels_only_writes_all_but_packages(tmp_path: Path) -> None:
    target = native_target()
    done = compiled(tmp_path, "--kernels", "only", "--target", target, "-d", "stress:strain")
    assert done.returncode == 0, done.stderr
    root = tmp_path / "elasticity"
    assert not list(root.rglob("*.pt2"))
    assert json.loads((root / "metadata.json").read_text())["schema_version"] == 14
    document = read_metadata(root / "kernels" / "float64")
    assert [k["name"] for k in document["kernels"]] == ["elasticity", "elasticity_jvp"]
    assert [k["package_checksum"] for k in document["kernels"]] == [None, None]
    kernel = load(root / "kernels" / "float64" / f"{target}.so")["elasticity"]
    assert (kernel.inputs, kernel.outputs) == ([("strain", 6)], [("stress", 6)])
    strain = np.array([[1e-3, 0, 0, 0, 0, 0]])
    stress = neml2_capi.Model(root).forward({"strain": strain})["stress"]
    np.testing.assert_allclose(stress, kernel(strain)[0], rtol=1e-14)


@pytest.mark.usefixtures("compiler")
def test_tensors_of_an_input_file_have_the_element_type_that_neml2_run_gives(
    tmp_path: Path,
) -> None:
    source = tmp_path / "law.i"
    source.write_text(HARDENING)
    options = ("--kernels", "only", "--target", native_target(), "-q")
    done = compiled(tmp_path, *options, source=source, model="law")
    assert done.returncode == 0, done.stderr
    assert neml2_capi.Model(tmp_path / "law").forward({"ep": np.ones(1)})["k"] == 0.1


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "kernels", ["only", pytest.param("auto", marks=pytest.mark.everything("AOTInductor"))]
)
def test_native_is_this_processor_alone(tmp_path: Path, kernels: str) -> None:
    """Inspect tells of it; another processor is told what it lacks: see tests/python/test_travel"""
    done = compiled(tmp_path, "--kernels", kernels, "--target", "native")
    assert done.returncode == 0, done.stderr
    root = tmp_path / "elasticity"
    objects = read_metadata(root / "kernels" / "float64")["objects"]
    best = "aarch64" if os.uname().machine == "aarch64" else level_here()
    assert objects[0]["target"] == best
    assert len(objects) == (2 if best == "x86-64-v4" else 1)  # and blocks for few points
    strain = np.array([[1e-3, 0, 0, 0, 0, 0]])
    assert neml2_capi.Model(root).forward({"strain": strain})["stress"][0, 0] > 0
    command = [sys.executable, "-m", "neml2_capi.cli", "inspect", str(root)]
    assert best in subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.usefixtures("compiler")
def test_two_that_compile_to_one_folder_wait_for_each_other(tmp_path: Path) -> None:
    options = ("--kernels", "only", "--target", native_target(), "-q")
    with ThreadPoolExecutor(2) as pool:  # a process each
        done = list(pool.map(lambda _: compiled(tmp_path, *options), range(2)))
    assert [each.returncode for each in done] == [0, 0], [each.stderr for each in done]
    strain = np.array([[1e-3, 0, 0, 0, 0, 0]])
    assert neml2_capi.Model(tmp_path / "elasticity").forward({"strain": strain})["stress"][0, 0] > 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.everything("AOTInductor compiles packages")
@pytest.mark.usefixtures("compiler")
def test_packages_and_kernels_are_written_together(tmp_path: Path) -> None:
    target = native_target()
    done = compiled(tmp_path, "--kernels", "auto", "--target", target, "-q")
    assert done.returncode == 0, done.stderr
    root = tmp_path / "elasticity"
    (entry,) = read_metadata(root / "kernels" / "float64")["kernels"]
    assert entry["package_checksum"] == directory_checksum(root / entry["package"])
    strain = 1e-3 * np.random.default_rng(1).standard_normal((7, 6))
    stress = neml2_capi.Model(root).forward({"strain": strain})["stress"]
    kernel = load(root / "kernels" / "float64" / f"{target}.so")["elasticity"]
    np.testing.assert_allclose(kernel(strain)[0], stress, rtol=1e-12, atol=1e-12)


def test_a_folder_of_kernels_disturbs_no_artifact(tmp_path: Path) -> None:
    root = shutil.copytree(ROOT / "examples" / "artifacts" / "elasticity", tmp_path / "elasticity")
    shutil.rmtree(root / "kernels")
    strain = np.full((3, 6), 1e-3)
    before = neml2_capi.Model(root).forward({"strain": strain})["stress"]
    (root / "kernels" / "float64").mkdir(parents=True)
    (root / "kernels" / "float64" / "kernels.json").write_text("{}")
    after = neml2_capi.Model(root).forward({"strain": strain})["stress"]
    np.testing.assert_array_equal(before, after)


@pytest.mark.usefixtures("compiler")
def test_packages_for_a_target_of_kernels_alone_are_refused(tmp_path: Path) -> None:
    done = compiled(tmp_path, "--target", "aarch64")
    assert done.returncode == 2
    assert "packages cannot be compiled for aarch64" in " ".join(done.stderr.split())


EXTENSION = """
import torch
from neml2.factory import register_neml2_object
from neml2.models.model import Model
from neml2.schema import HitSchema, input, output
from neml2.types import SR2


@register_neml2_object("SortedStrain")
class SortedStrain(Model):
    hit = HitSchema(input("strain", SR2, "."), output("stress", SR2, "."))

    def forward(self, strain, *promoted_params, v=None):
        return SR2(torch.sort(strain.data)[0])
"""
SORTED = "[Models]\n  [sorted]\n    type = SortedStrain\n  []\n[]\n"


@pytest.mark.usefixtures("compiler")
def test_a_model_without_kernels_is_refused_before_it_is_written(tmp_path: Path) -> None:
    """With the line of the operator; and what was there before stays."""
    (tmp_path / "types.py").write_text(EXTENSION)
    (tmp_path / "sorted.i").write_text(SORTED)
    command = [sys.executable, "-m", "neml2_capi.cli", "compile", str(tmp_path / "sorted.i")]
    command += ["--model", "sorted", "--load", str(tmp_path / "types.py"), "--kernels", "only"]
    command += ["--output-dir", str(tmp_path / "out")]
    (tmp_path / "out" / "sorted").mkdir(parents=True)
    (tmp_path / "out" / "sorted" / "metadata.json").write_text("earlier")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    told = " ".join(done.stderr.split())
    assert "sorted cannot run on kernels alone: sorted.pt2 has no kernel" in told
    assert "aten.sort.default is unknown" in told
    assert "types.py:14: `return SR2(torch.sort(strain.data)[0])`" in told
    assert "--kernels auto" in told
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["sorted"]
    assert (tmp_path / "out" / "sorted" / "metadata.json").read_text() == "earlier"


@pytest.mark.usefixtures("compiler")
def test_what_cannot_be_opened_is_told_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / "law.i").write_text(ENDLESS)
    options = ("--kernels", "only", "--target", native_target(), "-q")
    done = compiled(tmp_path / "out", *options, source=tmp_path / "law.i", model="law")
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert line.startswith("Error: law cannot be opened: law/metadata.json: the solver: ")
    assert "'miters' must lie between 1 and 1e+06" in line
    assert line.endswith("with other settings. Nothing was written.")
    assert "--kernels auto" not in line
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.usefixtures("compiler")
def test_packages_in_float64_of_a_float32_leaf_are_told(tmp_path: Path) -> None:
    options = ("--kernels", "only", "--target", native_target(), "-q", "--dtype", "float32")
    done = compiled(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert neml2_capi.Model(tmp_path / "elasticity", dtype="float32").dtype == np.float64
    assert "Warning: " in done.stderr
    assert "takes and gives arrays of float64" in done.stderr


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("cc", "written"), [("false", False), ("no-such-compiler", True)])
def test_kernels_that_no_compiler_takes_are_refused(tmp_path: Path, cc: str, written: bool) -> None:
    """If there is no compiler, the sources wait for another machine."""
    done = compiled(tmp_path, "--kernels", "only", "--cc", cc, "-q")
    assert (done.returncode == 0) == written
    assert (tmp_path / "elasticity").exists() == written
    told = " ".join(done.stderr.split())
    assert (f"the compiler {cc} cannot be run" if written else f"{cc} does not compile") in told


@pytest.mark.usefixtures("compiler")
def test_a_parameter_is_named_by_its_end(tmp_path: Path) -> None:
    parameter = ("-p", "E", "-d", ":elasticity.E")
    done = compiled(tmp_path, "--kernels", "only", "--target", native_target(), *parameter)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "elasticity") in done.stdout
    model = neml2_capi.Model(tmp_path / "elasticity")
    assert [parameter.name for parameter in model.parameters] == ["elasticity.E"]
    # The package that pulls back over points has no kernel, and lanes need none.
    inputs, weights = {"strain": np.full((3, 6), 1e-3)}, {"stress": np.ones((3, 6))}
    (block,) = model.param_jacobian(inputs)[1]["stress"].values()
    pulled = model.param_vjp(inputs, weights)["elasticity.E"]
    np.testing.assert_allclose(pulled, block.sum(), rtol=1e-14)
    assert (tmp_path / "elasticity_aoti.i").is_file()


@pytest.mark.usefixtures("compiler")
def test_an_unknown_parameter_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    done = compiled(tmp_path, "--kernels", "no", "-p", "E_young")
    assert done.returncode != 0
    assert "-p E_young is no parameter of the model" in done.stderr
    assert "elasticity.E, elasticity.nu" in done.stderr
    assert not list(tmp_path.rglob("metadata.json"))
