"""Residuals of many sites: Jacobians from their own operations, steps site by site, loops in C."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_setup import TARGETS, native_target, runs_here
from loaded import load
from numpy.typing import NDArray
from slow import later

from neml2_capi.kernels.build import build
from neml2_capi.kernels.elimination import newton_step_by_sites
from neml2_capi.kernels.evaluate import evaluate
from neml2_capi.kernels.folder import write_sources
from neml2_capi.kernels.matrix import Entry
from neml2_capi.kernels.program import Array, NoKernel, Program, program_of
from neml2_capi.kernels.scalar import Node, Scalars
from neml2_capi.kernels.schedule import sections_of
from neml2_capi.kernels.systems import System, system_of

pytestmark = pytest.mark.numbers

Values = NDArray[np.float64]
DT, RATE = 0.2, 0.7


def variable(name: str, sites: list[int], base: list[int]) -> dict[str, Any]:
    return {
        "name": name,
        "var_size": int(np.prod([*sites, *base])),
        "sub_batch_shape": sites,
        "base_shape": base,
    }


def group(structure: str, sites: list[int], *variables: dict[str, Any]) -> dict[str, Any]:
    return {"structure": structure, "sub_batch_shape": sites, "per_var_info": list(variables)}


def segment(unknowns: list[Any], givens: list[Any]) -> dict[str, Any]:
    return {
        "kind": "implicit",
        "residual_package": "m_residual.pt2",
        "jacobian_package": "m_jacobian.pt2",
        "solve_package": "m_solve.pt2",
        "unknown_group_infos": unknowns,
        "residual_group_infos": unknowns,
        "given_group_infos": givens,
    }


class Cells:
    """u - g + DT (div(u grad u) + RATE s u) = 0 in a row of cells, where s = exp(-sum(u) / n)."""

    def __init__(self, count: int, coupled: bool = True) -> None:
        self.count, self.coupled = count, coupled
        info = group("dense", [count], variable("u", [count], []))
        given = group("dense", [count], variable("g", [count], []))
        self.segment = segment([info], [given])

    def residual(self) -> Program:
        """As packages return it: -r."""
        s, n = Scalars(), self.count
        u = [s.variable(0, i) for i in range(n)]
        g = [s.variable(1, i) for i in range(n)]
        total = u[0]
        for value in u[1:]:
            total = s.add(total, value)
        mean = s.mul(s.constant(-1.0 / n), total)
        share = s.function("exp", mean) if self.coupled else s.constant(1.0)
        flux = [s.constant(0.0)]
        for i in range(n - 1):
            half = s.mul(s.constant(0.5 + i / n), s.add(u[i], u[i + 1]))
            flux.append(s.mul(half, s.sub(u[i], u[i + 1])))
        flux.append(s.constant(0.0))
        results = []
        for i in range(n):
            source = s.mul(s.constant(RATE), s.mul(share, u[i]))
            rate = s.add(s.sub(flux[i + 1], flux[i]), source)
            results.append(s.sub(s.sub(g[i], u[i]), s.mul(s.constant(DT), rate)))
        arrays = [Array("u", (n,)), Array("g", (n,))]
        return program_of(arrays, [Array("residual", (n,))], [results])

    def jacobian(self, u: Values) -> Values:
        """dr/du, (n, n), at (n,)."""
        n = self.count
        share = np.exp(-u.mean()) if self.coupled else 1.0
        matrix = np.eye(n) * (1 + DT * RATE * share)
        if self.coupled:
            matrix -= DT * RATE * np.outer(u, np.full(n, share / n))
        for i in range(n - 1):
            factor = 0.5 + i / n
            for column, slope in ((i, 2 * factor * u[i]), (i + 1, -2 * factor * u[i + 1])):
                matrix[i, column] += DT * slope
                matrix[i + 1, column] -= DT * slope
        return matrix


class Grains:
    """x^2 + x y_1 - g = 0 and y + c x + 2 x_2 = g for two numbers of each grain and a mean of them.

    Two unknowns a grain are a group of blocks, and two of all grains another group.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        local = group("block", [count], variable("a", [count], [2]))
        shared = group("dense", [], variable("m", [], [2]))
        given = group("block", [count], variable("g", [count], [2]))
        self.segment = segment([local, shared], [given])

    def residual(self) -> Program:
        s, n = Scalars(), self.count
        a = [[s.variable(0, 2 * i + k) for k in range(2)] for i in range(n)]
        m = [s.variable(1, k) for k in range(2)]
        g = [[s.variable(2, 2 * i + k) for k in range(2)] for i in range(n)]
        rows, sums = [], [s.constant(0.0), s.constant(0.0)]
        for (x, y), (p, q) in zip(a, g, strict=True):
            first = s.sub(s.add(s.mul(x, s.add(s.constant(3.0), x)), s.mul(y, m[0])), p)
            second = s.sub(s.add(s.mul(s.constant(2.0), y), s.mul(x, m[1])), q)
            rows += [s.neg(first), s.neg(second)]
            sums = [s.add(sums[0], s.mul(x, y)), s.add(sums[1], x)]
        means = [s.mul(s.constant(1.0 / n), total) for total in sums]
        shared = [s.sub(mean, value) for mean, value in zip(means, m, strict=True)]
        arrays = [Array("a", (n, 2)), Array("m", (2,)), Array("g", (n, 2))]
        outputs = [Array("of_grains", (n, 2)), Array("of_all", (2,))]
        return program_of(arrays, outputs, [rows, shared])

    def jacobian(self, a: Values, m: Values) -> Values:
        n = self.count
        matrix = np.zeros((2 * n + 2, 2 * n + 2))
        for i, (x, y) in enumerate(a.reshape(n, 2)):
            p, q = 2 * i, 2 * i + 1
            matrix[p, p], matrix[p, q], matrix[p, 2 * n] = 3 + 2 * x, m[0], y
            matrix[q, q], matrix[q, p], matrix[q, 2 * n + 1] = 2.0, m[1], x
            matrix[2 * n, p], matrix[2 * n, q], matrix[2 * n + 1, p] = -y / n, -x / n, -1 / n
        matrix[2 * n, 2 * n] = matrix[2 * n + 1, 2 * n + 1] = 1.0
        return matrix


