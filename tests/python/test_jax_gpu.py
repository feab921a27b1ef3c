"""A model among jax's arrays on a GPU: on its stream, in its memory, with the host's bits."""

from __future__ import annotations

import resource
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from states import repeated, state_of
from test_opencl_models import opened

from neml2_capi import FatalError, Model, drive

jax = pytest.importorskip("jax")
jnp = jax.numpy

from neml2_capi.jax import Function  # noqa: E402

pytestmark = [pytest.mark.numbers, pytest.mark.gpu]

NAME = "isotropic_hardening"
POINTS = 10_000


@pytest.fixture(scope="module", autouse=True)
def gpu() -> Any:
    jax.config.update("jax_enable_x64", True)
    try:
        yield jax.devices("cuda")[0]
    except RuntimeError:
        pytest.skip("jax has no GPU")
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Model]:
    """The model in lanes and on the GPU."""
    return opened(NAME, tmp_path_factory.mktemp(NAME), "cuda:0")


def arrays_of(model: Model, gpu: Any, points: int = POINTS) -> tuple[Any, Any]:
    """The inputs of a loading on the host, and on the GPU."""
    inputs = repeated(state_of(NAME, model), points)
    return inputs, {name: jax.device_put(value, gpu) for name, value in inputs.items()}


def is_there(array: Any, gpu: Any) -> bool:
    return bool(array.devices() == {gpu} and array.sharding.memory_kind == "device")


