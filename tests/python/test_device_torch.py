"""Tensors of torch that stay on a device.

Torch has no OpenCL. But the processor's devices of OpenCL read all memory of this process, as
shared memory ("fine-grained system"), so that its tensors are on such a device, once it is said
that they are. On a GPU nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opencl_queue import Context
from states import Arrays, repeated, state_of
from test_opencl import cache_of_pocl, caches, with_text  # noqa: F401  (fixtures)
from test_opencl_models import DEVICES, QUICK, opened

from neml2_capi import ConvergenceError, FatalError, Model
from neml2_capi._ffi import on_device

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.numbers, pytest.mark.full("needs torch")]

Pairs = Callable[[str, str], tuple[Model, Model]]

POINTS = 40
#: A model of several segments, whose gradients take a second evaluation.
SEGMENTS = "radial_return"


class There:
    """Tensors of a device."""

    def __init__(self, device: str, patch: pytest.MonkeyPatch) -> None:
        self.device, self._on_host, self._held = device, set[int](), list[Any]()
        if device.startswith("opencl"):
            self._queue = Context(int(device[-1])).queue()
            patch.setattr(on_device, "is_there", lambda t: id(t) not in self._on_host)
            patch.setattr(on_device, "place_of", lambda _: (device, self._queue.handle.value))

    def __call__(self, value: Any) -> Any:
        """A tensor there."""
        return torch.as_tensor(value, device=self._torch_device).clone()

    def of_host(self, value: Any) -> Any:
        """A tensor that is elsewhere."""
        tensor = torch.as_tensor(value).clone()
        self._on_host.add(id(tensor))
        self._held.append(tensor)
        return tensor

    def moved(self, module: Any) -> Any:
        return module.to(self._torch_device)

    @property
    def _torch_device(self) -> str:
        return "cpu" if self.device.startswith("opencl") else self.device


@pytest.fixture(params=DEVICES)
def there(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> There:
    return There(request.param, monkeypatch)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    """By a name and a device, a model in lanes and there: a text takes seconds to compile."""

    @cache
    def pair(name: str, device: str) -> tuple[Model, Model]:
        return opened(name, tmp_path_factory.mktemp(name), device)

    return pair


def numbers(value: Any) -> Any:
    """The values of all tensors in it."""
    if isinstance(value, dict):
        return {name: numbers(part) for name, part in value.items()}
    return (
        [numbers(part) for part in value]
        if isinstance(value, (tuple, list))
        else value.detach().cpu().numpy()
    )


def assert_close(found: Any, expected: Any, rtol: float = 0.0) -> None:
    if isinstance(expected, tuple):
        expected, found = dict(enumerate(expected)), dict(enumerate(found))
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, part in expected.items():
            assert_close(found[name], part, rtol)
        return
    assert found.shape == np.shape(expected)
    scale = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * scale)


def test_functions_of_a_model_give_what_arrays_of_the_host_get(there: There, pairs: Pairs) -> None:
    _, model = pairs(QUICK, there.device)
    inputs = repeated(state_of(QUICK, model), POINTS)
    inputs["t"] = np.asarray(inputs["t"][0])  # one value for all points
    tensors = {name: there(value) for name, value in inputs.items()}
    strain = np.random.default_rng(0).normal(size=(POINTS, 6))
    directions, weights = {"strain": strain}, {"stress": strain}
    moduli = {"E": np.linspace(0.9, 1.1, POINTS) * 200e3}
    for over in (None, moduli):
        also = over and {name: there(value) for name, value in over.items()}
        host: list[Any] = []
        device: list[Any] = []
        for found, given, by, along, back in (
            (host, inputs, over, directions, weights),
            (device, tensors, also, {"strain": there(strain)}, {"stress": there(strain)}),
        ):
            found += [model.forward(given, by), model.jacobian(given, by)]
            found += [model.param_jacobian(given, by)]
            found += [model.jvp(given, along, by), model.vjp(given, back, by)]
            found += [model.param_vjp(given, back, by)]
        for expected, made in zip(host[:3], numbers(device[:3]), strict=True):
            assert_close(made, expected)
        for expected, made in zip(host[3:], numbers(device[3:]), strict=True):
            assert_close(made, expected, 1e-10)


def gradients(model: Model, inputs: Arrays, make: Any, moved: Any) -> dict[str, Any]:
    """Outputs, gradients of a loss, and a Jacobian, of a module over tensors that are made so."""
    from neml2_capi.torch import Module

    module = Module(model)
    first, load = model.parameters.names[0], next(n for n in inputs if n.endswith("strain"))
    module[first] = float(module[first].detach()) * np.linspace(0.9, 1.1, POINTS)
    module = moved(module)
    tensors = {key: make(value) for key, value in inputs.items()}
    tensors[load].requires_grad_()
    outputs = module(tensors)
    sum((value**2).sum() for value in outputs.values()).backward()
    found = {load: tensors[load].grad, **{key: p.grad for key, p in module.named_parameters()}}
    one = next(iter(outputs))
    found["jacobian"] = torch.func.jacfwd(lambda x: module({**tensors, load: x})[one].sum(0))(
        tensors[load].detach()
    )
    made: dict[str, Any] = numbers({**outputs, **found})
    return made


@pytest.mark.parametrize("name", [QUICK, SEGMENTS])
def test_gradients_of_a_module_are_those_of_lanes(name: str, there: There, pairs: Pairs) -> None:
    """By inputs and parameters, of one value and one for each point, as gradients and Jacobians."""
    pair = pairs(name, there.device)
    inputs = repeated(state_of(name, pair[0]), POINTS)
    found = [
        gradients(pair[0], inputs, torch.tensor, lambda module: module),
        gradients(pair[1], inputs, there, there.moved),
    ]
    assert found[0].keys() == found[1].keys()
    for key, expected in found[0].items():
        assert np.count_nonzero(expected), key
        assert_close(found[1][key], expected, 0.0 if key in pair[0].outputs.names else 1e-10)


def test_tensors_are_read_on_the_stream_of_the_caller(there: There, pairs: Pairs) -> None:
    """Another stream is another queue, on which calls bind again."""
    from neml2_capi.torch import Module

    _, model = pairs(QUICK, there.device)
    module = there.moved(Module(model))
    inputs = {k: there(v) for k, v in repeated(state_of(QUICK, model), POINTS).items()}
    expected = numbers(module(inputs))
    if there.device.startswith("opencl"):
        there._queue = Context(int(there.device[-1])).queue()
        assert_close(numbers(module(inputs)), expected)
    else:
        with torch.cuda.stream(torch.cuda.Stream()):
            assert_close(numbers(module(inputs)), expected)


def test_points_that_failed_are_told(there: There, pairs: Pairs) -> None:
    from neml2_capi.torch import Module

    _, model = pairs(QUICK, there.device)
    module = there.moved(Module(model))
    inputs = {k: there(v) for k, v in repeated(state_of(QUICK, model), POINTS).items()}
    expected = numbers(module(inputs))
    inputs["strain"][3] = 1e30
    with pytest.raises(ConvergenceError, match="1 of 40 points did not converge") as caught:
        module(inputs)
    assert caught.value.converged_mask.tolist() == [point != 3 for point in range(POINTS)]
    assert numbers(caught.value.report["status"])[3] == 2
    inputs["strain"][3] = inputs["strain"][2]
    assert_close(numbers(module(inputs))["stress"][4:], expected["stress"][4:])


def test_a_module_that_goes_on_tells_later_which_points_failed(there: There, pairs: Pairs) -> None:
    """By the next evaluation, by backward, or by wait(); until then their results are NaN."""
    from neml2_capi.torch import Module

    _, model = pairs(QUICK, there.device)
    module = there.moved(Module(model, waits=False))
    good = {k: there(v) for k, v in repeated(state_of(QUICK, model), POINTS).items()}
    bad = {**good, "strain": good["strain"].clone()}
    bad["strain"][3] = 1e30
    failed = [point == 3 for point in range(POINTS)]
    expected = numbers(there.moved(Module(model))(good))
    found = [module(good) for _ in range(3)]
    module.wait()
    for made in found:
        assert_close(numbers(made), expected)
    told = "in an evaluation before this: .*1 of 40 points did not converge"
    looks: list[Callable[[Any], Any]] = [
        lambda _: module(good),
        lambda _: module.wait(),
        lambda stress: stress.sum().backward(),
    ]
    for look in looks:
        stress = module(bad)["stress"]
        with pytest.raises(ConvergenceError, match=told) as caught:
            look(stress)
        assert caught.value.converged_mask.tolist() == [not point for point in failed]
        assert stress.isnan().any(dim=1).tolist() == failed
        module.wait()  # it was told


@pytest.mark.parametrize("name", [QUICK, SEGMENTS])
def test_gradients_of_a_module_that_goes_on_are_the_same(
    name: str, there: There, pairs: Pairs
) -> None:
    from neml2_capi.torch import Module

    on_processor = there.device.startswith("opencl")
    if on_processor and name == SEGMENTS:
        pytest.skip("torch waits for what backward evaluates on a GPU alone")
    _, model = pairs(name, there.device)
    found = []
    for waits in (True, False):
        module = there.moved(Module(model, waits=waits))
        inputs = {k: there(v) for k, v in repeated(state_of(name, model), POINTS).items()}
        for _ in range(3):
            outputs = module(inputs)
            if on_processor:
                module.wait()
            sum((value**2).sum() for value in outputs.values()).backward()
        module.wait()
        found.append(numbers({key: p.grad for key, p in module.named_parameters()}))
    assert_close(found[1], found[0])


def test_no_points_give_no_results(there: There, pairs: Pairs) -> None:
    from neml2_capi.torch import Module

    _, model = pairs(QUICK, there.device)
    module = there.moved(Module(model))
    inputs = {k: there(v[:0]) for k, v in repeated(state_of(QUICK, model), 2).items()}
    assert module(inputs)["stress"].shape == (0, 6)


def test_what_does_not_fit_is_refused(there: There, pairs: Pairs) -> None:
    from neml2_capi.torch import Module

    _, model = pairs(QUICK, there.device)
    module = there.moved(Module(model))
    values = repeated(state_of(QUICK, model), POINTS)
    tensors = {name: there(value) for name, value in values.items()}
    elsewhere = {**tensors, "strain": there.of_host(values["strain"])}
    with pytest.raises(FatalError, match=r"'strain' is on the device cpu, and others are on"):
        module(elsewhere)
    with pytest.raises(FatalError, match="is not where the other arrays are"):
        model.forward(elsewhere)
    with pytest.raises(FatalError, match="is not where the other arrays are"):
        model.forward({name: there.of_host(v) for name, v in values.items()}, {"E": there(1.0)})
    single = {**tensors, "strain": tensors["strain"].float()}
    with pytest.raises(FatalError, match=r"must be torch.float64; got torch.float32"):
        module(single)
    with pytest.raises(FatalError, match="must be float64; got float32"):
        model.forward(single)
    with pytest.raises(FatalError, match=r"expected batch axes and then \(6,\)"):
        model.forward({**tensors, "strain": tensors["strain"][:, :5]})
    turned = {**tensors, "strain": there(np.ascontiguousarray(values["strain"].T)).T}
    with pytest.raises(FatalError, match="bind all arrays in rows, or all in columns"):
        model.bind(turned)
    assert_close(numbers(module(turned)), numbers(module(tensors)))  # which is copied, there
    with pytest.raises(FatalError, match="does not broadcast"):
        model.bind({**tensors, "strain": tensors["strain"][:3]})
    lazy = torch._neg_view(tensors["strain"])
    with pytest.raises(FatalError, match=r"tensor.resolve_neg\(\)"):
        model.forward({**tensors, "strain": lazy})
    with pytest.raises(FatalError, match="is sparse"):
        model.forward({**tensors, "strain": tensors["strain"].to_sparse()})


def test_a_model_on_a_device_says_so_and_takes_tensors_of_the_host(tmp_path: Path) -> None:
    """In NEML2's own Python, too, whose models take no other ones."""
    from neml2_capi.torch import Model as TorchModel

    root, strain = with_text(tmp_path / "artifact"), torch.ones(3, 6, dtype=torch.float64)
    model = TorchModel(root, device="opencl")
    assert model.device == torch.device("opencl:0")
    expected = model.forward({"strain": strain})["stress"]
    pytest.importorskip("neml2")
    from neml2_capi.neml2 import AOTIModel

    of_neml2 = AOTIModel(root, "opencl")
    assert torch.equal(of_neml2.forward(strain)[0].data, expected)
    with pytest.raises(TypeError, match=r"on opencl:0: give it .to.device='cpu'"):
        of_neml2.forward(strain.float())


def test_a_device_that_is_not_the_models_is_refused(
    pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, model = pairs(QUICK, "opencl:0")
    from neml2_capi.torch import Module

    tensors = {k: torch.as_tensor(v) for k, v in repeated(state_of(QUICK, model), 2).items()}
    monkeypatch.setattr(on_device, "is_there", lambda _: True)
    monkeypatch.setattr(on_device, "place_of", lambda _: ("cuda:1", 0))
    for evaluate in (model.forward, model.bind, Module(model)):
        with pytest.raises(FatalError, match="is on cuda:1, and the model computes on opencl:0"):
            evaluate(tensors)
    with pytest.raises(FatalError, match="stays on the device cpu or opencl:0"):
        Module(model).to("meta")


def test_a_model_of_the_processor_takes_no_tensors_of_a_device(there: There, pairs: Pairs) -> None:
    lanes, _ = pairs(QUICK, there.device)
    assert isinstance(lanes, Model)
    if there.device.startswith("cuda"):
        tensors = {k: there(v) for k, v in state_of(QUICK, lanes).items()}
        with pytest.raises(FatalError, match="is on cuda:0, and the model on cpu"):
            lanes.forward(tensors)
