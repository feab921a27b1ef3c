"""What a sweep is of, in digests: a run that goes on must be of the same."""

from __future__ import annotations

import copyreg
import hashlib
import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Set
from functools import cached_property, partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Tensor
from neml2_capi.artifact.files import kernels_file, packages_of
from neml2_capi.model import Model
from neml2_capi.model.source import View

#: Options that change no result.
_WITHOUT_EFFECT = {"threads", "chunk", "capsule", "collect_history"}
#: Values that are known by their text.
_PLAIN = (bool, int, float, complex, str, bytes)


class _Memory(NamedTuple):
    content: bytes


def identity(run: Callable[..., Any]) -> dict[str, str]:
    """A digest of a function, and of each argument that it comes with, by name.

    A model is its artifact's content, not its place. Of a function count its code, its defaults and
    what it closes over, not the global names that it uses; of a class, its functions and plain
    values, and its bases.
    """
    if not isinstance(run, partial):
        return {"run": digest(run)}
    try:
        arguments = inspect.signature(run.func).bind_partial(*run.args, **run.keywords).arguments
    except (TypeError, ValueError):  # a function without a signature
        arguments = {"arguments": (run.args, run.keywords)}
    return {"run": digest(run.func), **{name: digest(value) for name, value in arguments.items()}}


def digest(value: Any) -> str:
    """Equal for equal content, in every process.

    FatalError if the content cannot be found.
    """
    state = hashlib.sha256()
    for part in _parts(value, (), set()):
        state.update(len(part).to_bytes(8, "little") + part)
    return state.hexdigest()[:32]


def _parts(value: Any, above: tuple[int, ...], classes: set[type]) -> Iterator[bytes]:
    """List what is hashed.

    `above` are the objects that hold this one, by id; `classes` receives those that were hashed,
    which are names from then on.
    """
    if id(value) in above:
        yield b"cycle %d" % above[::-1].index(id(value))
        return
    above = (*above, id(value))
    name, children = _content(value)
    yield name
    if isinstance(value, type):
        children = () if value in classes else children
        classes.add(value)
    for child in children:
        if isinstance(child, _Memory):
            yield child.content
        else:
            yield from _parts(child, above, classes)
    yield b"end"


def _content(value: Any) -> tuple[bytes, Any]:
    """What an object is, and what it holds."""
    if value is None or isinstance(value, _PLAIN):
        plain = value.item() if isinstance(value, np.generic) else value
        return f"{type(plain).__name__} {plain!r}".encode(), ()
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        return f"array {value.dtype.str} {value.shape}".encode(), (_Memory(value.tobytes()),)
    if isinstance(value, Model):
        return b"model", _of_model(value)
    if isinstance(value, partial):
        return b"partial", (value.func, value.args, value.keywords)
    if isinstance(value, FunctionType) and (value.__module__ or "").startswith("neml2_capi."):
        return f"name {value.__qualname__}".encode(), ()  # the same in a later version
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return b"function", (value.__code__, value.__defaults__, value.__kwdefaults__, cells)
    if isinstance(value, CodeType):
        return b"code", (value.co_code, value.co_consts, value.co_names)
    if isinstance(value, MethodType):
        return b"method", (value.__func__, value.__self__)
    if isinstance(value, type | ModuleType):
        name = f"name {getattr(value, '__module__', '')} {value.__name__}".encode()
        return name, _of_class(value) if isinstance(value, type) else ()
    if isinstance(value, os.PathLike):
        return b"path", (os.fspath(value),)
    if isinstance(value, Mapping):
        return b"mapping", sorted(value.items(), key=lambda item: repr(item[0]))
    if isinstance(value, list | tuple):
        return b"sequence", value
    if isinstance(value, Set):
        return b"set", sorted(map(digest, value))
    if hasattr(value, "__dlpack__"):
        return b"tensor", (np.asarray(Tensor(value)),)
    return _pickled(value)


def _of_class(value: type) -> Iterator[Any]:
    """The functions and plain values of a class by name, and its bases; of ours, nothing."""
    if str(value.__module__).startswith("neml2_capi."):
        return  # the same in a later version
    for name, member in sorted(vars(value).items()):
        if isinstance(member, property):
            found = [member.fget, member.fset, member.fdel]
        elif isinstance(member, cached_property):
            found = [member.func]
        else:
            found = [member if isinstance(member, FunctionType) else inspect.unwrap(member)]
        if any(isinstance(each, FunctionType) for each in found) or (
            isinstance(member, _PLAIN) and not name.startswith("__")
        ):
            yield name
            yield found
    yield from value.__bases__


def _pickled(value: Any) -> tuple[bytes, Any]:
    """An object of any other class, by what pickle would write of it."""
    try:
        registered = copyreg.dispatch_table.get(type(value))
        reduced = registered(value) if registered else value.__reduce_ex__(4)
    except Exception as error:
        raise FatalError(
            f"a sweep cannot be told from another one, nor go on, if the run holds a "
            f"{type(value).__name__}, which cannot be pickled ({error}); make it inside the run",
            lib.NEML2_ERROR_ARGUMENT,
            "run",
        ) from error
    if isinstance(reduced, str):  # a name in its module
        return f"name {getattr(value, '__module__', '')} {reduced}".encode(), ()
    function, arguments, state, *others = (*reduced, None, None, None)[:5]
    return b"object", (function, arguments, state, *(list(each or ()) for each in others))


def _of_model(model: Model) -> Iterator[Any]:
    """The content of the artifact, the views of it, and what was set since it was opened."""
    document = model.describe()
    leaf = Path(document.pop("leaf"))
    yield json.dumps(document, sort_keys=True)
    for package in packages_of(document):
        yield _Memory((leaf / package).read_bytes())
    if document["kernels_only"]:
        yield _Memory(kernels_file(leaf).read_bytes())
    if (view := model._source.view) != View():
        yield view
    yield model.runtime
    yield {name: value for name, value in model.options.items() if name not in _WITHOUT_EFFECT}
    stored = model.named_parameters()
    yield {name: np.asarray(Tensor(stored[name])) for name in stored}
