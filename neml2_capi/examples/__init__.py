"""Artifacts that come with the package: small, for any x86-64 processor, without packages.

    from neml2_capi import Model, examples

    model = Model(examples.path("chaboche"))

Units are MPa, mm and s. All have their tangents, the modulus "E" as a parameter and derivatives
with respect to it; those with a yield stress have that as a parameter, too. Nothing writes into
this folder: to change them, or to compile them for another processor by `neml2-capi
build-kernels`, work on a copy, `cp -rL "$(python -m neml2_capi --examples)" aoti`. It holds `laws`,
too: input files of NEML2 to begin with.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["FOLDER", "NAMES", "path"]

#: Where they are.
FOLDER = Path(__file__).resolve().parent

#: What each is.
NAMES = {
    "elasticity": "linear isotropic elasticity: strain to stress",
    "isotropic_hardening": "J2 viscoplasticity of Perzyna's kind with linear isotropic hardening",
    "chaboche": "the same with Voce hardening and two back stresses of Chaboche",
}


def path(name: str) -> Path:
    """The folder of an example.

    Parameters
    ----------
    name
        One of NAMES.

    Returns
    -------
    Path
        The artifact, which every function takes that opens one.

    Raises
    ------
    ValueError
        There is no such example.
    """
    if name not in NAMES:
        raise ValueError(f"there is no example {name!r}; there are {', '.join(NAMES)}")
    return FOLDER / name
