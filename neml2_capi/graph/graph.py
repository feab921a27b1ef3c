"""One compiled graph: any AOTInductor package, not only a material model's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, SupportsIndex, overload

from numpy.typing import NDArray

from neml2_capi._ffi.arguments import Arguments, free, results, take
from neml2_capi._ffi.errors import FatalError, check, complete
from neml2_capi._ffi.handle import Handle, owned
from neml2_capi._ffi.kinds import NUMPY, TORCH, Kind, Kinds
from neml2_capi._ffi.library import absolute, c_string, ffi, lib, text
from neml2_capi._ffi.runtime import load, runtime_of
from neml2_capi._ffi.tensor import (
    DTYPE_NAMES,
    Array,
    Label,
    Tensor,
    as_numpy,
    device_text,
    layout,
)
from neml2_capi._ffi.typing import A, Plain
from neml2_capi.graph.pytree import structure

__all__ = ["Graph", "GraphInput", "GraphOutput"]


@dataclass(frozen=True)
class GraphInput:
    """What a graph was compiled for, of one input."""

    #: The element type, "float64" for example.
    dtype: str
    #: The least size of each axis.
    least: tuple[int, ...]
    #: The greatest, equal to the least where it is fixed.
    greatest: tuple[int, ...]
    #: What the author of the package called it, where the package tells; else torch's "arg0_1".
    name: str = ""
    #: The axes from the outermost to the innermost one in memory: 0, 1, ... if row-major.
    order: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int | range, ...]:
        """The size of each axis, or the sizes that it may have."""
        bounds = zip(self.least, self.greatest, strict=True)
        return tuple(least if least == most else range(least, most + 1) for least, most in bounds)

    @property
    def strides(self) -> tuple[int | None, ...]:
        """The strides that an array gets, in elements; None where one follows from other sizes."""
        strides: dict[int, int | None] = {}
        stride: int | None = 1
        for axis in reversed(self.order):
            strides[axis] = stride
            fixed = self.least[axis] == self.greatest[axis]
            stride = stride * max(self.least[axis], 1) if fixed and stride else None
        return tuple(strides[axis] for axis in range(len(strides)))


@dataclass(frozen=True)
class GraphOutput:
    """What a graph returns, of one output, as far as the package tells."""

    #: The key of a dictionary, "stress" or "parts.0", or torch's "output0".
    name: str
    #: The element type; None for what an operator outside of the package returns.
    dtype: str | None
    #: The size of each axis, None where it depends on the inputs; None for what an operator
    #: outside of the package returns.
    shape: tuple[int | None, ...] | None


class Graph(Handle):
    """A .pt2 package for the CPU or CUDA: tensors in, tensors out.

        graph = Graph("aoti/elasticity/cpu/float64/elasticity.pt2")
        (stress,) = graph(strain, E)

    Any number of threads may call it.

    A pickle and a copy hold where the package is, or its content where it came from memory, and the
    constants that were replaced: to unpickle opens it again.
    """

    def __init__(
        self,
        package: str | os.PathLike[str] | bytes | bytearray | memoryview,
        runtime: str = "auto",
        device: Any = None,
        *,
        guards: bool = True,
    ) -> None:
        """Load the package; FatalError names what it needs and is missing.

        `package` is the path of a file, or the content of one. `runtime` is as in Model. A custom
        operator that the package calls is a function of yours on the built-in runtime
        (`neml2_capi.operator`); on libtorch it is one that the imported torch has, or whose schema
        neml2_operator_declare() was told.

        `device` is "cpu", "cuda" or "cuda:1"; without it, what the package was compiled for. A
        graph on CUDA takes and returns tensors there, on torch's current stream and without waiting
        for it; this is untested.

        `guards`: False to have inputs not checked, and not copied where they do not lie in memory
        as the package wants it: for inputs that are known to fit. Others give wrong results, or end
        the process.
        """
        owner = owned("graph")
        self._package: str | bytes
        place: tuple[Any, ...]
        if isinstance(package, (bytes, bytearray, memoryview)):
            self._package = bytes(package)
            place = ffi.from_buffer(self._package), len(self._package)
            function = lib.neml2_graph_load_bytes
        else:
            self._package = absolute(package)
            place = (c_string(self._package),)
            function = lib.neml2_graph_load_on
        self._wanted, self._guards = runtime, guards
        self._wanted_device = str(device) if device else None
        where = c_string(self._wanted_device)

        def open_on(runtime: Any) -> Any:
            return function(owner, *place, runtime, where)

        load(open_on, runtime, package=self._package)
        super().__init__(owner)
        owner = self._open()
        ninputs, noutputs = ffi.new("int64_t *"), ffi.new("int64_t *")
        check(lib.neml2_graph_arity(ninputs, noutputs, owner[0]))
        self._inputs = tuple(_input(owner[0], index) for index in range(ninputs[0]))
        self._outputs = tuple(_output(owner[0], index) for index in range(noutputs[0]))
        self._build = structure(self.call_spec[1], len(self._outputs))
        self._replaced: set[str] = set()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        self._open()
        current = self.constants() if self._replaced else {}
        replaced = {name: current[name] for name in self._replaced}
        again = partial(type(self), guards=self._guards)
        return again, (self._package, self._wanted, self._wanted_device), replaced

    def __setstate__(self, constants: dict[str, Array]) -> None:
        self.set_constants(constants)

    @property
    def inputs(self) -> tuple[GraphInput, ...]:
        """What each input must be."""
        return self._inputs

    @property
    def outputs(self) -> tuple[GraphOutput, ...]:
        """What each output is."""
        return self._outputs

    @property
    def call_spec(self) -> tuple[str, str]:
        """How arguments and results are made of tensors: torch's pytree specifications, in JSON.

        Empty where the package has none.
        """
        owner, texts = self._open(), ffi.new("const char *[2]")
        check(lib.neml2_graph_call_spec(texts, texts + 1, owner[0]))
        return text(texts[0]), text(texts[1])

    @property
    def runtime(self) -> str:
        """What the graph runs on: "builtin" or "libtorch"."""
        return runtime_of(lib.neml2_graph_runtime, self._open())

    @property
    def device(self) -> str:
        """Where inputs and outputs are: "cpu", or "cuda:0"."""
        owner, kind, index = self._open(), ffi.new("int32_t *"), ffi.new("int32_t *")
        check(lib.neml2_graph_device(kind, index, owner[0]))
        return device_text((kind[0], index[0]))

    @property
    def num_outputs(self) -> int:
        """How many tensors a call returns."""
        return len(self._outputs)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Run the graph; the outputs are arrays of the kind of the inputs, as in Model.

        Inputs go by position, and by the names of `inputs`. What comes back is put together as the
        module returned it, where that was a dict, list or tuple, or several of them in one another;
        else, and for a lone tensor, it is a tuple of the outputs.

        An input is of the element type and shape that the package was compiled for, and copied
        where its elements lie in memory in another order.

        Outputs never share memory with the inputs; they may with one another.

        Raises:
            ConvergenceError: An operator of yours raised one.
            FatalError: An input is missing or does not fit, or the run failed.
        """
        made = self.flat(*self._in_order(inputs, named))
        return made if self._build is None else self._build(iter(made))

    @overload
    def flat(self, *inputs: Plain) -> tuple[NDArray[Any], ...]: ...
    @overload
    def flat(self, *inputs: A | Plain) -> tuple[A, ...]: ...
    @overload
    def flat(self, *inputs: Any) -> tuple[Any, ...]: ...
    def flat(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the graph with inputs by position; all outputs in one tuple, however it is called."""
        owner = self._open()
        size, count = len(self._inputs), len(self._outputs)
        if len(inputs) != size:
            raise FatalError(
                f"the graph takes {size} inputs, {len(inputs)} were given", lib.NEML2_ERROR_ARGUMENT
            )
        run = lib.neml2_graph_run if self._guards else lib.neml2_graph_run_unguarded
        outputs, kinds = results(count), Kinds()
        with Arguments(size, kinds) as given:
            for index, (value, wanted) in enumerate(zip(inputs, self._inputs, strict=True)):
                given.fill(index, value, Label("input", wanted.name), wanted.dtype)
            try:
                complete(run(outputs, count, owner[0], given.handles, size))
                borrowed = [layout(given.handles + index).memory for index in range(size)]
                owners = [take(outputs, index) for index in range(count)]
                kind = kinds.kind or NUMPY
                return tuple(_independent(output, borrowed, kind) for output in owners)
            finally:
                free(outputs, count)

    def _in_order(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The inputs by position and by name, all by position."""
        if not named:
            return inputs
        names = [wanted.name for wanted in self._inputs]
        for name in named:
            if name not in names or names.index(name) < len(inputs):
                why = "is given by position as well" if name in names else "is none of its inputs"
                raise Label("input", name).refuse(
                    f"{why}: the graph takes {', '.join(names)}", lib.NEML2_ERROR_NAME
                )
        for name in names[len(inputs) :]:
            if name not in named:
                raise Label("input", name).refuse(
                    f"is missing: the graph takes {', '.join(names)}", lib.NEML2_ERROR_MISSING
                )
        return (*inputs, *(named[name] for name in names[len(inputs) :]))

    def constants(self) -> dict[str, Array]:
        """Copies of the constants (weights, buffers), by their names in the compiled module.

        A package of `export.package` has all that the module has. In others, small ones (8 elements
        or fewer), and those whose elements are all equal, have become numbers in the code.
        """
        owner, count = self._open(), ffi.new("int64_t *")
        check(lib.neml2_graph_constant_count(count, owner[0]))
        found, name = {}, ffi.new("const char **")
        for index in range(count[0]):
            value = owned("tensor")
            check(lib.neml2_graph_constant_get(value, name, owner[0], index))
            found[text(name[0])] = as_numpy(value)
        return found

    def set_constants(self, values: Mapping[str, Any], *, share: bool = False) -> None:
        """Replace constants, all at once, while other threads may be running the graph.

        A run uses the values that it began with, never some of each.

        Args:
            values: Arrays by the names of `constants()`, of their shapes and element types.
            share: True to use the memory of the values, which are tensors made by `Tensor.zeros`
                and are not written any more: so several graphs have one copy of their weights.

        Raises:
            FatalError: One has an unknown name, or does not fit; nothing is replaced then.
        """
        owner, size = self._open(), len(values)
        with Arguments(size, Kinds()) as given:
            for index, (name, value) in enumerate(values.items()):
                label = Label("constant", name)
                if share and not (isinstance(value, Tensor) and value._source is None):
                    raise label.refuse(
                        "is memory of somebody else, which cannot be shared: copy it into a tensor "
                        "made by Tensor.zeros",
                        lib.NEML2_ERROR_ARGUMENT,
                    )
                given.fill(index, value, label, "float64")
            names = [ffi.new("char[]", c_string(name)) for name in values]
            check(lib.neml2_graph_constants_set(owner[0], size, names, given.handles, int(share)))
        self._replaced.update(values)

    def __repr__(self) -> str:
        closed = ", closed" if self.closed else ""
        return f"<Graph, {len(self._inputs)} inputs, {len(self._outputs)} outputs{closed}>"


def _input(graph: Any, index: int) -> GraphInput:
    dtype, ndim = ffi.new("int32_t *"), ffi.new("int64_t *")
    least, greatest = ffi.new("const int64_t **"), ffi.new("const int64_t **")
    name, order = ffi.new("const char **"), ffi.new("const int64_t **")
    check(lib.neml2_graph_input(dtype, ndim, least, greatest, graph, index))
    check(lib.neml2_graph_input_layout(name, ffi.NULL, order, graph, index))
    return GraphInput(
        dtype=DTYPE_NAMES[dtype[0]],
        least=tuple(least[0][0 : ndim[0]]),
        greatest=tuple(greatest[0][0 : ndim[0]]),
        name=text(name[0]),
        order=tuple(order[0][0 : ndim[0]]),
    )


def _output(graph: Any, index: int) -> GraphOutput:
    name, sizes = ffi.new("const char **"), ffi.new("const int64_t **")
    dtype, ndim = ffi.new("int32_t *"), ffi.new("int64_t *")
    check(lib.neml2_graph_output(name, dtype, ndim, sizes, graph, index))
    shape = [None if size < 0 else size for size in sizes[0][0 : ndim[0]]] if sizes[0] else None
    return GraphOutput(
        name=text(name[0]),
        dtype=DTYPE_NAMES.get(dtype[0]),
        shape=None if shape is None else tuple(shape),
    )


def _independent(owner: Any, borrowed: list[range], kind: Kind) -> Any:
    """The output of `owner`, copied where it lies in the memory of an input."""
    covered = layout(owner).memory
    if not any(covered.start < r.stop and r.start < covered.stop for r in borrowed):
        return kind.hand_out(owner)
    if kind is TORCH:  # which has types that numpy lacks
        return kind.hand_out(owner).clone()
    copy = Tensor(as_numpy(owner).copy())
    return kind.hand_out(copy._open(), copy._source)
