"""A law of an artifact as one text that hosts and devices compile."""

from __future__ import annotations

from pathlib import Path

from neml2_capi.header.face import Face, cpp, opencl
from neml2_capi.header.kernels import read_kernel
from neml2_capi.header.law import law_of
from neml2_capi.kernels.folder import folders, read_metadata
from neml2_capi.model.model import Model

#: By the name of a language: what writes it.
LANGUAGES = {"c++": cpp, "opencl": opencl}


def header(
    artifact: Path,
    model: Model,
    language: str = "c++",
    name: str = "",
    *,
    derivatives: bool = True,
    parameters: bool = False,
    bounds: bool = True,
    arrays: bool = False,
) -> str:
    """The law of an artifact as text.

    Parameters
    ----------
    artifact : Path
        A folder with kernels, which are in kernels/float64 or kernels/float32.
    model : Model
        The same artifact, opened: its variables, its derivatives and the settings that it has now.
    language : str
        "c++" for a header in C++17, which CUDA, HIP and Kokkos compile, too; or "opencl".
    name : str
        The namespace; the name of the artifact if it is empty.
    derivatives : bool
        False for values alone.
    parameters : bool
        True for derivatives with respect to parameters, too, in columns of the tangent behind the
        columns of inputs.
    bounds : bool
        False for a law that a host looks at the bounds of.
    arrays : bool
        True for the kernel that the library runs on devices, over arrays that lie anywhere, in
        place of the one of hosts.

    Returns
    -------
    str
        The text.

    Raises
    ------
    KernelError
        The model has no kernel for something, or what a header has none of, and which.
    """
    leaf = Path(model.describe()["leaf"]).name
    found = folders(artifact)
    folder = next((folder for folder in found if folder.name == leaf), found[0])
    document = read_metadata(folder)
    kernels = {entry["name"]: read_kernel(folder, entry) for entry in document["kernels"]}
    missing = {Path(m["package"]).stem: m["reason"] for m in document["missing"]}
    within = model.bounds if bounds else ()
    law = law_of(model, kernels, missing, derivatives, within, language == "c++", parameters)
    versions = ", ".join(f"{name} {version}" for name, version in document["made_with"].items())
    told = f"{document['model']}, made with {versions}"
    return LANGUAGES[language](Face(law, name or document["model"], told, arrays))
