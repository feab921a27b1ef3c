"""Points that do not converge are rescued, and what is found solves the equations of the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import oracle
import pytest
from native import PREBUILT
from numpy.typing import NDArray
from oracle import ISOTROPIC_HARDENING, VISCOPLASTIC, Viscoplasticity
from states import Artifacts, load, repeated, state_of

from neml2_capi import ConvergenceError, Device, FatalError, Model, Scheduler, drive, examples
from neml2_capi._ffi.runtime import libtorch
from neml2_capi.solvers import Newton

pytestmark = pytest.mark.numbers

try:
    libtorch()
    missing = ""
except FatalError as error:
    missing = str(error)
needs_libtorch = pytest.mark.skipif(bool(missing), reason=missing)

Array = NDArray[np.float64]
Arrays = Mapping[str, Array]

LAWS: dict[str, Viscoplasticity] = {
    "isotropic_hardening": ISOTROPIC_HARDENING,
    "chaboche": VISCOPLASTIC,
}
UNKNOWNS = ("stress", "equivalent_plastic_strain", "X1", "X2")


def directions(points: int) -> Array:
    values = np.random.default_rng(0).standard_normal((points, 6))
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True))


def from_rest(model: Model, strain: Array, seconds: float = 1.0) -> dict[str, Array]:
    """One step from rest."""
    rest = {v.name: np.zeros((len(strain), *v.point_shape)) for v in model.inputs}
    return rest | {"strain": strain, "t": np.full(len(strain), seconds)}


def shipped(name: str, rescue: float = 100, **options: Any) -> Model:
    model = Model(examples.path(name))
    model.options.update({"rescue": rescue, **options})
    return model


def packaged(rescue: float = 100, **options: Any) -> Model:
    """The same law on packages."""
    model = Model(PREBUILT / "combined_hardening")
    model.options.update({"rescue": rescue, "kernels": "off", **options})
    return model


def arguments_of(inputs: Arrays, size: int) -> tuple[Array, Array, Array, Array]:
    """What the oracle takes: old state, strain, old strain, time step."""
    strain = inputs["strain"]
    return np.zeros((len(strain), size)), strain, np.zeros_like(strain), inputs["t"]


def state_in(outputs: Mapping[str, Any]) -> Array:
    parts = [outputs[name] for name in UNKNOWNS if name in outputs]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def assert_solves_the_step(law: Viscoplasticity, inputs: Arrays, found: Mapping[str, Any]) -> None:
    """|r| of the step in numpy is 1e-9 of the elastic stress at most."""
    state = state_in(found)
    residual = law.residual(state, *arguments_of(inputs, state.shape[1]))
    scale = np.linalg.norm(oracle.elastic_stress(inputs["strain"], law.E, law.nu), axis=1)
    assert (np.linalg.norm(residual, axis=1) <= 1e-9 * scale).all()


# ---- all points, any size ----


@pytest.mark.parametrize("strain", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(
    "points", [150, pytest.param(1000, marks=pytest.mark.full("more of the same"))]
)
def test_every_first_step_is_solved(name: str, strain: float, points: int) -> None:
    """The others have the bits that they have without."""
    law, off, on = LAWS[name], shipped(name, 0), shipped(name)
    inputs = from_rest(on, strain * directions(points))
    found, report = on.evaluate(inputs)
    assert (report["status"] == 0).all() and (report["suggested_cut"] == 1).all()
    assert_solves_the_step(law, inputs, found)

    outputs, plain = off.evaluate(inputs)
    failed = plain["status"] > 1
    assert failed.any() or strain < 0.5
    assert not failed.any() or strain > 0.1
    np.testing.assert_array_equal(report["rescue_solves"] > 0, failed)
    assert (report["iterations"][failed] > plain["iterations"][failed]).all()
    for key, values in outputs.items():
        assert np.isnan(values[failed]).all()
        np.testing.assert_array_equal(found[key][~failed], values[~failed])


def test_what_fails_without_is_named() -> None:
    for name, points in (("chaboche", 100), ("isotropic_hardening", 10)):
        model = shipped(name, 0)
        report = model.evaluate(from_rest(model, 0.5 * directions(150)))[1]
        assert (report["status"] > 1).sum() >= points
        assert "rescue_solves" not in report


@pytest.mark.parametrize("name", LAWS)
def test_the_tangent_is_the_step_s_own(name: str) -> None:
    """By the implicit function theorem on the oracle's residual, and by differences."""
    law, model = LAWS[name], shipped(name)
    inputs = from_rest(model, 0.5 * directions(40))
    outputs, blocks = model.jacobian(inputs)
    state = state_in(outputs)
    expected = law.sensitivity(state, arguments_of(inputs, state.shape[1]), 1)[:, :6]
    tangent = blocks["stress"]["strain"]
    assert np.abs(tangent - expected).max() <= 1e-7 * np.abs(expected).max()

    tangents = {"strain": 0.1 * directions(40)}
    along = np.einsum("pij,pj->pi", tangent, tangents["strain"])
    jvp = model.jvp(inputs, tangents)[1]["stress"]
    np.testing.assert_allclose(jvp, along, rtol=0, atol=1e-9 * np.abs(along).max())
    step = 1e-4
    ahead, behind = (
        model.forward({**inputs, "strain": inputs["strain"] + sign * step * tangents["strain"]})
        for sign in (1, -1)
    )
    difference = (ahead["stress"] - behind["stress"]) / (2 * step)
    np.testing.assert_allclose(difference, along, rtol=0, atol=1e-4 * np.abs(along).max())


