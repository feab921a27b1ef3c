"""neml2_capi.drive(): a model through time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import oracle
import pytest
from driving import IMPLICIT, STRAIN, TIMES, base_of, equal, few_iterations, plan, strain_at
from numpy.typing import NDArray
from oracle import VISCOPLASTIC
from states import Artifacts, load
from test_physics import DIRECTION, STATE, relative_error

import neml2_capi
from neml2_capi import Call, FatalError, Model, drive
from neml2_capi.driver.blocks import Blocks
from neml2_capi.driver.series import Series

Array = NDArray[np.float64]


# ------------------------------------------------------------------------------------------------
# Physics
# ------------------------------------------------------------------------------------------------


def test_elasticity_follows_hookes_law_at_every_time(model: Model) -> None:
    """Without history the model is evaluated at the first time, too."""
    strain = 1e-3 * np.random.default_rng(3).standard_normal((5, 4, 2, 6))
    results = drive(model, np.arange(5.0), {"strain": strain}, derivatives=True)
    expected = oracle.elastic_stress(strain, 200e3, 0.3)
    assert relative_error(results["stress"], expected) < 1e-12
    assert results["stress:strain"].shape == (5, 4, 2, 6, 6)
    tangent = oracle.elastic_stress(np.eye(6), 200e3, 0.3)
    assert relative_error(results["stress:strain"][3, 2, 1], tangent) < 1e-12
    np.testing.assert_array_equal(results["t"], np.arange(5.0))
    np.testing.assert_array_equal(results["strain"], strain)
    assert results["substeps"].tolist() == [0, 1, 1, 1, 1]


def test_viscoplasticity_over_a_cycle_agrees_with_the_oracle(viscoplastic: Model) -> None:
    results = drive(viscoplastic, TIMES, {"strain": STRAIN})
    state = np.zeros((3, 19))
    for name in STATE:
        assert not results[name][0].any()  # the initial state
    for step in range(1, len(TIMES)):
        dt = TIMES[step] - TIMES[step - 1]
        state = VISCOPLASTIC.advance(state, STRAIN[step], STRAIN[step - 1], dt)
        for name, where in STATE.items():
            assert relative_error(results[name][step], state[..., where]) < 1e-8, (name, step)
    assert (results["substeps"][1:] == 1).all()


def test_times_of_points_are_of_no_consequence_for_a_law_without_time(model: Model) -> None:
    times = np.linspace(0, 1, 4)[:, None] * np.array([1.0, 2.0, 3.0])
    strain = np.linspace(0, 1e-3, 24).reshape(4, 6)
    results = drive(model, times, {"strain": strain})
    assert results["t"].shape == (4, 3)
    for point in range(3):
        alone = drive(model, times[:, point], {"strain": strain})
        np.testing.assert_array_equal(results["stress"][:, point], alone["stress"])


def test_each_point_can_have_its_own_times(viscoplastic: Model) -> None:
    duration = np.array([0.1, 10.0, 1000.0])
    times = np.linspace(0.0, 1.0, 6)[:, np.newaxis] * duration
    strain = np.linspace(0.0, 0.01, 6)[:, np.newaxis] * DIRECTION
    results = drive(viscoplastic, times, {"strain": strain[:, np.newaxis]})
    assert results["t"].shape == (6, 3) and results["stress"].shape == (6, 3, 6)
    for point, end in enumerate(duration):
        alone = drive(viscoplastic, np.linspace(0.0, 1.0, 6) * end, {"strain": strain})
        assert relative_error(results["stress"][:, point], alone["stress"]) < 1e-12
    assert results["stress"][-1, 0, 0] > 1.05 * results["stress"][-1, 2, 0]


# ------------------------------------------------------------------------------------------------
# The same as step by step, bit for bit
# ------------------------------------------------------------------------------------------------


def by_hand(
    model: Model, times: Array, forces: Mapping[str, Array], initial: Mapping[str, Array]
) -> list[dict[str, Array]]:
    """The outputs of each step, with model.forward()."""
    past = [
        {base_of(key)[0]: value for key, value in initial.items() if base_of(key)[1] == 1},
        {key: value for key, value in initial.items() if "~" not in key}
        | {"t": times[0]}
        | {key: value[0] for key, value in forces.items()},
    ]
    for step in range(1, len(times)):
        new = {"t": times[step], **{key: value[step] for key, value in forces.items()}}
        inputs = {}
        for key in model.inputs.names:
            base, age = base_of(key)
            inputs[key] = new[key] if key in new else past[-max(age, 1)][base]
        past.append({**new, **model.forward(inputs)})
    return past[2:]


@pytest.mark.parametrize("name", IMPLICIT)
def test_driving_is_stepping_by_hand(artifacts: Artifacts, name: str) -> None:
    if name == "viscoplastic":
        model, times = Model(artifacts[name]), TIMES
        forces = {"strain": STRAIN}
        tensors: dict[str, Array] = {key: np.zeros((3, 6)) for key in ("stress", "X1", "X2")}
        initial = {**tensors, "equivalent_plastic_strain": np.zeros(3)}
    else:
        model = load(artifacts, name)
        times, forces, initial = plan(name, 4)
    results = drive(model, times, forces, initial)
    for step, values in enumerate(by_hand(model, times, forces, initial), 1):
        for key, value in values.items():
            if key in results:  # constants are not
                np.testing.assert_array_equal(results[key][step], value, err_msg=key)
    assert set(model.outputs.names) <= set(results)
    assert (results["substeps"][1:] == 1).all()
    for key, value in initial.items():
        if key in results:
            np.testing.assert_array_equal(results[key][0], value)


def test_history_becomes_older_step_by_step() -> None:
    series = Series("x", 3)
    arrays = {"x": 0, "x~1": -1, "x~2": -2, "x~3": -3}
    for step in range(5):
        assert [arrays[name] for name in series.ages] == [step, step - 1, step - 2, step - 3]
        for older, newer in series.exchanges:
            arrays[older], arrays[newer] = arrays[newer], arrays[older]
        arrays["x"] = step + 1


def test_history_before_the_first_time(artifacts: Artifacts) -> None:
    """`t~2` is the first time itself, or what is given: the outputs tell which."""
    model = load(artifacts, "crystal")
    times, forces, initial = plan("crystal", 3)
    times = times + 7.0
    del initial["t~1"]
    for older in (times[0], 5.0):
        given = initial if older == times[0] else {**initial, "t~1": older}
        results = drive(model, times, forces, given)
        by_steps = by_hand(model, times, forces, {**initial, "t~1": np.float64(older)})
        for step, values in enumerate(by_steps, 1):
            equal({name: results[name][step] for name in values}, values)


@pytest.mark.parametrize("record", [None, ["equivalent_plastic_strain"], []], ids=str)
def test_steps_are_made_many_at_once_where_they_are_recorded(
    viscoplastic: Model, monkeypatch: pytest.MonkeyPatch, record: list[str] | None
) -> None:
    """All of 20 steps in two calls of the library, whatever is recorded of the history."""
    made: list[int] = []
    run = Blocks.run

    def watched(blocks: Blocks, step: int, steps: int) -> tuple[int, bool]:
        of_this_call = run(blocks, step, steps)
        made.append(of_this_call[0])
        return of_this_call

    monkeypatch.setattr(Blocks, "run", watched)
    monkeypatch.setattr(Call, "__call__", None)  # no step is made by itself
    results = drive(viscoplastic, TIMES, {"strain": STRAIN}, record=record)
    assert made == [8, 12] and results["substeps"].tolist() == [0, *[1] * 20]
    monkeypatch.undo()
    functions = drive(viscoplastic, TIMES, {"strain": strain_at}, record=record)  # one step a call
    equal(results, {name: functions[name] for name in results})


@pytest.mark.parametrize("kernels", ["auto", "off"])
@pytest.mark.parametrize("record", [None, "X1"])
def test_blocks_and_increments_make_the_same_steps(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch, kernels: str, record: str | None
) -> None:
    """Also before, at and behind steps that are cut."""
    model = few_iterations(artifacts, 10)
    model.options["kernels"] = kernels
    forces = {"strain": STRAIN}
    results = drive(model, TIMES, forces, report=True, record=record)
    cut = np.flatnonzero(results["substeps"] > 1)
    assert len(cut) > 2 and 8 < cut.max() < 20
    monkeypatch.setattr(Blocks, "run", lambda *_: (0, False))
    expected = drive(model, TIMES, forces, report=True, record=record)
    assert list(results) == list(expected)
    equal(results, expected)


# ------------------------------------------------------------------------------------------------
# What is prescribed
# ------------------------------------------------------------------------------------------------


def test_forces_can_be_functions_of_time(viscoplastic: Model) -> None:
    expected = drive(viscoplastic, TIMES, {"strain": STRAIN})
    results = drive(viscoplastic, TIMES, {"strain": strain_at})
    assert list(results) == list(expected)
    equal(results, expected)


def test_a_function_gets_the_time_of_each_point(viscoplastic: Model) -> None:
    times = TIMES[:, np.newaxis] * np.array([1.0, 1.0, 1.0])
    equal(
        drive(viscoplastic, times, {"strain": lambda t: strain_at(t)}, record="stress"),
        {"stress": drive(viscoplastic, TIMES, {"strain": STRAIN})["stress"]},
    )


@pytest.mark.parametrize("lists", [False, True])
def test_a_constant_holds_at_all_times(viscoplastic: Model, lists: bool) -> None:
    strain = 0.004 * DIRECTION
    times = [0.0, 1.0, 10.0, 100.0]
    for constant in (strain, strain[np.newaxis], strain[np.newaxis, np.newaxis]):
        start = {"stress": 400.0 * DIRECTION}
        given = constant.tolist() if lists else constant
        results = drive(viscoplastic, times, {"strain": given}, start)
        assert results["stress"].shape == (4, *constant.shape[1:-1], 6)
        assert "strain" not in results
        np.testing.assert_array_equal(results["stress"][0].ravel(), start["stress"])
        norms = np.linalg.norm(results["stress"].reshape(4, 6), axis=-1)
        assert (np.diff(norms) < 0.0).all()  # relaxation
        table = np.repeat(constant.reshape(1, *results["stress"].shape[1:]), 4, axis=0)
        equal(results, {"stress": drive(viscoplastic, times, {"strain": table}, start)["stress"]})


def test_batches_broadcast(viscoplastic: Model) -> None:
    """Two loads, three initial states."""
    strain = np.linspace(0, 0.01, 4)[:, np.newaxis, np.newaxis, np.newaxis] * DIRECTION
    strain = strain * np.array([1.0, -0.5])[:, np.newaxis, np.newaxis]
    hardened = np.array([0.0, 0.1, 0.2])
    results = drive(
        viscoplastic,
        np.arange(4.0),
        {"strain": strain},
        {"equivalent_plastic_strain": hardened},
    )
    assert results["stress"].shape == (4, 2, 3, 6)
    assert results["strain"].shape == (4, 2, 3, 6)
    for i, j in np.ndindex(2, 3):
        alone = drive(
            viscoplastic,
            np.arange(4.0),
            {"strain": strain[:, i, 0]},
            {"equivalent_plastic_strain": hardened[j]},
        )
        np.testing.assert_array_equal(results["stress"][:, i, j], alone["stress"])


@pytest.mark.parametrize("batch", [(), (1,), (0,), (2, 0)], ids=str)
def test_any_batch(viscoplastic: Model, batch: tuple[int, ...]) -> None:
    strain = np.broadcast_to(0.01 * DIRECTION, (3, *batch, 6)) * np.arange(3.0).reshape(
        3, *(1,) * len(batch), 1
    )
    results = drive(viscoplastic, np.arange(3.0), {"strain": strain}, report=True)
    assert results["stress"].shape == (3, *batch, 6)
    assert results["report.iterations"].shape == (3, *batch)
    if 0 not in batch:
        assert (results["report.iterations"][1:] > 0).all()
        assert (results["report.iterations"][0] == 0).all()


def test_parameters_are_replaced(artifacts: Artifacts) -> None:
    model = load(artifacts, "isotropic_hardening")
    strain = STRAIN[:, 0]
    values = np.array([80.0, 150.0, 300.0])
    results = drive(model, TIMES, {"strain": strain}, parameters={"yield_stress": values})
    assert results["stress"].shape == (21, 3, 6)
    plain = drive(model, TIMES, {"strain": strain})
    assert relative_error(results["stress"][:, 1], plain["stress"]) < 1e-12
    model.set_parameter("yield_stress", values)
    equal(drive(model, TIMES, {"strain": strain}), results)


def test_what_is_recorded_can_be_chosen(viscoplastic: Model) -> None:
    every = drive(viscoplastic, TIMES, {"strain": STRAIN})
    assert list(every) == [
        *("t", "strain", "stress", "equivalent_plastic_strain", "X1", "X2", "substeps")
    ]
    some = drive(viscoplastic, TIMES, {"strain": STRAIN}, record=["stress"], report=True)
    assert [name for name in some if "." not in name] == ["t", "stress", "substeps"]
    np.testing.assert_array_equal(some["stress"], every["stress"])
    assert not some["report.status"].any()


def test_derivatives_are_recorded(artifacts: Artifacts) -> None:
    model = load(artifacts, "isotropic_hardening")
    wanted = {"stress": {"strain": True, "strain~1": True}}
    results = drive(model, TIMES, {"strain": STRAIN}, derivatives=wanted)
    inputs = {"strain": STRAIN[7], "strain~1": STRAIN[6], "t": TIMES[7], "t~1": TIMES[6]}
    for name in ("stress", "equivalent_plastic_strain"):
        inputs[f"{name}~1"] = results[name][6]
    blocks = model.jacobian(inputs)[1]["stress"]
    for name in ("strain", "strain~1"):
        np.testing.assert_array_equal(results[f"stress:{name}"][7], blocks[name])
        assert np.isfinite(results[f"stress:{name}"][0]).all()
    elastic = oracle.elastic_stress(np.eye(6), 200e3, 0.3)  # nothing flows at rest
    assert relative_error(results["stress:strain"][0, 0], elastic) < 1e-9


def test_records_take_memory_that_nobody_uses_any_more(model: Model) -> None:
    strain = np.zeros((20, 2000, 6))
    first = drive(model, np.arange(20.0), {"strain": strain + 1e-3})
    address, kept = first["stress"].ctypes.data, first["strain"][7, 3:5]
    del first
    second = drive(model, np.arange(20.0), {"strain": strain + 2e-3})
    assert address in (second["strain"].ctypes.data, second["stress"].ctypes.data)
    assert (kept == 1e-3).all()  # a view of it holds an array


# ------------------------------------------------------------------------------------------------
# What is refused
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"forces": {}}, r"force 'strain' is missing; .*\(times, \*batch, 6\)"),
        ({"forces": [STRAIN]}, "forces must be a mapping"),
        ({"forces": {"strian": STRAIN}}, "unknown force 'strian'; did you mean 'strain'"),
        ({"forces": {"strain": STRAIN, "strain~1": STRAIN}}, "force 'strain~1' is history"),
        ({"forces": {"strain": STRAIN, "stress~1": STRAIN}}, "force 'stress~1' is history"),
        ({"forces": {"strain": STRAIN, "t": TIMES}}, "force 't' is the time, which comes from"),
        ({"forces": {"strain": STRAIN, "stress": STRAIN}}, "unknown force 'stress'"),
        (
            {"forces": {"strain": STRAIN[:-1]}},
            r"force 'strain' has the shape \(20, 3, 6\); expected \(21, \*batch, 6\), a value",
        ),
        ({"forces": {"strain": STRAIN[..., :5]}}, r"has the shape \(21, 3, 5\); expected"),
        ({"forces": {"strain": 1.0}}, r"force 'strain' has the shape \(\); expected"),
        ({"forces": {"strain": "text"}}, "force 'strain' has the element type"),
        ({"forces": {"strain": STRAIN.astype(complex)}}, "force 'strain' has the element type"),
        ({"forces": {"strain": STRAIN.astype(complex)}}, "pass its real part, array.real"),
        ({"forces": {"strain": STRAIN.astype(">f8")}}, r"pass array.astype\('float64'\)"),
        ({"forces": {"strain": lambda t: t}}, r"returns the shape \(\) at t = 0.0; expected batch"),
        (
            {"forces": {"strain": lambda t: np.zeros((2 + (t > 3), 6))}},
            r"force 'strain' has the shape \(3, 6\); expected one that broadcasts to \(2, 6\)",
        ),
        ({"times": 1.0}, r"the times have the shape \(\); expected"),
        ({"times": []}, r"the times have the shape \(0,\); expected"),
        ({"times": TIMES[::-1]}, "times do not increase in step 1, from 10.0 to 9.5"),
        ({"times": [*TIMES[:20], np.nan]}, r"times has nan at index \[20\]; expected finite"),
        (
            {"times": [-1e308, 0, 1e308], "forces": {"strain": lambda t: np.zeros(6)}},
            r"times from -1e\+308 to 1e\+308 are longer than float64 can hold; expected",
        ),
        ({"times": TIMES[:, np.newaxis] * np.ones(4)}, r"'strain' has the batch \(3,\), which"),
        ({"time": "time"}, "unknown input 'time'"),
        (
            {"time": "strain", "forces": {"t": TIMES}},
            r"input 'strain' has the shape \(6,\); expected one number, to be the time",
        ),
        ({"initial": {"strss": 1.0}}, "unknown initial value 'strss'; did you mean 'stress'"),
        ({"initial": {"stress~1": np.zeros(6)}}, "unknown initial value 'stress~1'"),
        (
            {"initial": {"strain": np.zeros(6)}},
            r"initial value 'strain' is prescribed.* give an array \(21, \*batch, 6\) in `forces`",
        ),
        ({"initial": {"t": 0.0}}, "unknown initial value 't'"),
        ({"initial": {"stress": np.zeros(5)}}, r"value 'stress' has the shape \(5,\); expected"),
        ({"initial": {"X1": np.zeros((2, 6))}}, r"value 'X1' has the batch \(2,\), which does not"),
        ({"initial": [1]}, "initial must be a mapping"),
        ({"parameters": {"E": 1.0}}, "unknown parameter 'E'"),
        ({"record": ["strss"]}, "unknown recorded variable 'strss'; did you mean 'stress'"),
        ({"derivatives": {"stress": {"strain": True}}}, "without the derivative"),
        ({"least_step": 0.0}, "least_step, a fraction of a step, must be above 0"),
        ({"least_step": 2.0}, "least_step, a fraction of a step, must be above 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_driven_is_refused_with_the_reason(
    viscoplastic: Model, changed: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"times": TIMES, "forces": {"strain": STRAIN}, **changed}
    with pytest.raises(FatalError, match=message) as caught:
        drive(viscoplastic, **given)
    assert not caught.value.recoverable


def test_the_package_offers_it() -> None:
    assert neml2_capi.drive is drive and "drive" in neml2_capi.__all__
