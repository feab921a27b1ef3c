"""What drive() returns, shows, and takes from torch."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driving import STRAIN, TIMES, equal, strain_at
from patience import PATIENCE
from states import Artifacts

from neml2_capi import (
    FatalError,
    Model,
    Results,
    StepError,
    UnknownNameError,
    drive,
    examples,
    experiments,
)

# ------------------------------------------------------------------------------------------------
# Results
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["results.npz", "results"])
def test_results_are_saved_and_loaded(viscoplastic: Model, tmp_path: Path, name: str) -> None:
    results = drive(viscoplastic, TIMES, {"strain": STRAIN}, report=True)
    results.save(tmp_path / name)
    loaded = Results.load(tmp_path / "results.npz")
    assert list(loaded) == list(results)
    for key, value in results.items():
        np.testing.assert_array_equal(loaded[key], value)
        assert loaded[key].dtype == value.dtype
    with np.load(tmp_path / "results.npz") as file:
        assert {*file.files} - {"variables.json"} == {*results}


def test_a_name_tells_its_form_in_capitals_too(viscoplastic: Model, tmp_path: Path) -> None:
    results = drive(viscoplastic, TIMES, {"strain": STRAIN})
    for name in ("A.NPZ", "A.CSV"):
        results.save(tmp_path / name)
    assert {*tmp_path.iterdir()} == {tmp_path / "A.NPZ", tmp_path / "A.CSV"}
    assert list(Results.load(tmp_path / "A.NPZ")) == list(results)
    with pytest.raises(FatalError, match=r"path is the folder .*: name a file in it"):
        results.save(tmp_path)


def test_a_file_of_one_array_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", STRAIN)
    with pytest.raises(FatalError, match=r"one.npy cannot be read: .* expected a file of"):
        Results.load(tmp_path / "one.npy")


def test_results_are_a_mapping(model: Model) -> None:
    results = drive(model, [0, 1], {"strain": STRAIN[:2]})
    assert dict(results).keys() == {"t", "strain", "stress", "substeps"}
    assert "stress" in results and "strss" not in results
    assert repr(results).startswith("<Results: t (2,), strain (2, 3, 6), stress (2, 3, 6)")
    with pytest.raises(UnknownNameError, match="unknown result 'strss'; did you mean 'stress'"):
        results["strss"]


def test_results_share_no_memory_with_what_is_given(model: Model) -> None:
    times, strain = TIMES.copy(), STRAIN.copy()
    results = drive(model, times, {"strain": strain})
    times[:], strain[:] = -1, -1
    np.testing.assert_array_equal(results["t"], TIMES)
    np.testing.assert_array_equal(results["strain"], STRAIN)


def test_a_number_that_a_function_changes_meanwhile_is_as_it_was_given(model: Model) -> None:
    number = np.array(1e-3)

    def changes(t: float) -> float:
        number[...] = t
        return 0.0

    results = drive(model, [0.0, 1.0, 2.0], {"strain": {"yy": number, "xx": changes}})
    np.testing.assert_array_equal(results["strain"][:, 1], 1e-3)


# ------------------------------------------------------------------------------------------------
# torch
# ------------------------------------------------------------------------------------------------


@pytest.mark.full("jax")
def test_what_jax_traces_is_refused_by_name() -> None:
    jax = pytest.importorskip("jax")
    steel = Model(examples.path("isotropic_hardening"))

    def last(modulus: Any) -> Any:
        return experiments.tension(steel, TIMES, 0.01, parameters={"E": modulus})["stress"][-1, 0]

    with pytest.raises(FatalError, match=r"'.*E' cannot be made an array, from a \w*Tracer"):
        jax.grad(last)(2e5)


@pytest.mark.full("torch")
def test_a_gradient_that_would_be_lost_is_refused_by_name(viscoplastic: Model) -> None:
    torch = pytest.importorskip("torch")

    strain = torch.from_numpy(STRAIN).requires_grad_()
    steel = Model(examples.path("isotropic_hardening"))
    with pytest.raises(FatalError, match=r"force 'strain' requires a gradient, .*tensor.detach()"):
        drive(steel, TIMES, {"strain": lambda time: strain[0]})
    with pytest.raises(FatalError, match=r"stress requires a gradient, .*uniaxial"):
        experiments.creep(steel, TIMES, strain[1, 0, 0])
    with pytest.raises(FatalError, match=r"without the derivative.*-d stress:"):
        drive(viscoplastic, TIMES, {"strain": strain})
    with pytest.raises(FatalError, match="expected none beside tensors that require gradients"):
        drive(steel, TIMES, {"strain": strain}, derivatives=["E"])
    with torch.no_grad():
        assert torch.is_tensor(drive(steel, TIMES, {"strain": strain})["t"])


def test_torch_in_torch_out(viscoplastic: Model, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    expected = drive(viscoplastic, TIMES, {"strain": STRAIN}, report=True)
    for times, strain in (
        (TIMES, torch.from_numpy(STRAIN)),
        (torch.from_numpy(TIMES), STRAIN),
        (TIMES, lambda time: torch.from_numpy(strain_at(time))),
    ):
        results = drive(viscoplastic, times, {"strain": strain}, report=True)
        for name, value in results.items():
            assert isinstance(value, torch.Tensor), name
            np.testing.assert_array_equal(value.numpy(), expected[name])
    results.save(tmp_path / "results.npz")
    equal(Results.load(tmp_path / "results.npz"), expected)


def test_a_torch_model_gives_torch(artifacts: Artifacts) -> None:
    torch = pytest.importorskip("torch")
    from neml2_capi.torch import Model as TorchModel

    model = TorchModel(artifacts["viscoplastic"])
    results = drive(model, TIMES, {"strain": STRAIN})
    assert all(isinstance(value, torch.Tensor) for value in results.values())
    expected = drive(Model(artifacts["viscoplastic"]), TIMES, {"strain": STRAIN})
    np.testing.assert_array_equal(results["stress"].numpy(), expected["stress"])
    model.options["miters"] = 2
    with pytest.raises(StepError) as caught:
        drive(model, TIMES, {"strain": STRAIN}, least_step=1.0)
    assert isinstance(caught.value.converged_mask, torch.Tensor)
    assert isinstance(caught.value.results["stress"], torch.Tensor)


def test_a_function_of_the_times_of_points_gets_torch(viscoplastic: Model) -> None:
    torch = pytest.importorskip("torch")
    times = torch.from_numpy(TIMES[:, np.newaxis] * np.ones(3))

    def strain(time: Any) -> Any:
        assert isinstance(time, torch.Tensor) and time.shape == (3,)
        return torch.from_numpy(strain_at(time.numpy()))

    results = drive(viscoplastic, times, {"strain": strain})
    np.testing.assert_array_equal(
        results["stress"].numpy(), drive(viscoplastic, TIMES, {"strain": STRAIN})["stress"]
    )


# ------------------------------------------------------------------------------------------------
# The progress bar
# ------------------------------------------------------------------------------------------------


PROGRAM = """
import sys
import numpy as np
import neml2_capi

