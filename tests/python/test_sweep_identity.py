"""Sweeps know a run again by its code and its content, and refuse another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweeping import SUMS, Sets, equal, sums

from neml2_capi import FatalError, sweep
from neml2_capi.solvers import Newton


def scaled(factor: float) -> Callable[[Sets], Sets]:
    return lambda parameters: {"a": factor * parameters["a"]}


def test_a_function_is_known_by_its_code_and_what_it_closes_over(tmp_path: Path) -> None:
    sweep(scaled(2.0), {"a": [1.0]}, directory=tmp_path / "s")
    assert sweep(scaled(2.0), {"a": [1.0]}, directory=tmp_path / "s")["a"] == 2.0
    with pytest.raises(FatalError, match="differs in run;"):
        sweep(scaled(3.0), {"a": [1.0]}, directory=tmp_path / "s")
    with pytest.raises(FatalError, match="differs in run;"):
        sweep(sums, {"a": [1.0]}, directory=tmp_path / "s")


def splined(factor: float) -> Callable[[Sets], Sets]:
    interpolate = pytest.importorskip("scipy.interpolate")
    spline, function = interpolate.CubicSpline(SUMS["a"], factor * SUMS["a"]), np.sin
    return lambda parameters: {"a": spline(function(parameters["a"]))}


def test_objects_of_other_libraries_are_known_by_their_content(tmp_path: Path) -> None:
    first = sweep(splined(1.0), {"a": SUMS["a"]}, directory=tmp_path / "s")
    equal(sweep(splined(1.0), {"a": SUMS["a"]}, directory=tmp_path / "s"), first)
    with pytest.raises(FatalError, match="differs in run;"):
        sweep(splined(2.0), {"a": SUMS["a"]}, directory=tmp_path / "s")


def test_what_cannot_be_known_again_stays_in_memory(tmp_path: Path) -> None:
    lock = threading.Lock()

    def run(parameters: Sets) -> dict[str, Any]:
        with lock:
            return sums(parameters)

    with pytest.raises(FatalError, match=r"holds a lock, which cannot be pickled"):
        sweep(run, SUMS, directory=tmp_path / "s")
    assert sweep(run, SUMS, partial(ThreadPoolExecutor, 2)).done.all()


def doubled(run: Any) -> Any:
    return run.value * 2


def tripled(run: Any) -> Any:
    return run.value * 3


def of_class(**members: Any) -> Any:
    """An object that can be called, of a class of this name that has these members."""

    class Run:
        def __init__(self) -> None:
            self.value = 1.0

        def __call__(self, parameters: Sets) -> Sets:
            return sums(parameters)

    for name, member in members.items():
        setattr(Run, name, member)
    return Run()


def derived(base: Any) -> Any:
    """An object of a class that has all from its base, and calls it."""

    class Derived(type(base)):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()

    return Derived()


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (doubled, tripled),
        (property(doubled), property(tripled)),
        (staticmethod(doubled), staticmethod(tripled)),
        (classmethod(doubled), classmethod(tripled)),
        (cached_property(doubled), cached_property(tripled)),
        (lru_cache(doubled), lru_cache(tripled)),
        (2.0, 3.0),
    ],
    ids=lambda member: type(member).__name__,
)
@pytest.mark.parametrize("form", [lambda run: run, derived, lambda run: [run, run]])
def test_an_object_is_known_by_the_code_of_its_class_and_of_its_bases(
    tmp_path: Path, first: Any, other: Any, form: Callable[[Any], Any]
) -> None:
    def run(member: Any) -> Any:
        return partial(lambda held, parameters: sums(parameters), form(of_class(member=member)))

    whole = sweep(run(first), SUMS, directory=tmp_path / "s")
    equal(sweep(run(first), SUMS, directory=tmp_path / "s"), whole)
    with pytest.raises(FatalError, match="differs in held;"):
        sweep(run(other), SUMS, directory=tmp_path / "s")


def test_a_run_that_is_an_object_is_known_by_its_code(tmp_path: Path) -> None:
    sweep(of_class(), SUMS, directory=tmp_path / "s")
    other = of_class(__call__=lambda self, parameters: {"sum": parameters["a"]})
    with pytest.raises(FatalError, match="differs in run;"):
        sweep(other, SUMS, directory=tmp_path / "s")


def test_an_object_of_this_package_is_the_same_in_a_later_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = partial(lambda newton, parameters: sums(parameters), Newton())
    whole = sweep(run, SUMS, directory=tmp_path / "s")
    monkeypatch.setattr(Newton, "__call__", lambda self: None, raising=False)
    equal(sweep(run, SUMS, directory=tmp_path / "s"), whole)
