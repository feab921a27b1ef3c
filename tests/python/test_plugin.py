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
from native import CC, HOSTS, PREBUILT, kept
from numpy.typing import NDArray
from tracing import opened, tracer

from neml2_capi import Model, drive
from neml2_capi._ffi.library import library_path
from neml2_capi.cli.commands import neml2_capi as command_line
from neml2_capi.plugin import PluginError, make
from neml2_capi.umat import DraftError, draft

pytestmark = pytest.mark.native

HARDENING = PREBUILT / "combined_hardening"
# One point of tests/hosts/plugin.c: direct components, then 12, 13, 23, shear doubled.
STRAIN = np.array([4e-3, -1e-3, -2e-3, 3e-3, -5e-3, 2e-3])
ORDER, SHEAR = [0, 1, 2, 5, 4, 3], np.array([1, 1, 1, *[np.sqrt(2)] * 3])


def program(name: str = "plugin") -> Path:
    """A program in C, which is linked with nothing of ours."""
    return kept("program", (CC,), HOSTS / f"{name}.c", "-ldl") / "program"


def expected() -> dict[str, NDArray[np.float64]]:
    """Results of the model at that point, in the form of UMAT."""
    model = Model(HARDENING)
    inputs = {v.name: np.zeros(v.base_shape) for v in model.inputs}
    inputs |= {
        "t": np.array(1.0),
        "strain": (STRAIN / np.array([1, 1, 1, *[2] * 3]) * SHEAR)[ORDER],
    }
    outputs, tangents = model.jacobian(inputs)
    stress = outputs["stress"][ORDER] / SHEAR
    tangent = tangents["stress"]["strain"][np.ix_(ORDER, ORDER)] / SHEAR[:, None] / SHEAR
    states = [outputs[name][ORDER] / SHEAR for name in ("X1", "X2")]
    plastic = outputs["equivalent_plastic_strain"]
    return {
        "stress": stress,
        "ddsdde": tangent.T.ravel(),
        "statev": np.concatenate([[plastic], *states]),
    }


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


def called(library: Path, *wrappers: str, folder: Path) -> dict[str, NDArray[np.float64]]:
    """Run the program in C on a library, in a folder without anything else."""
    done = subprocess.run(
        [*wrappers, program(), library], cwd=folder, capture_output=True, text=True, check=True
    )
    lines = (line.split() for line in done.stdout.splitlines())
    return {word: np.array([float(n) for n in numbers]) for word, *numbers in lines}


def assert_is_expected(found: Mapping[str, NDArray[np.float64]]) -> None:
    for name, values in expected().items():
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-12 * abs(values).max())


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "alone"
    folder.mkdir()
    return folder


def test_a_program_in_c_gets_what_the_model_gives(alone: Path) -> None:
    lines = make(HARDENING, alone / "libsteel.so")
    assert re.search(r"libsteel\.so: \d\.\d MB, kernels$", lines[0])
    assert lines[1].split() == ["STATEV", "1", "equivalent_plastic_strain"]
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


def test_vumat_names_its_material_too(several: Path) -> None:
    done = explicit(several, blocks())
    assert done.returncode == 1 and "no material of that name" in done.stderr


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


# ---- VUMAT ----

# Components in Abaqus/Explicit: 11, 22, 33, 12, 23, 31, shear not doubled.
EXPLICIT = [0, 1, 2, 5, 3, 4]


