"""The generic behaviour of plug-ins keeps the whole contract of MGIS: null pointers, each K[0]."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from generic_host import Array, Point
from native import PREBUILT

from neml2_capi import Model
from neml2_capi.plugin import make
from neml2_capi.umat import draft

pytestmark = pytest.mark.native

HARDENING = PREBUILT / "combined_hardening"
LOADED = np.array([4e-3, -1.2e-3, -1.2e-3, 4e-4, 0, 0])


def hooke(E: float = 200e3, nu: float = 0.3) -> Array:
    direct = np.array([1.0, 1, 1, 0, 0, 0])
    lame = E * nu / (1 + nu) / (1 - 2 * nu)
    stiffness: Array = lame * np.outer(direct, direct) + E / (1 + nu) * np.eye(6)
    return stiffness


@pytest.fixture(scope="module")
def steel(tmp_path_factory: pytest.TempPathFactory) -> Point:
    """A point at rest, of a law of rates."""
    library = tmp_path_factory.mktemp("steel") / "libsteel.so"
    make(HARDENING, library)
    return Point(library, np.array([200e3, 150.0]), density=7.8e-9)


@pytest.fixture(scope="module")
def loaded(steel: Point) -> Point:
    """The same, where it flows."""
    return steel.after(LOADED)


# ---- pointers that may be null ----


def test_a_point_that_fails_needs_no_buffer_for_the_message(loaded: Point) -> None:
    told = loaded.call(4, 1e60 * LOADED)
    assert told.status == -1 and "did not converge" in told.message and 0 < told.rdt < 1
    silent = loaded.call(4, 1e60 * LOADED, null=("error_message", "rdt", "speed_of_sound"))
    assert silent.status == -1


def test_what_is_not_asked_for_may_be_null(loaded: Point) -> None:
    null = [f"{state}.{name}" for state in ("s0", "s1") for name in ("mass_density", "stored")]
    bare = loaded.call(4, 1.1 * LOADED, null=("rdt", "speed_of_sound", "s0.properties", *null))
    assert bare.status == 1, bare.message
    np.testing.assert_array_equal(bare.operator, loaded.call(4, 1.1 * LOADED).operator)


@pytest.mark.parametrize(
    "name",
    ["K", "s0.gradients", "s1.gradients", "s0.forces", "s1.forces", "s1.properties", "s0.states"],
)
def test_what_is_needed_and_null_is_told_by_name(loaded: Point, name: str) -> None:
    result = loaded.call(4, LOADED, null=(name,))
    called = name.replace("forces", "thermodynamic_forces")
    called = called.replace("states", "internal_state_variables")
    assert result.status == -1 and result.rdt == 1
    assert called.replace("properties", "material_properties") in result.message
    assert "null pointer" in result.message


def test_a_prediction_needs_nothing_of_the_end_but_properties(loaded: Point) -> None:
    names = ("gradients", "forces", "states", "mass_density", "external")
    result = loaded.call(-1, null=tuple(f"s1.{name}" for name in names))
    assert result.status == 1, result.message


# ---- what K[0] asks for ----


def test_elastic_and_secant_operators_are_elastic_in_a_loaded_state(loaded: Point) -> None:
    for code in (-2, -1):
        result = loaded.call(code)
        assert result.status == 1, result.message
        np.testing.assert_allclose(result.operator, hooke(), rtol=0, atol=1e-12 * 200e3)
        assert np.array_equal(result.forces, loaded.forces)
    for code in (1, 2):
        result = loaded.call(code, 1.2 * LOADED)
        assert result.status == 1, result.message
        np.testing.assert_allclose(result.operator, hooke(), rtol=0, atol=1e-12 * 200e3)
        assert np.array_equal(result.forces, loaded.after(1.2 * LOADED).forces)


def test_a_tangent_is_the_derivative_of_the_stress(loaded: Point) -> None:
    new, step = 1.2 * LOADED, 1e-7
    tangent = loaded.call(4, new)
    up, down = (
        np.array([loaded.call(0, new + s * step * e).forces for e in np.eye(6)]) for s in (1, -1)
    )
    np.testing.assert_allclose(tangent.operator, (up - down).T / 2 / step, rtol=0, atol=0.2)
    assert tangent.operator[0, 0] < 0.9 * hooke()[0, 0]
    assert np.array_equal(loaded.call(3, new).operator, tangent.operator)


def test_the_tangent_of_a_prediction_is_that_of_a_step_without_strain(loaded: Point) -> None:
    predicted = loaded.call(-3, dt=0.5)
    assert predicted.status == 1 and np.array_equal(predicted.forces, loaded.forces)
    np.testing.assert_array_equal(
        predicted.operator, loaded.call(4, loaded.strain, dt=0.5).operator
    )


def test_an_integration_without_operator_writes_none(loaded: Point) -> None:
    result = loaded.call(0, 1.2 * LOADED)
    assert result.status == 1 and not result.operator.any()
    assert result.forces[0] != loaded.forces[0]


def test_constants_of_the_call_give_the_elastic_operator(loaded: Point) -> None:
    softer = Point(
        loaded.library, np.array([100e3, 150.0]), loaded.states, loaded.strain, loaded.forces
    )
    np.testing.assert_allclose(softer.call(-1).operator, hooke(100e3), rtol=0, atol=1e-6)


@pytest.mark.parametrize("code", [99, 98, 97, 100, 101, 102, 103, 104])
def test_the_speed_of_sound_is_that_of_longitudinal_waves(loaded: Point, code: int) -> None:
    result = loaded.call(code, 1.2 * LOADED)
    assert result.status == 1, result.message
    assert result.speed == pytest.approx(np.sqrt(hooke()[0, 0] / 7.8e-9), rel=1e-12)
    plain = loaded.call(code - 100, 1.2 * LOADED).operator
    if code != 100:
        np.testing.assert_array_equal(result.operator, plain)


@pytest.mark.parametrize("density", [0.0, -1.0, np.nan])
def test_the_speed_of_sound_needs_a_density(loaded: Point, density: float) -> None:
    light = Point(loaded.library, loaded.properties, loaded.states, density=density)
    result = light.call(104, LOADED)
    assert result.status == -1 and "s1.mass_density" in result.message
    assert result.speed == -1 and not result.forces.any()
    assert "speed_of_sound" in loaded.call(104, LOADED, null=("speed_of_sound",)).message


@pytest.mark.parametrize("code", [5.0, 7.0, 50.0, 60.0, 95.0, 105.0, -4.0, -100.0, 1e300])
def test_a_code_that_asks_for_nothing_is_told(loaded: Point, code: float) -> None:
    """Refuse 60, too: it was taken for a prediction, which leaves the stress as it was."""
    found = loaded.call(code, LOADED)
    assert found.status == -1 and "it says what to compute, from -3 to 4, and 100 more" in (
        found.message
    )


def test_a_code_that_is_no_number_is_told(loaded: Point) -> None:
    assert "K[0] is nan" in loaded.call(np.nan, LOADED).message


# ---- no time, and what is no number ----


@pytest.mark.parametrize("code", [-3, -2, -1, 1, 2, 3, 4])
def test_a_point_at_rest_has_operators_without_time(loaded: Point, code: int) -> None:
    result = loaded.call(code, loaded.strain, dt=0)
    assert result.status == 1, result.message
    np.testing.assert_allclose(result.operator, hooke(), rtol=0, atol=1e-6 * 200e3)
    np.testing.assert_allclose(result.forces, loaded.forces, rtol=0, atol=1e-6)


def test_a_strain_that_moves_in_no_time_is_told(loaded: Point) -> None:
    result = loaded.call(4, 1.2 * LOADED, dt=0)
    assert result.status == -1 and result.rdt == 1
    assert "dt is 0" in result.message and "reduce" not in result.message


@pytest.mark.parametrize(
    "dt, told", [(-1, "dt is -1"), (np.nan, "dt is NaN"), (np.inf, "dt is NaN or inf")]
)
def test_a_time_step_that_is_none_is_told(loaded: Point, dt: float, told: str) -> None:
    result = loaded.call(4, LOADED, dt=dt)
    assert result.status == -1 and told in result.message and result.rdt == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    "name, told",
    [
        ("gradients", "s1.gradients, component 12, is NaN or infinite"),
        ("forces", "s0.thermodynamic_forces, component 12, is NaN or infinite"),
        ("states", "the state 'X1', is NaN or infinite"),
        ("properties", "the parameter 'yield_stress', is NaN or infinite"),
    ],
)
def test_what_is_not_finite_is_named(loaded: Point, name: str, told: str, value: float) -> None:
    strain = 1.2 * LOADED
    arrays = {key: getattr(loaded, key).copy() for key in ("properties", "states", "forces")}
    bad = strain if name == "gradients" else arrays[name]
    bad[1 if name == "properties" else 3] = value
    point = Point(loaded.library, strain=loaded.strain, **arrays)
    result = point.call(4, strain)
    assert result.status == -1 and result.rdt == 1
    assert told in result.message
    assert "A smaller step does not mend that" in result.message


def test_a_law_that_solves_for_its_rate_has_operators(
    artifacts: Mapping[str, Path], tmp_path: Path
) -> None:
    """It divides round-off by the time, and does not converge in the shortest of moments."""
    make(artifacts["radial_return"], tmp_path / "librate.so")
    constants = Model(artifacts["radial_return"]).named_parameters().values()
    properties = np.concatenate([np.ravel(values) for values in constants])
    point = Point(tmp_path / "librate.so", properties)
    flowing = point.after(LOADED)
    assert flowing.call(4, LOADED).operator[0, 0] < 0.9 * hooke()[0, 0]
    for code in (-2, -1, 1, 2):
        result = flowing.call(code, 1.2 * LOADED)
        assert result.status == 1, result.message
        np.testing.assert_allclose(result.operator, hooke(), rtol=0, atol=1e-6 * 200e3)
    result = flowing.call(4, LOADED, dt=0)
    assert result.status == 1, result.message
    np.testing.assert_allclose(result.operator, hooke(), rtol=0, atol=1e-4 * 200e3)


# ---- parameters ----


def test_parameters_are_set_by_name_and_hold_from_then_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A constant that the mapping leaves out of the properties, and options of the solver."""
    mapping, library = tmp_path / "steel.nml", tmp_path / "libsteel.so"
    lines = draft(HARDENING).splitlines()
    lines = [line for line in lines if "yield_stress" not in line]
    mapping.write_text("\n".join([*lines, "&option name = 'rtol', value = 1e-9 /"]))
    make(HARDENING, library, mapping=mapping)
    point, loading = Point(library, np.array([200e3])), ctypes.CDLL(str(library))
    number, count, size = (
        getattr(loading, f"NEML2_Tridimensional_set{kind}Parameter")
        for kind in ("", "UnsignedShort", "Integer")
    )
    number.argtypes = [ctypes.c_char_p, ctypes.c_double]
    assert point.table("nParameters") == 4
    names = (ctypes.c_char_p * 4).in_dll(loading, "NEML2_Parameters")
    assert list(names) == [b"atol", b"rtol", b"miters", b"rescue"]
    options = Model(HARDENING).options
    for option, kind, default in (
        ("atol", ctypes.c_double, options["atol"]),
        ("rtol", ctypes.c_double, 1e-9),
        ("miters", ctypes.c_ushort, options["miters"]),
        ("rescue", ctypes.c_ushort, 100),
    ):
        assert kind.in_dll(loading, f"NEML2_{option}_ParameterDefaultValue").value == default
    before = point.call(4, LOADED)
    assert number(b"yield_stress", 1e6) == 1
    after = point.call(4, LOADED)
    np.testing.assert_allclose(after.forces, hooke() @ LOADED, rtol=1e-10, atol=1e-8)
    assert before.forces[0] < 0.9 * after.forces[0]
    assert number(b"yield_stress", 150.0) == 1
    np.testing.assert_array_equal(point.call(4, LOADED).forces, before.forces)

    assert count(b"miters", 2) == 1 and size(b"rescue", 0) == 1
    assert point.call(4, LOADED).status == -1
    assert count(b"miters", 50) == 1
    np.testing.assert_array_equal(point.call(4, LOADED).forces, before.forces)

    assert not capfd.readouterr().err
    for name, value, told in (
        (b"E", 1.0, "is a material property"),
        (b"sy", 1.0, "'sy'"),
        (b"yield_stress", np.nan, "is nan"),
        (b"atol", -1.0, "must lie between"),
        (None, 1.0, "null pointer"),
    ):
        assert number(name, value) == 0
        assert told in capfd.readouterr().err
    np.testing.assert_array_equal(point.call(4, LOADED).forces, before.forces)


