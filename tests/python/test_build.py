"""build.py as a newcomer meets it: on a machine that lacks things, or taken for PyPA's build."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from native import ROOT

from tools import environments, wheel


def run(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in the checkout, with nothing on the path and no index that answers."""
    environment = {
        "PATH": str(home / "empty"),
        "HOME": str(home),
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    }
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    done = run("build.py", "demo", home=tmp_path)
    assert done.returncode == 1
    assert "There is no C compiler." in done.stderr
    assert "A compiler for C++20 is needed." in done.stderr
    assert "PIP_INDEX_URL" in done.stderr, "no package index can be reached"
    assert "g++" in done.stderr, "what to install"
    assert not (tmp_path / ".cache").exists(), "nothing was made"


@pytest.mark.full("it makes an environment")
def test_where_no_other_torch_can_be_had_a_line_says_why(tmp_path: Path) -> None:
    code = """if True:
        from tools import environments
        assert environments.other_torch(next(iter(environments.OTHER_TORCHES))) is None
    """
    done = run("-c", code, home=tmp_path)
    assert done.returncode == 0, done.stderr
    (told,) = (line for line in done.stdout.splitlines() if line.startswith("no torch "))
    assert "for the tests: ERROR: " in told
    assert not list((tmp_path / ".cache").rglob("torch-*/torch"))


def test_workers_of_a_program_do_not_run_it_again(tmp_path: Path) -> None:
    (tmp_path / "asked.py").write_text("""
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

def main():
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        print(pool.submit(abs, -3).result())
""")
    environment = environments.Environment(tmp_path)
    environment.python.parent.mkdir()
    environment.python.symlink_to(sys.executable)
    environment.add_program("ask", "asked", "main")
    command = [environment.program("ask")]
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("3\n", 0), done.stderr


@pytest.mark.parametrize("name", ["page/law.js", "examples/elasticity/metadata.json", "model.py"])
def test_a_file_of_the_wheel_that_changes_makes_another_wheel(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel, "ROOT", tmp_path)
    file = tmp_path / "neml2_capi" / name
    file.parent.mkdir(parents=True)
    digests = set()
    for text in ("old", "new"):
        file.write_text(text)
        digests.add(wheel.source_digest())
    assert len(digests) == 2


def test_the_package_called_build_is_pointed_to(tmp_path: Path) -> None:
    done = run("-m", "build", home=tmp_path)
    assert done.returncode == 2
    assert "python3 build.py wheel" in done.stderr
    assert f"python3 -m build {ROOT}" in done.stderr
