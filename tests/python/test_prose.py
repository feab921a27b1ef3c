"""The check of the project's English."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from native import ROOT

pytest.importorskip("pygments")


def check(folder: Path, name: str, text: str) -> list[str]:
    """Run the check on a folder with one file; the lines that it prints."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    command = [sys.executable, "-m", "tools.prose", str(folder), "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not done.stdout
    assert done.returncode == bool(done.stderr)
    return done.stderr.splitlines()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("solve.h", "// Empty where\n// there is none.\nint solve();\n"),
        ("solve.py", 'def solve():\n    """The root; none\n    where there is none."""\n'),
        ("solve.f90", "! The root, or zero\n! where there is none.\n"),
        ("README.md", "The root, or\nzero where there is none.\n"),
    ],
)
def test_a_condition_with_where_is_told_by_file_and_line(
    tmp_path: Path, name: str, text: str
) -> None:
    found = check(tmp_path / "shop", name, text)
    assert any(line.startswith((f"{name}:1:", f"{name}:2:")) for line in found)
    assert all(' write "if" for a condition' in line for line in found[:1])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("solve.h", "// E is Young's modulus, where strain is small.\nint where_none(int);\n"),
        ("solve.py", 'def solve():\n    """The place `where there is none` stands."""\n'),
        ("README.md", "```sh\necho zero where there is none\n```\n"),
    ],
)
def test_places_and_code_are_left_alone(tmp_path: Path, name: str, text: str) -> None:
    assert check(tmp_path / "shop", name, text) == []
