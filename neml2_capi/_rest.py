"""Inputs for a model if the caller has none, and checks of its tangent where jobs begin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import Error
from neml2_capi._ffi.library import lib
from neml2_capi.model import Model
from neml2_capi.umat.guess import TEMPERATURES, TIMES

_STRAIN = 1e-3  # of which most materials have left, or are about to leave, elasticity
_ROOM_TEMPERATURE = 300.0
_NEAR = 1e-6  # beside no strain at all
_POINTS = 3
# The identity, if zeros are no rotation and no deformation gradient.
_IDENTITY = {"R2": np.eye(3), "Rot": np.zeros(3)}


def plausible(
    model: Model, points: int, seed: int = 1, strain: float = _STRAIN
) -> dict[str, NDArray[np.float64]]:
    """Return a step from rest: strains of random direction, a unit of time, history zero."""
    random = np.random.default_rng(seed)
    inputs: dict[str, NDArray[np.float64]] = {}
    for variable in model.inputs:
        name = variable.name.split("~")[0]
        value = np.zeros((points, *variable.point_shape))
        if name in TEMPERATURES:
            value += _ROOM_TEMPERATURE
        elif variable.type in _IDENTITY:
            value += _IDENTITY[variable.type]
        elif "~" in variable.name:
            pass
        elif name in TIMES:
            value += 1.0
        elif np.issubdtype(variable.dtype, np.floating):
            value += strain * random.standard_normal(value.shape)
        inputs[variable.name] = value.astype(variable.dtype)
    return inputs


def slopes_at_rest(model: Model) -> Iterator[str]:
    """Yield a warning for each derivative that is not finite where jobs begin: without any strain.

    If the values are not finite there, it is of the output. What cannot be evaluated is passed
    over, and so is a solve that fails near rest, for a state that is zero says nothing of it.
    """
    try:
        at, near = (_not_finite(model, strain) for strain in (0.0, _NEAR))
    except Error:
        return
    for what in at:
        where = "nor is it near it" if what in near else "although it is finite near it"
        yield (
            f"{what} is not finite at rest, with no strain, where jobs begin, {where}: hosts get "
            "NEML2_NON_FINITE there, and stop. Write the law so that it is smooth: "
            "torch.sqrt(x + eps) in place of torch.sqrt(x), or torch.where(x > 0, "
            "f(torch.where(x > 0, x, 1.0)), 0.0), with an argument that is safe in both branches."
        )


def _not_finite(model: Model, strain: float) -> list[str]:
    """The outputs and derivatives that are not finite at a point, in words."""
    inputs = plausible(model, _POINTS, strain=strain)
    outputs, report = model.evaluate(inputs)
    if (report["status"] > lib.NEML2_NON_FINITE).any():
        raise Error("the solve fails", lib.NEML2_NOT_CONVERGED)
    bad = [f"the output {name!r}" for name, each in outputs.items() if not np.isfinite(each).all()]
    if bad:  # and all derivatives with it
        return bad
    blocks = []
    if model.derivatives:
        call = model.bind(inputs, derivatives=True)
        call.run()
        blocks.append(call.derivatives)
    if model.parameter_derivatives:
        wanted: dict[str, dict[str, bool]] = {}
        for each in model.parameter_derivatives:
            wanted.setdefault(each.output, {})[each.variable] = True
        call = model.bind(inputs, derivatives=wanted)
        call.run()
        blocks.append(call.derivatives)
    return [
        f"the derivative of {output!r} with respect to {variable!r}"
        for table in blocks
        for output, row in table.items()
        for variable, block in row.items()
        if not np.isfinite(block).all()
    ]
