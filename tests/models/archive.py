"""The compiled models of the tests as data: archives, and manifests of what they were made from.

The packages are for x86-64-v3, and shrunk. Nobody compiles a model to run the tests; compile.py
looks here first, and compiles what is not here or was made by another recipe.

    models.tar.xz     the folders of compiled models, one for each name
    graphs.tar.xz     the scalar operations of their graphs, of which kernels are made
    models.json ...   {name: {"recipe": digest of its recipe, "files": {path: digest}}}
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import io
import json
import lzma
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

# Pythons before 3.11.4 have no filters.
_SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}

FOLDER = Path(__file__).resolve().parent
MODELS, GRAPHS = "models", "graphs"


def digest(recipe: Any) -> str:
    """Return a digest of the texts and options of a recipe."""
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]


@functools.cache
def manifest(kind: str = MODELS) -> Mapping[str, Any]:
    path = FOLDER / f"{kind}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def archived(name: str, recipe: Any, kind: str = MODELS) -> Path | None:
    """The unpacked folder of a name; None if it is not in the archive, or of another recipe."""
    entry = manifest(kind).get(name)
    if entry is None or entry["recipe"] != digest(recipe):
        return None
    return _unpacked(kind) / name


@functools.cache
def _unpacked(kind: str) -> Path:
    """The folder of an archive in the cache; unpacked by the first process that wants it."""
    content = (FOLDER / f"{kind}.tar.xz").read_bytes()
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neml2_capi"
    folder = base / kind / hashlib.sha256(content).hexdigest()[:16]

    def unpack(output: Path) -> None:
        with tarfile.open(fileobj=io.BytesIO(lzma.decompress(content))) as archive:
            archive.extractall(output, **_SAFELY)

    return made_once(folder, unpack)


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, which the first of all processes makes, by calling `make` with a path for it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            # Renamed when complete: a folder of this name is always whole.
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                output = Path(scratch) / "output"
                make(output)
                output.rename(folder)
    return folder


def digests(folder: Path) -> dict[str, str]:
    """A digest for the path of each file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in files
    }


def write(folders: Iterable[tuple[str, Path, Any]], kind: str = MODELS) -> None:
    """Write an archive of (name, folder, recipe) and its manifest; the same for the same files."""
    entries: dict[str, Any] = {}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, folder, recipe in sorted(folders):
            entries[name] = {"recipe": digest(recipe), "files": digests(folder)}
            for path in entries[name]["files"]:
                member = tarfile.TarInfo(f"{name}/{path}")
                member.size = (folder / path).stat().st_size
                with (folder / path).open("rb") as file:
                    archive.addfile(member, file)
    # A dictionary as large as all of it: packages resemble each other.
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 2**28}]
    compressed = lzma.compress(buffer.getvalue(), filters=filters)
    (FOLDER / f"{kind}.tar.xz").write_bytes(compressed)
    (FOLDER / f"{kind}.json").write_text(json.dumps(entries, indent=1) + "\n")
