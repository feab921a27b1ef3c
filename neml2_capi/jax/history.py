"""A history as a function of jax."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from neml2_capi._ffi.interrupt import raise_later
from neml2_capi._ffi.labels import common_batch, listed
from neml2_capi.driver.given import parameter_values
from neml2_capi.jax._operation import Arrays
from neml2_capi.model.evaluation import check_mapping


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
        As drive() does, once the function is called: of names and shapes.
    jax.errors.JaxRuntimeError
        A value is refused, NaN for example, or a step did not converge; its text has the message.
    """
    names = listed(outputs)

    def given(known: tuple[str, ...], values: Any) -> dict[str, Any]:
        return {name: np.asarray(value) for name, value in zip(known, values, strict=True)}

    def called(parameters: Arrays) -> dict[str, Any]:
        check_mapping("parameters", parameters)
        known = tuple(parameters)
        values = tuple(jnp.asarray(parameters[name], float) for name in known)
        first, dtype = run(), jax.dtypes.canonicalize_dtype(float)
        shaped = {n: np.broadcast_to(0.0, v.shape) for n, v in zip(known, values, strict=True)}
        found = parameter_values(first._parameters, shaped).values()
        batch = common_batch(((each.label, each.batch) for each in found), first._batch)
        shapes = [jax.ShapeDtypeStruct(first._shape_of(name, batch), dtype) for name in names]

        @_interruptible
        def forward(*arrays: Any) -> tuple[Any, ...]:
            results = run(parameters=given(known, arrays))
            return tuple(np.asarray(results[name], float) for name in names)

        @_interruptible
        def backward(arrays: Any, weights: Any) -> tuple[Any, ...]:
            results = run(parameters=given(known, arrays), derivatives=list(known))
            follow = results._gradients.outputs  # other results do not depend on parameters
            weighed = {n: w for n, w in given(tuple(names), weights).items() if n in follow}
            found = (
                results.gradient(weighed) if weighed else given(known, map(np.zeros_like, arrays))
            )
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


def _interruptible(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A callback of jax that loses no KeyboardInterrupt."""

    @wraps(callback)
    def called(*arguments: Any) -> Any:
        try:
            return callback(*arguments)
        except Exception:
            raise
        except BaseException as error:
            raise_later(error)
            raise

    return called
