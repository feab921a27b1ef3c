"""Evaluate a model through a `neml2_call`, as a finite-element host does, with its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi import Model
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib

Array = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]


def evaluate(model: Model, inputs: Mapping[str, Array]) -> tuple[Arrays, Arrays]:
    """Outputs by name, and the report: "status", "iterations" and "norms", the residual norm at the
    initial guess and after each Newton step, [point, iteration], NaN beyond."""
    points = len(inputs["t"])
    arrays: Arrays = {name: np.ascontiguousarray(value) for name, value in inputs.items()}
    outputs: Arrays = {
        variable.name: np.full((points, *variable.sub_batch_shape, *variable.base_shape), np.nan)
        for variable in model.outputs
    }
    report: Arrays = {
        "status": np.zeros(points, dtype=np.int32),
        "iterations": np.zeros(points, dtype=np.int32),
        "norms": np.zeros((points, int(model.options["miters"]))),
    }
    kinds = {
        "status": lib.NEML2_REPORT_STATUS,
        "iterations": lib.NEML2_REPORT_ITERATIONS,
        "norms": lib.NEML2_REPORT_RESIDUAL_HISTORY,
    }
    call = ffi.new("neml2_call **")
    check(lib.neml2_call_create(call, model._engine._open()[0]))
    try:
        for bind, values in (
            (lib.neml2_call_bind_input, arrays),
            (lib.neml2_call_bind_output, outputs),
        ):
            for name, array in values.items():
                data = ffi.cast("void *", array.ctypes.data)
                stride = array.strides[0] // array.itemsize
                check(bind(call[0], name.encode(), data, lib.NEML2_FLOAT64, stride))
        for name, array in report.items():
            data = ffi.cast("void *", array.ctypes.data)
            stride = array.strides[0] // array.itemsize
            check(lib.neml2_call_bind_report(call[0], kinds[name], data, stride))
        check(lib.neml2_call_run(call[0], points))
    finally:
        lib.neml2_call_free(call)
    return outputs, report
