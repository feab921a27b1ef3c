"""MGIS itself over a plug-in: NEML2_CAPI_MGIS names the folder that MGIS was installed to.

cmake -S MFrontGenericInterfaceSupport -B build -Denable-website=OFF -Denable-doxygen-doc=OFF
cmake --build build --target install
"""

from __future__ import annotations

import os
import subprocess

import numpy as np
import pytest
from generic_host import Array
from native import CXX, HOSTS, PREBUILT, kept
from test_generic_behaviour import LOADED, hooke

from neml2_capi import Model
from neml2_capi.plugin import make

MGIS = os.environ.get("NEML2_CAPI_MGIS", "")

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not MGIS, reason="NEML2_CAPI_MGIS does not name an installed MGIS"),
]

SPEED = float(np.sqrt(hooke()[0, 0] / 7.8e-9))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Lines of the program by their first words."""
    library = tmp_path_factory.mktemp("steel") / "libsteel.so"
    make(PREBUILT / "combined_hardening", library)
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


def points(told: dict[str, list[str]], word: str) -> dict[float, tuple[int, Array, float]]:
    """Status, K and the last number by the code."""
    numbers = (np.array(line.split()[1:], float) for line in told[word])
    return {row[0]: (int(row[1]), row[2:38].reshape(6, 6), row[38]) for row in numbers}


def consistent(factor: float) -> Array:
    """The tangent of the model itself, from the loaded state, in MFront's order."""
    order = [0, 1, 2, 5, 4, 3]
    model = Model(PREBUILT / "combined_hardening")
    state = model.state(1)
    outputs, _ = model.jacobian(state.inputs(strain=LOADED[None, order], t=1.0))
    state.advance(outputs)
    inputs = state.inputs(strain=factor * LOADED[None, order], t=2.0)
    tangent: Array = model.jacobian(inputs)[1]["stress"]["strain"][0]
    return tangent[np.ix_(order, order)]


def test_each_code_gives_the_operator_that_it_names(told: dict[str, list[str]]) -> None:
    found = points(told, "point")
    expected = {
        **{code: hooke() for code in (-2, -1, 1, 2)},
        **{code: consistent(1.2) for code in (3, 4)},
        -3: consistent(1.0),
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
    assert status == 1 and speed == pytest.approx(SPEED, rel=1e-12)
    np.testing.assert_allclose(K, hooke(), rtol=0, atol=1e-10 * 200e3)
    assert told["failed"] == ["failed without a buffer -1"]
    assert told["message"][0].startswith("message -1 1 of 1 points did not converge")
    assert told["energies"] == ["energies 0 0"]
