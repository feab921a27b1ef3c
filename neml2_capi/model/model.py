"""A compiled material model."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, overload

import numpy as np

from neml2_capi._ffi.errors import FatalError, check, read_text
from neml2_capi._ffi.handle import Handle, owned
from neml2_capi._ffi.kinds import NUMPY, TORCH, Kind
from neml2_capi._ffi.library import c_string, ffi, lib
from neml2_capi._ffi.logs import drain
from neml2_capi._ffi.runtime import load, load_for, runtime_of
from neml2_capi._ffi.tensor import DTYPE_NAMES, device_text, wrap
from neml2_capi._ffi.typing import A, Arrays, Blocks, Others, Plains
from neml2_capi._ffi.variables import (
    Derivative,
    History,
    Variables,
    read_derivatives,
    read_histories,
    read_variables,
)
from neml2_capi.model.evaluation import (
    FORWARD,
    JACOBIAN,
    JVP,
    PARAM_JACOBIAN,
    PARAM_VJP,
    VJP,
    Evaluation,
    Operation,
    by_name,
    by_pair,
    evaluate,
)
from neml2_capi.model.options import Options, read_options
from neml2_capi.model.parameters import Parameters
from neml2_capi.model.reopening import Source, absolute, reopened, setting_of
from neml2_capi.model.replay import Replays
from neml2_capi.model.scheduler import Scheduler, not_a_scheduler

if TYPE_CHECKING:
    from neml2_capi.model.call import Call
    from neml2_capi.solvers import Solve, Solver

_Self = TypeVar("_Self", bound="Model")
_ENGINES = ("native", "python")
# Setting a parameter is rare, and a change of its batch is seen by all replays at once.
_SETTING = threading.Lock()


class Model(Handle):
    """A material model, compiled by `neml2-compile`.

        model = Model("aoti/elasticity")
        stress = model.forward({"strain": strain})["stress"]

    Inputs have the shape (*B, *base_shape) (see `inputs`), where the batches B of all inputs and
    parameters broadcast. They can be numpy arrays, torch tensors, arrays of any other library that
    has `__dlpack__` (jax, for example), or numbers and lists; arrays of the model's element type
    are read where they are, and never written. Results are of the same kind, over memory of their
    own; they carry no gradients. Numpy arrays, numbers and lists go along with one other kind; two
    others are a FatalError. Where a library has no `from_dlpack` that makes its arrays, results are
    numpy arrays. Units are the artifact's. A symmetric tensor (SR2) is in Mandel notation: xx, yy,
    zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy.

    Any number of threads may call one model, and so may the child of a fork; the interpreter's lock
    is released meanwhile. A copy, and a pickle on its way to a worker process, hold where the
    artifact is, the options that were changed, and the parameters: the artifact is opened again.
    """

    #: The kind of the results; NUMPY: that of the arguments.
    _kind: Kind = NUMPY
    _solved: list[tuple[str, set[str]]] | None = None
    _replays = Replays()

    def __new__(cls: type[_Self], *arguments: Any, engine: str = "native", **named: Any) -> _Self:
        if engine not in _ENGINES:
            raise FatalError(
                f"there is no engine {engine!r}; there are: {', '.join(_ENGINES)}",
                lib.NEML2_ERROR_ARGUMENT,
                "engine",
            )
        if engine == "python":
            from neml2_capi.engine.model import in_python

            cls = in_python(cls)
        return object.__new__(cls)

    def __init__(
        self,
        artifact_root: str | os.PathLike[str],
        device: Any = None,
        dtype: Any = None,
        *,
        engine: str = "native",
        runtime: str = "auto",
        scheduler: Scheduler | None = None,
    ) -> None:
        """Load the artifact `artifact_root` of NEML2 3.0.0 to 3.1.

        It is given by its folder, a device folder in it, its metadata.json or <model>_meta.json,
        or the stub of one compiled model. NEML2 3.0.4 to 3.0.6 kept the settings of the solver in
        the stub only: without it, its defaults hold.
        `device` ("cpu", also the default, "cuda" or "cuda:1") and `dtype` ("float64", the default,
        or "float32"; as text or as a type of numpy or torch) choose among what the artifact was
        compiled for. A model on CUDA takes and returns torch tensors there; this is untested, and
        include/neml2_capi.h says under "Devices" what it can do.
        `engine` "python" evaluates the same in plain Python over the compiled graphs, see
        neml2_capi.engine: slow, easy to follow and to change, and without solve().
        `runtime` is what the compiled graphs call: "builtin", this package alone; "libtorch", that
        of NEML2_CAPI_LIBTORCH or of the installed torch, 2.10 or later, which need not be imported;
        "auto", libtorch for those only of which the built-in runtime lacks something; "tensors",
        libtorch, and Newton's method and the chain rule by its operators, too, as on CUDA. With the
        engine "python" it is always the built-in one.
        `scheduler` spreads the points over devices, and is given in place of `device` and
        `runtime`; what becomes of it later does not count.
        FatalError where it cannot be loaded; the message says why.
        """
        where = absolute(artifact_root)
        self._load_from(_source(where, None, device, dtype, runtime, scheduler))

    def _load_from(self, source: Source) -> None:
        others = set(vars(self))
        self._source = source
        self._load(source)
        self._options_at_load = dict(self.options)
        self._loaded = {*vars(self), "_loaded"} - others

    def _load(self, source: Source) -> None:
        owner = owned("model")
        if source.devices is None:
            *target, runtime = source[:-1]
            load(lib.neml2_model_load_with, runtime, owner, *map(c_string, target))
        else:
            scheduler = Scheduler(source.devices)._open()
            names = [c_string(name) for name in (source.path, source.name, source.dtype)]
            load_for(
                [device.runtime for device in source.devices],
                lambda: lib.neml2_model_load_scheduled(owner, *names, scheduler[0]),
            )
        self._introspect(owner)

    @classmethod
    def from_stub(
        cls: type[_Self],
        stub: str | os.PathLike[str],
        name: str,
        device: Any = None,
        dtype: Any = None,
        *,
        runtime: str = "auto",
        scheduler: Scheduler | None = None,
    ) -> _Self:
        """Load the model `name` of a HIT stub, the <name>_aoti.i that stands beside an artifact.

        What an older stub says of the solver holds. The other arguments are as in Model.
        """
        model = cls.__new__(cls)
        model._load_from(_source(absolute(stub), name, device, dtype, runtime, scheduler))
        return model

    def _introspect(self, owner: Any) -> None:
        super().__init__(owner)
        owner = self._open()
        self._inputs = read_variables(owner[0], lib.NEML2_INPUT)
        self._outputs = read_variables(owner[0], lib.NEML2_OUTPUT)
        self._parameters = read_variables(owner[0], lib.NEML2_PARAMETER)
        self._unknowns = read_variables(owner[0], lib.NEML2_UNKNOWN)
        self._derivatives = read_derivatives(owner[0], self._outputs, self._inputs)
        self._parameter_derivatives = read_derivatives(owner[0], self._outputs, self._parameters)
        self._histories = read_histories(owner[0], self._inputs, self._outputs)
        dtype = ffi.new("int32_t *")
        check(lib.neml2_model_dtype(dtype, owner[0]))
        self._dtype = DTYPE_NAMES[dtype[0]]
        device, index = ffi.new("int32_t *"), ffi.new("int32_t *")
        check(lib.neml2_model_device(device, index, owner[0]))
        self._device = device[0], index[0]
        if device[0] != lib.NEML2_DEVICE_CPU:
            self._kind = TORCH
        scheduled = self._source.devices is not None
        self._on_host = scheduled or runtime_of(lib.neml2_model_runtime, owner) != "tensors"
        self._known_options = read_options(owner[0])
        if "NEML2_CAPI_THREADS" not in os.environ:
            check(lib.neml2_model_option_set_number(owner[0], b"threads", 0.0))
        self._replays = Replays()
        drain()

    def close(self) -> None:
        """Free the model. Arrays that were handed out stay valid. Closing twice is allowed."""
        super().close()
        self._replays = Replays()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        self._open()
        return reopened, (*self._class_and_engine(), self._source, setting_of(self))

    def _class_and_engine(self) -> tuple[type[Model], str]:
        return type(self), "native"

    # --------------------------------------------------------------------------------------------
    # What the model is
    # --------------------------------------------------------------------------------------------

    @property
    def runtime(self) -> str:
        """What the compiled graphs run on: "builtin", or "libtorch" where one of them does.

        "tensors" where all of the model does. Of a scheduler, that of the first device.
        """
        return runtime_of(lib.neml2_model_runtime, self._open())

    @property
    def scheduler(self) -> Scheduler | None:
        """A copy of the scheduler that the model was loaded with; None without one."""
        return None if self._source.devices is None else Scheduler(self._source.devices)

    @property
    def points_evaluated(self) -> tuple[int, ...]:
        """How many points each device of the scheduler has evaluated since the model was loaded.

        What a batch size or a priority is worth can be told by it. Without a scheduler it is empty.
        """
        owner, count = self._open(), ffi.new("int64_t *")
        counts = []
        for index in range(len(self._source.devices or ())):
            check(lib.neml2_model_points_evaluated(count, owner[0], index))
            counts.append(count[0])
        return tuple(counts)

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
    def unknowns(self) -> Variables:
        """What the implicit segments solve for, a sequence of Variable."""
        return self._unknowns

    @property
    def derivatives(self) -> tuple[Derivative, ...]:
        """The derivatives with respect to inputs that were compiled."""
        return self._derivatives

    @property
    def parameter_derivatives(self) -> tuple[Derivative, ...]:
        """The derivatives with respect to promoted parameters that were compiled."""
        return self._parameter_derivatives

    @property
    def histories(self) -> tuple[History, ...]:
        """The inputs `x~1`, `x~2`, and the outputs that they become at the next step."""
        return self._histories

    def _implicit_segments(self) -> list[tuple[str, set[str]]]:
        """The package of the residual of each implicit segment, and what it is solved for."""
        if self._solved is None and self.closed:  # a call may outlive it
            return []
        if self._solved is None:
            self._solved = [
                (
                    segment["residual_package"],
                    {v["name"] for group in segment["unknowns"] for v in group["variables"]},
                )
                for segment in self.describe()["segments"]
                if segment["kind"] == "implicit"
            ]
        return self._solved

    def describe(self) -> dict[str, Any]:
        """What the artifact holds: segments, packages, settings; in one form for every schema."""
        import json

        handle = self._open()
        document: dict[str, Any] = json.loads(read_text(lib.neml2_model_describe, handle[0]))
        return document

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
        """Where the model runs: "cpu", also with a scheduler, or "cuda:0"."""
        return device_text(self._device)

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

    @overload
    def forward(
        self, inputs: Plains, param_overrides: Plains | None = None, solver: Solver | None = None
    ) -> Arrays: ...
    @overload
    def forward(
        self,
        inputs: Others[A],
        param_overrides: Others[A] | None = None,
        solver: Solver | None = None,
    ) -> dict[str, A]: ...
    @overload
    def forward(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
        solver: Solver | None = None,
    ) -> dict[str, Any]: ...
    def forward(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
        solver: Solver | None = None,
    ) -> dict[str, Any]:
        """Evaluate the model: outputs by name, each (*B, *sub_batch_shape, *base_shape).

        Every input must be given, history (`x~1`) too. `param_overrides` replaces values of
        parameters in this call only. The results are new arrays. `solver` solves the nonlinear
        systems in place of the library: neml2_capi.solvers.Newton() or a function of yours, which
        see.

        FatalError for a wrong name, shape or element type: nothing was evaluated. ConvergenceError
        where points of an implicit model did not converge: it holds the outputs of the others. NaN
        in the result of an explicit model is no error.
        """
        if solver is None and param_overrides is None:
            replayed = self._replays.forward(inputs)
            if replayed is not None:
                return replayed
        if solver is not None:
            with self.solve(inputs, param_overrides) as solve:
                for system in solve:
                    solver(system)
                return solve.end()
        evaluation = self._evaluate(FORWARD, inputs, param_overrides)
        evaluation.raise_if_failed()
        return evaluation.outputs

    def solve(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> Solve:
        """Begin an evaluation whose nonlinear systems you solve: see neml2_capi.solvers."""
        from neml2_capi.solvers import Solve

        return Solve(self, inputs, param_overrides)

    @overload
    def evaluate(
        self, inputs: Plains, param_overrides: Plains | None = None
    ) -> tuple[Arrays, Arrays]: ...
    @overload
    def evaluate(
        self, inputs: Others[A], param_overrides: Others[A] | None = None
    ) -> tuple[dict[str, A], dict[str, A]]: ...
    @overload
    def evaluate(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]: ...
    def evaluate(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Evaluate the model, and say what became of each point: (outputs, report).

        Like forward(), but points that fail are no error: their outputs are NaN, and the report
        tells. It has, each (*B,): `status` (int32, the NEML2_* of the header: 0 where all is well),
        `iterations` (int32), `residual_norm` and `suggested_cut` (float64: by what to multiply the
        increment before another try); and with the option `collect_history`, `residual_history`,
        (*B, miters), NaN after the last iteration.
        """
        evaluation = self._evaluate(FORWARD, inputs, param_overrides)
        return evaluation.outputs, evaluation.report.arrays()

    def bind(
        self,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any] | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        derivatives: Mapping[str, Any] | bool | None = None,
        tangents: Mapping[str, Any] | None = None,
        jvps: Mapping[str, Any] | None = None,
        cotangents: Mapping[str, Any] | None = None,
        adjoints: Mapping[str, Any] | None = None,
        report: Mapping[str, Any] | bool | None = None,
    ) -> Call:
        """Bind the model to arrays, once, to evaluate it again and again with what is in them.

            call = model.bind({"strain": strain}, derivatives=True)
            for strain[...] in path:
                call()
                print(call.outputs["stress"], call.derivatives["stress"]["strain"])

        `inputs` are all inputs by name; `parameters` replace stored values in this call. They, the
        `tangents` (of inputs) and the `cotangents` (of outputs) are read at every run: numpy
        arrays, torch tensors and other holders of `__dlpack__` where they are, or numbers, which
        stay. What is not said of a tangent, a cotangent or a parameter is zero, zero, and as
        stored. The batches of arrays must be equal; one value may serve all points.

        What is written, likewise by name: `outputs`; `derivatives`, {output: {input or parameter:
        block}}; `jvps`, of outputs along the tangents; `adjoints`, of inputs and parameters by the
        cotangents, summed over the points where the array is one value; and `report`, with
        "status", "iterations", "residual_norm" and "suggested_cut". A value is an array, True for
        a new one, or None for nothing. True for all `derivatives` by inputs, or the whole `report`.
        Outputs that are not named get new arrays, and so do `jvps` and `adjoints` that are not
        said; these are of the kind of what is bound, or of numpy where that kind cannot be written
        (jax). A block is there for each point, also where it is the same for all.

        An array is used where it is: the values of a point must be dense and row-major, and the
        points at a constant distance, as in `state[:, 3:9]`. An output may be the very array of an
        input, and else overlaps no other. FatalError says which array does not fit, and why.
        """
        from neml2_capi.model.call import Call

        return Call(
            self,
            {
                "inputs": inputs,
                "parameters": parameters,
                "tangents": tangents,
                "cotangents": cotangents,
                "outputs": outputs,
                "derivatives": derivatives,
                "jvps": jvps,
                "adjoints": adjoints,
                "report": report,
            },
        )

    # --------------------------------------------------------------------------------------------
    # Derivatives: of the pairs that were compiled, and errors as in forward()
    # --------------------------------------------------------------------------------------------

    @overload
    def jvp(
        self, inputs: Plains, tangents: Plains, param_overrides: Plains | None = None
    ) -> tuple[Arrays, Arrays]: ...
    @overload
    def jvp(
        self, inputs: Others[A], tangents: Others[A], param_overrides: Others[A] | None = None
    ) -> tuple[dict[str, A], dict[str, A]]: ...
    @overload
    def jvp(
        self,
        inputs: Mapping[str, Any],
        tangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]: ...
    def jvp(
        self,
        inputs: Mapping[str, Any],
        tangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Evaluate the model and its derivative along `tangents`: (outputs, derivatives by output).

        A tangent has the shape of its input; one that is missing is zero. An output sums over the
        inputs for which a derivative of it was compiled (see `derivatives`); outputs without one
        are absent.
        """
        if param_overrides is None:
            replayed = self._replays.jvp(inputs, tangents)
            if replayed is not None:
                return replayed
        evaluation = self._evaluate(JVP, inputs, param_overrides, tangents)
        derivatives = by_name(self._outputs, evaluation.results)
        evaluation.raise_if_failed(derivatives)
        return evaluation.outputs, derivatives

    @overload
    def vjp(
        self, inputs: Plains, cotangents: Plains, param_overrides: Plains | None = None
    ) -> tuple[Arrays, Arrays]: ...
    @overload
    def vjp(
        self, inputs: Others[A], cotangents: Others[A], param_overrides: Others[A] | None = None
    ) -> tuple[dict[str, A], dict[str, A]]: ...
    @overload
    def vjp(
        self,
        inputs: Mapping[str, Any],
        cotangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]: ...
    def vjp(
        self,
        inputs: Mapping[str, Any],
        cotangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Evaluate the model and the transpose of its derivative: (outputs, adjoints by input).

        A cotangent has the shape of its output; one that is missing is zero. An adjoint has the
        shape of its input as it was given: what is one value for many points gets their sum.
        Inputs with respect to which no derivative was compiled are absent.
        """
        if param_overrides is None:
            replayed = self._replays.vjp(inputs, cotangents)
            if replayed is not None:
                return replayed
        evaluation = self._evaluate(VJP, inputs, param_overrides, cotangents)
        adjoints = by_name(self._inputs, evaluation.results)
        evaluation.raise_if_failed(adjoints)
        return evaluation.outputs, adjoints

    @overload
    def jacobian(
        self, inputs: Plains, param_overrides: Plains | None = None
    ) -> tuple[Arrays, Blocks]: ...
    @overload
    def jacobian(
        self, inputs: Others[A], param_overrides: Others[A] | None = None
    ) -> tuple[dict[str, A], dict[str, dict[str, A]]]: ...
    @overload
    def jacobian(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]: ...
    def jacobian(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Evaluate the model and its Jacobian: (outputs, {output: {input: block}}).

        A block is (*B, *output_shape, *input_shape), with the shapes of a point; without B where
        the derivative is the same for all points, unless there are none. In a model of one forward
        segment the derivative relates each sub-batch site of the output to the same site of the
        input, and a block is (*B, *sub_batch_shape, *output_base_shape, *input_base_shape), with
        sub-batch axes of size 1 where it is the same at all sites. Pairs that were not compiled
        are absent.
        """
        if param_overrides is None:
            replayed: tuple[dict[str, Any], dict[str, dict[str, Any]]] | None = (
                self._replays.jacobian(inputs)
            )
            if replayed is not None:
                return replayed
        evaluation = self._evaluate(JACOBIAN, inputs, param_overrides)
        blocks = by_pair(self._derivatives, evaluation.results)
        evaluation.raise_if_failed(blocks)
        return evaluation.outputs, blocks

    @overload
    def param_jacobian(
        self, inputs: Plains, param_overrides: Plains | None = None
    ) -> tuple[Arrays, Blocks]: ...
    @overload
    def param_jacobian(
        self, inputs: Others[A], param_overrides: Others[A] | None = None
    ) -> tuple[dict[str, A], dict[str, dict[str, A]]]: ...
    @overload
    def param_jacobian(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]: ...
    def param_jacobian(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Evaluate the model and its derivatives with respect to promoted parameters.

        Returns (outputs, {output: {parameter: block}}); a block is (*B, *output_shape,
        *parameter_base_shape), also where the parameter is one value for all points.
        """
        if param_overrides is None:
            replayed: tuple[dict[str, Any], dict[str, dict[str, Any]]] | None = (
                self._replays.param_jacobian(inputs)
            )
            if replayed is not None:
                return replayed
        evaluation = self._evaluate(PARAM_JACOBIAN, inputs, param_overrides)
        blocks = by_pair(self._parameter_derivatives, evaluation.results)
        evaluation.raise_if_failed(blocks)
        return evaluation.outputs, blocks

    @overload
    def param_vjp(
        self, inputs: Plains, cotangents: Plains, param_overrides: Plains | None = None
    ) -> Arrays: ...
    @overload
    def param_vjp(
        self, inputs: Others[A], cotangents: Others[A], param_overrides: Others[A] | None = None
    ) -> dict[str, A]: ...
    @overload
    def param_vjp(
        self,
        inputs: Mapping[str, Any],
        cotangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]: ...
    def param_vjp(
        self,
        inputs: Mapping[str, Any],
        cotangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The gradients of sum(cotangent * output) with respect to promoted parameters, by name.

        A gradient has the shape of the parameter, stored or overridden: that of one value for all
        points is summed over them.
        """
        if param_overrides is None:
            replayed = self._replays.param_vjp(inputs, cotangents)
            if replayed is not None:
                return replayed
        evaluation = self._evaluate(PARAM_VJP, inputs, param_overrides, cotangents)
        gradients = by_name(self._parameters, evaluation.results)
        evaluation.raise_if_failed(gradients)
        return gradients

    def _evaluate(
        self,
        operation: Operation,
        inputs: Mapping[str, Any],
        overrides: Mapping[str, Any] | None,
        directions: Any = None,
    ) -> Evaluation:
        """Have it evaluated, and remember how."""
        can_replay = overrides is None and self._on_host  # a call is over arrays of the host
        replay = self._replays.of(operation, self) if can_replay else None
        pools = replay.memory.pools if replay else None
        evaluation = evaluate(self, operation, inputs, overrides, directions)
        if replay and pools is not None and evaluation.status <= lib.NEML2_NON_FINITE:
            self._replays.learn(replay, pools, self, inputs, directions, evaluation)
        return evaluation

    # --------------------------------------------------------------------------------------------
    # Parameters and options
    # --------------------------------------------------------------------------------------------

    def named_parameters(self) -> Parameters:
        """The parameters as a live mapping of views: writing to one changes the model.

        `model.named_parameters()["elasticity.E"][...] = 100e3` takes effect from the next call on.
        """
        return Parameters(self)

    def _view(self, index: int) -> Any:
        """The memory of a parameter."""
        handle, owner = self._open(), owned("tensor")
        name = self._parameters.names[index].encode()
        check(lib.neml2_model_parameter_get(owner, handle[0], name))
        return self._kind.hand_out(owner)

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
        with _SETTING:
            # Where the batch stays, what is remembered of evaluations stays true.
            shape = () if isinstance(value, float) else getattr(value, "shape", None)
            stays = shape == self._view(index).shape
            with nullcontext() if stays else self._replays.forgotten():
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


def _source(
    path: str, name: str | None, device: Any, dtype: Any, runtime: str, scheduler: Scheduler | None
) -> Source:
    """Where a model comes from, by the arguments of Model()."""
    target = _target(device, dtype)
    if scheduler is None:
        return Source(path, name, *target, runtime)
    if not isinstance(scheduler, Scheduler):
        raise not_a_scheduler(scheduler)
    if target[0] is not None or runtime != "auto":
        raise FatalError(
            "the devices and their runtimes are those of the scheduler: leave "
            f"{'device' if target[0] else 'runtime'} out",
            lib.NEML2_ERROR_ARGUMENT,
            "device" if target[0] else "runtime",
        )
    return Source(path, name, *target, devices=scheduler.devices)


def _target(device: Any, dtype: Any) -> tuple[str | None, str | None]:
    """The names of a device and an element type; None for the defaults."""
    name = None
    if dtype is not None and dtype != "":
        # torch.float64 is written "torch.float64"; numpy knows the name of everything else.
        name = str(dtype).removeprefix("torch.")
        if not isinstance(dtype, str) and name == str(dtype):
            name = np.dtype(dtype).name
    return str(device) if device else None, name
