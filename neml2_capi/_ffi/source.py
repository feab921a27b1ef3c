"""Structure that says what to open, with numbers for the names that users give."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from neml2_capi._ffi.dtypes import dtype_code
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.inspection import (
    HYPOTHESES,
    RUNTIMES,
    code_of,
    device_code,
    measure_codes,
    sized,
)
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.strings import c_string, require_path


def native_source(
    path: str | os.PathLike[str] | None = None,
    *,
    content: bytes | None = None,
    name: str | None = None,
    dtype: str | None = None,
    device: str | None = None,
    runtime: str = "auto",
    scheduler: Any = ffi.NULL,
    strain_measure: str | None = None,
    stress_measure: str | None = None,
    material_axes: bool = False,
    hypothesis: str = "tridimensional",
    strain: str | None = None,
    stress: str | None = None,
) -> Any:
    """A neml2_source; the texts and bytes that it points to live as long as it."""
    if path is not None:
        require_path(path)
    kind, index = (0, 0) if device is None else device_code(device)
    measure, of_stress = measure_codes(strain_measure, stress_measure)
    if not isinstance(material_axes, bool | np.bool_):
        raise FatalError(
            f"material_axes must be True or False; got a {type(material_axes).__name__}: the axes "
            "themselves are an input of the model, for each evaluation",
            lib.NEML2_ERROR_ARGUMENT,
            "material_axes",
        )
    return sized(
        "neml2_source",
        path=_text(path),
        name=_text(name),
        content=ffi.NULL if content is None else ffi.from_buffer(content),
        content_size=0 if content is None else len(content),
        scheduler=scheduler,
        dtype=0 if dtype is None else dtype_code(dtype),
        device=kind,
        device_index=index,
        runtime=code_of("runtime", runtime, RUNTIMES),
        strain=_text(strain),
        stress=_text(stress),
        strain_measure=measure,
        stress_measure=of_stress,
        material_axes=int(material_axes),
        hypothesis=code_of("hypothesis", hypothesis, HYPOTHESES),
    )


def _text(value: str | os.PathLike[str] | None) -> Any:
    """A text that a structure can point to."""
    return ffi.NULL if value is None else ffi.new("char[]", c_string(value))
