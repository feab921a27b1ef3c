"""Mapping files of plug-ins that say too much: they are refused, and nothing is written."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from native import PREBUILT

from neml2_capi.plugin import PluginError, make
from neml2_capi.umat import draft

pytestmark = pytest.mark.native

HARDENING = PREBUILT / "combined_hardening"
FIRST = "&state name = 'X1'"


def remake(folder: Path, old: str, new: str, mark: str = "") -> Path:
    """A plug-in of a mapping as drafted, with one text in place of another."""
    file, library = folder / "steel.nml", folder / "libsteel.so"
    text = draft(HARDENING, file)
    assert old in text
    file.write_text(mark + text.replace(old, new), encoding="utf-8")
    make(HARDENING, library, mapping=file)
    return library


REPEATED = {
    "memory": ("99999999999*1.0", "&state.offset repeats a value 99999999999 times"),
    "many": ("20000 * 1.0", "&state.offset repeats a value 20000 times; expected at most 10000"),
    "digits": ("9" * 5000 + "*1.0", r"999999999999\.\.\. times"),
    "underscores": ("9_999_999_999*1.0", "repeats a value 9999999999 times"),
    "sum": (", ".join(["6000*1.0"] * 2), "repeats a value 6000 times"),
    "few": ("300*1.0", r"offset of 'X1' is .*\.\.\.; it must be 6 finite numbers"),
}


@pytest.mark.parametrize("value, message", REPEATED.values(), ids=REPEATED.keys())
def test_a_repeated_value_is_not_written_out(tmp_path: Path, value: str, message: str) -> None:
    begin = time.perf_counter()
    with pytest.raises(PluginError, match=message) as told:
        remake(tmp_path, "statev = 2 /", f"statev = 2, offset = {value} /")
    assert len(str(told.value)) < 400
    assert time.perf_counter() - begin < 20
    assert not (tmp_path / "libsteel.so").exists()


def test_six_repetitions_are_six_values(tmp_path: Path) -> None:
    remake(tmp_path, "statev = 2 /", "statev = 2, offset = 6*1.0 / ! not 99999999999*1.0")


@pytest.mark.parametrize("key", ["offset(2)", "offset (1:3)", "offset(100000000)", "offset(1)%x"])
def test_a_subscript_is_refused(tmp_path: Path, key: str) -> None:
    """The parser took offset(2) = 1.0 for the offset of all components."""
    with pytest.raises(PluginError, match=r"&state\.offset has a subscript: write all its values"):
        remake(tmp_path, "statev = 2 /", f"statev = 2, {key} = 1.0 /")


def test_a_mark_of_the_byte_order_is_passed_over(tmp_path: Path) -> None:
    assert remake(tmp_path, FIRST, FIRST, "\ufeff").exists()


def test_a_key_is_there_once(tmp_path: Path) -> None:
    """The last one counted."""
    with pytest.raises(PluginError, match=r"&state has statev twice: leave one out"):
        remake(tmp_path, "statev = 2 /", "statev = 2, STATEV = 14 /")


NOTHING = "of which one would count for nothing: leave one out"
ROLES = {
    "time and temperature": (
        "temperature = ''",
        "temperature = 't'",
        f"The input 't' is the time and the temperature, {NOTHING}",
    ),
    "time and field": (
        FIRST,
        f"&field name = 't', predef = 1 /\n{FIRST}",
        f"'t' is the time and a field of predef, {NOTHING}",
    ),
    "time and constant": (
        FIRST,
        f"&field name = 't', value = 1 /\n{FIRST}",
        f"'t' is the time and a constant of value, {NOTHING}",
    ),
    "time of before and field": (
        FIRST,
        f"&field name = 't~1', predef = 1 /\n{FIRST}",
        f"'t~1' is a field of predef and the time of before, {NOTHING}",
    ),
    "history and field": (
        FIRST,
        f"&field name = 'X1~1', predef = 1 /\n{FIRST}",
        f"'X1~1' is a field of predef and the history of 'X1', {NOTHING}",
    ),
    "history and constant": (
        FIRST,
        f"&field name = 'X1~1', value = 1 /\n{FIRST}",
        f"'X1~1' is a constant of value and the history of 'X1', {NOTHING}",
    ),
    "strain and field": (
        FIRST,
        f"&field name = 'strain', predef = 1 /\n{FIRST}",
        f"'strain' is the strain and a field of predef, {NOTHING}",
    ),
    "history and temperature": (
        "temperature = ''",
        "temperature = 'equivalent_plastic_strain~1'",
        "is the temperature and the history of 'equivalent_plastic_strain'",
    ),
    "constant twice": (
        FIRST,
        f"&field name = 'X1~1', value = 1 /\n&field name = 'X1~1', value = 2 /\n{FIRST}",
        "'X1~1' is a constant of value and a constant of value",
    ),
    "tensor": (
        "temperature = ''",
        "temperature = 'strain'",
        "'strain' cannot be the temperature: expected the type Scalar .* type SR2",
    ),
    "tensor as time": ("time = 't'", "time = 'X1~1'", "'X1~1' cannot be the time"),
    "scalar as strain": ("strain = 'strain'", "strain = 't'", "'t' cannot be the strain"),
    "scalar as stress": (
        "stress = 'stress'",
        "stress = 'equivalent_plastic_strain'",
        "'equivalent_plastic_strain' cannot be the stress: expected the type SR2",
    ),
    "no such input": (
        "temperature = ''",
        "temperature = 'T'",
        r"&material\.temperature: unknown input 'T'",
    ),
}


@pytest.mark.parametrize("old, new, message", ROLES.values(), ids=ROLES.keys())
def test_a_variable_of_two_roles_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(PluginError, match=message):
        remake(tmp_path, old, new)
    assert not (tmp_path / "libsteel.so").exists()


def test_an_output_is_one_energy(tmp_path: Path) -> None:
    """The dissipated energy stayed at zero."""
    name = "equivalent_plastic_strain"
    energies = f"stored_energy = '{name}', dissipated_energy = '{name}'"
    with pytest.raises(PluginError, match=f"'{name}' is stored_energy and dissipated_energy"):
        remake(tmp_path, "stress = 'stress'", f"stress = 'stress', {energies}")


_INPUTS = "  time = 't'  ! TIME(2) + DTIME\n  temperature = ''  ! none\n/\n"
_FIELD = "/\n&field name = 't', predef = 1 /\n"
PLACES = {
    "shared": ("props = 2", "props = 1", r"parameters 'E' and 'yield_stress' share PROPS\(1\)"),
    "gap": ("props = 2", "props = 3", r"PROPS\(2\) is of no parameter, and counts for nothing"),
    "late": ("name = 'E', props = 1", "name = 'E', props = 3", r"PROPS\(1\) is of no parameter"),
    "statev": ("statev = 8", "statev = 2000000000", "expected at most 1000000"),
    "props": ("props = 2", "props = 1000001", "expected at most 1000000"),
    "predef": (_INPUTS, _FIELD.replace("1", "999999999"), "expected at most 1000000"),
}


@pytest.mark.parametrize("old, new, message", PLACES.values(), ids=PLACES.keys())
def test_a_place_that_is_no_variables_own_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(PluginError, match=message):
        remake(tmp_path, old, new)


TEMPERATURE = "  temperature = 't'\n/\n"
NOT_PASSED = [
    ("calculix", _FIELD, "'t' is a predefined field, which calculix does not pass: give it a"),
    ("kratos", _FIELD, "'t' is a predefined field, which kratos does not pass: give it a constant"),
    ("kratos", TEMPERATURE, "'t' is the temperature, which kratos does not pass: give it a"),
    ("calculix", TEMPERATURE, "'t~1' is the temperature at the beginning of an increment, which"),
]


@pytest.mark.parametrize("host, new, message", NOT_PASSED, ids=range(len(NOT_PASSED)))
def test_an_input_that_the_host_does_not_pass_is_refused(
    tmp_path: Path, host: str, new: str, message: str
) -> None:
    """The plug-in was made, and ended the job of its first call."""
    with pytest.raises(PluginError, match=message):
        remake(tmp_path, _INPUTS, f"  host = '{host}'\n{new}")
    assert remake(tmp_path, _INPUTS, f"  host = 'abaqus'\n{new}").exists()
