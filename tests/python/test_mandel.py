"""neml2_capi.mandel: symmetric tensors in the forms that others have."""

from __future__ import annotations

import numpy as np
import pytest

from neml2_capi import mandel

TENSOR = np.array([[1.0, 6.0, 5.0], [6.0, 2.0, 4.0], [5.0, 4.0, 3.0]])
ROOT = np.sqrt(2)


def test_a_tensor_by_hand() -> None:
    expected = [1, 2, 3, 4 * ROOT, 5 * ROOT, 6 * ROOT]
    np.testing.assert_allclose(mandel.from_tensor(TENSOR), expected)
    np.testing.assert_allclose(mandel.to_tensor(expected), TENSOR)
    np.testing.assert_allclose(mandel.to_voigt(expected, shear="tensor"), [1, 2, 3, 4, 5, 6])
    strain = mandel.to_voigt(expected, shear="engineering", order="abaqus")
    np.testing.assert_allclose(strain, [1, 2, 3, 12, 10, 8])


@pytest.mark.parametrize("shear", ["tensor", "engineering"])
@pytest.mark.parametrize("order", ["voigt", "abaqus"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_there_and_back(shear: mandel.Shear, order: mandel.Order, dtype: str) -> None:
    values = np.random.default_rng(1).standard_normal((4, 2, 6)).astype(dtype)
    back = mandel.from_voigt(
        mandel.to_voigt(values, shear=shear, order=order), shear=shear, order=order
    )
    assert back.dtype == values.dtype and back.shape == values.shape
    np.testing.assert_allclose(back, values, rtol=1e-6 if dtype == "float32" else 1e-15)
    tensor = mandel.to_tensor(values)
    assert tensor.dtype == values.dtype
    np.testing.assert_allclose(mandel.from_tensor(tensor), values, rtol=1e-6)


def test_a_double_contraction_is_a_dot_product() -> None:
    a, b = np.random.default_rng(2).standard_normal((2, 3, 3))
    a, b = a + a.T, b + b.T
    product = mandel.from_tensor(a) @ mandel.from_tensor(b)
    np.testing.assert_allclose(product, (a * b).sum(), rtol=1e-14)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"expected an array \(\*B, 3, 3\); got \(6,\)"):
        mandel.from_tensor(np.zeros(6))
    with pytest.raises(ValueError, match=r"got a masked array: fill it first"):
        mandel.from_voigt(np.ma.masked_array(np.zeros(6), np.eye(6)[0]), shear="tensor")
    with pytest.raises(ValueError, match="'tensor' or 'engineering'"):
        mandel.from_voigt(np.zeros(6), shear="double")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'voigt' or 'abaqus'"):
        mandel.to_voigt(np.zeros(6), shear="tensor", order="kelvin")  # type: ignore[arg-type]
