"""Compiled models among jax's transformations: jit, grad, jvp, jacfwd, jacrev and vmap.

    import jax, neml2_capi, neml2_capi.jax

    jax.config.update("jax_enable_x64", True)  # else jax makes single precision of all numbers
    material = neml2_capi.jax.Function(neml2_capi.Model("aoti/elasticity"))
    stiffness = jax.jacfwd(lambda strain: material({"strain": strain})["stress"])

The model runs on the host, by a callback; a batch of vmap is one evaluation. Derivatives are the
compiled ones of first order, in both modes. Differentiating through many steps in reverse
mode keeps the blocks of all of them: jax.checkpoint around a step keeps its inputs instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

import numpy as np

try:
    import jax
    import jax.numpy as jnp
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "neml2_capi.jax needs jax, which is not installed: pip install jax. Without it, "
        "neml2_capi.Model takes and returns numpy arrays.",
        name="jax",
    ) from error

from neml2_capi._ffi.errors import Error, FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import common_batch
from neml2_capi._ffi.variables import Variable, variable_of
from neml2_capi.model import Model

__all__ = ["Function", "driven"]

Arrays = Mapping[str, Any]
# An input or a parameter, with respect to which there is a derivative.
_Key = tuple[int, str]
_Pair = tuple[Variable, Variable]


class Function:
    """A compiled model as a function of jax.

    Parameters
    ----------
    model : Model
        The model. It stays as it is: what it is set to counts at each call, except parameters that
        are given.
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
        self._shapes = {
            (pair.output, pair.variable): tuple(pair.shape)
            for pair in (*model.derivatives, *model.parameter_derivatives)
        }
        if jax.dtypes.canonicalize_dtype(model.dtype) != model.dtype:
            raise FatalError(
                f"the model computes in {model.dtype}, which jax has switched off: "
                'jax.config.update("jax_enable_x64", True) before the first array is made'
            )
        self._evaluate = jax.custom_jvp(self._value)
        self._evaluate.defjvp(self._jvp, symbolic_zeros=True)

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
            Points did not converge; its text has the message.
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
        inputs, parameters = (
            {name: _of_rank(array, rank, known[name]) for name, array in arrays.items()}
            for known, arrays in zip(self._variables, given, strict=True)
        )
        found: dict[str, Any] = self._evaluate(inputs, parameters)
        return found

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

    def _batch(self, given: tuple[Arrays, Arrays]) -> tuple[int, ...]:
        """The common batch of all arrays."""
        return common_batch(
            (label, label.batch_of(arrays[label.name].shape, variable.point_shape))
            for known, arrays in zip(self._variables, given, strict=True)
            for label, variable in zip(known.labels, known, strict=True)
            if label.name in arrays
        )

    def _value(self, inputs: Arrays, parameters: Arrays) -> dict[str, Any]:
        """The outputs."""
        batch = self._batch((inputs, parameters))

        def evaluated(inputs: Arrays, parameters: Arrays) -> dict[str, Any]:
            found = self.model.forward(inputs, parameters)
            return {name: found[name] for name in self._outputs}

        found: dict[str, Any] = _on_host(evaluated, self._like(batch), inputs, parameters)
        return found

    def _like(self, batch: tuple[int, ...]) -> dict[str, Any]:
        return {
            name: jax.ShapeDtypeStruct(batch + variable.point_shape, variable.dtype)
            for name, variable in self._outputs.items()
        }

    def _jvp(self, primals: tuple[Arrays, Arrays], tangents: tuple[Arrays, Arrays]) -> Any:
        """The outputs, and their derivatives along the tangents, which are linear in these."""
        moved = {
            (kind, name): tangent
            for kind in (0, 1)
            for name, tangent in tangents[kind].items()
            if not isinstance(tangent, jax.custom_derivatives.SymbolicZero)
        }
        values, blocks = self._linearized(primals, tuple(moved))
        along = {name: jnp.zeros_like(value) for name, value in values.items()}
        for output, of_output in blocks.items():
            for (kind, name), block in of_output.items():
                pair = self._outputs[output], self._variables[kind][name]
                names, shape = f"{output}:{name}", self._shapes[output, name]
                product = _product(block, shape, moved[kind, name], names, pair)
                along[output] += product.reshape(along[output].shape)
        return values, along

    def _linearized(self, primals: tuple[Arrays, Arrays], keys: tuple[_Key, ...]) -> Any:
        """The outputs, and the blocks with respect to these inputs and parameters."""
        batch = self._batch(primals)
        like: dict[str, dict[_Key, Any]] = {}
        for output in self._outputs:
            for kind, name in keys:
                shape = self._shapes.get((output, name))
                if shape is None:
                    raise FatalError(
                        f"the derivative {output}:{name} was not compiled. Compile the model with "
                        f"-d {output}:{name}; or leave the output out, Function(model, outputs="
                        "[...]), or take jax.lax.stop_gradient of the input",
                        lib.NEML2_ERROR_UNSUPPORTED,
                        f"{output}:{name}",
                    )
                like.setdefault(output, {})[kind, name] = jax.ShapeDtypeStruct(
                    batch + shape, self._outputs[output].dtype
                )

        def evaluated(*given: Any) -> Any:
            of_all = self._batch((given[0], given[1]))
            spread = [
                {n: _spread(array, of_all, known[n].point_shape) for n, array in arrays.items()}
                for known, arrays in zip(self._variables, given, strict=True)
            ]
            wanted = {
                output: {name: True for _, name in of_output} for output, of_output in like.items()
            }
            call = self.model.bind(spread[0], parameters=spread[1], derivatives=wanted)
            call()
            values = {name: np.asarray(call.outputs[name]) for name in self._outputs}
            return values, {
                output: {(k, n): np.asarray(call.derivatives[output][n]) for k, n in of_output}
                for output, of_output in like.items()
            }

        return _on_host(evaluated, (self._like(batch), like), *primals)


