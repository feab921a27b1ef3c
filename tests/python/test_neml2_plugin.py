"""The plug-in of NEML2: its stubs, its drivers and neml2-run on this library."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import PREBUILT, ROOT
from numpy.typing import NDArray
from patience import PATIENCE

from neml2_capi import ConvergenceError, FatalError, Model

torch = pytest.importorskip("torch")


def installed() -> str:
    try:
        return version("neml2")
    except PackageNotFoundError:
        return "none"


pytestmark = pytest.mark.skipif(
    not installed().startswith("3.1"), reason=f"needs neml2 3.1, and here is {installed()}"
)

Array = NDArray[np.float64]
Artifacts = Mapping[str, Path]

STUB = PREBUILT / "elasticity_aoti.i"
STRAIN = 1e-3 * np.random.default_rng(1).standard_normal((4, 6))


@pytest.fixture(scope="module")
def plugin() -> Iterator[Any]:
    # Not before these tests run: the import changes torch.
    import neml2_capi.neml2

    neml2_capi.neml2.install()
    yield neml2_capi.neml2
    neml2_capi.neml2.uninstall()


@pytest.fixture(scope="module")
def neml2(plugin: Any) -> Any:
    import neml2

    return neml2


@pytest.fixture
def elasticity(neml2: Any) -> Any:
    return neml2.load_model(STUB, "elasticity")


@pytest.fixture
def grains(plugin: Any, artifacts: Artifacts) -> Any:
    """Elasticity of five grains in each point."""
    return plugin.AOTIModel(artifacts["elasticity_grains"])


def relative_error(actual: Any, expected: Any) -> float:
    assert actual.shape == expected.shape
    return float(abs(actual - expected).max() / abs(expected).max())


# ---- a model ----


def test_the_stub_gives_a_model_of_neml2(neml2: Any, elasticity: Any, plugin: Any) -> None:
    SR2 = neml2.types.SR2
    assert type(elasticity) is plugin.AOTIModel
    assert elasticity.input_spec == {"strain": SR2}
    assert elasticity.output_spec == {"stress": SR2}
    strain = SR2(torch.tensor(STRAIN))
    (stress,) = elasticity(strain)
    assert type(stress) is SR2 and not stress.data.requires_grad
    source = ROOT / "examples" / "models" / "elasticity.i"
    eager = neml2.load_model(source, "elasticity").to(torch.float64)
    assert relative_error(stress.data, eager(strain).data.detach()) < 1e-12


def test_a_model_has_the_lists_of_neml2s(plugin: Any, artifacts: Artifacts) -> None:
    model = plugin.Model(PREBUILT / "elasticity")
    assert (model.input_names, model.output_names) == (["strain"], ["stress"])
    assert model.input_base_shapes == model.output_base_shapes == [[6]]
    assert model.input_sub_batch_shapes == model.output_sub_batch_shapes == [[]]
    assert model.input_types == model.output_types == ["SR2"]
    assert plugin.Model(artifacts["elasticity_grains"]).input_sub_batch_shapes == [[5]]
    parameters = plugin.Model(artifacts["elasticity_parameters"]).parameter_base_shapes
    assert parameters and set(map(tuple, parameters.values())) == {()}


def test_any_batch_typed_or_not(neml2: Any, elasticity: Any, model: Model) -> None:
    for shape in ((6,), (0, 6), (2, 2, 6)):
        strain = np.resize(STRAIN, shape)
        expected = model.forward({"strain": strain})["stress"]
        tensor = torch.tensor(strain)
        for given in (neml2.types.SR2(tensor), tensor):
            (stress,) = elasticity(given)
            assert stress.sub_batch_ndim == 0
            np.testing.assert_array_equal(stress.data, expected)


def test_the_batches_of_inputs_broadcast(plugin: Any, neml2: Any, viscoplastic: Model) -> None:
    model = plugin.AOTIModel(PREBUILT / "viscoplastic")
    inputs = {x.name: np.zeros(x.base_shape) for x in viscoplastic.inputs}
    inputs |= {"t": np.array(1.0), "strain": STRAIN}
    expected = viscoplastic.forward(inputs)
    results = model(*(kind(torch.tensor(inputs[x])) for x, kind in model.input_spec.items()))
    assert list(model.output_spec) == list(expected)
    for result, kind, value in zip(
        results, model.output_spec.values(), expected.values(), strict=True
    ):
        assert type(result) is kind
        np.testing.assert_array_equal(result.data, value)


def test_sub_batch_axes_stay_apart_from_the_batch(neml2: Any, grains: Any) -> None:
    strain = torch.tensor(np.random.default_rng(2).standard_normal((3, 5, 6)))
    (stress,) = grains(neml2.types.SR2(strain, sub_batch_ndim=1))
    assert tuple(stress.sub_batch_shape) == (5,) and tuple(stress.data.shape) == (3, 5, 6)
    # What has no such axis holds for every grain.
    (same,) = grains(neml2.types.SR2(strain[:, 0]))
    assert tuple(same.data.shape) == (3, 5, 6)
    for grain in range(5):
        torch.testing.assert_close(same.data[:, grain], stress.data[:, 0])
    with pytest.raises(ValueError, match=r"'strain' has 2 sub-batch axes.*compiled with 1"):
        grains(neml2.types.SR2(strain, sub_batch_ndim=2))


def test_parameters_and_derivatives(neml2: Any, elasticity: Any, model: Model) -> None:
    inputs = {"strain": torch.tensor(STRAIN)}
    expected = model.jacobian({"strain": STRAIN})[1]["stress"]["strain"]
    np.testing.assert_array_equal(elasticity.jacobian(inputs)[1]["stress"]["strain"], expected)
    tangent = elasticity.jvp(inputs, inputs)[1]["stress"]
    (before,) = elasticity(inputs["strain"])
    torch.testing.assert_close(tangent, before.data, rtol=1e-12, atol=0.0)
    elasticity.set_parameter("elasticity.E", neml2.types.Scalar(torch.tensor(400e3).double()))
    (twice,) = elasticity(inputs["strain"])
    torch.testing.assert_close(twice.data, 2.0 * before.data, rtol=1e-12, atol=0.0)
    elasticity.named_parameters()["elasticity.E"].fill_(200e3)
    (again,) = elasticity(inputs["strain"])
    torch.testing.assert_close(again.data, before.data, rtol=0.0, atol=0.0)


def test_threads_call_one_model(neml2: Any, elasticity: Any, model: Model) -> None:
    def evaluate(factor: int) -> Any:
        (stress,) = elasticity(neml2.types.SR2(torch.tensor(factor * STRAIN)))
        return stress.data

    with ThreadPoolExecutor(4) as pool:
        for factor, stress in enumerate(pool.map(evaluate, range(50))):
            expected = model.forward({"strain": factor * STRAIN})["stress"]
            np.testing.assert_array_equal(stress, expected)


def test_the_dtype_at_loading_chooses_the_leaf(neml2: Any, artifacts: Artifacts) -> None:
    stub = artifacts["elasticity_float32"].parent / "elasticity_aoti.i"
    model = neml2.load_model(stub, "elasticity", dtype=torch.float32)
    # What neml2-compile 3.1.0 writes there is float64.
    (stress,) = model(torch.tensor(STRAIN))
    assert stress.data.dtype == torch.float64
    with pytest.raises(FatalError, match="not compiled for cpu/float64"):
        neml2.load_model(stub, "elasticity")


# ---- what is refused ----


def test_a_missing_artifact_is_a_missing_file(neml2: Any, tmp_path: Path) -> None:
    stub = tmp_path / STUB.name
    stub.write_text(STUB.read_text())
    with pytest.raises(FileNotFoundError, match=f"no folder {tmp_path}/elasticity"):
        neml2.load_model(stub, "elasticity")
    (tmp_path / "elasticity").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no file .*metadata.json"):
        neml2.load_model(stub, "elasticity")
    stub.write_text(STUB.read_text().replace("artifact_path", "artefact_path"))
    with pytest.raises(ValueError, match="artefact_path"):
        neml2.load_model(stub, "elasticity")


def test_an_input_that_does_not_fit_is_a_type_error(neml2: Any, elasticity: Any) -> None:
    strain = torch.tensor(STRAIN)
    with pytest.raises(TypeError, match=r"1 inputs are needed.*strain.* 2 were given"):
        elasticity(strain, strain)
    with pytest.raises(TypeError, match=r"'strain' is torch.float32.*loaded for torch.float64"):
        elasticity(neml2.types.SR2(strain.float()))
    with pytest.raises(TypeError, match=r"'strain' is a float"):
        elasticity(1e-3)
    with pytest.raises(NotImplementedError, match=r"jvp\(\)"):
        elasticity(strain, v={})


def test_a_type_of_neml2_is_that_of_the_input(neml2: Any, elasticity: Any, grains: Any) -> None:
    """A Scalar was repeated for all components and sites, and six of them passed as a SR2."""
    types, strain = neml2.types, torch.tensor(STRAIN)
    wrong = [types.Scalar(strain[0, 0]), types.Scalar(strain), types.Vec(strain[:, :3])]
    for model in (elasticity, grains):
        for value in wrong:
            name = type(value).__name__
            with pytest.raises(TypeError, match=f"'strain' is a {name}, and must be a SR2 or"):
                model(value)
        for shape in ((), (3,), (6, 3)):
            with pytest.raises(TypeError, match=r"'strain' has the shape .*; expected batch axes"):
                model(torch.zeros(shape).double())
        with pytest.raises(TypeError, match=r"'strain' has the shape \(3,\).* \(6,\), of a SR2"):
            model(types.SR2(strain[0, :3]))
    with pytest.raises(TypeError, match=r"then \(5, 6\), of a SR2 at \(5,\) sites"):
        grains(strain)


def test_vectors_of_other_types_are_refused(neml2: Any, plugin: Any, artifacts: Artifacts) -> None:
    """All of them have three components."""
    model, types = plugin.AOTIModel(artifacts["crystal"]), neml2.types
    zeros = {n: kind(torch.zeros(kind.BASE_SHAPE).double()) for n, kind in model.input_spec.items()}
    assert (model.input_spec["vorticity"], model.input_spec["orientation~1"]) == (
        types.WR2,
        types.MRP,
    )
    for name, kind in (("vorticity", types.Vec), ("vorticity", types.MRP)):
        zeros[name] = kind(torch.zeros(3).double())
        with pytest.raises(TypeError, match=f"'{name}' is a {kind.__name__}, and must be a WR2"):
            model(*zeros.values())


def test_a_type_of_neml2_is_that_of_the_parameter(
    neml2: Any, plugin: Any, artifacts: Artifacts
) -> None:
    """A Vec was three values, one for each point."""
    model = plugin.AOTIModel(artifacts["elasticity_parameters"])
    with pytest.raises(TypeError, match=r"'E' has the shape \(\), and a Vec has \(3,\)"):
        model.set_parameter("E", neml2.types.Vec(torch.ones(3).double()))
    model.set_parameter("E", neml2.types.Scalar(torch.ones(3).double()))
    assert model.named_parameters()["elasticity.E"].shape == (3,)


def test_no_convergence_is_the_error_of_both(neml2: Any, plugin: Any) -> None:
    model = plugin.AOTIModel(PREBUILT / "viscoplastic")
    model.model.options["miters"] = 2
    inputs = [
        kind(torch.zeros(tuple(kind.BASE_SHAPE)).double()) for kind in model.input_spec.values()
    ]
    names = list(model.input_spec)
    inputs[names.index("strain")] = neml2.types.SR2(torch.tensor(np.outer([0.0, 20.0], STRAIN[0])))
    inputs[names.index("t")] = neml2.types.Scalar(torch.tensor(1.0).double())
    with pytest.raises(neml2.solvers.ConvergenceError) as caught:
        model(*inputs)
    assert isinstance(caught.value, ConvergenceError)
    assert caught.value.converged_mask.tolist() == [True, False]
    assert caught.value.report["status"][1] == caught.value.status


# ---- installing ----


def test_uninstalling_restores_what_was_there(neml2: Any, plugin: Any) -> None:
    def loaded() -> type:
        return type(neml2.load_model(STUB, "elasticity"))

    plugin.install()
    assert loaded() is plugin.AOTIModel
    try:
        plugin.uninstall()
        plugin.uninstall()
        assert loaded() is neml2.aoti.AOTIModel
    finally:
        plugin.install()
    assert loaded() is plugin.AOTIModel


def python(program: str) -> str:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_importing_the_package_imports_no_neml2() -> None:
    program = "import neml2_capi, neml2_capi.torch, sys; print('neml2' in sys.modules)"
    assert python(program) == "False\n"


def test_the_extension_of_neml2_is_not_needed() -> None:
    program = f"""
