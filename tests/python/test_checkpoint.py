"""A run that is stopped and continued has the bits of one that was not, in every way of running."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from native import PREBUILT
from numpy.typing import NDArray
from patience import PATIENCE

from neml2_capi import FatalError, Model, Results, drive, examples
from neml2_capi._ffi.errors import check, read_text
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.source import native_source
from neml2_capi.cli.commands import neml2_capi as command_line
from neml2_capi.driver.checkpoint import Checkpoint
from neml2_capi.model.state_file import read_state, write_state

Array = NDArray[np.float64]

DIRECTION = np.array([1, -0.5, -0.5, 0.1, 0, 0])
STRETCH = np.linspace(0.005, 0.01, 5)[:, np.newaxis]
TIMES = np.linspace(0, 12, 13)
CYCLES = np.sin(TIMES)[:, np.newaxis, np.newaxis] * STRETCH * DIRECTION


@pytest.fixture
def steel() -> Model:
    return Model(examples.path("chaboche"))


def equal(found: Results, expected: Results) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


# ------------------------------------------------------------------------------------------------
# Steps by hand
# ------------------------------------------------------------------------------------------------


def test_steps_by_hand_at_every_third_step(steel: Model, tmp_path: Path) -> None:
    whole, part = steel.state((5, 1)), steel.state((5, 1))
    for step in range(1, 13):
        for state in (whole, part):
            inputs = state.inputs(strain=CYCLES[step][:, np.newaxis], t=TIMES[step])
            state.advance(steel.forward(inputs))
        if step % 3 == 0:
            steel.save_state(tmp_path / "run.state", part, step=step, time=TIMES[step])
            part, reached, time = Model(examples.path("chaboche")).load_state(
                tmp_path / "run.state"
            )
            assert (reached, time) == (step, TIMES[step])
    for name in ("stress", "X1", "X2", "equivalent_plastic_strain", "strain"):
        np.testing.assert_array_equal(part[name], whole[name])
    assert part["stress"].shape == (5, 1, 6) and len(list(tmp_path.iterdir())) == 1


def test_what_is_no_state_of_a_model_is_not_saved(steel: Model, tmp_path: Path) -> None:
    """It was written with the checksum of the artifact, and could not be read again."""
    file, state = tmp_path / "run.state", steel.state(2)
    other = Model(examples.path("isotropic_hardening")).state(2)
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (other, {}, "must be a State of this model's state.*which has strain~1, t~1"),
        ("state", {}, "must be a State of this model's state"),
        (state, {"step": 1.5}, "step must be a whole number of 64 bits; got 1.5"),
        (state, {"step": 2**63}, "step must be a whole number of 64 bits"),
        (state, {"time": np.nan}, "time must be a finite number; got nan"),
        (state, {"time": "1"}, "time must be a finite number; got '1'"),
    ]
    for given, options, message in wrong:
        with pytest.raises(FatalError, match=message):
            steel.save_state(file, given, **options)
    assert not file.exists()


def test_one_value_for_all_points_is_saved_for_each(steel: Model, tmp_path: Path) -> None:
    """The file said that it is of one point, which other languages refuse."""
    file, state = tmp_path / "run.state", steel.state(3)
    inputs = state.inputs(strain=CYCLES[3][0], t=TIMES[3])
    state.advance(steel.forward(inputs))
    steel.save_state(file, state)
    arrays, told = read_state(file)
    assert told["npoints"] == "3"
    assert {array.shape[0] for name, array in arrays.items() if "/" not in name} == {3}
    again, _, _ = steel.load_state(file)
    np.testing.assert_array_equal(again["strain"], np.broadcast_to(CYCLES[3][0], (3, 6)))


IN_GERMAN = """
import locale, sys
from neml2_capi import Model, examples
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert locale.localeconv()["decimal_point"] == ","
law = Model(examples.path("chaboche"))
law.save_state(sys.argv[1], law.state(2), step=3, time=0.1)
assert law.load_state(sys.argv[1])[1:] == (3, 0.1)
"""


@pytest.mark.full("makes a locale")
def test_numbers_have_a_point_in_a_locale_with_a_comma(tmp_path: Path) -> None:
    if not shutil.which("localedef") or not Path("/usr/share/i18n/locales/de_DE").exists():
        pytest.skip("localedef and its sources are not installed: apt-get install locales")
    made = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(tmp_path / "de_DE.UTF-8")]
    subprocess.run(made, check=True, capture_output=True)
    there = os.environ | {"LOCPATH": str(tmp_path)}
    command = [sys.executable, "-c", IN_GERMAN, str(tmp_path / "run.state")]
    subprocess.run(command, check=True, env=there, timeout=PATIENCE)


def test_the_file_is_one_of_safetensors(steel: Model, tmp_path: Path) -> None:
    """By its published layout: a length, a header in JSON, arrays without gaps."""
    state = steel.state(2, initial={"stress": np.arange(12.0).reshape(2, 6)})
    steel.save_state(tmp_path / "run.state", state, step=3, time=0.1)
    content = (tmp_path / "run.state").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    told = header.pop("__metadata__")
    assert (told["step"], told["time"], told["npoints"]) == ("3", "0.1", "2")
    spans = sorted(entry["data_offsets"] for entry in header.values())
    assert [begin for begin, _ in spans] == [0, *(end for _, end in spans[:-1])]
    assert spans[-1][1] == len(content) - 8 - length
    entry = header["stress~1"]
    begin, end = (8 + length + offset for offset in entry["data_offsets"])
    found = np.frombuffer(content[begin:end], "<f8").reshape(entry["shape"])
    np.testing.assert_array_equal(found, state["stress"])


def test_a_state_of_the_library_is_read_in_python_and_back(steel: Model, tmp_path: Path) -> None:
    """By the functions of C, over arrays that a call has bound."""
    path = str(tmp_path / "run.state").encode()
    state = steel.state(3)
    inputs = state.inputs(strain=CYCLES[1][:3], t=1.0)
    state.advance(steel.forward(inputs))
    arrays = {name: np.array(value) for name, value in state.inputs(strain=0, t=0).items()}
    call, step, time = steel._engine.new_call(), ffi.new("int64_t *"), ffi.new("double *")
    for name, value in arrays.items():
        if name in ("strain", "t"):
            continue
        value = arrays[name] = np.array(np.broadcast_to(value, (3, *value.shape[1:])))
        pointer, size = ffi.cast("void *", value.ctypes.data), value[0].size
        check(
            lib.neml2_call_bind(
                call[0], lib.NEML2_INPUT, name.encode(), pointer, lib.NEML2_FLOAT64, size
            )
        )
    check(lib.neml2_call_state_save(call[0], path, 3, 7, 0.1))
    found, *position = steel.load_state(tmp_path / "run.state")
    assert position == [7, 0.1]
    steel.save_state(tmp_path / "run.state", found, step=8, time=0.2)
    expected = {name: value.copy() for name, value in arrays.items()}
    for value in arrays.values():
        value.fill(0)
    check(lib.neml2_call_state_load(step, time, call[0], path, 3))
    assert (step[0], time[0]) == (8, 0.2)
    for name in ("stress~1", "X1~1", "strain~1", "t~1"):
        np.testing.assert_array_equal(arrays[name], expected[name])
        np.testing.assert_array_equal(arrays[name], found.arrays()[name])
    lib.neml2_call_free(call)


# ------------------------------------------------------------------------------------------------
# Files that do not fit
# ------------------------------------------------------------------------------------------------


def test_no_other_file_is_taken(steel: Model, tmp_path: Path) -> None:
    path = tmp_path / "run.state"
    steel.save_state(path, steel.state(2))
    content = path.read_bytes()

    def refused(expected: str, model: Model = steel) -> None:
        with pytest.raises(FatalError, match=expected):
            model.load_state(path)

    for place in [*range(0, 400, 3), *range(400, len(content), 31)]:
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        refused("checksum differs")
    for end in (0, 7, 24, 200, len(content) - 1):
        path.write_bytes(content[:end])
        refused("checksum differs")
    path.unlink()
    refused("cannot|can be read: .*No such file")
    path.write_bytes(content)
    refused("written with another artifact", Model(examples.path("isotropic_hardening")))
    arrays, told = read_state(path)
    write_state(path, {"stress~1": arrays["stress~1"]}, {**told})
    refused("lacks .*X1~1.*; it holds stress~1")
    write_state(path, {**arrays, "X1~1": arrays["X1~1"][:, :2]}, told)
    refused("X1")
    told.pop("format")
    with pytest.raises(FatalError, match="inside the installed package"):
        steel.save_state(examples.FOLDER / "run.state", steel.state(2))


def test_the_checksum_is_of_what_an_artifact_computes(tmp_path: Path) -> None:
    """Kernels for other processors leave it; another law, precision or constant changes it."""

    def checksum(root: Path) -> str:
        with Model(root) as model:
            found: str = model.checksum
        return found

    copy = Path(shutil.copytree(examples.path("elasticity"), tmp_path / "elasticity"))
    assert checksum(copy) == checksum(examples.path("elasticity"))
    kernels = copy / "kernels" / "float64" / "kernels.json"
    document = json.loads(kernels.read_text())
    kernels.write_text(json.dumps({**document, "made_with": {"neml2": "later", "torch": "later"}}))
    assert checksum(copy) == checksum(examples.path("elasticity"))
    kernels.write_text(json.dumps({**document, "metadata_checksum": None}))
    metadata = copy / "metadata.json"
    metadata.write_text(metadata.read_text().replace("200000.0", "200001.0"))
    others = [checksum(copy), *(checksum(examples.path(name)) for name in examples.NAMES)]
    assert len({*others, checksum(PREBUILT / "elasticity")}) == 5


# ------------------------------------------------------------------------------------------------
# drive
# ------------------------------------------------------------------------------------------------

RUNS: dict[str, dict[str, Any]] = {
    "strains": {"forces": {"strain": CYCLES}},
    "a report and tangents": {
        "forces": {"strain": CYCLES},
        "report": True,
        "derivatives": {"stress": {"strain": True}},
    },
    "steps that are cut": {"forces": {"strain": 30 * CYCLES}, "record": ["stress"]},
    "stresses": {
        "forces": {"strain": {"xx": CYCLES[..., 0]}},
        "control": {"stress": "uniaxial"},
    },
}


class Stopped(Exception):
    """The job was killed."""


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_driver_that_is_stopped_at_any_step_goes_on(
    run: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steel = Model(examples.path("chaboche"))
    if "record" in run:
        steel.options["miters"] = 9  # so that steps are cut
    whole = drive(steel, TIMES, **run)
    assert ("record" in run) == bool((whole["substeps"] > 1).any())
    keep = Checkpoint.keep

    def killed(self: Checkpoint, step: int) -> None:
        keep(self, step)
        raise Stopped

    file = tmp_path / "run.state"
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "keep", killed)
        for _ in range(4):
            with pytest.raises(Stopped):
                drive(steel, TIMES, **run, checkpoint=file, checkpoint_steps=3)
    assert read_state(file)[1]["step"] == "12"
    equal(drive(steel, TIMES, **run, checkpoint=file, checkpoint_steps=3), whole)
    equal(drive(steel, TIMES, **run, checkpoint=file), whole)  # nothing is left to do


def test_a_run_goes_on_to_later_times_and_other_programs_take_its_state(
    steel: Model, tmp_path: Path
) -> None:
    file = tmp_path / "run.state"
    drive(steel, TIMES[:6], {"strain": CYCLES[:6]}, checkpoint=file)
    whole = drive(steel, TIMES, {"strain": CYCLES})
    equal(drive(steel, TIMES, {"strain": CYCLES}, checkpoint=file), whole)
    state, step, time = steel.load_state(file)
    assert (step, time) == (12, TIMES[12])
    np.testing.assert_array_equal(state["stress"], whole["stress"][-1])


@pytest.mark.parametrize("batch", [(0,), (2, 0)])
def test_a_run_of_no_points_is_kept(steel: Model, tmp_path: Path, batch: tuple[int, ...]) -> None:
    """Each point has its times: none has a last one."""
    file = tmp_path / "run.state"
    times = np.zeros((5, *batch))
    run: dict[str, Any]
    for run in (
        {"forces": {"strain": np.zeros((5, *batch, 6))}},
        {"forces": {"strain": {"xx": times}}, "control": {"stress": "uniaxial"}, "report": True},
    ):
        whole = drive(steel, times, **run)
        assert whole["stress"].shape == (5, *batch, 6)
        for _ in range(2):
            equal(drive(steel, times, **run, checkpoint=file, checkpoint_steps=2), whole)
        assert steel.load_state(file)[1:] == (4, 0.0)
        file.unlink()


def test_a_checkpoint_of_another_run_is_refused(steel: Model, tmp_path: Path) -> None:
    file = tmp_path / "run.state"
    drive(steel, TIMES[:4], {"strain": CYCLES[:4]}, record=["stress"], checkpoint=file)
    other = CYCLES.copy()
    other[2, 1, 0] += 1e-9
    changes: dict[str, dict[str, Any]] = {
        "the times differs": {"times": 2 * TIMES},
        "parameter 'E' differs": {"parameters": {"E": 190e3}},
        "force 'strain' differs": {"forces": {"strain": other}},
        "initial value 'X1' differs": {"initial": {"X1": np.full(6, 1e-9)}},
        "force .strain. differs": {
            "forces": {"strain": {"xx": CYCLES[..., 0]}},
            "control": {"stress": "uniaxial"},
        },
        "its 'strain~1' is ": {"forces": {"strain": CYCLES[:, :2]}},
        "its 'result/": {"record": ["X2"]},
        "is of step 3, and this run has 2": {"times": TIMES[:3], "forces": {"strain": CYCLES[:3]}},
        "checkpoint_steps must be": {"checkpoint_steps": 0},
        "checkpoint must be the path": {"checkpoint": 3},
        "keeps no history": {"derivatives": ["E"]},
    }
    usual = {"times": TIMES, "forces": {"strain": CYCLES}, "checkpoint": file, "record": ["stress"]}
    for expected, change in changes.items():
        with pytest.raises(FatalError, match=expected):
            drive(steel, **{**usual, **change})
    steel["yield_stress"] = 101.0
    with pytest.raises(FatalError, match="parameter 'yield_stress' differs"):
        drive(steel, **usual)  # type: ignore[arg-type]
    steel.save_state(file, steel.state(5))
    with pytest.raises(FatalError, match="is not a checkpoint of drive"):
        drive(steel, **usual)  # type: ignore[arg-type]


def test_a_control_that_is_left_out_or_changed_is_refused(steel: Model, tmp_path: Path) -> None:
    file, forces = tmp_path / "run.state", {"strain": {"xx": CYCLES[..., 0]}}
    begun = {"strain": {"xx": CYCLES[:4, :, 0]}}
    drive(steel, TIMES[:4], begun, control={"stress": "uniaxial"}, checkpoint=file)
    with pytest.raises(FatalError, match=r"control 'stress\.zz' differs"):
        control = {"stress": {**dict.fromkeys(("yy", "yz", "xz", "xy"), 0.0), "zz": 1e-3}}
        drive(steel, TIMES, forces, control=control, checkpoint=file)
    with pytest.raises(FatalError, match=r"control 'stress\.yy' differs"):
        drive(steel, TIMES, forces, checkpoint=file)


def test_a_control_of_a_whole_tensor_goes_on(steel: Model, tmp_path: Path) -> None:
    """The strains that it finds are not those that were given."""
    file = tmp_path / "run.state"
    strain = np.zeros_like(CYCLES)
    strain[..., 0] = CYCLES[..., 0]
    wanted = drive(steel, TIMES, {"strain": strain}, control={"stress": "uniaxial"})
    drive(steel, TIMES[:4], {"strain": strain[:4]}, control={"stress": "uniaxial"}, checkpoint=file)
    for _ in range(2):
        again = drive(
            steel, TIMES, {"strain": strain}, control={"stress": "uniaxial"}, checkpoint=file
        )
        equal(again, wanted)


def test_forces_that_are_functions_are_compared_at_the_step_that_was_reached(
    steel: Model, tmp_path: Path
) -> None:
    def force(amplitude: float) -> Any:
        return lambda t: amplitude * np.sin(t) * DIRECTION

    file = tmp_path / "run.state"
    drive(steel, TIMES[:4], {"strain": force(0.005)}, checkpoint=file)
    with pytest.raises(FatalError, match="force 'strain' differs"):
        drive(steel, TIMES, {"strain": force(0.006)}, checkpoint=file)
    again = drive(steel, TIMES, {"strain": force(0.005)}, checkpoint=file)
    equal(again, drive(steel, TIMES, {"strain": force(0.005)}))


def test_forces_may_change_after_the_step_that_was_reached(steel: Model, tmp_path: Path) -> None:
    file, other = tmp_path / "run.state", CYCLES.copy()
    other[4:] *= 0.5
    drive(steel, TIMES[:4], {"strain": CYCLES[:4]}, checkpoint=file)
    again = drive(steel, TIMES, {"strain": other}, checkpoint=file)
    equal(again, drive(steel, TIMES, {"strain": other}))


def test_a_file_of_a_run_says_where_its_checkpoint_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.toml"
    text = f"""
