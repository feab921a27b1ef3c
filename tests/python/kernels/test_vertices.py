"""Jacobians whose intermediate values are auxiliary unknowns: of few operations, and the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from neml2_capi.kernels.apart import set_apart
from neml2_capi.kernels.elimination import newton_step
from neml2_capi.kernels.evaluate import evaluate
from neml2_capi.kernels.latency import ready_first
from neml2_capi.kernels.prepare import Prepared, prepared_kernels
from neml2_capi.kernels.program import Array, Program, program_of
from neml2_capi.kernels.scalar import MASKS, Node, Scalars
from neml2_capi.kernels.schedule import run_operations, unchanging_first
from neml2_capi.kernels.simplify import simplified
from neml2_capi.kernels.systems import System, joined_systems_of
from neml2_capi.kernels.verify import are_alike

pytestmark = pytest.mark.numbers

Values = NDArray[np.float64]
COUNT, FLOW = 6, 0.7


def norm_of(s: Scalars, u: list[Node]) -> Node:
    total = s.constant(0.0)
    for x in u:
        total = s.add(total, s.mul(x, x))
    return s.function("sqrt", total)


def residual() -> Program:
    """-(u + FLOW |u| u - g): a flow in the direction of the unknowns."""
    s = Scalars(notes=False)
    u, g = ([s.variable(k, i) for i in range(COUNT)] for k in (0, 1))
    rate = s.mul(s.constant(FLOW), norm_of(s, u))
    rows = [s.sub(y, s.add(x, s.mul(rate, x))) for x, y in zip(u, g, strict=True)]
    return program_of([Array("u", (COUNT,)), Array("g", (COUNT,))], [Array("r", (COUNT,))], [rows])


def traced(flow: float = FLOW) -> Program:
    """(1 + FLOW |u|) I + FLOW u u^T / |u|, entry by entry, and the residual."""
    s = Scalars(notes=False)
    u, g = ([s.variable(k, i) for i in range(COUNT)] for k in (0, 1))
    norm = norm_of(s, u)
    rate = s.mul(s.constant(flow), norm)
    entries = []
    for i, x in enumerate(u):
        for j, y in enumerate(u):
            entry = s.mul(s.constant(flow), s.div(s.mul(x, y), norm))
            entries.append(s.add(s.add(s.constant(1.0), rate), entry) if i == j else entry)
    rows = [s.sub(y, s.add(x, s.mul(rate, x))) for x, y in zip(u, g, strict=True)]
    arrays = [Array("u", (COUNT,)), Array("g", (COUNT,))]
    outputs = [Array("jacobian", (COUNT, COUNT)), Array("residual", (COUNT,))]
    return program_of(arrays, outputs, [entries, rows])


def segment(count: int) -> dict[str, Any]:
    variable = {"name": "u", "var_size": count, "sub_batch_shape": [], "base_shape": [count]}
    group = {"structure": "dense", "sub_batch_shape": [], "per_var_info": [variable]}
    return {
        "kind": "implicit",
        "residual_package": "m_residual.pt2",
        "jacobian_package": "m_jacobian.pt2",
        "solve_package": "m_solve.pt2",
        "unknown_group_infos": [group],
        "residual_group_infos": [group],
        "given_group_infos": [],
    }


def work(jacobian: Program, step: Program) -> int:
    return simplified(jacobian).operations + simplified(step).operations


def steps_of(system: System, inputs: list[Values]) -> Values:
    step, trusted = evaluate(simplified(system.step), evaluate(system.jacobian, inputs))
    assert trusted.all()
    return step


def test_a_norm_becomes_an_unknown_and_the_step_is_that_of_a_dense_solver() -> None:
    random = np.random.default_rng(0)
    u, g = random.standard_normal((2, COUNT, 5))
    systems = list(joined_systems_of(residual(), segment(COUNT)))
    assert systems[0].jacobian.auxiliaries > 0
    for system in systems:
        step = steps_of(system, [u, g])
        for point in range(5):
            x = u[:, point]
            norm = np.linalg.norm(x)
            matrix = (1 + FLOW * norm) * np.eye(COUNT) + FLOW * np.outer(x, x) / norm
            right = g[:, point] - x - FLOW * norm * x
            np.testing.assert_allclose(step[:, point], np.linalg.solve(matrix, right), rtol=1e-12)


def test_a_full_jacobian_of_rank_one_takes_few_operations() -> None:
    least = min(work(s.jacobian, s.step) for s in joined_systems_of(residual(), segment(COUNT)))
    by_entries = newton_step(traced(), [COUNT])
    assert by_entries is not None
    assert least < 0.4 * work(traced(), by_entries)


def test_another_jacobian_is_told_from_the_derived_one() -> None:
    for system in joined_systems_of(residual(), segment(COUNT)):
        assert are_alike(traced(), system.jacobian, COUNT)
        assert not are_alike(traced(FLOW * 1.001), system.jacobian, COUNT)


def test_a_branch_that_is_not_chosen_does_not_reach_the_step() -> None:
    """u^1.3 and its derivatives are NaN below zero, where they do not count."""
    s = Scalars(notes=False)
    u = [s.variable(0, i) for i in range(COUNT)]
    total = s.constant(0.0)
    for x in u:
        total = s.add(total, x)
    power = s.pow(total, s.constant(1.3))
    flow = s.where(s.gt(total, s.constant(0.0)), s.mul(power, power), s.constant(0.0))
    rows = [s.neg(s.add(s.mul(s.constant(k + 1.0), x), s.mul(flow, x))) for k, x in enumerate(u)]
    law = program_of([Array("u", (COUNT,))], [Array("r", (COUNT,))], [rows])
    below = -np.ones((COUNT, 1))
    for system in joined_systems_of(law, segment(COUNT)):
        np.testing.assert_allclose(steps_of(system, [below]), 1.0, rtol=1e-15)


def test_an_artifact_gets_the_jacobian_of_fewer_operations() -> None:
    programs: dict[str, Program | str] = {
        "m_residual.pt2": residual(),
        "m_jacobian.pt2": traced(),
        "m_solve.pt2": "it solves linear systems",
    }
    for flow, taken in ((FLOW, True), (FLOW * 1.001, False)):
        programs["m_jacobian.pt2"] = traced(flow)
        found = prepared_kernels(programs, {"segments": [segment(COUNT)]})
        jacobian, step = found["m_jacobian.pt2"], found["m_solve.pt2"]
        assert isinstance(jacobian, Prepared) and isinstance(step, Prepared)
        assert (jacobian.program.auxiliaries > 0) is taken


def flow_rule() -> Program:
    """s - u + rate (g - n) + trace(g - rate n), of a deviator s of u and n = s / |s|."""
    s = Scalars(notes=False)
    u, g = ([s.variable(k, i) for i in range(3)] for k in (0, 1))
    mean = s.mul(s.constant(1 / 3), s.add(s.add(u[0], u[1]), u[2]))
    deviator = [s.sub(x, mean) for x in u]
    norm = s.function("sqrt", s.add(total_of(s, [s.mul(x, x) for x in deviator]), s.constant(1e-9)))
    rate = s.mul(norm, norm)
    elastic = [s.sub(y, s.mul(rate, s.div(x, norm))) for x, y in zip(deviator, g, strict=True)]
    trace = s.mul(g[3 - 1], total_of(s, elastic))
    rows = [s.sub(s.mul(g[0], s.add(trace, x)), y) for x, y in zip(elastic, u, strict=True)]
    return program_of([Array("u", (3,)), Array("g", (3,))], [Array("r", (3,))], [rows])


def total_of(s: Scalars, terms: list[Node]) -> Node:
    total = terms[0]
    for term in terms[1:]:
        total = s.add(total, term)
    return total


def test_sums_that_vanish_and_what_is_given_are_set_apart() -> None:
    law = flow_rule()
    apart = set_apart(law, [0])
    u, g = np.random.default_rng(1).standard_normal((2, 3, 7))
    np.testing.assert_allclose(evaluate(apart, [u, g]), evaluate(law, [u, g]), rtol=1e-12)
    repeated = [replace(law.inputs[0], changes=True), law.inputs[1]]
    first, fewer = (replace(p, inputs=repeated) for p in (law, unchanging_first(simplified(apart))))
    # The trace of the flow is not there; what is left of each row is u and the deviator.
    assert run_operations(fewer) <= run_operations(simplified(first)) - 5
    for product in (fewer, ready_first(fewer, 1), ready_first(fewer, 0)):
        np.testing.assert_allclose(evaluate(product, [u, g]), evaluate(law, [u, g]), rtol=1e-12)
        assert product.operations == fewer.operations


def test_what_is_affine_in_one_unknown_is_two_numbers() -> None:
    """A stress 7 (g - v h) with a back stress v g, of v = 3 (u - g)."""
    s = Scalars(notes=False)
    u = s.variable(0, 0)
    g, h = ([s.variable(k, i) for i in range(6)] for k in (1, 2))
    rate = s.mul(s.sub(u, g[0]), s.constant(3.0))
    strain = [s.sub(x, s.mul(rate, y)) for x, y in zip(g, h, strict=True)]
    stress = [s.mul(s.constant(7.0), e) for e in strain]
    stress = [s.sub(x, s.mul(rate, y)) for x, y in zip(stress, g, strict=True)]
    row = s.function("sqrt", total_of(s, [s.mul(x, x) for x in stress]))
    inputs = [Array("u", (1,)), Array("g", (6,)), Array("h", (6,))]
    law = program_of(inputs, [Array("r", (1,))], [[row]])
    repeated = [replace(inputs[0], changes=True), *inputs[1:]]
    apart = replace(set_apart(law, [0], slopes=True), inputs=repeated)
    assert run_operations(unchanging_first(simplified(apart))) <= 6 * (2 + 1) + 5 + 2
    values = [np.random.default_rng(1).standard_normal((a.components, 7)) for a in inputs]
    np.testing.assert_allclose(evaluate(apart, values), evaluate(law, values), rtol=1e-13)


def test_a_zero_that_a_law_writes_is_no_sum_that_vanishes() -> None:
    s = Scalars(notes=False)
    u, g = s.variable(0, 0), s.variable(1, 0)
    row = s.add(s.node("mul", s.constant(0.0), u), s.sub(s.mul(g, u), s.mul(u, g)))
    law = program_of([Array("u", (1,)), Array("g", (1,))], [Array("r", (1,))], [[row]])
    point = [np.array([[np.inf]]), np.array([[1.0]])]
    for slopes in (False, True):
        assert np.isnan(evaluate(set_apart(law, [0], slopes), point)[0])


@pytest.mark.parametrize("slopes", [False, True])
def test_a_condition_of_an_unknown_stays_a_condition(slopes: bool) -> None:
    """Of the smaller of two values, as complementarity writes it: in C a number is no condition."""
    s = Scalars(notes=False)
    u, g = s.variable(0, 0), s.variable(1, 0)
    positive, below = s.node("gt", u, s.constant(0.0)), s.node("gt", g, u)
    row = s.where(s.node("and", positive, s.node("not", below)), g, u)
    law = program_of([Array("u", (1,)), Array("g", (1,))], [Array("r", (1,))], [[row]])
    steps = set_apart(law, [0], slopes).steps
    asked = [steps[a[0]][0] for name, a, _ in steps if name == "where"]
    asked += [steps[x][0] for name, a, _ in steps if name in ("and", "or", "not") for x in a]
    assert len(asked) == 4 and set(asked) <= MASKS


def test_a_sum_that_vanishes_below_a_threshold_stays() -> None:
    """u - min(u, 1e9): elastic at all numbers that are tried."""
    s = Scalars(notes=False)
    u, g = s.variable(0, 0), s.variable(1, 0)
    row = s.sub(s.add(u, s.sub(u, s.least(u, s.constant(1e9)))), g)
    law = program_of([Array("u", (1,)), Array("g", (1,))], [Array("r", (1,))], [[row]])
    point = [np.array([[5e9]]), np.array([[1e9]])]
    assert evaluate(set_apart(law, [0]), point)[0] == 8e9


@pytest.mark.parametrize(("least", "scaled"), [(1e-9, False), (0.0, True)])
def test_the_reciprocal_of_a_norm_that_is_never_tiny_needs_no_scale(
    least: float, scaled: bool
) -> None:
    s = Scalars()
    x = [s.variable(0, k) for k in range(3)]
    square = s.add(total_of(s, [s.mul(y, y) for y in x]), s.constant(least))
    norm = s.function("sqrt", square)
    quotients = [s.div(y, norm) for y in x]
    made = simplified(program_of([Array("x", (3,))], [Array("n", (3,))], [quotients]))
    assert ("scale" in {name for name, _, _ in made.steps}) is scaled


def test_products_of_equal_pivots_are_added_up_before_they_are_divided() -> None:
    one_by_one, added_up, *_ = joined_systems_of(residual(), segment(COUNT))
    assert one_by_one.jacobian is added_up.jacobian
    fewer = simplified(added_up.step).operations
    assert fewer < simplified(one_by_one.step).operations


@pytest.mark.parametrize(("powers", "prepared"), [(0, False), (20, True)])
def test_what_does_not_depend_on_the_unknowns_is_prepared(powers: int, prepared: bool) -> None:
    s = Scalars(notes=False)
    u, g = ([s.variable(k, i) for i in range(COUNT)] for k in (0, 1))
    rate = g[0]
    for _ in range(powers):
        rate = s.mul(s.add(rate, g[1]), g[0])
    rows = [s.sub(s.mul(x, s.mul(rate, x)), y) for x, y in zip(u, g, strict=True)]
    arrays = [Array("u", (COUNT,)), Array("g", (COUNT,))]
    law = program_of(arrays, [Array("r", (COUNT,))], [rows])
    (found,) = prepared_kernels({"m_residual.pt2": law}, {"segments": [segment(COUNT)]}).values()
    assert isinstance(found, Prepared)
    _, text, _ = found.written("m_residual.pt2", {}, "m_residual", "")
    assert ("static void prepare(" in text) is prepared
