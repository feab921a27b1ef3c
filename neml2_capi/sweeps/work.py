"""What a worker does: open the run once, and evaluate parameter sets."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi import locks
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Tensor
from neml2_capi.driver.transient import DRIVERS
from neml2_capi.model import Model

Run = Callable[..., Mapping[str, Any]]
Set = dict[str, Any]
Arrays = dict[str, Array]

#: In a file of results: the numbers of its items.
ITEMS = "__items__"
# Runs that a worker keeps open, for sweeps that share an executor.
_KEPT = 8
_opening = locks.new()
#: What ends a sweep, whoever raises it.
INTERRUPTS = (KeyboardInterrupt, GeneratorExit)


class Failure(NamedTuple):
    """Why a parameter set has no results."""

    #: The name of the exception's class: "StepError".
    type: str
    #: The text of the exception, or what became of the worker.
    message: str
    #: As Python prints it; "" if the worker died.
    traceback: str = ""


Outcome = Arrays | Failure


class Work:
    """A run on its way to workers; each process opens it once, and its threads share it."""

    def __init__(self, run: Run) -> None:
        self._run: Run | None = run
        self._packed: bytes | None = None

    def pack(self) -> bytes:
        """What is sent; FatalError if it cannot be."""
        if self._packed is None:
            try:
                # It sends functions of a script as they are, and lambdas.
                import cloudpickle as pickling
            except ImportError:
                pickling = pickle
            try:
                self._packed = pickling.dumps(self._run)
            except Exception as error:
                raise FatalError(
                    f"the run cannot be sent to other processes: {error}. Give it functions of "
                    "modules, or install cloudpickle, which sends others too: pip install "
                    "cloudpickle",
                    lib.NEML2_ERROR_ARGUMENT,
                    "run",
                ) from error
        assert self._packed is not None
        return self._packed

    def open(self) -> Run:
        if self._run is None:
            assert self._packed is not None
            with _opening:
                self._run = _opened(self._packed)
        return self._run

    def __getstate__(self) -> dict[str, Any]:
        return {"_run": None, "_packed": self.pack()}


@lru_cache(_KEPT)
def _opened(packed: bytes) -> Run:
    run: Run = pickle.loads(packed)
    return run


def evaluate(work: Work, sets: Sequence[Set]) -> list[Outcome] | Failure:
    """What becomes of each set; a Failure if the run cannot be opened here."""
    try:
        run = work.open()
    except BaseException as error:
        if _ends_sweep(error):
            raise
        return _failure(error)
    return _together(run, sets) or [_alone(run, values) for values in sets]


def model_driven(run: Run) -> Model | None:
    """The model of a `partial` of drive() or of an experiment; None for any other run."""
    if isinstance(run, partial) and run.func in DRIVERS:
        model = run.args[0] if run.args else run.keywords.get("model")
        if isinstance(model, Model):
            return model
    return None


def _alone(run: Run, values: Set) -> Outcome:
    try:
        # A run may write to what it is given.
        return _arrays(run(parameters={name: value.copy() for name, value in values.items()}))
    except BaseException as error:
        if _ends_sweep(error):
            raise
        return _failure(error)


def why_alone(run: Run, values: Set) -> str:
    """Why sets like this one cannot be points of one batch; "" if they can."""
    model = model_driven(run)
    if model is None:
        return (
            "the run is no functools.partial of drive() or of an experiment, whose sets are points "
            "of one batch"
        )
    if model.options["convergence"] == "batch":
        return "the option convergence = batch would let the sets change each other"
    for name, value in values.items():
        variable = model.parameters[model.parameters.resolve(name)]
        if np.shape(value) != variable.point_shape:
            return f"the parameter {name!r} has a batch of its own in each set, {np.shape(value)}"
    return ""


def _together(run: Run, sets: Sequence[Set]) -> list[Outcome] | None:
    """Sets as points of one batch, if nothing changes by that; else None."""
    model = model_driven(run)
    if len(sets) < 3 or model is None or why_alone(run, sets[0]):
        return None
    first = _alone(run, sets[0])  # tells what has an axis of points, and how many there are
    output = next((name for name in first if name in model.outputs.index_of), None)
    if isinstance(first, Failure) or output is None:
        return None
    axes = first[output].ndim - 1 - len(model.outputs[model.outputs.index_of[output]].point_shape)
    return [first, *_halved(run, sets[1:], first, axes)]


def _halved(run: Run, sets: Sequence[Set], first: Arrays, axes: int) -> list[Outcome]:
    """Divide sets of which a point fails: it would cut the steps of the others."""
    if len(sets) == 1:
        return [_alone(run, sets[0])]
    columns = {}
    for name in sets[0]:
        column = np.array([values[name] for values in sets])
        columns[name] = column.reshape(len(sets), *[1] * axes, *column.shape[1:])
    try:
        arrays = _arrays(run(parameters=columns, least_step=1.0))
    except BaseException as error:
        if _ends_sweep(error):
            raise
        half = len(sets) // 2
        return [
            outcome
            for part in (sets[:half], sets[half:])
            for outcome in _halved(run, part, first, axes)
        ]
    return [
        {
            name: array[:, number] if array.ndim > first[name].ndim else array
            for name, array in arrays.items()
        }
        for number in range(len(sets))
    ]


def _arrays(returned: object) -> Arrays:
    if not isinstance(returned, Mapping):
        raise FatalError(
            f"the run returned a {type(returned).__name__}; expected results by name: a mapping of "
            "names to arrays",
            lib.NEML2_ERROR_ARGUMENT,
            "run",
        )
    if ITEMS in returned:
        raise FatalError(
            f"the run returned a result {ITEMS!r}, the name of what sweeps keep; name it otherwise",
            lib.NEML2_ERROR_NAME,
            ITEMS,
        )
    return {str(name): _array(str(name), value) for name, value in returned.items()}


def _array(name: str, value: Any) -> Array:
    # A copy: the next set may overwrite what the run returned.
    array = np.array(Tensor(value) if hasattr(value, "__dlpack__") else value)
    if array.dtype.hasobject:
        raise FatalError(
            f"the run returned {name!r} as a {type(value).__name__}; expected an array, or numbers",
            lib.NEML2_ERROR_DTYPE,
            name,
        )
    return array


def _ends_sweep(error: BaseException) -> bool:
    """Whether what a run raised is no failure of its set.

    The exit of the process may be asked for by a handler of a signal, such as SIGTERM.
    """
    main = threading.current_thread() is threading.main_thread()
    exits = main and multiprocessing.parent_process() is None and isinstance(error, SystemExit)
    return exits or isinstance(error, INTERRUPTS)


def _failure(error: BaseException) -> Failure:
    return Failure(type(error).__name__, text_of(error), traceback.format_exc())


def text_of(error: BaseException) -> str:
    """The text of an exception, though it may have none."""
    try:
        return str(error)
    except Exception as why:
        return f"its text cannot be had: {type(why).__name__}"
