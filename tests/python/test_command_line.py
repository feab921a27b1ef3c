"""The command neml2-capi: help, wrong commands, and compile and umat in short."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
from command_line import answer, command, error, findings
from patience import PATIENCE
from slow import later

from neml2_capi.cli.compiler import run_compiler, terminated_as_by_exit
from neml2_capi.kernels import sites
from neml2_capi.umat import draft

Artifacts = Mapping[str, Path]


def test_umat_drafts_the_same_file(artifacts: Artifacts, tmp_path: Path) -> None:
    root, file = artifacts["combined_hardening"], tmp_path / "steel.nml"
    assert answer("umat", root) == draft(root)
    assert "  host = 'calculix'\n/" in answer("umat", root, "--host", "calculix")
    assert answer("umat", root, "--output", file) == ""
    assert file.read_text() == draft(root, file)
    file.write_text("edited")
    assert "is there already, and is not overwritten" in error("umat", root, "--output", file)
    assert file.read_text() == "edited"
    assert "neml2-compile -d" in error("umat", artifacts["viscoplastic"])
    assert "call the file steel.nml" in error("umat", root, "--output", tmp_path / "Steel.nml")


def test_compile_says_what_it_needs(tmp_path: Path) -> None:
    source = tmp_path / "input.i"
    source.touch()
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    text = error("compile", source, "--model", "a", NEML2_CAPI_COMPILER=str(bare))
    assert "pip install 'neml2_capi[compile,cli]'" in text
    assert "nothing/python" in error(
        "compile", source, "--model", "a", NEML2_CAPI_COMPILER="/nothing/python"
    )
    assert "--model NAME or --driver NAME" in error("compile", source)
    assert "does not exist" in error("compile", tmp_path / "nothing.i", "--model", "a")


def test_compile_hands_the_target_and_the_options_on(tmp_path: Path) -> None:
    """To an interpreter that only says how it was called."""
    source, python = tmp_path / "input.i", tmp_path / "python"
    source.touch()
    python.write_text(
        '#!/bin/sh\n[ "$1" = -c ] || echo "$ATEN_CPU_CAPABILITY $TORCHINDUCTOR_CPP_MARCH $*"\n'
    )
    python.chmod(0o755)
    options = ("--model", "steel", "-d", "stress:strain", "-p", "E", "--rename-input", "a:b")
    done = command("compile", source, *options, "--kernels", "no", NEML2_CAPI_COMPILER=str(python))
    assert done.stdout == (
        f"avx2 x86-64-v3 {sites.__file__} {source} --model steel --output-dir aoti "
        "--device cpu --dtype float64 -j 1 -d stress:strain -p E --rename-input a:b\n"
    )


@pytest.mark.full("one compiler takes three seconds to be killed")
@pytest.mark.parametrize("kernels", ["only", "no"])
@pytest.mark.parametrize("trap", ["", 'trap "" TERM; '])
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_compiler_too(
    tmp_path: Path, kernels: str, trap: str, stop: signal.Signals
) -> None:
    """A signal to this process alone, not to all of a terminal."""
    source, python, number = (tmp_path / name for name in ("input.i", "python", "number"))
    source.touch()
    python.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && exit\n{trap}'
        f"echo $$ > '{number}.part'; mv '{number}.part' '{number}'; exec sleep {PATIENCE}\n"
    )
    python.chmod(0o755)
    # A shell that starts the tests in the background has them ignore the signal.
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script += "from neml2_capi.cli import main; main()"
    words = ["compile", str(source), "--model", "a", "-o", str(tmp_path), "--kernels", kernels]
    environment = {**os.environ, "NEML2_CAPI_COMPILER": str(python)}
    with subprocess.Popen([sys.executable, "-c", script, *words], env=environment) as started:
        while not number.exists():
            assert started.poll() is None
            time.sleep(0.01)
        started.send_signal(stop)
        assert started.wait(PATIENCE) == (1 if stop == signal.SIGINT else 128 + stop)
    assert not list(tmp_path.glob("*/"))
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), 0)


@pytest.mark.parametrize(
    ("stop", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_a_signal_ends_a_compiler_that_starts(
    stop: signal.Signals, raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[str]] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            signal.raise_signal(stop)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(raised), terminated_as_by_exit():
            run_compiler(["sleep", str(PATIENCE)], dict(os.environ), None, "")
        assert started[0].poll() is not None
    finally:
        signal.signal(signal.SIGINT, before)
        started[0].kill()


@pytest.mark.full("it compiles a model")
def test_what_was_compiled_will_run(artifacts: Artifacts, tmp_path: Path) -> None:
    source = artifacts["elasticity"].parents[1] / "models" / "elasticity.i"
    done = command("compile", source, "--model", "elasticity", "--output-dir", tmp_path, "-q")
    if "has no neml2" in done.stderr:
        pytest.skip("there is no neml2 to compile with")
    assert done.returncode == 0, done.stderr
    assert findings(tmp_path / "elasticity") == []


def test_it_is_installed_as_neml2_capi() -> None:
    try:
        (script,) = distribution("neml2_capi").entry_points.select(name="neml2-capi")
    except PackageNotFoundError:
        pytest.skip("the package was copied, not installed")
    program = Path(sys.executable).parent / script.name
    done = subprocess.run([program, "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("neml2-capi, version ")


def test_help_lists_the_commands() -> None:
    text = answer("--help")
    for name in ("inspect", "doctor", "compile", "build-kernels", "header", "bench", "umat"):
        assert re.search(rf"^  {name} ", text, re.MULTILINE)
        assert "Usage:" in answer(name, "--help")
    assert answer("--version").startswith("neml2-capi")


@pytest.mark.parametrize("name", ["inspect", "bench", "umat"])
def test_a_wrong_path_is_one_clear_line(name: str) -> None:
    assert "There is no folder /nothing" in error(name, "/nothing")


def test_an_unknown_command_is_said_to_be_one() -> None:
    assert "No such command 'dcotor'" in error("dcotor")


def test_without_its_packages_it_says_how_to_install_them() -> None:
    script = "import sys; sys.modules['rich'] = None; from neml2_capi.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'neml2_capi[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", later([">&-", "2>&-", ">&- 2>&-"], [">&-", "2>&-"]))
def test_a_closed_stream_takes_all(artifacts: Artifacts, closed: str) -> None:
    """And no error is told on the other one."""
    program = f'"{sys.executable}" -m neml2_capi.cli'
    for words, status in ((f"inspect '{artifacts['elasticity']}'", 0), ("inspect /nothing", 1)):
        done = subprocess.run(
            ["sh", "-c", f"{program} {words} {closed}"], capture_output=True, text=True
        )
        assert done.returncode == status, done.stderr
        assert bool(done.stdout) == (status == 0 and closed == "2>&-")
        assert bool(done.stderr) == (status == 1 and closed == ">&-")
        assert "Traceback" not in done.stderr
