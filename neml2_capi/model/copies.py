"""Copies and pickles of models: the artifact is opened again, and set as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neml2_capi._ffi.tensor import Tensor

if TYPE_CHECKING:
    from neml2_capi.model.model import Model
    from neml2_capi.model.source import Source


# The attributes that a model has when it was loaded.
_OWN = ("_engine", "_options_at_load", "_source")


class Setting(NamedTuple):
    """Changes to a model since it was loaded."""

    options: dict[str, Any]
    parameters: dict[str, Any]
    #: Attributes that a class of yours keeps beside.
    attributes: dict[str, Any]


def setting_of(model: Model) -> Setting:
    """The options that were changed, and all parameters, copied."""
    options, before = model.options, model._options_at_load
    parameters = model.named_parameters()
    return Setting(
        {name: value for name, value in options.items() if value != before[name]},
        {name: np.array(Tensor(parameters[name])) for name in parameters},
        {name: value for name, value in vars(model).items() if name not in _OWN},
    )


def reopened(cls: type[Model], engine: str, source: Source, setting: Setting) -> Model:
    """A model like one that was loaded before."""
    model = cls.__new__(cls)
    model._load(source, engine)
    model.options.update(setting.options)
    for name, value in setting.parameters.items():
        model.set_parameter(name, value)
    vars(model).update(setting.attributes)
    return model
