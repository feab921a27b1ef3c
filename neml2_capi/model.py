"""A compiled material model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np

from neml2_capi._handle import Handle, owned
from neml2_capi._library import c_string, ffi, lib
from neml2_capi._options import Options, read_options
from neml2_capi._parameters import Parameters
from neml2_capi._tensor import (
    DTYPE_NAMES,
    Arguments,
    Tensor,
    as_numpy,
    as_torch,
    free,
    results,
    take,
    wrap,
)
from neml2_capi._variables import Variables
from neml2_capi.errors import ConvergenceError, FatalError, check, last_message, unknown_name

_Self = TypeVar("_Self", bound="Model")

_REPORTS = {
    "status": lib.NEML2_REPORT_STATUS,
    "iterations": lib.NEML2_REPORT_ITERATIONS,
    "residual_norm": lib.NEML2_REPORT_RESIDUAL_NORM,
}


class Model(Handle):
    """A material model, compiled by `neml2-compile`.

        model = Model("aoti/elasticity")
        stress = model.forward({"strain": strain})["stress"]

    Inputs have the shape (*B, *base_shape) (see `inputs`), where the batches B of all inputs and
    parameters broadcast. They can be numpy arrays, torch tensors, other holders of `__dlpack__`, or
    numbers and lists; arrays of the model's element type are read where they are. Results follow
    them: torch tensors where an input is one, else numpy arrays. Units are the artifact's. A
    symmetric tensor (SR2) is in Mandel notation: xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy.

    Any number of threads may call one model; the interpreter's lock is released meanwhile.
    """

    def __init__(
        self,
        artifact_root: str | os.PathLike[str],
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Load the artifact in the folder `artifact_root`, the one that holds metadata.json.

        `device` ("cpu", also the default) and `dtype` ("float64", the default, or "float32"; as
        text or as a type of numpy or torch) choose among what the artifact was compiled for.
        FatalError where it cannot be loaded; the message says why.
        """
        owner = owned("model")
        check(lib.neml2_model_load(owner, c_string(artifact_root), *_target(device, dtype)))
        self._introspect(owner)

    @classmethod
    def from_stub(
        cls: type[_Self],
        stub: str | os.PathLike[str],
        name: str,
        device: Any = None,
        dtype: Any = None,
    ) -> _Self:
        """Load the model `name` of a HIT stub, the <name>_aoti.i that stands beside an artifact."""
        owner = owned("model")
        target = _target(device, dtype)
        check(lib.neml2_model_load_stub(owner, c_string(stub), c_string(name), *target))
        model = cls.__new__(cls)
        model._introspect(owner)
        return model

    def _introspect(self, owner: Any) -> None:
        super().__init__(owner)
        self._inputs = Variables(owner[0], lib.NEML2_INPUT)
        self._outputs = Variables(owner[0], lib.NEML2_OUTPUT)
        self._parameters = Variables(owner[0], lib.NEML2_PARAMETER)
        dtype = ffi.new("int32_t *")
        check(lib.neml2_model_dtype(dtype, owner[0]))
        self._dtype = DTYPE_NAMES[dtype[0]]
        self._known_options = read_options(owner[0])

    # --------------------------------------------------------------------------------------------
    # What the model is
    # --------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> Variables:
        """The inputs, a sequence of Variable. `x~1` is the value of `x` at the previous step."""
        return self._inputs

    @property
    def outputs(self) -> Variables:
        """The outputs, a sequence of Variable."""
        return self._outputs

    @property
    def parameters(self) -> Variables:
        """The parameters that were promoted at compile time, a sequence of Variable."""
        return self._parameters

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return list(self._inputs.names)

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return list(self._outputs.names)

    @property
    def input_base_shapes(self) -> list[list[int]]:
        """The base shape of each input: [] for a Scalar, [6] for an SR2."""
        return [list(variable.base_shape) for variable in self._inputs]

    @property
    def output_base_shapes(self) -> list[list[int]]:
        """The base shape of each output."""
        return [list(variable.base_shape) for variable in self._outputs]

    @property
    def parameter_base_shapes(self) -> dict[str, list[int]]:
        """The base shape of each parameter, by its qualified name."""
        return {variable.name: list(variable.base_shape) for variable in self._parameters}

    @property
    def input_sub_batch_shapes(self) -> list[list[int]]:
        """The sub-batch shape of each input: the axes between the batch and the base."""
        return [list(variable.sub_batch_shape) for variable in self._inputs]

    @property
    def output_sub_batch_shapes(self) -> list[list[int]]:
        """The sub-batch shape of each output."""
        return [list(variable.sub_batch_shape) for variable in self._outputs]

    @property
    def input_types(self) -> list[str]:
        """The mathematical type of each input: "SR2", "Scalar"."""
        return [variable.type for variable in self._inputs]

    @property
    def output_types(self) -> list[str]:
        """The mathematical type of each output."""
        return [variable.type for variable in self._outputs]

    @property
    def device(self) -> Any:
        """Where the model runs: "cpu"."""
        return "cpu"

    @property
    def dtype(self) -> Any:
        """The element type of the floating-point variables, a numpy.dtype."""
        return np.dtype(self._dtype)

    def __repr__(self) -> str:
        signature = f"({', '.join(self.input_names)}) -> ({', '.join(self.output_names)})"
        closed = ", closed" if self.closed else ""
        return f"<{type(self).__name__} {signature}, {self._dtype}{closed}>"

    # --------------------------------------------------------------------------------------------
    # Evaluation
    # --------------------------------------------------------------------------------------------

    def forward(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Evaluate the model: outputs by name, each (*B, *sub_batch_shape, *base_shape).

        Every input must be given, history (`x~1`) too. `param_overrides` replaces values of
        parameters in this call only. The results are new arrays; torch tensors among them carry no
        gradient in this version, whatever the inputs require.

        FatalError for a wrong name, shape or element type: nothing was evaluated. ConvergenceError
        where points of an implicit model did not converge: it holds the outputs of the others. NaN
        in the result of an explicit model is no error.
        """
        owner = self._open()
        size = len(self._outputs)
        outputs, report = results(size), owned("report")
        with Arguments(len(self._inputs)) as given, Arguments(len(self._parameters)) as overrides:
            _fill(given, self._inputs, inputs)
            replaced = ffi.NULL
            if param_overrides is not None:
                _fill_resolved(overrides, self._parameters, param_overrides)
                replaced = overrides.handles
            try:
                status = lib.neml2_model_forward(outputs, report, owner[0], given.handles, replaced)
                check(status)
                hand_out = as_torch if given.torch or overrides.torch else self._hand_out
                values = {
                    name: hand_out(take(outputs, index))
                    for index, name in enumerate(self._outputs.names)
                }
            finally:
                free(outputs, size)
        if status > lib.NEML2_NON_FINITE:
            _raise_convergence_error(status, values, report, hand_out)
        return values

    def _hand_out(self, owner: Any, source: Any = None) -> Any:
        """What a tensor is handed out as where no input is a torch tensor."""
        return as_numpy(owner, source)

    # --------------------------------------------------------------------------------------------
    # Parameters and options
    # --------------------------------------------------------------------------------------------

    def named_parameters(self) -> Parameters:
        """The parameters as a live mapping of views: writing to one changes the model.

        `model.named_parameters()["elasticity.E"][...] = 100e3` takes effect from the next call on.
        """
        return Parameters(self)

    def set_parameter(self, name: str, value: Any) -> None:
        """Replace a parameter by a copy of `value`, of shape (*B, *base_shape).

        B must broadcast with the batch of the inputs. A value of a wrong shape or type is a
        FatalError and changes nothing.
        """
        owner = self._open()
        index = self._parameters.resolve(name)
        parameter, tensor = self._parameters[index], owned("tensor")
        # The array stays alive in `source` while the library copies it.
        source = wrap(tensor, value, self._parameters.labels[index], parameter.dtype)
        check(lib.neml2_model_parameter_set(owner[0], parameter.name.encode(), tensor[0]))
        del source

    @property
    def options(self) -> Options:
        """The solver options as a live mapping: `model.options["atol"] = 1e-12`."""
        # Made on demand: a mapping kept here would be a reference cycle.
        return Options(self, self._known_options)

    def set_solver_config(
        self,
        atol: float,
        rtol: float,
        miters: int,
        ls_type: str,
        ls_max_iters: int,
        ls_cutback: float,
        ls_c: float,
        substep_del_tol: float = 1e-6,
    ) -> None:
        """Set the options of the Newton solve; when one is refused, none is changed.

        `atol` and `rtol` bound the residual norm, absolutely and relative to the first one; at most
        `miters` - 1 steps are made. `ls_type` is "BACKTRACKING" or "STRONG_WOLFE"; the line search
        makes fewer than `ls_max_iters` trials, divides the step length by `ls_cutback` after each,
        and asks for the fraction `ls_c` of the expected decrease. `substep_del_tol` bounds the
        relative Newton step in the substepping solve.
        """
        self.options.update(
            {
                "atol": atol,
                "rtol": rtol,
                "miters": miters,
                "ls_type": ls_type,
                "ls_max_iters": ls_max_iters,
                "ls_cutback": ls_cutback,
                "ls_c": ls_c,
                "substep_del_tol": substep_del_tol,
            }
        )


def _target(device: Any, dtype: Any) -> tuple[Any, Any]:
    """The `device` and `dtype` arguments of the library; None and "" are its defaults."""
    name = None
    if dtype is not None and dtype != "":
        # torch.float64 is written "torch.float64"; numpy knows the name of everything else.
        name = str(dtype).removeprefix("torch.")
        if not isinstance(dtype, str) and name == str(dtype):
            name = np.dtype(dtype).name
    return c_string(str(device) if device else None), c_string(name)


def _fill(arguments: Arguments, variables: Variables, values: Mapping[str, Any]) -> None:
    """Inputs by their exact names; one that is not given stays NULL, which the library reports."""
    _check_mapping("inputs", values)
    unknown = [name for name in values if name not in variables.index_of]
    if unknown:
        raise unknown_name(variables.kind, unknown[0], variables.names)
    for index, variable in enumerate(variables):
        value = values.get(variable.name)
        if value is not None:
            arguments.fill(index, value, variables.labels[index], variable.dtype)


def _fill_resolved(arguments: Arguments, variables: Variables, values: Mapping[str, Any]) -> None:
    """Parameters by their qualified names or unique last components."""
    _check_mapping("param_overrides", values)
    given: dict[int, Any] = {}
    for name, value in values.items():
        index = variables.resolve(name)
        if index in given:
            raise FatalError(
                f"the parameter {variables.names[index]!r} is given twice",
                lib.NEML2_ERROR_NAME,
                variables.names[index],
            )
        given[index] = value
        arguments.fill(index, value, variables.labels[index], variables[index].dtype)


def _check_mapping(argument: str, values: object) -> None:
    if not isinstance(values, Mapping):
        raise FatalError(
            f"{argument} must be a mapping of names to arrays; got {type(values).__name__}",
            lib.NEML2_ERROR_ARGUMENT,
            argument,
        )


def _raise_convergence_error(
    status: int, outputs: Mapping[str, Any], report: Any, hand_out: Callable[..., Any]
) -> NoReturn:
    """Say what became of each point; the arrays are of the same kind as the outputs."""
    message = last_message()
    tensors = {name: owned("tensor") for name in _REPORTS}
    for name, kind in _REPORTS.items():
        check(lib.neml2_report_get(tensors[name], report[0], kind))
    converged = Tensor(np.asarray(as_numpy(tensors["status"]) <= lib.NEML2_NON_FINITE))
    raise ConvergenceError(
        message,
        status,
        report={name: hand_out(tensor) for name, tensor in tensors.items()},
        converged_mask=hand_out(converged._open(), converged._source),
        outputs=outputs,
    )
