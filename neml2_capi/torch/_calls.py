"""Calls that are kept, and run again over other memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.dtypes import CODES
from neml2_capi._ffi.errors import check, last_message
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.logs import listening
from neml2_capi.model.binding import Place, Shape
from neml2_capi.model.evaluation import warn_of_non_finite
from neml2_capi.model.opened import Opened

_run = lib.neml2_call_run
_VOID = ffi.typeof("void *")
# The most bytes of results that are copied: to bind other memory takes longer than that.
_SMALL = 1 << 16


class Binding(NamedTuple):
    """Memory at a place of a call."""

    place: Place
    #: Elements from one point to the next; 0 is one value for all points.
    stride: int
    #: Bytes from the beginning of the memory.
    offset: int = 0

    def attach(self, call: Any, address: int) -> None:
        """Bind what is there. It is not NULL, which unbinds, if there is no point at all."""
        data = ffi.cast(_VOID, address + self.offset or 1)
        code = CODES[self.place.dtype]
        check(self.place.function(call, *self.place.leading, data, code, self.stride))


class Result(NamedTuple):
    """An array that calls make, of floating-point numbers."""

    shape: Shape
    bindings: Sequence[Binding]
    #: True if zero is to be where nothing is written.
    zeros: bool = False


class _Call(NamedTuple):
    """A call, and the addresses that are bound, if they are known."""

    owner: Any
    bound: list[int]
    #: The arrays of small results, which stay bound.
    arrays: list[Array]


class Kept:
    """As many calls with the same bindings as threads use at once.

    A call keeps what it needs to run. What lies where it lay at the last run is not bound again.
    Blocks are written transposed, as (point, variable, output).
    """

    def __init__(
        self, backend: Opened, read: Sequence[Binding], results: Sequence[Result], points: int
    ) -> None:
        """`read` has a binding for each address that a run is given."""
        self._backend, self._points, self._results = backend, points, results
        self._bindings = [*([binding] for binding in read), *(r.bindings for r in results)]
        self._idle: list[Any] = []

    def _rebind(self, call: Any, addresses: Sequence[int], bound: list[int]) -> None:
        """Bind addresses that are not `bound`, which then has them."""
        for index, address in enumerate(addresses):
            if address != bound[index]:
                for binding in self._bindings[index]:
                    binding.attach(call, address)
                bound[index] = address


class Calls(Kept):
    """Calls over memory of the host. Small results are copied from arrays that stay bound."""

    def __init__(
        self, backend: Opened, read: Sequence[Binding], results: Sequence[Result], points: int
    ) -> None:
        super().__init__(backend, read, results, points)
        self._dtype = np.dtype(backend.signature.dtype)
        values = sum(prod(result.shape) for result in results)
        self._copies = values * self._dtype.itemsize <= _SMALL

    def run(self, addresses: list[int]) -> tuple[int, list[Array]]:
        """Evaluate dense values at these addresses: the status as of Call.run(), and results."""
        try:
            call = self._idle.pop()
        except IndexError:
            call = self._new_call()
        results: list[Array] = []
        if not self._copies:
            results = self._new_results()
            addresses = [*addresses, *(array.ctypes.data for array in results)]
        if addresses != call.bound:
            self._rebind(call.owner[0], addresses, call.bound)
        status = _run(call.owner[0], self._points)
        if status or listening:
            check(status)
        if status == lib.NEML2_NON_FINITE:
            warn_of_non_finite(last_message())
        if self._copies:
            results = [array.copy() for array in call.arrays]
        self._idle.append(call)
        return status, results

    def _new_results(self) -> list[Array]:
        return [
            (np.zeros if zeros else np.empty)(shape, self._dtype)
            for shape, _, zeros in self._results
        ]

    def _new_call(self) -> _Call:
        """FatalError if the model is closed."""
        owner = self._backend.new_call()
        check(lib.neml2_call_block_order_set(owner[0], lib.NEML2_INPUT_FIRST))
        if not self._copies:
            return _Call(owner, [-1] * len(self._bindings), [])
        arrays = [np.zeros(result.shape, self._dtype) for result in self._results]
        for result, array in zip(self._results, arrays, strict=True):
            for binding in result.bindings:
                binding.attach(owner[0], array.ctypes.data)
        return _Call(owner, [-1] * (len(self._bindings) - len(arrays)), arrays)
