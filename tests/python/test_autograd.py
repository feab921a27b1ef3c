"""Gradients through compiled models: neml2_capi.torch.Module, and the examples that use it."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from states import load, recorded, repeated
from test_float32 import root  # noqa: F401  (a fixture)

from neml2_capi import ConvergenceError, FatalError, UnknownNameError

torch = pytest.importorskip("torch")
capi_torch = pytest.importorskip("neml2_capi.torch")
calls = pytest.importorskip("neml2_capi.torch._calls")
linearization = pytest.importorskip("neml2_capi.torch._linearization")

Artifacts = Mapping[str, Path]
Base: Any = torch.nn.Module
MODELS = ["elasticity_parameters", "isotropic_hardening", "radial_return"]
E = "residual.elasticity.E"


def module_of(artifacts: Artifacts, name: str, **arguments: Any) -> Any:
    return capi_torch.Module(load(artifacts, name), **arguments)


def inputs_of(name: str, points: int = 3) -> dict[str, Any]:
    """The first recorded points of a model, plastic ones among them."""
    return {
        key: torch.tensor(value) for key, value in repeated(recorded(name, "in"), points).items()
    }


@pytest.fixture
def elasticity(artifacts: Artifacts) -> Any:
    return module_of(artifacts, "elasticity_parameters")


@pytest.fixture
def hardening(artifacts: Artifacts) -> Any:
    return module_of(artifacts, "isotropic_hardening")


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[int, ...], ...]]:
    """The shapes of the Jacobians of every evaluation from now on, an adjoint's too."""
    made: list[tuple[tuple[int, ...], ...]] = []
    run, evaluate = calls.Calls.run, linearization.Plan.evaluate

    def counted(*arguments: Any) -> Any:
        made.append(())
        return run(*arguments)

    def noted(plan: Any, tensors: Any) -> Any:
        results = evaluate(plan, tensors)
        if plan.linearizes:
            made[-1] = tuple(tuple(block.shape) for block in plan.jacobians(results[-1]))
        return results

    monkeypatch.setattr(calls.Calls, "run", counted)
    monkeypatch.setattr(linearization.Plan, "evaluate", noted)
    return made


