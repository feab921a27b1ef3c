"""A compiled model in Python: its segments, from the packages up."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from neml2_capi._ffi import variables
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array
from neml2_capi._ffi.variables import Variables
from neml2_capi.engine import artifact
from neml2_capi.engine.batch import Batch
from neml2_capi.engine.blocks import Promoted, dense_shape
from neml2_capi.engine.boundary import Boundary
from neml2_capi.engine.chain import Chain, Derivative
from neml2_capi.engine.forward import ForwardSegment
from neml2_capi.engine.implicit import ImplicitSegment
from neml2_capi.engine.options import EngineOptions
from neml2_capi.engine.packing import as_vectors
from neml2_capi.engine.results import Blocks, Evaluation, Results
from neml2_capi.engine.scope import Scope

Segment = ForwardSegment | ImplicitSegment


class Engine:
    """A material model, evaluated over graph handles: readable, correct, and slow.

    What the library does with a model is done here once more, in numpy, and by no function of its
    model tier. It is what the library is tested against, and where to try a new solver:

        engine = Engine("aoti/elasticity")
        stress = engine.evaluate({"strain": strain}).outputs["stress"]
    """

    def __init__(
        self, path: str | os.PathLike[str], device: str | None = None, dtype: str | None = None
    ) -> None:
        """Load every package of an artifact.

        Parameters
        ----------
        path
            As `artifact_root` of neml2_capi.Model.
        device
            As in neml2_capi.Model.
        dtype
            As in neml2_capi.Model.

        Raises
        ------
        FatalError
            The artifact cannot be loaded, or has no outputs.
        """
        #: Content of the artifact, as JSON.
        self.document = artifact.describe(path, device, dtype)
        described = artifact.parse(self.document)
        if not described.outputs:
            raise FatalError(
                "the metadata lists no outputs: there is nothing to evaluate",
                lib.NEML2_ERROR_ARTIFACT,
                "outputs",
            )
        if not any(described.leaf.glob("*.pt2")):
            raise FatalError(
                f"{described.leaf} has no packages, which the engine in Python runs. Leave engine "
                "out, which runs kernels; or compile the model with --kernels auto",
                lib.NEML2_ERROR_UNSUPPORTED,
                "engine",
            )
        scope = Scope(described)
        #: Segments, in the order of evaluation.
        self.segments: list[Segment] = [
            ForwardSegment(segment, scope)
            if isinstance(segment, artifact.ForwardSegment)
            else ImplicitSegment(segment, scope)
            for segment in described.segments
        ]
        solved = [s for s in self.segments if isinstance(s, ImplicitSegment)]
        unknowns = [v for s in solved for v in s.unknowns.variables]
        self.boundary = Boundary(described, unknowns, scope)
        #: The element type of floating-point values.
        self.dtype = scope.dtype
        #: The solver options; `chunk` is without effect here.
        self.options = EngineOptions(described.solver)
        #: The stored parameters by name, each (*B, *base_shape): write to one, or replace it.
        self.values: dict[str, Any] = {
            name: np.array(p.values, p.dtype).reshape(p.shape)
            for name, p in zip(self.parameters.names, described.parameters, strict=True)
        }
        self._derivatives = self._find(described.derivatives, False)
        self._parameter_derivatives = self._find(described.parameter_derivatives, True)

    # --------------------------------------------------------------------------------------------
    # What the model is
    # --------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> Variables:
        """The inputs, a sequence of Variable."""
        return self.boundary.inputs.variables

    @property
    def outputs(self) -> Variables:
        """The outputs, a sequence of Variable."""
        return self.boundary.outputs.variables

    @property
    def parameters(self) -> Variables:
        """The promoted parameters, a sequence of Variable."""
        return self.boundary.parameters.variables

    @property
    def unknowns(self) -> Variables:
        """What the implicit segments solve for, a sequence of Variable."""
        return self.boundary.unknowns.variables

    @property
    def histories(self) -> tuple[variables.History, ...]:
        """The inputs `x~1`, `x~2`, and what they become at the next step."""

        def known(name: str, variables: Variables) -> str | None:
            return name if name in variables.index_of else None

        aged = [(name, *name.rpartition("~")[::2]) for name in self.inputs.names]
        return tuple(
            variables.History(name, int(age), known(now, self.outputs), known(now, self.inputs))
            for name, now, age in aged
            if now and age.isdecimal() and int(age) > 0
        )

    @property
    def derivatives(self) -> tuple[variables.Derivative, ...]:
        """The derivatives with respect to inputs that were compiled."""
        return tuple(self._at_boundary(d) for d in self._derivatives)

    @property
    def parameter_derivatives(self) -> tuple[variables.Derivative, ...]:
        """The derivatives with respect to promoted parameters that were compiled."""
        return tuple(self._at_boundary(d) for d in self._parameter_derivatives)

    def _at_boundary(self, d: Derivative) -> variables.Derivative:
        names = self.boundary.outputs.name(d.output), self.boundary.by(d.input).name(d.input)
        return variables.Derivative(*names, d.shape.shape, d.shape.batched)

    def _find(self, pairs: Sequence[artifact.Pair], of_parameters: bool) -> list[Derivative]:
        """Compiled derivatives. Of one segment, a block of the model is that of the segment; else
        it relates all components of the output to all of the input."""
        own = {(s.output, s.input): s for s in self.segments[0].pairs} if self._is_single else {}
        found = []
        for pair in pairs:
            key = Promoted(pair.input) if of_parameters else pair.input
            shapes = self.boundary.outputs.shape(pair.output), self.boundary.by(key).shape(key)
            shape = dense_shape(pair.output, key, *shapes)
            if (pair.output, key) in own:
                # A solve package returns a matrix also where a value has no axes.
                sites = self.boundary.outputs.sites(pair.output) + self.boundary.by(key).sites(key)
                block = own[pair.output, key]
                shape = block if sites else replace(block, shape=shape.shape)
            found.append(Derivative(pair.output, key, shape))
        return found

    @property
    def _is_single(self) -> bool:
        return len(self.segments) == 1

    # --------------------------------------------------------------------------------------------
    # Evaluation
    # --------------------------------------------------------------------------------------------

    def evaluate(
        self,
        inputs: Mapping[str, Any],
        *,
        parameters: Mapping[str, Any] | None = None,
        tangents: Mapping[str, Any] | None = None,
        cotangents: Mapping[str, Any] | None = None,
        jacobian: bool = False,
        parameter_jacobian: bool = False,
        adjoints: bool = True,
        parameter_adjoints: bool = True,
    ) -> Evaluation:
        """Evaluate the model, and what is asked for beside its outputs.

        Parameters
        ----------
        inputs : mapping of str to array
            Every input, (*B, *point shape); the batches B of all arrays broadcast.
        parameters : mapping of str to array, optional
            Values, (*B, *base_shape), that replace stored ones in this call.
        tangents : mapping of str to array, optional
            Directions by input, which ask for the derivatives of outputs along them.
        cotangents : mapping of str to array, optional
            Weights by output, which ask for adjoints.
        jacobian
            Whether the blocks by inputs are asked for.
        parameter_jacobian
            Whether the blocks by parameters are asked for.
        adjoints
            Whether cotangents ask for the adjoints of inputs, as far as they were compiled.
        parameter_adjoints
            Whether cotangents ask for the adjoints of parameters, as far as they were compiled.

        Returns
        -------
        Evaluation
            What was asked for. Points that failed are no error: their results are NaN.

        Raises
        ------
        FatalError
            A name or shape is wrong, or what is asked for was not compiled.
        """
        adjoints = adjoints and cotangents is not None
        parameter_adjoints = parameter_adjoints and cotangents is not None
        if adjoints and parameter_adjoints:
            adjoints = bool(self._derivatives)
            parameter_adjoints = bool(self._parameter_derivatives) or not adjoints
        by_values = tangents is not None or jacobian or adjoints
        by_parameters = parameter_jacobian or parameter_adjoints
        self._require_derivatives(by_values, by_parameters)

        sides = self.boundary
        given = sides.inputs.read(inputs, "inputs")
        self._require_inputs(given)
        promoted = sides.parameters.read(self.values, "values")
        if parameters is not None:
            promoted |= sides.parameters.read(parameters, "param_overrides")
        tangent = sides.inputs.read(tangents or {}, "tangents", "tangent of")
        cotangent = sides.outputs.read(cotangents or {}, "cotangents", "cotangent of")
        shape = sides.parameters.widen(sides.inputs.widen((), given), promoted)
        shape = sides.inputs.widen(shape, tangent, "tangent of")
        shape = sides.outputs.widen(shape, cotangent, "cotangent of")

        batch = Batch(
            points=prod(shape),
            values=sides.inputs.rows(given, shape),
            parameters={k.parameter: v for k, v in sides.parameters.rows(promoted, shape).items()},
            settings=self.options.settings(),
            substep_del_tol=self.options["substep_del_tol"],
            # The effect of a parameter on one segment goes on through the values of the next.
            by_values=by_values or (by_parameters and not self._is_single),
            by_parameters=by_parameters,
        )
        self._check_batch(batch)
        with np.errstate(all="ignore"):
            blocks = [segment.run(batch) for segment in self.segments]
            chain = Chain(batch.points, [s.outputs for s in self.segments], blocks)
            results = Results(sides, batch, shape)
            results.give(sides.inputs, sides.inputs.rows(given, shape), "input")
            results.give(sides.parameters, sides.parameters.rows(promoted, shape), "parameter")
            results.give(sides.inputs, sides.inputs.rows(tangent, shape), "tangent of")
            results.give(sides.outputs, sides.outputs.rows(cotangent, shape), "cotangent of")
            results.excuse_steps_of_zero(sides.inputs.rows(given, shape))
            outputs = results.outputs()
            along = {k: as_vectors(v) for k, v in sides.inputs.rows(tangent, shape).items()}
            against = {k: as_vectors(v) for k, v in sides.outputs.rows(cotangent, shape).items()}
            of_inputs, of_parameters = self._derivatives, self._parameter_derivatives
            derivatives = (
                self._jvp(chain, results, along) if tangents is not None else None,
                self._blocks(chain, results, of_inputs) if jacobian else None,
                self._blocks(chain, results, of_parameters) if parameter_jacobian else None,
                self._adjoints(chain, results, of_inputs, against, given) if adjoints else None,
                self._adjoints(chain, results, of_parameters, against, promoted)
                if parameter_adjoints
                else None,
            )
            report = results.report(bool(self.options["collect_history"]))  # which they add to
            return Evaluation(outputs, report, *derivatives)

    def _jvp(
        self, chain: Chain, results: Results, tangents: Mapping[str, Array]
    ) -> dict[str, Array]:
        side = self.boundary.outputs
        found = chain.jvp(self._derivatives, tangents)
        return {
            side.name(key): results.array(
                found[key],
                side.shape(key),
                self.dtype,
                f"the derivative of {side.name(key)!r} along the tangents",
            )
            for key in side.keys
            if key in found
        }

    def _adjoints(
        self,
        chain: Chain,
        results: Results,
        derivatives: Sequence[Derivative],
        cotangents: Mapping[str, Array],
        given: Mapping[str, Array],
    ) -> dict[str, Array]:
        adjoints = {}
        for key, rows in chain.vjp(derivatives, cotangents).items():
            side = self.boundary.by(key)
            name = side.name(key)
            rows = rows.reshape(len(rows), *side.shape(key))
            what = f"the adjoint of {name!r}"
            adjoints[name] = results.adjoint(rows, given[name], self.dtype, what)
        return adjoints

    def _blocks(self, chain: Chain, results: Results, derivatives: Sequence[Derivative]) -> Blocks:
        blocks: Blocks = {}
        for d, rows in zip(derivatives, chain.jacobian(derivatives), strict=True):
            name = self.boundary.outputs.name(d.output)
            by = self.boundary.by(d.input).name(d.input)
            what = f"the derivative of {name!r} with respect to {by!r}"
            block = results.block(rows, d.shape.shape, d.shape.batched, self.dtype, what)
            blocks.setdefault(name, {})[by] = block
        return blocks

    # --------------------------------------------------------------------------------------------
    # What can be asked for
    # --------------------------------------------------------------------------------------------

    def _require_inputs(self, given: Mapping[str, Array]) -> None:
        for key, name in zip(self.boundary.inputs.keys, self.inputs.names, strict=True):
            if name not in given:
                raise FatalError(
                    f"the input {name!r} is missing; every input must be given. Its shape is batch "
                    f"axes and then {self.boundary.inputs.shape(key)}",
                    lib.NEML2_ERROR_MISSING,
                    name,
                )

    def _require_derivatives(self, by_values: bool, by_parameters: bool) -> None:
        for wanted, compiled, what, how in (
            (by_values, self._derivatives, "inputs", "-d OUTPUT:INPUT, or -d : for all"),
            (
                by_parameters,
                self._parameter_derivatives,
                "parameters",
                "-p PARAMETER -d OUTPUT:PARAMETER",
            ),
        ):
            if wanted and not compiled:
                raise FatalError(
                    f"the artifact was compiled without derivatives with respect to {what}. "
                    f"Compile it with neml2-compile {how}; export a law in torch again, with "
                    "derivatives=True",
                    lib.NEML2_ERROR_UNSUPPORTED,
                    "derivatives" if what == "inputs" else "parameter_derivatives",
                )

    def _check_batch(self, batch: Batch) -> None:
        """Fixed batches come whole, and with one value of a parameter that a package takes once."""
        for package in (p for segment in self.segments for p in segment.packages):
            if package.fixed and batch.points % package.greatest:
                raise FatalError(
                    f"{package.name} was compiled for a fixed batch of {package.greatest} points; "
                    f"got {batch.points}. Evaluate a multiple of {package.greatest}, or compile "
                    "the model with --dynamic-batch",
                    lib.NEML2_ERROR_SHAPE,
                    package.name,
                )
        if batch.settings.whole_batch:
            for name in {n for segment in self.segments for n in segment.uniform_parameters}:
                if len(np.unique(batch.parameters[name], axis=0)) > 1:
                    outside = self.boundary.parameters.name(Promoted(name))
                    raise FatalError(
                        f"a package takes one value of {outside!r} for all points of a run, so it "
                        "cannot vary within a batch that converges as a whole. Set convergence = "
                        "point",
                        lib.NEML2_ERROR_SHAPE,
                        outside,
                    )
