"""Increments that drive() cuts, and lets grow again."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from driving import STRAIN, TIMES, equal, few_iterations, strain_at
from numpy.typing import NDArray
from states import Artifacts
from test_physics import DIRECTION, STATE, relative_error

from neml2_capi import ConvergenceError, Model, StepError, drive
from neml2_capi.driver.pace import Pace

Array = NDArray[np.float64]


COARSE = np.linspace(0.0, 10.0, 6)


def test_where_points_fail_the_increment_is_cut(artifacts: Artifacts) -> None:
    """The same as driving through the times of the increments that succeeded."""
    tried: list[float] = []

    def watched(time: float) -> Array:
        tried.append(time)
        return strain_at(time)

    results = drive(few_iterations(artifacts), COARSE, {"strain": watched})
    assert results["substeps"].max() > 2
    accepted = [now for now, then in pairwise(tried) if then > now]
    accepted.append(tried[-1])
    assert accepted[0] == 0.0 and len(accepted) - 1 == results["substeps"].sum()
    assert len(tried) > len(accepted)
    fine = drive(Model(artifacts["viscoplastic"]), accepted, {"strain": strain_at})
    assert fine["substeps"].max() == 1
    at = np.searchsorted(accepted, COARSE)
    for name in STATE:
        np.testing.assert_array_equal(results[name], fine[name][at])


def test_forces_are_linear_in_a_step_that_is_cut(artifacts: Artifacts) -> None:
    model, table = few_iterations(artifacts), np.stack([strain_at(time) for time in COARSE])

    def linear(time: float) -> Array:
        step = max(int(np.searchsorted(COARSE, time)), 1)
        part = (time - COARSE[step - 1]) / (COARSE[step] - COARSE[step - 1])
        value: Array = (1.0 - part) * table[step - 1] + part * table[step]
        return value

    results = drive(model, COARSE, {"strain": table})
    expected = drive(model, COARSE, {"strain": linear})
    assert results["substeps"].max() > 2
    np.testing.assert_array_equal(results["substeps"], expected["substeps"])
    np.testing.assert_array_equal(results["strain"], table)
    assert relative_error(results["stress"], expected["stress"]) < 1e-8


def test_increments_grow_again(artifacts: Artifacts) -> None:
    times = np.linspace(0.0, 20.0, 11)
    results = drive(
        few_iterations(artifacts), times, {"strain": lambda time: strain_at(min(time, 3.0))}
    )
    assert results["substeps"].max() > 2
    assert results["substeps"][-3:].tolist() == [1, 1, 1]


def test_iterations_of_all_tries_count(artifacts: Artifacts) -> None:
    model = few_iterations(artifacts)
    results = drive(model, COARSE, {"strain": strain_at}, report=True)
    cut = results["substeps"] > 1
    assert (results["report.iterations"][cut].max(axis=-1) > 7).all()
    assert not results["report.status"].any()


def test_the_pace_of_a_drive() -> None:
    pace = Pace(least=0.1)
    assert pace.end(0.0) == 1.0
    assert pace.cut(1.0, 0.5) and pace.end(0.0) == 0.5
    pace.succeeded()
    assert pace.end(0.5) == 1.0
    assert pace.cut(0.5, 0.25) and pace.end(0.5) == 0.625
    pace.succeeded()
    assert pace.end(0.625) == 0.75  # one success is not enough
    pace.succeeded()
    assert pace.end(0.75) == 1.0  # doubled
    assert pace.cut(0.25, 0.25)
    assert pace.end(0.75) == 0.85  # no less than the least
    assert pace.end(0.85) == 0.95 or pace.end(0.85) == 1.0
    assert pace.end(0.81) == 1.0  # nothing less than the least is left
    assert not pace.cut(0.1 + 1e-12, 0.5)


def test_a_step_that_never_converges_is_an_error(artifacts: Artifacts) -> None:
    model = Model(artifacts["viscoplastic"])
    strain = STRAIN.copy()
    strain[5, 1] *= 1e60
    with pytest.raises(StepError) as caught:
        drive(model, TIMES, {"strain": strain}, least_step=0.25)
    error = caught.value
    assert isinstance(error, ConvergenceError) and error.recoverable
    assert error.step == 5 and error.time == 0.25 * TIMES[5] + 0.75 * TIMES[4]
    assert "step 5 failed at t = 2.125, at 1 of 3 points: 1;" in str(error)
    assert "(least_step = 0.25)" in str(error)
    assert error.converged_mask.tolist() == [True, False, True]
    assert error.report["status"][1] > 1
    whole = drive(model, TIMES, {"strain": STRAIN})
    assert error.results["t"].tolist() == TIMES[:5].tolist()
    equal(error.results, {name: value[:5] for name, value in whole.items()})


def test_with_a_least_step_of_one_nothing_is_cut(artifacts: Artifacts) -> None:
    tried: list[float] = []

    def watched(time: float) -> Array:
        tried.append(time)
        return strain_at(time)

    with pytest.raises(StepError, match="step 1 failed at t = 2"):
        drive(few_iterations(artifacts), COARSE, {"strain": watched}, least_step=1.0)
    assert set(tried) == {0.0, 2.0}


def test_an_error_names_the_points_of_a_grid(artifacts: Artifacts) -> None:
    model = few_iterations(artifacts, 2)
    strain = np.zeros((2, 4, 5, 6))
    strain[1, 1:3, 2:] = 0.01 * DIRECTION
    with pytest.raises(StepError, match=r"at 6 of 20 points: \(1, 2\), \(1, 3\), .*\(2, 4\);"):
        drive(model, [0, 1], {"strain": strain}, least_step=1.0)
    with pytest.raises(StepError, match=r"step 1 failed at t = 1; its increment"):
        drive(model, [0, 1], {"strain": strain[:, 1, 2]}, least_step=1.0)