import sys
sys.modules["neml2.aoti._aoti"] = None
import neml2, neml2_capi.neml2 as plugin, torch
(stress,) = neml2.load_model({str(STUB)!r}, "elasticity")(torch.eye(6).double())
print(type(stress).__name__, stress.data.isfinite().all().item())
plugin.uninstall()
try:
    neml2.load_model({str(STUB)!r}, "elasticity")
except KeyError as error:
    print("not registered" in str(error))
"""
    assert python(program) == "SR2 True\nTrue\n"


# ---- drivers ----


@pytest.fixture(scope="module")
def stub(artifacts: Artifacts) -> Path:
    """What neml2-compile --driver wrote of tests/models/transient.i."""
    return artifacts["transient"].parent / "relaxation_aoti.i"


@pytest.fixture(scope="module")
def history(artifacts: Artifacts) -> dict[str, Any]:
    """The same, stepped by hand: what the driver of NEML2 saves."""
    model = Model(artifacts["transient"])
    parameter = np.linspace(0.0, 1.0, 11)
    times = parameter**2
    direction = np.array([1.0, -0.3, -0.25, 0.35, -0.2, 0.15])
    amplitudes = np.array([1e-3, 3e-3, 5e-3])[:, np.newaxis]
    strains = np.sin(parameter)[:, np.newaxis, np.newaxis] * amplitudes * direction
    elastic_strain = np.array([2e-4, -1e-4, 0.0, 1e-4, 0.0, 0.0])
    steps: dict[str, Array] = {}
    for n in range(1, len(times)):
        outputs = model.forward(
            {
                "t": times[n],
                "t~1": times[n - 1],
                "strain": strains[n],
                "strain~1": strains[n - 1],
                "elastic_strain~1": elastic_strain,
            }
        )
        elastic_strain = outputs["elastic_strain"]
        steps |= {f"output.{n}.{name}": value for name, value in outputs.items()}
    return {name: torch.tensor(value) for name, value in steps.items()}


def neml2_run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "neml2.cli.run", *arguments, "--load", "neml2_capi.neml2"]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


def test_the_transient_driver_agrees_with_stepping_by_hand(
    stub: Path, history: dict[str, Any], tmp_path: Path
) -> None:
    saved = tmp_path / "saved.pt"
    run = neml2_run(str(stub), "driver", f"Drivers/driver/save_as='{saved}'")
    assert run.returncode == 0, run.stderr
    results = torch.load(saved, weights_only=True)
    assert {name for name in results if name.startswith("output.")} == {
        "output.0.elastic_strain",
        *history,
    }
    for name, expected in history.items():
        assert relative_error(results[name], expected) < 1e-10, name
    # There is something to agree on: the last point flows.
    total, elastic = results["input.10.strain"][2], results["output.10.elastic_strain"][2]
    assert (total - elastic).norm() > 0.1 * total.norm()


def test_the_regression_driver_passes_and_fails(
    stub: Path, history: dict[str, Any], tmp_path: Path
) -> None:
    reference = tmp_path / "reference.pt"
    arguments = (str(stub), "regression", f"Drivers/regression/reference:='{reference}'")
    torch.save(history, reference)
    run = neml2_run(*arguments)
    assert run.returncode == 0, run.stderr
    torch.save(history | {"output.7.stress": 1.001 * history["output.7.stress"]}, reference)
    run = neml2_run(*arguments)
    assert run.returncode == 1
    assert "output.7.stress: max_abs=" in run.stderr


def test_a_driver_of_a_missing_artifact_says_so(stub: Path, tmp_path: Path) -> None:
    alone = tmp_path / stub.name
    alone.write_text(stub.read_text())
    run = neml2_run(str(alone), "driver")
    assert run.returncode == 1
    assert run.stderr.startswith("Error: AOTIModel: There is no folder"), run.stderr
