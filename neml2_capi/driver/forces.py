"""Prescribed inputs over time: a value for each time, a constant, or a function of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from neml2_capi._ffi.components import components
from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.kinds import Kind, kind_of
from neml2_capi._ffi.labels import Array, Label, common_batch
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Tensor, carries_gradient, host_array
from neml2_capi.driver.memory import new_rows

if TYPE_CHECKING:
    from neml2_capi._ffi.variables import Variable

Shape = tuple[int, ...]

#: More steps than there are.
MANY = 1 << 62
#: So much of an array stays in the cache.
_BYTES = 1 << 18


class Force(Protocol):
    """An input over time."""

    label: Label
    #: The batch axes of its values.
    batch: Shape
    #: True if its value is the same at all times.
    constant: bool
    #: Kind of array as it was given.
    kind: Kind | None
    #: Of one point.
    shape: Shape
    #: The most steps whose values are known beforehand.
    most_steps: int

    def at(self, step: int, fraction: float) -> Array:
        """The value (*batch, *point shape) after this fraction of a step; 1 is its end."""

    def ends(self, step: int, count: int) -> Array:
        """The values at the ends of steps, (count, *batch, *point shape); one row if constant."""

    def keep(self) -> None:
        """Have the same values from now on, whatever becomes of what was given."""


class Table:
    """A value for each time, linear in between; or one value for all times."""

    most_steps = MANY

    def __init__(self, label: Label, values: Any, shape: Shape, dtype: str, steps: int) -> None:
        self.label, self.kind = label, kind_of(values)
        rows = _copied(as_array(values, label), label, dtype)
        #: Whether it was given without an axis of times.
        self.alone = rows.shape == shape
        if self.alone:
            rows = rows[np.newaxis]
        split = rows.ndim - len(shape)
        if split < 1 or rows.shape[split:] != shape or rows.shape[0] not in (1, steps):
            point = "".join(f", {size}" for size in shape)
            raise label.refuse(
                f"has the shape {rows.shape}; expected ({steps}, *batch{point}), a value for each "
                f"of the {steps} times, (1, *batch{point}), a constant, or {shape}, a constant "
                "for all points; or give a function of time",
                lib.NEML2_ERROR_SHAPE,
            )
        self.batch, self.shape = rows.shape[1:split], shape
        self.constant = rows.shape[0] == 1
        #: A copy of the values, (steps or 1, *batch, *point shape).
        self.rows, self.steps = rows, steps
        self._is_kept = False

    def at(self, step: int, fraction: float) -> Array:
        if self.constant:
            return np.asarray(self.rows[0])
        end = np.asarray(self.rows[step])
        # The end is met to the last bit, without interpolation.
        if fraction == 1.0 or end.dtype.kind != "f":
            return end
        begin = self.rows[step - 1]
        return np.asarray(begin + fraction * (end - begin))

    def ends(self, step: int, count: int) -> Array:
        return self.rows if self.constant else self.rows[step : step + count]

    def keep(self) -> None:
        self._is_kept = True

    def lent(self, shape: Shape, dtype: np.dtype[Any]) -> Array | None:
        """The copy of its values, to be a record; None if it is to be kept, or does not fit."""
        fits = (self.rows.shape, self.rows.dtype) == (shape, dtype)
        return self.rows if fits and not self._is_kept else None


class Function:
    """A function of time, which is called with a number, or with an array of one time per point."""

    constant = False
    most_steps = 1  # it is called for a time when that is reached

    def __init__(
        self, label: Label, function: Callable[[Any], Any], shape: Shape, dtype: str, clock: Table
    ) -> None:
        self.label = label
        self._function, self.shape, self._dtype, self._clock = function, shape, dtype, clock
        #: What it returned, by step and fraction, if that is kept.
        self._returned: dict[tuple[int, float], Array] | None = None
        first = function(self._time(0, 1.0))
        self.kind = kind_of(first)
        values = self._array(first, 0, 1.0)
        self.batch = values.shape[: values.ndim - len(shape)]

    def at(self, step: int, fraction: float) -> Array:
        if self._returned is None:
            return self._called(step, fraction)
        if (step, fraction) not in self._returned:
            self._returned[step, fraction] = self._called(step, fraction).copy()
        return self._returned[step, fraction]

    def ends(self, step: int, count: int) -> Array:
        return np.stack([self.at(each, 1.0) for each in range(step, step + count)])

    def keep(self) -> None:
        self._returned = {}

    def _called(self, step: int, fraction: float) -> Array:
        return self._array(self._function(self._time(step, fraction)), step, fraction)

    def _array(self, returned: Any, step: int, fraction: float) -> Array:
        values = as_array(returned, self.label)
        split = values.ndim - len(self.shape)
        if split < 0 or values.shape[split:] != self.shape:
            raise self.label.refuse(
                f"is a function that returns the shape {values.shape} at t = "
                f"{self._time(step, fraction)}; expected batch axes and then {self.shape}",
                lib.NEML2_ERROR_SHAPE,
            )
        return typed(values, self.label, self._dtype, f" at t = {self._time(step, fraction)}")

    def _time(self, step: int, fraction: float) -> Any:
        time = self._clock.at(step, fraction)
        if time.ndim == 0:
            return float(time)
        time = time.copy()  # it is the function's, which may write to it
        kind = self._clock.kind
        return time if kind is None else kind.hand_out(Tensor(time)._open(), time)


class Parts:
    """Components by name, each over time; those that are not named are zero."""

    def __init__(
        self, label: Label, values: Mapping[str, Any], variable: Variable, clock: Table
    ) -> None:
        self.label = label
        self.shape, self._dtype = variable.point_shape, variable.dtype
        #: By component: its number in row-major order, by what it is stored times, and its force.
        self.parts = parts_of(label, values, variable, clock)
        forces = [force for _, _, force in self.parts.values()]
        self.batch = common_batch((force.label, force.batch) for force in forces)
        self.constant = all(force.constant for force in forces)
        self.most_steps = min((force.most_steps for force in forces), default=MANY)
        self.kind = next((force.kind for force in forces if force.kind), None)

    def at(self, step: int, fraction: float) -> Array:
        value = np.zeros((*self.batch, int(np.prod(self.shape))), self._dtype)
        for place, factor, force in self.parts.values():
            value[..., place] = factor * force.at(step, fraction)
        return value.reshape(self.batch + self.shape)

    def ends(self, step: int, count: int) -> Array:
        rows = 1 if self.constant else count
        values = np.zeros((rows, *self.batch, int(np.prod(self.shape))), self._dtype)
        for place, factor, force in self.parts.values():
            values[..., place] = factor * spread(force.ends(step, count), force.batch, self.batch)
        return values.reshape(rows, *self.batch, *self.shape)

    def keep(self) -> None:
        for _, _, force in self.parts.values():
            force.keep()


def parts_of(
    label: Label, values: Mapping[str, Any], variable: Variable, clock: Table
) -> dict[str, tuple[int, float, Force]]:
    """Numbers over time by the names of components: "xx" and "xy" are the tensor's."""
    known = {c.name: (number, c.factor) for number, c in enumerate(components(variable))}
    found = {}
    for name, value in values.items():
        if name not in known:
            full = [f"{variable.name}.{component}" for component in known]
            raise unknown_name("component", f"{variable.name}.{name}", full)
        part = Label(label.kind, f"{variable.name}.{name}")
        found[name] = (*known[name], _over_time(part, value, (), variable.dtype, clock))
    return found


