"""Kernels against the packages that they stand for, for every model of the tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compile import NotCompiledError, artifact
from kernel_setup import ROOT, Captured, native_target
from loaded import Kernel, load
from recipes import KERNEL_RECIPES
from recipes import RECIPES as ALL
from values import components_of, of_array

import neml2_capi
from neml2_capi.kernels.build import build
from neml2_capi.kernels.evaluate import evaluate
from neml2_capi.kernels.layout import named
from neml2_capi.kernels.program import Array, Program
from neml2_capi.kernels.schedule import scheduled
from neml2_capi.kernels.simplify import simplified

pytestmark = pytest.mark.full("kernels of all models")

#: Older schemas are compiled by a NEML2 without the function that is captured.
RECIPES = [name for name, recipe in ALL.items() if not recipe.version]
NAMES = [
    *RECIPES,
    *(
        pytest.param(name, marks=pytest.mark.everything("AOTInductor takes long for it"))
        for name in KERNEL_RECIPES
    ),
]
POINTS = 64
#: Relative to the greatest entry of the point.
VALUES, DERIVATIVES = 1e-12, 1e-10


class Case:
    """The kernels of a recipe, and its packages."""

    def __init__(self, name: str, captured: Captured, root: Path, scratch: Path, cc: str) -> None:
        self.name = name
        self.packages = {path.name: path for path in root.rglob("*.pt2")}
        self.metadata = json.loads((root / "metadata.json").read_text())
        folder = captured.write(scratch / root.name, self.metadata)
        (made,) = build(folder, [native_target()], cc)
        self.kernels = load(made)
        self.programs = {
            stem: named(program, f"{stem}.pt2", self.metadata)
            for stem in self.kernels
            if isinstance(program := captured.programs[f"{stem}.pt2"], Program)
        }
        self._graphs: dict[str, neml2_capi.Graph] = {}

    def graph(self, stem: str) -> neml2_capi.Graph:
        if stem not in self._graphs:
            self._graphs[stem] = neml2_capi.Graph(self.packages[f"{stem}.pt2"])
        return self._graphs[stem]

    def stems(self) -> Iterator[str]:
        """The graphs that have both. A kernel beside them solves by its own way: test_lanes.py."""
        yield from (
            stem
            for stem in self.kernels
            if f"{stem}.pt2" in self.packages and stem in self.programs
        )


@pytest.fixture(scope="module")
def cases(
    captured: Callable[[str], Captured], tmp_path_factory: pytest.TempPathFactory, any_cc: str
) -> Callable[[str], Case]:
    known: dict[str, Case] = {}

    def of(name: str) -> Case:
        if name not in known:
            graphs = captured(name)
            prebuilt = ROOT / "examples" / "artifacts" / name
            try:
                root = prebuilt if prebuilt.is_dir() else artifact(name)
            except NotCompiledError as error:
                pytest.skip(str(error))
            known[name] = Case(name, graphs, root, tmp_path_factory.mktemp(name), any_cc)
        return known[name]

    return of


def by_package(case: Case, stem: str, inputs: list[Any]) -> list[Any]:
    """The outputs of the package, each (points, components)."""
    program = case.programs[stem]
    points = max(len(x) for x, a in zip(inputs, program.inputs, strict=True) if a.per_point)
    given = [
        np.ascontiguousarray(x).reshape((points, *a.shape) if a.per_point else a.shape)
        for x, a in zip(inputs, program.inputs, strict=True)
    ]
    with np.errstate(all="ignore"):
        made = case.graph(stem).flat(*given)
    return [
        np.broadcast_to(y.reshape(points if a.per_point else 1, -1), (points, a.components))
        for y, a in zip(made, program.outputs, strict=True)
    ]


def inputs_of(program: Program, points: int = POINTS, seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    return [of_array(array, points, random) for array in program.inputs]


def greatest(outputs: list[Any]) -> Any:
    """Of each point, over all outputs."""
    return np.max([np.abs(y).max(axis=1, initial=0) for y in outputs], axis=0)


def is_derivative(stem: str) -> bool:
    return stem.rpartition("_")[2] in ("jacobian", "given", "jvp", "pjac", "dparam")


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_agrees_with_its_package(cases: Callable[[str], Case], name: str) -> None:
    case = cases(name)
    for stem in case.stems():
        inputs = inputs_of(case.programs[stem])
        expected, made = by_package(case, stem, inputs), case.kernels[stem].as_package(*inputs)
        limit = (DERIVATIVES if is_derivative(stem) else VALUES) * greatest(expected)
        assert np.isfinite(limit).all(), stem
        for theirs, ours in zip(expected, made, strict=True):
            assert (np.abs(ours - theirs).max(axis=1, initial=0) <= limit).all(), stem


#: What is put into a variable: by a pattern of names, a number.
UNUSUAL: Mapping[str, tuple[str, float]] = {
    "nan": (r".", np.nan),
    "infinite": (r".", np.inf),
    "minus infinite": (r".", -np.inf),
    "no slip and no strain": (r"slip|strain", 0.0),
    "no stress": (r"stress|^X\d", 0.0),
    "no density": (r"density", 0.0),
    "negative density": (r"density", -50.0),
    "all zero": (r".", 0.0),
    "no time": (r"^t(~1)?$", 1.0),
}


@pytest.mark.parametrize("what", UNUSUAL)
@pytest.mark.parametrize("name", NAMES)
def test_a_point_is_finite_in_both_or_in_none(
    cases: Callable[[str], Case], name: str, what: str
) -> None:
    case, (pattern, value) = cases(name), UNUSUAL[what]
    for stem in case.stems():
        program = case.programs[stem]
        inputs = inputs_of(program)
        for array, values in zip(program.inputs, inputs, strict=True):
            places = components_of(array, pattern)
            if places and array.per_point:
                if np.isfinite(value):
                    values[:, places] = value
                else:  # one component of each point
                    for point in range(POINTS):
                        values[point, places[point % len(places)]] = value
        expected, made = by_package(case, stem, inputs), case.kernels[stem].as_package(*inputs)
        theirs = np.all([np.isfinite(y).all(axis=1) for y in expected], axis=0)
        ours = np.all([np.isfinite(y).all(axis=1) for y in made], axis=0)
        np.testing.assert_array_equal(ours, theirs, err_msg=stem)


@pytest.mark.parametrize("name", ["chaboche", "radial_return", "crystal"])
def test_a_lane_does_not_depend_on_the_others(cases: Callable[[str], Case], name: str) -> None:
    case = cases(name)
    for stem in case.kernels.keys() & case.programs.keys():
        kernel = case.kernels[stem]
        inputs = inputs_of(case.programs[stem], 13)
        together = kernel(*inputs)
        disturbed = [x.copy() for x in inputs]
        for array, values in zip(case.programs[stem].inputs, disturbed, strict=True):
            if array.per_point:
                values[1::2] = np.nan
        beside = kernel(*disturbed)
        for point in (0, 6, 12):
            alone = kernel(*(_of_point(x, a, point) for x, a in _pairs(case, stem, inputs)))
            for y, z, w in zip(together, alone, beside, strict=True):
                assert y[point].tobytes() == z[0].tobytes() == w[point].tobytes()


def _pairs(case: Case, stem: str, inputs: list[Any]) -> Iterator[tuple[Any, Array]]:
    return zip(inputs, case.programs[stem].inputs, strict=True)


def _of_point(values: Any, array: Array, point: int) -> Any:
    return values[point : point + 1] if array.per_point else values


def test_only_solves_sums_and_fixed_batches_have_no_kernel(
    captured: Callable[[str], Captured],
) -> None:
    for name in (*RECIPES, *KERNEL_RECIPES):
        for package, found in captured(name).programs.items():
            if isinstance(found, str):
                known = ("linear systems", "pulls cotangents back", "number of points is fixed")
                assert any(reason in found for reason in known), (name, package, found)


def test_powers_on_twelve_slip_systems_are_what_numpy_computes(
    captured: Callable[[str], Captured], tmp_path: Path, any_cc: str
) -> None:
    """Without the packages, which take minutes to compile."""
    graphs = captured("crystal_powers")
    (made,) = build(graphs.write(tmp_path / "crystal"), [native_target()], any_cc)
    for stem, kernel in load(made).items():
        program = graphs.programs[f"{stem}.pt2"]
        assert isinstance(program, Program)
        powers = [step for step in program.steps if step[0] == "pow"]
        assert len(powers) >= 12 or not stem.endswith(("residual", "jacobian"))
        # A group of a predictor's inputs has no name here: all are of the size of strains.
        random = np.random.default_rng(3)
        inputs = [1e-3 * random.standard_normal((9, a.components)) for a in program.inputs]
        expected = [y.T for y in evaluate(program, [x.T for x in inputs])]
        limit = DERIVATIVES * greatest(expected)
        for theirs, ours in zip(expected, kernel.as_package(*inputs), strict=True):
            finite = np.isfinite(theirs).all(axis=1)
            np.testing.assert_array_equal(np.isfinite(ours).all(axis=1), finite, err_msg=stem)
            with np.errstate(invalid="ignore"):
                error = np.abs(ours - theirs).max(axis=1)
            assert (error[finite] <= limit[finite]).all(), stem


def test_kernels_of_all_graphs_are_called_by_their_name(cases: Callable[[str], Case]) -> None:
    kernel: Kernel = cases("isotropic_hardening").kernels["viscoplastic_residual"]
    assert [name for name, _ in kernel.inputs][:2] == ["unknowns", "givens"]
    assert kernel.outputs == [("residual", 7)]


@pytest.mark.parametrize(
    ("name", "stem"), [("crystal", "crystal_seg0_predictor"), ("gmres", "creep_matvec")]
)
def test_what_repeats_is_prepared_as_far_as_it_can_be(
    cases: Callable[[str], Case], name: str, stem: str
) -> None:
    schedule = scheduled(simplified(cases(name).programs[stem]))
    before, after = (
        sum(len(section.places) for section in sections)
        for sections in (schedule.prepare, schedule.run)
    )
    assert cases(name).kernels[stem].kept == schedule.kept > 0
    assert before > 0.3 * after
