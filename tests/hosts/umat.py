"""Call umat_ of a library once: LIBRARY ARGUMENTS RESULT; ARGUMENTS has arrays by UMAT's names."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

given = dict(np.load(sys.argv[2]))
ntens, nstatv, nprops = (given[name].size for name in ("stran", "statev", "props"))
written = {
    "stress": given["stress"],
    "statev": given["statev"],
    "ddsdde": np.full((ntens, ntens), -1.0, order="F"),
    "pnewdt": given["pnewdt"],
    "sse": np.full(1, -1.0),
    "spd": np.full(1, -1.0),
}
given |= written


def at(array: NDArray[np.float64]) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


def named(names: str) -> list[Any]:
    """The arrays of UMAT's names, and zeros for those that were not given."""
    return [at(given.setdefault(name, np.zeros(36))) for name in names.split()]


def integer(number: int) -> Any:
    return ctypes.byref(ctypes.c_int(number))


given.setdefault("drot", np.eye(3, order="F"))
arguments = [
    *named("stress statev ddsdde sse spd scd rpl ddsddt drplde drpldt stran dstran time dtime"),
    *named("temp dtemp predef dpred"),
    str(given["cmname"]).upper().ljust(80).encode(),
    *map(integer, (3, ntens - 3, ntens, nstatv)),
    *named("props"),
    integer(nprops),
    *named("coords drot pnewdt celent dfgrd0 dfgrd1"),
    *map(integer, (1, 1, 1, 1)),
    (ctypes.c_int * 4)(1, 1, 1, 1),
    integer(1),
    ctypes.c_size_t(80),
]
ctypes.CDLL(sys.argv[1]).umat_(*arguments)
np.savez(sys.argv[3], **written)
