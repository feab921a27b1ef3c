"""The operation of XLA that evaluates a model, and its rules for batches and derivatives."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.ffi
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from neml2_capi._ffi.errors import FatalError, check
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.logs import drain, listening
from neml2_capi._ffi.variables import Variable
from neml2_capi.model.model import Model

Arrays = Mapping[str, Any]
Shape = tuple[int, ...]
_Pair = tuple[Variable, Variable]
# The name of the operation in XLA's programs.
_TARGET = "neml2_capi_model"


class Place(NamedTuple):
    """A buffer of the operation: an input, a parameter, an output or a block of derivatives."""

    #: NEML2_*; of a block, the kind of the variable.
    role: int
    name: str
    #: The variable that a block is by; else "".
    by: str
    #: The shape of a point.
    shape: Shape
    dtype: Any
    variable: Variable

    def line(self) -> str:
        """The line that the library reads of it."""
        return f"{self.role}\t{self.name}\t{self.by}\t{prod(self.shape)}"


def place_of(role: int, variable: Variable) -> Place:
    return Place(role, variable.name, "", tuple(variable.point_shape), variable.dtype, variable)


class Programs(dict["Operation", Any]):
    """Programs of a function for evaluations outside of jit; the function alone keeps them.

    Nothing that jax keeps leads here: else it would never go.
    """


class Operation:
    """What an evaluation reads and writes: a parameter of the primitive, equal to itself alone."""

    def __init__(
        self,
        model: Model,
        programs: weakref.ref[Programs],
        operands: list[Place],
        outputs: list[Place],
        by: tuple[int, ...] = (),
    ) -> None:
        """`by` has the operands with respect to which there are blocks of all outputs."""
        self._model, self._programs = model, programs
        self.operands, self._outputs, self.by = operands, outputs, by
        self.results = [*outputs, *(self._block(output, i) for output in outputs for i in by)]
        self._derived: dict[tuple[int, ...], Operation] = {}

    def derived(self, by: tuple[int, ...]) -> Operation:
        """The operation that has blocks, too."""
        known = self._derived.get(by)
        if known is None:
            of = self._model, self._programs, self.operands, self._outputs
            known = self._derived[by] = Operation(*of, by)
        return known

    def compiled(self) -> Any:
        """Return what evaluates arrays that have values."""
        programs = self._programs()
        kept = Programs() if programs is None else programs
        if self not in kept:
            kept[self] = jax.jit(partial(_evaluate.bind, operation=self))
        return kept[self]

    def _block(self, output: Place, index: int) -> Place:
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

    def batch(self, arrays: Iterable[Any]) -> Shape:
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


def _product(block: Any, shape: Shape, tangent: Any, names: str, pair: _Pair) -> Any:
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


def _run(*arrays: Any, operation: Operation) -> Any:
    """Evaluate arrays that have values, and wait: nothing else keeps the model open."""
    found = jax.block_until_ready(operation.compiled()(*arrays))
    if listening:
        drain()
    return found


def _derive(primals: Any, tangents: Any, *, operation: Operation) -> Any:
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


def _batched(arrays: Any, axes: Any, *, operation: Operation) -> Any:
    """A batch of vmap is one more axis, of length 1 if an array has none."""
    moved = [
        jnp.moveaxis(array, axis, 0) if isinstance(axis, int) else array[None]
        for array, axis in zip(arrays, axes, strict=True)
    ]
    found = operation(moved)
    return found, [0] * len(found)


def _lowered(context: Any, *arrays: Any, operation: Operation, platform: str) -> Any:
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
