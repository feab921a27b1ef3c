"""Arrays of any library: read where they are, never written, and answered in kind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import Artifacts

import neml2_capi
from neml2_capi import ConvergenceError, FatalError, Graph, Model, Tensor
from neml2_capi.solvers import Newton

STRAIN = np.linspace(-1e-3, 1e-3, 18).reshape(3, 6)


class Plain:
    """A producer that nothing consumes for."""

    def __init__(self, array: Any) -> None:
        made = array if isinstance(array, np.ndarray) else np.from_dlpack(array)
        # numpy 1.24 reads without the right to write, and exports no such array.
        self.array: Any = made if made.flags.writeable else made.copy()

    def __dlpack__(self, **request: Any) -> Any:
        return self.array.__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class ByClass(Plain):
    """Its class makes arrays of it."""

    from_dlpack: Callable[[Any], Any]


ByClass.from_dlpack = ByClass


class ByModule(Plain):
    """A module above its class's module makes arrays of it, as in cupy."""


class Deceiver(Plain):
    """What it has by the name of from_dlpack makes something else."""

    from_dlpack = np.from_dlpack


class Broken(Plain):
    """Its from_dlpack does not work."""

    @staticmethod
    def from_dlpack(array: Any) -> Any:
        raise NotImplementedError


class Elsewhere(Plain):
    """An array on a GPU."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


@pytest.fixture(autouse=True)
def a_module_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "arrays", SimpleNamespace(from_dlpack=ByModule))
    monkeypatch.setattr(ByModule, "__module__", "arrays.core")


@pytest.fixture
def jnp() -> Iterator[Any]:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    yield jax.numpy
    jax.config.update("jax_enable_x64", False)


@pytest.fixture(params=["ByClass", "ByModule", "array_api_strict", "jax", "torch"])
def convert(request: pytest.FixtureRequest) -> Any:
    """What makes an array of one library of a numpy array."""
    if request.param == "jax":
        return request.getfixturevalue("jnp").asarray
    if request.param == "torch":
        return pytest.importorskip("torch").from_numpy
    if request.param == "array_api_strict":
        return pytest.importorskip("array_api_strict").asarray
    return {"ByClass": ByClass, "ByModule": ByModule}[request.param]


def assert_like(results: Any, expected: Any, kind: Any) -> None:
    """Nested mappings and tuples of arrays of one kind, with these values."""
    if isinstance(expected, dict):
        assert results.keys() == expected.keys()
        results, expected = results.values(), expected.values()
    elif not isinstance(expected, tuple):
        assert type(results) is kind
        values: Any = results
        np.testing.assert_array_equal(np.from_dlpack(values), expected)
        return
    for result, value in zip(results, expected, strict=True):
        assert_like(result, value, kind)


FUNCTIONS: dict[str, Callable[[Model, Any], Any]] = {
    "forward": lambda m, a: m.forward({"strain": a}),
    "evaluate": lambda m, a: m.evaluate({"strain": a}),
    "jvp": lambda m, a: m.jvp({"strain": a}, {"strain": a}),
    "vjp": lambda m, a: m.vjp({"strain": STRAIN}, {"stress": a}),
    "jacobian": lambda m, a: m.jacobian({"strain": a}),
    "param_jacobian": lambda m, a: m.param_jacobian({"strain": a}),
    "param_vjp": lambda m, a: m.param_vjp({"strain": a}, {"stress": STRAIN}),
    "forward with a solver": lambda m, a: m.forward({"strain": a}, solver=Newton()),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_results_are_of_the_kind_of_the_arguments(
    artifacts: Artifacts, convert: Any, function: Any
) -> None:
    model = Model(artifacts["elasticity_parameters"])
    given = convert(STRAIN)
    expected = function(model, STRAIN)
    for _ in range(3):  # what is repeated goes another way
        assert_like(function(model, given), expected, type(given))


def test_the_python_engine_answers_in_kind(artifacts: Artifacts, convert: Any) -> None:
    model = Model(artifacts["elasticity"], engine="python")
    given = convert(STRAIN)
    outputs, report = model.evaluate({"strain": given})
    assert {type(value) for value in (*outputs.values(), *report.values())} == {type(given)}


def test_a_graph_answers_in_kind(artifacts: Artifacts, convert: Any) -> None:
    graph = Graph(artifacts["elasticity"] / "cpu" / "float64" / "elasticity.pt2")
    rest = [np.ones((3,) * len(wanted.least)) for wanted in graph.inputs[1:]]
    given = convert(STRAIN)
    assert_like(graph(given, *rest), graph(STRAIN, *rest), type(given))


def test_a_drive_answers_in_kind(model: Model, convert: Any) -> None:
    given = convert(STRAIN)
    results = neml2_capi.drive(model, [0.0, 1.0, 2.0], {"strain": given})
    assert {type(value) for value in results.values()} == {type(given)}
    expected = neml2_capi.drive(model, [0.0, 1.0, 2.0], {"strain": STRAIN})
    np.testing.assert_array_equal(np.from_dlpack(results["stress"]), expected["stress"])


@pytest.mark.skipif(np.__version__ < "1.25", reason="numpy 1.24 exports no truth values")
def test_a_convergence_error_answers_in_kind(viscoplastic: Model, convert: Any) -> None:
    shapes = {v.name: (2, *v.base_shape) for v in viscoplastic.inputs}
    given = {name: convert(np.zeros(shape)) for name, shape in shapes.items()}
    given["strain"] = convert(np.full((2, 6), 1e200))
    with pytest.raises(ConvergenceError) as caught:
        viscoplastic.forward(given)
    error = caught.value
    arrays = [error.converged_mask, *error.outputs.values(), *error.report.values()]
    assert {type(array) for array in arrays} == {type(given["strain"])}


def test_new_arrays_of_a_call_are_of_the_kind_of_what_is_bound(model: Model, convert: Any) -> None:
    given = convert(STRAIN.copy())
    kind = type(given)
    mutable = np.from_dlpack(given).flags.writeable
    call = model.bind({"strain": given})
    call()
    stress = call.outputs["stress"]
    assert type(stress) is (kind if mutable else np.ndarray)
    np.testing.assert_array_equal(
        np.from_dlpack(stress), model.forward({"strain": STRAIN})["stress"]
    )


@pytest.mark.parametrize("kind", [Plain, Deceiver, Broken])
def test_without_a_consumer_results_are_numpy_arrays(model: Model, kind: Any) -> None:
    expected = model.forward({"strain": STRAIN})
    assert_like(model.forward({"strain": kind(STRAIN)}), expected, np.ndarray)


def test_results_need_no_copy_and_outlive_the_model(artifacts: Artifacts) -> None:
    xp = pytest.importorskip("array_api_strict")
    model = Model(artifacts["elasticity"])
    stress = model.forward({"strain": xp.asarray(STRAIN)})["stress"]
    view = np.from_dlpack(stress)
    view[0, 0] = 5.0
    assert stress[0, 0] == 5.0
    model.close()
    del model, view
    assert stress[0, 0] == 5.0


def test_numpy_arrays_numbers_and_lists_go_along_with_another_kind(
    artifacts: Artifacts, convert: Any
) -> None:
    model = Model(artifacts["elasticity"])
    given, name = convert(np.array(70e3)), model.parameters.names[0]
    for strain in (STRAIN, STRAIN.tolist(), Tensor(STRAIN)):
        stress = model.forward({"strain": strain}, {name: given})["stress"]
        assert type(stress) is type(given)


def test_two_other_kinds_are_refused_by_name(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity"])
    xp = pytest.importorskip("array_api_strict")
    name = model.parameters.names[0]
    inputs, parameters = {"strain": ByClass(STRAIN)}, {name: xp.asarray(70e3)}
    message = (
        f"parameter '{name}' is of array_api_strict.Array, and input 'strain' of "
        f"{__name__}.ByClass: of which kind should the results be"
    )
    with pytest.raises(FatalError, match=message):
        model.forward(inputs, parameters)
    with pytest.raises(FatalError, match=message):
        model.bind(inputs, parameters=parameters)
    with pytest.raises(FatalError, match="of which kind"):
        neml2_capi.drive(model, [0.0, 0.5, 1.0], inputs, parameters=parameters)


def test_a_model_of_torch_answers_in_torch(artifacts: Artifacts) -> None:
    torch = pytest.importorskip("torch")
    from neml2_capi.torch import Model as TorchModel

    model = TorchModel(artifacts["elasticity"])
    assert isinstance(model.forward({"strain": ByClass(STRAIN)})["stress"], torch.Tensor)


def test_read_only_memory_is_read_and_never_written(model: Model, jnp: Any) -> None:
    strain = jnp.asarray(STRAIN)
    expected = model.forward({"strain": STRAIN})["stress"]
    tensor = Tensor(strain)
    assert tensor.numpy().ctypes.data == strain.unsafe_buffer_pointer()
    assert not tensor.numpy().flags.writeable
    with pytest.raises(FatalError, match="output 'stress' is read-only"):
        model.bind({"strain": STRAIN}, {"stress": strain})
    call = model.bind({"strain": strain}, derivatives=True)
    assert type(call()["stress"]) is np.ndarray  # which a run may change
    np.testing.assert_array_equal(call.outputs["stress"], expected)
    np.testing.assert_array_equal(strain, STRAIN)


def test_a_function_of_time_cannot_write_the_times_of_the_caller(model: Model) -> None:
    times = np.linspace([0.0, 1.0], [1.0, 2.0], 3)

    def strain(time: Any) -> Any:
        time[...] = 7.0
        return np.zeros((2, 6))

    neml2_capi.drive(model, times, {"strain": strain})
    np.testing.assert_array_equal(times, np.linspace([0.0, 1.0], [1.0, 2.0], 3))


def test_strided_memory_of_another_library_is_read_where_it_is(model: Model) -> None:
    xp = pytest.importorskip("array_api_strict")
    wide = xp.zeros((3, 9))
    wide[:, 2:8] = xp.asarray(STRAIN)
    stress = model.forward({"strain": wide[:, 2:8]})["stress"]
    np.testing.assert_array_equal(
        np.from_dlpack(stress), model.forward({"strain": STRAIN})["stress"]
    )


def test_an_array_on_another_device_is_refused_with_what_to_do(model: Model) -> None:
    message = r"input 'strain' cannot be made an array, .* device \(2, 0\) .* pass it on the cpu"
    with pytest.raises(FatalError, match=message):
        model.forward({"strain": Elsewhere(STRAIN)})


def test_a_wrong_element_type_names_both(model: Model) -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(FatalError, match="float32"):
        model.forward({"strain": jax.numpy.ones((1, 6))})