def explicit(
    library: Path,
    strains: NDArray[np.float64],
    depvar: int = 19,
    scale: float = 1,
    dt: float = 1,
    nblock: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Call VUMAT for each of the strains (steps, points, 6); the result is in result.npy."""
    folder = library.parent
    np.save(folder / "strains.npy", strains)
    points = strains.shape[1] if nblock is None else nblock
    numbers = map(str, (points, depvar, scale))
    files = (str(folder / name) for name in ("strains.npy", "result.npy"))
    command = [sys.executable, str(HOSTS / "vumat.py"), str(library), *numbers, *files, str(dt)]
    return subprocess.run(command, capture_output=True, text=True)


def blocks() -> NDArray[np.float64]:
    """Strains of five points in four steps, as VUMAT has them."""
    points = np.linspace(0.2, 1, 5)[:, None] * np.array([4e-3, -1e-3, -2e-3, 1e-3, -2e-3, 1e-3])
    steps: NDArray[np.float64] = np.linspace(0.25, 1, 4)[:, None, None] * points
    return steps


def test_vumat_gives_what_a_drive_gives(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    done = explicit(alone / "libsteel.so", blocks())
    assert done.returncode == 0, done.stderr
    strain = np.zeros((5, 5, 6))
    strain[1:] = (blocks() * SHEAR)[..., np.argsort(EXPLICIT)]
    found = drive(Model(HARDENING), np.arange(5.0), {"strain": strain})
    tensors = [found[name][-1][:, EXPLICIT] / SHEAR for name in ("stress", "X1", "X2")]
    plastic = found["equivalent_plastic_strain"][-1][:, None]
    wanted = np.hstack([tensors[0], plastic, *tensors[1:], blocks()[-1]])
    assert plastic.max() > 1e-3
    result = np.load(alone / "result.npy")
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-10 * abs(wanted).max())


def test_vumat_keeps_states_that_no_mapping_names(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    for depvar in (19, 22):
        done = explicit(alone / "libsteel.so", blocks(), depvar=depvar)
        assert done.returncode == 0, done.stderr
        state = np.load(alone / "result.npy")[:, 6:]
        assert np.isfinite(state).all() and (state[:, 19:] == 5).all()


def test_vumat_ends_the_job_where_it_cannot_go_on(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    done = explicit(alone / "libsteel.so", blocks(), depvar=13)
    assert done.returncode == 1 and "needs 19: set *DEPVAR to that" in done.stderr
    done = explicit(alone / "libsteel.so", blocks(), scale=1e60)
    assert done.returncode == 1 and "points did not converge (the first is point 1" in done.stderr
    assert "VUMAT, material steel" in done.stderr
    strains = blocks()
    strains[:, 3] *= 1e60
    done = explicit(alone / "libsteel.so", strains)
    told = "1 of 5 points did not converge (the first is point 4 of the block): reduce"
    assert done.returncode == 1 and told in done.stderr


def test_vumat_takes_the_constants_that_the_mapping_names(alone: Path, tmp_path: Path) -> None:
    """More of them counted for nothing, and the constants of the artifact for them."""
    file, text = tmp_path / "steel.nml", draft(HARDENING, tmp_path / "steel.nml")
    file.write_text(text.replace("&parameter name = 'yield_stress', props = 2 /\n", ""))
    make(HARDENING, alone / "libsteel.so", mapping=file)
    done = explicit(alone / "libsteel.so", blocks())
    told = "there are 2 material constants, and the material has 1 (E): give them to *USER MATERIAL"
    assert done.returncode == 1 and told in done.stderr
    file.write_text(file.read_text().replace("&parameter name = 'E', props = 1 /\n", ""))
    make(HARDENING, alone / "libsteel.so", mapping=file)
    done = explicit(alone / "libsteel.so", blocks())
    assert done.returncode == 0, done.stderr


def test_a_capsule_of_a_plug_in_names_what_to_replay(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was told of the file, and its log not of the artifact, which is in the plug-in."""
    monkeypatch.setenv("NEML2_CAPI_CAPSULE", str(tmp_path / "failed"))
    make(HARDENING, alone / "libsteel.so")
    done = explicit(alone / "libsteel.so", blocks(), scale=1e60)
    (file,) = (tmp_path / "failed").iterdir()
    told = f"the failed call was written to {file}; rerun it with: neml2-capi replay {file} --artif"
    assert f"*WARNING: material steel: {told}" in done.stderr
    again = CliRunner().invoke(
        command_line, ["replay", str(file), "--artifact", str(HARDENING)], prog_name="neml2-capi"
    )
    assert again.exit_code == 0 and "reproduced" in again.output, again.output


def test_vumat_names_what_is_not_finite_and_no_time(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    strains = blocks()
    strains[1, 3, 0] = np.nan
    done = explicit(alone / "libsteel.so", strains)
    assert done.returncode == 1 and "reduce" not in done.stderr
    assert "strainInc of point 4, component 11, is NaN or infinite" in done.stderr
    done = explicit(alone / "libsteel.so", blocks(), dt=0)
    assert done.returncode == 1 and "dt is 0" in done.stderr and "reduce" not in done.stderr
    done = explicit(alone / "libsteel.so", blocks(), dt=np.nan)
    assert done.returncode == 1 and "dt is NaN or infinite" in done.stderr
    done = explicit(alone / "libsteel.so", 0 * blocks(), dt=0)
    assert done.returncode == 0 and not np.load(alone / "result.npy").any()


def test_vumat_of_no_points_has_nothing_to_do(alone: Path) -> None:
    """A part of a model that is divided among processes may have none."""
    make(HARDENING, alone / "libsteel.so")
    done = explicit(alone / "libsteel.so", blocks()[:, :0])
    assert done.returncode == 0, done.stderr
    done = explicit(alone / "libsteel.so", blocks()[:, :0], nblock=-1)
    assert done.returncode == 1 and "NBLOCK is -1; it is the number of points" in done.stderr


# ---- the generic behaviour of MFront's interface ----


def behaviour(library: Path, *arguments: str) -> tuple[list[str], dict[str, NDArray[np.float64]]]:
    """What the program in C finds in the tables of a library, and what the behaviour gives."""
    done = subprocess.run(
        [program("generic"), library, *arguments], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    told = [line[2:] for line in lines if line.startswith("#")]
    given = (line.split() for line in lines if not line.startswith("#"))
    return told, {word: np.array([float(n) for n in numbers]) for word, *numbers in given}


def test_the_generic_behaviour_gives_what_the_model_gives(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    told, found = behaviour(alone / "libsteel.so")
    assert told == [
        "MaterialProperties E yield_stress",
        "InternalStateVariables equivalent_plastic_strain:0 X1:1 X2:1",
        "ExternalStateVariables",
        "TangentOperatorBlocks Stress Strain",
        "kind 1 1 1",
        "1 ",
    ]
    as_umat = expected()
    stress, tangent = as_umat["stress"] * SHEAR, as_umat["ddsdde"].reshape(6, 6).T
    states = np.concatenate(
        [as_umat["statev"][:1], as_umat["statev"][1:7] * SHEAR, as_umat["statev"][7:] * SHEAR]
    )
    np.testing.assert_allclose(found["stress"], stress, rtol=0, atol=1e-12 * abs(stress).max())
    tangent = tangent * SHEAR[:, None] * SHEAR
    np.testing.assert_allclose(found["K"], tangent.ravel(), rtol=0, atol=1e-12 * tangent.max())
    np.testing.assert_allclose(found["states"], states, rtol=0, atol=1e-12 * abs(states).max())


def test_the_prediction_of_the_generic_behaviour_is_elastic(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    _, found = behaviour(alone / "libsteel.so")
    E, nu = 200e3, 0.3
    mu, lame = E / 2 / (1 + nu), E * nu / (1 + nu) / (1 - 2 * nu)
    direct = np.array([1.0, 1, 1, 0, 0, 0])
    hooke = lame * np.outer(direct, direct) + 2 * mu * np.eye(6)
    np.testing.assert_allclose(found["prediction"].reshape(6, 6), hooke, atol=1e-6 * E)


def test_a_point_that_fails_asks_the_generic_host_for_a_smaller_step(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    told, found = behaviour(alone / "libsteel.so", "too far")
    assert told[-1].startswith("-1 1 of 1 points did not converge")
    assert 0 < found["rdt"][0] < 1
    assert not found["stress"].any() and not found["states"].any()
