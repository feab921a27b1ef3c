"""The law `chaboche` in jaxmat, and the gradient of a whole history by jax.

    python benchmarks/in_jaxmat.py ARTIFACT [--steps 1000] [--specimens 8]

The artifact is the law `chaboche` without static recovery, which jaxmat does not have, and with ten
parameters: `A = 0` for both back stresses in a copy of its file, which is compiled as
`examples/fit_316l.py --compile` prints. jaxmat's steps are in one `scan`, which is compiled before
it is timed. Processor time on one thread: the medians of turns beside `drive` with its gradient.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from neml2_capi import Model, drive

_REPEATS = 5


def law(value: dict[str, Any]) -> Any:
    """Return jaxmat's law with NEML2's constants: the same stresses.

    A flow direction of NEML2 has the norm 1, so that its flow rate is sqrt(3/2) times the rate of
    the equivalent plastic strain: docs/calibration.md.
    """
    import jax.numpy as jnp
    import jaxmat.materials as jm

    root = np.sqrt(2 / 3)
    return jm.ArmstrongFrederickViscoplasticity(
        elasticity=jm.LinearElasticIsotropic(E=value["E"], nu=0.3),
        yield_stress=jm.VoceHardening(
            sig0=value["yield_stress"], sigu=value["yield_stress"] + value["R"], b=value["d"]
        ),
        viscous_flow=jm.NortonFlow(
            K=value["reference_stress"] * root ** (-1 - 1 / value["exponent"]), m=value["exponent"]
        ),
        kinematic_hardening=jm.ArmstrongFrederickHardening(
            C=jnp.stack([value["C1"], value["C2"]]),
            gamma=jnp.stack([value["g1"], value["g2"]]) / root,
        ),
    )


def loss(value: dict[str, Any], strain: Any, step_size: float) -> Any:
    """Return the sum of squared stresses of all steps, and the stresses."""
    import jax
    from jaxmat.tensors import SymmetricTensor2

    material = law(value)
    update = jax.vmap(material.constitutive_update, in_axes=(0, 0, None))

    def step(state: Any, row: Any) -> Any:
        stress, state = update(SymmetricTensor2(array=row), state, step_size)
        return state, stress.array

    _, stress = jax.lax.scan(step, material.init_state(strain.shape[1]), strain)
    return (stress**2).sum(), stress


def seconds(work: Callable[[], Any]) -> float:
    """Processor time of one call."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("artifact")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--specimens", type=int, default=8)
    asked = parser.parse_args()
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    import jax

    jax.config.update("jax_enable_x64", True)
    import jaxmat.materials  # noqa: F401  its constants are made on import, and not while jax traces

    model = Model(asked.artifact)
    model.options["threads"] = 1
    values = {name: float(model[name]) for name in model.parameters.names}
    times = np.linspace(0.0, asked.steps / 10, asked.steps + 1)
    amplitudes = np.linspace(0.004, 0.011, asked.specimens)
    cycles = np.sin(2 * np.pi * times / 10)[:, np.newaxis] * amplitudes
    strain = cycles[..., np.newaxis] * [1.0, -0.4, -0.4, 0.0, 0.0, 0.0]
    step_size = float(times[1])

    def ours() -> Any:
        results = drive(
            model,
            times,
            {"strain": strain},
            parameters=values,
            derivatives=list(values),
            record=["stress"],
        )
        return results, results.gradient({"stress": 2 * results["stress"]})

    rows = jax.numpy.asarray(strain[1:])
    begin = time.perf_counter()
    history = jax.jit(loss).lower(values, rows, step_size).compile()
    backward = jax.jit(jax.value_and_grad(loss, has_aux=True))
    (_, stress), gradient = jax.block_until_ready(backward(values, rows, step_size))
    print(f"jaxmat, {asked.steps} steps: compiled in {time.perf_counter() - begin:.0f} s")
    results, own = ours()
    turns = [
        (
            seconds(lambda: jax.block_until_ready(history(values, rows, step_size))),
            seconds(lambda: jax.block_until_ready(backward(values, rows, step_size))),
            seconds(ours),
        )
        for _ in range(_REPEATS)
    ]
    alone, with_gradient, drive_seconds = np.median(turns, axis=0)
    print(
        f"jaxmat: history {1e3 * alone:.0f} ms; with the gradient {1e3 * with_gradient:.0f} ms, "
        f"{with_gradient / drive_seconds:.0f} times drive() with its gradient"
    )
    print(f"stresses differ by {np.abs(np.asarray(stress) - results['stress'][1:]).max():.1e}")
    for name in values:
        change = 1e-4 * values[name]
        high, low = (
            float(history(values | {name: values[name] + side * change}, rows, step_size)[0])
            for side in (1, -1)
        )
        differences = (high - low) / (2 * change)
        print(
            f"{name}: differences of jaxmat's history {differences:.9g}; "
            f"drive() {own[name] / differences - 1:+.0e}, "
            f"jaxmat's gradient {float(gradient[name]) / differences - 1:+.0e}"
        )


if __name__ == "__main__":
    main()
