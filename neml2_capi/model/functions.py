"""The functions of a model: its values and derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.typing import A, Both, Given, Named, Others, Plains, WithBlocks
from neml2_capi.model import over_memory
from neml2_capi.model.described import Described
from neml2_capi.model.evaluation import (
    FORWARD,
    JACOBIAN,
    JVP,
    PARAM_JACOBIAN,
    PARAM_VJP,
    VJP,
    Operation,
)
from neml2_capi.model.solve import Solve, Solver


class Functions(Described):
    """Functions of a model."""

    def _results(
        self, operation: Operation, inputs: Any, overrides: Any, directions: Any = None
    ) -> Any:
        if self._engine.text_device and over_memory.on_device(inputs, overrides, directions):
            return over_memory.results(self, operation, inputs, overrides, directions)
        return self._engine.results(operation, inputs, overrides, directions)

    @overload
    def forward(
        self, inputs: Plains, param_overrides: Plains | None = None, solver: Solver | None = None
    ) -> Named[Array]: ...
    @overload
    def forward(
        self,
        inputs: Others[A],
        param_overrides: Others[A] | None = None,
        solver: Solver | None = None,
    ) -> Named[A]: ...
    @overload
    def forward(
        self, inputs: Given, param_overrides: Given | None = None, solver: Solver | None = None
    ) -> Named[Any]: ...
    def forward(
        self,
        inputs: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
        solver: Solver | None = None,
    ) -> dict[str, Any]:
        """Evaluate the model.

        Parameters
        ----------
        inputs : mapping of str to array
            Every input, history (`x~1`) too: (*B, *sub_batch_shape, *base_shape), with batches B
            that broadcast. They are read where they are, and not written.
        param_overrides : mapping of str to array, optional
            Values of parameters, (*B, *base_shape), in this call only.
        solver
            What solves the nonlinear systems, called with each; the library by default. It is
            neml2_capi.solvers.Newton(), for example, or a function of yours.

        Returns
        -------
        dict of str to array
            The outputs by name, (*B, *sub_batch_shape, *base_shape) each: new arrays. NaN in the
            result of an explicit model is no error.

        Raises
        ------
        FatalError
            A name, shape or element type is wrong: nothing was evaluated. Or a package failed.
        ConvergenceError
            Points of an implicit model did not converge. It holds the outputs of the others.
        """
        if solver is not None:
            with self.solve(inputs, param_overrides) as solve:
                for system in solve:
                    solver(system)
                return solve.end()
        outputs: Named[Any] = self._results(FORWARD, inputs, param_overrides)
        return outputs

    @overload
    def evaluate(self, inputs: Plains, param_overrides: Plains | None = None) -> Both[Array]: ...
    @overload
    def evaluate(self, inputs: Others[A], param_overrides: Others[A] | None = None) -> Both[A]: ...
    @overload
    def evaluate(self, inputs: Given, param_overrides: Given | None = None) -> Both[Any]: ...
    def evaluate(
        self, inputs: Mapping[str, Any], param_overrides: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Evaluate the model, and say what became of each point.

        Points that fail are no error here: their outputs are NaN, and the report tells.

        Parameters
        ----------
        inputs : mapping of str to array
            As in forward().
        param_overrides : mapping of str to array, optional
            As in forward().

        Returns
        -------
        outputs : dict of str to array
            As forward() returns them.
        report : dict of str to array
            By points, (*B,): `status` (int32, the NEML2_* of the header: 0 if all is well),
            `iterations` (int32), `residual_norm` and `suggested_cut` (float64: by what to multiply
            the increment before another try). With the option `collect_history`, `residual_history`
            too, (*B, miters), NaN after the last iteration; with `rescue`, `rescue_solves` (int32):
            the solves by which a point that had not converged was rescued.

        Raises
        ------
        FatalError
            As in forward().
        """
        if self._engine.text_device and over_memory.on_device(inputs, param_overrides):
            call = over_memory.bound(self, FORWARD, inputs, param_overrides)
            call.run()
            call.wait()
            return dict(call.outputs), dict(call.report)
        evaluation = self._engine.evaluate(FORWARD, inputs, param_overrides)
        return evaluation.outputs, evaluation.report.arrays()

    # --------------------------------------------------------------------------------------------
    # Derivatives: of the pairs that were compiled, and errors as in forward()
    # --------------------------------------------------------------------------------------------

    @overload
    def jvp(
        self, inputs: Plains, tangents: Plains, param_overrides: Plains | None = None
    ) -> Both[Array]: ...
    @overload
    def jvp(
        self, inputs: Others[A], tangents: Others[A], param_overrides: Others[A] | None = None
    ) -> Both[A]: ...
    @overload
    def jvp(
        self, inputs: Given, tangents: Given, param_overrides: Given | None = None
    ) -> Both[Any]: ...
    def jvp(
        self,
        inputs: Mapping[str, Any],
        tangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Evaluate the model and its derivative along tangents.

        Parameters
        ----------
        inputs : mapping of str to array
            As in forward().
        tangents : mapping of str to array
            Directions by input, each of its input's shape; one that is missing is zero.
        param_overrides : mapping of str to array, optional
            As in forward().

        Returns
        -------
        outputs : dict of str to array
            As forward() returns them.
        derivatives : dict of str to array
            The derivatives of outputs, each of its output's shape, summed over the inputs for which
            a derivative was compiled (see `derivatives`). Outputs without one are absent.

        Raises
        ------
        FatalError
            As in forward(), or no derivatives were compiled.
        ConvergenceError
            As in forward(), or a derivative is not finite where the values are: the error has all
            results, and `converged_mask` is False there.
        """
        results: Both[Any] = self._results(JVP, inputs, param_overrides, tangents)
        return results

    @overload
    def vjp(
        self, inputs: Plains, cotangents: Plains, param_overrides: Plains | None = None
    ) -> Both[Array]: ...
    @overload
    def vjp(
        self, inputs: Others[A], cotangents: Others[A], param_overrides: Others[A] | None = None
    ) -> Both[A]: ...
    @overload
    def vjp(
        self, inputs: Given, cotangents: Given, param_overrides: Given | None = None
    ) -> Both[Any]: ...
    def vjp(
        self,
        inputs: Mapping[str, Any],
        cotangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Evaluate the model and the transpose of its derivative.

        Parameters
        ----------
        inputs : mapping of str to array
            As in forward().
        cotangents : mapping of str to array
            Weights by output, each of its output's shape; one that is missing is zero.
        param_overrides : mapping of str to array, optional
            As in forward().

        Returns
        -------
        outputs : dict of str to array
            As forward() returns them.
        adjoints : dict of str to array
            The gradients of sum(cotangent * output) by input, each of its input's shape as it was
            given: what is one value for many points gets their sum. An output whose derivative by
            an input was not compiled adds nothing there (see `derivatives`); inputs with respect to
            which no derivative was compiled are absent.

        Raises
        ------
        FatalError
            As in forward(), or no derivatives were compiled.
        ConvergenceError
            As in forward(), or a derivative is not finite where the values are: the error has all
            results, and `converged_mask` is False there.
        """
        results: Both[Any] = self._results(VJP, inputs, param_overrides, cotangents)
        return results

    @overload
    def jacobian(
        self, inputs: Plains, param_overrides: Plains | None = None
    ) -> WithBlocks[Array]: ...
    @overload
    def jacobian(
        self, inputs: Others[A], param_overrides: Others[A] | None = None
    ) -> WithBlocks[A]: ...
    @overload
    def jacobian(self, inputs: Given, param_overrides: Given | None = None) -> WithBlocks[Any]: ...
    def jacobian(
        self, inputs: Mapping[str, Any], param_overrides: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Evaluate the model and its Jacobian.

        Parameters
        ----------
        inputs : mapping of str to array
            As in forward().
        param_overrides : mapping of str to array, optional
            As in forward().

        Returns
        -------
        outputs : dict of str to array
            As forward() returns them.
        blocks : dict of str to dict of str to array
            {output: {input: block}}. A block is (*B, *output_shape, *input_shape), with the shapes
            of a point; without B if the derivative is the same for all points, unless there are
            none. In a model of one forward segment the derivative relates each sub-batch site of
            the output to the same site of the input, and a block is (*B, *sub_batch_shape,
            *output_base_shape, *input_base_shape), with sub-batch axes of size 1 if it is the
            same at all sites. Pairs that were not compiled are absent.

        Raises
        ------
        FatalError
            As in forward(), or no derivatives were compiled.
        ConvergenceError
            As in forward(), or a derivative is not finite where the values are: the error has all
            results, and `converged_mask` is False there.
        """
        results: WithBlocks[Any] = self._results(JACOBIAN, inputs, param_overrides)
        return results

    @overload
    def param_jacobian(
        self, inputs: Plains, param_overrides: Plains | None = None
    ) -> WithBlocks[Array]: ...
    @overload
    def param_jacobian(
        self, inputs: Others[A], param_overrides: Others[A] | None = None
    ) -> WithBlocks[A]: ...
    @overload
    def param_jacobian(
        self, inputs: Given, param_overrides: Given | None = None
    ) -> WithBlocks[Any]: ...
    def param_jacobian(
        self, inputs: Mapping[str, Any], param_overrides: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Evaluate the model and its derivatives with respect to promoted parameters.

        Parameters
        ----------
        inputs : mapping of str to array
            As in forward().
        param_overrides : mapping of str to array, optional
            As in forward().

        Returns
        -------
        outputs : dict of str to array
            As forward() returns them.
        blocks : dict of str to dict of str to array
            {output: {parameter: block}}. A block is (*B, *output_shape, *parameter_base_shape),
            also if the parameter is one value for all points. Pairs that were not compiled are
            absent.

        Raises
        ------
        FatalError
            As in forward(), or no derivatives by parameters were compiled.
        ConvergenceError
            As in forward(), or a derivative is not finite where the values are: the error has all
            results, and `converged_mask` is False there.
        """
        results: WithBlocks[Any] = self._results(PARAM_JACOBIAN, inputs, param_overrides)
        return results

    @overload
    def param_vjp(
        self, inputs: Plains, cotangents: Plains, param_overrides: Plains | None = None
    ) -> Named[Array]: ...
    @overload
    def param_vjp(
        self, inputs: Others[A], cotangents: Others[A], param_overrides: Others[A] | None = None
    ) -> Named[A]: ...
    @overload
    def param_vjp(
        self, inputs: Given, cotangents: Given, param_overrides: Given | None = None
    ) -> Named[Any]: ...
    def param_vjp(
        self,
        inputs: Mapping[str, Any],
        cotangents: Mapping[str, Any],
        param_overrides: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Evaluate the gradients of sum(cotangent * output) with respect to promoted parameters.

        Parameters
        ----------
        inputs : mapping of str to array
            As in forward().
        cotangents : mapping of str to array
            Weights by output, each of its output's shape; one that is missing is zero.
        param_overrides : mapping of str to array, optional
            As in forward().

        Returns
        -------
        dict of str to array
            The gradients by parameter, each of the shape of the parameter, stored or overridden:
            the gradient of one value for all points is summed over them. An output whose derivative
            by a parameter was not compiled adds nothing there.

        Raises
        ------
        FatalError
            As in forward(), or no derivatives by parameters were compiled.
        ConvergenceError
            As in forward(), or a derivative is not finite where the values are: the error has all
            results, and `converged_mask` is False there.
        """
        gradients: Named[Any] = self._results(PARAM_VJP, inputs, param_overrides, cotangents)
        return gradients

    def solve(
        self, inputs: Mapping[str, Any], param_overrides: Mapping[str, Any] | None = None
    ) -> Solve:
        """Begin an evaluation whose nonlinear systems you solve: see neml2_capi.solvers.

        Parameters
        ----------
        inputs : mapping of str to array
            As in forward(); they are copied.
        param_overrides : mapping of str to array, optional
            As in forward(); they are copied.

        Returns
        -------
        Solve
            The systems, one after another. It is yours to close, or to bring to its end.

        Raises
        ------
        FatalError
            As in forward(), or a parameter of an implicit segment is not one value for all points.
        """
        return Solve(self._engine, inputs, param_overrides)
