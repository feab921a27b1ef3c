"""Artifacts of older schemas, 2, 3, 7 and 12, made with the versions of NEML2 that wrote them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from calls import evaluate
from numpy.typing import NDArray
from oracle import CREEP

from neml2_capi import ConvergenceError, FatalError, Model, load_model

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]
Arrays = dict[str, Array]
Artifacts = Mapping[str, Path]

E, NU = 200e3, 0.3
VERSIONS = ("3.0.0", "3.0.3", "3.0.6", "3.0.7")
# Those that can promote a parameter of a residual.
WITH_PARAMETERS = ("3.0.6", "3.0.7")

# Six distinct components, and not isochoric.
DIRECTION = np.array([1.0, -0.3, -0.25, 0.35, -0.2, 0.15])


def random_strain(points: int) -> Array:
    return 1e-3 * np.random.default_rng(1).standard_normal((points, 6))


def stiffness(modulus: float = E) -> Array:
    return oracle.elastic_stress(np.eye(6), modulus, NU)


def relative_error(actual: Array, expected: Array) -> float:
    assert actual.shape == expected.shape
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def creep_inputs(old_state: Array, strain: Array, old_strain: Array, dt: float = 1.0) -> Arrays:
    points = np.ones(len(strain))
    return {
        "strain": strain,
        "strain~1": old_strain,
        "t": (0.5 + dt) * points,
        "t~1": 0.5 * points,
        "stress~1": np.ascontiguousarray(old_state[:, :6]),
        "equivalent_plastic_strain~1": np.ascontiguousarray(old_state[:, 6]),
    }


def creep_step(points: int) -> tuple[Arrays, tuple[Array, Array, Array, Array]]:
    """Points that yield to different degrees, some not at all; and what the oracle takes."""
    amplitudes = np.linspace(1e-4, 5e-3, points)[:, np.newaxis]
    old_strain = 0.4 * amplitudes * DIRECTION[::-1]
    old_state = CREEP.advance(np.zeros((points, 7)), old_strain, 0.0 * old_strain, 1.0)
    strain = amplitudes * DIRECTION
    dt = np.ones(points)
    return creep_inputs(old_state, strain, old_strain), (old_state, strain, old_strain, dt)


def pack(outputs: Mapping[str, Array]) -> Array:
    p = outputs["equivalent_plastic_strain"][..., np.newaxis]
    return np.concatenate([outputs["stress"], p], axis=-1)


# ---- elasticity ----


@pytest.fixture(params=["3.0.0", "3.0.3", "3.0.6"])
def elasticity(request: pytest.FixtureRequest, artifacts: Artifacts) -> Model:
    return Model(artifacts[f"elasticity_{request.param}"])


def test_elasticity_and_its_derivatives_are_hookes_law(elasticity: Model) -> None:
    strain, tangent = random_strain(7), random_strain(7)[::-1]
    outputs, blocks = elasticity.jacobian({"strain": strain})
    assert relative_error(outputs["stress"], oracle.elastic_stress(strain, E, NU)) < 1e-12
    block = np.broadcast_to(blocks["stress"]["strain"], (7, 6, 6))
    assert relative_error(block, np.broadcast_to(stiffness(), (7, 6, 6))) < 1e-12
    outputs, products = elasticity.jvp({"strain": strain}, {"strain": tangent})
    assert relative_error(products["stress"], oracle.elastic_stress(tangent, E, NU)) < 1e-12
    _, adjoints = elasticity.vjp({"strain": strain}, {"stress": tangent})
    assert relative_error(adjoints["strain"], oracle.elastic_stress(tangent, E, NU)) < 1e-12


def test_a_promoted_modulus_can_be_changed(elasticity: Model) -> None:
    (name,) = elasticity.named_parameters()
    assert name == (
        "E" if elasticity.describe()["parameters"][0]["name"] == "E" else "elasticity.E"
    )
    strain = random_strain(3)
    elasticity.named_parameters()[name][...] = E / 2.0
    stress = elasticity.forward({"strain": strain})["stress"]
    assert relative_error(stress, oracle.elastic_stress(strain, E / 2.0, NU)) < 1e-12
    moduli = np.array([50e3, 100e3, 350e3])
    elasticity.set_parameter(name, moduli)
    outputs, blocks = elasticity.jacobian({"strain": strain})
    assert relative_error(outputs["stress"], oracle.elastic_stress(strain, moduli, NU)) < 1e-12
    expected = np.stack([stiffness(modulus) for modulus in moduli])
    assert relative_error(blocks["stress"]["strain"], expected) < 1e-12


def test_the_stress_is_linear_in_the_modulus(artifacts: Artifacts) -> None:
    model, strain = Model(artifacts["elasticity_3.0.6"]), random_strain(7)
    outputs, blocks = model.param_jacobian({"strain": strain})
    assert relative_error(blocks["stress"]["elasticity.E"], outputs["stress"] / E) < 1e-12


# ---- creep: an implicit segment ----


@pytest.fixture(params=VERSIONS)
def creep(request: pytest.FixtureRequest, artifacts: Artifacts) -> Model:
    return Model(stub_of(artifacts, request.param))


def stub_of(artifacts: Artifacts, version: str) -> Path:
    """The stub that neml2-compile wrote: beside the artifact, until 3.0.3 in it."""
    root = artifacts[f"creep_{version}"]
    return (root if version <= "3.0.3" else root.parent) / "creep_aoti.i"


def test_a_cyclic_history_agrees_with_an_independent_solution(creep: Model) -> None:
    amplitudes = np.linspace(1e-4, 4e-3, 5)[:, np.newaxis]
    state = expected = np.zeros((5, 7))
    old_strain = np.zeros((5, 6))
    for step in range(1, 13):
        strain = np.sin(2.0 * np.pi * step / 8.0) * amplitudes * DIRECTION
        outputs, report = evaluate(creep, creep_inputs(state, strain, old_strain))
        assert not report["status"].any()
        norms = report["norms"]
        assert np.all(report["iterations"] < 20)
        last = norms[np.arange(5), report["iterations"]]
        assert np.all((last < 1e-10) | (last < 1e-10 * norms[:, 0]))
        state = pack(outputs)
        expected = CREEP.advance(expected, strain, old_strain, 1.0)
        assert relative_error(state[:, :6], expected[:, :6]) < 1e-8
        old_strain = strain
    # The points have flowed, and the independent solution says how much.
    assert relative_error(state[:, 6], expected[:, 6]) < 1e-8
    assert expected[-1, 6] > 1e-3


def test_the_jacobian_agrees_with_complex_steps(creep: Model) -> None:
    inputs, arguments = creep_step(5)
    _, blocks = creep.jacobian(inputs)
    state = CREEP.advance(*arguments)
    by_state, by_strain, by_old_strain, by_dt = (
        CREEP.sensitivity(state, arguments, position) for position in range(4)
    )
    expected = {
        "strain": by_strain,
        "strain~1": by_old_strain,
        "t": by_dt[..., 0],
        "t~1": -by_dt[..., 0],
        "stress~1": by_state[..., :6],
        "equivalent_plastic_strain~1": by_state[..., 6],
    }
    for name, columns in expected.items():
        assert relative_error(blocks["stress"][name], columns[:, :6]) < 1e-6
        assert relative_error(blocks["equivalent_plastic_strain"][name], columns[:, 6]) < 1e-6


def test_products_agree_with_the_jacobian(creep: Model) -> None:
    inputs, _ = creep_step(5)
    random = np.random.default_rng(2)
    tangents = {name: random.standard_normal(value.shape) for name, value in inputs.items()}
    _, blocks = creep.jacobian(inputs)
    outputs, products = creep.jvp(inputs, tangents)
    cotangents = {name: random.standard_normal(value.shape) for name, value in outputs.items()}
    _, adjoints = creep.vjp(inputs, cotangents)

    def matrix(out: str, name: str) -> Array:
        block: Array = blocks[out][name]
        return block.reshape(5, outputs[out][0].size, inputs[name][0].size)

    for out, product in products.items():
        expected = sum(
            np.einsum("poi,pi->po", matrix(out, name), value.reshape(5, -1))
            for name, value in tangents.items()
        )
        assert relative_error(product.reshape(5, -1), np.asarray(expected)) < 1e-10
    for name, adjoint in adjoints.items():
        expected = sum(
            np.einsum("poi,po->pi", matrix(out, name), value.reshape(5, -1))
            for out, value in cotangents.items()
        )
        assert relative_error(adjoint.reshape(5, -1), np.asarray(expected)) < 1e-10


@pytest.mark.parametrize("version", WITH_PARAMETERS)
def test_the_derivative_with_respect_to_a_parameter_of_the_residual(
    artifacts: Artifacts, version: str
) -> None:
    model = Model(artifacts[f"creep_{version}"])
    inputs, arguments = creep_step(5)

    step = 1e-40
    state = CREEP.advance(*arguments)
    softened = replace(CREEP, E=E + 1j * step)  # type: ignore[arg-type]
    residual = softened.residual(state.astype(complex), *arguments)
    slope = residual.imag[..., np.newaxis] / step
    slopes = np.linalg.solve(CREEP.jacobian(state, *arguments), -slope)
    expected = np.asarray(slopes[..., 0], dtype=np.float64)
    _, blocks = model.param_jacobian(inputs)
    (name,) = model.named_parameters()
    assert relative_error(blocks["stress"][name], expected[:, :6]) < 1e-6
    assert relative_error(blocks["equivalent_plastic_strain"][name], expected[:, 6]) < 1e-6
    softer = model.forward(inputs, {name: np.array(E / 2.0)})
    law = replace(CREEP, E=E / 2.0)
    assert relative_error(softer["stress"], law.advance(*arguments)[:, :6]) < 1e-8


def test_a_point_does_not_depend_on_its_neighbours(creep: Model) -> None:
    inputs, _ = creep_step(9)
    together = creep.forward(inputs)
    for p in range(9):
        alone = creep.forward({name: value[p : p + 1] for name, value in inputs.items()})
        for name, value in alone.items():
            np.testing.assert_array_equal(value[0], together[name][p])


@pytest.mark.parametrize(
    "options",
    [{"convergence": "batch"}, {"ls_type": "BACKTRACKING", "ls_max_iters": 8}],
    ids=["whole batch", "line search"],
)
def test_the_options_of_the_solver_hold(creep: Model, options: Mapping[str, Any]) -> None:
    inputs, arguments = creep_step(5)
    for name, value in options.items():
        creep.options[name] = value
    assert (
        relative_error(pack(creep.forward(inputs))[:, :6], CREEP.advance(*arguments)[:, :6]) < 1e-8
    )


def composed(artifacts: Artifacts, version: str, folder: Path) -> Path:
    """Elasticity of a `load` gives the strain of creep: two segments, of the packages of both."""
    documents = []
    for name in ("elasticity", "creep"):
        (file,) = artifacts[f"{name}_{version}"].rglob("*_meta.json")
        shutil.copytree(file.parent, folder, dirs_exist_ok=True)
        documents.append(json.loads(file.read_text()))
        (folder / file.name).unlink()
    first, both = documents
    first["inputs"][0]["name"] = "load"
    first["segments"][0]["inputs"][0]["name"] = "load"
    first["segments"][0]["outputs"][0]["name"] = "strain"
    for pair in first["segments"][0].get("jacobian_pairs", []):
        pair.update(out_var="strain", in_var="load")
    for pair in first["segments"][0].get("param_jacobian_pairs", []):
        pair["out_var"] = "strain"
    both["segments"] = first["segments"] + both["segments"]
    both["parameters"] += first["parameters"]
    for variable in both["inputs"]:
        if variable["name"] == "strain":
            variable["name"] = "load"
    both["derivatives"] = [["stress", "load"]]
    (folder / "both_meta.json").write_text(json.dumps(both))
    return folder


@pytest.mark.parametrize("version", ["3.0.0", "3.0.3", "3.0.6"])
def test_derivatives_pass_through_two_segments(
    artifacts: Artifacts, tmp_path: Path, version: str
) -> None:
    model = Model(composed(artifacts, version, tmp_path / "both"))
    creep = Model(artifacts[f"creep_{version}"])
    inputs, _ = creep_step(5)
    modulus = 0.8
    (name,) = (name for name in model.named_parameters() if name in ("E", "elasticity.E"))
    model.set_parameter(name, np.array(modulus))
    strain = inputs["strain"]
    loads = {**inputs, "load": strain @ np.linalg.inv(stiffness(modulus))}
    del loads["strain"]
    outputs, blocks = model.jacobian(loads)
    expected, parts = creep.jacobian(inputs)
    assert relative_error(outputs["stress"], expected["stress"]) < 1e-8
    chained = parts["stress"]["strain"] @ stiffness(modulus)
    assert relative_error(blocks["stress"]["load"], chained) < 1e-7
    _, products = model.jvp(loads, {"load": loads["load"]})
    product = np.einsum("poi,pi->po", blocks["stress"]["load"], loads["load"])
    assert relative_error(products["stress"], product) < 1e-10


def test_an_increment_is_divided_with_the_step(artifacts: Artifacts, tmp_path: Path) -> None:
    """Schema 12: a strain that starts from zero may as well be the increment of a strain."""
    inputs, _ = creep_step(5)
    inputs["strain~1"] = np.zeros((5, 6))
    results = []
    for roles in ({}, {"strain": "incremental", "strain~1": "static"}):
        root = tmp_path / f"creep{len(roles)}"
        shutil.copytree(artifacts["creep_3.0.7"], root)
        metadata = json.loads((root / "metadata.json").read_text())
        # A whole step takes more iterations at the points that flow.
        metadata["solver_config"]["miters"] = 7
        segment = metadata["segments"][0]
        segment["max_substepping_level"] = 6
        for given in segment["givens"]:
            given["role"] = roles.get(given["name"], given["role"])
        (root / "metadata.json").write_text(json.dumps(metadata))
        model = Model(root)
        outputs, report = evaluate(model, inputs)
        assert not report["status"].any()
        assert report["iterations"].max() > 7
        results.append((pack(outputs), model.jacobian(inputs)[1]["stress"]))
    (state, blocks), (other_state, other_blocks) = results
    assert relative_error(other_state, state) < 1e-10
    for name in ("strain", "t", "stress~1"):
        assert relative_error(other_blocks[name], blocks[name]) < 1e-8


# ---- where an artifact is found ----


def test_the_artifact_of_3_0_6_is_found_from_every_path(
    artifacts: Artifacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = artifacts["elasticity_3.0.6"]
    shutil.copytree(source, tmp_path / "aoti" / "elasticity")
    shutil.copy(source.parent / "elasticity_aoti.i", tmp_path / "aoti")
    stub = tmp_path / "aoti" / "elasticity_aoti.i"
    # An absolute path that is gone.
    stub.write_text(stub.read_text().replace(str(source), "/nowhere/elasticity"))
    monkeypatch.chdir(tmp_path)
    strain = random_strain(3)
    for path in (
        "aoti/elasticity/cpu/elasticity_meta.json",
        "aoti/elasticity/cpu",
        "aoti/elasticity",
        "aoti/elasticity_aoti.i",
    ):
        model = Model(path)
        outputs, blocks = model.jacobian({"strain": strain})
        _, products = model.jvp({"strain": strain}, {"strain": strain})
        assert relative_error(outputs["stress"], oracle.elastic_stress(strain, E, NU)) < 1e-12
        assert relative_error(products["stress"], outputs["stress"]) < 1e-12
        assert relative_error(blocks["stress"]["strain"][-1], stiffness()) < 1e-12
    (stress,) = load_model(stub, "elasticity")(strain)
    assert relative_error(stress, oracle.elastic_stress(strain, E, NU)) < 1e-12


@pytest.mark.parametrize("version", VERSIONS)
def test_the_solver_is_configured_as_it_was_compiled(artifacts: Artifacts, version: str) -> None:
    """Until 3.0.3 in the metadata, until 3.0.6 in the stub only, and then in the metadata again."""
    options = Model(stub_of(artifacts, version)).options
    assert (options["atol"], options["rtol"], options["miters"]) == (1e-10, 1e-10, 50)
    bare = Model(artifacts[f"creep_{version}"]).options
    assert bare["miters"] == (25 if version == "3.0.6" else 50)


def test_the_settings_of_a_stub_can_be_edited(artifacts: Artifacts, tmp_path: Path) -> None:
    shutil.copytree(artifacts["creep_3.0.6"], tmp_path / "creep")
    stub = tmp_path / "creep_aoti.i"
    text = stub_of(artifacts, "3.0.6").read_text()
    stub.write_text(text.replace("max_its = 50", "max_its = 3"))
    inputs, _ = creep_step(5)
    with pytest.raises(ConvergenceError):
        Model(stub).forward(inputs)


def test_derivatives_that_were_not_compiled_are_said_to_be_missing(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    shutil.copytree(artifacts["creep_3.0.6"], tmp_path / "creep")
    file = tmp_path / "creep" / "cpu" / "creep_meta.json"
    metadata = json.loads(file.read_text())
    metadata["derivatives"] = []
    del metadata["segments"][0]["ift_package"]
    file.write_text(json.dumps(metadata))
    model = Model(tmp_path / "creep")
    inputs, arguments = creep_step(3)
    assert (
        relative_error(pack(model.forward(inputs))[:, :6], CREEP.advance(*arguments)[:, :6]) < 1e-8
    )
    with pytest.raises(FatalError, match="neml2-compile -d"):
        model.jacobian(inputs)
    with pytest.raises(FatalError, match="neml2-compile -d"):
        model.jvp(inputs, {})
