"""The folder of kernels: metadata, objects by other compilers and for other processors."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from kernel_setup import TARGETS, Captured, native_target, require_compiler, runs_here
from loaded import load
from native import PREBUILT
from test_scalar import random_program

from neml2_capi.cli.commands import neml2_capi as command
from neml2_capi.kernels.build import build
from neml2_capi.kernels.evaluate import evaluate
from neml2_capi.kernels.folder import (
    KernelError,
    checksum,
    directory_checksum,
    read_metadata,
    write_metadata,
    write_sources,
)
from neml2_capi.kernels.program import Program
from neml2_capi.kernels.simplify import simplified

pytestmark = pytest.mark.full("kernels, built by two compilers and for aarch64")

REASON = "its operator aten.erf.default is unknown"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The sources of two kernels, one of which prepares, and a graph without one."""
    programs: dict[str, Program | str] = {
        "one.pt2": random_program(1),
        "two.pt2": random_program(2),
        "none.pt2": REASON,
    }
    metadata = {
        "segments": [
            {
                "kind": "implicit",
                "predictor_package": "two.pt2",
                "predictor_inputs": [{"name": "stress~1"}, {"name": "slip"}],
                "predictor_outputs": [{"name": "stress"}],
                "predictor_feedback": {"input": "slip"},
            }
        ]
    }
    leaf = tmp_path / "model" / "cpu" / "float64"
    leaf.mkdir(parents=True)
    with zipfile.ZipFile(leaf / "one.pt2", "w") as package:
        package.writestr("one.so", b"code")
    return write_sources(tmp_path / "model", "cpu/float64", programs, metadata, {"neml2": "3"})


def results(path: Path) -> bytes:
    """The bits of what all kernels of an object make of the same inputs."""
    random, found = np.random.default_rng(1), hashlib.sha256()
    for _, kernel in sorted(load(path).items()):
        for values in kernel(*(random.uniform(-1, 1, (21, n)) for n in (6, 3))):
            found.update(values.tobytes())
    return found.digest()


def test_metadata_tells_what_there_is(folder: Path) -> None:
    document = read_metadata(folder)
    one, two = document["kernels"]
    assert one["package"] == "cpu/float64/one.pt2"
    package = folder.parents[1] / one["package"]
    assert one["package_checksum"] == directory_checksum(package)
    with zipfile.ZipFile(package, "a") as changed:
        changed.writestr("two.so", b"more")
    assert one["package_checksum"] != directory_checksum(package)
    assert two["package_checksum"] is None
    assert one["graph_checksum"] == random_program(1).checksum
    assert one["source_checksum"] == checksum(folder / "one.c")
    assert document["missing"] == [{"package": "cpu/float64/none.pt2", "reason": REASON}]
    assert [array["name"] for array in two["inputs"]] == ["stress~1", "slip"]
    assert [array["changes"] for array in two["inputs"]] == [False, True]
    assert one["outputs"][0]["zeros"] == [21]
    assert one["outputs"][0]["of_scalars"] == []


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
@pytest.mark.parametrize("target", TARGETS)
def test_bits_are_equal_for_compilers_targets_and_lanes(
    folder: Path, any_cc: str, cc: str, target: str, lanes: int
) -> None:
    if not runs_here(target):
        pytest.skip(f"this processor has no {target}")
    (first,) = build(folder, [native_target()], any_cc)
    expected = results(first.rename(folder / "first.so"))
    (made,) = build(folder, [target], cc, lanes=lanes)
    assert results(made.rename(folder / "second.so")) == expected


def test_the_object_computes_what_the_operations_mean(folder: Path, any_cc: str) -> None:
    (made,) = build(folder, [native_target()], any_cc)
    kernel, program = load(made)["one"], simplified(random_program(1))
    inputs = [np.random.default_rng(2).uniform(-1, 1, (30, n)) for n in (6, 3)]
    (expected,) = evaluate(program, [x.T for x in inputs])
    np.testing.assert_allclose(kernel(*inputs)[0], expected.T, rtol=1e-12, atol=1e-12)


def test_build_kernels_restores_deleted_objects(folder: Path, any_cc: str, cc: str) -> None:
    target = native_target()
    (first,) = build(folder, [target], any_cc)
    expected = results(first.rename(folder / "first.so"))
    root = str(folder.parents[1])
    done = CliRunner().invoke(command, ["build-kernels", root, "--cc", cc, "--target", target])
    assert done.exit_code == 0, done.output
    assert "aten.erf.default" in done.output
    assert results(first) == expected
    (entry,) = read_metadata(folder)["objects"]
    assert entry["checksum"] == checksum(first)
    assert cc in entry["compiler"]


