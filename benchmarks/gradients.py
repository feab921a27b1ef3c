"""Cost of the gradients of a whole history, as a multiple of the history's own cost.

    python benchmarks/gradients.py [ARTIFACT] [--steps 1000] [--specimens 8]

By default the example `chaboche`, with two parameters. The ten of its law are promoted by

    neml2-capi compile chaboche.i --model chaboche --kernels only -d : -p C ... -d :C ...

Strain cycles of several amplitudes: tension tests, whose lateral strains are found by a control or
under the hypothesis of uniaxial stress, and prescribed strains. They take the gradient of the sum
of the squared stresses by all parameters, or all derivatives of the stress.
With torch, the tests of prescribed strain are also differentiated through
neml2_capi.torch.Module step by step. With NEML2 and pyzag, pyzag's adjoint
has a turn with the same law, of neml2_capi/examples/laws, which takes seconds: --steps 200. Medians
of processor time, on one thread; the history alone, and with its derivatives, take turns.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads of numpy wait for each other, in processor time

import numpy as np
from numpy.typing import NDArray

from neml2_capi import Model, Results, drive, examples, experiments

Array = NDArray[np.float64]
_REPEATS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("artifact", nargs="?", default=str(examples.path("chaboche")))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--specimens", type=int, default=8)
    asked = parser.parse_args()
    model = Model(asked.artifact)
    model.options["threads"] = 1
    names = list(model.parameters.names)
    values = {name: float(model[name]) for name in names}
    times = np.linspace(0.0, asked.steps / 10, asked.steps + 1)
    amplitudes = np.linspace(0.004, 0.011, asked.specimens)
    strain = np.sin(2 * np.pi * times / 10)[:, np.newaxis] * amplitudes
    print(
        f"{asked.steps} steps, {asked.specimens} specimens, {len(names)} parameters; processor time"
    )

    uniaxial = Model(asked.artifact, hypothesis="uniaxial")
    uniaxial.options["threads"] = 1

    def pulled(derivatives: Any, law: Model = model) -> Results:
        return experiments.tension(
            law, times, strain, parameters=values, derivatives=derivatives, record=["stress"]
        )

    whole = strain[..., np.newaxis] * [1.0, -0.4, -0.4, 0.0, 0.0, 0.0]

    def strained(derivatives: Any) -> Results:
        return drive(
            model,
            times,
            {"strain": whole},
            parameters=values,
            derivatives=derivatives,
            record=["stress"],
        )

    runs: list[tuple[str, Callable[[Any], Results]]] = [
        ("tension tests", pulled),
        ("tension tests under uniaxial stress", lambda asked: pulled(asked, uniaxial)),
        ("prescribed strains", strained),
    ]
    for label, run in runs:
        alone, backward, forward = measured(run, names)
        print(
            f"{label}: history {1e3 * alone:.1f} ms; with the gradient {1e3 * backward:.1f} ms, "
            f"{backward / alone:.2f} times; with all derivatives {1e3 * forward:.1f} ms, "
            f"{forward / alone:.2f} times"
        )
    try:
        import torch  # noqa: F401
    except ImportError:
        print("torch is not installed: no steps of Module beside it")
        return
    by_steps(asked.artifact, values, times, whole, strained)
    try:
        import neml2.pyzag  # noqa: F401
    except ImportError:
        print("NEML2 and pyzag are not installed: no chunks of pyzag beside it")
        return
    by_chunks(values, times, whole, strained)


def measured(run: Callable[[Any], Results], names: list[str]) -> tuple[float, float, float]:
    """Seconds of a history, of one with its gradient, and of one with all derivatives."""
    rows = []
    for _ in range(_REPEATS):
        begin = time.process_time()
        run(None)
        alone = time.process_time()
        results = run(names)
        results.gradient({"stress": 2 * results["stress"]})
        backward = time.process_time()
        results = run(names)
        results.derivative("stress", names[0])
        forward = time.process_time()
        rows.append((alone - begin, backward - alone, forward - backward))
    medians = np.median(rows, axis=0)
    return float(medians[0]), float(medians[1]), float(medians[2])


def by_steps(
    artifact: str,
    values: dict[str, float],
    times: Array,
    strain: Array,
    strained: Callable[[Any], Results],
) -> None:
    """Time the same gradient by torch, through a Module in each step."""
    import torch

    from neml2_capi.torch import Module

    torch.set_num_threads(1)
    module = Module(artifact)
    points = strain.shape[1]
    histories = module.model.histories
    shapes = {variable.name: variable.base_shape for variable in module.model.inputs}

    def loss() -> Any:
        def start(name: str) -> Any:
            return torch.zeros((points, *shapes[name]), dtype=torch.float64)

        old = {history.input: start(history.input) for history in histories}
        total = torch.zeros((), dtype=torch.float64)
        for step in range(1, len(times)):
            forces = {
                "strain": torch.from_numpy(strain[step]),
                "t": torch.full((points,), times[step], dtype=torch.float64),
            }
            now = {**forces, **module({**forces, **old})}
            total = total + now["stress"].square().sum()
            old = {h.input: now[str(h.output or h.current)] for h in histories}
        return total

    begin = time.process_time()
    loss().backward()
    seconds = time.process_time() - begin
    begin = time.process_time()
    results = strained(list(values))
    gradient = results.gradient({"stress": 2 * results["stress"]})
    ours = time.process_time() - begin
    difference = max(
        abs(float(module[name].grad) / gradient[name] - 1) for name in values if gradient[name]
    )
    print(
        f"torch through Module, step by step: {1e3 * seconds:.0f} ms, {seconds / ours:.1f} times "
        f"drive() with its gradient; the gradients differ by {difference:.1e}"
    )


def by_chunks(
    values: dict[str, float], times: Array, strain: Array, strained: Callable[[Any], Results]
) -> None:
    """Time the same gradient by pyzag, which solves chunks of steps at once."""
    import neml2
    import neml2.pyzag
    import torch
    from pyzag import chunktime, nonlinear

    torch.set_default_dtype(torch.float64)
    law = examples.FOLDER / "laws" / "chaboche.i"
    model = neml2.pyzag.NEML2PyzagModel(neml2.load_nonlinear_system(str(law), "system"))
    clock = np.broadcast_to(times[:, np.newaxis], strain.shape[:2]).copy()
    forces = model.assemble_forces(
        {"t": torch.from_numpy(clock), "strain": torch.from_numpy(strain)}
    )
    begin = time.process_time()
    results = strained(list(values))
    gradient = results.gradient({"stress": 2 * results["stress"]})
    ours = time.process_time() - begin
    for chunk in (1, 5, 10):
        newton = chunktime.ChunkNewtonRaphson(rtol=1e-10, atol=1e-8)
        generator = nonlinear.StepGenerator(chunk)
        predictor = nonlinear.PreviousStepsPredictor()
        solver = nonlinear.RecursiveNonlinearEquationSolver(
            model, step_generator=generator, predictor=predictor, nonlinear_solver=newton
        )
        begin = time.process_time()
        start = torch.zeros(strain.shape[1], model.nstate)
        states = nonlinear.solve_adjoint(solver, start, len(forces), forces)
        model.zero_grad()
        states[..., :6].square().sum().backward()
        seconds = time.process_time() - begin
        found = float(dict(model.named_parameters())["elasticity_E"].grad.sum())
        print(
            f"pyzag, {chunk} steps at once: {seconds:.2f} s, {seconds / ours:.0f} times drive() "
            f"with its gradient; by E the gradients differ by {abs(found / gradient['E'] - 1):.1e}"
        )


if __name__ == "__main__":
    main()
