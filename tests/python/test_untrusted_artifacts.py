"""Looking at an artifact of unknown origin: nothing of it runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from native import CC, command

pytest.importorskip("click")
pytest.importorskip("rich")

# Code that runs as soon as it is loaded, in an object that passes all checks.
CONSTRUCTOR = """
#include <stdio.h>
#include <stdlib.h>
extern int aoti_torch_get_dim(void);
int (*import)(void) = aoti_torch_get_dim;
__attribute__((constructor)) static void at_load(void) {
  FILE *file = fopen(getenv("WITNESS"), "w");
  if (file) fclose(file);
}
"""


@pytest.fixture
def artifact(artifacts: Mapping[str, Path], tmp_path: Path) -> Path:
    """A copy of the elasticity artifact, to be changed."""
    kernels = shutil.ignore_patterns("kernels")
    return Path(shutil.copytree(artifacts["elasticity"], tmp_path / "elasticity", ignore=kernels))


def replace_code(package: Path, code: bytes) -> None:
    with zipfile.ZipFile(package) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(package, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, code if name.endswith(".so") else content)


@pytest.mark.native
@pytest.mark.full("starts the command four times")
def test_doctor_and_inspect_run_no_constructor(artifact: Path, tmp_path: Path) -> None:
    source, torch = tmp_path / "package.c", tmp_path / "libtorch_cpu.so"
    (tmp_path / "torch.c").write_text("int aoti_torch_get_dim(void) { return 0; }\n")
    source.write_text(CONSTRUCTOR)
    build = (CC, "-shared", "-fPIC", "-o")
    command(*build, torch, tmp_path / "torch.c", f"-Wl,-soname,{torch.name}")
    command(*build, tmp_path / "package.so", source, torch)
    code = (tmp_path / "package.so").read_bytes()
    for package in artifact.rglob("*.pt2"):
        replace_code(package, code)

    witness = tmp_path / "witness"
    environment = {**os.environ, "WITNESS": str(witness)}

    def neml2_capi(*arguments: str) -> dict[str, object]:
        program = [sys.executable, "-m", "neml2_capi.cli", *arguments, "--json"]
        done = subprocess.run(program, capture_output=True, text=True, env=environment)
        assert "Traceback" not in done.stderr
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    assert neml2_capi("doctor", str(artifact))["findings"] == []
    assert neml2_capi("inspect", str(artifact))["packages"]
    assert not witness.exists()
    assert not neml2_capi("doctor", "--run", str(artifact))["will_run"]
    assert witness.exists()  # that is what it would have done
