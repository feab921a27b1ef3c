"""Parameters as TOML, which an experiment file takes back."""

from __future__ import annotations

import json
import math
from typing import Any


def as_toml(fit: Any) -> str:
    """The [parameters] of an experiment file."""
    lines = [
        f"# Fitted: cost {fit.cost:.6g}. A parameter with `per` begins with its first value.",
        "[parameters]",
    ]
    for name, parameter in fit.problem.space.given.items():
        own = [full for full, (base, _) in fit.problem.space.entries.items() if base == name]
        entries = [f"value = {fit.parameters[own[0]]!r}"]
        for side in ("lower", "upper"):
            bound = getattr(parameter, side)
            if math.isfinite(bound):
                entries.append(f"{side} = {float(bound)!r}")
        if parameter.log:
            entries.append("log = true")
        if parameter.prior:
            entries.append(f"prior = {[float(each) for each in parameter.prior]!r}")
        if parameter.per:
            entries.append(f"per = {json.dumps(parameter.per)}")
        told = ", ".join(f"{full} +- {fit.deviations[full]:.2g}" for full in own)
        values = (
            ""
            if len(own) == 1
            else ": " + ", ".join(f"{full} = {fit.parameters[full]:.6g}" for full in own)
        )
        lines.append(f"{json.dumps(name)} = {{ {', '.join(entries)} }}  # {told}{values}")
    lines += [f"# {each}" for each in fit.warnings]
    return "\n".join(lines) + "\n"
