"""Run material models that were compiled ahead of time with AOTInductor.

    import neml2_capi

    model = neml2_capi.Model("aoti/elasticity")
    stress = model.forward({"strain": strain})["stress"]

`neml2_capi.torch.Model` is the same with torch tensors by default; torch is otherwise optional.
"""

from neml2_capi import examples, experiments, mandel
from neml2_capi._ffi.errors import (
    AggregateError,
    ConvergenceError,
    Error,
    FatalError,
    UnknownNameError,
)
from neml2_capi._ffi.interrupt import hear_signals as _hear_signals
from neml2_capi._ffi.library import version as _version
from neml2_capi._ffi.tensor import Tensor
from neml2_capi._ffi.variables import Variable
from neml2_capi.driver import Results, StepError, drive
from neml2_capi.graph import Graph, GraphInput, GraphOutput
from neml2_capi.model import Model
from neml2_capi.model.call import Call
from neml2_capi.model.scheduler import Device, Scheduler
from neml2_capi.model.stub import CompiledModel, load_model
from neml2_capi.operators import operator, register_operator, unregister_operator
from neml2_capi.sweeps import SweepError, SweepResults, sweep

__version__ = _version()
_hear_signals()

__all__ = [
    "AggregateError",
    "Call",
    "CompiledModel",
    "ConvergenceError",
    "Device",
    "Error",
    "FatalError",
    "Graph",
    "GraphInput",
    "GraphOutput",
    "Model",
    "Results",
    "Scheduler",
    "StepError",
    "SweepError",
    "SweepResults",
    "Tensor",
    "UnknownNameError",
    "Variable",
    "__version__",
    "drive",
    "examples",
    "experiments",
    "load_model",
    "mandel",
    "operator",
    "register_operator",
    "sweep",
    "unregister_operator",
]
