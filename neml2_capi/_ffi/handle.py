"""Ownership of what the library creates."""

from __future__ import annotations

from typing import Any, NoReturn, SupportsIndex, TypeVar

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import ffi, lib

_Self = TypeVar("_Self", bound="Handle")


class Handle:
    """Owns one handle of the library: freed by close(), at the end of a `with`, or with the object.

    The owner is a cffi object that frees the handle with its last reference. A call that runs on
    another thread holds one, so closing never pulls a handle away from under it, and neither the
    order of closing nor the exit of the interpreter matters.
    """

    _owner: Any = None
    _pointer: Any = None
    # Remedy if a copy, or the same in another process, is wanted.
    _instead = ""

    @property
    def _called(self) -> str:
        """Name in messages."""
        return type(self).__name__

    def __init__(self, owner: Any) -> None:
        """Take over what `owner` has, which is empty then."""
        # With a pointer of our own: in a reference cycle, the collector frees the handle and what
        # the owner points to before it calls a __del__, which may ask whether we are open.
        kind = ffi.typeof(owner)
        self._pointer = ffi.new(kind, owner[0])
        self._owner = ffi.gc(self._pointer, _FREE_BY_TYPE[kind])
        owner[0] = ffi.NULL

    def _open(self) -> Any:
        """The owner, whose [0] is the handle. Keep it in a local variable during its use."""
        owner = self._owner
        if owner is None or not self._pointer[0]:
            raise FatalError(f"this {self._called} is closed", lib.NEML2_ERROR_ARGUMENT)
        return owner

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._owner is None

    def close(self) -> None:
        """Free what is held. Arrays that were handed out stay valid. Closing twice is allowed."""
        self._owner = None

    def __enter__(self: _Self) -> _Self:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        # pickle, copy and deepcopy all come here; the address of a handle means nothing elsewhere.
        raise TypeError(f"a {self._called} cannot be copied or pickled: {self._instead}")


def owned(kind: str) -> Any:
    """An empty `neml2_<kind> **` for the library to fill; it frees its handle with itself."""
    return ffi.gc(ffi.new(_OUT[kind]), _FREE[kind])


_KINDS = ("tensor", "graph", "model", "report", "call", "solve", "scheduler")
_OUT = {kind: ffi.typeof(f"neml2_{kind} **") for kind in _KINDS}
_FREE = {kind: getattr(lib, f"neml2_{kind}_free") for kind in _KINDS}
_FREE_BY_TYPE = {_OUT[kind]: _FREE[kind] for kind in _KINDS}
