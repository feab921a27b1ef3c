"""Stresses that are prescribed instead of strains, by drive(), by name and in a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from native import PREBUILT
from numpy.typing import NDArray
from oracle import VISCOPLASTIC
from scipy.optimize import root

from neml2_capi import FatalError, Model, Results, StepError, drive, examples, experiments
from neml2_capi.cli.commands import neml2_capi as command_line

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]

TIMES = np.linspace(0, 10, 11)
RAMP = TIMES / 10
COMPONENTS = ("xx", "yy", "zz", "yz", "xz", "xy")
#: By experiment: strains and stresses over time, the tensor's.
EXPERIMENTS: dict[str, tuple[dict[str, Array], dict[str, Array]]] = {
    "tension": ({"xx": 0.01 * RAMP}, dict.fromkeys(COMPONENTS[1:], 0 * RAMP)),
    "biaxial": (
        {"xx": 0.01 * RAMP, "yy": -0.004 * RAMP},
        dict.fromkeys(COMPONENTS[2:], 0 * RAMP),
    ),
    "plane stress": (
        {"xx": 0.004 * RAMP, "yy": 0.002 * RAMP, "xy": 0.006 * RAMP},
        dict.fromkeys(("zz", "yz", "xz"), 0 * RAMP),
    ),
    "creep": (
        {},
        {"xx": np.minimum(180 * TIMES, 180), **dict.fromkeys(COMPONENTS[1:], 0 * RAMP)},
    ),
    "shear under pull": (
        {"xy": 0.006 * RAMP},
        {"xx": 100 * RAMP, **dict.fromkeys(COMPONENTS[1:5], 0 * RAMP)},
    ),
}
#: With a compiled tangent, and without.
ARTIFACTS = ["combined_hardening", "viscoplastic"]


def mandel(parts: dict[str, Array]) -> tuple[list[int], Array]:
    """The places of components, and their values over time as they are stored."""
    places = [COMPONENTS.index(name) for name in parts]
    factors = [1 if place < 3 else np.sqrt(2) for place in places]
    return places, np.array([f * v for f, v in zip(factors, parts.values(), strict=True)]).T


def independent(strains: dict[str, Array], stresses: dict[str, Array]) -> tuple[Array, Array]:
    """Strain and stress over time: the oracle's equations and the ones of the stress, by scipy."""
    held, strain_at = mandel(strains)
    free, stress_at = mandel(stresses)
    state, strain = np.zeros(VISCOPLASTIC.unknown_count), np.zeros(6)
    found = [(strain, state[:6])]
    for step in range(1, len(TIMES)):
        new = strain.copy()
        if held:
            new[held] = strain_at[step]
        state, strain = one_step(state, strain, new, free, stress_at[step])
        found.append((strain, state[:6]))
    return np.array([s for s, _ in found]), np.array([s for _, s in found])


def one_step(
    old_state: Array, old_strain: Array, strain: Array, free: list[int], stress: Array
) -> tuple[Array, Array]:
    """State and strain at its end, if the components `free` of the stress are given."""
    count = len(free)

    def equations(unknown: Array) -> Array:
        """In permille of strain, and the state."""
        strain[free] = 1e-3 * unknown[:count]
        residual = VISCOPLASTIC.residual(
            unknown[count:], old_state, strain, old_strain, np.array(TIMES[1])
        )
        return np.concatenate([residual, unknown[count:][free] - stress])

    guess = np.concatenate([1e3 * old_strain[free], old_state])
    for method in ("hybr", "lm", "hybr"):  # each fails in a step of some experiment
        solved = root(equations, guess, method=method, tol=1e-13)
        if np.abs(equations(solved.x)).max() < 1e-8:
            return solved.x[count:], strain
        guess = solved.x
    raise AssertionError(solved.message)


