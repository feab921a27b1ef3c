"""Calls of the library that are used again, whose arrays are other tensors every time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import from_numpy

from neml2_capi._ffi.errors import check
from neml2_capi._ffi.handle import new_call
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.logs import listening
from neml2_capi.model import Model

_run = lib.neml2_call_run
_VOID = ffi.typeof("void *")
# The most bytes of results that are copied: to bind other memory takes longer than that.
_SMALL = 1 << 16


class Binding(NamedTuple):
    """One array of a call: function(call, *names, address of the tensor + offset, *form)."""

    function: Callable[..., int]
    names: tuple[Any, ...]
    #: The element type and the point stride.
    form: tuple[int, int]
    #: Bytes from the beginning of the tensor.
    offset: int = 0

    def attach(self, call: Any, address: int) -> None:
        """Bind what is there. It is not NULL, which unbinds, where there is no point at all."""
        data = ffi.cast(_VOID, address + self.offset or 1)
        check(self.function(call, *self.names, data, *self.form))


class Result(NamedTuple):
    """A tensor that calls make, of floating-point numbers."""

    shape: tuple[int, ...]
    bindings: Sequence[Binding]
    #: Whether nothing else than zero is where nothing is written.
    zeros: bool = False


class _Call(NamedTuple):
    """A call, and the addresses of the tensors that are bound, where that of one is known."""

    owner: Any
    bound: list[int]
    #: The arrays of small results, which stay bound.
    arrays: list[Any]


class Calls:
    """As many calls with the same bindings as threads use at once.

    A call keeps what it needs to run. What lies where it lay at the last run is not bound again,
    and small results are copied from arrays that stay bound.
    """

    def __init__(
        self,
        model: Model,
        read: Sequence[Binding],
        results: Sequence[Result],
        points: int,
    ) -> None:
        """`read` has a binding for each tensor that a run is given."""
        self._model, self._points, self._results = model, points, results
        self._bindings = [*([binding] for binding in read), *(r.bindings for r in results)]
        self._dtype, self._numpy_dtype = getattr(torch, model._dtype), np.dtype(model._dtype)
        values = sum(prod(result.shape) for result in results)
        self._copies = values * self._numpy_dtype.itemsize <= _SMALL
        self._idle: list[_Call] = []

    def run(self, read: Sequence[Any]) -> tuple[int, list[Any]]:
        """Evaluate tensors that are contiguous: the status as of Call.run(), and the results."""
        try:
            call = self._idle.pop()
        except IndexError:
            call = self._new_call()
        addresses = [tensor.data_ptr() for tensor in read]
        results: list[Any] = []
        if not self._copies:
            results = [
                (torch.zeros if zeros else torch.empty)(shape, dtype=self._dtype)
                for shape, _, zeros in self._results
            ]
            addresses += [tensor.data_ptr() for tensor in results]
        bound = call.bound
        if addresses != bound:
            for index, address in enumerate(addresses):
                if address != bound[index]:
                    for binding in self._bindings[index]:
                        binding.attach(call.owner[0], address)
                    bound[index] = address
        status = _run(call.owner[0], self._points)
        if status or listening:
            check(status)
        if self._copies:
            results = [from_numpy(array.copy()) for array in call.arrays]
        self._idle.append(call)
        return status, results

    def _new_call(self) -> _Call:
        """FatalError where the model is closed."""
        owner, arrays = transposing_call(self._model), []
        count = len(self._bindings) - len(self._results)
        if not self._copies:
            return _Call(owner, [-1] * len(self._bindings), [])
        for shape, bindings, _ in self._results:
            array = np.zeros(shape, self._numpy_dtype)
            arrays.append(array)
            for binding in bindings:
                binding.attach(owner[0], array.ctypes.data)
        return _Call(owner, [-1] * count, arrays)


def transposing_call(model: Model) -> Any:
    """A call that writes blocks transposed: (point, variable, output)."""
    call = new_call(model)
    check(lib.neml2_call_set_block_order(call[0], lib.NEML2_INPUT_FIRST))
    return call
