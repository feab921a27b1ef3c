"""Models by the HIT stub that neml2-compile writes, called by position as in neml2."""

from __future__ import annotations

import os
from typing import Any

from neml2_capi.model.model import Model
from neml2_capi.model.scheduler import Scheduler

__all__ = ["CompiledModel", "load_model"]


class CompiledModel:
    """A Model that is called with its inputs by position and returns a tuple of its outputs.

    Parameters
    ----------
    model
        The model, which it shares.
    """

    def __init__(self, model: Model) -> None:
        #: The model behind it: parameters, options, close().
        self.model = model
        #: The type of each input by name, in order: {"strain": "SR2"}.
        self.input_spec = {variable.name: variable.type for variable in model.inputs}
        #: The type of each output, likewise.
        self.output_spec = {variable.name: variable.type for variable in model.outputs}

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Evaluate the model.

        Parameters
        ----------
        *inputs : array
            The inputs in the order of `input_spec`, of the shapes of Model.forward().

        Returns
        -------
        tuple of array
            The outputs in the order of `output_spec`.

        Raises
        ------
        TypeError
            There are too few inputs, or too many.
        FatalError
            As in Model.forward().
        ConvergenceError
            As in Model.forward().
        """
        if len(inputs) != len(self.input_spec):
            raise TypeError(
                f"{len(self.input_spec)} inputs are needed ({', '.join(self.input_spec)}), "
                f"{len(inputs)} were given"
            )
        outputs = self.model.forward(dict(zip(self.input_spec, inputs, strict=True)))
        return tuple(outputs.values())

    def __repr__(self) -> str:
        return f"<CompiledModel {self.model!r}>"


def load_model(
    stub: str | os.PathLike[str],
    name: str,
    device: Any = None,
    dtype: Any = None,
    *,
    scheduler: Scheduler | None = None,
) -> CompiledModel:
    """Load a model of a HIT stub, the <name>_aoti.i that stands beside an artifact.

    Parameters
    ----------
    stub
        The path of the stub.
    name
        The model in it.
    device : str or torch.device, optional
        As in Model.
    dtype : str, numpy or torch type, optional
        As in Model.
    scheduler
        As in Model.

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