def test_adjoints_of_rescued_points_are_in_the_sum() -> None:
    model = shipped("chaboche")
    inputs = from_rest(model, 0.5 * directions(40))
    weights = directions(40)
    blocks = model.jacobian(inputs)[1]["stress"]
    adjoints = model.vjp(inputs, {"stress": weights})[1]
    expected = np.einsum("pi,pij->pj", weights, blocks["strain"])
    np.testing.assert_allclose(adjoints["strain"], expected, rtol=1e-9, atol=1e-9)
    one = {**inputs, "t": np.array(1.0)}  # one value for all, whose adjoint is the sum
    total = model.vjp(one, {"stress": weights})[1]["t"]
    each = np.einsum("pi,pi->p", weights, blocks["t"].reshape(40, 6))
    np.testing.assert_allclose(total, each.sum(), rtol=1e-9)
    parameter = model.param_vjp(inputs, {"stress": weights})["E"]
    by_parameter = model.param_jacobian(inputs)[1]["stress"]["E"].reshape(40, 6)
    np.testing.assert_allclose(parameter, (weights * by_parameter).sum(), rtol=1e-9)


# ---- the homotopy ----


def test_a_homotopy_goes_where_a_line_search_does_not() -> None:
    """Six iterations are too few for a whole step."""
    model = shipped("chaboche", miters=7)
    inputs = from_rest(model, 0.5 * directions(60))
    found, report = model.evaluate(inputs)
    assert_solves_the_step(VISCOPLASTIC, inputs, found)
    assert (report["rescue_solves"] > 2).all()
    # The first try, the rescue's own, and the stages count.
    assert (report["iterations"] <= 6 * (1 + report["rescue_solves"])).all()
    assert (report["iterations"] > 6 * 2).all()


def test_a_step_from_a_state_begins_at_that_state() -> None:
    model = shipped("chaboche", miters=7)
    first = model.forward(from_rest(model, 0.01 * directions(30)))
    state = {f"{name}~1": first[name] for name in UNKNOWNS}
    strain = 0.01 * directions(30)
    inputs = {
        **state,
        "strain": strain + 0.3 * directions(30)[::-1],
        "strain~1": strain,
        "t": np.full(30, 2.0),
        "t~1": np.full(30, 1.0),
    }
    found, report = model.evaluate(inputs)
    assert (report["rescue_solves"] > 1).all()
    expected = VISCOPLASTIC.residual(
        state_in(found), state_in(first), inputs["strain"], strain, np.ones(30)
    )
    assert np.linalg.norm(expected, axis=1).max() <= 1e-9 * 200e3 * 0.3


def test_its_work_has_a_bound() -> None:
    """All that is told of a point that no rescue solves is what it is without."""
    inputs = from_rest(shipped("chaboche"), 0.5 * directions(60))
    inputs["strain"][:] *= 1e6
    off = shipped("chaboche", 0, miters=4).evaluate(inputs)[1]
    for most in (1, 5, 100):
        model = shipped("chaboche", most, miters=4)
        found, on = model.evaluate(inputs)
        assert (on["rescue_solves"] <= min(most, 11)).all() and (on["rescue_solves"] >= 1).all()
        for name in ("status", "residual_norm", "suggested_cut"):
            np.testing.assert_array_equal(on[name], off[name])
        assert all(np.isnan(values).all() for values in found.values())
    with pytest.raises(ConvergenceError) as caught:
        shipped("chaboche", 5, miters=4).forward(inputs)
    with pytest.raises(ConvergenceError) as plain:
        shipped("chaboche", 0, miters=4).forward(inputs)
    assert "no rescue solved it" in str(caught.value) and "set rescue" in str(plain.value)
    for name, iterate in plain.value.unknowns.items():
        np.testing.assert_array_equal(caught.value.unknowns[name], iterate)


