"""A law that a program is linked with: no file is opened, no code is loaded."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import answer, error
from native import CC, INCLUDE, ROOT, c_program, command, run

from neml2_capi import FatalError, examples
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib
from neml2_capi.kernels.folder import KernelError
from neml2_capi.kernels.linked import linked

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools.native import Build
from tools.platforms import cross_environment, cross_options, zig_variables
from tools.process import CACHE, Command

pytestmark = pytest.mark.native
CHABOCHE = examples.path("chaboche")
BAR = ROOT / "examples" / "static"
# Flags that the file names; kernels have vectors wider than the processor's.
FLAGS = ("-O1", "-Wno-psabi", "-ffp-contract=off")


@pytest.fixture(scope="module")
def law(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("law") / "chaboche.c"
    file.write_text(linked(CHABOCHE, "chaboche"))
    return file


def source_in(folder: Path, artifact: Path, name: str, real: str = "float64") -> Any:
    """The source of a law whose file was compiled into a library of this process."""
    (folder / f"{name}.c").write_text(linked(artifact, name, real))
    library = folder / f"{name}.so"
    command(
        CC, "-shared", "-fPIC", "-O0", *FLAGS, f"-I{INCLUDE}", folder / f"{name}.c", "-o", library
    )

    class Source(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_char * ffi.sizeof("neml2_source"))]

    function = ctypes.CDLL(str(library))[f"neml2_source_of_{name}"]
    function.restype = Source
    source = ffi.new("neml2_source *")
    ffi.memmove(source, bytes(memoryview(function())), ffi.sizeof("neml2_source"))
    return source


def opened(source: Any) -> Any:
    model = ffi.new("neml2_model **")
    check(lib.neml2_model_open(model, source))
    return ffi.gc(model[0], lambda _: lib.neml2_model_free(model))


@pytest.mark.full("kernels compiled into programs")
def test_a_finite_element_program_has_the_bits_of_the_folder(law: Path) -> None:
    bar = c_program(BAR / "bar.c", law, flags=FLAGS)
    printed = run(bar)
    assert len(printed.splitlines()) == 9
    assert printed == run(bar, CHABOCHE)


@pytest.mark.full("kernels compiled into programs")
def test_two_laws_of_one_program_keep_apart(law: Path, tmp_path: Path) -> None:
    other = tmp_path / "hardening.c"
    other.write_text(linked(examples.path("isotropic_hardening"), "hardening"))
    c_program(BAR / "bar.c", law, other, flags=FLAGS)  # the linker finds no name twice


def test_kernels_of_another_law_are_refused(tmp_path: Path) -> None:
    elasticity = source_in(tmp_path, examples.path("elasticity"), "elasticity")
    opened(elasticity)
    hardening = source_in(tmp_path, examples.path("isotropic_hardening"), "hardening")
    hardening.kernels = elasticity.kernels
    with pytest.raises(FatalError, match=r"have no kernel viscoplastic.*neml2-capi static"):
        opened(hardening)
    elasticity.device = lib.NEML2_DEVICE_OPENCL
    with pytest.raises(FatalError, match="linked in run on the CPU") as raised:
        opened(elasticity)
    assert raised.value.status == lib.NEML2_ERROR_ARGUMENT


def test_a_law_without_kernels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"no kernels in float32.*neml2-capi compile"):
        linked(CHABOCHE, "chaboche", "float32")


def test_the_element_type_is_of_the_kernels_and_of_what_is_there(tmp_path: Path) -> None:
    """NEML2 3.1.0 writes float64 into a leaf of float32, alone in its artifact."""
    root, law = tmp_path / "elasticity", tmp_path / "law.c"
    shutil.copytree(examples.path("elasticity"), root)
    leaf = (root / "kernels" / "float64").rename(root / "kernels" / "float32")
    shutil.rmtree(root / "cpu", ignore_errors=True)
    document = (leaf / "kernels.json").read_text()
    (leaf / "kernels.json").write_text(document.replace("cpu/float64", "cpu/float32"))
    assert "neml2_source_of_law(void)" in answer("static", root, "-o", law)
    assert "NEML2_FLOAT32" in law.read_text()
    assert 'dtype="float32"' in error("static", root, "-o", law, "--dtype", "float64")
    opened(source_in(tmp_path, root, "steel", "float32"))


TARGETS: dict[str, list[str]] = {"x86_64-linux-musl": [], "aarch64-linux-musl": ["qemu-aarch64"]}


@pytest.mark.everything("compiles the core for another system")
@pytest.mark.parametrize("target", TARGETS)
def test_a_static_program_opens_no_file(target: str, law: Path, tmp_path: Path) -> None:
    start = TARGETS[target]
    if start and not shutil.which(start[0]):
        pytest.skip(f"{start[0]} is not installed")
    builder, folder = cross_environment(), CACHE / "cmake" / f"static-{target}"
    environment = os.environ | zig_variables(builder, target)
    options = [f"-D{key}={value}" for key, value in cross_options(builder).items()]
    cmake = Build(folder, builder).cmake
    configured: Command = ["-S", BAR, "-B", folder, f"-DLAW={law}", *options]
    build: Command = ["--build", folder, "-j2"]
    for arguments in (configured, build):
        done = subprocess.run([cmake, *arguments], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    bar = shutil.copy2(folder / "bar", tmp_path)
    told = subprocess.run(["ldd", bar], capture_output=True, text=True)
    assert "not a dynamic executable" in told.stdout + told.stderr or start
    printed = command(*start, bar)
    assert printed == run(c_program(BAR / "bar.c", law, flags=FLAGS), CHABOCHE)
    if start or not shutil.which("strace"):
        return
    trace = tmp_path / "trace"
    command("strace", "-f", "-e", "trace=%file", "-o", trace, bar)
    looked_for = re.findall(r"^\d+ +(\w+\(.*)", trace.read_text(), re.MULTILINE)
    assert [call for call in looked_for if not call.startswith("execve(")] == []
