"""Model.state(): the history of points, and what a model answers at the prompt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native import PREBUILT
from numpy.typing import NDArray

from neml2_capi import FatalError, Model, drive, examples

Array = NDArray[np.float64]
TIMES = np.linspace(0, 4, 5)
DIRECTION = np.array([1e-3, -4e-4, -4e-4, 2e-4, 0, 1e-4])


@pytest.fixture
def model() -> Model:
    return Model(PREBUILT / "combined_hardening")


def strain_at(time: float, points: int) -> Array:
    return time * DIRECTION * np.linspace(1, 3, points)[:, None]


def test_steps_are_those_of_the_driver(model: Model) -> None:
    state = model.state(3)
    buffer = np.empty((3, 6))  # a host writes its strain to one array
    for time in TIMES[1:]:
        buffer[...] = strain_at(time - 0.5, 3)
        model.forward(state.inputs(strain=buffer, t=time))  # a trial, which leaves no trace
        buffer[...] = strain_at(time, 3)
        outputs = model.forward(state.inputs({"strain": buffer}, t=time))
        state.advance(outputs)
    strain = np.array([strain_at(time, 3) for time in TIMES])
    expected = drive(model, TIMES, {"strain": strain})
    for name in model.outputs.names:
        np.testing.assert_array_equal(state[name], expected[name][-1], err_msg=name)
    np.testing.assert_array_equal(state["strain"], strain[-1])


def test_a_copy_is_a_step_to_return_to(model: Model) -> None:
    state = model.state()
    state.advance(model.forward(state.inputs(strain=2 * DIRECTION, t=1.0)))
    kept = state.copy()
    state.advance(model.forward(state.inputs(strain=9 * DIRECTION, t=2.0)))
    assert not np.array_equal(state["stress"], kept["stress"])
    again = kept.copy()
    again.advance(model.forward(again.inputs(strain=9 * DIRECTION, t=2.0)))
    np.testing.assert_array_equal(again["stress"], state["stress"])


def test_older_values_follow() -> None:
    """Of a force with two steps of history, by hand."""
    state = Model(PREBUILT / "combined_hardening").state(
        2, initial={"stress": np.full((2, 6), 7.0)}
    )
    assert "stress (2, 6)" in repr(state)
    np.testing.assert_array_equal(state["stress"], np.full((2, 6), 7.0))
    np.testing.assert_array_equal(
        state.inputs(strain=DIRECTION, t=1.0)["stress~1"], state["stress"]
    )


def test_nothing_that_is_given_or_taken_is_shared(model: Model) -> None:
    given = np.full((2, 6), 7.0)
    state = model.state(2, {"stress": given})
    given[:] = 0.0
    assert (state["stress"] == 7.0).all()
    outputs = model.forward(state.inputs(strain=DIRECTION, t=1.0))
    state.advance(outputs)
    expected = outputs["stress"].copy()
    outputs["stress"][:] = 0.0
    np.testing.assert_array_equal(state["stress"], expected)
    rows = outputs["stress"].tolist()
    state.inputs(strain=DIRECTION, t=2.0)
    state.advance({**outputs, "stress": rows})
    rows[0][0] = 9.0
    assert state["stress"][0][0] == 0.0
    state.inputs(strain=DIRECTION, t=3.0)
    state.advance({**outputs, "stress": expected})
    for array in (state["stress"], state.inputs(strain=DIRECTION, t=2.0)["stress~1"]):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0.0


@pytest.mark.full("torch")
def test_nothing_of_torch_is_shared_and_gradients_go_through() -> None:
    torch = pytest.importorskip("torch")

    from neml2_capi.torch import Model as TorchModel

    model = TorchModel(PREBUILT / "combined_hardening")
    given = torch.full((2, 6), 7.0, dtype=torch.float64)
    state = model.state(2, {"stress": given})
    given.zero_()
    assert (state["stress"] == 7.0).all()
    strain = torch.from_numpy(np.tile(DIRECTION, (2, 1))).requires_grad_()
    time = torch.ones(2, dtype=torch.float64)
    outputs = dict(model.forward(state.inputs(strain=strain, t=time)))
    outputs["stress"] = 2.0 * strain
    state.advance(outputs)
    with torch.no_grad():
        outputs["stress"].zero_()
    kept = state["stress"]
    np.testing.assert_array_equal(kept.detach(), np.tile(2 * DIRECTION, (2, 1)))
    kept.sum().backward()
    assert strain.grad is not None and (strain.grad == 2.0).all()
    start = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    model.state(2, {"stress": start})["stress"].sum().backward()
    assert start.grad is not None and (start.grad == 2.0).all()


def test_all_that_is_missing_is_named_at_once(model: Model) -> None:
    state = model.state()
    with pytest.raises(FatalError, match=r"missing: 'strain' \(\*B, 6\), 't' \(\*B,\)\. "):
        state.inputs()
    with pytest.raises(FatalError, match="did you mean 'strain'"):
        state.inputs(strian=DIRECTION)
    with pytest.raises(FatalError, match="history, which the state carries"):
        state.inputs({"stress~1": DIRECTION})
    with pytest.raises(FatalError, match="did you mean 'stress'"):
        model.state(initial={"stres": 0})
    with pytest.raises(FatalError, match=r"The input 'strain' is missing.* So are 'strain~1', 't'"):
        model.forward({})


def test_nothing_advances_without_its_inputs(model: Model) -> None:
    state = model.state()
    outputs = model.forward(state.inputs(strain=DIRECTION, t=1.0))
    del outputs["X1"]
    with pytest.raises(FatalError, match="'X1' becomes history, and is missing in outputs"):
        state.advance(outputs)
    assert not state["stress"].any()


def test_a_step_becomes_history_once(model: Model) -> None:
    """A second time moved older values on, and copied the newest."""
    state = model.state()
    outputs = model.forward(state.inputs(strain=DIRECTION, t=1.0))
    trial = state.copy()
    state.advance(outputs)
    before = state.arrays()
    for late in (state, state.copy(), model.state()):
        with pytest.raises(FatalError, match=r"inputs\(\) was not called since the last step"):
            late.advance(outputs)
    for name, value in state.arrays().items():
        np.testing.assert_array_equal(value, before[name])
    trial.advance(outputs)
    state.advance(model.forward(state.inputs(strain=DIRECTION, t=2.0)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stress": np.zeros((3, 5))}, r"output 'stress' has the shape \(3, 5\); expected batch"),
        ({"stress": np.zeros((2, 6))}, r"output 'stress' has the batch \(2,\), which does not"),
        ({"stress": "none"}, "output 'stress' has the element type"),
        ({"stress": None}, "output 'stress' is None; expected numbers"),
        ({"X1": np.zeros((3, 6), complex)}, r"output 'X1' .* pass its real part"),
        (
            {"X1": np.ma.masked_array(np.zeros((3, 6)), True)},
            "output 'X1' is masked: fill it first",
        ),
    ],
)
def test_a_state_keeps_only_what_a_step_can_take(
    model: Model, change: dict[str, Any], message: str
) -> None:
    state = model.state(3)
    outputs = model.forward(state.inputs(strain=strain_at(1.0, 3), t=1.0))
    with pytest.raises(FatalError, match=message):
        state.advance(outputs | change)
    assert not state["stress"].any()
    state.advance(outputs)


def test_a_model_is_a_function_and_has_its_parameters() -> None:
    model = Model(examples.path("elasticity"))
    stress = model(strain=DIRECTION)["stress"]
    np.testing.assert_array_equal(stress, model({"strain": DIRECTION})["stress"])
    model["E"] = 100e3
    np.testing.assert_allclose(model(strain=DIRECTION)["stress"], stress / 2)
    model["E"][...] = 50e3
    np.testing.assert_allclose(model(strain=DIRECTION)["stress"], stress / 4)
    assert model.inputs["strain"].type == "SR2"
    with pytest.raises(FatalError, match="did you mean 'strain'"):
        model.inputs["strian"]


def test_a_parameter_is_no_attribute_nor_a_model_a_sequence() -> None:
    """Setting one changed nothing, in silence; `in` looked for a parameter 0."""
    model: Any = Model(examples.path("chaboche"))
    with pytest.raises(AttributeError, match=r"model\['E'\] = value sets it"):
        model.E = 100e3
    with pytest.raises(AttributeError, match=r"model\.options\['miters'\] = value sets it"):
        model.miters = 10
    with pytest.raises(AttributeError):
        model.dtype = "float32"
    model.remark = "a user's own"
    assert model.remark == "a user's own"
    for ask in (lambda: "E" in model, lambda: list(model)):
        with pytest.raises(TypeError, match="is not"):
            ask()


def test_names_are_completed() -> None:
    model = Model(examples.path("chaboche"))
    completed: dict[str, Any] = {
        "parameters": model.named_parameters(),
        "options": model.options,
        "inputs": model.inputs,
        "model": model,
        "state": model.state(),
        "results": drive(model, TIMES, {"strain": DIRECTION}),
    }
    found = {key: value._ipython_key_completions_() for key, value in completed.items()}
    assert found["parameters"] == found["model"] == ["E", "yield_stress"]
    assert "atol" in found["options"] and "strain~1" in found["inputs"]
    assert "stress" in found["state"] and "stress" in found["results"]
    assert "<td>yield_stress</td>" in model._repr_html_()
