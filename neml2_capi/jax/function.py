"""A model as a function of jax."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import common_batch, listed
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.variables import variable_of
from neml2_capi.jax._operation import Arrays, Operation, Programs, Shape, place_of
from neml2_capi.model.model import Model


class Function:
    """A compiled model as a function of jax.

    Parameters
    ----------
    model : Model
        The model. It stays as it is: what it is set to counts at each call, except parameters that
        are given. On a GPU it must be open there, by the text of its kernels, `device="cuda:0"`.
    outputs : iterable of str, optional
        What is returned, and differentiated; all outputs by default. If a derivative of another
        output was not compiled, leave that out.

    Raises
    ------
    UnknownNameError
        There is no such output.
    FatalError
        The model computes in float64, and jax has it switched off.
    """

    def __init__(self, model: Model, outputs: Iterable[str] | None = None) -> None:
        self.model = model
        names = listed(model.outputs.names if outputs is None else outputs)
        self._outputs = {name: variable_of(model.outputs, name) for name in names}
        self._variables = model.inputs, model.parameters
        if jax.dtypes.canonicalize_dtype(model.dtype) != model.dtype:
            raise FatalError(
                f"the model computes in {model.dtype}, which jax has switched off: "
                'jax.config.update("jax_enable_x64", True) before the first array is made'
            )
        self._operations: dict[tuple[str, ...], Operation] = {}  # by the parameters given
        self._programs = Programs()

    def __repr__(self) -> str:
        return f"<Function of {self.model!r}>"

    def __call__(self, inputs: Arrays, parameters: Arrays | None = None) -> dict[str, Any]:
        """Evaluate the model.

        Parameters
        ----------
        inputs : mapping of str to array
            All inputs by name, (*B, *sub_batch_shape, *base_shape), whose batches B broadcast.
        parameters : mapping of str to array, optional
            Promoted parameters, (*B, *base_shape), by their full names or the last component if
            that is unique; those that are missing have their stored values, of when this runs, also
            under jit. One that was set to values by point must be given.

        Returns
        -------
        dict of str to array
            The outputs, (*B, *sub_batch_shape, *base_shape).

        Raises
        ------
        UnknownNameError
            There is no input or parameter of a name.
        FatalError
            An input is missing, or an array has a wrong shape or type: at once, under jit too.
        jax.errors.JaxRuntimeError
            Points did not converge, or a stored parameter has values by point; its text has the
            message. A function of jax.jit that has run well before raises it as a ValueError.
            Results of an explicit model that are not finite are returned.
        """
        names = self.model.parameters
        renamed = {names.names[names.resolve(name)]: a for name, a in (parameters or {}).items()}
        given = self._checked(0, inputs), self._checked(1, renamed)
        missing = [name for name in self.model.inputs.names if name not in given[0]]
        if missing:
            raise FatalError(
                f"missing inputs: {', '.join(missing)}. Every input must be given, history too",
                lib.NEML2_ERROR_MISSING,
                missing[0],
            )
        rank = len(self._batch(given))
        operation = self._operation(tuple(name for name in names.names if name in given[1]))
        arrays = (
            _of_rank(given[place.role == lib.NEML2_PARAMETER][place.name], rank, place.shape)
            for place in operation.operands
        )
        return dict(zip(self._outputs, operation(arrays), strict=True))

    def _operation(self, parameters: tuple[str, ...]) -> Operation:
        """The operation over all inputs, and these parameters."""
        known = self._operations.get(parameters)
        if known is None:
            inputs, promoted = self._variables
            roles = [
                *((lib.NEML2_INPUT, variable) for variable in inputs),
                *((lib.NEML2_PARAMETER, variable_of(promoted, name)) for name in parameters),
            ]
            known = self._operations[parameters] = Operation(
                self.model,
                weakref.ref(self._programs),
                [place_of(role, variable) for role, variable in roles],
                [place_of(lib.NEML2_OUTPUT, variable) for variable in self._outputs.values()],
            )
        return known

    def _checked(self, kind: int, given: Arrays) -> dict[str, Any]:
        """Arrays of jax, of the model's element type, whose shapes end as they should."""
        checked, known = {}, self._variables[kind]
        for name, value in given.items():
            variable, array = variable_of(known, name), jnp.asarray(value)
            label = known.labels[known.index_of[name]]
            label.batch_of(array.shape, variable.point_shape)
            if not np.can_cast(array.dtype, variable.dtype, "same_kind"):
                raise label.refuse(
                    f"must be {variable.dtype}; got {array.dtype}", lib.NEML2_ERROR_DTYPE
                )
            checked[name] = array.astype(variable.dtype)
        return checked

    def _batch(self, given: tuple[Arrays, Arrays]) -> Shape:
        """The common batch of all arrays."""
        return common_batch(
            (label, label.batch_of(arrays[label.name].shape, variable.point_shape))
            for known, arrays in zip(self._variables, given, strict=True)
            for label, variable in zip(known.labels, known, strict=True)
            if label.name in arrays
        )


def _of_rank(array: Any, rank: int, shape: Shape) -> Any:
    """The array with so many batch axes: vmap puts its own before them."""
    return array.reshape((1,) * (rank + len(shape) - array.ndim) + array.shape)
