"""Schedulers as a user of Python meets them: what they are, which models have them, what fails."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from operator_schemas import CURVE, LIBRARY
from patience import PATIENCE
from states import first_step
from test_operators import curve

import neml2_capi
from neml2_capi import (
    AggregateError,
    ConvergenceError,
    Device,
    FatalError,
    Model,
    Scheduler,
    drive,
    load_model,
)

Artifacts = Mapping[str, Path]
Array = NDArray[np.float64]
N = 10
POINTS = np.arange(N)
STRAIN = 0.01 / (1 + 0.5 * POINTS[:, np.newaxis]) * np.array([1, -0.3, -0.25, 0.1, -0.2, 0.05])
SEVERAL = [Device("cpu", 512), Device("cuda:0", 4096, capacity=8192, priority=2.0)]

by_duplicate = pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]
)


def step(model: Model, bad: Any = ()) -> dict[str, Any]:
    """A viscoplastic step from rest, with a strain beyond all measure at some points."""
    strain = STRAIN.copy()
    strain[list(bad)] = 1e200
    return first_step(model, strain)


def in_fours(artifacts: Artifacts) -> Model:
    """Sub-batches of the points 0 to 3, 4 to 7, 8 and 9."""
    return Model(artifacts["combined_hardening"], scheduler=Scheduler("cpu", 4))


# ------------------------------------------------------------------------------------------------
# What a scheduler is
# ------------------------------------------------------------------------------------------------


def test_a_scheduler_has_the_devices_that_it_was_given() -> None:
    scheduler = Scheduler(SEVERAL)
    assert scheduler.devices == (
        Device("cpu", 512, 1024, 1.0, "auto"),
        Device("cuda:0", 4096, 8192, 2.0, "auto"),
    )
    assert eval(repr(scheduler)).devices == scheduler.devices
    assert Scheduler("cpu").devices == Scheduler(Device("cpu")).devices == (Device("cpu"),)
    one = Scheduler("cpu", batch_size=np.int64(8), runtime="builtin")
    assert one.devices == (Device("cpu", 8, 16, runtime="builtin"),)


@by_duplicate
def test_a_copy_has_the_same_devices(duplicate: Callable[[Any], Any]) -> None:
    scheduler = Scheduler(SEVERAL)
    other = duplicate(scheduler)
    assert other.devices == scheduler.devices
    scheduler.keep_rank(0, 2)
    assert len(other.devices) == 2


@pytest.mark.parametrize(
    ("devices", "subject"),
    [
        ([Device("abacus", 4)], ""),
        ([Device("cpu", -1)], "batch_size"),
        ([Device("cpu", 4, capacity=3)], "capacity"),
        ([Device("cpu", 4, priority=float("nan"))], "priority"),
        ([Device("cpu", 4, runtime="torch")], "torch"),
        ([Device("cpu", 4), Device("cpu", 4)], "device"),
        ([Device("cuda:1", 4), Device("cuda:1", 8)], "device"),
        (["cpu"], "devices"),
        ([Device("cpu", 4.5)], "batch_size"),  # type: ignore[arg-type]
        ([Device("cpu", 2**63)], "batch_size"),
    ],
)
def test_what_does_not_fit_is_refused(devices: Any, subject: str) -> None:
    with pytest.raises(FatalError) as told:
        Scheduler(devices)
    assert told.value.subject == subject or not subject


def test_a_batch_size_belongs_to_a_device() -> None:
    with pytest.raises(FatalError, match="give each Device its own"):
        Scheduler(SEVERAL, 512)
    with pytest.raises(FatalError, match="give each Device its own"):
        Scheduler(SEVERAL, runtime="builtin")


def test_a_process_keeps_the_device_of_its_rank() -> None:
    devices = [Device("cuda:0", 8), Device("cuda:1", 8)]
    kept = [Scheduler(devices).keep_rank(rank, 4).devices for rank in range(4)]
    assert [[device.device for device in each] for each in kept] == [["cuda:0"], ["cuda:1"]] * 2
    scheduler = Scheduler(devices)
    assert scheduler.keep_rank(1, 2) is scheduler
    assert len(scheduler.devices) == 1


@pytest.mark.parametrize(("rank", "size"), [(0, 1), (2, 2), (-1, 2), (0, 0)])
def test_a_rank_that_cannot_be_is_refused(rank: int, size: int) -> None:
    scheduler = Scheduler(SEVERAL)
    with pytest.raises(FatalError):
        scheduler.keep_rank(rank, size)
    assert len(scheduler.devices) == 2


def test_a_closed_scheduler_says_so() -> None:
    with Scheduler("cpu", 4) as scheduler:
        assert not scheduler.closed
    assert repr(scheduler) == "<Scheduler, closed>"
    for use in (lambda: scheduler.devices, lambda: scheduler.keep_rank(0, 1)):
        with pytest.raises(FatalError, match="this Scheduler is closed"):
            use()


# ------------------------------------------------------------------------------------------------
# Models that have one
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [0, 1, 4, 9, 10, 11])
def test_results_do_not_depend_on_the_sub_batches(artifacts: Artifacts, batch_size: int) -> None:
    plain = Model(artifacts["combined_hardening"])
    expected = plain.forward(step(plain))
    model = Model(artifacts["combined_hardening"], scheduler=Scheduler("cpu", batch_size))
    for count in (1, 2, 3):  # the later ones are repeated calls
        found = model.forward(step(model))
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)
        assert model.points_evaluated == (count * N,)
    assert plain.points_evaluated == ()


def test_a_bound_call_spreads_its_points(artifacts: Artifacts) -> None:
    plain, model = Model(artifacts["combined_hardening"]), in_fours(artifacts)
    expected = plain.forward(step(plain))
    call = model.bind(step(model), report=True)
    for _ in range(3):
        np.testing.assert_array_equal(call()["stress"], expected["stress"])
    assert model.points_evaluated == (3 * N,)


def test_parameters_and_options_are_those_of_all_devices(artifacts: Artifacts) -> None:
    plain = Model(artifacts["elasticity_parameters"])
    model = Model(artifacts["elasticity_parameters"], scheduler=Scheduler("cpu", 3))
    for value in (1e5, 1e5 * (1 + POINTS)):
        for each in (plain, model):
            each.set_parameter("E", value)
        expected, found = (each.jacobian({"strain": STRAIN}) for each in (plain, model))
        np.testing.assert_array_equal(found[0]["stress"], expected[0]["stress"])
        np.testing.assert_array_equal(found[1]["stress"]["strain"], expected[1]["stress"]["strain"])
        before, after = (
            each.param_vjp({"strain": STRAIN}, {"stress": STRAIN})["elasticity.E"]
            for each in (plain, model)
        )
        np.testing.assert_array_equal(after, before)
        assert np.shape(after) == np.shape(value)
    model.named_parameters()["E"][...] = 0.0
    assert not model.forward({"strain": STRAIN})["stress"].any()
    model.options["chunk"] = 2
    assert model.options["chunk"] == 2


def test_a_model_has_a_copy_of_its_scheduler(artifacts: Artifacts) -> None:
    scheduler = Scheduler([Device("cpu", 4)])
    model = Model(artifacts["elasticity"], scheduler=scheduler)
    scheduler.close()
    assert model.scheduler is not None
    assert model.scheduler.devices == (Device("cpu", 4, 8),)
    assert Model(artifacts["elasticity"]).scheduler is None
    assert model.forward({"strain": STRAIN})["stress"].shape == (N, 6)


@by_duplicate
def test_a_copy_of_a_model_has_the_same_devices(
    artifacts: Artifacts, duplicate: Callable[[Any], Any]
) -> None:
    model = Model(artifacts["combined_hardening"], scheduler=Scheduler("cpu", 4, runtime="builtin"))
    model.options["miters"] = 50
    other = duplicate(model)
    assert other.scheduler.devices == (Device("cpu", 4, 8, runtime="builtin"),)
    assert other.options["miters"] == 50
    assert other.points_evaluated == (0,)
    expected = model.forward(step(model))["stress"]
    np.testing.assert_array_equal(other.forward(step(other))["stress"], expected)
    assert other.points_evaluated == (N,)


def test_a_stub_is_loaded_with_a_scheduler(artifacts: Artifacts) -> None:
    stub = artifacts["elasticity"].with_name("elasticity_aoti.i")
    expected = Model(artifacts["elasticity"]).forward({"strain": STRAIN})["stress"]
    model = load_model(stub, "elasticity", scheduler=Scheduler("cpu", 4))
    np.testing.assert_array_equal(model(STRAIN)[0], expected)
    assert model.model.points_evaluated == (N,)
    other = Model.from_stub(stub, "elasticity", scheduler=Scheduler("cpu", 4))
    assert other.scheduler is not None


def test_torch_has_schedulers_too(artifacts: Artifacts) -> None:
    torch = pytest.importorskip("torch")
    import neml2_capi.torch

    gradients = []
    for scheduler in (None, Scheduler("cpu", 4)):
        root = artifacts["combined_hardening"]
        module = neml2_capi.torch.Module(root, parameters=[], scheduler=scheduler)
        values = step(module.model).items()
        inputs = {name: torch.as_tensor(value, dtype=torch.float64) for name, value in values}
        strain = inputs["strain"].requires_grad_()
        module(inputs)["stress"].square().sum().backward()
        gradients.append(strain.grad)
    assert torch.equal(*gradients)
    assert module.model.points_evaluated[0] >= N
    model = neml2_capi.torch.Model(artifacts["elasticity"], scheduler=Scheduler("cpu", 4))
    assert isinstance(model.forward({"strain": STRAIN})["stress"], torch.Tensor)
    stub = artifacts["elasticity"].with_name("elasticity_aoti.i")
    loaded = neml2_capi.torch.load_model(stub, "elasticity", scheduler=Scheduler("cpu", 4))
    assert loaded.model.scheduler is not None


def test_a_driver_runs_a_model_with_a_scheduler(artifacts: Artifacts) -> None:
    times = np.linspace(0, 2, 5)
    forces = {"strain": times[:, np.newaxis, np.newaxis] * STRAIN}
    expected = drive(Model(artifacts["combined_hardening"]), times, forces)
    found = drive(in_fours(artifacts), times, forces)
    np.testing.assert_array_equal(found["stress"], expected["stress"])


@pytest.mark.parametrize(
    ("arguments", "subject", "told"),
    [
        ({"device": "cpu"}, "device", "leave device out"),
        ({"runtime": "builtin"}, "runtime", "leave runtime out"),
        ({"engine": "python"}, "scheduler", "without engine='python'"),
        ({"scheduler": "cpu"}, "scheduler", r"expected a neml2_capi\.Scheduler; got 'cpu'"),
        ({"scheduler": Scheduler([])}, "scheduler", "no devices"),
        ({"scheduler": Scheduler([Device("cpu"), Device("cuda:0", 4)])}, "batch_size", "cpu"),
        ({"scheduler": Scheduler("cuda:7", 4)}, "", "cuda"),
    ],
)
def test_a_model_that_cannot_be_is_refused(
    artifacts: Artifacts, arguments: dict[str, Any], subject: str, told: str
) -> None:
    with pytest.raises(FatalError, match=told) as refused:
        Model(artifacts["combined_hardening"], **{"scheduler": Scheduler("cpu", 4), **arguments})
    assert refused.value.subject == subject or not subject


# ------------------------------------------------------------------------------------------------
# What fails
# ------------------------------------------------------------------------------------------------


def failing(model: Model, way: str, bad: Any) -> Callable[[], Any]:
    """An evaluation in which points fail, to be called."""
    inputs = step(model, bad)
    if way == "bind":
        return model.bind(inputs, report=True)
    return lambda: getattr(model, way)(inputs)


@pytest.mark.parametrize("way", ["forward", "jacobian", "bind"])
def test_points_that_fail_in_several_sub_batches_are_an_error_of_both_kinds(
    artifacts: Artifacts, way: str
) -> None:
    model = in_fours(artifacts)
    with pytest.raises(ConvergenceError) as told:
        failing(model, way, [1, 6, 7])()
    error = told.value
    assert isinstance(error, AggregateError)
    assert error.recoverable
    assert "3 of 10" in str(error)
    assert error.converged_mask.tolist() == [p not in (1, 6, 7) for p in range(N)]
    assert (error.report["status"] > 0).tolist() == (~error.converged_mask).tolist()
    good = Model(artifacts["combined_hardening"]).forward(step(model))["stress"]
    where = error.converged_mask
    np.testing.assert_array_equal(error.outputs["stress"][where], good[where])
    assert [type(one) for one in error.errors] == [ConvergenceError] * 2
    assert "points 0 to 3" in str(error.errors[0])
    assert "points 4 to 7" in str(error.errors[1])
    assert error.errors[0].status == error.report["status"][1]  # type: ignore[attr-defined]


def test_points_that_fail_in_one_sub_batch_are_a_convergence_error(artifacts: Artifacts) -> None:
    model = in_fours(artifacts)
    with pytest.raises(ConvergenceError) as told:
        model.forward(step(model, [4, 7]))
    assert type(told.value) is ConvergenceError
    assert model.forward(step(model))["stress"].shape == (N, 6)


def test_an_error_of_both_kinds_travels_between_processes(artifacts: Artifacts) -> None:
    model = in_fours(artifacts)
    with pytest.raises(ConvergenceError) as told:
        model.forward(step(model, [1, 7]))
    sent = told.value
    assert isinstance(sent, AggregateError)
    received = pickle.loads(pickle.dumps(sent))
    assert type(received) is type(sent)
    assert str(received) == str(sent)
    assert [str(one) for one in received.errors] == [str(one) for one in sent.errors]
    assert received.recoverable
    np.testing.assert_array_equal(received.converged_mask, sent.converged_mask)


def test_a_driver_cuts_a_step_that_failed_in_several_sub_batches(artifacts: Artifacts) -> None:
    plain, model = Model(artifacts["combined_hardening"]), in_fours(artifacts)
    forces = {"strain": np.array([0.0, 3.0])[:, np.newaxis, np.newaxis] * STRAIN}
    found = []
    for each in (plain, model):
        each.options["miters"] = 5
        found.append(drive(each, [0.0, 3.0], forces))
    assert found[0]["substeps"].sum() > 1
    np.testing.assert_array_equal(found[1]["stress"], found[0]["stress"])


@pytest.mark.filterwarnings("ignore:Warning only once")
def test_devices_that_fail_side_by_side_are_one_fatal_error(packages: Path, register: Any) -> None:
    """The built-in runtime calls one function, and libtorch another of the same name."""
    torch = pytest.importorskip("torch")
    fails, together = threading.Event(), threading.Barrier(2, timeout=PATIENCE)

    def ours(x: NDArray[Any], *numbers: Any) -> NDArray[Any]:
        if fails.is_set():
            together.wait()
            raise ValueError("ours on purpose")
        return curve(x, *numbers)

    def theirs(x: Any, limit: float, rate: float) -> Any:
        if fails.is_set():
            together.wait()
            raise ValueError("theirs on purpose")
        return limit * (1 - torch.exp(-rate * x))

    register(CURVE, ours)
    # In this scope only: other tests of the process want libtorch without it.
    with torch.library._scoped_library(LIBRARY, "FRAGMENT") as library:
        library.define(CURVE.partition("::")[2])
        library.impl("curve", theirs, "CPU")
        neml2_capi._ffi.library.lib.neml2_operator_declare(CURVE.encode())
        devices = [Device("cpu", 50, 50, runtime=name) for name in ("builtin", "libtorch")]
        model = Model(packages / "hardening", scheduler=Scheduler(devices))
        strain = np.linspace(0, 0.1, 100)
        expected = curve(strain, 100.0, 50.0)
        np.testing.assert_allclose(
            model.forward({"strain": strain})["stress"], expected, rtol=1e-14
        )
        fails.set()
        with pytest.raises(FatalError) as told:
            model.forward({"strain": strain})
        fails.clear()
        np.testing.assert_allclose(
            model.forward({"strain": strain})["stress"], expected, rtol=1e-14
        )
    error = told.value
    assert isinstance(error, AggregateError)
    assert not error.recoverable
    assert [type(one) for one in error.errors] == [FatalError] * 2
    assert {word for word in ("ours", "theirs") if word in str(error)} == {"ours", "theirs"}
    assert str(error.__cause__) == "ours on purpose"
    received = pickle.loads(pickle.dumps(error))
    assert (type(received), str(received), received.status) == (
        type(error),
        str(error),
        error.status,
    )


# ------------------------------------------------------------------------------------------------
# Files
# ------------------------------------------------------------------------------------------------

TABLES = """
[[scheduler.devices]]
device = "cpu"
batch_size = 512

