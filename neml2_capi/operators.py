"""Operators of your own: functions in Python that compiled packages call.

    import neml2_capi

    @neml2_capi.operator("mylib::scale(Tensor x, float factor=1.0) -> Tensor")
    def scale(x, factor):
        return factor * x

Packages that are loaded from then on call it, if the model was exported with torch's operator
mylib::scale. It is for the built-in runtime; on libtorch a package calls what torch has of that
name.
"""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from neml2_capi._ffi.errors import Error, FatalError, check, remember_cause
from neml2_capi._ffi.handle import owned
from neml2_capi._ffi.inspection import counted, inspected
from neml2_capi._ffi.labels import Array, Label
from neml2_capi._ffi.library import ffi, lib, text
from neml2_capi._ffi.strings import c_string
from neml2_capi._ffi.tensor import wrap
from neml2_capi._ffi.views import as_numpy

__all__ = ["operator", "register_operator", "unregister_operator"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Callbacks that the library points to, by the name of the operator, as long as that is there.
_registered: dict[str, Any] = {}


def operator(schema: str) -> Callable[[_Function], _Function]:
    """Register the function below as an operator; it stays what it is.

    Parameters
    ----------
    schema
        As in `register_operator`.

    Returns
    -------
    function
        The decorator, which raises as `register_operator` does.
    """

    def decorate(function: _Function) -> _Function:
        register_operator(schema, function)
        return function

    return decorate


def register_operator(schema: str, function: Callable[..., Any]) -> str:
    """Have a function called by the packages that are loaded from now on, in this process.

    It is called on several threads at once, for as many material points as the library chooses to
    run together, and with zeros while a model is loaded. A point for which there is no result gets
    NaN, and fails on its own. An exception fails the run, and is the `__cause__` of the error that
    the caller sees; a ConvergenceError is recoverable, and in a model fails those points only for
    which it is raised again when they are evaluated alone.

    Parameters
    ----------
    schema
        As torch writes it: "mylib::scale.overload(Tensor x, float factor=1.0) -> Tensor", with
        arguments of Tensor, int, SymInt, float, bool and str, and lists of all but str.
    function
        What to call. It is given the arguments of the schema in their order, those behind a "*" by
        name: for Tensor a numpy array, a copy, which it may keep; for the others an int, float,
        bool or str; for a list a tuple; None for None. It returns one array per output, in a tuple
        if there are several.

    Returns
    -------
    str
        The name, "mylib::scale.overload", for `unregister_operator`.

    Raises
    ------
    FatalError
        The text is no schema, or another operator has its name.
    """
    name = schema.partition("(")[0].strip()
    context = ffi.new_handle(_Operator(name, schema, function))
    check(lib.neml2_operator_register(c_string(schema), _callback, context))
    _registered[name] = context
    return name


def unregister_operator(name: str) -> None:
    """Forget an operator, and wait until no thread is in its function.

    Packages that were loaded before fail if they call it.

    Parameters
    ----------
    name
        What `register_operator` returned.

    Raises
    ------
    FatalError
        There is no such operator.
    """
    context = _registered.get(name)
    check(lib.neml2_operator_unregister(c_string(name)))
    if _registered.get(name) is context:  # else another thread has registered it again
        _registered.pop(name, None)


class _Operator:
    """A function, and how it is called."""

    def __init__(self, name: str, schema: str, function: Callable[..., Any]) -> None:
        self.name = name
        self._function = function
        # Arguments behind a "*" are passed by name.
        self._named = re.split(r"[(,]\s*\*\s*,", schema, maxsplit=1)[1:]

    def run(self, call: Any) -> None:
        outputs = counted(lib.neml2_operator_call_count, call, lib.NEML2_OUTPUT)
        values: list[Any] = []
        named: dict[str, Any] = {}
        for index in counted(lib.neml2_operator_call_count, call, lib.NEML2_INPUT):
            info = inspected("neml2_argument_info", lib.neml2_operator_call_inspect, call, index)
            if self._is_named(argument := text(info.name)):
                named[argument] = _argument(call, index, info)
            else:
                values.append(_argument(call, index, info))
        results = self._function(*values, **named)
        if not isinstance(results, (tuple, list)):
            results = (results,)
        if len(results) != len(outputs):
            raise FatalError(
                f"the operator {self.name} returns {len(outputs)} arrays; its function returned "
                f"{len(results)}",
                lib.NEML2_ERROR_RUNTIME,
                self.name,
            )
        for index, result in enumerate(results):
            owner = owned("tensor")
            source = wrap(owner, result, Label("output", str(index)), "float64")
            check(lib.neml2_operator_call_set_output(call, index, owner))
            del source  # it was copied

    def _is_named(self, argument: str) -> bool:
        return any(re.search(rf"\b{argument}\s*[=,)]", rest) for rest in self._named)


def _argument(call: Any, index: int, info: Any) -> Any:
    """The value of an argument: a tuple for a list."""
    if info.kind == lib.NEML2_ARGUMENT_NONE:
        return None
    if info.kind == lib.NEML2_ARGUMENT_TEXT:
        out = ffi.new("const char **")
        check(lib.neml2_operator_call_get_text(out, call, index))
        return text(out[0])
    pointer, read, convert = _READ[info.kind]
    out = ffi.new(pointer)
    check(read(out, call, index))
    is_list = info.count >= 0
    values = tuple(convert(out[0] + i) for i in range(info.count if is_list else 1))
    return values if is_list else values[0]


def _array(handle: Any) -> Array | None:
    """Return a copy: the memory of an argument is reused when the function is done."""
    return np.array(as_numpy(handle)) if handle[0] else None


_READ: dict[int, tuple[str, Any, Callable[[Any], Any]]] = {
    lib.NEML2_ARGUMENT_TENSOR: (
        "neml2_tensor *const **",
        lib.neml2_operator_call_get_tensors,
        _array,
    ),
    lib.NEML2_ARGUMENT_INTEGER: (
        "const int64_t **",
        lib.neml2_operator_call_get_integers,
        lambda at: int(at[0]),
    ),
    lib.NEML2_ARGUMENT_BOOLEAN: (
        "const int64_t **",
        lib.neml2_operator_call_get_integers,
        lambda at: bool(at[0]),
    ),
    lib.NEML2_ARGUMENT_REAL: (
        "const double **",
        lib.neml2_operator_call_get_reals,
        lambda at: float(at[0]),
    ),
}


# Exceptions do not pass through C: what fails here, fails the run.
@ffi.callback("int32_t(void *, neml2_operator_call *)", error=lib.NEML2_ERROR_INTERNAL)  # type: ignore[untyped-decorator]
def _callback(context: Any, call: Any) -> int:
    try:
        ffi.from_handle(context).run(call)
    except BaseException as error:
        return _record(error)
    return int(lib.NEML2_OK)


def _record(error: BaseException) -> int:
    """Leave the exception to the caller of the package, as a status and a message."""
    told = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
    status = error.status if isinstance(error, Error) else lib.NEML2_ERROR_RUNTIME
    if status == lib.NEML2_NON_FINITE:
        status = lib.NEML2_NOT_CONVERGED
    message = c_string(told.replace("\0", " "))
    return int(lib.neml2_error_record(status, remember_cause(error), ffi.NULL, message))


def _forget_all(process: int = os.getpid()) -> None:
    """Unregister all before the interpreter ends, when no thread may call into it."""
    if os.getpid() != process:  # a fork has no threads that would leave the functions
        return
    for name in list(_registered):
        lib.neml2_operator_unregister(c_string(name))


atexit.register(_forget_all)
