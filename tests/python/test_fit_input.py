"""Refusals of a fit: each names the argument that is wrong, and what was expected."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neml2_capi import FatalError, Model, examples, experiments
from neml2_capi.fit import Experiment, LogDensity, Parameter, Problem, averaged, profile
from neml2_capi.fit.cycles import cycles, reversals
from neml2_capi.fit.parameters import Space

TIMES = np.linspace(0, 10, 21)
STRAIN = 0.006 * np.sin(TIMES)


@pytest.fixture(scope="module")
def law() -> Model:
    return Model(examples.path("isotropic_hardening"))


@pytest.fixture(scope="module")
def given(law: Model) -> dict[str, Any]:
    stress = experiments.tension(law, TIMES, STRAIN)["stress"][:, 0]
    return {"t": TIMES, "strain": STRAIN, "stress": stress}


def test_what_is_masked_was_not_seen(given: dict[str, Any]) -> None:
    masked = {**given, "stress": np.ma.masked_array(given["stress"], TIMES > 5)}
    for test in (Experiment.of("a", **masked), Experiment.from_frame(masked)):
        np.testing.assert_array_equal(np.isnan(test.stress["xx"]), TIMES > 5)
    half = np.ma.masked_array(STRAIN, TIMES > 1)
    assert reversals(half).tolist() == [2]
    assert reversals([]).size == 0


@pytest.mark.parametrize("kind", ["M8[ns]", "m8[ns]"])
def test_dates_are_no_seconds(given: dict[str, Any], kind: str) -> None:
    """Nanoseconds would be taken for seconds, and a rate for one of nothing."""
    dates = (TIMES * 1e9).astype(np.int64).astype(kind)
    with pytest.raises(FatalError, match=r"t of 'a' has the element type .*numpy.timedelta64"):
        Experiment.of("a", **{**given, "t": dates})
    with pytest.raises(FatalError, match=r"the column 't' has the element type .* seconds"):
        Experiment.from_frame({**given, "t": dates})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": ("values", "values")}, "loss of 'a' has 'values' twice"),
        ({"loss": 5}, "loss of 'a' must be of values"),
        ({"weight": "2"}, "weight of 'a' must be a finite number, 0 at least; got '2'"),
        ({"deviation": True}, "deviation of 'a' has True or False; expected numbers"),
        ({"deviation": np.True_}, "deviation of 'a' has True or False"),
        ({"stress": STRAIN > 0}, "stress xx of 'a' has True or False"),
        ({"stress": (STRAIN > 0).tolist()}, "stress xx of 'a' has True or False"),
        ({"forces": {"T": True}}, "forces T of 'a' has True or False"),
        ({"weight": None}, "weight of 'a' must be a finite number"),
        ({"t": None, "rate": "1"}, "rate of 'a' must be above 0; got '1'"),
        ({"t": None, "rate": np.inf}, "rate of 'a' must be above 0; got inf"),
        ({"forces": ["temperature"]}, "forces of 'a' must be a mapping"),
        ({"labels": "20"}, "labels of 'a' must be a mapping"),
        ({"labels": {"T": None}}, "labels of 'a' have T = None; expected a text, a finite number"),
        ({"labels": {"T": [20]}}, r"labels of 'a' have T = \[20\]"),
        ({"labels": {"T": np.nan}}, "labels of 'a' have T = nan"),
        ({"labels": {20: "T"}}, "labels of 'a' have the name 20; expected a text"),
        ({"t": TIMES[:, None]}, r"t of 'a' has the shape \(21, 1\); expected \(n,\)"),
        ({"strain": {0: STRAIN}}, "strain of 'a' has the component 0; expected a name"),
        ({"stress": {"yy": STRAIN}}, "stress yy of 'a' was measured, and no strain yy"),
        (
            {"control": "stress", "strain": {"xx": STRAIN, "yy": STRAIN}, "loss": "curve"},
            "loss of 'a' has 'curve', stress over strain, and there is no stress yy",
        ),
    ],
)
def test_an_experiment_names_what_is_wrong(
    given: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(FatalError, match=message):
        Experiment.of("a", **{**given, **change})


@pytest.mark.parametrize(
    ("t", "strain", "row"),
    [
        ([0, 1, 2, 2], [0, 1e-3, 2e-3, 3e-3], "2, from 2 to 2"),
        ([0, np.nan, 1, 2, 2], [0, 1e-3, 2e-3, 3e-3, 4e-3], "3, from 2 to 2"),
        ([0, 1, 2, 1], [0, np.nan, 1e-3, 2e-3], "2, from 2 to 1"),
        ([1, 2, 2], [1e-3, 2e-3, 3e-3], "1, from 2 to 2"),  # zeros are put before
        ([2, 1, 3], [1e-3, 2e-3, 3e-3], "0, from 2 to 1"),
    ],
)
def test_rows_are_told_as_they_were_given(t: Any, strain: Any, row: str) -> None:
    with pytest.raises(FatalError, match=f"t of 'a' does not increase after row {row}:"):
        Experiment.of("a", t=t, strain=strain, stress=np.ones(len(t)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"loss": "peaks"},
            "its loss is 'peaks', and no stress was measured at the reversals, t =",
        ),
        (
            {"stress": np.full(21, np.nan)},
            "its loss is 'values', and no stress was measured at any",
        ),
        ({"loss": "ratcheting", "strain": 6e-4 * TIMES}, "'ratcheting', and the test has no whole"),
    ],
)
def test_a_test_in_which_nothing_is_left_to_fit_is_named(
    law: Model, given: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    gap = np.array(given["stress"])
    gap[Experiment.of("a", **given).reversals] = np.nan
    test = Experiment.of("empty", **{**given, "stress": gap, **change})
    with pytest.raises(FatalError, match=f"have 'empty', in which nothing is left .*{message}"):
        Problem(law, [Experiment.of("a", **given), test], {"E": 1.5e5})


def test_all_tests_have_a_deviation_or_none(law: Model, given: dict[str, Any]) -> None:
    known, other = Experiment.of("a", **given, deviation=1.0), {**given, "strain": 1.01 * STRAIN}
    message = "have a deviation in 'a', and none in 'b': .* Give each a deviation, or none"
    with pytest.raises(FatalError, match=message):
        Problem(law, [known, Experiment.of("b", **other)], {"E": 1.5e5})
    Problem(law, [known, Experiment.of("b", **other, weight=0.0)], {"E": 1.5e5})
    with pytest.raises(FatalError, match="have no weight: give one of them a weight above 0"):
        Problem(law, [Experiment.of("b", **other, weight=0.0)], {"E": 1.5e5})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loss", ["values", "curve", "ratcheting"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"deviation": 1e-300}, r"goes to \d+\.\d+, with the deviation 1e-300 and the weight 1\."),
        ({"deviation": 1e300}, r"with the deviation 1e\+300 and"),
        ({"stress": 1e300}, r"its stress goes to 1e\+300, with no deviation and the weight 1\."),
        ({"stress": 1e160}, r"its stress goes to 1e\+160, with no"),
        ({"stress": 1e300, "deviation": 1.0}, r"goes to 1e\+300, with the deviation 1 and"),
        ({"weight": 1e-320}, r"with no deviation and the weight 9\.99989e-321\."),
    ],
)
def test_squares_of_residuals_are_numbers(
    law: Model, given: dict[str, Any], change: dict[str, Any], message: str, loss: str
) -> None:
    """The search ended in scipy, or gave deviations of inf."""
    if "stress" in change:
        change = {**change, "stress": np.where(TIMES > 5, change["stress"], given["stress"])}
    test = Experiment.of("a", **{**given, "loss": loss, **change})
    with pytest.raises(FatalError, match="experiments have 'a', for which squares .*" + message):
        Problem(law, [test], {"E": 1e5, "yield_stress": 100.0})


def test_forces_are_inputs_of_the_model(law: Model, given: dict[str, Any]) -> None:
    test = Experiment.of("a", **given, forces={"temperature": 20.0})
    message = "forces of 'a' have 'temperature'; expected inputs .* the time: it has no others"
    with pytest.raises(FatalError, match=message):
        Problem(law, [test], {"E": 1e5})


def test_a_worker_that_is_lost_is_told(law: Model, given: dict[str, Any]) -> None:
    problem = Problem(law, [Experiment.of("a", **given)], {"E": Parameter(1e5, 1e4, 1e6)})
    spawn = get_context("spawn")
    pool = partial(ProcessPoolExecutor, 1, spawn, initializer=os._exit, initargs=(1,))
    with pytest.raises(FatalError, match="a worker of the executor ended before its search"):
        problem.solve(starts=2, executor=pool)


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        (Parameter(1e5, None, 1e6), "E has lower = None; expected a number"),  # type: ignore[arg-type]
        (Parameter(1e5, 1e4, "1e6"), "E has upper = '1e6'"),  # type: ignore[arg-type]
        (Parameter(1e5, prior=1e5), r"E has prior = 100000.0; expected \(mean"),  # type: ignore[arg-type]
        (Parameter(1e5, prior=(1e5, 1e4, 3.0)), "E has prior = "),  # type: ignore[arg-type]
        (Parameter(1e5, prior=()), r"E has prior = \(\)"),  # type: ignore[arg-type]
        (True, "E is True; expected a number, or a Parameter"),
        (Parameter(True), "E has value = True; expected a number"),
        (Parameter(1e5, lower=True), "E has lower = True"),
        (Parameter(1e5, prior=(1e5, True)), r"E has prior = \(100000.0, True\)"),
        (Parameter(1e5, log="no"), "log of E must be True or False"),  # type: ignore[arg-type]
        (Parameter(1e5, per=5), "E has per = 5; expected the name of a label"),  # type: ignore[arg-type]
    ],
)
def test_a_parameter_names_what_is_wrong(
    law: Model, given: dict[str, Any], parameter: Any, message: str
) -> None:
    with pytest.raises(FatalError, match=message):
        Problem(law, [Experiment.of("a", **given)], {"E": parameter})


def test_truth_is_no_number_of_a_search(law: Model, given: dict[str, Any]) -> None:
    problem = Problem(law, [Experiment.of("a", **given)], {"E": 1.8e5})
    found = problem.solve(starts=np.int64(1), max_nfev=2)
    for call, message in (
        (lambda: problem.solve(starts=True), "starts must be a whole number, 1 at least; got True"),
        (lambda: problem.solve(seed=False), "seed must be a whole number, 0 at least; got False"),
        (lambda: found.quantile("0.9"), "level must be between 0 and 1; got '0.9'"),  # type: ignore[arg-type]
        (lambda: profile(found, "E", points=True), "points must be a whole number, 1 at least"),
        (lambda: profile(found, "E", width=True), "width must be a finite number above 0; got T"),
        (lambda: LogDensity(problem, True), "scatter must be a finite number above 0; got True"),
    ):
        with pytest.raises(FatalError, match=message):
            call()


@pytest.mark.parametrize(
    ("first", "other", "told"),
    [
        (20, "20", r"E\[20\]"),
        ("20", 20, r"E\[20\]"),
        (True, 1, r"E\[True\]"),
        (np.False_, "False", r"E\[False\]"),
    ],
)
def test_labels_that_look_alike_are_told(
    law: Model, given: dict[str, Any], first: Any, other: Any, told: str
) -> None:
    less = {**given, "stress": 0.9 * given["stress"]}
    tests = [
        Experiment.of("a", **given, labels={"T": first}),
        Experiment.of("b", **less, labels={"T": other}),
    ]
    both = re.escape(f"'a' has the label {first!r}, and 'b' {other!r}")
    with pytest.raises(FatalError, match=f"E has a value for each 'T': {both}.* {told}"):
        Problem(law, tests, {"E": Parameter(1e5, per="T")})


def test_equal_numbers_are_one_label(given: dict[str, Any]) -> None:
    labels = (20, np.float64(20), True, "RT", np.True_, np.str_("RT"))
    tests = [Experiment.of(f"{v!r}", **given, labels={"T": v}) for v in labels]
    space = Space({"E": Parameter(1e5, per="T"), "nu": Parameter(0.3)}, tests)
    assert space.names == ["E[20]", "E[True]", "E[RT]", "nu"]
    places = [space.of_experiment(test) for test in tests]
    assert places == [{"E": place, "nu": 3} for place in (0, 0, 1, 2, 1, 2)]


@pytest.mark.parametrize("labels", [(None, "B"), ("B", None)])
def test_a_parameter_without_labels_is_no_value_of_a_label(
    given: dict[str, Any], labels: tuple[Any, ...]
) -> None:
    """Experiments of the class itself are not checked, and their labels are told apart still."""
    test = Experiment.of("a", **given)
    tests = [replace(test, labels={"T": label}) for label in labels]
    space = Space({"E": Parameter(1e5, per="T")}, tests)
    assert space.names == [f"E[{label}]" for label in labels]
    assert [space.of_experiment(each) for each in tests] == [{"E": 0}, {"E": 1}]


@pytest.mark.parametrize(
    ("ordered", "message"),
    [
        ("E", "ordered has 'E'; expected names of two or more"),
        (("yield_stress", "E"), "ordered has 'yield_stress'; expected names"),
        ([("E",)], r"ordered has \('E',\); expected names of two"),
    ],
)
def test_an_order_has_two_names(
    law: Model, given: dict[str, Any], ordered: Any, message: str
) -> None:
    begin = {"yield_stress": 100.0, "E": 1e5}
    with pytest.raises(FatalError, match=message):
        Problem(law, [Experiment.of("a", **given)], begin, ordered=ordered)


def test_one_parameter_is_next_below_another(given: dict[str, Any]) -> None:
    """Refuse a second one: the space keeps one lower neighbour for each parameter."""
    test = Experiment.of("a", **given)
    numbers = {name: Parameter(place) for place, name in enumerate("abc", 1)}
    with pytest.raises(FatalError, match="wants a and b below c; only one can be the next"):
        Space(numbers, [test], ordered=[("a", "c"), ("b", "c")])
    assert Space(numbers, [test], ordered=[("a", "b", "c"), ("b", "c")]).start.size == 3


def test_a_test_counts_once(law: Model, given: dict[str, Any]) -> None:
    first = Experiment.of("a", **given)
    with pytest.raises(FatalError, match="have the numbers of 'a' twice, in 'b' too"):
        Problem(law, [first, Experiment.of("b", **given)], {"E": 1e5})
    with pytest.raises(FatalError, match=r"'b' too: .* give one test the losses of both"):
        Problem(law, [first, Experiment.of("b", **given, loss="peaks")], {"E": 1.5e5})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": {"temperature": 600}}, "their labels are {'temperature': 20} and"),
        ({"forces": {"temperature": 600.0}}, "their forces are {'temperature': 20.0} and"),
        ({"forces": {}}, "their forces are"),
        ({"loss": "peaks"}, r"their loss are \('values',\) and"),
        ({"weight": 2.0}, "their weight are 1.0 and 2.0. A mean would have the first one's"),
    ],
)
def test_tests_at_two_temperatures_have_no_mean(
    given: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    same: dict[str, Any] = {"labels": {"temperature": 20}, "forces": {"temperature": 20.0}}
    first = Experiment.of("a", **given, **same)
    other = {**given, **same, "stress": 1.01 * given["stress"]}
    averaged([first, Experiment.of("b", **other)])
    with pytest.raises(FatalError, match=message):
        averaged([first, Experiment.of("b", **{**other, **change})])
    with pytest.raises(FatalError, match="must be two at least"):
        averaged([first, 1])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: cycles(x, x, "stain"), "control must be 'strain' or 'stress'; got 'stain'"),
        (lambda x: cycles(x, x[:-1]), "strain has 21 rows, and stress 20"),
        (lambda x: cycles(x[:, None], x), r"strain that was given has the shape \(21, 1\)"),
        (lambda x: reversals(x, 10), "smallest must be a share of the range"),
        (lambda x: reversals(x, np.nan), "smallest must be a share of the range"),
    ],
)
def test_cycles_name_what_is_wrong(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(FatalError, match=message):
        make(STRAIN)


def test_a_loop_has_an_area_though_a_row_is_missing() -> None:
    times = np.linspace(0, 20, 401)
    strain, stress = np.sin(times), np.cos(times)
    whole = cycles(strain, stress)
    stress[::20] = np.nan
    for loop, exact in zip(cycles(strain, stress), whole, strict=True):
        assert loop.area == pytest.approx(exact.area, rel=5e-3)


def test_a_row_is_a_line_though_a_quote_is_open(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('t,strain,stress,note\n0,0,0,a\n1,1e-3,200,"5 inch\n2,2e-3,300,b\n')
    assert Experiment.from_csv(file).stress["xx"].tolist() == [0, 200, 300]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ";;"}, "separator must be one character; got ';;'"),
        ({"separator": 5}, "separator must be one character; got 5"),
        ({"columns": ["t", "strain"]}, "columns must be a mapping"),
        ({"units": "GPa"}, "units must be a mapping to texts"),
        ({"units": {"stress": 1e3}}, "units must be a mapping to texts"),
        ({"units": {"stress.yy": "GPa"}}, "units has one of 'stress.yy', and no column is that"),
    ],
)
def test_choices_of_a_table_are_checked(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("t,strain,stress\n0,0,0\n1,1e-3,200\n")
    with pytest.raises(FatalError, match=message):
        Experiment.from_csv(file, **options)


def test_a_field_without_end_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"t,strain,stress\n0,0,0\n1,1e-3,{'2' * 200_000}\n")
    with pytest.raises(FatalError, match=r"a.csv has a line '1,1e-3,2222.* field larger than"):
        Experiment.from_csv(file)


def test_columns_of_a_frame_may_be_numbers(given: dict[str, Any]) -> None:
    frame: Any = dict(enumerate(given.values()))
    columns: Any = {"t": 0, "strain": 1, "stress": 2}
    test = Experiment.from_frame(frame, columns=columns)
    np.testing.assert_array_equal(test.stress["xx"], given["stress"])
    with pytest.raises(FatalError, match="frame must be a data frame or a mapping; got a list"):
        Experiment.from_frame([TIMES, STRAIN])
