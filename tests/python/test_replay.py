"""Small evaluations go through calls that are kept: the bits are those of tensors."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from states import DIRECT, EXPLICIT, Artifacts, load, random_like, recorded

from neml2_capi import ConvergenceError, FatalError, Model, UnknownNameError
from neml2_capi.model.native import Native

Array = NDArray[np.float64]
STRAIN = np.array([[1e-3, -3e-4, 2e-4, 5e-4, -1e-4, 7e-4], [2e-3, 1e-4, 0, -6e-4, 3e-4, 1e-4]])
MODELS = EXPLICIT + DIRECT


def calls(model: Model, inputs: Mapping[str, Any]) -> dict[str, Callable[[], Any]]:
    """Every function that can be replayed, of one state."""
    outputs = model.forward(inputs)
    functions: dict[str, Callable[[], Any]] = {"forward": lambda: model.forward(inputs)}
    if model.derivatives:
        # The same at all sites of a sub-batch, as some derivatives must be asked.
        variable = model.derivatives[0].variable
        tangents = {variable: np.full_like(inputs[variable], 1e-3)}
        functions["jvp"] = lambda: model.jvp(inputs, tangents)
        if "mean_stress" not in outputs:  # whose adjoint cannot be told
            functions["vjp"] = lambda: model.vjp(inputs, random_like(outputs))
        functions["jacobian"] = lambda: model.jacobian(inputs)
    if model.parameter_derivatives:
        functions["param_jacobian"] = lambda: model.param_jacobian(inputs)
        functions["param_vjp"] = lambda: model.param_vjp(inputs, random_like(outputs))
    return functions


def arrays(results: Any, *path: Any) -> dict[tuple[Any, ...], Any]:
    """The leaves of nested results, by their paths."""
    if not isinstance(results, (dict, tuple)):
        return {path: results}
    entries = results.items() if isinstance(results, dict) else enumerate(results)
    leaves: dict[tuple[Any, ...], Any] = {}
    for key, value in entries:
        leaves.update(arrays(value, *path, key))
    return leaves


def same(results: Any, expected: Any) -> None:
    """Equal in every bit, shape, type and order."""
    found, wanted = arrays(results), arrays(expected)
    assert list(found) == list(wanted)
    for path, value in wanted.items():
        assert type(found[path]) is type(value), path
        np.testing.assert_array_equal(found[path], value, strict=True, err_msg=str(path))


def native(model: Model) -> Native:
    """What evaluates a model of the library."""
    assert isinstance(model._engine, Native)
    return model._engine


def by_tensors(model: Model, function: Callable[[], Any]) -> Any:
    """What `function` returns if it goes the general way."""
    native(model)._repeatable = False
    try:
        return function()
    finally:
        native(model)._repeatable = True


def replayed(function: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """What `function` returns when it cannot go the general way."""
    with monkeypatch.context() as patch:
        patch.setattr(Native, "evaluate", lambda *_: pytest.fail("this was not replayed"))
        return function()


def unaligned(array: Array) -> Array:
    """A copy that begins between two numbers."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    copy: Array = memory[1:].view(np.float64).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("points", [None, 1, 3], ids=["one without a batch", "1", "3"])
def test_every_function_gives_the_same_bits_again(
    artifacts: Artifacts, name: str, points: int | None
) -> None:
    model = load(artifacts, name)
    where = 0 if points is None else slice(points)
    inputs = {key: value[where] for key, value in recorded(name, "in").items()}
    for function in calls(model, inputs).values():
        expected = by_tensors(model, function)
        for _ in range(3):
            same(function(), expected)


