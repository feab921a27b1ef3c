"""Functions of torch, with their derivatives, as graphs of a batch of any size.

torch's transforms (vmap, jacrev, vjp) do not trace with a batch of unknown size. So they are traced
with a batch of one particular size, a large prime: where a multiple of it stands as a size in the
graph, it is the batch, and the size of an argument is put there.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.export._agreement import agree, beside, rounding_of, some_values
from neml2_capi.export._linear_algebra import MOST_ROWS, SmallMatrices
from neml2_capi.export._lines import NotedLines, line_at_work
from neml2_capi.export._refusals import WRITES, refused
from neml2_capi.export._rewritten import Rewritten
from neml2_capi.export._written import FreshTensors
from neml2_capi.kernels.places import place_of

Shape = tuple[int, ...]
PointFunction = Callable[..., Any]

#: No size of a variable, nor a product of sizes, has this factor.
BATCH = 1000003


def batched(function: PointFunction, shapes: Sequence[Shape], dtype: Any) -> Any:
    """A torch.fx.GraphModule that maps `function` over the first axis of all its arguments.

    `shapes` are the shapes at one point. FatalError if the function cannot be traced, because its
    Python branches on values for example.
    """
    with FakeTensorMode(allow_non_fake_inputs=True):
        points = [torch.empty((BATCH, *shape), dtype=dtype) for shape in shapes]
    matrices = SmallMatrices()
    try:
        traced = _trace_points(function, points, matrices)
    except FatalError:
        raise
    except Exception as error:
        raise refused(error) from error
    _refuse_derivative_of_solve(traced)
    few = some_values([(3, *shape) for shape in shapes], dtype)
    # torch's linear algebra is another way to the same numbers, with exceptions.
    same = matrices if matrices.differs else contextlib.nullcontext()
    with same, Rewritten():
        require_same(traced, functools.partial(_one_by_one, function), few)
    return traced


def _trace_points(function: PointFunction, points: Sequence[Any], matrices: SmallMatrices) -> Any:
    """The graph; a law that writes into a tensor that it has made is traced a second time."""

    def mapped(*values: Any, fresh: Any) -> Any:
        with matrices, Rewritten(), fresh:
            return torch.vmap(function)(*values)

    try:
        return trace(functools.partial(mapped, fresh=contextlib.nullcontext()), points)
    except Exception as error:
        if not any(words in str(error) for words in WRITES):
            raise
    return trace(functools.partial(mapped, fresh=FreshTensors()), points)


def _one_by_one(function: PointFunction, *values: Any) -> Any:
    """The results of all points without vmap."""
    points = [tree_leaves(function(*(v[i].clone() for v in values))) for i in range(len(values[0]))]
    return [torch.stack(parts) for parts in zip(*points, strict=True)]


def trace(function: Callable[..., Any], examples: Sequence[Any]) -> Any:
    """A torch.fx.GraphModule of a function of fake tensors, whose batch axes have the size BATCH.

    The graph takes any size for them, and its nodes know the lines of the law.
    """

    def noted(*values: Any) -> Any:
        with NotedLines(), _NoPointAlone():
            return torch.func.functionalize(function)(*values)

    table = torch.export.default_decompositions()
    with torch.no_grad(), torch.fx.traceback.preserve_node_meta(), _without_loops():
        traced = make_fx(noted, table, tracing_mode="fake")(*examples)
    for position, example in enumerate(examples):
        if BATCH in example.shape:
            _release_batch(traced, position, example.shape.index(BATCH))
            break
    return traced


@contextlib.contextmanager
def _without_loops() -> Iterator[None]:
    """An operator without a rule for batches is an error: torch would call it for each point."""
    before = torch._C._functorch._is_vmap_fallback_enabled()
    torch._C._functorch._set_vmap_fallback_enabled(False)
    try:
        yield
    finally:
        torch._C._functorch._set_vmap_fallback_enabled(before)


class _NoPointAlone(TorchDispatchMode):  # type: ignore[misc]
    """FatalError, which names the line, if a rule of torch for many points is a loop over them."""

    #: Points that a rule may take: some derivatives take the first one.
    _A_FEW = 100

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        if self._is_loop(function, arguments):
            line = line_at_work()
            raise FatalError(
                f"torch takes the points one by one{', at ' if line else ''}{line}. Write it with "
                "other operators, such as torch.cat() and torch.stack()",
                lib.NEML2_ERROR_UNSUPPORTED,
            )
        return function(*arguments, **(options or {}))

    def _is_loop(self, function: Any, arguments: Any) -> bool:
        if function is torch.ops.aten.unbind.int:
            axis, index = (*arguments[1:], 0)[0], BATCH
        elif function is torch.ops.aten.select.int:
            axis, index = arguments[1:]
        else:
            return False
        return index >= self._A_FEW and arguments[0].shape[axis] == BATCH


def require_same(traced: Any, function: Callable[..., Any], inputs: Sequence[Any]) -> None:
    """FatalError if the graph and the function differ for `inputs`, of another batch.

    A number that follows from the size of the batch, not a size itself, is left as it was traced.
    """
    near = beside(inputs)
    with torch.no_grad():
        try:
            expected, again, expected_near = (
                tree_leaves(function(*values)) for values in (inputs, inputs, near)
            )
            made, made_near = (tree_leaves(traced(*values)) for values in (inputs, near))
        except torch.linalg.LinAlgError:  # a singular matrix of arbitrary inputs
            return
        except Exception as error:
            raise refused(error) from error
    same = all(map(agree, again, expected))  # a function that depends on chance has no rounding
    for ours, ours_near, theirs, theirs_near in zip(
        made, made_near, expected, expected_near, strict=True
    ):
        rounding = max(rounding_of(ours, ours_near), rounding_of(theirs, theirs_near))
        same = same and agree(ours, theirs, rounding)
    if not same:
        raise FatalError(
            "the function gives other results than what torch traced of it: does it depend on "
            "the number of points, or on chance? (Put a module into eval() mode.)",
            lib.NEML2_ERROR_UNSUPPORTED,
        )


def _refuse_derivative_of_solve(traced: Any) -> None:
    # Under vmap, torch 2.13 solves the adjoint systems of all points but the first one wrongly.
    for node in traced.graph.nodes:
        if node.target is torch.ops.aten.linalg_lu_solve.default:
            place = place_of(node)
            raise FatalError(
                "torch differentiates lu_solve(), and a linear solve or a determinant of more than "
                f"{MOST_ROWS} rows, wrongly for many points{', at ' if place else ''}{place}. "
                "Write torch.linalg.inv(A) @ b for a solve, whose derivative is right",
                lib.NEML2_ERROR_UNSUPPORTED,
            )


def jacobian(function: PointFunction, arguments: Sequence[int], values: int = 1) -> PointFunction:
    """`function` and its derivatives, as a function of one point: (values, blocks).

    `blocks[i][k]` is the derivative of value i by argument `arguments[k]`, of the shape
    (*value, *argument); of a function of one value, it is `blocks[k]`.
    """

    def with_values(*inputs: Any) -> tuple[Any, Any]:
        made = function(*inputs)
        return made, made

    # In reverse mode: forward mode works with zero tensors of a kind that cannot be traced.
    derive = functools.partial(torch.func.jacrev, argnums=tuple(arguments), has_aux=True)
    if values == 1:
        derivative = derive(with_values)

        def both(*inputs: Any) -> tuple[Any, Any]:
            blocks, made = derivative(*inputs)
            return made, blocks

        return both

    def part(index: int, *inputs: Any) -> tuple[Any, Any]:
        made = function(*inputs)
        return made[index], made

    # Each value alone: where a slope of another one is infinite, its cotangent of zero makes NaN.
    parts = [derive(functools.partial(part, index)) for index in range(values)]

    def all_parts(*inputs: Any) -> tuple[Any, Any]:
        found = [derivative(*inputs) for derivative in parts]
        return found[0][1], tuple(blocks for blocks, _ in found)

    return all_parts


def _release_batch(traced: Any, position: int, axis: int) -> None:
    """Replace what was the traced batch by the size of an axis of an argument, in every size."""
    graph = traced.graph
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    with graph.inserting_before(arguments[-1].next):
        points = graph.call_function(torch.ops.aten.sym_size.int, (arguments[position], axis))

    def released(size: Any) -> Any:
        if isinstance(size, (list, tuple)):
            return [released(part) for part in size]
        if type(size) is not int or size == 0 or size % BATCH:
            return size
        factor = size // BATCH
        return graph.call_function(operator.mul, (points, factor)) if factor > 1 else points

    for node in list(graph.nodes):
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None or node is points:
            continue
        # A size is an integer or a list of them; a number may count the points of a mean.
        of_size = ("int", "number")
        sizes = {a.name for a in schema.arguments if any(t in str(a.type) for t in of_size)}
        names = [a.name for a in schema.arguments]
        with graph.inserting_before(node):
            node.args = tuple(
                released(value) if name in sizes else value
                for name, value in zip(names, node.args, strict=False)
            )
            node.kwargs = {
                name: released(value) if name in sizes else value
                for name, value in node.kwargs.items()
            }
    graph.eliminate_dead_code()
    graph.lint()
    traced.recompile()
