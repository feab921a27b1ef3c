"""Errors by what the caller can do: cut the step and retry, or mend the request."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.logs import drain, listening

__all__ = [
    "AggregateConvergenceError",
    "AggregateError",
    "AggregateFatalError",
    "ConvergenceError",
    "Error",
    "FatalError",
    "UnknownNameError",
    "caused",
    "check",
    "complete",
    "last_failure",
    "last_message",
    "remember_cause",
    "unknown_name",
]


_E = TypeVar("_E", bound="Error")
_A = TypeVar("_A", bound="AggregateError")


class Error(RuntimeError):
    """The base of every error of this package.

    Parameters
    ----------
    message
        What was wrong, what was expected, and what to do.
    status
        One of the status codes of neml2_capi.h; NEML2_ERROR_ARGUMENT by default.
    subject
        What the error is about, as in the attribute.
    """

    #: Whether the same call can succeed with other inputs, for example a smaller step.
    recoverable: bool = False
    #: One of the status codes of neml2_capi.h, NEML2_NOT_CONVERGED or NEML2_ERROR_SHAPE for
    #: example.
    status: int
    #: The variable, parameter, option, segment or file that the error is about; "" if there is
    #: none.
    subject: str
    #: Detail beyond the status: one of NEML2_CAUSE_* of neml2_capi.h, mostly NEML2_CAUSE_NONE.
    cause: int = lib.NEML2_CAUSE_NONE

    def __init__(self, message: str, status: int | None = None, subject: str = "") -> None:
        super().__init__(message)
        self.status = lib.NEML2_ERROR_ARGUMENT if status is None else status
        self.subject = subject

    # An unknown name is a KeyError too, whose text would be the repr of the message.
    __str__ = BaseException.__str__


class FatalError(Error):
    """The request cannot be met: a wrong name, shape, type or file. Nothing was changed."""


class UnknownNameError(FatalError, KeyError):
    """There is no input, output, parameter or option of this name."""


class ZeroByteError(FatalError, ValueError):
    """A text holds a zero byte, at which it would end in C."""


class ConvergenceError(Error):
    """Some material points did not converge; the others hold good results.

    `subject` is the package of the residual at which the first of them failed, if that is known.
    The arrays are of the kind that the results of the call would have been; B is the common batch.

    Parameters
    ----------
    message
        What was wrong, and what to do.
    status
        NEML2_NOT_CONVERGED by default.
    subject
        The package of the residual.
    report
        As the attribute; empty by default.
    converged_mask : array (*B,) of bool
        As the attribute; None by default.
    outputs
        As the attribute; empty by default.
    derivatives
        As the attribute.
    unknowns
        As the attribute; empty by default.
    """

    recoverable = True

    #: Per point: "status" (int32, NEML2_*), "iterations" (int32), "residual_norm" and
    #: "suggested_cut" (float64), each (*B,); "residual_history" with the option collect_history.
    report: Mapping[str, Any]
    #: True if a point has converged, (*B,).
    converged_mask: Any
    #: Results as of forward(), in which the values of points that failed are NaN.
    outputs: Mapping[str, Any]
    #: Other results of jvp(), jacobian() and so on, likewise; else None.
    derivatives: Mapping[str, Any] | None
    #: The last iterates of the unknowns of failed points, by name; NaN at the other points.
    unknowns: Mapping[str, Any]

    def __init__(
        self,
        message: str,
        status: int | None = None,
        subject: str = "",
        *,
        report: Mapping[str, Any] | None = None,
        converged_mask: Any = None,
        outputs: Mapping[str, Any] | None = None,
        derivatives: Mapping[str, Any] | None = None,
        unknowns: Mapping[str, Any] | None = None,
    ) -> None:
        code = lib.NEML2_NOT_CONVERGED if status is None else status
        Error.__init__(self, message, code, subject)
        self.report = {} if report is None else report
        self.converged_mask = converged_mask
        self.outputs = {} if outputs is None else outputs
        self.derivatives = derivatives
        self.unknowns = {} if unknowns is None else unknowns


class AggregateError(Error):
    """Several evaluations failed at once; recoverable only if each failure is.

    A model with a scheduler, several of whose sub-batches failed, raises one that is a
    ConvergenceError too if all that failed are points, else a FatalError.

    Parameters
    ----------
    errors
        The failures, one at least; status and subject are the worst one's.

    Raises
    ------
    ValueError
        There are none.
    """

    #: The failures, in the order of the evaluations: of a scheduler's, of their points.
    errors: tuple[Exception, ...]

    def __init__(self, errors: Iterable[Exception]) -> None:
        errors = tuple(errors)
        if not errors:
            raise ValueError("an AggregateError needs at least one error")
        lines = "".join(f"\n  {type(error).__name__}: {error}" for error in errors)
        worst = min(errors, key=lambda error: getattr(error, "status", lib.NEML2_ERROR_INTERNAL))
        super().__init__(
            f"{len(errors)} evaluations failed:{lines}",
            getattr(worst, "status", lib.NEML2_ERROR_INTERNAL),
            getattr(worst, "subject", ""),
        )
        self.errors = errors
        self.recoverable = all(getattr(error, "recoverable", False) for error in errors)

    def __reduce__(self) -> Any:
        return type(self), (self.errors,)


class AggregateFatalError(FatalError, AggregateError):
    """Several sub-batches of a scheduler failed, and one at least could not be evaluated.

    Parameters
    ----------
    message
        What became of each of them.
    status
        The status of the worst failure; NEML2_ERROR_ARGUMENT by default.
    subject
        What the worst failure is about.
    """

    def __init__(self, message: str, status: int | None = None, subject: str = "") -> None:
        Error.__init__(self, message, status, subject)

    __reduce__ = Error.__reduce__


class AggregateConvergenceError(ConvergenceError, AggregateError):
    """Points failed in several sub-batches of a scheduler. Its arrays are for all points."""

    __reduce__ = Error.__reduce__


class Failure(NamedTuple):
    """Report of the library on a call that did not return NEML2_OK."""

    status: int
    subject: str
    message: str
    #: NEML2_CAUSE_*, or the number of an exception here.
    cause: int
    #: Errors, if there are several; else empty.
    errors: tuple[Error, ...]

    def fatal(self) -> FatalError:
        """The error of a call that could not be made."""
        if self.errors:
            return self._with_errors(AggregateFatalError(self.message, self.status, self.subject))
        return _fatal(self.message, self.status, self.cause, self.subject)

    def unconverged(self, subject: str = "", **known: Any) -> ConvergenceError:
        """Return the error if points failed; `known` is what a ConvergenceError has."""
        if self.errors:
            several = AggregateConvergenceError(self.message, self.status, subject, **known)
            return self._with_errors(several)
        return caused(ConvergenceError(self.message, self.status, subject, **known), self.cause)

    def _with_errors(self, error: _A) -> _A:
        error.errors = self.errors
        error.__cause__ = next(filter(None, (one.__cause__ for one in self.errors)), None)
        return error


def _fatal(message: str, status: int, cause: int, subject: str = "") -> FatalError:
    kind = UnknownNameError if status == lib.NEML2_ERROR_NAME else FatalError
    return caused(kind(message, status, subject), cause)


def check(status: int) -> int:
    """`status`, unless it is negative: then the exception for this thread's last error.

    What the library has to tell of the call is logged first.
    """
    error = (
        last_failure(status).fatal() if status < 0 else None
    )  # a handler of the log may call the library
    if status or listening:
        drain()
    if error is not None:
        raise error
    return status


def complete(status: int) -> None:
    """check(), for a call that has no results unless it went well."""
    failure = last_failure(status) if status > 0 else None
    check(status)
    if failure is not None:
        raise failure.unconverged()


# Exceptions in functions that the library called, by the numbers that it was told: few are waiting.
_CAUSES: OrderedDict[int, BaseException] = OrderedDict()
_NUMBERS = iter(range(lib.NEML2_CAUSE_OF_HOST, 2**31))


def remember_cause(cause: BaseException) -> int:
    """Keep an exception for the error that it causes; the number to tell the library."""
    number: int = next(_NUMBERS)
    _CAUSES[number] = cause
    while len(_CAUSES) > 16:
        _CAUSES.popitem(last=False)
    return number


def caused(error: _E, cause: int) -> _E:
    """`error`, with the exception of that number, if any; one that interrupts is raised itself."""
    error.cause = cause
    known = _CAUSES.pop(cause, None)
    if known is not None:
        error.__cause__ = known
    interrupted = error.status == lib.NEML2_ERROR_INTERRUPTED
    if known is not None and (interrupted or not isinstance(known, Exception)):
        raise known
    return error


def _plural(kind: str) -> str:
    """Plural of nouns that others may follow: "columns of a.csv", "hypotheses"."""
    nouns, *others = re.split(r"(?= (?:of|in|with|that) )", kind, maxsplit=1)
    for end, plural in {"sis": "se", "(?<![aeo])y": "ie", "": "s"}.items():
        nouns = re.sub(f"{end}(?=, | or |$)", plural, nouns)
    return nouns + "".join(others)


def unknown_name(kind: str, name: object, names: Iterable[str]) -> UnknownNameError:
    """The error for a name that is not among `names`, with the nearest one."""
    import difflib

    known = list(names)
    near = difflib.get_close_matches(str(name), known, n=1)
    message = f"unknown {kind} {name!r}"
    message += f"; did you mean {near[0]!r}?" if near else "."
    kinds = _plural(kind)
    message += f" The {kinds} are: {', '.join(known)}" if known else f" There are no {kinds}"
    return UnknownNameError(message, lib.NEML2_ERROR_NAME, str(name))


def last_message() -> str:
    """Return the message of this thread's last call that did not return NEML2_OK."""
    return read_text(lib.neml2_error_message)


