"""A newcomer's pages run on what one `pip install` of the wheel brings, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from pages import blocks_of
from patience import PATIENCE

import neml2_capi
from neml2_capi import examples

# Blocks that need one of these are left out if it is not there; test_docs.py runs them.
OTHERS = ("torch", "neml2", "jax", "dask", "mpi4py", "matplotlib")

PAGES = ("README.md", "docs/tutorials/python.md", "docs/tutorials/every-day.md")

_PROGRAM = """
import importlib.util, re
absent = [name for name in {others!r} if importlib.util.find_spec(name) is None]
ran, left_out = 0, False
for place, block in {program!r}:
    needed = [x for x in absent if re.search(rf"(import|from|neml2_capi[.]) ?{{x}}\\b", block)]
    left_out = left_out or bool(needed)
    try:
        if not needed:
            exec(compile(block, place, "exec"), globals())
            ran += 1
    except NameError:  # of what a block that was left out made
        if not left_out:
            raise
print("ran", ran)
"""


@pytest.mark.wheel
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_from_the_wheel_alone(page: str, tmp_path: Path) -> None:
    assert Path(neml2_capi.__file__).is_relative_to(sys.prefix)
    shutil.copytree(examples.FOLDER, tmp_path / "aoti")
    program, blocks = [], blocks_of((ROOT / page).read_text(encoding="utf-8"), page)
    for block in blocks:
        if block.file:
            (tmp_path / block.file).write_text(block.code)
        elif block.language == "python" and not block.reason:
            program.append((block.place, block.code))
    assert program
    code = _PROGRAM.format(others=OTHERS, program=program)
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    ran = int(done.stdout.rsplit("ran ", 1)[1])
    assert ran >= 0.8 * len(program), f"{ran} of {len(program)} blocks"
