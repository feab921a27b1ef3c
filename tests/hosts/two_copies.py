"""Use two copies of the library at once: each loads models of its own, and evaluates them.

python two_copies.py ARTIFACTS SECOND_LIBRARY
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.source import native_source


def stress(library: Any, root: str, strain: np.ndarray[Any, np.dtype[np.float64]]) -> bytes:
    model, call = ffi.new("neml2_model **"), ffi.new("neml2_call **")
    result = np.zeros_like(strain)
    double = library.NEML2_FLOAT64
    assert library.neml2_model_open(model, native_source(root)) == 0
    assert library.neml2_call_create(call, model[0]) == 0
    arrays = (ffi.from_buffer(strain), ffi.from_buffer(result))
    assert library.neml2_call_bind(call[0], lib.NEML2_INPUT, b"strain", arrays[0], double, 6) == 0
    assert library.neml2_call_bind(call[0], lib.NEML2_OUTPUT, b"stress", arrays[1], double, 6) == 0
    assert library.neml2_call_run(call[0], len(strain)) == 0
    library.neml2_call_free(call)
    library.neml2_model_free(model)
    return result.tobytes()


def main() -> None:
    artifacts, path = sys.argv[1:]
    second = ffi.dlopen(path)
    assert ffi.addressof(second, "neml2_call_run") != ffi.addressof(lib, "neml2_call_run")
    strain = np.linspace(-1e-3, 2e-3, 42).reshape(7, 6)
    results = {
        stress(library, f"{artifacts}/elasticity", strain) for library in (lib, second, lib, second)
    }
    assert len(results) == 1
    # Each brought its own provider, found beside it.
    mapped = Path("/proc/self/maps").read_text()
    assert len(set(re.findall(r"\S*/libn2.{7}\.so", mapped))) == 2
    # An error of one copy is not an error of the other.
    nothing = ffi.new("neml2_model **")
    assert second.neml2_model_open(nothing, native_source("/nonexistent")) < 0
    assert second.neml2_error_status() < 0
    assert lib.neml2_error_status() == 0


if __name__ == "__main__":
    main()
