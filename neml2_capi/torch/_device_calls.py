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

    def run(self, addresses: list[int], like: Any) -> tuple[int, list[Any]]:
        """Evaluate dense values at these addresses: the status as of Call.wait(), and results.

        They are where the tensor `like` is, on torch's stream there.
        """
        dtype = getattr(torch, self._backend.signature.dtype)
        results = [
            (torch.zeros if zeros else torch.empty)(shape, dtype=dtype, device=like.device)
            for shape, _, zeros in self._results
        ]
        if self._points == 0:
            return lib.NEML2_OK, results
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
        status: int = check(lib.neml2_call_wait(handle))
        if status == lib.NEML2_NON_FINITE:
            warn_of_non_finite(last_message())
        self._idle.append(call)
        return status, results
