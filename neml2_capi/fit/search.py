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
from neml2_capi.fit.shared import ROUND_OFF

Array = NDArray[np.float64]

#: How residuals scatter at first, if that is to be found, and in how many rounds at most.
_FIRST_SCATTER, _ROUNDS = 0.01, 20
#: Arguments of scipy's functions that a search gives itself.
_OURS = ("fun", "x0", "jac", "bounds", "args", "kwargs", "method")
#: Relative change of the scatter at which it is found.
_SETTLED = 1e-6
#: Relative distance from a bound at which a number is at the bound.
_AT_BOUND = 1e-6
#: Relative change of the cost that is round-off.
_SAME = 1e-12


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
            if not problem.finds_scatter or _is_ended(found):
                break
            problem.scatter = problem.scatter_at(place)
            if abs(problem.scatter / before - 1) < _SETTLED:
                break
        place = _restored(problem, place)
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
        return least_squares(
            problem.residuals, start, problem.jacobian, low, high, {"x_scale": "jac", **options}
        )
    limits = list(zip(low, high, strict=True))
    function: Callable[[Array], Any] = problem.loss
    return optimize.minimize(function, start, method=method, jac=True, bounds=limits, **options)


def least_squares(
    residuals: Callable[[Array], Array],
    start: Array,
    jacobian: Callable[[Array], Array],
    low: Array,
    high: Array,
    options: Mapping[str, Any],
) -> Any:
    """Return the result of scipy's least_squares, which moves only what residuals tell apart.

    Its steps are as long as its trust region if columns of the Jacobian depend on each other, and
    lead anywhere along what is not seen. What is told apart later only is moved in a search that
    follows, and so is what depends on a number that ended at its bound.
    """
    from scipy import optimize

    place = np.array(start, float)
    columns, free, spent = np.zeros(len(place), bool), np.ones(len(place), bool), 0
    found = optimize.OptimizeResult(
        x=place, message="no parameter changes any residual", success=True
    )
    while np.any(more := _told_apart(jacobian(place) * (free | ~columns), columns) & ~columns):
        columns |= more

        def whole(part: Array, beside: Array = place, columns: Array = columns) -> Array:
            full: Array = beside.copy()
            full[columns] = part
            return full

        own = {**options, **_left(options, spent)}
        if callback := own.get("callback"):
            own["callback"] = _with_all(callback, whole)
        if not isinstance(scale := own.get("x_scale"), str | None):
            own["x_scale"] = np.broadcast_to(scale, columns.shape)[columns]
        found = optimize.least_squares(
            lambda part, whole=whole: residuals(whole(part)),
            place[columns],
            lambda part, whole=whole, columns=columns: jacobian(whole(part))[:, columns],
            bounds=(low[columns], high[columns]),
            **own,
        )
        place = found.x = whole(found.x)
        spent += found.nfev
        if _is_ended(found) or spent >= (options.get("max_nfev") or np.inf):
            break
        free = np.minimum(place - low, high - place) > _AT_BOUND * np.maximum(np.abs(place), 1.0)
    return found


def _is_ended(found: Any) -> bool:
    """Tell whether a callback, or the most evaluations, ended a search."""
    return not found.success and found.status in (-2, 0, 99)


def _left(options: Mapping[str, Any], spent: int) -> dict[str, Any]:
    most = options.get("max_nfev")
    return {} if most is None else {"max_nfev": most - spent}


def _with_all(callback: Callable[..., Any], whole: Callable[[Array], Array]) -> Callable[..., Any]:
    """Return a callback of a search that moves some numbers, which is shown all of them."""

    def by_result(intermediate_result: Any) -> Any:
        x = whole(intermediate_result.x)
        return callback(intermediate_result=type(intermediate_result)(intermediate_result, x=x))

    # As scipy tells them apart.
    if set(signature(callback).parameters) == {"intermediate_result"}:
        return by_result
    return lambda x: callback(whole(x))


def _told_apart(jacobian: Array, first: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which columns depend on none of others, (k,): the first, then from the greatest."""
    lengths = np.linalg.norm(jacobian, axis=0)
    chosen = np.zeros(len(lengths), bool)
    axes = np.zeros((len(jacobian), 0))
    for column in np.lexsort((-lengths, ~first)):
        rest = jacobian[:, column] / (lengths[column] or 1.0)
        for _ in range(2):
            rest = rest - axes @ (axes.T @ rest)
        size = np.linalg.norm(rest)
        if size > ROUND_OFF:
            chosen[column] = True
            axes = np.column_stack([axes, rest / size])
    return chosen


def _restored(problem: Any, place: Array) -> Array:
    """Return a place with each number that changes no residual where the problem begins."""
    begin = problem.space.start
    for number in np.flatnonzero(~problem.jacobian(place).any(axis=0) & (place != begin)):
        cost = np.square(problem.residuals(place)).sum()
        moved = place.copy()
        moved[number] = begin[number]
        if np.square(problem.residuals(moved)).sum() <= cost * (1 + _SAME):
            place = moved
    return place


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
