"""Operators that are functions of the host, called by packages on the built-in runtime."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import ROOT, needs_fortran, run
from numpy.typing import NDArray
from patience import PATIENCE
from programs import built

import neml2_capi
from neml2_capi import (
    ConvergenceError,
    FatalError,
    Graph,
    Model,
    UnknownNameError,
    register_operator,
    unregister_operator,
)
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.source import native_source

sys.path.insert(0, str(ROOT / "tests" / "models"))
from operator_schemas import COLLECT, CURVE, LIBRARY, LIMIT, MODE, RATE, SATURATE

Array = NDArray[Any]


def saturate(x: Array, scale: float, twice: bool, order: int) -> Array:
    y: Array = scale * x**order / (1 + x**order)
    return 2 * y if twice else y


def curve(x: Array, limit: float, rate: float) -> Array:
    y: Array = limit * (1 - np.exp(-rate * x))
    return y


def recorded(packages: Path, name: str, kind: str) -> list[Array]:
    """What torch took ("in") or made ("out")."""
    with np.load(packages / f"{name}.npz") as file:
        return [file[key] for key in sorted(file.files) if key.startswith(f"{kind}_")]


# ------------------------------------------------------------------------------------------------
# Graphs
# ------------------------------------------------------------------------------------------------


def test_a_function_is_called_by_a_package(packages: Path, register: Any) -> None:
    given: list[Any] = []

    def function(x: Array, *numbers: Any) -> Array:
        given.append(numbers)
        return saturate(x, *numbers)

    register(SATURATE, function)
    graph = Graph(packages / "saturate.pt2")
    assert graph.runtime == "builtin"
    (x,), (expected,) = (recorded(packages, "saturate", kind) for kind in ("in", "out"))
    np.testing.assert_allclose(graph(x)[0], expected, rtol=1e-15)
    assert given == [(0.5, True, 2)]
    assert [type(number) for number in given[0]] == [float, bool, int]


def test_the_decorator_leaves_the_function_as_it_is(packages: Path) -> None:
    @neml2_capi.operator(MODE)
    def mode(x: Array, mode: str) -> Array:
        return {"half": 0.5}[mode] * x

    try:
        np.testing.assert_array_equal(mode(np.array([2.0]), "half"), [1.0])
        (x,), (expected,) = (recorded(packages, "overload", kind) for kind in ("in", "out"))
        np.testing.assert_array_equal(Graph(packages / "overload.pt2")(x)[0], expected)
    finally:
        unregister_operator(f"{LIBRARY}::saturate.mode")


def test_arguments_of_all_kinds_and_several_outputs(packages: Path, register: Any) -> None:
    """One argument is column-major, and the outputs are written over by the package."""
    made: list[Array] = []

    def collect(x: Array, *rest: Any) -> tuple[Array, ...]:
        n, f, b, s, axes, weights, flags, missing, more, some, m, none = rest
        assert (n, f, b, s, m) == (3, 2.5, True, "sum", 2 * len(x) + 1)
        assert (axes, weights, flags) == ((0, 1), (1.0, 2.5), (True, False))
        assert missing is None and none is None and some[0] is None
        assert x.flags.c_contiguous and x.flags.writeable
        total = n * f + b + len(s) + sum(axes) + sum(weights) + sum(flags) + m
        total += sum(value.sum() for value in (*more, some[1]))
        made.extend([x * total, x > 0.5, (10 * x).sum(-1).astype(np.int64)])
        return tuple(made)

    register(COLLECT, collect)
    inputs, expected = (recorded(packages, "collect", kind) for kind in ("in", "out"))
    outputs = Graph(packages / "collect.pt2")(*inputs)
    assert len(outputs) == 3
    for output, value in zip(outputs, expected, strict=True):
        assert output.dtype == value.dtype
        np.testing.assert_allclose(output, value, rtol=1e-14)
    np.testing.assert_array_equal(made[1], inputs[0] > 0.5)  # ours were copied


def test_an_argument_that_is_returned_is_not_written_over(packages: Path, register: Any) -> None:
    kept: list[Array] = []

    def identity(x: Array, *numbers: Any) -> Array:
        kept.append(x)
        return x

    register(SATURATE, identity)
    (x,) = recorded(packages, "saturate", "in")
    given = x.copy()
    np.testing.assert_array_equal(Graph(packages / "saturate.pt2")(given)[0], x + 1)
    gc.collect()
    np.testing.assert_array_equal(given, x)
    np.testing.assert_array_equal(kept[0], x)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda x: x[:-1], r"Output 0 .*saturate must have the shape \(6, 4\), and has \(5, 4\)"),
        (lambda x: x.T, r"must have the shape \(6, 4\), and has \(4, 6\)"),
        (lambda x: x.sum(), r"must have the shape \(6, 4\), and has \(\)"),
        (lambda x: x.astype(np.float32), r"Output 0 .*saturate must be float64, and is float32"),
        (lambda x: None, r"output '0' is None; expected numbers"),
        (lambda x: (x, x), r"saturate returns 1 arrays; its function returned 2"),
    ],
)
def test_what_the_package_was_not_compiled_for_is_refused(
    packages: Path, register: Any, wrong: Callable[[Array], Any], told: str
) -> None:
    answers: list[Callable[[Array], Any]] = [wrong, lambda x: x]
    register(SATURATE, lambda x, *numbers: answers.pop(0)(x))
    graph = Graph(packages / "saturate.pt2")
    (x,) = recorded(packages, "saturate", "in")
    with pytest.raises(FatalError, match=told):
        graph(x)
    np.testing.assert_array_equal(graph(x)[0], x + 1)


def test_an_exception_is_the_cause_of_the_error(packages: Path, register: Any) -> None:
    failing = [True]

    def function(x: Array, *numbers: Any) -> Array:
        if failing[0]:
            raise ValueError("on purpose")
        return x

    register(SATURATE, function)
    graph = Graph(packages / "saturate.pt2")
    (x,) = recorded(packages, "saturate", "in")
    with pytest.raises(
        FatalError, match=r"saturate\.pt2: .*failed: ValueError: on purpose"
    ) as told:
        graph(x)
    assert told.value.status == -9  # NEML2_ERROR_RUNTIME
    assert told.value.subject == f"{LIBRARY}::saturate"
    assert isinstance(told.value.__cause__, ValueError)
    failing[0] = False
    np.testing.assert_array_equal(graph(x)[0], x + 1)


def test_a_recoverable_failure_is_a_convergence_error(
    packages: Path, register: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    def function(x: Array, *numbers: Any) -> Array:
        raise ConvergenceError("the table ends at 1")

    register(SATURATE, function)
    with pytest.raises(ConvergenceError, match="the table ends at 1") as told:
        Graph(packages / "saturate.pt2")(*recorded(packages, "saturate", "in"))
    assert told.value.recoverable
    assert str(told.value.__cause__) == "the table ends at 1"
    assert capfd.readouterr().err == ""  # if packages print what fails in them


def test_an_interrupt_goes_through(packages: Path, register: Any) -> None:
    def function(x: Array, *numbers: Any) -> Array:
        raise KeyboardInterrupt

    register(SATURATE, function)
    with pytest.raises(KeyboardInterrupt):
        Graph(packages / "saturate.pt2")(*recorded(packages, "saturate", "in"))


def test_eight_threads_call_at_once(packages: Path, register: Any) -> None:
    together = [threading.Barrier(1)]  # the first run of a package is alone

    def function(x: Array, *numbers: Any) -> Array:
        together[0].wait(timeout=PATIENCE)
        if x[0, 0] > 7:
            raise ValueError(f"on purpose, with {x[0, 0]}")
        return saturate(x, *numbers)

    register(SATURATE, function)
    graph = Graph(packages / "saturate.pt2")
    given = [np.full((5, 4), 1.0 + i) for i in range(8)]

    def run(x: Array) -> Any:
        try:
            return graph(x)[0]
        except FatalError as error:
            return error

    graph(given[0])
    together[0] = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        *good, failed = pool.map(run, given)
    for x, result in zip(given, good, strict=False):
        np.testing.assert_allclose(result, saturate(x, 0.5, True, 2) + 1, rtol=1e-15)
    assert "on purpose, with 8.0" in str(failed)
    assert isinstance(failed.__cause__, ValueError)


# ------------------------------------------------------------------------------------------------
# Registration
# ------------------------------------------------------------------------------------------------


def test_an_operator_that_is_missing_is_named_with_what_to_do(packages: Path) -> None:
    with pytest.raises(FatalError, match=r"saturate\.pt2: .*saturate.*neml2_operator_register"):
        Graph(packages / "saturate.pt2", runtime="builtin")
    with pytest.raises(FatalError, match=f"{LIBRARY}::saturate"):
        Graph(packages / "saturate.pt2")


def test_a_check_without_loading_knows_what_is_registered(packages: Path, register: Any) -> None:
    def check() -> int:
        return int(lib.neml2_graph_check(taken, source))

    source = native_source(packages / "saturate.pt2")
    taken = ffi.new("int32_t *")
    assert check() < 0
    register(SATURATE, saturate)
    assert check() == 0
    assert taken[0] == lib.NEML2_RUNTIME_BUILTIN


def test_a_name_is_registered_once(packages: Path, register: Any) -> None:
    name = register(SATURATE, saturate)
    with pytest.raises(FatalError, match=r"is registered already\. Unregister it first"):
        register_operator(SATURATE, saturate)
    unregister_operator(name)
    with pytest.raises(UnknownNameError, match="no operator"):
        unregister_operator(name)
    register(SATURATE, lambda x, *numbers: 3 * x)
    (x,) = recorded(packages, "saturate", "in")
    np.testing.assert_array_equal(Graph(packages / "saturate.pt2")(x)[0], 3 * x + 1)


def test_a_package_keeps_to_the_operator_that_it_was_loaded_with(
    packages: Path, register: Any
) -> None:
    name = register(SATURATE, saturate)
    graph = Graph(packages / "saturate.pt2")
    unregister_operator(name)
    register(SATURATE, saturate)
    (x,) = recorded(packages, "saturate", "in")
    with pytest.raises(FatalError, match="was unregistered after the package was loaded"):
        graph(x)


def test_to_unregister_waits_for_the_function(packages: Path, register: Any) -> None:
    began, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def function(x: Array, *numbers: Any) -> Array:
        began.set()
        assert may_end.wait(PATIENCE)
        ended.set()
        return x

    name = register(SATURATE, function)
    graph = Graph(packages / "saturate.pt2")
    with ThreadPoolExecutor(2) as pool:
        run = pool.submit(graph, *recorded(packages, "saturate", "in"))
        assert began.wait(PATIENCE)
        gone = pool.submit(unregister_operator, name)
        assert not ended.is_set()
        may_end.set()
        gone.result(60)
        assert ended.is_set()
        run.result(60)


def test_a_function_cannot_unregister_itself(packages: Path, register: Any) -> None:
    def function(x: Array, *numbers: Any) -> Array:
        unregister_operator(name)
        return x

    name = register(SATURATE, function)
    with pytest.raises(FatalError, match="cannot be unregistered by its own function"):
        Graph(packages / "saturate.pt2")(*recorded(packages, "saturate", "in"))


def test_a_function_is_let_go_of() -> None:
    def function(x: Array) -> Array:
        return x

    gone = weakref.ref(function)
    unregister_operator(register_operator("mylib::identity(Tensor x) -> Tensor", function))
    del function
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("scale(Tensor x) -> Tensor", "does not name its library"),
        ("mylib::scale(Tensor x)", "has no arguments or no results"),
        ("mylib::scale(Tensor(a!) x) -> Tensor", "it writes to an argument"),
        ("mylib::scale(Tensor x, ScalarType t) -> Tensor", "its argument t is of a type"),
        ("mylib::scale(Tensor x, str[] t) -> Tensor", "its argument t is of a type"),
        ("mylib::scale(Tensor x) -> ()", "must return one or more Tensor"),
        ("mylib::scale(Tensor x) -> Tensor[]", "must return one or more Tensor"),
        ("aten::_linalg_solve_ex(Tensor x) -> Tensor", "has an operator .* of its own"),
    ],
)
def test_what_cannot_be_registered_is_refused(schema: str, told: str) -> None:
    with pytest.raises(FatalError, match=told):
        register_operator(schema, lambda *arguments: arguments[0])


@pytest.mark.parametrize(
    "schema",
    [
        f"{LIBRARY}::saturate(Tensor x) -> Tensor",
        f"{LIBRARY}::saturate(Tensor x, int scale, bool twice, int order) -> Tensor",
        f"{LIBRARY}::saturate(Tensor x, float s, bool twice, int order) -> Tensor",
        f"{LIBRARY}::saturate(Tensor x, float scale, bool twice, int order) -> (Tensor, Tensor)",
    ],
)
def test_a_schema_that_the_package_does_not_follow_is_refused(
    packages: Path, register: Any, schema: str
) -> None:
    register(schema, saturate)
    with pytest.raises(FatalError, match="does not fit the schema that was registered"):
        Graph(packages / "saturate.pt2", runtime="builtin")


def test_an_interpreter_ends_with_operators_registered(packages: Path) -> None:
    code = f"""if True:
        import threading, time
        import numpy as np
        from neml2_capi import Graph, register_operator

        def function(x, *numbers):
            began.set()
            time.sleep(0.01)
            return x

        began = threading.Event()
        register_operator({SATURATE!r}, function)
        graph = Graph({str(packages / "saturate.pt2")!r})

        def forever():
            while True:
                try:
                    graph(np.ones((4, 4)))
                except Exception:
                    pass

        threading.Thread(target=forever, daemon=True).start()
        began.wait()
        print("done")
    """
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_program_in_c_has_a_function_called(packages: Path) -> None:
    run(built("c_test_operators"), NEML2_TEST_OPERATORS=str(packages))


def test_a_program_in_cpp_has_a_function_called(packages: Path) -> None:
    program = built("cpp_face_test_operators")
    run(program, NEML2_TEST_OPERATORS=str(packages))


@needs_fortran
def test_a_program_in_fortran_has_a_subroutine_called(packages: Path) -> None:
    program = built("fortran_test_operators")
    run(program, NEML2_TEST_OPERATORS=str(packages))


# ------------------------------------------------------------------------------------------------
# Models
# ------------------------------------------------------------------------------------------------


def test_a_law_calls_a_function(packages: Path, register: Any) -> None:
    register(CURVE, curve)
    model = Model(packages / "hardening")
    assert model.runtime == "builtin"
    strain = np.linspace(0, 0.1, 5000)
    outputs = model.forward({"strain": strain})
    np.testing.assert_allclose(outputs["stress"], curve(strain, LIMIT, RATE), rtol=1e-15)
    np.testing.assert_array_equal(outputs["square"], strain**2)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("chunk", [16, 200])
def test_points_that_fail_fail_alone(
    packages: Path, register: Any, threads: int, chunk: int
) -> None:
    def function(x: Array, *numbers: Any) -> Array:
        if (x < -0.01).any():
            raise ConvergenceError("no curve in compression")
        return curve(x, *numbers)

    register(CURVE, function)
    model = Model(packages / "hardening")
    model.options["threads"] = threads
    model.options["chunk"] = chunk
    strain = np.linspace(0, 0.1, 100)
    good = model.forward({"strain": strain})["stress"]
    bad = strain.copy()
    bad[[3, 50]] = -1.0
    with pytest.raises(ConvergenceError, match=r"Of point 3: .*no curve in compression") as told:
        model.forward({"strain": bad})
    expected = np.ones(100, bool)
    expected[[3, 50]] = False
    np.testing.assert_array_equal(told.value.converged_mask, expected)
    np.testing.assert_array_equal(told.value.outputs["stress"][expected], good[expected])
    assert np.isnan(told.value.outputs["stress"][~expected]).all()
    assert str(told.value.__cause__) == "no curve in compression"
    np.testing.assert_array_equal(model.forward({"strain": strain})["stress"], good)


def test_a_function_that_fails_at_load_is_told(packages: Path, register: Any) -> None:
    def function(x: Array, *numbers: Any) -> Array:
        raise ConvergenceError("nothing at zero")

    register(CURVE, function)
    with pytest.raises(FatalError, match=r"nothing at zero.*while the model was loaded"):
        Model(packages / "hardening")


def test_the_engine_in_python_calls_it(packages: Path, register: Any) -> None:
    register(CURVE, curve)
    strain = np.linspace(0, 0.1, 9)
    ours, theirs = (
        Model(packages / "hardening", engine=engine).forward({"strain": strain})["stress"]
        for engine in ("native", "python")
    )
    np.testing.assert_array_equal(theirs, ours)
