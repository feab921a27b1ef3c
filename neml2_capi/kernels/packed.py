"""Artifacts as archives, which the library opens in memory."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

from neml2_capi.kernels.folder import METADATA, read_metadata


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


def kernels_alone(root: Path, real: str = "float64", *, objects: bool = True) -> bytes | None:
    """The archive of an artifact without its packages, and with objects if asked for.

    None if it has no kernels of this element type. KernelError if kernels.json is damaged.
    """
    leaf = f"kernels/{real}"
    patterns = ["metadata.json", f"{leaf}/{METADATA}", *([f"{leaf}/*.so"] if objects else [])]
    files = files_of(root, patterns)
    if f"{leaf}/{METADATA}" not in files:
        return None
    document = read_metadata(root / leaf)
    for kernel in document["kernels"]:
        kernel["package_checksum"] = None
    if not objects:
        document["objects"] = []
    files[f"{leaf}/{METADATA}"] = json.dumps(document, separators=(",", ":")).encode()
    return packed(files)
