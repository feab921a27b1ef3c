"""Run NEML2's own tests of compiled models on this library, and write docs/neml2-tests.md.

    git clone https://github.com/applied-material-modeling/neml2
    python tests/neml2/neml2_tests.py neml2
    python tests/neml2/neml2_tests.py --from results.xml   # of an earlier run: the page alone

It needs NEML2 with its compiled extension, whose eager models the tests compare with, torch, a
compiler, pytest and pytest-xdist, and an hour.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "neml2-tests.md"

_LOG = (
    "another",
    "It reads NEML2's log, its Python sink or standard error. This library has the same channels "
    "and levels, in a queue and in Python's logging, and words of its own.",
)
_REFUSED = (
    "another",
    "A predictor that does not fit the metadata is refused when the model is loaded, with another "
    "message than NEML2 gives when it runs.",
)
_BARE = (
    "another",
    "NEML2's error has the mask and the unknowns if NEML2_CAPTURE_SOLVE_FAILURE is set; the "
    "error here has them always.",
)
_WORDS = (
    "another",
    "All holds except the words of one message, which lists compiled parameters as Present.",
)
#: Why a test does not pass, by a part of its name: "another", if this library does something
#: else and means to, or "not applicable", if the test is of NEML2's insides.
REASONS: dict[str, tuple[str, str]] = {
    "test_the_runtime_really_iterates": _LOG,
    "test_newton_trace_logs": _LOG,
    "test_substep_trace_logs": _LOG,
    "test_krylov_aoti_linear_newton_channels_log": _LOG,
    "test_a_predictor_input_missing_from_the_state_map": _REFUSED,
    "test_a_predictor_output_count_mismatch": _REFUSED,
    "opt_out_leaves_error_bare": _BARE,
    "test_load_model_dtype_threads_to_leaf": _WORDS,
}

_HEAD = """# NEML2's own tests on this library

NEML2's tests of compiled models (`tests/aoti` of NEML2 3.1, at commit 2f6d7d2a), which compile each
model, run with `neml2_capi.neml2` instead of NEML2's runtime. The command that did it, and
wrote this page, is `python tests/neml2/neml2_tests.py CHECKOUT_OF_NEML2`.

"""


def run(checkout: Path, results: Path) -> None:
    """Run them."""
    places = [ROOT, ROOT / "tests" / "neml2", os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))}
    options = ["-p", "replace", "-p", "no:cacheprovider", "-q", "-n", "2", f"--junitxml={results}"]
    command = [sys.executable, "-m", "pytest", "tests/aoti", *options]
    subprocess.run(command, cwd=checkout, env=environment, check=False)


def outcome(case: ElementTree.Element) -> tuple[str, str]:
    """Return the kind of outcome of a test, and its reason."""
    skipped = case.find("skipped")
    if skipped is not None:
        expected = "xfail" in (skipped.get("type") or "")
        return (
            "fails in NEML2 too" if expected else "skipped by NEML2",
            skipped.get("message", ""),
        )
    if case.find("failure") is None and case.find("error") is None:
        return "passed", ""
    for part, known in REASONS.items():
        if part in (case.get("name") or ""):
            return known
    return "failed", "**no reason is known**"


def page(results: Path) -> str:
    """The table of all files, and the reasons."""
    cases = [*ElementTree.parse(results).iter("testcase")]
    kinds = [
        "passed",
        "another",
        "not applicable",
        "failed",
        "skipped by NEML2",
        "fails in NEML2 too",
    ]
    by_file: dict[str, Counter[str]] = {}
    reasons: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        file = (case.get("classname") or "").rpartition(".")[2]
        kind, why = outcome(case)
        by_file.setdefault(file, Counter())[kind] += 1
        if kind != "passed":
            reasons.setdefault((kind, " ".join(why.split())), []).append(f"`{case.get('name')}`")
    lines = [f"| file | tests | {' | '.join(kinds)} |", f"| --- {'| --- ' * (len(kinds) + 1)}|"]
    total: Counter[str] = Counter()
    for file, counts in sorted(by_file.items()):
        total += counts
        numbers = " | ".join(str(counts[kind] or "") for kind in kinds)
        lines.append(f"| {file} | {counts.total()} | {numbers} |")
    numbers = " | ".join(str(total[kind] or "") for kind in kinds)
    lines += [f"| all | {total.total()} | {numbers} |", "", "## What does not pass, and why", ""]
    lines += ["| | why | tests |", "| --- | --- | --- |"]
    for (kind, why), tests in sorted(reasons.items()):
        lines.append(f"| {kind} | {why} | {', '.join(sorted(tests))} |")
    return _HEAD + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", nargs="?", type=Path, help="of NEML2")
    parser.add_argument("--from", dest="results", type=Path, help="results in JUnit's format")
    arguments = parser.parse_args()
    if not arguments.results and not arguments.checkout:
        parser.error("give a checkout of NEML2, or --from RESULTS")
    with tempfile.TemporaryDirectory() as folder:
        results = arguments.results or Path(folder) / "results.xml"
        if not arguments.results:
            run(arguments.checkout, results)
        PAGE.write_text(page(results), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
