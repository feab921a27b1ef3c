"""Calls over tensors on a device, in the queue of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from neml2_capi._ffi.errors import check, last_message
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.on_device import memory_of, set_memory
from neml2_capi.model.evaluation import warn_of_non_finite
from neml2_capi.model.opened import Opened
from neml2_capi.torch._calls import Binding, Result


class _Call(NamedTuple):
    owner: Any
    #: Queue of its memory, as long as it is bound.
    queue: list[int]
    #: The addresses that are bound, if they are known.
    bound: list[int]


class DeviceCalls:
    """As many calls with the same bindings as threads use at once.

    A result is a new tensor beside the tensors that are read. Blocks are written transposed, as
    (point, variable, output).
    """

    def __init__(
        self, backend: Opened, read: Sequence[Binding], results: Sequence[Result], points: int
    ) -> None:
        """`read` has a binding for each address that a run is given."""
        self._backend, self._points, self._results = backend, points, results
        self._bindings = [*([binding] for binding in read), *(r.bindings for r in results)]
        self._dtype = getattr(torch, backend.signature.dtype)
        self._idle: list[_Call] = []

    def run(self, addresses: list[int], like: Any) -> tuple[int, list[Any]]:
        """Evaluate dense values at these addresses: the status as of Call.wait(), and results.

        They are where the tensor `like` is, on torch's stream there.
        """
        results = [
            (torch.zeros if zeros else torch.empty)(shape, dtype=self._dtype, device=like.device)
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
        for index, address in enumerate(everything):
            if address != call.bound[index]:
                for binding in self._bindings[index]:
                    binding.attach(handle, address)
                call.bound[index] = address
        check(lib.neml2_call_run(handle, self._points))
        status: int = check(lib.neml2_call_wait(handle))
        if status == lib.NEML2_NON_FINITE:
            warn_of_non_finite(last_message())
        self._idle.append(call)
        return status, results
