"""A plug-in of two materials in CalculiX, which names one in its deck."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from abaqus import Array, mandel, tensor
from calculix import CCX, DECKS, MARKS, attempt, material, run, tables
from native import PREBUILT
from tracing import opened, tracer

from neml2_capi import Model, drive
from neml2_capi.umat import draft

pytestmark = MARKS

# The .dat file has seven digits.
PRINTED = 2e-6
HARDENING = material("hardening", "200000, 150", 13)
ELASTIC = """*MATERIAL, NAME=STEEL
*ELASTIC
200000, 0.3
*SOLID SECTION, ELSET=EALL, MATERIAL=STEEL
"""
#: The names of what a job of this element reads and writes.
DECK = {"one_element", "element", "material", "spooles"}
ELEMENTS = {
    "C3D8": range(1, 9),
    "C3D8R": range(1, 9),
    "C3D8I": range(1, 9),
    "C3D20": range(1, 21),
    "C3D20R": range(1, 21),
    "C3D4": (1, 2, 4, 5),
    "C3D10": (1, 2, 4, 5, 9, 21, 12, 17, 22, 23),
}


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A folder with the mappings of two artifacts, whose names have no underscore."""
    for name, artifact in (("hardening", "combined_hardening"), ("elasticity", "elasticity")):
        file = tmp_path / f"{name}.nml"
        file.write_text(draft(PREBUILT / artifact, file))
    return tmp_path


def near(actual: Array, expected: Array, tolerance: float = PRINTED) -> None:
    """Compare within `tolerance` of the greatest component."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def element(kind: str) -> str:
    numbers = [str(node) for node in ELEMENTS[kind]]
    lines = [", ".join(numbers[start : start + 10]) for start in range(0, len(numbers), 10)]
    return f"*ELEMENT, TYPE={kind}, ELSET=EALL\n1, " + ",\n".join(lines) + "\n"


@pytest.mark.parametrize("kind", ELEMENTS)
def test_an_element_gives_what_the_law_of_calculix_gives(job: Path, kind: str) -> None:
    parts = {"element": element(kind), "material": ELASTIC}
    run(job, "one_element", parts)
    expected = tables(job, "one_element")
    run(job, "one_element", {**parts, "material": material("elasticity", "200000")})
    actual = tables(job, "one_element")
    for name in ("displacements", "forces", "stresses"):
        assert expected[name][0][1].any()
        near(actual[name][0][1], expected[name][0][1])


def test_no_file_of_ours_but_the_plug_in_is_opened(job: Path) -> None:
    """The plug-in lies alone in a folder, and the mappings that it was made of elsewhere."""
    trace = job / "trace"
    parts = {"element": element("C3D8"), "material": material("elasticity", "200000")}
    done = attempt(job, "one_element", parts, wrappers=tracer(trace))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    found = opened(trace, job)
    library = job / "library" / "libNEML2.so"
    ours = found - {CCX.resolve(), *(path for path in found if path.stem in DECK)}
    assert ours == {library}, ours


def bend(tip: float, increments: str) -> str:
    """Return time.inp of the beam."""
    return f"*STATIC{increments}\n*BOUNDARY, AMPLITUDE=CYCLE\nTIP, 3, 3, {tip}\n"


def assert_equals_the_driver(job: Path) -> Array:
    """Compare each point of the beam with a drive of its strains; return the last plastic ones."""
    found = tables(job, "beam")
    times = np.array([0.0, *(time for time, _ in found["strains"])])
    strain, stress = (
        np.array([np.zeros((32, 6)), *([mandel(tensor(row)) for row in rows] for _, rows in table)])
        for table in (found["strains"], found["stresses"])
    )
    assert times[-1] == pytest.approx(20.0)
    expected = drive(Model(PREBUILT / "combined_hardening"), times, {"strain": strain})
    # Strain has seven digits, and stress is elastic in what they lack.
    near(stress[1:], expected["stress"][1:], 1e-4)
    last: Array = expected["equivalent_plastic_strain"][-1]
    return last


def test_a_beam_in_cycles_gives_what_the_driver_gives(job: Path) -> None:
    run(job, "beam", {"material": HARDENING, "time": bend(0.06, "\n0.5, 20, 1e-5, 0.5")})
    assert assert_equals_the_driver(job).max() > 1e-3


def test_the_residual_forces_fall_quadratically(job: Path) -> None:
    strict = "*CONTROLS, PARAMETERS=FIELD\n1e-10, 1e9, , , 1e-10, , , 1e-10\n"
    log = run(job, "beam", {"material": HARDENING, "time": bend(0.3, "\n1, 5, 1e-5, 1") + strict})
    found = re.findall(r"^ iteration (\d+)$|largest residual force= (\S+)", log, re.MULTILINE)
    numbers = [number for number, _ in found if number]
    norms = np.array([[*numbers], [force for _, force in found if force]], float).T
    firsts = np.flatnonzero(norms[:, 0] == 1)
    increments = np.split(norms[:, 1], firsts[1:])
    assert len(increments) == 5 and len(increments[0]) == 5
    for forces in increments:  # in N, with six decimals
        assert (forces[1:] <= 0.2 * forces[:-1] ** 2 + 1e-6).all(), forces


@pytest.fixture
def weak(job: Path) -> Path:
    """A folder where Newton's method has too few iterations for large plastic increments."""
    with (job / "hardening.nml").open("a") as file:
        file.write("&option name = 'miters', value = 5 /\n&option name = 'rescue', value = 0 /\n")
    return job


