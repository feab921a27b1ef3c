"""What capture.py wrote, as kernels of the artifact that neml2-compile wrote."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from neml2_capi.kernels.folder import KernelError, write_sources
from neml2_capi.kernels.program import Program


def collect(scratch: Path) -> list[Path]:
    """Write the kernels of every leaf that was captured; return their folders.

    Parameters
    ----------
    scratch : Path
        The folder that capture.py wrote.

    Raises
    ------
    KernelError
        Nothing was captured, or the artifact has no metadata.json.
    """
    found: dict[Path, dict[str, Program | str]] = defaultdict(dict)
    versions: dict[str, str] = {}
    for file in sorted(scratch.glob("*.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        package = Path(document["package"])
        versions = {name: document[name] for name in ("neml2", "torch")}
        program = document.get("program")
        found[package.parent][package.name] = (
            Program.from_json(json.dumps(program)) if program else document["reason"]
        )
    if not found:
        raise KernelError("neml2-compile compiled no graph; kernels need NEML2 3.1 or later")
    made = []
    for leaf, programs in sorted(found.items()):
        root = leaf.parents[1]
        path = root / "metadata.json"
        if not path.is_file():
            raise KernelError(f"{path} is missing: neml2-compile wrote packages, but no metadata")
        metadata = json.loads(path.read_text(encoding="utf-8"))
        where = leaf.relative_to(root).as_posix()
        made.append(write_sources(root, where, programs, metadata, versions))
    return made
