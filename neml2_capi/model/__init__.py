"""Compiled material models: opened, described, evaluated and bound."""

from neml2_capi.model.call import Call
from neml2_capi.model.model import Model
from neml2_capi.model.scheduler import Device, Scheduler
from neml2_capi.model.stub import CompiledModel, load_model

__all__ = ["Call", "CompiledModel", "Device", "Model", "Scheduler", "load_model"]
