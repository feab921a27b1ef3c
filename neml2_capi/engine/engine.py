"""A compiled model in Python: its segments, from the packages up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array, Label, common_batch
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.variables import Derivative, Variable
from neml2_capi.engine.description import Key, Promoted, Scope, Shape, Values
from neml2_capi.engine.forward import ForwardSegment
from neml2_capi.engine.implicit import ImplicitSegment
from neml2_capi.engine.newton import Newton
from neml2_capi.engine.packing import as_vectors
from neml2_capi.engine.rescue import rescue
from neml2_capi.engine.results import Batch, summed_like
from neml2_capi.engine.substep import SubsteppingSegment

Segment = ForwardSegment | ImplicitSegment


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


class Engine:
    """Segments of a model, evaluated over graph handles: readable, correct, and slow.

    What the library evaluates is evaluated here once more, in numpy. It is what the library is
    tested against, and where to try a new solver.
    """

    def __init__(self, described: Any, signature: Any) -> None:
        """Load every package of an artifact, whose variables `signature` has in the same order."""
        if not any(Path(described.leaf).glob("*.pt2")):
            raise FatalError(
                f"{described.leaf} has no packages, which the engine in Python runs. Leave engine "
                "out, which runs kernels; or compile the model with --kernels auto",
                lib.NEML2_ERROR_UNSUPPORTED,
                "engine",
            )
        scope = Scope(described, signature.dtype)
        self.segments = [_segment(each, scope) for each in described.segments]
        self._packages, self._dtype = scope.packages, signature.dtype
        solved = [s for s in self.segments if isinstance(s, ImplicitSegment)]
        keys: dict[str, list[Key]] = {
            "inputs": [v.name for v in described.inputs],
            "outputs": [v.name for v in described.outputs],
            "parameters": [Promoted(p.name) for p in described.parameters],
            "unknowns": [name for s in solved for name in s.outputs],
        }
        #: The variables by the keys inside.
        self.of: dict[str, dict[Key, Variable]] = {
            kind: dict(zip(keys[kind], getattr(signature, kind), strict=True)) for kind in keys
        }
        by_input = [(pair.output, pair.input) for pair in described.derivatives]
        by_parameter = [(p.output, Promoted(p.input)) for p in described.parameter_derivatives]
        #: The compiled derivatives with respect to inputs and parameters, by the keys inside.
        self._compiled: dict[str, dict[tuple[str, Key], Derivative]] = {
            "inputs": dict(zip(by_input, signature.derivatives, strict=True)),
            "parameters": dict(zip(by_parameter, signature.parameter_derivatives, strict=True)),
        }

    def evaluate(
        self,
        given: Sequence[Argument],
        by: str,
        newton: Newton,
        substep_del_tol: float,
        most_rescue_solves: int = 0,
    ) -> Batch:
        """Evaluate the model, and the derivatives of its segments by "inputs" or "parameters".

        `given` are inputs and parameters, and directions of derivatives if there are some.
        FatalError if batches do not fit, or derivatives were not compiled. Points that fail are no
        error.
        """
        if by:
            self._require_derivatives(by)
        shape: Shape = reduce(lambda batch, argument: argument.widen(batch), given, ())
        rows = [argument.rows(shape) for argument in given]
        # The effect of a parameter on one segment goes on through the values of the next.
        wanted = (by, "inputs") if by and len(self.segments) > 1 else (by,)
        batch = Batch(shape, rows[0] | rows[1], newton, substep_del_tol, wanted)
        self._check_batch(batch)
        with np.errstate(all="ignore"):
            self._run(batch)
            for argument, each in zip(given, rows, strict=True):
                batch.mark_given(each, argument.labels)  # first: no rescue mends these
            if most_rescue_solves and batch.failed.any():
                rescue(batch, rows[0] | rows[1], self._moving(), most_rescue_solves, self._run)
        batch.excuse_steps_of_zero(rows[0])
        return batch

    def _run(self, batch: Batch) -> None:
        """Run the segments on the points of a batch."""
        for segment in self.segments:
            batch.segments.append((segment.outputs, segment.run(batch)))

    def _moving(self) -> list[tuple[Key, Key]]:
        """Inputs and their values a step before; a guess of an unknown does not move."""
        inputs = {v.name: key for key, v in self.of["inputs"].items()}
        outputs = {v.name for v in self.of["outputs"].values()}
        steps = [(name, f"{name}~1") for name in inputs if name not in outputs]
        return [(inputs[now], inputs[old]) for now, old in steps if old in inputs]

    def outputs(self, batch: Batch) -> dict[str, Array]:
        """The outputs of an evaluation by name, (*B, *point shape)."""
        return {
            v.name: batch.array(batch.values[key], v.point_shape, v.dtype, f"the output {v.name!r}")
            for key, v in self.of["outputs"].items()
        }

    def products(
        self, batch: Batch, by: str, directions: Argument, given: Argument | None = None
    ) -> list[Array | None]:
        """The derivative of each output along directions; or, of what is `given`, each adjoint.

        It is None for what no derivative was compiled of. An output depends on an input if a
        derivative was compiled for the two: other inputs count as constants for it, whatever the
        segments say. What has no direction stands still, and so does what nothing moves.
        """
        pairs: Any = self._compiled[by]
        through, ends, what = batch.pull, self.of[by], "the adjoint of {!r}"
        if given is None:
            pairs = [(key, output) for output, key in pairs]
            through, ends = batch.push, self.of["outputs"]
            what = "the derivative of {!r} along the tangents"
        rows, products = directions.rows(batch.shape), []
        for end, v in ends.items():
            starts = [start for start, moved in pairs if moved == end]
            moved = through({s: as_vectors(rows[s])[..., np.newaxis] for s in starts if s in rows})
            made = moved.get(end, np.zeros(v.point_shape))
            product = batch.array(made, v.point_shape, self._dtype, what.format(v.name))
            if given is not None:
                product = summed_like(given.arrays[end], product, v.point_shape)
            products.append(product if starts else None)
        return products

    def blocks(self, batch: Batch, by: str) -> list[Array]:
        """The compiled derivatives, in their order: (*B, *shape), or one that all points share."""
        own, pushed, blocks = {}, {}, []
        points = batch.points
        if len(batch.segments) == 1:  # whose blocks are the model's
            own = {(s.output, s.input): matrices for s, matrices in batch.segments[0][1]}
        for (output, key), derivative in self._compiled[by].items():
            if len(batch.segments) > 1 and key not in pushed:
                unit = np.eye(prod(self.of[by][key].point_shape))
                pushed[key] = batch.push({key: np.broadcast_to(unit, (points, *unit.shape))})
            rows = pushed[key].get(output) if pushed else own.get((output, key))
            rows = np.zeros((1, *derivative.shape)) if rows is None else rows
            of, variable = f"the derivative of {derivative.output!r}", derivative.variable
            what = f"{of} with respect to {variable!r}"
            block = batch.array(rows, derivative.shape, self._dtype, what)
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


def _segment(described: Any, scope: Scope) -> Segment:
    """A segment of the kind that is described."""
    if described.kind == "forward":
        return ForwardSegment(described, scope)
    substeps = described.max_substepping_level > 0
    return (SubsteppingSegment if substeps else ImplicitSegment)(described, scope)