@pytest.mark.parametrize("transformed", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_arrays_of_a_gpu_get_the_bits_of_the_host(
    pair: tuple[Model, Model], gpu: Any, transformed: Any
) -> None:
    lanes, there = pair
    inputs, on_gpu = arrays_of(there, gpu)
    moduli = np.linspace(0.9, 1.1, POINTS) * 200e3
    for parameters in ({}, {"E": 190e3}, {"E": moduli}):
        expected = lanes.forward(inputs, parameters)
        found = transformed(Function(there))(
            on_gpu, {n: jnp.array(v) for n, v in parameters.items()}
        )
        for name, value in found.items():
            assert is_there(value, gpu)
            np.testing.assert_array_equal(np.asarray(value), expected[name], err_msg=name)


def test_gradients_under_jit_and_vmap_equal_those_of_the_host(
    pair: tuple[Model, Model], gpu: Any
) -> None:
    inputs, on_gpu = arrays_of(pair[1], gpu)
    host = jax.devices("cpu")[0]
    at_host = {name: jax.device_put(value, host) for name, value in inputs.items()}
    found = []
    for model, arrays, device in ((pair[0], at_host, host), (pair[1], on_gpu, gpu)):
        law = Function(model, ["stress"])

        def weighted(E: Any, given: Any, law: Function = law) -> Any:
            return (law(given, {"E": E})["stress"] ** 2).sum()

        with jax.default_device(device):
            gradient = jax.jit(jax.grad(weighted, argnums=(0, 1)))(jnp.asarray(190e3), arrays)
            tangent = jax.jit(jax.vmap(jax.jacfwd(lambda given, law=law: law(given)["stress"])))(
                arrays
            )
        for value in jax.tree.leaves((gradient, tangent)):
            assert is_there(value, device)
        found.append((gradient, tangent["strain"]))
    (gradient, tangent), (of_gpu, tangent_there) = found
    np.testing.assert_array_equal(np.asarray(tangent_there), np.asarray(tangent))
    np.testing.assert_allclose(np.asarray(of_gpu[0]), np.asarray(gradient[0]), rtol=1e-10)
    for name, value in gradient[1].items():
        scale = np.abs(value).max()
        np.testing.assert_allclose(
            np.asarray(of_gpu[1][name]), np.asarray(value), rtol=0, atol=1e-12 * scale, err_msg=name
        )


def resident() -> int:
    """The most memory of the host that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_a_large_array_does_not_pass_through_the_host(tmp_path: Path, gpu: Any) -> None:
    _, model = opened("elasticity", tmp_path, "cuda:0")
    law, points = Function(model), 20_000_000
    evaluate = jax.jit(lambda strain: law({"strain": strain})["stress"])

    def evaluated(points: int) -> Any:
        strain = jax.device_put(jnp.ones((), float), gpu) * jnp.full((points, 6), 1e-3, device=gpu)
        with jax.transfer_guard("disallow"):
            return jax.block_until_ready(evaluate(strain))

    evaluated(100)
    before = resident()
    stress = evaluated(points)
    assert is_there(stress, gpu)
    assert resident() - before < stress.nbytes // 4
    assert stress.nbytes > 900e6
    expected = model.forward({"strain": np.full(6, 1e-3)})["stress"]
    np.testing.assert_array_equal(np.asarray(stress[-1]), expected)


def test_work_goes_to_the_stream_of_xla(pair: tuple[Model, Model], gpu: Any) -> None:
    """The strain of a long computation is read when it is there, and so is the stress."""
    lanes, there = pair
    inputs, on_gpu = arrays_of(there, gpu)
    law = Function(there)
    turn = jnp.eye(4096, device=gpu)[::-1]

    def computed(turn: Any, strain: Any) -> Any:
        def turned(_: Any, matrix: Any) -> Any:
            return matrix @ turn

        one = jax.lax.fori_loop(0, 20, turned, turn)[0, -1]  # 1, but after 20 products
        stress = law({**on_gpu, "strain": strain * one})["stress"]
        return 2 * stress * jax.lax.fori_loop(0, 20, turned, turn * stress[0, 0])[0, 0] ** 0

    found = jax.jit(computed)(turn, on_gpu["strain"])
    np.testing.assert_array_equal(np.asarray(found), 2 * lanes.forward(inputs)["stress"])


def test_steps_of_a_scan_stay_there_with_their_gradient(
    pair: tuple[Model, Model], gpu: Any
) -> None:
    found = []
    for model, device in ((pair[0], jax.devices("cpu")[0]), (pair[1], gpu)):
        with jax.default_device(device):
            law, state = Function(model), state_of(NAME, model)
            start = {name: jnp.asarray(value) for name, value in state.items()}
            history = [
                name for name in start if name.endswith("~1") and name[:-2] in model.outputs.names
            ]

            def last(E: Any, law: Any = law, start: Any = start, history: Any = history) -> Any:
                def step(old: Any, time: Any) -> Any:
                    given = {**start, **old, "strain": start["strain"] * time}
                    new = law(given, {"E": E})
                    return {name: new[name[:-2]] for name in history}, new["stress"]

                kept = {name: start[name] for name in history}
                return jax.lax.scan(step, kept, jnp.linspace(0.1, 1.0, 10))[1][-1].sum()

            found.append([float(value) for value in jax.jit(jax.value_and_grad(last))(190e3)])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-10)


def test_points_that_fail_on_a_gpu_are_told(pair: tuple[Model, Model], gpu: Any) -> None:
    _, on_gpu = arrays_of(pair[1], gpu, 10)
    spoiled = {**on_gpu, "strain": on_gpu["strain"].at[3, 0].set(1e200)}
    law = jax.jit(Function(pair[1]))
    errors = jax.errors.JaxRuntimeError, ValueError
    with pytest.raises(errors, match="1 of 10 points did not converge"):
        jax.block_until_ready(law(spoiled))
    jax.block_until_ready(law(on_gpu))


def test_threads_evaluate_on_a_gpu_at_once(pair: tuple[Model, Model], gpu: Any) -> None:
    lanes, there = pair
    law, wrong = jax.jit(Function(there)), list[int]()

    def work(points: int) -> None:
        inputs, on_gpu = arrays_of(there, gpu, points)
        expected = lanes.forward(inputs)["stress"]
        for _ in range(20):
            if not np.array_equal(np.asarray(law(on_gpu)["stress"]), expected):
                wrong.append(points)

    threads = [threading.Thread(target=work, args=(points,)) for points in (10, 100, 1000, 5000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_model_of_the_host_is_refused_among_arrays_of_a_gpu(
    pair: tuple[Model, Model], gpu: Any
) -> None:
    inputs, on_gpu = arrays_of(pair[0], gpu, 10)
    with pytest.raises(FatalError, match="jax computes on CUDA, and the model does not"):
        Function(pair[0])(on_gpu)
    host = jax.devices("cpu")[0]
    with jax.default_device(host):  # and the model of the GPU takes arrays of the host
        at_host = {name: jax.device_put(value, host) for name, value in inputs.items()}
        found = jax.jit(Function(pair[1]))(at_host)["stress"]
    np.testing.assert_array_equal(np.asarray(found), pair[0].forward(inputs)["stress"])


def test_a_history_of_arrays_of_a_gpu_is_refused(pair: tuple[Model, Model], gpu: Any) -> None:
    strain = jax.device_put(np.zeros((3, 6)), gpu)
    for model in pair:
        with pytest.raises(FatalError, match=r"'strain' .* (pass it on the cpu|pass tensor.cpu)"):
            drive(model, np.linspace(0, 1, 3), {"strain": strain})
