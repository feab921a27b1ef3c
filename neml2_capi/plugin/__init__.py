"""One shared object for the programs that load a user material: `neml2-capi plugin`.

    import neml2_capi.plugin

    neml2_capi.plugin.make("aoti/combined_hardening", "libsteel.so")

It holds the runtime, the artifacts and their mappings, and needs no other file: it exports `umat_`
and `vumat_`, and the generic behaviour `NEML2` of MFront's interface. Of several materials the one
counts whose name the host passes, CMNAME.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from neml2_capi._ffi.errors import Error
from neml2_capi._ffi.errors import check as checked
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.outside import require_writable, written
from neml2_capi._ffi.source import native_source
from neml2_capi._ffi.strings import require_path
from neml2_capi.artifact.bounds import FILE as BOUNDS
from neml2_capi.artifact.targets import SYSTEM
from neml2_capi.kernels.folder import KernelError, read_metadata, system_of
from neml2_capi.kernels.packed import files_of, kernels_alone, packed
from neml2_capi.model import Model
from neml2_capi.plugin import dylib
from neml2_capi.plugin.bounds import numbers
from neml2_capi.plugin.dylib import universal
from neml2_capi.plugin.elf import with_segment
from neml2_capi.plugin.pe import with_section
from neml2_capi.plugin.shell import Shell, provider_of, shells_of
from neml2_capi.umat.file import check, read
from neml2_capi.umat.guess import guess, in_double
from neml2_capi.umat.properties import HOSTS, Mapping, PluginError

__all__ = ["HOSTS", "PluginError", "make"]

_MAGIC = b"neml2 artifact\n\0"
#: Characters of CMNAME.
_LONGEST = 80
#: Systems by the ending of their libraries.
_SYSTEMS = {".so": "linux", ".dll": "windows", ".dylib": "macos"}
_DAMAGE = (ValueError, LookupError, ArithmeticError, RecursionError, struct.error)

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def make(
    artifact: Paths,
    output: str | os.PathLike[str],
    *,
    mapping: Paths | None = None,
    host: str = "",
    packages: bool = False,
    system: str = "",
    shell: Paths | None = None,
) -> list[str]:
    """Write the plug-in of an artifact, or of several.

    Parameters
    ----------
    artifact : path or sequence of paths
        Its folder, or several folders.
    output
        The library to write, lib<name>.so, <name>.dll for Windows or lib<name>.dylib for macOS; a
        single material has its name.
    mapping : path or sequence of paths, optional
        The mapping file, which `neml2-capi umat` drafts, or one for each artifact; by default they
        are as drafted. Each of several materials has the name of its mapping file, or else of its
        folder.
    host
        The program that will load it, "abaqus", "calculix" or "kratos"; by default what it passes
        tells.
    packages
        Whether the packages go in although kernels do all.
    system : str
        What will load it, "linux", "windows" or "macos"; by default what the ending of the output
        tells, or this system.
    shell : path or sequence of paths, optional
        For another system than this one: the wheel of neml2_capi for it, which holds the library
        that the artifact is added to. Of two wheels for macOS, the file is for both processors.

    Returns
    -------
    list of str
        What the library holds, a line each.

    Raises
    ------
    PluginError
        A mapping does not fit its artifact, or is unclear, or two materials have one name; there is
        no shell or no kernels for the system.
    FatalError
        The output is inside the installed package, or cannot be written.
    """
    require_writable(output, "the plug-in")
    output, roots = Path(output), _several(artifact)
    ending = _SYSTEMS.get(output.suffix.lower(), "")
    system = system or ending or SYSTEM
    if ending not in ("", system):
        raise PluginError(
            f"{output.name} has the ending of {ending}, and the plug-in is for {system}: "
            "name another file, or leave the system out."
        )
    if system != SYSTEM and packages:
        raise PluginError(f"Packages are Linux's: a plug-in for {system} holds kernels alone.")
    shells = shells_of(system, [] if shell is None else _several(shell))
    files: list[Path | None] = [None] * len(roots) if mapping is None else [*_several(mapping)]
    if not roots or len(files) != len(roots):
        raise PluginError(
            f"There are {len(roots)} artifacts and {len(files)} mapping files: give one for each, "
            "in the same order."
        )
    names = [output.stem if system == "windows" else output.stem.removeprefix("lib")]
    if len(roots) > 1:
        names = [root.resolve().name for root in roots]
    materials = []
    archives: list[bytes] = []
    documents = []
    bounds: dict[str, float] = {}
    for root, file, name in zip(roots, files, names, strict=True):
        with in_double(root, PluginError) as model:
            wanted = _guessed(model, host) if file is None else read(file, model)
            wanted.material = wanted.material or name
            wanted.host = host or wanted.host
            told = {
                "material": wanted.material,
                "has_stress_history": f"{wanted.stress}~1" in model.inputs.names,
                "solver": {name: model.options[name] for name in ("atol", "rtol", "miters")},
            }
            check(wanted, model)
            bounds |= numbers(model, wanted)
        archive = _kernels(root)
        has_packages = packages or archive is None or not _opens(archive)
        if system != SYSTEM:
            archive, has_packages = _for_another(root, system, has_packages), False
        elif archive is None or has_packages:
            archive = packed(_whole(root))
        wanted.begin, wanted.size = sum(map(len, archives)), len(archive)
        archives.append(archive)
        documents.append(told | wanted.document())
        materials.append((wanted, has_packages))
    _require_names([wanted for wanted, _ in materials])
    mappings = json.dumps(documents)
    parts = (mappings.encode(), b"".join(archives), provider_of(system))
    head = _MAGIC + struct.pack("<3Q", *map(len, parts))
    content = head + b"".join(parts)
    if len(materials) > 1:  # a behaviour of MGIS is one material
        bounds = {}
    # A running host may have the file of before mapped: that one stays whole.
    with written(output, "the plug-in", executable=True) as stream:
        stream.write(_library(system, shells, content, output.name, bounds))
    return list(_told(materials, output))


def _library(
    system: str, shells: Sequence[Shell], content: bytes, name: str, numbers: dict[str, float]
) -> bytes:
    """The file: shells with the content."""
    libraries = []
    for file, shell in shells:
        try:
            if system == "windows":
                libraries.append(with_section(shell, content))
            elif system == "linux":
                libraries.append(with_segment(shell, content, numbers))
            else:
                libraries.append(dylib.with_segment(shell, content, name, numbers))
        except _DAMAGE as error:  # whatever the tables of a library lead to
            raise PluginError(
                f"{file} is not the library of a wheel of neml2_capi for {system}, or is damaged "
                f"({error}): name a wheel for {system} with --shell, or install it again."
            ) from error
    try:
        return universal(libraries)
    except ValueError as error:
        raise PluginError(
            f"--shell has to name wheels for macOS, one for each processor: {error}."
        ) from error


def _guessed(model: Model, host: str) -> Mapping:
    """The mapping as `neml2-capi umat` would draft it."""
    mapping = guess(model, host=host)
    if mapping.unknown:
        raise PluginError(
            f"What is the input {mapping.unknown[0].name!r}? Draft a mapping file with neml2-capi "
            "umat, say in it what it is, and give it with --mapping."
        )
    return mapping


def _several(paths: Paths) -> list[Path]:
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    for path in several:
        require_path(path)
    return [Path(path) for path in several]


def _require_names(mappings: Sequence[Mapping]) -> None:
    """Raise PluginError unless a host can name each material."""
    names = [mapping.material.lower() for mapping in mappings]
    for name in names:
        if names.count(name) > 1:
            raise PluginError(
                f"Two materials are called {name!r}, in capitals or not: give each a mapping file "
                "of another name."
            )
        if len(names) > 1 and (len(name) > _LONGEST or not name.isascii() or "@" in name):
            raise PluginError(
                f"A host cannot pass the name {name!r}: give the material a mapping file whose "
                f"name has at most {_LONGEST} letters, without @."
            )
    if len({mapping.host for mapping in mappings}) > 1:
        raise PluginError("The mapping files are for different hosts: say which with --host.")


def _told(materials: Sequence[tuple[Mapping, bool]], output: Path) -> Iterator[str]:
    size = output.stat().st_size / 1e6
    packages = any(has_packages for _, has_packages in materials)
    yield f"{output}: {size:.1f} MB, {'packages and kernels' if packages else 'kernels'}"
    for mapping, _ in materials:
        if len(materials) > 1:
            yield f"CMNAME {mapping.material.upper()}"
        yield f"{'DFGRD1' if mapping.strain_measure else 'STRAN':17} {mapping.strain}"
        yield f"{'STRESS':17} {mapping.stress}"
        for slot in (*mapping.states, *mapping.parameters):
            yield f"{slot.array:6} {slot.range:10} {slot.name}"
        for constant in mapping.constants:
            yield f"value  {', '.join(f'{v:g}' for v in constant.value):10} {constant.name}"
    if output.suffix == ".so" and materials[0][0].host in ("", "calculix"):
        several = materials[0][0].material.upper() if len(materials) > 1 else "1"
        yield _of_calculix(output.name, several)


def _of_calculix(name: str, material: str) -> str:
    """How a deck names the library, which CalculiX finds by capitals without an underscore."""
    stem = name.removesuffix(".so").removeprefix("lib").upper()
    word = re.sub("[^A-Z0-9]", "", stem) or "STEEL"
    if name == f"lib{word}.so":
        return (
            f"CalculiX: *MATERIAL, NAME=@ABAQUS_{word}@{material}, or @ABAQUSNL_{word}@{material} "
            "with NLGEOM"
        )
    looks = f"lib{stem.split('_')[0]}.so"
    named = f"lib{word}.so (@ABAQUS_{word}@{material})"
    return f"CalculiX would look for {looks}: for it, call the file {named}"


def _whole(root: Path) -> dict[str, bytes]:
    """All files of an artifact."""
    files = files_of(root, ("metadata.json", BOUNDS, "cpu/float64/*", "kernels/float64/*"))
    if "metadata.json" not in files:
        raise PluginError(
            f"{root} is of NEML2 3.0.6 or before, which a plug-in does not hold: it has no "
            "metadata.json. Compile the model again."
        )
    return files


def _kernels(root: Path) -> bytes | None:
    """The artifact without its packages; None if it has no kernels."""
    try:
        return kernels_alone(root)
    except KernelError as error:
        raise PluginError(str(error)) from error


def _for_another(root: Path, system: str, needs_packages: bool) -> bytes:
    """The kernels of an artifact for another system."""
    if needs_packages:
        raise PluginError(
            f"{root} does not run on kernels alone, and packages are Linux's: neml2-capi doctor "
            f"{shlex.quote(str(root))} says what has no kernel."
        )
    leaf = root / "kernels" / "float64"
    if not any(system_of(entry) == system for entry in read_metadata(leaf)["objects"]):
        raise PluginError(
            f"{leaf} has no kernels for {system}. Build them: neml2-capi build-kernels "
            f"{shlex.quote(str(root))} --system {system}"
        )
    archive = kernels_alone(root, system=system)
    assert archive is not None
    return archive


def _opens(archive: bytes) -> bool:
    model = ffi.new("neml2_model **")
    try:
        checked(lib.neml2_model_open(model, native_source(content=archive)))
    except Error:
        return False
    finally:
        lib.neml2_model_free(model)
    return True
