"""The check that public docstrings have their sections."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest
from native import ROOT

pytestmark = pytest.mark.native

pytest.importorskip("griffe")
pytest.importorskip("griffe_sphinx")
pytest.importorskip("pydoclint")

PARAMETERS = "Parameters\n----------\ntimes\n    (n,), in s.\n*forces\n    (n, 6), in MPa.\n"
RETURNS = "Returns\n-------\nint\n    The steps.\n"
YIELDS = "Yields\n------\nint\n    A step.\n"
RAISES = "Raises\n------\nValueError\n    There are no times.\n"
DRIVE = '''
def drive(times, *forces) -> int:
    """{}"""
    if not times:
        raise ValueError("no times")
    return len(times)
'''


def check(package: Path, code: str, exports: str = "'drive'") -> tuple[int, list[str]]:
    """Run the check on a package with one room; its status, and the lines that it prints."""
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text("__all__ = []\n")
    (package / "driver.py").write_text(f"__all__ = [{exports}]\n{code}")
    command = [sys.executable, "-m", "tools.docstrings", str(package)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not done.stdout
    return done.returncode, done.stderr.splitlines()


def drive(*sections: str, first: str = "Drive a model.") -> str:
    """A function with these sections in its docstring."""
    text = "\n".join([first, "", *sections])
    return DRIVE.format(indent(text, "    ").strip())


def test_a_docstring_with_its_sections_is_clean(tmp_path: Path) -> None:
    assert check(tmp_path / "shop", drive(PARAMETERS, RETURNS, RAISES)) == (0, [])


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            drive(RETURNS, RAISES),
            "in the function signature but not in the docstring: [*forces: , times: ].",
        ),
        (drive(PARAMETERS, RAISES), "does not have a return section"),
        (drive(PARAMETERS, RETURNS), "ValueError is not under Raises"),
        (
            drive(PARAMETERS + "speed\n    In mm/s.\n", RETURNS, RAISES),
            "in the docstring but not in the function signature: [speed: ].",
        ),
        (
            drive(PARAMETERS, RETURNS, YIELDS, RAISES),
            'has a "Yields" section',
        ),
        (drive(PARAMETERS, RETURNS, RAISES, first="Drive\na model."), "first paragraph"),
        ("def drive() -> None:\n    pass\n", "no docstring"),
    ],
)
def test_a_section_that_lacks_is_told_with_its_line(tmp_path: Path, code: str, told: str) -> None:
    status, (line,) = check(tmp_path / "shop", code)
    assert status == 1
    before = code[: code.index("def ")].count("\n")
    place, _, text = line.partition(": ")
    assert place == f"shop/driver.py:{before + 2}"  # below __all__
    assert "drive" in text
    assert told in line


CLASS = '''
class _Base:
    """Goes."""

    def go(self, speed: float) -> None:
        """Go on."""

class Driver(_Base):
    """Drives."""

    pace: float

    def __init__(self, start: int) -> None:
        self._start = start

    def _hidden(self, far: int) -> int:
        return far

    @property
    def steps(self) -> int:
        """The steps that were made."""
        return 0
'''


def test_a_class_tells_its_constructor_its_attributes_and_what_it_inherits(tmp_path: Path) -> None:
    status, lines = check(tmp_path / "shop", CLASS, "'Driver'")
    assert status == 1
    names = sorted(line.split(": ")[1] for line in lines)
    assert names == ["Driver.pace", "Method `Driver.__init__`", "Method `_Base.go`"]


def test_what_a_room_does_not_export_needs_no_sections(tmp_path: Path) -> None:
    assert check(tmp_path / "shop", CLASS, "") == (0, [])


def test_a_room_without_exports_is_told(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    check(package, CLASS, "")
    (package / "pace.py").write_text("")
    status, lines = check(package, CLASS, "")
    assert status == 1
    assert lines == ["shop/pace.py:1: shop.pace: no __all__; expected the public names. Write it."]
