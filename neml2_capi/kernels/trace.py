"""Exported graphs of torch, run once over scalar expressions. This module needs torch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from neml2_capi.kernels.arrays import Arrays, Nodes
from neml2_capi.kernels.dropped import settled_output
from neml2_capi.kernels.labels import LEAST_SITES
from neml2_capi.kernels.places import place_of
from neml2_capi.kernels.pointwise import require_pointwise
from neml2_capi.kernels.program import Array, NoKernel, Program, no_search_for_cycles, program_of
from neml2_capi.kernels.quotients import replace_quotients
from neml2_capi.kernels.scalar import MASKS, constant_of
from neml2_capi.kernels.signs import sees
from neml2_capi.kernels.walk import Walk, has_points, torch

#: A graph of more expressions, or of more numbers in all its arrays, is given up: it would take
#: minutes to read. Jacobians of many sites are, and are derived from residuals (`derivatives`).
MOST_EXPRESSIONS = 2_000_000

#: Element types that round what a kernel of float64 would not.
_LESS_ACCURATE = frozenset({torch.float32, torch.float16, torch.bfloat16})
#: Types of integers that wrap around in laws, and the operators that make them do so.
_WRAP = frozenset({torch.uint8, torch.int8, torch.int16})
_ARITHMETIC = frozenset({"add", "sub", "rsub", "mul", "neg", "square", "pow", "cumsum", "cumprod"})


def read(program: Any) -> Program:
    """The scalar operations of a torch.export.ExportedProgram, for one point.

    The graph is best read before run_decompositions(), which takes longer than all else.

    Parameters
    ----------
    program : torch.export.ExportedProgram
        A graph whose points are the first axis, of any size, of inputs and outputs. Inputs of a
        fixed shape have one value for all points.

    Returns
    -------
    Program
        The steps, named after the placeholders of the graph.

    Raises
    ------
    NoKernel
        The graph holds an unknown operator, a shape that depends on data, a second axis of open
        size, what mixes points, or more than two million expressions.
    """
    with no_search_for_cycles():
        made = _Reader(program).read() or _Reader(program, every_sign=True).read()
    assert made is not None
    return made


class _Reader(Walk):
    def __init__(self, program: Any, every_sign: bool = False) -> None:
        super().__init__(program, Arrays(every_sign), points=1)
        self._arguments: list[Array] = []
        self._types: set[str] = set()
        self._made_at: Counter[str] = Counter()  # expressions, by the line of the law
        self._sites = 0  # the length of the axis that most arrays have, if it is a long one

    def read(self) -> Program | None:
        """The program; None if the sign of a zero that was lost may matter."""
        nodes = list(self.program.graph_module.graph.nodes)
        self._require_short(nodes)
        arguments = self.arguments()
        if not any(array.per_point for array in self._arguments):
            raise NoKernel("its number of points is fixed; compile it with a dynamic batch")
        if len(self._types) != 1:
            raise NoKernel(f"its inputs are of several element types: {sorted(self._types)}")
        require_pointwise(self.program)
        self._find_sites(nodes)
        values = self.run(arguments)
        scalars = self.arrays.scalars
        if sees(scalars.nodes, scalars.shared):
            return None
        replace_quotients(scalars)
        metas = [node.meta["val"] for node in nodes[-1].args[0]]
        pairs = list(zip(values, metas, strict=True))
        outputs = [_output(i, value, meta) for i, (value, meta) in enumerate(pairs)]
        results = [
            settled_output(scalars, list(self.arrays.number(value).ravel())) for value in values
        ]
        made = program_of(self._arguments, outputs, results)
        made.real, made.graph_nodes = self._types.pop(), len(nodes)
        return made

    def input(self, number: int, node: Any, shape: tuple[int, ...]) -> Nodes:
        meta = node.meta["val"]
        self._types.add(_dtype(meta, f"input {node.name}"))
        self.arrays.largest = torch.finfo(meta.dtype).max
        per_point = has_points(meta)
        self._arguments.append(Array(node.name, shape[1:] if per_point else shape, per_point))
        return self.arrays.variables(number, shape)

    def finished(self, node: Any, name: str, result: Nodes) -> Nodes:
        return self._rounded(node, name, self._of_type(node, name, result))

    def call(self, node: Any, known: dict[Any, Any]) -> Any:
        before = len(self.arrays.scalars.nodes)
        result = super().call(node, known)
        self._tell_sites(result, before)
        count = len(self.arrays.scalars.nodes)
        self._made_at[place_of(node)] += count - self._made_at.total()
        if count > MOST_EXPRESSIONS:
            raise self._too_long(count)
        return result

    def _require_short(self, nodes: Sequence[Any]) -> None:
        """NoKernel if the arrays of a graph hold too many numbers."""
        for node in nodes:
            meta = node.meta.get("val")
            if isinstance(meta, torch.Tensor) and node.op == "call_function":
                sizes = [1 if isinstance(n, torch.SymInt) else int(n) for n in meta.shape]
                self._made_at[place_of(node)] += math.prod(sizes)
        if (total := self._made_at.total()) > MOST_EXPRESSIONS:
            raise self._too_long(total)
        self._made_at.clear()

    def _find_sites(self, nodes: Sequence[Any]) -> None:
        metas = (node.meta.get("val") for node in nodes if node.op == "call_function")
        axes = Counter(
            n
            for meta in metas
            if isinstance(meta, torch.Tensor)
            for n in meta.shape
            if not isinstance(n, torch.SymInt) and n >= LEAST_SITES
        )
        self._sites = axes.most_common(1)[0][0] if axes else 0

    def _tell_sites(self, made: Any, begin: int) -> None:
        """Note the sites of expressions from `begin` on; between two sites there may be a face."""
        if not isinstance(made, np.ndarray) or not self._sites:
            return
        axes = [k for k, n in enumerate(made.shape) if abs(n - self._sites) <= 1]
        if len(axes) == 1:
            for place, x in np.ndenumerate(made):
                if x.index >= begin:
                    x.site = place[axes[0]]

    def _too_long(self, count: int) -> NoKernel:
        """The line of the law that makes most of the expressions is named."""
        ((place, _),) = self._made_at.most_common(1)
        return NoKernel(
            f"its arrays have {count} entries; at most {MOST_EXPRESSIONS} are a kernel. The "
            "longest part of it is made",
            place,
        )

    def _of_type(self, node: Any, name: str, result: Nodes) -> Nodes:
        """Truth values for torch's: the sum of two is true. NoKernel for the bits of integers."""
        meta = node.meta.get("val")
        if not isinstance(meta, torch.Tensor):
            return result
        if meta.dtype is not torch.bool:
            if name.startswith(("aten.bitwise_", "aten.__")):
                raise NoKernel(f"{name} ({node.name}) takes the bits of integers")
            if meta.dtype in _WRAP and name.removeprefix("aten.").split(".")[0] in _ARITHMETIC:
                kind = str(meta.dtype).removeprefix("torch.")
                raise NoKernel(
                    f"{name} ({node.name}) computes in {kind}, whose numbers wrap around; convert "
                    "to torch.int64"
                )
            return result
        known = all(x.operation in MASKS or constant_of(x) is not None for x in result.ravel())
        return result if known else self.arrays.truth(result)

    def _rounded(self, node: Any, name: str, result: Nodes) -> Nodes:
        """Constants of less accuracy than the graph. NoKernel if such numbers are computed."""
        meta = node.meta.get("val")
        low = isinstance(meta, torch.Tensor) and meta.dtype in _LESS_ACCURATE
        if not low or self._types != {"float64"}:
            return result
        rounded: Nodes = result.copy()
        for place in np.ndindex(result.shape):
            rounded[place] = self._rounded_constant(result[place], meta.dtype)
            if rounded[place] is None:
                kind = str(meta.dtype).removeprefix("torch.")
                raise NoKernel(
                    f"{name} ({node.name}) computes in {kind}, in a graph of float64; convert to "
                    "torch.float64"
                )
        return rounded

    def _rounded_constant(self, x: Any, dtype: Any) -> Any:
        """None if it is neither a constant nor a choice of two that need no rounding."""
        value = constant_of(x)
        if value is not None:
            return self.arrays.scalars.constant(torch.tensor(value, dtype=dtype).double().item())
        if x.operation in MASKS:
            return x
        choices = x.arguments[1:] if x.operation == "where" else ()
        exact = choices and all(self._rounded_constant(c, dtype) is c for c in choices)
        return x if exact else None


def _output(index: int, value: Nodes, meta: Any) -> Array:
    _dtype(meta, f"output {index}")
    per_point = has_points(meta)
    return Array(f"output_{index}", value.shape[1:] if per_point else value.shape, per_point)


def _dtype(meta: Any, what: str) -> str:
    name = str(meta.dtype).removeprefix("torch.")
    if name not in ("float64", "float32"):
        raise NoKernel(f"the {what} is of type {name}; float64 and float32 are known")
    return name