@pytest.mark.parametrize("increment", [5, 2.5, 1, 0.5])
def test_failed_points_end_a_job_of_fixed_increments(weak: Path, increment: float) -> None:
    time = bend(0.1, f", DIRECT\n{increment}, 5")
    done = attempt(weak, "beam", {"material": HARDENING, "time": time})
    assert done.returncode != 0
    assert "please try \n automatic incrementation" in done.stdout


@pytest.mark.parametrize("first", [7.5, 7, 6, 5, 4, 3, 2.5, 2, 1.5, 1, 0.5])
def test_failed_points_cut_automatic_increments_of_any_size(weak: Path, first: float) -> None:
    time = bend(0.1, f"\n{first}, 20, 1e-5, {first}")
    log = run(weak, "beam", {"material": HARDENING, "time": time})
    assert "requested by a material user routine" in log
    assert_equals_the_driver(weak)


def test_two_threads_give_what_one_gives(job: Path) -> None:
    parts = {"material": HARDENING, "time": bend(0.06, "\n1, 20, 1e-5, 1")}
    run(job, "beam", parts)
    alone = tables(job, "beam")
    run(job, "beam", parts, threads=2)
    together = tables(job, "beam")
    for name in ("stresses", "strains"):
        assert len(together[name]) == len(alone[name])
        for (time, rows), (same_time, same_rows) in zip(together[name], alone[name], strict=True):
            assert time == same_time
            near(rows, same_rows)


def motion(angle: float) -> dict[str, str]:
    """Return the boundary conditions of a stretch to time 1, then of a turn about axis 3."""
    times = np.linspace(0.0, 2.0, 41)
    turn = angle * np.maximum(times - 1.0, 0.0)
    stretch = 1.0 + 0.01 * np.minimum(times, 1.0)
    amplitudes, boundaries = "", ""
    corners = {1: (0, 0), 2: (1, 0), 3: (1, 1), 4: (0, 1)}
    for corner, (x, y) in corners.items():
        along, across = stretch * x, y / np.sqrt(stretch)
        moved = np.cos(turn) * along - np.sin(turn) * across - x
        risen = np.sin(turn) * along + np.cos(turn) * across - y
        for axis, values in ((1, moved), (2, risen)):
            # CalculiX reads twenty characters of a number.
            pairs = "".join(f"{t:.2f}, {u:.11e}\n" for t, u in zip(times, values, strict=True))
            amplitudes += f"*AMPLITUDE, NAME=A{corner}{axis}\n{pairs}"
            for node in (corner, corner + 4):
                boundaries += f"*BOUNDARY, AMPLITUDE=A{corner}{axis}\n{node}, {axis}, {axis}, 1\n"
    return {"amplitudes": amplitudes, "motion": boundaries}