# ---- what is beside it ----


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_points_that_are_not_finite_fail_at_once(engine: str, value: float) -> None:
    model = Model(PREBUILT / "combined_hardening", engine=engine)
    model.options["rescue"] = 100
    inputs = from_rest(model, 0.5 * directions(20))
    inputs["strain"][3] = value
    found, report = model.evaluate(inputs)
    assert report["status"][3] == 1 and report["rescue_solves"][3] == 0
    others = np.arange(20) != 3
    assert (report["status"][others] == 0).all() and report["rescue_solves"][others].any()
    assert np.isfinite(found["stress"][others]).all() and np.isnan(found["stress"][3]).all()


@pytest.mark.parametrize("miters", [50, 7])
@pytest.mark.parametrize("options", [{"chunk": 7}, {"threads": 2, "chunk": 16}, {"threads": 0}])
def test_no_bit_depends_on_neighbours(miters: int, options: Mapping[str, int]) -> None:
    inputs = from_rest(shipped("chaboche"), np.linspace(0.01, 0.5, 90)[:, None] * directions(90))
    expected = shipped("chaboche", miters=miters, threads=1).evaluate(inputs)
    found = shipped("chaboche", miters=miters, **options).evaluate(inputs)
    alone = shipped("chaboche", miters=miters).evaluate({k: v[71:72] for k, v in inputs.items()})
    for ours, theirs, one in zip(found, expected, alone, strict=True):
        for name, values in theirs.items():
            np.testing.assert_array_equal(ours[name], values, err_msg=name)
            np.testing.assert_array_equal(one[name], values[71:72], err_msg=name)


@pytest.mark.parametrize("miters", [50, 7])
def test_packages_and_the_engine_in_python_agree_with_kernels(miters: int) -> None:
    on_packages = packaged(miters=miters)
    inputs = from_rest(on_packages, np.linspace(0.1, 0.5, 40)[:, None] * directions(40))
    in_python = Model(PREBUILT / "combined_hardening", engine="python")
    in_python.options.update({"rescue": 100, "miters": miters})
    on_kernels = packaged(kernels="required", miters=miters)
    found, report = on_kernels.evaluate(inputs)
    tangent = on_kernels.jacobian(inputs)[1]["stress"]["strain"]
    for other in (on_packages, in_python):
        values, told = other.evaluate(inputs)
        np.testing.assert_array_equal(told["status"], 0)
        # Which of the points fail in fifty iterations is a matter of round-off.
        if miters == 7:
            np.testing.assert_array_equal(told["rescue_solves"], report["rescue_solves"])
        for name, value in found.items():
            np.testing.assert_allclose(values[name], value, rtol=0, atol=1e-7 * np.abs(value).max())
        block = other.jacobian(inputs)[1]["stress"]["strain"]
        np.testing.assert_allclose(block, tangent, rtol=0, atol=1e-6 * np.abs(tangent).max())


def test_a_bound_call_rescues_in_place() -> None:
    """The new state lies over the old one, which a point that failed must still have."""
    model = shipped("chaboche")
    inputs = from_rest(model, np.linspace(0.01, 0.5, 33)[:, None] * directions(33))
    expected = model.forward(inputs)
    own = {name: values.copy() for name, values in inputs.items()}
    outputs = {name: own[f"{name}~1"] for name in UNKNOWNS}
    call = model.bind(own, outputs, report={"status": True, "rescue_solves": True})
    assert call.run() == 0
    for name in UNKNOWNS:
        np.testing.assert_array_equal(own[f"{name}~1"], expected[name])
    assert (call.report["rescue_solves"] > 0).any() and (call.report["status"] == 0).all()
    model.options["rescue"] = 0
    own |= {name: values.copy() for name, values in inputs.items()}
    assert model.bind(own, report=True).run() == 2


def test_a_history_rescues_what_its_steps_rescue() -> None:
    model = shipped("chaboche", 100, threads=2)
    times = np.arange(4.0)
    strain = np.array([0.0, 0.5, 0.1, -0.4])[:, None, None] * directions(150)
    results = drive(model, times, {"strain": strain}, report=True, least_step=1.0, progress=False)
    state, most = model.state(150), 0
    for step in range(1, len(times)):
        inputs = state.inputs(strain=strain[step], t=times[step])
        outputs, report = model.evaluate(inputs)
        np.testing.assert_array_equal(results["stress"][step], outputs["stress"])
        np.testing.assert_array_equal(results["report.iterations"][step], report["iterations"])
        most = max(most, report["rescue_solves"].max())
        state.advance(outputs)
    assert most > 0


