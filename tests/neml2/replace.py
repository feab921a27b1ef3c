"""A plugin of pytest: NEML2's own tests run on this library in place of NEML2's runtime."""

from __future__ import annotations

from typing import Any

import neml2.aoti
import neml2.aoti._shim
import pytest

from neml2_capi.neml2 import AOTIModel, Model

#: Where NEML2's tests find the runtime, by module and name.
PLACES: list[tuple[Any, str, Any]] = [
    (neml2.aoti, "Model", Model),
    (neml2.aoti, "AOTIModel", AOTIModel),
    (neml2.aoti._shim, "AOTIModel", AOTIModel),
    (neml2.aoti._aoti, "Model", Model),
    # Some look inside NEML2's class.
    (AOTIModel, "_inner", property(lambda self: self.model)),
]


def pytest_configure(config: pytest.Config) -> None:
    """Replace them for the whole run."""
    for place, name, ours in PLACES:
        setattr(place, name, ours)
