"""Tests of a material by name: what a testing machine does, as one line.

    from neml2_capi import experiments

    results = experiments.tension(model, np.linspace(0, 10, 101), strain=0.01)

Each drives a model as `drive` does, whose other arguments it takes, and returns its Results. The
times are two at least.

- What is prescribed over time, by tension(), uniaxial(), biaxial() and plane_stress(), is an array
  (n,), or (n, *B) with a value for each point, or a function of time. One number is reached
  linearly at the last time.
- What is held, by creep() and relaxation(), is one number, or an array (*B,) with one for each
  point; it has no axis of times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.kinds import alike
from neml2_capi._ffi.labels import Array, Label
from neml2_capi._ffi.library import lib
from neml2_capi.driver.arguments import check_is_model, wrong
from neml2_capi.driver.control import UNIAXIAL
from neml2_capi.driver.forces import Table, as_array, clock, requires_gradient, typed
from neml2_capi.driver.results import Results
from neml2_capi.driver.transient import DRIVERS, drive
from neml2_capi.model.evaluation import check_mapping

if TYPE_CHECKING:
    from neml2_capi.model import Model

__all__ = ["biaxial", "creep", "plane_stress", "relaxation", "tension", "uniaxial"]


def tension(model: Model, times: Any, strain: Any, **options: Any) -> Results:
    """Pull, or push, along x by a strain; all other stresses vanish.

    Parameters
    ----------
    model
        A model of stress under strain, both SR2.
    times
        As of drive(), two at least.
    strain
        The strain xx over time: a number that is reached at the last time, an array (n,) or
        (n, *B), or a function of time.
    options
        Other arguments of drive(): `forces` without the strain. `names` are the names of the
        strain and the stress, ("strain", "stress") by default.

    Returns
    -------
    Results
        As of drive(); `strain` has all components that were found.

    Raises
    ------
    FatalError
        An argument is wrong, and is named. Nothing was evaluated.
    StepError
        As of drive().
    """
    return _strained(model, times, {"xx": ("strain", strain)}, "uniaxial", options)


def uniaxial(model: Model, times: Any, stress: Any, **options: Any) -> Results:
    """Pull, or push, along x by a stress; all other stresses vanish.

    Parameters
    ----------
    model
        As of tension().
    times
        As of tension().
    stress
        The stress xx over time: a number that is reached at the last time, an array (n,) or
        (n, *B), or a function of time.
    options
        As of tension().

    Returns
    -------
    Results
        As of tension().

    Raises
    ------
    FatalError, StepError
        As of tension().
    """
    timed = _timed(model, times)
    return _driven(model, times, {}, {UNIAXIAL: _ramp("stress", timed, stress)}, options)


def biaxial(model: Model, times: Any, xx: Any, yy: Any, **options: Any) -> Results:
    """Pull along x and y; all other stresses vanish.

    Parameters
    ----------
    model
        As of tension().
    times
        As of tension().
    xx
        Strains over time, each as of tension().
    yy
        Strains over time, each as of tension().
    options
        As of tension().

    Returns
    -------
    Results
        As of tension().

    Raises
    ------
    FatalError, StepError
        As of tension().
    """
    strains = {"xx": ("xx", xx), "yy": ("yy", yy)}
    return _strained(model, times, strains, "biaxial", options)


def plane_stress(model: Model, times: Any, xx: Any, yy: Any, xy: Any, **options: Any) -> Results:
    """Strain a sheet in its plane; the stresses zz, yz and xz vanish.

    Parameters
    ----------
    model
        As of tension().
    times
        As of tension().
    xx
        Strains over time, each as of tension(); xy is the tensor's, half of the angle.
    yy
        Strains over time, each as of tension(); xy is the tensor's, half of the angle.
    xy
        Strains over time, each as of tension(); xy is the tensor's, half of the angle.
    options
        As of tension().

    Returns
    -------
    Results
        As of tension().

    Raises
    ------
    FatalError, StepError
        As of tension().
    """
    strains = {"xx": ("xx", xx), "yy": ("yy", yy), "xy": ("xy", xy)}
    return _strained(model, times, strains, "plane stress", options)


def creep(model: Model, times: Any, stress: Any, *, rise: Any = None, **options: Any) -> Results:
    """Hold a stress along x; all other stresses vanish.

    Parameters
    ----------
    model
        As of tension().
    times
        As of tension().
    stress : number or array (*B,)
        The stress xx that is held, one for all points or one for each; it has no axis of times. An
        array as long as the times is refused, since it might be one over time: that is for
        uniaxial().
    rise
        How long it rises linearly from 0, above 0 and at most as long as the test, a number or one
        for each point that has its own times; by default the first step.
    options
        As of tension().

    Returns
    -------
    Results
        As of tension().

    Raises
    ------
    FatalError, StepError
        As of tension().
    """
    held = _held("stress", _timed(model, times), stress, rise, "uniaxial()")
    return _driven(model, times, {}, {UNIAXIAL: held}, options)


def relaxation(
    model: Model, times: Any, strain: Any, *, rise: Any = None, **options: Any
) -> Results:
    """Hold a strain along x; all other stresses vanish.

    Parameters
    ----------
    model
        As of tension().
    times
        As of tension().
    strain : number or array (*B,)
        The strain xx that is held, as the stress of creep(); one over time is for tension().
    rise
        As of creep().
    options
        As of tension().

    Returns
    -------
    Results
        As of tension().

    Raises
    ------
    FatalError, StepError
        As of tension().
    """
    held = _held("strain", _timed(model, times), strain, rise, "tension()")
    return _driven(model, times, {"xx": held}, "uniaxial", options)


DRIVERS |= {tension, uniaxial, biaxial, plane_stress, creep, relaxation}


def _strained(
    model: Model,
    times: Any,
    strains: dict[str, tuple[str, Any]],
    control: str,
    options: dict[str, Any],
) -> Results:
    """Strains by component, each with the name of its argument."""
    timed = _timed(model, times)
    ramps = {key: _ramp(name, timed, value) for key, (name, value) in strains.items()}
    return _driven(model, times, ramps, control, options)


def _driven(
    model: Model, times: Any, strains: dict[str, Any], control: Any, options: dict[str, Any]
) -> Results:
    options = dict(options)
    strain, stress = _names(options.pop("names", ("strain", "stress")))
    others = options.pop("forces", {})
    check_mapping("forces", others)
    if strain in others:
        raise wrong("forces", f"have {strain!r}, which the experiment prescribes; leave it out")
    if "control" in options:
        raise wrong("control", "is what the experiment prescribes; leave it out, or call drive()")
    forces = {strain: strains, **others}
    return drive(model, times, forces, control={f"{stress}:{strain}": control}, **options)


def _names(given: Any) -> tuple[str, str]:
    try:
        strain, stress = given
    except (TypeError, ValueError):
        strain = stress = None
    if isinstance(given, str) or not isinstance(strain, str) or not isinstance(stress, str):
        raise wrong(
            "names", f"must be the names of the strain and the stress, two texts; got {given!r}"
        )
    return strain, stress


def _timed(model: Model, times: Any) -> Table:
    """The times; FatalError unless there are two at least."""
    check_is_model(model)
    timed = clock(times.detach() if requires_gradient(times) else times)
    if timed.steps < 2:
        raise timed.label.refuse(
            "are one only, at which nothing has happened yet; expected two at least, of which the "
            "first is the time of the initial state",
            lib.NEML2_ERROR_SHAPE,
        )
    return timed


def _ramp(name: str, timed: Table, value: Any) -> Any:
    """A number is reached at the last time; what is over time stays as it is."""
    if callable(value):
        return value
    plain = value.detach() if (follows := requires_gradient(value)) else value
    array = _numbers(name, plain)
    if array.shape[:1] == (timed.steps,):
        return value
    if array.ndim > 0:  # drive() would hold a single row from the beginning on
        raise wrong(
            name,
            f"has the shape {array.shape}; expected one number, which is reached at the last time, "
            f"or an array ({timed.steps}, *batch), a value for each of the {timed.steps} times: to "
            f"reach one number for each point, numpy.multiply.outer(numpy.linspace(0, 1, "
            f"{timed.steps}), {name})",
        )
    passed = timed.rows - timed.rows[0]
    if follows:
        return alike(plain, passed / passed[-1]) * value
    return alike(value, passed / passed[-1] * array)


def _held(name: str, timed: Table, value: Any, rise: Any, over_time: str) -> Any:
    """Up to `value`, (*B,), and constant then."""
    array, rows = _numbers(name, value), timed.rows
    if array.shape[:1] == (timed.steps,) and array.shape[-1:] != timed.batch[-1:]:
        raise wrong(
            name,
            f"has {timed.steps} values, as many as there are times; expected one number, or one "
            f"for each point. For a {name} over time call {over_time}; for as many points as times "
            f"give {name}[None], a batch (1, {timed.steps})",
        )
    passed = rows - rows[0]
    long = passed[1] if rise is None else _numbers("rise", rise)
    if np.ndim(long) > 0 and np.shape(long) != timed.batch:
        raise wrong(
            "rise",
            f"has the shape {np.shape(long)}; expected one number"
            f"{f', or {timed.batch} as the times have' if timed.batch else ''}",
        )
    if not (np.greater(long, 0) & np.less_equal(long, passed[-1])).all():
        raise wrong(
            "rise",
            f"must be above 0 and at most as long as the test, {np.min(passed[-1]):g}; got {rise}",
        )
    axes = array.ndim - len(timed.batch)
    share = np.minimum(passed / long, 1.0)
    try:
        held = share.reshape(timed.steps, *[1] * axes, *timed.batch) * array
    except ValueError:
        raise wrong(
            name,
            f"has the shape {array.shape}, which does not broadcast with the batch {timed.batch} "
            "of the times",
        ) from None
    return alike(value, held)


def _numbers(name: str, value: Any) -> Array:
    """An array of finite numbers, of an argument of this name."""
    label = Label(name)
    return typed(as_array(value, label), label, "float64")
