"""Packages compiled for another machine, from the C++ that AOTInductor wrote."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from native import PREBUILT, ROOT
from test_platforms import PATIENCE, POINTS, program, runner

from neml2_capi import Model
from neml2_capi.artifact.needs import needs_of
from neml2_capi.artifact.rebuild import RebuildError, System, rebuild
from neml2_capi.cli.commands import neml2_capi as command_line

from tools.platforms import cross_environment, platform_wheel, zig, zig_variables  # isort: skip

pytestmark = pytest.mark.numbers

pytest.importorskip("click")

Artifacts = Mapping[str, Path]

SYSTEM = "aarch64-linux-gnu.2.28"
# By input file: the model in it, and its name in the archive of models.
MODELS = {
    "examples/models/elasticity.i": ("elasticity", "elasticity"),
    "tests/models/isotropic_hardening.i": ("viscoplastic", "isotropic_hardening"),
    "examples/models/viscoplastic.i": ("viscoplastic", "chaboche"),
}


def copied(package: Path, into: Path) -> Path:
    return Path(shutil.copy2(package, into / package.name))


def test_a_system_is_a_machine_and_the_age_of_its_c_library() -> None:
    system = System(SYSTEM)
    assert (system.machine, system.has_age) == ("aarch64", True)
    assert System("x86_64-linux-gnu").compiler("clang++ -O2") == ["clang++", "-O2"]
    for name in ("aarch64", "aarch64-linux-musl", "riscv64-linux-gnu", "aarch64-linux-gnu.old"):
        with pytest.raises(RebuildError, match=r"expected x86_64-linux-gnu"):
            System(name)


def test_a_package_without_sources_is_told(artifacts: Artifacts, tmp_path: Path) -> None:
    """The examples' packages lack the C++ of their kernels."""
    package = copied(next(artifacts["elasticity"].rglob("*.pt2")), tmp_path)
    before = package.read_bytes()
    with pytest.raises(RebuildError, match="does not hold its sources; compile the model again"):
        rebuild(package, System(SYSTEM), tmp_path)
    assert package.read_bytes() == before


