"""An artifact whose parameters begin with fitted values."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.outside import require_outside
from neml2_capi.driver.arguments import file_name
from neml2_capi.kernels.build import build
from neml2_capi.kernels.folder import KernelError

if TYPE_CHECKING:
    from neml2_capi.model import Model


def require_new(target: Path) -> None:
    """FatalError if there is something at a path already."""
    if target.exists():
        raise FatalError(f"{target} exists; name a new folder", lib.NEML2_ERROR_FILE, "path")


def write_artifact(model: Model, values: Mapping[str, float], path: str | os.PathLike[str]) -> None:
    """Copy the artifact of a model, with other values of parameters, and compile its kernels."""
    target = Path(file_name("path", path))
    require_outside(target)
    source = Path(model._source.path)
    source = source if source.is_dir() else source.parent
    if not (source / "metadata.json").is_file():
        raise FatalError(
            f"{source} has no metadata.json, which holds the values: set them with "
            "Model.set_parameter(), or [parameters] of a file",
            lib.NEML2_ERROR_UNSUPPORTED,
            "path",
        )
    require_new(target)
    shutil.copytree(source, target)
    file = target / "metadata.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    aliases = {v: k for k, v in document.get("boundary_aliases", {}).get("parameters", {}).items()}
    for name, value in values.items():
        known = model.parameters.names[model.parameters.resolve(name)]
        inside = aliases.get(known, known)
        for entry in document["parameters"]:
            if entry["name"] == inside:
                entry["values"] = [value]
    file.write_text(json.dumps(document, indent=2), encoding="utf-8")
    try:
        for kernels in sorted((target / "kernels").glob("*")):
            if kernels.is_dir():
                build(kernels, [])
    except KernelError as error:
        shutil.rmtree(target)
        raise FatalError(
            f"the kernels could not be compiled for these values: {error}",
            lib.NEML2_ERROR_RUNTIME,
            "path",
        ) from error
