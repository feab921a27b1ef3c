"""One compiled graph: any AOTInductor package, not only a material model's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, SupportsIndex, overload

from numpy.typing import NDArray

from neml2_capi._ffi.arguments import Arguments
from neml2_capi._ffi.dtypes import DTYPE_NAMES
from neml2_capi._ffi.errors import FatalError, check, complete
from neml2_capi._ffi.handle import Handle, owned
from neml2_capi._ffi.inspection import RUNTIME_NAMES, counted, inspected
from neml2_capi._ffi.kinds import NUMPY, TORCH, Kind, Kinds
from neml2_capi._ffi.labels import Array, Label
from neml2_capi._ffi.library import absolute, ffi, lib, text
from neml2_capi._ffi.runtime import load
from neml2_capi._ffi.source import native_source
from neml2_capi._ffi.strings import c_string
from neml2_capi._ffi.tensor import Tensor
from neml2_capi._ffi.typing import A, Plain
from neml2_capi._ffi.views import as_numpy, device_text, layout
from neml2_capi.graph.pytree import structure

__all__ = ["Graph", "GraphInput", "GraphOutput"]


@dataclass(frozen=True)
class GraphInput:
    """What a graph was compiled for, of one input."""

    #: The element type, "float64" for example.
    dtype: str
    #: The least size of each axis.
    least: tuple[int, ...]
    #: The greatest, equal to the least if it is fixed.
    greatest: tuple[int, ...]
    #: What the author of the package called it, if the package tells; else torch's "arg0_1".
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
        """The strides that an array gets, in elements; None if one follows from other sizes."""
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
    #: The size of each axis, None if it depends on the inputs; None for what an operator
    #: outside of the package returns.
    shape: tuple[int | None, ...] | None


class Graph(Handle):
    """A .pt2 package for the CPU or CUDA: tensors in, tensors out.

        graph = Graph("aoti/elasticity/cpu/float64/elasticity.pt2")
        (stress,) = graph(strain, E)

    Any number of threads may call it.

    A pickle and a copy hold where the package is, or its content if it came from memory, and the
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
        """Load a package.

        A custom operator that the package calls is a function of yours on the built-in runtime
        (`neml2_capi.operator`); on libtorch it is one that the imported torch has, or whose schema
        neml2_operator_declare() was told.

        Parameters
        ----------
        package
            The path of a file, or the content of one.
        runtime
            As in Model.
        device : str or torch.device, optional
            "cpu", "cuda" or "cuda:1"; by default what the package was compiled for. A graph on CUDA
            takes and returns tensors there, on torch's current stream and without waiting for it.
        guards
            False to have inputs not checked, and not copied if they do not lie in memory as the
            package wants it: for inputs that are known to fit. Others give wrong results, or end
            the process.

        Raises
        ------
        FatalError
            The package cannot be loaded; the message names what it needs and is missing.
        """
        owner = owned("graph")
        self._package: str | bytes
        self._wanted, self._guards = runtime, guards
        self._wanted_device = str(device) if device else None
        where: dict[str, Any] = {"runtime": runtime, "device": self._wanted_device}
        if isinstance(package, (bytes, bytearray, memoryview)):
            self._package = bytes(package)
            source = native_source(content=self._package, **where)
        else:
            self._package = absolute(package)
            source = native_source(self._package, **where)
        load([runtime], lambda: lib.neml2_graph_open(owner, source), self._package)
        super().__init__(owner)
        graph = self._open()[0]
        inputs = counted(lib.neml2_graph_variable_count, graph, lib.NEML2_INPUT)
        outputs = counted(lib.neml2_graph_variable_count, graph, lib.NEML2_OUTPUT)
        self._inputs = tuple(_input(graph, index) for index in inputs)
        self._outputs = tuple(_output(graph, index) for index in outputs)
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

        Empty if the package has none.
        """
        info = self._inspected()
        return text(info.in_spec), text(info.out_spec)

    @property
    def runtime(self) -> str:
        """What the graph runs on: "builtin" or "libtorch"."""
        return RUNTIME_NAMES[self._inspected().runtime]

    @property
    def device(self) -> str:
        """Where inputs and outputs are: "cpu", or "cuda:0"."""
        info = self._inspected()
        return device_text((info.device, info.device_index))

    def _inspected(self) -> Any:
        owner = self._open()
        return inspected("neml2_graph_info", lib.neml2_graph_inspect, owner[0])

    @property
    def num_outputs(self) -> int:
        """How many tensors a call returns."""
        return len(self._outputs)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Run the graph.

        Parameters
        ----------
        *inputs : array
            Inputs by position, of the element types and shapes that the package was compiled for;
            an input is copied if its elements lie in memory in another order.
        **named : array
            The other inputs, by the names of `inputs`.

        Returns
        -------
        tuple, list or dict of array
            The outputs, put together as the module returned them, if that was a dict, list or
            tuple, or several of them in one another; else, and for a lone tensor, a tuple. They are
            arrays of the kind of the inputs, as in Model, and never share memory with them; they
            may with one another.

        Raises
        ------
        ConvergenceError
            An operator of yours raised one.
        FatalError
            An input is missing or does not fit, or the run failed.
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
        """Run the graph with inputs by position, and return all outputs in one tuple.

        Parameters
        ----------
        *inputs : array
            As in a call.

        Returns
        -------
        tuple of array
            The outputs in the order of `outputs`, however the module put them together.

        Raises
        ------
        ConvergenceError
            An operator of yours raised one.
        FatalError
            An input is missing or does not fit, or the run failed.
        """
        owner = self._open()
        size, count = len(self._inputs), len(self._outputs)
        if len(inputs) != size:
            raise FatalError(
                f"the graph takes {size} inputs, {len(inputs)} were given", lib.NEML2_ERROR_ARGUMENT
            )
        run = lib.neml2_graph_run if self._guards else lib.neml2_graph_run_unguarded
        kinds = Kinds()
        with Arguments(size, kinds) as given, Arguments(count) as outputs:
            for index, (value, wanted) in enumerate(zip(inputs, self._inputs, strict=True)):
                given.fill(index, value, Label("input", wanted.name), wanted.dtype)
            complete(run(outputs.handles, count, owner[0], given.handles, size))
            borrowed = [layout(given.handles + index).memory for index in range(size)]
            owners = [outputs.take(index) for index in range(count)]
            kind = kinds.kind or NUMPY
            return tuple(_independent(output, borrowed, kind) for output in owners)

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
        """Copy the constants: weights and buffers.

        A package of `export.package` has all that the module has. In others, small ones (8 elements
        or fewer), and those whose elements are all equal, have become numbers in the code.

        Returns
        -------
        dict of str to array
            The copies, by their names in the compiled module.
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

        Parameters
        ----------
        values : mapping of str to array
            New values by the names of `constants()`, of their shapes and element types.
        share
            Whether to use the memory of the values, which are tensors made by `Tensor.zeros` and
            are not written any more: so several graphs have one copy of their weights.

        Raises
        ------
        FatalError
            One has an unknown name, or does not fit; nothing is replaced then.
        """
        owner, size = self._open(), len(values)
        with Arguments(size) as given:
            for index, (name, value) in enumerate(values.items()):
                label = Label("constant", name)
                if share and not (isinstance(value, Tensor) and value._source is None):
                    raise label.refuse(
                        "is borrowed memory, which cannot be shared: copy it into a tensor "
                        "made by Tensor.zeros",
                        lib.NEML2_ERROR_ARGUMENT,
                    )
                given.fill(index, value, label, "float64")
            names = [ffi.new("char[]", c_string(name)) for name in values]
            check(lib.neml2_graph_constant_set(owner[0], size, names, given.handles, int(share)))
        self._replaced.update(values)

    def __repr__(self) -> str:
        closed = ", closed" if self.closed else ""
        return f"<Graph, {len(self._inputs)} inputs, {len(self._outputs)} outputs{closed}>"


def _input(graph: Any, index: int) -> GraphInput:
    info = _variable(graph, lib.NEML2_INPUT, index)
    axes = slice(0, info.ndim)
    return GraphInput(
        dtype=DTYPE_NAMES[info.dtype],
        least=tuple(info.least[axes]),
        greatest=tuple(info.greatest[axes]),
        name=text(info.name),
        order=tuple(info.order[axes]),
    )


def _output(graph: Any, index: int) -> GraphOutput:
    info = _variable(graph, lib.NEML2_OUTPUT, index)
    sizes = info.least[0 : info.ndim] if info.least else None
    return GraphOutput(
        name=text(info.name),
        dtype=DTYPE_NAMES.get(info.dtype),
        shape=None if sizes is None else tuple(None if size < 0 else size for size in sizes),
    )


def _variable(graph: Any, kind: int, index: int) -> Any:
    function = lib.neml2_graph_variable_inspect
    return inspected("neml2_graph_variable_info", function, graph, kind, index)


def _independent(owner: Any, borrowed: list[range], kind: Kind) -> Any:
    """The output of `owner`, copied if it lies in the memory of an input."""
    covered = layout(owner).memory
    if not any(covered.start < r.stop and r.start < covered.stop for r in borrowed):
        return kind.hand_out(owner)
    if kind is TORCH:  # which has types that numpy lacks
        return kind.hand_out(owner).clone()
    copy = Tensor(as_numpy(owner).copy())
    return kind.hand_out(copy._open(), copy._source)
