"""Artifacts with bounds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from neml2_capi._ffi.logs import listening
from neml2_capi.artifact import bounds as files
from neml2_capi.artifact.files import describe_any

FIVE_PERCENT = {"strain": (-0.05, 0.05)}


def bounded(
    folder: Path, source: Path, bounds: Mapping[str, Any], physical: Mapping[str, Any] | None = None
) -> Path:
    """A copy of an artifact with bounds."""
    made = folder / source.name
    shutil.copytree(source, made)
    wanted = files.from_mappings(bounds, physical)
    files.require_fit(wanted, files.sizes_of(describe_any(made, None)))
    files.write(made, wanted)
    return made


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Calls of later tests need not look for warnings of these models."""
    yield
    listening.discard("bounds")
