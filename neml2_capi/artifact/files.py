"""What the files of an artifact say: nothing here loads a package."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neml2_capi._ffi.errors import Error, read_text
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.packages import entry_of, json_of
from neml2_capi._ffi.source import native_source

#: The form of an artifact that the library reads from every schema, see neml2_source_describe().
Description = dict[str, Any]

DTYPES = ("float64", "float32")


def describe(path: Path, dtype: str = "float64") -> Description:
    """What the artifact holds, by the names inside; FatalError if it cannot be read."""
    source = native_source(path, dtype=dtype)
    document: Description = json.loads(read_text(lib.neml2_source_describe, source))
    return document


def describe_any(path: Path, dtype: str | None) -> Description:
    """The description for the element type, or for the first that there is."""
    if dtype:
        return describe(path, dtype)
    try:
        return describe(path)
    except Error as error:
        try:
            return describe(path, "float32")
        except Error:
            raise error from None


def metadata_file(path: Path) -> Path | None:
    """The metadata of the artifact at `path`, a folder or a file, if it is in its usual place."""
    if path.is_file():
        if path.suffix == ".json":
            return path
        model = path.name.removesuffix("_aoti.i")  # of a stub
        return metadata_file(path.parent / model) if model != path.name else None
    if not path.is_dir():
        return None
    for folder in (path, path.parent if path.name == "cpu" else path, path / "cpu"):
        if (folder / "metadata.json").is_file():
            return folder / "metadata.json"
        found = sorted(folder.glob("*_meta.json"))
        if found:
            return found[0]
    return None


def metadata_of_leaf(leaf: Path) -> Path | None:
    """The metadata of the packages in a folder."""
    above = leaf.parent.parent / "metadata.json"
    return above if above.is_file() else metadata_file(leaf)


def leaves(metadata: Path) -> list[str]:
    """What packages and kernels beside metadata.json are for: "cpu/float64".

    Older packages are in one folder with it.
    """
    root = metadata.parent
    found = {f"cpu/{file.parent.name}" for file in root.glob("kernels/*/kernels.json")}
    found |= {f"{file.parent.parent.name}/{file.parent.name}" for file in root.glob("*/*/*.pt2")}
    return sorted(found)


def packages_named(value: Any, role: str = "package") -> Iterator[str]:
    """The packages that metadata of any schema names in fields that end with `role`, in order."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        key, item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(reversed(item.items()))
        elif isinstance(item, list):
            waiting.extend(("", entry) for entry in reversed(item))
        elif isinstance(item, str) and key.endswith(role) and item:
            yield item


def packages_of(description: Description) -> list[str]:
    """The packages of a described artifact, each once; none if kernels are in their place."""
    if description["kernels_only"]:
        return []
    return list(dict.fromkeys(packages_named(description["segments"])))


def kernels_file(leaf: Path) -> Path:
    """What tells of the point kernels that stand for the packages in a folder."""
    return leaf.parent.parent / "kernels" / leaf.name / "kernels.json"


@dataclass(frozen=True)
class Package:
    """What a .pt2 file says of itself; "" if it does not."""

    file: str
    bytes: int
    machine: str = ""
    instruction_sets: str = ""
    #: The processor that the compiler was told, if debug information tells it.
    march: str = ""

    @property
    def target(self) -> str:
        words = (self.machine, self.instruction_sets, f"-march={self.march}" if self.march else "")
        return " ".join(filter(None, words)) or "unknown"


def read_package(path: Path) -> Package:
    """What the package was compiled for. A damaged one says nothing."""
    size = path.stat().st_size
    known = json_of(entry_of(path, ".wrapper_metadata.json"))
    if not isinstance(known, dict):
        return Package(path.name, size)
    flags = re.search(rb"-march=([\w.-]{1,64})", entry_of(path, ".wrapper.so") or b"")
    return Package(
        path.name,
        size,
        str(known.get("AOTI_MACHINE", "")),
        str(known.get("AOTI_CPU_ISA", "")),
        flags[1].decode() if flags else "",
    )


def arity(path: Path) -> tuple[int, int] | None:
    """How many tensors a package takes and returns, as its source says; None if it does not."""
    source = entry_of(path, ".wrapper.cpp") or b""
    found = re.search(rb": AOTInductorModelBase\(\s*(\d{1,9}),\s*(\d{1,9}),", source)
    return (int(found[1]), int(found[2])) if found else None
