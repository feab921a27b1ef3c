"""What the library has to tell comes through `logging`, at the levels of the loggers."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from native import PREBUILT, TESTS, needs_fortran, run
from patience import PATIENCE
from programs import built
from states import Artifacts, load, recorded

from neml2_capi import ConvergenceError, FatalError, Model, drive
from neml2_capi._ffi import logs
from neml2_capi._ffi.library import ffi, lib
from neml2_capi.model.native import Native
from neml2_capi.solvers import Newton

NAMES = ("newton", "linear", "substep", "model", "tensor", "driver", "bounds")
STRAIN = np.array([5e-3, -1.5e-3, -1.25e-3, 5e-4, -1e-3, 2.5e-4])

Records = list[logging.LogRecord]


class Kept(logging.Handler):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.records: Records = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def texts(self, name: str = "newton") -> list[str]:
        return [r.getMessage() for r in self.records if r.name == f"neml2_capi.{name}"]


@pytest.fixture
def kept() -> Iterator[Kept]:
    """A handler of all loggers; levels and queue are as they were afterwards."""
    loggers = [logging.getLogger(name) for name in ("", "neml2_capi", *map(full, NAMES))]
    levels = [logger.level for logger in loggers]
    handler = Kept()
    logs.drain()
    logging.getLogger("neml2_capi").addHandler(handler)
    yield handler
    logging.getLogger("neml2_capi").removeHandler(handler)
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def full(name: str) -> str:
    return f"neml2_capi.{name}"


def logger(name: str) -> logging.Logger:
    return logging.getLogger(full(name))


def inputs(points: int = 1, bad: tuple[int, ...] = ()) -> dict[str, Any]:
    """A step from rest of the viscoplastic model; no residual of the points `bad` has a norm."""
    strain = np.outer(1.0 / (1.0 + np.arange(points) % 5), STRAIN)
    strain[list(bad)] = 1e200
    zeros = np.zeros((points, 6))
    old = {f"{name}~1": zeros for name in ("strain", "stress", "X1", "X2")}
    return {
        "t": 5.0,
        "t~1": 0.0,
        "strain": strain,
        "equivalent_plastic_strain~1": np.zeros(points),
        **old,
    }


def level_of(name: str) -> int:
    level = ffi.new("int32_t *")
    assert lib.neml2_log_level_get(level, name.encode()) == lib.NEML2_OK
    return int(level[0])


def waiting() -> int:
    count = ffi.new("int64_t *")
    assert lib.neml2_log_count(count) == lib.NEML2_OK
    return int(count[0])


# ---- what is told ----


def test_the_history_of_newton_is_that_of_the_report(viscoplastic: Model, kept: Kept) -> None:
    viscoplastic.options["collect_history"] = 1
    logger("newton").setLevel(logging.DEBUG)
    _, report = viscoplastic.evaluate(inputs())
    iterations, history = int(report["iterations"][0]), report["residual_history"][0]
    found = [re.search(r"iteration (\d+), \|r\| = (\S+), (\d) left", t) for t in kept.texts()]
    told = [match.groups() for match in found if match]
    assert [int(number) for number, _, _ in told] == list(range(iterations + 1))
    assert [int(left) for _, _, left in told] == [1] * iterations + [0]
    np.testing.assert_allclose(
        [float(norm) for _, norm, _ in told], history[: iterations + 1], rtol=1e-6
    )
    assert "1 of 1 converged" in kept.texts()[-1]
    assert {r.levelname for r in kept.records[:-1]} == {"DEBUG"}
    assert kept.records[-1].levelname == "INFO"


def test_the_python_engine_tells_the_same_norms(kept: Kept) -> None:
    logger("newton").setLevel(logging.DEBUG)
    told = []
    for engine in ("native", "python"):
        kept.records.clear()
        Model(PREBUILT / "viscoplastic", engine=engine).forward(inputs())
        found = [re.search(r"iteration (\d+), \|r\| = ([^,]+),", text) for text in kept.texts()]
        told.append([match.groups() for match in found if match])
    (first, *_), (other, *_) = told
    assert first == other
    assert [i for i, _ in told[0]] == [i for i, _ in told[1]]


@pytest.mark.parametrize("way", ["forward", "replayed", "evaluate", "bound", "solve"])
def test_points_that_fail_are_one_warning(viscoplastic: Model, kept: Kept, way: str) -> None:
    good, bad = inputs(3), inputs(3, bad=(1,))
    if way == "replayed":
        for _ in range(3):
            viscoplastic.forward(good)
    calls: dict[str, Callable[[], Any]] = {
        "forward": lambda: viscoplastic.forward(bad),
        "replayed": lambda: viscoplastic.forward(bad),
        "evaluate": lambda: viscoplastic.evaluate(bad),
        "bound": lambda: viscoplastic.bind(bad).run(),
        "solve": lambda: viscoplastic.forward(bad, solver=Newton()),
    }
    try:
        calls[way]()
    except ConvergenceError as error:
        # Before it was raised, and in the same words.
        assert kept.texts() == [str(error)]
    assert [r.levelname for r in kept.records] == ["WARNING"]
    assert "1 of 3 points did not converge (the first is point 1)" in kept.texts()[0]
    assert waiting() == 0


def test_a_number_that_is_not_finite_is_a_warning_each_time(model: Model, kept: Kept) -> None:
    strain = np.full(6, np.nan)
    for _ in range(4):  # the last ones are replayed
        model.forward({"strain": strain})
    assert len(kept.texts("model")) == 4
    assert "not finite" in kept.texts("model")[-1]


def remembered(model: Model) -> int:
    """How many calls are kept for replays."""
    assert isinstance(model._engine, Native)
    return sum(len(memory.slots) for memory in model._engine._memories.values())


def test_what_is_done_again_is_told_once(viscoplastic: Model, kept: Kept) -> None:
    for _ in range(3):
        viscoplastic.forward(inputs())
    logger("newton").setLevel(logging.DEBUG)
    with pytest.raises(ConvergenceError):
        viscoplastic.forward(inputs(bad=(0,)))
    assert [r.levelname for r in kept.records] == ["DEBUG", "INFO", "WARNING"]
    kept.records.clear()
    before = remembered(viscoplastic)
    for _ in range(20):
        viscoplastic.forward(inputs())
    assert len([t for t in kept.texts() if "1 of 1 converged" in t]) == 20
    assert remembered(viscoplastic) == before


def test_the_points_of_chunks_have_their_numbers(viscoplastic: Model, kept: Kept) -> None:
    viscoplastic.options["chunk"] = 4
    viscoplastic.options["threads"] = 1
    logger("newton").setLevel(logging.INFO)
    viscoplastic.evaluate(inputs(10, bad=(9,)))
    first = [re.search(r"pt2, (.*?):", text) for text in kept.texts()[:-1]]
    assert [m.group(1) for m in first if m] == [
        "4 points from 0 on",
        "4 points from 4 on",
        "2 points from 8 on",
    ]
    assert "point 9 has |r| = inf" in kept.texts()[-2]


def test_loading_is_told(kept: Kept) -> None:
    logger("model").setLevel(logging.INFO)
    Model(PREBUILT / "elasticity")
    assert re.fullmatch(r"read .*metadata.json, schema 14", kept.texts("model")[0])
    told = r"loaded .*float64 in [\d.]+ ms: segments 1 \(implicit 0\), packages 2, built-in .*"
    assert re.fullmatch(told, kept.texts("model")[1])


def test_a_leaf_of_another_type_is_a_warning(artifacts: Artifacts, kept: Kept) -> None:
    loaded = Model(artifacts["elasticity_float32"], dtype="float32")
    if loaded.dtype == np.float32:
        pytest.skip("this artifact is what it says")
    assert "the packages are float64, though compiled as float32" in kept.texts("model")[0]


def test_copies_are_told(model: Model, kept: Kept) -> None:
    logger("tensor").setLevel(logging.DEBUG)
    model.forward({"strain": np.zeros((6, 4)).T})
    assert kept.texts("tensor") == ["the input 'strain' was copied: it is not row-major"]


def test_iterations_of_a_krylov_solver_are_told(artifacts: Artifacts, kept: Kept) -> None:
    creep = load(artifacts, "gmres")
    logger("linear").setLevel(logging.DEBUG)
    creep.forward(recorded("gmres", "in"))
    assert kept.texts("linear")
    pattern = r".*_residual.pt2: (\d+) of \1 linear systems solved, in at most \d+ iterations"
    assert all(re.fullmatch(pattern, text) for text in kept.texts("linear"))


def test_parts_of_an_increment_are_told(artifacts: Artifacts, kept: Kept) -> None:
    model = load(artifacts, "substepping")
    logger("substep").setLevel(logging.DEBUG)
    model.forward(recorded("substepping", "in"))
    *parts, end = kept.texts("substep")
    assert parts
    assert all(re.search(r"\d+ solved from \S+ to \S+ of the increment$", text) for text in parts)
    pattern = r"(\d+) needed parts of the increment, down to 1/\d+; 0 could not be solved$"
    assert re.search(pattern, end)


def test_the_driver_tells_of_steps_and_cuts(viscoplastic: Model, kept: Kept) -> None:
    logger("driver").setLevel(logging.DEBUG)
    times = np.linspace(0.0, 1.0, 3)
    drive(viscoplastic, times, {"strain": np.outer(times, STRAIN)})
    assert kept.texts("driver") == [
        "step 1: made, in 1 increments",
        "step 2: made, in 1 increments",
    ]
    kept.records.clear()
    viscoplastic.options["miters"] = 8
    drive(viscoplastic, times, {"strain": np.outer(times, STRAIN)})
    assert any("is cut, for" in text for text in kept.texts("driver"))


# ---- levels ----


def test_the_library_has_the_levels_of_the_loggers(kept: Kept) -> None:
    root, ours = logging.getLogger(), logging.getLogger("neml2_capi")

    def levels() -> list[int]:
        return [level_of(name) for name in NAMES]

    for level, expected in (
        (logging.DEBUG, lib.NEML2_LOG_DEBUG),
        (5, lib.NEML2_LOG_DEBUG),
        (15, lib.NEML2_LOG_INFO),
        (logging.INFO, lib.NEML2_LOG_INFO),
        (logging.WARNING, lib.NEML2_LOG_WARNING),
        (logging.ERROR, lib.NEML2_LOG_SILENT),
        (logging.CRITICAL + 1, lib.NEML2_LOG_SILENT),
    ):
        ours.setLevel(level)
        assert levels() == [expected] * len(NAMES)
    ours.setLevel(logging.NOTSET)
    root.setLevel(logging.INFO)
    assert levels() == [lib.NEML2_LOG_INFO] * len(NAMES)
    logger("linear").setLevel(logging.DEBUG)
    assert levels() == [2, 3, 2, 2, 2, 2, 2]
    logging.disable(logging.INFO)
    assert levels() == [1] * len(NAMES)
    logging.disable(logging.NOTSET)
    assert levels() == [2, 3, 2, 2, 2, 2, 2]
    root.setLevel(logging.WARNING)
    assert levels() == [1, 3, 1, 1, 1, 1, 1]
    assert logs.listening == {"linear"}


def test_a_level_is_heeded_by_the_next_call(viscoplastic: Model, kept: Kept) -> None:
    call = viscoplastic.bind(inputs())
    told = []
    for level in (logging.WARNING, logging.INFO, logging.WARNING, logging.INFO):
        logger("newton").setLevel(level)
        kept.records.clear()
        viscoplastic.forward(inputs())
        call()
        told.append(len(kept.records))
    assert told == [0, 2, 0, 2]


def test_a_silent_logger_gets_nothing(viscoplastic: Model, kept: Kept) -> None:
    logger("newton").setLevel(logging.ERROR)
    with pytest.raises(ConvergenceError):
        viscoplastic.forward(inputs(bad=(0,)))
    assert kept.records == []
    assert waiting() == 0


def test_a_filter_and_a_disabled_logger_are_heeded(viscoplastic: Model, kept: Kept) -> None:
    newton = logger("newton")
    newton.setLevel(logging.DEBUG)

    def only_the_end(record: logging.LogRecord) -> bool:
        return "converged" in record.getMessage()

    newton.addFilter(only_the_end)
    viscoplastic.forward(inputs())
    newton.removeFilter(only_the_end)
    assert len(kept.records) == 1
    newton.disabled = True
    viscoplastic.forward(inputs())
    newton.disabled = False
    assert len(kept.records) == 1
    assert waiting() == 0


def test_an_error_is_raised_as_it_is(model: Model, kept: Kept) -> None:
    logging.getLogger("neml2_capi").setLevel(logging.DEBUG)
    with pytest.raises(FatalError, match="no-such-folder"):
        Model("no-such-folder")
    with pytest.raises(FatalError, match="strain"):
        model.forward({"strain": np.zeros(5)})


# ---- the queue ----


def test_what_does_not_fit_the_queue_is_counted(viscoplastic: Model, kept: Kept) -> None:
    viscoplastic.options["chunk"] = 1
    viscoplastic.options["threads"] = 1
    logger("newton").setLevel(logging.DEBUG)
    _, report = viscoplastic.evaluate(inputs(2000))
    written = int(report["iterations"].sum()) + 2 * 2000
    first = kept.texts()[0]
    match = re.match(r"The queue was full, and the (\d+) oldest records of 'newton'", first)
    assert match
    assert int(match.group(1)) + len(kept.records) - 1 == written
    assert kept.records[0].levelname == "WARNING"


def test_records_of_threads_come_once_each(viscoplastic: Model, kept: Kept) -> None:
    logger("newton").setLevel(logging.DEBUG)
    viscoplastic.forward(inputs())
    each, texts = len(kept.records), set(kept.texts())
    kept.records.clear()

    def solve() -> None:
        for _ in range(25):
            viscoplastic.forward(inputs())

    threads = [threading.Thread(target=solve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept.records) == 100 * each
    assert set(kept.texts()) == texts


def test_records_of_workers_come_too(viscoplastic: Model, kept: Kept) -> None:
    viscoplastic.options["threads"] = 4
    viscoplastic.options["chunk"] = 50
    logger("newton").setLevel(logging.INFO)
    viscoplastic.forward(inputs(1000))
    assert len(kept.records) == 20
    assert sum("50 of 50 converged" in text for text in kept.texts()) == 20


def test_a_handler_may_call_the_library(viscoplastic: Model, model: Model, kept: Kept) -> None:
    class Calling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            model.forward({"strain": STRAIN})

    handler = Calling()
    logger("newton").setLevel(logging.DEBUG)
    logger("newton").addHandler(handler)
    viscoplastic.forward(inputs())
    logger("newton").removeHandler(handler)
    numbers = [re.search(r"iteration (\d+)", text) for text in kept.texts()]
    assert len(numbers) > 3


def test_an_error_survives_a_handler_that_meets_another(model: Model, kept: Kept) -> None:
    class Failing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            with pytest.raises(FatalError, match="strain"):
                model.forward({"strain": np.zeros(5)})

    handler = Failing()
    logger("model").setLevel(logging.INFO)
    logger("model").addHandler(handler)
    try:
        with pytest.raises(FatalError, match="float32"):
            Model(PREBUILT / "elasticity", dtype="float32")
    finally:
        logger("model").removeHandler(handler)
    assert len(kept.texts("model")) == 1


# ---- other processes and languages ----

SCRIPT = f"""
import sys
sys.path[:0] = [{str(TESTS / "python")!r}, {str(TESTS / "models")!r}]
import logging, numpy as np, neml2_capi
from test_logging import inputs
{{before}}
model = neml2_capi.Model({str(PREBUILT / "viscoplastic")!r})
model.forward(inputs())
try:
    model.forward(inputs(bad=(0,)))
