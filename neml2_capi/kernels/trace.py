"""Exported graphs of torch, run once over scalar expressions. This module needs torch."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neml2_capi.kernels.arrays import Arrays, Nodes
from neml2_capi.kernels.dropped import settled_output
from neml2_capi.kernels.labels import LEAST_SITES
from neml2_capi.kernels.operators import CHECKS, OPERATORS
from neml2_capi.kernels.places import LINE, place_of
from neml2_capi.kernels.program import Array, NoKernel, Program, no_search_for_cycles, program_of
from neml2_capi.kernels.scalar import MASKS, constant_of

try:
    import torch
    import torch._refs
    from torch._decomp import decomposition_table
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._pytree import tree_leaves

    from neml2_capi.kernels.lowered import WRITTEN
except ImportError as error:
    raise ImportError(
        "neml2_capi.kernels reads graphs with torch, which is not installed for this Python; "
        "install it with: pip install 'neml2_capi[compile]'",
        name="torch",
    ) from error

#: A graph of more expressions, or of more numbers in all its arrays, is given up: it would take
#: minutes to read. Jacobians of many sites are, and are derived from residuals (`derivatives`).
MOST_EXPRESSIONS = 2_000_000

#: Element types that round what a kernel of float64 would not.
_LESS_ACCURATE = frozenset({torch.float32, torch.float16, torch.bfloat16})

#: Arithmetic of sizes.
_SIZES: dict[Any, Callable[..., Any]] = {
    f: f for f in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.getitem)
}


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
        size, sums over points, or more than two million expressions.
    """
    with no_search_for_cycles():
        return _Reader(program).read()


