"""The parameters of a model as a live mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, SupportsIndex

from neml2_capi.model.opened import Opened


class Parameters(Mapping[str, Any]):
    """Views of a model's parameters, by qualified name or, if it is unique, last component.

    A view has the shape (*B, *base_shape), with B empty or one value per point. It shares the
    model's memory: `parameters["E"][...] = 100e3` takes effect from the next evaluation on, and so
    does `parameters["E"] = 100e3`, which can also change B. A view taken before B changed keeps the
    old values, and no longer writes to the model.
    """

    def __init__(self, model: Opened) -> None:
        self._model, self._variables = model, model.signature.parameters

    def __getitem__(self, name: str) -> Any:
        return self._model.parameter(self._variables.resolve(name))

    def __setitem__(self, name: str, value: Any) -> None:
        self._model.set_parameter(self._variables.resolve(name), value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables.names)

    def __len__(self) -> int:
        return len(self._variables)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            "the parameters of a model cannot be copied or pickled: take "
            "copy.deepcopy(dict(model.named_parameters())), or copy the Model"
        )

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        if self._model.closed:
            return "<Parameters of a closed model>"
        return repr({name: self[name] for name in self})
