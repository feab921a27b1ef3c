"""Many processes open one artifact at once, and half of them are killed while they do.

The others are right, no file is left behind, and a file is read once for all.
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import shutil
import subprocess
import time
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from native import HOSTS, LIBRARIES, PREBUILT, c_program

pytestmark = pytest.mark.native

PROCESSES = 64
POINTS = 8

found = importlib.util.find_spec("torch")
TORCH = str(Path(found.origin).parent / "lib") if found and found.origin else ""
needs_torch = pytest.mark.skipif(not TORCH, reason="torch is not installed")


@cache
def program() -> Path:
    return c_program(HOSTS / "one_of_many.c", HOSTS / "poor_system.c", flags=("-rdynamic",))


class Crowd:
    """Processes of one_of_many.c that wait for each other; none outlives the `with` block."""

    def __init__(
        self, processes: int, folder: Path, *, runtime: str = "builtin", artifacts: Path = PREBUILT
    ) -> None:
        """Their working files are to be in `folder`; `runtime` is the model's."""
        places = {name: str(folder) for name in ("TMPDIR", "XDG_RUNTIME_DIR", "HOME")}
        defaults = {"NEML2_TEST_ARTIFACTS": str(artifacts), "NEML2_CAPI_LIBTORCH": TORCH}
        self.members = [
            subprocess.Popen(
                [program(), runtime],
                env={**defaults, **os.environ, **places},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(processes)
        ]

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.kill()
            member.communicate()

    def open(self) -> None:
        """All begin to load the model."""
        for member in self.members:
            assert member.stdin
            member.stdin.write(b"!")
            member.stdin.flush()

    def states(self) -> list[list[bytes]]:
        """What each has printed, once it has printed all or has been killed."""
        return [list(lines_of(member)) for member in self.members]

    def leave(self) -> list[int]:
        """All that live end; how each has ended, and without a word."""
        for member in self.members:
            _, said = member.communicate()
            assert said == b""
        return [member.returncode for member in self.members]


def lines_of(member: subprocess.Popen[bytes]) -> Iterator[bytes]:
    assert member.stdout
    for _ in range(POINTS):
        if not (line := member.stdout.readline()):
            assert member.stderr
            assert member.wait() < 0, member.stderr.read().decode()
            return
        yield line


@cache
def expected(runtime: str) -> list[bytes]:
    """The states of a process that is alone."""
    with Crowd(1, Path.cwd(), runtime=runtime) as alone:
        alone.open()
        (states,) = alone.states()
        assert alone.leave() == [0]
    assert len(states) == POINTS
    return states


def files(folder: Path) -> list[tuple[str, int, int]]:
    """All below a folder, with when they were changed, and the sizes."""
    found = [(path, path.stat()) for path in sorted(folder.rglob("*"))]
    return [(str(path), status.st_mtime_ns, status.st_size) for path, status in found]


def said_of(member: subprocess.Popen[bytes], file: str) -> str:
    """A file of /proc about a process."""
    return Path(f"/proc/{member.pid}/{file}").read_text()


def kill_half_of(processes: int, folder: Path, runtime: str) -> None:
    """Of two crowds, the second is killed at moments that are spread over the time of the first."""
    with Crowd(processes, folder, runtime=runtime) as crowd:
        begin = time.monotonic()
        crowd.open()
        assert crowd.states() == [expected(runtime)] * processes
        seconds = time.monotonic() - begin
        assert crowd.leave() == [0] * processes

    chance = random.Random(processes)
    with Crowd(processes, folder, runtime=runtime) as crowd:
        victims = chance.sample(range(processes), processes // 2)
        moments = sorted(chance.uniform(0, seconds) for _ in victims)
        begin = time.monotonic()
        crowd.open()
        for moment, victim in zip(moments, victims, strict=True):
            time.sleep(max(0, begin + moment - time.monotonic()))
            crowd.members[victim].kill()
        states = crowd.states()
        ends = crowd.leave()

    killed = [states[victim] for victim in victims]
    assert all(ends[victim] == -9 for victim in victims)
    assert any(len(lines) < POINTS for lines in killed), "none was killed before its end"
    assert all(lines == expected(runtime)[: len(lines)] for lines in killed)
    rest = set(range(processes)) - set(victims)
    assert [states[i] for i in rest] == [expected(runtime)] * (processes // 2)
    assert [ends[i] for i in rest] == [0] * (processes // 2)


@pytest.mark.full("many processes")
@pytest.mark.parametrize(
    "lacking",
    [
        pytest.param([], id="all"),
        pytest.param(["memfd"], id="no-memfd"),
        pytest.param(["memfd", "tmpfile"], id="no-memfd-and-no-nameless-files"),
    ],
)
def test_what_is_killed_leaves_no_file_and_the_rest_is_right(
    tmp_path: Path, lacking: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "memfd" in lacking:
        monkeypatch.setenv("NEML2_CAPI_NO_MEMFD", "1")
    if "tmpfile" in lacking:
        monkeypatch.setenv("NEML2_TEST_NO_TMPFILE", "1")
    before = [files(place) for place in (PREBUILT, LIBRARIES)], set(Path("/dev/shm").iterdir())
    kill_half_of(PROCESSES, tmp_path, "builtin")
    left = files(tmp_path)
    if "tmpfile" in lacking:  # between two system calls a file has a name, and nothing in it
        assert all(size == 0 for _, _, size in left)
    else:
        assert left == []
    assert [files(place) for place in (PREBUILT, LIBRARIES)] == before[0]
    assert not [new for new in set(Path("/dev/shm").iterdir()) - before[1] if "neml2" in new.name]


def test_where_proc_cannot_be_read_files_have_a_name_until_they_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEML2_CAPI_NO_MEMFD", "1")
    monkeypatch.setenv("NEML2_TEST_NO_PROC", "1")
    with Crowd(4, tmp_path) as crowd:
        crowd.open()
        assert crowd.states() == [expected("builtin")] * 4
        assert files(tmp_path) == []
        mapped = re.findall(
            rf"{tmp_path}/neml2-viscoplastic_\w+", said_of(crowd.members[0], "maps")
        )
        assert len(set(mapped)) == 4
        assert crowd.leave() == [0] * 4


@needs_torch
def test_processes_that_use_libtorch_leave_no_file_either(tmp_path: Path) -> None:
    kill_half_of(6, tmp_path, "libtorch")
    assert files(tmp_path) == []


def test_a_file_is_read_once_for_all(tmp_path: Path) -> None:
    folder = shutil.copytree(PREBUILT / "viscoplastic", tmp_path / "artifacts" / "viscoplastic")
    size = 0
    for path in filter(Path.is_file, folder.rglob("*")):
        with path.open("rb") as file:  # it leaves the memory of the system
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        size += path.stat().st_size
    expected("builtin")
    with Crowd(PROCESSES, tmp_path, artifacts=folder.parent) as crowd:
        crowd.open()
        assert crowd.states() == [expected("builtin")] * PROCESSES
        try:
            said = [said_of(member, "io") for member in crowd.members]
        except (FileNotFoundError, PermissionError):
            pytest.skip("the system does not count what processes read: /proc/PID/io")
    read = [int(number) for number in re.findall(r"^read_bytes: (\d+)$", "".join(said), re.M)]
    assert len(read) == PROCESSES
    assert sum(read) < 3 * size  # with what is read ahead, and the program


def test_a_process_has_one_copy_of_the_code_and_shares_the_rest(tmp_path: Path) -> None:
    with Crowd(PROCESSES, tmp_path) as crowd:
        crowd.open()
        crowd.states()
        mapped = [said_of(member, "smaps") for member in crowd.members]
    code = 0
    for package in (PREBUILT / "viscoplastic").rglob("*.pt2"):
        with zipfile.ZipFile(package) as archive:
            code += sum(e.file_size for e in archive.infolist() if e.filename.endswith(".so"))
    code += max(kernels.stat().st_size for kernels in (PREBUILT / "viscoplastic").rglob("*.so"))
    for smaps in mapped:
        assert ".pt2" not in smaps
        assert kib(smaps, "Size", "memfd:neml2") * 1024 <= code + 5 * 5 * os.sysconf("SC_PAGESIZE")
        # The library, the provider and the system's libraries are there once.
        assert kib(smaps, "Pss", "libneml2_capi") < kib(smaps, "Rss", "libneml2_capi") / 8
        assert kib(smaps, "Pss") * 1024 < code + 3_000_000


def kib(smaps: str, field: str, name: str = "") -> int:
    """The sum over the mappings of a file, or over all."""
    parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", smaps, flags=re.MULTILINE)
    of_file = "".join(part for part in parts if name in part.partition("\n")[0])
    return sum(int(size) for size in re.findall(rf"^{field}: +(\d+) kB$", of_file, re.MULTILINE))
