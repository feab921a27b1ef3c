"""Replay capsules: what is written of a call that failed, and `neml2-capi replay`."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import shlex
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from abaqus import UMAT, example
from command_line import command, error
from native import PREBUILT, needs_fortran, run
from numpy.typing import NDArray
from programs import built
from states import Artifacts, load, recorded
from test_bad_input import unchecked
from test_scenarios import FOLDER

from neml2_capi import ConvergenceError, FatalError, Model, Scheduler, __version__
from neml2_capi._ffi.library import lib

Arrays = dict[str, NDArray[Any]]
FAILED = 3  # the point that fails


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where capsules go; the library makes it."""
    return tmp_path / "capsules" / "of this test"


@pytest.fixture
def model(artifacts: Artifacts, folder: Path) -> Iterator[Model]:
    """A viscoplastic model that writes capsules."""
    with Model(artifacts["combined_hardening"]) as model:
        model.options["capsule"] = folder
        yield model


def step(model: Model, points: int = 6) -> Arrays:
    """A step from rest that the points from FAILED on do not make in 6 iterations."""
    inputs = {v.name: np.zeros((points, *v.base_shape)) for v in model.inputs}
    inputs["t"] += 1.0
    inputs["strain"][:, 0] = 1e-4 * np.arange(1.0, points + 1.0)
    inputs["strain"][FAILED:, 0] = 0.02 + 1e-6 * np.arange(points - FAILED)
    return inputs


def fail(model: Model, inputs: Arrays, parameters: Arrays | None = None) -> ConvergenceError:
    model.options["miters"] = 6
    with pytest.raises(ConvergenceError) as caught:
        model.forward(inputs, parameters)
    return caught.value


def only(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def document_of(file: Path) -> Any:
    with np.load(file) as entries:
        return json.loads(entries["capsule.json"])


def arrays_of(file: Path) -> Arrays:
    with np.load(file) as entries:
        return {name: entries[name] for name in entries.files if name != "capsule.json"}


def replayed(file: Path, *arguments: str | Path, status: int = 0) -> Any:
    done = command("replay", file, "--json", *arguments)
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout)


def edited(file: Path, change: Callable[[Any], object]) -> Path:
    """A copy of a capsule with another capsule.json."""
    document = document_of(file)
    change(document)
    copy = file.parent.parent / "edited.npz"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            content = json.dumps(document).encode() if name == "capsule.json" else old.read(name)
            new.writestr(name, content)
    return copy


# ------------------------------------------------------------------------------------------------
# What is written
# ------------------------------------------------------------------------------------------------


def test_a_failed_call_is_written_as_it_was(model: Model, folder: Path) -> None:
    inputs = step(model)
    yields = {"yield_stress": np.linspace(100.0, 200.0, 6)}
    model.named_parameters()["E"][...] = 150e3
    failure = fail(model, inputs, yields)
    arrays = arrays_of(only(folder))
    for name, value in inputs.items():
        np.testing.assert_array_equal(arrays[f"inputs/{name}"], value)
    np.testing.assert_array_equal(arrays["parameters/yield_stress"], yields["yield_stress"])
    assert arrays["parameters/E"] == 150e3
    for name in ("status", "iterations", "residual_norm", "suggested_cut"):
        np.testing.assert_array_equal(arrays[f"report/{name}"], failure.report[name])
    assert arrays["report/status"].tolist() == [0] * FAILED + [2] * 3
    assert arrays["points"].tolist() == list(range(6))


@pytest.mark.parametrize("size", [2, 5])
def test_a_call_in_sub_batches_is_one_capsule(
    artifacts: Artifacts, model: Model, folder: Path, size: int
) -> None:
    scheduled = Model(artifacts["combined_hardening"], scheduler=Scheduler("cpu", size))
    scheduled.options["capsule"] = folder.with_name("scheduled")
    fail(scheduled, step(scheduled))
    fail(model, step(model))
    ours, theirs = arrays_of(only(folder.with_name("scheduled"))), arrays_of(only(folder))
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)
    result = replayed(only(folder.with_name("scheduled")))
    assert result["exact"] and [each["point"] for each in result["points"]] == [3, 4, 5]


