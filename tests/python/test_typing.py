"""The types of the installed package: a user's typed script is checked as it is, and its mistakes.

The scripts are in tests/typing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from patience import PATIENCE

import neml2_capi

pytest.importorskip("mypy")

SCRIPTS = ROOT / "tests" / "typing"


@pytest.fixture
def mypy_cache() -> Path:
    """Kept, as compiled models are: to read the types of torch takes longer than all else here."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "neml2_capi" / "mypy"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def mypy(script: Path, cache: Path) -> tuple[int, str]:
    """The exit status and what was printed, by the rules of a user and not of the project."""
    options = ["--strict", "--config-file=", "--no-error-summary", f"--cache-dir={cache}"]
    command = [sys.executable, "-m", "mypy", *options, "--show-error-codes", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=cache)
    return done.returncode, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(neml2_capi.__file__).parent / "py.typed").is_file()


def test_a_typed_script_that_uses_everything_is_checked(mypy_cache: Path) -> None:
    assert mypy(SCRIPTS / "user_script.py", mypy_cache) == (0, "")


def test_a_typed_script_with_torch_is_checked(mypy_cache: Path) -> None:
    pytest.importorskip("torch")
    assert mypy(SCRIPTS / "user_of_torch.py", mypy_cache) == (0, "")


def test_the_script_uses_all_that_is_public() -> None:
    text = (SCRIPTS / "user_script.py").read_text()
    assert [name for name in neml2_capi.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_every_mistake_is_found_at_its_line_and_nothing_else(mypy_cache: Path) -> None:
    script = SCRIPTS / "mistakes.py"
    lines = enumerate(script.read_text().splitlines(), 1)
    marked = [(n, line.partition("# error: ")[2]) for n, line in lines if "# error: " in line]
    status, printed = mypy(script, mypy_cache)
    found = re.findall(r"mistakes\.py:(\d+): error: .*\[([\w-]+)\]$", printed, re.MULTILINE)
    assert [(int(number), code) for number, code in found] == marked
    assert status == 1
