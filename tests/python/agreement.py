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


def in_every_way(
    model: Model, name: str, x: Mapping[str, Array], products: bool = True
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each function of a model and each kind of call, and what it gives, by kind."""
    outputs, report = model.evaluate(x)
    yield "evaluate", {"output": outputs, "report": report}
    yield "forward", {"output": model.forward(x)}
    v, w = directions(name, x), directions(name, outputs)
    ways: list[tuple[str, str, Callable[[], Any], dict[str, Any]]] = []
    if model.derivatives:
        ways.append(("jacobian", "derivatives", lambda: model.jacobian(x), {"derivatives": True}))
    if model.derivatives and products:
        ways.append(("jvp", "jvps", lambda: model.jvp(x, v), {"tangents": v}))
        ways.append(("vjp", "adjoints", lambda: model.vjp(x, w), {"cotangents": w}))
    if model.parameter_derivatives and products:
        each = dict.fromkeys((d.variable for d in model.parameter_derivatives), True)
        of_parameters = {"cotangents": w, "adjoints": each}
        sums = lambda: (outputs, model.param_vjp(x, w))  # noqa: E731
        ways.append(("param_vjp", "adjoints", sums, of_parameters))
        yield "param_jacobian", {"output": model.param_jacobian(x)[0]}
    for kind, bound, function, asked in ways:
        found, derived = function()
        yield kind, {"output": found, kind: derived}
        call = model.bind(x, report=True, **asked)
        yield (
            f"call for {bound}",
            {
                "output": call(),
                "report": call.report,
                kind: getattr(call, bound),
            },
        )
    for derivative in model.derivatives:
        alone = model.bind(x, derivatives={derivative.output: {derivative.variable: True}})
        alone()
        yield f"{derivative.variable} alone", {"jacobian": alone.derivatives}


def assert_one_answer(ways: Iterator[tuple[str, Mapping[str, Any]]]) -> None:
    """Each thing has the same bits in every way to ask for it."""
    known: dict[str, tuple[str, Any]] = {}
    for way, found in ways:
        for what, value in named("", found):
            first, expected = known.setdefault(what, (way, np.array(value)))
            value = np.broadcast_to(value, np.broadcast_shapes(np.shape(value), expected.shape))
            same = np.broadcast_to(expected, value.shape)
            assert np.array_equal(value, same, equal_nan=True), f"{what}: {way} and {first} differ"


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
