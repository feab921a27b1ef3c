"""Total derivatives under a hypothesis, of tensors that are inputs in two parts."""

from __future__ import annotations

import numpy as np
import pytest

from neml2_capi import Model, examples
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib

pytestmark = pytest.mark.numbers


@pytest.mark.parametrize("kernels", ["auto", "off"])
@pytest.mark.parametrize(
    ("hypothesis", "name"),
    [("plane_strain", "stress"), ("plane_stress", "strain"), ("shell", "strain")],
)
@pytest.mark.parametrize("of_itself", [False, True])
def test_a_part_moves_with_the_other_part(
    hypothesis: str, name: str, kernels: str, of_itself: bool
) -> None:
    """How a variable moves with itself need not be said."""
    model = Model(examples.path("isotropic_hardening"), hypothesis=hypothesis)
    model.options["kernels"] = kernels
    parts = f"{name}~1", f"{name}_transverse~1"
    random = np.random.default_rng(0)
    inputs = {v.name: np.zeros((1, *v.point_shape)) for v in model.inputs}
    inputs["strain"] += 1e-3 * random.standard_normal(inputs["strain"].shape)
    inputs["t"] += 1.0
    blocks = model.jacobian(inputs)[1]["stress"]
    for by, moving in (parts, parts[::-1]):
        slope = random.standard_normal((inputs[moving].size, inputs[by].size))
        unit = np.eye(inputs[by].size)
        call = model.bind(inputs, derivatives={"stress": {by: True}})
        for part, value in ((moving, slope), *([(by, unit)] if of_itself else [])):
            names = part.encode(), lib.NEML2_INPUT, by.encode()
            place = ffi.cast("void *", value.ctypes.data)
            check(
                lib.neml2_call_bind_input_derivative(
                    call._pointer[0], *names, place, lib.NEML2_FLOAT64, value.size
                )
            )
        call()
        expected = blocks[by][0] + blocks[moving][0] @ slope
        found = np.asarray(call.derivatives["stress"][by])[0]
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
