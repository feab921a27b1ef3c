"""Constants from displacements of a whole plate: examples/hosts/full_field.py."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
from native import ROOT, installed

from neml2_capi import examples

pytestmark = [pytest.mark.hosts, pytest.mark.full("libraries of finite elements")]


@cache
def example() -> Any:
    installed("skfem")
    sys.path.insert(0, str(ROOT / "examples" / "hosts"))
    try:
        import full_field
    finally:
        del sys.path[0]
    return full_field


def plate() -> Any:
    body = example().Plate(str(examples.path("isotropic_hardening")))
    body.model.options["rtol"] = 1e-13
    return body


def test_the_gradient_is_that_of_differences() -> None:
    full_field, body = example(), plate()
    data, first = full_field.measure(body), full_field.FIRST
    slopes = full_field.misfit(body, first, data)[1]
    for name, value in first.items():
        step = 1e-5 * value
        ahead, behind = (
            full_field.misfit(body, {**first, name: value + s * step}, data)[0] for s in (1, -1)
        )
        assert slopes[name] == pytest.approx((ahead - behind) / (2 * step), rel=1e-7)


def test_noisy_displacements_and_forces_give_the_constants_back() -> None:
    full_field, body = example(), plate()
    data = full_field.measure(body, seed=3)
    found = full_field.update(body, data)
    # Half of a chi squared, of as many numbers as were measured.
    count = data.displacements.size + data.forces.size
    assert abs(2 * found.fun - count) < 5 * np.sqrt(2 * count)
    for name, true in full_field.TRUE.items():
        assert found.constants[name] == pytest.approx(true, rel=0.01), name
        assert abs(found.constants[name] / full_field.FIRST[name] - 1) > 0.05
