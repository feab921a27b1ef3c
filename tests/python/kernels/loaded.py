"""A shared object of kernels, called from Python: for tests and measurements, not for speed."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi.kernels.folder import KernelError
from neml2_capi.kernels.verify import without_auxiliaries

_VERSIONS = (1, 2)


class _Array(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("components", ctypes.c_int32),
        ("use", ctypes.c_int32),
        ("changes", ctypes.c_int32),
        ("part_count", ctypes.c_int32),
        ("parts", ctypes.c_void_p),
        ("structure", ctypes.c_void_p),
    )


class _Sparse(ctypes.Structure):
    _fields_ = (
        ("output", ctypes.c_int32),
        ("size", ctypes.c_int32),
        ("places", ctypes.POINTER(ctypes.c_int32)),
    )


_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_PREPARE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_RUN_ROWS = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
)


class _Kernel(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("checksum", ctypes.c_char_p),
        ("real_size", ctypes.c_int32),
        ("lanes", ctypes.c_int32),
        ("input_count", ctypes.c_int32),
        ("output_count", ctypes.c_int32),
        ("inputs", ctypes.POINTER(_Array)),
        ("outputs", ctypes.POINTER(_Array)),
        ("operations", ctypes.c_int32),
        ("kept", ctypes.c_int32),
        ("prepare", _PREPARE),
        ("run", _RUN),
        ("sparse_count", ctypes.c_int32),
        ("sparse", ctypes.POINTER(_Sparse)),
        ("auxiliaries", ctypes.c_int32),
        ("run_one", _RUN),
        ("sites", ctypes.c_int32),
        ("run_rows", _RUN_ROWS),
    )


class _Set(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("model", ctypes.c_char_p),
        ("count", ctypes.c_int32),
        ("kernels", ctypes.POINTER(ctypes.POINTER(_Kernel))),
    )


class Kernel:
    """One kernel of a loaded object."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self.name: str = kernel.name.decode()
        self.checksum: str = kernel.checksum.decode()
        self.lanes: int = kernel.lanes
        self.operations: int = kernel.operations
        self.kept: int = kernel.kept
        self.auxiliaries: int = kernel.auxiliaries if kernel.version > 1 else 0
        self.dtype = np.dtype(np.float64 if kernel.real_size == 8 else np.float32)
        self.inputs = [_described(kernel.inputs[i]) for i in range(kernel.input_count)]
        self.outputs = [_described(kernel.outputs[i]) for i in range(kernel.output_count)]
        #: By output that is stored sparsely: its components, and the places of the stored ones.
        self.sparse: dict[int, tuple[int, list[int]]] = {}
        for entry in kernel.sparse[: kernel.sparse_count] if kernel.version > 1 else ():
            stored = self.outputs[entry.output][1]
            self.sparse[entry.output] = entry.size, entry.places[:stored]
        #: How many sites of one point go side by side.
        self.sites: int = kernel.sites if kernel.size > _Kernel.sites.offset else 0

    def __call__(self, *inputs: Any, one: bool = False) -> list[NDArray[Any]]:
        """The outputs, (points, components) each, of inputs of this shape or (components,).

        `one`: by the function for a block whose lanes hold the same point.
        """
        if len(inputs) != len(self.inputs):
            raise KernelError(
                f"{self.name} takes {len(self.inputs)} inputs, {len(inputs)} were given"
            )
        arrays = [np.atleast_1d(np.asarray(x, dtype=self.dtype)) for x in inputs]
        points = max(len(x) if x.ndim > 1 else 1 for x in arrays)
        rows = [
            np.broadcast_to(x, (points, components))
            for x, (_, components) in zip(arrays, self.inputs, strict=True)
        ]
        blocks = max(-(-points // self.lanes), 1)
        results = [np.empty((blocks * self.lanes, c), dtype=self.dtype) for _, c in self.outputs]
        given = [self._aligned(components) for _, components in self.inputs]
        made = [self._aligned(components) for _, components in self.outputs]
        call = self.call(given, made, one)
        for block in range(blocks):
            here = slice(block * self.lanes, (block + 1) * self.lanes)
            for scratch, values in zip(given, rows, strict=True):
                lanes = values[here].T
                scratch[:, : lanes.shape[1]] = lanes
                scratch[:, lanes.shape[1] :] = lanes[:, -1:]
            call()
            for values, scratch in zip(results, made, strict=True):
                values[here] = scratch.T
        return [self._whole(i, values[:points]) for i, values in enumerate(results)]

    def on_rows(self, *inputs: NDArray[Any]) -> tuple[int, list[NDArray[Any]]]:
        """How many blocks are done, and the outputs, of arrays (points, components).

        An array of one row holds for all points. Outputs are NaN before.
        """
        points = max(len(x) for x in inputs)
        made = [np.full((points, c), np.nan) for _, c in self.outputs]
        strides = [0 if len(x) < points else x.strides[0] // x.itemsize for x in inputs]
        given = (ctypes.c_void_p * len(inputs))(*(x.ctypes.data for x in inputs))
        results = (ctypes.c_void_p * len(made))(*(x.ctypes.data for x in made))
        apart = (ctypes.c_int64 * len(inputs))(*strides)
        places = [ctypes.addressof(array) for array in (given, apart, results)]
        return self._kernel.run_rows(*places, points // self.lanes), made

    def as_package(self, *inputs: Any) -> list[NDArray[Any]]:
        """The same as a package returns it: a Jacobian of one group without auxiliary unknowns."""
        made = self(*inputs)
        if not self.auxiliaries:
            return made
        block, residual, *slopes = (values.T for values in made)
        jacobian = block.reshape(len(residual), -1, residual.shape[1])
        whole = without_auxiliaries(jacobian, *slopes)
        return [whole.reshape(block.shape).T, residual.T]

    def _whole(self, output: int, values: NDArray[Any]) -> NDArray[Any]:
        """All components of an output, with zeros where nothing is stored."""
        if output not in self.sparse:
            return values
        size, places = self.sparse[output]
        whole = np.zeros((len(values), size), dtype=self.dtype)
        whole[:, places] = values
        return whole

    def call(
        self, given: Sequence[NDArray[Any]], made: Sequence[NDArray[Any]], one: bool = False
    ) -> Any:
        """A function of no arguments that prepares and runs the kernel on scratch, one block."""
        kept = self._aligned(max(self.kept, 1))
        inputs = (ctypes.c_void_p * max(len(given), 1))(*(x.ctypes.data for x in given))
        outputs = (ctypes.c_void_p * max(len(made), 1))(*(x.ctypes.data for x in made))
        prepare, run = self._kernel.prepare, self._kernel.run_one if one else self._kernel.run

        def called(prepared: bool = True, owners: Any = (given, made, kept)) -> None:
            if prepare and prepared:
                prepare(ctypes.addressof(inputs), kept.ctypes.data)
            run(ctypes.addressof(inputs), ctypes.addressof(outputs), kept.ctypes.data)

        return called

    def _aligned(self, components: int) -> NDArray[Any]:
        """Scratch (components, lanes), aligned for vectors."""
        size = components * self.lanes * self.dtype.itemsize
        memory = np.zeros(size + 128, dtype=np.uint8)
        start = -memory.ctypes.data % 128
        return memory[start : start + size].view(self.dtype).reshape(components, self.lanes)


def load(path: Path) -> dict[str, Kernel]:
    """The kernels of a shared object, by their names. The object stays loaded.

    KernelError if it is no object of kernels, or of another version.
    """
    try:
        function = ctypes.CDLL(str(path)).neml2_kernels
    except (OSError, AttributeError) as error:
        raise KernelError(f"{path} is no object of kernels: {error}; build it again") from error
    function.restype = ctypes.POINTER(_Set)
    found = function().contents
    if found.version not in _VERSIONS:
        raise KernelError(
            f"{path} is of version {found.version}, expected at most {_VERSIONS[-1]}; build it "
            "again"
        )
    kernels = [Kernel(found.kernels[i].contents) for i in range(found.count)]
    return {kernel.name: kernel for kernel in kernels}


def _described(array: Any) -> tuple[str, int]:
    return array.name.decode(), array.components
