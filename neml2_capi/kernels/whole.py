"""Artifacts that are written aside, opened for a trial, and moved into place."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neml2_capi._ffi.errors import Error
from neml2_capi.artifact.bounds import FILE as BOUNDS
from neml2_capi.artifact.targets import runs_here
from neml2_capi.kernels.folder import KernelError, read_metadata
from neml2_capi.model import Model


class Staging:
    """A folder beside another, on the same file system, for what will replace it or be added."""

    def __init__(self, folder: Path) -> None:
        self._place = folder.resolve()
        parent = self._place.parent
        self._new = [p for p in (parent, *parent.parents) if not p.exists()]
        parent.mkdir(parents=True, exist_ok=True)
        self._scratch = Path(tempfile.mkdtemp(prefix=f".{self._place.name}.", dir=parent))
        #: Of the same name: it is the model's.
        self.folder = self._scratch / self._place.name
        self.folder.mkdir()

    def install(self, parts: Sequence[str], artifact: str = "") -> None:
        """Replace these parts of an artifact, which may be missing here, its metadata and bounds.

        `artifact` is its folder within this one, if it is not this one itself.
        """
        source, target = self.folder / artifact, self._place / artifact
        target.mkdir(parents=True, exist_ok=True)
        metadata = target / "metadata.json"
        metadata.unlink(missing_ok=True)  # a folder with metadata is whole
        trash = Path(tempfile.mkdtemp(dir=self._scratch))
        for part in parts:
            old, new = target / part, source / part
            if old.exists():
                old.rename(trash / part.replace("/", "-"))
            if new.exists():
                old.parent.mkdir(parents=True, exist_ok=True)
                new.rename(old)
        if (source / BOUNDS).exists():
            (source / BOUNDS).replace(target / BOUNDS)
        else:
            (target / BOUNDS).unlink(missing_ok=True)
        (source / "metadata.json").replace(metadata)
        self._new = []

    def remove(self) -> None:
        """Remove what was not installed, and the folders that were made for it."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        for folder in self._new:
            folder.rmdir()


#: Keys of the packages that lanes do without: they solve linear systems, and pull cotangents back
#: to parameters, themselves.
_SPARE = ("solve", "param_vjp")


def without_kernels(metadata: Any, document: Any) -> dict[str, str]:
    """The packages of an artifact that have no kernel and need one, and why.

    Parameters
    ----------
    metadata : dict
        The metadata of the artifact.
    document : dict
        The metadata of its kernels: read_metadata().
    """
    reasons = {Path(entry["package"]).name: entry["reason"] for entry in document["missing"]}
    needed = [
        value
        for segment in metadata.get("segments", ())
        for key, value in segment.items()
        if key.endswith("package") and not key.startswith(_SPARE)
    ]
    return {name: reasons[name] for name in dict.fromkeys(needed) if name in reasons}


def require_opens(artifact: Path, dtype: str) -> None:
    """KernelError if an artifact without packages cannot be opened here, without a full stop.

    Parameters
    ----------
    artifact : Path
        Its folder. Objects for other machines alone are not tried, nor are sources that no
        compiler has built.
    dtype : str
        The element type of its kernels.
    """
    document = read_metadata(artifact / "kernels" / dtype)
    if not any(map(runs_here, document["objects"])):
        return
    try:
        Model(artifact, dtype=dtype).close()
    except Error as error:
        raise KernelError(str(error).replace(f"{artifact.parent}/", "").rstrip(".")) from error


def lacks_kernel(error: KernelError) -> bool:
    """Tell whether an artifact could be opened, if it had packages."""
    return " has no kernel: " in str(error)
