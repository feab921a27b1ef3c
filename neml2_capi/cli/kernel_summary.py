"""Which packages of an artifact have kernels, for which processors, and why others have none."""

from __future__ import annotations

from pathlib import Path

from neml2_capi.artifact.files import kernels_file
from neml2_capi.kernels.folder import directory_checksum, read_metadata


def kernels_of(leaf: Path) -> dict[str, str]:
    """What there is for each package, by its file name; nothing where no kernels were made."""
    file = kernels_file(leaf)
    if not file.is_file():
        return {}
    document = read_metadata(file.parent)
    targets = ", ".join(entry["target"] for entry in document["objects"])
    built = targets or "in C, not built: neml2-capi build-kernels ARTIFACT builds it"
    found = {Path(entry["package"]).name: entry["reason"] for entry in document["missing"]}
    for entry in document["kernels"]:
        package = leaf / Path(entry["package"]).name
        there = directory_checksum(package) if package.is_file() else None
        fits = there == entry["package_checksum"]
        found[package.name] = built if fits else "of another package: compile the model again"
    return found
