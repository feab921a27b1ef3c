"""What neml2_capi.Model and its companions offer, as a user meets it."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from states import first_step

import neml2_capi
from neml2_capi import (
    FatalError,
    Graph,
    Model,
    Tensor,
    UnknownNameError,
    Variable,
    load_model,
)

Artifacts = Mapping[str, Path]
STRAIN = np.array([[1e-3, -3e-4, 2e-4, 5e-4, -1e-4, 7e-4], [2e-3, 1e-4, 0, -6e-4, 3e-4, 1e-4]])


@pytest.fixture
def stress(model: Model) -> NDArray[np.float64]:
    result: NDArray[np.float64] = model.forward({"strain": STRAIN})["stress"]
    return result


# ------------------------------------------------------------------------------------------------
# What a model is
# ------------------------------------------------------------------------------------------------


def test_elasticity_describes_itself(model: Model) -> None:
    assert model.inputs.names == ["strain"]
    assert model.outputs.names == ["stress"]
    assert model.inputs[0].base_shape == model.outputs[0].base_shape == (6,)
    assert [(p.name, p.base_shape) for p in model.parameters] == [("elasticity.E", ())]
    assert model.inputs[0].sub_batch_shape == model.outputs[0].sub_batch_shape == ()
    assert model.inputs[0].type == model.outputs[0].type == "SR2"
    assert model.device == "cpu"
    assert model.dtype == np.float64
    assert model.inputs[0] == Variable("strain", "SR2", (6,), (), "float64")
    assert repr(model) == "<Model (strain) -> (stress), float64>"


def test_a_viscoplastic_model_describes_itself(viscoplastic: Model) -> None:
    types = {variable.name: variable.type for variable in viscoplastic.inputs}
    shapes = {variable.name: variable.base_shape for variable in viscoplastic.inputs}
    assert (types["t~1"], shapes["t~1"]) == ("Scalar", ())
    assert (types["X1~1"], shapes["X1~1"]) == ("SR2", (6,))
    assert set(viscoplastic.outputs.names) == {"stress", "equivalent_plastic_strain", "X1", "X2"}
    assert {f"{name}~1" for name in viscoplastic.outputs.names} < set(viscoplastic.inputs.names)


def test_grains_of_a_point_are_sub_batch_axes(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity_grains"])
    assert model.inputs[0].sub_batch_shape == model.outputs[0].sub_batch_shape == (5,)
    assert model.inputs[0].base_shape == model.outputs[0].base_shape == (6,)
    assert model.forward({"strain": np.zeros((3, 5, 6))})["stress"].shape == (3, 5, 6)


@pytest.mark.parametrize("dtype", ["float32", "torch.float32", np.float32])
def test_another_leaf_can_be_chosen(artifacts: Artifacts, dtype: Any) -> None:
    root = artifacts["elasticity_float32"]
    model = Model(root, dtype=dtype)
    # neml2-compile 3.1.0 writes float64 packages there too: the model is what they compute in.
    assert model.dtype == model.inputs[0].dtype == model.outputs[0].dtype
    with pytest.raises(FatalError, match="float32"):
        Model(root)


@pytest.mark.parametrize(
    "dtype",
    [None, "", "float64", "torch.float64", np.float64, np.dtype("float64"), float],
)
@pytest.mark.parametrize("device", [None, "", "cpu"])
def test_device_and_type_can_be_said_in_many_ways(
    artifacts: Artifacts, device: Any, dtype: Any
) -> None:
    model = Model(str(artifacts["elasticity"]), device=device, dtype=dtype)
    assert model.dtype == "float64"


def test_a_leaf_that_was_not_compiled_is_an_error_with_those_there_are(
    artifacts: Artifacts,
) -> None:
    with pytest.raises(FatalError, match="float64"):
        Model(artifacts["elasticity"], dtype="float32")
    with pytest.raises(FatalError, match="cpu"):
        Model(artifacts["elasticity"], device="cuda:1")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FatalError, match=str(tmp_path / "nothing")):
        Model(tmp_path / "nothing")
    with pytest.raises(ValueError, match="zero character"):
        Model("a\0b")


def test_a_text_that_ends_early_in_c_is_refused(artifacts: Artifacts) -> None:
    with Model(artifacts["viscoplastic"]) as model:
        for change in (
            lambda: Model("a\0b"),
            lambda: Model(artifacts["viscoplastic"], runtime="a\0b"),
            lambda: model.options.update({"kernels": "a\0b"}),
            lambda: model.options.update({"capsule": "a\0b"}),
        ):
            with pytest.raises(FatalError, match=r"zero character|a\\x00b"):
                change()


def test_everything_public_is_there() -> None:
    assert all(hasattr(neml2_capi, name) for name in neml2_capi.__all__)


# ------------------------------------------------------------------------------------------------
# Inputs and results
# ------------------------------------------------------------------------------------------------


class OnlyDLPack:
    """An array of another library."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **request: Any) -> Any:
        return self._array.__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize(
    "convert",
    [
        np.array,
        np.asfortranarray,
        lambda a: a.tolist(),
        OnlyDLPack,
        Tensor,
        lambda a: a[::-1][::-1],
    ],
    ids=["numpy", "fortran order", "lists", "dlpack", "Tensor", "view"],
)
def test_whatever_holds_the_input_the_result_is_numpy(
    model: Model, stress: NDArray[np.float64], convert: Any
) -> None:
    result = model.forward({"strain": convert(STRAIN)})["stress"]
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, stress)


