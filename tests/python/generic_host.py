"""Call the generic behaviour of a plug-in as MGIS does, with what MGIS allows to be null."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SIZE_OF_MESSAGE = 512


def _pointers(*names: str) -> list[tuple[str, type[ctypes.c_void_p]]]:
    return [(name, ctypes.c_void_p) for name in names]


class _State(ctypes.Structure):
    _fields_ = _pointers(
        *("gradients", "forces", "mass_density", "properties"),
        *("states", "stored", "dissipated", "external"),
    )


class _View(ctypes.Structure):
    _fields_ = [
        ("error_message", ctypes.c_void_p),
        ("dt", ctypes.c_double),
        *_pointers("K", "rdt", "speed_of_sound"),
        ("s0", _State),
        ("s1", _State),
    ]


@dataclass
class Result:
    """What a call wrote."""

    status: int
    forces: Array
    states: Array
    operator: Array
    message: str
    rdt: float
    speed: float
    energies: tuple[float, float]


@dataclass
class Point:
    """A point of a behaviour at the beginning of a step."""

    library: Path
    properties: Array = field(default_factory=lambda: np.zeros(0))
    states: Array = field(default_factory=lambda: np.zeros(0))
    strain: Array = field(default_factory=lambda: np.zeros(6))
    forces: Array = field(default_factory=lambda: np.zeros(6))
    external: Array = field(default_factory=lambda: np.zeros(0))
    density: float = 0.0

    def __post_init__(self) -> None:
        """The behaviour reads and writes as many numbers as its tables say."""
        kinds = (ctypes.c_int * 1000).in_dll(
            ctypes.CDLL(str(self.library)), "NEML2_InternalStateVariablesTypes"
        )
        size = sum((1, 6, 3, 9)[kind] for kind in kinds[: self.table("nInternalStateVariables")])
        if self.states.size == 0:
            self.states = np.zeros(size)
        assert self.states.size == size
        assert self.properties.size == self.table("nMaterialProperties")

    def table(self, name: str) -> int:
        return ctypes.c_ushort.in_dll(ctypes.CDLL(str(self.library)), f"NEML2_{name}").value

    def call(
        self,
        code: float,
        strain: Array | None = None,
        dt: float = 1.0,
        null: tuple[str, ...] = (),
        external: Array | None = None,
        hypothesis: str = "Tridimensional",
    ) -> Result:
        """Ask for what K[0] says; `null` names members of the view, and of "s0." and "s1.".

        Under all hypotheses but Tridimensional there are further states, which begin with 0.
        """
        integrate = getattr(ctypes.CDLL(str(self.library)), f"NEML2_{hypothesis}")
        states = self.states
        if hypothesis != "Tridimensional":
            states = np.zeros(self.table(f"{hypothesis}_nInternalStateVariables"))
            states[: self.states.size] = self.states
        result = Result(0, self.forces.copy(), states.copy(), np.zeros((6, 6)), "", 1, -1, (0, 0))
        result.operator[0, 0] = code
        text = ctypes.create_string_buffer(SIZE_OF_MESSAGE)
        rdt, speed, density = np.ones(1), -np.ones(1), np.array([self.density])
        energies = np.zeros(4)
        common = {"mass_density": density, "properties": self.properties}
        arrays: dict[str, Mapping[str, Array]] = {
            "": {"K": result.operator, "rdt": rdt, "speed_of_sound": speed},
            "s0.": {
                **common,
                "gradients": self.strain,
                "forces": self.forces,
                "states": states,
                "external": self.external,
                "stored": energies[:1],
                "dissipated": energies[1:2],
            },
            "s1.": {
                **common,
                "gradients": self.strain if strain is None else strain,
                "external": self.external if external is None else external,
                "forces": result.forces,
                "states": result.states,
                "stored": energies[2:3],
                "dissipated": energies[3:],
            },
        }
        view = _View(error_message=ctypes.addressof(text), dt=dt)
        if "error_message" in null:
            view.error_message = None
        for where, members in arrays.items():
            target: Any = getattr(view, where[:-1]) if where else view
            for name, array in members.items():
                empty = array.size == 0 or where + name in null
                setattr(target, name, None if empty else array.ctypes.data)
        result.status = integrate(ctypes.byref(view))
        result.message = text.value.decode()
        result.rdt, result.speed = float(rdt[0]), float(speed[0])
        result.energies = (float(energies[2]), float(energies[3]))
        return result

    def after(self, strain: Array, dt: float = 1.0) -> Point:
        """The point at the end of a step."""
        result = self.call(0, strain, dt)
        assert result.status == 1, result.message
        return Point(
            self.library,
            self.properties,
            result.states,
            np.array(strain, float),
            result.forces,
            self.external,
            self.density,
        )
