"""A plug-in, called as Abaqus calls a UMAT."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from abaqus import (
    UMAT,
    Array,
    Case,
    Result,
    Step,
    attempt,
    direct,
    drive,
    driver,
    engineering,
    example,
    plug_in,
    read,
    rotations,
    tensor,
)
from native import PREBUILT, needs_fortran, run
from scipy.spatial.transform import Rotation

from neml2_capi import Model
from neml2_capi.umat import draft
from neml2_capi.umat.guess import guess

pytestmark = pytest.mark.native

SHEAR = (4e-3, -1e-3, -2e-3, 3e-3, -5e-3, 2e-3)  # six distinct components
BACK = (-3e-3, 4e-3, 1e-3, -6e-3, 2e-3, 5e-3)  # another direction: the tangent is not symmetric
# If histories are turned, round-off in turning them is not the same twice.
TURNED = 1e-12
PATH = (Step(SHEAR, increments=4), Step(BACK, increments=4))


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    """A folder with the mappings of two artifacts, as drafted: of both a plug-in is made."""
    for name in ("combined_hardening", "elasticity"):
        file = tmp_path / f"{name}.nml"
        file.write_text(draft(PREBUILT / name, file))
    return tmp_path


def edit(maps: Path, old: str, new: str, name: str = "combined_hardening") -> None:
    """Change what was drafted."""
    file = maps / f"{name}.nml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def leave_out_rescues(maps: Path) -> None:
    """Have a point that does not converge ask for a smaller step at once."""
    with (maps / "combined_hardening.nml").open("a") as file:
        file.write("&option name = 'rescue', value = 0 /\n")


def near(actual: Array, expected: Array, tolerance: float = 1e-14) -> None:
    """Within `tolerance` of the greatest component."""
    scale = float(np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def assert_equals_the_direct_call(
    case: Case, result: Result, model: Model, tolerance: float = 1e-14
) -> None:
    mapping = guess(model)
    for increments in result.points:
        assert increments
        expected = direct(model, mapping, case, increments)
        for now, (stress, tangent, statev) in zip(increments, expected, strict=True):
            near(now.stress, stress, tolerance)
            near(now.ddsdde, tangent, tolerance)
            for slot in mapping.states:
                state = slice(slot.first - 1, slot.last)
                near(now.statev[state], statev[state], tolerance)


@needs_fortran
@pytest.mark.parametrize("ntens", [6, 4])
def test_stress_and_tangent_equal_the_direct_call(maps: Path, ntens: int) -> None:
    case = Case("combined_hardening", PATH, ntens=ntens)
    result = drive(case, maps)
    assert_equals_the_direct_call(case, result, Model(PREBUILT / "combined_hardening"))
    tangent = result.points[0][-1].ddsdde
    assert np.abs(tangent - tangent.T).max() > 1e-3 * np.abs(tangent).max()


OTHERS = [
    "chaboche",
    "isotropic_hardening",
    "radial_return",
    "relaxation",
    "gmres",
    "warm_start",
    "substepping",
    "creep_3.0.7",
]


@needs_fortran
@pytest.mark.parametrize("name", OTHERS)
def test_other_artifacts_are_driven_as_they_are_drafted(
    artifacts: Mapping[str, Path], tmp_path: Path, name: str
) -> None:
    file = tmp_path / "other.nml"
    file.write_text(draft(artifacts[name], file))
    model = Model(artifacts[name])
    turning = [replace(step, rotation=(0.1, 0.2, 0.3)) for step in PATH]
    props = [float(value) for value in model.named_parameters().values()]
    case = Case("other", turning, props=props, nstatv=guess(model).nstatv)
    tolerance = 1e-10 if name == "gmres" else TURNED  # a Krylov solve does not forget round-off
    assert_equals_the_direct_call(case, drive(case, tmp_path), model, tolerance)


@needs_fortran
def test_uniaxial_tension_has_one_stress(maps: Path) -> None:
    step = Step((1e-2, 0, 0, 0, 0, 0), free="FTTTTT", increments=5)
    case = Case("combined_hardening", [step])
    result = drive(case, maps)
    assert_equals_the_direct_call(case, result, Model(PREBUILT / "combined_hardening"))
    last = result.points[0][-1]
    assert last.time == pytest.approx(1.0)
    assert last.stress[0] > 150
    assert np.abs(last.stress[1:]).max() < 1e-9 * last.stress[0]
    assert last.stran[1] == pytest.approx(last.stran[2])
    assert -0.5e-2 < last.stran[1] < -0.3e-2  # between plastic and elastic


@needs_fortran
def test_a_turned_material_gives_the_turned_result(maps: Path) -> None:
    """Stress, strain and back stresses turn with DROT; the law is isotropic, and cannot tell."""
    turn = (0.3, -0.7, 0.5)
    matrix = Rotation.from_rotvec(turn).as_matrix()
    turned_back = matrix @ tensor(np.array(BACK), 2.0) @ matrix.T
    strain = [float(2 * turned_back[i, j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    strain = [*(float(value) for value in np.diag(turned_back)), *strain]
    first, hold = PATH[0], Step(increments=3)
    still = Case("combined_hardening", [first, hold, PATH[1]])
    turning = replace(
        still, steps=[first, replace(hold, rotation=turn), Step(strain, increments=4)]
    )
    result = drive(turning, maps)
    assert_equals_the_direct_call(turning, result, Model(PREBUILT / "combined_hardening"), TURNED)
    mine, other = result.points[0][-1], drive(still, maps).points[0][-1]
    tolerance = 1e-9  # the tolerance of the Newton solve, and the step of its last iteration
    near(tensor(mine.stress), matrix @ tensor(other.stress) @ matrix.T, tolerance)
    for start in (1, 7):
        state, expected = (point.statev[start : start + 6] for point in (mine, other))
        near(tensor(state), matrix @ tensor(expected) @ matrix.T, tolerance)
    assert mine.statev[0] == pytest.approx(other.statev[0], rel=tolerance)


@needs_fortran
def test_the_third_axis_turns_in_plane_strain(maps: Path) -> None:
    hold = Step(increments=2, rotation=(0, 0, 0.4))
    case = Case("combined_hardening", [PATH[0], hold, PATH[1]], ntens=4)
    result = drive(case, maps)
    assert_equals_the_direct_call(case, result, Model(PREBUILT / "combined_hardening"), TURNED)
    turns = list(rotations(case, result.points[0]))
    assert not np.allclose(turns[4], np.eye(3))


@needs_fortran
def test_a_failure_cuts_the_step_and_finishes_the_history(maps: Path) -> None:
    case = Case("combined_hardening", [Step((0.4, -0.4, 0.4, 0, 0, 0.4))])
    leave_out_rescues(maps)
    result = drive(case, maps)
    assert result.cuts[0] and all(0 < cut < 1 for cut in result.cuts[0])
    assert result.points[0][-1].time == pytest.approx(1.0)
    assert len(result.points[0]) > 1
    assert_equals_the_direct_call(case, result, Model(PREBUILT / "combined_hardening"))


@needs_fortran
def test_a_point_is_rescued_before_a_step_is_cut(maps: Path) -> None:
    case = Case("combined_hardening", [Step((0.4, -0.4, 0.4, 0, 0, 0.4))])
    result = drive(case, maps)
    assert not result.cuts[0] and len(result.points[0]) == 1
    model = Model(PREBUILT / "combined_hardening")
    model.options["rescue"] = 100
    assert_equals_the_direct_call(case, result, model)


@needs_fortran
@pytest.mark.parametrize("host", ["abaqus", "calculix"])
@pytest.mark.parametrize("said", [True, False], ids=["said", "told by PNEWDT"])
def test_a_failure_asks_for_a_smaller_increment_as_its_host_reads_it(
    maps: Path, host: str, said: bool
) -> None:
    if said:
        for name in ("combined_hardening", "elasticity"):
            edit(maps, "stress = 'stress'", f"stress = 'stress', host = '{host}'", name)
    plug_in(maps, maps / "libumat.so")
    done = subprocess.run(
        [driver(UMAT / "test_failed_increment.f90"), host],
        env={**os.environ, "LD_LIBRARY_PATH": str(maps)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@needs_fortran
def test_props_change_the_result_as_set_parameter_does(maps: Path) -> None:
    case = Case("combined_hardening", PATH)
    softer = replace(case, props=(180e3, 120.0))
    result = drive(softer, maps)
    model = Model(PREBUILT / "combined_hardening")
    model.set_parameter("E", 180e3)
    model.set_parameter("yield_stress", 120.0)
    assert_equals_the_direct_call(softer, result, model)
    stress = drive(case, maps).points[0][-1].stress
    assert np.abs(result.points[0][-1].stress - stress).max() > 1


@needs_fortran
def test_a_law_without_state_takes_parameters_from_props(maps: Path) -> None:
    case = Case("elasticity", [Step(SHEAR)], props=(70e3,), nstatv=0)
    now = drive(case, maps).points[0][-1]
    shear, lame = 70e3 / 2.6, 70e3 * 0.3 / (1.3 * 0.4)
    unit = np.eye(3)
    hooke = lame * np.einsum("ij,kl->ijkl", unit, unit)
    hooke += shear * np.einsum("ik,jl->ijkl", unit, unit)
    hooke += shear * np.einsum("il,jk->ijkl", unit, unit)
    near(now.ddsdde, engineering(hooke))
    near(tensor(now.stress), np.einsum("ijkl,kl", hooke, tensor(np.array(SHEAR), 2.0)))


@needs_fortran
def test_eight_threads_give_the_bits_of_one(maps: Path) -> None:
    """Each run is a process of its own, whose first calls come from all threads at once."""
    case = Case("combined_hardening", PATH, points=16)
    serial = drive(case, maps).text
    for _ in range(5):
        assert drive(case, maps, threads=8).text == serial


@needs_fortran
def test_time_can_come_as_temperature_or_as_a_field(maps: Path) -> None:
    """There is no artifact with a temperature here; time is told by another argument."""
    ends = [replace(s, temperature=k + 1.0, fields=(0.0, k + 1.0)) for k, s in enumerate(PATH)]
    case = Case("combined_hardening", ends)
    stress = drive(case, maps).points[0][-1].stress
    edit(maps, "time = 't'", "time = ''")
    edit(maps, "temperature = ''", "temperature = 't'")
    near(drive(case, maps).points[0][-1].stress, stress, 1e-9)
    edit(maps, "temperature = 't'", "temperature = ''")
    with (maps / "combined_hardening.nml").open("a") as file:
        file.write("&field name = 't', predef = 2 /\n")
    near(drive(case, maps).points[0][-1].stress, stress, 1e-9)


@needs_fortran
def test_an_input_can_be_a_constant_of_the_mapping(maps: Path) -> None:
    """Time at the end and at the beginning of the only increment."""
    case = Case("combined_hardening", [Step(SHEAR)])
    stress = drive(case, maps).points[0][-1].stress
    edit(maps, "time = 't'", "time = ''")
    with (maps / "combined_hardening.nml").open("a") as file:
        file.write("&field name = 't', value = 1 /\n&field name = 't~1', value = 0 /\n")
    near(drive(case, maps).points[0][-1].stress, stress, 1e-9)


@needs_fortran
def test_the_whole_stress_can_be_kept_as_a_state(maps: Path) -> None:
    case = Case("combined_hardening", [PATH[0], replace(PATH[1], rotation=(0.1, 0.2, 0.3))])
    expected = drive(case, maps).points[0][-1]
    with (maps / "combined_hardening.nml").open("a") as file:
        file.write("&state name = 'stress', kind = 'symmetric', statev = 14 /\n")
    now = drive(replace(case, nstatv=19), maps).points[0][-1]
    near(now.stress, expected.stress, 1e-9)
    assert np.array_equal(now.statev[13:], now.stress)


@needs_fortran
@pytest.mark.parametrize("ntens", [6, 4])
def test_a_state_of_an_offset_begins_there_at_a_statev_of_zero(maps: Path, ntens: int) -> None:
    rotation, out = ((0.0, 0.0, 0.3), 0.0) if ntens == 4 else ((0.1, 0.2, 0.3), 2.0)
    edit(maps, "statev = 1 /", "statev = 1, offset = 0.01 /")
    edit(maps, "statev = 8 /", f"statev = 8, offset = 9., -4., -5., 3., {out}, {out / 2} /")
    case = Case("combined_hardening", [PATH[0], replace(PATH[1], rotation=rotation)], ntens=ntens)
    result, model = drive(case, maps), Model(PREBUILT / "combined_hardening")
    offset = np.array([0.01, *[0.0] * 6, 9.0, -4.0, -5.0, 3.0, out, out / 2])
    (increments,) = result.points
    for now, (stress, _, statev) in zip(
        increments, direct(model, guess(model), case, increments, offset), strict=True
    ):
        near(now.stress, stress, TURNED)
        near(now.statev, statev, TURNED)


@needs_fortran
def test_a_field_of_an_offset_is_a_host_that_counts_from_elsewhere(maps: Path) -> None:
    """As degrees Celsius for a law of Kelvins; here a time that the host counts from -5 on."""
    case = Case("combined_hardening", [Step(SHEAR)])
    stress = drive(case, maps).points[0][-1].stress
    edit(maps, "time = 't'", "time = ''")
    with (maps / "combined_hardening.nml").open("a") as file:
        file.write(
            "&field name = 't', predef = 2, offset = 5 /\n&field name = 't~1', value = 0 /\n"
        )
    shifted = replace(case, steps=[replace(case.steps[0], fields=(0.0, -4.0))])
    near(drive(shifted, maps).points[0][-1].stress, stress, 1e-9)


@needs_fortran
def test_an_option_of_the_solver_is_set(maps: Path) -> None:
    with (maps / "combined_hardening.nml").open("a") as file:
        file.write("&option name = 'miters', value = 4 /\n")
    leave_out_rescues(maps)
    result = drive(Case("combined_hardening", PATH), maps)
    assert result.cuts[0]


WRONG = {
    "plane stress": ({"ntens": 3}, "needs 16: set *DEPVAR to that; the last ones hold strains"),
    "few states": ({"nstatv": 12}, "needs 13: set *DEPVAR"),
    "few constants": ({"props": (200e3,)}, "needs 2: give them to *USER MATERIAL"),
    "many constants": (
        {"props": (200e3, 150.0, 0.3)},
        "there are 3 material constants, and the material has 2 (E, yield_stress): give them",
    ),
}


@needs_fortran
@pytest.mark.parametrize("changes, message", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_call_is_told(maps: Path, changes: dict[str, object], message: str) -> None:
    case = replace(Case("combined_hardening", PATH), **changes)  # type: ignore[arg-type]
    done = attempt(case, maps)
    assert done.returncode == 1
    assert message in done.stderr
    assert f"material {case.material}" in done.stderr.lower()


@needs_fortran
def test_a_material_that_is_not_there_is_told(maps: Path) -> None:
    done = attempt(Case("steel", PATH), maps)
    assert done.returncode == 1
    assert "no material of that name; it has combined_hardening, elasticity" in done.stderr
    assert "material steel" in done.stderr


@needs_fortran
def test_a_mapping_is_a_namelist_of_any_look(maps: Path) -> None:
    case = Case("combined_hardening", PATH, props=(180e3, 120.0))
    expected = drive(case, maps).text
    edit(maps, "&parameter", "\t&PARAMETER\t")
    edit(maps, "&state", "  &State")
    edit(maps, "props = 2 /", "PROPS = 2 ! it's the yield stress / of the law\n  / at 0.2 %")
    edit(maps, "statev = 2 /", "statev = 2 &end")
    edit(maps, "\n", "\r\n")
    assert drive(case, maps).text == expected


HARDENING = PREBUILT / "combined_hardening"


@needs_fortran
@pytest.mark.parametrize("case", sorted(UMAT.glob("cases/*.nml")), ids=lambda path: path.stem)
def test_a_case_runs_to_its_end(maps: Path, case: Path) -> None:
    if case.stem == "cut":
        leave_out_rescues(maps)
    plug_in(maps, maps / "libumat.so")
    output = run(driver(), case, LD_LIBRARY_PATH=str(maps))
    lines = [line.split() for line in output.splitlines()]
    end = 2.0 if case.stem in ("uniaxial", "shear") else 1.0
    assert [float(line[2]) for line in lines if line[0] == "time"][-1] == pytest.approx(end)
    assert any(line[0] == "cut" for line in lines) == (case.stem == "cut")
    stresses = [[float(text) for text in line[2:]] for line in lines if line[0] == "stress"]
    if case.stem == "rotation":
        assert stresses[4][0] > 200
        assert stresses[-1] == pytest.approx([0, stresses[4][0], 0, 0, 0, 0], abs=1e-4)
    if case.stem == "uniaxial":
        assert stresses[9][0] > 200 and stresses[-1][0] < -200


@needs_fortran
@pytest.mark.parametrize("strain", [SHEAR, (0.4, -0.4, 0.4, 0, 0, 0.4)], ids=["small", "cut"])
def test_the_example_is_a_umat_by_hand(tmp_path: Path, strain: Sequence[float]) -> None:
    case = Case("combined_hardening", [Step(strain), Step(BACK, increments=4)], points=4)
    file = tmp_path / "steel.case"
    file.write_text(case.text())
    result = read(case, run(example(), file, NEML2_UMAT_ARTIFACT=str(HARDENING)))
    assert any(result.cuts) == (strain != SHEAR)
    # A component is divided by the square root of 2 here, and multiplied with its half there.
    assert_equals_the_direct_call(case, result, Model(HARDENING), 1e-12)
