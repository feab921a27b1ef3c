"""The order in which things are let go, and threads that go on while another closes."""

from __future__ import annotations

import gc
import itertools
import pickle
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from conftest import Artifacts
from slow import later

from neml2_capi import ConvergenceError, FatalError, Graph, Model, Tensor

STRAIN = np.linspace(-1e-3, 1e-3, 12).reshape(2, 6)


# ------------------------------------------------------------------------------------------------
# The order in which things are let go
# ------------------------------------------------------------------------------------------------


def family(artifacts: Artifacts) -> dict[str, Any]:
    """Things that live on one another."""
    model = Model(artifacts["elasticity"])
    outputs, report = model.evaluate({"strain": STRAIN})
    tensor = Tensor.zeros((4,))
    graph = Graph(artifacts["elasticity"] / "cpu" / "float64" / "elasticity.pt2")
    return {
        "model": model,
        "call": model.bind({"strain": STRAIN}, report=True),
        "stress": outputs["stress"],
        "report": report["status"],
        "E": model.named_parameters()["E"],
        "options": model.options,
        "tensor": (tensor, tensor.numpy()),
        "of a graph": graph(STRAIN, [1.0, 1.0])[0],
    }


def check(name: str, thing: Any, stress: Any) -> None:
    """That a thing works still."""
    if name == "model":
        np.testing.assert_array_equal(thing.forward({"strain": STRAIN})["stress"], stress)
    elif name == "call":
        np.testing.assert_array_equal(thing()["stress"], stress)
    elif name == "stress":
        np.testing.assert_array_equal(thing, stress)
    elif name == "report":
        assert not thing.any()
    elif name == "E":
        assert thing[...] > 0
    elif name == "options":
        assert thing is None or thing["atol"] > 0
    elif name == "tensor":
        assert (thing[0].numpy() == thing[1]).all()
    elif name == "of a graph":
        assert np.isfinite(thing).all()


ORDERS = list(itertools.permutations(["model", "call", "stress", "report", "E"]))


@pytest.mark.parametrize("how", ["del", "close"])
def test_what_is_left_works_in_whatever_order_the_others_go(artifacts: Artifacts, how: str) -> None:
    stress = Model(artifacts["elasticity"]).forward({"strain": STRAIN})["stress"]
    for order in ORDERS:
        things = family(artifacts)
        for position, name in enumerate(order):
            thing = things.pop(name)
            if how == "close" and hasattr(thing, "close"):
                thing.close()
                if name == "model":  # what asks the model
                    things["options"] = None
            del thing
            if position % 3 == 0:
                for other, value in things.items():
                    check(other, value, stress)
                value = None


@pytest.mark.full("every order")
def test_the_collector_may_take_a_cycle_in_any_order(artifacts: Artifacts) -> None:
    class Node:
        """The collector calls __del__ in an order of its own."""

        def __init__(self, name: str, thing: Any) -> None:
            self.name, self.thing, self.ring = name, thing, None

        def __del__(self) -> None:
            try:
                check(self.name, self.thing, stress)
            except FatalError as error:  # the collector may have freed it before
                assert "is closed" in str(error)

    stress = Model(artifacts["elasticity"]).forward({"strain": STRAIN})["stress"]
    failures: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, failures.append
    try:
        for order in ORDERS[::6]:
            things = family(artifacts)
            ring: Any = [Node(name, things.pop(name)) for name in order]
            for node in ring:
                node.ring = ring
            del ring, node, things
            gc.collect()
    finally:
        sys.unraisablehook = hook
    assert failures == []


def test_an_error_keeps_what_it_holds(artifacts: Artifacts) -> None:
    model = Model(artifacts["viscoplastic"])
    inputs = {v.name: np.zeros((2, *v.base_shape)) for v in model.inputs}
    inputs["t"] += 1.0
    inputs["strain"][1] = 1e200
    with pytest.raises(ConvergenceError) as caught:
        model.forward(inputs)
    error = caught.value
    del caught
    model.close()
    del model, inputs
    gc.collect()
    assert error.converged_mask.tolist() == [True, False]
    assert error.report["status"].shape == (2,)
    assert np.isnan(error.outputs["stress"][1]).all()
    assert all(value.shape[0] == 2 for value in error.unknowns.values())


# ------------------------------------------------------------------------------------------------
# Threads
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", later(["model", "call", "graph"], ["model"]))
def test_threads_evaluate_while_another_closes(artifacts: Artifacts, kind: str) -> None:
    failures: list[BaseException] = []

    def work(evaluate: Callable[[], Any], stress: Any, begun: threading.Event) -> None:
        try:
            while True:
                np.testing.assert_array_equal(evaluate(), stress)
                begun.set()
        except FatalError as error:
            if "is closed" not in str(error):
                failures.append(error)
        except BaseException as error:
            failures.append(error)
        finally:
            begun.set()

    for _ in range(20):
        model = Model(artifacts["elasticity"])
        handle: Any = model
        E = np.repeat(model.named_parameters()["E"], 2)
        if kind == "call":
            handle = model.bind({"strain": STRAIN})
        elif kind == "graph":
            handle = Graph(artifacts["elasticity"] / "cpu" / "float64" / "elasticity.pt2")
        evaluate: Callable[[], Any] = {
            "model": partial(lambda m: m.forward({"strain": STRAIN})["stress"], handle),
            "call": partial(lambda c: c()["stress"], handle),
            "graph": partial(lambda g, E: g(STRAIN, E)[0], handle, E),
        }[kind]
        begun = [threading.Event() for _ in range(4)]
        stress = evaluate()
        threads = [threading.Thread(target=work, args=(evaluate, stress, each)) for each in begun]
        for thread in threads:
            thread.start()
        for event in begun:
            event.wait()
        handle.close()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert failures == []


def test_threads_copy_a_model_that_others_use(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity"])
    expected = model.forward({"strain": STRAIN})["stress"]
    found: list[Any] = []

    def work() -> None:
        for _ in range(5):
            other = pickle.loads(pickle.dumps(model))
            found.append(other.forward({"strain": STRAIN})["stress"])
            found.append(model.forward({"strain": STRAIN})["stress"])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40
    assert all((stress == expected).all() for stress in found)