def force(label: Label, value: Any, variable: Variable, clock: Table) -> Force:
    """`value` as it is prescribed for a variable."""
    if isinstance(value, Mapping):
        return Parts(label, value, variable, clock)
    return _over_time(label, value, variable.point_shape, variable.dtype, clock)


def _over_time(label: Label, value: Any, shape: Shape, dtype: str, clock: Table) -> Force:
    if callable(value):
        return Function(label, value, shape, dtype, clock)
    return Table(label, value, shape, dtype, clock.steps)


def clock(times: Any) -> Table:
    """The times, (n,) or (n, *B); FatalError unless they increase, over a finite time."""
    label = Label("times")
    values = typed(as_array(times, label), label, "float64")
    if values.ndim == 0 or len(values) == 0:
        raise label.refuse(
            f"have the shape {values.shape}; expected (n,), or (n, *batch) if each point has "
            "its own, and the first are the values of the initial state",
            lib.NEML2_ERROR_SHAPE,
        )
    increasing = values[1:] > values[:-1]
    if not increasing.all():
        step = int(np.argwhere(~increasing)[0, 0]) + 1
        raise label.refuse(
            f"do not increase in step {step}, from {values[step - 1]} to {values[step]}",
            lib.NEML2_ERROR_ARGUMENT,
        )
    first, last = values[0], values[-1]
    with np.errstate(over="ignore"):  # the check reports it
        long = ~np.isfinite(last - first)
    if long.any():
        raise label.refuse(
            f"from {np.ravel(first[long])[0]} to {np.ravel(last[long])[0]} are longer than float64 "
            "can hold; expected times since a first one, such as 0, or in another unit",
            lib.NEML2_ERROR_ARGUMENT,
        )
    table = Table(label, values, (), "float64", len(values))
    table.kind = kind_of(times)
    return table


