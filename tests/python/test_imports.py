"""The rooms of neml2_capi/: the check that imports form no circle and no long chain."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from native import ROOT

FILES = {
    "__init__.py": "from shop.model import Model\n",
    "_ffi.py": "",
    "model/__init__.py": "from shop.model.model import Model\n",
    "model/model.py": "import numpy\nfrom shop import _ffi\nclass Model: ...\n",
    "driver.py": "from shop.model import Model\n",
}


def check(package: Path) -> tuple[int, list[str]]:
    """Run the check on a folder; its status, and the lines that it prints."""
    command = [sys.executable, str(ROOT / "tools" / "rooms.py"), str(package)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A package in order."""
    package = tmp_path / "shop"
    for name, text in FILES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    for folder in (package, package / "model"):
        (folder / "README.md").write_text("# It\n")
    return package


def test_a_package_in_order_is_clean(shop: Path) -> None:
    assert check(shop) == (0, [])


@pytest.mark.parametrize(
    "later",
    [
        "from shop.driver import drive\n",
        "import shop.driver\n",
        "from shop import driver\n",
        "from ..driver import drive\n",
        "def late():\n    from shop.driver import drive\n",
    ],
)
def test_a_circle_is_told_with_its_lines(shop: Path, later: str) -> None:
    model = shop / "model" / "model.py"
    model.write_text(model.read_text() + later)
    status, lines = check(shop)
    assert status == 1
    found = next(line for line in lines if line.startswith("shop/model/model.py:"))
    number = model.read_text().splitlines().index(later.splitlines()[-1]) + 1
    assert found.startswith(f"shop/model/model.py:{number}: shop.model.model imports shop.driver")
    assert "Move what both need into a lower room" in found


def test_a_circle_of_rooms_without_one_of_modules_is_told(shop: Path) -> None:
    (shop / "model" / "extra.py").write_text("from shop.driver import drive\n")
    status, lines = check(shop)
    assert status == 1
    assert {line.split(":")[0] for line in lines} == {"shop/driver.py", "shop/model/extra.py"}


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "typing.TYPE_CHECKING"])
def test_what_only_a_type_checker_reads_is_no_import(shop: Path, test: str) -> None:
    (shop / "model" / "model.py").write_text(f"if {test}:\n    from shop.driver import drive\n")
    assert check(shop) == (0, [])


def test_a_chain_of_nine_rooms_is_told(shop: Path) -> None:
    rooms = ["driver", *(f"on{i}" for i in range(6))]
    for below, room in pairwise(rooms):
        (shop / f"{room}.py").write_text(f"from shop import {below}\n")
    status, (line,) = check(shop)
    assert status == 1
    assert line.startswith("9 rooms import one another, on5 -> on4 ->")
    assert line.partition(";")[0].endswith("-> driver -> model -> _ffi")
    (shop / "on5.py").unlink()
    assert check(shop) == (0, [])


def test_a_folder_without_a_short_readme_is_told(shop: Path) -> None:
    (shop / "README.md").unlink()
    (shop / "model" / "README.md").write_text("line\n" * 61)
    status, lines = check(shop)
    assert status == 1
    assert [line.split(": ")[0] for line in lines] == [
        "shop/README.md:1",
        "shop/model/README.md:61",
    ]


def test_the_package_is_in_order() -> None:
    assert check(ROOT / "neml2_capi") == (0, [])
