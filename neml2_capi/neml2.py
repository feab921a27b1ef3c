"""Compiled models in NEML2, run by this library in place of NEML2's own runtime.

    import neml2, neml2_capi.neml2

    model = neml2.load_model("aoti/elasticity_aoti.i", "elasticity")
    (stress,) = model(neml2.types.SR2(strain))

Importing this module calls install(), so that `neml2-run --load neml2_capi.neml2 INPUT DRIVER` does
the same for the drivers of NEML2. This works with every torch that NEML2's Python runs on: its
compiled extension is not needed. For NEML2 3.1; what it loaded before keeps its runtime.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from neml2 import types
from neml2.factory import _registry, register_neml2_object
from neml2.schema import HitSchema, option
from neml2.solvers import ConvergenceError as _ConvergenceError

from neml2_capi._ffi import locks
from neml2_capi._ffi.errors import ConvergenceError as _Unconverged
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.variables import Variable, Variables
from neml2_capi.torch import Model as _Model

__all__ = ["AOTIModel", "ConvergenceError", "Model", "install", "uninstall"]

_TYPE = "AOTIModel"
_INSTALLING = locks.new()
# NEML2's own class of that type while ours is installed: None if its extension does not load.
_replaced: list[Any] = []
_Method = TypeVar("_Method", bound=Callable[..., Any])


class ConvergenceError(_Unconverged, _ConvergenceError):  # type: ignore[misc]
    """Some points did not converge: the error of this library and of NEML2's solvers in one."""


def _raising_neml2(method: _Method) -> _Method:
    """`method`, with a ConvergenceError that NEML2 knows."""

    @functools.wraps(method)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except _Unconverged as error:
            known = ConvergenceError(*error.args)
            known.__dict__.update(error.__dict__)
            raise known from error

    return wrapper  # type: ignore[return-value]


def _of_model(method: Callable[..., Any]) -> Any:
    """`method` of a Model, as a method of what has a model."""

    @functools.wraps(method)
    def wrapper(self: Any, *arguments: Any, **named: Any) -> Any:
        return method(self.model, *arguments, **named)

    return wrapper


class Model(_Model):
    """neml2_capi.torch.Model with the lists of neml2.aoti.Model; its errors are NEML2's, too."""

    forward = _raising_neml2(_Model.forward)
    jvp = _raising_neml2(_Model.jvp)
    jacobian = _raising_neml2(_Model.jacobian)
    param_jacobian = _raising_neml2(_Model.param_jacobian)
    param_vjp = _raising_neml2(_Model.param_vjp)

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return list(self.inputs.names)

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return list(self.outputs.names)

    @property
    def input_base_shapes(self) -> list[list[int]]:
        """The base shape of each input: [] for a Scalar, [6] for an SR2."""
        return [list(variable.base_shape) for variable in self.inputs]

    @property
    def output_base_shapes(self) -> list[list[int]]:
        """The base shape of each output."""
        return [list(variable.base_shape) for variable in self.outputs]

    @property
    def parameter_base_shapes(self) -> dict[str, list[int]]:
        """The base shape of each parameter, by its qualified name."""
        return {variable.name: list(variable.base_shape) for variable in self.parameters}

    @property
    def input_sub_batch_shapes(self) -> list[list[int]]:
        """The sub-batch shape of each input: the axes between the batch and the base."""
        return [list(variable.sub_batch_shape) for variable in self.inputs]

    @property
    def output_sub_batch_shapes(self) -> list[list[int]]:
        """The sub-batch shape of each output."""
        return [list(variable.sub_batch_shape) for variable in self.outputs]

    @property
    def input_types(self) -> list[str]:
        """The mathematical type of each input: "SR2", "Scalar"."""
        return [variable.type for variable in self.inputs]

    @property
    def output_types(self) -> list[str]:
        """The mathematical type of each output."""
        return [variable.type for variable in self.outputs]


