"""Make an artifact small enough to commit, and free of the paths of the machine that compiled it.

Symbols for debugging, the source of the kernels and the commands of the compiler go; everything
that a runtime reads stays: the shared object, its metadata and the source of its wrapper. Entries
are stored uncompressed, as torch writes them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

# The folder part of a path that assertions carry into the object: up to the package that the file
# is of, or all of it for the compiler's scratch folder.
_MACHINE_PATH = re.compile(rb"/[\w.+/-]*?(?:/site-packages/|/torchinductor_\w+/\w+/)")

_EPOCH = (1980, 1, 1, 0, 0, 0)


def shrink(artifact: Path, copy: Path) -> None:
    """Copy the artifact folder to the folder `copy`, each package shrunk; its stub beside it.

    The stub names the folder that it stands beside: under another name there is none.
    """
    shrink_all(artifact, copy)
    if copy.name == artifact.name:
        stub = artifact.with_name(f"{artifact.name}_aoti.i")
        copy.with_name(stub.name).write_bytes(stub.read_bytes())


def shrink_all(folder: Path, copy: Path) -> None:
    """Copy a folder to the folder `copy`, each package in it shrunk."""
    shutil.rmtree(copy, ignore_errors=True)
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        destination = copy / file.relative_to(folder)
        destination.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".pt2":
            _shrink_package(file, destination)
        else:
            destination.write_bytes(file.read_bytes())


def _shrink_package(source: Path, destination: Path) -> None:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(destination, "w") as new:
        for entry in old.infolist():
            name, data = entry.filename, old.read(entry)
            if name.endswith((".kernel.cpp", ".kernel_metadata.json")):
                continue
            if name.endswith(".wrapper.cpp"):
                data = data.partition(b"// Compile cmd")[0]
            elif name.endswith(".so"):
                data = _without_machine_paths(_stripped(data))
            if _MACHINE_PATH.search(data):
                raise RuntimeError(f"{source}: {name} still holds a machine path")
            new.writestr(zipfile.ZipInfo(name, _EPOCH), data)


def _stripped(shared_object: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "package.so"
        path.write_bytes(shared_object)
        subprocess.run(["strip", "--strip-unneeded", str(path)], check=True)
        return path.read_bytes()


def _without_machine_paths(shared_object: bytes) -> bytes:
    # The length is kept: linkers let strings share their ends.
    return _MACHINE_PATH.sub(lambda match: b"." * (len(match[0]) - 1) + b"/", shared_object)
