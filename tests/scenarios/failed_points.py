"""Failed points leave the others alone, and a step that is too large is cut."""

import numpy as np
from scenario import Points, load, print_points

from neml2_capi import ConvergenceError, Model

N, FAILED, PEAK = 8, 3, 5


def one_point_fails_alone(model: Model) -> None:
    """Step from rest to the peak of the cycle at once, then with a strain beyond all measure."""
    points = Points(model, range(N))
    points.load(PEAK)
    points.call()
    good = points.state.copy()

    points.state[...] = -1
    points.strain[FAILED, 0] = 1e200
    try:
        points.call()
    except ConvergenceError as error:
        assert error.recoverable
        np.testing.assert_array_equal(error.converged_mask, np.arange(N) != FAILED)
    else:
        raise AssertionError("a strain beyond all measure was solved for")
    good[FAILED] = -1
    np.testing.assert_array_equal(points.state, good)
    print("status", *points.call.report["status"])
    print_points("stress", points.state[:, :6])


def a_step_is_cut_until_it_converges(model: Model) -> None:
    """Step from rest to the peak, and halve a step that needs more than 3 iterations."""
    points = Points(model, range(N))
    model.options["miters"] = 4  # the bound of the count, exclusive
    points.load(PEAK)
    peak = points.strain.copy()
    reached, cut, steps = 0.0, 1.0, 0
    while reached < 1 and cut > 1e-6:
        points.strain[...] = (reached + cut) * peak
        points.time[...] = (reached + cut) * PEAK
        try:
            points.call()
        except ConvergenceError:
            cut /= 2
        else:
            points.accept()
            reached += cut
            steps += 1
    assert reached == 1 and steps > 1
    print("steps", steps)
    print_points("stress", points.state[:, :6])


model = load("viscoplastic")
one_point_fails_alone(model)
a_step_is_cut_until_it_converges(model)
