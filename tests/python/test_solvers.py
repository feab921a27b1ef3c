"""Solving the nonlinear systems by hand gives what the library gives."""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray
from states import load, recorded

from neml2_capi import ConvergenceError, FatalError, Model
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib
from neml2_capi.solvers import NOT_CONVERGED, OK, Newton, System

Array = NDArray[np.float64]
Arrays = dict[str, Array]
Artifacts = Mapping[str, Path]

#: The name of a recipe, and options other than its own: a line search that cuts steps, for one.
CASES: dict[str, dict[str, float | str]] = {
    "isotropic_hardening": {},
    "isotropic_hardening, backtracking": {"ls_max_iters": 6, "ls_type": "BACKTRACKING"},
    "isotropic_hardening, strong Wolfe": {
        "ls_max_iters": 6,
        "ls_type": "STRONG_WOLFE",
        "ls_c": 0.3,
    },
    "radial_return": {},
    "relaxation": {},
    "polycrystal": {},
    "crystal": {},
    "warm_start": {},
    "gmres": {},
    "bicgstab": {},
}


def case(artifacts: Artifacts, name: str, convergence: str = "point") -> tuple[Model, Arrays]:
    recipe = name.partition(",")[0]
    model = load(artifacts, recipe, convergence)
    model.options.update(CASES[name])
    return model, recorded(recipe, "in")


