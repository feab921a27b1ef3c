"""A user's script with torch, for mypy --strict; it is not run."""

from __future__ import annotations

from pathlib import Path

import torch
from typing_extensions import assert_type

import neml2_capi
from neml2_capi.torch import Model, Module


def evaluate(folder: Path, strain: torch.Tensor) -> torch.Tensor:
    model = neml2_capi.Model(folder)
    inputs: dict[str, torch.Tensor | float] = {"strain": strain, "t": 1.0}
    outputs = model.forward(inputs)
    assert_type(outputs, dict[str, torch.Tensor])
    outputs, blocks = model.jacobian({"strain": strain})
    assert_type(blocks["stress"]["strain"], torch.Tensor)
    return outputs["stress"].detach()


def evaluate_in_torch(folder: Path, strain: torch.Tensor) -> torch.Tensor:
    model = Model(folder, dtype=torch.float64)
    model.named_parameters()["E"].fill_(100e3)
    outputs, report = model.evaluate({"strain": strain.numpy()})
    assert_type(report, dict[str, torch.Tensor])
    return outputs["stress"]


def train(folder: Path, strain: torch.Tensor, measured: torch.Tensor) -> float:
    material = Module(folder, parameters=["E"], outputs=["stress"])
    other = Module(folder, scheduler=neml2_capi.Scheduler("cpu", 512))
    print(other.model.points_evaluated)
    optimizer = torch.optim.Adam(material.parameters(), lr=1e-2)
    outputs = material({"strain": strain}, t=torch.tensor(1.0))
    assert_type(outputs, dict[str, torch.Tensor])
    loss = (outputs["stress"] - measured).square().mean()
    torch.autograd.backward(loss)
    optimizer.step()
    material["E"] = 1e5
    print(material["E"], material.model.outputs.names)
    return float(loss)
