"""Sample constants of Chaboche's law with NUTS: their posterior, of a cyclic test with noise.

    pip install numpyro "neml2_capi[fit]"
    python examples/posterior_numpyro.py aoti/chaboche [SAMPLES]

The artifact is the one of fit_316l.py, whose docstring compiles it. The test is made up, by the law
with known constants and a scatter of 3 MPa; six constants are sampled by their logarithms, with a
flat prior. Gradients are adjoints through the history.
"""

from __future__ import annotations

import sys

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

from neml2_capi import Model, experiments, fit

TRUTH = {"yield_stress": 150.0, "R": 60.0, "C1": 40e3, "g1": 400.0, "C2": 4e3, "g2": 40.0}
NOISE = 3.0  # MPa


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    samples = int(sys.argv[2]) if sys.argv[2:] else 300
    model, random = Model(sys.argv[1]), np.random.default_rng(0)
    t = np.linspace(0.0, 40.0, 121)
    strain = np.where(t < 20, 0.006, 0.012) * np.sin(2 * np.pi * t / 10)
    stress = experiments.tension(model, t, strain, parameters=TRUTH)["stress"][:, 0]
    test = fit.Experiment.of(
        "cycles",
        t=t,
        strain=strain,
        stress=stress + NOISE * random.normal(size=len(t)),
        deviation=NOISE,
    )
    guess = {name: fit.Parameter(1.2 * value, log=True) for name, value in TRUTH.items()}
    problem = fit.Problem(model, [test], guess)
    found = problem.solve()
    print(found)
    # The posterior is nearly normal around the fit: samples are of its principal axes.
    values = np.array(list(found.parameters.values()))
    logarithms = found.covariance / np.outer(values, values)
    axes, density = np.linalg.cholesky(logarithms), fit.LogDensity(problem).jax()

    def posterior() -> None:
        z = numpyro.sample("z", dist.ImproperUniform(dist.constraints.real_vector, (), (6,)))
        numpyro.factor("fit", density(found.moved + axes @ z))

    kernel = NUTS(posterior, step_size=0.5, max_tree_depth=6)
    sampler = MCMC(kernel, num_warmup=max(100, samples // 3), num_samples=samples)
    sampler.run(jax.random.PRNGKey(0), init_params={"z": np.zeros(6)})
    drawn = np.exp(found.moved + np.asarray(sampler.get_samples()["z"]) @ axes.T)
    for column, (name, value) in zip(drawn.T, TRUTH.items(), strict=True):
        mean, deviation = column.mean(), column.std()
        print(f"{name}: {mean:.5g} +- {deviation:.2g}, truth {value:g}")
        assert abs(mean - value) < 3 * deviation, f"{name} is not within three deviations"


if __name__ == "__main__":
    main()
