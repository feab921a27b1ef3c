"""Wheels for other machines and C libraries: their symbols, and their numbers if they can run.

Programs for aarch64 run under qemu, those for musl with Debian's own musl.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from loaded import load
from native import ROOT
from other_systems import PRESETS, core_for
from test_plugin_macos import read_by_lief, require_signed
from test_scalar import random_program

from neml2_capi import Model, examples
from neml2_capi.kernels.build import SYSTEMS, TARGETS, build
from neml2_capi.kernels.folder import write_sources
from neml2_capi.plugin.dylib import with_segment

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools.platform_tests import interpreter
from tools.platforms import (
    PLATFORMS,
    cross_environment,
    platform_wheel,
    repaired,
    zig,
    zig_variables,
)
from tools.process import Command, Failure
from tools.wheel import built_wheel, source_distribution

pytestmark = pytest.mark.native

LATER = pytest.mark.everything("cross-compiles the library once more")
# The wheel that the other Pythons are tested with.
HERE = pytest.mark.full("cross-compiles the library")
TESTED = f"manylinux_2_17_{platform.machine()}"
TAGS = [
    pytest.param(tag, marks=HERE if tag == TESTED else LATER) for tag in PLATFORMS if "linux" in tag
]

ELSEWHERE = [tag for tag in PLATFORMS if "linux" not in tag]

LOADERS = {
    "manylinux_2_17_x86_64": "lib64/ld-linux-x86-64.so.2",
    "manylinux_2_17_aarch64": "lib/ld-linux-aarch64.so.1",
    "musllinux_1_2_x86_64": "lib/ld-musl-x86_64.so.1",
    "musllinux_1_2_aarch64": "lib/ld-musl-aarch64.so.1",
}
POINTS = 5
PATIENCE = 600


@pytest.fixture(params=TAGS)
def tag(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def package(tag: str, tmp_path: Path) -> Path:
    """What pip would install from the wheel."""
    with zipfile.ZipFile(platform_wheel(tag)) as wheel:
        wheel.extractall(tmp_path / "installed")
    return tmp_path / "installed"


def system(tag: str) -> Path:
    """The folder with the C library of a platform; Debian's for arm64 has musl as well."""
    root = Path("/usr/aarch64-linux-gnu" if tag.endswith("aarch64") else "/")
    if tag == "musllinux_1_2_aarch64":
        try:
            root = interpreter("manylinux_2_17_aarch64").parents[2]
        except Failure as failure:
            pytest.skip(str(failure))
    if not (root / LOADERS[tag]).exists():
        pytest.skip(f"no C library of {tag} is installed: {root / LOADERS[tag]}")
    return root


def runner(tag: str) -> list[str]:
    """The words before a program that run it."""
    if not tag.endswith(platform.machine()):
        if not shutil.which("qemu-aarch64"):
            pytest.skip("qemu-aarch64 is not installed")
        return ["qemu-aarch64", "-L", str(system(tag))]
    system(tag)
    return []


def program(tag: str, package: Path) -> Path:
    """benchmarks/ours.cpp, built against the wheel for its platform."""
    builder, target = cross_environment(), PLATFORMS[tag]
    variables = zig_variables(builder, target)
    library = package / "neml2_capi" / "lib"
    source, output = ROOT / "benchmarks" / "ours.cpp", package / "program"
    command: list[str | Path] = [zig(builder), "c++", "-target", target, source]
    command += ["-std=c++17", "-O1"]
    command += [f"-I{package / 'neml2_capi' / 'include'}", f"-Wl,-rpath,{library}"]
    (linked,) = library.glob("libneml2_capi.so.*")
    command += [linked, "-ldl", "-lpthread", "-o", output]
    environment = {**os.environ, **variables}
    subprocess.run(command, check=True, env=environment, timeout=PATIENCE)
    return output


