"""The variables of a model by position, as a function of torch.autograd has its arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Label, common_batch
from neml2_capi._ffi.variables import Variable
from neml2_capi.model import Model
from neml2_capi.model.calls import Binding
from neml2_capi.model.places import Places

Shape = tuple[int, ...]
_KINDS = {
    lib.NEML2_INPUT: "input",
    lib.NEML2_PARAMETER: "parameter",
    lib.NEML2_OUTPUT: "output",
}


class Slot(NamedTuple):
    """A variable of a model, as the calls of the library want it."""

    variable: Variable
    #: NEML2_INPUT, NEML2_PARAMETER or NEML2_OUTPUT.
    kind: int
    #: What one point has: the sub-batch axes, and then those of the base.
    shape: Shape
    size: int
    #: The element type of its tensors.
    dtype: Any

    @property
    def name(self) -> str:
        return self.variable.name

    @property
    def label(self) -> Label:
        """What it is called in errors."""
        return Label(_KINDS[self.kind], self.name)

    def batch_of(self, shape: Sequence[int]) -> Shape:
        """The batch axes of a tensor of that shape; FatalError where it does not fit."""
        axes = max(len(shape) - len(self.shape), 0)
        if tuple(shape[axes:]) != self.shape:
            raise self.label.refuse(
                f"has the shape {tuple(shape)}; expected batch axes and then {self.shape}",
                lib.NEML2_ERROR_SHAPE,
            )
        return tuple(shape[:axes])


class Slots:
    """The arguments of a model, all inputs and then all parameters, and the chosen outputs."""

    def __init__(self, model: Model, outputs: Sequence[str]) -> None:
        self.model = model
        self._call = model._engine.new_call()
        self._places = Places(model._signature, self._call[0])
        self.outputs = [
            _slot(
                model.outputs[model.outputs.index_of[name]],
                lib.NEML2_OUTPUT,
                model._dtype,
            )
            for name in outputs
        ]
        self.output_names = list(outputs)
        self.arguments = [
            *(_slot(variable, lib.NEML2_INPUT) for variable in model.inputs),
            *(_slot(variable, lib.NEML2_PARAMETER) for variable in model.parameters),
        ]
        slots = [*self.arguments, *self.outputs]
        whole = {slot.name for slot in slots if not slot.variable.sub_batch_shape}
        self.compiled = {
            (d.output, d.variable)
            for d in (*model.derivatives, *model.parameter_derivatives)
            if d.output in whole and d.variable in whole
        }

    def columns(self, wanted: Sequence[bool]) -> list[int]:
        """The columns of each argument in a Jacobian: none where nothing is known, or wanted."""
        known = {name for _, name in self.compiled}
        return [
            argument.size if wants and argument.name in known else 0
            for argument, wants in zip(self.arguments, wanted, strict=True)
        ]

    def batch_of(self, shapes: Sequence[Sequence[int]]) -> Shape:
        """The common batch axes of arguments; FatalError where there are none."""
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

    def read(self, argument: Slot, stride: int) -> Binding:
        """The binding of an input or a parameter."""
        group = "inputs" if argument.kind == lib.NEML2_INPUT else "parameters"
        return Binding(self._places.at(group, argument.name), stride)

    def written(self, output: Slot) -> Binding:
        """The binding of an output."""
        place = self._places.at("outputs", output.name)
        return Binding(place._replace(dtype=np.dtype(self.model._dtype)), output.size)

    def cotangent(self, output: Slot) -> Binding:
        """The binding of the cotangent of an output."""
        place = self._places.at("cotangents", output.name)
        return Binding(place._replace(dtype=np.dtype(self.model._dtype)), output.size)

    def adjoint(self, argument: Slot, stride: int) -> Binding:
        """The binding of an adjoint; where the stride is 0, summed over the points."""
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


def _slot(variable: Variable, kind: int, dtype: str | None = None) -> Slot:
    shape = variable.sub_batch_shape + variable.base_shape
    return Slot(variable, kind, shape, math.prod(shape), getattr(torch, dtype or variable.dtype))