def cotangents(module: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    torch.manual_seed(7)
    return {name: torch.randn_like(value) for name, value in module(inputs).items()}


def requiring_grad(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.clone().requires_grad_() for name, value in inputs.items()}


def backward(outputs: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
    sum((outputs[name] * weights[name]).sum() for name in weights).backward()


def same(a: Any, b: Any) -> None:
    """Equal up to round-off, relative to the greatest component."""
    a, b = a.detach(), torch.as_tensor(b).detach()
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-11 * max(float(b.abs().max()), 1e-30))


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
    hardening: Any, evaluations: list[tuple[tuple[int, ...], ...]]
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
    artifacts: Artifacts, evaluations: list[tuple[tuple[int, ...], ...]]
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
# torch.func
# ------------------------------------------------------------------------------------------------


def test_jacobians_of_torch_func_take_one_evaluation(
    hardening: Any, evaluations: list[tuple[tuple[int, ...], ...]]
) -> None:
    inputs = {name: value[0] for name, value in inputs_of("isotropic_hardening").items()}
    _, blocks = hardening.model.jacobian(inputs)
    for transform in (torch.func.jacrev, torch.func.jacfwd):
        del evaluations[:]
        result = transform(hardening)(inputs)
        assert len(evaluations) == 1
        for output, row in blocks.items():
            for name, block in row.items():
                same(result[output][name], block)


@pytest.mark.parametrize("transform", ["jacrev", "jacfwd"])
def test_parameters_by_functional_call(hardening: Any, transform: str) -> None:
    inputs = inputs_of("isotropic_hardening")
    parameters = {name: value.detach() for name, value in hardening.named_parameters()}

    def stress(values: Mapping[str, Any]) -> Any:
        return torch.func.functional_call(hardening, values, (inputs,))["stress"]

    slopes = getattr(torch.func, transform)(stress)(parameters)
    _, blocks = hardening.model.param_jacobian(inputs)
    same(slopes["residual_elasticity_E"], blocks["stress"][E])
    same(slopes["yield_stress"], blocks["stress"]["yield_stress"])


def test_vmap_is_one_evaluation_of_the_batch(
    hardening: Any, evaluations: list[tuple[tuple[int, ...], ...]]
) -> None:
    inputs = inputs_of("isotropic_hardening", 6)
    expected = hardening.model.forward(inputs)
    batched = {name: value.reshape(2, 3, *value.shape[1:]) for name, value in inputs.items()}
    del evaluations[:]
    for axis in (0, 1):
        results = torch.func.vmap(hardening, in_dims=(axis,), out_dims=axis)(batched)
        for name, result in results.items():
            same(result.reshape(6, *result.shape[2:]), expected[name])
    assert len(evaluations) == 2


def test_vmap_over_some_of_the_arguments(elasticity: Any) -> None:
    strain = inputs_of("elasticity_parameters")["strain"]
    moduli = torch.tensor([100e3, 200e3], dtype=torch.float64)

    def stress(modulus: Any, strain: Any) -> Any:
        values = {"elasticity_E": modulus}
        return torch.func.functional_call(elasticity, values, ({"strain": strain},))["stress"]

    over_moduli = torch.func.vmap(stress, in_dims=(0, None))(moduli, strain)
    both = torch.func.vmap(torch.func.vmap(stress, (None, 0)), (0, None))(moduli, strain)
    expected = torch.stack([stress(modulus, strain) for modulus in moduli])
    same(over_moduli, expected.detach())
    same(both, expected.detach())


def test_gradients_of_each_sample(hardening: Any) -> None:
    inputs = inputs_of("isotropic_hardening")
    parameters = {name: value.detach() for name, value in hardening.named_parameters()}

    def loss(values: Mapping[str, Any], forces: Mapping[str, Any]) -> Any:
        outputs = torch.func.functional_call(hardening, values, (forces,))
        return outputs["stress"].square().sum()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, inputs)
    for point in range(3):
        alone = {name: value[point] for name, value in inputs.items()}
        for name, gradient in torch.func.grad(loss)(parameters, alone).items():
            same(each[name][point], gradient)
    summed = torch.func.grad(
        lambda values: torch.func.vmap(loss, in_dims=(None, 0))(values, inputs).sum()
    )(parameters)
    for name, gradient in summed.items():
        same(each[name].sum(), gradient)


def test_checkpoints_evaluate_again(
    hardening: Any, evaluations: list[tuple[tuple[int, ...], ...]]
) -> None:
    inputs = inputs_of("isotropic_hardening")
    weights = cotangents(hardening, inputs)
    del evaluations[:]
    run = torch.utils.checkpoint.checkpoint
    backward(run(hardening, inputs, use_reentrant=False), weights)
    assert len(evaluations) == 2
    same(hardening["E"].grad, hardening.model.param_vjp(inputs, weights)[E])


# ------------------------------------------------------------------------------------------------
# What cannot be
# ------------------------------------------------------------------------------------------------


@pytest.fixture
def partly(artifacts: Artifacts) -> Any:
    """Compiled with -d stress:strain; the modulus was promoted, but has no derivative."""
    return capi_torch.Module(artifacts["elasticity"])


def test_a_derivative_that_was_not_compiled_is_named_with_its_flag(partly: Any) -> None:
    strain = torch.full((2, 6), 1e-3, dtype=torch.float64)
    stress = partly(strain=strain)["stress"]
    with pytest.raises(FatalError, match=r"neml2-compile -d stress:elasticity\.E"):
        stress.sum().backward()

    def forward(modulus: Any) -> Any:
        return torch.func.functional_call(partly, {"elasticity_E": modulus}, ({"strain": strain},))

    one = torch.tensor(1.0, dtype=torch.float64)
    with pytest.raises(FatalError, match=r"neml2-compile -d stress:elasticity\.E"):
        torch.func.jvp(forward, (one,), (one,))


