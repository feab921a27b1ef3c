"""Record the derivatives that NEML2's own runtime computes for the test models, in derivatives.npz
beside this file, with the environment that make_reference.py describes.

    python tests/data/make_derivatives.py

Each model is recorded in one state, of a few points, that it reaches in some steps:

    MODEL/in/NAME, MODEL/out/NAME      [point, ...]
    MODEL/jac/OUT/IN                   derivatives of OUT; of length one along the axes of points
                                       and grains, or without, where they are the same for all
    MODEL/tangent/IN, MODEL/jvp/OUT    for tangents of all inputs; missing where the runtime fails
    MODEL/pjac/OUT/PARAM               derivatives with respect to the stored parameters
    MODEL/cotangent/OUT, MODEL/pvjp/PARAM    summed over the points

and for a model that takes parameters that differ between the points:

    MODEL/override/PARAM               the parameters, [point]
    MODEL/override_out/OUT, MODEL/override_pjac/OUT/PARAM, MODEL/override_pvjp/PARAM

and for a model with a solve:

    MODEL/solver     atol, rtol, iterations as set by set_solver_config for all of these values
    MODEL/norms      [iteration, point]: the residual norms, where the iteration is made by hand
    MODEL/printed    [iteration]: the greatest residual norm, as logged by forward in 7 digits, from
                     the initial one on; of substeps without it, one after the other
    MODEL/linear     [linear solve]: the most iterations of a point
    MODEL/spans      [substep]: start and end in the step, depth, points, points that converged
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import neml2.log
import numpy as np
import torch
from make_reference import HERE, Arrays, NewtonByHand, artifact, cyclic_strain, forward, run_history
from neml2.aoti import Model

Tensors = dict[str, torch.Tensor]

# Where the runtime's jvp takes an axis of grains for one of points.
NO_JVP = {"elasticity_grains", "grains"}
# Where every package takes a parameter by point. A residual takes one value: the first of many.
BY_POINT = {"elasticity_parameters"}
# Where the runtime does not substep for them.
NO_PARAMETER_DERIVATIVES = {"substepping"}
BY_HAND = {"isotropic_hardening", "polycrystal", "relaxation", "warm_start"}


@dataclass
class Case:
    """A model, the histories of its forces, [step, point, ...], and its first state."""

    name: str
    forces: Arrays
    state: Arrays = field(default_factory=dict)
    rtol: float = 1e-14

    def record(self) -> Arrays:
        root = artifact(self.name)
        model = Model(str(root))
        data: Arrays = {}
        config = json.loads((root / "metadata.json").read_text()).get("solver_config")
        if config:
            for known_elsewhere in ("solver_kind", "krylov"):
                config.pop(known_elsewhere, None)
            config["rtol"] = self.rtol
            model.set_solver_config(**config)
            data["solver"] = np.array([config[k] for k in ("atol", "rtol", "miters")])
        given = run_history(model, self.forces, self.state)[0][-1]
        if config:
            data |= logged(lambda: forward(model, given))
        if self.name in BY_HAND:
            newton = NewtonByHand(root)
            newton.config = config
            data["norms"] = newton.norms(given)
            most = data["norms"].max(axis=-1)
            np.testing.assert_allclose(most, data["printed"], rtol=2e-6, atol=1e-12 * most[0])
        inputs = {name: torch.from_numpy(np.array(value)) for name, value in given.items()}
        outputs = model.forward(inputs)
        data |= under("in", inputs) | under("out", outputs)
        data |= derivatives(model, inputs, with_jvp=self.name not in NO_JVP)
        if model.named_parameters() and self.name not in NO_PARAMETER_DERIVATIVES:
            cotangents = random_like(outputs)
            data |= under("cotangent", cotangents)
            data |= parameter_derivatives(model, inputs, cotangents, {}, "")
            if self.name in BY_POINT:
                points = len(next(iter(given.values())))
                factors = torch.linspace(0.9, 1.1, points, dtype=torch.float64)
                varied = {n: v * factors for n, v in model.named_parameters().items()}
                data |= under("override", varied)
                data |= under("override_out", model.forward(inputs, varied))
                data |= parameter_derivatives(model, inputs, cotangents, varied, "override_")
        return {f"{self.name}/{name}": value for name, value in data.items()}


def derivatives(model: Model, inputs: Tensors, *, with_jvp: bool) -> Arrays:
    _, jacobian = model.jacobian(inputs)
    data = under("jac", flat(jacobian))
    if with_jvp:
        tangents = random_like(inputs)
        data |= under("tangent", tangents) | under("jvp", model.jvp(inputs, tangents)[1])
    return data


def parameter_derivatives(
    model: Model, inputs: Tensors, cotangents: Tensors, varied: Tensors, prefix: str
) -> Arrays:
    _, jacobian = model.param_jacobian(inputs, varied)
    products = model.param_vjp(inputs, cotangents, varied)
    return under(f"{prefix}pjac", flat(jacobian)) | under(f"{prefix}pvjp", products)


def flat(jacobian: Mapping[str, Mapping[str, torch.Tensor]]) -> Tensors:
    return {f"{out}/{name}": block for out, row in jacobian.items() for name, block in row.items()}


def under(prefix: str, values: Tensors) -> Arrays:
    return {f"{prefix}/{name}": value.numpy().copy() for name, value in values.items()}


def random_like(values: Tensors) -> Tensors:
    """Of the size of each value, so that no term of a product drowns."""
    random = np.random.default_rng(0)
    return {
        name: max(float(value.abs().max()), 1e-3)
        * torch.from_numpy(random.standard_normal(value.shape))
        for name, value in values.items()
    }


def logged(call: Callable[[], object]) -> Arrays:
    """What the runtime says about its solves."""
    lines: list[str] = []
    for channel in ("newton", "linear", "substep"):
        neml2.log.set_default_level(channel, "debug")
    neml2.log.set_sink(lambda level, line: lines.append(line))
    try:
        call()
    finally:
        neml2.log.reset_sink()
        neml2.log.reset_defaults()
    text = "\n".join(lines)
    number = r"([-+.\de]+)"
    found = {
        "printed": re.findall(r"(?<!LS )ITERATION +\d+, \|R\| = (\S+),", text),
        "linear": re.findall(r"linear solve: iters=(\d+)", text),
        "spans": re.findall(
            rf"span \[{number}, {number}\] L(\d+): active=(\d+) -> converged=(\d+)", text
        ),
    }
    return {name: np.array(values, dtype=float) for name, values in found.items() if values}


def cases() -> list[Case]:
    direction = np.array([1.0, -0.3, -0.25, 0.35, -0.2, 0.15])

    def constant(value: Any, steps: int) -> np.ndarray:
        value = np.asarray(value, dtype=float)
        return np.broadcast_to(value, (steps + 1, *value.shape))

    def times(steps: int, points: int, step: float = 1.0) -> np.ndarray:
        return np.broadcast_to(step * np.arange(steps + 1.0)[:, None], (steps + 1, points))

    # Elastic, little and much plastic flow, and reversed.
    amplitudes = np.array([0.0004, 0.002, 0.01, -0.006])
    points = len(amplitudes)
    forces = {"strain": cyclic_strain(amplitudes, 2, 10), "t": times(2, points)}
    at_once = {"strain": np.zeros((2, points, 6)), "t": times(1, points)}
    at_once["strain"][1] = np.array([0.001, 0.004, 0.01, -0.02])[:, None] * direction
    stress = {"stress": np.zeros((points, 6)), "equivalent_plastic_strain": np.zeros(points)}
    back = {
        "plastic_strain": np.zeros((points, 6)),
        "equivalent_plastic_strain": np.zeros(points),
        "kinematic_plastic_strain": np.zeros((points, 6)),
        "gamma": np.zeros(points),
    }

    def grains(count: int) -> Arrays:
        strain = 1e-4 * np.arange(3.0 * count * 6).reshape(3, count, 6)
        return {"strain": constant(strain, 1)}

    applied = np.array([40.0, 200.0, 300.0, -250.0])[:, None] * direction
    polycrystal = {
        "applied_stress": constant(applied, 2),
        "strength": constant(np.broadcast_to([100.0, 150.0, 250.0], (points, 3)), 2),
        "t": times(2, points, 0.01),
    }
    rates = np.array([[1.0], [0.5], [-0.7]]) * [0.1, -0.05, -0.05, 0.02, 0.0, -0.01]
    crystal = {
        "deformation_rate": constant(rates, 3),
        "vorticity": constant(np.broadcast_to([0.1, -0.05, -0.05], (3, 3)), 3),
        "t": times(3, 3, 0.01),
    }
    return [
        Case("elasticity_parameters", {"strain": forces["strain"]}),
        Case("elasticity_grains", grains(5)),
        Case("grains", grains(4)),
        Case("isotropic_hardening", forces, stress),
        Case("radial_return", {"total_strain": forces["strain"], "t": forces["t"]}, back),
        Case("gmres", forces, stress),
        Case("bicgstab", forces, stress),
        Case("warm_start", forces, stress),
        Case("substepping", at_once, stress, rtol=1e-10),
        Case("relaxation", forces, {"elastic_strain": np.zeros((points, 6))}),
        Case(
            "polycrystal",
            polycrystal,
            {"strain": np.zeros((points, 6)), "stress": np.zeros((points, 3, 6))},
        ),
        Case(
            "crystal",
            crystal,
            {
                "elastic_strain": np.zeros((3, 6)),
                "dislocation_density": np.broadcast_to(10.0 + 0.1 * np.arange(12.0), (3, 12)),
                "orientation": np.array([[0.0, 0.0, -0.05], [0.2, -0.1, 0.0], [0.3, -0.12, 0.1]]),
            },
        ),
    ]


def main() -> None:
    torch.set_num_threads(1)
    data: Arrays = {}
    for case in cases():
        data |= case.record()
    np.savez_compressed(HERE / "derivatives.npz", allow_pickle=False, **data)
    for name, value in data.items():
        print(f"{name:60s} {value.shape}")


if __name__ == "__main__":
    main()
