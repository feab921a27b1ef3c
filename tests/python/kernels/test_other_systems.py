"""Kernels for Windows and macOS, built here by zig."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from kernel_setup import ROOT, require_compiler
from test_scalar import random_program

from neml2_capi import Error, Model, examples
from neml2_capi.cli.commands import neml2_capi as command
from neml2_capi.kernels.build import SYSTEMS, build
from neml2_capi.kernels.folder import KernelError, read_metadata, write_sources

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools.process import CACHE

pytestmark = pytest.mark.full("zig compiles kernels")


@pytest.fixture(autouse=True)
def zig_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zig compiles the C library of a system once for all tests."""
    for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
        monkeypatch.setenv(name, str(CACHE / "zig"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The sources of one kernel."""
    programs = {"one.pt2": random_program(1)}
    return write_sources(tmp_path / "model", "cpu/float64", programs, {}, {"neml2": "3"})


def test_kernels_are_built_for_every_system(folder: Path) -> None:
    pytest.importorskip("ziglang")
    root = str(folder.parents[1])
    asked = ["build-kernels", root, "--system", "all", "--target", "x86-64-v3"]
    done = CliRunner().invoke(command, asked, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    objects = {e.get("system", "linux"): e for e in read_metadata(folder)["objects"]}
    assert objects.keys() == SYSTEMS.keys()
    for name, entry in objects.items():
        assert entry["file"] == f"x86-64-v3{SYSTEMS[name].suffix}"
        assert (folder / entry["file"]).read_bytes().startswith(SYSTEMS[name].magic)
    require_only_windows(folder / "x86-64-v3.dll")


def require_only_windows(file: Path) -> None:
    """Fail if an object imports from more than Windows, or exports more than one symbol."""
    listed = subprocess.run(["objdump", "-p", file], capture_output=True, text=True, check=True)
    imported = re.findall(r"DLL Name: (\S+)", listed.stdout)
    assert all(re.match(r"KERNEL32|api-ms-win-crt-", name) for name in imported), imported
    exported = listed.stdout.partition("[Ordinal/Name Pointer] Table")[2]
    assert set(re.findall(r"\bneml2_\w+", exported)) == {"neml2_kernels"}


@pytest.mark.parametrize("system", ["windows", "macos"])
def test_builds_in_two_folders_at_two_times_give_the_same_bytes(
    folder: Path, system: str, tmp_path: Path
) -> None:
    pytest.importorskip("ziglang")
    other = shutil.copytree(folder, tmp_path / "another one" / folder.name)
    (made,) = build(folder, ["aarch64"], system=system)
    time.sleep(1.0)  # times in files are of seconds
    (again,) = build(other, ["aarch64"], system=system)
    assert made.read_bytes() == again.read_bytes()
    assert read_metadata(folder) == read_metadata(other)


def test_apple_silicon_loads_only_what_is_signed(folder: Path) -> None:
    pytest.importorskip("ziglang")
    (made,) = build(folder, ["aarch64"], system="macos")
    code = made.read_bytes()
    commands, at, kinds = int.from_bytes(code[16:20], "little"), 32, set()
    for _ in range(commands):
        kinds.add(int.from_bytes(code[at : at + 4], "little"))
        at += int.from_bytes(code[at + 4 : at + 8], "little")
    assert 0x1D in kinds  # LC_CODE_SIGNATURE


def test_gcc_is_refused_for_windows(folder: Path) -> None:
    cc = require_compiler("gcc")
    with pytest.raises(KernelError, match=r"54412\): name zig or clang with --cc"):
        build(folder, ["x86-64-v3"], cc, system="windows")


def test_a_clang_without_its_target_is_told(folder: Path) -> None:
    cc = require_compiler("clang")
    told = r'did not compile for windows: name its target with --cc, "clang --target=x86_64-windows'
    with pytest.raises(KernelError, match=told):
        build(folder, ["x86-64-v3"], cc, system="windows")


def test_a_missing_zig_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(KernelError, match="not installed: python3 -m pip install ziglang; or name"):
        build(folder, system="macos")


def test_objects_of_another_system_are_not_loaded(tmp_path: Path) -> None:
    without = shutil.ignore_patterns("*.pt2")
    root = shutil.copytree(examples.path("elasticity"), tmp_path / "elasticity", ignore=without)
    (file,) = root.glob("kernels/*/kernels.json")
    file.chmod(0o644)
    document = json.loads(file.read_text())
    for entry in document["objects"]:
        entry["system"] = "windows"
    file.write_text(json.dumps(document))
    with pytest.raises(Error, match=r"they are for .*x86-64-v3 on windows.*--system linux"):
        Model(root)