except neml2_capi.ConvergenceError:
    pass
{{after}}
"""


def process(before: str = "", after: str = "", setting: str | None = None) -> tuple[str, str]:
    """What a script prints to stdout and to stderr, with NEML2_LOGS as it is given."""
    environment = {k: v for k, v in os.environ.items() if k != "NEML2_LOGS"}
    if setting is not None:
        environment["NEML2_LOGS"] = setting
    script = SCRIPT.format(before=before, after=after)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("setting", [None, "all=debug", "nonsense"])
def test_nothing_is_printed_by_default(setting: str | None) -> None:
    assert process(setting=setting) == ("", "")


BASIC = 'logging.basicConfig(format="%(name)s %(levelname)s %(message)s")'


def test_a_handler_of_the_root_shows_warnings() -> None:
    lines = process(BASIC)[1].splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("neml2_capi.newton WARNING 1 of 1 points did not converge")


@pytest.mark.parametrize(
    ("setting", "levels"),
    [
        ("newton=info", {"newton": 20}),
        ("newton=info,substep=debug", {"newton": 20, "substep": 10}),
        (" Newton = DEBUG ,", {"newton": 10}),
        ("all=2,newton=3", {"": 20, "newton": 10}),
        ("all=off", {"": 51}),
        ("newton=loud,linear=info", {"linear": 20}),
        ("newton", {}),
        ("", {}),
    ],
)
def test_the_environment_sets_the_levels_of_the_loggers(
    setting: str, levels: dict[str, int]
) -> None:
    after = (
        f"names = ('neml2_capi', *('neml2_capi.' + n for n in {NAMES!r}))\n"
        "print({n: logging.getLogger(n).level for n in names})"
    )
    expected = {"neml2_capi": levels.get("", 0)} | {full(n): levels.get(n, 0) for n in NAMES}
    assert eval(process(after=after, setting=setting)[0]) == expected


def test_the_environment_is_heeded_and_the_program_has_the_last_word() -> None:
    lines = process(BASIC, setting="newton=info")[1].splitlines()
    assert [line.split()[1] for line in lines] == ["INFO", "INFO", "WARNING"]
    silenced = f"{BASIC}\nlogging.getLogger('neml2_capi.newton').setLevel(logging.ERROR)"
    assert process(silenced, setting="newton=info")[1] == ""


def test_what_nobody_understands_in_the_environment_is_a_warning() -> None:
    lines = process(BASIC, setting="newton=loud,linear=info")[1].splitlines()
    assert lines[0].startswith("neml2_capi.model WARNING The environment variable NEML2_LOGS holds")
    assert "'newton=loud', which is left out. Expected channel=level" in lines[0]


def test_a_forked_child_logs_its_own(viscoplastic: Model, kept: Kept) -> None:
    logger("newton").setLevel(logging.INFO)
    viscoplastic.options["threads"] = 1
    child = os.fork()
    if child == 0:
        viscoplastic.forward(inputs())
        os._exit(0 if len(kept.records) == 1 and waiting() == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert kept.records == []


def in_python(viscoplastic: Model, kept: Kept) -> list[str]:
    """What the programs of the other languages print with the argument "print"."""
    logger("newton").setLevel(logging.DEBUG)
    call = viscoplastic.bind(good := inputs())
    call.run()
    good["strain"][0, 0] = 1e200
    call.run()
    levels = {"WARNING": 1, "INFO": 2, "DEBUG": 3}
    return [
        f"{r.name.removeprefix('neml2_capi.')} {levels[r.levelname]} {r.getMessage()}"
        for r in kept.records
    ]


def test_the_records_are_those_of_c(viscoplastic: Model, kept: Kept) -> None:
    program = built("c_test_log")
    assert run(program, "print").splitlines() == in_python(viscoplastic, kept)


@needs_fortran
def test_the_records_are_those_of_fortran(viscoplastic: Model, kept: Kept) -> None:
    program = built("fortran_test_log")
    assert run(program, "print").splitlines() == in_python(viscoplastic, kept)
