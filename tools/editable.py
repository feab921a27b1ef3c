"""The checkout, installed in an environment as its wheel would be, without building the wheel.

Each Python file is a link into the checkout, so that an edit needs no step at all; the library and
the headers are copied from a build folder. What a test imports lies in site-packages, as it does
for a user.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tools.environments import Environment
from tools.native import Build
from tools.process import ROOT

_PACKAGE = ROOT / "neml2_capi"


def install_checkout(environment: Environment, build: Build) -> None:
    """Install the checkout and the library of `build`; takes under a second."""
    (site,) = (environment.folder / "lib").glob("python*/site-packages")
    _link(site / "neml2_capi")
    # The provider of another build has another name, and would stay.
    shutil.rmtree(site / "neml2_capi" / "lib", ignore_errors=True)
    build.install(site, component="wheel")
    _describe(site)
    environment.add_program("neml2-capi", "neml2_capi.cli", "main")


def _link(package: Path) -> None:
    """Link every file of the package, and drop the links of files that have gone."""
    wanted = {
        package / path.relative_to(_PACKAGE): path
        for path in _PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    for link in [path for path in package.rglob("*") if path.is_symlink()]:
        if wanted.get(link) != link.readlink():
            link.unlink()
    for link, path in wanted.items():
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def _describe(site: Path) -> None:
    """Write what importlib.metadata reads."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (version,) = re.findall(r'^version = "(.+)"$', project, re.MULTILINE)
    folder = site / "neml2_capi.dist-info"
    folder.mkdir(exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: neml2_capi\nVersion: {version}\n"
    (folder / "METADATA").write_text(metadata)
    scripts = "[console_scripts]\nneml2-capi = neml2_capi.cli:main\n"
    (folder / "entry_points.txt").write_text(scripts)
