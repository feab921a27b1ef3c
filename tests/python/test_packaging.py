"""The recipes of packaging/ ask for what pyproject.toml does, in the same versions."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from native import ROOT

sys.path.append(str(ROOT))  # last: the package of the checkout has no library

from tools.environments import requirements

pytestmark = pytest.mark.native

PACKAGING = ROOT / "packaging"
SPACK = PACKAGING / "spack" / "spack_repo" / "neml2_capi" / "packages"
CONDA = PACKAGING / "conda" / "recipe.yaml"
RECIPES = [SPACK / "neml2_capi" / "package.py", SPACK / "py_neml2_capi" / "package.py", CONDA]
PROJECT = (ROOT / "pyproject.toml").read_text()
MINIMUM = r'^requires-python = ">=(.*)"'


def written(pattern: str, text: str) -> str:
    (found,) = re.findall(pattern, text, re.MULTILINE)
    return str(found)


def needed(extra: str) -> dict[str, str]:
    """The least version of each package that runs with an extra."""
    words = (re.match(r"([\w-]+)>=([\d.]+)", text) for text in requirements(extra))
    return {found[1]: found[2] for found in words if found}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: str(path.relative_to(PACKAGING)))
def test_a_recipe_has_the_version_of_the_project(recipe: Path) -> None:
    version = written(r'^version = "(.*)"', PROJECT)
    pattern = r"^  version: (\d.*)$" if recipe == CONDA else r'^    version\("([^"]+)"'
    assert written(pattern, recipe.read_text()) == version, (
        f"write {version} into {recipe.relative_to(ROOT)}, as pyproject.toml has it"
    )


def test_spack_asks_for_the_same_packages() -> None:
    recipe = RECIPES[1].read_text()
    asked = dict(re.findall(r'depends_on\("py-([\w-]+)@([\d.]+):?", type="run"', recipe))
    assert asked == needed("cli")
    assert f'"python@{written(MINIMUM, PROJECT)}:"' in recipe


def test_conda_asks_for_the_same_packages() -> None:
    package = CONDA.read_text().partition("name: neml2-capi\n    build:")[2]
    run = package.partition("      run:\n")[2].partition("    tests:")[0]
    asked = dict(re.findall(r"- ([\w-]+) >=([\d.]+)$", run, re.MULTILINE))
    assert asked.pop("python") == written(MINIMUM, PROJECT)
    assert asked == needed("cli")
