"""A model as a function of torch tensors: with its Jacobian, or evaluated again for adjoints."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch

from neml2_capi._ffi.errors import ConvergenceError, FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import NO_TRACE
from neml2_capi.model import Model
from neml2_capi.torch._calls import Binding, Calls, Result
from neml2_capi.torch._device_calls import DeviceCalls, Unseen
from neml2_capi.torch._slots import Shape, Slot, Slots

#: The most columns of a Jacobian that are cheaper than a second evaluation, in a model of several
#: segments: there each takes a product with the blocks of all segments.
_FEW_COLUMNS = 8
#: The most values of a Jacobian with which numpy multiplies.
_MANY = 1 << 16
#: The most plans that are remembered.
_MOST = 32

_Tensors = tuple[Any, ...]


class Linearization(Slots):
    """A model whose arguments are all inputs and then all parameters, given by position.

    The Jacobian of an output is transposed: (*B, columns, rows), where the rows are the components
    of the output, and the columns the components of the arguments that it is wanted for, one
    after another. So the library writes each block to its place, and one product applies them all.
    """

    def __init__(self, model: Model, outputs: Sequence[str]) -> None:
        super().__init__(model, outputs)
        self.dtype = getattr(torch, model._dtype)
        self._segments = len(model.describe()["segments"])
        self._plans: dict[Any, Plan] = {}
        #: Whether evaluations on a device do not wait, and those that are on their way.
        self.goes_on = False
        self.unseen = deque[Unseen]()

    def go_on(self, unseen: Unseen) -> None:
        """Look at the evaluation before this one. ConvergenceError if points of it failed."""
        self.unseen.append(unseen)
        self.look(but=1)

    def look(self, but: int = 0) -> None:
        """Wait for evaluations, `but` the last. ConvergenceError if points of one failed."""
        while len(self.unseen) > but:
            unseen = self.unseen.popleft()
            if unseen.calls.end(unseen.call) > lib.NEML2_NON_FINITE:
                try:
                    unseen.plan._raise_failed(unseen.arguments)
                except ConvergenceError as error:
                    error.args = (f"in an evaluation before this: {error}",)
                    raise

    def plan(
        self,
        shapes: tuple[Shape, ...],
        wanted: tuple[bool, ...],
        linearizes: bool | None = None,
        *,
        there: bool,
    ) -> Plan:
        """Return how to evaluate tensors of those shapes; FatalError if they do not fit.

        With Jacobians if the plan `linearizes`; by default, if that is what takes less time.
        `there`: the tensors are on the device of the model.
        """
        key = shapes, wanted, linearizes, there
        plan = self._plans.get(key)
        if plan is None:
            if linearizes is None:
                linearizes = any(wanted) and (
                    self._segments == 1 or sum(self.columns(wanted)) <= _FEW_COLUMNS
                )
            plan = Plan(self, shapes, wanted, linearizes, there)
            if len(self._plans) >= _MOST:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def evaluate(self, tensors: Sequence[Any], wanted: Sequence[bool]) -> _Tensors:
        """The outputs, each (*B, *shape), and if anything is wanted a Jacobian for each.

        Tensors are used where they are; those that are not contiguous, or of another batch than
        the others and not one value, are copied. ConvergenceError as in Model.forward().
        """
        shapes = tuple(tensor.shape for tensor in tensors)
        plan = self.plan(shapes, tuple(wanted), any(wanted), there=self.is_there(tensors))
        results = plan.evaluate(tensors)
        if any(wanted):
            # Copies, because torch takes no views for results of a function in forward mode.
            results[-1:] = [jacobian.clone() for jacobian in plan.jacobians(results[-1])]
        return tuple(results)


class Part(NamedTuple):
    """Adjoint of an argument in a row of all adjoints, for each point or summed."""

    argument: int
    columns: slice
    #: The shape of the tensor, or if it broadcasts otherwise than one value, in the whole batch.
    shape: Shape
    #: True if it is one value, and so the sum over the points.
    summed: bool
    #: The shape of the tensor if that is another.
    reduced: Shape | None

    def of(self, rows: Any) -> Any:
        adjoint = torch.from_numpy(rows[..., self.columns].reshape(self.shape))
        return adjoint if self.reduced is None else adjoint.sum_to_size(self.reduced)


class Plan:
    """Plan of an evaluation for tensors of given shapes, of which some are `wanted`.

    The Jacobians of all outputs lie in one tensor, one after another.
    """

    def __init__(
        self,
        model: Linearization,
        shapes: tuple[Shape, ...],
        wanted: tuple[bool, ...],
        linearizes: bool,
        there: bool,
    ) -> None:
        self.model, self.shapes, self.wanted = model, shapes, wanted
        self.linearizes, self.there = linearizes, there
        self.batch = model.batch_of(shapes)
        batches = [a.batch_of(shape) for a, shape in zip(model.arguments, shapes, strict=True)]
        self.points = math.prod(self.batch)
        self.columns = model.columns(wanted)
        self.width = sum(self.columns)
        self._strides = [
            0 if batch != self.batch and math.prod(batch) == 1 else argument.size
            for argument, batch in zip(model.arguments, batches, strict=True)
        ]
        self._expanded = [
            self.batch + argument.shape if stride and batch != self.batch else None
            for argument, batch, stride in zip(model.arguments, batches, self._strides, strict=True)
        ]
        self._expands = any(shape is not None for shape in self._expanded)
        results = [Result(self.batch + o.shape, [Binding(o.place, o.size)]) for o in model.outputs]
        self._complete = True
        if linearizes:
            size = self.points * self.width * sum(output.size for output in model.outputs)
            blocks = self._blocks()
            self._complete = len(blocks) == sum(wanted) * len(model.outputs)
            results.append(Result((size,), blocks, zeros=not self._complete))
        self._calls = self._new_calls(self._read(), results)
        self._parts = self._list_parts()
        self._jacobians = self._list_jacobians()
        self._adjoint_calls: dict[Any, Calls | DeviceCalls] = {}

    # --------------------------------------------------------------------------------------------
    # Evaluation
    # --------------------------------------------------------------------------------------------

    def evaluate(self, tensors: Sequence[Any]) -> list[Any]:
        """The outputs, and then the Jacobians, if the plan has some."""
        return self._run(self._calls, tensors)

    def jacobians(self, together: Any) -> list[Any]:
        """The Jacobian of each output, (*B, columns, rows), in the tensor of all."""
        sizes = [self.points * self.width * output.size for output in self.model.outputs]
        return [
            part.view(*self.batch, self.width, output.size)
            for part, output in zip(together.split(sizes), self.model.outputs, strict=True)
        ]

    # --------------------------------------------------------------------------------------------
    # Adjoints, of the arguments that need one, by the gradients of the outputs (None for zero)
    # --------------------------------------------------------------------------------------------

    def transposed_products(
        self, together: Any, gradients: Sequence[Any], needed: Sequence[bool]
    ) -> list[Any]:
        """Return adjoints by the Jacobians; for use without autograd."""
        if not self._complete:
            self.model.require(gradients, needed)
        values, total = together.detach().numpy(), None
        for (where, matrices, vectors), gradient in zip(self._jacobians, gradients, strict=False):
            if gradient is not None:
                cotangent = _plain(gradient).numpy().reshape(vectors)
                product = _product(values[where].reshape(matrices), cotangent)[:, :, 0]
                total = product if total is None else total + product
        adjoints: list[Any] = [None] * len(needed)
        if total is not None:
            summed = total.sum(0) if self.points != 1 else total[0]
            for part in self._parts:
                if needed[part.argument]:
                    adjoints[part.argument] = part.of(summed if part.summed else total)
        return adjoints

    def adjoints(
        self, tensors: Sequence[Any], gradients: Sequence[Any], needed: Sequence[bool]
    ) -> list[Any]:
        """Return adjoints by another evaluation; for use without autograd."""
        self.model.require(gradients, needed)
        adjoints: list[Any] = [None] * len(needed)
        parts = [part for part in self._parts if needed[part.argument]]
        given = tuple(gradient is not None for gradient in gradients[: len(self.model.outputs)])
        if not any(given) or not parts:
            return adjoints
        calls = self._adjoint_calls.get((given, needed))
        if calls is None:
            outputs, arguments = self.model.outputs, self.model.arguments
            read = self._read() + [
                self.model.cotangent(o) for o, g in zip(outputs, given, strict=True) if g
            ]
            results = [self._adjoint(part, arguments[part.argument]) for part in parts]
            calls = self._new_calls(read, results)
            self._adjoint_calls[given, needed] = calls
        weights = [gradient for gradient in gradients if gradient is not None]
        for part, adjoint in zip(parts, self._run(calls, tensors, weights), strict=True):
            if part.reduced is not None or (self.there and part.summed):
                adjoint = adjoint.sum_to_size(self.shapes[part.argument])
            adjoints[part.argument] = adjoint
        return adjoints

    # --------------------------------------------------------------------------------------------
    # How it is done
    # --------------------------------------------------------------------------------------------

    def _new_calls(self, read: list[Binding], results: list[Result]) -> Calls | DeviceCalls:
        kind = DeviceCalls if self.there else Calls
        return kind(self.model.model._engine, read, results, self.points)

    def _adjoint(self, part: Part, argument: Slot) -> Result:
        """The adjoint of an argument: a device gives no sums over the points."""
        if self.there and part.summed:
            bindings = [self.model.adjoint(argument, argument.size)]
            return Result(self.batch + argument.shape, bindings)
        return Result(part.shape, [self.model.adjoint(argument, self._strides[part.argument])])

    def _read(self) -> list[Binding]:
        arguments = zip(self.model.arguments, self._strides, strict=True)
        return [Binding(argument.place, stride) for argument, stride in arguments]

    def _blocks(self) -> list[Binding]:
        """The blocks of all Jacobians."""
        bindings, first = [], 0
        itemsize = self.model.dtype.itemsize
        for output in self.model.outputs:
            column, stride = 0, self.width * output.size
            for argument, count in zip(self.model.arguments, self.columns, strict=True):
                if count and (output.name, argument.name) in self.model.compiled:
                    offset = (first + column * output.size) * itemsize
                    bindings.append(self.model.block(output, argument, stride, offset))
                column += count
            first += self.points * stride
        return bindings

    def _list_parts(self) -> list[Part]:
        parts, first = [], 0
        for index, count in enumerate(self.columns):
            if count:
                summed = self._strides[index] == 0
                expanded = self._expanded[index]
                shape = self.shapes[index] if expanded is None else expanded
                reduced = None if expanded is None else self.shapes[index]
                columns = slice(first, first + count)
                parts.append(Part(index, columns, tuple(shape), summed, reduced))
            first += count
        return parts

    def _list_jacobians(self) -> Sequence[tuple[slice, Shape, Shape]]:
        """Return each output's slice in the Jacobian, its shape, and its multiplier's shape."""
        jacobians, first, points = [], 0, self.points
        for size in (output.size for output in self.model.outputs):
            last = first + points * self.width * size
            jacobians.append((slice(first, last), (points, self.width, size), (points, size, 1)))
            first = last
        return jacobians

    def _run(
        self, calls: Calls | DeviceCalls, tensors: Sequence[Any], others: Sequence[Any] = ()
    ) -> list[Any]:
        """Run over the memory of these, which is contiguous: results as tensors."""
        if self._expands:
            pairs = zip(tensors, self._expanded, strict=True)
            tensors = [t if shape is None else t.expand(shape) for t, shape in pairs]
        read = [_plain(tensor) for tensor in (*tensors, *others)]
        addresses = [tensor.data_ptr() for tensor in read]
        if 0 in addresses and any(t.numel() and not t.data_ptr() for t in read):
            raise FatalError(f"a tensor has no memory: {NO_TRACE}", lib.NEML2_ERROR_UNSUPPORTED)
        if isinstance(calls, DeviceCalls):
            goes_on = self.model.goes_on
            call, results = calls.begin(addresses, read[0], marks=goes_on)
            if goes_on:
                unseen = Unseen(calls, call, self, read, list(results))
                self.model.go_on(unseen)
                return results
            status = calls.end(call)
        else:
            status, arrays = calls.run(addresses)
            results = [torch.from_numpy(array) for array in arrays]
        if status > lib.NEML2_NON_FINITE:
            self._raise_failed(read[: len(tensors)])
        return results

    def _raise_failed(self, tensors: Sequence[Any]) -> NoReturn:
        """ConvergenceError, with all that is known of the points."""
        named = {a.name: t for a, t in zip(self.model.arguments, tensors, strict=False)}
        model = self.model.model
        inputs = {name: named[name] for name in model.inputs.names}
        parameters = {name: named[name] for name in model.parameters.names}
        model.forward(inputs, parameters)
        raise FatalError("points failed once, and not again", lib.NEML2_ERROR_INTERNAL)


def _product(matrices: Any, vectors: Any) -> Any:
    """Multiply arrays: torch has threads for many, and numpy takes less time for few."""
    if matrices.size > _MANY:
        return torch.bmm(torch.from_numpy(matrices), torch.from_numpy(vectors)).numpy()
    return np.matmul(matrices, vectors)


def _plain(tensor: Any) -> Any:
    """The tensor, or a copy, with its values in its memory one after another."""
    if tensor.is_contiguous() and not tensor.is_neg():
        return tensor
    return tensor.detach().resolve_neg().contiguous()
