"""An exported program, compiled to a package."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch.export import Dim
from torch.utils._pytree import tree_map

from neml2_capi._ffi.errors import FatalError, check
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.source import native_source
from neml2_capi.export.targets import inductor_options
from neml2_capi.kernels.lowered import DECOMPOSITIONS

#: The most points of one run of a package; its source states it.
MOST_POINTS = 1 << 20
#: The batch that is traced. torch makes a case of its own of 0 and of 1, and Inductor writes loops
#: for several threads if the example is large.
TRACED_POINTS = 2


def batch() -> Any:
    """A batch axis of any size; a graph that is traced with it runs with one point, too."""
    return Dim("batch", min=TRACED_POINTS, max=MOST_POINTS)


def export(
    module: Any, inputs: tuple[Any, ...], axes: Sequence[int | None], what: str = "the module"
) -> Any:
    """A module or function as an ExportedProgram for Inductor; see traced()."""
    return decomposed(traced(module, inputs, axes, what), what)


def traced(
    module: Any, inputs: tuple[Any, ...], axes: Sequence[int | None], what: str = "the module"
) -> Any:
    """A module or function as an ExportedProgram whose batch is axis `axes[i]` of input i.

    FatalError with torch's reason if it cannot be exported, with a fixed batch for example.
    """
    size = batch()
    shapes = tuple({} if axis is None else {axis: size} for axis in axes)
    packed = Positional(module)
    try:
        with torch.no_grad(), _without_deprecations(), torch.fx.traceback.preserve_node_meta():
            return torch.export.export(packed, inputs, dynamic_shapes=(shapes,), strict=False)
    except Exception as error:
        raise _refused(what, error) from error


def decomposed(program: Any, what: str = "the module") -> Any:
    """A traced program in the operators that Inductor compiles."""
    try:
        with torch.no_grad(), _without_deprecations():
            program = program.run_decompositions(_table())
    except Exception as error:
        raise _refused(what, error) from error
    _multiply_outer_products(program.graph_module)
    return program


def _table() -> Any:
    """The decompositions of torch, with ours of what Inductor compiles wrongly."""
    table = torch.export.default_decompositions()
    table.update(DECOMPOSITIONS)
    return table


def _refused(what: str, error: Exception) -> FatalError:
    return FatalError(f"torch cannot export {what}: {error}", lib.NEML2_ERROR_UNSUPPORTED)


def _multiply_outer_products(graph_module: Any) -> None:
    """Write (m, 1) times (1, n) as a product of elements.

    So Inductor does itself, but only for few elements: it would restrict the batch to these.
    """
    for node in graph_module.graph.nodes:
        if node.target is torch.ops.aten.mm.default and node.args[0].meta["val"].shape[1] == 1:
            node.target = torch.ops.aten.mul.Tensor
    graph_module.recompile()


def compile_program(
    program: Any,
    path: Path,
    target: str,
    options: Mapping[str, Any] = MappingProxyType({}),
    shown: Path | None = None,
) -> Path:
    """Write the package of an ExportedProgram; what was at `path` is replaced when it is whole.

    `options` are more of Inductor's. A warning tells what the built-in provider lacks to run it,
    and names `shown` if the package will be moved there.
    """
    options = {**inductor_options(target), **options}
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        with _without_deprecations():
            torch._inductor.aoti_compile_and_package(
                program, package_path=str(made), inductor_configs=options
            )
        _require_any_batch(program)
        made.replace(path)
    _tell_what_is_missing(path, shown or path)
    return path


@contextlib.contextmanager
def _without_deprecations() -> Iterator[None]:
    """What torch says of its own use of torch is nothing that a caller can mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _require_any_batch(program: Any) -> None:
    """FatalError if Inductor has restricted the batch: it notes that in the graph's symbols."""
    for node in program.graph.nodes:
        for size in node.meta["val"].shape if node.op == "placeholder" else ():
            if isinstance(size, torch.SymInt):
                known = size.node.shape_env.var_to_range[size.node.expr]
                if (known.lower, known.upper) != (TRACED_POINTS, MOST_POINTS):
                    raise FatalError(
                        f"torch compiled for {known.lower} to {known.upper} points only, but "
                        "any batch was wanted; write the function otherwise, or compile it with "
                        "a fixed batch",
                        lib.NEML2_ERROR_UNSUPPORTED,
                    )


def _tell_what_is_missing(path: Path, shown: Path) -> None:
    try:
        check(lib.neml2_graph_check(ffi.NULL, native_source(path, runtime="builtin")))
    except FatalError as error:
        warnings.warn(
            f"{shown} was compiled, but it does not run here without libtorch: {error}",
            stacklevel=4,
        )


class Positional(torch.nn.Module):  # type: ignore[misc]
    """A module or function, called with any number of tensors: torch takes one shape for each."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        if isinstance(self.function, torch.fx.GraphModule):  # nodes keep the lines of the law
            return _apart(torch.fx.Interpreter(self.function).run(*inputs))
        return _apart(self.function(*inputs))


def _apart(outputs: Any) -> Any:
    """The outputs, of which a package hands each tensor over once: a second one is a copy."""
    seen: set[int] = set()

    def copied(output: Any) -> Any:
        if not isinstance(output, torch.Tensor):
            return output
        storage = output.untyped_storage()._cdata
        if storage in seen:
            return output.clone()
        seen.add(storage)
        return output

    return tree_map(copied, outputs)
