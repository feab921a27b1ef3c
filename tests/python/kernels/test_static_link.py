"""Kernels of a real model, linked into a program that opens no file of the artifact."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from kernel_setup import Captured, require_compiler
from numpy.typing import NDArray
from states import repeated, state_of
from test_same_bits import metadata_of

from neml2_capi import Model
from neml2_capi.kernels.build import FLAGS

pytestmark = pytest.mark.full("a program of C around the kernels of a model")

PROGRAM = Path(__file__).with_name("static_newton.c")
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "artifacts" / "viscoplastic"
LANES = 4
Arrays = Mapping[str, NDArray[np.float64]]


def linked(captured: Callable[[str], Captured], scratch: Path, cc: str, *options: str) -> Path:
    """The program, with the kernels in it, and nothing left of their folder."""
    folder = captured("viscoplastic").write(scratch / "viscoplastic", metadata_of("viscoplastic"))
    made = scratch / f"program-{cc}"
    words = [cc, *FLAGS, "-Wall", "-Wextra", "-Werror", f"-DNEML2_KERNEL_LANES={LANES}"]
    words += ["-D_POSIX_C_SOURCE=200809L", f"-I{folder}", *options, str(PROGRAM)]
    words += [*map(str, sorted(folder.glob("*.c"))), "-o", str(made), "-lm"]
    subprocess.run(words, check=True)
    shutil.rmtree(scratch / "viscoplastic")
    return made


def solved(command: list[str], inputs: Arrays) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
    """What the program finds for a block of points, and the files that it has mapped."""
    lines = []
    for name, value in inputs.items():
        numbers = value.reshape(LANES, -1).T.ravel()
        lines.append(" ".join([name, str(numbers.size), *(float(x).hex() for x in numbers)]))
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, mapped = {}, []
    for line in done.stdout.splitlines():
        name, *rest = line.split()
        if name == "mapped":
            mapped.append(rest[0])
        else:
            found[name] = np.array([float(x) for x in rest[1:]]).reshape(-1, LANES).T
    return found, mapped


@pytest.fixture(scope="module")
def state() -> Arrays:
    model = Model(EXAMPLE)
    return repeated(state_of("viscoplastic", model), LANES)


def assert_solution(found: Arrays, state: Arrays) -> None:
    model = Model(EXAMPLE)
    model.options.update({"atol": 1e-13, "rtol": 1e-13})
    expected = model.forward(state)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        limit = 1e-10 * np.abs(value).max()
        np.testing.assert_allclose(found[name], value.reshape(LANES, -1), rtol=0, atol=limit)


def test_a_program_solves_with_kernels_alone(
    captured: Callable[[str], Captured], tmp_path: Path, any_cc: str, state: Arrays
) -> None:
    program = linked(captured, tmp_path, any_cc)
    found, mapped = solved([str(program)], state)
    assert_solution(found, state)
    assert str(program) in mapped
    known = ("/libc", "/libm", "/ld-")  # and the program itself
    others = [m for m in mapped if m != str(program) and not any(k in m for k in known)]
    assert not others


def test_kernels_are_clean_under_sanitizers(
    captured: Callable[[str], Captured],
    tmp_path: Path,
    any_cc: str,
    state: Arrays,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")  # the program frees nothing
    options = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1", "-g"]
    found, _ = solved([str(linked(captured, tmp_path, any_cc, *options))], state)
    assert_solution(found, state)


def test_the_same_program_solves_on_aarch64(
    captured: Callable[[str], Captured], tmp_path: Path, any_cc: str, state: Arrays
) -> None:
    cross = require_compiler("aarch64-linux-gnu-gcc")
    emulator = require_compiler("qemu-aarch64")
    program = linked(captured, tmp_path, cross, "-static")
    there, _ = solved([emulator, str(program)], state)
    assert_solution(there, state)
    here, _ = solved([str(linked(captured, tmp_path, any_cc))], state)
    assert {n: v.tobytes() for n, v in there.items()} == {n: v.tobytes() for n, v in here.items()}
