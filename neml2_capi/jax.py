"""Compiled models among jax's transformations: jit, grad, jvp, jacfwd, jacrev and vmap.

    import jax, neml2_capi, neml2_capi.jax

    jax.config.update("jax_enable_x64", True)  # else jax makes single precision of all numbers
    material = neml2_capi.jax.Function(neml2_capi.Model("aoti/elasticity"))
    stiffness = jax.jacfwd(lambda strain: material({"strain": strain})["stress"])

The model is an operation of jax's compiler, which reads and writes arrays where they are: on the
host, or on a GPU if the model is open there, by the text of its kernels. A batch of vmap is one
evaluation. Derivatives are the compiled ones of first order, in both modes. Differentiating through
many steps in reverse mode keeps the blocks of all of them: jax.checkpoint around a step keeps its
inputs instead.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

try:
    import jax
    import jax.ffi
    import jax.numpy as jnp
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "neml2_capi.jax needs jax 0.6 or later, which is not installed: pip install -U jax. "
        "Without it, neml2_capi.Model takes and returns numpy arrays.",
        name="jax",
    ) from error

from neml2_capi._ffi.errors import FatalError, check
from neml2_capi._ffi.labels import common_batch
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.logs import drain, listening
from neml2_capi._ffi.variables import Variable, variable_of
from neml2_capi.model.model import Model

__all__ = ["Function", "driven"]

Arrays = Mapping[str, Any]
_Shape = tuple[int, ...]
_Pair = tuple[Variable, Variable]
# The name of the operation in XLA's programs.
_TARGET = "neml2_capi_model"


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
        names = model.outputs.names if outputs is None else list(outputs)
        self._outputs = {name: variable_of(model.outputs, name) for name in names}
        self._variables = model.inputs, model.parameters
        if jax.dtypes.canonicalize_dtype(model.dtype) != model.dtype:
            raise FatalError(
                f"the model computes in {model.dtype}, which jax has switched off: "
                'jax.config.update("jax_enable_x64", True) before the first array is made'
            )
        self._operations: dict[tuple[str, ...], _Operation] = {}  # by the parameters given
        # What was compiled for evaluations outside of jit. Nothing that jax keeps leads here: else
        # it would never go.
        self._compiled: dict[_Operation, Any] = {}

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
            that is unique; those that are missing have their stored values.

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
            Points did not converge; its text has the message. A function of jax.jit that has run
            well before raises it as a ValueError. Results of an explicit model that are not finite
            are returned.
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

    def _operation(self, parameters: tuple[str, ...]) -> _Operation:
        """The operation over all inputs, and these parameters."""
        known = self._operations.get(parameters)
        if known is None:
            inputs, promoted = self._variables
            roles = [
                *((lib.NEML2_INPUT, variable) for variable in inputs),
                *((lib.NEML2_PARAMETER, variable_of(promoted, name)) for name in parameters),
            ]
            known = self._operations[parameters] = _Operation(
                self.model,
                weakref.ref(self),
                [_place(role, variable) for role, variable in roles],
                [_place(lib.NEML2_OUTPUT, variable) for variable in self._outputs.values()],
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

    def _batch(self, given: tuple[Arrays, Arrays]) -> _Shape:
        """The common batch of all arrays."""
        return common_batch(
            (label, label.batch_of(arrays[label.name].shape, variable.point_shape))
            for known, arrays in zip(self._variables, given, strict=True)
            for label, variable in zip(known.labels, known, strict=True)
            if label.name in arrays
        )


class _Place(NamedTuple):
    """A buffer of the operation: an input, a parameter, an output or a block of derivatives."""

    #: NEML2_*; of a block, the kind of the variable.
    role: int
    name: str
    #: The variable that a block is by; else "".
    by: str
    #: The shape of a point.
    shape: _Shape
    dtype: Any
    variable: Variable

    def line(self) -> str:
        """What the library reads of it."""
        return f"{self.role}\t{self.name}\t{self.by}\t{prod(self.shape)}"


def _place(role: int, variable: Variable) -> _Place:
    return _Place(role, variable.name, "", tuple(variable.point_shape), variable.dtype, variable)


class _Operation:
    """What an evaluation reads and writes: a parameter of the primitive, equal to itself alone."""

    def __init__(
        self,
        model: Model,
        function: weakref.ref[Function],
        operands: list[_Place],
        outputs: list[_Place],
        by: tuple[int, ...] = (),
    ) -> None:
        """`by` has the operands with respect to which there are blocks of all outputs."""
        self._model, self._function = model, function
        self.operands, self._outputs, self.by = operands, outputs, by
        self.results = [*outputs, *(self._block(output, i) for output in outputs for i in by)]
        self._derived: dict[tuple[int, ...], _Operation] = {}

    def derived(self, by: tuple[int, ...]) -> _Operation:
        """The operation that has blocks, too."""
        known = self._derived.get(by)
        if known is None:
            of = self._model, self._function, self.operands, self._outputs
            known = self._derived[by] = _Operation(*of, by)
        return known

    def compiled(self) -> Any:
        """Return what evaluates arrays that have values."""
        function = self._function()
        kept = {} if function is None else function._compiled
        if self not in kept:
            kept[self] = jax.jit(partial(_evaluate.bind, operation=self))
        return kept[self]

    def _block(self, output: _Place, index: int) -> _Place:
        by = self.operands[index]
        model, is_input = self._model, by.role == lib.NEML2_INPUT
        for pair in model.derivatives if is_input else model.parameter_derivatives:
            if (pair.output, pair.variable) == (output.name, by.name):
                shape = tuple(pair.shape)
                return output._replace(role=by.role, by=by.name, shape=shape)
        raise FatalError(
            f"the derivative {output.name}:{by.name} was not compiled. Compile the model with "
            f"-d {output.name}:{by.name}; or leave the output out, Function(model, outputs="
            "[...]), or take jax.lax.stop_gradient of the input",
            lib.NEML2_ERROR_UNSUPPORTED,
            f"{output.name}:{by.name}",
        )

    def batch(self, arrays: Iterable[Any]) -> _Shape:
        """The common batch of arrays that have its rank."""
        return np.broadcast_shapes(
            *(
                array.shape[: array.ndim - len(place.shape)]
                for place, array in zip(self.operands, arrays, strict=True)
            )
        )

    def shapes(self, *arrays: Any) -> list[Any]:
        """Shapes and types of the results."""
        batch = self.batch(arrays)
        return [jax.ShapeDtypeStruct(batch + place.shape, place.dtype) for place in self.results]

    def __call__(self, arrays: Iterable[Any]) -> list[Any]:
        """Evaluate arrays of the same rank of batch, which broadcast."""
        arrays = list(arrays)
        batch = self.batch(arrays)
        spread = [
            array
            if array.size == prod(place.shape)
            else jnp.broadcast_to(array, batch + place.shape)
            for place, array in zip(self.operands, arrays, strict=True)
        ]
        found: list[Any] = _evaluate.bind(*spread, operation=self)
        return found

    def attributes(self, platform: str) -> dict[str, Any]:
        """Attributes of the operation in XLA, neml2_xla_handler_get(); FatalError elsewhere."""
        engine, on_device = self._model._engine, platform == "cuda"
        if on_device and not engine.text_device.startswith("cuda"):
            raise FatalError(
                "jax computes on CUDA, and the model does not: open it there by the text of its "
                "kernels, Model(..., device='cuda:0') after `neml2-capi build-kernels ARTIFACT "
                "--target cuda`; or let jax compute on the CPU, with "
                "jax.default_device(jax.devices('cpu')[0])",
                lib.NEML2_ERROR_UNSUPPORTED,
                "device",
            )
        handle = int(ffi.cast("intptr_t", engine._open()[0]))
        lines = "\n".join(place.line() for place in (*self.operands, *self.results))
        return {"model": np.int64(handle), "arrays": lines, "on_device": np.int64(on_device)}


def _of_rank(array: Any, rank: int, shape: _Shape) -> Any:
    """The array with so many batch axes: vmap puts its own before them."""
    return array.reshape((1,) * (rank + len(shape) - array.ndim) + array.shape)


def _product(block: Any, shape: _Shape, tangent: Any, names: str, pair: _Pair) -> Any:
    """A block of this shape at each point times a tangent, (*B, sites, components)."""
    output, variable = pair
    made, given = output.point_shape, variable.point_shape
    before = block.shape[: block.ndim - len(shape)]
    batch = tangent.shape[: tangent.ndim - len(given)]
    if shape == made + given:
        sites = 1
    elif output.sub_batch_shape == variable.sub_batch_shape:  # each site of its own alone
        sites = prod(output.sub_batch_shape)
    else:
        raise FatalError(
            f"the derivative {names} was compiled for one change at all sites of the input, not "
            "for one at each site",
            lib.NEML2_ERROR_UNSUPPORTED,
            names,
        )
    rows, columns = prod(made) // sites, prod(given) // sites
    block = block.reshape(*before, prod(shape) // (rows * columns), rows, columns)
    return jnp.einsum("...soi,...si->...so", block, tangent.reshape(*batch, sites, columns))


# The primitive that evaluates a model. Its rules make an operation of a batch, and of derivatives.
_evaluate = Primitive("neml2_capi_evaluate")
_evaluate.multiple_results = True


def _run(*arrays: Any, operation: _Operation) -> Any:
    """Evaluate arrays that have values, and wait: nothing else keeps the model open."""
    found = jax.block_until_ready(operation.compiled()(*arrays))
    if listening:
        drain()
    return found


def _derive(primals: Any, tangents: Any, *, operation: _Operation) -> Any:
    """The outputs, and their derivatives along the tangents, which are linear in these."""
    if operation.by:
        raise FatalError(
            "derivatives of second order are not compiled: differentiate once only, without "
            "jax.hessian and the like; for least squares use J^T J, with J by jax.jacfwd",
            lib.NEML2_ERROR_UNSUPPORTED,
        )
    by = tuple(index for index, tangent in enumerate(tangents) if type(tangent) is not ad.Zero)
    derived, count = operation.derived(by), len(operation.results)
    values = derived(primals)
    along = [jnp.zeros_like(value) for value in values[:count]]
    blocks = iter(zip(values[count:], derived.results[count:], strict=True))
    for i, output in enumerate(operation.results):
        for index in by:
            block, place = next(blocks)
            pair = output.variable, operation.operands[index].variable
            names = f"{place.name}:{place.by}"
            product = _product(block, place.shape, tangents[index], names, pair)
            along[i] += product.reshape(along[i].shape)
    return values[:count], along


def _batched(arrays: Any, axes: Any, *, operation: _Operation) -> Any:
    """A batch of vmap is one more axis, of length 1 if an array has none."""
    moved = [
        jnp.moveaxis(array, axis, 0) if isinstance(axis, int) else array[None]
        for array, axis in zip(arrays, axes, strict=True)
    ]
    found = operation(moved)
    return found, [0] * len(found)


def _lowered(context: Any, *arrays: Any, operation: _Operation, platform: str) -> Any:
    """An operation of XLA, whose program keeps the model open."""
    context.module_context.add_keepalive(operation)
    lowered = jax.ffi.ffi_lowering(_TARGET)
    return lowered(context, *arrays, **operation.attributes(platform))


def _register() -> None:
    """Give the library's handler to XLA; ImportError if that does not know its version."""
    handler = ffi.new("void **")
    check(lib.neml2_xla_handler_get(handler))
    address = int(ffi.cast("intptr_t", handler[0]))
    try:
        for platform in ("cpu", "CUDA"):
            jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(address), platform=platform)
    except Exception as error:
        raise ImportError(
            f"the jax {jax.__version__} that is installed calls libraries in a way that "
            f"this release of neml2_capi does not know: {error}. Install another jax"
        ) from error