class AOTIModel(torch.nn.Module):  # type: ignore[misc]
    """What `type = AOTIModel` of an input file is: a compiled model, called as NEML2's are.

    The outputs carry no gradient. Any number of threads may call one model. `model` is the
    neml2_capi.torch.Model behind it, whose functions jvp(), jacobian(), param_jacobian(),
    param_vjp() and named_parameters() are here, too.
    """

    # The section of the input file, and what a block of this type may say there.
    SECTION = "Models"
    hit = HitSchema(
        option(
            "artifact_path",
            str,
            "The artifact that neml2-compile wrote: its folder, absolute or relative to this file.",
        )
    )

    @classmethod
    def from_hit(cls, node: Any, factory: Any) -> AOTIModel:
        """Make the model of a block of an input file.

        Parameters
        ----------
        node : HIT block
            The block, whose artifact_path is relative to the file.
        factory : NEML2's factory
            What reads the file; the model gets its device and dtype.

        Returns
        -------
        AOTIModel
            The model.
        """
        path = factory._path.parent / node.param_str("artifact_path")
        return cls(path.resolve(), factory._device, factory._dtype)

    def __init__(self, artifact_root: str | Path, device: Any = None, dtype: Any = None) -> None:
        """Load an artifact.

        Parameters
        ----------
        artifact_root
            Where it is, as in neml2_capi.Model.
        device : str or torch.device, optional
            As in neml2_capi.Model.
        dtype : str, numpy or torch type, optional
            As in neml2_capi.Model.

        Raises
        ------
        FileNotFoundError
            There is no artifact.
        FatalError
            It cannot be run.
        """
        super().__init__()
        try:
            self.model = Model(artifact_root, device, dtype)
        except FatalError as error:
            if error.status != lib.NEML2_ERROR_FILE:
                raise
            raise FileNotFoundError(f"{_TYPE}: {error}") from error
        #: The class of each input by name, in order: {"strain": SR2}.
        self.input_spec = _classes(self.model.inputs)
        #: The class of each output, likewise.
        self.output_spec = _classes(self.model.outputs)

    def forward(self, *inputs: Any, v: Any = None, v2: Any = None, vh: Any = None) -> Any:
        """Evaluate the model.

        Parameters
        ----------
        *inputs : typed or torch tensor
            The inputs in the order of `input_spec`, (*B, *sub_batch_shape, *base_shape), whose
            batches B broadcast; what has no sub-batch axes holds for all of its sites.
        v : None
            Tangents of NEML2's chain rule, which a compiled model does not take.
        v2 : None
            Likewise.
        vh : None
            Likewise.

        Returns
        -------
        tuple of typed tensor
            The outputs in the order of `output_spec`, also if there is one.

        Raises
        ------
        TypeError
            An input is missing or of another type.
        ConvergenceError
            Points of an implicit model did not converge.
        NotImplementedError
            Tangents are asked for by `v`, `v2` or `vh`.
        """
        if (v, v2, vh) != (None, None, None):
            raise NotImplementedError(
                f"{_TYPE} is compiled, and does not take the tangents v, v2, vh of a chain rule: "
                "take jvp() or jacobian(), which use the derivatives that were compiled"
            )
        if len(inputs) != len(self.input_spec):
            raise TypeError(
                f"{_TYPE}: {len(self.input_spec)} inputs are needed, by position "
                f"({', '.join(self.input_spec)}), and {len(inputs)} were given"
            )
        arguments = zip(self.model.inputs, inputs, strict=True)
        results = self.model.forward({x.name: self._tensor(x, value) for x, value in arguments})
        return tuple(
            self.output_spec[y.name](results[y.name], sub_batch_ndim=len(y.sub_batch_shape))
            for y in self.model.outputs
        )

    def _tensor(self, variable: Variable, value: Any) -> Any:
        """The torch tensor of an input, (*B, *sub_batch_shape, *base_shape)."""
        typed = isinstance(value, types.TensorWrapper)
        tensor = value.data if typed else value
        if not isinstance(tensor, torch.Tensor) or (typed and not _is_of(variable, value)):
            raise TypeError(
                f"{_TYPE}: input {variable.name!r} is a {type(value).__name__}, and must be a "
                f"{variable.type} or a torch.Tensor"
            )
        wanted = getattr(torch, variable.dtype)
        device = self.model.device
        place = torch.device("cpu") if self.model._engine.text_device else device
        if tensor.dtype != wanted or tensor.device.type != place.type:
            raise TypeError(
                f"{_TYPE}: input {variable.name!r} is {tensor.dtype} on {tensor.device}, and the "
                f"artifact was loaded for {wanted} on {device}: give it .to(device="
                f"{str(place)!r}, dtype={wanted})"
            )
        given = value.sub_batch_ndim if typed else len(variable.sub_batch_shape)
        return _with_sites(variable, tensor, given)

    # --------------------------------------------------------------------------------------------
    # Derivatives and parameters, by the model: torch tensors by name
    # --------------------------------------------------------------------------------------------

    jvp = _of_model(Model.jvp)
    jacobian = _of_model(Model.jacobian)
    param_jacobian = _of_model(Model.param_jacobian)
    param_vjp = _of_model(Model.param_vjp)
    named_parameters = _of_model(Model.named_parameters)  # as in NEML2: not the iterator of torch

    def set_parameter(self, name: str, value: Any) -> None:
        """Replace a promoted parameter by a copy of a value.

        Parameters
        ----------
        name
            Its qualified name, or the last component if that is unique.
        value : typed or torch tensor
            The new value, (*B, *base_shape).

        Raises
        ------
        TypeError
            The value is of another type.
        FatalError
            There is no such parameter, or the value does not fit.
        """
        typed = isinstance(value, types.TensorWrapper)
        parameter = self.model.parameters[self.model.parameters.resolve(name)]
        if typed and not _is_of(parameter, value):
            raise TypeError(
                f"{_TYPE}: parameter {name!r} has the shape {parameter.base_shape}, and a "
                f"{type(value).__name__} has {tuple(value.BASE_SHAPE)}"
            )
        self.model.set_parameter(name, value.data if typed else value)

    def extra_repr(self) -> str:
        """Name the model, for print(model).

        Returns
        -------
        str
            The repr() of the model.
        """
        return repr(self.model)


