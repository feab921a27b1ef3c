"""Models by the operators of libtorch, as on a GPU, on the CPU: equal to the native engine."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import CC, HOSTS, PREBUILT, command
from numpy.typing import NDArray
from states import Artifacts, load, random_like, recorded

from neml2_capi import ConvergenceError, FatalError, Graph, Model, Tensor
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.runtime import libtorch

Array = NDArray[Any]
ELASTICITY = PREBUILT / "elasticity"
PACKAGE = ELASTICITY / "cpu" / "float64" / "elasticity.pt2"
CHABOCHE = PREBUILT / "viscoplastic"

# Explicit and implicit, of one segment and of several; with sites, and without.
NAMES = [
    "elasticity_parameters",
    "elasticity_grains",
    "isotropic_hardening",
    "radial_return",
    "relaxation",
    "crystal",
    "warm_start",
]

try:
    libtorch()
except FatalError as missing:
    pytestmark = pytest.mark.skip(reason=str(missing))


def magnitude(value: Any) -> float:
    value = np.asarray(value)
    return float(np.abs(value[np.isfinite(value)]).max(initial=0.0))


def close(actual: Any, expected: Any, scale: float = 0.0) -> None:
    """Equal except for round-off, by the greatest value, or by `scale`."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(
        actual, expected, rtol=0, atol=1e-12 * max(scale, magnitude(expected))
    )


def all_close(actual: Mapping[str, Any], expected: Mapping[str, Any], scale: float = 0.0) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, Mapping):
            all_close(actual[name], value, scale)
        else:
            close(actual[name], value, scale)


class Pair:
    """A model as it is by default, and on tensors."""

    def __init__(self, artifacts: Artifacts, name: str) -> None:
        self.native = load(artifacts, name, runtime="builtin")
        self.tensors = load(artifacts, name, runtime="tensors")
        self.inputs = recorded(name, "in")


@pytest.fixture(scope="module", params=NAMES)
def pair(request: pytest.FixtureRequest, artifacts: Artifacts) -> Pair:
    return Pair(artifacts, request.param)


def loading(points: int) -> dict[str, Array]:
    """Strain increments of a model with two back stresses, the later the larger."""
    zero, size = np.zeros((points, 6)), np.linspace(1e-4, 4e-3, points)[:, np.newaxis]
    inputs = {
        "strain": size * np.array([1.0, -0.4, -0.4, 0.1, 0.2, -0.1]),
        "t": np.full(points, 0.1),
    }
    for name in Model(CHABOCHE).inputs.names:
        scalar = name.split("~")[0] in ("t", "equivalent_plastic_strain")
        inputs.setdefault(name, np.zeros(points) if scalar else zero)
    return inputs


def test_a_model_tells_that_it_is_on_tensors() -> None:
    model = Model(ELASTICITY, runtime="tensors")
    assert (model.runtime, model.device) == ("tensors", "cpu")
    assert pickle.loads(pickle.dumps(model)).runtime == "tensors"


def test_outputs_are_equal(pair: Pair) -> None:
    all_close(pair.tensors.forward(pair.inputs), pair.native.forward(pair.inputs))


def test_reports_are_equal(pair: Pair) -> None:
    reports = []
    for model in (pair.native, pair.tensors):
        model.options["collect_history"] = 1
        reports.append(model.evaluate(pair.inputs)[1])
        model.options["collect_history"] = 0
    native, tensors = reports
    assert native.keys() == tensors.keys()
    for name in ("status", "iterations", "suggested_cut"):
        np.testing.assert_array_equal(tensors[name], native[name])
    # Norms at round-off are not the same, but where they are there and where they are not.
    if "residual_history" in native:
        np.testing.assert_array_equal(
            np.isnan(tensors["residual_history"]), np.isnan(native["residual_history"])
        )
        close(tensors["residual_history"][..., 0], native["residual_history"][..., 0])


def test_jacobians_are_equal(pair: Pair) -> None:
    outputs, blocks = pair.tensors.jacobian(pair.inputs)
    expected, others = pair.native.jacobian(pair.inputs)
    all_close(outputs, expected)
    all_close(blocks, others)


def test_products_with_the_jacobian_are_equal(pair: Pair) -> None:
    tangents = random_like(pair.inputs)
    for actual, expected in zip(
        pair.tensors.jvp(pair.inputs, tangents),
        pair.native.jvp(pair.inputs, tangents),
        strict=True,
    ):
        all_close(actual, expected)


