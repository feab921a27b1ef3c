"""neml2_capi.fit: constants of a law from measurements, with what may be trusted of them."""

from __future__ import annotations

import importlib.util
import os
import pickle
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from kernel_setup import native_target
from numpy.typing import NDArray

from neml2_capi import ConvergenceError, FatalError, Model, UnknownNameError, examples, experiments
from neml2_capi import fit as fitting
from neml2_capi.fit import Experiment, LogDensity, Parameter, Problem, averaged, profile
from neml2_capi.fit.cycles import cycles, ratcheting, reversals
from neml2_capi.fit.terms import terms

pytestmark = pytest.mark.numbers
pytest.importorskip("scipy")

Array = NDArray[np.float64]


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control finds stresses to round-off, so that differences of results tell more."""
    monkeypatch.setattr("neml2_capi.driver.control.TOLERANCE", 1e-13)


TRUTH = {"E": 180e3, "yield_stress": 120.0}
TIMES = np.linspace(0.0, 10.0, 17)
STRAIN = 0.006 * TIMES / 10
START = {"E": Parameter(220e3, log=True), "yield_stress": Parameter(150.0, lower=50, upper=400)}


@pytest.fixture(scope="module")
def steel() -> Iterator[Model]:
    with Model(examples.path("isotropic_hardening")) as model:
        yield model


def pulled(model: Model, strain: Any = STRAIN, times: Any = TIMES, **truth: float) -> Array:
    results = experiments.tension(model, times, strain, parameters={**TRUTH, **truth})
    stress: Array = results["stress"][:, 0]
    return stress


def tension(model: Model, **options: Any) -> Experiment:
    truth = {key: options.pop(key) for key in TRUTH if key in options}
    return Experiment.of(
        "tension", t=TIMES, strain=STRAIN, stress=pulled(model, **truth), **options
    )


def cycled(model: Model, loss: Any = "values") -> Experiment:
    """Stress cycles about a mean."""
    times = np.linspace(0.0, 10.0, 21)
    stress = 2 * times + 150 * np.sin(2 * np.pi * times / 5)
    results = experiments.uniaxial(model, times, stress, parameters=TRUTH)
    strain = results["strain"][:, 0]
    return Experiment.of(
        "cycles", t=times, strain=strain, stress=stress, control="stress", loss=loss
    )


def is_truth(found: fitting.Fit, within: float = 1e-6) -> None:
    for name, value in TRUTH.items():
        assert found.parameters[name] == pytest.approx(value, rel=within), name


@pytest.mark.parametrize("method", ["least_squares", "L-BFGS-B"])
def test_constants_are_found_again(steel: Model, method: str) -> None:
    problem = Problem(steel, [tension(steel), cycled(steel)], START)
    options: dict[str, Any] = {"options": {"ftol": 1e-15, "gtol": 1e-12}}
    options = {} if method == "least_squares" else options
    found = problem.solve(method, **options)
    is_truth(found, 1e-5)
    assert found.success and not found.unseen and not found.failures
    assert found.curves[0]["stress.xx"] == pytest.approx(pulled(steel), abs=0.01)


@pytest.mark.parametrize(
    "loss", ["values", "curve", "peaks", "ratcheting", ("values", "curve", "ratcheting")]
)
def test_derivatives_of_each_loss_are_exact(steel: Model, loss: Any) -> None:
    """By differences, least squares and adjoints alike, at a place between kinks."""
    tests = (
        [cycled(steel, loss)]
        if loss == "ratcheting"
        else [
            cycled(steel, loss),
            tension(steel, loss=[e for e in np.atleast_1d(loss) if e != "ratcheting"]),
        ]
    )
    problem = Problem(steel, tests, {**START, "E": Parameter(2e5, prior=(1.9e5, 1e4))})
    place, step = problem.space.start, 1e-6
    jacobian = problem.jacobian(place)
    for column, row in enumerate(np.eye(2)):
        ahead, behind = (problem.residuals(place + s * step * row) for s in (1, -1))
        expected = (ahead - behind) / (2 * step)
        np.testing.assert_allclose(
            jacobian[:, column], expected, atol=2e-6 * np.abs(expected).max()
        )
    loss_there, gradient = problem.loss(place)
    residuals = problem.residuals(place)
    assert loss_there == pytest.approx(residuals @ residuals / 2)
    np.testing.assert_allclose(gradient, jacobian.T @ residuals, rtol=1e-7)


def test_what_the_data_do_not_see_is_named(steel: Model) -> None:
    """An elastic test tells E alone."""
    elastic = Experiment.of("elastic", strain=STRAIN / 20, stress=180e3 * STRAIN / 20, t=TIMES)
    found = Problem(steel, [elastic], START).solve()
    assert found.parameters["E"] == pytest.approx(180e3, rel=1e-6)
    assert [each.is_seen for each in found.directions] == [False, True]
    assert "yield_stress is not seen by these data at all" in str(found)
    assert found.deviations["yield_stress"] == np.inf
    # A prior's deviation is told if data say nothing.
    known = Problem(steel, [elastic], {**START, "yield_stress": Parameter(150, prior=(140, 10))})
    sure = known.solve()
    assert sure.deviations["yield_stress"] == pytest.approx(10, rel=1e-6)
    assert sure.parameters["yield_stress"] == pytest.approx(140, rel=1e-6)


def test_noise_becomes_a_deviation_and_a_profile(steel: Model) -> None:
    random = np.random.default_rng(3)
    noise = 2.0
    stress = pulled(steel) + noise * random.normal(size=len(TIMES))
    test = Experiment.of("noisy", t=TIMES, strain=STRAIN, stress=stress, deviation=noise)
    found = Problem(steel, [test], START).solve()
    for name, value in TRUTH.items():
        assert abs(found.parameters[name] - value) < 4 * found.deviations[name]
    held = profile(found, "yield_stress")
    width = 1.96 * found.deviations["yield_stress"]  # nearly linear, nearly symmetric
    low, high = held.interval
    assert (high - low) / 2 == pytest.approx(width, rel=0.15)
    assert low < found.parameters["yield_stress"] < high
    density = LogDensity(found.problem)
    value, gradient = density.value_and_gradient(found.moved)
    assert value == pytest.approx(-found.cost)
    scale = np.sqrt(np.diag(np.linalg.inv(found.covariance)))
    assert np.abs(gradient).max() < 1e-3 * scale.max() * 2e5
    with pytest.raises(FatalError, match="scatter is needed"):
        LogDensity(Problem(steel, [tension(steel)], START))


def test_each_temperature_has_its_own_yield_stress(steel: Model) -> None:
    tests = [
        tension(steel, labels={"temperature": 20}),
        tension(steel, yield_stress=90.0, labels={"temperature": 500}),
    ]
    per = Parameter(150.0, log=True, per="temperature")
    found = Problem(steel, tests, {**START, "yield_stress": per}).solve()
    expected = {"E": 180e3, "yield_stress[20]": 120.0, "yield_stress[500]": 90.0}
    assert found.parameters == pytest.approx(expected, rel=1e-6)
    with pytest.raises(FatalError, match="has a value for each temperature"):
        found.apply()
    with pytest.raises(FatalError, match="the experiment 'tension' has no such label"):
        Problem(steel, [tension(steel)], {"yield_stress": per})


@pytest.mark.full("many searches")
def test_searches_from_many_places_find_one_minimum(steel: Model) -> None:
    bounded = {
        "E": Parameter(220e3, 50e3, 500e3, log=True),
        "yield_stress": Parameter(150.0, 30.0, 400.0),
    }
    problem = pickle.loads(pickle.dumps(Problem(steel, [tension(steel)], bounded)))
    pool = partial(ProcessPoolExecutor, 2, mp_context=get_context("spawn"))
    found = problem.solve(starts=4, executor=pool)
    is_truth(found)
    assert len(found.costs) == 4


def test_a_point_that_fails_costs_a_penalty_and_is_told(steel: Model) -> None:
    problem = Problem(steel, [tension(steel)], {"E": Parameter(2e5), "yield_stress": 150.0})
    worst = problem.residuals(problem.space.start * [np.inf, 1.0])
    assert np.isfinite(worst).all() and (worst >= 10).all()
    assert problem.failures[0].startswith("tension, E = inf, yield_stress = 150: ")
    assert not problem.jacobian(problem.space.start * [np.inf, 1.0]).any()


def test_missing_values_are_left_out(steel: Model) -> None:
    stress = pulled(steel)
    stress[::2] = np.nan
    strain = STRAIN.copy()
    strain[7] = np.nan
    test = Experiment.of("gaps", t=TIMES, strain=strain, stress=stress)
    assert len(test.t) == len(TIMES) - 1
    found = Problem(steel, [test], START).solve()
    assert len(found.residuals) == 7
    assert found.parameters["yield_stress"] == pytest.approx(120, rel=0.01)


def test_repeated_tests_weigh_by_their_scatter(steel: Model) -> None:
    stress, random = pulled(steel), np.random.default_rng(5)
    tests = [
        Experiment.of("r", t=TIMES, strain=STRAIN, stress=stress + random.normal(size=17))
        for _ in range(5)
    ]
    mean = averaged(tests)
    np.testing.assert_allclose(mean.stress["xx"], np.mean([t.stress["xx"] for t in tests], axis=0))
    assert np.median(mean.deviation) == pytest.approx(1 / np.sqrt(5), rel=0.3)
    with pytest.raises(FatalError, match="must be two at least"):
        averaged(tests[:1])
    # Rows that are no times: the second test has half of them.
    rows = [Experiment.of(f"{n}", strain=STRAIN[::n], stress=stress[::n]) for n in (1, 2)]
    with pytest.raises(FatalError, match="'1' and '2' do not repeat one test: at t = "):
        averaged(rows)


def test_ordered_parameters_stay_so(steel: Model) -> None:
    chain = {"yield_stress": Parameter(100.0, 50.0, 150.0), "E": Parameter(2e5)}
    problem = Problem(steel, [tension(steel)], chain, ordered=[("yield_stress", "E")])
    values, slopes = problem.space.outside(np.array([1.2, -2.0]))
    assert values[1] > values[0] == 120.0
    step = 1e-6
    ahead, _ = problem.space.outside(np.array([1.2, -2.0 + step]))
    assert slopes[1, 1] == pytest.approx((ahead[1] - values[1]) / step, rel=1e-5)
    is_truth(problem.solve(), 1e-5)
    for names, message in (
        (("E", "yield_stress"), "which has bounds"),
        (("yield_stress", "F"), "unknown ordered parameter 'F'"),
    ):
        with pytest.raises(FatalError, match=message):
            Problem(steel, [tension(steel)], chain, ordered=[names])


def test_what_is_wrong_is_said_in_words(steel: Model) -> None:
    stress = pulled(steel)
    given: dict[str, Any] = {"t": TIMES, "strain": STRAIN, "stress": stress}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"strain": 100 * STRAIN}, "it seems to be in percent"),
        ({"strain": stress, "stress": STRAIN}, "they seem to be exchanged"),
        ({"stress": None}, "stress of 't' is missing"),
        ({"t": TIMES[::-1]}, "does not increase after row 0"),
        ({"stress": stress[:-1]}, r"has the shape \(16,\); expected \(17,\)"),
        ({"loss": "peak"}, "loss of 't' must be of values, curve"),
        ({"control": "force"}, "control of 't' must be 'strain' or 'stress'"),
        ({"rate": 1.0}, "rate of 't' is given beside times"),
        ({"stress": ["a"] * 17}, "has what is no number"),
        ({"t": ["a"] * 17}, "t of 't' has what is no number"),
        ({"stress": stress + 0j}, "stress xx of 't' has complex numbers"),
        ({"stress": np.where(TIMES[3] == TIMES, np.inf, stress)}, "is infinite in row 3"),
        ({"strain": np.where(TIMES[4] == TIMES, -np.inf, STRAIN)}, "is infinite in row 4"),
        ({"deviation": 0.0}, "deviation of 't' must be above 0; got 0"),
        ({"deviation": np.nan}, "deviation of 't' has NaN in a row that counts"),
        ({"deviation": np.ones(3)}, r"deviation of 't' has the shape \(3,\)"),
        ({"weight": -1.0}, "weight of 't' must be a finite number, 0 at least; got -1"),
        ({"forces": {"temperature": np.ones(3)}}, "forces temperature of 't' has the shape"),
        ({"forces": {"temperature": np.inf}}, "forces temperature of 't' is infinite"),
    ]
    for change, message in wrong:
        with pytest.raises(FatalError, match=message):
            Experiment.of("t", **{**given, **change})
    for change, message in (
        ({"stress": stress / 1e3}, "seems to be in GPa, and the model in MPa"),
        ({"stress": stress * 1e6}, "seems to be in Pa"),
        ({"stress": -stress}, "xx of 't' has the sign opposite to the model's"),
    ):
        test = Experiment.of("t", **{**given, **change})
        with pytest.raises(FatalError, match=message):
            Problem(steel, [test], START)
    percent = cycled(steel)
    percent.strain["xx"] *= 100
    with pytest.raises(FatalError, match=r"strain of 'cycles' .* seems to be in %"):
        Problem(steel, [percent], START)
    with pytest.raises(UnknownNameError, match="unknown parameter 'F'"):
        Problem(steel, [tension(steel)], {"F": 1.0})
    with pytest.raises(FatalError, match="E begins at 1, outside its bounds 2 and 3"):
        Problem(steel, [tension(steel)], {"E": Parameter(1, 2, 3)})
    with pytest.raises(ConvergenceError, match="where the search begins, in 'tension'"):
        Problem(steel, [tension(steel)], {"E": Parameter(1e300)})


@pytest.mark.parametrize(("unit", "factor"), [("%", 100), ("permille", 1e3), ("microstrain", 1e6)])
@pytest.mark.parametrize("largest", [2e-7, 2e-4, 5e-4, 1e-3, 3e-3])
def test_a_small_strain_in_another_unit_is_found(
    steel: Model, unit: str, factor: float, largest: float
) -> None:
    """Such a strain is possible, and gives a modulus that is smaller by the unit."""
    if factor * largest > 0.4 and unit != "microstrain":
        return  # more than any small strain, whatever was measured
    strain = largest * TIMES / TIMES[-1]
    stress = experiments.tension(steel, TIMES, strain)["stress"][:, 0]
    begin = {"E": Parameter(150e3, log=True)}
    Problem(steel, [Experiment.of("a", t=TIMES, strain=strain, stress=stress)], begin)
    with pytest.raises(FatalError, match=f"seems to be in {unit}"):
        test = Experiment.of("a", t=TIMES, strain=factor * strain, stress=stress)
        Problem(steel, [test], begin)


def test_reversals_cycles_and_ratcheting() -> None:
    """A triangle of two cycles about a growing mean."""
    signal = np.array([0, 1, 2, 1, 0, -1, -2, -1, 0, 1, 2, 1, 0, -1, -2, 0, 2.0])
    assert reversals(signal).tolist() == [2, 6, 10, 14, 16]
    assert reversals(np.zeros(3)).tolist() == [2]
    strain = signal + np.linspace(0, 1.6, 17)
    found = cycles(strain, signal, "stress")
    assert [(c.first, c.last) for c in found] == [(2, 10), (10, 16)]
    assert ratcheting(strain, signal).tolist() == pytest.approx([0.8, 1.5])
    # A parallelogram of heights 2 and 1: its area.
    loop = np.array([0, 1, 0, -1, 0, 1.0]), np.array([0, 1, 1, -1, -1, 1.0])
    assert cycles(*loop)[0].area == pytest.approx(2.0)


def test_reversals_of_a_measured_signal() -> None:
    """Noise and missing values are no reversals; a cycle that the test does not end is none."""
    times = np.linspace(0, 4.25, 426)
    clean = np.sin(2 * np.pi * times)
    noisy = clean + 3e-3 * np.random.default_rng(3).normal(size=len(times))
    turns = [25, 75, 125, 175, 225, 275, 325, 375, 425]
    assert reversals(clean).tolist() == turns
    assert np.abs(reversals(noisy) - turns).max() <= 5
    noisy[[0, 30, 75, 300]] = np.nan
    assert np.abs(reversals(noisy) - turns).max() <= 5
    assert reversals(noisy, smallest=0.0).size > len(turns)
    assert reversals(np.full(4, np.nan)).tolist() == [3]
    assert [(c.first, c.last) for c in cycles(clean, clean)] == [
        (25, 125),
        (125, 225),
        (225, 325),
        (325, 425),
    ]
    assert len(cycles(clean[:400], clean[:400])) == 3


def test_cycles_of_an_ideally_plastic_bar() -> None:
    """Peaks are the yield stress s, and the area of a loop is 4 s (a - s / E)."""
    modulus, limit, amplitude = 200e3, 160.0, 0.004  # of which steps of 80 MPa reach the limit
    rows = np.arange(91) % 40
    strain = np.interp(rows, [0, 10, 30, 40], amplitude * np.array([0, 1, -1, 0]))
    stress = np.zeros(len(strain))
    for row, step in enumerate(np.diff(strain)):
        stress[row + 1] = np.clip(stress[row] + modulus * step, -limit, limit)
    found = cycles(strain, stress)
    assert [(c.first, c.last) for c in found] == [(10, 50), (50, 90)]
    for cycle in found:
        assert (cycle.maximum, cycle.minimum) == pytest.approx((limit, -limit))
        assert (cycle.mean, cycle.amplitude) == pytest.approx((0, limit), abs=1e-9)
        assert cycle.area == pytest.approx(4 * limit * (amplitude - limit / modulus))


def test_a_distance_to_a_curve_is_along_its_normal(steel: Model) -> None:
    """Distance to a straight line, in axes that are scaled by their range."""
    test = Experiment.of(
        "line", t=[0.0, 1, 2], strain=[0.0, 1e-3, 2e-3], stress=[0.0, 300, 400.0], loss="curve"
    )
    line = {"strain.xx": test.strain["xx"], "stress.xx": np.array([0.0, 200.0, 400.0])}
    found = terms(test, line)
    # (0.5, 0.75) beside y = x
    np.testing.assert_allclose(np.abs(found.residuals), [0, 0.25 / np.sqrt(2), 0], atol=1e-12)


def test_a_fit_is_written_and_goes_back_in(steel: Model, tmp_path: Path) -> None:
    found = Problem(steel, [tension(steel)], START).solve()
    text = found.to_toml()
    assert '"yield_stress" = { value = 1' in text and "lower = 50.0, upper = 400.0" in text
    found.save(tmp_path / "fitted.toml")
    assert (tmp_path / "fitted.toml").read_text() == text
    found.save_artifact(tmp_path / "fitted")
    with Model(tmp_path / "fitted") as again:
        for name, value in found.parameters.items():
            assert float(again[name]) == value
    with pytest.raises(FatalError, match="exists; name a new folder"):
        found.save_artifact(tmp_path / "fitted")


@pytest.mark.full("matplotlib")
def test_a_report_is_one_file_with_figures(steel: Model, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    elastic = Experiment.of("<elastic>", strain=STRAIN / 20, stress=180e3 * STRAIN / 20, t=TIMES)
    found = Problem(steel, [elastic, cycled(steel)], START).solve()
    found.report(tmp_path / "fit.html")
    page = (tmp_path / "fit.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    low, high = found.interval("E")
    assert f"<td>{low:.6g} to {high:.6g}</td>" in page
    assert "&lt;elastic&gt;" in page and "<elastic>" not in page and "http" not in page


@pytest.mark.full("jax")
def test_a_log_density_in_jax(steel: Model) -> None:
    jax = pytest.importorskip("jax")
    problem = Problem(steel, [tension(steel, deviation=2.0)], START)
    density = LogDensity(problem)
    place = np.array(problem.space.start)
    jax.config.update("jax_enable_x64", True)
    try:
        value, gradient = jax.jit(jax.value_and_grad(density.jax()))(place)
    finally:
        jax.config.update("jax_enable_x64", False)
    expected = density.value_and_gradient(place)
    assert float(value) == pytest.approx(expected[0])
    np.testing.assert_allclose(gradient, expected[1])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chaboche's law with its constants as parameters, as examples/fit_316l.py compiles it."""
    if not os.environ.get("NEML2_CAPI_COMPILER") and not importlib.util.find_spec("neml2"):
        pytest.skip("there is no neml2 to compile with")
    folder = tmp_path_factory.mktemp("compiled")
    told = subprocess.run(
        [sys.executable, ROOT / "examples" / "fit_316l.py", "--compile"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    command = [sys.executable, "-m", "neml2_capi.cli", *shlex.split(told)[1:]]
    command += ["--target", native_target(), "--output-dir", str(folder), "-q"]
    subprocess.run(command, check=True)
    return folder / "chaboche"


@pytest.mark.everything("it compiles a law, and fits it to long tests")
def test_a_steel_at_two_temperatures_and_its_posterior(compiled: Path) -> None:
    """Published constants come back within 5 %: the law has its own steps and overstress."""
    program = ROOT / "examples" / "fit_316l.py"
    done = subprocess.run(
        [sys.executable, program, compiled], capture_output=True, text=True, check=True
    )
    pairs = re.findall(r"^\S+: (\S+), published (\S+)$", done.stdout, re.MULTILINE)
    assert len(pairs) == 13
    for found, published in pairs:
        assert float(found) == pytest.approx(float(published), rel=0.05)
    if importlib.util.find_spec("numpyro"):
        program = ROOT / "examples" / "posterior_numpyro.py"
        subprocess.run([sys.executable, program, compiled], check=True)


@pytest.mark.everything("it compiles a law, and fits it to two tests")
def test_a_program_fits_measured_files(compiled: Path, tmp_path: Path) -> None:
    """Files as RESSPyLab has them, with repeated rows and long steps."""
    t = np.linspace(0.0, 20.0, 81)
    strain = 0.012 * np.sin(2 * np.pi * t / 10) * t / 20
    files = [tmp_path / "1.csv", tmp_path / "2.csv"]
    with Model(compiled) as steel:
        stress = experiments.tension(steel, t, strain)["stress"][:, 0]
    for file, count in zip(files, (81, 61), strict=True):
        rows = np.repeat(np.column_stack([strain, stress])[:count], 2, axis=0)
        np.savetxt(file, rows, delimiter=",", header="e_true,Sigma_true", comments="")
    program = str(ROOT / "examples" / "fit_measured.py")
    command = [sys.executable, program, str(compiled), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = dict(re.findall(r"^(fitted|published): squares of (\S+)", done.stdout, re.MULTILINE))
    assert float(found["fitted"]) < 50 < 1000 < float(found["published"])


@pytest.mark.everything("it compiles a law, and fits it 400 times")
def test_six_constants_are_within_two_deviations_of_the_truth(compiled: Path) -> None:
    """Cycles and a tension test that saturates both back stresses: 95 of 100 times each."""
    truth = {"yield_stress": 150.0, "R": 60.0, "C1": 40e3, "g1": 400.0, "C2": 4e3, "g2": 40.0}
    guess = {name: Parameter(1.2 * value, log=True) for name, value in truth.items()}
    t, repetitions, random = np.linspace(0.0, 40.0, 81), 400, np.random.default_rng(0)
    amplitude = np.where(t < 20, 0.006, 0.012)
    strains = {"cycles": amplitude * np.sin(2 * np.pi * t / 10), "tension": 0.1 * t / 40}
    inside = dict.fromkeys(truth, 0)
    with Model(compiled) as steel:

        def stress(strain: Array) -> Array:
            clean = experiments.tension(steel, t, strain, parameters=truth)["stress"][:, 0]
            return np.asarray(clean)

        def test(name: str) -> Experiment:
            noise = 0.01 * np.abs(stresses[name]).max() * random.normal(size=len(t))
            return Experiment.of(name, t=t, strain=strains[name], stress=stresses[name] + noise)

        stresses = {name: stress(strain) for name, strain in strains.items()}
        for _ in range(repetitions):
            found = Problem(steel, [test(name) for name in strains], guess).solve()
            assert not found.unseen
            for name, value in truth.items():
                inside[name] += abs(found.parameters[name] - value) < 2 * found.deviations[name]
    # Two deviations of a normal distribution hold 95.4 %; chance takes 1 % of 400.
    assert min(inside.values()) >= 0.92 * repetitions, inside
    assert sum(inside.values()) >= 0.94 * repetitions * len(truth), inside
