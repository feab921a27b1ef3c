"""Artifacts without packages: what `neml2-capi compile --kernels only` writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import evaluations
from click.testing import CliRunner
from kernel_setup import with_kernels
from states import repeated, state_of
from test_lanes import (
    DERIVATIVES,
    LOOSER,
    MODELS,
    POINTS,
    SITED,
    VALUES,
    assert_near,
    assert_same,
    dtype_of,
    side_by_side,
)

from neml2_capi import Error, Model
from neml2_capi.cli.commands import neml2_capi as command

pytestmark = pytest.mark.numbers


def kernels_only(name: str, into: Path) -> Path:
    """The artifact of a model whose packages were taken out.

    Those that come with the package were written without any: test_examples.py.
    """
    root = Path(shutil.copytree(with_kernels(name), into / name))
    for package in root.rglob("*.pt2"):
        package.unlink()
    return root


# Kernels of others take time to compile; some of MODELS have marks of their own.
QUICK = ("elasticity", "warm_start", "isotropic_hardening", "polycrystal")


# The preconditioner of gmres is made by an engine's own linear solve.
@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.full("compiles kernels"))
        if isinstance(name, str) and name not in QUICK
        else name
        for name in MODELS
        if name != "gmres"
    ]
)
def name(request: pytest.FixtureRequest) -> str:
    """Each model of which every segment has a kernel."""
    return str(request.param)


def pair(name: str, into: Path, kernels: str) -> tuple[Model, Model, dict[str, Any]]:
    """The model without packages and with them, and a state of 61 points."""
    roots = kernels_only(name, into), with_kernels(name)
    ours, theirs = (Model(root, dtype=dtype_of(name)) for root in roots)
    ours.options["kernels"], theirs.options["kernels"] = kernels, "off"
    for model in (ours, theirs):
        model.options["collect_history"] = 1
    return ours, theirs, repeated(state_of(name, theirs), POINTS)


@pytest.mark.parametrize("kernels", ["auto", "off"])
def test_a_model_needs_no_packages(name: str, kernels: str, tmp_path: Path) -> None:
    """In lanes, and by tensors if there are none."""
    ours, theirs, inputs = pair(name, tmp_path, kernels)
    assert_same(ours.evaluate(inputs), theirs.evaluate(inputs), LOOSER.get(name, VALUES))
    for kind in ("inputs", "outputs", "parameters"):
        described = getattr(ours, kind)
        assert str(described) == str(getattr(theirs, kind))


@pytest.mark.parametrize("kernels", ["auto", "off"])
def test_derivatives_need_none_either(name: str, kernels: str, tmp_path: Path) -> None:
    ours, theirs, _ = pair(name, tmp_path, "auto" if name in SITED else kernels)
    inputs = repeated(state_of(name, theirs), 13)
    expected, found = (dict(evaluations(model, name, inputs)) for model in (theirs, ours))
    assert found.keys() == expected.keys()
    for kind in ("jacobian", "jvp", "vjp", "param_jacobian", "param_vjp"):
        wanted = side_by_side(expected, kind)
        if wanted is not None:
            assert_near(side_by_side(found, kind), wanted, DERIVATIVES, kind)


def test_a_solver_of_ones_own_needs_none(tmp_path: Path) -> None:
    ours, theirs, inputs = pair("isotropic_hardening", tmp_path, "auto")

    with ours.solve(inputs) as solve:
        for system in solve:
            u = system.guess()
            for _ in range(30):
                if np.linalg.norm(system.residual(u), axis=1).max() < 1e-10:
                    break
                u = u + system.step(u)[0]
            system.accept(u)
        found = solve.end()
    for variable, value in theirs.forward(inputs).items():
        np.testing.assert_allclose(found[variable], value, rtol=1e-7, atol=1e-10)


def test_what_has_no_kernel_is_named(tmp_path: Path) -> None:
    root = kernels_only("chaboche", tmp_path)
    (file,) = root.glob("kernels/*/kernels.json")
    document = json.loads(file.read_text())
    lost = next(k for k in document["kernels"] if k["name"].endswith("_residual"))
    document["kernels"].remove(lost)
    document["missing"].append({"package": lost["package"], "reason": "aten.fft is not known"})
    file.write_text(json.dumps(document))
    with pytest.raises(Error, match=r"_residual\.pt2 has no kernel: aten\.fft is not known"):
        Model(root)


def test_another_runtime_is_refused(tmp_path: Path) -> None:
    root = kernels_only("elasticity", tmp_path)
    with pytest.raises(Error, match=r"--kernels auto"):
        Model(root, runtime="libtorch")


def test_the_engine_in_python_needs_packages(tmp_path: Path) -> None:
    root = kernels_only("elasticity", tmp_path)
    with pytest.raises(Error, match=r"has no packages.*Leave engine out.*--kernels auto"):
        Model(root, engine="python")


def test_a_folder_without_either_is_still_an_error(tmp_path: Path) -> None:
    root = kernels_only("elasticity", tmp_path)
    shutil.rmtree(root / "kernels")
    with pytest.raises(Error):
        Model(root)


def test_inspect_and_doctor_take_it(tmp_path: Path) -> None:
    root = str(kernels_only("isotropic_hardening", tmp_path))
    for words in (["inspect", root], ["inspect", root, "--json"], ["doctor", "--run", root]):
        done = CliRunner().invoke(command, words)
        assert done.exit_code == 0, done.output
    assert "on its kernels" in " ".join(done.output.split())
