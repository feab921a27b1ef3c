"""Medians, their spread and ratios of what was measured; as JSON, Markdown and on the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scenarios import ALL, CONTESTANTS, LIMIT, MEMORY, NEML2, C, Key, Line
from targets import TARGETS, Target


@dataclass
class Measured:
    """A line and the samples of its keys, one in each round: seconds a call, or MB."""

    line: Line
    samples: dict[Key, list[float]] = field(default_factory=dict)
    memory: dict[Key, float] = field(default_factory=dict)  # resident at most, MB
    steps: float = 0.0  # mean count of Newton steps of a point
    notes: list[str] = field(default_factory=list)
    agree: bool = True

    def median(self, key: Key) -> float:
        return float(np.median(self.samples[key]))

    def ratio(self, upper: Key, lower: Key) -> float:
        """The median of the ratios of the rounds."""
        pairs = zip(self.samples[upper], self.samples[lower], strict=False)
        return float(np.median([a / b for a, b in pairs]))


def value_of(target: Target, lines: Iterable[Measured]) -> float | None:
    """The measurement of a target; None if there is none."""
    for measured in lines:
        if target.upper not in measured.samples:
            continue
        if target.lower is None:
            return measured.median(target.upper)
        if target.lower in measured.samples:
            ratio = measured.ratio(target.upper, target.lower)
            if target.per_point:
                ratio *= target.lower.points / target.upper.points
            return ratio
    return None


def met(target: Target, value: float) -> bool:
    return value >= target.number if target.at_least else value <= target.number


def _quantity(key: Key, value: float) -> str:
    if key.operation == MEMORY:
        return f"{value:.0f} MB"
    units = {"s": 1.0, "ms": 1e3, "us": 1e6}
    unit = next((name for name, factor in units.items() if abs(value) * factor >= 1), "us")
    return f"{value * units[unit]:.3g} {unit}"


def _cell(measured: Measured, key: Key) -> str:
    """The median, and half of the interquartile range in percent of it."""
    if key not in measured.samples:
        return ""
    low, median, high = np.quantile(measured.samples[key], [0.25, 0.5, 0.75])
    return f"{_quantity(key, median)} ±{50 * (high - low) / median:.0f}%"


def _ratio(measured: Measured, upper: Key, lower: Key) -> str:
    known = upper in measured.samples and lower in measured.samples
    return f"{measured.ratio(upper, lower):.2f}" if known else ""


def _targets(lines: list[Measured]) -> list[list[str]]:
    rows = []
    for target in TARGETS:
        value = value_of(target, lines)
        if value is not None:
            sign = "≥" if target.at_least else "≤"
            verdict = "yes" if met(target, value) else "**no**"
            rows.append([target.text, f"{sign} {target.number:.3g}", f"{value:.3g}", verdict])
    return rows


def _rows(lines: list[Measured]) -> list[list[str]]:
    rows = []
    for measured in lines:
        tasks = dict.fromkeys(key[:4] for key in measured.samples)
        for model, operation, points, threads in tasks:
            key = {c: Key(model, operation, points, threads, c) for c in CONTESTANTS}
            cells = [_cell(measured, key[contestant]) for contestant in CONTESTANTS]
            ratios = [_ratio(measured, key[C], key[LIMIT]), _ratio(measured, key[NEML2], key[C])]
            task = [model, operation, f"{points:,}", "all" if threads == ALL else str(threads)]
            rows.append([*task, *cells, *ratios])
    return rows


def _above(lines: list[Measured]) -> list[list[str]]:
    """What a call in C takes beyond the runs of its packages."""
    rows = []
    for measured in lines:
        for key in measured.samples:
            alone = key._replace(contestant=LIMIT)
            if key.contestant == C and alone in measured.samples:
                whole, bare = measured.median(key), measured.median(alone)
                times = [_quantity(key, t) for t in (whole, bare, whole - bare)]
                rows.append([key.model, key.operation, f"{key.points:,}", *times])
    return rows


TASK = ["model", "operation", "points", "threads"]
RATIOS = ["C / packages alone", "NEML2 / C"]


def table(header: list[str], rows: list[list[str]]) -> str:
    """In Markdown, and in columns for the eye."""
    rule = ["---"] * len(header)
    widths = [max(map(len, column)) for column in zip(header, rule, *rows, strict=True)]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in (header, rule, *rows)
    ]
    return "\n".join(f"| {line} |" for line in lines)


def tables(lines: list[Measured]) -> list[str]:
    """The targets, and everything that was measured."""
    targets = table(["target", "wanted", "measured", "met"], _targets(lines))
    above = table([*TASK[:3], C, LIMIT, "difference"], _above(lines))
    return [targets, table([*TASK, *CONTESTANTS, *RATIOS], _rows(lines)), above]


def write(lines: list[Measured], known: dict[str, Any], folder: Path) -> None:
    """results.json and results.md."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": known,
        "targets": [
            {
                "text": t.text,
                "wanted": t.number,
                "at_least": t.at_least,
                "measured": v,
                "met": met(t, v),
            }
            for t in TARGETS
            if (v := value_of(t, lines)) is not None
        ],
        "measured": [
            {
                **key._asdict(),
                "unit": "MB" if key.operation == MEMORY else "s",
                "newton_steps": measured.steps,
                "memory_MB": measured.memory.get(key),
                "samples": samples,
                **dict(
                    zip(
                        ("lower_quartile", "median", "upper_quartile"),
                        quartiles(samples),
                        strict=True,
                    )
                ),
            }
            for measured in lines
            for key, samples in measured.samples.items()
        ],
        "notes": [note for measured in lines for note in measured.notes],
    }
    (folder / "results.json").write_text(json.dumps(document, indent=1) + "\n")
    targets, everything, above = tables(lines)
    notes = "\n".join(f"- {note}" for measured in lines for note in measured.notes)
    about = ", ".join(f"{name} {value}" for name, value in known.items())
    sections = {
        "Results": f"Written by `python3 build.py bench`; README.md explains them.\n\n{about}.",
        "Targets": targets,
        "Everything": everything,
        "Above the bare package runs": above,
        "Notes": notes or "None.",
    }
    text = "\n\n".join(f"## {title}\n\n{content}" for title, content in sections.items())
    (folder / "results.md").write_text(text[1:] + "\n", encoding="utf-8")


def quartiles(samples: list[float]) -> list[float]:
    return [float(value) for value in np.quantile(samples, [0.25, 0.5, 0.75])]
