"""A signal ends a long evaluation, and nothing is lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from neml2_capi import Model, examples

#: Points that take longer than any signal takes to arrive.
MANY = 4_000_000


class RangError(Exception):
    """What the handler of the alarm raises."""


@pytest.fixture
def alarm() -> Iterator[None]:
    def ring(number: int, frame: object) -> None:
        raise RangError

    before = signal.signal(signal.SIGALRM, ring)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def model() -> Model:
    return Model(examples.path("chaboche"))


def one_and_many(model: Model) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs of a plastic step of one point, and of many."""
    one = model.state().inputs(strain=[6e-3, -3e-3, -3e-3, 0.0, 0.0, 0.0], t=1.0)
    return one, {**one, "strain": np.broadcast_to(one["strain"], (MANY, 6))}


@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_handler_raises_ends_a_call(model: Model, alarm: None, threads: int) -> None:
    model.options["threads"] = threads
    one, many = one_and_many(model)
    right = model.forward(one)["stress"]
    stress = np.zeros((MANY, 6))
    call = model.bind(many, {"stress": stress})
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    with pytest.raises(RangError):
        call()
    assert 0 < stress.any(axis=1).sum() < MANY
    np.testing.assert_array_equal(stress[0], right)
    np.testing.assert_array_equal(model.forward(one)["stress"], right)


def test_ctrl_c_ends_an_evaluation(model: Model) -> None:
    one, many = one_and_many(model)
    right = model.forward(one)["stress"]
    # A shell that starts the tests in the background has them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            model.forward(many)
    finally:
        signal.signal(signal.SIGINT, before)
    np.testing.assert_array_equal(model.forward(one)["stress"], right)
