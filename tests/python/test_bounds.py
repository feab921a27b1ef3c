"""An artifact says where its law is valid, and what is beyond is told, or fails at its points."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounded import FIVE_PERCENT, bounded, quiet  # noqa: F401  (a fixture)
from native import PREBUILT
from numpy.typing import NDArray

from neml2_capi import (
    ConvergenceError,
    Device,
    FatalError,
    Model,
    Scheduler,
    UnknownNameError,
    drive,
    examples,
)
from neml2_capi._ffi.library import lib
from neml2_capi.artifact import bounds as files
from neml2_capi.kernels.packed import kernels_alone

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]
OUT = lib.NEML2_OUT_OF_BOUNDS
POINTS = 1000
#: The points that are beyond, and those that are not.
BAD = np.array([7, 371, 999])
GOOD = np.setdiff1d(np.arange(POINTS), BAD)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Model]:
    """Open a shipped law with bounds."""

    def made(name: str = "elasticity", source: Path | None = None, **options: Any) -> Model:
        bounds, physical = options.pop("bounds", {}), options.pop("physical", None)
        policy = options.pop("policy", None)
        path = bounded(tmp_path, source or examples.path(name), bounds, physical)
        model = Model(path, **options)
        if policy:
            model.options["bounds"] = policy
        return model

    return made


def strains() -> Array:
    """Strains of 0.1 %, and three points of 7 % in one component."""
    strain = np.random.default_rng(0).uniform(-1e-3, 1e-3, (POINTS, 6))
    strain[BAD, [0, 3, 5]] = [0.07, -0.07, 0.07]
    return strain


def state(model: Model, points: int = POINTS, seconds: float = 1.0) -> dict[str, Array]:
    """One step from rest."""
    rest = {v.name: np.zeros((points, *v.point_shape)) for v in model.inputs}
    strain = strains()[:points]
    return rest | {"strain": strain} | ({"t": np.full(points, seconds)} if "t" in rest else {})


# ---- what is told ----


def test_a_model_tells_its_bounds(make: Callable[..., Model]) -> None:
    shear = [-0.05] * 3 + [None] * 3
    model = make(bounds={"strain": (shear, 0.05), "E": (1e3, None)}, physical={"E": (0, None)})
    strain, modulus, physical = model.bounds
    assert (strain.variable, modulus.variable, physical.variable) == ("strain", "E", "E")
    assert [bound.physical for bound in model.bounds] == [False, False, True]
    np.testing.assert_array_equal(strain.lower, [-0.05] * 3 + [-np.inf] * 3)
    np.testing.assert_array_equal(strain.upper, [0.05] * 6)
    assert modulus.lower.shape == () and modulus.lower == 1e3 and modulus.upper == np.inf
    told = model.describe()["bounds"]
    assert told[0]["lower"] == shear and told[2] == {
        "variable": "E",
        "physical": True,
        "lower": [0],
        "upper": [None],
    }


def test_a_law_without_bounds_has_none_and_no_file() -> None:
    path = examples.path("elasticity")
    with Model(path) as model:
        assert model.bounds == () and model.describe()["bounds"] == []
    assert not (path / files.FILE).exists()


def test_bounds_leave_the_checksum_as_it_is(make: Callable[..., Model]) -> None:
    with Model(examples.path("elasticity")) as free:
        assert make(bounds=FIVE_PERCENT).checksum == free.checksum


def test_an_archive_in_memory_has_the_bounds(tmp_path: Path) -> None:
    path = bounded(tmp_path, examples.path("elasticity"), FIVE_PERCENT)
    assert b"bounds.json" in (kernels_alone(path) or b"")
    assert b"bounds.json" not in (kernels_alone(examples.path("elasticity")) or b"")


def test_a_bound_tells_which_values_are_beyond(make: Callable[..., Model]) -> None:
    (bound,) = make(bounds=FIVE_PERCENT).bounds
    np.testing.assert_array_equal(np.flatnonzero(bound.beyond(strains())), BAD)
    assert not bound.beyond([0.05, -0.05, np.nan, 0, 0, 0])
    single = np.float32(bound.upper) * np.eye(6, dtype=np.float32)
    assert float(single.max()) > 0.05 and not bound.beyond(single).any()
    assert bound.beyond(np.nextafter(single, np.float32(1))).all()


# ---- the policy ----


def test_a_warning_names_the_variable_the_first_point_its_value_and_how_many(
    make: Callable[..., Model], caplog: pytest.LogCaptureFixture
) -> None:
    model = make(bounds=FIVE_PERCENT)
    assert model.options["bounds"] == "warn"
    with caplog.at_level(logging.WARNING):
        stress = model.forward({"strain": strains()})["stress"]
    with Model(examples.path("elasticity")) as free:
        np.testing.assert_array_equal(stress, free.forward({"strain": strains()})["stress"])
    (record,) = caplog.records
    for words in (
        "of point 7,",
        "'strain', component xx",
        "is 0.07, above 0.05",
        "3 of 1000 points",
    ):
        assert words in record.getMessage()


def test_the_log_has_the_first_second_and_fourth_time(
    make: Callable[..., Model], caplog: pytest.LogCaptureFixture
) -> None:
    model = make(bounds=FIVE_PERCENT)
    told = []
    for _ in range(9):
        caplog.clear()
        model.forward({"strain": strains()})
        told.append(len(caplog.records))
    assert told == [1, 1, 0, 1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize("within", [{}, {"chunk": 64}, {"threads": 2, "chunk": 100}])
def test_points_beyond_fail_and_the_others_have_the_same_bits(
    make: Callable[..., Model], within: Mapping[str, float]
) -> None:
    model = make(bounds=FIVE_PERCENT, policy="fail")
    model.options.update(within)
    with pytest.raises(ConvergenceError) as caught:
        model.forward({"strain": strains()})
    error = caught.value
    assert error.status == OUT and error.recoverable
    np.testing.assert_array_equal(np.flatnonzero(error.report["status"]), BAD)
    assert set(error.report["status"][BAD]) == {OUT}
    np.testing.assert_array_equal(error.report["suggested_cut"][BAD], 0.5)
    with Model(examples.path("elasticity")) as free:
        expected = free.forward({"strain": strains()})["stress"]
    np.testing.assert_array_equal(error.outputs["stress"][GOOD], expected[GOOD])
    assert np.isnan(error.outputs["stress"][BAD]).all()
    for words in ("3 of 1000 points are out of bounds", "point 7", "'strain'", "0.07", "0.05"):
        assert words in str(error)


def test_off_says_nothing(make: Callable[..., Model], caplog: pytest.LogCaptureFixture) -> None:
    make(bounds=FIVE_PERCENT, policy="off").forward({"strain": strains()})
    assert not caplog.records


def test_physical_bounds_fail_whatever_the_option(make: Callable[..., Model]) -> None:
    model = make(physical=FIVE_PERCENT, policy="off")
    with pytest.raises(ConvergenceError, match="physical upper bound, beyond which"):
        model.forward({"strain": strains()})


def test_points_beyond_physical_bounds_are_not_told_to_be_evaluated(
    make: Callable[..., Model], caplog: pytest.LogCaptureFixture
) -> None:
    """Three points are beyond the bounds of validity, and one of them was evaluated."""
    model = make(bounds={"strain": (-0.01, 0.01)}, physical=FIVE_PERCENT)
    strain = np.zeros((4, 6))
    strain[1:, 0] = 0.07, 0.03, 0.06
    with pytest.raises(ConvergenceError, match="2 of 4 points are out of bounds") as caught:
        model.forward({"strain": strain})
    failures = [each for each in caplog.records if each.name == "neml2_capi.newton"]
    assert len(failures) == 1  # though the call was made twice
    with pytest.raises(ConvergenceError):
        model.forward({"strain": strain[1:2]})
    messages = {record.getMessage() for record in caplog.records}
    (told,) = [each for each in messages if "The law was evaluated all the same" in each]
    for words in ("of point 2,", "is 0.03, above 0.01", "the only one of 4 points"):
        assert words in told
    assert caught.value.report["status"].tolist() == [0, OUT, 0, OUT]


def test_values_on_a_bound_are_within_and_nan_is_not_finite(make: Callable[..., Model]) -> None:
    model = make(bounds=FIVE_PERCENT, policy="fail")
    model.forward({"strain": np.full(6, 0.05)})
    with pytest.raises(ConvergenceError) as caught:
        model.forward({"strain": [[0.06, 0, 0, 0, 0, 0], [np.nan, 0, 0, 0, 0, 0]]})
    assert caught.value.report["status"].tolist() == [OUT, lib.NEML2_NON_FINITE]


def test_one_value_for_all_points_is_looked_at_once(make: Callable[..., Model]) -> None:
    model = make(bounds={"E": (1e3, 3e5)}, policy="fail")
    strain = np.zeros((4, 6))
    with pytest.raises(ConvergenceError, match="the parameter 'E' is 400000, above 300000"):
        model.forward({"strain": strain}, param_overrides={"E": 4e5})
    with pytest.raises(ConvergenceError) as caught:
        model.forward({"strain": strain}, param_overrides={"E": [2e5, 4e5, 2e5, 500.0]})
    assert caught.value.report["status"].tolist() == [0, OUT, 0, OUT]
    np.testing.assert_array_equal(caught.value.report["suggested_cut"], 1)  # no step mends it


# ---- every way of evaluation ----


@pytest.mark.parametrize("kernels", ["auto", "off"])
def test_implicit_laws_on_kernels_and_packages(make: Callable[..., Model], kernels: str) -> None:
    if kernels == "off":
        model = make(source=PREBUILT / "combined_hardening", bounds=FIVE_PERCENT, policy="fail")
    else:
        model = make("chaboche", bounds=FIVE_PERCENT, policy="fail")
    model.options["kernels"] = kernels
    inputs = state(model, 40)
    inputs["strain"][11, 2] = 0.06
    with pytest.raises(ConvergenceError) as caught:
        model.forward(inputs)
    assert np.flatnonzero(caught.value.report["status"]).tolist() == [7, 11]
    assert (caught.value.report["iterations"][[7, 11]] == 0).all()
    model.options["bounds"] = "off"
    others = np.delete(np.arange(40), [7, 11])
    expected = model.forward({name: value[others] for name, value in inputs.items()})
    for name, value in expected.items():
        np.testing.assert_array_equal(caught.value.outputs[name][others], value)


def test_derivatives_have_no_values_at_points_beyond(make: Callable[..., Model]) -> None:
    model = make("isotropic_hardening", bounds=FIVE_PERCENT, policy="fail")
    inputs = state(model, 20)
    with pytest.raises(ConvergenceError) as caught:
        model.jacobian(inputs)
    block = caught.value.derivatives["stress"]["strain"]  # type: ignore[index]
    others = np.delete(np.arange(20), 7)
    assert np.isnan(block[7]).all()
    model.options["bounds"] = "off"
    expected = model.jacobian({name: value[others] for name, value in inputs.items()})[1]
    np.testing.assert_array_equal(block[others], expected["stress"]["strain"])


def test_sums_over_points_leave_points_beyond_out(make: Callable[..., Model]) -> None:
    model = make("isotropic_hardening", bounds=FIVE_PERCENT, policy="fail")
    inputs = state(model, 20)
    cotangents = {"stress": np.ones((20, 6))}
    of_each = np.zeros(20)
    call = model.bind(inputs, cotangents=cotangents, adjoints={"E": of_each})
    call.run()
    total = np.zeros(())
    call = model.bind(inputs, cotangents=cotangents, adjoints={"E": total})
    assert call.run() == OUT
    np.testing.assert_allclose(total, np.delete(of_each, 7).sum(), rtol=1e-12)
    assert of_each[7] == 0 and total != 0


def test_a_call_leaves_what_is_beyond_as_it_was(make: Callable[..., Model]) -> None:
    model = make(bounds=FIVE_PERCENT, policy="fail")
    stress = np.full((POINTS, 6), 5.0)
    call = model.bind({"strain": strains()}, {"stress": stress})
    assert call.run() == OUT
    assert (stress[BAD] == 5).all() and (stress[GOOD] != 5).all()


def test_a_history_beyond_its_bounds_is_mended_by_no_smaller_step(
    make: Callable[..., Model],
) -> None:
    model = make(
        "isotropic_hardening", bounds={"equivalent_plastic_strain~1": (0, 0.2)}, policy="fail"
    )
    inputs = state(model, 3)
    inputs["equivalent_plastic_strain~1"][1] = 0.3
    with pytest.raises(ConvergenceError, match=r"equivalent_plastic_strain~1' is 0\.3") as caught:
        model.forward(inputs)
    assert caught.value.report["suggested_cut"].tolist() == [1, 1, 1]


def test_a_driver_cuts_the_step_that_goes_beyond(make: Callable[..., Model]) -> None:
    model = make("isotropic_hardening", bounds=FIVE_PERCENT, policy="fail")
    times = np.linspace(0, 1, 11)
    strain = np.outer(times, [0.08, -0.04, -0.04, 0, 0, 0])
    with pytest.raises(Exception, match="out of bounds"):
        drive(model, times, {"strain": strain})


def test_steps_are_told_with_the_first(
    make: Callable[..., Model], caplog: pytest.LogCaptureFixture
) -> None:
    model = make("isotropic_hardening", bounds=FIVE_PERCENT)
    times = np.linspace(0, 1, 11)
    strain = np.outer(times, [0.08, -0.04, -0.04, 0, 0, 0])
    results = drive(model, times, {"strain": strain})
    (bound,) = model.bounds
    beyond = np.flatnonzero(bound.beyond(results["strain"]))
    np.testing.assert_array_equal(beyond, [7, 8, 9, 10])
    words = r"in step (\d+) of the \d+ of this call.* above 0\.05.* Step 0 .* is row (\d+) of"
    rows = [sum(map(int, step)) for step in re.findall(words, caplog.text)]
    assert rows == [7, 9]  # of the first block, and of the next


def test_a_hypothesis_is_judged_by_the_strains_that_are_found(
    make: Callable[..., Model], caplog: pytest.LogCaptureFixture
) -> None:
    """Under plane stress zz is -nu/(1-nu) (xx + yy)."""
    model = make(bounds={"strain": ([None, None, -0.01, None, None, None], None)}, policy="fail")
    path = model._source.path
    plane = Model(path, hypothesis="plane_stress")
    plane.options["bounds"] = "fail"
    strain = np.array([[0.01, 0, 0], [0.03, 0, 0], [0.02, 0.02, 0]])
    with pytest.raises(ConvergenceError, match=r"component zz, is -0\.01") as caught:
        plane.forward({"strain": strain})
    transverse = -0.3 / 0.7 * strain[:, :2].sum(axis=1)
    np.testing.assert_array_equal(caught.value.report["status"] == OUT, transverse < -0.01)
    plane.options["bounds"] = "warn"
    outputs = plane.forward({"strain": strain})
    np.testing.assert_allclose(outputs["strain_transverse"][:, 0], transverse, rtol=1e-12)
    assert "of point 1, the input 'strain', component zz, is -0.01" in caplog.text
    assert "2 of 3 points" in caplog.text


@pytest.mark.parametrize("kernels", ["auto", "off"])
def test_points_that_fail_for_a_strain_that_is_found_keep_no_others(
    make: Callable[..., Model], kernels: str
) -> None:
    """Points within bounds have the bits that they have without bounds, and as few iterations."""
    limits = ([None, None, -0.004, None, None, None], None)
    path = make("isotropic_hardening", bounds={"strain": limits})._source.path
    model = Model(path, hypothesis="plane_stress")
    model.options.update({"bounds": "off", "kernels": kernels})
    inputs = state(model, 33)
    inputs["strain"] = np.random.default_rng(0).uniform(-1, 1, (33, 3)) * [8e-3, 8e-3, 2e-3]
    expected, free = model.evaluate(inputs)
    out = expected["strain_transverse"][:, 0] < -0.004
    assert 3 < out.sum() < 30
    model.options["bounds"] = "fail"
    with pytest.raises(ConvergenceError, match="component zz") as caught:
        model.forward(inputs)
    report, outputs = caught.value.report, caught.value.outputs
    np.testing.assert_array_equal(report["status"] == OUT, out)
    for name, value in expected.items():
        np.testing.assert_array_equal(outputs[name][~out], value[~out])
        assert np.isnan(outputs[name][out]).all()
    np.testing.assert_array_equal(report["iterations"], free["iterations"])


def test_a_strain_measure_is_judged_by_the_strain_of_the_law(make: Callable[..., Model]) -> None:
    model = make(bounds=FIVE_PERCENT)
    finite = Model(model._source.path, strain_measure="logarithmic")
    finite.options["bounds"] = "fail"
    stretches = np.array([1.04, 1.06, np.exp(0.05) - 1e-12])
    gradient = np.zeros((3, 3, 3)) + np.eye(3)
    gradient[:, 0, 0] = stretches
    with pytest.raises(ConvergenceError) as caught:
        finite.forward({"deformation_gradient": gradient})
    assert caught.value.report["status"].tolist() == [0, OUT, 0]


def test_material_axes_have_the_bounds_of_the_material(make: Callable[..., Model]) -> None:
    model = make(bounds={"strain": ([-0.05] + [None] * 5, [0.05] + [None] * 5)})
    turned = Model(model._source.path, material_axes=True)
    turned.options["bounds"] = "fail"
    turn = np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]])  # 1 is along y
    strain = np.array([[0.06, 0, 0, 0, 0, 0], [0, 0.06, 0, 0, 0, 0]])
    with pytest.raises(ConvergenceError) as caught:
        turned.forward({"strain": strain, "material_axes": np.array([turn, turn])})
    assert caught.value.report["status"].tolist() == [0, OUT]


def test_sub_batches_of_a_scheduler_are_numbered_as_one(make: Callable[..., Model]) -> None:
    model = make(bounds=FIVE_PERCENT)
    spread = Model(model._source.path, scheduler=Scheduler([Device("cpu", batch_size=128)]))
    spread.options["bounds"] = "fail"
    with pytest.raises(ConvergenceError) as caught:
        spread.forward({"strain": strains()})
    np.testing.assert_array_equal(np.flatnonzero(caught.value.report["status"]), BAD)


def test_a_rescue_is_for_the_others(make: Callable[..., Model]) -> None:
    model = make("isotropic_hardening", bounds={"strain": (-0.5, 0.5)}, policy="fail")
    model.options.update({"rescue": 100, "miters": 3})
    inputs = state(model, 4)
    inputs["strain"][1, 0], inputs["strain"][2, 0] = 0.7, 0.2
    with pytest.raises(ConvergenceError) as caught:
        model.forward(inputs)
    assert caught.value.report["status"][1] == OUT
    assert caught.value.report["rescue_solves"][1] == 0
    free = Model(examples.path("isotropic_hardening"))
    free.options.update({"rescue": 100, "miters": 3})
    others = {name: value[[0, 2, 3]] for name, value in inputs.items()}
    _, report = free.evaluate(others)
    for kind in ("status", "iterations", "rescue_solves"):
        np.testing.assert_array_equal(caught.value.report[kind][[0, 2, 3]], report[kind])


def test_a_solve_of_the_callers_tells_at_its_end(make: Callable[..., Model]) -> None:
    model = make(source=PREBUILT / "combined_hardening", bounds=FIVE_PERCENT, policy="fail")
    inputs = state(model, 9)
    solve = model.solve(inputs)
    for system in solve:
        u = system.guess()
        for _ in range(25):
            u = u + system.step(u)[0]
        system.accept(u)
    with pytest.raises(ConvergenceError, match="out of bounds") as caught:
        solve.end()
    assert np.flatnonzero(caught.value.report["status"]).tolist() == [7]


def test_the_engine_in_python_refuses_to_fail_for_bounds(make: Callable[..., Model]) -> None:
    model = make(source=PREBUILT / "elasticity", bounds=FIVE_PERCENT, engine="python")
    with pytest.raises(FatalError, match="does not look at bounds"):
        model.options["bounds"] = "fail"
    files.write(Path(model._source.path), files.from_mappings(None, FIVE_PERCENT))
    with pytest.raises(FatalError, match="does not look at physical bounds"):
        Model(model._source.path, engine="python").forward({"strain": np.zeros(6)})


# ---- parameters ----


def test_a_parameter_beyond_is_refused_or_told_when_it_is_set(
    make: Callable[..., Model], caplog: pytest.LogCaptureFixture
) -> None:
    model = make(bounds={"E": (1e5, 3e5)}, physical={"E": (0, None)})
    before = float(model.named_parameters()["E"])
    with pytest.raises(FatalError, match="'E' is -1, below 0, its physical lower bound"):
        model.set_parameter("E", -1.0)
    assert model.named_parameters()["E"] == before
    model.set_parameter("E", 4e5)
    assert "'E' is 400000, above 300000" in caplog.text
    model.options["bounds"] = "fail"
    with pytest.raises(FatalError, match="Set a value within, or the option bounds"):
        model.set_parameter("E", 5e5)
    with pytest.raises(ConvergenceError):  # what is stored counts, too
        model.forward({"strain": np.zeros(6)})


def test_an_unknown_policy_is_refused(make: Callable[..., Model]) -> None:
    with pytest.raises((FatalError, UnknownNameError), match="off warn fail"):
        make(bounds=FIVE_PERCENT).options["bounds"] = "strict"