HYPOTHESES = {"tridimensional": 6, "plane_strain": 4, "uniaxial": 1}


@pytest.mark.parametrize("hypothesis, components", HYPOTHESES.items())
def test_solves_are_told_under_a_hypothesis(hypothesis: str, components: int) -> None:
    model = Model(examples.path("chaboche"), hypothesis=hypothesis)
    strain = 0.5 * np.eye(components)[:1]
    for rescue in (0, 100, 0):
        model.options["rescue"] = rescue
        _, report = model.evaluate(model.state(1).inputs(strain=strain, t=1.0))
        assert (report["status"][0] == 0) == (rescue > 0)
        assert rescue == 0 or report["rescue_solves"][0] > 0


@pytest.mark.parametrize("kernels", ["off", "auto"])
def test_a_model_that_cuts_its_increments_does_so_first(artifacts: Artifacts, kernels: str) -> None:
    """What fails in substeps, too, is solved in one step."""
    model = load(artifacts, "substepping")
    inputs = repeated(state_of("substepping", model), 12)
    model.options.update({"kernels": kernels, "miters": 7})
    inputs["strain"] = inputs["strain"] + np.linspace(0.0, 0.4, 12)[:, None] * directions(12)
    _, plain = model.evaluate(inputs)
    model.options["rescue"] = 100
    found, report = model.evaluate(inputs)
    np.testing.assert_array_equal(report["rescue_solves"] > 0, plain["status"] > 1)
    assert (plain["status"] > 1).any() and (report["status"] == 0).all()
    blocks = model.jacobian(inputs)[1]["stress"]["strain"]
    step = 1e-6
    for k in range(6):
        moved = {**inputs, "strain": inputs["strain"] + step * np.eye(6)[k]}
        slope = (model.forward(moved)["stress"] - found["stress"]) / step
        some = plain["status"] > 1
        error = np.abs(blocks[..., k] - slope)[some].max()
        assert error <= 1e-3 * np.abs(blocks[some]).max()


def test_a_fixed_batch_is_rescued_in_whole_batches(artifacts: Artifacts) -> None:
    model = load(artifacts, "elasticity_static")
    model.options["rescue"] = 10
    assert model.forward({"strain": 1e-3 * directions(2)})["stress"].shape == (2, 6)


@pytest.mark.parametrize("runtime", ["builtin", pytest.param("libtorch", marks=needs_libtorch)])
def test_points_that_devices_share_are_rescued(runtime: str) -> None:
    devices = {r: Device("cpu", 5, runtime=r) for r in ("builtin", runtime)}.values()
    shared = Model(PREBUILT / "combined_hardening", scheduler=Scheduler([*devices]))
    shared.options.update({"rescue": 100, "kernels": "off", "miters": 7})
    alone = packaged(miters=7)
    inputs = from_rest(alone, 0.5 * directions(24))
    (found, told), (expected, report) = shared.evaluate(inputs), alone.evaluate(inputs)
    assert (told["status"] == 0).all()
    np.testing.assert_array_equal(told["rescue_solves"] > 0, report["rescue_solves"] > 0)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-7 * np.abs(values).max())


# ---- where it is not ----


@needs_libtorch
def test_tensors_of_a_device_are_refused() -> None:
    model = Model(PREBUILT / "combined_hardening", runtime="tensors")
    model.options["rescue"] = 100
    with pytest.raises(FatalError, match="set rescue = 0"):
        model.forward(from_rest(model, 0.01 * directions(2)))


def test_a_batch_that_converges_as_a_whole_is_refused() -> None:
    for model in (shipped("chaboche"), packaged()):
        model.options["convergence"] = "batch"
        with pytest.raises(FatalError, match="convergence = point, or rescue = 0"):
            model.forward(from_rest(model, 0.01 * directions(2)))


def test_a_solver_of_the_caller_is_refused() -> None:
    model = packaged()
    with pytest.raises(FatalError, match="set rescue = 0"):
        model.forward(from_rest(model, 0.01 * directions(2)), solver=Newton.like(model))


def test_the_log_tells_how_often(caplog: pytest.LogCaptureFixture) -> None:
    model = shipped("chaboche")
    with caplog.at_level("INFO", logger="neml2_capi.newton"):
        model.forward(from_rest(model, 0.5 * directions(30)))
    told = [each.message for each in caplog.records if "rescued" in each.message]
    assert len(told) == 1 and "points that had not converged" in told[0]
