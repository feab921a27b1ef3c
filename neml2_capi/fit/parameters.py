"""Parameters of a fit, and the numbers that an optimizer moves in their place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import unknown_name
from neml2_capi.driver.arguments import check_switch, is_number, wrong

if TYPE_CHECKING:
    from neml2_capi.fit.experiment import Experiment

Array = NDArray[np.float64]

#: The greatest size of a logarithm that is moved: its exponential is a number, and not 0.
_LARGEST = 700.0


@dataclass(frozen=True)
class Parameter:
    """A constant that is fitted: its first value, and what is known of it."""

    #: It begins with this, in the units of the model.
    value: float
    #: Between which it stays.
    lower: float = -math.inf
    #: As lower.
    upper: float = math.inf
    #: Whether it is moved by its logarithm: it stays positive, and steps are relative.
    log: bool = False
    #: Its mean and standard deviation before the data, if they are known; with `log` it is the
    #: logarithm that is distributed normally, by the same relative deviation.
    prior: tuple[float, float] | None = None
    #: A label of experiments, "temperature": each of its values has a parameter of its own.
    per: str = ""

    def _check(self, name: str) -> None:
        """FatalError unless its numbers agree."""
        for side in ("value", "lower", "upper"):
            if not is_number(getattr(self, side)):
                raise wrong(name, f"has {side} = {getattr(self, side)!r}; expected a number")
        prior = self.prior
        if prior is not None and not (_is_pair(prior) and all(map(is_number, prior))):
            raise wrong(name, f"has prior = {prior!r}; expected (mean, standard deviation)")
        check_switch(f"log of {name}", self.log)
        if not isinstance(self.per, str):
            raise wrong(name, f"has per = {self.per!r}; expected the name of a label")
        for what in (self.value, *(self.prior or ())):
            if not math.isfinite(what):
                raise wrong(name, f"is {what}; expected a finite number")
        if not self.lower <= self.value <= self.upper or self.lower == self.upper:
            raise wrong(
                name,
                f"begins at {self.value:g}, outside its bounds {self.lower:g} and {self.upper:g}",
            )
        if self.log and (self.value <= 0 or (self.lower <= 0 and self.lower != -math.inf)):
            raise wrong(name, "is moved by its logarithm: its value and bounds must be above 0")
        if self.prior and not self.prior[1] > 0:
            raise wrong(name, f"has the prior deviation {self.prior[1]}; expected one above 0")
        if self.prior and self.log and not self.prior[0] > 0:
            raise wrong(
                name,
                f"is moved by its logarithm, and its prior has the mean {self.prior[0]:g}; "
                "expected one above 0",
            )


def _exp(logarithm: float) -> float:
    return math.exp(min(max(logarithm, -_LARGEST), _LARGEST))


def _is_pair(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


class Space:
    """All parameters in a row, and the numbers u that an optimizer moves.

    A plain parameter is its scale times u, one with `log` is exp(u). Of ordered ones, each but the
    first is the one before plus exp(u), so that it stays greater.
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        experiments: Sequence[Experiment],
        ordered: Sequence[Sequence[str]] = (),
    ) -> None:
        self.given = dict(parameters)
        #: By name in results: the name of the parameter, and the label's value if it has `per`.
        self.entries: dict[str, tuple[str, Any]] = {}
        for name, parameter in parameters.items():
            parameter._check(name)
            if not parameter.per:
                self.entries[name] = (name, None)
                continue
            for label in _labels(name, parameter.per, experiments):
                self.entries[f"{name}[{label}]"] = (name, label)
        self.names = list(self.entries)
        self._before = self._chains(ordered)
        self._scales = np.array([self._scale(name) for name in self.names])

    def _parameter(self, full: str) -> Parameter:
        return self.given[self.entries[full][0]]

    def _scale(self, full: str) -> float:
        parameter = self._parameter(full)
        width = parameter.upper - parameter.lower
        return abs(parameter.value) or (width if math.isfinite(width) else 1.0)

    def _chains(self, ordered: Sequence[Sequence[str]]) -> dict[int, int]:
        """By place, the place of the parameter that is less."""
        before: dict[int, int] = {}
        for chain in ordered if isinstance(ordered, list | tuple) else (ordered,):
            if not isinstance(chain, list | tuple) or len(chain) < 2:
                raise wrong(
                    "ordered", f"has {chain!r}; expected names of two or more, ('g2', 'g1')"
                )
            for name in chain:
                if name not in self.given:
                    raise unknown_name("ordered parameter", name, self.given)
            for less, greater in pairwise(chain):
                first, second = self.given[less], self.given[greater]
                if first.per or second.per:
                    raise wrong("ordered", f"has {less} or {greater}, which differ by a label")
                if math.isfinite(second.lower) or math.isfinite(second.upper):
                    raise wrong(
                        "ordered",
                        f"has {greater}, which has bounds; only the first of ordered ones can",
                    )
                if not first.value < second.value:
                    raise wrong(
                        "ordered",
                        f"wants {less} below {greater}, and they begin at {first.value:g} and "
                        f"{second.value:g}",
                    )
                place = self.names.index(greater)
                if before.setdefault(place, self.names.index(less)) != self.names.index(less):
                    raise wrong(
                        "ordered",
                        f"wants {self.names[before[place]]} and {less} below {greater}; only one "
                        "can be the next below another",
                    )
        return before

    def sizes(self, values: Array) -> Array:
        """Return sizes of parameters: their values, or first values beside which these vanish."""
        least = np.where([self.is_logarithmic(name) for name in self.names], 0.0, 1e-6)
        return np.where(np.abs(values) > least * self._scales, np.abs(values), self._scales)

    def at_bounds(self, values: Array) -> list[tuple[str, float]]:
        """The parameters that are at a bound of theirs, and the bound."""
        return [
            (name, bound)
            for name, value, size in zip(self.names, values, self.sizes(values), strict=True)
            for bound in (self._parameter(name).lower, self._parameter(name).upper)
            if abs(value - bound) <= 1e-6 * max(abs(bound), size) < math.inf
        ]

    @property
    def start(self) -> Array:
        """Numbers that the search begins with."""
        return self.inside(np.array([self._parameter(name).value for name in self.names]))

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds of the numbers that an optimizer moves."""
        limits = []
        for side in ("lower", "upper"):
            values = np.array([getattr(self._parameter(name), side) for name in self.names])
            limits.append(
                np.array(
                    [
                        value if not math.isfinite(value) else self._one(place, value)
                        for place, value in enumerate(values)
                    ]
                )
            )
        return limits[0], limits[1]

    def _one(self, place: int, value: float) -> float:
        log = self._parameter(self.names[place]).log
        return math.log(value) if log else float(value / self._scales[place])

    def inside(self, values: Array) -> Array:
        """The numbers that an optimizer moves, of parameters."""
        return np.array(
            [
                math.log((value - values[self._before[place]]) / self._scales[place])
                if place in self._before
                else self._one(place, value)
                for place, value in enumerate(values)
            ]
        )

    def outside(self, moved: Array) -> tuple[Array, Array]:
        """The parameters, and their derivatives (parameters, numbers)."""
        values, slopes = np.zeros(len(moved)), np.zeros((len(moved), len(moved)))
        done: set[int] = set()

        def fill(place: int) -> None:
            if place in done:
                return
            if place in self._before:
                less = self._before[place]
                fill(less)
                step = self._scales[place] * _exp(moved[place])
                values[place] = values[less] + step
                slopes[place] = slopes[less]
                slopes[place, place] = step
            else:
                parameter = self._parameter(self.names[place])
                log, scale = parameter.log, self._scales[place]
                value = _exp(moved[place]) if log else scale * moved[place]
                # Round-off leads beyond a bound, and a file with such a value is refused.
                values[place] = min(max(value, parameter.lower), parameter.upper)
                slopes[place, place] = value if log else scale
            done.add(place)

        for place in range(len(moved)):
            fill(place)
        return values, slopes

    def priors(self, values: Array) -> tuple[Array, Array]:
        """Residuals of what was known before, and their derivatives (priors, parameters)."""
        residuals, rows = [], []
        for place, name in enumerate(self.names):
            parameter = self._parameter(name)
            if parameter.prior is None:
                continue
            mean, deviation = parameter.prior
            row = np.zeros(len(values))
            if parameter.log:
                residuals.append(math.log(values[place] / mean) * mean / deviation)
                row[place] = mean / deviation / values[place]
            else:
                residuals.append((values[place] - mean) / deviation)
                row[place] = 1 / deviation
            rows.append(row)
        return np.array(residuals), np.array(rows).reshape(-1, len(values))

    @property
    def prior_count(self) -> int:
        """How many parameters have a prior."""
        return sum(self._parameter(name).prior is not None for name in self.names)

    def log_volume(self, moved: Array) -> tuple[float, Array]:
        """Log of the volume of priors of ordered parameters, in the numbers, and its gradient.

        Others have priors that are normal in these numbers.
        """
        known = [p for p in self._before if self._parameter(self.names[p]).prior is not None]
        gradient = np.zeros(len(moved))
        gradient[known] = 1.0
        return float(moved[known].sum()), gradient

    def of_experiment(self, experiment: Experiment) -> dict[str, int]:
        """The place of each parameter's value for an experiment."""
        return {
            name: place
            for place, (name, label) in enumerate(self.entries.values())
            if not self.given[name].per or experiment.labels[self.given[name].per] == label
        }

    def sampled(self, count: int, seed: int) -> Array:
        """Return starts of other searches, (count, numbers): a Latin hypercube between the bounds.

        A parameter without both bounds begins within a factor of e of its value.
        """
        low, high = self.bounds
        start = self.start
        width = np.array([1.0 if self._is_logarithm(place) else 0.9 for place in range(len(start))])
        low = np.where(np.isfinite(low), low, start - width)
        high = np.where(np.isfinite(high), high, start + width)
        random = np.random.default_rng(seed)
        layers = np.stack([random.permutation(count) for _ in start], axis=1)
        points = (layers + random.random((count, len(start)))) / max(count, 1)
        return np.asarray(low + points * (high - low))

    def is_logarithmic(self, name: str) -> bool:
        """Whether a parameter is moved by its logarithm."""
        return self.names.index(name) not in self._before and self._parameter(name).log

    def _is_logarithm(self, place: int) -> bool:
        return place in self._before or self._parameter(self.names[place]).log


def _labels(name: str, per: str, experiments: Sequence[Experiment]) -> list[Any]:
    """The values of a label of experiments, each once."""
    found: list[tuple[Any, str]] = []
    for experiment in experiments:
        if per not in experiment.labels:
            raise wrong(
                name,
                f"has a value for each {per!r}, and the experiment {experiment.name!r} "
                f"has no such label; it has {', '.join(experiment.labels) or 'none'}",
            )
        label = experiment.labels[per]
        for other, whose in found:
            if label == other and _is_truth(label) == _is_truth(other):
                break
            if label == other or str(label) == str(other):
                raise wrong(
                    name,
                    f"has a value for each {per!r}: {whose!r} has the label {other!r}, and "
                    f"{experiment.name!r} {label!r}, which cannot be told from it. Write both "
                    f"alike if they are one, {name}[{other}], or else differently",
                )
        else:
            found.append((label, experiment.name))
    return [label for label, _ in found]


def _is_truth(label: Any) -> bool:
    """Whether it is True or False, which equal 1 and 0."""
    return isinstance(label, bool | np.bool_)
