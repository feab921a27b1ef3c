"""Results that know their derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.labels import Label
from neml2_capi._ffi.library import lib
from neml2_capi.driver.arguments import wrong
from neml2_capi.driver.forces import as_array, typed
from neml2_capi.driver.gradients import MEMORY, Gradients
from neml2_capi.model.evaluation import check_mapping


class Derived(Mapping[str, Any]):
    """Arrays over time, and what their derivatives come of if drive() was asked for some."""

    def __init__(self) -> None:
        self._gradients: Gradients | None = None
        self._slopes: dict[str, dict[str, NDArray[Any]]] = {}

    def derivative(self, output: str, by: str, *, memory: int = MEMORY) -> NDArray[Any]:
        """The derivative of an output at all times by what is constant over time.

        It is carried along with the state through all increments, for all names that
        drive(derivatives=[...]) was given and all outputs that are recorded at once. Components
        that a control found move with the constants (implicit function theorem), and
        so do the increments of steps that were cut.
        Derivatives are computed when they are asked for first, with the model that was driven.

        Parameters
        ----------
        output
            The name of an output, or of the input whose components a control found.
        by
            The name of a parameter or an initial value, as drive(derivatives=[...]) was given.
        memory
            The most bytes that matrices of increments take at a time, about.

        Returns
        -------
        array
            (n, *B, *point shape of the output, *shape of the parameter), of numpy.

        Raises
        ------
        FatalError
            drive() was not asked for it, or the artifact lacks a derivative that it takes.
        ConvergenceError
            A law has no derivative at some step, as where it begins to flow.
        """
        gradients = self._derived(output)
        if by not in self._slopes.get(output, {}):
            wanted = dict.fromkeys([*gradients.constants, by])
            recorded = [name for name in gradients.outputs if name in self]
            self._slopes |= gradients.forward(recorded, wanted, memory)
        kept = self._slopes[output][by]
        return np.array(kept)  # a copy: what is kept stays as it is

    def gradient(
        self, cotangents: Mapping[str, Any], *, memory: int = MEMORY
    ) -> dict[str, NDArray[Any]]:
        """The gradient of sum(cotangent * output) over all times, points and components.

        It goes backward through the increments, whatever the number of constants: a loss L of
        results has the cotangents dL/d(output).

        Parameters
        ----------
        cotangents : mapping of str to array
            Weights by output, each of the shape of its results; one that is missing is zero.
        memory
            As of derivative().

        Returns
        -------
        dict of str to array
            A gradient for each name that drive(derivatives=[...]) was given, in the shape of what
            was given, and summed over the points that one value served; of numpy.

        Raises
        ------
        FatalError
            drive() was not asked for derivatives, or cotangents are of another shape or not finite.
        ConvergenceError
            As of derivative().
        """
        check_mapping("cotangents", cotangents)
        weights = {}
        for output, cotangent in cotangents.items():
            gradients, shape = self._derived(output), np.shape(self[output])
            label = Label("cotangent", output)
            weights[output] = typed(as_array(cotangent, label), label, "float64")
            if weights[output].shape != shape:
                raise FatalError(
                    f"the cotangent of {output!r} has the shape {weights[output].shape}; expected "
                    f"{shape}, the shape of its results",
                    lib.NEML2_ERROR_SHAPE,
                    output,
                )
        if not weights:
            raise wrong("cotangents", "must have one output at least")
        return gradients.backward(weights, gradients.asked, memory)

    def _derived(self, output: str) -> Gradients:
        """Return the gradients; FatalError if none were asked for, or not of this output."""
        if self._gradients is None:
            raise FatalError(
                "drive() was asked for no derivatives: give it derivatives=[...], the names of "
                "parameters and of what else they shall be by",
                lib.NEML2_ERROR_ARGUMENT,
                "derivatives",
            )
        known = [name for name in self._gradients.outputs if name in self]
        if output not in known:
            raise unknown_name("result with derivatives", output, known)
        return self._gradients
