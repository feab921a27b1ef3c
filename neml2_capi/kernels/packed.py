"""Artifacts as archives, which the library opens in memory."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

from neml2_capi.artifact.bounds import FILE as BOUNDS
from neml2_capi.artifact.targets import SYSTEM
from neml2_capi.kernels.folder import METADATA, read_metadata, system_of


def files_of(root: Path, patterns: Sequence[str]) -> dict[str, bytes]:
    """The files below a folder that match, by their names in it."""
    paths = sorted(path for pattern in patterns for path in root.glob(pattern) if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def packed(files: dict[str, bytes]) -> bytes:
    """An archive of stored entries, the same for the same files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return content.getvalue()


def kernels_alone(
    root: Path, real: str = "float64", *, objects: bool = True, system: str = SYSTEM
) -> bytes | None:
    """The archive of an artifact without its packages, and with objects of a system if asked for.

    None if it has no kernels of this element type. KernelError if kernels.json is damaged.
    """
    leaf = f"kernels/{real}"
    files = files_of(root, ["metadata.json", BOUNDS, f"{leaf}/{METADATA}"])
    if f"{leaf}/{METADATA}" not in files:
        return None
    document = read_metadata(root / leaf)
    for kernel in document["kernels"]:
        kernel["package_checksum"] = None
    document["objects"] = [
        entry for entry in document["objects"] if objects and system_of(entry) == system
    ]
    files |= files_of(root, [f"{leaf}/{entry['file']}" for entry in document["objects"]])
    files[f"{leaf}/{METADATA}"] = json.dumps(document, separators=(",", ":")).encode()
    return packed(files)
