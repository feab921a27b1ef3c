"""Points in sub-batches on the devices of a scheduler: the same results, and all errors."""

import numpy as np
from scenario import Array, Points, artifact, load, print_points

from neml2_capi import AggregateError, ConvergenceError, Model, Scheduler

N, STEPS, BATCH_SIZE = 8, 5, 3


def cycled(model: Model) -> Array:
    """Step from rest through the beginning of the cycle."""
    points = Points(model, range(N))
    for k in range(1, STEPS + 1):
        if k > 1:
            points.accept()
        points.load(k)
        points.call()
    return points.state


def sub_batches_fail(model: Model) -> None:
    """Step from rest to the peak at once, with strains beyond all measure at the points 1 and 6."""
    points = Points(model, range(N))
    points.load(STEPS)
    points.strain[[1, 6], 0] = 1e200
    try:
        points.call()
    except AggregateError as error:
        assert isinstance(error, ConvergenceError)
        assert error.recoverable
        print("errors", *(one.status for one in error.errors if isinstance(one, ConvergenceError)))
    print("status", *points.call.report["status"])


model = Model(artifact("viscoplastic"), scheduler=Scheduler("cpu", BATCH_SIZE))
states = cycled(model)
np.testing.assert_array_equal(states, cycled(load("viscoplastic")))
print_points("state", states)
assert model.points_evaluated == (N * STEPS,)
sub_batches_fail(model)
