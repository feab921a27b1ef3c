"""Calls over tensors on a device, in the queue of the caller."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from neml2_capi._ffi.errors import check, last_message
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.on_device import memory_of, set_memory
from neml2_capi.model.evaluation import warn_of_non_finite
from neml2_capi.torch._calls import Kept


class _Call(NamedTuple):
    owner: Any
    #: Queue of its memory, as long as it is bound.
    queue: list[int]
    #: The addresses that are bound, if they are known.
    bound: list[int]


class DeviceCalls(Kept):
    """Calls over memory of a device. A result is a new tensor beside the tensors that are read."""

    def begin(self, addresses: list[int], like: Any, *, marks: bool) -> tuple[Any, list[Any]]:
        """Put an evaluation of dense values at these addresses into the queue, and return.

        They are where the tensor `like` is, on torch's stream there. Returns the call, for end(),
        and the results; if it `marks`, results of points that fail are NaN.
        """
        how = {"dtype": getattr(torch, self._backend.signature.dtype), "device": like.device}
        results = [
            torch.full(shape, 0.0 if zeros else torch.nan, **how)
            if zeros or marks
            else torch.empty(shape, **how)
            for shape, _, zeros in self._results
        ]
        if self._points == 0:
            return None, results
        try:
            call = self._idle.pop()
        except IndexError:
            call = _Call(self._backend.new_call(), [-1], [-1] * len(self._bindings))
        handle, memory = call.owner[0], memory_of(like)
        assert memory is not None, "it is on a device"
        if call.queue[0] != memory.queue:
            set_memory(handle, memory, 1)
            check(lib.neml2_call_block_order_set(handle, lib.NEML2_INPUT_FIRST))
            call.queue[0], call.bound[:] = memory.queue, [-1] * len(self._bindings)
        everything = [*addresses, *(result.data_ptr() for result in results)]
        self._rebind(handle, everything, call.bound)
        check(lib.neml2_call_run(handle, self._points))
        return call, results

    def end(self, call: Any) -> int:
        """Wait for an evaluation. Returns the status as of Call.wait()."""
        if call is None:
            return int(lib.NEML2_OK)
        status: int = check(lib.neml2_call_wait(call.owner[0]))
        if status == lib.NEML2_NON_FINITE:
            warn_of_non_finite(last_message())
        self._idle.append(call)
        return status


class Unseen(NamedTuple):
    """An evaluation on its way, of which nobody knows yet whether points failed."""

    calls: DeviceCalls
    call: Any
    plan: Any
    #: The tensors that are read and written: memory that must stay.
    arguments: list[Any]
    results: list[Any]