def test_an_object_exports_one_symbol(folder: Path, any_cc: str) -> None:
    (made,) = build(folder, [native_target()], any_cc)
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(made)], capture_output=True, text=True, check=True
    )
    symbols = [line.split()[-1] for line in listed.stdout.splitlines()]
    assert [name for name in symbols if not name.startswith("_")] == ["neml2_kernels"]


_PROGRAM = """
#include <stdio.h>
#include "neml2_kernel.h"
const neml2_kernel_set *neml2_kernels_of_model(void);
int main(void) {
  const neml2_kernel_set *set = neml2_kernels_of_model();
  for (int k = 0; k < set->count; ++k) {
    const neml2_kernel *kernel = set->kernels[k];
    static double __attribute__((aligned(128))) x[6 * 8], y[3 * 8], z[22 * 8], kept[4096];
    for (int i = 0; i < 6 * 8; ++i) x[i] = 0.01 * (i * 37 % 200) - 1;
    for (int i = 0; i < 3 * 8; ++i) y[i] = 0.01 * (i * 61 % 200) - 1;
    const void *inputs[] = {x, y};
    void *outputs[] = {z};
    if (kernel->prepare) kernel->prepare(inputs, kept);
    kernel->run(inputs, outputs, kept);
    for (int i = 0; i < kernel->outputs[0].components * kernel->lanes; ++i) printf("%a\\n", z[i]);
  }
  return 0;
}
"""


def static_program(folder: Path, cc: str, *options: str) -> Path:
    """A program that holds the kernels, and opens no shared object of the artifact."""
    (folder / "main.c").write_text(_PROGRAM)
    made = folder / f"program-{cc}"
    sources = [str(path) for path in sorted(folder.glob("*.c"))]
    flags = ["-std=c99", "-O2", "-ffp-contract=off", "-fno-math-errno", "-Wno-psabi"]
    subprocess.run([cc, *flags, *options, *sources, "-o", str(made)], check=True)
    return made


def test_kernels_are_linked_into_a_program(folder: Path, any_cc: str) -> None:
    made = static_program(folder, any_cc)
    printed = subprocess.run([str(made)], capture_output=True, text=True, check=True).stdout
    assert len(printed.split()) == 2 * 22 * 4


def test_aarch64_gives_the_same_bits(folder: Path, any_cc: str) -> None:
    cross = require_compiler("aarch64-linux-gnu-gcc")
    emulator = require_compiler("qemu-aarch64")
    if platform.machine() == "aarch64":
        pytest.skip("this machine is one")
    here = subprocess.run([str(static_program(folder, any_cc))], capture_output=True, check=True)
    there = static_program(folder, cross, "-static")
    printed = subprocess.run([emulator, str(there)], capture_output=True, check=True)
    assert printed.stdout == here.stdout


def test_kernels_are_built_for_aarch64(folder: Path) -> None:
    require_compiler("aarch64-linux-gnu-gcc")
    (made,) = build(folder, ["aarch64"])
    assert made.read_bytes()[18:20] == b"\xb7\x00"  # EM_AARCH64
    assert read_metadata(folder)["objects"][0]["machine"] == "aarch64"


def test_a_float32_graph_is_computed_in_floats(tmp_path: Path, any_cc: str) -> None:
    program = random_program(5)
    program.real = "float32"
    folder = write_sources(tmp_path / "m", "cpu/float32", {"a.pt2": program}, {}, {})
    (made,) = build(folder, [native_target()], any_cc)
    kernel = load(made)["a"]
    assert kernel.dtype == np.dtype(np.float32)
    assert kernel.lanes == 8
    inputs = [np.random.default_rng(2).uniform(-1, 1, (30, n)) for n in (6, 3)]
    (expected,) = evaluate(program, [x.T for x in inputs])
    np.testing.assert_allclose(kernel(*inputs)[0], expected.T, rtol=1e-3, atol=1e-3)


# Errors


@pytest.mark.parametrize("name", ["typo", "cpu", "typo/metadata.json", "README.md"])
@pytest.mark.parametrize("target", ["native", "cuda"])
def test_kernels_are_not_built_of_what_a_wrong_path_stands_in(
    tmp_path: Path, name: str, target: str
) -> None:
    shutil.copytree(PREBUILT / "elasticity", tmp_path / "steel")
    shutil.rmtree(tmp_path / "steel/cpu", ignore_errors=True)
    (tmp_path / "steel/README.md").touch()
    before = sorted(tmp_path.rglob("*"))
    wrong = tmp_path / "steel" / name
    done = CliRunner().invoke(command, ["build-kernels", str(wrong), "--target", target])
    assert done.exit_code == 1
    assert f"{wrong} is no artifact" in done.output
    assert sorted(tmp_path.rglob("*")) == before