def points(count: int, number: int = 5, seed: int = 0) -> Values:
    return 0.5 + np.random.default_rng(seed).random((count, number))


def step_of(system: System, inputs: list[Values]) -> list[Values]:
    """The groups of the step, and whether it is trusted."""
    return evaluate(system.step, evaluate(system.jacobian, inputs))


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("count", [3, 9, 40])
def test_a_step_of_cells_is_that_of_a_dense_solver(count: int, coupled: bool) -> None:
    cells = Cells(count, coupled)
    residual = cells.residual()
    system = system_of(residual, cells.segment)
    u, g = points(count), points(count, seed=1)
    (right,) = evaluate(residual, [u, g])
    step, trusted = step_of(system, [u, g])
    assert trusted.all()
    for point in range(u.shape[1]):
        expected = np.linalg.solve(cells.jacobian(u[:, point]), right[:, point])
        np.testing.assert_allclose(step[:, point], expected, rtol=1e-11, atol=1e-12)


def test_a_mean_becomes_an_auxiliary_unknown_and_work_grows_with_the_sites() -> None:
    few, many = (system_of(Cells(n).residual(), Cells(n).segment) for n in (50, 400))
    assert few.jacobian.auxiliaries == many.jacobian.auxiliaries == 1
    for short, long in ((few.jacobian, many.jacobian), (few.step, many.step)):
        assert long.operations < 9 * short.operations
    stored = sum(len(array.stored or ()) for array in many.jacobian.outputs)
    assert stored < 6 * 400


def test_few_cells_have_the_full_jacobian() -> None:
    cells = Cells(5, coupled=False)
    system = system_of(cells.residual(), cells.segment)
    u, g = points(5), points(5, seed=1)
    entries, _ = evaluate(system.jacobian, [u, g])
    matrix = np.zeros((25, u.shape[1]))
    matrix[list(system.jacobian.outputs[0].stored or ())] = entries
    for point in range(u.shape[1]):
        expected = cells.jacobian(u[:, point])
        np.testing.assert_allclose(matrix[:, point].reshape(5, 5), expected, atol=1e-13)


