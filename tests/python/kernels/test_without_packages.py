"""Models that were compiled with --kernels only, against the same models on their packages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import evaluations
from click.testing import CliRunner
from kernel_setup import with_kernels
from test_lanes import (
    DERIVATIVES,
    VALUES,
    assert_near,
    assert_same,
    side_by_side,
    spoiled,
    states,
)
from without_packages import stripped_copy

from neml2_capi import Error, Model
from neml2_capi._ffi.library import lib
from neml2_capi.cli.commands import neml2_capi as command
from neml2_capi.solvers import Newton

#: Every kind of segment, of derivative and of parameter.
MODELS = [
    "elasticity_parameters",
    "grains",
    "isotropic_hardening",
    "radial_return",
    "relaxation",
    "warm_start",
    "substepping",
    "bicgstab",
]

Strip = Callable[[str], Path]


@pytest.fixture
def stripped(tmp_path: Path) -> Strip:
    """The artifact of a model without its packages."""
    return lambda name: stripped_copy(name, tmp_path)


def opened(stripped: Strip, name: str, **options: Any) -> tuple[Model, Model]:
    """A model without packages, and one that runs on packages alone."""
    pair = Model(stripped(name)), Model(with_kernels(name))
    for model in pair:
        model.options["collect_history"] = 1
        model.options.update(options)
    pair[1].options["kernels"] = "off"
    return pair


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kernels", ["auto", "off"])
def test_values_and_reports_are_those_of_the_packages(
    stripped: Strip, name: str, kernels: str
) -> None:
    ours, theirs = opened(stripped, name)
    ours.options["kernels"] = kernels
    for inputs in (states(theirs, name), spoiled(states(theirs, name))):
        assert_same(ours.evaluate(inputs), theirs.evaluate(inputs))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kernels", ["auto", "off"])
def test_derivatives_are_those_of_the_packages(stripped: Strip, name: str, kernels: str) -> None:
    ours, theirs = opened(stripped, name)
    ours.options["kernels"] = kernels
    inputs = states(theirs, name, 13)
    expected, found = (dict(evaluations(model, name, inputs)) for model in (theirs, ours))
    assert found.keys() == expected.keys()
    for kind in ("jacobian", "jvp", "vjp", "param_jacobian", "param_vjp"):
        wanted = side_by_side(expected, kind)
        if wanted is not None:
            assert_near(side_by_side(found, kind), wanted, DERIVATIVES, kind)


@pytest.mark.parametrize("name", ["isotropic_hardening", "relaxation"])
def test_a_batch_may_converge_as_a_whole(stripped: Strip, name: str) -> None:
    ours, theirs = opened(stripped, name, convergence="batch")
    inputs = states(theirs, name)
    assert_same(ours.evaluate(inputs), theirs.evaluate(inputs))


def test_a_host_solves_by_itself(stripped: Strip) -> None:
    ours, theirs = opened(stripped, "isotropic_hardening")
    inputs = states(theirs, "isotropic_hardening", 5)
    found, expected = (model.forward(inputs, solver=Newton.like(model)) for model in (ours, theirs))
    for name, value in expected.items():
        assert_near(found[name], value, VALUES, name)


def test_lanes_run_where_they_are_required(stripped: Strip) -> None:
    model = Model(stripped("isotropic_hardening"))
    model.options["kernels"] = "required"
    outputs, report = model.evaluate(states(model, "isotropic_hardening"))
    assert (report["status"] == lib.NEML2_OK).all()
    assert np.isfinite(outputs["stress"]).all()


def test_a_graph_without_a_kernel_is_named_with_its_segment(stripped: Strip) -> None:
    root = stripped("isotropic_hardening")
    (path,) = root.glob("kernels/*/kernels.json")
    document = json.loads(path.read_text())
    gone = next(k for k in document["kernels"] if k["name"].endswith("residual"))
    document["kernels"].remove(gone)
    document["missing"].append({"package": gone["package"], "reason": "it calls torch.sort"})
    path.write_text(json.dumps(document))
    with pytest.raises(Error, match=r"segments\[0\].*residual\.pt2.*torch\.sort.*--kernels auto"):
        Model(root)


@pytest.mark.parametrize(
    ("name", "what"),
    [("gmres", r"precond_setup\.pt2.*linalg_inv"), ("polycrystal", r"solve\.pt2.*sub-batch axes")],
)
def test_what_needs_packages_says_so(stripped: Strip, name: str, what: str) -> None:
    with pytest.raises(Error, match=rf"segments\[0\].*{what}.*--kernels auto"):
        Model(stripped(name))


def test_kernels_beside_packages_do_not_hide_that_one_is_missing(tmp_path: Path) -> None:
    root = shutil.copytree(with_kernels("elasticity"), tmp_path / "elasticity")
    (root / "cpu" / "float64" / "elasticity.pt2").unlink()
    with pytest.raises(Error, match=r"elasticity\.pt2, which is missing: copy the whole"):
        Model(root)


def test_another_runtime_needs_packages(stripped: Strip) -> None:
    with pytest.raises(Error, match="--kernels auto"):
        Model(stripped("elasticity"), runtime="libtorch")


def test_inspect_tells_that_kernels_run_alone(stripped: Strip) -> None:
    root = str(stripped("isotropic_hardening"))
    document = json.loads(CliRunner().invoke(command, ["inspect", root, "--json"]).output)
    assert {package["bytes"] for package in document["packages"]} == {0}
    assert all("no package" in package["why"] for package in document["packages"])
    assert CliRunner().invoke(command, ["inspect", root]).exit_code == 0
