"""The constants of a graph: listed, replaced while it runs, and shared by several graphs."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neml2_capi import FatalError, Graph, Tensor
from neml2_capi._ffi.runtime import libtorch

Weights = dict[str, np.ndarray[Any, Any]]
POINTS = np.linspace(-1, 1, 21).reshape(7, 3)


@pytest.fixture(params=["builtin", "libtorch"])
def runtime(request: pytest.FixtureRequest) -> str:
    """Each test is for both."""
    name = str(request.param)
    if name == "libtorch":
        try:
            libtorch()
        except FatalError as missing:
            pytest.skip(str(missing))
    return name


@pytest.fixture
def network(graphs: Path, runtime: str) -> Graph:
    """tanh(x W0^T + b0) W2^T + b2, with 3, 64 and 2 values; b2, which is small, is in the code."""
    return Graph(graphs / "weights.pt2", runtime)


def law(weights: Weights, rest: Any, x: Any = POINTS) -> Any:
    return np.tanh(x @ weights["0.weight"].T + weights["0.bias"]) @ weights["2.weight"].T + rest


def other(weights: Weights, seed: int) -> Weights:
    random = np.random.default_rng(seed)
    return {name: np.asarray(random.normal(size=value.shape)) for name, value in weights.items()}


@pytest.fixture
def rest(network: Graph) -> Any:
    """The bias that cannot be seen: what is left of the network at other weights."""
    return (network(POINTS)[0] - law(network.constants(), 0))[0]


def test_constants_are_those_of_the_module(network: Graph, rest: Any) -> None:
    weights = network.constants()
    assert {name: value.shape for name, value in weights.items()} == {
        "0.weight": (64, 3),
        "0.bias": (64,),
        "2.weight": (2, 64),
    }
    np.testing.assert_allclose(network(POINTS)[0], law(weights, rest), rtol=1e-13, atol=1e-14)


def test_other_constants_give_other_results(network: Graph, rest: Any) -> None:
    new = other(network.constants(), 1)
    network.set_constants(new)
    np.testing.assert_allclose(network(POINTS)[0], law(new, rest), rtol=1e-13, atol=1e-13)
    for name, value in network.constants().items():
        np.testing.assert_array_equal(value, new[name])


def test_some_of_them_leave_the_others(network: Graph, rest: Any) -> None:
    weights = network.constants()
    for name, value in other(weights, 2).items():
        weights[name] = value
        network.set_constants({name: value})
        np.testing.assert_allclose(network(POINTS)[0], law(weights, rest), rtol=1e-13, atol=1e-13)


def test_any_layout_is_understood(network: Graph, rest: Any) -> None:
    new = other(network.constants(), 3)
    network.set_constants({n: np.asfortranarray(v)[..., ::1] for n, v in new.items()})
    np.testing.assert_allclose(network(POINTS)[0], law(new, rest), rtol=1e-13, atol=1e-13)
    wide = {n: np.repeat(v, 2, axis=-1)[..., ::2] for n, v in new.items()}
    network.set_constants(wide)
    np.testing.assert_allclose(network(POINTS)[0], law(new, rest), rtol=1e-13, atol=1e-13)


def test_values_are_copied(network: Graph) -> None:
    new = other(network.constants(), 4)
    network.set_constants(new)
    before = network(POINTS)[0]
    for value in new.values():
        value[...] = 0
    np.testing.assert_array_equal(network(POINTS)[0], before)
    for value in network.constants().values():
        value[...] = 0
    np.testing.assert_array_equal(network(POINTS)[0], before)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("0.weights", np.ones((64, 3)), "no constant '0.weights'; it has 0.weight, 0.bias"),
        ("2.bias", np.ones(2), "may have become numbers in the code"),
        ("0.bias", np.ones(63), r"has the shape \(64,\); got \(63,\)"),
        ("0.bias", np.ones((1, 64)), r"has the shape \(64,\); got \(1, 64\)"),
        ("0.bias", np.ones(64, np.float32), "is float64; got float32"),
    ],
)
def test_what_does_not_fit_replaces_nothing(
    network: Graph, name: str, value: Any, says: str
) -> None:
    before = network(POINTS)[0]
    good = other(network.constants(), 5)
    del good["0.bias"]
    with pytest.raises(FatalError, match=says) as error:
        network.set_constants({**good, name: value})
    assert error.value.subject == name
    np.testing.assert_array_equal(network(POINTS)[0], before)


def test_graphs_share_the_memory_of_tensors(
    graphs: Path, runtime: str, network: Graph, rest: Any
) -> None:
    second = Graph(graphs / "weights.pt2", runtime)
    tensors = {}
    for name, value in other(network.constants(), 6).items():
        tensors[name] = Tensor.zeros(value.shape)
        tensors[name].numpy()[...] = value
    for graph in (network, second):
        graph.set_constants(tensors, share=True)
    values = {name: tensor.numpy().copy() for name, tensor in tensors.items()}
    # To write them is not allowed; it shows whose memory they are.
    tensors["2.weight"].numpy()[...] *= 2
    doubled = {**values, "2.weight": 2 * values["2.weight"]}
    for graph in (network, second):
        np.testing.assert_allclose(graph(POINTS)[0], law(doubled, rest), rtol=1e-13, atol=1e-13)
    # The memory lives as long as a graph uses it.
    for tensor in tensors.values():
        tensor.close()
    network.close()
    gc.collect()
    np.testing.assert_allclose(second(POINTS)[0], law(doubled, rest), rtol=1e-13, atol=1e-13)


def test_memory_of_others_is_not_shared(network: Graph) -> None:
    with pytest.raises(FatalError, match=r"Tensor\.zeros"):
        network.set_constants({"0.bias": np.ones(64)}, share=True)
    with pytest.raises(FatalError, match=r"Tensor\.zeros"):
        network.set_constants({"0.bias": Tensor(np.ones(64))}, share=True)


def test_a_graph_without_constants(graphs: Path, runtime: str) -> None:
    graph = Graph(graphs / "static_batch.pt2", runtime)
    assert graph.constants() == {}
    graph.set_constants({})
    with pytest.raises(FatalError, match="it has none"):
        graph.set_constants({"weight": np.ones(3)})


@pytest.mark.full("seconds of load")
def test_swaps_under_load_never_mix(network: Graph, rest: Any) -> None:
    """Eight threads run the graph while its weights are replaced 1,000 times."""
    sets = [other(network.constants(), seed) for seed in (7, 8)]
    network.set_constants(sets[0])
    allowed = []
    for weights in sets:
        network.set_constants(weights)
        allowed.append(network(POINTS)[0])
        np.testing.assert_allclose(allowed[-1], law(weights, rest), rtol=1e-13, atol=1e-13)
    seen, wrong, done = [0, 0], [], threading.Event()

    def run() -> None:
        while not done.is_set():
            result = network(POINTS)[0]
            which = [np.array_equal(result, expected) for expected in allowed]
            if not any(which):
                wrong.append(result)
                return
            seen[which.index(True)] += 1

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for swap in range(1000):
        network.set_constants(sets[swap % 2])
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert min(seen) > 0


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_copies_have_the_constants(network: Graph, copied: Any) -> None:
    network.set_constants({"2.weight": np.ones((2, 64)) / 7})
    np.testing.assert_array_equal(copied(network)(POINTS)[0], network(POINTS)[0])


def resident() -> float:
    """Of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def test_memory_stays_flat(network: Graph) -> None:
    """A thousand sets of weights of 3 kB each, and of the container around them, would be MBs."""
    new = other(network.constants(), 9)

    def swap(times: int) -> None:
        for _ in range(times):
            network.set_constants(new)
            network(POINTS)

    swap(200)
    before = resident()
    swap(1000)
    assert resident() - before < 1.0
