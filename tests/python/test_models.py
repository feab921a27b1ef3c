"""The archive of compiled models is what its recipes make."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import archive  # of tests/models, which conftest.py has on the path
import compile as models
import pytest
from shrink import shrink_all

pytestmark = pytest.mark.numbers

STALE = "its recipe has changed since it was compiled; renew the archive: python3 build.py models"


@pytest.mark.parametrize("name", models.names())
def test_a_model_was_compiled_by_its_recipe(name: str) -> None:
    assert archive.archived(name, models.recipe_of(name)) is not None, STALE


def test_the_archive_holds_what_its_manifest_says() -> None:
    assert list(archive.manifest()) == sorted(models.names())
    for name, entry in archive.manifest().items():
        folder = archive.archived(name, models.recipe_of(name))
        assert folder is not None, STALE
        assert archive.digests(folder) == entry["files"]


@pytest.mark.parametrize("name", models.graph_names())
def test_graphs_were_captured_by_their_recipe(name: str) -> None:
    folder = archive.archived(name, models.capture_recipe_of(name), archive.GRAPHS)
    assert folder is not None, STALE
    assert archive.digests(folder) == archive.manifest(archive.GRAPHS)[name]["files"]


def sources(folder: Path) -> Mapping[str, bytes]:
    """What decides what a package computes: its source, and the metadata around it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".pt2":
            with zipfile.ZipFile(path) as package:
                # Its name is a digest of the machine's settings, too.
                (entry,) = (e for e in package.namelist() if e.endswith(".wrapper.cpp"))
                found[str(path.relative_to(folder))] = package.read(entry)
        elif path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


@pytest.mark.everything("models are compiled again")
@pytest.mark.parametrize("name", models.names())
def test_a_recipe_makes_what_is_archived(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    shrink_all(models.made(name, archive=False), tmp_path / name)
    archived = archive.archived(name, models.recipe_of(name))
    assert archived is not None, STALE
    assert sources(tmp_path / name) == sources(archived)