def stored(entries: Mapping[str, bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


WRAPPER = b": AOTInductorModelBase(1, 1, 0,\n// Compile cmd\n// g++ -O2 -include"
DAMAGED = {
    "empty": b"",
    "no archive": b"x" * 5000,
    "cut": stored({"a.wrapper.cpp": WRAPPER})[:-40],
    "compressed": stored({"a.wrapper.cpp": WRAPPER}, zipfile.ZIP_DEFLATED),
    "without sources": stored({"a.txt": b""}),
    "not UTF-8": stored({"a.wrapper.cpp": b"\xff\xfe"}),
    "with endless constants": stored({"a.wrapper.cpp": WRAPPER.replace(b"0", b"1" * 9999)}),
    "with damaged metadata": stored(
        {"a.wrapper.cpp": WRAPPER, "a.wrapper_metadata.json": b"[" * 10**5}
    ),
    "a folder": None,
    "a loop": None,
    "endless": None,
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_package_is_one_line(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shutil.copytree(PREBUILT / "elasticity", tmp_path / "elasticity")
    package = root / "cpu" / "float64" / "elasticity.pt2"
    package.unlink()
    content = DAMAGED[damage]
    if content is not None:
        package.write_bytes(content)
    elif damage == "a folder":
        package.mkdir()
    else:
        package.symlink_to("/dev/zero" if damage == "endless" else package.name)
    monkeypatch.setenv("NEML2_CAPI_COMPILER", str(_interpreter(tmp_path)))
    words = ["--target", SYSTEM, "--output-dir", str(tmp_path / "made"), "--cxx", "false"]
    for command in (["build-packages", *words], ["doctor"]):
        done = CliRunner().invoke(command_line, [*command, str(root)])
        assert isinstance(done.exception, SystemExit) and done.exit_code == 1, done.output
        assert "elasticity.pt2" in done.output or "elasticity_jvp.pt2" in done.output
        assert done.output.count("Error: ") == (command != ["doctor"])
    made = tmp_path / "made"
    assert not made.exists() or [path.name for path in made.iterdir()] in ([], [".elasticity.lock"])


def test_an_artifact_is_not_copied_into_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shutil.copytree(PREBUILT / "elasticity", tmp_path / "elasticity")
    before = sorted(root.rglob("*"))
    (tmp_path / "link").symlink_to(root)
    monkeypatch.setenv("NEML2_CAPI_COMPILER", str(_interpreter(tmp_path)))
    for into in (root, root / "cpu", root / "new" / "er", tmp_path / "link"):
        words = ["build-packages", str(root), "--target", SYSTEM, "--output-dir", str(into)]
        done = CliRunner().invoke(command_line, words)
        assert done.exit_code == 1 and "is in the artifact; name a folder" in done.output
    assert sorted(root.rglob("*")) == before


@pytest.mark.full("opens a folder for another system")
def test_compile_takes_a_system_alone(tmp_path: Path) -> None:
    source = tmp_path / "model.i"
    source.touch()
    program = [sys.executable, "-m", "neml2_capi.cli", "compile", str(source), "--model", "m"]
    for words, told in (
        (["--target", "vax"], "a system such as aarch64-linux-gnu.2.28"),
        (["--target", SYSTEM, "--target", "aarch64"], "alone"),
        (["--target", SYSTEM, "--kernels", "only"], "kernels need no system"),
    ):
        environment = {**os.environ, "NEML2_CAPI_COMPILER": str(_interpreter(tmp_path))}
        done = subprocess.run([*program, *words], capture_output=True, text=True, env=environment)
        assert done.returncode == 2
        assert told in " ".join(done.stderr.replace("│", " ").split())


def _interpreter(folder: Path) -> Path:
    """One that says it has neml2 and torch."""
    made = folder / "python"
    made.write_text("#!/bin/sh\nexit 0\n")
    made.chmod(0o755)
    return made


@pytest.mark.native
@pytest.mark.everything("compiles models, and the library, for aarch64")
@pytest.mark.parametrize("source", MODELS)
def test_packages_for_aarch64_give_the_numbers_of_this_machine(
    source: str, artifacts: Artifacts, tmp_path: Path
) -> None:
    model_name, archived = MODELS[source]
    tag = "manylinux_2_17_aarch64"
    words = runner(tag)
    if not os.environ.get("NEML2_CAPI_COMPILER"):
        pytest.skip("there is no neml2 to compile with")
    builder = cross_environment()
    compiler = zig(builder)
    options = ["--model", model_name, "--target", SYSTEM, "-d", ":", "-q"]
    options += ["--cxx", f"{compiler} c++ -target {SYSTEM}"]
    options += ["--kernels", "no", "--output-dir", str(tmp_path)]
    command = [sys.executable, "-m", "neml2_capi.cli", "compile", str(ROOT / source), *options]
    variables = {**os.environ, **zig_variables(builder, SYSTEM)}
    subprocess.run(command, check=True, env=variables, timeout=PATIENCE)
    root = tmp_path / model_name
    for package in root.rglob("*.pt2"):
        needs = needs_of(package)
        assert needs.machine == "aarch64"
        assert needs.glibcxx == ""  # zig's C++ library lies inside
        assert tuple(map(int, needs.glibc.split("."))) <= (2, 28)

    model = Model(artifacts[archived])
    model.options["kernels"] = "off"
    strain = 4e-3 * np.random.default_rng(3).normal(size=(POINTS, 6))
    has_state = any(variable.name.endswith("~1") for variable in model.inputs)
    given = model.state(POINTS).inputs(strain=strain, t=1.0) if has_state else {"strain": strain}
    outputs, blocks = model.jacobian(given)
    expected = dict(outputs)
    for output, columns in blocks.items():
        expected |= {f"{output},{by}": block for by, block in columns.items()}

    installed, inputs, results = (tmp_path / name for name in ("installed", "inputs", "results"))
    with zipfile.ZipFile(platform_wheel(tag)) as wheel:
        wheel.extractall(installed)
    inputs.mkdir()
    results.mkdir()
    index = ""
    for variable in model.inputs:
        values = np.broadcast_to(given[variable.name], (POINTS, *variable.base_shape))
        np.ascontiguousarray(values, np.float64).tofile(inputs / f"{variable.name}.bin")
        index += " ".join([variable.name, *map(str, variable.base_shape)]) + "\n"
    (inputs / "index.txt").write_text(index)
    task: list[str | Path] = [*words, program(tag, installed)]
    task += [root, tmp_path, "jacobian", str(POINTS), "1"]
    told = f"write {results} {POINTS}\n"
    done = subprocess.run(task, input=told, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.split()[::2] == ["ready", "written"], done.stdout + done.stderr
    for file, values in expected.items():
        found = np.fromfile(results / f"{file}.bin")
        whole = np.broadcast_to(values, (POINTS, *values.shape[-2:])) if "," in file else values
        np.testing.assert_allclose(
            found, np.ravel(whole), rtol=0, atol=1e-12 * np.abs(values).max()
        )
