"""Artifacts as `neml2-capi compile --kernels only` writes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from kernel_setup import with_kernels


def stripped_copy(name: str, into: Path) -> Path:
    """The artifact of a model with kernels, without its packages, as a folder of `into`."""
    root = shutil.copytree(with_kernels(name), into / name)
    shutil.rmtree(root / "cpu")
    for path in root.glob("kernels/*/kernels.json"):
        document = json.loads(path.read_text())
        for kernel in document["kernels"]:
            kernel["package_checksum"] = None
        path.write_text(json.dumps(document))
    return root
