"""A Module's own parameters, state, copies, and its place among other modules."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from test_float32 import root  # noqa: F401  (a fixture)

from neml2_capi import FatalError, UnknownNameError

torch = pytest.importorskip("torch")

from modules import Artifacts, Base, E, capi_torch, inputs_of, module_of  # noqa: E402


@pytest.fixture
def hardening(artifacts: Artifacts) -> Any:
    return module_of(artifacts, "isotropic_hardening")


def test_parameters_have_attributes_and_their_own_names(hardening: Any) -> None:
    names = [name for name, _ in hardening.named_parameters()]
    assert names == ["residual_elasticity_E", "yield_stress"]
    assert hardening[E] is hardening["E"] is hardening.residual_elasticity_E
    assert hardening["yield_stress"].item() == 150.0
    with pytest.raises(UnknownNameError, match="unknown parameter"):
        hardening["G"]
    assert "strain" in repr(hardening)


def test_parameters_are_the_modules_own(hardening: Any) -> None:
    inputs = inputs_of("isotropic_hardening")
    before = hardening.model.forward(inputs)["stress"]
    hardening["yield_stress"] = 120.0
    assert isinstance(hardening.yield_stress, torch.nn.Parameter)
    assert torch.equal(hardening.model.forward(inputs)["stress"], before)
    overridden = hardening.model.forward(inputs, {"yield_stress": 120.0})["stress"]
    assert torch.equal(hardening(inputs)["stress"], overridden)
    assert not torch.equal(overridden, before)
    with pytest.raises(FatalError, match=r"parameter 'yield_stress' has the shape|must be"):
        hardening["yield_stress"] = torch.tensor(1.0)


def test_some_parameters_can_be_trained(artifacts: Artifacts) -> None:
    module = module_of(artifacts, "isotropic_hardening", parameters=["E"])
    assert [name for name, _ in module.named_parameters()] == ["residual_elasticity_E"]
    assert [name for name, _ in module.named_buffers()] == ["yield_stress"]
    module["yield_stress"] = 140.0
    assert [name for name, _ in module.named_buffers()] == ["yield_stress"]
    assert list(module.state_dict()) == ["residual_elasticity_E", "yield_stress"]
    with pytest.raises(UnknownNameError, match="unknown parameter 'sy'"):
        module_of(artifacts, "isotropic_hardening", parameters=["sy"])


def test_outputs_can_be_chosen(artifacts: Artifacts, hardening: Any) -> None:
    module = module_of(artifacts, "isotropic_hardening", outputs=["stress"])
    inputs = inputs_of("isotropic_hardening")
    outputs = module(inputs)
    assert list(outputs) == ["stress"]
    assert torch.equal(outputs["stress"], hardening(inputs)["stress"])
    with pytest.raises(UnknownNameError, match="unknown output 'stres'; did you mean 'stress'"):
        module_of(artifacts, "isotropic_hardening", outputs=["stres"])


class Exponential(Base):  # type: ignore[misc]
    """Of a parameter that stays positive."""

    def forward(self, logarithm: Any) -> Any:
        return logarithm.exp()

    def right_inverse(self, value: Any) -> Any:
        return value.log()


def test_a_parametrization_is_followed(hardening: Any) -> None:
    inputs = inputs_of("isotropic_hardening")
    expected = hardening(inputs)["stress"]
    register = torch.nn.utils.parametrize.register_parametrization
    register(hardening, "yield_stress", Exponential())
    result = hardening(inputs)["stress"]
    torch.testing.assert_close(result, expected, rtol=1e-9, atol=1e-9)
    result.sum().backward()
    assert hardening.parametrizations.yield_stress.original.grad is not None


def test_the_state_can_be_saved_and_loaded(artifacts: Artifacts, hardening: Any) -> None:
    hardening["E"], hardening["yield_stress"] = 190e3, [140.0, 150.0, 160.0]
    other = module_of(artifacts, "isotropic_hardening")
    other["yield_stress"] = [1.0, 1.0, 1.0]
    other.load_state_dict(hardening.state_dict())
    inputs = inputs_of("isotropic_hardening")
    assert torch.equal(other(inputs)["stress"], hardening(inputs)["stress"])
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict({})


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
@pytest.mark.parametrize("name", ["isotropic_hardening", "creep_3.0.6"])
def test_copies_open_the_artifact_again(
    artifacts: Artifacts, duplicate: Callable[[Any], Any], name: str
) -> None:
    module = capi_torch.Module(artifacts[name], outputs=["stress"])
    module.model.options["atol"] = 1e-11
    module["E"] = 190e3
    other = duplicate(module)
    assert type(other.model) is type(module.model)
    assert other.model is not module.model
    assert dict(other.model.options) == dict(module.model.options)
    inputs = {v.name: torch.zeros(v.base_shape).double() for v in module.model.inputs}
    inputs |= {"t": 1.0, "strain": torch.full((2, 6), 1e-3, dtype=torch.float64)}
    expected = module(inputs)["stress"]
    module.model.close()
    assert torch.equal(other(inputs)["stress"], expected)
    assert list(other(inputs)) == ["stress"]
    other["E"] = 100e3
    assert module["E"].item() == 190e3


def test_it_stays_on_the_cpu(hardening: Any) -> None:
    assert hardening.to("cpu") is hardening.double()
    inputs = inputs_of("isotropic_hardening")
    moves: list[Callable[[Any], Any]] = [
        lambda module: module.to("meta"),
        lambda module: module.to(torch.float32),
        lambda module: module.half(),
        lambda module: torch.nn.Sequential(module).to("meta"),
    ]
    if not torch.cuda.is_available():
        moves.append(lambda module: module.cuda())
    for move in moves:
        with pytest.raises(FatalError, match="stays on the device cpu with float64"):
            move(hardening)
    hardening(inputs)


def test_training_mode_changes_nothing(hardening: Any) -> None:
    inputs = inputs_of("isotropic_hardening")
    train, evaluate = hardening.train()(inputs), hardening.eval()(inputs)
    assert torch.equal(train["stress"], evaluate["stress"])
    assert evaluate["stress"].requires_grad


def test_threads_may_share_a_module(hardening: Any) -> None:
    inputs = inputs_of("isotropic_hardening", 8)
    torch.manual_seed(7)
    factors = 1 + 0.05 * torch.rand(24, 8, 1, dtype=torch.float64)

    def gradient(factor: Any) -> Any:
        strain = (factor * inputs["strain"]).requires_grad_()
        stress = hardening({**inputs, "strain": strain})["stress"]
        return torch.autograd.grad(stress.sum(), strain)[0]

    expected = [gradient(factor) for factor in factors]
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(gradient, factors))
    assert all(torch.equal(a, b) for a, b in zip(results, expected, strict=True))


def test_float32(root: Path) -> None:  # noqa: F811
    module = capi_torch.Module(root, dtype=torch.float32)
    a = torch.tensor([4.0, 9.0])
    torch.testing.assert_close(module(a=a, u=a)["u"], torch.tensor([2.0, 3.0]))


def test_training_steps_recover_the_parameters(hardening: Any) -> None:
    """From one step of a few points, by the logarithms of the parameters."""
    inputs = inputs_of("isotropic_hardening", 4)
    measured = hardening(inputs)["stress"].detach()
    hardening["E"], hardening["yield_stress"] = 190e3, 140.0
    register = torch.nn.utils.parametrize.register_parametrization
    for attribute in ("residual_elasticity_E", "yield_stress"):
        register(hardening, attribute, Exponential())
    optimizer = torch.optim.LBFGS(
        hardening.parameters(), tolerance_change=0, max_iter=60, line_search_fn="strong_wolfe"
    )

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (hardening(inputs)["stress"] - measured).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert hardening["E"].item() == pytest.approx(200e3, rel=1e-6)
    assert hardening["yield_stress"].item() == pytest.approx(150.0, rel=1e-6)
