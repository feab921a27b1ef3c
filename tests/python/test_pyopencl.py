"""Arrays of pyopencl, which stay where they are: Model's functions and calls over them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opencl_queue import devices
from states import Array
from test_opencl import cache_of_pocl, caches, hooke, strains, with_text  # noqa: F401

from neml2_capi import ConvergenceError, FatalError, Model, drive, examples

cl = pytest.importorskip("pyopencl")
arrays = pytest.importorskip("pyopencl.array")
pytest.importorskip("pyopencl.tools")

pytestmark = pytest.mark.numbers

POINTS = 50
E = 2.0


@pytest.fixture
def device() -> Any:
    """A device that pyopencl and the library both see; pyopencl brings a loader of its own."""
    known = devices()
    for platform in cl.get_platforms():
        for device in platform.get_devices():
            if device.int_ptr in known:
                return device
    pytest.skip("pyopencl and the library have no device in common")


@pytest.fixture
def model(device: Any, tmp_path: Path) -> Model:
    index = devices().index(device.int_ptr)
    model = Model(with_text(tmp_path / "artifact"), device=f"opencl:{index}")
    model["E"] = E
    return model


@pytest.fixture
def queue(device: Any) -> Iterator[Any]:
    context = cl.Context([device])  # kept: a queue does not everywhere
    yield cl.CommandQueue(context)


def expected(strain: Array, modulus: float = E) -> Array:
    return hooke(strain, np.full(len(strain), modulus))


def test_functions_of_a_model_return_arrays_of_the_device(model: Model, queue: Any) -> None:
    strain = strains(POINTS)
    there = arrays.to_device(queue, strain)
    stress = model.forward({"strain": there})["stress"]
    assert isinstance(stress, arrays.Array)
    np.testing.assert_array_equal(stress.get(), model.forward({"strain": strain})["stress"])
    outputs, blocks = model.jacobian({"strain": there}, {"E": 3.0})
    np.testing.assert_allclose(outputs["stress"].get(), expected(strain, 3.0), rtol=1e-14)
    on_host = model.jacobian({"strain": strain}, {"E": 3.0})[1]["stress"]["strain"]
    np.testing.assert_array_equal(blocks["stress"]["strain"].get(), on_host)
    along = model.jvp({"strain": there}, {"strain": there})[1]["stress"]
    np.testing.assert_allclose(along.get(), expected(strain), rtol=1e-13)
    back = model.vjp({"strain": there}, {"stress": there})[1]["strain"]
    np.testing.assert_allclose(back.get(), expected(strain), rtol=1e-13)


@pytest.mark.parametrize("columns", [False, True])
def test_the_gradient_of_one_value_is_the_sum_over_the_points(
    model: Model, queue: Any, columns: bool
) -> None:
    weights, moduli = strains(POINTS), np.linspace(1, 3, POINTS)
    strain = {"strain": arrays.to_device(queue, strains(1)[0])}
    back = arrays.to_device(queue, np.ascontiguousarray(weights.T if columns else weights))
    found = model.vjp(
        strain,
        {"stress": back.T if columns else back},
        {"E": arrays.to_device(queue, moduli)},
    )[1]["strain"]
    assert found.shape == (6,)
    np.testing.assert_allclose(found.get(), hooke(weights, moduli).sum(axis=0), rtol=1e-12)


def test_columns_lead_to_columns(model: Model, queue: Any) -> None:
    strain = strains(POINTS)
    there = arrays.to_device(queue, np.ascontiguousarray(strain.T)).T
    call = model.bind({"strain": there}, derivatives=True, parameters={"E": 3.0}, report=True)
    call()
    stress, block = call.outputs["stress"], call.derivatives["stress"]["strain"]
    assert stress.strides == there.strides
    np.testing.assert_allclose(stress.get(), expected(strain, 3.0), rtol=1e-14)
    columns = block.transpose((1, 2, 0)).get()
    assert (columns == columns[..., :1]).all()
    np.testing.assert_allclose(columns[..., 0], expected(np.eye(6), 3.0), rtol=1e-14)
    assert call.report["iterations"].get().tolist() == [3] * POINTS


@pytest.mark.parametrize("shared", [False, True])
def test_steps_stand_in_one_array(model: Model, queue: Any, shared: bool) -> None:
    """Arrays that begin within a buffer, at a multiple of what the device takes, or anywhere."""
    points = POINTS if shared else queue.device.mem_base_addr_align  # 48 bytes each
    steps = strains(3 * points).reshape(3, points, 6)
    allocator = cl.tools.SVMAllocator(queue.context, queue=queue) if shared else None
    there = arrays.to_device(queue, steps, allocator)
    made = arrays.zeros(queue, steps.shape, float, allocator=allocator)
    for step in range(3):
        call = model.bind({"strain": there[step]}, {"stress": made[step]})
        gc.collect()
        call()
    for strain, stress in zip(steps, made.get(), strict=True):
        np.testing.assert_allclose(stress, expected(strain), rtol=1e-14)


def test_a_call_is_put_into_the_queue(model: Model, queue: Any) -> None:
    there = arrays.to_device(queue, strains(POINTS))
    call = model.bind({"strain": there})
    gate = cl.UserEvent(queue.context)
    cl.enqueue_barrier(queue, wait_for=[gate])
    assert call.run() == 0
    there += 1.0  # behind it
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert call.wait() == 0
    stress = call.outputs["stress"].get()
    np.testing.assert_allclose(stress, expected(strains(POINTS)), rtol=1e-14)


def test_points_that_failed_are_told(model: Model, queue: Any) -> None:
    strain = strains(5)
    strain[2, 0] = np.nan
    with pytest.raises(ConvergenceError, match="1 of 5 points did not converge") as caught:
        model.forward({"strain": arrays.to_device(queue, strain)})
    assert str(caught.value).endswith("Reduce the step, or raise miters.")
    assert caught.value.converged_mask.tolist() == [True, True, False, True, True]
    stress = caught.value.outputs["stress"].get()
    assert np.isnan(stress[2]).all()
    assert np.isfinite(stress[[0, 1, 3, 4]]).all()
    report = model.evaluate({"strain": arrays.to_device(queue, strain)})[1]
    assert report["status"].get().tolist() == [0, 0, 2, 0, 0]


def test_gradients_beside_points_that_failed_have_the_shapes_of_other_ones(
    model: Model, queue: Any
) -> None:
    """One of a value for all points is summed, and no number as soon as a point has none."""
    strain = strains(5)
    strain[2, 0] = np.nan
    single, back = arrays.to_device(queue, strain[2]), arrays.to_device(queue, strain)
    with pytest.raises(ConvergenceError) as caught:
        model.vjp({"strain": single}, {"stress": back})
    assert caught.value.derivatives is not None
    assert np.isnan(caught.value.derivatives["strain"].get()).tolist() == [True] * 6
    with pytest.raises(ConvergenceError) as caught:
        model.jacobian({"strain": back})
    assert caught.value.derivatives is not None
    assert caught.value.derivatives["stress"]["strain"].shape == (5, 6, 6)
    with pytest.raises(ConvergenceError) as caught:
        model.forward({"strain": back})
    assert caught.value.derivatives is None


def test_what_does_not_fit_is_refused(model: Model, queue: Any) -> None:
    there = arrays.to_device(queue, strains(4))
    with pytest.raises(FatalError, match="is not where the other arrays are"):
        model.bind({"strain": there}, {"stress": np.zeros((4, 6))})
    other = cl.CommandQueue(queue.context)
    with pytest.raises(FatalError, match="is not where the other arrays are"):
        model.bind({"strain": there}, {"stress": arrays.zeros(other, (4, 6), float)})
    with pytest.raises(FatalError, match=r"begins 48 bytes behind .* a multiple of"):
        model.bind({"strain": there[1:]})
    with pytest.raises(FatalError, match="must be float64; got float32"):
        model.bind({"strain": there.astype(np.float32)})
    no_mapping: Any = [there]
    with pytest.raises(FatalError, match="inputs must be a mapping"):
        model.forward(no_mapping)


def test_a_history_is_of_arrays_of_the_host(queue: Any) -> None:
    law, times = Model(examples.path("isotropic_hardening")), np.linspace(0, 1, 3)
    forces = {"strain": np.linspace(0, 1e-3, 3)[:, None] * np.ones(6)}
    there = arrays.to_device(queue, forces["strain"])
    moduli = {"E": arrays.to_device(queue, np.array([2e5, 1e5]))}
    for given in (
        {"times": arrays.to_device(queue, times), "forces": forces},
        {"times": times, "forces": {"strain": there}},
        {"times": times, "forces": forces, "parameters": moduli},
    ):
        with pytest.raises(FatalError, match=r"is on a device of OpenCL: pass its values"):
            drive(law, **given)


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_arrays_that_overlap_are_refused(model: Model, queue: Any, layout: str) -> None:
    points = 64  # parts of a buffer begin at multiples of some bytes
    strain = strains(points)
    rows = layout == "rows"
    whole = arrays.zeros(queue, (2 * points, 6) if rows else (12, points), float)

    def part(first: int) -> Any:
        """Six numbers of each point, from a quarter of the memory on."""
        if rows:
            begin = first * points // 2
            return whole[begin : begin + points]
        return whole[3 * first : 3 * first + 6].T

    part(0).set(strain) if rows else whole[:6].set(strain.T.copy())
    for first in (1, 0, 2):
        call = model.bind({"strain": part(0)}, {"stress": part(first)})
        if first == 1:
            with pytest.raises(FatalError, match="'stress' overlaps the array of the input 'str"):
                call.run()
        else:  # in place, and behind it
            call.run()
            assert call.wait() == 0
            np.testing.assert_allclose(part(first).get(), expected(strain), rtol=1e-14)
            part(0).set(strain) if rows else whole[:6].set(strain.T.copy())


def test_two_results_in_one_array_are_refused(model: Model, queue: Any) -> None:
    strain, blocks = strains(POINTS), arrays.zeros(queue, (POINTS, 6, 6), float)
    call = model.bind(
        {"strain": arrays.to_device(queue, strain)},
        {"stress": blocks[:, 0]},
        derivatives={"stress": {"strain": blocks}},
    )
    with pytest.raises(FatalError, match="'stress:strain' overlaps the array of the output"):
        call.run()


def test_no_points(model: Model, queue: Any) -> None:
    none = arrays.zeros(queue, (0, 6), float)
    assert model.forward({"strain": none})["stress"].shape == (0, 6)


def test_rows_beside_columns_are_told(model: Model, queue: Any) -> None:
    columns = arrays.to_device(queue, strains(POINTS).T.copy()).T
    with pytest.raises(FatalError, match=r"'stress' has values 1 elements apart.*lie 50 apart"):
        model.bind({"strain": columns}, {"stress": arrays.zeros(queue, (POINTS, 6), float)})


@pytest.mark.parametrize(
    "view",
    [{"material_axes": True}, {"strain_measure": "logarithmic"}, {"hypothesis": "plane_strain"}],
    ids=str,
)
def test_a_view_takes_arrays_of_the_host(
    device: Any, tmp_path: Path, queue: Any, view: dict[str, Any]
) -> None:
    """The device read and wrote beyond the arrays, whose rows are the view's."""
    index = devices().index(device.int_ptr)
    viewed = Model(with_text(tmp_path / "artifact"), device=f"opencl:{index}", **view)
    given = {v.name: np.zeros((POINTS, *v.point_shape)) for v in viewed.inputs}
    given |= {name: given[name] + np.eye(3) for name in given if given[name].shape[1:] == (3, 3)}
    there = {name: arrays.to_device(queue, value) for name, value in given.items()}
    with pytest.raises(FatalError, match="give it arrays of the host"):
        viewed.forward(there)
    for stress in viewed.forward(given).values():
        np.testing.assert_array_equal(stress, 0)