def test_a_capsule_says_of_what_it_is(model: Model, artifacts: Artifacts, folder: Path) -> None:
    failure = fail(model, step(model))
    told = document_of(only(folder))
    root = artifacts["combined_hardening"]
    assert told["library"]["version"] == __version__
    assert told["library"]["abi"] == lib.neml2_abi_version()
    assert told["artifact"]["path"] == str(root / "metadata.json")
    packages = sorted(file.name for file in (root / "cpu/float64").glob("*.pt2"))
    assert sorted(told["artifact"]["files"]) == sorted(["metadata.json", *packages])
    for name, size in told["artifact"]["files"].items():
        path = root / ("" if name == "metadata.json" else "cpu/float64") / name
        assert size["bytes"] == path.stat().st_size
    assert told["options"] == dict(model.options)
    assert (told["status"], told["message"]) == (lib.NEML2_NOT_CONVERGED, str(failure))
    assert (told["batch"], told["kept"]) == (6, "all")
    assert told["operation"]["outputs"] == model.outputs.names
    assert told["host"]["process"] == os.getpid()


def test_nothing_is_written_unless_a_call_fails(model: Model, folder: Path) -> None:
    good = {name: value[:FAILED] for name, value in step(model).items()}
    model.forward(good)
    with pytest.raises(FatalError):
        model.forward({**good, "strain": np.zeros((3, 5))})
    with pytest.raises(FatalError):
        model.forward({})
    assert not folder.exists()
    model.options["capsule"] = ""
    fail(model, step(model))
    assert not folder.exists()


def test_the_environment_names_the_folder(artifacts: Artifacts, folder: Path) -> None:
    script = (
        "import sys, numpy as np, neml2_capi\n"
        "m = neml2_capi.Model(sys.argv[1])\n"
        "print(m.options['capsule'])\n"
        "print(m.evaluate({'strain': np.full(6, np.nan)})[1]['status'])\n"
    )
    arguments = (sys.executable, "-c", script, artifacts["elasticity"])
    assert run(*arguments, NEML2_CAPI_CAPSULE=str(folder)).split() == [*str(folder).split(), "1"]
    assert document_of(only(folder))["status"] == lib.NEML2_NON_FINITE


def test_inputs_that_were_written_over_are_kept(artifacts: Artifacts, folder: Path) -> None:
    with Model(artifacts["elasticity"]) as model:
        model.options["capsule"] = folder
        strain = np.random.default_rng(1).standard_normal((5, 6))
        strain[2, 4] = np.inf
        before = strain.copy()
        call = model.bind({"strain": strain}, {"stress": strain})
        assert call.run() == lib.NEML2_NON_FINITE
        assert not np.array_equal(strain, before)
    np.testing.assert_array_equal(arrays_of(only(folder))["inputs/strain"], before)
    assert replayed(only(folder))["points"][0]["point"] == 2


def test_arrays_may_lie_anywhere(model: Model, folder: Path) -> None:
    inputs = step(model)
    state = np.full((6, 30), np.nan)
    state[:, 3:9] = inputs["strain"]
    model.options["miters"] = 6
    call = model.bind({**inputs, "strain": state[:, 3:9], "t": 1.0, "t~1": 0.0})
    assert call.run() == lib.NEML2_NOT_CONVERGED
    arrays = arrays_of(only(folder))
    np.testing.assert_array_equal(arrays["inputs/strain"], inputs["strain"])
    assert arrays["inputs/t"].shape == ()
    assert replayed(only(folder))["exact"]


