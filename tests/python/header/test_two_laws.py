"""Two laws of one name: linked they keep apart, and one file takes one of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from header_hosts import WARNINGS, opened, text_of
from kernel_setup import require_compiler

pytestmark = pytest.mark.numbers

USE = """
int {0}() {{
  law::inputs in = {{}};
  in.strain[0] = 0.004;
  in.t = 1.0;
  law::outputs out;
  return law::update(in, out).status;
}}
"""
MAIN = "int few();\nint many();\nint main() { return 10 * few() + many(); }\n"


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """One law, whose defaults differ in one number."""
    model, found = opened("example isotropic_hardening"), {}
    for name, miters in (("few", 1), ("many", 50)):
        model.options["miters"] = miters
        found[name] = text_of(model)
    return found


def compiled(folder: Path, *options: str) -> str:
    words = [require_compiler("g++"), *WARNINGS, "-O0", *options]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True).stderr


def test_defaults_of_one_are_not_those_of_the_other(texts: dict[str, str], tmp_path: Path) -> None:
    """Constructors are functions, too, of which a linker keeps one by its name."""
    for name, text in texts.items():
        (tmp_path / f"{name}.cpp").write_text(text + USE.format(name))
    (tmp_path / "main.cpp").write_text(MAIN)
    for files in (("few.cpp", "many.cpp"), ("many.cpp", "few.cpp")):
        assert compiled(tmp_path, *files, "main.cpp", "-o", "program") == ""
        assert subprocess.run([tmp_path / "program"]).returncode == 20


def test_one_file_takes_one_of_them(texts: dict[str, str], tmp_path: Path) -> None:
    for name, text in texts.items():
        (tmp_path / f"{name}.hpp").write_text(text)
    for other, told in (("few", ""), ("many", "another law is named law in this file")):
        program = f'#include "few.hpp"\n#include "{other}.hpp"\n'
        (tmp_path / "program.cpp").write_text(program + USE.format("f"))
        made = compiled(tmp_path, "-fsyntax-only", "program.cpp")
        assert told in made if told else made == ""
