"""The functions of a model: its values and derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

from neml2_capi._ffi.typing import A, Arrays, Blocks, Others, Plains
from neml2_capi.model.evaluation import FORWARD, JACOBIAN, JVP, PARAM_JACOBIAN, PARAM_VJP, VJP
from neml2_capi.model.solve import Solve

if TYPE_CHECKING:
    from neml2_capi.model.backend import Backend
    from neml2_capi.model.solve import Solver

_Named = dict[str, Any]
_Pairs = dict[str, dict[str, Any]]


class Functions:
    """What a model can be asked to evaluate."""

    _engine: Backend

    @overload
    def forward(
        self, inputs: Plains, param_overrides: Plains | None = None, solver: Solver | None = None
    ) -> Arrays: ...
    @overload
    def forward(
        self,
        inputs: Others[A],
        param_overrides: Others[A] | None = None,
        solver: Solver | None = None,
    ) -> dict[str, A]: ...
    @overload
    def forward(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
        solver: Solver | None = None,
    ) -> dict[str, Any]: ...
    def forward(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
        solver: Solver | None = None,
    ) -> dict[str, Any]:
        """Evaluate the model: outputs by name, each (*B, *sub_batch_shape, *base_shape).

        Every input must be given, history (`x~1`) too. `param_overrides` replaces values of
        parameters in this call only. The results are new arrays. `solver` solves the nonlinear
        systems in place of the library: neml2_capi.solvers.Newton() or a function of yours, which
        see.

        FatalError for a wrong name, shape or element type: nothing was evaluated. ConvergenceError
        where points of an implicit model did not converge: it holds the outputs of the others. NaN
        in the result of an explicit model is no error.
        """
        if solver is not None:
            with self.solve(inputs, param_overrides) as solve:
                for system in solve:
                    solver(system)
                return solve.end()
        outputs: _Named = self._engine.results(FORWARD, inputs, param_overrides)
        return outputs

    @overload
    def evaluate(
        self, inputs: Plains, param_overrides: Plains | None = None
    ) -> tuple[Arrays, Arrays]: ...
    @overload
    def evaluate(
        self, inputs: Others[A], param_overrides: Others[A] | None = None
    ) -> tuple[dict[str, A], dict[str, A]]: ...
    @overload
    def evaluate(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]: ...
    def evaluate(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Evaluate the model, and say what became of each point: (outputs, report).

        Like forward(), but points that fail are no error: their outputs are NaN, and the report
        tells. It has, each (*B,): `status` (int32, the NEML2_* of the header: 0 where all is well),
        `iterations` (int32), `residual_norm` and `suggested_cut` (float64: by what to multiply the
        increment before another try); and with the option `collect_history`, `residual_history`,
        (*B, miters), NaN after the last iteration.
        """
        evaluation = self._engine.evaluate(FORWARD, inputs, param_overrides)
        return evaluation.outputs, evaluation.report.arrays()

    # --------------------------------------------------------------------------------------------
    # Derivatives: of the pairs that were compiled, and errors as in forward()
    # --------------------------------------------------------------------------------------------

    @overload
    def jvp(
        self, inputs: Plains, tangents: Plains, param_overrides: Plains | None = None
    ) -> tuple[Arrays, Arrays]: ...
    @overload
    def jvp(
        self, inputs: Others[A], tangents: Others[A], param_overrides: Others[A] | None = None
    ) -> tuple[dict[str, A], dict[str, A]]: ...
    @overload
    def jvp(
        self,
        inputs: Mapping[str, Any],
        tangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]: ...
    def jvp(
        self,
        inputs: Mapping[str, Any],
        tangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Evaluate the model and its derivative along `tangents`: (outputs, derivatives by output).

        A tangent has the shape of its input; one that is missing is zero. An output sums over the
        inputs for which a derivative of it was compiled (see `derivatives`); outputs without one
        are absent.
        """
        results: tuple[dict[str, Any], dict[str, Any]] = self._engine.results(
            JVP, inputs, param_overrides, tangents
        )
        return results

    @overload
    def vjp(
        self, inputs: Plains, cotangents: Plains, param_overrides: Plains | None = None
    ) -> tuple[Arrays, Arrays]: ...
    @overload
    def vjp(
        self, inputs: Others[A], cotangents: Others[A], param_overrides: Others[A] | None = None
    ) -> tuple[dict[str, A], dict[str, A]]: ...
    @overload
    def vjp(
        self,
        inputs: Mapping[str, Any],
        cotangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]: ...
    def vjp(
        self,
        inputs: Mapping[str, Any],
        cotangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Evaluate the model and the transpose of its derivative: (outputs, adjoints by input).

        A cotangent has the shape of its output; one that is missing is zero. An adjoint has the
        shape of its input as it was given: what is one value for many points gets their sum.
        Inputs with respect to which no derivative was compiled are absent.
        """
        results: tuple[dict[str, Any], dict[str, Any]] = self._engine.results(
            VJP, inputs, param_overrides, cotangents
        )
        return results

    @overload
    def jacobian(
        self, inputs: Plains, param_overrides: Plains | None = None
    ) -> tuple[Arrays, Blocks]: ...
    @overload
    def jacobian(
        self, inputs: Others[A], param_overrides: Others[A] | None = None
    ) -> tuple[dict[str, A], dict[str, dict[str, A]]]: ...
    @overload
    def jacobian(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]: ...
    def jacobian(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Evaluate the model and its Jacobian: (outputs, {output: {input: block}}).

        A block is (*B, *output_shape, *input_shape), with the shapes of a point; without B where
        the derivative is the same for all points, unless there are none. In a model of one forward
        segment the derivative relates each sub-batch site of the output to the same site of the
        input, and a block is (*B, *sub_batch_shape, *output_base_shape, *input_base_shape), with
        sub-batch axes of size 1 where it is the same at all sites. Pairs that were not compiled
        are absent.
        """
        results: tuple[dict[str, Any], dict[str, dict[str, Any]]] = self._engine.results(
            JACOBIAN, inputs, param_overrides
        )
        return results

    @overload
    def param_jacobian(
        self, inputs: Plains, param_overrides: Plains | None = None
    ) -> tuple[Arrays, Blocks]: ...
    @overload
    def param_jacobian(
        self, inputs: Others[A], param_overrides: Others[A] | None = None
    ) -> tuple[dict[str, A], dict[str, dict[str, A]]]: ...
    @overload
    def param_jacobian(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]: ...
    def param_jacobian(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Evaluate the model and its derivatives with respect to promoted parameters.

        Returns (outputs, {output: {parameter: block}}); a block is (*B, *output_shape,
        *parameter_base_shape), also where the parameter is one value for all points.
        """
        results: tuple[dict[str, Any], dict[str, dict[str, Any]]] = self._engine.results(
            PARAM_JACOBIAN, inputs, param_overrides
        )
        return results

    @overload
    def param_vjp(
        self, inputs: Plains, cotangents: Plains, param_overrides: Plains | None = None
    ) -> Arrays: ...
    @overload
    def param_vjp(
        self, inputs: Others[A], cotangents: Others[A], param_overrides: Others[A] | None = None
    ) -> dict[str, A]: ...
    @overload
    def param_vjp(
        self,
        inputs: Mapping[str, Any],
        cotangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]: ...
    def param_vjp(
        self,
        inputs: Mapping[str, Any],
        cotangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The gradients of sum(cotangent * output) with respect to promoted parameters, by name.

        A gradient has the shape of the parameter, stored or overridden: that of one value for all
        points is summed over them.
        """
        gradients: _Named = self._engine.results(PARAM_VJP, inputs, param_overrides, cotangents)
        return gradients

    def solve(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> Solve:
        """Begin an evaluation whose nonlinear systems you solve: see neml2_capi.solvers."""
        return Solve(self._engine, inputs, param_overrides)
