"""A compiled model as a torch.nn.Module."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from neml2_capi._ffi import on_device
from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.labels import listed
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import NO_TRACE, host_array, require_dense, require_no_tangent
from neml2_capi._ffi.variables import variable_of
from neml2_capi.model import Model as _Model
from neml2_capi.model.evaluation import check_mapping
from neml2_capi.model.scheduler import Scheduler
from neml2_capi.torch._autograd import evaluate
from neml2_capi.torch._linearization import Linearization
from neml2_capi.torch._slots import Slot
from neml2_capi.torch.model import Model

_TENSORS = (torch.Tensor, torch.nn.Parameter)


class Module(torch.nn.Module):  # type: ignore[misc]
    """A compiled model in a computation of torch: gradients run through it.

        material = neml2_capi.torch.Module("aoti/isotropic_hardening")
        optimizer = torch.optim.Adam(material.parameters())
        loss = (material(forces)["stress"] - measured).square().mean()
        loss.backward()

    The promoted parameters are torch.nn.Parameters. Their attributes have the artifact's names with
    `_` for what no attribute can have: material.elasticity_E; material["elasticity.E"] and, if
    the last component is unique, material["E"] are the same. material["E"] = values replaces one,
    by one value or one for each point. Units are the artifact's.

    Gradients come from the derivatives that were compiled (neml2-compile -d OUTPUT:INPUT), with
    respect to inputs and parameters, in reverse and forward mode and under the transforms of
    torch.func. A FatalError names what was not compiled when its gradient is asked for. Second
    derivatives are a FatalError; so are, for models with sub-batch axes, gradients along these.

    An evaluation of which a gradient may be asked computes its Jacobian, of all outputs with
    respect to what requires a gradient, and keeps it until then: per point
    8 * sum(output sizes) * sum(sizes of what requires a gradient) bytes. In a long history of many
    points torch.utils.checkpoint.checkpoint(material, forces, use_reentrant=False) evaluates again
    instead. Under torch.func the Jacobian is for all inputs and parameters. A model of several
    segments, of which gradients by more than 8 components are asked, is evaluated again by
    backward, because that is faster: what it reads must not change in place until then.

    train() and eval() change nothing. A copy, or what is unpickled in another process, opens the
    artifact again, which must still be where it was. Threads may evaluate one module at once.
    """

    def __init__(
        self,
        model: _Model | str | os.PathLike[str],
        parameters: Iterable[str] | None = None,
        outputs: Iterable[str] | None = None,
        *,
        device: Any = None,
        dtype: Any = None,
        scheduler: Scheduler | None = None,
        waits: bool = True,
    ) -> None:
        """Wrap a Model, or load the artifact at a path.

        Parameters
        ----------
        model
            The model, which is shared, or a path as in Model.
        parameters
            The names of those that can be trained, all by default; the others become buffers. All
            have the model's values, copied.
        outputs
            The names of those that forward() returns, all by default; fewer save time and memory.
        device : str or torch.device, optional
            As in Model, for a path.
        dtype : str, numpy or torch type, optional
            As in Model, for a path.
        scheduler
            As in Model, for a path.
        waits
            False for evaluations over tensors of a device that go on, as torch's do: results of
            points that fail are NaN, and the ConvergenceError comes from the next evaluation, from
            backward, or from wait(). Call that after the last one.

        Raises
        ------
        FatalError
            A name is unknown, or the artifact cannot be loaded.
        """
        super().__init__()
        self._waits = waits
        if not isinstance(model, _Model):
            model = Model(model, device, dtype, scheduler=scheduler)
        trained = set(range(len(model.parameters)))
        if parameters is not None:
            trained = {model.parameters.resolve(name) for name in listed(parameters)}
        names = listed(model.outputs.names if outputs is None else outputs)
        for name in names:
            variable_of(model.outputs, name)
        self._open(model, names)
        self._attributes: dict[str, str] = {}
        for index, (name, value) in enumerate(model.named_parameters().items()):
            attribute = re.sub(r"\W", "_", name)
            while hasattr(self, attribute):
                attribute += "_"
            self._attributes[name] = attribute
            value = _stored(value).clone()
            if index in trained:
                self.register_parameter(attribute, torch.nn.Parameter(value))
            else:
                self.register_buffer(attribute, value)

    def _open(self, model: _Model, outputs: list[str]) -> None:
        self._model = model
        self._linearization = Linearization(model, outputs)
        self._linearization.goes_on = not self._waits

    @property
    def model(self) -> _Model:
        """The model: its inputs, outputs and solver options, for example.

        Its parameters are not the module's.
        """
        return self._model

    def wait(self) -> None:
        """Wait for evaluations on a device, of a module that does not wait for each.

        Raises
        ------
        ConvergenceError
            Points of one failed. It holds the results of that evaluation.
        FatalError
            The device failed.
        """
        self._linearization.look()

    def forward(
        self, inputs: Mapping[str, Any] | None = None, /, **named: Any
    ) -> dict[str, torch.Tensor]:
        """Evaluate the model.

        Inputs are given in a mapping, by keywords, or in both: every one, history (`x~1`) too, of
        the shape (*B, *sub_batch_shape, *base_shape), where the batches B of all inputs and
        parameters broadcast. They are tensors, arrays or numbers; contiguous tensors are read where
        they are. Of a model whose text runs on "cuda:0" they may be there, on torch's current
        stream, and so are results; move the parameters, too: module.to("cuda:0"). The gradient of
        what is one value for many points is the sum over them.

        Parameters
        ----------
        inputs : mapping of str to tensor, optional
            Inputs by name.
        **named : tensor
            The other inputs.

        Returns
        -------
        dict of str to torch.Tensor
            The outputs by name, (*B, *sub_batch_shape, *base_shape) each.

        Raises
        ------
        FatalError
            A name, shape, element type or device is wrong.
        ConvergenceError
            Points did not converge. It holds the outputs of the others, without gradients.
        """
        if inputs is not None:
            check_mapping("inputs", inputs)
            named = {**inputs, **named}
        if torch.compiler.is_compiling():
            return _apart(self, named)  # type: ignore[no-any-return]
        model = self._linearization
        return dict(zip(model.output_names, evaluate(model, self._tensors(named)), strict=False))

    if TYPE_CHECKING:
        __call__ = forward

    # --------------------------------------------------------------------------------------------
    # Parameters
    # --------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        """The parameter or buffer of that name in the artifact, (*B, *base_shape)."""
        parameters = self.model.parameters
        return getattr(self, self._attributes[parameters.names[parameters.resolve(name)]])

    def __setitem__(self, name: str, value: Any) -> None:
        """Replace a parameter by a copy; one that can be trained still can be."""
        parameters = self.model.parameters
        index = parameters.resolve(name)
        slot = self._linearization.arguments[len(self.model.inputs) + index]
        tensor = _tensor(slot, value, self._linearization.text_device).detach().clone()
        if isinstance(value, torch.Tensor):
            require_no_tangent(value, slot.label)
        else:
            tensor = tensor.to(self[name].device)
        slot.batch_of(tensor.shape)  # is it one that fits?
        attribute = self._attributes[slot.name]
        if attribute in self._parameters:
            trained = self._parameters[attribute].requires_grad
            tensor = torch.nn.Parameter(tensor, requires_grad=trained)
        setattr(self, attribute, tensor)

    # --------------------------------------------------------------------------------------------
    # How it is done
    # --------------------------------------------------------------------------------------------

    def _tensors(self, inputs: Mapping[str, Any]) -> list[Any]:
        """The inputs and then the parameters, in order; their shapes may be wrong."""
        names, own = self._linearization.input_names, self._parameters
        if not names.keys() >= inputs.keys():
            unknown = next(name for name in inputs if name not in names)
            raise unknown_name("input", unknown, names)
        values: list[Any] = [inputs.get(name) for name in names]
        # The detour of getattr() by torch is for buffers and parametrizations.
        values += [own[a] if a in own else getattr(self, a) for a in self._attributes.values()]
        text_device = self._linearization.text_device
        tensors = [
            value
            if type(value) in _TENSORS
            and (value.dtype, value.layout) == (slot.dtype, torch.strided)
            and value.is_cpu
            and not value.is_nested
            else _tensor(slot, value, text_device)
            for slot, value in zip(self._linearization.arguments, values, strict=True)
        ]
        return self._linearization.in_one_place(tensors, values) if text_device else tensors

    def _apply(self, function: Callable[[Any], Any], recurse: bool = True) -> Any:
        """What .to(), .cuda(), .float() and the like call for every tensor.

        Parameters may go to the device that runs the text of the model; else they stay.
        """
        places = ["cpu", self._linearization.text_device]
        try:
            moved = function(torch.empty(0, dtype=getattr(torch, self.model._dtype)))
            reason = f"it was to become {moved.dtype} on the device {moved.device}"
            same_type = str(moved.dtype) == f"torch.{self.model._dtype}"
            stays = str(moved.device) in places and same_type
        except (RuntimeError, AssertionError) as error:  # there is no such device
            reason, stays = str(error), False
        if not stays:
            raise FatalError(
                f"a compiled model stays on the device {' or '.join(filter(None, places))} with "
                f"{self.model._dtype}, as it was compiled; {reason}. Move its inputs and outputs "
                "instead",
                lib.NEML2_ERROR_UNSUPPORTED,
            )
        return super()._apply(function, recurse)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        linearization = state.pop("_linearization")
        state["_outputs"] = [output.name for output in linearization.outputs]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        outputs = state.pop("_outputs")
        super().__setstate__(state)
        self._open(self._model, outputs)

    def extra_repr(self) -> str:
        """Name the inputs and outputs, for repr().

        Returns
        -------
        str
            "(strain) -> (stress)", for example.
        """
        outputs = [output.name for output in self._linearization.outputs]
        return f"({', '.join(self.model.inputs.names)}) -> ({', '.join(outputs)})"


# torch.compiler.disable() would import the compiler here; torch itself takes this.
@torch._disable_dynamo  # type: ignore[untyped-decorator]
def _apart(module: Module, named: Mapping[str, Any]) -> Any:
    """Evaluate a module without a look into it by torch.compile, whose graphs end here.

    FatalError if torch still looks for what is computed: it exports.
    """
    if torch.compiler.is_compiling():
        raise FatalError(NO_TRACE, lib.NEML2_ERROR_UNSUPPORTED)
    return module.forward(named)


def _stored(value: Any) -> Any:
    """A parameter of a model as a tensor on the model's device, whatever torch's default is."""
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value, device="cpu")


def _copied(slot: Slot, value: Any) -> Any:
    """A copy, since backward may read it again, on the host if no device has the value."""
    if isinstance(value, np.ndarray | np.generic):
        dtype = str(slot.dtype).removeprefix("torch.")
        return torch.from_numpy(np.array(host_array(value, slot.label, dtype), order="C"))
    if not isinstance(value, (int, float, list, tuple)):
        return torch.asarray(value, copy=True)
    truth = np.asarray(value).dtype.kind == "b"  # which is not the number 1
    return torch.tensor(value, dtype=torch.bool if truth else slot.dtype, device="cpu")


def _tensor(slot: Slot, value: Any, text_device: str = "") -> Any:
    """A value as a tensor of the type of a variable; numbers and arrays are copied.

    It may be on the device that runs the text of the model.
    """
    if value is None:
        raise slot.label.refuse(
            f"is missing; every input must be given. Its shape is batch axes and then {slot.shape}",
            lib.NEML2_ERROR_MISSING,
        )
    if not isinstance(value, torch.Tensor):
        try:
            value = _copied(slot, value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise slot.label.refuse(
                f"cannot be made a tensor, from a {type(value).__name__}: {error}",
                lib.NEML2_ERROR_DTYPE,
            ) from error
    require_dense(value, slot.label)
    if value.dtype != slot.dtype:
        raise slot.label.refuse(
            f"must be {slot.dtype}; got {value.dtype}: pass tensor.to({slot.dtype})",
            lib.NEML2_ERROR_DTYPE,
        )
    if not value.is_cpu and not (text_device and on_device.is_there(value)):
        raise slot.label.refuse(
            f"is on the device {value.device}: pass it on the cpu, tensor.cpu()",
            lib.NEML2_ERROR_UNSUPPORTED,
        )
    return value
