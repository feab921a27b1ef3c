"""Compiled material models: opened, described, evaluated and bound."""

from neml2_capi._ffi.bounds import Bound
from neml2_capi._ffi.options import Options
from neml2_capi._ffi.variables import Derivative, History, Variable, Variables
from neml2_capi.model.call import Call
from neml2_capi.model.model import Model
from neml2_capi.model.parameters import Parameters
from neml2_capi.model.scheduler import Device, Scheduler
from neml2_capi.model.state import State
from neml2_capi.model.stub import CompiledModel, load_model

__all__ = [
    "Bound",
    "Call",
    "CompiledModel",
    "Derivative",
    "Device",
    "History",
    "Model",
    "Options",
    "Parameters",
    "Scheduler",
    "State",
    "Variable",
    "Variables",
    "load_model",
]
