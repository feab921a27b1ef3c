"""The folder of an artifact's kernels: sources, metadata and objects.

ARTIFACT/kernels/float64/
  kernels.json           what there is, and what has no kernel and why
  NAME.c                 the kernel of cpu/float64/NAME.pt2
  kernels.c              the list of them
  *.h                    all that the sources include; without one, that of this package counts
  x86-64-v3.so ...       objects, one for each target: of Windows .dll, of macOS .dylib
"""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neml2_capi._document import FILE_NAME, MAYBE, read_json
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.outside import require_outside
from neml2_capi._ffi.refusals import Refusal
from neml2_capi.artifact.files import metadata_file
from neml2_capi.artifact.lock import locked
from neml2_capi.kernels.prepare import prepared_kernels
from neml2_capi.kernels.program import Array, Program, no_search_for_cycles
from neml2_capi.kernels.tables import kernel_set, of_scalars, stored, structure

#: Of kernels.json.
VERSION = 1
METADATA = "kernels.json"
_ARRAY: Json = {
    "name": str,
    "shape": [int],
    "per_point": bool,
    "parts": [{"name": str, "offset": int, "size": int}],
}
#: What read_metadata() makes sure of.
_FORM: Json = {
    "model": str,
    "made_with": {str: str},
    "metadata_checksum": (int, None, MAYBE),
    "headers": {str: str},
    "kernels": [
        {
            "name": str,
            "source": FILE_NAME,
            "source_checksum": str,
            "package": str,
            "package_checksum": (int, None),
            "graph_checksum": str,
            "graph_nodes": int,
            "operations": int,
            "real": str,
            "inputs": [{**_ARRAY, "changes": bool}],
            "outputs": [
                {
                    **_ARRAY,
                    "zeros": [int],
                    "constants": {str: str},
                    "of_scalars": (list, MAYBE),
                    "stored": (int, MAYBE),
                }
            ],
        }
    ],
    "missing": [{"package": str, "reason": str}],
    "objects": [
        {
            "file": FILE_NAME,
            "target": str,
            "machine": str,
            "system": (str, MAYBE),
            "lanes": int,
            "compiler": str,
            "flags": [str],
            "checksum": str,
            "size": int,
        }
    ],
}
#: The headers of this package.
C = Path(__file__).parent / "c"
HEADERS = (
    "neml2_kernel.h",
    "lanes.h",
    "rows.h",
    "sites.h",
    "powers.h",
    "trigonometry.h",
    "special.h",
    "functions.h",
)

Json = dict[str, Any]


class KernelError(Refusal):
    """What cannot be done with kernels, with the file concerned and what to do."""


def write_sources(
    root: Path,
    leaf: str,
    programs: Mapping[str, Program | str],
    metadata: Json,
    versions: Mapping[str, str],
    metadata_checksum: int | None = None,
) -> Path:
    """Write sources and metadata of the kernels of an artifact; objects are build()'s.

    Parameters
    ----------
    root : Path
        The folder of the artifact, whose name is the model's.
    leaf : str
        The folder of the packages within it, such as "cpu/float64".
    programs : Mapping[str, Program | str]
        By the file names of packages: what was read from their graphs, or why there is no kernel.
    metadata : dict
        The metadata of the artifact, which names inputs and outputs.
    versions : Mapping[str, str]
        What the graphs were made with, by name: neml2, torch.
    metadata_checksum : int, optional
        CRC-32 of metadata.json if it is written later; else the file's checksum.

    Returns
    -------
    Path
        The folder of the kernels. What was there before is gone.

    Raises
    ------
    FatalError
        It is inside the installed package.
    """
    require_outside(root)
    folder = root / "kernels" / Path(leaf).name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(lock_of(folder), wait=True), no_search_for_cycles():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for header in HEADERS:
            shutil.copyfile(C / header, folder / header)
        made_with = ", ".join(f"{name} {version}" for name, version in versions.items())
        prepared = prepared_kernels(programs, metadata)
        kernels, missing = [], []
        for package, found in sorted(prepared.items()):
            where = f"{leaf}/{package}"
            if isinstance(found, str):
                missing.append({"package": where, "reason": found})
                continue
            stem = package.removesuffix(".pt2")
            told = f"Model {root.name}, {where}; made with {made_with}."
            program, text, operations = found.written(package, metadata, stem, told)
            (folder / f"{stem}.c").write_text(text, encoding="utf-8")
            kernels.append(_entry(program, stem, root / where, where, text, operations))
        names = [kernel["name"] for kernel in kernels]
        (folder / "kernels.c").write_text(kernel_set(root.name, names), encoding="utf-8")
        document = {
            "version": VERSION,
            "model": root.name,
            "made_with": dict(versions),
            "metadata_checksum": checksum_of_metadata(folder)
            if metadata_checksum is None
            else metadata_checksum,
            "headers": {header: checksum(folder / header) for header in HEADERS},
            "kernels": kernels,
            "missing": missing,
            "objects": [],
        }
        write_metadata(folder, document)
    return folder


