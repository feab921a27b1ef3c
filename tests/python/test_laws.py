"""The input files that come with the package: each compiles to kernels, and is its equations.

A tension test has one stress alone, so that each law is a scalar one, solved here without tensors.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from conftest import ROOT
from kernel_setup import native_target
from numpy.typing import NDArray

from neml2_capi import Model, examples, experiments

Array = NDArray[np.float64]

LAWS = sorted(path.stem for path in (examples.FOLDER / "laws").glob("*.i"))
E, YIELD = 200e3, 150.0
TIMES = np.linspace(0.0, 10.0, 41)
# Of strain, to 1 %; no step ends exactly on the yield surface, where NEML2's Perzyna flow is 0/0.
RAMP = 1.03e-3 * TIMES
CYCLE = 0.01 * np.interp(TIMES, [0.0, 2.5, 7.5, 10.0], [0.0, 1.0, -1.0, 0.0])


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """By bisection, to the last digits; the function rises."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return 0.5 * (low + high)


def hardened(strain: Array, hardening: Callable[[float], float]) -> Iterator[float]:
    """Rate-independent plasticity with isotropic hardening, under a strain that grows."""
    for e in strain:
        if E * e <= YIELD:
            yield E * e
        else:
            p = root(lambda p: YIELD + hardening(p) - E * (e - p), 0.0, e)  # noqa: B023
            yield E * (e - p)


def linear(strain: Array) -> Iterator[float]:
    yield from hardened(strain, lambda p: 2000 * p)


def voce(strain: Array) -> Iterator[float]:
    yield from hardened(strain, lambda p: 60 * (1 - math.exp(-8 * p)))


def kinematic(strain: Array) -> Iterator[float]:
    """Prager: the slope of the back stress in tension is 3/2 of the modulus."""
    slope, plastic = 1.5 * 2000, 0.0
    for e in strain:
        trial = E * (e - plastic) - slope * plastic
        if abs(trial) > YIELD:
            plastic += np.sign(trial) * (abs(trial) - YIELD) / (E + slope)
        yield E * (e - plastic)


def viscous(strain: Array, advance: Callable[[float, float], float]) -> Iterator[float]:
    """Backward Euler: advance(strain, time step) gives the stress."""
    previous = 0.0
    for e, t in zip(strain, TIMES, strict=True):
        yield advance(e, t - previous) if t > 0 else 0.0
        previous = t


# dp/dt = (overstress / K)^n with K of the literature: NEML2's reference stress is not K.
K = 120 * (3 / 2) ** ((6 + 1) / (2 * 6))


def perzyna(strain: Array) -> Iterator[float]:
    p = 0.0

    def advance(e: float, dt: float) -> float:
        nonlocal p
        old = p

        def flow(new: float) -> float:
            over = max(E * (e - new) - YIELD - 2000 * new, 0.0)
            return new - old - dt * (over / K) ** 6

        p = root(flow, old, max(e, old))
        return E * (e - p)

    return viscous(strain, advance)


@dataclass
class BackStress:
    """In tension 3/2 of X's axial component; a step of backward Euler."""

    C: float
    g: float
    A: float
    a: float
    value: float = 0.0

    def after(self, dp: float, dt: float) -> float:
        """Recovery is sqrt(3/2) g in the rate of p; NEML2's norm of X is sqrt(2/3) of the value."""

        def change(new: float) -> float:
            static = self.A * math.pow(math.sqrt(2 / 3) * new, self.a - 1) * new * dt
            return new - self.value - self.C * dp + math.sqrt(1.5) * self.g * new * dp + static

        return root(change, 0.0, 1e4)


def chaboche(strain: Array) -> Iterator[float]:
    p, backs = 0.0, [BackStress(40000, 400, 1e-6, 2.2), BackStress(4000, 40, 1e-8, 3.2)]

    def advance(e: float, dt: float) -> float:
        nonlocal p

        def flow(new: float) -> float:
            hardening = 60 * (1 - math.exp(-8 * new))
            hardening += sum(back.after(new - p, dt) for back in backs)
            return new - p - dt * (max(E * (e - new) - YIELD - hardening, 0.0) / K) ** 6

        new = root(flow, p, max(e, p))
        for back in backs:
            back.value = back.after(new - p, dt)
        p = new
        return E * (e - p)

    return viscous(strain, advance)


TENSION: dict[str, tuple[Callable[[Array], Iterator[float]], Array]] = {
    "elasticity": (lambda strain: iter(E * strain), CYCLE),
    "linear_hardening": (linear, RAMP),
    "voce": (voce, RAMP),
    "kinematic": (kinematic, CYCLE),
    "perzyna": (perzyna, RAMP),
    "chaboche": (chaboche, RAMP),
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Model]:
    if not os.environ.get("NEML2_CAPI_COMPILER") and not importlib.util.find_spec("neml2"):
        pytest.skip("there is no neml2 to compile with")
    into = tmp_path_factory.mktemp("aoti")

    def model(law: str) -> Model:
        """By the line that the head of the file has."""
        file = examples.FOLDER / "laws" / f"{law}.i"
        (line,) = re.findall(r"^# +neml2-capi (compile .+)$", file.read_text(), re.MULTILINE)
        command = [sys.executable, "-m", "neml2_capi.cli", *line.split(), "--kernels", "only"]
        command += ["--target", native_target()]
        done = subprocess.run(
            [*command, "--output-dir", str(into), "-q"],
            cwd=file.parent,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return Model(into / law)

    return model


@pytest.mark.full("it compiles models")
@pytest.mark.parametrize("law", TENSION)
def test_a_tension_test_is_the_scalar_law(law: str, compiled: Callable[[str], Model]) -> None:
    scalar, strain = TENSION[law]
    results = experiments.tension(compiled(law), TIMES, strain)
    expected = np.array(list(scalar(strain)))
    np.testing.assert_allclose(results["stress"][1:, 0], expected[1:], rtol=0, atol=1e-6)
    np.testing.assert_allclose(results["stress"][1:, 1:], 0, atol=1e-6)


@pytest.mark.full("it compiles a model")
def test_nortons_creep_is_steady(compiled: Callable[[str], Model]) -> None:
    """Under 100 MPa: strain = stress / E + (stress / 4000 MPa)^5 t."""
    days = 86400 * np.linspace(0.0, 10.0, 11)
    strain = experiments.creep(compiled("norton"), days, 100.0)["strain"][:, 0]
    expected = 100 / E + (100 / 4000) ** 5 * days
    np.testing.assert_allclose(strain[1:], expected[1:], rtol=1e-8)


def test_every_law_is_compared_and_told() -> None:
    page = (ROOT / "docs" / "laws.md").read_text(encoding="utf-8")
    assert sorted([*TENSION, "norton"]) == LAWS
    assert all(f"`{law}.i`" in page for law in LAWS)