def test_products_with_its_transpose_are_equal(pair: Pair) -> None:
    outputs = pair.native.forward(pair.inputs)
    differentiated = {d.output for d in pair.native.derivatives}
    cotangents = random_like({k: v for k, v in outputs.items() if k in differentiated})
    expected, adjoints = pair.native.vjp(pair.inputs, cotangents)
    found, others = pair.tensors.vjp(pair.inputs, cotangents)
    all_close(found, expected)
    # Large terms cancel in small adjoints; the largest adjoint is as large as they are.
    all_close(others, adjoints, max(map(magnitude, adjoints.values())))


def test_derivatives_by_parameters_are_equal(pair: Pair) -> None:
    if not pair.native.parameter_derivatives:
        with pytest.raises(FatalError, match="without derivatives with respect to parameters"):
            pair.tensors.param_jacobian(pair.inputs)
        return
    expected, blocks = pair.native.param_jacobian(pair.inputs)
    outputs, found = pair.tensors.param_jacobian(pair.inputs)
    all_close(outputs, expected)
    all_close(found, blocks)
    cotangents = random_like({k: expected[k] for k in blocks})
    all_close(
        pair.tensors.param_vjp(pair.inputs, cotangents),
        pair.native.param_vjp(pair.inputs, cotangents),
    )


@pytest.mark.parametrize("batch", [(), (1,), (2, 3), (0,), (2, 0)])
def test_a_batch_has_any_shape(artifacts: Artifacts, batch: tuple[int, ...]) -> None:
    strain = np.random.default_rng(3).normal(scale=1e-3, size=(*batch, 6))
    E = np.array([150e3, 200e3, 250e3]) if batch == (2, 3) else np.array(200e3)
    pair = Pair(artifacts, "elasticity_parameters")
    for function in ("forward", "jacobian", "param_jacobian"):
        actual, expected = (
            getattr(model, function)({"strain": strain}, {"E": E})
            for model in (pair.tensors, pair.native)
        )
        if function == "forward":
            all_close(actual, expected)
            continue
        for one, other in zip(actual, expected, strict=True):
            all_close(one, other)


def test_an_adjoint_of_what_all_points_share_is_a_sum(artifacts: Artifacts) -> None:
    pair = Pair(artifacts, "elasticity_parameters")
    strain, E = pair.inputs["strain"][0], np.linspace(1e5, 2e5, 4)
    cotangents = {"stress": np.ones((4, 6))}
    for function in ("vjp", "param_vjp"):
        actual, expected = (
            getattr(model, function)({"strain": strain}, cotangents, {"E": E})
            for model in (pair.tensors, pair.native)
        )
        all_close(*(r[1] if function == "vjp" else r for r in (actual, expected)))


@pytest.mark.parametrize("search", ["", "BACKTRACKING", "STRONG_WOLFE"])
def test_points_that_fail_are_the_same(search: str) -> None:
    inputs, errors = loading(9), []
    for runtime in ("builtin", "tensors"):
        model = Model(CHABOCHE, runtime=runtime)
        model.options["miters"] = 6
        if search:
            model.options.update({"ls_type": search, "ls_max_iters": 4})
        with pytest.raises(ConvergenceError) as caught:
            model.forward(inputs)
        errors.append(caught.value)
    native, tensors = errors
    assert 0 < native.converged_mask.sum() < 9
    assert str(tensors) == str(native)
    assert tensors.subject == native.subject
    np.testing.assert_array_equal(tensors.converged_mask, native.converged_mask)
    all_close(tensors.outputs, native.outputs)
    assert (
        np.isnan(tensors.outputs["stress"]).any(axis=-1).tolist()
        == (~native.converged_mask).tolist()
    )
    # Far from a solution Newton's method makes round-off larger, step by step.
    for name, value in native.unknowns.items():
        np.testing.assert_allclose(
            tensors.unknowns[name], value, rtol=0, atol=1e-9 * magnitude(value)
        )
    for name in ("status", "iterations", "suggested_cut"):
        np.testing.assert_array_equal(tensors.report[name], native.report[name])


