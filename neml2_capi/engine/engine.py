"""A compiled model in Python: its segments, from the packages up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array, Label, common_batch
from neml2_capi._ffi.variables import Derivative, Variable, Variables
from neml2_capi.engine.blocks import Block, pull_back, push_forward
from neml2_capi.engine.description import Key, Promoted, Shape, Values
from neml2_capi.engine.forward import ForwardSegment
from neml2_capi.engine.implicit import ImplicitSegment
from neml2_capi.engine.newton import Newton
from neml2_capi.engine.packing import as_vectors
from neml2_capi.engine.results import Batch
from neml2_capi.engine.scope import Scope


class Argument(NamedTuple):
    """Arrays of a caller, (*B, *point shape), by the keys inside."""

    arrays: Values
    labels: Mapping[Key, Label]
    variables: Mapping[Key, Variable]

    def widen(self, batch: Shape) -> Shape:
        """What `batch` and the batches of these arrays broadcast to."""
        own = [
            (label, label.batch_of(self.arrays[key].shape, self.variables[key].point_shape))
            for key, label in self.labels.items()
            if key in self.arrays
        ]
        return common_batch(own, batch)

    def rows(self, batch: Shape) -> Values:
        """Arrays as (points, *point shape)."""
        rows = {}
        for key, array in self.arrays.items():
            shape = self.variables[key].point_shape
            rows[key] = np.broadcast_to(array, batch + shape).reshape(prod(batch), *shape)
        return rows


@dataclass
class Run:
    """What became of the points of an evaluation."""

    batch: Batch
    #: The outputs of each segment, and the derivatives that it found.
    segments: Sequence[tuple[Sequence[str], Sequence[Block]]]

    def push(self, directions: Values) -> Values:
        """Return directions behind all segments, from directions of inputs and parameters."""
        return reduce(lambda d, s: push_forward(s[1], s[0], d), self.segments, directions)

    def pull(self, directions: Values) -> Values:
        """The transpose."""
        return reduce(lambda d, s: pull_back(s[1], s[0], d), reversed(self.segments), directions)


class Engine:
    """Segments of a model, evaluated over graph handles: readable, correct, and slow.

    What the library evaluates is evaluated here once more, in numpy. It is what the library is
    tested against, and where to try a new solver.
    """

    def __init__(
        self,
        described: Any,
        variables: Mapping[str, Variables],
        derivatives: Mapping[str, Sequence[Derivative]],
        dtype: str,
    ) -> None:
        """Load every package of an artifact.

        `variables` are "inputs", "outputs", "parameters" and "unknowns", `derivatives` those by
        "inputs" and by "parameters", all in the order of `described`.
        """
        if not any(Path(described.leaf).glob("*.pt2")):
            raise FatalError(
                f"{described.leaf} has no packages, which the engine in Python runs. Leave engine "
                "out, which runs kernels; or compile the model with --kernels auto",
                lib.NEML2_ERROR_UNSUPPORTED,
                "engine",
            )
        scope = Scope(described, dtype)
        self.segments = [
            (ForwardSegment if each.kind == "forward" else ImplicitSegment)(each, scope)
            for each in described.segments
        ]
        self._packages, self._dtype = scope.packages, dtype
        solved = [s for s in self.segments if isinstance(s, ImplicitSegment)]
        keys: dict[str, list[Key]] = {
            "inputs": [v.name for v in described.inputs],
            "outputs": [v.name for v in described.outputs],
            "parameters": [Promoted(p.name) for p in described.parameters],
            "unknowns": [name for s in solved for name in s.outputs],
        }
        #: The variables by the keys inside.
        self.of = {kind: dict(zip(keys[kind], variables[kind], strict=True)) for kind in keys}
        #: The compiled derivatives with respect to inputs and parameters, by the keys inside.
        self._compiled: dict[str, dict[tuple[str, Key], Derivative]] = {}
        for by, pairs, key in (
            ("inputs", described.derivatives, str),
            ("parameters", described.parameter_derivatives, Promoted),
        ):
            inside = [(pair.output, key(pair.input)) for pair in pairs]
            self._compiled[by] = dict(zip(inside, derivatives[by], strict=True))

    def evaluate(
        self, given: Sequence[Argument], by: str, newton: Newton, substep_del_tol: float
    ) -> Run:
        """Evaluate the model, and the derivatives of its segments by "inputs" or "parameters".

        `given` are inputs and parameters, and directions of derivatives if there are some.
        FatalError if batches do not fit, or derivatives were not compiled. Points that fail are no
        error.
        """
        if by:
            self._require_derivatives(by)
        shape: Shape = reduce(lambda batch, argument: argument.widen(batch), given, ())
        rows = [argument.rows(shape) for argument in given]
        batch = Batch(
            shape=shape,
            points=prod(shape),
            values=rows[0] | rows[1],
            newton=newton,
            substep_del_tol=substep_del_tol,
            # The effect of a parameter on one segment goes on through the values of the next.
            by_values=by == "inputs" or (bool(by) and len(self.segments) > 1),
            by_parameters=by == "parameters",
        )
        self._check_batch(batch)
        with np.errstate(all="ignore"):
            run = Run(batch, [(segment.outputs, segment.run(batch)) for segment in self.segments])
        for argument, each in zip(given, rows, strict=True):
            batch.mark_given(each, argument.labels)
        batch.excuse_steps_of_zero(rows[0])
        return run

    def outputs(self, run: Run) -> dict[str, Array]:
        """The outputs of an evaluation by name, (*B, *point shape)."""
        return {
            v.name: run.batch.array(
                run.batch.values[key], v.point_shape, v.dtype, f"the output {v.name!r}"
            )
            for key, v in self.of["outputs"].items()
        }

    # What follows holds None for what no derivative was compiled of. An output depends on an input
    # if a derivative was compiled for the two: other inputs count as constants for it, whatever the
    # segments say.

    def jvp(self, run: Run, tangents: Argument) -> list[Array | None]:
        """The derivative of each output along directions of inputs."""
        pairs = [(by, output) for output, by in self._compiled["inputs"]]

        def along(rows: Array, v: Variable) -> Array:
            what = f"the derivative of {v.name!r} along the tangents"
            return run.batch.array(rows, v.point_shape, self._dtype, what)

        return _products(run.push, pairs, tangents.rows(run.batch.shape), self.of["outputs"], along)

    def vjp(self, run: Run, cotangents: Argument, by: str, given: Argument) -> list[Array | None]:
        """The adjoint of each input or parameter, of the shape of what is `given` of it."""
        keys = {v.name: key for key, v in given.variables.items()}

        def adjoint(rows: Array, v: Variable) -> Array:
            like, what = given.arrays[keys[v.name]], f"the adjoint of {v.name!r}"
            return run.batch.adjoint(rows, like, v.point_shape, self._dtype, what)

        weights = cotangents.rows(run.batch.shape)
        return _products(run.pull, list(self._compiled[by]), weights, self.of[by], adjoint)

    def blocks(self, run: Run, by: str) -> list[Array]:
        """The compiled derivatives, in their order: (*B, *shape), or one that all points share."""
        own, pushed, blocks = {}, {}, []
        points = run.batch.points
        if len(run.segments) == 1:  # whose blocks are the model's
            own = {(s.output, s.input): matrices for s, matrices in run.segments[0][1]}
        for (output, key), derivative in self._compiled[by].items():
            if len(run.segments) > 1 and key not in pushed:
                unit = np.eye(prod(self.of[by][key].point_shape))
                pushed[key] = run.push({key: np.broadcast_to(unit, (points, *unit.shape))})
            rows = pushed[key].get(output) if pushed else own.get((output, key))
            rows = np.zeros((1, *derivative.shape)) if rows is None else rows
            what = (
                f"the derivative of {derivative.output!r} with respect to {derivative.variable!r}"
            )
            block = run.batch.array(rows, derivative.shape, self._dtype, what)
            if points and not derivative.batched:
                block = rows[0].reshape(derivative.shape).astype(self._dtype)
            blocks.append(block)
        return blocks

    def _require_derivatives(self, by: str) -> None:
        if not self._compiled[by]:
            how = "-d OUTPUT:INPUT, or -d : for all"
            if by == "parameters":
                how = "-p PARAMETER -d OUTPUT:PARAMETER"
            raise FatalError(
                f"the artifact was compiled without derivatives with respect to {by}. Compile it "
                f"with neml2-compile {how}; export a law in torch again, with derivatives=True",
                lib.NEML2_ERROR_UNSUPPORTED,
                "derivatives" if by == "inputs" else "parameter_derivatives",
            )

    def _check_batch(self, batch: Batch) -> None:
        """Refuse parts of a fixed batch."""
        for package in self._packages:
            if package.fixed and batch.points % package.greatest:
                raise FatalError(
                    f"{package.name} was compiled for a fixed batch of {package.greatest} points; "
                    f"got {batch.points}. Evaluate a multiple of {package.greatest}, or compile "
                    "the model with --dynamic-batch",
                    lib.NEML2_ERROR_SHAPE,
                    package.name,
                )


def _products(
    through: Callable[[Values], Values],
    pairs: Sequence[tuple[Key, Key]],
    directions: Values,
    ends: Mapping[Key, Variable],
    made: Callable[[Array, Variable], Array],
) -> list[Array | None]:
    """Return for each end of pairs (start, end) its direction, from the directions of its starts.

    A start without a direction stands still, and so does an end that nothing moves.
    """
    products: list[Array | None] = []
    for key, variable in ends.items():
        starts = [start for start, end in pairs if end == key]
        moved = through(
            {s: as_vectors(directions[s])[..., np.newaxis] for s in starts if s in directions}
        )
        rows = moved.get(key, np.zeros(variable.point_shape))
        products.append(made(rows, variable) if starts else None)
    return products
