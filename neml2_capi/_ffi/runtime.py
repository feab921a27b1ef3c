"""Runtimes of packages: the built-in one, or the libtorch of the installed torch; and NVRTC."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from neml2_capi._ffi import nvrtc
from neml2_capi._ffi.errors import check, read_text
from neml2_capi._ffi.library import ffi, lib, text
from neml2_capi._ffi.strings import c_string

#: Causes of errors if the library was not told what is known here.
_CURABLE = (lib.NEML2_CAUSE_LIBTORCH_MISSING, lib.NEML2_CAUSE_SCHEMA_UNKNOWN)
# Facts that the library was told: the folder of torch, and schemas of operators.
_told: set[str] = set()


def _suggest() -> bool:
    """Tell the library where this interpreter's torch is, not imported; whether that is new."""
    import importlib.util  # what is seldom needed is not imported with the package

    try:
        spec = importlib.util.find_spec("torch")
    except ValueError:  # a stand-in without a specification
        return False
    folder = os.path.dirname(spec.origin) if spec and spec.origin else ""  # noqa: PTH120
    if not folder or folder in _told:
        return False
    check(lib.neml2_libtorch_suggest(c_string(folder)))
    _told.add(folder)
    return True


def load(runtimes: Iterable[str], call: Callable[[], int], package: str | bytes = "") -> None:
    """Make a call of the library that loads for these runtimes.

    libtorch is looked for if it is wanted. Custom operators of `package` that the imported torch
    has are told then.
    """
    if not {"libtorch", "tensors"}.isdisjoint(runtimes):
        _suggest()
    status = call()
    # There may be something that the library has not been told.
    if status == lib.NEML2_ERROR_UNSUPPORTED and _cured(package):
        status = call()
    check(status)


def _cured(package: str | bytes) -> bool:
    """Whether what the last call lacked is there now."""
    if lib.neml2_error_cause() in _CURABLE:
        return _suggest() | _declare_operators(package)
    return read_text(lib.neml2_error_subject) == "nvrtc" and nvrtc.load()


def libtorch() -> tuple[str, str]:
    """The file and the version of the libtorch that would be taken; FatalError if none can."""
    _suggest()
    path, version = ffi.new("const char **"), ffi.new("const char **")
    check(lib.neml2_libtorch_open(path, version))
    return text(path[0]), text(version[0])


def _declare_operators(package: str | bytes) -> bool:
    """Tell the schemas of a package's operators, which it does not hold; whether one is new."""
    torch = sys.modules.get("torch")
    names = _operators(package) if torch and package else ()
    schemas = {schema for name in names if (schema := _schema(torch, name))} - _told
    for schema in schemas:
        check(lib.neml2_operator_declare(c_string(schema)))
    _told.update(schemas)
    return bool(schemas)


def _operators(package: str | bytes) -> Iterator[str]:
    """ "mylib::scale.Tensor" and others that the package does not compile but calls."""
    from neml2_capi._ffi.packages import entry_of, json_of

    try:
        for entry in json_of(entry_of(package, ".wrapper.json"))["nodes"]:
            yield entry["node"]["target"]
    except (KeyError, TypeError):
        return  # what is wrong with it, the library says


def _schema(torch: Any, target: str) -> str | None:
    library, _, name = target.partition("::")
    name, _, overload = name.partition(".")
    try:
        operator = getattr(getattr(getattr(torch.ops, library), name), overload or "default")
    except AttributeError:
        return None
    return str(operator._schema)