def test_a_stretched_and_turned_element_has_the_turned_stress(job: Path) -> None:
    """Back stresses stay with the material: the result is the one of a rest, turned."""
    law = material("hardening", "200000, 150", 13, interface="ABAQUSNL")
    results = []
    for angle in (0.0, np.pi / 2):
        run(job, "rotation", {"material": law, **motion(angle)})
        times, rows = zip(*tables(job, "rotation")["stresses"], strict=True)
        assert times[-1] == pytest.approx(2.0)
        results.append(tensor(rows[-1][0]))
    still, turned = results
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert still[0, 0] > 100
    near(turned, quarter @ still @ quarter.T, 1e-5)


WRONG = {
    "few states": (material("hardening", "200000, 150", 12), "needs 13: set *DEPVAR"),
    "few constants": (material("hardening", "200000", 13), "needs 2: give them to"),
}


@pytest.mark.parametrize("law, message", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_deck_fails_with_what_to_do(job: Path, law: str, message: str) -> None:
    done = attempt(job, "one_element", {"element": element("C3D8"), "material": law})
    assert done.returncode != 0
    assert message in done.stdout + done.stderr


def test_a_material_that_the_library_has_not_fails_with_what_to_do(job: Path) -> None:
    parts = {"element": element("C3D8"), "material": material("copper", "1")}
    done = attempt(job, "one_element", parts)
    assert done.returncode != 0
    assert "it has elasticity, hardening" in done.stdout + done.stderr


#: Deflections of the tip at the ends of steps: it flows in most of them.
DEFLECTIONS = (0.02, 0.05, 0.06, 0.03, -0.02, -0.06, -0.03, 0.04, 0.08)


def step_to(tip: float) -> str:
    """Return a step of two increments that leaves a file for a restart."""
    return f"""*STEP
*STATIC, DIRECT
0.5, 1
*BOUNDARY
TIP, 3, 3, {tip}
*NODE PRINT, NSET=TIP
RF
*EL PRINT, ELSET=EALL
S, E
*RESTART, WRITE, FREQUENCY=1
*END STEP
"""


def test_a_beam_that_is_stopped_at_every_third_step_goes_on_as_it_was(job: Path) -> None:
    model = (DECKS / "beam.inp").read_text().partition("*STEP")[0] + "*INCLUDE, INPUT=aside.inp\n"
    steps = [step_to(tip) for tip in DEFLECTIONS]
    included = {"material": HARDENING, "aside": (DECKS / "aside.inp").read_text()}
    run(job, "whole", {**included, "whole": model + "".join(steps)})
    whole = tables(job, "whole")
    parts = [model, "*RESTART, READ, STEP=3\n", "*RESTART, READ, STEP=6\n"]
    found: dict[str, list[tuple[float, Array]]] = {name: [] for name in whole}
    for number, head in enumerate(parts):
        name = f"part{number}"
        if number:
            (job / f"part{number - 1}.rout").rename(job / f"{name}.rin")
        run(job, name, {**included, name: head + "".join(steps[3 * number : 3 * number + 3])})
        for quantity, table in tables(job, name).items():
            found[quantity] += table
    plastic = np.abs(whole["stresses"][-1][1]).max()
    assert plastic > 150 and len(whole["stresses"]) == 18
    for quantity, table in whole.items():
        # Of values that are round-off, such as 1e-15 MPa, seven digits are equal, too.
        for (time, values), (again, continued) in zip(table, found[quantity], strict=True):
            assert time == again
            np.testing.assert_array_equal(continued, values, err_msg=f"{quantity} at {time}")