def test_a_point_of_nan_does_not_touch_the_others() -> None:
    inputs = loading(5)
    model = Model(CHABOCHE, runtime="tensors")
    good = model.forward(inputs)["stress"]
    inputs["strain"][2, 0] = 1e200
    with pytest.raises(ConvergenceError) as caught:
        model.forward(inputs)
    assert caught.value.report["status"].tolist() == [0, 0, 2, 0, 0]
    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(caught.value.outputs["stress"][others], good[others])


def test_what_is_not_finite_is_told_by_the_report_alone() -> None:
    model = Model(ELASTICITY, runtime="tensors")
    strain = np.zeros((3, 6))
    strain[1, 0] = np.inf
    assert model.evaluate({"strain": strain})[1]["status"].tolist() == [0, 1, 0]
    assert not np.isfinite(model.forward({"strain": strain})["stress"][1, 0])


def test_a_parameter_can_be_set_and_given() -> None:
    native, tensors = Model(ELASTICITY), Model(ELASTICITY, runtime="tensors")
    strain = {"strain": np.random.default_rng(1).normal(size=(4, 6))}
    for value in (150e3, np.linspace(1e5, 2e5, 4), np.full(4, 3e5), 1e5):
        for model in (native, tensors):
            model.set_parameter("E", value)
        all_close(tensors.forward(strain), native.forward(strain))
        np.testing.assert_array_equal(tensors.named_parameters()["E"], value)
    given = {"E": np.linspace(3e5, 4e5, 4)}
    all_close(tensors.forward(strain, given), native.forward(strain, given))


def test_results_are_memory_of_their_own() -> None:
    model = Model(ELASTICITY, runtime="tensors")
    strain = {"strain": np.ones((2, 6))}
    first = model.forward(strain)["stress"]
    kept = first.copy()
    model.forward({"strain": np.zeros((2, 6))})
    np.testing.assert_array_equal(first, kept)


def test_torch_tensors_come_out_where_they_went_in() -> None:
    torch = pytest.importorskip("torch")
    strain = torch.ones(2, 6, dtype=torch.float64)
    stress = Model(ELASTICITY, runtime="tensors").forward({"strain": strain})["stress"]
    assert isinstance(stress, torch.Tensor)
    close(stress, Model(ELASTICITY).forward({"strain": strain.numpy()})["stress"])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gmres", "by an iterative linear solver"),
        ("substepping", "in substeps"),
        ("elasticity_static", "for a fixed batch of 2 points"),
    ],
)
def test_what_is_not_there_is_named(artifacts: Artifacts, name: str, reason: str) -> None:
    with pytest.raises(FatalError, match=reason) as caught:
        Model(artifacts[name], runtime="tensors")
    assert "Compile the model" in str(caught.value) or "compile the model" in str(caught.value)


def test_arrays_of_the_host_are_not_bound_and_solves_not_handed_out() -> None:
    model = Model(CHABOCHE, runtime="tensors")
    with pytest.raises(FatalError, match="A call is for arrays of the host"):
        model.bind({"strain": np.zeros((2, 6))})
    with pytest.raises(FatalError, match="A solve is for arrays of the host"):
        model.solve(loading(2))


def test_a_batch_does_not_converge_as_a_whole() -> None:
    model = Model(CHABOCHE, runtime="tensors")
    model.options["convergence"] = "batch"
    with pytest.raises(FatalError, match="convergence = batch is not there"):
        model.forward(loading(2))


def test_an_implicit_segment_takes_one_value_of_a_parameter(artifacts: Artifacts) -> None:
    model = load(artifacts, "isotropic_hardening", runtime="tensors")
    inputs = recorded("isotropic_hardening", "in")
    values = np.linspace(4.0, 5.0, len(inputs["strain"]))
    with pytest.raises(FatalError, match="'yield_stress' for all points") as caught:
        model.forward(inputs, {"yield_stress": values})
    assert "evaluate points of other values by themselves" in str(caught.value)


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(FatalError, match="not compiled for cuda/float64"):
        Model(ELASTICITY, device="cuda:1")
    with pytest.raises(FatalError, match=r'compiled for the device "cpu", and is wanted on cuda:1'):
        Graph(PACKAGE, device="cuda:1")
    for device in ("gpu", "cuda:x", "cuda:-1"):
        with pytest.raises(FatalError, match=f"There is no device '{device}'"):
            Graph(PACKAGE, device=device)
    assert Graph(PACKAGE).device == "cpu"