[[scheduler.devices]]
device = "cuda:0"
batch_size = 4096
capacity = 8192
priority = 2

[run.one]
device = "cpu"
runtime = "builtin"
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")

    def written(text: str) -> Path:
        file = tmp_path / "scheduler.toml"
        file.write_text(text)
        return file

    return written


def test_a_file_has_schedulers(write: Callable[[str], Path]) -> None:
    file = write(TABLES)
    assert Scheduler.from_toml(file).devices == Scheduler(SEVERAL).devices
    assert Scheduler.from_toml(str(file), "run.one").devices == (Device("cpu", runtime="builtin"),)


@pytest.mark.parametrize(
    ("text", "key", "told"),
    [
        ("", "", "'scheduler' is missing"),
        ("scheduler = 1", "scheduler", "expected a table"),
        ("[scheduler]", "scheduler", "'device' is missing"),
        ("[scheduler]\ndevices = []", "scheduler.devices", "expected a list of tables"),
        ("[scheduler]\ndevices = ['cpu']", "scheduler.devices", "expected a list of tables"),
        ("[scheduler]\ndevice = 1", "scheduler.device", 'expected "cpu"'),
        ("[scheduler]\ndevice = 'cpu'\nbatch = 1", "scheduler.batch", "did you mean 'batch_size'"),
        ("[scheduler]\ndevice = 'cpu'\nbatch_size = 1.5", "scheduler.batch_size", "1 at least"),
        ("[scheduler]\ndevice = 'cpu'\npriority = '2'", "scheduler.priority", "expected a number"),
        (
            "[[scheduler.devices]]\ndevice = 'cpu'\n"
            "[[scheduler.devices]]\ndevice = 'cuda'\nbatch_size = 8\ncapacity = 4",
            "scheduler.devices[1].capacity",
            "at least the batch size 8",
        ),
        ("[scheduler]\ndevice = 'abacus'", "scheduler", "abacus"),
        ("[scheduler", "", "this is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_by_its_key(
    write: Callable[[str], Path], text: str, key: str, told: str
) -> None:
    file = write(text)
    with pytest.raises(FatalError) as refused:
        Scheduler.from_toml(file)
    assert str(refused.value).startswith(f"{file}: {key}" if key else f"{file}: ")
    assert told in str(refused.value)
    assert refused.value.subject.startswith(key)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    with pytest.raises(FatalError, match=r"nothing\.toml: No such file") as refused:
        Scheduler.from_toml(tmp_path / "nothing.toml")
    assert refused.value.status == neml2_capi._ffi.library.lib.NEML2_ERROR_FILE
