"""Models by the HIT stub that neml2-compile writes, called by position as in neml2."""

from __future__ import annotations

import os
from typing import Any

from neml2_capi.model.model import Model
from neml2_capi.model.scheduler import Scheduler

__all__ = ["CompiledModel", "load_model"]


class CompiledModel:
    """A Model that is called with its inputs by position and returns a tuple of its outputs."""

    def __init__(self, model: Model) -> None:
        #: The model behind it: parameters, options, close().
        self.model = model
        #: The type of each input by name, in order: {"strain": "SR2"}.
        self.input_spec = {variable.name: variable.type for variable in model.inputs}
        #: The type of each output, likewise.
        self.output_spec = {variable.name: variable.type for variable in model.outputs}

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Evaluate: inputs in the order of `input_spec`, outputs in that of `output_spec`."""
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
    """Load the model `name` of a HIT stub, the <name>_aoti.i that stands beside an artifact.

    `device`, `dtype` and `scheduler` are as in Model. FatalError where there is no such file or
    model.
    """
    return CompiledModel(Model.from_stub(stub, name, device, dtype, scheduler=scheduler))
