"""Compiled models on OpenCL and CUDA, by the text of build-kernels: to the bit what lanes give."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from kernel_setup import model_names, with_kernels
from native import ROOT
from programs import built
from states import Array, Arrays, repeated, state_of
from test_lanes import LOADS, dtype_of, spoiled, states
from test_opencl import cache_of_pocl  # noqa: F401  (a fixture)

from neml2_capi import ConvergenceError, Device, FatalError, Model, Scheduler
from neml2_capi._ffi.variables import Derivative
from neml2_capi.cli.commands import neml2_capi as command
from neml2_capi.header import face
from neml2_capi.header.beside import write_beside
from neml2_capi.kernels.folder import folders

sys.path.append(str(ROOT / "tests/python/header"))
import test_header_functions as functions

pytestmark = pytest.mark.numbers

QUICK = "isotropic_hardening"
#: The status of a program without what it tests.
NOTHING_TO_TEST = 77
LARGE = ("elasticity", QUICK)
#: Factors of loads, and of what was before: points that need no iterations, few, many, or too many.
MANY_LOADS = (0, 1e-9, 0.1, 1, 1, 1, 2, 3, 5, 15, 30, -1, -4, 1e4, 1e30)
MANY_STATES = (1, 1, 1, 1, 0.9, 1.1, 0, -1, 10, 1e3)
#: What a text cannot be made of, and why.
REFUSED = {"elasticity_static": "its number of points is fixed"}
#: Of which a text has no derivatives: they have sub-batch axes.
VALUES_ALONE = {"elasticity_grains", "grains"}
NAMES = [
    pytest.param(name, marks=[] if name == QUICK else pytest.mark.full("compiles a text"))
    for name in model_names()
]
DEVICES = [
    "opencl:0",
    pytest.param("opencl:1", marks=pytest.mark.full("Intel's OpenCL")),
    pytest.param("cuda:0", marks=pytest.mark.gpu),
]


def written(name: str, root: Path, device: str = "opencl") -> Path:
    """The artifact of a model, with its text for devices of a kind."""
    shutil.copytree(with_kernels(name), root, dirs_exist_ok=True)
    target = device.partition(":")[0]
    done = CliRunner().invoke(command, ["build-kernels", str(root), "--target", target])
    if REFUSED.get(name):
        assert done.exit_code != 0
        assert REFUSED[name] in done.output
        pytest.skip(REFUSED[name])
    assert done.exit_code == 0, done.output
    return root


def opened(name: str, root: Path, device: str = "opencl:0") -> tuple[Model, Model]:
    """A model in lanes, and on a device; the test is skipped if that is not there."""
    require(device)
    written(name, root, device)
    lanes = Model(root, dtype=dtype_of(name))
    lanes.options["kernels"] = "required"
    return lanes, on_device(root, dtype_of(name), device)


def require(device: str) -> None:
    if device.startswith("cuda") and not has_cuda():
        pytest.skip("there is no CUDA device")


def on_device(root: Path, dtype: str, device: str) -> Model:
    try:
        return Model(root, dtype=dtype, device=device)
    except FatalError as error:
        if "OpenCL" not in str(error):
            raise
        pytest.skip(f"there is no {device}")


def has_cuda() -> bool:
    try:
        return bool(ctypes.CDLL("libcuda.so.1").cuInit(0) == 0)
    except OSError:
        return False


def results(model: Model, inputs: Any, derivatives: bool = True) -> dict[str, Any]:
    """All that is asked of both, by what it is."""
    outputs, report = model.evaluate(inputs)
    told = {f"output {name}": value for name, value in outputs.items()}
    told |= {
        name: report[name] for name in ("status", "iterations", "residual_norm", "suggested_cut")
    }
    if model.derivatives and derivatives:
        try:
            blocks = model.jacobian(inputs)[1]
        except ConvergenceError as error:
            blocks = error.derivatives
        told |= {f"{o} by {i}": block for o, of in blocks.items() for i, block in of.items()}
    if model.parameter_derivatives and derivatives:
        told |= by_parameters(model, inputs)
    return told


def by_parameters(model: Model, inputs: Any) -> dict[str, Any]:
    """Derivatives with respect to parameters."""
    try:
        blocks = model.param_jacobian(inputs)[1]
    except ConvergenceError as error:
        blocks = error.derivatives
    return {f"{o} by {p}": block for o, of in blocks.items() for p, block in of.items()}


def assert_equal_bits(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """All bits alike, except of NaN."""
    assert ours.keys() == theirs.keys()
    for what, expected in theirs.items():
        found = ours[what]
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
        np.testing.assert_array_equal(found, expected, err_msg=what)
        there = ~np.isnan(expected)
        assert (np.signbit(found) == np.signbit(expected))[there].all(), what


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_a_model_has_the_bits_of_lanes(name: str, device: str, tmp_path: Path) -> None:
    lanes, there = opened(name, tmp_path, device)
    derives = name not in VALUES_ALONE
    many = [repeated(state_of(name, lanes), points) for points in (1, 2, 61, 1000)]
    for inputs in (*many, spoiled(states(lanes, name))):
        assert_equal_bits(results(there, inputs, derives), results(lanes, inputs, derives))
    if not derives:
        with pytest.raises(FatalError, match="whose text has values alone"):
            there.jacobian(many[0])


@pytest.mark.full("compiles a text")
@pytest.mark.parametrize("device", DEVICES)
def test_a_law_of_many_variables_takes_them_together(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel has room for so many arguments; with derivatives by parameters, too."""
    monkeypatch.setattr(face, "MOST_ARRAYS", 0)
    lanes, there = opened(QUICK, tmp_path, device)
    place = next(tmp_path.glob("**/device.c[lu]"))
    assert place.read_text().partition("\n")[0].endswith(", together")
    inputs = spoiled(states(lanes, QUICK))
    assert_equal_bits(results(there, inputs), results(lanes, inputs))


