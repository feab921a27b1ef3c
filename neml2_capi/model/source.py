"""Source of a model, by the arguments of Model()."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.model.scheduler import Device, Scheduler, not_a_scheduler


class View(NamedTuple):
    """View of a law: by another strain, in other axes, or under a hypothesis."""

    strain_measure: str | None = None
    stress_measure: str | None = None
    material_axes: bool = False
    hypothesis: str = "tridimensional"
    #: What strain and stress are called, if they are not found.
    strain: str | None = None
    stress: str | None = None

    @property
    def of_state(self) -> str:
        """Views that the state of points depends on: "material_axes, hypothesis plane_stress"."""
        return ", ".join(
            word
            for word, is_there in (
                ("material_axes", self.material_axes),
                (f"hypothesis {self.hypothesis}", self.hypothesis != View().hypothesis),
                (f"strain_measure {self.strain_measure}", self.strain_measure is not None),
            )
            if is_there
        )


def view_of(
    strain_measure: str | None,
    stress_measure: str | None,
    material_axes: bool | None,
    hypothesis: str | None,
    strain: str | None,
    stress: str | None,
) -> View:
    """View of a law, by the arguments of Model(): None is the law as it is."""
    return View(
        strain_measure,
        stress_measure,
        False if material_axes is None else material_axes,
        View().hypothesis if hypothesis is None else hypothesis,
        strain,
        stress,
    )


class Source(NamedTuple):
    """Arguments by which a model was loaded."""

    #: Absolute.
    path: str
    #: The name of the model if the path leads to a stub of several.
    name: str | None
    device: str | None
    dtype: str | None
    runtime: str = "auto"
    #: Devices of the scheduler, if there is one.
    devices: tuple[Device, ...] | None = None
    view: View = View()


def source_of(
    path: str,
    name: str | None,
    device: Any,
    dtype: Any,
    runtime: str,
    scheduler: Scheduler | None,
    view: View,
) -> Source:
    """Source of a model, by the arguments of Model()."""
    target = _target(device, dtype)
    if scheduler is None:
        return Source(path, name, *target, runtime, view=view)
    if not isinstance(scheduler, Scheduler):
        raise not_a_scheduler(scheduler)
    if target[0] is not None or runtime != "auto":
        raise FatalError(
            "the scheduler has the devices and their runtimes: leave "
            f"{'device' if target[0] else 'runtime'} out",
            lib.NEML2_ERROR_ARGUMENT,
            "device" if target[0] else "runtime",
        )
    return Source(path, name, *target, devices=scheduler.devices, view=view)


def _target(device: Any, dtype: Any) -> tuple[str | None, str | None]:
    """The names of a device and an element type; None for the defaults."""
    name = None
    if dtype is not None and dtype != "":
        # torch.float64 is written "torch.float64"; numpy knows the name of everything else.
        name = str(dtype).removeprefix("torch.")
        if not isinstance(dtype, str) and name == str(dtype):
            name = np.dtype(dtype).name
    return str(device) if device else None, name