def test_of_many_points_the_failed_ones_are_kept(model: Model, folder: Path) -> None:
    inputs = {name: np.repeat(value[:1], 10001, axis=0) for name, value in step(model).items()}
    inputs["strain"][[17, 9876], 0] = 0.02
    yields = {"yield_stress": np.linspace(150.0, 151.0, 10001)}
    failure = fail(model, inputs, yields)
    told, arrays = document_of(only(folder)), arrays_of(only(folder))
    assert (told["batch"], told["kept"]) == (10001, "failed")
    assert arrays["points"].tolist() == [17, 9876]
    np.testing.assert_array_equal(arrays["inputs/strain"], inputs["strain"][[17, 9876]])
    result = replayed(only(folder))
    assert result["reproduced"] and result["exact"]
    assert [point["point"] for point in result["points"]] == [17, 9876]
    norms = np.array([point["residual_norm"] for point in result["points"]])
    np.testing.assert_array_equal(norms.T, [failure.report["residual_norm"][[17, 9876]]] * 2)


def test_threads_of_one_call_write_one_capsule(model: Model, folder: Path) -> None:
    model.options.update({"threads": 4, "chunk": 2})
    inputs = {
        name: np.tile(value, (20, *(1,) * (value.ndim - 1))) for name, value in step(model).items()
    }
    fail(model, inputs)
    assert document_of(only(folder))["batch"] == 120
    assert replayed(only(folder))["exact"]


# ------------------------------------------------------------------------------------------------
# Processes, threads and folders
# ------------------------------------------------------------------------------------------------

_FAIL = """
import sys, numpy as np, neml2_capi
model = neml2_capi.Model(sys.argv[1])
model.options["capsule"] = sys.argv[2]

def fail(times):
    for _ in range(times):
        model.evaluate({"strain": np.full((2, 6), np.nan)})
"""


def test_threads_write_files_of_their_own_and_a_process_16_at_most(
    artifacts: Artifacts, folder: Path
) -> None:
    script = _FAIL + (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as pool: list(pool.map(fail, [10] * 4))\n"
    )
    run(sys.executable, "-c", script, artifacts["elasticity"], folder)
    files = list(folder.iterdir())
    assert len(files) == 16
    for file in files:
        assert file.suffix == ".npz" and np.isnan(arrays_of(file)["inputs/strain"]).all()


def test_a_forked_process_counts_its_own(artifacts: Artifacts, folder: Path) -> None:
    script = _FAIL + (
        "import os\nfail(15)\npid = os.fork()\nfail(3)\nif pid: assert os.waitpid(pid, 0)[1] == 0\n"
    )
    run(sys.executable, "-c", script, artifacts["elasticity"], folder)
    processes = [document_of(file)["host"]["process"] for file in folder.iterdir()]
    assert sorted(processes.count(process) for process in set(processes)) == [3, 16]


