"""One file in HTML: parameters, what the data do not tell, and curves beside measurements."""

from __future__ import annotations

import base64
import io
import os
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.outside import written
from neml2_capi.driver.arguments import file_name

if TYPE_CHECKING:
    from neml2_capi.fit.experiment import Experiment

_UNITS = {"stress": ", MPa", "strain": "", "t": ", s"}
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; color: #222; }}
table {{ border-collapse: collapse; }}
td, th {{ padding: 0.25rem 0.75rem; border-bottom: 1px solid #ccc; text-align: right; }}
td:first-child, th:first-child {{ text-align: left; }}
img {{ max-width: 100%; }}
.warning {{ background: #fff3cd; padding: 0.5rem 1rem; }}
</style></head><body>
<h1>{title}</h1>
<p>{summary}</p>
{warnings}
<h2>Parameters</h2>
{parameters}
<h2>Correlation</h2>
{correlation}
<h2>Curves</h2>
{figures}
</body></html>
"""


def write_report(fit: Any, path: str | os.PathLike[str]) -> None:
    """Write it; FatalError without matplotlib."""
    page = _PAGE.format(
        title="Fit of " + escape(", ".join(fit.problem.space.given)),
        summary=escape(
            f"Experiments: {len(fit.problem.experiments)}; residuals: {len(fit.residuals)}, which "
            f"scatter by {fit.scatter:.3g}; cost: {fit.cost:.6g}; searches: {len(fit.costs)}; "
            f"evaluations: {fit.evaluations}. {fit.message}"
        ),
        warnings="".join(f'<p class="warning">{escape(text)}</p>' for text in _warnings(fit)),
        parameters=_parameters(fit),
        correlation=_correlation(fit),
        figures="\n".join(
            f"<h3>{escape(experiment.name)}</h3>"
            f'<img alt="{escape(experiment.name)}: measured and modelled" src="{source}">'
            for experiment, source in zip(fit.problem.experiments, _figures(fit), strict=True)
        ),
    )
    with written(file_name("path", path), "the report") as stream:
        stream.write(page.encode())


def _warnings(fit: Any) -> list[str]:
    found = [f"{each[0].upper()}{each[1:]}." for each in fit.warnings]
    if not fit.success:
        found.append(f"The search was not finished: {fit.message}")
    if fit.failures:
        found.append(
            f"At {len(fit.failures)} evaluations an experiment failed, and cost a penalty. The "
            f"first: {fit.failures[0]}"
        )
    return found


def _parameters(fit: Any) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{value:.6g}</td><td>{fit.deviations[name]:.2g}</td>"
        f"<td>{_relative(value, fit.deviations[name])}</td>"
        "<td>{:.6g} to {:.6g}</td></tr>".format(*fit.interval(name))
        for name, value in fit.parameters.items()
    )
    head = "<tr><th></th><th>value</th><th>standard deviation</th><th>relative</th>"
    head += "<th>interval of 95 %</th></tr>"
    return f"<table>{head}{rows}</table>"


def _relative(value: float, deviation: float) -> str:
    return f"{100 * deviation / abs(value):.2g} %" if value and np.isfinite(deviation) else "-"


def _correlation(fit: Any) -> str:
    names = list(fit.parameters)
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = "".join(
        f"<tr><td>{escape(name)}</td>{''.join(map(_share, row))}</tr>"
        for name, row in zip(names, fit.correlation, strict=True)
    )
    return f"<table><tr><th></th>{head}</tr>{rows}</table>"


def _share(value: float) -> str:
    return f"<td>{value:.2f}</td>" if np.isfinite(value) else "<td>-</td>"


def _figures(fit: Any) -> list[str]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise FatalError(
            "matplotlib is not installed; install it with: pip install 'neml2_capi[fit]'",
            lib.NEML2_ERROR_UNSUPPORTED,
            "matplotlib",
        ) from None
    sources = []
    for experiment, curves in zip(fit.problem.experiments, fit.curves, strict=True):
        figure = Figure(figsize=(9.0, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw(left, right, experiment, curves)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=110)
        sources.append(f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}")
    return sources


def draw(left: Any, right: Any, experiment: Experiment, curves: dict[str, Any]) -> None:
    """Draw measured and modelled stress over strain, and residuals over time, into axes."""
    kind = experiment.seen
    for part, measured in experiment.measured.items():
        key, other = f"{kind}.{part}", f"{'strain' if kind == 'stress' else 'stress'}.{part}"
        modelled = curves[key]
        if other in curves:
            x, y = (other, key) if kind == "stress" else (key, other)
            known = experiment.strain[part], experiment.stress[part]
            left.plot(*known, "o", ms=3, alpha=0.5, label=f"measured {part}")
            left.plot(curves[x], curves[y], label=f"model {part}")
        else:
            x, y = "t", key
            left.plot(experiment.t, measured, "o", ms=3, alpha=0.5, label=f"measured {part}")
            left.plot(experiment.t, modelled, label=f"model {part}")
        left.set_xlabel(_axis(x))
        left.set_ylabel(_axis(y))
        right.plot(experiment.t, modelled - measured, ".-", ms=3, lw=0.7, label=part)
    left.locator_params(axis="x", nbins=5)
    left.legend()
    right.axhline(0.0, color="black", lw=0.5)
    right.set_xlabel("t, s")
    right.set_ylabel(f"model - measured {kind}{_UNITS[kind]}")


def _axis(key: str) -> str:
    return f"{key}{_UNITS[key.partition('.')[0]]}"
