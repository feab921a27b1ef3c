"""Structures of the library: one to be filled, and one that says what to open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from neml2_capi._ffi.errors import FatalError, check, unknown_name
from neml2_capi._ffi.library import ffi, lib

_Code = TypeVar("_Code")

#: The numbers of runtimes by their names.
RUNTIMES = {
    "auto": lib.NEML2_RUNTIME_AUTO,
    "builtin": lib.NEML2_RUNTIME_BUILTIN,
    "libtorch": lib.NEML2_RUNTIME_LIBTORCH,
    "tensors": lib.NEML2_RUNTIME_TENSORS,
}
#: The names of runtimes by their numbers.
RUNTIME_NAMES = {number: name for name, number in RUNTIMES.items()}

#: The numbers of strain measures and of stresses by their names.
STRAIN_MEASURES = {
    "logarithmic": lib.NEML2_STRAIN_LOGARITHMIC,
    "green_lagrange": lib.NEML2_STRAIN_GREEN_LAGRANGE,
    "corotational": lib.NEML2_STRAIN_COROTATIONAL,
}
STRESS_MEASURES = {
    "pk1": lib.NEML2_STRESS_PK1,
    "cauchy": lib.NEML2_STRESS_CAUCHY,
    "pk2": lib.NEML2_STRESS_PK2,
    "kirchhoff": lib.NEML2_STRESS_KIRCHHOFF,
}

#: The numbers of hypotheses by their names.
HYPOTHESES = {
    name.lower(): getattr(lib, f"NEML2_{name}")
    for name in (
        "TRIDIMENSIONAL",
        "PLANE_STRAIN",
        "AXISYMMETRICAL",
        "GENERALISED_PLANE_STRAIN",
        "PLANE_STRESS",
        "UNIAXIAL",
        "BEAM",
        "PLANE_BEAM",
        "SHELL",
        "AXISYMMETRICAL_GENERALISED_PLANE_STRAIN",
    )
}

_DEVICES = {"cuda": lib.NEML2_DEVICE_CUDA, "opencl": lib.NEML2_DEVICE_OPENCL}

#: What structures point to: a structure of cffi does not keep it alive.
_POINTED_TO: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def sized(structure: str, **fields: Any) -> Any:
    """A structure, "neml2_device" for example, with its size; its fields live as long as it."""
    made = ffi.new(f"{structure} *", fields)
    made.size = ffi.sizeof(made[0])
    _POINTED_TO[made] = fields
    return made


def inspected(structure: str, inspect: Callable[..., int], *arguments: Any) -> Any:
    """Fill a structure by a function of the library."""
    told = sized(structure)
    check(inspect(told, *arguments))
    return told


def counted(count: Callable[..., int], *arguments: Any) -> range:
    """The positions of what a function of the library counts."""
    number = ffi.new("int64_t *")
    check(count(number, *arguments))
    return range(number[0])


def code_of(kind: str, name: str, codes: Mapping[str, int]) -> int:
    """The number of a name; UnknownNameError if no "runtime", for example, is called so."""
    if name not in codes:
        raise unknown_name(kind, str(name), codes)
    return int(codes[name])


def measure_codes(strain: str | None, stress: str | None) -> tuple[int, int]:
    """The numbers of a strain measure and of its stress; None for none, and for the default."""
    of_strain = 0 if strain is None else code_of("strain measure", strain, STRAIN_MEASURES)
    of_stress = 0 if stress is None else code_of("stress measure", stress, STRESS_MEASURES)
    if strain is None and stress is not None:
        raise FatalError(
            "a stress measure belongs to a strain measure: give strain_measure=, too",
            lib.NEML2_ERROR_ARGUMENT,
            "stress_measure",
        )
    return of_strain, of_stress


def device_code(name: str) -> tuple[int, int]:
    """The numbers of a device, "cpu", "cuda:1" or "opencl:0"; FatalError if there is none."""
    family, _, index = str(name).partition(":")
    if family == "cpu" and (not index or index.isdecimal()):
        return lib.NEML2_DEVICE_CPU, 0
    if family in _DEVICES and (name == family or index.isdecimal()) and int(index or 0) < 2**15:
        return _DEVICES[family], int(index or 0)
    raise FatalError(
        f"There is no device {str(name)!r}. This version runs on 'cpu', on 'cuda' or 'cuda:1', and "
        "on 'opencl' or 'opencl:1'.",
        lib.NEML2_ERROR_UNSUPPORTED,
        str(name),
    )
