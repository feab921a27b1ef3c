"""Kernels of real models: the same bits from every compiler, for every processor."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from compile import NotCompiledError, artifact
from kernel_setup import (
    ROOT,
    TARGETS,
    Captured,
    native_target,
    require_compiler,
    runs_here,
    with_kernels,
)
from loaded import load
from recipes import KERNEL_RECIPES, RECIPES
from states import repeated, state_of
from values import of_array

from neml2_capi import Error, Model
from neml2_capi.cli.commands import neml2_capi as command
from neml2_capi.kernels.build import build
from neml2_capi.kernels.folder import checksum, read_metadata, write_metadata
from neml2_capi.kernels.layout import named
from neml2_capi.kernels.program import Program

pytestmark = pytest.mark.full("kernels of all models, built by two compilers")

#: Older schemas have no graphs, and a batch of exactly two points no kernel.
NAMES = [n for n, r in RECIPES.items() if not r.version and n != "elasticity_static"]
POINTS = 21


#: Compilers and processors. Two tell nearly all: code of another compiler, for other vectors.
ROUTES = [(cc, target) for cc in ("gcc", "clang") for target in filter(runs_here, TARGETS)]
TWO = [("gcc", native_target()), ("clang", ROUTES[-1][1])]
SIX = pytest.mark.everything("kernels, compiled in six ways")
LONG = pytest.mark.everything("kernels of crystals, which take minutes to compile")


def metadata_of(name: str) -> Any:
    """What tells the names in arrays; nothing if the packages are not in the archive."""
    prebuilt = ROOT / "examples" / "artifacts" / name
    try:
        root = prebuilt if prebuilt.is_dir() else artifact(name)
    except NotCompiledError:
        return {}
    return json.loads((root / "metadata.json").read_text())


def results(path: Path, programs: dict[str, Program]) -> dict[str, str]:
    """The bits of what each kernel of an object makes of points, good and bad; NaN is NaN."""
    found = {}
    for stem, kernel in load(path).items():
        random, digest = np.random.default_rng(11), hashlib.sha256()
        if stem in programs:
            inputs = [of_array(array, POINTS, random) for array in programs[stem].inputs]
        else:  # a linear solve, which has no graph of its own
            inputs = [random.standard_normal((POINTS, count)) for _, count in kernel.inputs]
        for number, values in enumerate(v for v in inputs if v.ndim > 1 and v.shape[1]):
            values[number % POINTS, 0] = np.nan
            values[(number + 7) % POINTS, -1] = np.inf
            values[(number + 13) % POINTS] = 0
        for values in kernel(*inputs):
            digest.update(np.where(np.isnan(values), np.nan, values).tobytes())
        found[stem] = digest.hexdigest()
    return found


@pytest.mark.parametrize(
    "routes", [pytest.param(TWO, id="two"), pytest.param(ROUTES, id="six", marks=SIX)]
)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[LONG] * name.startswith("crystal"))
        for name in (*NAMES, *KERNEL_RECIPES)
    ],
)
def test_bits_are_equal_from_both_compilers_for_every_processor(
    captured: Callable[[str], Captured], tmp_path: Path, name: str, routes: list[tuple[str, str]]
) -> None:
    for cc in ("gcc", "clang"):
        require_compiler(cc)
    graphs, metadata = captured(name), metadata_of(name)
    programs = {
        Path(package).stem: named(program, package, metadata)
        for package, program in graphs.programs.items()
        if isinstance(program, Program)
    }
    found = {}
    for cc, target in routes:
        folder = graphs.write(tmp_path / f"{cc}-{target}" / name, metadata)
        (made,) = build(folder, [target], cc)
        found[cc, target] = results(made, programs)
    first = found["gcc", native_target()]
    assert first
    assert {key: made for key, made in found.items() if made != first} == {}


@pytest.mark.parametrize("name", ["elasticity", "isotropic_hardening", "chaboche", "radial_return"])
def test_a_model_whose_objects_were_built_again_gives_the_same_bits(
    tmp_path: Path, cc: str, name: str
) -> None:
    given = with_kernels(name)
    built = shutil.copytree(given, tmp_path / name)
    for made in built.rglob("*.so"):
        made.unlink()
    with pytest.raises(Error, match=r"\.so is missing.*build-kernels"):
        evaluated(built, name)
    words = ["build-kernels", str(built), "--cc", cc, "--target", native_target()]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    assert evaluated(built, name) == evaluated(given, name)


def test_a_process_takes_an_object_that_was_built_again(tmp_path: Path) -> None:
    root = Path(shutil.copytree(with_kernels("elasticity"), tmp_path / "elasticity"))
    strain = np.full((POINTS, 6), 1e-3)
    before = Model(root).forward({"strain": strain})["stress"]
    (source,) = root.glob("kernels/*/elasticity.c")
    source.write_text(source.read_text().replace("stress[5] = ", "stress[5] = 2.0 * "))
    document = read_metadata(source.parent)
    (kernel,) = (k for k in document["kernels"] if k["source"] == source.name)
    kernel["source_checksum"] = checksum(source)
    write_metadata(source.parent, document)
    build(source.parent, [native_target()])
    after = Model(root).forward({"strain": strain})["stress"]
    np.testing.assert_array_equal(after[:, 5], 2.0 * before[:, 5])
    np.testing.assert_array_equal(after[:, :5], before[:, :5])


def evaluated(root: Path, name: str) -> dict[str, bytes]:
    """The bits of all outputs and of the report, on kernels."""
    model = Model(root)
    model.options["kernels"] = "required"
    outputs, report = model.evaluate(repeated(state_of(name, model), POINTS))
    return {key: np.asarray(value).tobytes() for key, value in {**outputs, **report}.items()}
