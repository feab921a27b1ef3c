"""MGIS itself over a plug-in, beside closed forms.

NEML2_CAPI_MGIS names the folder that MGIS was installed to:

cmake -S MFrontGenericInterfaceSupport -B build -Denable-website=OFF -Denable-doxygen-doc=OFF
cmake --build build --target install
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from generic_host import Array
from native import CXX, HOSTS, PREBUILT, kept
from test_generic_behaviour import LOADED, hooke

from neml2_capi import examples
from neml2_capi.plugin import make

MGIS = os.environ.get("NEML2_CAPI_MGIS", "")

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not MGIS, reason="NEML2_CAPI_MGIS does not name an installed MGIS"),
]

SPEED = float(np.sqrt(hooke()[0, 0] / 7.8e-9))


def run(artifact: Path, library: Path) -> dict[str, list[str]]:
    """Lines of the program over a plug-in by their first words."""
    make(artifact, library)
    options = ("-std=c++20", f"-I{MGIS}/include", f"-L{MGIS}/lib", f"-Wl,-rpath,{MGIS}/lib")
    source = HOSTS / "mgis.cpp"
    program = kept("program", (CXX, *options), source, "-lMFrontGenericInterface") / "program"
    done = subprocess.run(
        [program, library, "200e3", "150"], capture_output=True, text=True, check=True
    )
    lines: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        lines.setdefault(line.split()[0], []).append(line)
    return lines


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return run(PREBUILT / "combined_hardening", tmp_path_factory.mktemp("mgis") / "libsteel.so")


def points(told: dict[str, list[str]], word: str) -> dict[float, tuple[int, Array, float]]:
    """Status, K and the last number by the code."""
    numbers = (np.array(line.split()[1:], float) for line in told[word])
    return {row[0]: (int(row[1]), row[2:38].reshape(6, 6), row[38]) for row in numbers}


def radial_return(strain: Array, stress: Array, p: float) -> tuple[Array, float, Array]:
    """Stress, equivalent plastic strain and consistent tangent after an increment of 1 s.

    J2 viscoplasticity with linear hardening, by backward Euler: Simo and Hughes, Computational
    Inelasticity (1998), boxes 3.1 and 3.2, with Perzyna's overstress. NEML2's yield function and
    its flow are of the norm of the deviator, sqrt(2/3) of the equivalent stress.
    """
    G, H, first, exponent = 200e3 / 2.6, 2000.0, 150.0, 6.0
    overstress = 120.0 * 1.5 ** (0.5 + 0.5 / exponent)
    direct = np.array([1.0, 1, 1, 0, 0, 0])
    deviatoric = np.eye(6) - np.outer(direct, direct) / 3
    trial = stress + hooke() @ strain
    size = float(np.linalg.norm(deviatoric @ trial))
    q, normal = np.sqrt(1.5) * size, deviatoric @ trial / size
    below, above = 0.0, (q - first - H * p) / (3 * G + H)
    for _ in range(200):
        flow = (below + above) / 2
        left = q - 3 * G * flow - first - H * (p + flow) - overstress * flow ** (1 / exponent)
        below, above = (flow, above) if left > 0 else (below, flow)
    viscous = overstress / exponent * flow ** (1 / exponent - 1)
    tangent = hooke() - 2 * G * (3 * G * flow / q) * deviatoric
    tangent += 6 * G**2 * (flow / q - 1 / (3 * G + H + viscous)) * np.outer(normal, normal)
    return trial - np.sqrt(6) * G * flow * normal, p + flow, tangent


def test_each_code_gives_the_operator_that_it_names(tmp_path: Path) -> None:
    told = run(examples.path("isotropic_hardening"), tmp_path / "libsteel.so")
    found = points(told, "point")
    stress, p, tangent = radial_return(LOADED, np.zeros(6), 0.0)
    status, K, first = points(told, "loaded")[4]
    assert status == 1 and first == pytest.approx(stress[0], rel=1e-10)
    np.testing.assert_allclose(K, tangent, rtol=0, atol=1e-10 * 200e3)
    expected = {
        **{code: hooke() for code in (-2, -1, 1, 2)},
        **{code: radial_return(0.2 * LOADED, stress, p)[2] for code in (3, 4)},
        -3: radial_return(np.zeros(6), stress, p)[2],
    }
    for code, operator in expected.items():
        for sound in (0, 100):
            status, K, _ = found[code + sound]
            assert status == 1
            np.testing.assert_allclose(K, operator, rtol=0, atol=1e-10 * 200e3)
    assert found[0][0] == found[100][0] == 1


def test_codes_above_50_give_the_speed_of_sound(told: dict[str, list[str]]) -> None:
    for code, (status, _, speed) in points(told, "point").items():
        assert status == 1
        assert speed == (pytest.approx(SPEED, rel=1e-12) if code > 50 else -1)


def test_mgis_integrates_many_points_and_gets_messages(told: dict[str, list[str]]) -> None:
    status, K, speed = points(told, "many")[101]
    assert status == 1 and speed == pytest.approx(SPEED / 2, rel=1e-12)
    speeds = np.array(told["speeds"][0].split()[1:], float)
    np.testing.assert_allclose(speeds, SPEED / np.sqrt([1, 2, 4]), rtol=1e-12)
    np.testing.assert_allclose(K, hooke(), rtol=0, atol=1e-10 * 200e3)
    assert told["failed"] == ["failed without a buffer -1"]
    assert told["message"][0].startswith("message -1 1 of 1 points did not converge")
    assert told["energies"] == ["energies 0 0"]
