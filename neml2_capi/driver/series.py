"""Arrays of a model that follow one another in time: `x`, `x~1`, `x~2`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.labels import Label
from neml2_capi._ffi.library import lib

if TYPE_CHECKING:
    from neml2_capi.model import Model


class Series(NamedTuple):
    """A variable and its history."""

    name: str
    #: The greatest age; `x~1` to `x~depth` are inputs.
    depth: int

    @property
    def ages(self) -> list[str]:
        """`x`, `x~1`, ..., from the newest to the oldest."""
        return [self.name, *(f"{self.name}~{age}" for age in range(1, self.depth + 1))]

    @property
    def exchanges(self) -> Iterator[tuple[str, str]]:
        """Pairs to exchange, in this order, so that each value becomes one step older."""
        oldest_first = self.ages[::-1]
        return pairwise(oldest_first)


class Roles:
    """Roles of a model's inputs in a driver."""

    #: The variables with history.
    series: tuple[Series, ...]
    #: The input that is the time, if the model has one.
    time: str
    #: Inputs that are prescribed, the time among them if the model has it.
    forces: tuple[str, ...]
    #: Inputs that are no history, with the name of an output: the first guesses of its solve.
    guesses: tuple[str, ...]
    #: Histories `x~1` of an `x` that the model lacks, if not prescribed: zero, as in NEML2.
    absent: tuple[str, ...]

    def __init__(self, model: Model, given: Mapping[str, object], time: str) -> None:
        """`given` is what is prescribed, by name, beside the input `time`."""
        outputs = model.outputs.index_of
        carried = [h for h in model.histories if h.output or h.current]
        histories = {history.input for history in carried}
        depths: dict[str, list[int]] = {}
        for history in carried:
            depths.setdefault(history.output or history.current or "", []).append(history.age)
        for name, found in depths.items():
            if sorted(found) != list(range(1, len(found) + 1)):
                raise Label("history", f"{name}~{max(found)}").refuse(
                    f"cannot be carried from step to step: the model has no input '{name}~"
                    f"{min(set(range(1, max(found))) - set(found))}' that it comes from",
                    lib.NEML2_ERROR_UNSUPPORTED,
                )
        self.series = tuple(Series(name, len(found)) for name, found in depths.items())
        free = [name for name in model.inputs.names if name not in histories]
        self.time = time
        if time not in free and time != "t":
            raise unknown_name("input", time, free)
        shape = model.inputs[model.inputs.index_of[time]].point_shape if time in free else ()
        if shape:
            raise Label("input", time).refuse(
                f"has the shape {shape}; expected one number, to be the time",
                lib.NEML2_ERROR_SHAPE,
            )
        for name in given:
            if name == time:
                raise _force(name).refuse(
                    "is the time, which comes from `times`", lib.NEML2_ERROR_ARGUMENT
                )
            if name in histories:
                raise _force(name).refuse(
                    "is history, which the driver carries: prescribe the variable itself, or give "
                    "`initial` values",
                    lib.NEML2_ERROR_ARGUMENT,
                )
            if name not in free:
                raise unknown_name("force", name, [n for n in free if n != time])
        self.guesses = tuple(n for n in free if n in outputs and n not in given)
        self.forces = tuple(n for n in free if n not in self.guesses)
        orphans = {h.input for h in model.histories if not (h.output or h.current)}
        self.absent = tuple(n for n in self.forces if n in orphans and n not in given)
        for name in self.forces:
            if name not in given and name != time and name not in self.absent:
                raise _missing(model, name)


def _force(name: str) -> Label:
    return Label("force", name)


def _missing(model: Model, name: str) -> FatalError:
    variable = model.inputs[model.inputs.index_of[name]]
    point = "".join(f", {size}" for size in variable.point_shape)
    return _force(name).refuse(
        "is missing; prescribe every input that is not history, as an array "
        f"(times, *batch{point}), a constant, or a function of time",
        lib.NEML2_ERROR_MISSING,
    )