def test_what_is_not_trained_needs_no_derivative(artifacts: Artifacts, partly: Any) -> None:
    constant = capi_torch.Module(artifacts["elasticity"], parameters=[])
    assert not list(constant.parameters())
    assert [name for name, _ in constant.named_buffers()] == ["elasticity_E"]
    strain = torch.full((2, 6), 1e-3, dtype=torch.float64, requires_grad=True)
    constant(strain=strain)["stress"].sum().backward()
    lame, shear = 200e3 * 0.3 / 1.3 / 0.4, 200e3 / 1.3 / 2
    expected = torch.tensor([3 * lame + 2 * shear] * 3 + [2 * shear] * 3, dtype=torch.float64)
    same(strain.grad, expected.expand(2, 6))
    partly["E"].requires_grad_(False)
    (gradient,) = torch.autograd.grad(partly(strain=strain)["stress"].sum(), strain)
    same(gradient, expected.expand(2, 6))


def test_an_output_without_derivatives_may_be_there_but_has_no_gradient(
    artifacts: Artifacts,
) -> None:
    module = capi_torch.Module(artifacts["combined_hardening"], parameters=[])
    zeros = {v.name: torch.zeros(v.base_shape, dtype=torch.float64) for v in module.model.inputs}
    strain = torch.full((6,), 1e-4, dtype=torch.float64, requires_grad=True)
    outputs = module({**zeros, "strain": strain, "t": 1.0})
    outputs["stress"].sum().backward(retain_graph=True)
    assert strain.grad.abs().max() > 0
    other = next(name for name in outputs if name != "stress")
    with pytest.raises(FatalError, match=f"-d {other}:strain"):
        outputs[other].sum().backward()


