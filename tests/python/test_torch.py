"""The same with torch: tensors in and out without a copy, and the torch model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from states import first_step

from neml2_capi import ConvergenceError, FatalError, Graph, Model, Tensor
from neml2_capi._ffi import dtypes

torch = pytest.importorskip("torch")
capi_torch = pytest.importorskip("neml2_capi.torch")

Artifacts = Mapping[str, Path]
TYPES = "float64 float32 int64 int32 int16 int8 uint8 bool float16 bfloat16"
STRAIN = np.array([[1e-3, -3e-4, 2e-4, 5e-4, -1e-4, 7e-4], [2e-3, 1e-4, 0, -6e-4, 3e-4, 1e-4]])


@pytest.fixture
def torch_model(artifacts: Artifacts) -> Any:
    return capi_torch.Model(artifacts["elasticity"])


@pytest.fixture
def strain() -> Any:
    return torch.tensor(STRAIN)


@pytest.fixture
def stress(model: Model) -> NDArray[np.float64]:
    result: NDArray[np.float64] = model.forward({"strain": STRAIN})["stress"]
    return result


# ------------------------------------------------------------------------------------------------
# Tensors
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES.split())
def test_a_torch_tensor_is_used_where_it_is(dtype: str) -> None:
    source = torch.zeros(2, 3, dtype=getattr(torch, dtype))
    tensor = Tensor(source)
    back = tensor.torch()
    assert (tensor.dtype, back.dtype) == (dtype, source.dtype)
    assert back.data_ptr() == source.data_ptr()
    source[1, 2] = 1
    assert back[1, 2] == 1


def test_strides_are_kept() -> None:
    source = torch.arange(12.0).reshape(3, 4).t()[1:]
    tensor = Tensor(source)
    assert tensor.strides == source.stride()
    assert torch.equal(tensor.torch(), source)


@pytest.mark.parametrize("shape", [(), (0,), (0, 6), (1, 1)])
def test_no_axes_and_empty_axes(shape: tuple[int, ...]) -> None:
    assert Tensor(torch.ones(shape)).torch().shape == shape


def test_a_tensor_that_requires_grad_is_detached() -> None:
    source = torch.arange(3.0, dtype=torch.float64, requires_grad=True)
    result = Tensor(source).torch()
    assert not result.requires_grad
    assert result.data_ptr() == source.data_ptr()


def test_a_lazily_negated_tensor_has_its_values() -> None:
    negated = torch.tensor([1 + 2j], dtype=torch.complex128).conj().imag
    assert negated.is_neg()
    assert Tensor(negated).numpy().tolist() == [-2.0]


def test_torch_takes_a_tensor_through_dlpack() -> None:
    tensor = Tensor.zeros((2, 3))
    taken = torch.from_dlpack(tensor)
    address = tensor.numpy().ctypes.data
    tensor.close()
    assert taken.data_ptr() == address
    assert taken.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_torch_gets_a_copy_of_read_only_memory() -> None:
    array = np.ones(3)
    array.flags.writeable = False
    Tensor(array).torch().fill_(2)
    assert array.tolist() == [1, 1, 1]


def test_numpy_has_no_bfloat16_without_ml_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    dtypes._bfloat16.cache_clear()
    with pytest.raises(FatalError, match=r"bfloat16: ask for a torch tensor.+ml_dtypes"):
        Tensor(torch.ones(2, dtype=torch.bfloat16)).numpy()
    dtypes._bfloat16.cache_clear()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (torch.ones(2, dtype=torch.complex64), "element type torch.complex64"),
        (torch.ones(2).to_sparse(), "is sparse or packed"),
        (torch.ones(2, device="meta"), "on the device meta"),
    ],
)
def test_what_cannot_be_a_tensor_is_refused_with_the_reason(value: Any, reason: str) -> None:
    with pytest.raises(FatalError, match=reason):
        Tensor(value)


# ------------------------------------------------------------------------------------------------
# Models
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("requires_grad", [False, True])
def test_torch_in_torch_out(
    model: Model, strain: Any, stress: NDArray[np.float64], requires_grad: bool
) -> None:
    result = model.forward({"strain": strain.requires_grad_(requires_grad)})["stress"]
    assert isinstance(result, torch.Tensor)
    assert result.dtype == torch.float64
    np.testing.assert_array_equal(result.numpy(), stress)


@pytest.mark.parametrize("place", ["input", "override", "stored", "bound", "module", "tensor"])
def test_a_tangent_of_forward_mode_is_refused(torch_model: Any, strain: Any, place: str) -> None:
    """It would be lost, and torch takes no tangent for zero."""
    forward_ad = torch.autograd.forward_ad
    modulus = torch.tensor(100e3, dtype=torch.float64)
    torch_model.forward({"strain": strain}, {"E": modulus})  # so that the call is kept
    uses: dict[str, Callable[[Any, Any], Any]] = {
        "input": lambda x, _: torch_model.forward({"strain": x}),
        "override": lambda _, e: torch_model.forward({"strain": strain}, {"E": e}),
        "stored": lambda _, e: torch_model.set_parameter("E", e),
        "bound": lambda x, _: torch_model.bind({"strain": x}),
        "module": lambda _, e: capi_torch.Module(torch_model).__setitem__("E", e),
        "tensor": lambda x, _: Tensor(x),
    }
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(v, torch.ones_like(v)) for v in (strain, modulus)]
        with pytest.raises(FatalError, match="forward mode"):
            uses[place](*duals)
        uses[place](strain, modulus)


def test_a_strided_input_gives_the_same_result(
    model: Model, strain: Any, stress: NDArray[np.float64]
) -> None:
    wide = torch.zeros(4, 12, dtype=torch.float64)
    wide[::2, ::2] = strain
    result = model.forward({"strain": wide[::2, ::2]})["stress"]
    np.testing.assert_array_equal(result.numpy(), stress)


def test_numpy_and_torch_together_give_torch(viscoplastic: Model, strain: Any) -> None:
    results = viscoplastic.forward(first_step(viscoplastic, STRAIN))
    assert all(type(result) is np.ndarray for result in results.values())
    results = viscoplastic.forward(first_step(viscoplastic, strain))
    assert all(isinstance(result, torch.Tensor) for result in results.values())


def test_a_torch_override_makes_the_result_torch(model: Model) -> None:
    modulus = torch.tensor(100e3, dtype=torch.float64)
    result = model.forward({"strain": STRAIN}, {"E": modulus})["stress"]
    assert isinstance(result, torch.Tensor)


def test_a_tensor_on_another_device_is_refused_by_name(model: Model) -> None:
    with pytest.raises(FatalError, match="input 'strain' is on the device meta"):
        model.forward({"strain": torch.empty(2, 6, device="meta")})


def test_device_and_type_can_be_those_of_torch(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity"], torch.device("cpu"), torch.float64)
    assert model.dtype == np.float64
    with pytest.raises(FatalError, match="float64"):
        Model(artifacts["elasticity"], dtype=torch.float32)
    with pytest.raises(FatalError, match="cpu"):
        Model(artifacts["elasticity"], device=torch.device("cuda:1"))


def test_what_is_known_of_failed_points_is_torch_too(viscoplastic: Model, strain: Any) -> None:
    viscoplastic.options["miters"] = 3
    inputs = first_step(viscoplastic, torch.stack([1e-6 * strain[0], 20 * strain[0]]))
    with pytest.raises(ConvergenceError) as caught:
        viscoplastic.forward(inputs)
    error = caught.value
    assert error.converged_mask.dtype == torch.bool
    assert error.converged_mask.tolist() == [True, False]
    arrays = [*error.report.values(), *error.outputs.values()]
    assert all(isinstance(array, torch.Tensor) for array in arrays)
    assert all(array[1].isnan().all() for array in error.outputs.values())


def test_a_graph_takes_and_returns_torch(
    artifacts: Artifacts, strain: Any, stress: NDArray[np.float64]
) -> None:
    graph = Graph(artifacts["elasticity"] / "cpu" / "float64" / "elasticity.pt2")
    batch = [2 for _ in graph.inputs[1].least]
    (result,) = graph(strain, torch.full(batch, 200e3, dtype=torch.float64))
    assert isinstance(result, torch.Tensor)
    np.testing.assert_allclose(result.numpy(), stress, rtol=1e-14)  # of the kernels


# ------------------------------------------------------------------------------------------------
# neml2_capi.torch
# ------------------------------------------------------------------------------------------------


def test_the_torch_model_gives_torch_whatever_comes_in(
    torch_model: Any, strain: Any, stress: NDArray[np.float64]
) -> None:
    assert isinstance(torch_model, Model)
    assert torch_model.device == torch.device("cpu")
    assert torch_model.dtype == torch.float64
    for given in (STRAIN, STRAIN.tolist(), strain):
        result = torch_model.forward({"strain": given})["stress"]
        assert isinstance(result, torch.Tensor)
        np.testing.assert_array_equal(result.numpy(), stress)


def test_filling_a_parameter_takes_effect_on_the_next_call(torch_model: Any, strain: Any) -> None:
    before = torch_model.forward({"strain": strain})["stress"]
    torch_model.named_parameters()["elasticity.E"].fill_(100e3)
    after = torch_model.forward({"strain": strain})["stress"]
    torch.testing.assert_close(after, 0.5 * before, rtol=1e-14, atol=0.0)


def test_a_parameter_can_be_set_to_a_tensor_of_its_own_type(torch_model: Any, strain: Any) -> None:
    before = torch_model.forward({"strain": strain})["stress"]
    torch_model.set_parameter("E", torch.tensor([100e3, 50e3], dtype=torch.float64))
    after = torch_model.forward({"strain": strain})["stress"]
    factors = torch.tensor([[0.5], [0.25]], dtype=torch.float64)
    torch.testing.assert_close(after, factors * before, rtol=1e-14, atol=0.0)
    with pytest.raises(FatalError, match=r"elasticity.E"):
        torch_model.set_parameter("E", torch.tensor(1.0))


def test_a_stub_gives_a_torch_model(
    artifacts: Artifacts, tmp_path: Path, stress: NDArray[np.float64]
) -> None:
    (tmp_path / "artifact").symlink_to(artifacts["elasticity"].resolve())
    stub = tmp_path / "elasticity_aoti.i"
    stub.write_text("[Models]\n[elasticity]\ntype=AOTIModel\nartifact_path=artifact\n[]\n[]\n")
    (result,) = capi_torch.load_model(stub, "elasticity")(STRAIN)
    assert isinstance(result, torch.Tensor)
    np.testing.assert_array_equal(result.numpy(), stress)


def test_what_is_left_at_the_exit_of_the_interpreter_does_no_harm(artifacts: Artifacts) -> None:
    code = f"""
import torch, neml2_capi.torch
model = neml2_capi.torch.Model({str(artifacts["elasticity"])!r})
stress = model.forward({{"strain": torch.ones(3, 6, dtype=torch.float64)}})["stress"]
parameter, taken = model.named_parameters()["E"], torch.from_dlpack(neml2_capi.Tensor.zeros((9,)))
torch.keep = [stress, parameter, taken, model]
"""
    command = [sys.executable, "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
