"""The solver options that the library keeps for a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from neml2_capi._ffi.errors import check
from neml2_capi._ffi.handle import Handle
from neml2_capi._ffi.library import c_string, ffi, lib, text
from neml2_capi._ffi.options import Option, Options


class NativeOptions(Options):
    """The options of a model handle."""

    def __init__(
        self, model: Handle, known: Mapping[str, Option], changed: Callable[[], None]
    ) -> None:
        super().__init__(known)
        self._model, self._changed = model, changed

    def _get(self, name: str) -> Any:
        handle = self._model._open()
        if self._known[name].choices:
            word = ffi.new("const char **")
            check(lib.neml2_model_option_get_text(word, handle[0], c_string(name)))
            return text(word[0])
        number = ffi.new("double *")
        check(lib.neml2_model_option_get_number(number, handle[0], c_string(name)))
        return float(number[0])

    def _set(self, name: str, value: Any) -> None:
        handle, is_text = self._model._open(), bool(self._known[name].choices)
        if is_text:
            check(lib.neml2_model_option_set_text(handle[0], c_string(name), c_string(value)))
        else:
            check(lib.neml2_model_option_set_number(handle[0], c_string(name), value))
        self._changed()

    def __repr__(self) -> str:
        return "<Options of a closed model>" if self._model.closed else super().__repr__()
