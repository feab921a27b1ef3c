"""Tests of a material by name: what a testing machine does, as one line.

    from neml2_capi import experiments

    results = experiments.tension(model, np.linspace(0, 10, 101), strain=0.01)

Each drives a model as `drive` does, whose other arguments it takes, and returns its Results. What
is prescribed over time is an array (n,), or (n, *B) with a value for each point, or a function of
time. A strain that is one number is reached linearly at the last time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi.driver.results import Results
from neml2_capi.driver.transient import drive

if TYPE_CHECKING:
    from neml2_capi.model import Model

__all__ = ["biaxial", "creep", "plane_stress", "relaxation", "tension"]

_OTHERS = dict.fromkeys(("yy", "zz", "yz", "xz", "xy"), 0.0)


def tension(model: Model, times: Any, strain: Any, **options: Any) -> Results:
    """Pull, or push, along x; all other stresses vanish.

    Parameters
    ----------
    model
        A model of stress under strain, both SR2.
    times
        As of drive().
    strain
        The strain xx over time.
    options
        Other arguments of drive(): `forces` are those beside the strain. `names` are those of the
        strain and the stress, ("strain", "stress") by default.

    Returns
    -------
    Results
        As of drive(); `strain` has all components that were found.
    """
    return _strained(model, times, {"xx": strain}, "uniaxial", options)


def biaxial(model: Model, times: Any, xx: Any, yy: Any, **options: Any) -> Results:
    """Pull along x and y; all other stresses vanish.

    Parameters
    ----------
    model, times
        As of tension().
    xx, yy
        Strains over time.
    options
        As of tension().

    Returns
    -------
    Results
        As of tension().
    """
    return _strained(model, times, {"xx": xx, "yy": yy}, "biaxial", options)


def plane_stress(model: Model, times: Any, xx: Any, yy: Any, xy: Any, **options: Any) -> Results:
    """Strain a sheet in its plane; the stresses zz, yz and xz vanish.

    Parameters
    ----------
    model, times
        As of tension().
    xx, yy, xy
        Strains over time; xy is that of the tensor, half of the angle.
    options
        As of tension().

    Returns
    -------
    Results
        As of tension().
    """
    return _strained(model, times, {"xx": xx, "yy": yy, "xy": xy}, "plane stress", options)


def creep(
    model: Model, times: Any, stress: Any, *, rise: float | None = None, **options: Any
) -> Results:
    """Hold a stress along x; all other stresses vanish.

    Parameters
    ----------
    model, times
        As of tension().
    stress : number or array (*B,)
        The stress xx that is held.
    rise
        How long it rises linearly from 0; by default the first step.
    options
        As of tension().

    Returns
    -------
    Results
        As of tension().
    """
    held = _held(times, stress, rise)
    name = options.get("names", ("strain", "stress"))[1]
    return _driven(model, times, {}, {name: {"xx": held, **_OTHERS}}, options)


def relaxation(
    model: Model, times: Any, strain: Any, *, rise: float | None = None, **options: Any
) -> Results:
    """Hold a strain along x; all other stresses vanish.

    Parameters
    ----------
    model, times
        As of tension().
    strain : number or array (*B,)
        The strain xx that is held.
    rise
        How long it rises linearly from 0; by default the first step.
    options
        As of tension().

    Returns
    -------
    Results
        As of tension().
    """
    held = _held(times, strain, rise)
    return _strained(model, times, {"xx": held}, "uniaxial", options)


def _strained(
    model: Model, times: Any, strains: dict[str, Any], control: str, options: dict[str, Any]
) -> Results:
    name = options.get("names", ("strain", "stress"))[1]
    ramps = {key: _ramp(times, value) for key, value in strains.items()}
    return _driven(model, times, ramps, {name: control}, options)


def _driven(
    model: Model,
    times: Any,
    strains: dict[str, Any],
    control: dict[str, Any],
    options: dict[str, Any],
) -> Results:
    options = dict(options)
    given = options.pop("names", ("strain", "stress"))[0]
    forces = {given: strains, **options.pop("forces", {})}
    ((output, parts),) = control.items()
    return drive(model, times, forces, control={f"{output}:{given}": parts}, **options)


def _ramp(times: Any, value: Any) -> Any:
    """A number is reached at the last time."""
    if callable(value) or np.ndim(value) > 0:
        return value
    first, last = np.asarray(times)[0], np.asarray(times)[-1]
    return (np.asarray(times) - first) / (last - first) * value


def _held(times: Any, value: Any, rise: float | None) -> Any:
    """Up to `value`, (*B,), and constant then."""
    clock = np.asarray(times)
    passed = clock - clock[0]
    share = np.minimum(passed / (passed[1] if rise is None else rise), 1.0)
    value = np.asarray(value)
    return share.reshape(share.shape + (1,) * (value.ndim - share.ndim + 1)) * value
