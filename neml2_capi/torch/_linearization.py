"""One evaluation of a model on torch tensors that gives its Jacobian as well."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch

from neml2_capi._handle import owned
from neml2_capi._library import c_string, ffi, lib
from neml2_capi._tensor import Label, dtype_code
from neml2_capi._variables import Variable
from neml2_capi.errors import FatalError, check
from neml2_capi.model import Model

Shape = tuple[int, ...]


class Slot(NamedTuple):
    """A variable of a model, as the calls of the library want it."""

    variable: Variable
    #: NEML2_INPUT, NEML2_PARAMETER or NEML2_OUTPUT.
    kind: int
    #: What one point has: the sub-batch axes, and then those of the base.
    shape: Shape
    size: int

    @property
    def name(self) -> str:
        return self.variable.name

    def batch_of(self, tensor: Any) -> Shape:
        """The batch axes of a tensor."""
        return tuple(tensor.shape[: tensor.ndim - len(self.shape)])


class Linearization:
    """A model whose arguments are all inputs and then all parameters, given by position.

    The Jacobian of an output is transposed: (*B, columns, rows), where the rows are the components
    of the output, and the columns those of the arguments with respect to which it is wanted, one
    after another. So the library writes each block to its place, and one product applies them all.
    """

    def __init__(self, model: Model, outputs: Sequence[str]) -> None:
        self.model = model
        self.outputs = [
            _slot(model.outputs[model.outputs.index_of[name]], lib.NEML2_OUTPUT) for name in outputs
        ]
        self.arguments = [
            *(_slot(variable, lib.NEML2_INPUT) for variable in model.inputs),
            *(_slot(variable, lib.NEML2_PARAMETER) for variable in model.parameters),
        ]
        slots = [*self.arguments, *self.outputs]
        whole = {slot.name for slot in slots if not slot.variable.sub_batch_shape}
        self._compiled = {
            (d.output, d.variable)
            for d in (*model.derivatives, *model.parameter_derivatives)
            if d.output in whole and d.variable in whole
        }
        self._code, self._dtype = dtype_code(model._dtype), getattr(torch, model._dtype)
        # Calls keep what they need to run: they are used again, by one thread at a time.
        self._idle: dict[tuple[bool, ...], list[Any]] = {}

    def columns(self, wanted: Sequence[bool]) -> list[int]:
        """The number of columns of each argument: none where nothing was compiled, or wanted."""
        known = {name for _, name in self._compiled}
        return [
            argument.size if wants and argument.name in known else 0
            for argument, wants in zip(self.arguments, wanted, strict=True)
        ]

    def require(self, output: Slot, argument: Slot) -> None:
        """FatalError unless that derivative is there."""
        if (output.name, argument.name) in self._compiled:
            return
        call = owned("call")
        check(lib.neml2_call_create(call, self.model._open()[0]))
        instead = f"Or let {argument.name!r} require no gradient."
        try:
            self._attach_block(call, output, argument, ffi.NULL, 1)  # was it not compiled?
        except FatalError as error:
            raise FatalError(f"{error} {instead}", error.status, error.subject) from None
        raise FatalError(
            f"The derivative of {output.name!r} with respect to {argument.name!r} has "
            "sub-batch axes, which autograd does without: take jvp() or vjp() of "
            f"neml2_capi.Model. {instead}",
            lib.NEML2_ERROR_UNSUPPORTED,
            argument.name,
        )

    def evaluate(self, tensors: Sequence[Any], wanted: Sequence[bool]) -> tuple[Any, ...]:
        """The outputs, each (*B, *shape), and where anything is wanted a Jacobian for each.

        Tensors are used where they are; those that are not contiguous, or of another batch than
        the others and not one value, are copied. ConvergenceError as in Model.forward().
        """
        batch = self._batch_of(tensors)
        points, columns = math.prod(batch), self.columns(wanted)
        idle = self._idle.setdefault(tuple(bool(c) for c in columns), [])
        call = self._call(idle)
        used = [
            self._attach_argument(call, argument, tensor, batch)
            for argument, tensor in zip(self.arguments, tensors, strict=True)
        ]
        outputs = [self._attach_output(call, output, batch) for output in self.outputs]
        jacobians = []
        if any(wanted):
            jacobians = [self._attach_jacobian(call, o, batch, columns) for o in self.outputs]
        status = check(lib.neml2_call_run(call[0], points))
        if status > lib.NEML2_NON_FINITE:
            self._raise_failed(used)
        idle.append(call)
        return (*outputs, *jacobians)

    def _batch_of(self, tensors: Sequence[Any]) -> Shape:
        """The common batch axes; FatalError where there are none."""
        batch: Shape = ()
        for argument, tensor in zip(self.arguments, tensors, strict=True):
            own = argument.batch_of(tensor)
            if own in (batch, ()):
                continue
            try:
                batch = np.broadcast_shapes(batch, own)
            except ValueError:
                kind = "input" if argument.kind == lib.NEML2_INPUT else "parameter"
                raise Label(kind, argument.name).refuse(
                    f"has the batch {own}, which does not broadcast with the batch {batch} of "
                    "those before it",
                    lib.NEML2_ERROR_SHAPE,
                ) from None
        return batch

    def _call(self, idle: list[Any]) -> Any:
        try:
            return idle.pop()
        except IndexError:
            call = owned("call")
            check(lib.neml2_call_create(call, self.model._open()[0]))
            check(lib.neml2_call_set_block_order(call[0], lib.NEML2_INPUT_FIRST))
            return call

    def _attach_argument(self, call: Any, argument: Slot, tensor: Any, batch: Shape) -> Any:
        """Bind the memory of a tensor, which is returned for as long as the call runs."""
        own = argument.batch_of(tensor)
        stride = argument.size
        if own != batch:
            if math.prod(own) == 1:
                stride = 0
            else:
                tensor = tensor.expand(batch + argument.shape)
        tensor = tensor.detach().resolve_neg().contiguous()
        bind = (
            lib.neml2_call_bind_input
            if argument.kind == lib.NEML2_INPUT
            else lib.neml2_call_bind_parameter
        )
        name = c_string(argument.name)
        check(bind(call[0], name, _memory(tensor), dtype_code(argument.variable.dtype), stride))
        return tensor

    def _attach_output(self, call: Any, output: Slot, batch: Shape) -> Any:
        tensor = torch.empty(batch + output.shape, dtype=self._dtype)
        name, data = c_string(output.name), _memory(tensor)
        check(lib.neml2_call_bind_output(call[0], name, data, self._code, output.size))
        return tensor

    def _attach_jacobian(
        self, call: Any, output: Slot, batch: Shape, columns: Sequence[int]
    ) -> Any:
        rows = output.size
        tensor = torch.zeros((*batch, sum(columns), rows), dtype=self._dtype)
        first, stride = 0, sum(columns) * rows
        for argument, count in zip(self.arguments, columns, strict=True):
            if count and (output.name, argument.name) in self._compiled:
                block = _memory(tensor, first * rows)
                self._attach_block(call, output, argument, block, stride)
            first += count
        return tensor

    def _attach_block(
        self, call: Any, output: Slot, argument: Slot, block: Any, stride: int
    ) -> None:
        name, variable = c_string(output.name), c_string(argument.name)
        bind = lib.neml2_call_bind_derivative
        check(bind(call[0], name, argument.kind, variable, block, self._code, stride))

    def _raise_failed(self, tensors: Sequence[Any]) -> NoReturn:
        """ConvergenceError, with all that is known of the points."""
        named = {a.name: t for a, t in zip(self.arguments, tensors, strict=True)}
        inputs = {name: named[name] for name in self.model.inputs.names}
        parameters = {name: named[name] for name in self.model.parameters.names}
        self.model.forward(inputs, parameters)
        raise FatalError("points failed once, and not again", lib.NEML2_ERROR_INTERNAL)


def _slot(variable: Variable, kind: int) -> Slot:
    shape = variable.sub_batch_shape + variable.base_shape
    return Slot(variable, kind, shape, math.prod(shape))


def _memory(tensor: Any, first: int = 0) -> Any:
    """The address of an element of a contiguous tensor; not NULL where there is none at all."""
    return ffi.cast("void *", tensor.data_ptr() + first * tensor.element_size() or 1)