def last_failure(status: int) -> Failure:
    """Return all that the library tells of this thread's last failure, which returned `status`."""
    found = ffi.new("int64_t *")
    lib.neml2_error_count(found)
    parts = [_part(index) for index in range(found[0])] if found[0] > 1 else []
    subject = read_text(lib.neml2_error_subject)
    return Failure(status, subject, last_message(), lib.neml2_error_cause(), tuple(parts))


def _part(index: int) -> Error:
    """Return one of several errors."""
    status, cause = ffi.new("int32_t *"), ffi.new("int32_t *")

    def read(buffer: Any, capacity: int, needed: Any) -> int:
        outcome: int = lib.neml2_error_get(status, cause, buffer, capacity, needed, index)
        return outcome

    message = read_text(read)
    if status[0] < 0:
        return _fatal(message, status[0], cause[0])
    return caused(ConvergenceError(message, status[0]), cause[0])


def read_text(read: Any, *arguments: Any) -> str:
    """Return what a function of the library writes to a buffer; `arguments` follow the buffer's."""
    needed = ffi.new("int64_t *", 1)
    buffer, status = ffi.new("char[]", 1), 0
    while status >= 0:
        status = read(buffer, len(buffer), needed, *arguments)
        if needed[0] <= len(buffer):
            break
        buffer = ffi.new("char[]", needed[0])  # again: a text may have grown in the meantime
    if status < 0:  # without a look at the log, whose handlers may meet errors of their own
        raise last_failure(status).fatal()
    message: str = ffi.string(buffer).decode("utf-8", "replace")
    return message
