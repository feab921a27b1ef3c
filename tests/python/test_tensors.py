"""Tensors: whose memory they use, who keeps it alive, and what is refused."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

from neml2_capi import FatalError, Tensor

NUMPY_TYPES = ["float64", "float32", "int64", "int32", "int16", "int8", "uint8", "bool", "float16"]


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
def test_a_numpy_array_is_used_where_it_is(dtype: str) -> None:
    array = np.zeros((2, 3), dtype)
    tensor = Tensor(array)
    assert (tensor.shape, tensor.strides, tensor.dtype) == ((2, 3), (3, 1), dtype)
    assert tensor.numpy().dtype == dtype
    array[1, 2] = 1
    assert tensor.numpy()[1, 2] == 1


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[:, ::2],
        lambda a: a[1:, 1],
        lambda a: np.broadcast_to(a[0], (5, 4)),
    ],
    ids=["transposed", "every other", "column", "broadcast"],
)
def test_strides_are_kept(view: Any) -> None:
    array = np.arange(12.0).reshape(3, 4)
    tensor = Tensor(view(array))
    assert tensor.strides == tuple(stride // 8 for stride in view(array).strides)
    np.testing.assert_array_equal(tensor.numpy(), view(array))
    assert np.shares_memory(tensor.numpy(), array)


def test_negative_strides_are_copied() -> None:
    array = np.arange(12.0).reshape(3, 4)
    tensor = Tensor(array[::-1, ::-2])
    np.testing.assert_array_equal(tensor.numpy(), array[::-1, ::-2])
    assert not np.shares_memory(tensor.numpy(), array)


@pytest.mark.parametrize("shape", [(), (0,), (0, 6), (3, 0, 2), (1, 1)])
def test_no_axes_and_empty_axes(shape: tuple[int, ...]) -> None:
    tensor = Tensor(np.ones(shape))
    assert tensor.shape == shape
    np.testing.assert_array_equal(tensor.numpy(), np.ones(shape))


def test_numbers_and_lists_become_float64() -> None:
    assert Tensor(3).numpy() == 3.0
    assert Tensor([[1, 2.5], (3, 4)]).numpy().tolist() == [[1, 2.5], [3, 4]]
    assert Tensor([1, 2]).dtype == "float64"


def test_any_dlpack_producer_is_taken() -> None:
    class Producer:
        array = np.arange(4.0)

        def __dlpack__(self, **request: Any) -> Any:
            return self.array.__dlpack__(**request)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    tensor = Tensor(Producer())
    assert np.shares_memory(tensor.numpy(), Producer.array)


@pytest.mark.parametrize("source", [np.arange(3.0), None], ids=["numpy", "library"])
def test_every_dlpack_consumer_can_take_it(source: Any) -> None:
    tensor = Tensor.zeros((3,)) if source is None else Tensor(source)
    tensor.numpy()[0] = 5
    assert np.shares_memory(np.from_dlpack(tensor), tensor.numpy())
    assert np.shares_memory(np.asarray(tensor), tensor.numpy())
    assert np.array(tensor)[0] == 5
    assert not np.shares_memory(np.array(tensor), tensor.numpy())


def test_read_only_memory_stays_read_only() -> None:
    array = np.ones(3)
    array.flags.writeable = False
    tensor = Tensor(array)
    assert not tensor.numpy().flags.writeable
    assert not np.asarray(tensor.share()).flags.writeable


def unaligned() -> Any:
    return np.frombuffer(bytes(17), np.uint8)[1:].view(np.float64)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.ones(2, ">f8"), "element type '>f8'.*native byte order"),
        (np.ones(2, complex), "element type '<c16'"),
        (np.zeros(2, [("a", "f8")]), "element type"),
        (np.zeros(2, [("a", "f8"), ("b", "f4")])["a"], "not aligned"),
        (unaligned(), "not aligned"),
        ("text", "element type '<U4'"),
        (object(), "element type '|O'"),
        ([1, [2, 3]], "cannot be made an array, from a list"),
        (["a"], "cannot be made an array, from a list"),
    ],
)
def test_what_cannot_be_a_tensor_is_refused_with_the_reason(value: Any, reason: str) -> None:
    with pytest.raises(FatalError, match=reason) as caught:
        Tensor(value)
    assert not caught.value.recoverable


def test_zeros_refuses_an_unknown_type_and_a_negative_size() -> None:
    with pytest.raises(FatalError, match="unknown element type 'double'; there are: float64"):
        Tensor.zeros((2,), "double")
    with pytest.raises(FatalError, match="-2"):
        Tensor.zeros((-2,))


def test_the_array_is_kept_alive_by_the_tensor_and_then_by_its_views() -> None:
    array = np.arange(3.0)
    alive = weakref.ref(array)
    tensor = Tensor(array)
    del array
    gc.collect()
    view = tensor.share().numpy()
    tensor.close()
    gc.collect()
    assert alive() is not None
    assert view.tolist() == [0, 1, 2]
    del view
    gc.collect()
    assert alive() is None


def test_memory_of_the_library_outlives_its_tensor() -> None:
    tensor = Tensor.zeros((1000, 1000))
    arrays = [tensor.numpy(), np.asarray(tensor), np.from_dlpack(tensor)]
    tensor.close()
    gc.collect()
    arrays[0][...] = 2
    assert all((array == 2).all() for array in arrays)


def test_a_shared_tensor_sees_writes_and_outlives_the_first() -> None:
    first = Tensor.zeros((3,))
    second = first.share()
    first.numpy()[1] = 4
    first.close()
    assert second.numpy().tolist() == [0, 4, 0]


def test_a_closed_tensor_says_so_and_can_be_closed_again() -> None:
    with Tensor([1.0]) as tensor:
        assert not tensor.closed
    tensor.close()
    assert tensor.closed
    assert repr(tensor) == "<Tensor, closed>"
    for use in (tensor.numpy, tensor.share, tensor.__enter__, lambda: tensor.shape):
        with pytest.raises(FatalError, match="this Tensor is closed"):
            use()


def test_tensors_that_are_left_at_the_exit_of_the_interpreter_do_no_harm() -> None:
    code = """
import atexit, numpy as np, neml2_capi
from neml2_capi import Tensor
array = np.ones(1000)
tensor, own = Tensor(array), Tensor.zeros((1000,))
view, foreign = own.numpy(), np.from_dlpack(own)
cycle = [own.share(), tensor.share()]
cycle.append(cycle)
atexit.register(lambda: view.fill(1) or tensor.numpy())
class Late:
    def __init__(self, tensor): self.tensor, self.view = tensor, tensor.numpy()
    def __del__(self): self.view.fill(3); self.tensor.close()
late = Late(own.share())
neml2_capi.keep = [own.share(), own.numpy(), late]
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