def test_an_artifact_without_kernels_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["build-kernels", str(tmp_path)])
    assert done.exit_code == 1
    assert f"{tmp_path} has no kernels" in done.output
    assert "neml2-capi compile" in done.output


def test_a_missing_compiler_is_named(folder: Path) -> None:
    with pytest.raises(KernelError, match=r"no-such-cc cannot be run: .*; install gcc or clang"):
        build(folder, cc="no-such-cc")


def test_a_changed_source_is_refused(folder: Path, any_cc: str) -> None:
    with (folder / "one.c").open("a") as file:
        file.write("\n")
    with pytest.raises(KernelError, match=r"one\.c was changed since it was written"):
        build(folder, cc=any_cc)


def test_kernels_with_headers_of_another_release_are_refused(folder: Path, any_cc: str) -> None:
    """Without a copy beside them, the headers of this release count."""
    document = read_metadata(folder)
    for name in document["headers"]:
        (folder / name).unlink()
    document["headers"]["functions.h"] = "0" * 64
    write_metadata(folder, document)
    with pytest.raises(KernelError, match="written by another release") as raised:
        build(folder, cc=any_cc)
    assert str(raised.value).endswith("compile the model again")


def test_a_missing_source_is_refused(folder: Path, any_cc: str) -> None:
    (folder / "two.c").unlink()
    with pytest.raises(
        KernelError, match=r"two\.c, which kernels.json names, is missing; compile the model again"
    ):
        build(folder, cc=any_cc)


def test_metadata_of_another_version_is_refused(folder: Path) -> None:
    path = folder / "kernels.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 7}))
    with pytest.raises(KernelError, match="is of version 7, expected 1"):
        build(folder)


def test_an_unknown_target_is_named(folder: Path) -> None:
    with pytest.raises(KernelError, match=r"no target 'vax'; choose of x86-64-v2"):
        build(folder, ["vax"])


def test_native_is_the_newest_that_this_processor_runs(folder: Path, any_cc: str) -> None:
    newest = [t for t in TARGETS if runs_here(t)][-1:] or [native_target()]
    newest += ["x86-64-v3"] * (newest == ["x86-64-v4"])  # whose blocks hold fewer points
    assert [path.stem for path in build(folder, ["native"], any_cc)] == newest
    assert [o["target"] for o in read_metadata(folder)["objects"]] == newest


@pytest.mark.parametrize("level", ["x86-64", ""])
def test_native_on_a_processor_that_kernels_do_not_know_is_refused(
    folder: Path, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neml2_capi.kernels.build.level_here", lambda: level)
    monkeypatch.setattr("neml2_capi.kernels.build.machine", lambda: "x86_64")
    with pytest.raises(KernelError, match=r"this machine, x86.64, is none of x86-64-v2, "):
        build(folder, ["native"])


def test_the_crystal_compiles_in_six_seconds(
    captured: Callable[[str], Captured], tmp_path: Path
) -> None:
    require_compiler("gcc")
    folder = captured("crystal").write(tmp_path / "crystal")
    source = next(folder.glob("*seg0_jacobian.c"))
    command_line = ["gcc", "-std=c99", "-O2", "-march=x86-64-v3", "-ffp-contract=off"]
    command_line += ["-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra", "-Werror"]
    command_line += ["-Wno-psabi", "-c", str(source), "-o", str(tmp_path / "object.o")]
    # Seconds of the processor, whatever else runs beside.
    timed = ["bash", "-c", 'TIMEFORMAT=%U; time "$@"', "bash", *command_line]
    compiled = {**os.environ, "CCACHE_DISABLE": "1"}
    done = subprocess.run(timed, capture_output=True, text=True, check=True, env=compiled)
    assert float(done.stderr.split()[-1]) <= 6.0


def test_the_same_model_gives_the_same_files(
    captured: Callable[[str], Captured], tmp_path: Path
) -> None:
    graphs = captured("isotropic_hardening")
    texts = []
    for name in ("first", "second"):
        folder = graphs.write(tmp_path / name / "model")
        texts.append({p.name: p.read_bytes() for p in folder.iterdir()})
        shutil.rmtree(folder)
    assert texts[0] == texts[1]