def mixed(inputs: Arrays) -> dict[str, Array]:
    """Points in no order that need no iterations, few or many, or fail, in every way."""
    random, made = np.random.default_rng(5), {}
    for name, value in inputs.items():
        rows = np.array(value).reshape(len(value), -1)
        if not name.startswith("t"):
            factors = MANY_LOADS if name in LOADS else MANY_STATES
            rows *= random.choice(factors, (len(rows), 1)).astype(rows.dtype)
        for special in (np.nan, np.inf, -np.inf, 0.0, 1e30):
            rows[random.integers(len(rows)), random.integers(rows.shape[1])] = special
        made[name] = rows.reshape(value.shape)
    return made


@pytest.mark.full("many evaluations")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_points_of_all_kinds_side_by_side_have_the_bits_of_lanes(
    name: str, device: str, tmp_path: Path
) -> None:
    """A device that vectorises takes some of them together, and masks those that are done."""
    pair, points = opened(name, tmp_path, device), 200
    inputs = mixed(repeated(state_of(name, pair[0]), points))
    stored = {key: np.array(value) for key, value in pair[0].named_parameters().items()}
    factors = np.random.default_rng(6).choice([1, 1, 1, 0.5, 1.1, 0, -1, 1e5, np.nan], points)
    for options in ({}, {"miters": 4}, {"atol": 1e-13, "rtol": 1e-12}):
        for factor in (1.0, factors) if stored else (1.0,):
            told = []
            for model in pair:
                model.options.update(options)
                for key, value in stored.items():
                    model[key] = (factor * value).astype(model.dtype)
                told.append(results(model, inputs, name not in VALUES_ALONE))
            assert_equal_bits(told[1], told[0])


@pytest.mark.full("functions of kernels are compiled")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("real", ["float64", "float32"])
def test_functions_have_the_bits_of_lanes(real: str, device: str, tmp_path: Path) -> None:
    require(device)
    lanes = functions.model(tmp_path / "functions", real)
    lanes.options["kernels"] = "required"
    (folder,) = folders(tmp_path / "functions")
    write_beside(folder, device.partition(":")[0])
    inputs = {"x": functions.values(real).astype(real)}
    there = on_device(tmp_path / "functions", real, device)
    assert there.dtype == real
    assert_equal_bits(results(there, inputs), results(lanes, inputs))