def near(found: Any, expected: Array) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("artifact", ARTIFACTS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_is_what_scipy_finds(name: str, artifact: str) -> None:
    strains, stresses = EXPERIMENTS[name]
    results = drive(
        Model(PREBUILT / artifact), TIMES, {"strain": strains}, control={"stress": stresses}
    )
    strain, stress = independent(strains, stresses)
    near(results["strain"], strain)
    near(results["stress"], stress)


NAMED: dict[str, Callable[[Model], Results]] = {
    "tension": lambda model: experiments.tension(model, TIMES, 0.01),
    "biaxial": lambda model: experiments.biaxial(model, TIMES, 0.01, -0.004),
    "plane stress": lambda model: experiments.plane_stress(model, TIMES, 0.004, 0.002, 0.006),
    "creep": lambda model: experiments.creep(model, TIMES, 180.0),
}
FILES = {
    "tension": "forces.strain.xx.ramp = 0.01\ncontrol.stress = 'uniaxial'",
    "biaxial": "forces.strain = {xx.ramp = 0.01, yy.ramp = -0.004}\ncontrol.stress = 'biaxial'",
    "plane stress": "forces.strain = {xx.ramp = 0.004, yy.ramp = 0.002, xy.ramp = 0.006}\n"
    "control.stress = 'plane stress'",
    "creep": "control.stress.uniaxial.points = [[0, 0], [1, 180], [10, 180]]",
}


@pytest.mark.parametrize("name", NAMED)
def test_its_name_and_a_file_do_the_same(name: str, tmp_path: Path) -> None:
    model = Model(PREBUILT / "combined_hardening")
    strains, stresses = EXPERIMENTS[name]
    expected = drive(model, TIMES, {"strain": strains}, control={"stress": stresses})
    results = NAMED[name](model)
    (tmp_path / "run.toml").write_text(
        f"artifact = '{PREBUILT / 'combined_hardening'}'\noutput.file = 'out.npz'\n"
        f"times = {{end = 10, steps = 10}}\n{FILES[name]}\n"
    )
    done = CliRunner().invoke(command_line, ["run", str(tmp_path / "run.toml")])
    assert done.exit_code == 0, done.output
    from_file = Results.load(tmp_path / "out.npz")
    for key in ("strain", "stress"):
        near(results[key], expected[key])
        near(from_file[key], expected[key])


@pytest.mark.parametrize("control", [{"uniaxial": 180 * RAMP}, {"uniaxial": lambda t: 18.0 * t}])
def test_a_given_stress_is_uniaxial(control: Any) -> None:
    """Lateral strains are found, by name in drive() and as an experiment."""
    model = Model(PREBUILT / "combined_hardening")
    stresses = {"xx": 180 * RAMP, **dict.fromkeys(COMPONENTS[1:], 0 * RAMP)}
    strain, stress = independent({}, stresses)
    for results in (
        drive(model, TIMES, {}, control={"stress": control}),
        experiments.uniaxial(model, TIMES, stress=180.0),
        experiments.uniaxial(model, TIMES, stress=control["uniaxial"]),
    ):
        near(results["strain"], strain)
        near(results["stress"], stress)


@pytest.mark.parametrize(
    "forces, control, held",
    [
        ({}, {"xx": 100 * RAMP}, "yy, zz, yz, xz, xy"),
        ({"xx": 1e-3 * RAMP}, "biaxial", "yy"),
        ({}, "uniaxial", "xx"),
        ({"yy": 0.0, "zz": 0.0}, {"xx": 100 * RAMP}, "yz, xz, xy"),
    ],
)
def test_strains_that_nobody_prescribes_are_told(forces: Any, control: Any, held: str) -> None:
    model = Model(PREBUILT / "combined_hardening")
    with pytest.warns(UserWarning, match=f"components {held} of 'strain' are held at zero"):
        drive(model, TIMES, {"strain": forces}, control={"stress": control})
    known = dict.fromkeys(held.split(", "), 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drive(model, TIMES, {"strain": {**known, **forces}}, control={"stress": control})


def test_strain_is_held_while_stress_relaxes() -> None:
    model = Model(PREBUILT / "combined_hardening")
    results = experiments.relaxation(model, TIMES, np.array([0.002, 0.01]), rise=2.0)
    stress = results["stress"][:, :, 0]
    np.testing.assert_array_equal(results["strain"][2:, :, 0], [[0.002, 0.01]] * 9)
    assert (np.diff(stress[2:], axis=0) < 0).all()
    assert np.abs(results["stress"][:, :, 1:]).max() < 1e-6


def test_elasticity_has_poissons_contraction() -> None:
    results = experiments.tension(Model(PREBUILT / "elasticity"), TIMES, 1e-3)
    np.testing.assert_allclose(results["stress"][:, 0], 200 * RAMP, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(results["strain"][:, 1], -0.3e-3 * RAMP, rtol=1e-9, atol=1e-15)


def test_a_model_of_single_precision_is_controlled(artifacts: Mapping[str, Path]) -> None:
    model = Model(artifacts["elasticity_float32"], dtype="float32")
    ramp = np.float32(RAMP)
    results = drive(
        model, np.float32(TIMES), {"strain": {"xx": 1e-3 * ramp}}, control={"stress": "uniaxial"}
    )
    np.testing.assert_allclose(results["stress"][:, 0], 200 * RAMP, rtol=1e-4)
    np.testing.assert_allclose(results["strain"][:, 1], -0.3e-3 * RAMP, rtol=1e-4)


def test_components_are_those_of_the_tensor() -> None:
    model = Model(PREBUILT / "elasticity")
    by_name = drive(model, TIMES, {"strain": {"xy": 1e-3, "xx": 2e-3 * RAMP}})
    array = np.zeros((11, 6))
    array[:, 0], array[:, 5] = 2e-3 * RAMP, np.sqrt(2) * 1e-3
    np.testing.assert_array_equal(
        by_name["stress"], drive(model, TIMES, {"strain": array})["stress"]
    )


def test_each_point_has_its_own_strains() -> None:
    model = Model(PREBUILT / "combined_hardening")
    reached = np.linspace(0.002, 0.02, 5)
    together = experiments.tension(model, TIMES, RAMP[:, None] * reached)
    for point, strain in enumerate(reached):
        alone = experiments.tension(model, TIMES, RAMP * strain)
        np.testing.assert_array_equal(together["stress"][:, point], alone["stress"])


def test_where_flow_begins_the_power_law_has_no_tangent() -> None:
    """At the yield stress exactly the compiled derivative is 0 times infinity."""
    model = Model(PREBUILT / "combined_hardening")
    results = experiments.creep(model, TIMES, 150.0, rise=2.0)
    np.testing.assert_allclose(results["stress"][2:, 0], 150.0, rtol=1e-9)


def test_a_step_that_is_too_large_is_cut() -> None:
    model = Model(PREBUILT / "combined_hardening")
    model.options["miters"] = 7
    results = experiments.tension(model, TIMES, 0.05)
    assert results["substeps"].max() > 1
    np.testing.assert_allclose(results["strain"][:, 0], 0.05 * RAMP)
    assert np.abs(results["stress"][:, 1:]).max() < 1e-6


def test_one_point_of_a_thousand_fails() -> None:
    model = Model(PREBUILT / "combined_hardening")
    strain = np.full((11, 1000), 0.002) * RAMP[:, None]
    strain[5:, 123] = 1e4
    with pytest.raises(StepError, match=r"step 5 failed .* 1 of 1000 points: 123;") as caught:
        experiments.tension(model, TIMES, strain, least_step=0.25)
    assert list(np.flatnonzero(~caught.value.converged_mask)) == [123]
    before = caught.value.results
    assert len(before["stress"]) == 5
    np.testing.assert_array_equal(before["stress"][:, 122], before["stress"][:, 124])


def test_only_derivatives_that_are_asked_for_are_recorded() -> None:
    model = Model(PREBUILT / "combined_hardening")
    assert not [key for key in experiments.tension(model, TIMES, 0.01) if ":" in key]
    wanted = {"stress": {"strain": True}}
    results = experiments.tension(model, TIMES, 0.01, derivatives=wanted)
    assert results["stress:strain"].shape == (11, 6, 6)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "output": ({"stres": "uniaxial"}, "did you mean 'stress'"),
    "name": ({"stress": "uniaxal"}, "did you mean 'uniaxial'"),
    "component": ({"stress": {"yx": 0}}, "unknown component 'stress.yx'; did you mean 'stress.y"),
    "input": ({"stress:strin": "uniaxial"}, "did you mean 'strain'"),
    "two": ({"stress": "uniaxial", "X1": "uniaxial"}, "^the control has 2 outputs; expected one"),
    "none": ({"stress": {}}, "its components by name"),
    "scalar": ({"equivalent_plastic_strain": {"": 0}}, "finds components of a tensor"),
    "length": ({"stress": {"yy": np.zeros(3)}}, "'stress.yy' has the shape"),
    "named": ({"stress": {"uniaxial": 1.0, "xy": 0}}, "'uniaxial', which prescribes all"),
    "no mapping": ("uniaxial", "control must be a mapping"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("control, message", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(control: Any, message: str) -> None:
    with pytest.raises(FatalError, match=message):
        drive(Model(PREBUILT / "combined_hardening"), TIMES, {"strain": {}}, control=control)


def test_a_component_has_a_stress_or_a_strain() -> None:
    with pytest.raises(FatalError, match=r"'stress.yy' is prescribed, and so is strain.yy"):
        drive(
            Model(PREBUILT / "combined_hardening"),
            TIMES,
            {"strain": {"xx": 1e-3, "yy": 0.0}},
            control={"stress": "uniaxial"},
        )


@pytest.mark.parametrize(
    "line, message",
    [
        ("control.stres = 'uniaxial'", "stres"),
        ("control.stress = 'uniaxal'", "control.stress"),
        ("control.stress.yx = 0", "control.stress.yx"),
    ],
)
def test_mistakes_in_a_file_are_named(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(
        f"artifact = '{PREBUILT / 'combined_hardening'}'\n"
        f"times = {{end = 10, steps = 10}}\n{line}\n"
    )
    done = CliRunner().invoke(command_line, ["run", str(tmp_path / "run.toml")])
    assert done.exit_code != 0
    assert message in done.output


@pytest.mark.parametrize("hypothesis", ["uniaxial", "plane_stress", "beam", "shell"])
def test_a_test_under_a_hypothesis_is_the_one_in_three_dimensions(hypothesis: str) -> None:
    """Stresses that vanish by the hypothesis need no control."""
    path = examples.path("chaboche")
    model, whole = Model(path, hypothesis=hypothesis), Model(path)
    found = experiments.tension(model, TIMES, 0.01)
    expected = experiments.tension(whole, TIMES, 0.01)
    np.testing.assert_allclose(found["stress"][:, 0], expected["stress"][:, 0], rtol=1e-8)
    found = experiments.creep(model, TIMES, 180.0)
    expected = experiments.creep(whole, TIMES, 180.0)
    np.testing.assert_allclose(found["strain"][:, 0], expected["strain"][:, 0], rtol=1e-8)
    for value in (1.0, False):
        with pytest.raises(FatalError, match=r"unknown component 'stress\.zz'"):
            drive(model, TIMES, {"strain": {"xx": 1e-3}}, control={"stress": {"zz": value}})


def test_a_bar_begins_with_the_strain_of_the_first_row() -> None:
    """Elastic and plastic strains are as without it, and so is its stress."""
    model = Model(examples.path("isotropic_hardening"))
    strain = np.outer(0.01 * RAMP, np.eye(6)[0])
    strain[0, 1:] = [2e-4, -1e-4, 1e-4, 0.0, 3e-4]
    found = drive(model, TIMES, {"strain": strain}, control={"stress": "uniaxial"})
    plain = experiments.tension(model, TIMES, 0.01)
    np.testing.assert_allclose(found["stress"], plain["stress"], rtol=1e-8, atol=1e-5)
    np.testing.assert_allclose(found["strain"] - plain["strain"], [strain[0]] * 11, atol=1e-10)
    with pytest.raises(FatalError, match="initial value 'strain' is prescribed, or found from"):
        experiments.tension(model, TIMES, 0.01, initial={"strain": strain[0]})


@pytest.mark.parametrize("control", ["uniaxial", "plane stress", {"uniaxial": RAMP}])
def test_a_name_needs_all_its_components(control: Any) -> None:
    model = Model(examples.path("chaboche"), hypothesis="plane_strain")
    message = "', which prescribes yz, xz, and this model has xx, yy, zz, xy only: name the"
    with pytest.raises(FatalError, match=message):
        drive(model, TIMES, {}, control={"stress": control})


@pytest.mark.filterwarnings("ignore:the component")
@pytest.mark.parametrize("control", ["uniaxial", "biaxial", "plane stress"])
def test_plastic_strains_at_the_first_time_are_relieved(
    artifacts: Mapping[str, Path], control: str
) -> None:
    """The first increment begins far beyond yield: whole Newton steps are too long."""
    random, strain = np.random.default_rng(0), {"xx": 1e-3 * RAMP}
    initial = {"plastic_strain": random.normal(size=(40, 6)) * 1e-3}
    with Model(artifacts["radial_return"]) as model:
        stresses = {"cauchy_stress": control}
        results = drive(model, TIMES, {"total_strain": strain}, initial, control=stresses)
    free = results["cauchy_stress"][1:, :, 3 if control == "plane stress" else 2]
    assert np.abs(free).max() < 1e-8 * np.abs(results["cauchy_stress"][1:]).max()
    assert (results["substeps"][1:] == 1).all()
