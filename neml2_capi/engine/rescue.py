"""Rescue of points that did not converge: a line search, then a homotopy.

The first solve is of the same equations, with a line search. The others move the inputs from the
last step's values to this step's, and begin each at the solution before it: what is found in the
end solves the equations of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from neml2_capi.engine.description import Key, Values
from neml2_capi.engine.results import Batch

#: The part of a step below which a homotopy ends.
LEAST_STEP = 1.0 / 1024.0
#: Trials of a line search, if the model asks for fewer.
TRIALS = 10


def rescue(
    batch: Batch,
    given: Values,
    moving: Sequence[tuple[Key, Key]],
    most: int,
    run: Callable[[Batch], None],
) -> None:
    """Solve the points of a batch that failed.

    Parameters
    ----------
    batch
        An evaluation; receives what is found.
    given
        The inputs and parameters of its points.
    moving
        Inputs that move, and their values a step before, by key.
    most
        Solves of a point, at most.
    run
        Runs the segments of a batch.
    """
    failed = np.flatnonzero(batch.failed)
    at, step = np.zeros(len(failed)), np.ones(len(failed))
    solves = np.zeros(len(failed), np.int32)
    most = most if moving else 1
    newton = replace(batch.newton, ls_max_iters=max(batch.newton.ls_max_iters, TRIALS))
    solutions = {name: np.full_like(u[failed], np.nan) for name, u in batch.unknowns.items()}
    while True:
        going = np.flatnonzero((at < 1.0) & (step >= LEAST_STEP) & (solves < most))
        if len(going) == 0:
            break
        to, rows = np.minimum(at + step, 1.0)[going], failed[going]
        values = {key: value[rows] for key, value in given.items()}
        for now, before in moving:
            part = to.reshape(-1, *[1] * (values[now].ndim - 1)).astype(values[now].dtype)
            moved = values[before] + part * (values[now] - values[before])
            values[now] = np.where(part < 1.0, moved, values[now])
        trial = batch.part(values, newton)
        trial.guesses = {name: u[going] for name, u in solutions.items()}
        run(trial)
        good = ~trial.failed
        solves[going] += 1
        batch.iterations[rows] += trial.iterations
        step[going] *= np.where(good, 2.0, 0.5)
        at[going[good]] = to[good]
        for name, u in solutions.items():
            u[going[good]] = trial.values[name][good]
        batch.take(trial, good & (to == 1.0), rows)
    batch.rescue_solves[failed] = solves
