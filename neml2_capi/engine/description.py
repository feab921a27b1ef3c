"""Content of an artifact, as neml2_model_describe() says it; capi/artifact/metadata.h explains.

Names are those inside the model, which may have others at its boundary.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

from neml2_capi._ffi.tensor import Array

Shape = tuple[int, ...]


class Promoted(NamedTuple):
    """The key of a parameter, where values and parameters stand together."""

    parameter: str


#: What a value has inside the model: its name, if it is no parameter.
Key = str | Promoted
#: Values or directions by key, with one row per point.
Values = dict[Key, Array]


def attributes(document: Any) -> Any:
    """A description whose objects have their members as attributes."""
    if isinstance(document, dict):
        return SimpleNamespace(**{name: attributes(value) for name, value in document.items()})
    return [attributes(each) for each in document] if isinstance(document, list) else document


def point_shape(variable: Any) -> Shape:
    """The shape of a described variable at one point."""
    return (*variable.sub_batch_shape, *variable.base_shape)
