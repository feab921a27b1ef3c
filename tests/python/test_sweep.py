"""neml2_capi.sweep(): a driver over many parameter sets."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from states import Artifacts
from sweeping import (
    SETS,
    STRAIN,
    SUMS,
    TIMES,
    Run,
    Sets,
    equal,
    few,
    in_order,
    processes,
    run_of,
    stopped_at,
    sums,
)

import neml2_capi
from neml2_capi import FatalError, Model, SweepError, SweepResults, drive, experiments, sweep


@pytest.fixture
def artifact(artifacts: Artifacts) -> Path:
    return artifacts["combined_hardening"]


@pytest.fixture
def run(artifact: Path) -> Run:
    return run_of(artifact)


# ------------------------------------------------------------------------------------------------
# The results
# ------------------------------------------------------------------------------------------------


def test_each_set_gives_what_drive_gives(run: Run, artifact: Path) -> None:
    results = sweep(run, few(12))
    assert results.done.all() and not results.failures
    assert results["stress"].shape == (12, 3, 6) and results["t"].shape == (12, 3)
    for item in range(12):
        values = {name: column[item] for name, column in SETS.items()}
        alone = drive(Model(artifact), TIMES, {"strain": STRAIN}, parameters=values)
        equal(results.at(item), alone)
        np.testing.assert_array_equal(results["stress"][item], alone["stress"])
    np.testing.assert_array_equal(results.parameters["E"], SETS["E"][:12])
    assert "12 sets, 12 done and 0 failed: t, strain, stress" in repr(results)


@pytest.mark.parametrize("store", ["npz", "zarr"])
@pytest.mark.parametrize(
    "executor",
    [
        None,
        partial(ThreadPoolExecutor, 2),
        partial(processes, "spawn"),
        partial(processes, "forkserver"),
        partial(processes, "fork"),
    ],
    ids=["here", "threads", "spawn", "forkserver", "fork"],
)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_where_it_runs_changes_no_bit(
    run: Run, artifact: Path, tmp_path: Path, executor: Any, store: str
) -> None:
    if store == "zarr":
        pytest.importorskip("zarr")
    results = sweep(run, few(30), executor, directory=tmp_path / "s", batch=4, store=store)
    equal(results, in_order(artifact, 30))
    equal(SweepResults.load(tmp_path / "s"), results)
    equal(SweepResults.load(tmp_path / "s").at(7), in_order(artifact, 30).at(7))


class Table:
    """As pandas has it."""

    def __init__(self, columns: Sets) -> None:
        self._columns = columns

    def keys(self) -> Iterator[str]:
        return iter(self._columns)

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]


def test_sets_are_columns_a_table_or_mappings() -> None:
    expected = sweep(sums, SUMS)
    rows = ({"a": a, "b": b} for a, b in zip(*SUMS.values(), strict=True))
    for sets in (Table(SUMS), rows, {name: column.tolist() for name, column in SUMS.items()}):
        equal(sweep(sums, sets), expected)
    np.testing.assert_array_equal(expected["sum"], SUMS["a"] + 0.5)


def test_the_sets_are_those_of_the_call_even_if_its_arrays_change() -> None:
    column = np.arange(3.0)

    def spoil(parameters: Sets) -> dict[str, Any]:
        column[:] = -1.0
        return {"a": parameters["a"]}

    assert sweep(spoil, {"a": column})["a"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("executor", [None, partial(ThreadPoolExecutor, 1)])
def test_an_array_that_a_run_returns_again_and_again_has_each_sets_values(
    executor: Any, batch: int
) -> None:
    kept = np.zeros(2)

    def run(parameters: Sets) -> Sets:
        kept[...] = parameters["a"]
        return {"kept": kept}

    found = sweep(run, {"a": [1.0, 2.0, 3.0]}, executor, batch=batch)["kept"]
    np.testing.assert_array_equal(found, [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])


@pytest.mark.parametrize("executor", [None, partial(ThreadPoolExecutor, 1)])
def test_a_run_may_write_to_its_parameters(executor: Any) -> None:
    def run(parameters: Sets) -> Sets:
        parameters["a"][...] *= 10.0
        return {"a": parameters["a"]}

    sets = np.arange(1.0, 5.0).reshape(2, 2)
    results = sweep(run, {"a": sets}, executor)
    np.testing.assert_array_equal(results["a"], 10.0 * sets)
    np.testing.assert_array_equal(results.parameters["a"], sets)


def test_results_of_several_shapes_are_read_one_by_one(tmp_path: Path) -> None:
    def grow(parameters: Sets) -> dict[str, Any]:
        return {"row": np.arange(parameters["n"])}

    results = sweep(grow, {"n": [1, 2, 2]}, directory=tmp_path / "s", batch=3)
    assert [results.at(item)["row"].tolist() for item in range(3)] == [[0], [0, 1], [0, 1]]
    with pytest.raises(FatalError, match=r"'row' has the shape \(2,\) of set 1, and \(1,\)"):
        results["row"]
    pytest.importorskip("zarr")
    with pytest.raises(FatalError, match="store='npz'"):
        sweep(grow, {"n": [1, 2, 2]}, directory=tmp_path / "z", store="zarr")


def test_torch_in_and_numpy_out(artifact: Path) -> None:
    torch = pytest.importorskip("torch")
    run = partial(drive, Model(artifact), TIMES, {"strain": torch.from_numpy(STRAIN)})
    equal(sweep(run, few(6), batch=6), in_order(artifact, 6))


# ------------------------------------------------------------------------------------------------
# Batches
# ------------------------------------------------------------------------------------------------


def watched(calls: list[int], model: Model) -> Model:
    """Tells the batch of each drive."""
    bind = model.bind

    def told(*arguments: Any, **named: Any) -> Any:
        call = bind(*arguments, **named)
        calls.append(int(np.prod(call.batch)))
        return call

    model.bind = told  # type: ignore[method-assign]
    return model


@pytest.mark.parametrize("specimens", [(), (3,), (2, 3)])
def test_the_sets_of_a_batch_are_points_of_one_drive(
    artifact: Path, specimens: tuple[int, ...]
) -> None:
    scale = np.linspace(0.2, 1.0, int(np.prod(specimens))).reshape(*specimens, 1)
    strain = STRAIN.reshape(3, *[1] * len(specimens), 6) * scale
    batches: list[int] = []
    model = watched(batches, Model(artifact))
    options: dict[str, Any] = {"derivatives": True, "report": True}
    run = partial(drive, model, TIMES, {"strain": strain if specimens else STRAIN}, **options)
    expected = sweep(run, few(10))
    batches.clear()
    equal(sweep(run, few(10), batch=10), expected)
    points = int(np.prod(specimens))
    assert batches == [points, 9 * points]
    assert expected["stress"].shape == (10, 3, *specimens, 6)
    assert expected["stress:strain"].shape == (10, 3, *specimens, 6, 6)


def test_a_set_that_fails_or_is_cut_leaves_those_of_its_batch_as_they_were(artifact: Path) -> None:
    model = Model(artifact)
    model.options["miters"] = 13
    run = partial(drive, model, TIMES, {"strain": 0.5 * STRAIN}, report=True)
    sets = {name: column.copy() for name, column in few(24).items()}
    sets["E"][5] = np.nan
    expected = sweep(run, sets)
    cut = expected["substeps"].max(axis=-1) > 1
    assert 0 < cut.sum() < 12 and list(expected.failures) == [5]
    results = sweep(run, sets, batch=8)
    equal(results, expected)
    assert results.failures[5][:2] == expected.failures[5][:2]


def test_points_that_are_converged_together_are_not_put_together(artifact: Path) -> None:
    batches: list[int] = []
    model = watched(batches, Model(artifact))
    model.options["convergence"] = "batch"
    sweep(partial(drive, model, TIMES, {"strain": STRAIN}), few(6), batch=6)
    assert batches == [1] * 6


# ------------------------------------------------------------------------------------------------
# Experiments
# ------------------------------------------------------------------------------------------------


EXPERIMENTS: dict[str, tuple[Any, ...]] = {
    "tension": (0.004,),
    "uniaxial": (150.0,),
    "biaxial": (0.004, -0.001),
    "plane_stress": (0.004, 0.002, 0.001),
    "creep": (150.0,),
    "relaxation": (0.004,),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_sets_of_an_experiment_are_points_of_one_drive(artifact: Path, name: str) -> None:
    batches: list[int] = []
    model = watched(batches, Model(artifact))
    experiment = getattr(experiments, name)
    run = partial(experiment, model, np.linspace(0, 4, 9), *EXPERIMENTS[name], report=True)
    sets = {"E": np.linspace(150e3, 250e3, 8), "yield_stress": np.linspace(90, 160, 8)}
    expected = sweep(run, sets)
    batches.clear()
    equal(sweep(run, sets, batch=8), expected)
    assert batches == [1, 7]


def test_an_experiment_on_several_points_is_batched_too(artifact: Path) -> None:
    run = partial(
        experiments.creep, Model(artifact), np.linspace(0, 4, 9), stress=[100.0, 150.0, 180.0]
    )
    sets = {"E": np.linspace(150e3, 250e3, 6)}
    equal(sweep(run, sets, batch=6), sweep(run, sets))


def test_a_batch_that_is_none_is_told(artifact: Path) -> None:
    model = Model(artifact)
    with pytest.warns(UserWarning, match="batch = 4: .* is no functools.partial of drive"):
        sweep(sums, SUMS, batch=4)
    with pytest.warns(UserWarning, match="'E' has a batch of its own in each set"):
        sweep(run_of(artifact), {"E": np.full((4, 2), 2e5)}, batch=4)
    model.options["convergence"] = "batch"
    with pytest.warns(UserWarning, match="convergence = batch would let"):
        sweep(partial(drive, model, TIMES, {"strain": STRAIN}), few(4), batch=4)


def test_a_set_that_is_not_finite_fails_alone(artifact: Path) -> None:
    for item in (0, 3):
        sets = {"E": np.linspace(150e3, 250e3, 6)}
        sets["E"][item] = np.nan
        for batch in (1, 6):
            results = sweep(run_of(artifact), sets, batch=batch)
            assert list(results.failures) == [item]
            assert "'E' is nan; expected finite numbers" in results.failures[item].message


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch": 2.0}, "batch must be a whole number"),
        ({"batch": "2"}, "batch must be a whole number"),
        ({"batch": True}, "batch must be a whole number"),
        ({"retries": None}, "retries must be a whole number"),
        ({"again": 3}, "again must be True or False"),
        ({"progress": "yes"}, "progress must be True, False or None"),
        ({"failures": []}, "failures must be one of"),
        ({"store": {}}, "store must be one of"),
        ({"parameters": None}, "columns by name, or a list of mappings; got a NoneType"),
        ({"parameters": {"a": [[1], [1, 2]]}}, "'a' has rows of different shapes"),
        ({"directory": 3}, "directory must be the path of a file"),
        ({"directory": "a\0b"}, "directory must be the path of a file"),
        ({"run": None}, "run must be a function"),
    ],
)
def test_arguments_are_refused_by_their_names(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(FatalError, match=message):
        sweep(**{"run": sums, "parameters": SUMS, **changed})


@pytest.mark.parametrize("item", [None, 1.5, "1", -1, 20])
def test_a_set_is_asked_for_by_its_number(item: Any) -> None:
    with pytest.raises(FatalError, match=r"number of a set|there is no set"):
        sweep(sums, SUMS).at(item)


# ------------------------------------------------------------------------------------------------
# What is shown, and what is refused
# ------------------------------------------------------------------------------------------------


def test_a_bar_counts_the_sets_from_where_the_sweep_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tqdm")
    calls = tmp_path / "calls"
    calls.mkdir()
    run = partial(stopped_at, 12, str(calls))
    with pytest.raises(KeyboardInterrupt):
        sweep(run, SUMS, directory=tmp_path / "s", progress=True)
    assert "12/20" in capsys.readouterr().err
    sweep(run, SUMS, directory=tmp_path / "s", progress=True)
    shown = capsys.readouterr().err
    assert " 12/20" in shown and " 20/20" in shown and " 0/20" not in shown
    sweep(run, SUMS)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"parameters": {"E": 200e3}}, "'E' is one value; expected an array"),
        ({"parameters": {}}, "are empty"),
        ({"parameters": {"E": []}}, "are empty"),
        ({"parameters": []}, "are empty"),
        ({"parameters": {"E": [1.0, 2.0], "yield_stress": [1.0]}}, "'E' has 2, 'yield_stress' has"),
        ({"parameters": {"E": [object()]}}, "'E' is of objects"),
        (
            {"parameters": {"E": np.ma.masked_array([1.0, 2.0], [False, True])}},
            "'E' is masked: leave",
        ),
        ({"parameters": [{"E": 1.0}, {"yield_stress": 1.0}]}, "set 1 yield_stress"),
        ({"parameters": [{"E": 1.0}, {"E": [1.0, 2.0]}]}, r"and \(2,\) in set 1"),
        ({"parameters": [1.0]}, "set 0 is a float"),
        ({"parameters": {"yield_stres": [1.0]}}, "did you mean 'yield_stress'"),
        ({"run": 1}, "run must be a function of `parameters`; got a int"),
        ({"executor": 8}, "the executor is a int; expected"),
        ({"executor": dict}, "returned a dict, which has no submit"),
        ({"batch": 0}, "batch must be a whole number, at least 1; got 0"),
        ({"retries": -1}, "retries must be a whole number, at least 0; got -1"),
        ({"failures": "ignore"}, "must be one of 'keep', 'raise', 'stop'; got 'ignore'"),
        ({"store": "zarr"}, "'zarr' needs a directory"),
        ({"store": "hdf5"}, "must be one of 'npz', 'zarr'; got 'hdf5'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_swept_is_refused_with_the_reason(
    run: Run, changed: dict[str, Any], message: str
) -> None:
    given = {"run": run, "parameters": few(3), **changed}
    with pytest.raises(FatalError, match=message):
        sweep(**given)


def test_parameters_in_two_places_are_refused(artifact: Path) -> None:
    run = run_of(artifact, parameters={"E": 1.0})
    with pytest.raises(FatalError, match="has parameters of its own"):
        sweep(run, few(3))


def test_zarr_is_needed_only_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zarr", None)
    sweep(sums, SUMS, directory=tmp_path / "s")
    with pytest.raises(FatalError, match=r"pip install 'neml2_capi\[zarr\]'"):
        sweep(sums, SUMS, directory=tmp_path / "z", store="zarr")


def test_a_set_that_there_is_not_is_refused() -> None:
    results = sweep(sums, SUMS)
    for item in (-1, 20):
        with pytest.raises(FatalError, match="there are 20, from 0"):
            results.at(item)


def test_the_package_offers_it() -> None:
    assert neml2_capi.sweep is sweep and {"sweep", "SweepResults"} <= set(neml2_capi.__all__)
    error = pickle.loads(pickle.dumps(SweepError("failed")))
    assert isinstance(error, neml2_capi.Error)