def test_a_read_only_input_is_accepted(model: Model, stress: NDArray[np.float64]) -> None:
    strain = STRAIN.copy()
    strain.flags.writeable = False
    np.testing.assert_array_equal(model.forward({"strain": strain})["stress"], stress)


def test_strided_inputs_give_the_same_result(model: Model, stress: NDArray[np.float64]) -> None:
    wide = np.zeros((4, 12))
    wide[::2, ::2] = STRAIN
    strain = wide[::2, ::2]
    np.testing.assert_array_equal(model.forward({"strain": strain})["stress"], stress)
    reversed_points = model.forward({"strain": strain[::-1]})["stress"]
    np.testing.assert_array_equal(reversed_points, stress[::-1])


@pytest.mark.parametrize("batch", [(), (0,), (1,), (7,), (3, 4), (2, 0, 3)])
def test_results_have_the_batch_of_the_inputs(model: Model, batch: tuple[int, ...]) -> None:
    strain = np.broadcast_to(STRAIN[0], (*batch, 6))
    assert model.forward({"strain": strain})["stress"].shape == (*batch, 6)


def test_a_number_for_a_scalar_broadcasts_with_the_batch(viscoplastic: Model) -> None:
    inputs = first_step(viscoplastic, STRAIN)
    results = viscoplastic.forward(inputs)
    assert results["stress"].shape == (2, 6)
    assert results["equivalent_plastic_strain"].shape == (2,)
    spelled_out = {
        name: np.array(np.broadcast_to(value, (2, *np.shape(value)[-1:] * (np.ndim(value) > 0))))
        for name, value in inputs.items()
    }
    again = viscoplastic.forward(spelled_out)
    for name, result in results.items():
        np.testing.assert_array_equal(again[name], result)


def test_results_come_in_the_order_of_the_outputs(viscoplastic: Model) -> None:
    assert (
        list(viscoplastic.forward(first_step(viscoplastic, STRAIN))) == viscoplastic.outputs.names
    )


def test_results_are_new_arrays_that_outlive_the_model(model: Model) -> None:
    first = model.forward({"strain": STRAIN})["stress"]
    second = model.forward({"strain": STRAIN})["stress"]
    assert not np.shares_memory(first, second)
    model.close()
    del model
    gc.collect()
    expected = second.copy()
    first[...] = 0
    np.testing.assert_array_equal(second, expected)


def test_a_nan_passes_through_an_explicit_model(model: Model, stress: NDArray[np.float64]) -> None:
    strain = STRAIN.copy()
    strain[0, 0] = np.nan
    result = model.forward({"strain": strain})["stress"]
    assert np.isnan(result[0]).any()
    np.testing.assert_array_equal(result[1], stress[1])


def test_an_unknown_input_is_named_with_the_nearest(viscoplastic: Model) -> None:
    inputs = {**first_step(viscoplastic, STRAIN), "strian": STRAIN}
    message = "unknown input 'strian'; did you mean 'strain'? The inputs are: strain, "
    with pytest.raises(UnknownNameError) as caught:
        viscoplastic.forward(inputs)
    assert str(caught.value).startswith(message)
    assert caught.value.subject == "strian"


def test_an_unknown_input_that_is_like_no_other_is_named(model: Model) -> None:
    with pytest.raises(UnknownNameError) as caught:
        model.forward({"x": STRAIN})
    assert str(caught.value) == "unknown input 'x'. The inputs are: strain"


@pytest.mark.parametrize("given", [STRAIN, [STRAIN], "strain", None])
def test_inputs_that_are_no_mapping_are_refused(model: Model, given: Any) -> None:
    found = type(given).__name__
    message = f"inputs must be a mapping of names to arrays; got {found}"
    with pytest.raises(FatalError, match=message):
        model.forward(given)


