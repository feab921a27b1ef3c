"""Compiled models and packages among torch tensors.

`Module` is a compiled model as a torch.nn.Module: gradients run through it, and its promoted
parameters can be trained. `Graph` is one package, with gradients by its vjp package.

`Model` is neml2_capi.Model with torch tensors by default, called like neml2.aoti.Model. What
differs from neml2.aoti.Model:

- Results carry no gradient: derivatives come from jvp(), vjp(), jacobian() and their like for
  parameters. Module has results with one.
- jvp() costs one direction, for models with sub-batch axes too; vjp() and evaluate() are new.
- A missing cotangent of param_vjp() is zero.
- set_parameter() copies the value. Change it later through named_parameters().
- An input that the model does not have, or one of another element type, is an error.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "neml2_capi.torch needs torch, which is not installed: pip install torch. Without it, "
        "neml2_capi.Model takes and returns numpy arrays.",
        name="torch",
    ) from error

from neml2_capi.torch._graph import Graph
from neml2_capi.torch.model import Model, load_model
from neml2_capi.torch.module import Module

__all__ = ["Graph", "Model", "Module", "load_model"]