@pytest.fixture(scope="module")
def package_for_cuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of the CPU that says that it is for CUDA, and has a file of kernels."""
    path = tmp_path_factory.mktemp("cuda") / "elasticity.pt2"
    with zipfile.ZipFile(PACKAGE) as cpu, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as cuda:
        for name in cpu.namelist():
            content = cpu.read(name)
            content = content.replace(b'"AOTI_DEVICE_KEY": "cpu"', b'"AOTI_DEVICE_KEY": "cuda"')
            if name.endswith(".wrapper.cpp"):
                content = content.replace(
                    b"expected_device_type = 0;", b"expected_device_type = 1;"
                )
            cuda.writestr(name, content)
        cuda.writestr("elasticity/data/aotinductor/model/kernel.cubin", b"kernel")
    return path


def loading_for_cuda(package: Path, libraries: Path, scratch: Path) -> str:
    """What a process says that loads it for the second device, and runs it on the CPU's memory."""
    code = (
        "import os, sys, numpy, neml2_capi\n"
        f"graph = neml2_capi.Graph({str(package)!r}, device='cuda:1')\n"
        "print(graph.device, graph.runtime, file=sys.stderr, flush=True)\n"
        f"for folder in os.scandir({str(scratch)!r}):\n"
        "    print(os.listdir(folder), file=sys.stderr, flush=True)\n"
        "graph(numpy.ones((2, 6)), numpy.ones(2))\n"
    )
    scratch.mkdir()
    settings = {"NEML2_CAPI_LIBTORCH": str(libraries), "TMPDIR": str(scratch)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | settings
    )
    assert done.returncode == 1
    assert not list(scratch.iterdir())
    return done.stderr


def test_a_package_for_cuda_is_loaded_on_its_device(package_for_cuda: Path, tmp_path: Path) -> None:
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for library in Path(libtorch()[0]).parent.glob("*.so*"):
        if "cuda" not in library.name:
            (libraries / library.name).symlink_to(library)
    said = loading_for_cuda(package_for_cuda, libraries, tmp_path / "without")
    assert "which needs libtorch: libtorch 2." in said
    assert "there is no libtorch_cuda.so beside it. Install a torch that is built for CUDA" in said

    fake = libraries / "libtorch_cuda.so"
    command(CC, "-shared", "-fPIC", HOSTS / "fake_libtorch_cuda.c", "-o", fake)
    said = loading_for_cuda(package_for_cuda, libraries, tmp_path / "with")
    lines = said.splitlines()
    assert lines[:4] == [
        "device 1 is chosen",
        "it is left",
        "cuda:1 libtorch",
        "['kernel.cubin']",
    ]
    assert " of elasticity.pt2 must be on cuda:1, and is on cpu. Move it there" in said


def test_the_built_in_runtime_has_no_other_device(package_for_cuda: Path) -> None:
    with pytest.raises(FatalError, match='the built-in runtime runs on "cpu" only'):
        Graph(package_for_cuda, runtime="builtin")
    with pytest.raises(FatalError, match=r"is wanted on cpu\. Compile the model with --device cpu"):
        Graph(package_for_cuda, device="cpu")


def test_a_stream_is_of_a_device_that_can_be() -> None:
    with pytest.raises(FatalError, match="index of a CUDA device is 0 or more; got -1"):
        check(lib.neml2_stream_set(-1, ffi.NULL))
    check(lib.neml2_stream_set(0, ffi.NULL))


def test_a_capsule_of_dlpack_has_the_memory_of_its_tensor() -> None:
    torch = pytest.importorskip("torch")
    from neml2_capi._ffi import dlpack
    from neml2_capi._ffi.handle import owned

    source = torch.arange(6.0).reshape(2, 3)
    owner = owned("tensor")
    dlpack.take(owner, source, None)
    tensor = Tensor._adopt(owner, None)
    assert (tensor.shape, tensor.strides, tensor.device) == ((2, 3), (3, 1), "cpu")
    back = torch.from_dlpack(dlpack.capsule(tensor._open()))
    assert back.data_ptr() == source.data_ptr()
    del source, owner
    tensor.close()
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_capsule_that_nobody_takes_lets_go_of_the_memory() -> None:
    pytest.importorskip("torch")
    from neml2_capi._ffi import dlpack

    tensor = Tensor.zeros((3,))
    capsules = [dlpack.capsule(tensor._open()) for _ in range(100)]
    del capsules
    assert tensor.numpy().tolist() == [0, 0, 0]
