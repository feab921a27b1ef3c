"""Copies and pickles of models and graphs: the file is opened again, and set as it was."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neml2_capi._ffi.tensor import Tensor

if TYPE_CHECKING:
    from neml2_capi.model.model import Model
    from neml2_capi.model.scheduler import Device


def absolute(path: str | os.PathLike[str]) -> str:
    """A path that stays when the working folder becomes another; links stay links."""
    name = os.fsdecode(path)
    return os.path.abspath(name) if name else name  # noqa: PTH100


class Source(NamedTuple):
    """How a model was loaded."""

    #: Absolute.
    path: str
    #: The name of the model where the path is that of a stub of several.
    name: str | None
    device: str | None
    dtype: str | None
    runtime: str = "auto"
    #: Those of the scheduler, if there is one.
    devices: tuple[Device, ...] | None = None


class Setting(NamedTuple):
    """What was done to a model since it was loaded."""

    options: dict[str, Any]
    parameters: dict[str, Any]
    #: What a class of yours keeps beside.
    attributes: dict[str, Any]


def setting_of(model: Model) -> Setting:
    """The options that were changed, and all parameters, copied."""
    options, before = model.options, model._options_at_load
    parameters = model.named_parameters()
    return Setting(
        {name: value for name, value in options.items() if value != before[name]},
        {name: np.array(Tensor(parameters[name])) for name in parameters},
        {name: value for name, value in vars(model).items() if name not in model._loaded},
    )


def reopened(cls: type[Model], engine: str, source: Source, setting: Setting) -> Model:
    """A model like one that was loaded before."""
    model = cls.__new__(cls, engine=engine)
    model._load_from(source)
    model.options.update(setting.options)
    for name, value in setting.parameters.items():
        model.set_parameter(name, value)
    vars(model).update(setting.attributes)
    return model
