"""Whether two models, of two engines or two runtimes, give the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from states import Array, random_like

from neml2_capi import ConvergenceError, Model


def directions(name: str, values: Mapping[str, Array]) -> dict[str, Array]:
    """Random ones; what is reduced over grains has no others than common ones."""
    made = random_like(values)
    if name == "grains":
        made.pop("mean_stress", None)
        made = {
            k: np.ascontiguousarray(np.broadcast_to(v[:, :1], v.shape)) for k, v in made.items()
        }
    return made


def assert_close(actual: Any, expected: Any, tolerance: float, round_off: float = 0.0) -> None:
    """Of the same shape, type and NaN, and equal to `tolerance` of the greatest value."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale + round_off)


def evaluations(model: Model, name: str, x: Mapping[str, Array]) -> Iterator[tuple[str, Any]]:
    """Everything that a model can be asked for, by what it is."""
    outputs, report = model.evaluate(x)
    yield from ((f"output {key}", value) for key, value in outputs.items())
    yield from ((f"report {key}", value) for key, value in report.items())
    v, w = directions(name, x), directions(name, {k: np.nan_to_num(o) for k, o in outputs.items()})
    yield from named("unknowns", failure(lambda: model.forward(x)))
    if model.derivatives:
        yield from named("jacobian", derivatives(lambda: model.jacobian(x)[1]))
        yield from named("jvp", derivatives(lambda: model.jvp(x, v)[1]))
        yield from named("vjp", derivatives(lambda: model.vjp(x, w)[1]))
    if model.parameter_derivatives:
        yield from named("param_jacobian", derivatives(lambda: model.param_jacobian(x)[1]))
        yield from named("param_vjp", derivatives(lambda: model.param_vjp(x, w)))


def failure(evaluate: Callable[[], Any]) -> Mapping[str, Any]:
    """The last iterates of points that failed."""
    try:
        evaluate()
    except ConvergenceError as error:
        return error.unknowns
    return {}


def derivatives(evaluate: Callable[[], Any]) -> Mapping[str, Any]:
    """Those that are returned, or held by the error."""
    try:
        result: Mapping[str, Any] = evaluate()
    except ConvergenceError as error:
        assert error.derivatives is not None
        return error.derivatives
    return result


def named(what: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from named(f"{what} {name}", value)
        else:
            yield f"{what} {name}", value


def assert_agreement(
    other: Model,
    native: Model,
    name: str,
    x: Mapping[str, Array],
    uncertainty: Mapping[str, float] | None = None,
) -> None:
    """All evaluations are equal, to 1e-12 of the greatest value, or to the `uncertainty` of each
    if that is more, but to 1e-9 at least; in float32 to 1e-6."""
    expected = dict(evaluations(native, name, x))
    found = dict(evaluations(other, name, x))
    assert found.keys() == expected.keys()
    # What is zero except for round-off: a residual that has converged, a derivative by gamma~1.
    noise = {"report residual_norm": 1e-7, "report residual_history": 1e-7, "vjp gamma~1": 1e-4}
    for what, value in expected.items():
        scale = np.abs(value[np.isfinite(value)]).max(initial=0.0)
        unknown = min((uncertainty or {}).get(what, 0.0), 1e-9 * scale)
        tolerance = 1e-6 if value.dtype == np.float32 else 1e-12
        try:
            assert_close(found[what], value, tolerance, max(unknown, noise.get(what, 0.0)))
        except AssertionError as error:
            raise AssertionError(f"{name}, {what}: {error}") from None


def uncertainties(model: Model, name: str, x: Mapping[str, Array]) -> dict[str, float]:
    """How far each floating-point evaluation moves when all inputs move by their last digit.

    No more of it is determined, whoever computes it: a derivative that is the difference of great
    terms, as plastic strain by back stresses is, is not known to 1e-12.
    """
    exact, random = dict(evaluations(model, name, x)), np.random.default_rng(11)
    moved: dict[str, float] = {}
    for _ in range(4):
        ends = {k: random.choice([-np.inf, np.inf], v.shape).astype(v.dtype) for k, v in x.items()}
        nudged = {k: np.nextafter(v, ends[k]) for k, v in x.items()}
        for what, value in evaluations(model, name, nudged):
            if value.dtype.kind == "f":
                distance = float(np.abs(value - exact[what]).max(initial=0.0))
                moved[what] = max(moved.get(what, 0.0), distance)
    return moved
