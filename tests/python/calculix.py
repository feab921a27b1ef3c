"""Run CalculiX with a plug-in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from abaqus import Array, plug_in
from native import HOSTS, needs_fortran
from patience import PATIENCE

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neml2_capi" / "hosts"
CCX = CACHE / "calculix-2.20" / "ccx"
DECKS = HOSTS / "calculix"
#: Marks of the tests that run it.
MARKS = [
    pytest.mark.native,
    pytest.mark.full("another program, run many times"),
    needs_fortran,
    pytest.mark.skipif(
        not CCX.exists(), reason="needs CalculiX: bash neml2_capi/plugin/calculix.sh builds it"
    ),
]


def material(
    name: str,
    constants: str,
    nstatv: int = 0,
    interface: str = "ABAQUS",
    section: str = "SOLID",
    size: str = "",
) -> str:
    """Return the lines of material.inp for a material of ours.

    `size` is the thickness or the area of a section that has one.
    """
    full = f"@{interface}_NEML2@{name.upper()}"
    count = len(constants.split(","))
    return (
        f"*MATERIAL, NAME={full}\n"
        + (f"*DEPVAR\n{nstatv}\n" if nstatv else "")
        + f"*USER MATERIAL, CONSTANTS={count}\n{constants}\n"
        + f"*{section} SECTION, ELSET=EALL, MATERIAL={full}\n"
        + (f"{size}\n" if size else "")
    )


def attempt(
    folder: Path,
    deck: str,
    parts: Mapping[str, str],
    threads: int = 1,
    wrappers: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run a deck in a folder, which has the mappings; `parts` are the files that it includes.

    The deck is one of the tests, or among the parts.
    """
    if deck not in parts:
        shutil.copy(DECKS / f"{deck}.inp", folder)
    for name, text in parts.items():
        (folder / f"{name}.inp").write_text(text)
    place = folder / "library"
    place.mkdir(exist_ok=True)
    plug_in(folder, place / "libNEML2.so")
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(place),
        "OMP_NUM_THREADS": str(threads),
    }
    return subprocess.run(
        [*wrappers, CCX, deck],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def run(folder: Path, deck: str, parts: Mapping[str, str], threads: int = 1) -> str:
    """Run a deck to success and return what CalculiX printed."""
    done = attempt(folder, deck, parts, threads)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-2000:]}{done.stderr}"
    assert "Job finished" in done.stdout
    return done.stdout


def tables(folder: Path, deck: str) -> dict[str, list[tuple[float, Array]]]:
    """Read the values of the .dat file by quantity: for each time a row for each node or point."""
    found: dict[str, list[tuple[float, list[list[float]]]]] = defaultdict(list)
    head = re.compile(r"^ (\w+) \((.*?)\) for set \w+ and time +(\S+)")
    for line in (folder / f"{deck}.dat").read_text().splitlines():
        if title := head.match(line):
            skipped = 2 if "integ.pnt." in title[2] else 1
            rows: list[list[float]] = []
            found[title[1]].append((float(title[3]), rows))
        elif line.strip():
            words = line.split()[skipped:]
            # Axes of the point are named behind the numbers of a shell.
            rows.append([float(word) for word in words if not word.startswith("_")])
    return {
        name: [(time, np.array(rows)) for time, rows in entries] for name, entries in found.items()
    }
