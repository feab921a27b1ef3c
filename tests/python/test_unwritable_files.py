"""Files that cannot be written are told of before a command computes anything."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import answer, error

from neml2_capi import FatalError, Model, drive, examples
from neml2_capi._ffi.outside import require_writable

#: Nothing can be made there, by root neither.
NOWHERE = Path("/proc")
pytestmark = pytest.mark.skipif(not NOWHERE.is_dir(), reason="a folder as Linux has it")

STEEL = examples.path("isotropic_hardening")
RUN = f"""
artifact = "{STEEL}"
times = {{ end = 1.0, steps = 2 }}
forces.strain.xx.ramp = 0.001
"""
VERIFY = f"{RUN}[[test]]\nname = 'one'\nexpect.stress.xx = {{ points = [[1.0, 0.0]] }}\n"
FIT = f"""
artifact = "{STEEL}"
parameters.E = {{ value = 220e3 }}
experiments = [{{ file = "pull.csv" }}]
"""


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("it computed")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file for each command; what they compute fails."""
    for place in (
        "neml2_capi.cli.driver_file.Run.drive",
        "neml2_capi.cli.verify.outcome",
        "neml2_capi.fit.Problem.solve",
        "neml2_capi.cli.header.header",
        "neml2_capi.cli.static.linked",
        "neml2_capi.page.header",
        "neml2_capi.plugin.kernels_alone",
        "neml2_capi.cli.umat.draft",
    ):
        monkeypatch.setattr(place, never)
    for name, text in (("run", RUN), ("verify", VERIFY), ("fit", FIT)):
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "pull.csv").write_text("time,strain,stress\n0,0,0\n1,1e-4,20\n2,2e-4,40\n")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "run run.toml --output /proc/a.csv",
        "run run.toml --plot t:stress.xx --plot-file /proc/a.png",
        "run --template STEEL --output /proc/a.toml",
        "verify verify.toml --junit /proc/a.xml",
        "verify verify.toml --figures /proc/a",
        "fit fit.toml --report /proc/a.html",
        "fit fit.toml --output /proc/a.toml",
        "header STEEL -o /proc/a.hpp",
        "static STEEL -o /proc/a.c",
        "page STEEL -o /proc/a.html",
        "plugin STEEL -o /proc/a.so",
        "umat STEEL --output /proc/a.nml",
    ],
)
def test_a_file_that_cannot_be_written_is_told_of_first(
    files: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if words.startswith("fit"):
        pytest.importorskip("scipy")
    if "plot" in words or "figures" in words:
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    line = error(*words.replace("STEEL", str(STEEL)).split())
    assert "cannot be written to /proc/" in line
    assert "No such file or directory; name another file" in line
    assert sorted(files.iterdir()) == before


def test_a_folder_that_a_fit_would_make_must_be_new(files: Path) -> None:
    pytest.importorskip("scipy")
    (files / "fit.toml").write_text(f"{FIT}output.artifact = 'there'\n")
    (files / "there").mkdir()
    assert "there exists; name a new folder" in error("fit", files / "fit.toml")


def test_a_checkpoint_that_cannot_be_written_is_told_of_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("neml2_capi.driver.checkpoint.Checkpoint.keep", never)
    with Model(STEEL) as steel, pytest.raises(FatalError, match="the checkpoint cannot be written"):
        drive(steel, np.arange(3.0), {"strain": np.zeros(6)}, checkpoint=NOWHERE / "a.state")


def test_what_is_there_stays_until_it_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    file.write_text("older")
    require_writable(file)
    require_writable(tmp_path / "new.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]
    assert file.read_text() == "older"
    with pytest.raises(FatalError, match="Is a directory"):
        require_writable(tmp_path)


def test_a_pipe_is_not_opened_before_there_is_something_to_write(tmp_path: Path) -> None:
    """Without a reader that would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    require_writable(tmp_path / "pipe")
    require_writable("/dev/null")


def test_a_plot_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure: Callable[..., Any] = pytest.importorskip("matplotlib.figure").Figure
    (tmp_path / "run.toml").write_text(RUN)
    words = ("run", tmp_path / "run.toml", "--plot", "t:stress.xx")
    for ending, first in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        picture = tmp_path / f"plot.{ending}"
        answer(*words, "--plot-file", picture)
        assert picture.read_bytes().startswith(first)
    monkeypatch.setattr(figure, "savefig", never)
    with pytest.raises(AssertionError, match="it computed"):
        answer(*words, "--plot-file", tmp_path / "other.png")
    assert not (tmp_path / "other.png").exists()