def test_a_folder_that_cannot_be_written_is_told_to_the_log(
    model: Model, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    inputs = step(model)
    expected = fail(model, inputs)
    model.options["capsule"] = tmp_path / "file"
    with caplog.at_level(logging.WARNING, "neml2_capi"):
        failure = fail(model, inputs)
    assert str(failure) == str(expected)
    for name, value in expected.outputs.items():
        np.testing.assert_array_equal(failure.outputs[name], value)
    (text,) = [r.getMessage() for r in caplog.records if "no capsule" in r.getMessage()]
    assert text.startswith("no capsule was written: ") and str(tmp_path / "file") in text
    assert (tmp_path / "file").read_text() == "no folder"


def test_the_log_tells_where_a_capsule_is(
    model: Model, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = folder.parent / "a user's capsules"
    model.options["capsule"] = folder
    with caplog.at_level(logging.WARNING, "neml2_capi"):
        fail(model, step(model))
    (text,) = [r.getMessage() for r in caplog.records if "neml2-capi replay" in r.getMessage()]
    words = shlex.split(text.partition("rerun it with: ")[2])
    assert words == ["neml2-capi", "replay", str(only(folder))]


@pytest.mark.parametrize("language", ["c", "f90", "py"])
def test_every_language_writes_capsules(folder: Path, language: str) -> None:
    source = FOLDER / f"failed_points.{language}"
    if language == "py":
        run(sys.executable, source, NEML2_CAPI_CAPSULE=str(folder))
    else:
        run(built(f"scenario_{language}_failed_points"), NEML2_CAPI_CAPSULE=str(folder))
    files = sorted(folder.iterdir(), key=lambda file: int(file.stem.rpartition("-")[2]))
    first = arrays_of(files[0])
    assert np.flatnonzero(first["report/status"]).tolist() == [FAILED]
    assert np.flatnonzero((first["inputs/strain"] > 1e100).any(axis=1)).tolist() == [FAILED]
    assert len(files) > 1
    for file in (files[0], files[-1]):
        result = replayed(file)
        assert result["reproduced"] and result["exact"], result


@pytest.mark.full("many processes")
@needs_fortran
def test_a_umat_writes_capsules(folder: Path) -> None:
    """An increment that is too large, which the host then cuts."""
    case, environment = UMAT / "cases" / "cut.nml", {"NEML2_CAPI_CAPSULE": str(folder)}
    run(example(), case, NEML2_UMAT_ARTIFACT=str(PREBUILT / "combined_hardening"), **environment)
    file = min(folder.iterdir(), key=lambda path: int(path.stem.rpartition("-")[2]))
    told = document_of(file)
    assert told["batch"] == 1 and told["operation"]["derivatives"] == ["stress:strain"]
    result = replayed(file)
    assert result["exact"] and len(result["points"][0]["history"]) > 1


# ------------------------------------------------------------------------------------------------
# Replay
# ------------------------------------------------------------------------------------------------


def test_a_replay_in_another_process_has_the_same_bits(model: Model, folder: Path) -> None:
    model.options["collect_history"] = 1
    failure = fail(model, step(model))
    result = replayed(only(folder))
    assert result["reproduced"] and result["exact"] and not result["differences"]
    assert [point["point"] for point in result["points"]] == [3, 4, 5]
    for point in result["points"]:
        report = {name: failure.report[name][point["point"]] for name in failure.report}
        assert point["status"] == [report["status"]] * 2
        assert point["iterations"] == [report["iterations"]] * 2
        assert point["residual_norm"] == [report["residual_norm"]] * 2
        assert point["segment"] == "segments[0]"
        history = report["residual_history"]
        assert point["history"] == history[~np.isnan(history)].tolist()


def test_a_replay_shows_newtons_method(model: Model, folder: Path) -> None:
    fail(model, step(model))
    done = command("replay", only(folder))
    assert done.returncode == 0 and not done.stderr
    assert "3 of 6 points did not converge" in done.stdout
    assert "3   not converged   segments[0]" in done.stdout
    assert "|r| at the initial guess, and after each step" in done.stdout
    assert done.stdout.rstrip().endswith("reproduced, to the last bit")
    one = command("replay", only(folder), "--point", "1").stdout
    assert "converged" in one and "point 4" not in one
    assert "point 9 is not in the capsule" in command("replay", only(folder), "--point", "9").stderr


@pytest.mark.parametrize("operation", ["jacobian", "jvp", "vjp"])
def test_derivatives_are_made_again(model: Model, folder: Path, operation: str) -> None:
    model.options["miters"] = 6
    inputs = step(model)
    arguments: dict[str, list[Any]] = {
        "jacobian": [],
        "jvp": [{"strain": np.ones((6, 6))}],
        "vjp": [{"stress": np.ones((6, 6))}],
    }
    with pytest.raises(ConvergenceError):
        getattr(model, operation)(inputs, *arguments[operation])
    told = document_of(only(folder))["operation"]
    assert told["derivatives"] == (["stress:strain"] if operation == "jacobian" else [])
    assert told["jvps"] == (["stress"] if operation == "jvp" else [])
    assert told["adjoints"] == (["strain"] if operation == "vjp" else [])
    assert replayed(only(folder))["exact"]


def test_a_fatal_error_inside_an_evaluation_is_made_again(
    artifacts: Artifacts, folder: Path
) -> None:
    """A tangent that differs between the grains, of which an output is the mean."""
    with load(artifacts, "grains") as model:
        model.options["capsule"] = folder
        inputs = recorded("grains", "in")
        tangent = np.random.default_rng(2).standard_normal(inputs["strain"].shape)
        with pytest.raises(FatalError) as caught:
            model.jvp(inputs, {"strain": tangent})
        assert caught.value.status == lib.NEML2_ERROR_UNSUPPORTED
    told, arrays = document_of(only(folder)), arrays_of(only(folder))
    assert (told["status"], told["message"]) == (caught.value.status, str(caught.value))
    assert "report/status" not in arrays
    np.testing.assert_array_equal(arrays["tangents/strain"], tangent)
    result = replayed(only(folder))
    assert result["reproduced"] and result["message"] == [str(caught.value)] * 2
    assert "reproduced" in command("replay", only(folder)).stdout


def test_a_call_that_goes_well_now_is_not_reproduced(model: Model, folder: Path) -> None:
    fail(model, step(model))
    changed = edited(only(folder), lambda told: told["options"].update(miters=100))
    result = replayed(changed, status=1)
    assert not result["reproduced"]
    assert [point["status"] for point in result["points"]] == [[2, 0]] * 3
    done = command("replay", changed)
    assert done.returncode == 1 and "3 of 6 points ended otherwise" in done.stdout


def test_what_is_not_as_it_was_is_said(model: Model, artifacts: Artifacts, folder: Path) -> None:
    copy = unchecked(
        Path(shutil.copytree(artifacts["combined_hardening"], folder.parent / "artifact"))
    )
    metadata = json.loads((copy / "metadata.json").read_text())
    fail(model, step(model))
    file = only(folder)
    assert not replayed(file, "--artifact", copy)["differences"]
    (copy / "metadata.json").write_text(json.dumps(metadata, indent=7))
    (difference,) = replayed(file, "--artifact", copy)["differences"]
    assert "metadata.json of the artifact is not the same" in difference
    older = edited(file, lambda told: told["library"].update(version="0.0.1", abi=999))
    assert replayed(older)["differences"] == [
        f"the library was version 0.0.1, and is {__version__}",
        f"the ABI was 999, and is {lib.neml2_abi_version()}",
    ]
    assert "differs" in command("replay", older).stdout


def test_what_cannot_be_replayed(model: Model, folder: Path, tmp_path: Path) -> None:
    fail(model, step(model))
    moved = edited(only(folder), lambda told: told["artifact"].update(path="/gone/metadata.json"))
    assert "/gone/metadata.json" in error("replay", moved)
    assert "--artifact" in error("replay", moved)
    later = edited(only(folder), lambda told: told.update(format=2))
    assert "has the format 2; this version reads 1" in error("replay", later)
    (tmp_path / "text").write_text("no capsule")
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    for name in ("text", "arrays.npz"):
        assert "is not a capsule" in error("replay", tmp_path / name)


def test_a_replay_writes_no_capsule(model: Model, folder: Path) -> None:
    fail(model, step(model))
    file = only(folder)
    done = command("replay", file, NEML2_CAPI_CAPSULE=str(folder))
    assert done.returncode == 0
    assert only(folder) == file


def test_models_of_several_segments_name_the_one_that_failed(
    artifacts: Artifacts, folder: Path
) -> None:
    with load(artifacts, "radial_return") as model:
        model.options.update({"capsule": str(folder), "miters": 2})
        inputs = recorded("radial_return", "in")
        outcome = model.evaluate(inputs)[1]["status"]
        assert outcome.any()
    result = replayed(only(folder))
    assert result["exact"]
    assert {point["segment"] for point in result["points"]} == {"segments[1]"}


def test_the_python_engine_writes_none_and_says_so(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity"], engine="python")
    assert model.options["capsule"] == ""
    with pytest.raises(FatalError, match="this engine writes no capsules"):
        model.options["capsule"] = "folder"


@pytest.mark.full("many processes")
def test_spawned_workers_write_capsules(artifacts: Artifacts, folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        pool.starmap(_fail_once, [(artifacts["elasticity"], folder)] * 4)
    assert len(list(folder.iterdir())) == 4


def _fail_once(root: Path, folder: Path) -> None:
    with Model(root) as model, ThreadPoolExecutor(1) as pool:
        model.options["capsule"] = folder
        pool.submit(model.evaluate, {"strain": np.full(6, np.nan)}).result()