def _entry(
    program: Program, stem: str, package: Path, where: str, text: str, operations: int
) -> Json:
    return {
        "name": stem,
        "source": f"{stem}.c",
        "source_checksum": hashlib.sha256(text.encode()).hexdigest(),
        "package": where,
        "package_checksum": directory_checksum(package) if package.is_file() else None,
        "graph_checksum": program.checksum,
        "graph_nodes": program.graph_nodes,
        "operations": operations,
        "real": program.real,
        "inputs": [{**_array(array), "changes": array.changes} for array in program.inputs],
        "outputs": [
            {**_array(array), **_constants(program, number)}
            for number, array in enumerate(program.outputs)
        ],
    }


def _array(array: Array) -> Json:
    parts = [{"name": p.name, "offset": p.offset, "size": p.components} for p in array.parts]
    per_point = array.per_point
    return {"name": array.name, "shape": list(array.shape), "per_point": per_point, "parts": parts}


def _constants(program: Program, output: int) -> Json:
    """The components that are stored and zero, another constant, or computed of scalars alone.

    If zeros are not stored, how many components are.
    """
    kinds = list(zip(structure(program, output), stored(program, output), strict=True))
    values = {str(i): str(program.steps[place][2]) for kind, (i, place) in kinds if kind == 2}
    told: Json = {"zeros": [i for kind, (i, _) in kinds if kind == 1], "constants": values}
    told["of_scalars"] = of_scalars(program, output)
    if program.outputs[output].stored is not None:
        told["stored"] = len(kinds)
    return told


def folders(artifact: Path) -> list[Path]:
    """The folders of kernels of an artifact, by its folder or metadata file.

    KernelError if there are none, or no artifact.
    """
    root = artifact
    if not artifact.is_dir():
        metadata = metadata_file(artifact)
        if metadata is None:
            raise KernelError(
                f"{artifact} is no artifact: pass the folder that holds metadata.json"
            )
        root = metadata.parent
    if (root / METADATA).is_file():
        return [root]
    found = sorted(path.parent for path in root.glob(f"kernels/*/{METADATA}"))
    if not found:
        raise KernelError(
            f"{artifact} has no kernels: there is no {root}/kernels/*/{METADATA}; compile the "
            "model with: neml2-capi compile INPUT.i --kernels auto"
        )
    return found


def read_metadata(folder: Path) -> Json:
    """kernels.json. KernelError, with the key, if it is not as it is written."""
    path = folder / METADATA
    try:
        node = read_json(path)
        version = node.required("version", f"{VERSION}")
        if version.whole("a version") != VERSION:
            raise KernelError(
                f"{path} is of version {version.value}, expected {VERSION}; compile the model "
                "again with this version of neml2_capi"
            )
        node.require(_FORM)
    except FatalError as error:
        raise KernelError(f"{error}; compile the model again") from error
    document: Json = node.value
    return document


def in_single_precision(document: Json) -> bool:
    """Whether kernels compute in float32; NEML2 3.1.0 writes float64 into leaves of float32."""
    return any(kernel["real"] == "float32" for kernel in document["kernels"])


def system_of(entry: Json) -> str:
    """The system that an object is for."""
    system: str = entry.get("system", "linux")
    return system


def object_name(entry: Json) -> str:
    """The target of an object, and its system unless that is Linux."""
    system, target = system_of(entry), str(entry["target"])
    return target if system == "linux" else f"{target} on {system}"


def lock_of(folder: Path) -> Path:
    """The lock of the writer of a folder of kernels, which may itself be made again."""
    return folder.parent / f".{folder.name}.lock"


def write_metadata(folder: Path, document: Json) -> None:
    """Replace kernels.json at once."""
    partial = folder / f"{METADATA}.part"
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(folder / METADATA)


def directory_checksum(package: Path) -> int:
    """CRC-32 of the directory at the end of a package, which holds a checksum of every entry."""
    with zipfile.ZipFile(package) as archive, package.open("rb") as file:
        file.seek(archive.start_dir)
        return zlib.crc32(file.read())


def checksum_of_metadata(folder: Path) -> int | None:
    """CRC-32 of the metadata that the kernels of a folder belong to; None if there is none."""
    file = folder.parent.parent / "metadata.json"
    return zlib.crc32(file.read_bytes()) if file.is_file() else None


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