@pytest.mark.full("100,000 points")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", LARGE)
def test_100000_points_have_the_bits_of_lanes(name: str, device: str, tmp_path: Path) -> None:
    lanes, there = opened(name, tmp_path, device)
    inputs = repeated(state_of(name, lanes), 100_000)
    expected = results(lanes, inputs)
    assert_equal_bits(results(there, inputs), expected)
    there.options["chunk"] = 4096  # two batches are under way at once
    assert_equal_bits(results(there, inputs), expected)


@pytest.mark.full("compiles a text")
@pytest.mark.parametrize("device", DEVICES)
def test_products_by_parameters_agree_with_lanes(device: str, tmp_path: Path) -> None:
    """Sums over the points, too, of parameters that have one value."""
    pair = opened(QUICK, tmp_path, device)
    inputs = repeated(state_of(QUICK, pair[0]), 70)
    stress = pair[0].forward(inputs)["stress"]
    cotangents = {"stress": np.random.default_rng(2).normal(size=stress.shape)}
    for varying in (False, True):
        found = []
        for model in pair:
            if varying:
                for name, value in model.named_parameters().items():
                    model[name] = np.linspace(0.9, 1.1, 70) * np.mean(value)
            found.append(model.param_vjp(inputs, cotangents))
        assert found[0].keys() == found[1].keys() != set()
        for name, expected in found[0].items():
            np.testing.assert_allclose(found[1][name], expected, rtol=1e-12, err_msg=name)
    # Alone and beside others: both texts give the same.
    both = pair[1].jacobian(inputs)[1], pair[1].param_jacobian(inputs)[1]
    assert [set(each) for each in both] == [{"stress", "equivalent_plastic_strain"}] * 2


@pytest.mark.full("compiles a text")
@pytest.mark.parametrize("device", DEVICES)
def test_derivatives_come_back_without_the_others(device: str, tmp_path: Path) -> None:
    _, there = opened(QUICK, tmp_path, device)
    inputs = repeated(state_of(QUICK, there), 70)
    inputs["strain"][1] = np.nan

    def derived(pairs: Sequence[Derivative]) -> dict[tuple[str, str], Array]:
        asked: dict[str, dict[str, bool]] = {}
        for of in pairs:
            asked.setdefault(of.output, {})[of.variable] = True
        call = there.bind(inputs, derivatives=asked, report=True)
        call()
        return {(o, v): np.array(b) for o, by in call.derivatives.items() for v, b in by.items()}

    pairs = [*there.derivatives, *there.parameter_derivatives]
    expected = derived(pairs)
    for some in *([each] for each in pairs), pairs[::2], pairs[1:-1]:
        found = derived(some)
        assert len(found) == len(some)
        for pair, block in found.items():
            np.testing.assert_array_equal(block, expected[pair])


@pytest.mark.full("compiles a text")
def test_an_artifact_without_a_text_by_parameters_says_so(tmp_path: Path) -> None:
    _, there = opened(QUICK, tmp_path)
    inputs = repeated(state_of(QUICK, there), 3)
    (text,) = tmp_path.glob("kernels/*/device_by_parameters.cl")
    whole = text.read_text()
    for content, message in (
        (None, "no kernels in the language of the device that derive with respect to parameters"),
        (whole.replace("1 ", "2 ", 1).replace("inputs", "input", 1), "are not of this model"),
    ):
        text.unlink(missing_ok=True)
        if content is not None:
            text.write_text(content)
        with pytest.raises(FatalError, match=message):
            there.param_jacobian(inputs)
        assert np.isfinite(there.jacobian(inputs)[0]["stress"]).all()
    text.write_text(whole)
    assert there.param_jacobian(inputs)[1]["stress"]