model = neml2_capi.Model(sys.argv[1])
progress = {"None": None, "True": True, "False": False}[sys.argv[2]]
neml2_capi.drive(model, np.arange(30.0), {"strain": np.zeros(6)}, progress=progress)
"""


def on_stderr(artifact: Path, progress: bool | None, terminal: bool) -> str:
    """What a drive writes to stderr."""
    command = [sys.executable, "-c", PROGRAM, str(artifact), str(progress)]
    if not terminal:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
        assert done.stdout == ""
        return done.stderr
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    try:
        subprocess.run(command, stderr=theirs, check=True, timeout=PATIENCE)
        os.set_blocking(ours, False)
        try:
            return os.read(ours, 1 << 16).decode()
        except BlockingIOError:
            return ""
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(
    ("progress", "terminal", "shown"),
    [
        (None, False, False),
        (None, True, True),
        (True, False, True),
        (False, True, False),
    ],
)
def test_a_progress_bar_is_shown_where_somebody_sees_it(
    artifacts: Artifacts, progress: bool | None, terminal: bool, shown: bool
) -> None:
    pytest.importorskip("tqdm")
    written = on_stderr(artifacts["elasticity"], progress, terminal)
    assert ("29/29" in written) if shown else written == ""


def test_on_a_closed_stream_no_bar_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from neml2_capi.driver import progress

    monkeypatch.setattr(sys, "stderr", None)
    for wanted in (None, True):
        with progress.bar(3, 0, "step", wanted) as shown:
            shown.update(1)


def test_where_a_bar_would_be_welcome_its_absence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from neml2_capi.driver import progress

    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress._Hint, "patience", -1.0)
    monkeypatch.setattr(progress._Hint, "told", False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for _ in range(2):
        with progress.bar(3, 0, "step", None) as shown:
            shown.update(1)
    assert capsys.readouterr().err.count("pip install tqdm") == 1


def test_a_bar_needs_tqdm_only_where_it_is_asked_for(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    drive(model, TIMES, {"strain": STRAIN})
    with pytest.raises(FatalError, match=r"pip install 'neml2_capi\[progress\]'"):
        drive(model, TIMES, {"strain": STRAIN}, progress=True)
    monkeypatch.setattr(sys, "stderr", None)
    drive(model, TIMES, {"strain": STRAIN})
