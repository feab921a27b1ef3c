"""Options of a model, and the errors that it raises."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from states import first_step

from neml2_capi import AggregateError, ConvergenceError, Error, FatalError, Model, UnknownNameError

Artifacts = Mapping[str, Path]
STRAIN = np.array([[1e-3, -3e-4, 2e-4, 5e-4, -1e-4, 7e-4], [2e-3, 1e-4, 0, -6e-4, 3e-4, 1e-4]])


# ------------------------------------------------------------------------------------------------
# Options
# ------------------------------------------------------------------------------------------------


def test_options_are_a_live_mapping(viscoplastic: Model) -> None:
    options = viscoplastic.options
    assert {"atol", "rtol", "miters", "ls_type", "convergence", "chunk"} <= set(options)
    options["atol"] = 1e-12
    assert viscoplastic.options["atol"] == 1e-12
    assert set(options.choices("convergence")) == {"point", "batch"}
    options["convergence"] = "batch"
    assert options["convergence"] == "batch"
    least, greatest = options.bounds("miters")
    assert least <= options["miters"] <= greatest


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("atol", -1.0, "atol"),
        ("atol", float("nan"), "atol"),
        ("miters", 0, "miters"),
        ("atol", "small", "option 'atol' takes a number, not 'small'"),
        ("atol", None, "option 'atol' takes a number, not None"),
        ("miters", True, "option 'miters' takes a number, not True"),
        ("rescue", np.True_, "option 'rescue' takes a number, not np.True_|True"),
        pytest.param("atol", 10**400, "takes a number that a float can hold", id="atol-10**400"),
        ("ls_type", "NEWTON", "ls_type"),
        ("ls_type", 1, "option 'ls_type' takes one of BACKTRACKING, STRONG_WOLFE, not 1"),
        ("tol", 1.0, "unknown option 'tol'; did you mean '[ar]tol'"),
    ],
)
def test_an_option_out_of_bounds_is_refused_and_nothing_changed(
    viscoplastic: Model, name: str, value: Any, reason: str
) -> None:
    before = dict(viscoplastic.options)
    with pytest.raises(FatalError, match=reason):
        viscoplastic.options[name] = value
    assert dict(viscoplastic.options) == before


def test_the_solver_can_be_configured_as_in_neml2(viscoplastic: Model) -> None:
    viscoplastic.set_solver_config(1e-9, 1e-7, 30, "STRONG_WOLFE", 5, 3.0, 1e-4)
    wanted = {
        "atol": 1e-9,
        "rtol": 1e-7,
        "miters": 30,
        "ls_type": "STRONG_WOLFE",
        "ls_max_iters": 5,
        "ls_cutback": 3.0,
        "ls_c": 1e-4,
        "substep_del_tol": 1e-6,
    }
    assert {name: viscoplastic.options[name] for name in wanted} == wanted


def test_a_refused_configuration_changes_nothing(viscoplastic: Model) -> None:
    before = dict(viscoplastic.options)
    with pytest.raises(FatalError, match="ls_type"):
        viscoplastic.set_solver_config(1e-9, 1e-7, 30, "NEWTON", 5, 3.0, 1e-4)
    assert dict(viscoplastic.options) == before


class Interrupting:
    """A number that cannot be read."""

    def __float__(self) -> float:
        raise KeyboardInterrupt


def test_an_artifact_may_allow_no_iteration_as_in_neml2(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    """It records 0, which makes no step, as 1 does; a negative number is refused with its file."""
    kernels, root = shutil.ignore_patterns("kernels"), tmp_path / "viscoplastic"
    shutil.copytree(artifacts["viscoplastic"], root, ignore=kernels)
    file = root / "metadata.json"
    metadata = json.loads(file.read_text())
    metadata["solver_config"].update(miters=0, ls_max_iters=0)
    file.write_text(json.dumps(metadata))
    model = Model(root)
    assert model.options["miters"] == model.options["ls_max_iters"] == 1
    with pytest.raises(ConvergenceError) as caught:
        model.forward(first_step(model, STRAIN))
    assert caught.value.report["iterations"].tolist() == [0, 0]
    metadata["solver_config"]["miters"] = -1
    file.write_text(json.dumps(metadata))
    with pytest.raises(FatalError, match=r"metadata\.json: the solver: .*'miters' must .*got -1"):
        Model(root)


def test_options_are_updated_as_a_dict_is(viscoplastic: Model) -> None:
    viscoplastic.options.update([("atol", 1e-9), ("rtol", 1e-7)], miters=30)
    found = viscoplastic.options
    assert (found["atol"], found["rtol"], found["miters"]) == (1e-9, 1e-7, 30)
    viscoplastic.options.update()


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("ls_type", "NEWTON\0", ValueError),
        pytest.param("miters", 10**400, FatalError, id="miters-10**400"),
        ("miters", Interrupting(), KeyboardInterrupt),
    ],
)
def test_options_are_changed_together_or_not_at_all(
    viscoplastic: Model, name: str, value: Any, error: type[BaseException]
) -> None:
    before = dict(viscoplastic.options)
    with pytest.raises(error):
        viscoplastic.options.update({"atol": 1e-9, name: value})
    assert dict(viscoplastic.options) == before


# ------------------------------------------------------------------------------------------------
# Errors
# ------------------------------------------------------------------------------------------------


def test_points_that_do_not_converge_are_told_apart(viscoplastic: Model) -> None:
    # One Newton step is enough for an elastic point, and too few for a plastic one.
    strain = np.array([1e-6 * STRAIN[0], 20 * STRAIN[0], 0 * STRAIN[0]])
    viscoplastic.options["miters"] = 3
    with pytest.raises(ConvergenceError, match="1 of 3 points did not converge") as caught:
        viscoplastic.forward(first_step(viscoplastic, strain))
    error = caught.value
    assert error.recoverable
    assert error.converged_mask.tolist() == [True, False, True]
    assert (error.report["status"] != 0).tolist() == [False, True, False]
    assert error.report["iterations"].tolist()[1] == 2
    assert error.report["residual_norm"].tolist()[1] > viscoplastic.options["atol"]
    assert list(error.outputs) == viscoplastic.outputs.names
    for values in error.outputs.values():
        assert np.isnan(values[1]).all()
        assert np.isfinite(values[[0, 2]]).all()


def test_the_model_is_usable_after_a_failure(viscoplastic: Model) -> None:
    inputs = first_step(viscoplastic, 20 * STRAIN)
    expected = viscoplastic.forward(inputs)["stress"]
    miters = viscoplastic.options["miters"]
    viscoplastic.options["miters"] = 2
    with pytest.raises(ConvergenceError):
        viscoplastic.forward(inputs)
    viscoplastic.options["miters"] = miters
    np.testing.assert_array_equal(viscoplastic.forward(inputs)["stress"], expected)


def test_every_error_is_a_runtime_error_with_one_base() -> None:
    for kind in (FatalError, UnknownNameError, ConvergenceError, AggregateError):
        assert issubclass(kind, Error)
        assert issubclass(kind, RuntimeError)
    assert not FatalError("no").recoverable
    assert ConvergenceError("no").recoverable
    assert str(UnknownNameError("no such name")) == "no such name"


def test_several_errors_are_recoverable_only_together() -> None:
    recoverable, fatal = ConvergenceError("diverged"), FatalError("wrong shape", -4, "strain")
    assert AggregateError([recoverable, recoverable]).recoverable
    both = AggregateError([recoverable, fatal])
    assert not both.recoverable
    assert both.errors == (recoverable, fatal)
    assert (both.status, both.subject) == (-4, "strain")
    assert "ConvergenceError: diverged" in str(both)
    assert "FatalError: wrong shape" in str(both)
    assert not AggregateError([recoverable, KeyError("x")]).recoverable
    assert AggregateError(error for error in (recoverable, fatal)).errors == both.errors
    with pytest.raises(ValueError, match="at least one"):
        AggregateError(iter(()))


def test_errors_travel_between_processes() -> None:
    mask = np.array([True, False])
    error = ConvergenceError("diverged", 2, report={"status": mask}, converged_mask=mask)
    for sent in (error, FatalError("no", -4, "strain"), AggregateError([error])):
        received = pickle.loads(pickle.dumps(sent))
        assert type(received) is type(sent)
        assert str(received) == str(sent)
        assert (received.status, received.subject) == (sent.status, sent.subject)
        assert received.recoverable == sent.recoverable
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(error)).converged_mask, mask)
