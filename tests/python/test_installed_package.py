"""Nothing is written into the installed package, also if a link of the user leads there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from native import PREBUILT

import neml2_capi
import neml2_capi.plugin
from neml2_capi import FatalError, Model, drive, examples, sweep
from neml2_capi._ffi.library import library_path
from neml2_capi.artifact.rebuild import System, rebuild
from neml2_capi.cli.commands import neml2_capi as command
from neml2_capi.kernels.build import build
from neml2_capi.kernels.folder import write_sources

PACKAGE = Path(neml2_capi.__file__).parent
TOLD = "inside the installed package"


def files() -> dict[Path, int]:
    """All that the package has, as it was imported and where its sources are."""
    places = {PACKAGE, examples.FOLDER, Path(library_path()).parent}
    found = (file for place in places for file in place.rglob("*") if file.is_file())
    return {file: file.stat().st_mtime_ns for file in found if "__pycache__" not in file.parts}


def ran(*arguments: str | Path) -> None:
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert done.exit_code == 1, done.output
    raise FatalError(done.output)


def pulled() -> neml2_capi.Results:
    return drive(Model(examples.path("elasticity")), [0.0, 1.0], {"strain": np.zeros((2, 6))})


def set_capsule(folder: Path) -> None:
    Model(examples.path("elasticity")).options["capsule"] = str(folder / "failed")


def run_file() -> Path:
    file = Path(tempfile.mkdtemp()) / "run.toml"
    file.write_text(
        f'artifact = "{examples.path("elasticity")}"\n[times]\nend = 1.0\nsteps = 1\n'
        '[forces.strain]\nramp = 0.01\ndirection = {xx = 1.0}\n[output]\nfile = "out.npz"\n'
    )
    return file


def compiled(into: Path, *which: str) -> None:
    source = Path(tempfile.mkdtemp()) / "law.i"
    source.touch()
    ran("compile", source, *(which or ("--model", "law")), "--output-dir", into)


# What writes, given a folder of the package.
WRITERS: dict[str, Callable[[Path], object]] = {
    "compile": compiled,
    "compile a driver": lambda folder: compiled(folder, "--driver", "pull"),
    "build-kernels": lambda folder: ran("build-kernels", folder / "chaboche"),
    "header": lambda folder: ran("header", examples.path("chaboche"), "-o", folder / "steel.hpp"),
    "build-packages": lambda folder: ran(
        *("build-packages", PREBUILT / "elasticity", "--target", "x86_64-linux-gnu"),
        *("--output-dir", folder),
    ),
    "plugin": lambda folder: ran("plugin", examples.path("chaboche"), "-o", folder / "libsteel.so"),
    "umat": lambda folder: ran("umat", examples.path("chaboche"), "--output", folder / "steel.nml"),
    "run --template": lambda folder: ran(
        "run", "--template", examples.path("chaboche"), "--output", folder / "pull.toml"
    ),
    "run": lambda folder: ran("run", run_file(), "--output", folder / "pull.npz"),
    "run --plot-file": lambda folder: ran(
        *("run", run_file(), "--plot", "strain.xx:stress.xx"),
        *("--plot-file", folder / "pull.png"),
    ),
    "verify --template": lambda folder: ran(
        "verify", "--template", examples.path("chaboche"), "--output", folder / "law.toml"
    ),
    "verify --junit": lambda folder: ran("verify", run_file(), "--junit", folder / "j.xml"),
    "verify --figures": lambda folder: ran("verify", run_file(), "--figures", folder / "figures"),
    "Results.save": lambda folder: pulled().save(folder / "cycles.npz"),
    "Results.save as csv": lambda folder: pulled().save(folder / "cycles.csv"),
    "sweep": lambda folder: sweep(
        lambda parameters: {"x": np.zeros(1)}, {"E": np.ones(2)}, directory=folder / "scatter"
    ),
    "the option capsule": set_capsule,
    "plugin.make": lambda folder: neml2_capi.plugin.make(
        examples.path("chaboche"), folder / "libsteel.so"
    ),
    "kernels' sources": lambda folder: write_sources(folder / "law", "cpu/float64", {}, {}, {}),
    "kernels' objects": lambda folder: build(folder / "chaboche" / "kernels" / "float64"),
    "a package compiled again": lambda folder: rebuild(
        folder / "law.pt2", System("x86_64-linux-gnu"), folder
    ),
}


@pytest.mark.parametrize("through_a_link", [False, True], ids=["", "through a link"])
@pytest.mark.parametrize("writer", WRITERS)
def test_nothing_writes_into_the_package(writer: str, through_a_link: bool, tmp_path: Path) -> None:
    folder = examples.FOLDER
    if writer == "the option capsule":  # the library knows the package that it is in
        folder = Path(library_path()).parents[1] / "examples"
    link = tmp_path / "aoti"
    link.symlink_to(folder)
    before = files()
    with pytest.raises(FatalError, match=TOLD):
        WRITERS[writer](link if through_a_link else folder)
    assert files() == before


def test_a_model_that_is_a_link_into_the_package_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "chaboche").symlink_to(examples.path("chaboche"))
    with pytest.raises(FatalError, match=r"a link leads there.*copy them: cp -rL"):
        compiled(tmp_path, "--model", "chaboche")
    with pytest.raises(FatalError, match="a link leads there"):
        compiled(tmp_path, "--driver", "pull")


@pytest.mark.full("torch")
@pytest.mark.parametrize("kind", ["model", "package"])
def test_nothing_is_exported_into_the_package(kind: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from neml2_capi import export

    (tmp_path / "aoti").symlink_to(examples.FOLDER)
    example = (torch.zeros(8, 6, dtype=torch.float64),)
    write: dict[str, Callable[[], object]] = {
        "model": lambda: export.model(
            lambda strain: 2 * strain,
            tmp_path / "aoti" / "law",
            inputs={"strain": "SR2"},
            outputs={"stress": "SR2"},
        ),
        "package": lambda: export.package(
            torch.nn.Linear(6, 6).double(), example, tmp_path / "aoti" / "network.pt2"
        ),
    }
    before = files()
    with pytest.raises(FatalError, match=TOLD):
        write[kind]()
    assert files() == before


def test_a_folder_whose_name_begins_alike_is_the_users(tmp_path: Path) -> None:
    """Not by the letters of a path: neml2_capi2 beside neml2_capi is another folder."""
    from neml2_capi._ffi.outside import require_outside

    require_outside(PACKAGE.with_name("neml2_capi2") / "aoti")
    require_outside(PACKAGE.parent / "aoti")
    require_outside(tmp_path / "nothing" / ".." / "aoti")
