"""Derivatives of a history do not depend on the order in which a control names its components."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from neml2_capi import Model, Results, drive, examples

pytestmark = pytest.mark.numbers

TIMES = np.linspace(0.0, 1.0, 4)
STRESSES = {"xx": 150.0, "yy": 20.0, "zz": -10.0, "yz": 5.0, "xz": 30.0, "xy": 50.0}
ABAQUS = ("xx", "yy", "zz", "xy", "xz", "yz")


def driven(order: tuple[str, ...], hypothesis: str, *, xy: float = 50.0) -> Results:
    model = Model(examples.path("chaboche"), hypothesis=hypothesis)
    stress = {name: {**STRESSES, "xy": xy}[name] * TIMES for name in order}
    return drive(
        model,
        TIMES,
        {},
        control={"stress": stress},
        parameters={"yield_stress": np.array(100.0)},
        derivatives=["yield_stress", "stress.xy", "stress.xx"],
    )


@pytest.mark.parametrize(
    ("hypothesis", "orders"),
    [
        ("tridimensional", [tuple(STRESSES), ABAQUS, tuple(reversed(STRESSES))]),
        ("plane_stress", list(itertools.permutations(("xx", "yy", "xy")))),
    ],
)
def test_any_order_has_the_same_derivatives(hypothesis: str, orders: list[tuple[str, ...]]) -> None:
    names = ("yield_stress", "stress.xy", "stress.xx")
    runs = [driven(order, hypothesis) for order in orders]
    width = runs[0]["strain"].shape[-1]
    weights = np.zeros((len(TIMES), width))
    weights[-1] = np.arange(1.0, width + 1)
    for run in runs[1:]:
        by_yield = [each.derivative("strain", "yield_stress") for each in (runs[0], run)]
        scale = np.abs(by_yield[0]).max()
        np.testing.assert_allclose(by_yield[1], by_yield[0], atol=1e-8 * scale)
        for name in names:
            gradients = [each.gradient({"strain": weights})[name] for each in (runs[0], run)]
            scale = np.abs(gradients[0]).max()
            np.testing.assert_allclose(gradients[1], gradients[0], atol=1e-8 * scale)


def test_a_whole_stress_in_another_order_is_derived_as_differences_say() -> None:
    weights = np.zeros((len(TIMES), 6))
    weights[-1, 5] = 1.0
    gradient = driven(ABAQUS, "tridimensional").gradient({"strain": weights})["stress.xy"]
    up, down = (
        driven(ABAQUS, "tridimensional", xy=50.0 + h)["strain"][-1, 5] for h in (1e-2, -1e-2)
    )
    np.testing.assert_allclose(gradient @ TIMES, (up - down) / 2e-2, rtol=1e-5)
