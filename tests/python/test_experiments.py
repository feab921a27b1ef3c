"""What experiments, drive(), states and results refuse: numbers without a meaning."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import PREBUILT
from states import Artifacts, load

from neml2_capi import FatalError, Model, Results, StepError, drive, examples, experiments
from neml2_capi._ffi.labels import Label
from neml2_capi._ffi.variables import Variable
from neml2_capi.driver.forces import clock, force

TIMES = np.linspace(0, 10, 6)
NAN, INF = np.nan, np.inf
STEEL = Model(PREBUILT / "combined_hardening")
ELASTIC = Model(PREBUILT / "elasticity")
#: By name: what is called with an argument of it.
CALLS: dict[str, Callable[[Any], Any]] = {
    "strain": lambda x: experiments.tension(STEEL, TIMES, x),
    "stress": lambda x: experiments.uniaxial(STEEL, TIMES, x),
    "xx": lambda x: experiments.biaxial(STEEL, TIMES, x, 1e-3),
    "yy": lambda x: experiments.biaxial(STEEL, TIMES, 1e-3, x),
    "xy": lambda x: experiments.plane_stress(STEEL, TIMES, 1e-3, 1e-3, x),
    "the stress": lambda x: experiments.creep(STEEL, TIMES, x),
    "the strain": lambda x: experiments.relaxation(STEEL, TIMES, x),
    "rise": lambda x: experiments.creep(STEEL, TIMES, 10.0, rise=x),
    "initial value 'stress'": lambda x: drive(STEEL, TIMES, {"strain": {}}, {"stress": x}),
    "initial value 'X1'": lambda x: STEEL.state(2, {"X1": x}),
    "parameter 'elasticity.E'": lambda x: drive(
        ELASTIC, TIMES, {"strain": {}}, parameters={"E": x}
    ),
    "force 'strain.xx'": lambda x: drive(STEEL, TIMES, {"strain": {"xx": x}}),
    "force 'strain'": lambda x: drive(STEEL, TIMES, {"strain": x}),
    "control 'stress.xx'": lambda x: drive(STEEL, TIMES, {}, control={"stress": {"uniaxial": x}}),
    "the times": lambda x: drive(STEEL, x, {"strain": {}}),
    "times": lambda x: experiments.tension(STEEL, x, 0.01),
}
NOT_NUMBERS = {
    "none": None,
    "text": "text",
    "bytes": b"x",
    "object": object(),
    "complex": 1j,
    "ragged": [[1, 2], [3]],
    "huge": 10**400,
    "set": {1},
    "slice": slice(1),
}


@pytest.mark.parametrize("value", [NAN, INF, -INF], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_a_number_that_is_not_finite_is_refused_by_its_name(name: str, value: float) -> None:
    for given in (value, np.array([0.0, 1.0, value, 2.0, 3.0, 4.0])):
        with pytest.raises(FatalError, match=f"{name} ") as caught:
            CALLS[name](given)
        if "has the shape" not in str(caught.value):
            assert re.search(rf"{value}( at index .*)?; expected finite", str(caught.value))


@pytest.mark.parametrize("value", NOT_NUMBERS.values(), ids=NOT_NUMBERS)
@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_number_is_refused_by_its_name(name: str, value: Any) -> None:
    if name == "rise" and value is None:
        return  # the first step
    with pytest.raises(FatalError, match=f"{name} "):
        CALLS[name](value)


@pytest.mark.parametrize(
    "force",
    [lambda t: NAN if t > 3 else 0.0, lambda t: INF if t > 3 else 0.0, lambda t: None],
)
def test_a_function_of_time_that_is_not_finite_is_refused_where_it_is(force: Any) -> None:
    for experiment in (experiments.tension, experiments.uniaxial):
        with pytest.raises(
            FatalError, match=r"'str(ain|ess).xx' is (nan at t = 4|inf at t = 4|No)"
        ):
            experiment(STEEL, TIMES, force)


def test_what_float32_cannot_hold_is_refused() -> None:
    single, label = Variable("strain", "SR2", (6,), (), "float32"), Label("force", "strain")
    for value in (np.full(6, 1e39), {"xx": 1e39}, lambda t: np.full(6, 1e39)):
        with pytest.raises(FatalError, match=r"1e\+39.*, which float32 cannot hold"):
            force(label, value, single, clock(TIMES)).at(1, 1.0)
    assert force(label, np.full(6, 1e38), single, clock(TIMES)).at(1, 1.0).dtype == np.float32


def test_a_stress_that_overflows_was_not_reached() -> None:
    """A strain whose stress is infinite is near anything, by the size of that stress."""
    with pytest.raises(StepError):
        experiments.tension(ELASTIC, TIMES, 1e304, least_step=1.0)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([], r"have the shape \(0,\)"),
        ([0.0], "are one only"),
        (3.0, r"have the shape \(\)"),
        ([0.0, 1.0, 1.0], "do not increase in step 2, from 1.0 to 1.0"),
        ([0.0, 2.0, 1.0], "do not increase in step 2"),
        (np.array([2, 1], np.uint8), "do not increase in step 1, from 2.0 to 1.0"),
        ([[0.0, 0.0], [1.0, 0.0]], "do not increase in step 1"),
        (["0", "1"], "cannot be made an array"),
        (np.array([False, True]), "is of bool"),
    ],
)
def test_times_increase_and_are_two_at_least(times: Any, message: str) -> None:
    for experiment in (experiments.tension, experiments.creep, experiments.relaxation):
        with pytest.raises(FatalError, match=f"times {message}"):
            experiment(STEEL, times, 0.01)


@pytest.mark.parametrize("rise", [-1.0, 0.0, 10.1, [1.0, 2.0], True])
def test_a_rise_is_in_the_test(rise: Any) -> None:
    for experiment in (experiments.creep, experiments.relaxation):
        with pytest.raises(FatalError, match="rise "):
            experiment(STEEL, TIMES, 0.01, rise=rise)


def test_what_is_held_has_no_axis_of_times() -> None:
    for held in (np.full(6, 100.0), np.full((6, 2), 100.0)):
        with pytest.raises(FatalError, match=r"stress has 6 values, .* call uniaxial\(\)"):
            experiments.creep(STEEL, TIMES, held)
        with pytest.raises(FatalError, match=r"strain has 6 values, .* call tension\(\)"):
            experiments.relaxation(STEEL, TIMES, 1e-5 * held)
    assert experiments.creep(STEEL, TIMES, np.full(5, 100.0))["stress"].shape == (6, 5, 6)
    one = experiments.creep(STEEL, TIMES, np.full(6, 100.0)[None])["stress"]
    assert one.shape == (6, 1, 6, 6)


@pytest.mark.parametrize("shape", [(1,), (1, 3), (3,), (4, 2), (0,)], ids=str)
def test_a_ramp_has_a_value_for_each_time_or_is_a_number(shape: tuple[int, ...]) -> None:
    """One row was a strain that is there from the beginning on, without a stress."""
    model, times = Model(examples.path("chaboche")), np.linspace(0, 1, 5)
    values = np.full(shape, 0.01)
    runs: dict[str, Callable[[], Results]] = {
        "strain": lambda: experiments.tension(model, times, values),
        "stress": lambda: experiments.uniaxial(model, times, values),
        "yy": lambda: experiments.biaxial(model, times, 0.01, values),
        "xy": lambda: experiments.plane_stress(model, times, 0.01, 0.0, values),
    }
    for name, run in runs.items():
        with pytest.raises(FatalError, match=rf"{name} has the shape .*\(5, \*batch\)"):
            run()
    for reached in (0.01, np.array(0.01), 0.01 * times, np.full((5, 3), 0.01) * times[:, None]):
        assert (experiments.tension(model, times, reached)["stress"][-1, ..., 0] > 100.0).all()


def test_each_point_is_held_in_its_own_time() -> None:
    times = TIMES[:, None] * np.array([1.0, 2.0, 3.0])
    held = np.array([[50.0, 60.0, 70.0], [80.0, 90.0, 100.0]])
    together = experiments.creep(STEEL, times, held, rise=np.array([4.0, 4.0, 6.0]))["stress"]
    alone = experiments.creep(STEEL, times[:, 2], 100.0, rise=6.0)["stress"]
    np.testing.assert_array_equal(together[:, 1, 2], alone)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": "ab"}, "names must be the names of the strain and the stress"),
        ({"names": None}, "names must be"),
        ({"names": ("strain", 3)}, "names must be"),
        ({"names": ("strian", "stress")}, "did you mean 'strain'"),
        ({"forces": {"strain": {"xx": 1.0}}}, "forces have 'strain', which the experiment"),
        ({"forces": 3}, "forces must be a mapping"),
        ({"control": {"stress": "biaxial"}}, "control is what the experiment prescribes"),
        ({"initial": []}, "initial must be a mapping"),
        ({"parameters": 0}, "parameters must be a mapping"),
        ({"record": 3}, "record must be a name, or a list of names"),
        ({"record": np.array(3.0)}, "record must be a name, or a list of names"),
        ({"least_step": 10**400}, "least_step, a fraction of a step, must be above 0"),
        ({"record": [3]}, "record must be a name, or a list of names"),
        ({"report": "yes"}, "report must be True or False"),
        ({"progress": 3}, "progress must be True, False or None"),
        ({"least_step": NAN}, "least_step, a fraction of a step, must be"),
        ({"least_step": "1"}, "least_step, a fraction of a step, must be"),
        ({"time": None}, "time must be the name of a variable"),
        ({"derivatives": 3}, "derivatives"),
    ],
)
def test_options_are_refused_by_their_names(options: dict[str, Any], message: str) -> None:
    for experiment in (experiments.tension, experiments.creep):
        with pytest.raises(FatalError, match=message):
            experiment(STEEL, TIMES, 0.01, **options)


@pytest.mark.parametrize("model", [None, "elasticity", Model])
def test_a_model_is_an_open_one(model: Any) -> None:
    for call in (experiments.tension, experiments.creep, drive):
        with pytest.raises(FatalError, match="model must be a Model"):
            call(model, TIMES, {})


@pytest.mark.parametrize("batch", [-1, (2, -1), 2.0, "2", None, True, NAN, 10**30], ids=repr)
def test_a_state_has_a_number_of_points(batch: Any) -> None:
    with pytest.raises(FatalError, match="batch "):
        STEEL.state(batch)


def test_an_initial_value_broadcasts_to_the_points_or_is_refused() -> None:
    assert STEEL.state(3, {"stress": 7.0})["stress"].tolist() == [[7.0] * 6] * 3
    assert STEEL.state(3, {"stress": np.arange(6)})["stress"].shape == (3, 6)
    for shape in ((5,), (2, 6), (2, 3, 6)):
        with pytest.raises(FatalError, match=r"'stress' has the shape .* broadcasts to \(3, 6\)"):
            STEEL.state(3, {"stress": np.zeros(shape)})
    nothing: list[Any] = [3, [], "stress"]
    for wrong in nothing:
        with pytest.raises(FatalError, match="initial must be a mapping"):
            STEEL.state(3, wrong)


# ------------------------------------------------------------------------------------------------
# The first row
# ------------------------------------------------------------------------------------------------


def test_an_output_without_history_is_evaluated_at_the_first_time(artifacts: Artifacts) -> None:
    """The stress follows from strains, and only these are remembered."""
    radial_return = load(artifacts, "radial_return")
    forces = {"total_strain": {"xx": lambda t: 1e-4 * (1 + t)}}
    results = drive(radial_return, TIMES, forces, derivatives=True)
    for name, values in results.items():
        assert np.isfinite(values).all(), name
    stress, tangent = results["cauchy_stress"], results["cauchy_stress:total_strain"]
    np.testing.assert_allclose(stress[0], 1e-4 * tangent[0, :, 0], rtol=1e-12)  # it is elastic
    np.testing.assert_allclose(stress[0], stress[1] / 3, rtol=1e-9)
    relaxation = load(artifacts, "relaxation")
    np.testing.assert_array_equal(drive(relaxation, TIMES, {"strain": {}})["stress"][0], 0.0)


# ------------------------------------------------------------------------------------------------
# Results
# ------------------------------------------------------------------------------------------------

BENT = Results({"t": np.zeros(3), "a": np.zeros(2)})
PULLED = drive(Model(examples.path("elasticity")), TIMES, {"strain": {"xx": 1e-4}})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Results(3), "arrays must be a mapping"),  # type: ignore[arg-type]
        (lambda: Results({3: 4}), "arrays must be a name"),  # type: ignore[dict-item]
        (lambda: Results({}, [3]), "variables must be"),  # type: ignore[list-item]
        (lambda: Results({}, None), "variables must be"),  # type: ignore[arg-type]
        (lambda: PULLED.without("strss"), "did you mean 'stress'"),
        (lambda: PULLED.without(None), "names must be"),  # type: ignore[arg-type]
        (lambda: PULLED.to_frame("numpy"), "library must be one of pandas, polars"),
        (lambda: PULLED.plot(), "curves must be one at least"),
        (lambda: PULLED.save("/nowhere/x.npz"), "cannot be written to /nowhere/x.npz: No such"),
        (lambda: PULLED.save("a\0b"), "path must be the path of a file"),
        (lambda: PULLED.save(None), "path must be the path of a file"),  # type: ignore[arg-type]
        (lambda: Results.load("/nowhere/x.npz"), "/nowhere/x.npz cannot be read: No such"),
        (lambda: Results.load("a\0b"), "path must be the path of a file"),
        (lambda: BENT.to_xarray(), "no results over time"),
        (lambda: BENT.plot("t:a"), "no results over time"),
        (lambda: BENT.save("/tmp/x.csv"), "no results over time"),
        (lambda: Results({}).to_frame(), "no results over time"),
    ],
)
def test_results_name_what_is_wrong(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(FatalError, match=message):
        call()


def test_without_takes_one_name() -> None:
    assert "stress" not in PULLED.without("stress")


def damaged(file: Path, arrays: dict[str, Any]) -> Path:
    np.savez(file, **arrays)
    return file


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:200]),
        lambda file: file.write_bytes(bytes(range(256)) * 20),
        lambda file: damaged(file, {"a": np.array([{}], dtype=object)}),
        lambda file: damaged(file, {"variables.json": np.array("[3]")}),
        lambda file: damaged(file, {"variables.json": np.array("[" * 10**5)}),
        lambda file: damaged(file, {"variables.json": np.array('[{"name": 3}]')}),
        lambda file: (file.unlink(), file.mkdir()),
        lambda file: np.save(file.open("wb"), np.zeros(3)),
    ],
)
def test_a_damaged_file_of_results_is_told(damage: Callable[[Path], Any], tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    PULLED.save(file)
    damage(file)
    with pytest.raises(FatalError, match=f"{file} (cannot be read|is damaged)"):
        Results.load(file)