@pytest.mark.parametrize("outer", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("inner", ["jacrev", "jacfwd"])
def test_second_derivatives_are_refused(elasticity: Any, outer: str, inner: str) -> None:
    strain = torch.full((6,), 1e-3, dtype=torch.float64)
    transform = getattr(torch.func, outer)(getattr(torch.func, inner)(elasticity))
    with pytest.raises(FatalError, match="second derivative"):
        transform({"strain": strain})


def test_double_backward_of_a_composed_model_is_refused(artifacts: Artifacts) -> None:
    module, given = (
        module_of(artifacts, "radial_return"),
        requiring_grad(inputs_of("radial_return")),
    )
    stress, strain = module(given)["cauchy_stress"], given["total_strain"]
    weights = torch.ones_like(stress, requires_grad=True)
    (gradient,) = torch.autograd.grad(stress, strain, weights, create_graph=True)
    (slope,) = torch.autograd.grad(gradient.sum(), weights, retain_graph=True)
    assert slope.abs().max() > 0
    with pytest.raises(FatalError, match="second derivative"):
        gradient.sum().backward()


def test_double_backward_is_refused(elasticity: Any) -> None:
    strain = torch.full((2, 6), 1e-3, dtype=torch.float64, requires_grad=True)
    stress = elasticity(strain=strain)["stress"]
    weights = torch.ones_like(stress, requires_grad=True)
    (gradient,) = torch.autograd.grad(stress, strain, weights, create_graph=True)
    # The gradient is linear in the weights: that derivative is there.
    (slope,) = torch.autograd.grad(gradient.sum(), weights, retain_graph=True)
    assert slope.abs().min() > 0
    with pytest.raises(FatalError, match="second derivative"):
        gradient.sum().backward()
    with torch.autograd.forward_ad.dual_level(), pytest.raises(FatalError, match="second"):
        dual = torch.autograd.forward_ad.make_dual(strain, torch.ones_like(strain))
        torch.autograd.grad(elasticity(strain=dual)["stress"].sum(), dual)


def test_points_that_fail_raise_what_the_model_raises(hardening: Any) -> None:
    inputs = inputs_of("isotropic_hardening")
    inputs["strain"][1] *= 20
    hardening.model.options["miters"] = 6
    with pytest.raises(ConvergenceError) as expected:
        hardening.model.forward(inputs)
    for given in (inputs, requiring_grad(inputs)):
        with pytest.raises(ConvergenceError) as caught:
            hardening(given)
        error = caught.value
        assert str(error) == str(expected.value)
        assert torch.equal(error.converged_mask, expected.value.converged_mask)
        assert not error.converged_mask.all()
        for name, value in expected.value.outputs.items():
            torch.testing.assert_close(error.outputs[name], value, rtol=0, atol=0, equal_nan=True)
        assert error.unknowns.keys() == expected.value.unknowns.keys()
    hardening.model.options["miters"] = 100
    hardening(inputs)


def test_the_failed_call_knows_the_parameters_of_the_module(hardening: Any) -> None:
    inputs = inputs_of("isotropic_hardening")
    hardening["yield_stress"] = -1e200
    with pytest.raises(ConvergenceError):
        hardening(inputs)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"strian": 0.0}, UnknownNameError, "unknown input 'strian'; did you mean 'strain'"),
        ({"t": None}, FatalError, "input 't' is missing"),
        (
            {"t": torch.tensor(1.0)},
            FatalError,
            r"input 't' must be torch.float64; got torch.float32",
        ),
        ({"t": torch.tensor(1)}, FatalError, r"must be torch.float64; got torch.int64"),
        ({"t": "now"}, FatalError, "input 't' cannot be made a tensor, from a str"),
        (
            {"strain": torch.zeros(3, 5, dtype=torch.float64)},
            FatalError,
            r"input 'strain' has the shape \(3, 5\); expected batch axes and then \(6,\)",
        ),
        (
            {"t": torch.zeros(4, dtype=torch.float64)},
            FatalError,
            r"input 't' has the batch \(4,\), which does not broadcast with the batch \(3,\)",
        ),
        (
            {"t": torch.zeros((), dtype=torch.float64, device="meta")},
            FatalError,
            "input 't' is on the device meta: pass it on the cpu",
        ),
    ],
)
def test_wrong_inputs_are_refused_by_name(
    hardening: Any, change: Mapping[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        hardening({**inputs_of("isotropic_hardening"), **change})


def test_inputs_are_a_mapping(elasticity: Any) -> None:
    with pytest.raises(FatalError, match="inputs must be a mapping"):
        elasticity(torch.zeros(6, dtype=torch.float64))


def test_numbers_lists_and_arrays_are_inputs_too(hardening: Any) -> None:
    inputs = inputs_of("isotropic_hardening")
    expected = hardening(inputs)["stress"]
    given = {name: value.numpy() for name, value in inputs.items()}
    given["t"], given["strain"] = given["t"].tolist(), given["strain"].tolist()
    result = hardening(given)["stress"]
    assert torch.equal(result, expected)
    result.sum().backward()
    assert hardening["E"].grad is not None


def test_sub_batch_axes_have_outputs_and_no_gradient(artifacts: Artifacts) -> None:
    module = capi_torch.Module(artifacts["elasticity_grains"])
    strain = torch.full((2, 5, 6), 1e-3, dtype=torch.float64)
    expected = module.model.forward({"strain": strain})["stress"]
    assert torch.equal(module(strain=strain)["stress"], expected)
    stress = module(strain=strain.requires_grad_())["stress"]
    assert torch.equal(stress, expected)
    with pytest.raises(FatalError, match="'stress' with respect to 'strain' has sub-batch axes"):
        stress.sum().backward()


# ------------------------------------------------------------------------------------------------
# A module among modules
# ------------------------------------------------------------------------------------------------


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
