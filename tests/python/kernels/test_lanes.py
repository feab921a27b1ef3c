"""Models that run on their kernels, against the same models on their packages."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_one_answer, evaluations, in_every_way
from click.testing import CliRunner
from kernel_setup import native_target, with_kernels
from numpy.typing import NDArray
from states import RECORDED, repeated, state_of

from neml2_capi import Error, Model
from neml2_capi._ffi.library import lib
from neml2_capi.cli.commands import neml2_capi as command

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]
Arrays = Mapping[str, Array]
Report = Mapping[str, Any]

#: Models of which every segment has a kernel.
MODELS = [
    "elasticity",
    "elasticity_parameters",
    "elasticity_grains",
    "elasticity_float32",
    "grains",
    "isotropic_hardening",
    "chaboche",
    "combined_hardening",
    "viscoplastic",
    "radial_return",
    "relaxation",
    "warm_start",
    "substepping",
    "polycrystal",
    "gmres",
    "bicgstab",
    pytest.param("crystal", marks=pytest.mark.full("its kernels take long to compile")),
]
LOADS = {"strain", "total_strain", "applied_stress", "deformation_rate"}
#: Of which kernels give blocks, and no products: their derivatives have sub-batch axes.
SITED = {"grains", "elasticity_grains"}
#: What iterative linear solvers leave, and float32.
LOOSER = {"gmres": 1e-8, "bicgstab": 1e-8, "elasticity_float32": 1e-6}
POINTS = 61  # no multiple of any number of lanes
#: Relative to the greatest entry of the point.
VALUES, DERIVATIVES = 1e-12, 1e-10


def bits(values: NDArray[Any]) -> bytes:
    """All bits, except of NaN: which of two a processor takes, a compiler decides."""
    return np.where(np.isnan(values), np.nan, values).tobytes()


def dtype_of(name: str) -> str:
    return "float32" if name.endswith("float32") else "float64"


def opened(name: str, target: str = "", **options: Any) -> tuple[Model, Model]:
    """A model on its kernels and one on its packages."""
    root = with_kernels(name, target)
    pair = Model(root, dtype=dtype_of(name)), Model(root, dtype=dtype_of(name))
    for model, kernels in zip(pair, ("required", "off"), strict=True):
        model.options["kernels"] = kernels
        model.options["collect_history"] = 1
        if f"{name}/solver" in RECORDED:
            for option, value in zip(
                ("atol", "rtol", "miters"), RECORDED[f"{name}/solver"], strict=True
            ):
                model.options[option] = value
        model.options.update(options)
    return pair


def states(model: Model, name: str, points: int = POINTS) -> dict[str, Array]:
    return repeated(state_of(name, model), points)


def assert_near(ours: Any, theirs: Any, tolerance: float, what: str) -> None:
    """NaN at the same points, and equal to `tolerance` of the greatest entry of the point."""
    ours, theirs = (np.asarray(x).reshape(len(x), -1) for x in (ours, theirs))
    finite = np.isfinite(theirs).all(axis=1)
    np.testing.assert_array_equal(np.isfinite(ours).all(axis=1), finite, err_msg=what)
    error = np.abs(ours[finite] - theirs[finite]).max(axis=1, initial=0)
    limit = tolerance * np.abs(theirs[finite]).max(axis=1, initial=0)
    assert (error <= limit).all(), (what, (error / np.maximum(limit, 1e-300)).max())


def assert_same(
    ours: tuple[Arrays, Report], theirs: tuple[Arrays, Report], tolerance: float = VALUES
) -> None:
    """Values to round-off; statuses, iterations and cuts alike."""
    for name, value in theirs[0].items():
        assert_near(ours[0][name], value, tolerance, name)
    for name in ("status", "iterations", "suggested_cut"):
        np.testing.assert_array_equal(ours[1][name], theirs[1][name], err_msg=name)
    # Norms are differences of what nearly cancels: they agree if they are large. Of infinite
    # numbers they are infinite or NaN, as the order of the operations has it.
    first, second = (np.copy(each[1]["residual_history"]) for each in (ours, theirs))
    for norms in (first, second):
        norms[~np.isfinite(norms)] = np.nan
    np.testing.assert_array_equal(np.isnan(first), np.isnan(second))
    np.testing.assert_allclose(first[:, 0], second[:, 0], rtol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_values_and_reports_are_those_of_the_packages(name: str, target: str) -> None:
    lanes, packages = opened(name, target)
    inputs = states(packages, name)
    assert_same(lanes.evaluate(inputs), packages.evaluate(inputs), LOOSER.get(name, VALUES))


NAMES = ("xx", "yy", "zz", "yz", "xz", "xy")
#: By model: what is its strain.
STRAINS = {
    "isotropic_hardening": "strain",
    "radial_return": "total_strain",  # segments before and behind the implicit one
    "crystal": "deformation_rate",  # a line search, and a step that keeps no factors
}


def components(variable: Any, value: Array) -> Array:
    """Those that a tensor under a hypothesis has: its type lists them."""
    kept = variable.type.partition("(")[2].rstrip(")")
    return value[:, [NAMES.index(part) for part in kept.split(", ")]] if kept else value


@pytest.mark.parametrize("hypothesis", ["plane_strain", "plane_stress", "uniaxial", "shell"])
@pytest.mark.parametrize(
    "name",
    [
        "isotropic_hardening",
        "radial_return",
        pytest.param("crystal", marks=pytest.mark.full("its kernels take long to compile")),
    ],
)
def test_lanes_find_the_free_strains_of_packages(name: str, hypothesis: str) -> None:
    root, strain = with_kernels(name), STRAINS[name]
    whole = states(Model(root), name)
    results = []
    for kernels in ("required", "off"):
        model = Model(root, hypothesis=hypothesis, strain=strain)
        model.options.update({"kernels": kernels, "atol": 1e-13, "rtol": 1e-12, "miters": 60})
        inputs = {
            v.name: components(v, whole[v.name])
            if v.name in whole
            else np.zeros((POINTS, *v.point_shape))
            for v in model.inputs
        }
        results.append((*model.jacobian(inputs), model.evaluate(inputs)[1]["iterations"]))
    (ours, tangents, few), (theirs, others, many) = results
    assert few.sum() <= 1.2 * many.sum()
    for output, value in theirs.items():
        assert_near(ours[output], value, 1e-6, output)  # what the relative criterion leaves
        if strain in others.get(output, {}):
            assert_near(tangents[output][strain], others[output][strain], 1e-6, output)


def spoiled(inputs: Arrays) -> dict[str, Array]:
    """Points that are NaN, infinite, or strained beyond all measure, among good ones."""
    broken = {name: np.array(value) for name, value in inputs.items()}
    for number, name in enumerate(sorted(broken)):
        values = broken[name].reshape(POINTS, -1)
        values[(3 * number + 1) % POINTS, 0] = np.nan
        values[(3 * number + 20) % POINTS, -1] = np.inf
    for name in LOADS & broken.keys():
        broken[name][40:50:3] *= 1e60
    return broken


@pytest.mark.parametrize("name", MODELS)
def test_points_fail_as_they_do_in_packages(name: str, target: str) -> None:
    lanes, packages = opened(name, target)
    inputs = spoiled(states(packages, name))
    ours, theirs = lanes.evaluate(inputs), packages.evaluate(inputs)
    assert (theirs[1]["status"] != lib.NEML2_OK).any()
    assert_same(ours, theirs, LOOSER.get(name, VALUES))


@pytest.mark.parametrize("name", MODELS)
def test_a_point_has_the_same_bits_in_any_company(name: str, target: str) -> None:
    lanes, _ = opened(name, target)
    inputs = spoiled(states(lanes, name))
    together, report = lanes.evaluate(inputs)
    for options in ({"threads": 1}, {"threads": 2, "chunk": 3}):
        lanes.options.update(options)
        for first, last in ((0, 1), (7, 8), (5, POINTS), (2, 59)):
            part, of_part = lanes.evaluate({n: v[first:last] for n, v in inputs.items()})
            for found, whole in ((part, together), (of_part, report)):
                for key, value in found.items():
                    assert bits(value) == bits(whole[key][first:last]), key


@pytest.mark.parametrize("name", MODELS)
def test_a_result_does_not_see_what_else_is_asked(name: str) -> None:
    lanes, _ = opened(name)
    inputs = states(lanes, name)
    products = name not in SITED
    assert_one_answer(in_every_way(lanes, name, inputs, products))


@pytest.mark.parametrize("name", ["isotropic_hardening", "chaboche"])
@pytest.mark.parametrize("search", ["BACKTRACKING", "STRONG_WOLFE"])
@pytest.mark.parametrize("trials", [2, 10])
def test_line_searches_take_the_same_steps(name: str, search: str, trials: int) -> None:
    # Tolerances far above round-off, where the norms of both may fall on two sides of them.
    lanes, packages = opened(name, ls_type=search, ls_max_iters=trials, atol=1e-7, rtol=1e-7)
    inputs = states(packages, name)
    inputs["strain"] = inputs["strain"] * np.linspace(0.5, 20, POINTS)[:, None]
    assert_same(lanes.evaluate(inputs), packages.evaluate(inputs))


@pytest.mark.parametrize("miters", [1, 2, 5])
def test_too_few_iterations_fail_alike(miters: int) -> None:
    lanes, packages = opened("isotropic_hardening", miters=miters)
    inputs = states(packages, "isotropic_hardening")
    ours, theirs = lanes.evaluate(inputs), packages.evaluate(inputs)
    assert (theirs[1]["status"] == lib.NEML2_NOT_CONVERGED).any()
    assert_same(ours, theirs)


#: Whose steps take more than four iterations, and that reach their tolerances.
RESCUED = ["isotropic_hardening", "chaboche", "relaxation", "polycrystal", "warm_start"]


@pytest.mark.parametrize("name", RESCUED)
def test_what_too_few_iterations_leave_is_rescued_alike(name: str, target: str) -> None:
    """Several segments, sites, and guesses that are inputs: each solution is the ordinary one."""
    lanes, packages = opened(name, target)
    inputs = states(packages, name, 12)
    for load in LOADS & inputs.keys():
        values = inputs[load]
        values *= np.linspace(1.0, 2.0, 12).reshape(-1, *[1] * (values.ndim - 1))
    expected, plain = packages.evaluate(inputs)
    assert (plain["status"] == lib.NEML2_OK).all()
    solves = []
    for model in (lanes, packages):
        model.options["miters"] = 5
        failed = model.evaluate(inputs)[1]["status"] != lib.NEML2_OK
        model.options["rescue"] = 200
        found, report = model.evaluate(inputs)
        assert failed.any() and (report["status"] == lib.NEML2_OK).all()
        np.testing.assert_array_equal(report["rescue_solves"] > 0, failed)
        solves.append(report["rescue_solves"])
        for key, value in expected.items():
            assert_near(found[key], value, 1e-8, key)
    np.testing.assert_array_equal(solves[0], solves[1])


@pytest.mark.parametrize("name", MODELS)
def test_derivatives_are_those_of_the_packages(name: str) -> None:
    lanes, packages = opened(name)
    if name in SITED:
        lanes.options["kernels"] = "auto"
    inputs = states(packages, name, 13)
    expected = dict(evaluations(packages, name, inputs))
    found = dict(evaluations(lanes, name, inputs))
    assert found.keys() == expected.keys()
    for kind in ("jacobian", "jvp", "vjp", "param_jacobian", "param_vjp"):
        theirs = side_by_side(expected, kind)
        if theirs is not None:
            assert_near(side_by_side(found, kind), theirs, DERIVATIVES, kind)


def side_by_side(evaluated: Mapping[str, Any], kind: str) -> Any:
    """All derivatives of a kind, a row for each point; sums over points are one row."""
    found = [np.asarray(v) for what, v in evaluated.items() if what.split()[0] == kind]
    points = 1 if kind == "param_vjp" else 13
    # What is the same for all points is there once.
    rows = [v.reshape(points if len(np.atleast_1d(v)) == points else 1, -1) for v in found]
    tall = [np.broadcast_to(row, (points, row.shape[1])) for row in rows]
    return np.hstack(tall) if tall else None


def direction_of(inputs: Arrays) -> dict[str, Array]:
    random = np.random.default_rng(7)
    return {name: random.standard_normal(value.shape) for name, value in inputs.items()}


@pytest.mark.parametrize("name", ["isotropic_hardening", "chaboche", "relaxation"])
def test_a_direction_is_the_product_with_the_jacobian(name: str, target: str) -> None:
    lanes, _ = opened(name, target)
    inputs = states(lanes, name)
    direction = direction_of(inputs)
    _, found, *_ = lanes.jvp(inputs, direction)
    _, jacobian, *_ = lanes.jacobian(inputs)
    products = []
    for output, blocks in jacobian.items():
        product = np.zeros((POINTS, np.asarray(found[output]).reshape(POINTS, -1).shape[1]))
        for given, block in blocks.items():
            right = direction[given].reshape(POINTS, -1)
            matrix = np.broadcast_to(block, (POINTS, *np.shape(block)[1:]))
            matrix = matrix.reshape(POINTS, product.shape[1], right.shape[1])
            product += np.einsum("pij,pj->pi", matrix, right)
        products.append(product)
    ours = np.hstack([np.asarray(found[output]).reshape(POINTS, -1) for output in jacobian])
    assert_near(ours, np.hstack(products), DERIVATIVES, "jvp")


@pytest.mark.parametrize("name", ["isotropic_hardening", "chaboche", "relaxation"])
def test_a_jacobian_has_the_same_bits_in_any_company(name: str, target: str) -> None:
    """One point alone has its columns in the lanes, several points have themselves there."""
    lanes, _ = opened(name, target)
    inputs = states(lanes, name)
    for given in inputs.keys() - {"t", "t~1"}:
        inputs[given][7] = 0  # at rest, where a norm has no slope
    _, together, *_ = lanes.jacobian(inputs)
    for first, last in ((0, 1), (7, 8), (2, 59)):
        _, found, *_ = lanes.jacobian({n: v[first:last] for n, v in inputs.items()})
        for output, blocks in found.items():
            for given, block in blocks.items():
                whole = np.broadcast_to(together[output][given], (POINTS, *np.shape(block)[1:]))
                part = np.broadcast_to(block, (last - first, *np.shape(block)[1:]))
                assert bits(part) == bits(whole[first:last]), (output, given)


@pytest.mark.parametrize("name", ["isotropic_hardening", "chaboche", "relaxation"])
def test_a_direction_has_the_same_bits_in_any_company(name: str, target: str) -> None:
    lanes, _ = opened(name, target)
    inputs = states(lanes, name)
    direction = direction_of(inputs)
    _, together, *_ = lanes.jvp(inputs, direction)
    for first, last in ((0, 1), (7, 8), (5, POINTS), (2, 59)):
        part = [{n: v[first:last] for n, v in given.items()} for given in (inputs, direction)]
        _, found, *_ = lanes.jvp(*part)
        for key, value in found.items():
            assert bits(value) == bits(together[key][first:last]), key


def test_a_parameter_may_have_a_value_for_each_point() -> None:
    lanes, packages = opened("isotropic_hardening")
    inputs = states(packages, "isotropic_hardening")
    for model in (lanes, packages):
        model.set_parameter("yield_stress", np.linspace(50.0, 300.0, POINTS))
    assert_same(lanes.evaluate(inputs), packages.evaluate(inputs))


def test_increments_are_cut_as_they_are_in_packages(target: str) -> None:
    lanes, packages = opened("substepping", target)
    inputs = states(packages, "substepping")
    ours, theirs = lanes.evaluate(inputs), packages.evaluate(inputs)
    cut = theirs[1]["iterations"] > packages.options["miters"]
    assert 0 < cut.sum() < POINTS and not theirs[1]["status"].any()
    assert_same(ours, theirs)


def test_sums_over_points_go_through_the_parts_of_their_increments() -> None:
    lanes, packages = opened("substepping")
    inputs: dict[str, Any] = states(packages, "substepping")
    inputs["t"] = float(inputs["t"][0])  # one value, whose adjoint is a sum
    cotangents = {name: np.ones_like(value) for name, value in packages.forward(inputs).items()}
    calls = [model.bind(inputs, cotangents=cotangents) for model in (lanes, packages)]
    for call in calls:
        call()
    for name, value in calls[1].adjoints.items():
        size = np.abs(value).max()
        np.testing.assert_allclose(calls[0].adjoints[name], value, 1e-8, 1e-10 * size, err_msg=name)


def test_what_kernels_do_not_give_needs_the_packages() -> None:
    lanes, packages = opened("grains")
    inputs = states(packages, "grains")
    directions = {name: np.ones_like(value) for name, value in inputs.items()}
    with pytest.raises(Error, match=r"kernels = required.*sub-batch axes"):
        lanes.jvp(inputs, directions)
    lanes.options["kernels"] = "auto"
    lanes.jvp(inputs, directions)
    lanes.options.update({"kernels": "required", "convergence": "batch"})
    with pytest.raises(Error, match="convergence = point"):
        lanes.forward(inputs)


def test_a_model_without_kernels_says_how_to_make_them(artifacts: Mapping[str, Path]) -> None:
    model = Model(artifacts["chaboche"])
    inputs = states(model, "chaboche")
    model.forward(inputs)
    model.options["kernels"] = "required"
    with pytest.raises(Error, match="neml2-capi compile"):
        model.forward(inputs)


def test_a_model_whose_graphs_have_no_kernels_runs_on_its_packages() -> None:
    model = Model(with_kernels("elasticity_static"))
    inputs = {"strain": np.full((2, 6), 1e-3)}
    assert np.isfinite(model.forward(inputs)["stress"]).all()
    model.options["kernels"] = "required"
    with pytest.raises(Error, match="none of its graphs has a kernel"):
        model.forward(inputs)


def test_inspect_and_doctor_tell_what_has_kernels() -> None:
    root = str(with_kernels("isotropic_hardening"))
    document = json.loads(CliRunner().invoke(command, ["inspect", root, "--json"]).output)
    kernels = {package["file"]: package["kernel"] for package in document["packages"]}
    assert kernels["viscoplastic_residual.pt2"] == native_target()
    assert "linear systems" in kernels["viscoplastic_solve_ift.pt2"]
    told = CliRunner().invoke(command, ["doctor", "--run", root]).output
    assert "on its kernels" in " ".join(told.split())


def test_kernels_of_another_package_are_not_used(tmp_path: Path) -> None:
    root = shutil.copytree(with_kernels("elasticity"), tmp_path / "elasticity")
    package = root / "cpu" / "float64" / "elasticity.pt2"
    with zipfile.ZipFile(package, "a") as archive:
        archive.writestr("elasticity/data/more.txt", b"more")
    model = Model(root)
    inputs = states(model, "elasticity")
    model.forward(inputs)
    model.options["kernels"] = "required"
    with pytest.raises(Error, match=r"another elasticity\.pt2"):
        model.forward(inputs)
