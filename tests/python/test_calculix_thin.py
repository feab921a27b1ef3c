"""Shells, membranes, trusses and plane elements of CalculiX, to which a law is a solid."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from abaqus import Array, mandel, tensor
from calculix import MARKS, material, run, tables
from native import PREBUILT

from neml2_capi import Model, drive
from neml2_capi.umat import draft

pytestmark = MARKS

LAW = PREBUILT / "combined_hardening"
CORNERS, ALL = (1, 2, 3, 4), (1, 2, 3, 4, 5, 6, 7, 8)


#: Where strain and stress of a hypothesis are among the six.
PLACES = {"plane_stress": [0, 1, 5], "plane_strain": [0, 1, 2, 5], "uniaxial": [0]}


class Element(NamedTuple):
    """An element of the deck thin.inp."""

    nodes: tuple[int, ...]
    section: str
    #: The hypothesis that it is if its sides are held, and if they are free; "" if it cannot be.
    held: str
    free: str = "uniaxial"
    #: Boundary conditions besides.
    sides: str = ""


FLAT = "NALL, 3\n"
ELEMENTS = {
    "S4": Element(CORNERS, "SHELL", "plane_stress", sides=FLAT),
    "S8": Element(ALL, "SHELL", "plane_stress", sides=FLAT),
    "S8R": Element(ALL, "SHELL", "plane_stress", sides=FLAT),
    "M3D4": Element(CORNERS, "MEMBRANE", "plane_stress", sides=FLAT),
    "M3D8": Element(ALL, "MEMBRANE", "plane_stress", sides=FLAT),
    "CPS4": Element(CORNERS, "SOLID", "plane_stress"),
    "CPS8": Element(ALL, "SOLID", "plane_stress"),
    "CPE8": Element(ALL, "SOLID", "plane_strain", ""),
    "T3D2": Element((1, 2), "SOLID", "", sides="1, 1, 3\n2, 2, 3\n"),
}


def pulled(folder: Path, kind: str, held: bool) -> tuple[Array, Array, Array]:
    """Times, strains and stresses (steps, points, 6) of an element, from zero."""
    element = ELEMENTS[kind]
    file = folder / "hardening.nml"
    file.write_text(draft(LAW, file))
    nodes = ", ".join(map(str, element.nodes))
    top = "TOP, 2\n" if held else ""
    parts = {
        "element": f"*ELEMENT, TYPE={kind}, ELSET=EALL\n1, {nodes}\n",
        "material": material("hardening", "200000, 150", 13, section=element.section, size="0.1"),
        "sides": element.sides + top,
    }
    run(folder, "thin", parts)
    found = tables(folder, "thin")
    times = np.array([0.0, *(time for time, _ in found["strains"])])
    strain, stress = (
        np.array(
            [np.zeros((len(table[0][1]), 6))]
            + [[mandel(tensor(row)) for row in rows] for _, rows in table]
        )
        for table in (found["strains"], found["stresses"])
    )
    assert times[-1] == pytest.approx(20.0)
    return times, strain, stress


CASES = [
    (kind, is_held)
    for kind, element in ELEMENTS.items()
    for is_held in (True, False)
    if (element.held if is_held else element.free)
]


@pytest.mark.parametrize(("kind", "is_held"), CASES)
def test_an_element_is_its_hypothesis(tmp_path: Path, kind: str, is_held: bool) -> None:
    """CalculiX makes it a solid, and finds the strains across it; the library finds them, too."""
    times, strain, stress = pulled(tmp_path, kind, is_held)
    # What it passed is in three dimensions. Strain has seven digits.
    solid = drive(Model(LAW), times, {"strain": strain}, progress=False)
    largest = np.abs(stress).max()
    assert largest > 150 and solid["equivalent_plastic_strain"][-1].min() > 1e-3
    np.testing.assert_allclose(stress, solid["stress"], rtol=0, atol=1e-4 * largest)
    element = ELEMENTS[kind]
    hypothesis = element.held if is_held else element.free
    places = PLACES[hypothesis]
    model = Model(LAW, hypothesis=hypothesis)
    thin = drive(model, times, {"strain": strain[:, 0, places]}, progress=False)
    expected = np.zeros((len(times), 6))
    expected[:, places] = thin["stress"]
    if hypothesis != "plane_strain":
        across = [c for c in range(6) if c not in places]
        found = thin["strain_transverse"]
        np.testing.assert_allclose(strain[:, 0, across], found, rtol=0, atol=1e-6)
    for point in range(stress.shape[1]):
        np.testing.assert_allclose(stress[:, point], expected, rtol=0, atol=2e-4 * largest)
