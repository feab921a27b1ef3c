"""Programs for Windows, built by zig and run by wine: the tests in C and C++, and the bits of laws.

`python3 build.py test --everything tests/python/test_wine.py` prints what passed, and what is left
out and why.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import abaqus
import numpy as np
import pytest
from kernel_setup import with_kernels
from native import ROOT, TESTS, c_program
from native import run as run_here
from other_systems import Core, core_for, nlohmann_json, passes, starter
from states import state_of

from neml2_capi import Model
from neml2_capi.kernels.build import build
from neml2_capi.plugin import PluginError, make

pytestmark = [pytest.mark.native, pytest.mark.everything("compiles the library for Windows")]

POSIX = "asks for what POSIX has and Windows has not: forks, signals, limits, stacks, /proc"
BACKENDS = "tests compiled packages, libtorch or devices, which the core does not open"
LEFT_OUT = {
    **dict.fromkeys(
        [
            *("c/test_cycles.c", "c/test_forks.c", "c/test_limits.c", "c/test_log.c"),
            *("c/test_schedulers.c", "c/test_stack.c", "c/test_floating_point.c"),
            *("cpp/test_allocations.cpp", "cpp/test_locks.cpp", "cpp/test_pool.cpp"),
            *("cpp/test_scheduler.cpp", "cpp/test_dispatch.cpp"),
        ],
        POSIX,
    ),
    **dict.fromkeys(
        [
            *("c/test_bad_artifact.c", "c/test_call_depth.c", "c/test_graph.c"),
            *("c/test_handles.c", "c/test_operators.c", "c/test_package_output.c"),
            *("c/test_runtimes.c", "c/test_signatures.c", "c/test_static_batch.c"),
            *("c/test_tangents.c", "cpp_face/test_signatures.cpp"),
            *("cpp_face/test_errors.cpp", "cpp_face/test_models.cpp", "cpp_face/test_moves.cpp"),
            *("cpp_face/test_operators.cpp", "cpp_face/test_runtimes.cpp"),
            *("cpp/test_archive.cpp", "cpp/test_kernels_json.cpp", "cpp/test_openmp.cpp"),
        ],
        BACKENDS,
    ),
    "cpp/test_metadata.cpp": "names a path that is not UTF-8, which Windows has not",
    "cpp/test_npz.cpp": "compares the words of an error, which are Windows' own there",
}
#: Rooms of backends, as tests/CMakeLists.txt has them.
_OF_BACKENDS = re.compile(
    r"^#include .*(capi/(package|packages|provider|loader|libtorch|cuda)/|provider_calls\.h)",
    re.MULTILINE,
)
LAWS = ("elasticity", "isotropic_hardening", "chaboche", "crystal")
ARTIFACTS = ("elasticity", "viscoplastic", "combined_hardening")
PATIENCE = 300


class Wine:
    """A Windows that starts programs, with a folder of its own."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.command, self.folder = command, folder
        self.variables = {
            "WINEPREFIX": str(folder / "prefix"),
            "WINEDEBUG": "-all",
            "TMPDIR": str(folder),
            "NEML2_TEST_DATA": str(TESTS / "data"),
            "NEML2_TEST_NO_TRAPS": "1",
            "NEML2_TEST_ARTIFACTS": str(folder / "artifacts"),
        }

    def run(self, program: Path, *words: str | Path, cwd: Path = ROOT) -> tuple[int, str]:
        """The status of a program, and what it printed."""
        done = subprocess.run(
            [*self.command, program, *words],
            env=os.environ | self.variables,
            cwd=cwd,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr


@pytest.fixture(scope="module")
def core() -> Iterator[Core]:
    made = core_for("core-windows", "neml2_capi", "neml2_plugin")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.variables.items():  # kernels share its cache, too
            if name.startswith("ZIG_"):
                patch.setenv(name, value)
        yield made


@pytest.fixture(scope="module")
def wine(core: Core, tmp_path_factory: pytest.TempPathFactory) -> Wine:
    command = starter("core-windows")
    if command is None:
        pytest.skip("wine is not installed. In Debian: apt-get install wine64")
    folder = tmp_path_factory.mktemp("wine")
    shutil.copy2(core.folder / "lib" / "libneml2_capi.dll", folder)  # looked for beside a program
    for name in ARTIFACTS:
        artifact_for_windows(name, folder / "artifacts" / name)
    for stub in (ROOT / "examples" / "artifacts").glob("*.i"):
        shutil.copy2(stub, folder / "artifacts")
    return Wine(command, folder)


def artifact_for_windows(name: str, into: Path, *targets: str) -> None:
    """Copy an artifact of the tests without its packages, with kernels for Windows alone."""
    shutil.copytree(with_kernels(name), into, ignore=shutil.ignore_patterns("*.pt2", "*.so"))
    for kernels in into.glob("kernels/*"):
        build(kernels, targets or ["x86-64-v3"], system="windows")


def programs() -> list[Path]:
    """All programs of the tests that need no second one."""
    found = [
        path
        for place in ("c", "cpp_face", "scenarios", "cpp")
        for path in sorted((TESTS / place).glob("*.c*"))
    ]
    return [*found, TESTS / "abi" / "1.0" / "host.c"]


def reason_against(path: Path) -> str:
    """Why a program is left out; "" if it is not."""
    name = path.relative_to(TESTS).as_posix()
    if name in LEFT_OUT:
        return LEFT_OUT[name]
    of_backends = path.parent.name == "cpp" and _OF_BACKENDS.search(path.read_text("utf-8"))
    return BACKENDS if of_backends else ""


def objects(core: Core, wine: Wine) -> Path:
    """The list of the library's objects, for a program that looks inside."""
    found = [path for path in core.folder.glob("capi/**/*.obj") if "neml2_plugin" not in str(path)]
    listed = wine.folder / "objects.rsp"
    listed.write_text("\n".join(map(str, sorted(found))))
    return listed


def outcome(core: Core, wine: Wine, path: Path) -> str:
    """ "" if a program passes, else what was said."""
    program = wine.folder / f"{path.parent.name}_{path.stem}_{path.suffix[1:]}.exe"
    options: list[str | Path] = []
    if path.parent.name == "cpp":
        flags = ("-Wno-psabi", "-ffp-contract=off")
        options = [f"-I{ROOT}", "-isystem", nlohmann_json(), *flags, f"@{objects(core, wine)}"]
    if said := core.compile(path, program, *options):
        return said
    status, said = wine.run(program)
    return "" if status == 0 else f"status {status}: {said}"


def test_the_programs_of_the_tests_pass(
    core: Core, wine: Wine, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = [path for path in programs() if not reason_against(path)]
    with ThreadPoolExecutor(2) as pool:
        said = dict(zip(wanted, pool.map(lambda p: outcome(core, wine, p), wanted), strict=True))
    with capsys.disabled():
        print("\n| program | under wine |\n| --- | --- |")
        for path in programs():
            told = "failed" if said.get(path) else reason_against(path) or "passed"
            print(f"| {path.relative_to(TESTS)} | {told} |")
        passed = sum(not text for text in said.values())
        print(f"{passed} passed, {len(programs()) - len(wanted)} left out")
    failed = {str(path.relative_to(TESTS)): text[-600:] for path, text in said.items() if text}
    assert not failed, "\n".join(f"{name}: {text}" for name, text in failed.items())
    assert passed >= 60


@pytest.mark.parametrize("name", LAWS)
def test_a_law_has_the_bits_of_linux(core: Core, wine: Wine, name: str) -> None:
    source, theirs = TESTS / "hosts" / "bits.c", wine.folder / "bits.exe"
    assert not core.compile(source, theirs)
    ours = c_program(source)
    points = 5
    with Model(with_kernels(name)) as model:
        state = state_of(name, model)
        rows = [np.resize(state[v.name], (points, *state[v.name].shape[1:])) for v in model.inputs]
    (wine.folder / "inputs").write_bytes(b"".join(row.tobytes() for row in rows))
    for target in ("x86-64-v2", "x86-64-v3"):
        here, there = (wine.folder / f"{name}-{target}" / place for place in ("here", "there"))
        artifact_for_windows(name, there, target)
        shutil.copytree(with_kernels(name, target), here, ignore=shutil.ignore_patterns("*.pt2"))
        words = (wine.folder / "inputs", str(points))
        status, printed = wine.run(theirs, there, *words)
        assert status == 0, printed
        assert len(printed.split()) > 6 * points
        assert printed == run_here(ours, here, *words)


_FRAME = """
#include <string.h>
__declspec(dllexport) int filled(int size) {  /* a frame of 30 pages */
  unsigned char all[120000], others[4000];
  memset(all, 7, size);
  all[0] = 3;
  memmove(all + 1, all, size - 1);
  memcpy(others, all, sizeof others);
  memmove(all, all + 1, size - 1);
  volatile unsigned char* const found = all;
  return 100 * found[0] + 10 * found[1] + found[size - 2] + others[1];
}
"""
_LOADS = """
#include <stdio.h>
#include <windows.h>
int main(void) {
  int (*filled)(int) = (int (*)(int))(void*)GetProcAddress(LoadLibraryA("frame.dll"), "filled");
  printf("%d", filled(120000));
  return 0;
}
"""


def test_kernels_ask_for_no_library_and_may_have_large_frames(core: Core, wine: Wine) -> None:
    """What compilers call is in windows.c: what fills and copies, and what touches each page."""
    folder = wine.folder / "small"
    artifact_for_windows("viscoplastic", folder, "x86-64-v2", "x86-64-v3")
    (folder / "frame.c").write_text(_FRAME, encoding="utf-8")
    (folder / "loads.c").write_text(_LOADS, encoding="utf-8")
    own = ("-fno-builtin", "-shared", "-nostdlib", "-Wl,-e,neml2_kernels_entry")
    windows = ROOT / "neml2_capi" / "kernels" / "c" / "windows.c"
    assert not core.compile(folder / "frame.c", folder / "frame.dll", *own, windows)
    for library in folder.glob("kernels/*/*.dll"):
        printed = subprocess.run(["objdump", "-p", library], capture_output=True, text=True)
        assert "DLL Name" not in printed.stdout
        assert library.stat().st_size < 80_000  # with start code of a C library, 70,000 more
    assert not core.compile(folder / "loads.c", folder / "loads.exe")
    assert wine.run(folder / "loads.exe") == (0, "380")


_PATHS = """
#include <stdio.h>
#include "neml2_capi.h"
int main(void) {
  neml2_model *model = NULL;
  neml2_source source = {.size = sizeof source, .path = PLACE};
  const int32_t status = neml2_model_open(&model, &source);
  char message[2048] = "";
  neml2_error_message(message, sizeof message, NULL);
  printf("%d %s", (int)status, message);
  return status != NEML2_OK;
}
"""


def test_a_process_in_a_folder_of_spaces_and_cjk_letters_opens_a_law_there(
    core: Core, wine: Wine
) -> None:
    """Narrow paths are UTF-8, whatever the code page of the process is."""
    folder = wine.folder / "材料 試験"
    artifact_for_windows("elasticity", folder / "材料 1" / "钢")
    (folder / "host.c").write_text('#define PLACE "材料 1/钢"' + _PATHS, encoding="utf-8")
    assert not core.compile(folder / "host.c", folder / "host 主.exe")
    shutil.copy2(wine.folder / "libneml2_capi.dll", folder)
    status, said = wine.run(folder / "host 主.exe", cwd=folder)
    assert status == 0, said
    shutil.rmtree(folder / "材料 1" / "钢")
    status, said = wine.run(folder / "host 主.exe", cwd=folder)
    assert status == 1
    assert "钢" in said


def test_a_path_of_more_than_260_letters_is_opened(core: Core, wine: Wine) -> None:
    """Which Windows' functions take with a prefix alone, unless a program says that it knows."""
    place = Path("long " + 100 * "x", 100 * "y", 100 * "z", "steel")
    artifact_for_windows("elasticity", wine.folder / place)
    (wine.folder / "long.c").write_text(f'#define PLACE "{place}"' + _PATHS, encoding="utf-8")
    assert not core.compile(wine.folder / "long.c", wine.folder / "long.exe")
    status, said = wine.run(wine.folder / "long.exe", cwd=wine.folder)
    assert status == 0, said
    (wine.folder / place / "metadata.json").unlink()
    status, said = wine.run(wine.folder / "long.exe", cwd=wine.folder)
    assert status == 1
    assert 100 * "z" in said


def test_a_user_without_rights_to_write_runs_a_law(core: Core, wine: Wine) -> None:
    """Program, library, artifact and the folder for temporary files belong to another user."""
    nobody = 65534
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("it is root that starts a program as another user, by setpriv")
    with Model(with_kernels("elasticity")) as model:
        state = state_of("elasticity", model)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        assert not core.compile(TESTS / "hosts" / "bits.c", folder / "bits.exe")
        shutil.copy2(wine.folder / "libneml2_capi.dll", folder)
        artifact_for_windows("elasticity", folder / "steel")
        (folder / "inputs").write_bytes(state["strain"][:1].tobytes())
        (folder / "home").mkdir()
        os.chown(folder / "home", nobody, nobody)
        as_nobody = ["setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups"]
        theirs = Wine([*as_nobody, *wine.command], folder / "home")
        refused = subprocess.run([*as_nobody, "touch", folder / "steel" / "file"])
        assert refused.returncode != 0
        command = r"set TMP=Z:\proc&set TEMP=Z:\proc&bits.exe steel inputs 1"
        status, printed = theirs.run(Path("cmd"), "/c", command, cwd=folder)
        assert status == 0, printed
    here = wine.folder / "steel of nobody"
    (wine.folder / "one").write_bytes(state["strain"][:1].tobytes())
    shutil.copytree(
        with_kernels("elasticity", "x86-64-v3"), here, ignore=shutil.ignore_patterns("*.pt2")
    )
    assert printed == run_here(
        c_program(TESTS / "hosts" / "bits.c"), here, wine.folder / "one", "1"
    )


def test_a_process_that_may_write_nowhere_runs(core: Core, wine: Wine) -> None:
    """Neither in its folder nor in the one for temporary files: the kernels are loaded in place."""
    program = wine.folder / "nowhere.exe"
    assert not core.compile(TESTS / "c" / "test_elasticity.c", program)
    nowhere = r"set TMP=Z:\proc&set TEMP=Z:\proc&"  # no user writes there
    in_windows = "Z:" + str(program).replace("/", "\\")
    status, said = wine.run(Path("cmd"), "/c", nowhere + in_windows, cwd=Path("/proc"))
    assert status == 0, said


def plug_ins(core: Core, wine: Wine, name: str, there: Path, here: Path) -> None:
    """Make the plug-ins of an artifact for Windows and for this system."""
    root = wine.folder / "plugins" / name
    if not root.exists():
        shutil.copytree(with_kernels(name), root, ignore=shutil.ignore_patterns("*.pt2"))
        for kernels in root.glob("kernels/*"):
            build(kernels, ["x86-64-v3"], system="windows")
    told = make(root, there, shell=core.folder / "lib" / "neml2_plugin.dll")
    assert told[0].endswith("MB, kernels")
    make(root, here)


@pytest.mark.parametrize("name", ["combined_hardening", "isotropic_hardening"])
def test_a_plug_in_for_windows_has_the_bits_of_linux(core: Core, wine: Wine, name: str) -> None:
    """A host loads it, and calls UMAT as Abaqus does."""
    source = TESTS / "hosts" / "plugin.c"
    host, steel = wine.folder / "plugin.exe", wine.folder / f"{name}.dll"
    assert not core.compile(source, host)
    with pytest.raises(PluginError, match=r"no kernels for windows.*--system windows"):
        make(with_kernels(name), steel, shell=core.folder / "lib" / "neml2_plugin.dll")
    plug_ins(core, wine, name, steel, wine.folder / f"lib{name}.so")
    status, printed = wine.run(host, steel.name, cwd=wine.folder)
    assert status == 0, printed
    assert printed.count("stress") == 1
    ours = c_program(source, flags=("-ldl",))
    assert printed == run_here(ours, wine.folder / f"lib{name}.so")
    names = subprocess.run(["objdump", "-p", steel], capture_output=True, text=True).stdout
    assert {"UMAT", "umat", "umat_", "VUMAT", "vumat", "vumat_"} <= set(names.split())


@pytest.mark.parametrize("case", ["uniaxial", "shear", "rotation", "cut"])
def test_the_driver_of_abaqus_calls_has_the_bits_of_linux(
    core: Core, wine: Wine, case: str
) -> None:
    """It is in Fortran: it turns the material, solves for free strains, and cuts steps."""
    fortran = shutil.which("x86_64-w64-mingw32-gfortran")
    if not fortran:
        pytest.skip("no gfortran for Windows. In Debian: gfortran-mingw-w64-x86-64-posix")
    folder = wine.folder / "abaqus"
    folder.mkdir(exist_ok=True)
    sources = [abaqus.UMAT / "driver" / f"{name}.f90" for name in abaqus.DRIVER]
    sources += [abaqus.UMAT / "without_abaqus.f90", core.folder / "lib" / "neml2_plugin.dll"]
    options = ("-std=f2018", "-O1", "-static", f"-J{folder}")
    passes([fortran, *options, *sources, "-o", folder / "driver.exe"])
    # A program that is linked with a plug-in asks for it by the name of the shell.
    plug_ins(core, wine, "combined_hardening", folder / "neml2_plugin.dll", folder / "libumat.so")
    file = abaqus.UMAT / "cases" / f"{case}.nml"
    status, printed = wine.run(folder / "driver.exe", file)
    assert status == 0, printed
    assert printed.count("stress") > 0
    assert printed == run_here(abaqus.driver(), file, LD_LIBRARY_PATH=str(folder))


def test_a_plug_in_for_windows_asks_for_its_wheel(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"--platform win_amd64; name its file with --shell"):
        make(with_kernels("combined_hardening"), tmp_path / "steel.dll")
    with pytest.raises(PluginError, match=r"Packages are Linux's"):
        make(with_kernels("combined_hardening"), tmp_path / "steel.dll", packages=True)
