"""A model whose points devices share gives what it gives alone, whatever it is asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from agreement import assert_agreement, evaluations, uncertainties
from native import run
from programs import built
from slow import later
from states import ALL, KRYLOV, Array, Artifacts, load, recorded
from test_device_tensors import NAMES as ON_DEVICE

from neml2_capi import Device, FatalError, Model, Scheduler
from neml2_capi._ffi.runtime import libtorch

try:
    libtorch()
    missing = ""
except FatalError as error:
    missing = str(error)
needs_libtorch = pytest.mark.skipif(bool(missing), reason=missing)


def alone(size: int) -> Scheduler:
    return Scheduler("cpu", size, runtime="builtin")


def pair(first: int, second: int, other: str = "libtorch") -> Scheduler:
    """The built-in provider and another runtime."""
    return Scheduler(
        [Device("cpu", first, runtime="builtin"), Device("cpu", second, runtime=other)]
    )


def spoiled(name: str, bad: tuple[int, ...]) -> dict[str, Array]:
    """The recorded state, with a strain beyond all measure, or what is like it, at some points."""
    inputs = recorded(name, "in")
    if bad:
        driving = {"strain", "total_strain", "applied_stress", "deformation_rate"}
        inputs[next(key for key in inputs if key in driving)][list(bad)] = 1e200
    return inputs


def assert_same(model: Model, plain: Model, name: str, inputs: dict[str, Array]) -> None:
    expected, found = (dict(evaluations(m, name, inputs)) for m in (plain, model))
    assert found.keys() == expected.keys()
    for what, value in expected.items():
        np.testing.assert_array_equal(found[what], value, err_msg=f"{name}, {what}")


@pytest.mark.parametrize("bad", [(), (0, 2)])
@pytest.mark.parametrize("name", later(ALL, ["crystal", "substepping"]))
def test_sub_batches_of_every_size_change_nothing(
    artifacts: Artifacts, name: str, bad: tuple[int, ...]
) -> None:
    plain, inputs = load(artifacts, name), spoiled(name, bad)
    points = len(next(iter(inputs.values())))
    for size in range(points + 2):
        model = load(artifacts, name, scheduler=alone(size))
        for chunk in (0, 1, 3):
            for each in (plain, model):
                each.options["chunk"] = chunk
            assert_same(model, plain, name, inputs)


@needs_libtorch
@pytest.mark.parametrize("bad", [(), (0, 2)])
@pytest.mark.parametrize("name", ALL)
def test_two_runtimes_give_what_one_gives(
    artifacts: Artifacts, name: str, bad: tuple[int, ...]
) -> None:
    plain, inputs = load(artifacts, name), spoiled(name, bad)
    points = len(next(iter(inputs.values())))
    uncertainty = uncertainties(plain, name, recorded(name, "in"))
    if name in KRYLOV:  # which stop as soon as a tolerance is met
        uncertainty = dict.fromkeys(uncertainty, np.inf)
    evaluated = 0
    for size in range(1, points + 1):
        model = load(artifacts, name, scheduler=pair(size, 1))
        assert_agreement(model, plain, name, inputs, uncertainty)
        evaluated += model.points_evaluated[1]
    assert evaluated > 0


@needs_libtorch
@pytest.mark.parametrize("bad", [(), (0, 2)])
@pytest.mark.parametrize("name", ON_DEVICE)
def test_what_is_copied_to_a_device_and_back_is_the_same(
    artifacts: Artifacts, name: str, bad: tuple[int, ...]
) -> None:
    plain, inputs = load(artifacts, name), spoiled(name, bad)
    uncertainty = uncertainties(plain, name, recorded(name, "in"))
    for scheduler in (Scheduler("cpu", 2, runtime="tensors"), pair(1, 2, "tensors")):
        model = load(artifacts, name, scheduler=scheduler)
        assert_agreement(model, plain, name, inputs, uncertainty)


@needs_libtorch
@pytest.mark.parametrize("other", ["libtorch", "tensors"])
def test_parameters_are_broadcast_or_sliced(artifacts: Artifacts, other: str) -> None:
    name = "isotropic_hardening"
    plain = load(artifacts, name)
    model = load(artifacts, name, scheduler=pair(1, 1, other))
    inputs = recorded(name, "in")
    per_point = np.linspace(5.0, 50.0, len(inputs["strain"]))
    for value in (np.array(7.0), per_point, np.array(9.0)):
        for each in (plain, model):
            each.set_parameter("yield_stress", value)
        assert_agreement(model, plain, name, inputs, uncertainties(plain, name, inputs))


@needs_libtorch
def test_threads_share_the_devices(artifacts: Artifacts) -> None:
    name = "isotropic_hardening"
    model, plain = load(artifacts, name, scheduler=pair(2, 3)), load(artifacts, name)
    good, bad = recorded(name, "in"), spoiled(name, (1,))
    expected, kept = plain.forward(good)["stress"], plain.evaluate(bad)[0]["stress"]

    def again_and_again(inputs: dict[str, Array]) -> None:
        for _ in range(100):
            found = model.evaluate(inputs)[0]["stress"]
            wanted = expected if inputs is good else kept
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.nanmax(wanted))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(again_and_again, [good, bad, good, bad]))


@needs_libtorch
def test_a_program_in_c_dispatches_ten_thousand_times() -> None:
    """To both runtimes at once, from three threads: it ends, and its memory stays as it is."""
    program = built("c_test_schedulers")
    told = run(program, "10000", NEML2_CAPI_LIBTORCH=libtorch()[0])
    assert told.count("after 10000 dispatches") == 2