def assert_agree(outputs: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert outputs.keys() == expected.keys()
    for name, value in expected.items():
        scale = np.abs(value).max()
        np.testing.assert_allclose(outputs[name], value, rtol=0, atol=1e-12 * scale, err_msg=name)


@pytest.mark.parametrize("convergence", ["point", "batch"])
@pytest.mark.parametrize("name", CASES)
def test_newton_is_the_iteration_of_the_library(
    artifacts: Artifacts, name: str, convergence: str
) -> None:
    model, inputs = case(artifacts, name, convergence)
    model.options["collect_history"] = 1
    expected, report = model.evaluate(inputs)
    seen: list[Array] = []
    newton = Newton.like(model, hook=lambda iteration, u, norms: seen.append(norms))
    assert_agree(model.forward(inputs, solver=newton), expected)

    # [iteration, point]; a point that has converged is still seen, but no longer iterated.
    history = report["residual_history"].reshape(-1, int(model.options["miters"])).T
    made = np.isfinite(history)
    norms = np.array(seen)
    assert len(norms) == made.any(axis=1).sum()
    norms = np.pad(norms, ((0, len(made) - len(norms)), (0, 0)), constant_values=np.nan)
    # The first residual has the greatest terms: their round-off remains.
    tolerance = 1e-12 * np.broadcast_to(history[0], history.shape)
    assert np.all(np.abs(norms - history)[made] <= tolerance[made])


@pytest.mark.parametrize("kind", ["BACKTRACKING", "STRONG_WOLFE"])
def test_a_line_search_that_cuts_steps_is_that_of_the_library(
    viscoplastic: Model, kind: str
) -> None:
    """From a strain so large that full Newton steps overshoot."""
    inputs = viscoplastic_inputs(0.05)
    seen: dict[int, list[Array]] = {1: [], 8: []}  # with and without trials
    for trials, norms in seen.items():
        viscoplastic.options.update({"ls_type": kind, "ls_max_iters": trials, "miters": 100})
        newton = Newton.like(viscoplastic, hook=lambda *now, norms=norms: norms.append(now[2]))
        assert_agree(viscoplastic.forward(inputs, solver=newton), viscoplastic.forward(inputs))
    assert not np.allclose(seen[1][1], seen[8][1]), "the first step was cut"


def viscoplastic_inputs(strain: float) -> Arrays:
    direction = np.array([1.0, -0.3, -0.25, 0.35, -0.2, 0.15])
    zeros = np.zeros((3, 6))
    return {
        "strain": strain * np.array([[1.0], [0.5], [-0.2]]) * direction,
        "strain~1": zeros,
        "t": np.ones(3),
        "t~1": np.zeros(3),
        "stress~1": zeros,
        "equivalent_plastic_strain~1": np.zeros(3),
        "X1~1": zeros,
        "X2~1": zeros,
    }


def test_a_hook_sees_every_iterate(viscoplastic: Model) -> None:
    inputs = viscoplastic_inputs(0.01)
    seen: list[tuple[int, Array, Array]] = []
    viscoplastic.options["kernels"] = "off"  # whose last residual is other round-off
    newton = Newton.like(viscoplastic, hook=lambda *now: seen.append(now))
    viscoplastic.forward(inputs, solver=newton)
    assert [iteration for iteration, _, _ in seen] == list(range(len(seen)))
    assert all(u.shape == (3, 19) and norms.shape == (3,) for _, u, norms in seen)
    _, report = viscoplastic.evaluate(inputs)
    assert len(seen) == report["iterations"].max() + 1
    np.testing.assert_allclose(seen[-1][2], report["residual_norm"], rtol=1e-6)


def dense(system: System) -> None:
    """All points as one system, with a block-diagonal Jacobian."""
    shape = (system.points, system.size)
    found = scipy.optimize.root(
        lambda u: system.residual(u.reshape(shape)).ravel(),
        system.guess().ravel(),
        jac=lambda u: scipy.linalg.block_diag(*system.jacobian(u.reshape(shape))),
        tol=1e-12,
    )
    assert found.success, found.message
    system.accept(found.x.reshape(shape))


def point_by_point(system: System) -> None:
    """One solve per point; the library evaluates the others beside it."""
    solution = system.guess()
    for p in range(system.points):

        def residual(u: Array, p: int = p) -> Array:
            solution[p] = u
            r: Array = system.residual(solution)[p]
            return r

        found = scipy.optimize.root(residual, solution[p].copy(), method="hybr", tol=1e-12)
        assert found.success, found.message
        solution[p] = found.x
    system.accept(solution)


@pytest.mark.parametrize("solver", [dense, point_by_point])
@pytest.mark.parametrize("name", ["isotropic_hardening", "radial_return", "relaxation"])
def test_scipy_solves_the_systems(artifacts: Artifacts, name: str, solver: Any) -> None:
    model, inputs = case(artifacts, name)
    outputs, expected = model.forward(inputs, solver=solver), model.forward(inputs)
    for variable, value in expected.items():
        # scipy stops where its own tolerance for the step holds.
        scale = np.abs(value).max()
        np.testing.assert_allclose(outputs[variable], value, rtol=0, atol=1e-7 * scale)


def test_a_system_is_consistent(artifacts: Artifacts) -> None:
    """r + A du = 0; A v is the change of r; the unknowns have their names."""
    model, inputs = case(artifacts, "isotropic_hardening")
    with model.solve(inputs) as solve:
        system = solve.next()
        assert system is not None
        assert (system.points, system.size) == (len(inputs["t"]), 7)
        u = system.guess()
        du, singular = system.step(u)
        assert not singular.any()
        a, r = system.jacobian(u), system.residual(u)
        scale = np.abs(r).max()
        np.testing.assert_allclose(np.einsum("pij,pj->pi", a, du), -r, rtol=0, atol=1e-10 * scale)
        np.testing.assert_allclose(system.matvec(u, du), -r, rtol=0, atol=1e-10 * scale)
        named = system.by_name(u)
        # The predictor is the old state.
        np.testing.assert_array_equal(named["stress"], inputs["stress~1"])
        plastic = "equivalent_plastic_strain"
        np.testing.assert_array_equal(named[plastic], inputs[f"{plastic}~1"])


def test_unknowns_of_a_block_group_interleave(artifacts: Artifacts) -> None:
    model, inputs = case(artifacts, "polycrystal")
    seen: list[Mapping[str, Array]] = []

    def newton(system: System) -> None:
        Newton.like(model, hook=lambda _, u, norms: seen.append(system.by_name(u)))(system)

    outputs = model.forward(inputs, solver=newton)
    assert seen[-1].keys() == set(model.unknowns.names)
    for name, value in seen[-1].items():
        np.testing.assert_array_equal(value, outputs[name])
    with model.solve(inputs) as solve:
        system = solve.next()
        assert system is not None
        u = system.guess() + 1e-3
        v = np.random.default_rng(1).standard_normal(u.shape)
        central = (system.residual(u + 1e-6 * v) - system.residual(u - 1e-6 * v)) / 2e-6
        product = np.einsum("pij,pj->pi", system.jacobian(u), v)
        np.testing.assert_allclose(product, central, rtol=0, atol=1e-6 * np.abs(central).max())


def test_a_matrix_free_system_has_its_product(artifacts: Artifacts) -> None:
    model, inputs = case(artifacts, "gmres")
    with model.solve(inputs) as solve:
        system = solve.next()
        assert system is not None
        u = system.guess()
        v = np.random.default_rng(1).standard_normal(u.shape) * np.maximum(np.abs(u), 1e-4)
        central = (system.residual(u + 1e-6 * v) - system.residual(u - 1e-6 * v)) / 2e-6
        product = system.matvec(u, v)
        np.testing.assert_allclose(product, central, rtol=0, atol=1e-6 * np.abs(central).max())


def test_parameters_can_be_replaced(artifacts: Artifacts) -> None:
    model, inputs = case(artifacts, "isotropic_hardening")
    overrides = {"yield_stress": 170.0}
    expected = model.forward(inputs, overrides)
    outputs = model.forward(inputs, overrides, solver=Newton.like(model))
    assert_agree(outputs, expected)
    assert np.abs(outputs["stress"] - model.forward(inputs)["stress"]).max() > 1.0
    varying = {"yield_stress": np.linspace(100.0, 200.0, len(inputs["t"]))}
    with pytest.raises(FatalError, match="cannot vary within a solve"):
        model.solve(inputs, varying)


def test_failed_points_are_reported(viscoplastic: Model) -> None:
    inputs = viscoplastic_inputs(0.01)
    good = viscoplastic.forward(inputs)
    inputs["strain"][1, 2] = 1e200
    with pytest.raises(ConvergenceError) as caught:
        viscoplastic.forward(inputs, solver=Newton.like(viscoplastic))
    error = caught.value
    np.testing.assert_array_equal(error.converged_mask, [True, False, True])
    assert np.isnan(error.outputs["stress"][1]).all()
    for p in (0, 2):
        np.testing.assert_allclose(error.outputs["stress"][p], good["stress"][p], rtol=1e-9)
    assert error.report["suggested_cut"][1] < 1


def test_what_a_solver_says_is_in_the_report(viscoplastic: Model) -> None:
    def gives_up(system: System) -> None:
        system.accept(system.guess(), [OK, NOT_CONVERGED, OK], [3, 4, 5])

    with pytest.raises(ConvergenceError) as caught:
        viscoplastic.forward(viscoplastic_inputs(0.01), solver=gives_up)
    assert "which your solver gave up: reduce the step" in str(caught.value)
    np.testing.assert_array_equal(caught.value.report["status"], [OK, NOT_CONVERGED, OK])
    np.testing.assert_array_equal(caught.value.report["iterations"], [3, 4, 5])
    np.testing.assert_array_equal(caught.value.unknowns["stress"][1], np.zeros(6))


def test_a_solver_that_stops_too_early_is_an_error(viscoplastic: Model) -> None:
    inputs = viscoplastic_inputs(0.01)
    right = viscoplastic.forward(inputs)["stress"]
    with pytest.raises(ConvergenceError, match=r"your solver accepted.*atol and rtol") as caught:
        viscoplastic.forward(inputs, solver=lambda system: system.accept(system.guess()))
    assert np.isnan(caught.value.outputs["stress"]).all()

    def two_steps(system: System, status: int | None) -> None:
        u = system.guess()
        for _ in range(2):
            u = u + system.step(u)[0]
        system.accept(u, status)

    with pytest.raises(ConvergenceError):
        viscoplastic.forward(inputs, solver=partial(two_steps, status=None))
    rough = viscoplastic.forward(inputs, solver=partial(two_steps, status=OK))["stress"]
    assert np.isfinite(rough).all() and np.abs(rough - right).max() > 1.0


def test_what_is_out_of_order_is_refused(viscoplastic: Model) -> None:
    inputs = viscoplastic_inputs(0.01)
    with pytest.raises(FatalError, match="was not accepted"):
        viscoplastic.forward(inputs, solver=lambda system: None)
    with viscoplastic.solve(inputs) as solve:
        with pytest.raises(FatalError, match="not at its end"):
            solve.end()
        system = solve.next()
        assert system is not None
        with pytest.raises(FatalError, match=r"\(3, 19\); got .*\(3, 18\)"):
            system.residual(np.zeros((3, 18)))
        with pytest.raises(FatalError, match="status of point 1"):
            system.accept(system.guess(), [0, 1, 0])
        system.accept(system.guess(), OK)
        with pytest.raises(FatalError, match="accepted before"):
            system.accept(system.guess())
        assert solve.next() is None
        with pytest.raises(FatalError, match="gone"):
            system.guess()
        solve.end()
        with pytest.raises(FatalError, match="closed"):
            solve.end()


def test_a_solve_can_be_abandoned(viscoplastic: Model) -> None:
    inputs = viscoplastic_inputs(0.01)
    solve = viscoplastic.solve(inputs)
    system = solve.next()
    assert system is not None
    solve.close()
    with pytest.raises(FatalError, match="closed"):
        system.guess()
    del solve, system
    gc.collect()
    with pytest.raises(ZeroDivisionError):
        viscoplastic.forward(inputs, solver=lambda system: 1 / 0)
    viscoplastic.forward(inputs)


def test_an_explicit_model_has_no_systems(model: Model) -> None:
    strain = np.full((2, 6), 1e-3)
    with model.solve({"strain": strain}) as solve:
        assert list(solve) == []
        outputs = solve.end()
    stress = model.forward({"strain": strain})["stress"]
    np.testing.assert_allclose(outputs["stress"], stress, rtol=1e-14)


def test_results_follow_the_inputs() -> None:
    torch = pytest.importorskip("torch")
    from neml2_capi.torch import Model as TorchModel

    root = Path(__file__).resolve().parents[2] / "examples" / "artifacts" / "viscoplastic"
    model = TorchModel(root)
    inputs = {name: torch.from_numpy(v) for name, v in viscoplastic_inputs(0.01).items()}
    outputs = model.forward(inputs, solver=Newton.like(model))
    assert all(isinstance(value, torch.Tensor) for value in outputs.values())


@pytest.mark.parametrize("name", ["isotropic_hardening", "radial_return", "substepping"])
def test_a_solved_call_has_its_derivatives(artifacts: Artifacts, name: str) -> None:
    """The consistent tangent comes with a solve of one's own."""
    model = load(artifacts, name)
    inputs = recorded(name, "in")
    points = len(next(iter(inputs.values())))
    if name == "substepping":  # increments that need no division
        inputs = {key: value[:1] for key, value in inputs.items()}
        points = 1
    first = model.derivatives[0]
    block = np.full((points, *first.shape), np.nan)
    call, solve, handle = (ffi.new(f"neml2_{kind} **") for kind in ("call", "solve", "system"))
    check(lib.neml2_call_create(call, model._engine._open()[0]))
    try:
        for key, value in inputs.items():
            data = ffi.cast("void *", value.ctypes.data)
            size = value[0].size
            place = lib.NEML2_INPUT, key.encode()
            check(lib.neml2_call_bind(call[0], *place, data, lib.NEML2_FLOAT64, size))
        pair = lib.NEML2_INPUT, first.output.encode(), first.variable.encode()
        data = ffi.cast("void *", block.ctypes.data)
        size = block[0].size
        check(lib.neml2_call_bind_derivative(call[0], *pair, data, lib.NEML2_FLOAT64, size))
        check(lib.neml2_solve_begin_call(solve, call[0], points))
        check(lib.neml2_solve_next(handle, solve[0]))
        owner = model.solve(inputs)  # what a System looks at: is it open, and whose turn is it?
        owner._current = system = System(owner, handle[0])
        Newton.like(model)(system)
        check(lib.neml2_solve_next(handle, solve[0]))
        assert lib.neml2_solve_end(ffi.NULL, ffi.NULL, solve) == OK
    finally:
        lib.neml2_solve_free(solve)
        lib.neml2_call_free(call)
    _, jacobian = model.jacobian(inputs)
    expected = jacobian[first.output][first.variable]
    np.testing.assert_allclose(block, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


# ---- what a system refuses ----


def test_a_solve_can_be_closed_while_it_works(artifacts: Artifacts) -> None:
    model, inputs = case(artifacts, "isotropic_hardening")
    many = {name: np.repeat(value, 2000, axis=0) for name, value in inputs.items()}
    solve = model.solve(many)
    system = solve.next()
    assert system is not None
    u = system.guess()
    timer = threading.Timer(0.02, solve.close)
    timer.start()
    with pytest.raises(FatalError, match="closed"):
        while True:
            system.step(u)
    timer.join()


def test_threads_take_turns_with_a_system(artifacts: Artifacts) -> None:
    model, inputs = case(artifacts, "isotropic_hardening")
    with model.solve(inputs) as solve:
        system = solve.next()
        assert system is not None
        u = system.guess()
        expected = system.step(u)[0]
        with ThreadPoolExecutor(4) as pool:
            for du, _ in pool.map(system.step, [u] * 40):
                np.testing.assert_array_equal(du, expected)


def test_a_solution_that_is_not_finite_is_no_solution(artifacts: Artifacts) -> None:
    model, inputs = case(artifacts, "isotropic_hardening")

    def careless(system: System) -> None:
        u = system.guess()
        for _ in range(20):
            u = u + system.step(u)[0]
        u[1] = np.nan
        system.accept(u)

    with pytest.raises(ConvergenceError) as error:
        model.forward(inputs, solver=careless)
    np.testing.assert_array_equal(np.flatnonzero(~error.value.converged_mask), [1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"status": 0.5}, "status"),
        ({"status": np.zeros(3, dtype=int)}, "status"),
        ({"iterations": 2**40}, "iterations"),
    ],
)
def test_what_is_no_status_is_refused(
    artifacts: Artifacts, arguments: dict[str, Any], words: str
) -> None:
    model, inputs = case(artifacts, "isotropic_hardening")
    with model.solve(inputs) as solve:
        system = solve.next()
        assert system is not None
        with pytest.raises(FatalError, match=words):
            system.accept(system.guess(), **arguments)
        with pytest.raises(FatalError, match="complex"):
            system.residual(system.guess() + 0j)


@pytest.mark.parametrize(
    ("name", "value"), [("miters", 0), ("ls_type", "wolfe"), ("ls_cutback", 1.0), ("atol", -1.0)]
)
def test_settings_that_make_no_iteration_are_refused(name: str, value: Any) -> None:
    with pytest.raises(FatalError, match=name):
        Newton(**{name: value})