@pytest.mark.full("zig compiles kernels")
@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "aarch64"])
def test_zig_compiles_kernels(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages, builder = {"one.pt2": random_program(1)}, cross_environment()
    folder = write_sources(tmp_path / "model", "cpu/float64", packages, {}, {"neml2": "none"})
    triple = f"{TARGETS[target].machine}-linux-gnu.2.17"
    for name, value in zig_variables(builder, triple).items():
        monkeypatch.setenv(name, value)
    (made,) = build(folder, [target], f"{zig(builder)} cc -target {triple}")
    assert made.read_bytes().startswith(b"\x7fELF")
    if TARGETS[target].machine != platform.machine():
        return
    other = made.rename(folder / "by-zig.so")
    (ours,) = build(folder, [target])
    inputs = [np.random.default_rng(2).uniform(-1, 1, (30, n)) for n in (6, 3)]
    found, expected = (load(path)["one"](*inputs)[0] for path in (other, ours))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", examples.NAMES)
def test_a_wheel_gives_the_numbers_of_this_machine(tag: str, package: Path, name: str) -> None:
    """Of its own example artifacts, by their kernels for that processor; 5 points and a step."""
    words = runner(tag)
    model = Model(examples.path(name))
    strain = 4e-3 * np.random.default_rng(3).normal(size=(POINTS, 6))
    has_state = any(variable.name.endswith("~1") for variable in model.inputs)
    given = model.state(POINTS).inputs(strain=strain, t=1.0) if has_state else {"strain": strain}
    outputs, blocks = model.jacobian(given)

    inputs, results = package / "inputs", package / "results"
    inputs.mkdir()
    results.mkdir()
    index = ""
    for variable in model.inputs:
        values = np.broadcast_to(given[variable.name], (POINTS, *variable.base_shape))
        np.ascontiguousarray(values, np.float64).tofile(inputs / f"{variable.name}.bin")
        index += " ".join([variable.name, *map(str, variable.base_shape)]) + "\n"
    (inputs / "index.txt").write_text(index)
    artifact = package / "neml2_capi" / "examples" / name
    task: list[str | Path] = [*words, program(tag, package)]
    task += [artifact, package, "jacobian", str(POINTS), "1"]
    told = f"write {results} {POINTS}\n"
    done = subprocess.run(task, input=told, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.split()[::2] == ["ready", "written"], done.stdout + done.stderr

    expected = dict(outputs)
    for output, columns in blocks.items():
        expected |= {f"{output},{by}": block for by, block in columns.items()}
    assert len(expected) > 1
    for file, values in expected.items():
        found = np.fromfile(results / f"{file}.bin").reshape(values.shape)
        np.testing.assert_allclose(found, values, rtol=0, atol=1e-12 * np.abs(values).max())


def test_the_bill_of_materials_names_what_is_inside(tag: str, package: Path) -> None:
    (document,) = package.glob("*.dist-info/sboms/*.cdx.json")
    bill = json.loads(document.read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "neml2_capi"
    components = {component["name"]: component for component in bill["components"]}
    assert set(components) == {"nlohmann-json", "libc++"}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", c["version"]) for c in components.values())


def test_a_wheel_needs_no_run_time_of_a_compiler(tag: str, package: Path) -> None:
    system = ("libc.", "libm.", "libdl.", "libpthread.", "ld-linux")
    for library in (package / "neml2_capi" / "lib").glob("*.so*"):
        if library.read_bytes()[:4] != b"\x7fELF":
            continue  # the linker script
        printed = subprocess.run(["readelf", "-dW", library], capture_output=True, text=True)
        needed = re.findall(r"NEEDED.*\[(.*)\]", printed.stdout)
        assert needed and all(name.startswith(system) for name in needed), library
        # of which glibc has room for a few libraries that are opened at run time, and musl for none
        assert "STATIC_TLS" not in printed.stdout, library
        assert str(ROOT).encode() not in library.read_bytes()


def test_a_wheel_for_musl_asks_for_no_more_than_debians_musl(tag: str, package: Path) -> None:
    """musl's symbols have no versions, and zig's musl is newer than Debian 12's, 1.2.3."""
    if "musl" not in tag:
        pytest.skip("the symbols of glibc have versions, which auditwheel reads")
    loader = system(tag) / LOADERS[tag]
    offered = {name for name, _, section in symbols(loader) if section != "UND"}
    assert {"malloc", "pthread_create", "dlopen"} <= offered
    for library in (package / "neml2_capi" / "lib").glob("*.so.*"):
        asked = {name for name, bind, section in symbols(library) if (bind, section) == STRONG}
        assert "malloc" in asked, library
        assert asked <= offered, library


# Binding and section of a name that must be found elsewhere.
STRONG = ("GLOBAL", "UND")


def symbols(library: Path) -> list[tuple[str, str, str]]:
    """Dynamic symbols of a library: their names, bindings and sections."""
    printed = subprocess.run(
        ["readelf", "-W", "--dyn-syms", library], capture_output=True, text=True, check=True
    )
    rows = (line.split() for line in printed.stdout.splitlines())
    return [(row[7], row[4], row[6]) for row in rows if len(row) == 8 and row[0][:-1].isdigit()]


# Debian's g++ brings these; pip gets cmake and ninja from the index.
PLAIN = ("c++", "g++", "cc", "gcc", "as", "ld", "ar", "ranlib", "nm", "strip", "objdump", "sh")


@pytest.mark.everything("compiles the library as pip does, from the sources alone")
def test_the_sources_install_with_a_plain_compiler(tmp_path: Path) -> None:
    """With nothing on the path but g++ and its tools; then the first block of README.md runs."""
    sources = source_distribution(tmp_path)
    (tmp_path / "bin").mkdir()
    for name in PLAIN:
        if found := shutil.which(name):
            (tmp_path / "bin" / name).symlink_to(found)
    (before, _, rest) = (ROOT / "README.md").read_text().partition("```python\n")
    block = rest.partition("```")[0]
    assert before and "neml2_capi" in block
    python = tmp_path / "venv" / "bin" / "python"
    alone = {**os.environ, "PATH": str(tmp_path / "bin")}
    commands: list[list[str | Path]] = [
        [sys.executable, "-m", "venv", tmp_path / "venv"],
        [python, "-m", "pip", "install", "-c", ROOT / "constraints.txt", sources],
        [python, "-I", "-c", block],
    ]
    for command in commands:
        done = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full("builds the wheel of this machine")
def test_a_wheel_that_breaks_its_tag_is_not_written(tmp_path: Path) -> None:
    """The wheel by this machine's compiler needs a newer C library than 2.17."""
    with pytest.raises(Failure, match="needs more than manylinux_2_17_x86_64 promises"):
        repaired(built_wheel(), "manylinux_2_17_x86_64", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two clones, each with a cache of its own, which what wheels have in common is built in."""
    folder = tmp_path_factory.mktemp("clones")
    for name in ("one", "another one"):
        subprocess.run(["git", "clone", "-q", ROOT, folder / name], check=True)
    return sorted(folder.iterdir())


@pytest.mark.everything("cross-compiles the library twice")
@pytest.mark.parametrize("tag", ["manylinux_2_17_x86_64", *ELSEWHERE])
def test_two_clones_give_the_same_bytes(tag: str, clones: list[Path]) -> None:
    found = set()
    for clone in clones:
        cache = {**os.environ, "XDG_CACHE_HOME": f"{clone}.cache"}
        command = ["python3", "build.py", "wheel", "--platform", tag]
        done = subprocess.run(command, cwd=clone, env=cache, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        found.add(done.stdout.splitlines()[-1].split()[0])
    assert len(found) == 1


#: Bytes of the core library at most.
SIZE = 1_500_000


@pytest.mark.everything("cross-compiles the core")
@pytest.mark.parametrize("preset", PRESETS)
def test_the_core_alone_is_small(preset: str) -> None:
    files = core_for(preset, "neml2_capi").folder.glob("lib/libneml2_capi.*")
    (library,) = {file.resolve() for file in files if file.suffix != ".a"}
    assert library.stat().st_size <= SIZE


def exported(library: Path) -> set[str]:
    """Names that a library of Windows or macOS gives to programs, as llvm's tools read them."""
    if library.suffix == ".dll":
        command, pattern = ["llvm-readobj", "--coff-exports"], r"^ *Name: (\S+)$"
    else:
        command, pattern = ["llvm-nm", "--extern-only", "--defined-only"], r" \w _(\S+)$"
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed: apt-get install llvm")
    printed = subprocess.run([*command, library], capture_output=True, text=True, check=True)
    return set(re.findall(pattern, printed.stdout, re.MULTILINE))


@pytest.mark.everything("cross-compiles the core")
@pytest.mark.parametrize("tag", ELSEWHERE)
def test_a_wheel_for_another_system_exports_our_functions_alone(tag: str, tmp_path: Path) -> None:
    library = "libneml2_capi.dll" if tag.startswith("win") else "libneml2_capi.1.dylib"
    with zipfile.ZipFile(platform_wheel(tag)) as archive:
        file = Path(archive.extract(f"neml2_capi/lib/{library}", tmp_path))
    listed = (ROOT / "capi" / "abi" / "neml2_capi.map").read_text()
    assert exported(file) == set(re.findall(r"^ +(neml2_\w+);$", listed, re.MULTILINE))
    assert file.stat().st_size <= SIZE


@pytest.mark.everything("cross-compiles the core")
@pytest.mark.parametrize("tag", [tag for tag in ELSEWHERE if tag.startswith("macos")])
def test_a_plug_in_of_a_wheel_for_macos_exports_what_hosts_look_for(
    tag: str, tmp_path: Path
) -> None:
    """And is signed, and sound for LIEF, with an artifact inside."""
    with zipfile.ZipFile(platform_wheel(tag)) as archive:
        shell = archive.read("neml2_capi/lib/neml2_plugin.dylib")
    made = tmp_path / "libsteel.dylib"
    made.write_bytes(with_segment(shell, b"neml2 artifact\n\0", made.name))
    require_signed(made.read_bytes(), made.name)
    assert read_by_lief(made)["faults"] == ""
    names = exported(made)
    ours = {name for name in names if name.startswith("NEML2_")}
    assert names - ours == {"UMAT", "umat", "umat_", "VUMAT", "vumat", "vumat_"}
    assert {"NEML2_PlaneStress", "NEML2_nMaterialProperties", "NEML2_setOutOfBoundsPolicy"} <= ours


# delocate asks for Apple's tools; LLVM's know no -m: parentheses are part of a name.
_OTOOL = """#!/bin/bash
words=(); for word in "$@"; do [ "$word" = -m ] || words+=("$word"); done
exec llvm-otool-14 "${words[@]}"
"""


@pytest.mark.everything("cross-compiles the core")
@pytest.mark.parametrize("tag", [tag for tag in ELSEWHERE if tag.startswith("macos")])
def test_delocate_finds_that_a_wheel_needs_macos_alone(tag: str, tmp_path: Path) -> None:
    """It reads all libraries and kernels: what they need, their processor, the oldest macOS."""
    if not shutil.which("llvm-otool-14") or not shutil.which("llvm-lipo-14"):
        pytest.skip("llvm-otool-14 is not installed: apt-get install llvm-14")
    (tmp_path / "otool").write_text(_OTOOL)
    (tmp_path / "otool").chmod(0o755)
    (tmp_path / "lipo").symlink_to(str(shutil.which("llvm-lipo-14")))
    path = f"{tmp_path}:{os.environ['PATH']}"
    builder, wheel = cross_environment(), platform_wheel(tag)
    architecture = tag.removeprefix("macosx_").split("_", 2)[2]

    def printed(*command: str | Path) -> str:
        done = subprocess.run(
            command, env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    needed = printed(builder.program("delocate-listdeps"), "--all", wheel)
    assert needed.split() == ["/usr/lib/libSystem.B.dylib"]
    options = ("--require-archs", architecture, "-w", tmp_path / "fixed", wheel)
    printed(builder.program("delocate-wheel"), *options)
    assert [file.name for file in (tmp_path / "fixed").iterdir()] == [wheel.name]


@pytest.mark.everything("cross-compiles the core")
@pytest.mark.parametrize("tag", [tag for tag in ELSEWHERE if tag.startswith("win")])
def test_delvewheel_finds_that_a_wheel_needs_windows_alone(tag: str) -> None:
    program = cross_environment().program("delvewheel")
    command: Command = [program, "show", "--analyze-existing", platform_wheel(tag)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    copied, _, present = done.stdout.partition("are assumed to be present")
    assert copied.split("copied into the wheel.")[1].split()[0] == "None"
    needed = set(re.findall(r"^ +(\S+)[.]dll$", present, re.MULTILINE))
    assert "kernel32" in needed
    assert all(name.startswith("api-ms-win-crt-") for name in needed - {"kernel32"})


def test_a_wheel_exports_our_functions_alone(tag: str, package: Path) -> None:
    (library,) = (package / "neml2_capi" / "lib").glob("libneml2_capi.so.*")
    names = {name for name, _, section in symbols(library) if section not in ("UND", "ABS")}
    assert names and all(name.startswith("neml2_") for name in names)


@pytest.mark.everything("cross-compiles the core")
@pytest.mark.parametrize("tag", ELSEWHERE)
def test_a_wheel_for_another_system_holds_its_library_and_kernels(tag: str) -> None:
    """Python of Windows ran it under wine by hand: docs/platforms.md."""
    wheel = platform_wheel(tag)
    assert wheel.name.endswith(f"-py3-none-{tag}.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("neml2_capi/")}
        windows = tag.startswith("win")
        library = "libneml2_capi.dll" if windows else "libneml2_capi.1.dylib"
        system = SYSTEMS["windows" if windows else "macos"]
        assert archive.read(f"neml2_capi/lib/{library}").startswith(system.magic)
        assert f"neml2_capi/lib/neml2_plugin.{'dll' if windows else 'dylib'}" in names
        assert not any(name.endswith(".so") for name in names)
        for name in examples.NAMES:
            folder = f"neml2_capi/examples/{name}/kernels/float64"
            objects = json.loads(archive.read(f"{folder}/kernels.json"))["objects"]
            assert objects
            for entry in objects:
                assert archive.read(f"{folder}/{entry['file']}").startswith(system.magic)