@pytest.mark.parametrize("name", ["elasticity_parameters", "isotropic_hardening"])
def test_every_function_is_replayed(
    artifacts: Artifacts, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(artifacts, name)
    inputs = {key: value[:2] for key, value in recorded(name, "in").items()}
    for kind, function in calls(model, inputs).items():
        expected = by_tensors(model, function)
        same(replayed(function, monkeypatch), expected)
        assert kind in ("forward", "jvp", "vjp", "jacobian", "param_jacobian", "param_vjp")


def test_what_is_replayed_sees_the_values_of_each_call(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = model.forward({"strain": 3 * STRAIN})["stress"]
    replayed(lambda: model.forward({"strain": STRAIN}), monkeypatch)
    np.testing.assert_array_equal(model.forward({"strain": 3 * STRAIN})["stress"], expected)


def test_results_are_new_arrays_that_own_their_memory(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = replayed(lambda: model.forward({"strain": STRAIN}), monkeypatch)["stress"]
    kept = first.copy()
    second = model.forward({"strain": 2 * STRAIN})["stress"]
    assert first.flags.owndata and first.flags.writeable
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize(
    "strain",
    [
        np.asfortranarray(STRAIN),
        np.repeat(STRAIN, 2, axis=0)[::2],
        STRAIN[::-1][::-1],
        np.broadcast_to(STRAIN, (3, 2, 6)),
    ],
    ids=["fortran order", "strided", "backwards", "repeated"],
)
def test_any_layout_can_be_replayed(
    model: Model, strain: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = model.forward({"strain": strain.copy()})["stress"]
    result = replayed(lambda: model.forward({"strain": strain}), monkeypatch)["stress"]
    np.testing.assert_array_equal(result, expected, strict=True)


def test_a_number_is_replayed_for_all_points(
    viscoplastic: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs: dict[str, Any] = {v.name: np.zeros((2, *v.base_shape)) for v in viscoplastic.inputs}
    inputs.update(strain=STRAIN, t=1.0)
    first = viscoplastic.forward(inputs)
    same(replayed(lambda: viscoplastic.forward(inputs), monkeypatch), first)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({"strain": STRAIN.astype(np.float32)}, FatalError, "must be float64; got float32"),
        ({"strain": STRAIN[:, :5]}, FatalError, r"expected batch axes and then \(6"),
        ({"strain": STRAIN, "stress": STRAIN}, UnknownNameError, "unknown input 'stress'"),
        ({"strain": None}, FatalError, "is missing"),
        ({}, FatalError, "is missing"),
        ([STRAIN], FatalError, "must be a mapping"),
        ({"strain": np.ma.masked_equal(STRAIN, 0.0)}, FatalError, "is masked"),
        ({"strain": STRAIN.astype(">f8")}, FatalError, "native byte order"),
        ({"strain": unaligned(STRAIN)}, FatalError, "not aligned"),
    ],
    ids=["float32", "shape", "unknown", "None", "no", "list", "masked", "byte order", "unaligned"],
)
def test_what_is_refused_is_refused_after_a_replay(
    model: Model,
    inputs: Any,
    error: type[Exception],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replayed(lambda: model.forward({"strain": STRAIN}), monkeypatch)
    with pytest.raises(error, match=message):
        model.forward(inputs)
    same(model.forward({"strain": STRAIN}), model.forward({"strain": STRAIN.tolist()}))


def test_a_subclass_of_an_array_is_no_array(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    replayed(lambda: model.forward({"strain": STRAIN}), monkeypatch)
    result = model.forward({"strain": STRAIN.view(np.recarray)})["stress"]
    assert type(result) is np.ndarray


def test_a_direction_that_is_no_input_is_refused(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model(artifacts["elasticity"])
    inputs = {"strain": STRAIN}
    replayed(lambda: model.jvp(inputs, inputs), monkeypatch)
    with pytest.raises(UnknownNameError, match="unknown input 'x'"):
        model.jvp(inputs, {"strain": STRAIN, "x": STRAIN})
    zero = model.jvp(inputs, {})[1]["stress"]
    np.testing.assert_array_equal(zero, np.zeros_like(zero))


def test_points_that_fail_are_reported_as_ever(artifacts: Artifacts) -> None:
    model = load(artifacts, "relaxation")
    good = recorded("relaxation", "in")
    bad = {name: value.copy() for name, value in good.items()}
    bad[next(name for name in ("strain", "applied_stress") if name in bad)][1] *= 1e60
    with pytest.raises(ConvergenceError) as first:
        model.forward(bad)
    for _ in range(3):
        expected = model.forward(good)
    for _ in range(2):
        with pytest.raises(ConvergenceError) as later:
            model.forward(bad)
        assert str(later.value) == str(first.value)
        assert later.value.status == first.value.status
        assert later.value.converged_mask.tolist() == [True, False, True, True]
        for attribute in ("outputs", "report", "unknowns"):
            same(dict(getattr(later.value, attribute)), dict(getattr(first.value, attribute)))
    same(model.forward(good), expected)


def test_a_result_that_is_not_finite_is_replayed(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    strain = STRAIN.copy()
    strain[0, 0] = np.nan
    first = model.forward({"strain": strain})
    same(replayed(lambda: model.forward({"strain": strain}), monkeypatch), first)


def test_a_parameter_that_is_set_counts_from_then_on(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    stress = replayed(lambda: model.forward({"strain": STRAIN}), monkeypatch)["stress"]
    modulus = float(model.named_parameters()["E"])
    model.named_parameters()["E"][...] = 2 * modulus
    np.testing.assert_allclose(model.forward({"strain": STRAIN})["stress"], 2 * stress)
    model.set_parameter("E", np.array([modulus, 3 * modulus]))
    for _ in range(3):
        varied = model.forward({"strain": STRAIN})["stress"]
        np.testing.assert_allclose(varied, stress * [[1.0], [3.0]])
    model.set_parameter("E", np.full((3, 1), modulus))
    for _ in range(3):
        assert model.forward({"strain": STRAIN})["stress"].shape == (3, 2, 6)
    for batch in [(), (1,), ()]:  # with a batch the result has one, too
        model.set_parameter("E", np.full(batch, modulus))
        for _ in range(3):
            assert model.forward({"strain": STRAIN[0]})["stress"].shape == (*batch, 6)
    model.set_parameter("E", np.ones(5))
    with pytest.raises(FatalError, match="does not broadcast"):
        model.forward({"strain": STRAIN})


@pytest.mark.parametrize("kind", [float, np.array])
def test_a_parameter_that_keeps_its_shape_keeps_what_is_replayed(
    model: Model, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    modulus = float(model.named_parameters()["E"])
    first = replayed(lambda: model.forward({"strain": STRAIN}), monkeypatch)["stress"]
    model.set_parameter("E", kind(2 * modulus))
    monkeypatch.setattr(Native, "evaluate", lambda *_: pytest.fail("this was not replayed"))
    second = model.forward({"strain": STRAIN})["stress"]
    np.testing.assert_allclose(second, 2 * first, rtol=1e-14)


def test_each_point_has_the_block_of_its_own_parameter(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity_parameters"])
    inputs = recorded("elasticity_parameters", "in")
    points = len(next(iter(inputs.values())))
    factors = np.arange(1.0, points + 1)
    for _ in range(3):
        once = model.jacobian(inputs)[1]["stress"]["strain"]
    name = next(name for name in model.parameters.names if name.endswith("E"))
    modulus = float(model.named_parameters()[name])
    model.set_parameter(name, modulus * factors)
    for _ in range(3):
        varied = model.jacobian(inputs)[1]["stress"]["strain"]
        assert varied.shape == (points, 6, 6)
        np.testing.assert_allclose(varied, once * factors[:, None, None])


def test_an_option_that_is_set_counts_from_then_on(artifacts: Artifacts) -> None:
    model = load(artifacts, "relaxation")
    inputs = recorded("relaxation", "in")
    for _ in range(3):
        model.forward(inputs)
    model.options["miters"] = 2
    with pytest.raises(ConvergenceError):
        model.forward(inputs)


def test_overrides_are_not_replayed(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    stress = replayed(lambda: model.forward({"strain": STRAIN}), monkeypatch)["stress"]
    for _ in range(3):
        other = model.forward({"strain": STRAIN}, {"E": 2 * float(model.named_parameters()["E"])})
        np.testing.assert_allclose(other["stress"], 2 * stress)


@pytest.mark.parametrize("batch", [(0,), (2, 0)])
def test_no_points_stay_no_points(model: Model, batch: tuple[int, ...]) -> None:
    for _ in range(4):
        assert model.forward({"strain": np.zeros((*batch, 6))})["stress"].shape == (*batch, 6)


def test_a_closed_model_replays_nothing(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    replayed(lambda: model.forward({"strain": STRAIN}), monkeypatch)
    model.close()
    with pytest.raises(FatalError, match="this Model is closed"):
        model.forward({"strain": STRAIN})


def test_many_shapes_are_not_all_remembered(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    for points in range(1, 200):
        for _ in range(2):
            model.forward({"strain": np.zeros((points, 6))})
    assert 0 < len(native(model)._memories["forward"].slots) <= 32
    replayed(lambda: model.forward({"strain": STRAIN}), monkeypatch)


def test_threads_replay_side_by_side(model: Model) -> None:
    strains = [STRAIN * factor for factor in range(1, 5)]
    expected = [model.forward({"strain": strain})["stress"] for strain in strains]
    wrong: list[int] = []

    def work(which: int) -> None:
        for _ in range(2000):
            if not np.array_equal(
                model.forward({"strain": strains[which]})["stress"], expected[which]
            ):
                wrong.append(which)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_batch_that_another_thread_gives_a_parameter_is_seen_whole(model: Model) -> None:
    modulus = float(model.named_parameters()["E"])
    once = model.forward({"strain": STRAIN[0]})["stress"]
    done = threading.Event()

    def alternate() -> None:
        for _ in range(300):
            model.set_parameter("E", np.full(2, 2 * modulus))
            model.set_parameter("E", modulus)
        done.set()

    thread = threading.Thread(target=alternate)
    thread.start()
    while not done.is_set():
        stress = model.forward({"strain": STRAIN[0]})["stress"]
        expected = once if stress.ndim == 1 else np.array([once, once]) * 2
        np.testing.assert_allclose(stress, expected)
    thread.join()


def test_no_model_is_kept_alive_by_what_it_remembers(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity"])
    for _ in range(3):
        model.forward({"strain": STRAIN})
    gc.disable()
    try:
        gone = weakref.ref(model)
        memory = weakref.ref(native(model)._memories["forward"])
        del model
        assert gone() is None and memory() is None
    finally:
        gc.enable()


class TestTorch:
    """Tensors in, tensors out, on the short way too."""

    @pytest.fixture(autouse=True)
    def torch(self) -> Any:
        return pytest.importorskip("torch")

    @pytest.mark.parametrize("grad", [False, True])
    def test_tensors_are_replayed(
        self, model: Model, torch: Any, grad: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        strain = torch.tensor(STRAIN, requires_grad=grad)
        first = model.forward({"strain": strain})["stress"]
        again = replayed(lambda: model.forward({"strain": strain}), monkeypatch)["stress"]
        assert type(again) is torch.Tensor and not again.requires_grad
        assert torch.equal(again, first)
        # Arrays of the same shape stay arrays.
        assert type(model.forward({"strain": STRAIN})["stress"]) is np.ndarray

    def test_a_model_of_torch_replays_tensors(
        self, artifacts: Artifacts, torch: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from neml2_capi.torch import Model as TorchModel

        model = TorchModel(artifacts["elasticity"])
        stress = replayed(lambda: model.forward({"strain": STRAIN}), monkeypatch)["stress"]
        assert type(stress) is torch.Tensor
        blocks = replayed(lambda: model.jacobian({"strain": STRAIN}), monkeypatch)[1]
        assert type(blocks["stress"]["strain"]) is torch.Tensor

    def test_a_tensor_of_another_type_is_refused(
        self, model: Model, torch: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        strain = torch.tensor(STRAIN)
        replayed(lambda: model.forward({"strain": strain}), monkeypatch)
        with pytest.raises(FatalError, match="must be float64; got float32"):
            model.forward({"strain": strain.float()})
