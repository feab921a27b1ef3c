"""A model, experiments and parameters: residuals, their derivatives, and the search."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import ConvergenceError, FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.driver.arguments import check_is_model, check_whole, is_number, wrong
from neml2_capi.driver.progress import bar
from neml2_capi.fit.parameters import Parameter, Space
from neml2_capi.fit.plausible import check_counts, check_deviations, check_sizes, check_start
from neml2_capi.fit.repeats import distinct
from neml2_capi.fit.results import LEAST_SCATTER, Fit, evaluated
from neml2_capi.fit.search import Search, check_method, search
from neml2_capi.fit.shared import sources, spread
from neml2_capi.fit.simulate import Simulated, Simulator
from neml2_capi.fit.terms import Terms, terms
from neml2_capi.sweeps.executors import Workers

if TYPE_CHECKING:
    from neml2_capi.fit.experiment import Experiment
    from neml2_capi.model import Model

Array = NDArray[np.float64]

#: What a residual is at a point that does not converge, times the greatest at the start.
_PENALTY = 10.0
#: Of a parameter, for differences at a step without a derivative.
_DIFFERENCE = 1e-6
_log = logging.getLogger("neml2_capi.fit")


class Problem:
    """Constants of a model that shall explain experiments."""

    def __init__(
        self,
        model: Model,
        experiments: Sequence[Experiment],
        parameters: Mapping[str, Parameter | float],
        *,
        ordered: Sequence[Sequence[str]] = (),
        names: tuple[str, str] = ("strain", "stress"),
    ) -> None:
        """Put them together, and evaluate the model once where the search begins.

        Parameters
        ----------
        model
            A model with these parameters promoted, and the derivatives of all outputs with history
            (`neml2-capi compile ... -p E -d : -d :E`).
        experiments
            One at least.
        parameters
            By name; a number is where the search begins.
        ordered
            Names of parameters that shall increase: [("g2", "g1")] keeps g2 below g1.
        names
            Of the strain and the stress in the model.

        Raises
        ------
        FatalError
            A name or number is wrong, the artifact lacks a derivative, or what was measured seems
            to be in another unit than the model.
        ConvergenceError
            The model does not converge where the search begins.
        """
        check_is_model(model)
        self.model, self.experiments = model, distinct(experiments)
        if not isinstance(parameters, Mapping) or not parameters:
            raise wrong("parameters", "must name one parameter at least, and where it begins")
        given = {}
        for name, value in parameters.items():
            if not isinstance(value, Parameter) and not is_number(value):
                raise wrong(str(name), f"is {value!r}; expected a number, or a Parameter")
            given[name] = value if isinstance(value, Parameter) else Parameter(float(value))
        for name in given:
            variable = model.parameters[model.parameters.resolve(name)]
            if variable.point_shape:
                raise wrong(name, f"has the shape {variable.point_shape}; expected one number")
        self.space = Space(given, self.experiments, ordered)
        self._asked = list(given)
        self._simulator = Simulator(model, self.experiments, names)
        self._places = [self.space.of_experiment(each) for each in self.experiments]
        #: Searches that did not converge somewhere: what failed, and with which parameters.
        self.failures: list[str] = []
        self.evaluations = 0
        #: The standard deviation of residuals, a factor of the residuals of priors: 1 if
        #: experiments have a `deviation`, else what a search found.
        self.scatter = 1.0
        self._last: tuple[Array, list[Simulated], list[Terms | None]] | None = None
        self._last_slopes: tuple[Array, Array] | None = None
        with np.errstate(all="ignore"):  # what is too large is refused with its test
            start = self._simulated(self.space.start)
        check_deviations(self.experiments)
        check_sizes(self.experiments, start[1])
        values = self._by_experiment(self.space.outside(np.array(self.space.start))[0])
        check_start(model, names, self.experiments, values, start[0])
        sizes = [part.residuals.size for part in start[1] if part]
        check_counts(self.experiments, sizes)
        self._sizes = sizes
        self.has_deviations = all(e.deviation is not None for e in self.experiments if e.weight)
        largest = max(float(np.abs(p.residuals).max(initial=0.0)) for p in start[1] if p)
        self._penalty = _PENALTY * max(largest, 1.0)

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the last evaluation, which a worker makes again."""
        return {**self.__dict__, "_last": None, "_last_slopes": None}

    # --------------------------------------------------------------------------------------------
    # Evaluation
    # --------------------------------------------------------------------------------------------

    def values(self, moved: Array) -> dict[str, float]:
        """Parameters by name.

        Parameters
        ----------
        moved : array (k,)
            As of residuals().

        Returns
        -------
        dict of str to float
            In the units of the model.
        """
        return dict(zip(self.space.names, self.space.outside(moved)[0].tolist(), strict=True))

    def residuals(self, moved: Array) -> Array:
        """All residuals, the priors' last; an experiment that fails has a penalty for each.

        Parameters
        ----------
        moved : array (k,)
            The numbers that an optimizer moves, of Space.

        Returns
        -------
        array (m,)
            Without unit.
        """
        _, parts = self._simulated(moved)
        prior, _ = self.space.priors(self.space.outside(moved)[0])
        rows = [
            np.full(size, self._penalty) if part is None else part.residuals
            for part, size in zip(parts, self._sizes, strict=True)
        ]
        return np.concatenate([*rows, self.scatter * prior])

    def jacobian(self, moved: Array) -> Array:
        """Derivatives of all residuals, exact, (m, k).

        Parameters
        ----------
        moved : array (k,)
            As of residuals().

        Returns
        -------
        array (m, k)
            By the numbers that an optimizer moves; zero of an experiment that fails.
        """
        values, chain = self.space.outside(moved)
        _, prior = self.space.priors(values)
        return np.concatenate([self._slopes(moved), self.scatter * prior]) @ chain

    def _slopes(self, moved: Array) -> Array:
        """Derivatives of the residuals of data by parameters, (m, k)."""
        moved = np.array(moved, float)
        if self._last_slopes is not None and np.array_equal(self._last_slopes[0], moved):
            return self._last_slopes[1]
        found, parts = self._simulated(moved)
        values, _ = self.space.outside(moved)
        rows = []
        for place, (simulated, part) in enumerate(zip(found, parts, strict=True)):
            row = np.zeros((self._sizes[place], len(values)))
            if part is not None:
                try:
                    slopes = self._simulator.slopes(simulated, place, self._asked)
                    own = part.slopes(slopes)
                    for column, name in enumerate(self._asked):
                        row[:, self._places[place][name]] = own[:, column]
                except ConvergenceError as error:  # a law without a derivative at some step
                    _log.info("differences instead of a derivative: %s", error)
                    row = self._differences(place, values, part)
            rows.append(row)
        self._last_slopes = moved, np.concatenate(rows)
        return self._last_slopes[1]

    def loss(self, moved: Array) -> tuple[float, Array]:
        """Half the sum of the squared residuals, and its gradient by adjoints.

        Parameters
        ----------
        moved : array (k,)
            As of residuals().

        Returns
        -------
        tuple
            The number, and an array (k,).
        """
        data, by_data, prior, by_prior = self.losses(moved)
        square = self.scatter**2
        return data + square * prior, by_data + square * by_prior

    def losses(self, moved: Array) -> tuple[float, Array, float, Array]:
        """Half the sum of the squared residuals of data, and of priors, each with its gradient.

        Parameters
        ----------
        moved : array (k,)
            As of residuals().

        Returns
        -------
        tuple
            A number and an array (k,), twice.
        """
        found, parts = self._simulated(moved)
        values, chain = self.space.outside(moved)
        prior, by_prior = self.space.priors(values)
        total, gradient = 0.0, np.zeros(len(values))
        drives: dict[int, Any] = {}
        for place, (simulated, part) in enumerate(zip(found, parts, strict=True)):
            if part is None:
                total += self._sizes[place] * self._penalty**2 / 2
                continue
            total += float(part.residuals @ part.residuals) / 2
            _, weights, members = drives.setdefault(
                id(simulated.results), (simulated.results, {}, [])
            )
            members.append((place, simulated.point))
            for key, rows in part.weights.items():
                kind, _, component = key.partition(".")
                number, factor = self._simulator.places[component]
                output = self._simulator.strain if kind == "strain" else self._simulator.stress
                if kind == "strain" and not simulated.strain_is_found:
                    continue
                results = simulated.results
                assert results is not None
                target = weights.setdefault(output, np.zeros(np.shape(results[output])))
                target[: rows.shape[1], simulated.point, number] += part.residuals @ rows / factor
        for results, weights, members in drives.values():
            slopes = results.gradient(weights)
            for place, point in members:
                for name in self._asked:
                    gradient[self._places[place][name]] += slopes[name][point]
        known = float(prior @ prior) / 2
        return total, np.asarray(gradient @ chain), known, np.asarray(prior @ by_prior @ chain)

    @property
    def freedom(self) -> int:
        """By how many the residuals, priors among them, are more than the parameters.

        Residuals that are made of the same measured values count each: a fit's `freedom` is less.
        """
        return sum(self._sizes) + self.space.prior_count - len(self.space.names)

    @property
    def finds_scatter(self) -> bool:
        """Whether a search has to find how residuals scatter, to weigh them beside priors."""
        return not self.has_deviations and self.freedom > 0 and self.space.prior_count > 0

    def scatter_at(self, moved: Array) -> float:
        """The standard deviation of residuals: 1 if experiments have a `deviation`.

        Parameters
        ----------
        moved : array (k,)
            As of residuals().

        Returns
        -------
        float
            Without unit.
        """
        if self.has_deviations or self.freedom <= 0:
            return 1.0
        mean, _ = self._spread(moved)
        if not mean:
            return 1.0
        data = self.residuals(moved)[: sum(self._sizes)]
        return max(float(np.sqrt(data @ data / mean)), LEAST_SCATTER)

    def curves(self, moved: Array) -> list[dict[str, Array]]:
        """Curves of the model in each experiment.

        Parameters
        ----------
        moved : array (k,)
            As of residuals().

        Returns
        -------
        list of dict of str to array
            For each experiment its curves by component, "stress.xx", (n,) each.
        """
        return [each.curves for each in self._simulated(moved)[0]]

    def _simulated(self, moved: Array) -> tuple[list[Simulated], list[Terms | None]]:
        moved = np.array(moved, float)
        if self._last is not None and np.array_equal(self._last[0], moved):
            return self._last[1], self._last[2]
        self.evaluations += 1
        values, _ = self.space.outside(moved)
        if np.isfinite(values).all():
            found = self._simulator.run(self._by_experiment(values), self._asked)
        else:
            found = [Simulated({}, "a parameter is not finite") for _ in self.experiments]
        parts: list[Terms | None] = []
        for experiment, simulated in zip(self.experiments, found, strict=True):
            if simulated.failure:
                told = ", ".join(
                    f"{n} = {v:.6g}" for n, v in zip(self.space.names, values, strict=True)
                )
                self.failures.append(f"{experiment.name}, {told}: {simulated.failure}")
                _log.info("a penalty for %s", self.failures[-1])
            parts.append(None if simulated.failure else terms(experiment, simulated.curves))
        self._last = moved, found, parts
        return found, parts

    def _spread(self, moved: Array) -> tuple[float, float]:
        """The numbers of spread(): `freedom` both, without priors and shared measured values."""
        jacobian, count = self.jacobian(moved), sum(self._sizes)
        return spread(jacobian[:count], jacobian[count:], self._sources(moved))

    def _sources(self, moved: Array) -> Any:
        """Derivatives of residuals by measured values, in their deviations: sparse, (m, values)."""
        return sources(self._simulated(moved)[1], self._sizes, self.has_deviations)

    def _by_experiment(self, values: Array) -> list[dict[str, float]]:
        return [{n: float(values[p]) for n, p in places.items()} for places in self._places]

    def _differences(self, place: int, values: Array, part: Terms) -> Array:
        """One-sided differences of an experiment's residuals by parameters."""
        row = np.zeros((len(part.residuals), len(values)))
        only = Simulator(
            self.model,
            [self.experiments[place]],
            (self._simulator.strain, self._simulator.stress),
        )
        for name, number in self._places[place].items():
            step = _DIFFERENCE * (abs(values[number]) or 1.0)
            moved = values.copy()
            moved[number] += step
            found = only.run([self._by_experiment(moved)[place]], None)[0]
            if not found.failure:
                changed = terms(self.experiments[place], found.curves)
                row[:, number] = (changed.residuals - part.residuals) / step
            assert name in self.space.given
        return row

    # --------------------------------------------------------------------------------------------
    # Search
    # --------------------------------------------------------------------------------------------

    def solve(
        self,
        method: str = "least_squares",
        *,
        starts: int = 1,
        executor: Any = None,
        seed: int = 0,
        progress: bool | None = None,
        **options: Any,
    ) -> Fit:
        """Search the parameters with the least sum of squared residuals.

        Parameters
        ----------
        method
            "least_squares", of scipy with exact Jacobians, or a method of scipy's minimize,
            "L-BFGS-B" for example, with gradients by adjoints.
        starts
            From how many places the search begins: from the given one, and from others between the
            bounds.
        executor
            Of concurrent.futures, Dask or MPI, or a function that makes one, as of sweep(); None is
            this process.
        seed
            Of the other places.
        progress
            Whether a bar is shown; by default on a terminal.
        options
            Others of scipy's function, `max_nfev=50` for example.

        Returns
        -------
        Fit
            The best that was found, with its uncertainty.

        Raises
        ------
        FatalError
            scipy is not installed, has no such method or option, no search came to an end, or a
            worker was lost.
        """
        check_method(method, options)
        starts, seed = check_whole("starts", starts, 1), check_whole("seed", seed, 0)
        places = np.concatenate([[self.space.start], self.space.sampled(starts - 1, seed)])
        found: list[Search] = []
        try:
            with Workers(executor) as workers, bar(starts, 0, "start", progress) as shown:
                waiting = [workers.submit(search, self, place, method, options) for place in places]
                for each in waiting:
                    found.append(each.result())
                    shown.update(1)
        except BrokenExecutor as error:
            raise FatalError(
                "a worker of the executor ended before its search: memory ran out, it was killed, "
                'or the program begins its work outside of `if __name__ == "__main__":`. Take '
                "fewer workers, or none",
                lib.NEML2_ERROR_INTERNAL,
                "executor",
            ) from error
        good = [each for each in found if np.isfinite(each.cost)]
        if not good:
            raise FatalError(
                f"no search came to an end: {found[0].message}", lib.NEML2_ERROR_RUNTIME, "starts"
            )
        best = min(good, key=lambda each: each.badness(self.freedom))
        self.scatter = best.scatter
        return evaluated(self, best, found)
