"""Plug-ins: one shared object for the programs that load a user material.

The drivers of test_umat.py and test_calculix.py run with them, too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from native import PREBUILT
from plugged import HARDENING, ORDER, SHEAR, STRAIN, assert_is_expected, called, program
from tracing import opened, tracer

from neml2_capi import Model
from neml2_capi._ffi.library import library_path
from neml2_capi.cli.commands import neml2_capi as command_line
from neml2_capi.plugin import PluginError, make
from neml2_capi.umat import DraftError, draft

pytestmark = pytest.mark.native

STATIC_TLS = 0x10


def flags(library: Path) -> int:
    """DT_FLAGS of a shared object."""
    content = library.read_bytes()
    (first,) = struct.unpack_from("<Q", content, 0x20)
    size, count = struct.unpack_from("<HH", content, 0x36)
    segments = (struct.unpack_from("<IIQQQQ", content, first + size * i) for i in range(count))
    ((offset, length),) = [(s[2], s[5]) for s in segments if s[0] == 2]
    entries = dict(struct.iter_unpack("<QQ", content[offset : offset + length]))
    return int(entries.get(30, 0))


def test_a_program_in_c_gets_what_the_model_gives(alone: Path) -> None:
    lines = make(HARDENING, alone / "libsteel.so")
    assert re.search(r"libsteel\.so: \d\.\d MB, kernels$", lines[0])
    assert [line.split() for line in lines[1:3]] == [["STRAN", "strain"], ["STRESS", "stress"]]
    assert lines[3].split() == ["STATEV", "1", "equivalent_plastic_strain"]
    assert_is_expected(called(alone / "libsteel.so", folder=alone))


def test_packages_give_the_same(alone: Path, tmp_path: Path) -> None:
    artifact = tmp_path / "packages"
    shutil.copytree(HARDENING, artifact, ignore=shutil.ignore_patterns("kernels"))
    lines = make(artifact, alone / "libsteel.so")
    assert lines[0].endswith("packages and kernels")
    assert_is_expected(called(alone / "libsteel.so", folder=alone))


def test_a_program_loads_a_library_for_each_material(alone: Path, tmp_path: Path) -> None:
    """The packages of one run on the provider of another, if both are of one build."""
    artifact = tmp_path / "packages"
    shutil.copytree(HARDENING, artifact, ignore=shutil.ignore_patterns("kernels"))
    libraries = [alone / f"lib{name}.so" for name in ("steel", "iron", "copper", "tin")]
    for library, source in zip(libraries, [HARDENING, artifact] * 2, strict=True):
        make(source, library)
    done = subprocess.run(
        [program(), *libraries], cwd=alone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [word for word, *_ in lines] == ["stress", "ddsdde", "statev", "properties"] * 4
    for first in range(0, 16, 4):
        assert_is_expected(
            {word: np.array([float(n) for n in ns]) for word, *ns in lines[first : first + 3]}
        )


@pytest.fixture
def several(alone: Path) -> Path:
    """A library of two materials."""
    lines = make([HARDENING, PREBUILT / "elasticity"], alone / "libALLOYS.so")
    names = [line.split()[1] for line in lines if line.startswith("CMNAME")]
    assert names == ["COMBINED_HARDENING", "ELASTICITY"]
    assert "NAME=@ABAQUS_ALLOYS@COMBINED_HARDENING" in lines[-1]
    return alone / "libALLOYS.so"


@pytest.mark.parametrize("name", ["ELASTICITY", "elasticity", "@ABAQUSNL_ALLOYS@ELASTICITY"])
def test_a_host_names_the_material_of_a_library_of_several(several: Path, name: str) -> None:
    done = subprocess.run(
        [program(), f"{name}:{several}", f"COMBINED_HARDENING:{several}"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    found = [{w: np.array([float(n) for n in ns]) for w, *ns in lines[k : k + 4]} for k in (0, 4)]
    assert_is_expected(found[1])
    strain = (STRAIN / np.array([1, 1, 1, *[2] * 3]) * SHEAR)[ORDER]
    outputs = Model(PREBUILT / "elasticity").forward({"strain": strain}, {"E": 200e3})
    np.testing.assert_allclose(found[0]["stress"], outputs["stress"][ORDER] / SHEAR, rtol=1e-12)
    assert [int(each["properties"][0]) for each in found] == [0, 0]  # MGIS could not say which


def test_a_name_that_a_library_of_several_has_not_is_told(several: Path) -> None:
    done = subprocess.run([program(), f"TIN:{several}"], capture_output=True, text=True)
    assert done.returncode == 1
    told = "material tin: this library has no material of that name; it has combined_hardening, ela"
    assert told in done.stderr


def test_materials_that_a_host_cannot_tell_apart_are_refused(tmp_path: Path) -> None:
    output = tmp_path / "libx.so"
    with pytest.raises(PluginError, match="Two materials are called 'elasticity'"):
        make([PREBUILT / "elasticity"] * 2, output)
    with pytest.raises(PluginError, match="2 artifacts and 1 mapping files"):
        make([HARDENING, PREBUILT / "elasticity"], output, mapping=[tmp_path / "a.nml"])
    files = [tmp_path / "a.nml", tmp_path / "b.nml"]
    for file, host in zip(files, ("abaqus", "kratos"), strict=True):
        file.write_text(draft(HARDENING, file, host=host))
    with pytest.raises(PluginError, match="for different hosts"):
        make([HARDENING] * 2, output, mapping=files)
    assert not output.exists()


def test_forty_libraries_load_beside_each_other(alone: Path) -> None:
    """None takes of the static block of thread-local storage, which is small."""
    make(HARDENING, alone / "libsteel.so")
    libraries = [alone / f"libsteel{number}.so" for number in range(40)]
    for library in libraries:
        shutil.copy(alone / "libsteel.so", library)
    done = subprocess.run([program(), *libraries], cwd=alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("stress") == 40


def test_each_of_several_libraries_has_tables_of_its_own(alone: Path) -> None:
    """Also if the host lets all see the symbols of all."""
    for name in ("steel", "iron"):
        make(HARDENING, alone / f"lib{name}.so")
    done = subprocess.run(
        [program(), alone / "libsteel.so", alone / "libiron.so"], capture_output=True, text=True
    )
    assert done.stdout.count("properties 2") == 2, done.stdout


@pytest.mark.parametrize("name", ["libneml2_capi.so.1", "libneml2_plugin.so", "libn2*.so"])
def test_no_library_asks_for_static_thread_local_storage(name: str) -> None:
    (library,) = Path(library_path()).parent.glob(name)
    assert not flags(library) & STATIC_TLS


STRIPS = {
    "strip": ("strip", "-o"),
    "strip, all": ("strip", "--strip-all", "-o"),
    "objcopy": ("objcopy", "--strip-all"),
    "llvm-strip": ("llvm-strip", "-o"),
    "llvm-objcopy": ("llvm-objcopy", "--strip-all"),
}


@pytest.mark.parametrize("command", STRIPS.values(), ids=STRIPS.keys())
def test_a_stripped_library_still_has_its_artifact(alone: Path, command: Sequence[str]) -> None:
    if not shutil.which(command[0]):
        pytest.skip(f"there is no {command[0]}")
    whole, stripped = alone / "libsteel.so", alone / "libstripped.so"
    make(HARDENING, whole)
    files = (stripped, whole) if command[-1] == "-o" else (whole, stripped)
    subprocess.run([*command, *files], check=True)
    assert_is_expected(called(stripped, folder=alone))


def test_no_file_but_the_library_is_opened(alone: Path) -> None:
    trace = alone.parent / "trace"
    make(HARDENING, alone / "libsteel.so")
    assert_is_expected(called(alone / "libsteel.so", *tracer(trace), folder=alone))
    assert opened(trace, alone) == {program().resolve(), alone / "libsteel.so"}


def test_the_host_and_the_constants_are_told(tmp_path: Path) -> None:
    file = tmp_path / "steel.nml"
    file.write_text(draft(HARDENING, file))
    runner = CliRunner()
    output = tmp_path / "libsteel.so"
    arguments = ["plugin", str(HARDENING), "-o", str(output), "--mapping", str(file)]
    done = runner.invoke(command_line, [*arguments, "--host", "kratos"])
    assert done.exit_code == 0, done.output
    assert "PROPS  2          yield_stress" in done.output
    assert json.loads(re.findall(rb'{"material".*?}}', output.read_bytes())[0])["host"] == "kratos"
    done = runner.invoke(command_line, [*arguments, "--host", "nastran"])
    assert done.exit_code == 2 and "calculix" in done.output


NAMES = {
    "libSTEEL.so": "NAME=@ABAQUS_STEEL@1, or @ABAQUSNL_STEEL@1 with NLGEOM",
    "libsteel.so": "would look for libSTEEL.so: for it, call the file libSTEEL.so",
    "libMY_STEEL.so": "would look for libMY.so: for it, call the file libMYSTEEL.so",
    "steel.so": "would look for libSTEEL.so: for it, call the file libSTEEL.so",
}


@pytest.mark.parametrize("name, told", NAMES.items())
def test_a_name_that_calculix_does_not_find_is_told(tmp_path: Path, name: str, told: str) -> None:
    for host in ("", "calculix"):
        assert told in make(HARDENING, tmp_path / name, host=host)[-1]
    assert "CalculiX" not in make(HARDENING, tmp_path / name, host="abaqus")[-1]


def test_the_wheel_has_a_script_that_builds_a_calculix_for_plug_ins() -> None:
    asked = [sys.executable, "-m", "neml2_capi", "--calculix"]
    script = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["bash", "-n", script], check=True)


_BEFORE = "&state name = 'X1'"
OPTION = "&option name = 'rescue', value = 0 /\n"
MISTAKES = {
    "group": ("&parameter", "&parametr", "unknown group 'parametr'; did you mean 'parameter'"),
    "key": ("props = 1", "prop = 1", "&parameter.prop: unknown key 'prop'"),
    "place": ("props = 1", "props = 0", "'E' needs a place"),
    "input": ("time = 't'", "time = ''", "input 't' is not in the mapping"),
    "state": ("'X2'", "'X3'", "unknown output 'X3'"),
    "parameter": ("'yield_stress'", "'strength'", "unknown parameter 'strength'"),
    "kind": ("kind = 'scalar'", "kind = 'spinor'", "scalar, vector, symmetric or tensor"),
    "size": ("kind = 'scalar'", "kind = 'symmetric'", "has 1 values"),
    "end of the last": ("props = 2 /", "props = 2", "ends with /"),
    "end of another": ("statev = 2 /", "statev = 2", "ends with /"),
    "quote": ("'yield_stress'", "'yield_stress", "Texts are in quotes"),
    "no group": ("&parameter name = 'E'", "parameter name = 'E'", "begins with &"),
    "stress": ("stress = 'stress'", "stress = 'sigma'", "-d sigma:strain"),
    "state twice": ("'X2'", "'X1'", "two groups of 'X1'"),
    "material twice": ("&state name = 'X1'", "&material /\n&state name = 'X1'", "there twice"),
    "host": ("time = 't'", "host = 'nastran', time = 't'", "no host 'nastran'"),
    "constant of nothing": (
        _BEFORE,
        f"&field name = 'X', value = 1 /\n{_BEFORE}",
        "unknown input 'X'",
    ),
    "value and place": (
        _BEFORE,
        f"&field name = 't', predef = 1, value = 1 /\n{_BEFORE}",
        "has a value and a place",
    ),
    "value": (_BEFORE, f"&field name = 't', value = 'now' /\n{_BEFORE}", "1 finite number"),
    "offset": (
        "statev = 2 /",
        "statev = 2, offset = 1, 2 /",
        "offset of 'X1' is .* 6 finite numbers",
    ),
    "energy": ("stress = 'stress'", "stored_energy = 'psi'", "no output 'psi' of one value"),
    "option": (
        _BEFORE,
        f"&option name = 'mitres', value = 9 /\n{_BEFORE}",
        "option 'mitres'.*miters",
    ),
    "number of an option": (
        _BEFORE,
        f"&option name = 'miters', value = -3 /\n{_BEFORE}",
        "'miters' must lie between 1 and .*; got -3",
    ),
    "text of an option": (
        _BEFORE,
        f"&option name = 'bounds', value = 'maybe' /\n{_BEFORE}",
        "'bounds' must be one of: off warn fail; got 'maybe'",
    ),
    "text for a number": (_BEFORE, f"&option name = 'atol', value = '1' /\n{_BEFORE}", "'atol'"),
    "option twice": (
        _BEFORE,
        f"{2 * OPTION}{_BEFORE}",
        "two groups of the option 'rescue'",
    ),
    "overlap": ("statev = 8", "statev = 7", r"'X1' and 'X2' share STATEV\(7\)"),
}


@pytest.mark.parametrize("old, new, message", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_in_the_mapping_is_told(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "steel.nml"
    text = draft(HARDENING, file)
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(PluginError, match=message):
        make(HARDENING, tmp_path / "libsteel.so", mapping=file)
    assert not (tmp_path / "libsteel.so").exists()


@pytest.mark.parametrize(
    ("name", "system", "message"),
    [
        ("steel.dll", "linux", "has the ending of windows, and the plug-in is for linux"),
        ("steel.so", "windows", "has the ending of linux"),
        ("steel.dylib", "linux", "has the ending of macos"),
    ],
)
def test_an_ending_of_another_system_is_refused(
    tmp_path: Path, name: str, system: str, message: str
) -> None:
    with pytest.raises(PluginError, match=message):
        make(HARDENING, tmp_path / name, system=system)
    assert not list(tmp_path.iterdir())


def test_an_artifact_in_single_precision_is_refused(
    artifacts: Mapping[str, Path], tmp_path: Path
) -> None:
    """Without the advice to open it with another element type, which a host cannot."""
    root = artifacts["elasticity_float32"]
    with pytest.raises(PluginError, match=r"computes in float32.*--dtype float64") as told:
        make(root, tmp_path / "libsingle.so")
    assert "Open it" not in str(told.value)
    with pytest.raises(DraftError, match="computes in float32"):
        draft(root)


@pytest.mark.parametrize("name", ["elasticity_3.0.0", "creep_3.0.6"])
def test_an_artifact_without_metadata_json_is_refused(
    artifacts: Mapping[str, Path], tmp_path: Path, name: str
) -> None:
    with pytest.raises(PluginError, match=r"no metadata\.json. Compile the model again"):
        make(artifacts[name], tmp_path / "libold.so")


def test_the_shell_alone_says_how_to_get_an_artifact(alone: Path) -> None:
    shell = shutil.copy(Path(library_path()).with_name("libneml2_plugin.so"), alone)
    done = subprocess.run([program(), shell], capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 1
    assert "neml2-capi plugin ARTIFACT" in done.stderr
