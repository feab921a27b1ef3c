"""torch.func over a Module, and derivatives that there are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from neml2_capi import ConvergenceError, FatalError, UnknownNameError

torch = pytest.importorskip("torch")

from modules import (  # noqa: E402
    Artifacts,
    E,
    Evaluations,
    backward,
    capi_torch,
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
# torch.func
# ------------------------------------------------------------------------------------------------


def test_jacobians_of_torch_func_take_one_evaluation(
    hardening: Any, evaluations: Evaluations
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


def test_vmap_is_one_evaluation_of_the_batch(hardening: Any, evaluations: Evaluations) -> None:
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


def test_checkpoints_evaluate_again(hardening: Any, evaluations: Evaluations) -> None:
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
