"""Compare every operator of laws on every route, and write docs/conformance.md.

    python tests/conformance/conformance.py                 prints what is wrong
    python tests/conformance/conformance.py --write         writes the page, too
    python tests/conformance/conformance.py --only exp,log --routes x86-64-v3

A route is a target of kernels, "builtin" or "libtorch"; the last two run one package. It needs
torch, mpmath, and compilers of C and C++; the whole table takes some minutes of one processor.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import routes
from judge import Exact, Verdict
from points import points
from table import OPERATORS, Operator

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
#: An operator may be off by so many units in the last place.
MOST_ULP = 4.0
INTRODUCTION = """\
Written by `python tests/conformance/conformance.py --write`. A number is the most units in the last
place that a result is off: by mpmath, or by torch if its result is exact. A result is wrong if
it is NaN, infinite, zero or finite, or has a sign, and neither torch's result, in its own type or
in double, nor the exact value is so. Zeros of both signs, subnormal, tiny and huge numbers, knots,
infinities and NaN are among the arguments. Packages run whole vectors, and three points at a time,
which compiled code leaves to scalar functions. More than 4 units have their reason.""".splitlines()
KERNELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
RUNTIMES = ("builtin", "libtorch")
_NEEDS = {"x86-64-v2": "sse4_2", "x86-64-v3": "avx2", "x86-64-v4": "avx512dq"}


def runs_here(target: str) -> bool:
    flags = Path("/proc/cpuinfo").read_text().split()
    return target in RUNTIMES or _NEEDS[target] in flags


def verdicts(
    names: list[str], dtype: str, wanted: list[str], samples: int
) -> Iterator[tuple[str, str, Verdict]]:
    """Operator, route and verdict."""
    x, y = points(dtype, samples)
    with np.errstate(all="ignore"):
        eager, in_double = routes.eager(names, x, y), routes.eager(names, *map(np.double, (x, y)))
        known = {
            name: Exact(OPERATORS[name], x, y, eager[n], in_double[n])
            for n, name in enumerate(names)
        }

    def judged(route: str, run: routes.Route) -> Iterator[tuple[str, str, Verdict]]:
        for name, found in zip(names, run(x, y), strict=True):
            rows = [known[name].verdict(row, x, y) for row in np.atleast_2d(found)]
            yield name, route, max(rows, key=lambda row: (row.wrong, row.ulp))

    with np.errstate(all="ignore"):
        for target, run in routes.kernels(names, dtype, [w for w in wanted if w in KERNELS]):
            yield from judged(target, run)
        runtimes = [w for w in wanted if w in RUNTIMES]
        if runtimes:
            with tempfile.TemporaryDirectory() as folder:
                path = routes.package(names, dtype, Path(folder) / "all.pt2")
                for runtime in runtimes:
                    yield from judged(runtime, routes.of_package(path, runtime))


def is_right(operator: Operator, verdict: Verdict) -> bool:
    return not verdict.wrong and (verdict.ulp <= MOST_ULP or bool(operator.reason))


def cell(verdict: Verdict) -> str:
    wrong = f", **{verdict.wrong} wrong**" if verdict.wrong else ""
    return f"{verdict.ulp:.2g}{wrong}" if verdict.ulp < 1e4 else f"{verdict.ulp:.0e}{wrong}"


def page(found: dict[str, dict[tuple[str, str], Verdict]], columns: list[tuple[str, str]]) -> str:
    rows = []
    for name, verdicts_of in found.items():
        cells = [cell(verdicts_of[c]) if c in verdicts_of else "-" for c in columns]
        rows.append(f"| `{name}` | " + " | ".join([*cells, OPERATORS[name].reason]) + " |")
    head = [f"{route}, {dtype}" for dtype, route in columns]
    return "\n".join(
        [
            "# Every operator on every route",
            "",
            *INTRODUCTION,
            "",
            "| operator | " + " | ".join([*head, "more than 4, because of"]) + " |",
            "| --- |" + " --- |" * (len(columns) + 1),
            *rows,
            "",
        ]
    )


def main() -> int:
    layout = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--only", default="", help="operators, separated by commas")
    parser.add_argument("--routes", default=",".join([*KERNELS, *RUNTIMES]))
    parser.add_argument("--dtypes", default="float64,float32")
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md")
    arguments = parser.parse_args()
    names = [n for n in arguments.only.split(",") if n] or list(OPERATORS)
    wanted = [route for route in arguments.routes.split(",") if runs_here(route)]
    found: dict[str, dict[tuple[str, str], Verdict]] = {name: {} for name in names}
    failed = 0
    for dtype in arguments.dtypes.split(","):
        for name, route, verdict in verdicts(names, dtype, wanted, arguments.samples):
            found[name][dtype, route] = verdict
            if not is_right(OPERATORS[name], verdict):
                failed += 1
                where = f"at ({verdict.at[0]!r}, {verdict.at[1]!r})"
                detail = verdict.example or where
                print(f"{name} on {route}, {dtype}: {cell(verdict)} {detail}", flush=True)
    columns = [(dtype, route) for dtype in arguments.dtypes.split(",") for route in wanted]
    if arguments.write:
        PAGE.write_text(page(found, columns), encoding="utf-8")
    print(f"{len(names)} operators, {len(columns)} routes, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