def _of_rank(array: Any, rank: int, variable: Variable) -> Any:
    """The array with so many batch axes: vmap puts its own before them."""
    return array.reshape((1,) * (rank + len(variable.point_shape) - array.ndim) + array.shape)


def _spread(array: Any, batch: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """One value for all points; or else an array of all of them."""
    if array.size == prod(shape):
        return array.reshape(shape)
    return np.array(np.broadcast_to(array, batch + shape), order="C")


def _is_told_elsewhere(record: logging.LogRecord) -> bool:
    """Drop what jax logs of our errors, with a stack of its own: it raises them as well."""
    return not (record.exc_info and isinstance(record.exc_info[1], Error))


logging.getLogger("jax._src.callback").addFilter(_is_told_elsewhere)


def _on_host(function: Callable[..., Any], like: Any, *arguments: Any) -> Any:
    """Call a function of numpy arrays inside a computation of jax."""

    def run(*given: Any) -> Any:
        # The model wants numpy's arrays: jax' own would wait for jax, which waits for us.
        try:
            return function(*jax.tree.map(np.asarray, given))
        except Error as error:
            # jax passes on its text and the stack alone: the library's stack says nothing.
            raise error.with_traceback(None) from None

    arguments = jax.tree.map(_once.bind, arguments)
    # An argument without the new axis of vmap gets one of length 1, which the model broadcasts.
    return jax.pure_callback(run, like, *arguments, vmap_method="expand_dims")


def _product(block: Any, shape: tuple[int, ...], tangent: Any, names: str, pair: _Pair) -> Any:
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


def _refuse_second_derivatives(primals: Any, tangents: Any) -> Any:
    if isinstance(tangents[0], ad.Zero):
        return _once.bind(*primals), tangents[0]
    raise FatalError(
        "derivatives of second order are not compiled: differentiate once only, without "
        "jax.hessian and the like; for least squares use J^T J, with J by jax.jacfwd",
        lib.NEML2_ERROR_UNSUPPORTED,
    )


# The identity, except for its derivative: what a callback depends on goes through it. A rule of
# custom_jvp would not do, since jax drops it when it takes a scan apart.
_once = Primitive("neml2_capi_once")
_once.def_impl(lambda array: array)
_once.def_abstract_eval(lambda array: array)
ad.primitive_jvps[_once] = _refuse_second_derivatives
batching.primitive_batchers[_once] = lambda arrays, axes: (_once.bind(*arrays), axes[0])
mlir.register_lowering(_once, lambda _, array: [array])


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
