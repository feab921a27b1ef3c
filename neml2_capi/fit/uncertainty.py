"""How sure parameters are: profiles of the likelihood, and a log density for samplers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import unknown_name
from neml2_capi.driver.arguments import check_whole, is_number, wrong
from neml2_capi.fit.search import least_squares
from neml2_capi.fit.shared import ROUND_OFF

if TYPE_CHECKING:
    from neml2_capi.fit.problem import Problem
    from neml2_capi.fit.results import Fit

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Profile:
    """The best fits with one parameter held."""

    #: Of the parameter.
    name: str
    #: (m,) at which it was held, increasing.
    values: Array
    #: (m,) twice the loss of log likelihood there.
    losses: Array
    #: Between which the loss is below its quantile at 95 %: 3.84 if the scatter is known and each
    #: residual is made of a measured value of its own. -inf or inf if it is not reached.
    interval: tuple[float, float]


def profile(fit: Fit, name: str, *, points: int = 9, width: float = 3.0) -> Profile:
    """Hold a parameter at values around the one that was found, and fit all others each time.

    Parameters
    ----------
    fit
        The fit.
    name
        Of the parameter.
    points
        How many on either side at most.
    width
        How far to go, in standard deviations.

    Returns
    -------
    Profile
        Its interval holds for curved valleys, too, where standard deviations do not.

    Raises
    ------
    FatalError
        There is no such parameter, it is ordered after another one, or a number is wrong.
    """
    points = check_whole("points", points, 1)
    _check_size("width", width)
    problem = fit.problem
    problem.scatter = fit.scatter if problem.finds_scatter else 1.0
    if name not in fit.parameters:
        raise unknown_name("parameter", name, fit.parameters)
    place = problem.space.names.index(name)
    if place in problem.space._before:
        raise wrong(name, "is ordered after another one; a profile needs one that stands alone")
    center = fit.moved.copy()
    slope = problem.space.outside(center)[1][place, place]
    deviation = fit.deviations[name] / slope
    level = fit.quantile() ** 2
    if np.isfinite(deviation) and deviation > 0 and np.isfinite(fit.scatter):
        # Measured values that several residuals are made of are squared for each of them.
        inverse = np.linalg.pinv(problem.jacobian(center), rcond=ROUND_OFF)
        level *= float((deviation / (fit.scatter * np.linalg.norm(inverse[place]))) ** 2)
    else:
        deviation = 0.3 * max(abs(center[place]), 1.0)
    low, high = problem.space.bounds
    others = np.arange(len(center)) != place
    found = [(center[place], 0.0)]
    for side in (-1.0, 1.0):
        moved = center.copy()
        for step in range(1, points + 1):
            held = center[place] + side * width * deviation * step / points
            if not low[place] <= held <= high[place]:
                break

            def whole(free: Array, held: float = held) -> Array:
                full: Array = center.copy()
                full[others], full[place] = free, held
                return full

            if others.any():
                search = least_squares(
                    lambda free: problem.residuals(whole(free)),
                    moved[others],
                    lambda free: problem.jacobian(whole(free))[:, others],
                    low[others],
                    high[others],
                    {"x_scale": "jac"},
                )
                moved = whole(search.x)
            else:
                moved = whole(moved[others])
            cost = 0.5 * float(np.square(problem.residuals(moved)).sum())
            loss = 2 * (cost - fit.cost) / fit.scatter**2
            found.append((held, loss))
            if loss > 2 * level:
                break
    found.sort()
    values = np.array(
        [problem.space.outside(_with(center, place, held))[0][place] for held, _ in found]
    )
    losses = np.array([loss for _, loss in found])
    middle = int(np.argmin(np.abs(values - fit.parameters[name])))
    return Profile(
        name,
        values,
        losses,
        (
            _crossing(values, losses, level, middle, -1),
            _crossing(values, losses, level, middle, 1),
        ),
    )


def _with(moved: Array, place: int, held: float) -> Array:
    full: Array = moved.copy()
    full[place] = held
    return full


def _crossing(values: Array, losses: Array, level: float, middle: int, side: int) -> float:
    """Return the value at which the loss has the level; its root is interpolated linearly."""
    place = middle
    while 0 <= place + side < len(values):
        if losses[place + side] >= level:
            roots = np.sqrt(np.maximum(losses[[place, place + side]], 0.0))
            share = (np.sqrt(level) - roots[0]) / (roots[1] - roots[0])
            return float(values[place] + share * (values[place + side] - values[place]))
        place += side
    return side * np.inf


def _check_size(name: str, value: Any) -> None:
    """FatalError unless it is a finite number above 0."""
    if not is_number(value) or not 0.0 < value < np.inf:
        raise wrong(name, f"must be a finite number above 0; got {value!r}")


class LogDensity:
    """The log of a posterior density, with its gradient, over the numbers that an optimizer moves.

    Measurements scatter normally by their `deviation`, or else all residuals by `scatter`. Priors
    count as they are given; what has none is flat in these numbers, and bounds are the sampler's.
    """

    def __init__(self, problem: Problem, scatter: float | None = None) -> None:
        """Take a problem whose experiments have a deviation, or how residuals scatter.

        Parameters
        ----------
        problem
            The problem.
        scatter
            Standard deviation of the residuals, Fit.scatter for example; 1 if each experiment
            has its `deviation`.

        Raises
        ------
        FatalError
            It is not known how measurements scatter, the scatter is not above 0, or a test has
            several losses.
        """
        for each in problem.experiments:
            if each.weight and len(each.loss) > 1:
                raise wrong(
                    "problem",
                    f"has {each.name!r} with the losses {', '.join(each.loss)}: a density would "
                    "count its measured rows once for each, and be too narrow. Give it one loss",
                )
        if scatter is None and not problem.has_deviations:
            raise wrong(
                "scatter",
                "is needed, since experiments have no deviation: give the fit's, fit.scatter",
            )
        if scatter is not None:
            _check_size("scatter", scatter)
        self.problem = problem
        self._square = 1.0 if scatter is None else float(scatter) ** 2

    def __call__(self, moved: Any) -> float:
        """The log density, up to a constant; a great negative number if the model fails there.

        Parameters
        ----------
        moved : array (k,)
            As of value_and_gradient().

        Returns
        -------
        float
            It.
        """
        return self.value_and_gradient(moved)[0]

    def value_and_gradient(self, moved: Any) -> tuple[float, Array]:
        """The log density and its gradient.

        Parameters
        ----------
        moved : array (k,)
            Of Space: Problem.space.start is one, and outside() gives the parameters.

        Returns
        -------
        tuple
            A number, and an array (k,).

        Raises
        ------
        FatalError
            It is of another shape.
        """
        moved = np.asarray(moved, float)
        if moved.shape != (len(self.problem.space.names),):
            raise wrong(
                "moved",
                f"has the shape {moved.shape}; expected ({len(self.problem.space.names)},), of "
                f"{', '.join(self.problem.space.names)}",
            )
        data, by_data, prior, by_prior = self.problem.losses(moved)
        volume, by_volume = self.problem.space.log_volume(moved)
        value = volume - data / self._square - prior
        return value, by_volume - by_data / self._square - by_prior

    def jax(self) -> Any:
        """Return it as a function of jax, for numpyro.factor(): differentiable once.

        Returns
        -------
        function
            Of an array (k,), float64 or float32.
        """
        import jax
        import jax.numpy as jnp

        def outside(moved: Any) -> Any:
            kinds = (
                jax.ShapeDtypeStruct((), moved.dtype),
                jax.ShapeDtypeStruct(moved.shape, moved.dtype),
            )

            def evaluated(given: Any) -> Any:
                value, gradient = self.value_and_gradient(given)
                return np.asarray(value, moved.dtype), np.asarray(gradient, moved.dtype)

            return jax.pure_callback(evaluated, kinds, moved, vmap_method="sequential")

        @jax.custom_vjp  # type: ignore[untyped-decorator]
        def density(moved: Any) -> Any:
            return outside(jnp.asarray(moved))[0]

        def forward(moved: Any) -> Any:
            return outside(jnp.asarray(moved))

        def backward(gradient: Any, cotangent: Any) -> Any:
            return (cotangent * gradient,)

        density.defvjp(forward, backward)
        return density

    def pytensor(self) -> Any:
        """Return it as an Op of pytensor, for pymc.Potential(): Op(vector) is a number.

        Returns
        -------
        pytensor.graph.op.Op
            With its gradient.
        """
        import pytensor.tensor as pt
        from pytensor.graph.basic import Apply
        from pytensor.graph.op import Op

        density = self

        class Gradient(Op):  # type: ignore[misc]
            def make_node(self, moved: Any) -> Any:
                return Apply(self, [pt.as_tensor_variable(moved)], [pt.dvector()])

            def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
                outputs[0][0] = density.value_and_gradient(inputs[0])[1]

        class Density(Op):  # type: ignore[misc]
            def make_node(self, moved: Any) -> Any:
                return Apply(self, [pt.as_tensor_variable(moved)], [pt.dscalar()])

            def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
                outputs[0][0] = np.asarray(density(inputs[0]))

            def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
                return [cotangents[0] * Gradient()(inputs[0])]

            def grad(self, inputs: Any, cotangents: Any) -> Any:  # before pytensor 3
                return self.pullback(inputs, None, cotangents)

        return Density()
