"""What becomes of each point: reports, and the failure of one among many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from slow import later
from states import IMPLICIT, Artifacts, load, random_like, recorded, repeated

from neml2_capi import ConvergenceError, Model
from neml2_capi._ffi.library import lib

Array = NDArray[np.float64]
Arrays = Mapping[str, Array]

BAD = 371  # of a thousand
OTHERS = np.arange(1000) != BAD


@pytest.fixture
def relaxation(artifacts: Artifacts) -> Model:
    return load(artifacts, "relaxation")


def with_bad_point(inputs: Arrays) -> dict[str, Array]:
    """A point loaded beyond all measure, so that no Newton step helps."""
    broken = {name: np.array(value) for name, value in inputs.items()}
    for name in ("strain", "total_strain", "applied_stress", "deformation_rate"):
        if name in broken:
            broken[name][BAD] *= 1e60
    return broken


def failure(call: Callable[[], Any]) -> ConvergenceError:
    with pytest.raises(ConvergenceError) as caught:
        call()
    return caught.value


# ---- evaluate() ----


def test_a_report_has_a_value_for_each_point(relaxation: Model) -> None:
    inputs = recorded("relaxation", "in")
    outputs, report = relaxation.evaluate(inputs)
    for name, value in relaxation.forward(inputs).items():
        np.testing.assert_array_equal(outputs[name], value)
    assert report.keys() == {"status", "iterations", "residual_norm", "suggested_cut"}
    assert {name: value.dtype.name for name, value in report.items()} == {
        "status": "int32",
        "iterations": "int32",
        "residual_norm": "float64",
        "suggested_cut": "float64",
    }
    assert report["status"].tolist() == [lib.NEML2_OK] * 4
    # The first point stays elastic: its residual is linear.
    assert report["iterations"][0] == 1
    assert (report["iterations"][1:] > 2).all()
    assert (report["residual_norm"] < 1e-14).all()
    assert report["suggested_cut"].tolist() == [1.0] * 4


@pytest.mark.parametrize("batch", [(), (2, 2), (0,)], ids=str)
def test_a_report_has_the_batch_of_the_inputs(relaxation: Model, batch: tuple[int, ...]) -> None:
    relaxation.options["collect_history"] = 1
    inputs = recorded("relaxation", "in")
    points = int(np.prod(batch))
    given = {n: v[:points].reshape((*batch, *v.shape[1:])) for n, v in inputs.items()}
    report = relaxation.evaluate(given)[1]
    history = report.pop("residual_history")
    assert history.shape == (*batch, int(relaxation.options["miters"]))
    assert {value.shape for value in report.values()} == {batch}


def test_the_history_ends_with_the_last_norm(relaxation: Model) -> None:
    relaxation.options["collect_history"] = 1
    report = relaxation.evaluate(recorded("relaxation", "in"))[1]
    for norms, steps, last in zip(
        report["residual_history"], report["iterations"], report["residual_norm"], strict=True
    ):
        assert norms[steps] == last
        assert np.isfinite(norms[: steps + 1]).all()
        assert np.isnan(norms[steps + 1 :]).all()


def test_an_explicit_model_makes_no_iterations(artifacts: Artifacts) -> None:
    model, inputs = load(artifacts, "grains"), recorded("grains", "in")
    report = model.evaluate(inputs)[1]
    assert report["iterations"].tolist() == [0, 0, 0]
    assert report["residual_norm"].tolist() == [0.0, 0.0, 0.0]
    inputs["strain"][1, 2, 3] = np.nan
    outputs, report = model.evaluate(inputs)  # what was computed is returned
    assert report["status"].tolist() == [lib.NEML2_OK, lib.NEML2_NON_FINITE, lib.NEML2_OK]
    assert np.isnan(outputs["mean_stress"][1, 3])
    assert np.isfinite(outputs["stress"][1, 0]).all()


def test_reports_are_torch_tensors_where_the_inputs_are(relaxation: Model) -> None:
    torch = pytest.importorskip("torch")
    inputs = {name: torch.tensor(v) for name, v in recorded("relaxation", "in").items()}
    report = relaxation.evaluate(inputs)[1]
    assert report["iterations"].dtype == torch.int32
    assert report["residual_norm"].dtype == torch.float64


def test_evaluate_returns_where_forward_raises(relaxation: Model) -> None:
    inputs = with_bad_point(repeated(recorded("relaxation", "in"), 1000))
    outputs, report = relaxation.evaluate(inputs)
    error = failure(lambda: relaxation.forward(inputs))
    for name, value in report.items():
        np.testing.assert_array_equal(error.report[name], value)
    for name, value in outputs.items():
        np.testing.assert_array_equal(error.outputs[name], value)


# ---- ConvergenceError ----


def test_an_error_says_what_became_of_each_point(relaxation: Model) -> None:
    inputs = with_bad_point(repeated(recorded("relaxation", "in"), 1000))
    error = failure(lambda: relaxation.forward(inputs))
    assert error.recoverable
    assert error.status == lib.NEML2_NOT_CONVERGED
    np.testing.assert_array_equal(error.converged_mask, OTHERS)
    assert error.report["status"][BAD] == lib.NEML2_NOT_CONVERGED
    assert (error.report["status"][OTHERS] == lib.NEML2_OK).all()
    assert 0.0 < error.report["suggested_cut"][BAD] < 1.0
    assert (error.report["suggested_cut"][OTHERS] == 1.0).all()
    assert error.derivatives is None
    assert error.unknowns.keys() == {"elastic_strain"}
    iterate = error.unknowns["elastic_strain"]
    assert iterate.shape == (1000, 6)
    assert np.isnan(iterate[OTHERS]).all()


def test_the_iterate_of_a_failed_point_is_where_it_stopped(relaxation: Model) -> None:
    inputs = recorded("relaxation", "in")
    solution = relaxation.forward(inputs)["elastic_strain"]
    relaxation.options["miters"] = 4  # three steps, of the four or five that it takes
    error = failure(lambda: relaxation.forward(inputs))
    assert error.converged_mask.tolist() == [True, False, False, False]
    iterate = error.unknowns["elastic_strain"][1:]
    assert np.isfinite(iterate).all()
    distance = np.abs(iterate - solution[1:]).max()
    assert 0.0 < distance < 1e-5
    assert np.isnan(error.outputs["elastic_strain"][1:]).all()
    # The residual was going down.
    assert error.report["suggested_cut"][1:].tolist() == [0.5, 0.5, 0.5]


def test_derivatives_of_the_good_points_come_with_the_error(relaxation: Model) -> None:
    good = repeated(recorded("relaxation", "in"), 1000)
    inputs = with_bad_point(good)
    tangents, cotangents = random_like(good), random_like(relaxation.forward(good))
    calls: dict[str, tuple[Any, ...]] = {
        "jvp": (tangents,),
        "vjp": (cotangents,),
        "jacobian": (),
        "param_jacobian": (),
    }
    for method, directions in calls.items():
        call = getattr(relaxation, method)
        expected = call(good, *directions)[1]
        error = failure(partial(call, inputs, *directions))
        assert error.derivatives is not None
        assert error.derivatives.keys() == expected.keys()
        for name, value in flat(expected).items():
            actual = flat(error.derivatives)[name]
            np.testing.assert_array_equal(actual[OTHERS], value[OTHERS])
            assert np.isnan(actual[BAD]).all()


def flat(values: Mapping[str, Any]) -> dict[str, Array]:
    result: dict[str, Array] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            result |= {f"{name}/{other}": block for other, block in value.items()}
        else:
            result[name] = value
    return result


def test_a_sum_over_a_failed_point_is_nan(relaxation: Model) -> None:
    good = repeated(recorded("relaxation", "in"), 1000)
    cotangents = random_like(relaxation.forward(good))
    error = failure(lambda: relaxation.param_vjp(with_bad_point(good), cotangents))
    assert error.derivatives is not None
    assert np.isnan(error.derivatives["update.residual.elasticity.E"])
    by_point = {"E": np.full(1000, 200e3)}
    error = failure(lambda: relaxation.param_vjp(with_bad_point(good), cotangents, by_point))
    assert error.derivatives is not None
    gradient = error.derivatives["update.residual.elasticity.E"]
    np.testing.assert_array_equal(np.isfinite(gradient), OTHERS)


def test_the_cut_is_deeper_where_the_residual_went_up(relaxation: Model) -> None:
    inputs = recorded("relaxation", "in")
    inputs["strain"][2] *= 1e60
    error = failure(lambda: relaxation.forward(inputs))
    assert error.report["status"].tolist() == [0, 0, lib.NEML2_NOT_CONVERGED, 0]
    assert error.report["suggested_cut"].tolist() == [1.0, 1.0, 0.25, 1.0]
    assert not np.isfinite(error.report["residual_norm"][2])


# ---- one among a thousand ----


@pytest.mark.parametrize("name", later(IMPLICIT, ["crystal"]))
def test_a_point_that_diverges_leaves_the_others_bitwise_alone(
    artifacts: Artifacts, name: str
) -> None:
    model, good = load(artifacts, name), repeated(recorded(name, "in"), 1000)
    inputs = with_bad_point(good)
    error = failure(lambda: model.jacobian(inputs))
    assert error.derivatives is not None
    np.testing.assert_array_equal(error.converged_mask, OTHERS)
    without = {variable: value[OTHERS] for variable, value in good.items()}
    outputs, jacobian = model.jacobian(without)
    for variable, value in outputs.items():
        np.testing.assert_array_equal(error.outputs[variable][OTHERS], value)
        assert np.isnan(error.outputs[variable][BAD]).all()
    blocks = flat(error.derivatives)
    for pair, block in flat(jacobian).items():
        np.testing.assert_array_equal(blocks[pair][OTHERS], block)
        assert np.isnan(blocks[pair][BAD]).all()
    outputs, report = model.evaluate(inputs)
    expected_outputs, expected_report = model.evaluate(without)
    for variable, value in expected_outputs.items():
        np.testing.assert_array_equal(outputs[variable][OTHERS], value)
    for kind, value in expected_report.items():
        np.testing.assert_array_equal(report[kind][OTHERS], value)


@pytest.mark.parametrize("name", ["relaxation", "polycrystal", "gmres", "bicgstab"])
def test_one_point_fails_all_of_a_whole_batch(artifacts: Artifacts, name: str) -> None:
    model, good = load(artifacts, name, "batch"), repeated(recorded(name, "in"), 1000)
    error = failure(lambda: model.forward(with_bad_point(good)))
    assert not error.converged_mask.any()
    for value in error.outputs.values():
        assert np.isnan(value).all()
    assert (error.report["status"] >= lib.NEML2_NOT_CONVERGED).all()
    assert (error.report["suggested_cut"] < 1.0).all()


@pytest.mark.parametrize("engine", ["native", "python"])
def test_a_residual_of_zero_is_a_solution(artifacts: Artifacts, engine: str) -> None:
    # The elastic point of a radial return: its residual vanishes at the initial guess.
    model = Model(artifacts["radial_return"], engine=engine)
    model.options["atol"] = 0.0
    point = {variable.name: np.zeros((1, *variable.base_shape)) for variable in model.inputs}
    point["t"] += 1.0
    outputs, report = model.evaluate(point)
    assert report["status"] == 0 and np.all(np.isfinite(outputs["cauchy_stress"]))


def test_an_error_has_the_residual_history_that_was_asked_for(artifacts: Artifacts) -> None:
    model = Model(artifacts["isotropic_hardening"])
    point = {variable.name: np.full((1, *variable.base_shape), 1e30) for variable in model.inputs}
    for collect in (0, 1):
        model.options["collect_history"] = collect
        with pytest.raises(ConvergenceError) as error:
            model.forward(point)
        assert ("residual_history" in error.value.report) == bool(collect)


# ---- the segment that failed ----


@pytest.mark.parametrize("engine", ["native", "python"])
def test_the_error_names_the_package_of_the_residual(artifacts: Artifacts, engine: str) -> None:
    model = Model(artifacts["combined_hardening"], engine=engine)
    inputs = {v.name: np.zeros((2, *v.base_shape)) for v in model.inputs}
    inputs["t"] += 1.0
    inputs["strain"][1] = 1e60
    assert failure(lambda: model.forward(inputs)).subject == "viscoplastic_residual.pt2"
    if engine == "native":
        model.options["collect_history"] = 0
        assert failure(model.bind(inputs)).subject == "viscoplastic_residual.pt2"