artifact = "{examples.path("chaboche")}"
times = {{ end = 10.0, steps = 20 }}
forces.strain.xx.points = [[0, 0], [5, 0.01], [10, -0.01]]
output.file = "results.npz"
"""
    file.write_text(text)
    assert CliRunner().invoke(command_line, ["run", str(file)]).exit_code == 0
    whole = Results.load(tmp_path / "results.npz")
    file.write_text(text + '[checkpoint]\nfile = "run.state"\nsteps = 3\n')
    keep = Checkpoint.keep

    def killed(self: Checkpoint, step: int) -> None:
        keep(self, step)
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "keep", killed)
        done = CliRunner().invoke(command_line, ["run", str(file)])
        assert isinstance(done.exception, Stopped)
    assert read_state(tmp_path / "run.state")[1]["step"] == "3"
    assert CliRunner().invoke(command_line, ["run", str(file)]).exit_code == 0
    equal(Results.load(tmp_path / "results.npz"), whole)


def test_a_checksum_is_of_what_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A law is compiled again while a job runs, or its folder goes: the job saves its own state."""
    artifact = tmp_path / "law"
    shutil.copytree(examples.path("chaboche"), artifact)
    monkeypatch.chdir(tmp_path)
    out, source = ffi.new("neml2_model **"), native_source("law")  # relative, as C has it
    check(lib.neml2_model_open(out, source))
    model, before = Model(artifact), Model(artifact).checksum
    model.save_state(tmp_path / "own", model.state(2))
    shutil.rmtree(artifact)
    monkeypatch.chdir("/")
    assert model.checksum == read_text(lib.neml2_model_checksum, out[0]) == before
    model.save_state(tmp_path / "again", model.state(2))
    assert (tmp_path / "again").read_bytes() == (tmp_path / "own").read_bytes()
    shutil.copytree(examples.path("chaboche"), artifact)
    document = (artifact / "metadata.json").read_text()
    (artifact / "metadata.json").write_text(document.replace('"atol": ', '"atol": 2'))
    other = tmp_path / "law" / "kernels" / "float64" / "kernels.json"
    told = json.loads(other.read_text())
    other.write_text(json.dumps({**told, "metadata_checksum": None}))
    assert Model(artifact).checksum != before
    model.load_state(tmp_path / "own")
    with pytest.raises(FatalError, match="was written with another artifact"):
        Model(artifact).load_state(tmp_path / "own")
    assert model.checksum == before
    lib.neml2_model_free(out)
