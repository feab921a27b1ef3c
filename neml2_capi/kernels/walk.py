"""An exported graph of torch, run once over arrays that are no tensors. This module needs torch."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neml2_capi.kernels.arrays import Arrays
from neml2_capi.kernels.operators import CHECKS, OPERATORS
from neml2_capi.kernels.places import LINE, place_of
from neml2_capi.kernels.program import NoKernel, NoValueError

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

__all__ = ["Walk", "has_points", "torch"]

#: Arithmetic of sizes.
_SIZES: dict[Any, Callable[..., Any]] = {
    f: f for f in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.getitem)
}


class Walk:
    """A graph, and the arrays over which it runs, with so many points."""

    def __init__(self, program: Any, arrays: Arrays, points: int) -> None:
        self.program = program
        self.arrays = arrays
        self.points = points
        self._inputs = 0

    def arguments(self) -> list[Any]:
        """The arrays of inputs, parameters and buffers."""
        places = [x for x in self.program.graph_module.graph.nodes if x.op == "placeholder"]
        return [self._placeholder(node, self.program.graph_signature) for node in places]

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """The outputs. NoKernel, with the line of the law, if the graph cannot be run so."""
        return self._run(self.program.graph_module, arguments)

    def input(self, number: int, node: Any, shape: tuple[int, ...]) -> Any:
        """The array of an input; the first axis is the points' if has_points(its value)."""
        raise NotImplementedError

    def finished(self, node: Any, name: str, result: Any) -> Any:
        """What the other operators see of the result of one."""
        return result

    def _placeholder(self, node: Any, signature: Any) -> Any:
        name, program = node.name, self.program
        stored = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        stored.update(signature.inputs_to_lifted_tensor_constants)
        if name in stored:
            key = stored[name]
            value = program.state_dict[key] if key in program.state_dict else program.constants[key]
            return self._constant(value)
        meta = node.meta["val"]
        if not isinstance(meta, torch.Tensor):
            raise NoKernel(f"its input {name} is no tensor")
        if any(isinstance(n, torch.SymInt) for n in meta.shape[1:]):
            raise NoKernel(f"the shape of its input {name} is open: {tuple(meta.shape)}")
        self._inputs += 1
        shape = tuple(self.points if isinstance(n, torch.SymInt) else int(n) for n in meta.shape)
        return self.input(self._inputs - 1, node, shape)

    def _constant(self, value: Any) -> Any:
        if value.is_complex():
            raise NoKernel("it holds complex constants")
        if isinstance(value, torch._subclasses.FakeTensor):
            raise NoValueError("it holds the result of an operator without its value")
        return self.arrays.array(value.detach().cpu().double().numpy())

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
                try:
                    known[node] = self.call(node, known)
                except NoKernel as reason:
                    reason.place = reason.place or place_of(node)
                    raise
        raise NoKernel("its graph has no output")

    def call(self, node: Any, known: dict[Any, Any]) -> Any:
        """The result of an operator: an array, a list of arrays, a size or None."""

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
                result = does(self.arrays, *arguments, **options)
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
            return [self.arrays.array(part) for part in result]
        result = self.finished(node, name, self.arrays.array(result))
        _require_shape(node, name, result)
        return result

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


def has_points(meta: Any) -> bool:
    """Whether the first axis of a traced tensor is the points'."""
    return len(meta.shape) > 0 and isinstance(meta.shape[0], torch.SymInt)


def _require_shape(node: Any, name: str, result: Any) -> None:
    """NoKernel if an operator gave another shape than torch has."""
    meta = node.meta.get("val")
    if not isinstance(meta, torch.Tensor):
        return
    shape = tuple(meta.shape)
    if sum(isinstance(n, torch.SymInt) for n in shape) > 1:
        raise NoKernel(f"{name} ({node.name}) has several open axes: {shape}")
    fits = len(shape) == result.ndim and all(
        isinstance(wanted, torch.SymInt) or wanted == n
        for wanted, n in zip(shape, result.shape, strict=True)
    )
    if not fits:
        raise NoKernel(f"{name} ({node.name}) gives the shape {result.shape} for {shape}")
