"""Tables of docs/compatibility.md: the tests with each compiler, Python, numpy and libtorch."""

from __future__ import annotations

import platform
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tools.editable import install_checkout
from tools.environments import OTHER_TORCHES, other_torch, prepare, requirements
from tools.native import LIBRARY, configured
from tools.platforms import platform_wheel
from tools.process import ROOT, Command, Failure, quietly
from tools.testing import (
    Outcome,
    full_environment,
    interpreters_found,
    outcomes,
    quick_environment,
    run_pytest,
)

PAGE = ROOT / "docs" / "compatibility.md"
# The oldest numpy that pyproject.toml promises, which the oldest Python takes.
OLDEST = "numpy==1.24.*"


def matrix(parts: Sequence[str]) -> int:
    """Run the tests of the parts, or of all, and write their tables."""
    makers = {"compilers": compilers, "pythons": pythons, "torch": torch}
    unknown = set(parts) - set(makers)
    if unknown:
        raise Failure(f"unknown parts {', '.join(sorted(unknown))}; there are {', '.join(makers)}")
    for part in parts or makers:
        rows = makers[part]()
        page = PAGE.read_text(encoding="utf-8")
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        begin, end = f"<!-- begin: {part} -->\n", "<!-- end -->"
        head, _, tail = page.partition(begin)
        PAGE.write_text(f"{head}{begin}{table}\n{end}{tail.partition(end)[2]}", encoding="utf-8")
        print(f"\n{table}\n\nwritten into {PAGE.relative_to(ROOT)}")
    return 0


def compilers() -> Iterable[list[str]]:
    """A row for each compiler on the path, a column for each test."""
    build = configured()
    build.make(*LIBRARY, title="building the library")
    environment, variables = quick_environment()
    install_checkout(environment, build)
    variables |= {"NEML2_CAPI_PROGRAMS": str(build.folder), "NEML2_CAPI_BUILD": build.cmake}
    rows: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    chosen = ["tests/python/test_compilers.py"]
    run_pytest("the compilers", environment, variables, "everything", chosen, "-q")
    for outcome in outcomes():
        title, compiler = _parts(outcome.name)
        rows[compiler][title].append(outcome)
    tests = dict.fromkeys(title for row in rows.values() for title in row)
    yield ["compiler", *tests]
    yield ["---"] * (len(tests) + 1)
    for compiler, told in rows.items():
        yield [compiler, *(_cell(told[title]) for title in tests)]


def _parts(name: str) -> tuple[str, str]:
    """What a test is about, and the compiler among its parameters."""
    function, _, parameters = name.rstrip("]").partition("[")
    (compiler,) = re.findall(r"(?:gcc|clang|gfortran|flang)-\d+|zig", parameters)
    return function.removeprefix("test_").replace("_", " "), compiler


def _cell(found: Sequence[Outcome]) -> str:
    if not found:
        return ""
    wrong = [outcome.why for outcome in found if outcome.kind != "passed"]
    reason = f"; not: {wrong[0][:80]}".replace("|", "\\|") if wrong else ""
    return f"{len(found) - len(wrong)}{reason}"


def pythons() -> Iterable[list[str]]:
    """A row for each CPython with the published wheel, and one for the oldest with OLDEST."""
    yield ["CPython", "numpy", "passed", "left out", "failed"]
    yield ["---"] * 5
    found = [python for _, python in sorted(interpreters_found().items())]
    wheel = platform_wheel(f"manylinux_2_17_{platform.machine()}")
    oldest = prepare("oldest-numpy", requirements("test"), found[0], alone=[OLDEST])
    for environment in (oldest, *(prepare("wheel-test", requirements("test"), p) for p in found)):
        environment.install_wheel(wheel)
        settings = {"NEML2_CAPI_COMPILE": "0"}
        options = ["-q", "-m", "not native"]
        counts = _counted(run_pytest("pytest", environment, settings, "quick", (), *options))
        query = "import platform, numpy; print(platform.python_version(), numpy.__version__)"
        versions = quietly("asking for versions", [environment.python, "-c", query]).split()
        yield [*versions, *counts]


def torch() -> Iterable[list[str]]:
    """A row for each libtorch, on which the packages of the archive run as on ours."""
    environment, variables = full_environment()
    build = configured()
    build.make(*LIBRARY, title="building the library")
    install_checkout(environment, build)
    yield ["libtorch", "passed", "left out", "failed"]
    yield ["---"] * 4
    query = "from neml2_capi._ffi.runtime import libtorch; print(*libtorch())"
    for place in (None, *filter(None, map(other_torch, OTHER_TORCHES))):
        settings = {**variables, **({"NEML2_CAPI_LIBTORCH": str(place)} if place else {})}
        same = "on_both or as_in_torch or whole_numbers or outlive"
        chosen = ("tests/python/test_libtorch.py", "-k", same)
        # Not the package of the folder that this is started in.
        ask: Command = [environment.python, "-I", "-c", query]
        version = quietly("asking for the version", ask, settings).split()[1]
        failed = run_pytest("pytest", environment, settings, "full", chosen, "-q")
        yield [version, *_counted(failed)]


def _counted(failed: Sequence[str]) -> list[str]:
    """What passed, was left out and failed in the tests that just ran; run_pytest() told these."""
    counts = Counter(outcome.kind for outcome in outcomes())
    names = [line.partition("::")[2].splitlines()[0] for line in failed[1:]]
    return [f"{counts['passed']:,}", f"{counts['skipped']:,}", ", ".join(names[:3]) or "none"]
