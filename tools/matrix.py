"""Tables of docs/compatibility.md: the tests with each compiler, Python, numpy and libtorch."""

from __future__ import annotations

import platform
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tools import testing
from tools.editable import install_checkout
from tools.environments import OTHER_TORCHES, Environment, other_torch, prepare, requirements
from tools.native import LIBRARY, configured
from tools.platforms import platform_wheel
from tools.process import LOGS, ROOT, Command, Failure, quietly

PAGE = ROOT / "docs" / "compatibility.md"
# The oldest numpy that pyproject.toml promises, which the oldest Python takes.
OLDEST = "numpy==1.24.*"


@dataclass(frozen=True)
class Outcome:
    """Of one test: `passed`, `failed`, `skipped`, and why."""

    name: str
    kind: str
    why: str


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
    environment = prepare("test", requirements("test"), ["test"])
    install_checkout(environment, build)
    variables = {
        "NEML2_CAPI_PROGRAMS": str(build.folder),
        "NEML2_CAPI_BUILD": build.cmake,
        "NEML2_CAPI_COMPILE": "0",
    }
    found = outcomes(environment, variables, "everything", ["tests/python/test_compilers.py"])
    tests: dict[str, None] = {}
    rows: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for outcome in found:
        title, compiler = _parts(outcome.name)
        tests[title] = None
        rows[compiler][title].append(outcome)
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
    return f"{len(found) - len(wrong)}" + (f"; not: {wrong[0][:80]}" if wrong else "")


def pythons() -> Iterable[list[str]]:
    """A row for each CPython with the published wheel, and one for the oldest with OLDEST."""
    yield ["CPython", "numpy", "passed", "left out", "failed"]
    yield ["---"] * 5
    found = sorted([*testing._other_interpreters(), sys.executable], key=_version)
    wheel = platform_wheel(f"manylinux_2_17_{platform.machine()}")
    for python, numpy in [(found[0], OLDEST), *((python, "") for python in found)]:
        name = "oldest-numpy" if numpy else "wheel-test"
        environment = prepare(name, requirements("test"), ["test"], python)
        if numpy:  # constraints.txt names a newer one
            pip: Command = [environment.python, "-m", "pip", "install", "--quiet", numpy]
            quietly(f"installing {numpy}", pip)
        environment.install_wheel(wheel)
        told = outcomes(environment, {"NEML2_CAPI_COMPILE": "0"}, "quick", ["-m", "not native"])
        query = "import platform, numpy; print(platform.python_version(), numpy.__version__)"
        versions = quietly("asking for versions", [environment.python, "-c", query]).split()
        yield [*versions, *_counted(told)]


def torch() -> Iterable[list[str]]:
    """A row for each libtorch, on which the packages of the archive run as on ours."""
    environment, variables = testing._full()
    build = configured()
    build.make(*LIBRARY, title="building the library")
    install_checkout(environment, build)
    yield ["libtorch", "passed", "left out", "failed"]
    yield ["---"] * 4
    query = "from neml2_capi._ffi.runtime import libtorch; print(*libtorch())"
    for place in (None, *filter(None, map(other_torch, OTHER_TORCHES))):
        settings = {**variables, **({"NEML2_CAPI_LIBTORCH": str(place)} if place else {})}
        same = "on_both or as_in_torch or whole_numbers or outlive"
        chosen = ["tests/python/test_libtorch.py", "-k", same]
        # Not the package of the folder that this is started in.
        ask: Command = [environment.python, "-I", "-c", query]
        version = quietly("asking for the version", ask, settings).split()[1]
        yield [version, *_counted(outcomes(environment, settings, "full", chosen))]


def outcomes(
    environment: Environment, variables: dict[str, str], tier: str, chosen: Sequence[str]
) -> list[Outcome]:
    """Run tests, and return what became of each."""
    report = LOGS / "matrix.xml"
    testing._pytest(environment, variables, tier, chosen, "-q", f"--junitxml={report}")
    told = []
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {"failure": "failed", "error": "failed", "skipped": "skipped"}
        wrong = next((child for child in case if child.tag in kinds), None)
        why = "" if wrong is None else " ".join(wrong.get("message", "").split())
        kind = "passed" if wrong is None else kinds[wrong.tag]
        told.append(Outcome(case.get("name", ""), kind, why.replace("|", "\\|")))
    return told


def _counted(found: Sequence[Outcome]) -> list[str]:
    counts = Counter(outcome.kind for outcome in found)
    failed = [outcome.name for outcome in found if outcome.kind == "failed"]
    return [f"{counts['passed']:,}", f"{counts['skipped']:,}", ", ".join(failed[:3]) or "none"]


def _version(python: str) -> tuple[int, ...]:
    query = "import sys; print(*sys.version_info[:2])"
    return tuple(map(int, quietly("asking for the version", [Path(python), "-c", query]).split()))
