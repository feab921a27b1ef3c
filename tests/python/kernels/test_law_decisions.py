"""Laws that decide by the last bit, by the sign of a zero, or by integers, as torch decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neml2_capi import FatalError, Model

torch = pytest.importorskip("torch")

from neml2_capi import export  # noqa: E402

pytestmark = [
    pytest.mark.full("it exports laws with torch"),
    pytest.mark.filterwarnings("ignore:.*not finite"),
]

Law = Callable[[Any], Any]
WHOLE = np.arange(1.0, 200.0)
RANDOM = np.random.default_rng(5)
THREES = RANDOM.uniform(0.1, 1, (300, 3))
PAIRS = np.array([[1.0, 1.0], [2.0, 2.0], [0.0, 0.0], [1.0, 2.0], [2.0, 0.0]])
NUMBERS = np.array([[-1.0, 1.0], [np.nan, 2.0], [-0.5, 1.0], [0.0, -0.0]])
TABLE = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)


def direction_of(deviator: Law) -> Law:
    """The direction of a deviator, zero for a pressure."""

    def direction(x: Any) -> Any:
        s = deviator(x)
        norm = s.norm()
        return torch.where(norm > 0, s / norm, torch.zeros_like(s))

    return direction


def compared(law: Law, points: Any, path: Path, dtype: str = "float64") -> tuple[Any, Any]:
    """The outputs of a model of kernels, and of torch."""
    points = np.asarray(points, dtype)
    expected = torch.stack([law(torch.tensor(x)) for x in points]).numpy()
    export.model(
        lambda x: {"y": law(x)},
        path,
        inputs={"x": points.shape[1:]},
        outputs={"y": expected.shape[1:]},
        kernels="only",
        target="native",
        dtype=dtype,
    )
    return Model(path, dtype=dtype).forward({"x": points})["y"], expected


QUOTIENTS: dict[str, tuple[Law, Any]] = {
    "floor": (lambda x: torch.floor(x / 49), 49 * WHOLE),
    "floor of a tenth": (lambda x: torch.floor(x / 0.1), 0.1 * WHOLE),
    "comparison": (lambda x: torch.where(x / 49 >= 1, x, -x), 49 * WHOLE),
    "entry of a table": (
        lambda x: x.new_tensor([4.0, 5, 6]).gather(0, (x / 49).long()),
        49 * WHOLE[:2, None],
    ),
    "mean": (direction_of(lambda x: x - x.mean()), np.outer(RANDOM.uniform(1, 3, 300), np.ones(3))),
    "sum": (direction_of(lambda x: x - x.sum() / 3), np.outer(WHOLE / 7, np.ones(3))),
    "three by one": (lambda x: torch.floor(x[:3] / x[3]), np.outer(WHOLE, [1.0, 2, 3, 1])),
    "by the greatest": (lambda x: torch.floor(x / x.max()), THREES),
    "compared": (lambda x: torch.where(x / x.max() >= 1, x, -x), THREES),
    "squared": (lambda x: torch.where((x / x.max()) ** 2 == 1, x, -x), THREES),
    "less 1": (lambda x: torch.where(x / x.max() - 1 < 0, x, -x), THREES),
    "the greater": (lambda x: torch.sign((x / x.max()).clamp(min=0.5) - 1), THREES),
    "percents": (lambda x: torch.where(100 * (x.abs() / x.abs().max()) < 100, x, -x), THREES),
}
#: Whose sums have other last bits in another order.
TENTHS = RANDOM.integers(1, 20, (2000, 4)) / 10
ORDERS: dict[str, Law] = {
    "two sums": lambda x: torch.where(
        (x[0] + x[1] + x[2] <= 2) & (x[3] + x[0] + x[2] > 1.5), x[0] + x[2], x[1]
    ),
    "sum that begins with a sign": lambda x: torch.where(-x[0] + x[1] + x[2] >= x[3], x, -x),
    "whole part of a sum": lambda x: torch.floor(-x[0] + x[1] + x[2]),
}


@pytest.mark.parametrize("name", QUOTIENTS)
def test_a_quotient_that_decides_is_divided(name: str, tmp_path: Path) -> None:
    found, expected = compared(*QUOTIENTS[name], tmp_path / "law")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ORDERS)
def test_what_decides_is_computed_in_the_order_of_the_law(name: str, tmp_path: Path) -> None:
    found, expected = compared(ORDERS[name], TENTHS, tmp_path / "law")
    np.testing.assert_array_equal(found, expected)


def test_an_angle_between_a_vector_and_its_component_is_a_number(tmp_path: Path) -> None:
    """The quotient of a number by itself is 1, of which the arc cosine is defined."""
    points = RANDOM.uniform(-1, 1, (300, 3))
    found, expected = compared(lambda x: torch.acos(x / x.abs().max()), points, tmp_path / "law")
    np.testing.assert_allclose(found, expected, rtol=1e-14)


SIGNS: dict[str, Law] = {
    "angle": lambda x: torch.atan2(-(x[0] - x[1]), -1 - 0 * x[0]),
    "of one pole": lambda x: (x[1] - x[0]) + 1 / (2 * (x[0] - x[1])),
    "of two": lambda x: torch.copysign(x[0], x[0] - x[1]) + torch.copysign(2 * x[0], x[1] - x[0]),
    "of a bound": lambda x: 1 / (-(x[0] - x[1])).clamp(min=-3),
    "of the less": lambda x: 1 / torch.minimum(-(x[0] - x[1]), x[0] + 5),
    "of exponentials": lambda x: (
        torch.copysign(x[0], 1 - x[1].exp()) + torch.copysign(x[0], x[1].exp() - 1)
    ),
    "of a sum": lambda x: 1 / ((-x[0] - -x[1]) * 2) + (x[0] - x[1]),
}


@pytest.mark.parametrize("name", SIGNS)
def test_a_difference_that_vanishes_has_its_sign(name: str, tmp_path: Path) -> None:
    found, expected = compared(SIGNS[name], PAIRS, tmp_path / "law")
    np.testing.assert_allclose(found, expected, rtol=1e-15)


SINGLE: dict[str, tuple[Law, float]] = {
    "quotient by less than the least": (lambda x: x / 1e-39, 1e-38),
    "product that is small on the way": (lambda x: x * 1e-25 / 1e25, 1e38),
    "two quotients": (lambda x: x / 1e30 / 1e30, 1e38),
    "two products": (lambda x: x * 1e25 * 1e25, 1e-38),
    "quotient by more than the greatest": (lambda x: x / 1e39, 1.0),
}


@pytest.mark.parametrize("name", SINGLE)
def test_constants_of_single_precision_have_its_range(name: str, tmp_path: Path) -> None:
    law, x = SINGLE[name]
    found, expected = compared(law, [x], tmp_path / "law", "float32")
    np.testing.assert_allclose(found, expected, rtol=1e-6)


INTEGERS: dict[str, Law] = {
    "no -0": lambda x: torch.copysign(x[1], x[0].nan_to_num().long().to(x.dtype)),
    "sum of small ones": lambda x: (x > 0).to(torch.uint8).sum().to(x.dtype),
    "left of a table": lambda x: torch.bucketize(x, TABLE.to(x.dtype)).to(x.dtype),
    "right of it": lambda x: torch.bucketize(x, TABLE.to(x.dtype), right=True).to(x.dtype),
    "search": lambda x: torch.searchsorted(TABLE.to(x.dtype), x).to(x.dtype),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_those_of_torch(name: str, tmp_path: Path) -> None:
    found, expected = compared(INTEGERS[name], NUMBERS, tmp_path / "law")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("operator", [torch.sub, torch.add, torch.mul])
def test_integers_that_wrap_around_are_refused(operator: Any, tmp_path: Path) -> None:
    def law(x: Any) -> dict[str, Any]:
        small = (x > 0).to(torch.uint8)
        return {"y": operator(small[0], small[1]).to(x.dtype)}

    with pytest.raises(FatalError, match=r"computes in uint8.*torch\.int64.*test_law_decisions"):
        export.model(law, tmp_path, inputs={"x": (2,)}, outputs={"y": ()}, kernels="only")


def test_blocks_along_a_diagonal(tmp_path: Path) -> None:
    found, expected = compared(lambda x: torch.block_diag(x[0], x[:, None], x), PAIRS, tmp_path)
    np.testing.assert_array_equal(found, expected)


def test_a_loop_over_the_points_ends_in_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch's own rule for blocks along a diagonal takes the points one by one."""
    monkeypatch.delitem(export._rewritten._OURS, torch.block_diag)
    with pytest.raises(FatalError, match=r"one by one, at .*test_law_decisions"):
        compared(lambda x: torch.block_diag(x[None], x[None]), PAIRS, tmp_path)
