"""One search for parameters, by scipy, and the scatter of residuals beside priors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import ConvergenceError, FatalError, unknown_name
from neml2_capi._ffi.library import lib
from neml2_capi.driver.arguments import wrong

Array = NDArray[np.float64]

#: How residuals scatter at first, if that is to be found, and in how many rounds at most.
_FIRST_SCATTER, _ROUNDS = 0.01, 20
#: Arguments of scipy's functions that a search gives itself.
_OURS = ("fun", "x0", "jac", "bounds", "args", "kwargs", "method")
#: Relative change of the scatter at which it is found.
_SETTLED = 1e-4


@dataclass
class Search:
    """Result of one search."""

    moved: Array
    cost: float
    message: str
    success: bool
    failures: list[str]
    evaluations: int
    #: Of residuals, as it was taken beside priors.
    scatter: float = 1.0
    #: The cost of the priors alone.
    prior: float = 0.0

    def badness(self, freedom: int) -> float:
        """The number that is least for the best search: the cost if the scatter is 1."""
        data = self.cost / self.scatter**2
        return data + max(freedom, 0) * float(np.log(self.scatter))

    def cost_with(self, scatter: float) -> float:
        """The cost with priors beside another scatter."""
        return self.cost + (scatter**2 - self.scatter**2) * self.prior


def search(problem: Any, start: Array, method: str, options: Mapping[str, Any]) -> Search:
    """Search the parameters of a Problem from one place; in a worker, too.

    Priors count beside data that scatter as they do: if no deviation tells how, the search is made
    again with what it found.
    """
    failures, evaluations = len(problem.failures), problem.evaluations
    low, high = problem.space.bounds
    place = np.clip(start, low, high)
    problem.scatter = _FIRST_SCATTER if problem.finds_scatter else 1.0
    try:
        for _ in range(_ROUNDS):
            found = _once(problem, place, method, options)
            place, before = np.asarray(found.x, float), problem.scatter
            if not problem.finds_scatter:
                break
            problem.scatter = problem.scatter_at(place)
            if abs(problem.scatter / before - 1) < _SETTLED:
                break
    except (np.linalg.LinAlgError, FloatingPointError, ConvergenceError) as error:
        return Search(place, np.inf, str(error), False, problem.failures[failures:], 0)
    prior, _ = problem.space.priors(problem.space.outside(place)[0])
    return Search(
        place,
        float(np.square(problem.residuals(place)).sum()) / 2,
        str(found.message),
        bool(found.success),
        problem.failures[failures:],
        problem.evaluations - evaluations,
        problem.scatter,
        float(prior @ prior) / 2,
    )


def _once(problem: Any, start: Array, method: str, options: Mapping[str, Any]) -> Any:
    from scipy import optimize

    low, high = problem.space.bounds
    if method == "least_squares":
        return optimize.least_squares(
            problem.residuals,
            start,
            problem.jacobian,
            bounds=(low, high),
            **{"x_scale": "jac", **options},
        )
    limits = list(zip(low, high, strict=True))
    function: Callable[[Array], Any] = problem.loss
    return optimize.minimize(function, start, method=method, jac=True, bounds=limits, **options)


def check_method(method: Any, options: Mapping[str, Any]) -> None:
    """FatalError if scipy is not installed, or has no such method or option."""
    try:
        from scipy import optimize
    except ImportError:
        raise FatalError(
            "scipy is not installed; install it with: pip install 'neml2_capi[fit]'",
            lib.NEML2_ERROR_UNSUPPORTED,
            "scipy",
        ) from None
    least_squares = isinstance(method, str) and method == "least_squares"
    if not least_squares:
        try:
            optimize.show_options("minimize", method, disp=False)
        except (ValueError, AttributeError, TypeError):
            raise wrong(
                "method",
                f"is {method!r}; expected 'least_squares', or a method of scipy.optimize.minimize, "
                "'L-BFGS-B' for example",
            ) from None
    function = optimize.least_squares if least_squares else optimize.minimize
    known = [name for name in signature(function).parameters if name not in _OURS]
    for name in options:
        if name not in known:
            raise unknown_name(f"option of scipy.optimize.{function.__name__}", name, known)
