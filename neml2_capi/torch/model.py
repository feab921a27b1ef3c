"""The same model with torch tensors by default, called like neml2.aoti.Model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from neml2_capi._ffi.kinds import TORCH
from neml2_capi.model import Model as _Model
from neml2_capi.model.scheduler import Scheduler
from neml2_capi.model.stub import CompiledModel

Given = Mapping[str, Any]
Tensors = dict[str, torch.Tensor]


class Model(_Model):
    """A neml2_capi.Model whose results and parameters are torch tensors, whatever the inputs are.

    `model.named_parameters()["elasticity.E"].fill_(100e3)` takes effect from the next call on.
    """

    _kind = TORCH

    if TYPE_CHECKING:  # tensors come out, whatever goes in

        def forward(
            self, inputs: Given, param_overrides: Given | None = None, solver: Any = None
        ) -> Tensors: ...
        def evaluate(
            self, inputs: Given, param_overrides: Given | None = None
        ) -> tuple[Tensors, Tensors]: ...
        def jvp(
            self, inputs: Given, tangents: Given, param_overrides: Given | None = None
        ) -> tuple[Tensors, Tensors]: ...
        def vjp(
            self, inputs: Given, cotangents: Given, param_overrides: Given | None = None
        ) -> tuple[Tensors, Tensors]: ...
        def jacobian(
            self, inputs: Given, param_overrides: Given | None = None
        ) -> tuple[Tensors, dict[str, Tensors]]: ...
        def param_jacobian(
            self, inputs: Given, param_overrides: Given | None = None
        ) -> tuple[Tensors, dict[str, Tensors]]: ...
        def param_vjp(
            self, inputs: Given, cotangents: Given, param_overrides: Given | None = None
        ) -> Tensors: ...

    @property
    def device(self) -> Any:
        """Where the model runs, a torch.device; the CPU with a scheduler.

        One on OpenCL takes and returns tensors of the CPU, since torch has none there.
        """
        return torch.device(super().device)

    @property
    def dtype(self) -> Any:
        """The element type of the floating-point variables, a torch.dtype."""
        return getattr(torch, self._dtype)


def load_model(
    stub: str | os.PathLike[str],
    name: str,
    device: Any = None,
    dtype: Any = None,
    *,
    scheduler: Scheduler | None = None,
) -> CompiledModel:
    """Load a model of a HIT stub, with torch tensors as results.

    Parameters
    ----------
    stub
        The <name>_aoti.i that stands beside an artifact.
    name
        The model in it.
    device : str or torch.device, optional
        As in neml2_capi.Model.
    dtype : str, numpy or torch type, optional
        As in neml2_capi.Model.
    scheduler
        As in neml2_capi.Model.

    Returns
    -------
    CompiledModel
        The model, called by position.

    Raises
    ------
    FatalError
        There is no such file or model, or it cannot be loaded.
    """
    return CompiledModel(Model.from_stub(stub, name, device, dtype, scheduler=scheduler))
