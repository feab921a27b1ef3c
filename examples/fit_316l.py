"""Fit Chaboche's law to strain cycles of the steel 316L at 20 and 550 degrees Celsius.

    python examples/fit_316l.py --compile   # how the law is compiled, which needs NEML2
    python examples/fit_316l.py aoti/chaboche [STARTS] [REPORT.html]

The curves are no measurements: they are of the published constants below, by a scalar integration
of the textbook's equations that shares nothing with the law which is fitted, with a scatter of
1 MPa. The constants of a steel 316L with two back stresses are by O. Muransky, C. J. Hamelin,
M. C. Smith, P. J. Bendeich and L. Edwards, The effect of plasticity theory on predicted residual
stress fields in numerical weld analyses, Computational Materials Science 54 (2012) 125-134, as they
stand in public input files of NEML2.
"""

from __future__ import annotations

import shlex
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from neml2_capi import Model, examples, fit

Array = NDArray[np.float64]

#: By temperature, in MPa: E, yield stress, Q of the isotropic hardening, C of both back stresses.
PUBLISHED = {20: (195600, 125.6, 153.4, 156435, 6134), 550: (159750, 90.9, 150.6, 64341, 5227)}
#: The same at all temperatures: b, and gamma of both back stresses.
B, GAMMAS = 6.9, (1410.85, 47.19)
#: Parameters of NEML2's law, and what they are called here.
PROMOTED = {
    "residual.elasticity.E": "E",
    "residual.normality.yield_surface.yield_function.sy": "yield_stress",
    "residual.isotropic_hardening.R": "R",
    "residual.isotropic_hardening.d": "d",
    "residual.X1_rate.C": "C1",
    "residual.X1_rate.g": "g1",
    "residual.X2_rate.C": "C2",
    "residual.X2_rate.g": "g2",
    "residual.flow_rate.eta": "reference_stress",
    "residual.flow_rate.n": "exponent",
}
#: NEML2's recovery g of a textbook's gamma, docs/calibration.md.
TO_NEML2 = np.sqrt(2 / 3)
NOISE = 1.0  # MPa
#: Backward Euler is of first order: with 20 rows C and gamma of X1 come out 10 % too large.
ROWS = 80
_FINE = 10  # increments of the scalar integration for one of the law


def cycles(amplitudes: tuple[float, ...]) -> Array:
    """Strains: two cycles at each amplitude, in ROWS rows for each quarter."""
    turns = [0.0, *(sign * a for a in amplitudes for _ in range(2) for sign in (1, -1)), 0.0]
    pieces = [
        np.linspace(begin, end, (ROWS if begin * end == 0 else 2 * ROWS) + 1)[1:]
        for begin, end in pairwise(turns)
    ]
    return np.concatenate([[0.0], *pieces])


def textbook(strain: Array, constants: tuple[float, ...]) -> Array:
    """Stresses of rate-independent plasticity in tension, by small explicit steps."""
    modulus, yield_stress, saturated, *kinematic = constants
    stress, hardening, back = 0.0, 0.0, np.zeros(2)
    moduli, recovery = np.array(kinematic), np.array(GAMMAS)
    found = [0.0]
    for begin, end in pairwise(strain):
        for _ in range(_FINE):
            trial = stress + modulus * (end - begin) / _FINE
            over = trial - back.sum()
            sign, excess = np.sign(over), abs(over) - yield_stress - hardening
            if excess > 0:
                slope = (moduli - recovery * back * sign).sum() + B * (saturated - hardening)
                flow = excess / (modulus + slope)
                trial -= modulus * flow * sign
                back = back + (moduli * sign - recovery * back) * flow
                hardening += B * (saturated - hardening) * flow
            stress = trial
        found.append(stress)
    return np.array(found)


def problem(artifact: str) -> fit.Problem:
    """Cycles at two temperatures; what differs between them has a value for each."""
    model, random = Model(artifact), np.random.default_rng(316)
    model.set_parameter("reference_stress", 5.0)  # nearly independent of the rate
    strain = cycles((0.004, 0.008))
    tests = [
        fit.Experiment.of(
            f"cycles at {temperature} C",
            strain=strain,
            stress=textbook(strain, constants) + NOISE * random.normal(size=len(strain)),
            rate=1e-3,
            deviation=NOISE,
            labels={"temperature": temperature},
        )
        for temperature, constants in PUBLISHED.items()
    ]
    own = partial(fit.Parameter, log=True, per="temperature")
    shared = partial(fit.Parameter, log=True)
    return fit.Problem(
        model,
        tests,
        {
            "E": own(180e3, 100e3, 300e3),
            "yield_stress": own(150.0, 30.0, 400.0),
            "R": own(100.0, 10.0, 500.0),
            "C1": own(80e3, 20e3, 500e3),
            "C2": own(8e3, 1e3, 19e3),
            "d": shared(10.0, 1.0, 50.0),
            "g1": shared(800.0, 300.0, 3000.0),
            "g2": shared(60.0, 5.0, 290.0),
        },
    )


def command() -> list[str]:
    """The arguments of neml2-capi that compile the law, with these parameters."""
    words = ["compile", str(examples.FOLDER / "laws" / "chaboche.i"), "--model", "chaboche"]
    words += ["--kernels", "only", "-d", ":"]
    for inside, name in PROMOTED.items():
        words += ["-p", inside, "-d", f":{inside}", "--rename-parameter", f"{inside}:{name}"]
    return words


def main() -> None:
    if sys.argv[1] == "--compile":
        print("neml2-capi", shlex.join(command()))
        return
    task, starts = problem(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 1
    pool = partial(ProcessPoolExecutor, 2, mp_context=get_context("spawn"))
    begin, work = time.perf_counter(), time.process_time()
    found = task.solve(starts=starts, executor=pool if starts > 1 else None)
    print(f"{time.perf_counter() - begin:.1f} s, {time.process_time() - work:.1f} s of processor")
    print(found)
    if starts > 1:
        least = np.isclose(found.costs, found.cost, rtol=1e-3).sum()
        print(f"{least} of {starts} searches found this minimum")
    published = {
        f"{name}[{temperature}]": value
        for temperature, values in PUBLISHED.items()
        for name, value in zip(("E", "yield_stress", "R", "C1", "C2"), values, strict=True)
    } | {"d": B, "g1": TO_NEML2 * GAMMAS[0], "g2": TO_NEML2 * GAMMAS[1]}
    for name, value in published.items():
        print(f"{name}: {found.parameters[name]:.6g}, published {value:.6g}")
    if sys.argv[3:]:
        found.report(sys.argv[3])


if __name__ == "__main__":
    main()