def test_an_array_with_masked_elements_is_refused(
    model: Model, stress: NDArray[np.float64]
) -> None:
    strain = np.ma.array(STRAIN, mask=np.zeros(STRAIN.shape, bool))
    np.testing.assert_array_equal(model.forward({"strain": strain})["stress"], stress)
    strain[1, 2] = np.ma.masked
    for masked in (strain, strain[::-1], strain[1:]):
        with pytest.raises(FatalError, match="input 'strain' is masked: fill it first") as caught:
            model.forward({"strain": masked})
        assert (caught.value.status, caught.value.subject) == (wrong_dtype(model), "strain")
    np.testing.assert_array_equal(model.forward({"strain": strain.filled(0.0)})["stress"], stress)


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_a_mask_is_seen_in_other_element_types(model: Model, dtype: str) -> None:
    """Inputs of elasticity, which takes whole numbers and a single number, too."""
    whole = np.ma.array(np.ones((2, 6), int), mask=[[True, *[False] * 5], [False] * 6])
    value: Any = np.ma.array(5, mask=True, dtype=dtype)
    with pytest.raises(FatalError, match="input 'strain' is masked: fill it first"):
        model.forward({"strain": whole})
    for change in (
        lambda: model.set_parameter("E", value),
        lambda: model.forward({"strain": STRAIN}, {"E": value}),
    ):
        with pytest.raises(FatalError, match="E' is masked: fill it first"):
            change()
    np.testing.assert_array_equal(
        model.forward({"strain": whole.filled(2)})["stress"],
        model.forward({"strain": whole.filled(2).astype(float)})["stress"],
    )


def wrong_dtype(model: Model) -> int:
    """The status of an input of another element type."""
    with pytest.raises(FatalError) as caught:
        model.forward({"strain": STRAIN.astype(complex)})
    return caught.value.status


def test_a_missing_input_is_named(viscoplastic: Model) -> None:
    inputs = first_step(viscoplastic, STRAIN)
    del inputs["X2~1"]
    with pytest.raises(FatalError, match=r"X2~1") as caught:
        viscoplastic.forward(inputs)
    assert caught.value.subject == "X2~1"


def test_torch_is_not_imported_unless_it_is_used(artifacts: Artifacts) -> None:
    code = f"""
import sys, neml2_capi
model = neml2_capi.Model({str(artifacts["elasticity"])!r})
model.forward({{"strain": [1e-3, 0, 0, 0, 0, 0]}})
model.named_parameters()["E"] = 1.0
assert "torch" not in sys.modules
assert "libtorch" not in open("/proc/self/maps").read()
"""
    command = [sys.executable, "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------------------------------------------
# Stubs and graphs
# ------------------------------------------------------------------------------------------------


@pytest.fixture
def stub(artifacts: Artifacts, tmp_path: Path) -> Path:
    (tmp_path / "artifact").symlink_to(artifacts["elasticity"].resolve())
    stub = tmp_path / "elasticity_aoti.i"
    stub.write_text(
        "[Models]\n  [elasticity]\n    type = AOTIModel\n    artifact_path = 'artifact'\n  []\n[]\n"
    )
    return stub


def test_a_stub_gives_a_model_that_is_called_by_position(
    stub: Path, stress: NDArray[np.float64]
) -> None:
    model = load_model(stub, "elasticity")
    assert model.input_spec == {"strain": "SR2"}
    assert model.output_spec == {"stress": "SR2"}
    (result,) = model(STRAIN)
    np.testing.assert_array_equal(result, stress)
    model.model.set_parameter("E", 100e3)
    np.testing.assert_allclose(model(STRAIN)[0], 0.5 * stress, rtol=1e-14)
    with pytest.raises(TypeError, match=r"1 inputs are needed \(strain\), 2 were given"):
        model(STRAIN, STRAIN)


def test_a_stub_without_the_model_lists_those_it_has(stub: Path) -> None:
    with pytest.raises(UnknownNameError, match="elasticity"):
        load_model(stub, "plasticity")
    with pytest.raises(FatalError, match=r"missing_aoti\.i"):
        load_model(stub.parent / "missing_aoti.i", "elasticity")


@pytest.fixture
def graph(artifacts: Artifacts) -> Graph:
    return Graph(artifacts["elasticity"] / "cpu" / "float64" / "elasticity.pt2")


def test_a_graph_describes_itself(graph: Graph) -> None:
    assert [wanted.dtype for wanted in graph.inputs] == ["float64", "float64"]
    assert graph.inputs[0].least[1:] == graph.inputs[0].greatest[1:] == (6,)
    assert graph.inputs[0].least[0] < graph.inputs[0].greatest[0]
    assert graph.num_outputs == 1
    assert repr(graph) == "<Graph, 2 inputs, 1 outputs>"


def test_a_graph_computes_what_its_model_does(graph: Graph, stress: NDArray[np.float64]) -> None:
    (result,) = graph(STRAIN, np.full(graph_batch(graph), 200e3))
    np.testing.assert_allclose(result, stress, rtol=1e-14)  # of the kernels


def graph_batch(graph: Graph) -> tuple[int, ...]:
    """The shape of the parameter: without axes, or one value per point."""
    return tuple(2 for _ in graph.inputs[1].least)


def test_a_graph_refuses_a_wrong_number_and_a_wrong_shape(graph: Graph) -> None:
    with pytest.raises(FatalError, match="takes 2 inputs, 1 were given"):
        graph(STRAIN)
    with pytest.raises(FatalError):
        graph(STRAIN[:, :5].copy(), np.full(graph_batch(graph), 200e3))
    graph.close()
    with pytest.raises(FatalError, match="this Graph is closed"):
        graph(STRAIN, 200e3)
