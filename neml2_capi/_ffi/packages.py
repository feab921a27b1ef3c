"""Entries of a package, for those who ask about it before the library does."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

#: As the library's limit of JSON documents.
_LONGEST = 1 << 26


def entry_of(package: Path | str | bytes, suffix: str) -> bytes | None:
    """Read the first entry whose name ends so.

    None if there is none, or if it is damaged or compressed: a short package could fill
    memory. What is wrong with a package, the library says.
    """
    file = io.BytesIO(package) if isinstance(package, bytes) else Path(package)
    if isinstance(file, Path) and not file.is_file():  # endless, maybe
        return None
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if not entry.filename.endswith(suffix):
                    continue
                stored = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 1
                return archive.read(entry) if stored else None
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError):
        pass
    return None


def json_of(text: bytes | None) -> Any:
    """Return what a document says, or None for one that is damaged, too long or too deep."""
    if text is None or len(text) > _LONGEST:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
