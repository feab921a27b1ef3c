"""Which packages of an artifact have kernels, for which processors, and why others have none."""

from __future__ import annotations

import zipfile
from pathlib import Path

from neml2_capi.artifact.files import Description, kernels_file, packages_named, packages_of
from neml2_capi.artifact.targets import runs_here
from neml2_capi.kernels.folder import (
    KernelError,
    directory_checksum,
    object_name,
    read_metadata,
)


def kernels_of(leaf: Path) -> dict[str, str]:
    """What there is for each package, by its file name; nothing if no kernels were made."""
    file = kernels_file(leaf)
    if not file.is_file():
        return {}
    try:
        document = read_metadata(file.parent)
    except KernelError as error:
        return dict.fromkeys((package.name for package in leaf.glob("*.pt2")), str(error))
    targets = ", ".join(map(object_name, document["objects"]))
    built = targets or "in C, not built: neml2-capi build-kernels ARTIFACT builds it"
    found = {Path(entry["package"]).name: entry["reason"] for entry in document["missing"]}
    for entry in document["kernels"]:
        package = leaf / Path(entry["package"]).name
        fits = _fits(entry, package)
        found[package.name] = built if fits else "of another package: compile the model again"
    return found


def stand_in(description: Description, leaf: Path) -> bool:
    """Tell whether the kernels are for this machine, and for all packages: they run without them.

    The library solves linear systems itself: their packages need none.
    """
    file = kernels_file(leaf)
    if not file.is_file():
        return False
    try:
        document = read_metadata(file.parent)
        kernels = {Path(entry["package"]).name: entry for entry in document["kernels"]}
        wanted = set(packages_of(description))
        wanted -= set(packages_named(description["segments"], "solve_package"))
        fit = all(name in kernels and _fits(kernels[name], leaf / name) for name in wanted)
        return fit and any(map(runs_here, document["objects"]))
    except (KernelError, KeyError, TypeError):
        return False


def _fits(entry: dict[str, object], package: Path) -> bool:
    """Tell whether a kernel was made with the package that is there."""
    try:
        there = directory_checksum(package) if package.is_file() else None
    except (OSError, zipfile.BadZipFile):
        return False
    return there == entry["package_checksum"]
