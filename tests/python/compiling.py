"""What tests do where nothing may be compiled."""

from __future__ import annotations

import os

import pytest


def skip_unless_allowed(what: str) -> None:
    """Skip the test that would compile `what`, where NEML2_CAPI_COMPILE is 0."""
    if os.environ.get("NEML2_CAPI_COMPILE") == "0":
        pytest.skip(f"{what} would have to be compiled, and NEML2_CAPI_COMPILE is 0")
