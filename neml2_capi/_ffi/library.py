"""Find the shared library, open it, and check that it speaks the ABI that is needed here."""

from __future__ import annotations

import os
import sys
from typing import Any

from neml2_capi._ffi.raw import ffi as _ffi

ffi: Any = _ffi

_VARIABLE = "NEML2_CAPI_LIBRARY"
_FILE = {"win32": "libneml2_capi.dll", "darwin": "libneml2_capi.1.dylib"}.get(
    sys.platform, "libneml2_capi.so.1"
)


def library_path() -> str:
    """Find the library: where the environment variable says, else beside this package."""
    # Avoids pathlib, which takes longer to import than this package.
    chosen = os.environ.get(_VARIABLE)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    path = chosen or f"{package}/lib/{_FILE}"
    if os.path.isfile(path):  # noqa: PTH113
        return path
    if chosen:
        raise ImportError(f"{_VARIABLE} is set to {chosen}, and there is no such file")
    raise ImportError(
        f"the library of neml2_capi is missing: there is no {path}. Install the wheel, or set "
        f"{_VARIABLE} to the path of a {_FILE} that you have built"
    )


def _open(path: str) -> Any:
    # Handles may be freed after this module at the exit of the interpreter: keep the library
    # mapped. Windows has no flags.
    flags = sum(getattr(os, f"RTLD_{name}", 0) for name in ("NOW", "LOCAL", "NODELETE"))
    try:
        library = ffi.dlopen(path, flags)
        found = library.neml2_abi_version()
    except (OSError, AttributeError, ffi.error) as error:
        raise ImportError(f"{path} is not a usable neml2_capi library: {error}") from error
    wanted = library.NEML2_ABI_VERSION
    if not wanted <= found < (wanted // 1000 + 1) * 1000:
        raise ImportError(
            f"{path} has the ABI version {found}; needed is {wanted}, or a later one of the same "
            f"thousand: install the library and the package from the same release"
        )
    return library


def _load() -> Any:
    try:
        return _open(library_path())
    except ImportError as error:
        # python -m neml2_capi comes by here first, and its user wants no traceback.
        if sys.argv[:1] == ["-m"] and "neml2_capi" in sys.orig_argv:
            raise SystemExit(f"neml2_capi: {error}") from None
        raise


lib: Any = _load()


def version() -> str:
    """The release of the library."""
    return text(lib.neml2_version())


def text(pointer: Any) -> str:
    """A C string, copied; "" for NULL."""
    return ffi.string(pointer).decode("utf-8", "replace") if pointer else ""


def absolute(path: str | os.PathLike[str]) -> str:
    """A path that stays when the working folder becomes another; links stay links."""
    name = os.fsdecode(path)
    return os.path.abspath(name) if name else name  # noqa: PTH100
