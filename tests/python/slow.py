"""Parameters of which some take so long that the quick tier is content with the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def later(values: Iterable[Any], slow: Collection[Any], why: str = "takes seconds") -> list[Any]:
    """Return the values for parametrize(), of which the slow ones are marked for the full tier."""
    return [pytest.param(v, marks=pytest.mark.full(why)) if v in slow else v for v in values]
