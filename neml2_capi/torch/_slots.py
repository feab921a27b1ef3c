"""The variables of a model by position, as a function of torch.autograd has its arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from neml2_capi._ffi import on_device
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Label, common_batch
from neml2_capi._ffi.library import lib
from neml2_capi.model import Model
from neml2_capi.model.binding import Place
from neml2_capi.model.places import Places
from neml2_capi.torch._calls import Binding

Shape = tuple[int, ...]


class Slot(NamedTuple):
    """A variable of a model, as the calls of the library want it."""

    name: str
    #: Place at which it is bound.
    place: Place
    #: The shape of one point.
    shape: Shape
    size: int
    #: The element type of its tensors.
    dtype: Any

    @property
    def label(self) -> Label:
        """Name in errors."""
        return self.place.label

    def batch_of(self, shape: Sequence[int]) -> Shape:
        """The batch axes of a tensor of that shape; FatalError if it does not fit."""
        return self.place.label.batch_of(shape, self.shape)


class Slots:
    """The arguments of a model, all inputs and then all parameters, and the chosen outputs."""

    def __init__(self, model: Model, outputs: Sequence[str]) -> None:
        self.model = model
        self._call = model._engine.new_call()
        self._places = Places(model._signature, self._call[0])
        self.outputs = [self._slot("outputs", name) for name in outputs]
        self.output_names = list(outputs)
        self.input_names = model.inputs.index_of
        self.arguments = [self._slot("inputs", name) for name in model.inputs.names]
        self.arguments += [self._slot("parameters", name) for name in model.parameters.names]
        #: The device of the model, if that runs a text.
        self.text_device = model._engine.text_device
        variables = (*model.inputs, *model.parameters, *model.outputs)
        whole = {variable.name for variable in variables if not variable.sub_batch_shape}
        self.compiled = {
            (d.output, d.variable)
            for d in (*model.derivatives, *model.parameter_derivatives)
            if d.output in whole.intersection(outputs) and d.variable in whole
        }

    def _slot(self, group: str, name: str) -> Slot:
        place = self._places.at(group, name)
        if group == "outputs":
            place = place._replace(dtype=np.dtype(self.model._dtype))
        dtype = getattr(torch, place.dtype.name)
        return Slot(name, place, place.shape, math.prod(place.shape), dtype)

    def is_there(self, tensors: Sequence[Any]) -> bool:
        """Tell whether the arguments are on the device of the model."""
        return bool(self.text_device) and bool(tensors) and on_device.is_there(tensors[0])

    def in_one_place(self, tensors: list[Any], given: Sequence[Any]) -> list[Any]:
        """The arguments, numbers and arrays where the tensors are; FatalError for two places.

        They were made of what was `given`.
        """
        first = next((tensor for tensor in tensors if on_device.is_there(tensor)), None)
        if first is None:
            return tensors
        device, placed = on_device.place_of(first)[0], []
        for slot, tensor, value in zip(self.arguments, tensors, given, strict=True):
            if on_device.is_there(tensor):
                on_device.require_device(
                    on_device.place_of(tensor)[0], slot.label, self.text_device
                )
            elif isinstance(value, torch.Tensor):
                raise slot.label.refuse(
                    f"is on the device {tensor.device}, and others are on {device}: pass "
                    f"tensor.to({device!r}), and move parameters by module.to({device!r})",
                    lib.NEML2_ERROR_UNSUPPORTED,
                )
            else:
                tensor = tensor.to(first.device)
            placed.append(tensor)
        return placed

    def columns(self, wanted: Sequence[bool]) -> list[int]:
        """The columns of each argument in a Jacobian: none if nothing is known, or wanted."""
        known = {name for _, name in self.compiled}
        return [
            argument.size if wants and argument.name in known else 0
            for argument, wants in zip(self.arguments, wanted, strict=True)
        ]

    def batch_of(self, shapes: Sequence[Sequence[int]]) -> Shape:
        """The common batch axes of arguments; FatalError if there are none."""
        return common_batch(
            (argument.label, argument.batch_of(shape))
            for argument, shape in zip(self.arguments, shapes, strict=True)
        )

    def require(self, given: Sequence[Any], needed: Sequence[bool]) -> None:
        """FatalError unless the derivatives of outputs that have a gradient, which is not None,
        are there with respect to the arguments that need one."""
        for output, gradient in zip(self.outputs, given, strict=False):
            if gradient is None:
                continue
            for argument, needs in zip(self.arguments, needed, strict=True):
                if needs and (output.name, argument.name) not in self.compiled:
                    self._refuse(output, argument)

    def cotangent(self, output: Slot) -> Binding:
        """The binding of the cotangent of an output."""
        place = self._places.at("cotangents", output.name)
        return Binding(place._replace(dtype=output.place.dtype), output.size)

    def adjoint(self, argument: Slot, stride: int) -> Binding:
        """The binding of an adjoint; if the stride is 0, summed over the points."""
        return Binding(self._places.at("adjoints", argument.name), stride)

    def block(self, output: Slot, argument: Slot, stride: int, offset: int) -> Binding:
        """The binding of a derivative of an output."""
        place = self._places.at("derivatives", output.name, argument.name)
        return Binding(place, stride, offset)

    def _refuse(self, output: Slot, argument: Slot) -> None:
        instead = f"Or let {argument.name!r} require no gradient."
        try:  # was it not compiled?
            self._places.at("derivatives", output.name, argument.name)
        except FatalError as error:
            raise FatalError(f"{error} {instead}", error.status, error.subject) from None
        raise FatalError(
            f"The derivative of {output.name!r} with respect to {argument.name!r} has "
            "sub-batch axes, which autograd does without: take jvp() or vjp() of "
            f"neml2_capi.Model. {instead}",
            lib.NEML2_ERROR_UNSUPPORTED,
            argument.name,
        )