# ---- restart ----

JOB = """
import sys
from pathlib import Path
import numpy as np
from generic_host import Point

library, file, first, last = sys.argv[1:]
kept = dict(np.load(file)) if Path(file).exists() else {}
point = Point(Path(library), np.array([200e3, 150.0]), **kept)
for step in range(int(first), int(last)):
    point = point.after(1e-3 * np.sin(step + 1.0) * np.array([4, -1.2, -1.2, 0.4, 0, 0]))
np.savez(file, states=point.states, strain=point.strain, forces=point.forces)
"""


def test_a_host_that_restarts_by_its_states_has_the_same_bits(
    loaded: Point, tmp_path: Path
) -> None:
    """A process for every three steps: the library keeps nothing but what the host saves."""
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}

    def run(file: str, first: int, last: int) -> None:
        words = [sys.executable, "-c", JOB, str(loaded.library), file, str(first), str(last)]
        subprocess.run(words, check=True, cwd=tmp_path, env=path)

    run("whole.npz", 0, 9)
    for first in (0, 3, 6):
        run("part.npz", first, first + 3)
    whole, part = np.load(tmp_path / "whole.npz"), np.load(tmp_path / "part.npz")
    for name in ("states", "strain", "forces"):
        np.testing.assert_array_equal(part[name], whole[name])
    assert whole["states"].any()
