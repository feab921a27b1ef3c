"""A brick of eight nodes under large strain, beside closed forms, by Newton's method."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from conftest import Artifacts
from numpy.typing import NDArray
from test_large_strain import MU, NU, E

from neml2_capi import Model

Array = NDArray[np.float64]

NODES = np.array(list(product((0.0, 1.0), repeat=3)))
POINTS = (np.array(list(product((-1.0, 1.0), repeat=3))) / np.sqrt(3) + 1) / 2
WEIGHT = 1 / 8


def gradients(point: Array) -> Array:
    """Gradients of the shape functions of a unit cube: (8, 3)."""
    factors = np.where(NODES == 1, point, 1 - point)
    signs = np.where(NODES == 1, 1.0, -1.0)
    others = [factors[:, (k + 1) % 3] * factors[:, (k + 2) % 3] for k in range(3)]
    result: Array = signs * np.stack(others, axis=-1)
    return result


SHAPES = np.stack([gradients(point) for point in POINTS])  # (8 points, 8 nodes, 3)


def solve(
    model: Model, inputs: Any, prescribed: Array, values: Array
) -> tuple[Array, list[float], Any]:
    """Displacements with some prescribed, by Newton's method; the residuals, and the outputs."""
    u, residuals = np.zeros(24), []
    u[prescribed] = values
    free = np.setdiff1d(np.arange(24), prescribed)
    for _ in range(12):
        F = np.eye(3) + np.einsum("ai,paJ->piJ", u.reshape(8, 3), SHAPES)
        outputs, blocks = model.jacobian(inputs(F))
        P, tangent = outputs["pk1_stress"], blocks["pk1_stress"]["deformation_gradient"]
        force = WEIGHT * np.einsum("piJ,paJ->ai", P, SHAPES).ravel()
        stiffness = WEIGHT * np.einsum("paJ,piJkL,pbL->aibk", SHAPES, tangent, SHAPES).reshape(
            24, 24
        )
        residuals.append(float(np.linalg.norm(force[free])))
        if residuals[-1] < 1e-9 * E * 1e-3:
            break
        u[free] -= np.linalg.solve(stiffness[np.ix_(free, free)], force[free])
    return u, residuals, outputs


def pulled(stretch: float) -> tuple[Array, Array]:
    """Degrees of freedom of a cube whose ends along x are pulled apart, and free otherwise."""
    along = [3 * node for node in range(8)]
    fixed = {3 * 0 + 1: 0.0, 3 * 0 + 2: 0.0, 3 * 1 + 1: 0.0}  # no rigid motion
    values = {dof: (stretch - 1) * NODES[dof // 3, 0] for dof in along} | fixed
    return np.array(list(values)), np.array(list(values.values()))


def test_a_brick_of_hencky_is_pulled_to_twice_its_length(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity_parameters"], strain_measure="logarithmic")
    model["elasticity.E"], model["elasticity.nu"] = E, NU
    prescribed, values = pulled(2.0)
    u, residuals, outputs = solve(model, lambda F: {"deformation_gradient": F}, prescribed, values)
    expected = np.zeros((3, 3))
    expected[0, 0] = E * np.log(2.0) / 2.0
    np.testing.assert_allclose(outputs["pk1_stress"], np.tile(expected, (8, 1, 1)), atol=1e-7 * E)
    across = u.reshape(8, 3)[NODES[:, 1] == 1, 1] - u.reshape(8, 3)[NODES[:, 1] == 0, 1]
    np.testing.assert_allclose(1 + across, 2.0**-NU, rtol=1e-9)
    assert residuals[-1] < 1e-9 * MU and residuals[-1] < (residuals[-2] / E) ** 1.7 * E


def test_a_brick_that_flows_converges_at_newtons_order(artifacts: Artifacts) -> None:
    model = Model(artifacts["isotropic_hardening"], strain_measure="logarithmic")
    state = model.state(8)
    prescribed, values = pulled(1.02)
    _, residuals, outputs = solve(
        model, lambda F: state.inputs(deformation_gradient=F, t=1.0), prescribed, values
    )
    assert np.asarray(outputs["equivalent_plastic_strain"]).min() > 1e-3
    orders = [b / a**2 for a, b in zip(residuals[-3:-1], residuals[-2:], strict=True)]
    assert residuals[-1] < 1e-6 and len(residuals) < 11 and orders[-1] < 1.0
