"""neml2-compile with the sub-batch axes kept that it loses between segments, and in float64.

`python sites.py OPTIONS` takes the options of neml2-compile, and does what capture.py does with its
environment variables.

NEML2 writes a value as (points, sites, components): a number density has one value in each bin of a
point. neml2-compile traces a forward segment with such values, and on the way into the graph it
forgets how many of their axes are sites. Sites are points then, and the product of the density with
a constant of each bin, (n) by (n), becomes (n, n): an artifact that opens, and gives wrong numbers.

install() puts that right where neml2-compile asks for example inputs, traces, and writes metadata:

- what segments make has a shape, too: each leaf is run once on zeros, and tells it;
- a traced module gets its inputs with the sites of its example inputs, and so do seeds of tangents;
- what a traced module returns must have the shape that it has without a trace;
- metadata.json says which sites each output has.

Tensors of an input file that say no element type get float64, as in neml2-run: its graphs are of
float64, also for a leaf of float32.

It needs NEML2 and torch alone, is run by its path, and leaves another NEML2 as it is. The processes
that neml2-compile starts run it once more, as __mp_main__.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

#: Set in the environment if unknowns of the model have sites: their Jacobians need no graph.
SITED = "NEML2_CAPI_KERNELS_SITED"

#: (points, sites) of a value in a trace.
Shape = tuple[tuple[int, ...], tuple[int, ...]]

_PARTS = (
    "_build_meta",
    "_flatten_composed",
    "_leading_k_identity_seed",
    "_seed_implicit_subbatch",
    "_snapshot_promoted",
    "resolve_example_shapes",
)


_REMEDY = (
    "A value that has sub-batch sites must say how many: --example-batch-shape '{name}=(2;8)' for "
    "8 of them, or example_batch_shape in [Settings]"
)


class SiteError(ValueError):
    """A graph has other sites than the model that it was traced from."""


def install() -> None:
    """Keep sub-batch axes in what neml2-compile traces in this process."""
    try:
        import neml2.cli.aoti_export as export
        import neml2.models.export as tracing
    except ImportError:  # before 3.1
        return
    if not all(hasattr(export, part) for part in _PARTS) or not hasattr(tracing, "compile_model"):
        return
    _declare_all(export)
    _shape_what_is_made(export)
    _seed_with_sites(export)
    _refuse_parameters_at_sites(export)
    _tell_outputs(export)
    _trace_with_sites(tracing)


def _declare_all(export: Any) -> None:
    """Declared shapes hold for each variable of a model, not for its inputs alone."""
    original = export.resolve_example_shapes

    @functools.wraps(original)
    def resolve(
        spec: Iterable[str], declared: Mapping[str, str], known: Any = None
    ) -> dict[str, Shape]:
        inputs = list(spec)
        more = [name for name in declared if name != "*" and name not in inputs]
        return dict(original([*inputs, *more], declared, inputs if known is None else known))

    export.resolve_example_shapes = resolve


def _shape_what_is_made(export: Any) -> None:
    """Add the shapes of what segments make to the shapes of the inputs."""
    original = export._seed_implicit_subbatch

    @functools.wraps(original)
    def seed(model: Any, shapes: dict[str, Shape], device: str) -> None:
        _add_made(export, model, shapes, device)
        original(model, shapes, device)

    export._seed_implicit_subbatch = seed


def _add_made(export: Any, model: Any, shapes: dict[str, Shape], device: str) -> None:
    import torch
    from neml2.models.common import ImplicitUpdate

    points = next(iter(shapes.values()), export.DEFAULT_EXAMPLE_SHAPE)[0]

    def shape_of(name: str) -> Shape:
        bare = name.split("~", 1)[0]
        for other in (name, bare, f"{bare}~1"):
            if other in shapes:
                return points, shapes[other][1]
        return points, ()

    def zeros(name: str, kind: Any) -> Any:
        sites = shape_of(name)[1]
        raw = torch.zeros(*points, *sites, *kind.BASE_SHAPE, dtype=torch.float64, device=device)
        return kind(raw, sub_batch_ndim=len(sites))

    def made_by(leaf: Any) -> dict[str, Any]:
        try:
            with torch.no_grad():
                made = leaf(*(zeros(name, kind) for name, kind in leaf.input_spec.items()))
        except IndexError as error:
            if traceback.extract_tb(error.__traceback__)[-1].name == "_get_param":
                raise SiteError(
                    f"{type(leaf).__name__} of NEML2 takes no values of its parameters "
                    f"({', '.join(leaf._promoted_params)}) while it runs. Leave out -p for them."
                ) from error
            # It counts on axes that are not there.
            raise SiteError(f"{error}. {_REMEDY.format(name='NAME')}") from error
        except Exception:  # it does not take zeros: the trace has its shapes
            return {}
        made = made if isinstance(made, tuple) else (made,)
        return dict(zip(leaf.output_spec, made, strict=True))

    for leaf in export._flatten_composed(model):
        if isinstance(leaf, ImplicitUpdate):
            for name in leaf.system.unknown_names:
                shapes.setdefault(name, shape_of(name))
            _require_square(leaf.system, made_by(leaf.system.model), shapes)
            if any(shapes[name][1] for name in leaf.system.unknown_names):
                os.environ[SITED] = "1"
        else:
            for name, value in made_by(leaf).items():
                shapes.setdefault(name, (points, _sites(value)))


def _require_square(system: Any, made: Mapping[str, Any], shapes: Mapping[str, Shape]) -> None:
    """SiteError if a system has more or fewer equations than unknowns."""
    if not all(name in made for name in system.residual_names):
        return
    kinds = system.model.input_spec
    unknowns = {name: shapes[name][1] for name in system.unknown_names}
    residuals = {name: _sites(made[name]) for name in system.residual_names}
    wanted = sum(math.prod((*s, *kinds[name].BASE_SHAPE)) for name, s in unknowns.items())
    given = sum(math.prod((*s, *made[name].BASE_SHAPE)) for name, s in residuals.items())
    if wanted == given:
        return
    told = ", ".join(f"{name} {sites}" for name, sites in (*unknowns.items(), *residuals.items()))
    raise SiteError(
        f"the equations of {', '.join(unknowns)} have {given} components, and the unknowns "
        f"{wanted}; their sites are: {told}. {_REMEDY.format(name=next(iter(unknowns)))}"
    )


def _sites(value: Any) -> tuple[int, ...]:
    """The sub-batch axes of a value as it is stored."""
    count, base = value.sub_batch_ndim, type(value).BASE_NDIM
    end = value.data.ndim - base
    return tuple(int(n) for n in value.data.shape[end - count : end])


def _seed_with_sites(export: Any) -> None:
    """Give the seed of a tangent the sites of its value."""
    original = export._leading_k_identity_seed
    resolve = export.resolve_example_shapes
    of_points = [1]

    @functools.wraps(resolve)
    def noted(*arguments: Any, **options: Any) -> Any:
        shapes = resolve(*arguments, **options)
        of_points[0] = len(next(iter(shapes.values()), export.DEFAULT_EXAMPLE_SHAPE)[0])
        return shapes

    @functools.wraps(original)
    def seed(kind: Any, batch_shape: Any, **options: Any) -> Any:
        made = original(kind, batch_shape, **options)
        sites = max(len(batch_shape) - of_points[0], 0)
        return type(made)(
            made.data,
            sub_batch_ndim=sites,
            k_ndim=made.k_ndim,
            k_state=made.k_state,
            k_pairing=made.k_pairing,
        )

    export.resolve_example_shapes = noted
    export._leading_k_identity_seed = seed


def _refuse_parameters_at_sites(export: Any) -> None:
    """A parameter that changes at run time has one value for a point."""
    original = export._promote_parameters

    @functools.wraps(original)
    def promote(model: Any, names: list[str]) -> Any:
        stored = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        values = {name: tuple(stored[name].shape) for name in names if name in stored}
        promoted = original(model, names)
        for name, (kind, *_) in promoted.items():
            shape, base = values.get(name, ()), tuple(kind.BASE_SHAPE)
            if len(shape) > len(base):
                raise SiteError(
                    f"the parameter {name} has the shape {shape}, a value of shape {base} at each "
                    "site or point; one that changes at run time has one value. Leave out "
                    f"-p {name}."
                )
        return promoted

    export._promote_parameters = promote


def _tell_outputs(export: Any) -> None:
    """Write the sites of each output, [] for none, into the metadata."""
    original = export._build_meta

    @functools.wraps(original)
    def build(prepared: Any, segments: Any) -> Any:
        document = original(prepared, segments)
        for output in document["outputs"]:
            shape = prepared.resolved_shapes.get(output["name"])
            if shape is not None:
                output["sub_batch_shape"] = list(shape[1])
        return document

    export._build_meta = build


def _trace_with_sites(tracing: Any) -> None:
    """Trace each module with the sites of its example inputs."""
    original = tracing.compile_model

    @functools.wraps(original)
    def compile_model(model: Any, inputs: Any, path: Any, **options: Any) -> Any:
        counts = [getattr(value, "sub_batch_ndim", 0) for value in inputs]
        if not any(counts):
            return original(model, inputs, path, **options)
        hook = model.register_forward_pre_hook(_with_sites(counts))
        try:
            return original(model, inputs, path, **options)
        finally:
            hook.remove()

    compile_model.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    tracing.compile_model = compile_model


def _with_sites(counts: list[int]) -> Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]:
    def hook(module: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            type(value)(value.data, sub_batch_ndim=count) if count else value
            for value, count in zip(arguments, counts, strict=True)
        )

    return hook


def _run(name: str) -> None:
    import torch

    torch.set_default_dtype(torch.float64)
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]  # it has a trace.py
    install()
    runpy.run_path(str(here / "capture.py"), run_name=name)


if __name__ in ("__main__", "__mp_main__"):
    _run(__name__)
