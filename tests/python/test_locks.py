"""Locks, which the child of a fork finds free: of the library, its statics, and the package."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from native import LIBRARIES, ROOT, command, run
from programs import built

from neml2_capi._ffi import locks

# Made when the library is opened, by constructors.
MADE_AT_ONCE = ("thread_end::", "std::ios_base_library_init()")


def check(root: Path) -> tuple[int, list[str]]:
    """Run the check on a tree; its status, and the lines that it prints."""
    tool = [sys.executable, "-m", "tools.locks", str(root)]
    done = subprocess.run(tool, cwd=ROOT, capture_output=True, text=True)
    assert not done.stdout
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("capi/model/model.h", "  mutable std::shared_mutex mutex_;"),
        ("capi/model/model.cpp", "static std::once_flag once;"),
        ("capi/threads/pool.cpp", "std::condition_variable came;"),
        ("capi/threads/pool.cpp", "pthread_atfork(nullptr, nullptr, renew);"),
        ("neml2_capi/model/call.py", "turn = threading.Lock()"),
    ],
)
def test_a_lock_that_a_fork_does_not_know_is_told(tmp_path: Path, place: str, line: str) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text(f"// {line}\n{line}\n" if place.startswith("capi") else f"\n{line}\n")
    status, (told,) = check(tmp_path)
    assert status == 1
    assert told.startswith(f"{place}:2: ")
    assert "locks" in told


def test_a_fork_knows_all_locks() -> None:
    assert check(ROOT) == (0, [])


@pytest.mark.native
def test_no_static_variable_waits_for_its_first_use() -> None:
    # The compiler guards it by a lock, which the child of a fork may find held.
    libraries = [file for file in LIBRARIES.glob("lib*.so*") if file.read_bytes()[:4] == b"\x7fELF"]
    assert len(libraries) >= 3
    for library in libraries:
        symbols = command("nm", "--demangle", library).splitlines()
        guarded = [name for name in symbols if "guard variable for" in name]
        assert [name for name in guarded if not any(one in name for one in MADE_AT_ONCE)] == []


def test_a_child_takes_a_lock_that_another_thread_had() -> None:
    lock, own = locks.new(), locks.new()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with own:
        child = os.fork()
        if child == 0:
            # Its own is still held, and released as ever.
            taken = lock.acquire(timeout=60)
            own.release()
            os._exit(0 if taken else 1)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.native
@pytest.mark.everything("3,000 forks")
def test_thousands_of_children_go_on() -> None:
    run(built("c_test_forks"), "3000")
