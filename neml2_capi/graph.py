"""One compiled graph: any AOTInductor package, not only a material model's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex, overload

from numpy.typing import NDArray

from neml2_capi._arguments import Arguments, free, results, take
from neml2_capi._handle import Handle, owned
from neml2_capi._kinds import NUMPY, TORCH, Kind, Kinds
from neml2_capi._library import c_string, ffi, lib, text
from neml2_capi._reopening import absolute
from neml2_capi._runtime import load, runtime_of
from neml2_capi._tensor import (
    DTYPE_NAMES,
    Array,
    Label,
    Tensor,
    as_numpy,
    layout,
)
from neml2_capi._typing import A, Plain
from neml2_capi.errors import FatalError, check

__all__ = ["Graph", "GraphInput"]


@dataclass(frozen=True)
class GraphInput:
    """What a graph was compiled for, of one input."""

    #: The element type, "float64" for example.
    dtype: str
    #: The least size of each axis.
    least: tuple[int, ...]
    #: The greatest, equal to the least where it is fixed.
    greatest: tuple[int, ...]


class Graph(Handle):
    """A .pt2 package for the CPU: tensors in, tensors out.

        graph = Graph("aoti/elasticity/cpu/float64/elasticity.pt2")
        (stress,) = graph(strain, E)

    Any number of threads may call it.

    A pickle and a copy hold where the package is, and the constants that were replaced: to
    unpickle opens it again.
    """

    def __init__(self, path: str | os.PathLike[str], runtime: str = "auto") -> None:
        """Load the package; FatalError names what it needs and is missing.

        `runtime` is as in Model. A custom operator that the package calls on libtorch is one that
        the imported torch has, or whose schema neml2_operator_declare() was told.
        """
        owner = owned("graph")
        self._path, self._wanted = absolute(path), runtime
        file = c_string(self._path)
        load(lib.neml2_graph_load_with, runtime, owner, file, package=self._path)
        super().__init__(owner)
        owner = self._open()
        ninputs, noutputs = ffi.new("int64_t *"), ffi.new("int64_t *")
        check(lib.neml2_graph_arity(ninputs, noutputs, owner[0]))
        self._inputs = tuple(_input(owner[0], index) for index in range(ninputs[0]))
        self._num_outputs = int(noutputs[0])
        self._replaced: set[str] = set()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        self._open()
        current = self.constants() if self._replaced else {}
        replaced = {name: current[name] for name in self._replaced}
        return type(self), (self._path, self._wanted), replaced

    def __setstate__(self, constants: dict[str, Array]) -> None:
        self.set_constants(constants)

    @property
    def inputs(self) -> tuple[GraphInput, ...]:
        """What each input must be."""
        return self._inputs

    @property
    def runtime(self) -> str:
        """What the graph runs on: "builtin" or "libtorch"."""
        return runtime_of(lib.neml2_graph_runtime, self._open()[0])

    @property
    def num_outputs(self) -> int:
        """How many tensors a call returns."""
        return self._num_outputs

    @overload
    def __call__(self, *inputs: Plain) -> tuple[NDArray[Any], ...]: ...
    @overload
    def __call__(self, *inputs: A | Plain) -> tuple[A, ...]: ...
    @overload
    def __call__(self, *inputs: Any) -> tuple[Any, ...]: ...
    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the graph; the outputs are arrays of the kind of the inputs, as in Model.

        Outputs never share memory with the inputs; they may with one another.
        """
        owner = self._open()
        size = len(self._inputs)
        if len(inputs) != size:
            raise FatalError(
                f"the graph takes {size} inputs, {len(inputs)} were given", lib.NEML2_ERROR_ARGUMENT
            )
        outputs, kinds = results(self._num_outputs), Kinds()
        with Arguments(size, kinds) as given:
            for index, (value, wanted) in enumerate(zip(inputs, self._inputs, strict=True)):
                given.fill(index, value, Label("input", str(index)), wanted.dtype)
            try:
                check(
                    lib.neml2_graph_run(outputs, self._num_outputs, owner[0], given.handles, size)
                )
                borrowed = [layout(given.handles + index).memory for index in range(size)]
                owners = [take(outputs, index) for index in range(self._num_outputs)]
                kind = kinds.kind or NUMPY
                return tuple(_independent(output, borrowed, kind) for output in owners)
            finally:
                free(outputs, self._num_outputs)

    def constants(self) -> dict[str, Array]:
        """Copies of the constants (weights, buffers), by their names in the compiled module.

        Small ones (8 elements or fewer), and those whose elements are all equal, have become
        numbers in the code, and are not among them.
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
        return f"<Graph, {len(self._inputs)} inputs, {self._num_outputs} outputs{closed}>"


def _input(graph: Any, index: int) -> GraphInput:
    dtype, ndim = ffi.new("int32_t *"), ffi.new("int64_t *")
    least, greatest = ffi.new("const int64_t **"), ffi.new("const int64_t **")
    check(lib.neml2_graph_input(dtype, ndim, least, greatest, graph, index))
    return GraphInput(
        dtype=DTYPE_NAMES[dtype[0]],
        least=tuple(least[0][0 : ndim[0]]),
        greatest=tuple(greatest[0][0 : ndim[0]]),
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
