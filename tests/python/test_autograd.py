"""Gradients through compiled models by neml2_capi.torch.Module, and the examples that use them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE

torch = pytest.importorskip("torch")

from modules import (  # noqa: E402
    MODELS,
    Artifacts,
    E,
    Evaluations,
    backward,
    calls,
    cotangents,
    inputs_of,
    module_of,
    noted_evaluations,
    requiring_grad,
    same,
)


@pytest.fixture
def elasticity(artifacts: Artifacts) -> Any:
    return module_of(artifacts, "elasticity_parameters")


@pytest.fixture
def hardening(artifacts: Artifacts) -> Any:
    return module_of(artifacts, "isotropic_hardening")


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> Evaluations:
    return noted_evaluations(monkeypatch)


# ------------------------------------------------------------------------------------------------
# That gradients are right
# ------------------------------------------------------------------------------------------------


def scaled(module: Any, inputs: Mapping[str, Any]) -> tuple[Callable[..., Any], list[Any]]:
    """The model as a function of arguments about 1, inputs and parameters, with results about 1.

    So that one step is right for the differences with respect to all of them.
    """
    names = [*inputs, *(name for name, _ in module.named_parameters())]
    values = [*inputs.values(), *(value.detach() for _, value in module.named_parameters())]
    scales = [float(value.abs().max()) or 1e-3 for value in values]
    outputs = module.model.forward(inputs)
    sizes = {name: float(value.abs().max()) or 1.0 for name, value in outputs.items()}

    def function(*arguments: Any) -> Any:
        pairs = zip(names, arguments, scales, strict=True)
        given = {name: argument * scale for name, argument, scale in pairs}
        parameters = {name: value for name, value in given.items() if name not in inputs}
        forces = {name: given[name] for name in inputs}
        outputs = torch.func.functional_call(module, parameters, (forces,))
        return tuple(outputs[name] / size for name, size in sizes.items())

    pairs = zip(values, scales, strict=True)
    return function, [(value / scale).requires_grad_() for value, scale in pairs]


@pytest.mark.parametrize("name", MODELS)
def test_gradcheck(artifacts: Artifacts, name: str) -> None:
    function, arguments = scaled(module_of(artifacts, name), inputs_of(name))
    assert torch.autograd.gradcheck(
        function,
        arguments,
        eps=1e-6,
        atol=1e-5,
        rtol=1e-4,
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
    )


@pytest.mark.parametrize("name", [*MODELS, "relaxation", "bicgstab", "substepping"])
def test_gradients_are_the_compiled_adjoints(artifacts: Artifacts, name: str) -> None:
    module = module_of(artifacts, name)
    inputs = inputs_of(name)
    weights = cotangents(module, inputs)
    given = requiring_grad(inputs)
    outputs = module(given)
    for key, value in module.model.forward(inputs).items():
        assert torch.equal(outputs[key], value)
    backward(outputs, weights)
    _, adjoints = module.model.vjp(inputs, weights)
    for key, adjoint in adjoints.items():
        same(given[key].grad, adjoint)
    for key, adjoint in module.model.param_vjp(inputs, weights).items():
        same(module[key].grad, adjoint)


def test_rows_and_columns_that_are_not_symmetric(artifacts: Artifacts) -> None:
    """As the tangents of the other models are, which would not tell one from the other."""
    module = module_of(artifacts, "crystal", outputs=["stress", "orientation"])
    inputs = inputs_of("crystal")
    weights = cotangents(module, inputs)
    given = dict(inputs)
    for name in ("deformation_rate", "vorticity", "orientation~1"):
        given[name] = inputs[name].clone().requires_grad_()
    backward(module(given), weights)
    _, adjoints = module.model.vjp(inputs, weights)
    for name in ("deformation_rate", "vorticity", "orientation~1"):
        same(given[name].grad, adjoints[name])


@pytest.mark.parametrize("name", MODELS)
def test_tangents_are_the_compiled_ones(artifacts: Artifacts, name: str) -> None:
    module, forward_ad = module_of(artifacts, name), torch.autograd.forward_ad
    inputs = inputs_of(name)
    torch.manual_seed(7)
    tangents = {key: torch.randn_like(value) for key, value in inputs.items()}
    _, expected = module.model.jvp(inputs, tangents)
    outputs, results = torch.func.jvp(module, (inputs,), (tangents,))
    with forward_ad.dual_level(), torch.no_grad():
        duals = {key: forward_ad.make_dual(inputs[key], tangents[key]) for key in inputs}
        in_duals = {key: forward_ad.unpack_dual(value) for key, value in module(duals).items()}
        for key, result in expected.items():
            same(results[key], result)
            same(in_duals[key].tangent, result)
            assert torch.equal(outputs[key], in_duals[key].primal)


def test_only_what_requires_a_gradient_is_differentiated(
    hardening: Any, evaluations: Evaluations
) -> None:
    inputs = inputs_of("isotropic_hardening")
    with torch.no_grad():
        outputs = hardening(requiring_grad(inputs))
    assert evaluations == [()]
    assert not any(output.requires_grad for output in outputs.values())
    hardening(inputs)
    assert evaluations[-1] == ((3, 2, 6), (3, 2, 1))
    hardening.requires_grad_(False)
    hardening({**inputs, "stress~1": inputs["stress~1"].clone().requires_grad_()})
    assert evaluations[-1] == ((3, 6, 6), (3, 6, 1))


def test_a_change_after_forward_does_not_change_the_gradient(hardening: Any) -> None:
    inputs = inputs_of("isotropic_hardening")
    weights = cotangents(hardening, inputs)
    expected = hardening.model.param_vjp(inputs, weights)
    outputs = hardening(inputs)
    inputs["strain"].zero_()
    with torch.no_grad():
        hardening["E"].fill_(1.0)
    backward(outputs, weights)
    same(hardening["E"].grad, expected[E])


def test_a_composed_model_is_evaluated_again_for_many_columns(
    artifacts: Artifacts, evaluations: Evaluations
) -> None:
    """Its Jacobian would take a product with the blocks of all segments for each of them."""
    module, inputs = module_of(artifacts, "radial_return"), inputs_of("radial_return")
    weights = cotangents(module, inputs)
    _, expected = module.model.vjp(inputs, weights)
    for given, jacobians in ((inputs, True), (requiring_grad(inputs), False)):
        del evaluations[:]
        outputs = module(given)
        assert len(evaluations) == 1
        assert bool(evaluations[-1]) is jacobians
        backward(outputs, weights)
        assert evaluations[1:] == ([] if jacobians else [()])
    for name, adjoint in expected.items():
        same(given[name].grad, adjoint)


def test_a_change_before_a_second_evaluation_is_refused(artifacts: Artifacts) -> None:
    """As torch does for every tensor that backward reads; an array is not a tensor, but copied."""
    module, inputs = module_of(artifacts, "radial_return"), inputs_of("radial_return")
    weights = cotangents(module, inputs)
    _, expected = module.model.vjp(inputs, weights)
    given = {**requiring_grad(inputs), "t~1": inputs["t~1"].numpy().copy()}
    outputs = module(given)
    given["t~1"][:] = 0.0
    backward(outputs, weights)
    same(given["total_strain"].grad, expected["total_strain"])
    given["t~1"] = inputs["t~1"].clone()
    outputs = module(given)
    given["t~1"].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        backward(outputs, weights)


def test_backward_may_run_twice_and_for_some_of_the_outputs(artifacts: Artifacts) -> None:
    for name in MODELS:
        module, inputs = module_of(artifacts, name), inputs_of(name)
        for key, weight in cotangents(module, inputs).items():
            given = requiring_grad(inputs)
            output = module(given)[key]
            first, second = (
                torch.autograd.grad(output, [*given.values()], weight, retain_graph=True)
                for _ in range(2)
            )
            _, expected = module.model.vjp(inputs, {key: weight})
            for adjoint, again, right in zip(first, second, expected.values(), strict=True):
                assert torch.equal(adjoint, again)
                same(adjoint, right)


def test_histories_are_differentiated_through_time(hardening: Any) -> None:
    """A step that halves into two: the gradient goes through the state between them."""
    inputs = inputs_of("isotropic_hardening")
    middle = {"t": 0.5 * (inputs["t"] + inputs["t~1"])}
    middle["strain"] = 0.5 * (inputs["strain"] + inputs["strain~1"])

    def end(yield_stress: Any) -> Any:
        def advance(forces: Mapping[str, Any]) -> Any:
            parameters = {"yield_stress": yield_stress}
            return torch.func.functional_call(hardening, parameters, (forces,))

        half = advance({**inputs, **middle})
        old = {f"{name}~1": value for name, value in {**middle, **half}.items()}
        return advance({**inputs, **old})["stress"]

    value = torch.tensor(150.0, dtype=torch.float64)
    slope = torch.func.jacfwd(end)(value)
    with torch.no_grad():
        difference = (end(value + 1e-3) - end(value - 1e-3)) / 2e-3
    torch.testing.assert_close(slope, difference, rtol=1e-6, atol=1e-6)
    same(torch.func.jacrev(end)(value), slope)


# ------------------------------------------------------------------------------------------------
# Batches
# ------------------------------------------------------------------------------------------------


def test_batches_that_broadcast_in_a_composed_model(artifacts: Artifacts) -> None:
    module, inputs = module_of(artifacts, "radial_return"), inputs_of("radial_return", 4)
    inputs |= {name: inputs[name][0] for name in ("t", "plastic_strain~1")}
    inputs["total_strain"] = inputs["total_strain"][:, None] * torch.tensor([[1.0], [1.1]]).double()
    inputs["gamma~1"] = inputs["gamma~1"][:, None]
    inputs["equivalent_plastic_strain~1"] = inputs["equivalent_plastic_strain~1"][:1, None]
    inputs["t~1"] = inputs["t~1"][0]
    inputs["kinematic_plastic_strain~1"] = inputs["kinematic_plastic_strain~1"][:, None]
    weights = cotangents(module, inputs)
    full = {
        variable.name: inputs[variable.name].expand(4, 2, *variable.base_shape).clone()
        for variable in module.model.inputs
    }
    _, expected = module.model.vjp(full, weights)
    given = requiring_grad(inputs)
    backward(module(given), weights)
    for name, value in given.items():
        assert value.grad.shape == value.shape
        same(value.grad, expected[name].sum_to_size(value.shape))
    same(module["yield_stress"].grad, module.model.param_vjp(full, weights)["yield_stress"])


def test_one_value_for_many_points_gets_the_sum(hardening: Any) -> None:
    inputs = inputs_of("isotropic_hardening", 4)
    inputs |= {name: inputs[name][0] for name in ("t", "t~1", "stress~1")}
    inputs["strain"] = inputs["strain"][:, None] * torch.tensor([[1.0], [1.1]]).double()
    inputs["equivalent_plastic_strain~1"] = inputs["equivalent_plastic_strain~1"][:, None]
    inputs["strain~1"] = inputs["strain~1"][:1, None]
    hardening["yield_stress"] = [150.0, 120.0]
    expanded = {
        name: value.expand(4, 2, *hardening.model.inputs[index].base_shape).clone()
        for index, (name, value) in enumerate(
            (name, inputs[name]) for name in hardening.model.inputs.names
        )
    }
    weights = cotangents(hardening, expanded)
    given, separate = requiring_grad(inputs), requiring_grad(expanded)
    backward(hardening(separate), weights)
    expected = {name: hardening[name].grad.clone() for name in ("E", "yield_stress")}
    hardening.zero_grad()
    backward(hardening(given), weights)
    for name, value in given.items():
        assert value.grad.shape == value.shape
        same(value.grad, separate[name].grad.sum_to_size(value.shape))
    for name, value in expected.items():
        same(hardening[name].grad, value)
    assert hardening["E"].grad.shape == ()
    assert hardening["yield_stress"].grad.shape == (2,)


@pytest.mark.parametrize("batch", [(), (1,), (0,), (2, 0), (1, 3, 1)])
def test_every_batch_has_a_gradient(elasticity: Any, batch: tuple[int, ...]) -> None:
    strain = torch.full((*batch, 6), 1e-3, dtype=torch.float64, requires_grad=True)
    stress = elasticity(strain=strain)["stress"]
    assert stress.shape == (*batch, 6)
    stress.sum().backward()
    assert strain.grad.shape == strain.shape
    torch.testing.assert_close(
        elasticity["E"].grad * 200e3, stress.detach().sum(), rtol=1e-12, atol=1e-9
    )


def test_contiguous_inputs_are_read_where_they_are(
    hardening: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    attach = calls.Binding.attach

    def noted(self: Any, call: Any, address: int) -> None:
        seen.append(address)
        attach(self, call, address)

    monkeypatch.setattr(calls.Binding, "attach", noted)
    inputs = inputs_of("isotropic_hardening")
    inputs["t"] = inputs["t"][0]
    hardening(inputs)
    read = [*inputs.values(), *hardening.parameters()]
    assert {tensor.data_ptr() for tensor in read} <= set(seen)


def test_strided_and_lazily_negated_inputs(elasticity: Any) -> None:
    wide = torch.linspace(-1e-3, 1e-3, 48, dtype=torch.float64).reshape(4, 12)
    negated = torch.complex(wide, wide).conj().imag
    assert negated.is_neg()
    for strain in (wide[::2, ::2], negated[:, 3:9]):
        plain = strain.resolve_neg().clone(memory_format=torch.contiguous_format)
        given = strain.detach().requires_grad_()
        stress = elasticity(strain=given)["stress"]
        assert torch.equal(stress, elasticity(strain=plain)["stress"])
        stress.sum().backward()
        assert given.grad.shape == strain.shape


# ------------------------------------------------------------------------------------------------
# The examples
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script", ["calibrate_torch.py", "calibrate_scipy.py", "calibrate_tension.py"]
)
def test_the_examples_recover_the_truth(artifacts: Artifacts, script: str) -> None:
    if script != "calibrate_torch.py":
        pytest.importorskip("scipy")
    path = Path(__file__).resolve().parents[2] / "examples" / script
    command = [sys.executable, str(path), str(artifacts["isotropic_hardening"])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "yield_stress" in done.stdout
