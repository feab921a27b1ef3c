"""The rooms of capi/: the check that includes point one way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from native import ROOT

pytestmark = pytest.mark.native

BELOW, ABOVE = "tensor", "model"


def check(capi: Path) -> tuple[int, list[str]]:
    """Run the check on a folder; its status, and the lines that it prints."""
    command = [sys.executable, "-m", "tools.includes", str(capi)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not done.stdout
    return done.returncode, done.stderr.splitlines()


@pytest.fixture
def capi(tmp_path: Path) -> Path:
    """Two rooms of one header each, of which the upper one includes the other's."""
    folder = tmp_path / "capi"
    for room in (BELOW, ABOVE):
        (folder / room).mkdir(parents=True)
        (folder / room / "README.md").write_text(f"# {room}\n")
    (folder / "CMakeLists.txt").write_text("")
    (folder / BELOW / "a.h").write_text("#pragma once\n")
    (folder / ABOVE / "b.h").write_text(f'#pragma once\n\n#include "capi/{BELOW}/a.h"\n')
    return folder


def test_every_folder_of_the_python_package_has_a_short_readme() -> None:
    package = ROOT / "neml2_capi"
    folders = {file.parent for file in package.rglob("*.py")}
    lengths = {f: (f / "README.md").read_text(encoding="utf-8").count("\n") for f in folders}
    assert {folder: lines for folder, lines in lengths.items() if lines > 60} == {}


def test_rooms_in_order_are_clean(capi: Path) -> None:
    assert check(capi) == (0, [])


def test_an_upward_include_is_told_with_its_line(capi: Path) -> None:
    (capi / BELOW / "a.cpp").write_text(f'#include <string>\n#include "capi/{ABOVE}/b.h"\n')
    status, (line,) = check(capi)
    assert status == 1
    assert line.startswith(f"capi/{BELOW}/a.cpp:2: {BELOW} includes capi/{ABOVE}/b.h")
    assert "expected a header of base or platform or tensor" in line
    assert f"Move what is needed of it down, or this code up to {ABOVE}." in line


def test_a_header_of_a_system_is_of_the_platform(capi: Path) -> None:
    (capi / ABOVE / "b.cpp").write_text("#include <string>\n#include <unistd.h>\n")
    status, (line,) = check(capi)
    assert status == 1
    assert line.startswith(f"capi/{ABOVE}/b.cpp:2: {ABOVE} includes <unistd.h>")
    assert "behind a header of capi/platform" in line
    (capi / "platform").mkdir()
    (capi / "platform" / "README.md").write_text("# platform\n")
    (capi / ABOVE / "b.cpp").rename(capi / "platform" / "b.cpp")
    assert check(capi) == (0, [])


@pytest.mark.parametrize("place", ["c.h", "attic/c.h", "model/attic/c.h"])
def test_a_file_in_no_room_is_told(capi: Path, place: str) -> None:
    (capi / place).parent.mkdir(exist_ok=True)
    (capi / place).write_text("")
    status, (line,) = check(capi)
    assert status == 1
    assert line.startswith(f"capi/{place}:1: the file is in no room; expected capi/ROOM/c.h")


def test_a_header_that_is_gone_is_told(capi: Path) -> None:
    (capi / BELOW / "a.h").rename(capi / BELOW / "c.h")
    status, (line,) = check(capi)
    assert status == 1
    assert line.startswith(f"capi/{ABOVE}/b.h:3: capi/{BELOW}/a.h does not exist")


def test_what_is_linked_apart_keeps_its_headers_to_itself(capi: Path) -> None:
    (capi / "lanes").mkdir()
    (capi / "lanes" / "README.md").write_text("")
    for name in ("kernels.h", "lu.h"):
        (capi / "lanes" / name).write_text("")
    (capi / ABOVE / "b.h").write_text(
        '#include "capi/lanes/kernels.h"\n#include "capi/lanes/lu.h"\n'
    )
    status, (line,) = check(capi)
    assert status == 1
    assert line.startswith(f"capi/{ABOVE}/b.h:2: {ABOVE} includes capi/lanes/lu.h")


def test_the_core_includes_nothing_of_a_backend(capi: Path) -> None:
    (capi / "libtorch").mkdir()
    (capi / "libtorch" / "README.md").write_text("")
    (capi / "libtorch" / "library.h").write_text("")
    (capi / ABOVE / "b.h").write_text('#include "capi/libtorch/library.h"\n')
    status, (line,) = check(capi)
    assert status == 1
    assert "which is a backend's; expected none of them" in line


def test_what_is_linked_apart_needs_no_sources_of_others(capi: Path) -> None:
    (capi / "provider").mkdir()
    (capi / "provider" / "README.md").write_text("")
    (capi / "archive").mkdir()
    (capi / "archive" / "README.md").write_text("")
    (capi / "archive" / "archive.h").write_text("")
    (capi / "provider" / "p.cpp").write_text('#include "capi/archive/archive.h"\n')
    status, (line,) = check(capi)
    assert status == 1
    assert "is linked without archive; expected a header of provider or tensor" in line


def test_a_room_without_a_short_readme_is_told(capi: Path) -> None:
    (capi / BELOW / "README.md").unlink()
    (capi / ABOVE / "README.md").write_text("line\n" * 61)
    status, lines = check(capi)
    assert status == 1
    assert [line.split(": ")[0] for line in lines] == [
        f"capi/{BELOW}/README.md:1",
        f"capi/{ABOVE}/README.md:61",
    ]


def test_the_rooms_of_the_library_are_in_order() -> None:
    assert check(ROOT / "capi") == (0, [])
