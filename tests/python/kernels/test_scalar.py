"""Scalar expressions: sharing, folding and simplification, without torch and a compiler."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neml2_capi.kernels import folding
from neml2_capi.kernels.emit import source
from neml2_capi.kernels.evaluate import evaluate
from neml2_capi.kernels.program import Array, Part, Program, live, program_of
from neml2_capi.kernels.scalar import Node, Scalars, constant_of
from neml2_capi.kernels.schedule import scheduled
from neml2_capi.kernels.simplify import simplified
from neml2_capi.kernels.tables import of_scalars

pytestmark = pytest.mark.numbers

INFINITE, NAN = math.inf, math.nan
SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -8.0,
    0.5,
    1 / 3,
    1e300,
    -1e300,
    1000.0,
    INFINITE,
    -INFINITE,
    NAN,
)


@pytest.fixture
def s() -> Scalars:
    return Scalars()


def made(s: Scalars, *results: Node, changes: bool = False) -> Program:
    """A program of one input of nine components; with `changes`, the last three change."""
    inputs = [Array("x", (6,)), Array("y", (3,), changes=changes)]
    return program_of(inputs, [Array("z", (len(results),))], [results])


def x(s: Scalars, component: int) -> Node:
    return s.variable(0, component)


def test_equal_expressions_are_one_node(s: Scalars) -> None:
    a, b = x(s, 0), x(s, 1)
    assert s.add(a, b) is s.add(b, a)
    assert s.mul(s.mul(a, b), s.constant(2)) is s.mul(s.constant(2), s.mul(b, a))
    assert s.sub(a, b) is s.neg(s.sub(b, a))
    assert s.div(s.neg(a), b) is s.neg(s.div(a, b))


def test_what_is_computed_of_scalars_alone_is_told(s: Scalars) -> None:
    parts = (Part("strain", 0, 6), Part("t", 6, 1), Part("t~1", 7, 1))
    arrays = [Array("unknowns", (1,)), Array("givens", (8,), parts=parts), Array("E", ())]
    unknown, strain, t, before, E = (
        s.variable(*at) for at in ((0, 0), (1, 0), (1, 6), (1, 7), (2, 0))
    )
    step = s.sub(t, before)
    chosen = s.where(s.gt(strain, t), E, step)
    results = [s.mul(E, step), s.mul(strain, step), s.constant(3), s.add(unknown, E), chosen, E]
    program = program_of(arrays, [Array("d", (len(results),))], [results])
    assert of_scalars(program, 0) == [0, 5]


def test_structural_zeros_vanish(s: Scalars) -> None:
    a, zero, one = x(s, 0), s.constant(0), s.constant(1)
    assert constant_of(s.mul(zero, a)) == 0
    assert s.mul(a, one) is a
    assert s.add(a, zero) is a
    assert s.neg(s.neg(a)) is a


@pytest.mark.parametrize("name", sorted(folding.FUNCTIONS))
def test_functions_of_constants_fold_as_numpy_has_them(s: Scalars, name: str) -> None:
    for value in SPECIAL:
        folded = constant_of(s.function(name, s.constant(value)))
        program = made(s, s.function(name, x(s, 0)))
        (expected,) = evaluate(program, [np.full((6, 1), value), np.zeros((3, 1))])[0][0]
        assert folded == pytest.approx(expected, rel=1e-15, nan_ok=True), value


def test_arithmetic_of_constants_never_raises(s: Scalars) -> None:
    with np.errstate(all="ignore"):
        for a, b in itertools.product(SPECIAL, SPECIAL):
            u, v = s.constant(a), s.constant(b)
            assert constant_of(s.div(u, v)) == pytest.approx(
                float(np.float64(a) / np.float64(b)), nan_ok=True
            )
            assert constant_of(s.pow(u, v)) == pytest.approx(
                float(np.float64(a) ** np.float64(b)), nan_ok=True
            )


def test_comparisons_with_nan_are_false(s: Scalars) -> None:
    nan, one = s.constant(NAN), s.constant(1)
    for compare in (s.gt, s.ge, s.eq):
        assert constant_of(compare(nan, one)) == 0
        assert constant_of(compare(one, nan)) == 0
    assert s.where(s.not_(s.gt(nan, one)), one, nan) is one


@pytest.mark.parametrize("exponent", [2.0, 3.0, 6.0, 7.0, -1.0, -3.0, 0.5, 1.5, -0.5, 16.0])
def test_small_exponents_become_products(s: Scalars, exponent: float) -> None:
    program = made(s, s.pow(x(s, 0), s.constant(exponent)))
    assert "pow" not in {step[0] for step in program.steps}
    values = np.linspace(0.1, 3, 20)
    (result,) = evaluate(program, [np.broadcast_to(values, (6, 20)), np.zeros((3, 20))])
    np.testing.assert_allclose(result[0], values**exponent, rtol=1e-14)


def test_other_exponents_stay_powers(s: Scalars) -> None:
    for exponent in (1 / 3, 2.7, 17.0):
        assert s.pow(x(s, 0), s.constant(exponent)).operation == "pow"


def test_a_truth_value_counts_as_a_number(s: Scalars) -> None:
    positive = s.gt(x(s, 0), s.constant(0))
    program = made(s, s.mul(positive, x(s, 1)), s.add(positive, s.constant(1)))
    values = np.array([[-1.0, 2.0], [5.0, 5.0], *[[0.0, 0.0]] * 4])
    (result,) = evaluate(program, [values, np.zeros((3, 2))])
    np.testing.assert_array_equal(result, [[0, 5], [1, 2]])


def random_program(seed: int, length: int = 300, changes: bool = False) -> Program:
    """Sums, products and quotients of earlier results, at random."""
    random, s = np.random.default_rng(seed), Scalars()
    nodes = [x(s, k) for k in range(6)] + [s.variable(1, k) for k in range(3)]
    nodes += [s.constant(v) for v in (2.0, 0.5, -3.0)]
    for _ in range(length):
        a, b = (nodes[k] for k in random.integers(max(len(nodes) - 40, 0), len(nodes), 2))
        kind = random.choice(["add", "sub", "mul", "div", "where", "tanh"])
        if kind == "div":
            nodes.append(s.div(a, s.add(s.mul(b, b), s.constant(1))))
        elif kind == "where":
            nodes.append(s.where(s.gt(a, b), s.mul(a, s.constant(0.5)), b))
        elif kind == "tanh":
            nodes.append(s.function("tanh", a))
        else:
            nodes.append(getattr(s, kind)(a, s.function("tanh", b)))
    return made(s, *nodes[-20:], nodes[3], s.constant(0), changes=changes)


@pytest.mark.parametrize("seed", range(20))
def test_simplification_changes_round_off_alone(seed: int) -> None:
    program = random_program(seed)
    simple = simplified(program)
    inputs = [np.random.default_rng(seed).uniform(-1, 1, (n, 50)) for n in (6, 3)]
    (expected,), (result,) = evaluate(program, inputs), evaluate(simple, inputs)
    # Terms of sums are reordered: round-off of the largest numbers on the way.
    scale = np.abs(expected).max(axis=0)
    assert (np.abs(result - expected) <= 1e-11 * scale).mean() > 0.99
    # A quotient by a shared reciprocal is two products instead of a division.
    quotients = sum(step[0] == "times both" for step in simple.steps)
    assert simple.operations <= program.operations + 5 + 2 * quotients


@pytest.mark.parametrize("seed", range(20))
def test_values_have_the_same_bits_beside_their_derivatives(seed: int) -> None:
    both = random_program(seed)
    ends = both.results[0]
    both = replace(both, outputs=[Array("z", (5,)), Array("dz", (17,))])
    both = replace(both, results=[ends[2:7], [*ends[:2], *ends[7:]]])
    values = live(replace(both, outputs=both.outputs[:1], results=both.results[:1]))
    inputs = [np.random.default_rng(seed).uniform(-1, 1, (n, 50)) for n in (6, 3)]
    alone, whole = simplified(values), simplified(both, values)
    result, derivatives = evaluate(whole, inputs)
    np.testing.assert_array_equal(result, evaluate(alone, inputs)[0])
    expected = evaluate(both, inputs)[1]
    close = np.abs(derivatives - expected) <= 1e-11 * np.abs(expected).max(axis=0)
    assert close.mean() > 0.99
    assert whole.operations <= alone.operations + simplified(both).operations


def test_a_zero_of_another_sign_is_another_constant(s: Scalars) -> None:
    values = made(s, s.div(x(s, 0), s.constant(-0.0)))
    both = made(s, s.div(x(s, 0), s.constant(-0.0)), s.div(x(s, 0), s.constant(0.0)))
    both = replace(both, results=[both.results[0][:1], both.results[0][1:]])
    inputs = [np.ones((6, 1)), np.ones((3, 1))]
    assert [list(y.ravel()) for y in evaluate(simplified(both, values), inputs)] == [
        [-np.inf],
        [np.inf],
    ]


def test_shared_pairs_are_computed_once(s: Scalars) -> None:
    a, b, c, d = (x(s, k) for k in range(4))
    left = s.mul(s.mul(a, c), b)
    right = s.mul(s.mul(a, d), b)
    program = made(s, left, right)
    assert program.operations == 4
    assert simplified(program).operations == 3


def test_constants_that_several_terms_share_are_one(s: Scalars) -> None:
    five, tenth, one, half = map(s.constant, (5, 0.1, 1, 0.5))
    products = [s.mul(five, s.mul(x(s, k), s.mul(tenth, x(s, k)))) for k in range(2)]
    sums = [s.add(half, s.add(one, x(s, k))) for k in range(2, 4)]
    program = simplified(made(s, *products, *sums))
    for name, arguments, _ in program.steps:
        if name in ("product", "sum"):
            assert any(program.steps[a][0] != "constant" for a in arguments)
    assert program.operations == 6
    (result,) = evaluate(program, [np.full((6, 1), 3.0), np.zeros((3, 1))])
    np.testing.assert_allclose(result[:, 0], [4.5, 4.5, 4.5, 4.5], rtol=1e-15)


def test_sums_of_opposite_signs_share_their_pair(s: Scalars) -> None:
    a, b, c, d = (x(s, k) for k in range(4))
    first, second = s.add(s.sub(a, c), b), s.sub(s.sub(d, b), a)  # a + b, and -(a + b)
    program = made(s, first, second)
    assert simplified(program).operations == 3


def test_several_quotients_share_a_reciprocal(s: Scalars) -> None:
    a, b, c, d = (x(s, k) for k in range(4))
    program = simplified(made(s, s.div(a, d), s.div(b, d), s.div(c, d)))
    assert [step[0] for step in program.steps].count("div") == 1
    divisors = np.array([5e-324, 1e-310, 3.0, 1.7e308, 0.0, np.inf])
    inputs = [np.vstack([divisors, np.ones(6), divisors, divisors, divisors, divisors])]
    (result,) = evaluate(program, [*inputs, np.zeros((3, 6))])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(result[0], divisors / divisors, rtol=1e-15)
    alone = [step[0] for step in simplified(made(s, s.div(a, c))).steps]
    assert alone.count("div") == 1
    assert "product" not in alone  # x / y rounds once


def test_what_does_not_change_is_prepared(s: Scalars) -> None:
    fixed = s.mul(s.function("exp", x(s, 0)), x(s, 1))
    moving = s.add(fixed, s.variable(1, 0))
    schedule = scheduled(made(s, moving, changes=True))
    assert schedule.kept == 1
    assert [len(section.places) for section in schedule.prepare] == [2]
    assert [len(section.places) for section in schedule.run] == [1]
    assert not scheduled(made(s, moving)).prepare


def test_long_programs_are_cut() -> None:
    program = simplified(random_program(1, 3000))
    schedule = scheduled(program, most=100)
    assert len(schedule.run) == -(-program.operations // 100)
    assert sorted(p for section in schedule.run for p in section.places) == sorted(
        p for section in scheduled(program).run for p in section.places
    )


def test_the_same_program_gives_the_same_text() -> None:
    texts = {source(simplified(random_program(2)), "name", "a test") for _ in range(2)}
    assert len(texts) == 1


@pytest.mark.full("processes of their own")
def test_the_text_does_not_depend_on_the_process(tmp_path: Path) -> None:
    here = Path(__file__)
    script = (
        f"import sys; sys.path.insert(0, {str(here.parent)!r}); import {here.stem} as t;"
        "print(t.source(t.simplified(t.random_program(3, 900)), 'name', 'a test'))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(texts) == 1


def test_a_program_survives_json() -> None:
    program = random_program(4)
    again = Program.from_json(program.to_json())
    assert (again.steps, again.results) == (program.steps, program.results)
    assert again.checksum == program.checksum


def test_importing_the_package_needs_no_torch() -> None:
    script = (
        "import sys; sys.modules['torch'] = None; import neml2_capi;"
        "assert not [m for m in sys.modules if m.startswith('neml2_capi.kernels')];"
        "import neml2_capi.kernels.build, neml2_capi.kernels.folder, neml2_capi.kernels.operators\n"
        "try:\n    import neml2_capi.kernels.trace\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "pip install 'neml2_capi[compile]'" in done.stdout
