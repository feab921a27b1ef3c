"""Model.bind(): arrays that are bound once, in place, for tight loops."""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from states import DIRECT, EXPLICIT, Artifacts, load, random_like, recorded

from neml2_capi import Call, ConvergenceError, FatalError, Model, Tensor, UnknownNameError
from neml2_capi._ffi.library import lib

Array = NDArray[np.float64]
STRAIN = np.array([[1e-3, -3e-4, 2e-4, 5e-4, -1e-4, 7e-4], [2e-3, 1e-4, 0, -6e-4, 3e-4, 1e-4]])
READ_ONLY = np.zeros((2, 6))
READ_ONLY.flags.writeable = False
MODELS = EXPLICIT + DIRECT


@pytest.fixture
def strain() -> Array:
    return np.array(STRAIN)


@pytest.fixture
def stress(model: Model) -> Array:
    result: Array = model.forward({"strain": STRAIN})["stress"]
    return result


def equal(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


class OnlyDLPack:
    """An array of another library."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **request: Any) -> Any:
        return self._array.__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


# ------------------------------------------------------------------------------------------------
# Evaluation in place
# ------------------------------------------------------------------------------------------------


def test_a_call_reads_and_writes_arrays_where_they_are(
    model: Model, strain: Array, stress: Array
) -> None:
    result = np.zeros((2, 6))
    call = model.bind({"strain": strain}, {"stress": result})
    assert isinstance(call, Call)
    assert call.run() == lib.NEML2_OK
    np.testing.assert_array_equal(result, stress)
    strain[...] = 2 * STRAIN
    assert call()["stress"] is result
    np.testing.assert_allclose(result, 2 * stress)
    assert call.inputs["strain"] is strain
    assert call.outputs["stress"] is result


def test_outputs_that_are_not_given_are_made_once(
    model: Model, strain: Array, stress: Array
) -> None:
    call = model.bind({"strain": strain})
    made = call.outputs["stress"]
    assert np.isnan(made).all()
    assert call()["stress"] is made
    np.testing.assert_array_equal(made, stress)
    assert call.run() == 0 and call.outputs["stress"] is made


@pytest.mark.parametrize("name", MODELS)
def test_a_call_gives_what_the_functions_give(artifacts: Artifacts, name: str) -> None:
    model = load(artifacts, name)
    inputs = recorded(name, "in")
    outputs, report = model.evaluate(inputs)
    call = model.bind(inputs, derivatives=True, report=True)
    equal(call(), outputs)
    equal(call.report, report)
    blocks = model.jacobian(inputs)[1]
    assert list(call.derivatives) == list(blocks)
    for output, of_output in blocks.items():
        for variable, block in of_output.items():
            bound = call.derivatives[output][variable]
            np.testing.assert_array_equal(bound, np.broadcast_to(block, bound.shape))


@pytest.mark.parametrize("name", ["elasticity_parameters", "isotropic_hardening", "crystal"])
def test_a_call_gives_directional_derivatives(artifacts: Artifacts, name: str) -> None:
    model = load(artifacts, name)
    inputs = recorded(name, "in")
    tangents = random_like({d.variable: inputs[d.variable] for d in model.derivatives})
    call = model.bind(inputs, tangents=tangents)
    call()
    equal(call.jvps, model.jvp(inputs, tangents)[1])
    cotangents = random_like(model.forward(inputs))
    call = model.bind(inputs, cotangents=cotangents)
    call()
    equal(call.adjoints, model.vjp(inputs, cotangents)[1])


def test_parameters_have_derivatives_and_adjoints(artifacts: Artifacts) -> None:
    model = load(artifacts, "elasticity_parameters")
    inputs = recorded("elasticity_parameters", "in")
    points = len(inputs["strain"])
    names = model.parameters.names
    cotangents = {"stress": np.ones((points, 6))}
    values = {name: np.full(points, float(v)) for name, v in model.named_parameters().items()}
    each = dict.fromkeys(names, True)
    call = model.bind(inputs, derivatives={"stress": each}, cotangents=cotangents, adjoints=each)
    call()
    equal(call.derivatives["stress"], model.param_jacobian(inputs)[1]["stress"])
    equal(call.adjoints, model.param_vjp(inputs, cotangents))
    call = model.bind(inputs, parameters=values, cotangents=cotangents, adjoints=each)
    call()
    equal(call.adjoints, model.param_vjp(inputs, cotangents, values))


def test_parameters_are_replaced_in_the_call_only(
    model: Model, strain: Array, stress: Array
) -> None:
    modulus = np.array(2 * float(model.named_parameters()["E"]))
    call = model.bind({"strain": strain}, parameters={"E": modulus})
    np.testing.assert_allclose(call()["stress"], 2 * stress)
    np.testing.assert_array_equal(model.forward({"strain": strain})["stress"], stress)
    modulus *= 2
    np.testing.assert_allclose(call()["stress"], 4 * stress)
    call.bind(parameters={"elasticity.E": None})
    np.testing.assert_array_equal(call()["stress"], stress)
    assert dict(call.parameters) == {}


@pytest.mark.parametrize("number", [float, int, np.float32, np.float64, np.int64])
def test_a_parameter_may_be_a_number_of_python_or_numpy(
    model: Model, strain: Array, stress: Array, number: Any
) -> None:
    modulus = number(2 * float(model.named_parameters()["E"]))
    call = model.bind({"strain": strain}, parameters={"E": modulus})
    np.testing.assert_allclose(call()["stress"], 2 * stress)
    (own,) = call.parameters.values()
    own[...] = 2 * modulus
    np.testing.assert_allclose(call()["stress"], 4 * stress)


def test_a_stored_parameter_counts_as_it_is_when_the_call_runs(
    model: Model, strain: Array, stress: Array
) -> None:
    modulus = float(model.named_parameters()["E"])
    call = model.bind({"strain": strain})
    model.set_parameter("E", modulus * np.array([1.0, 3.0]))
    np.testing.assert_allclose(call()["stress"], stress * [[1.0], [3.0]])
    model.set_parameter("E", np.full(5, modulus))
    with pytest.raises(FatalError, match="holds values for 5 points; the call has 2"):
        call.run()


def test_the_batch_of_a_stored_parameter_counts(model: Model) -> None:
    model.set_parameter("E", np.array([1e5, 2e5, 3e5]))
    call = model.bind({"strain": STRAIN[0]})
    assert call.batch == (3,)
    np.testing.assert_array_equal(call()["stress"], model.forward({"strain": STRAIN[0]})["stress"])


@pytest.mark.parametrize("batch", [(), (1,), (2,), (3, 2), (2, 0)], ids=str)
def test_a_call_has_the_batch_of_its_arrays(model: Model, batch: tuple[int, ...]) -> None:
    strain = np.broadcast_to(STRAIN[0], (*batch, 6)).copy()
    call = model.bind({"strain": strain}, derivatives=True, report=True)
    assert (call.batch, call.points) == (batch, int(np.prod(batch)))
    assert call.run() == 0
    equal(call.outputs, model.forward({"strain": strain}))
    assert call.derivatives["stress"]["strain"].shape == (*batch, 6, 6)
    assert {array.shape for array in call.report.values()} == {batch}


def test_one_value_serves_all_points(viscoplastic: Model) -> None:
    inputs: dict[str, Any] = {v.name: np.zeros(v.base_shape) for v in viscoplastic.inputs}
    inputs.update({"strain": STRAIN.copy(), "t": 1.0, "t~1": np.zeros((1,))})
    call = viscoplastic.bind(inputs)
    equal(call(), viscoplastic.forward(inputs))
    # A number is kept in an array, where it can be changed.
    call.inputs["t"][...] = 2.0
    equal(call(), viscoplastic.forward({**inputs, "t": 2.0}))


@pytest.mark.parametrize(
    "convert",
    [
        lambda a: np.concatenate([a, a, a], axis=1)[:, 6:12],
        lambda a: np.repeat(a, 3, axis=0)[::3],
        lambda a: np.broadcast_to(a[0], (2, 6)),
        lambda a: a.reshape(1, 2, 6).transpose(1, 0, 2),
        lambda a: a.reshape(2, 1, 6),
    ],
    ids=["columns", "rows", "repeated", "turned", "reshaped"],
)
def test_arrays_with_a_constant_distance_between_points_are_bound(
    model: Model, convert: Any, strain: Array
) -> None:
    given = convert(strain)
    call = model.bind({"strain": given})
    equal(call(), model.forward({"strain": given}))


def test_state_variables_may_interleave(artifacts: Artifacts) -> None:
    model = load(artifacts, "isotropic_hardening")
    inputs = recorded("isotropic_hardening", "in")
    points = len(inputs["strain"])
    widths = {v.name: int(np.prod(v.base_shape)) for v in model.outputs}
    state = np.full((points, sum(widths.values()) + 1), -7.0)
    views, begin = {}, 1
    for variable in model.outputs:
        view = state[:, begin : begin + widths[variable.name]]
        views[variable.name] = view if variable.base_shape else view[:, 0]
        begin += widths[variable.name]
    model.bind(inputs, views)()
    equal(views, model.forward(inputs))
    assert (state[:, 0] == -7).all()


def test_an_output_may_be_its_own_history(artifacts: Artifacts) -> None:
    model = load(artifacts, "isotropic_hardening")
    inputs = recorded("isotropic_hardening", "in")
    pairs = {h.output: h.input for h in model.histories if h.age == 1 and h.output}
    state: dict[str, Any] = dict(inputs)
    for _ in range(3):
        state.update({pairs[o]: v for o, v in model.forward(state).items() if o in pairs})
    call = model.bind(inputs, {output: inputs[history] for output, history in pairs.items()})
    for _ in range(3):
        assert call.run() == 0
    equal({n: inputs[n] for n in pairs.values()}, {n: state[n] for n in pairs.values()})


@pytest.mark.parametrize("convert", [OnlyDLPack, Tensor], ids=["dlpack", "Tensor"])
def test_other_holders_of_memory_are_bound_in_place(
    model: Model, strain: Array, stress: Array, convert: Any
) -> None:
    result = np.zeros((2, 6))
    holder = convert(strain)
    call = model.bind({"strain": holder}, {"stress": Tensor(result)})
    call()
    np.testing.assert_array_equal(result, stress)
    strain *= 2
    call()
    np.testing.assert_allclose(result, 2 * stress)
    assert call.inputs["strain"] is holder


def test_arrays_are_kept_alive(model: Model, stress: Array) -> None:
    call = model.bind({"strain": STRAIN.copy()}, {"stress": np.zeros((2, 6))})
    model.close()
    gc.collect()
    junk = [np.ones((2, 6)) for _ in range(1000)]
    np.testing.assert_array_equal(call()["stress"], stress)
    del junk


def test_some_outputs_can_be_left_out(artifacts: Artifacts) -> None:
    model = load(artifacts, "isotropic_hardening")
    inputs = recorded("isotropic_hardening", "in")
    expected = model.forward(inputs)
    left_out = next(name for name in expected if name != "stress")
    call = model.bind(inputs, {left_out: None})
    del expected[left_out]
    equal(call(), expected)


# ------------------------------------------------------------------------------------------------
# Other arrays
# ------------------------------------------------------------------------------------------------


def test_an_array_can_be_replaced(model: Model, strain: Array, stress: Array) -> None:
    call = model.bind({"strain": strain})
    made, result = call()["stress"], np.zeros((2, 6))
    call.bind({"strain": 3 * STRAIN}, {"stress": result})
    call()
    np.testing.assert_allclose(result, 3 * stress)
    np.testing.assert_array_equal(made, stress)
    assert call.outputs["stress"] is result
    call.bind(report={"iterations": True}, derivatives={"stress": True})
    call()
    assert list(call.report) == ["status", "iterations"]
    assert call.derivatives["stress"]["strain"].shape == (2, 6, 6)


def test_when_one_array_is_refused_none_is_replaced(
    model: Model, strain: Array, stress: Array
) -> None:
    call = model.bind({"strain": strain})
    before = call.outputs["stress"]
    with pytest.raises(FatalError):
        call.bind({"strain": np.zeros((2, 6))}, {"stress": np.zeros((3, 6))})
    assert call.inputs["strain"] is strain and call.outputs["stress"] is before
    np.testing.assert_array_equal(call()["stress"], stress)


def test_history_and_result_can_be_exchanged(artifacts: Artifacts) -> None:
    model = load(artifacts, "isotropic_hardening")
    inputs = recorded("isotropic_hardening", "in")
    pairs = [(h.input, h.output) for h in model.histories if h.age == 1 and h.output]
    state: dict[str, Any] = dict(inputs)
    call = model.bind(inputs)
    for _ in range(4):
        outputs = model.forward(state)
        assert call.run() == 0
        equal(call.outputs, outputs)
        for history, current in pairs:
            state[history] = outputs[current]
            old, new = call.inputs[history], call.outputs[current]
            call.swap(history, current)
            assert call.inputs[history] is new and call.outputs[current] is old


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_arrays_that_change_places_again_and_again_are_where_they_were_told(
    artifacts: Artifacts, kind: str
) -> None:
    """Three arrays go round, one is replaced on the way: values equal a loop that copies."""
    model = load(artifacts, "isotropic_hardening")
    inputs: dict[str, Any] = {
        k: np.array(v) for k, v in recorded("isotropic_hardening", "in").items()
    }
    if kind == "torch":
        torch = pytest.importorskip("torch")
        inputs = {name: torch.from_numpy(value) for name, value in inputs.items()}
    state: dict[str, Any] = {name: value * 1 for name, value in inputs.items()}
    pairs = [(h.input, h.output) for h in model.histories if h.age == 1 and h.output]
    call = model.bind(inputs)
    for step in range(12):
        outputs = model.forward(state)
        assert call.run() == 0
        for name, value in outputs.items():
            np.testing.assert_array_equal(call.outputs[name], value)
        for history, current in pairs:
            state[history] = outputs[current]
            call.swap(history, current)
        state["strain"], state["strain~1"] = state["strain~1"], state["strain"]
        call.swap("strain~1", "strain")
        if step == 6:  # an array that was never there before
            state["strain"] = inputs["strain"] * 0.5
            call.bind({"strain": inputs["strain"] * 0.5})
    call.close()
    with pytest.raises(FatalError, match="this Call is closed"):
        call.swap(*pairs[0])


def test_forces_can_be_exchanged_too(viscoplastic: Model) -> None:
    inputs = {v.name: np.zeros((2, *v.base_shape)) for v in viscoplastic.inputs}
    call = viscoplastic.bind(inputs)
    call.swap("t~1", "t")
    assert call.inputs["t"] is inputs["t~1"] and call.inputs["t~1"] is inputs["t"]


def test_what_cannot_be_exchanged_is_refused(viscoplastic: Model) -> None:
    inputs = {v.name: np.zeros((2, *v.base_shape)) for v in viscoplastic.inputs}
    inputs.update({"t": np.ones(2), "stress~1": READ_ONLY})
    call = viscoplastic.bind(inputs, {"X1": None})
    with pytest.raises(FatalError, match="output 'stress' is read-only"):
        call.swap("stress~1", "stress")
    with pytest.raises(UnknownNameError, match="unknown input 'stress~2'"):
        call.swap("stress~2", "stress")
    with pytest.raises(FatalError, match="output 'X1' has no array to exchange"):
        call.swap("X1~1", "X1")
    assert call.run() == 0


# ------------------------------------------------------------------------------------------------
# Points that fail
# ------------------------------------------------------------------------------------------------


@pytest.fixture
def failing(artifacts: Artifacts) -> tuple[Model, dict[str, Array]]:
    """Of the four points of a state, the second is loaded beyond all measure."""
    model = load(artifacts, "isotropic_hardening")
    inputs = recorded("isotropic_hardening", "in")
    inputs["strain"][1] *= 1e60
    return model, inputs


def test_run_returns_the_status_and_leaves_failed_points(
    failing: tuple[Model, dict[str, Array]],
) -> None:
    model, inputs = failing
    expected, report = model.evaluate(inputs)
    call = model.bind(inputs, report=True)
    for array in call.outputs.values():
        array[...] = -7
    assert call.run() == report["status"].max() == lib.NEML2_NOT_CONVERGED
    equal(call.report, report)
    good = report["status"] == 0
    assert good.tolist() == [True, False, True, True]
    for name, array in call.outputs.items():
        np.testing.assert_array_equal(array[good], expected[name][good])
        assert (array[~good] == -7).all()


def test_a_call_raises_what_forward_raises(failing: tuple[Model, dict[str, Array]]) -> None:
    model, inputs = failing
    with pytest.raises(ConvergenceError) as general:
        model.forward(inputs)
    call = model.bind(inputs)
    with pytest.raises(ConvergenceError) as caught:
        call()
    assert str(caught.value) == str(general.value)
    assert caught.value.status == general.value.status
    assert caught.value.recoverable
    assert caught.value.converged_mask.tolist() == [True, False, True, True]
    assert caught.value.outputs["stress"] is call.outputs["stress"]
    assert caught.value.report["status"].tolist() == [0, lib.NEML2_NOT_CONVERGED, 0, 0]
    inputs["strain"][1] = inputs["strain"][0]
    call()
    equal(call.outputs, model.forward(inputs))


def test_a_result_that_is_not_finite_is_a_status_and_no_error(model: Model, strain: Array) -> None:
    strain[0, 0] = np.nan
    call = model.bind({"strain": strain})
    assert call.run() == lib.NEML2_NON_FINITE
    assert np.isnan(call()["stress"][0]).any()
    assert call.report["status"].tolist() == [lib.NEML2_NON_FINITE, 0]


# ------------------------------------------------------------------------------------------------
# What is refused
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": {}}, "input 'strain' is missing; every input must be bound"),
        ({"inputs": {"strain": None}}, "input 'strain' is missing"),
        ({"inputs": [STRAIN]}, "inputs must be a mapping"),
        ({"inputs": {"strain": STRAIN, "x": STRAIN}}, "unknown input 'x'"),
        ({"inputs": {"strain": STRAIN.astype(np.float32)}}, "must be float64; got float32"),
        ({"inputs": {"strain": STRAIN.astype(">f8")}}, "must be float64; got >f8"),
        ({"inputs": {"strain": STRAIN[:, :5]}}, r"has the shape \(2, 5\); expected batch axes"),
        ({"inputs": {"strain": 1.0}}, r"has the shape \(\); expected batch axes"),
        ({"inputs": {"strain": STRAIN.tolist()}}, "cannot be used in place, a list"),
        ({"inputs": {"strain": "text"}}, "cannot be used in place, a str"),
        ({"inputs": {"strain": True}}, "is read: bind an array"),
        ({"inputs": {"strain": np.asfortranarray(STRAIN)}}, "not row-major and dense.*ascontig"),
        ({"inputs": {"strain": STRAIN[:, ::-1]}}, "not row-major and dense"),
        ({"inputs": {"strain": STRAIN[::-1]}}, "overlap or run backwards"),
        ({"inputs": {"strain": np.ma.masked_equal(STRAIN, 0)}}, "is masked"),
        (
            {"inputs": {"strain": np.zeros((2, 4, 6))[:, :3]}},
            "no constant distance from point to point.*np.ascontiguousarray",
        ),
        (
            {"inputs": {"strain": np.lib.stride_tricks.sliding_window_view(np.zeros(8), 6)}},
            "overlap or run backwards",
        ),
        (
            {
                "inputs": {
                    "strain": np.frombuffer(bytes(97), np.uint8)[1:].view(float).reshape(2, 6)
                }
            },
            "not aligned",
        ),
        ({"outputs": {"stress": READ_ONLY}}, "output 'stress' is read-only"),
        ({"outputs": {"stress": np.zeros((3, 6))}}, r"has the batch \(3,\); expected the call's"),
        ({"outputs": {"stress": np.zeros(6)}}, r"has the batch \(\); expected the call's"),
        ({"outputs": {"stress": 0.0}}, "output 'stress' cannot be used in place, a float"),
        ({"outputs": {"strss": np.zeros((2, 6))}}, "unknown output 'strss'; did you mean 'stress'"),
        ({"outputs": {"stress": np.zeros((2, 6), np.float32)}}, "output 'stress' must be float64"),
        ({"parameters": {"G": 1.0}}, "unknown parameter 'G'"),
        ({"parameters": {"E": 1.0, "elasticity.E": 1.0}}, "'elasticity.E' is given twice"),
        ({"parameters": {"E": np.ones(3)}}, r"has the batch \(3,\), which does not broadcast"),
        ({"derivatives": {"stress": {"E": True}}}, "without the derivative 'stress:elasticity.E'"),
        ({"derivatives": {"stress": {"x": True}}}, "unknown parameter 'x'"),
        ({"derivatives": {"x": True}}, "unknown output 'x'"),
        ({"derivatives": {"stress": {"strain": np.zeros((2, 36))}}}, r"\(2, 36\); expected"),
        ({"derivatives": 3}, "derivatives must be a mapping"),
        ({"tangents": {"stress": STRAIN}}, "unknown input 'stress'"),
        ({"tangents": {"strain": np.zeros((3, 6))}}, "tangent of input 'strain' has the batch"),
        ({"adjoints": {"E": True}}, "without derivatives with respect to 'elasticity.E'"),
        ({"report": {"statsu": True}}, "unknown report 'statsu'; did you mean 'status'"),
        ({"report": {"status": np.zeros(2)}}, "report 'status' must be int32; got float64"),
        ({"report": {"status": np.zeros(3, np.int32)}}, r"has the batch \(3,\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_bound_is_refused_with_the_reason(
    model: Model, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(FatalError, match=message) as caught:
        model.bind(**{"inputs": {"strain": STRAIN}, **arguments})
    assert not caught.value.recoverable
    if "inputs" not in arguments:
        call = model.bind({"strain": STRAIN})
        with pytest.raises(FatalError):
            call.bind(**arguments)
        assert call.run() == 0


def test_a_batch_that_would_have_to_be_repeated_says_how(viscoplastic: Model) -> None:
    inputs = {v.name: np.zeros((3, 2, *v.base_shape)) for v in viscoplastic.inputs}
    inputs["strain"] = np.zeros((2, 6))
    message = r"would have to be repeated to \(3, 2\).*broadcast_to\(array, \(3, 2, 6\)\)"
    with pytest.raises(FatalError, match=message):
        viscoplastic.bind(inputs)


def test_arrays_that_overlap_are_refused_when_the_call_runs(model: Model) -> None:
    memory = np.zeros((3, 6))
    call = model.bind({"strain": memory[:2]}, {"stress": memory[1:]})
    with pytest.raises(FatalError, match="overlap"):
        call.run()
    assert (memory == 0).all()


def test_the_python_engine_binds_nothing(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity"], engine="python")
    with pytest.raises(FatalError, match="binds no arrays: load the model without engine"):
        model.bind({"strain": STRAIN})


# ------------------------------------------------------------------------------------------------
# Life and threads
# ------------------------------------------------------------------------------------------------


def test_a_closed_call_is_closed(model: Model, strain: Array) -> None:
    with model.bind({"strain": strain}) as call:
        call()
    assert call.closed and "closed" in repr(call)
    for use in (
        call.run,
        call,
        lambda: call.bind({"strain": strain}),
        lambda: call.swap("strain", "stress"),
    ):
        with pytest.raises(FatalError, match="this Call is closed"):
            use()
    call.close()


def test_a_closed_model_cannot_be_bound(model: Model) -> None:
    model.close()
    with pytest.raises(FatalError, match="this Model is closed"):
        model.bind({"strain": STRAIN})


def test_a_call_says_what_it_is(model: Model, strain: Array) -> None:
    assert repr(model.bind({"strain": strain})) == f"<Call of {model!r}, batch (2,)>"


def test_what_is_bound_cannot_be_replaced_behind_its_back(model: Model, strain: Array) -> None:
    call = model.bind({"strain": strain})
    with pytest.raises(TypeError):
        call.inputs["strain"] = strain  # type: ignore[index]


def test_calls_of_one_model_run_side_by_side(model: Model) -> None:
    wrong: list[int] = []

    def work(factor: int) -> None:
        strain = factor * STRAIN
        call, expected = model.bind({"strain": strain}), model.forward({"strain": strain})["stress"]
        for _ in range(1000):
            call.outputs["stress"][...] = 0
            if call.run() or not np.array_equal(call.outputs["stress"], expected):
                wrong.append(factor)

    threads = [threading.Thread(target=work, args=(factor,)) for factor in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_take_turns_with_one_call(model: Model, strain: Array) -> None:
    call = model.bind({"strain": strain})
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.extend(call.run() for _ in range(500)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 2000


@pytest.mark.parametrize("how", ["run", "forward"])
def test_other_threads_go_on_while_a_model_is_evaluated(artifacts: Artifacts, how: str) -> None:
    model = load(artifacts, "isotropic_hardening")
    inputs = recorded("isotropic_hardening", "in")
    inputs = {name: np.repeat(value, 4000, axis=0) for name, value in inputs.items()}
    evaluate = model.bind(inputs).run if how == "run" else lambda: model.forward(inputs)
    running, ended, counted = threading.Event(), threading.Event(), 0

    def work() -> None:
        running.set()
        evaluate()
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    while not ended.is_set():
        counted += 1
    thread.join()
    # With the lock held, the counter would stand still except for the switches before and after.
    assert counted > 10_000


class TestTorch:
    @pytest.fixture(autouse=True)
    def torch(self) -> Any:
        return pytest.importorskip("torch")

    def test_tensors_are_bound_in_place(self, model: Model, torch: Any, stress: Array) -> None:
        strain = torch.tensor(STRAIN)
        call = model.bind({"strain": strain})
        result = call()["stress"]
        assert type(result) is torch.Tensor
        np.testing.assert_array_equal(result.numpy(), stress)
        strain *= 2
        call()
        np.testing.assert_allclose(result.numpy(), 2 * stress)
        assert call.inputs["strain"] is strain

    def test_a_model_of_torch_makes_tensors(self, artifacts: Artifacts, torch: Any) -> None:
        from neml2_capi.torch import Model as TorchModel

        call = TorchModel(artifacts["elasticity"]).bind({"strain": STRAIN}, derivatives=True)
        call()
        made = (call.outputs["stress"], call.derivatives["stress"]["strain"], call.report["status"])
        assert {type(value) for value in made} == {torch.Tensor}
        assert made[2].dtype == torch.int32

    def test_a_tensor_of_another_type_or_negated_lazily_is_refused(
        self, model: Model, torch: Any
    ) -> None:
        with pytest.raises(FatalError, match="must be float64; got float32"):
            model.bind({"strain": torch.tensor(STRAIN).float()})
        negated = torch.view_as_complex(torch.zeros(2, 6, 2, dtype=torch.float64)).conj().imag
        assert negated.is_neg()
        with pytest.raises(FatalError, match="cannot be used in place"):
            model.bind({"strain": negated})
