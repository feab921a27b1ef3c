"""Results of a fit, and how well the experiments determine them."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import unknown_name
from neml2_capi._ffi.outside import written
from neml2_capi.driver.arguments import file_name, is_number, wrong
from neml2_capi.fit.artifact import write_artifact
from neml2_capi.fit.report import write_report
from neml2_capi.fit.shared import ROUND_OFF
from neml2_capi.fit.toml import as_toml

if TYPE_CHECKING:
    from neml2_capi.fit.search import Search

Array = NDArray[np.float64]

#: A direction is not seen if its standard deviation is more than this, relative to parameters.
_UNSEEN = 1.0
#: Of residuals, which are about 1: numbers that a model gives have no less.
LEAST_SCATTER = 1e-8
#: The part of a direction that is named, and the part that is round-off.
_NAMED, _NOTHING = 0.3, 1e-6


@dataclass(frozen=True)
class Direction:
    """A combination of relative changes of parameters, and how well the data see it."""

    #: Relative changes by parameter, of norm 1.
    changes: dict[str, float]
    #: How much residuals change, of the scaled Jacobian; 0 if that is round-off.
    singular_value: float
    #: Standard deviation along it, relative; inf if the data do not see it at all, or not how
    #: they scatter.
    deviation: float

    @property
    def is_seen(self) -> bool:
        """Whether the data tell this combination, to its own size at least."""
        return self.deviation < _UNSEEN

    def __str__(self) -> str:
        if not math.isfinite(self.deviation) and self.singular_value > 0:
            parts = [n for n, c in self.changes.items() if abs(c) > _NAMED]
            return (
                f"nothing tells how well these data see {' and '.join(parts)}, since it is not "
                "known how they scatter"
            )
        sizes = {n: abs(c) for n, c in self.changes.items() if abs(c) > _NOTHING}
        parts = [n for n, c in sizes.items() if c > _NAMED or c * self.deviation > _UNSEEN]
        largest = max(sizes.values())
        moved = ", ".join(f"{n} by {100 * self.changes[n] / largest:+.3g} %" for n in parts)
        is_told = self.singular_value > 0
        if len(parts) == 1:
            how = f" (to {self.deviation:.2g} of its value)" if is_told else " at all"
            return f"{parts[0]} is not seen by these data{how}"
        how = f"hardly anything (to {self.deviation:.2g} of their values)" if is_told else "nothing"
        return f"{' and '.join(parts)} are seen together only: {moved} changes {how}"


@dataclass(frozen=True)
class Fit:
    """Parameters that were found, their uncertainty, and curves beside measurements."""

    #: The Problem that was solved.
    problem: Any
    #: By name; "yield_stress[20]" if each label has its own.
    parameters: dict[str, float]
    #: Standard deviations by name; inf if the data do not see a parameter.
    deviations: dict[str, float]
    #: (k, k) of the parameters, in their order: inf and nan for those that the data do not see.
    covariance: Array
    #: Combinations of parameters, from the one that is seen least.
    directions: list[Direction]
    #: Half the sum of the squared residuals.
    cost: float
    #: All residuals without unit, and those by experiment.
    residuals: Array
    #: The standard deviation of residuals, which multiplies the covariance; 1 if experiments have
    #: a `deviation`, inf if there are no more values than parameters to find it from.
    scatter: float
    #: Degrees of freedom of the scatter, of Student's distribution; inf if it is known. Rows that
    #: several losses look at count once.
    freedom: float
    #: What the model does in each experiment, by component.
    curves: list[dict[str, Array]]
    #: Whether the best search came to its end.
    success: bool
    #: What scipy says of it.
    message: str
    #: The cost at which each search ended, inf if it did not.
    costs: list[float]
    #: Experiments that failed at some parameters, and why.
    failures: list[str]
    #: How often all experiments were driven.
    evaluations: int
    #: What the optimizer moved.
    moved: Array

    @property
    def unseen(self) -> list[Direction]:
        """Combinations that the data do not tell."""
        return [each for each in self.directions if not each.is_seen]

    @property
    def warnings(self) -> list[str]:
        """In words, what is `unseen`, and which parameters are at a bound."""
        values = np.array(list(self.parameters.values()))
        told = [
            f"{name} is at its bound {bound:g}; deviations are as if it might go beyond"
            for name, bound in self.problem.space.at_bounds(values)
        ]
        if math.isfinite(self.scatter):
            return told + [str(each) for each in self.unseen]
        return [
            *told,
            "there are no more values than parameters, so that nothing tells how they scatter, nor "
            "how well parameters are known: give the experiments a `deviation`",
        ]

    def quantile(self, level: float = 0.95) -> float:
        """By how many deviations a parameter may be off, either way.

        Parameters
        ----------
        level
            With this probability it is less.

        Returns
        -------
        float
            1.96 for 0.95 if all experiments have a `deviation`. If the scatter was found from few
            residuals it is more, by Student's distribution.

        Raises
        ------
        FatalError
            The level is not between 0 and 1.
        """
        from scipy.stats import t

        if not is_number(level) or not 0.0 < level < 1.0:
            raise wrong("level", f"must be between 0 and 1; got {level!r}")
        return float(t.ppf(0.5 + level / 2, max(self.freedom, 1)))

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """The interval of a parameter, of the covariance.

        Parameters
        ----------
        name
            Of the parameter.
        level
            The probability that it holds the true value, if residuals scatter normally.

        Returns
        -------
        tuple of float
            Symmetric in what is moved: for a parameter with `log`, in its logarithm. Where valleys
            are curved, profile() is better.

        Raises
        ------
        FatalError
            There is no such parameter, or the level is not between 0 and 1.
        """
        if name not in self.parameters:
            raise unknown_name("parameter", name, self.parameters)
        value, wide = self.parameters[name], self.quantile(level) * self.deviations[name]
        if self.problem.space.is_logarithmic(name):
            with np.errstate(over="ignore"):
                return value * math.exp(-wide / value), float(value * np.exp(wide / value))
        return value - wide, value + wide

    @property
    def correlation(self) -> Array:
        """The covariance divided by the deviations, (k, k); nan for what the data do not see."""
        size = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore"):
            return np.asarray(self.covariance / np.outer(size, size))

    def __str__(self) -> str:
        width = max(map(len, self.parameters))
        lines = [
            f"{name:{width}} = {value:.6g} +- {self.deviations[name]:.2g}"
            for name, value in self.parameters.items()
        ]
        lines.append(f"cost {self.cost:.6g}, {self.evaluations} evaluations: {self.message}")
        lines += self.warnings
        if self.failures:
            lines.append(f"{len(self.failures)} evaluations failed, and cost a penalty")
        return "\n".join(lines)

    def apply(self) -> None:
        """Set the parameters of the problem's model.

        Raises
        ------
        FatalError
            A parameter has a value for each label: which of them?
        """
        for name, value in self._plain().items():
            self.problem.model.set_parameter(name, value)

    def to_toml(self) -> str:
        """The [parameters] that begin where this fit ended, with their bounds.

        Returns
        -------
        str
            TOML, which a file of experiments takes.
        """
        return as_toml(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to_toml() to a file.

        Parameters
        ----------
        path
            The file.

        Raises
        ------
        FatalError
            It cannot be written.
        """
        with written(file_name("path", path), "the parameters") as stream:
            stream.write(self.to_toml().encode())

    def save_artifact(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the model's artifact whose parameters begin with these values.

        Parameters
        ----------
        path
            The folder, which must not exist. Kernels are compiled again, by a C compiler.

        Raises
        ------
        FatalError
            It exists, or cannot be written or compiled.
        """
        write_artifact(self.problem.model, self._plain(), path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one file in HTML: parameters, what is not seen, figures.

        Parameters
        ----------
        path
            The file.

        Raises
        ------
        FatalError
            It cannot be written, or matplotlib is not installed.
        """
        write_report(self, path)

    def _plain(self) -> dict[str, float]:
        for name, parameter in self.problem.space.given.items():
            if parameter.per:
                raise wrong(name, f"has a value for each {parameter.per}: set one of them yourself")
        return self.parameters


def evaluated(problem: Any, best: Search, searches: Sequence[Search]) -> Fit:
    """The fit where the best search ended, with its covariance and what the data tell."""
    moved = best.moved
    residuals, by_value = problem.residuals(moved), problem._slopes(moved)
    values, _ = problem.space.outside(moved)
    names = problem.space.names
    count, (_, by_prior) = len(by_value), problem.space.priors(values)
    made_of = problem._sources(moved)
    freedom = math.inf if problem.has_deviations else problem._spread(moved)[1]
    scatter = problem.scatter_at(moved) if freedom > 0 else math.inf
    sizes = problem.space.sizes(values)
    left, singular, rows = np.linalg.svd(_tall(by_value * sizes), full_matrices=False)
    least = ROUND_OFF * max(singular.max(initial=0.0), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = scatter * np.linalg.norm(made_of.T @ left[:count], axis=0)
        along = np.where(singular > least, spread / singular, np.inf)
    rows = np.concatenate([rows[singular > least], _axes(rows[singular <= least])])
    singular = np.where(singular > least, singular, 0.0)
    directions = [
        Direction(dict(zip(names, row.tolist(), strict=True)), float(s), float(d))
        for row, s, d in zip(rows[::-1], singular[::-1], along[::-1], strict=True)
    ]
    # Priors count as they are given, and data by their scatter; values that several residuals are
    # made of move all of them.
    whole = _tall(np.concatenate([by_value / scatter, by_prior]) * sizes)
    left, seen, axes = np.linalg.svd(whole, full_matrices=False)
    kept = seen > ROUND_OFF * max(seen.max(initial=0.0), 1e-300)
    moving = np.concatenate([made_of.T @ left[:count], left[count:]])[:, kept]
    moving = moving @ (axes[kept] / seen[kept, None])
    scaled = moving.T @ moving
    covariance = scaled * np.outer(sizes, sizes)
    lost = np.abs(axes[~kept]).max(axis=0, initial=0.0) > _NOTHING
    covariance[lost] = covariance[:, lost] = np.nan
    covariance[lost, lost] = np.inf
    deviations = np.sqrt(np.diag(covariance))
    return Fit(
        problem=problem,
        parameters=dict(zip(names, values.tolist(), strict=True)),
        deviations=dict(zip(names, deviations.tolist(), strict=True)),
        covariance=covariance,
        directions=directions,
        cost=float(residuals @ residuals) / 2,
        residuals=residuals,
        scatter=scatter,
        curves=problem.curves(moved),
        freedom=freedom,
        success=best.success,
        message=best.message,
        costs=[search.cost_with(best.scatter) for search in searches],
        failures=[failure for search in searches for failure in search.failures],
        evaluations=sum(search.evaluations for search in searches),
        moved=moved,
    )


def _axes(rows: Array) -> Array:
    """Return a basis of a space, (n, k), in which each of n parameters is in one row only.

    A parameter that nothing sees has a row of its own then, and does not seem to belong to others.
    """
    rows = rows.copy()
    for number in range(len(rows)):
        place, column = np.unravel_index(np.abs(rows[number:]).argmax(), rows[number:].shape)
        rows[[number, number + place]] = rows[[number + place, number]]
        rows[number] /= rows[number, column]
        others = np.arange(len(rows)) != number
        rows[others] -= np.outer(rows[others, column], rows[number])
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _tall(matrix: Array) -> Array:
    """A matrix with rows of zeros, as many rows as columns at least: all directions have axes."""
    missing = max(0, matrix.shape[1] - matrix.shape[0])
    return np.pad(matrix, ((0, missing), (0, 0)))
