"""The kinds of arrays: results are of the kind of the arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from neml2_capi._ffi.labels import Label
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Tensor, is_torch
from neml2_capi._ffi.views import as_numpy, as_torch

_PLAIN = (np.ndarray, Tensor, int, float, list, tuple)


class Kind(NamedTuple):
    """The arrays of one library."""

    #: Name of an array in messages.
    name: str
    #: (owner, source=None): the array over the memory of a tensor, which it keeps alive.
    hand_out: Callable[..., Any]
    #: True if its memory may change, as jax's may not.
    mutable: bool


NUMPY = Kind("numpy.ndarray", as_numpy, True)
TORCH = Kind("torch.Tensor", as_torch, True)


class Kinds:
    """The kind of the results, from the kinds of the arguments of one call.

    Numpy arrays, numbers and lists go along with any other kind; two others are an error.
    """

    __slots__ = ("_label", "kind")

    def __init__(self) -> None:
        self.kind: Kind | None = None
        self._label: Label | None = None

    def add(self, value: Any, label: Label) -> None:
        """Take an argument into account; FatalError if it is of a second kind."""
        self.add_kind(kind_of(value), label)

    def add_kind(self, kind: Kind | None, label: Label) -> None:
        """Take into account of which kind an argument was."""
        if kind is None or kind is self.kind:
            return
        if self.kind is not None:
            raise label.refuse(
                f"is of {kind.name}, and {self._label} of {self.kind.name}: of which kind should "
                "the results be? Pass arrays of one kind; numpy arrays go along with each",
                lib.NEML2_ERROR_DTYPE,
            )
        self.kind, self._label = kind, label


def kind_of(value: Any) -> Kind | None:
    """The kind of an array; None for numpy arrays and all that there is no way back to."""
    if isinstance(value, _PLAIN):
        return None
    if is_torch(value):
        return TORCH
    cls = type(value)
    if cls not in _KNOWN:
        _KNOWN[cls] = _find(value) if hasattr(cls, "__dlpack__") else None
    return _KNOWN[cls]


def alike(value: Any, array: Any) -> Any:
    """The numpy array `array` as one of the kind of `value`."""
    kind = kind_of(value)
    return array if kind is None else kind.hand_out(Tensor(array)._open(), array)


_KNOWN: WeakKeyDictionary[type, Kind | None] = WeakKeyDictionary()


def _find(value: Any) -> Kind | None:
    """The kind of a DLPack producer, if one of its consumers makes an array of its own type."""
    cls, trial = type(value), Tensor.zeros((1,))
    for consume in _consumers(value):
        try:
            array = consume(trial)
            mutable = np.from_dlpack(array).flags.writeable
        except Exception:  # whatever it raises: it does not work
            continue
        if isinstance(array, cls):
            name = f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}"
            return Kind(name, partial(_consumed, consume), mutable)
    return None


def _consumers(value: Any) -> Iterator[Callable[[Any], Any]]:
    """The functions `from_dlpack` of the array's namespace, its class, and its modules."""
    cls = type(value)
    places: list[Any] = [cls]
    if hasattr(cls, "__array_namespace__"):
        places.insert(0, value.__array_namespace__())
    name = cls.__module__
    while name:
        places.append(sys.modules.get(name))
        name = name.rpartition(".")[0]
    for place in places:
        if callable(consume := getattr(place, "from_dlpack", None)):
            yield consume


def _consumed(consume: Callable[[Any], Any], owner: Any, source: Any = None) -> Any:
    tensor = Tensor._adopt(owner, source)
    try:
        return consume(tensor)
    except (BufferError, RuntimeError, TypeError, ValueError):  # it may want dense memory
        return consume(Tensor(tensor.numpy().copy()))