def install() -> None:
    """Have NEML2 load `type = AOTIModel` as AOTIModel of this module. Twice is allowed."""
    with _INSTALLING:
        if not _replaced:
            _replaced.append(_registry.get(_TYPE))
            register_neml2_object(_TYPE)(AOTIModel)


def uninstall() -> None:
    """Have NEML2 load compiled models with its own runtime again; what was loaded stays."""
    with _INSTALLING:
        if _replaced:
            previous = _replaced.pop()
            if previous is None:
                del _registry[_TYPE]
            else:
                register_neml2_object(_TYPE)(previous)


def _classes(variables: Variables) -> dict[str, Any]:
    """The class of NEML2 for each variable."""
    classes = {variable.name: getattr(types, variable.type, None) for variable in variables}
    for variable in variables:
        if classes[variable.name] is None:
            raise TypeError(
                f"{_TYPE}: {variables.kind} {variable.name!r} is a {variable.type!r}, and this "
                "version of NEML2 has no such type"
            )
    return classes


def _is_of(variable: Variable, value: Any) -> bool:
    """Whether a typed tensor is of the type of a variable; of its shape, if it has no such type."""
    kind = getattr(types, variable.type, None)
    if isinstance(kind, type) and issubclass(kind, types.TensorWrapper):
        return isinstance(value, kind)
    return tuple(value.BASE_SHAPE) == variable.base_shape


def _with_sites(variable: Variable, tensor: Any, given: int) -> Any:
    """A tensor with `given` sub-batch axes, broadcast to the variable's."""
    sites, base = variable.sub_batch_shape, len(variable.base_shape)
    if given not in (0, len(sites)):
        raise ValueError(
            f"{_TYPE}: input {variable.name!r} has {given} sub-batch axes, and was compiled with "
            f"{len(sites)}: {tuple(sites)}"
        )
    point = variable.point_shape if given else variable.base_shape
    if tuple(tensor.shape[max(tensor.ndim - len(point), 0) :]) != point:
        raise TypeError(
            f"{_TYPE}: input {variable.name!r} has the shape {tuple(tensor.shape)}; expected batch "
            f"axes and then {point}, of a {variable.type}{f' at {sites} sites' if given else ''}"
        )
    if given or not sites:
        return tensor
    batch = tensor.ndim - base
    tensor = tensor.reshape(tensor.shape[:batch] + (1,) * len(sites) + tensor.shape[batch:])
    return tensor.expand(tensor.shape[:batch] + sites + variable.base_shape)


install()
