"""One shared object for the programs that load a user material: `neml2-capi plugin`.

    import neml2_capi.plugin

    neml2_capi.plugin.make("aoti/combined_hardening", "libsteel.so")

It holds the runtime, the artifact and the mapping, and needs no other file: it exports `umat_` and
`vumat_`, and the generic behaviour `NEML2` of MFront's interface.
"""

from __future__ import annotations

import io
import json
import os
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

from neml2_capi._ffi.errors import Error
from neml2_capi._ffi.errors import check as checked
from neml2_capi._ffi.library import ffi, lib, library_path
from neml2_capi._ffi.outside import require_outside
from neml2_capi._ffi.source import NativeSource
from neml2_capi.kernels.folder import KernelError, read_metadata
from neml2_capi.model import Model
from neml2_capi.plugin.elf import with_segment
from neml2_capi.plugin.mapping import HOSTS, HostMapping, PluginError, check, guessed, read

__all__ = ["HOSTS", "PluginError", "make"]

_MAGIC = b"neml2 artifact\n\0"


def make(
    artifact: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    mapping: str | os.PathLike[str] | None = None,
    host: str = "",
    packages: bool = False,
) -> list[str]:
    """Write the plug-in of an artifact.

    Parameters
    ----------
    artifact
        Its folder.
    output
        The library to write, lib<name>.so; its name is the material's.
    mapping
        The mapping file, which `neml2-capi umat` drafts; by default it is as drafted.
    host
        The program that will load it, "abaqus", "calculix" or "kratos"; by default what it passes
        tells.
    packages
        Whether the packages go in although kernels do all.

    Returns
    -------
    list of str
        What the library holds, a line each.

    Raises
    ------
    PluginError
        The mapping does not fit the artifact, or is unclear.
    FatalError
        The output is inside the installed package.
    """
    output, root = Path(output), Path(artifact)
    require_outside(output)
    shell = Path(library_path()).with_name("libneml2_plugin.so")
    if not shell.is_file():
        raise PluginError(f"There is no {shell}: install the wheel of neml2_capi.")
    with Model(root) as model:
        if mapping is None:
            wanted = guessed(model, output.stem.removeprefix("lib"))
        else:
            wanted = read(mapping, model)
        wanted.host = host or wanted.host
        check(wanted, model)
    archive = _kernels(root)
    if packages or archive is None or not _opens(archive):
        archive = _packed(_files(root, ("metadata.json", "cpu/float64/*", "kernels/float64/*")))
        packages = True
    (provider,) = shell.parent.glob("libn2*.so")
    parts = (json.dumps(wanted.document()).encode(), archive, provider.read_bytes())
    head = _MAGIC + struct.pack("<3Q", *map(len, parts))
    # A running host may have the file of before mapped: that one stays whole.
    made = output.with_name(f".{output.name}.{os.getpid()}")
    made.write_bytes(with_segment(shell.read_bytes(), head + b"".join(parts)))
    made.chmod(0o755)
    made.replace(output)
    return list(_told(wanted, packages, output))


def _told(mapping: HostMapping, packages: bool, output: Path) -> Iterator[str]:
    size = output.stat().st_size / 1e6
    yield f"{output}: {size:.1f} MB, {'packages and kernels' if packages else 'kernels'}"
    for name, places in (("STATEV", mapping.states), ("PROPS", mapping.parameters)):
        for place in places:
            last = place.first + place.size - 1
            where = f"{place.first}" if last == place.first else f"{place.first} to {last}"
            yield f"{name:6} {where:10} {place.name}"
    for constant in mapping.constants:
        yield f"value  {', '.join(f'{v:g}' for v in constant.values):10} {constant.name}"
    if mapping.host in ("", "calculix"):
        yield _of_calculix(output.name)


def _of_calculix(name: str) -> str:
    """How a deck names the library, which CalculiX finds by capitals without an underscore."""
    stem = name.removesuffix(".so").removeprefix("lib").upper()
    word = re.sub("[^A-Z0-9]", "", stem) or "STEEL"
    if name == f"lib{word}.so":
        return f"CalculiX: *MATERIAL, NAME=@ABAQUS_{word}@1, or @ABAQUSNL_{word}@1 with NLGEOM"
    looks = f"lib{stem.split('_')[0]}.so"
    return f"CalculiX would look for {looks}: for it, call the file lib{word}.so (@ABAQUS_{word}@1)"


def _files(root: Path, patterns: tuple[str, ...]) -> dict[str, bytes]:
    paths = sorted(path for pattern in patterns for path in root.glob(pattern) if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def _kernels(root: Path) -> bytes | None:
    """The artifact without its packages; None if it has no kernels."""
    files = _files(root, ("metadata.json", "kernels/float64/kernels.json", "kernels/float64/*.so"))
    if "kernels/float64/kernels.json" not in files:
        return None
    try:
        kernels = read_metadata(root / "kernels" / "float64")
    except KernelError as error:
        raise PluginError(str(error)) from error
    for kernel in kernels["kernels"]:
        kernel["package_checksum"] = None
    files["kernels/float64/kernels.json"] = json.dumps(kernels).encode()
    return _packed(files)


def _packed(files: dict[str, bytes]) -> bytes:
    """An archive of stored entries, the same for the same files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return content.getvalue()


def _opens(archive: bytes) -> bool:
    model = ffi.new("neml2_model **")
    try:
        checked(lib.neml2_model_open(model, NativeSource(content=archive).pointer))
    except Error:
        return False
    finally:
        lib.neml2_model_free(model)
    return True