_register()
_evaluate.def_impl(_run)
_evaluate.def_abstract_eval(
    lambda *arrays, operation: [
        jax.core.ShapedArray(like.shape, like.dtype) for like in operation.shapes(*arrays)
    ]
)
ad.primitive_jvps[_evaluate] = _derive
batching.primitive_batchers[_evaluate] = _batched
for _platform in ("cpu", "cuda"):
    mlir.register_lowering(_evaluate, partial(_lowered, platform=_platform), platform=_platform)


def driven(run: Callable[..., Any], outputs: Iterable[str]) -> Callable[[Arrays], dict[str, Any]]:
    """A history as a function of jax of its parameters, with gradients in reverse mode.

        import functools
        model = neml2_capi.Model(neml2_capi.examples.path("isotropic_hardening"))
        times = np.linspace(0, 10, 21)
        tension = functools.partial(neml2_capi.experiments.tension, model, times, 0.01)
        history = neml2_capi.jax.driven(tension, ["stress"])
        slope = jax.grad(lambda E: history({"E": E})["stress"][-1, 0])(200e3)

    Gradients go backward through all increments in one callback, as Results.gradient() does.

    Parameters
    ----------
    run
        drive(), or an experiment, with all arguments but `parameters` and `derivatives`.
    outputs
        What is returned.

    Returns
    -------
    function
        Of a mapping of parameters to arrays, float64; it returns the outputs by name. The history
        is driven once when it is traced, with the stored parameters, for its results' shapes.

    Raises
    ------
    FatalError
        As drive() does, once the function is called.
    """
    names = list(outputs)

    def given(known: tuple[str, ...], values: Any) -> dict[str, Any]:
        return {name: np.asarray(value) for name, value in zip(known, values, strict=True)}

    def called(parameters: Arrays) -> dict[str, Any]:
        known = tuple(parameters)
        values = tuple(jnp.asarray(parameters[name], float) for name in known)
        first = run()
        batch = np.broadcast_shapes(*(value.shape for value in values))
        shapes = []
        for name in names:
            rows, *point = first[name].shape
            own = () if tuple(point[: len(batch)]) == batch else batch
            shapes.append(jax.ShapeDtypeStruct((rows, *own, *point), values[0].dtype))

        def forward(*arrays: Any) -> tuple[Any, ...]:
            results = run(parameters=given(known, arrays))
            return tuple(np.asarray(results[name], float) for name in names)

        def backward(arrays: Any, weights: Any) -> tuple[Any, ...]:
            results = run(parameters=given(known, arrays), derivatives=list(known))
            found = results.gradient(given(tuple(names), weights))
            return tuple(np.asarray(found[name], float) for name in known)

        @jax.custom_vjp  # type: ignore[untyped-decorator]
        def history(*arrays: Any) -> Any:
            return jax.pure_callback(forward, tuple(shapes), *arrays, vmap_method="sequential")

        def kept(*arrays: Any) -> Any:
            return history(*arrays), arrays

        def pulled_back(arrays: Any, weights: Any) -> Any:
            like = tuple(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays)
            return jax.pure_callback(backward, like, arrays, weights, vmap_method="sequential")

        history.defvjp(kept, pulled_back)
        return dict(zip(names, history(*values), strict=True))

    return called
