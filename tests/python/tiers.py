"""A pytest plugin: which tests a tier runs, what it left out and why, and what each test costs."""

from __future__ import annotations

import json
import os
import re
import resource
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# Seconds of processor time in which a test of the quick tier should end, and must in CI.
SHOULD, MUST = 2.0, 10.0
# Seconds from which a test begins before all others, so that no worker is left alone with it.
LONG = 20.0

_COST = "processor seconds"

# One line at the end for reasons that differ in a name only.
_ALIKE = (
    (r"Skipped: ", ""),
    (r"could not import '([\w.]+)'.*", r"\1 is not installed: python3 build.py test --full"),
    (r"(libtorch was not found|there is no libtorch|torch is not installed).*", "no torch: --full"),
    (r"\S+ is not run: .*", "blocks of pages that say there why they are not run"),
    (
        r"\S+ found nothing to test",
        "programs that test_native.py runs with models",
    ),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption(
        "--tier",
        choices=("quick", "full", "everything"),
        help="leave out the tests that are marked for a later tier, or for the installed wheel",
    )
    group.addoption(
        "--costs", metavar="FILE", type=Path, help="write the processor time of each test"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Tiers(config), "tiers of neml2_capi")


def is_wheel() -> bool:
    """Whether the package was installed from a wheel, and not linked from the checkout."""
    return distribution("neml2_capi").read_text("WHEEL") is not None


class Tiers:
    """The hooks, with what they count."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.deselected: Counter[str] = Counter()
        self.skipped: dict[str, str] = {}
        self.costs: dict[str, float] = {}
        self.marked: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        tier = self.config.getoption("--tier")
        wheel = is_wheel()
        kept, deselected = [], []
        for item in items:
            later = _later_tier(item)
            if later:
                item.user_properties.append(("tier", later[0]))
            if item.get_closest_marker("wheel") and not wheel:
                later = ("full", "the wheel")
                if tier != "quick":
                    item.add_marker(
                        pytest.mark.skip(
                            "it tests the installed wheel: python3 build.py test --full"
                        )
                    )
            if later and (tier == "quick" or (tier == "full" and later[0] == "everything")):
                self.deselected[f"{later[1]}: python3 build.py test --{later[0]}"] += 1
                deselected.append(item)
            else:
                kept.append(item)
        if deselected:
            self.config.hook.pytest_deselected(items=deselected)
        before = self._costs_of_the_last_run()
        items[:] = sorted(kept, key=lambda item: -max(before.get(item.nodeid, 0.0), LONG))

    def _costs_of_the_last_run(self) -> dict[str, float]:
        file = self.config.getoption("--costs")
        return dict(json.loads(file.read_text())) if file and file.is_file() else {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        before = _processor_seconds()
        try:
            return (yield)
        except ModuleNotFoundError as error:
            if _later_tier(item) and _is_absent(error.name):  # as if it began by importorskip()
                pytest.skip(f"could not import {error.name!r}: {error}")
            raise
        finally:
            item.user_properties.append((_COST, _processor_seconds() - before))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            properties = dict(report.user_properties)
            self.costs[report.nodeid] = float(str(properties.get(_COST, 0)))
            if "tier" in properties:
                self.marked.add(report.nodeid)
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2]
            for pattern, words in _ALIKE:
                reason = re.sub(f"^{pattern}", words, reason)
            self.skipped[report.nodeid] = reason

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of xdist left out: each collects all tests."""
        self.deselected = Counter(getattr(node, "workeroutput", {}).get("deselected", {}))

    def too_expensive(self, limit: float) -> list[str]:
        """The unmarked tests that take more than `limit` seconds, the most expensive first."""
        found = [
            test for test, cost in self.costs.items() if cost > limit and test not in self.marked
        ]
        return sorted(found, key=lambda test: -self.costs[test])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        files = Counter(f"{why} (files)" for test, why in self.skipped.items() if "::" not in test)
        tests = Counter(why for test, why in self.skipped.items() if "::" in test)
        left_out = self.deselected + tests + files
        if left_out:
            terminalreporter.section("left out")
            for reason, count in sorted(left_out.items()):
                write(f"{count:5}  {reason}")
        expensive = self.too_expensive(SHOULD)
        if expensive and len(self.costs) > 100:
            terminalreporter.section(f"more than {SHOULD:.0f} s of processor time")
            for test in expensive:
                write(f"{self.costs[test]:5.1f} s  {test}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["deselected"] = dict(self.deselected)
            return
        file = self.config.getoption("--costs")
        if file:
            rounded = {test: round(cost, 2) for test, cost in sorted(self.costs.items())}
            file.write_text(json.dumps(rounded, indent=1) + "\n")
        expensive = self.too_expensive(MUST)
        # Tests that need torch are left out of the quick tier without a mark.
        strict = os.environ.get("CI") == "true" and self.config.getoption("--tier") == "quick"
        if expensive and strict and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            print(
                f"\ntests of the quick tier that take more than {MUST:.0f} s; make them faster, or "
                'mark them: @pytest.mark.full("why")\n' + "\n".join(expensive)
            )


def _later_tier(item: pytest.Item) -> tuple[str, str] | None:
    """The tier that a test is marked for, if it is not the quick one, and why."""
    for tier in ("everything", "full"):
        if marker := item.get_closest_marker(tier):
            (reason,) = marker.args
            return tier, str(reason)
    return None


def _is_absent(module: str | None) -> bool:
    """Tell whether a module is not installed: the quick environment lacks some."""
    return bool(module) and find_spec(str(module).partition(".")[0]) is None


def _processor_seconds() -> float:
    """Return the seconds of this process and of its children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)