class _Reader:
    def __init__(self, program: Any) -> None:
        self._program = program
        self._arrays = Arrays()
        self._inputs: list[Array] = []
        self._types: set[str] = set()
        self._made_at: Counter[str] = Counter()  # expressions, by the line of the law
        self._sites = 0  # the length of the axis that most arrays have, if it is a long one

    def read(self) -> Program:
        module, signature = self._program.graph_module, self._program.graph_signature
        nodes = list(module.graph.nodes)
        self._require_short(nodes)
        self._find_sites(nodes)
        places = [node for node in nodes if node.op == "placeholder"]
        arguments = [self._placeholder(node, signature) for node in places]
        if not any(array.per_point for array in self._inputs):
            raise NoKernel("its number of points is fixed; compile it with a dynamic batch")
        if len(self._types) != 1:
            raise NoKernel(f"its inputs are of several element types: {sorted(self._types)}")
        values = self._run(module, arguments)
        metas = [node.meta["val"] for node in nodes[-1].args[0]]
        pairs = list(zip(values, metas, strict=True))
        outputs = [_output(i, value, meta) for i, (value, meta) in enumerate(pairs)]
        results = [
            settled_output(self._arrays.scalars, list(self._arrays.number(value).ravel()))
            for value in values
        ]
        made = program_of(self._inputs, outputs, results)
        for array, nodes_of_array in zip(outputs, results, strict=True):
            if not array.per_point:
                self._require_uniform(nodes_of_array)
        made.real, made.graph_nodes = self._types.pop(), len(nodes)
        return made

    def _placeholder(self, node: Any, signature: Any) -> Nodes:
        name, program = node.name, self._program
        stored = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        stored.update(signature.inputs_to_lifted_tensor_constants)
        if name in stored:
            key = stored[name]
            value = program.state_dict[key] if key in program.state_dict else program.constants[key]
            return self._constant(value)
        meta = node.meta["val"]
        if not isinstance(meta, torch.Tensor):
            raise NoKernel(f"its input {name} is no tensor")
        self._types.add(_dtype(meta, f"input {name}"))
        self._arrays.largest = torch.finfo(meta.dtype).max
        per_point = _has_points(meta)
        shape = [1 if isinstance(n, torch.SymInt) else int(n) for n in meta.shape]
        if any(isinstance(n, torch.SymInt) for n in meta.shape[1:]):
            raise NoKernel(f"the shape of its input {name} is open: {tuple(meta.shape)}")
        self._inputs.append(Array(name, tuple(shape[1:] if per_point else shape), per_point))
        return self._arrays.variables(len(self._inputs) - 1, shape)

    def _constant(self, value: Any) -> Nodes:
        if value.is_complex():
            raise NoKernel("it holds complex constants")
        return self._arrays.array(value.detach().cpu().double().numpy())

    def _run(self, module: Any, arguments: Sequence[Any]) -> list[Any]:
        """The outputs of a graph, or of one that it calls."""
        known: dict[Any, Any] = {}
        given = iter(arguments)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                known[node] = next(given)
            elif node.op == "get_attr":
                found = operator.attrgetter(node.target)(module)
                known[node] = self._constant(found) if isinstance(found, torch.Tensor) else found
            elif node.op == "output":
                return [known[x] for x in node.args[0]]
            else:
                before = len(self._arrays.scalars.nodes)
                try:
                    known[node] = self._call(node, known)
                except NoKernel as reason:
                    reason.place = reason.place or place_of(node)
                    raise
                self._tell_sites(known[node], before)
                count = len(self._arrays.scalars.nodes)
                self._made_at[place_of(node)] += count - self._made_at.total()
                if count > MOST_EXPRESSIONS:
                    raise self._too_long(count)
        raise NoKernel("its graph has no output")

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

    def _call(self, node: Any, known: dict[Any, Any]) -> Any:
        def value(x: Any) -> Any:
            if isinstance(x, torch.fx.Node):
                return known[x]
            return [value(y) for y in x] if isinstance(x, (list, tuple)) else x

        arguments = [value(x) for x in node.args]
        name = str(node.target)
        if name in CHECKS:
            return None
        if name == "wrap_with_set_grad_enabled":
            return self._run(arguments[1], arguments[2:])
        if node.target in _SIZES:
            return _SIZES[node.target](*arguments)
        options = {key: value(x) for key, x in node.kwargs.items()}
        result: Any
        try:
            does = OPERATORS.get(name) or OPERATORS.get(name.rpartition(".")[0])
            if does:
                result = does(self._arrays, *arguments, **options)
            else:
                result = self._by_others(node, known)
        except NoKernel as reason:
            raise NoKernel(f"{reason.args[0]} ({name}, {node.name})", reason.place) from None
        except (TypeError, ValueError, IndexError) as error:
            raise NoKernel(
                f"its operator {name} ({node.name}) is used as kernels cannot: {error}"
            ) from error
        if result is None or isinstance(result, int):
            return result
        if isinstance(result, (list, tuple)):
            return [self._arrays.array(part) for part in result]
        result = self._of_type(node, name, self._arrays.array(result))
        self._check(node, name, result)
        return self._rounded(node, name, result)

    def _by_others(self, node: Any, known: dict[Any, Any]) -> Any:
        """An operator that torch defines by others. NoKernel if these are unknown, too."""
        given = [x for x in node.all_input_nodes if isinstance(known[x], np.ndarray)]
        points = [torch.zeros(known[x].shape, dtype=x.meta["val"].dtype) for x in given]

        def called(*tensors: Any) -> Any:
            at = dict(zip(given, tensors, strict=True))
            arguments, options = torch.fx.map_arg(
                (node.args, node.kwargs), lambda x: at.get(x, known[x])
            )
            return tree_leaves(node.target(*arguments, **options))

        rule = WRITTEN.get(node.target) or decomposition_table.get(node.target)
        unknown = NoKernel(f"its operator {node.target} is unknown")
        try:
            graph = make_fx(called, rule and {node.target: rule}, tracing_mode="fake")(*points)
        except Exception as reason:  # whatever torch raises for what has no tensors, or no rule
            raise unknown from reason
        for step in graph.graph.nodes:
            if step.target == node.target:
                raise unknown
            step.meta["custom"] = {LINE: place_of(node)}
        found = self._run(graph, [known[x] for x in given])
        return found if isinstance(node.meta.get("val"), (list, tuple)) else found[0]

    def _of_type(self, node: Any, name: str, result: Nodes) -> Nodes:
        """Truth values for torch's: the sum of two is true. NoKernel for the bits of integers."""
        meta = node.meta.get("val")
        if not isinstance(meta, torch.Tensor):
            return result
        if meta.dtype is not torch.bool:
            if name.startswith(("aten.bitwise_", "aten.__")):
                raise NoKernel(f"{name} ({node.name}) takes the bits of integers")
            return result
        known = all(x.operation in MASKS or constant_of(x) is not None for x in result.ravel())
        return result if known else self._arrays.truth(result)

    def _check(self, node: Any, name: str, result: Any) -> None:
        """NoKernel if an operator mixed points, or gave another shape than torch has."""
        meta = node.meta.get("val")
        if not isinstance(meta, torch.Tensor):
            return
        shape = tuple(meta.shape)
        opened = [n for n in shape if isinstance(n, torch.SymInt)]
        if len(opened) > 1:
            raise NoKernel(f"{name} ({node.name}) has several open axes: {shape}")
        fits = len(shape) == result.ndim and all(
            isinstance(wanted, torch.SymInt) or wanted == n
            for wanted, n in zip(shape, result.shape, strict=True)
        )
        if not fits:
            raise NoKernel(f"{name} ({node.name}) gives the shape {result.shape} for {shape}")
        if opened or not any(_is_open(x) for x in node.all_input_nodes):
            return
        if any(constant_of(x) is None for x in result.ravel()):
            raise NoKernel(f"{name} ({node.name}) picks or adds up points")

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
            return self._arrays.scalars.constant(torch.tensor(value, dtype=dtype).double().item())
        if x.operation in MASKS:
            return x
        choices = x.arguments[1:] if x.operation == "where" else ()
        exact = choices and all(self._rounded_constant(c, dtype) is c for c in choices)
        return x if exact else None

    def _require_uniform(self, nodes: Sequence[Any]) -> None:
        """NoKernel if an output of one value for all points depends on a point."""
        waiting, seen = list(nodes), set()
        while waiting:
            node = waiting.pop()
            if node.operation == "variable" and self._inputs[node.data[0]].per_point:
                raise NoKernel("an output without points depends on the points")
            for argument in node.arguments:
                if argument.index not in seen:
                    seen.add(argument.index)
                    waiting.append(argument)


def _is_open(node: Any) -> bool:
    meta = node.meta.get("val")
    sizes = meta.shape if isinstance(meta, torch.Tensor) else ()
    return any(isinstance(n, torch.SymInt) for n in sizes)


def _has_points(meta: Any) -> bool:
    return len(meta.shape) > 0 and isinstance(meta.shape[0], torch.SymInt)


def _output(index: int, value: Nodes, meta: Any) -> Array:
    _dtype(meta, f"output {index}")
    per_point = _has_points(meta)
    return Array(f"output_{index}", value.shape[1:] if per_point else value.shape, per_point)


def _dtype(meta: Any, what: str) -> str:
    name = str(meta.dtype).removeprefix("torch.")
    if name not in ("float64", "float32"):
        raise NoKernel(f"the {what} is of type {name}; float64 and float32 are known")
    return name
