"""Graphs and models on CUDA, if there is a GPU: equal to the CPU, without a copy or a wait."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import PREBUILT, ROOT
from states import random_like, state_of

from neml2_capi import ConvergenceError, FatalError, Graph, Model

sys.path.insert(0, str(ROOT / "tests" / "models"))
import compile as models

torch: Any = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]

#: Some with derivatives by parameters, which torch 2.11 cannot compile.
NAMES = ["elasticity", "chaboche", "elasticity_parameters", "isotropic_hardening", "radial_return"]


def of_cpu(name: str) -> Path:
    """The artifact of a model for the processor, as it is shipped if it is."""
    shipped = PREBUILT / name
    return shipped if shipped.is_dir() else models.artifact(name)


def to_cuda(arrays: Any) -> dict[str, Any]:
    return {name: torch.as_tensor(value, device="cuda") for name, value in arrays.items()}


def close(actual: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        for name in expected:
            close(actual[name], expected[name])
        return
    assert actual.device.type == "cuda"
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    np.testing.assert_allclose(actual.cpu().numpy(), expected, rtol=0, atol=1e-12 * scale)


def tightly(model: Model) -> Model:
    """Solved to round-off, so that what is left of the residual is no difference."""
    model.options.update({"atol": 1e-14, "rtol": 1e-14})
    return model


@pytest.fixture(scope="module", params=NAMES)
def pair(request: pytest.FixtureRequest) -> tuple[Model, Model, Any]:
    """The model on the CPU and on CUDA, and its inputs on the CPU."""
    name = request.param
    cpu = tightly(Model(of_cpu(name)))
    try:
        root = models.artifact(name, device="cuda")
    except RuntimeError as error:
        if "not supported on torch" not in str(error):
            raise
        pytest.skip("this torch compiles no derivatives by parameters")
    return cpu, tightly(Model(root, device="cuda")), state_of(name, cpu)


@pytest.fixture(scope="module")
def package() -> Path:
    return Path(models.artifact("elasticity", device="cuda")) / "cuda/float64/elasticity.pt2"


def test_a_graph_gives_what_it_does_on_the_cpu(package: Path) -> None:
    strain = np.random.default_rng(0).normal(size=(5, 6))
    E = np.full(5, 200e3)
    on_cpu = Graph(of_cpu("elasticity") / "cpu/float64/elasticity.pt2")
    graph = Graph(package)
    assert (graph.device, graph.runtime) == ("cuda:0", "libtorch")
    given = [torch.as_tensor(value, device="cuda") for value in (strain, E)]
    inputs = [value.expand(size) for value, size in zip(given, ((5, 6), (5,)), strict=True)]
    (stress,) = graph(*inputs)
    close(stress, on_cpu(strain, E)[0])


def test_a_tensor_of_the_cpu_is_refused(package: Path) -> None:
    with pytest.raises(FatalError, match="must be on cuda:0, and is on cpu"):
        Graph(package)(np.zeros((5, 6)), np.ones(5))


def test_memory_is_shared_both_ways() -> None:
    from neml2_capi import Tensor

    source = torch.ones(3, device="cuda")
    tensor = Tensor(source)
    assert tensor.device == "cuda:0"
    assert tensor.torch().data_ptr() == source.data_ptr()


def test_a_model_gives_what_it_does_on_the_cpu(pair: tuple[Model, Model, Any]) -> None:
    cpu, cuda, inputs = pair
    assert (cuda.device, cuda.runtime) == ("cuda:0", "tensors")
    given = to_cuda(inputs)
    outputs = cpu.forward(inputs)
    close(cuda.forward(given), outputs)
    close(cuda.jacobian(given)[1], cpu.jacobian(inputs)[1])
    tangents, cotangents = random_like(inputs), random_like(outputs)
    close(cuda.jvp(given, to_cuda(tangents))[1], cpu.jvp(inputs, tangents)[1])
    close(cuda.vjp(given, to_cuda(cotangents))[1], cpu.vjp(inputs, cotangents)[1])
    if cpu.parameter_derivatives:
        close(cuda.param_jacobian(given)[1], cpu.param_jacobian(inputs)[1])


def test_a_point_that_fails_is_reported(pair: tuple[Model, Model, Any]) -> None:
    _, cuda, inputs = pair
    if not cuda.unknowns:
        pytest.skip("the model is explicit")
    given = to_cuda(inputs)
    force = next(name for name in cuda.inputs.names if name.endswith("strain"))
    given[force][0, 0] = float("nan")
    with pytest.raises(ConvergenceError) as caught:
        cuda.forward(given)
    assert caught.value.report["status"].tolist()[0] == 2
    assert not caught.value.converged_mask[0]


def test_a_parameter_is_set_from_either_side(pair: tuple[Model, Model, Any]) -> None:
    cpu, cuda, inputs = pair
    if not cpu.parameters:
        pytest.skip("the model has no parameters")
    name = cpu.parameters.names[0]
    value = 1.01 * np.asarray(cpu.named_parameters()[name])
    before = np.array(cpu.named_parameters()[name])
    for given in (value, torch.as_tensor(value, device="cuda")):
        cuda.set_parameter(name, given)
        close(cuda.named_parameters()[name], value)
    cpu.set_parameter(name, value)
    close(cuda.forward(to_cuda(inputs)), cpu.forward(inputs))
    for model in (cpu, cuda):
        model.set_parameter(name, before)


def test_work_waits_for_what_is_before_it_on_its_stream() -> None:
    model = Model(models.artifact("elasticity", device="cuda"), device="cuda")
    strain = torch.zeros(1000, 6, dtype=torch.float64, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        strain.fill_(1e-3)
        stress = model.forward({"strain": strain})["stress"]
    stream.synchronize()
    expected = Model(of_cpu("elasticity")).forward({"strain": np.full((1000, 6), 1e-3)})
    close(stress, expected["stress"])


def test_an_explicit_model_does_not_wait_for_the_device() -> None:
    model = Model(models.artifact("elasticity", device="cuda"), device="cuda")
    strain = torch.zeros(10, 6, dtype=torch.float64, device="cuda")
    model.forward({"strain": strain})  # kernels are loaded
    torch.cuda.set_sync_debug_mode("error")
    try:
        model.forward({"strain": strain})
    finally:
        torch.cuda.set_sync_debug_mode("default")
