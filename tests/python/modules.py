"""Compiled models as modules of torch, their inputs and gradients, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from states import load, recorded, repeated

torch = pytest.importorskip("torch")
capi_torch = pytest.importorskip("neml2_capi.torch")
calls = pytest.importorskip("neml2_capi.torch._calls")
linearization = pytest.importorskip("neml2_capi.torch._linearization")

Artifacts = Mapping[str, Path]
Evaluations = list[tuple[tuple[int, ...], ...]]
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


def noted_evaluations(monkeypatch: pytest.MonkeyPatch) -> Evaluations:
    """The shapes of the Jacobians of every evaluation from now on, an adjoint's too."""
    made: Evaluations = []
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