@pytest.mark.full("compiles a text")
def test_threads_share_a_device(tmp_path: Path) -> None:
    lanes, there = opened(QUICK, tmp_path)
    inputs = [repeated(state_of(QUICK, lanes), points) for points in (500, 700, 64, 1000)]
    expected = [lanes.forward(each)["stress"] for each in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            made = pool.map(lambda each: there.forward(each)["stress"], inputs)
            for found, value in zip(made, expected, strict=True):
                np.testing.assert_array_equal(found, value)


@pytest.mark.full("compiles a text")
def test_a_scheduler_spreads_points_over_the_processor_and_a_device(tmp_path: Path) -> None:
    lanes, _ = opened(QUICK, tmp_path)
    both = Model(tmp_path, scheduler=Scheduler([Device("cpu", 100), Device("opencl", 100)]))
    inputs = repeated(state_of(QUICK, lanes), 1000)
    assert_equal_bits(results(both, inputs), results(lanes, inputs))
    assert sum(both.points_evaluated) == 3000  # outputs, and derivatives by inputs and parameters
    assert min(both.points_evaluated) > 0


@pytest.mark.full("compiles a text")
def test_the_first_launch_compiles_and_later_ones_do_not(tmp_path: Path) -> None:
    lanes, there = opened(QUICK, tmp_path)
    inputs = repeated(state_of(QUICK, lanes), 64)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        there.forward(inputs)
        seconds.append(time.perf_counter() - start)
    assert min(seconds[1:]) < seconds[0]


@pytest.mark.full("compiles three cubins of a text")
@pytest.mark.parametrize("name", ["elasticity", QUICK, "radial_return"])
def test_the_text_for_cuda_becomes_machine_code(name: str, tmp_path: Path) -> None:
    root = written(name, tmp_path, "cuda:0")
    texts = sorted(root.glob("kernels/*/device*.cu"))
    with Model(root) as model:
        assert len(texts) == 1 + bool(model.parameter_derivatives)
    for text in texts:
        done = subprocess.run(
            [built("cpp_test_cuda_compiler"), "-", text], capture_output=True, text=True
        )
        if done.returncode == NOTHING_TO_TEST:
            pytest.skip("NVRTC is not installed: python3 build.py test --full")
        assert done.returncode == 0, done.stderr


@pytest.mark.full("exports a law")
@pytest.mark.parametrize("device", DEVICES)
def test_zeros_of_a_tangent_have_the_signs_of_lanes(device: str, tmp_path: Path) -> None:
    """Derivatives by given values that are -0, in a law in which all of these have some."""
    torch = pytest.importorskip("torch")
    from neml2_capi import export

    def law(unknowns: Any, givens: Any, parameters: Any) -> Any:
        moved = unknowns["a"] - givens["a~1"] - 0.3 * givens["e"] * parameters["q"]
        return {"a": moved + 0.1 * torch.tanh(unknowns["a"])}

    require(device)
    export.model(
        law,
        str(tmp_path),
        unknowns={"a": (6,)},
        givens={"a~1": (6,), "e": (6,)},
        parameters={"q": 0.8},
        kernels="only",
        progress=False,
    )
    for folder in folders(tmp_path):
        write_beside(folder, device.partition(":")[0])
    there, lanes = on_device(tmp_path, "float64", device), Model(tmp_path)
    lanes.options["kernels"] = "required"
    values = np.random.default_rng(0).normal(size=(2, 61, 6))
    inputs = dict(zip(("a~1", "e"), values, strict=True))
    for points in (1, 61):
        few = {name: value[:points] for name, value in inputs.items()}
        assert_equal_bits(results(there, few), results(lanes, few))
    for name in inputs:  # alone as beside the others
        block = lanes.bind(inputs, derivatives={"a": {name: True}})
        block()
        whole = lanes.jacobian(inputs)[1]["a"][name]
        alone = block.derivatives["a"][name]
        np.testing.assert_array_equal(np.signbit(alone), np.signbit(whole))
