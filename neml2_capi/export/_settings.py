"""Checks of all that an export is given beside the law: the path, choices, and settings of Newton's
method. They come before anything is traced.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.options import refused
from neml2_capi._ffi.outside import require_outside
from neml2_capi._ffi.refusals import reason_of
from neml2_capi.driver.arguments import file_name, is_number

#: The greatest tolerance, and number of iterations, as the library has them.
_MOST = {"atol": sys.float_info.max, "rtol": sys.float_info.max, "miters": 10**6}


def place_of(path: str | os.PathLike[str], what: str = "folder") -> Path:
    """The path of what is written, a folder or a file.

    FatalError if it is none, is inside the installed package, or something else is there.
    """
    place = Path(file_name("path", path, what))
    require_outside(place)
    reason = _reason_against(place, what == "folder")
    if reason:
        raise FatalError(
            f"nothing can be written to {place}: {reason}; name another {what}",
            lib.NEML2_ERROR_FILE,
            "path",
        )
    return place


def _reason_against(place: Path, folder: bool) -> str:
    """Why no folder, or no file, can be written at a path; "" if it can."""
    try:
        if _is_folder(place) not in (None, folder):
            return f"it is a {'file' if folder else 'folder'}"
        above = next(each for each in place.absolute().parents if _is_folder(each) is not None)
        if not _is_folder(above):
            return f"{above} is a file"
        return "" if os.access(above, os.W_OK) else f"the folder {above} cannot be written"
    except OSError as error:
        return reason_of(error)


def _is_folder(place: Path) -> bool | None:
    """Whether a folder is there, not a file; None if nothing is."""
    try:
        return stat.S_ISDIR(place.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None


def require_choices(predictor: Any, dtype: Any, kernels: Any) -> None:
    """FatalError if one of these has another value than it may have."""
    if predictor not in (None, "history"):
        raise FatalError(
            f"there is no predictor {predictor!r}; choose 'history' or None",
            lib.NEML2_ERROR_ARGUMENT,
        )
    if dtype not in ("float64", "float32"):
        raise FatalError(
            f"the element type of a model is 'float64' or 'float32', not {dtype!r}",
            lib.NEML2_ERROR_DTYPE,
        )
    if kernels not in ("auto", "only", "no"):
        raise FatalError(
            f"kernels are 'auto', 'only' or 'no', not {kernels!r}", lib.NEML2_ERROR_ARGUMENT
        )


def solver_config(atol: float, rtol: float, miters: int) -> dict[str, Any]:
    """The metadata of Newton's method; FatalError if the library would not take a setting."""
    for name, value in (("atol", atol), ("rtol", rtol), ("miters", miters)):
        least, kind = (1, "a whole number") if name == "miters" else (0, "a number")
        plain = value.item() if isinstance(value, np.generic) else value
        fits = is_number(plain) and least <= plain <= _MOST[name]
        if not fits or (name == "miters" and plain != int(plain)):
            raise refused(name, repr(value), f"{kind} between {least} and {_MOST[name]:g}")
    return {
        "atol": float(atol),
        "rtol": float(rtol),
        "miters": int(miters),
        "substep_del_tol": 1e-6,
        "ls_type": "BACKTRACKING",
        "ls_max_iters": 1,
        "ls_cutback": 2.0,
        "ls_c": 1e-3,
        "solver_kind": "direct",
    }