def requires_gradient(*values: Any) -> bool:
    """Tell whether torch would follow what becomes of one of these, or of what is in them."""
    return any(
        requires_gradient(*value.values())
        if isinstance(value, Mapping)
        else carries_gradient(value)
        for value in values
    )


def as_array(value: Any, label: Label) -> Array:
    """A numpy array over the memory of an array, or of numbers and lists.

    FatalError if torch would lose the gradient of it.
    """
    if carries_gradient(value):
        raise label.refuse(
            "requires a gradient, which is lost here: give the values at all times, an array, to "
            "drive(), tension() or uniaxial(); or without gradients, tensor.detach()",
            lib.NEML2_ERROR_UNSUPPORTED,
        )
    return host_array(value, label, "float64")


def typed(values: Array, label: Label, dtype: str, where: str = "") -> Array:
    """The values in an element type, all of them finite there; FatalError otherwise."""
    _check_type(values, label, dtype)
    with np.errstate(over="ignore"):  # the check below reports it
        array = values.astype(dtype, copy=False)
    if array.dtype.kind == "f" and not (good := np.isfinite(array)).all():
        place = tuple(np.argwhere(~good)[0].tolist())
        value = values[place]
        raise label.refuse(
            f"{f'has {value} at index {list(place)}' if place else f'is {value}'}{where}"
            f"{f', which {dtype} cannot hold' if np.isfinite(value) else ''}; expected finite "
            "numbers: correct it, or leave it out",
            lib.NEML2_ERROR_ARGUMENT,
        )
    return array


def _copied(values: Array, label: Label, dtype: str) -> Array:
    """A copy of what typed() returns; parts of it are checked while the cache has them."""
    if values.ndim == 0:
        return np.array(typed(values, label, dtype))
    _check_type(values, label, dtype)
    array = new_rows(values.shape, np.dtype(dtype))
    rows = max(1, _BYTES * len(array) // max(1, array.nbytes))
    for begin in range(0, len(array), rows):
        part = array[begin : begin + rows]
        with np.errstate(over="ignore"):  # the check below reports it
            np.copyto(part, values[begin : begin + rows], casting="same_kind")
        if part.dtype.kind == "f" and not np.isfinite(part).all():
            typed(values, label, dtype)  # which names the place
    return array


def _check_type(values: Array, label: Label, dtype: str) -> None:
    """FatalError unless the values can become an element type without loss of their kind."""
    truth = values.dtype.kind == "b" and np.dtype(dtype).kind != "b"
    if truth or not np.can_cast(values.dtype, dtype, "same_kind"):
        raise _wrong_type(label, values, dtype)


def spread(rows: Array, own: Shape, batch: Shape) -> Array:
    """Rows with batch axes `own`, with as many axes as `batch` has, so that they broadcast."""
    missing = (1,) * (len(batch) - len(own))
    return rows.reshape(rows.shape[:1] + missing + rows.shape[1:])


def write_ends(rows: Array, force: Force, step: int) -> None:
    """Put the values at the ends of steps, from one on, into a row for each."""
    values = force.ends(step, len(rows))
    if len(values) == 1:  # of one step, or a constant
        write(rows[:1].reshape(rows.shape[1:]) if len(rows) == 1 else rows, values[0], force.label)
    else:
        own = rows.shape[1 : rows.ndim - len(force.shape)]
        write(rows, spread(values, force.batch, own), force.label)


def write(target: Array, value: Array, label: Label) -> None:
    """Put `value` into `target`, repeated if it has fewer batch axes."""
    try:
        np.copyto(target, value, casting="same_kind")
    except TypeError:
        raise _wrong_type(label, value, target.dtype) from None
    except ValueError:
        raise label.refuse(
            f"has the shape {value.shape}; expected one that broadcasts to {target.shape}",
            lib.NEML2_ERROR_SHAPE,
        ) from None


def _wrong_type(label: Label, value: Array, dtype: Any) -> FatalError:
    return label.refuse(
        f"is of {value.dtype}; expected {dtype}, or what can become it without loss of its kind",
        lib.NEML2_ERROR_DTYPE,
    )