@pytest.mark.parametrize("count", [2, 10])
def test_grains_are_condensed_against_what_they_share(count: int) -> None:
    grains = Grains(count)
    residual = grains.residual()
    system = system_of(residual, grains.segment)
    a, m, g = points(2 * count), points(2, seed=1), points(2 * count, seed=2)
    right = np.concatenate(evaluate(residual, [a, m, g]))
    *parts, trusted = step_of(system, [a, m, g])
    step = np.concatenate(parts)
    assert trusted.all()
    for point in range(a.shape[1]):
        expected = np.linalg.solve(grains.jacobian(a[:, point], m[:, point]), right[:, point])
        np.testing.assert_allclose(step[:, point], expected, rtol=1e-10, atol=1e-12)


def test_sites_of_blocks_that_depend_on_each_other_are_refused() -> None:
    s = Scalars()
    u = [s.variable(0, i) for i in range(3)]
    rows = [s.mul(u[i], u[(i + 1) % 3]) for i in range(3)]
    program = program_of([Array("u", (3, 1))], [Array("r", (3, 1))], [rows])
    info = [group("block", [3], variable("u", [3], []))]
    with pytest.raises(NoKernel, match="depend on each other; make it dense"):
        system_of(program, segment(info, []))


#: Functions of one number, and where they are tried.
_FUNCTIONS = {
    **dict.fromkeys(("exp", "expm1", "exp2", "sinh", "cosh", "tanh", "sin", "cos", "tan"), 0.3),
    **dict.fromkeys(("sqrt", "log", "log1p", "log2", "log10", "asin", "acos", "atan"), 0.4),
    **dict.fromkeys(("asinh", "atanh", "abs", "erf", "erfc", "ndtr"), -0.6),
    "acosh": 1.7,
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_functions_have_their_derivatives(name: str) -> None:
    check_slope(lambda s, x: s.function(name, x), _FUNCTIONS[name])


_FORMS: dict[str, Callable[[Scalars, Node], Node]] = {
    "quotient": lambda s, x: s.div(x, s.add(s.constant(2.0), s.mul(x, x))),
    "power": lambda s, x: s.pow(s.add(x, s.constant(2.0)), s.constant(2.3)),
    "exponent": lambda s, x: s.pow(s.constant(1.7), x),
    "choice": lambda s, x: s.where(s.gt(x, s.constant(0.0)), s.mul(x, x), s.function("exp", x)),
    "greatest": lambda s, x: s.greatest(s.mul(x, x), s.function("sin", x)),
    "least": lambda s, x: s.least(s.mul(x, x), s.function("sin", x)),
    "hypot": lambda s, x: s.binary("hypot", x, s.function("exp", x)),
    "atan2": lambda s, x: s.binary("atan2", x, s.function("exp", x)),
    "copysign": lambda s, x: s.binary("copysign", x, s.constant(-1.0)),
}


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("x", [0.4, -0.7])
def test_operations_have_their_derivatives(form: str, x: float) -> None:
    check_slope(_FORMS[form], x)


def check_slope(law: Callable[[Scalars, Node], Node], x: float) -> None:
    """The derivative against a difference of fourth order."""
    s = Scalars()
    program = program_of([Array("u", (1,))], [Array("r", (1,))], [[law(s, s.variable(0, 0))]])
    info = [group("dense", [], variable("u", [], []))]
    system = system_of(program, segment(info, []))
    h = 1e-3
    at = x + h * np.array([[-2.0, -1.0, 1.0, 2.0]])
    (values,) = evaluate(program, [at])
    slope = (values[0] @ np.array([1.0, -8.0, 8.0, -1.0])) / (12 * h)
    matrix, _ = evaluate(system.jacobian, [np.array([[x]])])
    assert -matrix[0, 0] == pytest.approx(slope, rel=1e-9, abs=1e-10)


def slope_at_zero(law: Callable[[Scalars, Node], Node]) -> float:
    s = Scalars()
    program = program_of([Array("u", (1,))], [Array("r", (1,))], [[law(s, s.variable(0, 0))]])
    system = system_of(program, segment([group("dense", [], variable("u", [], []))], []))
    with np.errstate(divide="ignore"):
        matrix, _ = evaluate(system.jacobian, [np.zeros((1, 1))])
    return float(-matrix[0, 0])


def test_a_norm_has_no_slope_at_zero_and_another_root_an_infinite_one() -> None:
    assert slope_at_zero(lambda s, x: s.function("sqrt", s.mul(x, x))) == 0.0
    assert slope_at_zero(lambda s, x: s.function("sqrt", x)) == np.inf


def test_an_operation_without_a_derivative_is_refused() -> None:
    s = Scalars()
    rest = s.binary("fmod", s.constant(2.0), s.variable(0, 0))
    program = program_of([Array("u", (1,))], [Array("r", (1,))], [[rest]])
    with pytest.raises(NoKernel, match="its operation fmod has no derivative here"):
        system_of(program, segment([group("dense", [], variable("u", [], []))], []))


# Kernels


def kernels_of(model: Any, root: Path, cc: str, target: str = "", **options: Any) -> dict[str, Any]:
    programs: dict[str, Program | str] = {
        "m_residual.pt2": model.residual(),
        "m_jacobian.pt2": "its arrays have too many entries",
        "m_solve.pt2": "it solves linear systems",
    }
    metadata = {"segments": [model.segment]}
    folder = write_sources(root, "cpu/float64", programs, metadata, {"neml2": "none"})
    (made,) = build(folder, [target or native_target()], cc, **options)
    return load(made)


def call(kernel: Any, inputs: list[Values], one: bool = False) -> list[Values]:
    """The outputs as they are stored, (components, points)."""
    outputs = kernel(*(x.T for x in inputs), one=one)
    return [y.T[kernel.sparse[i][1]] if i in kernel.sparse else y.T for i, y in enumerate(outputs)]


MODELS: dict[str, Callable[[], Any]] = {
    "cells": lambda: Cells(300),
    "grains": lambda: Grains(150),
}


def inputs_of(model: Any) -> list[Values]:
    sizes = [array.components for array in model.residual().inputs]
    return [points(size, 6, seed) for seed, size in enumerate(sizes)]


@pytest.mark.parametrize("name", later(MODELS, ["cells"]))
def test_kernels_of_many_sites_are_loops_with_the_same_values(
    tmp_path: Path, any_cc: str, name: str
) -> None:
    model = MODELS[name]()
    kernels = kernels_of(model, tmp_path / "m", any_cc)
    inputs = inputs_of(model)
    system = system_of(model.residual(), model.segment)
    stored = evaluate(system.jacobian, inputs)
    for made, expected in zip(call(kernels["m_jacobian"], inputs), stored, strict=True):
        np.testing.assert_allclose(made, expected, rtol=1e-12, atol=1e-14)
    steps = call(kernels["m_solve"], stored)
    assert steps[-1].all()
    for made, values in zip(steps, evaluate(system.step, stored), strict=True):
        np.testing.assert_allclose(made, values, rtol=1e-10, atol=1e-13)
    (right, *_), theirs = call(kernels["m_residual"], inputs), evaluate(model.residual(), inputs)
    np.testing.assert_allclose(right, theirs[0], rtol=1e-12, atol=1e-14)
    folder = tmp_path / "m" / "kernels" / "float64"
    for stem in ("m_jacobian", "m_solve"):
        assert "for (int i = " in (folder / f"{stem}.c").read_text(), stem


@pytest.mark.full("compiles kernels of many sites")
@pytest.mark.parametrize("name", MODELS)
def test_text_grows_with_tables_alone(tmp_path: Path, name: str) -> None:
    sizes = []
    for count in (300, 600):
        model: Any = Cells(count) if name == "cells" else Grains(count)
        programs: dict[str, Program | str] = {
            "m_residual.pt2": model.residual(),
            "m_jacobian.pt2": "too long",
            "m_solve.pt2": "it solves linear systems",
        }
        root = tmp_path / f"m{count}"
        folder = write_sources(root, "", programs, {"segments": [model.segment]}, {})
        texts = [file.read_text() for file in folder.glob("*.c")]
        sizes.append(sum(text.count(";") for text in texts))
    assert sizes[0] == sizes[1] < 1000


@pytest.mark.full("compiles kernels of many sites")
@pytest.mark.parametrize("name", MODELS)
def test_loops_have_the_same_bits_for_all_lanes_and_processors(
    tmp_path: Path, any_cc: str, name: str
) -> None:
    model = MODELS[name]()
    inputs, bits = inputs_of(model), set()
    builds = [(native_target(), lanes) for lanes in (1, 2, 8)]
    builds += [(target, 0) for target in TARGETS if runs_here(target)]
    for number, (target, lanes) in enumerate(builds):
        kernels = kernels_of(model, tmp_path / f"m{number}", any_cc, target, lanes=lanes)
        stored = call(kernels["m_jacobian"], inputs)
        made = [*stored, *call(kernels["m_solve"], stored)]
        bits.add(b"".join(np.ascontiguousarray(values).tobytes() for values in made))
    assert len(bits) == 1


@pytest.mark.parametrize("most", later([2000, 8], [2000]), ids=["whole", "cut"])
@pytest.mark.parametrize(
    "name",
    [pytest.param("cells", marks=pytest.mark.full("compiles kernels of many sites")), "grains"],
)
def test_sites_of_one_point_side_by_side_have_the_bits_of_points(
    tmp_path: Path, any_cc: str, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr("neml2_capi.kernels.abreast.MOST_TIME", np.inf)
    cut = functools.partial(sections_of, most=most)
    monkeypatch.setattr("neml2_capi.kernels.loops.sections_of", cut)
    model = MODELS[name]()
    inputs = inputs_of(model)
    for lanes in (2, 8):
        kernels = kernels_of(model, tmp_path / f"m{lanes}", any_cc, lanes=lanes)
        stored = call(kernels["m_jacobian"], inputs)
        for stem, given in (("m_residual", inputs), ("m_jacobian", inputs), ("m_solve", stored)):
            kernel = kernels[stem]
            assert kernel.sites == lanes, stem
            for point in range(inputs[0].shape[1]):
                own = [values[:, point : point + 1] for values in given]
                for one, all_ in zip(call(kernel, own, True), call(kernel, given), strict=True):
                    assert one[:, 0].tobytes() == all_[:, point].tobytes()


def test_metadata_tells_of_sparse_outputs(tmp_path: Path, any_cc: str) -> None:
    kernels_of(Cells(60), tmp_path / "m", any_cc)
    document = json.loads((tmp_path / "m/kernels/float64/kernels.json").read_text())
    jacobian = next(k for k in document["kernels"] if k["name"] == "m_jacobian")
    block = jacobian["outputs"][0]
    assert block["shape"] == [60, 60]
    assert block["stored"] == 3 * 60 - 2
    assert block["zeros"] == []


@pytest.mark.parametrize("given", [False, True], ids=["cells", "control"])
def test_sites_are_eliminated_one_after_the_other(given: bool) -> None:
    """Two sites of one unknown, and two that both share: their diagonal may be zero at a point."""
    s = Scalars()
    entries, count, sites = [], 0, [0, 1, None, None]
    for row in range(4):
        for column in range(4):
            if max(row, column) > 1 or row == column:
                entries.append(Entry(row, column, count, (0, count)))
                count += 1
    nodes = [s.variable(0, k) for k in range(count)]
    right = [s.variable(1, k) for k in range(4)]
    arrays = [Array("a", (count,)), Array("b", (4,))]
    jacobian = program_of(arrays, arrays, [nodes, right])
    places = [entry._replace(place=jacobian.results[0][entry.place]) for entry in entries]
    step = newton_step_by_sites(jacobian, places, [4], sites, exchanges=given)
    values = points(count) + 4.0 * np.array([[e.row == e.column] for e in entries])
    if (
        given
    ):  # all that is in the way of the third unknown in its own equation, and what would fill it
        for number, e in enumerate(entries):
            if e.row == 2 and e.column < 3:
                values[number, 1:] = 0.0
    side = points(4, seed=1)
    made, trusted = evaluate(step, [values, side])
    assert trusted.all()
    for point in range(side.shape[1]):
        matrix = np.zeros((4, 4))
        for entry, value in zip(entries, values[:, point], strict=True):
            matrix[entry.row, entry.column] = value
        np.testing.assert_allclose(made[:, point], np.linalg.solve(matrix, side[:, point]))
