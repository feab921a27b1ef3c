"""Compiled models against independent solutions of the same equations."""

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
from oracle import ISOTROPIC_HARDENING, VISCOPLASTIC, Viscoplasticity

from neml2_capi import ConvergenceError, FatalError, Model

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]
Arrays = Mapping[str, Array]
Artifacts = Mapping[str, Path]

# Where the variables of examples/models/viscoplastic.i lie in the oracle's vector of unknowns.
STATE: dict[str, Any] = {
    "stress": slice(0, 6),
    "equivalent_plastic_strain": 6,
    "X1": slice(7, 13),
    "X2": slice(13, 19),
}

# Six distinct components, and not isochoric.
DIRECTION = np.array([1.0, -0.3, -0.25, 0.35, -0.2, 0.15])


def random_strain(*batch: int) -> Array:
    return 1e-3 * np.random.default_rng(1).standard_normal((*batch, 6))


def cyclic_strain(amplitudes: Array, step: int, period: int = 20) -> Array:
    """[*batch, 6]: proportional straining, zero at step 0."""
    strain: Array = np.sin(2.0 * np.pi * step / period) * amplitudes[..., np.newaxis] * DIRECTION
    return strain


def relative_error(actual: Array, expected: Array) -> float:
    """The greatest error of any point, by the norm of its tensor, relative to the greatest norm."""
    assert actual.shape == expected.shape
    scale = np.abs(expected).max()
    return float(np.abs(actual - expected).max() / scale)


def unpack(state: Array, history: str = "") -> dict[str, Array]:
    """The oracle's vector as named variables."""
    return {
        name + history: np.ascontiguousarray(state[..., where])
        for name, where in STATE.items()
        if name in ("stress", "equivalent_plastic_strain") or state.shape[-1] == 19
    }


def pack(outputs: Arrays) -> Array:
    columns = [outputs["stress"], outputs["equivalent_plastic_strain"][..., np.newaxis]]
    columns += [outputs[name] for name in ("X1", "X2") if name in outputs]
    return np.concatenate(columns, axis=-1)


def step_inputs(old_state: Array, strain: Array, old_strain: Array, dt: float | Array) -> Arrays:
    t = np.asarray(dt, dtype=float)
    forces = {"strain": strain, "strain~1": old_strain, "t": t, "t~1": np.zeros_like(t)}
    return {**forces, **unpack(old_state, "~1")}


def one_plastic_step(points: int, unknowns: int = 19) -> Arrays:
    """Points that differ in strain and in plastic history."""
    amplitudes = np.linspace(-0.004, 0.005, points)
    zero = np.zeros((points, unknowns))
    law = VISCOPLASTIC if unknowns == 19 else ISOTROPIC_HARDENING
    old_strain = cyclic_strain(amplitudes, 3)
    old_state = law.advance(zero, old_strain, cyclic_strain(amplitudes, 0), 1.0)
    return step_inputs(old_state, cyclic_strain(1.2 * amplitudes, 4), old_strain, np.ones(points))


# ---- elasticity ----


@pytest.mark.parametrize(
    "batch", [(1,), (2,), (7,), (1000,), (1_000_000,), (3, 4), (), (0,), (2, 0)], ids=str
)
def test_elasticity_is_hookes_law(artifacts: Artifacts, batch: tuple[int, ...]) -> None:
    strain = random_strain(*batch)
    stress = Model(artifacts["elasticity"]).forward({"strain": strain})["stress"]
    expected = oracle.elastic_stress(strain, 200e3, 0.3)
    assert stress.shape == (*batch, 6)
    error = np.linalg.norm(stress - expected, axis=-1)
    assert np.all(error <= 1e-12 * np.linalg.norm(expected, axis=-1))


def test_half_the_modulus_is_half_the_stress(artifacts: Artifacts) -> None:
    model, strain = Model(artifacts["elasticity"]), random_strain(7)
    before = model.forward({"strain": strain})["stress"]
    model.named_parameters()["elasticity.E"][...] = 100e3
    after = model.forward({"strain": strain})["stress"]
    np.testing.assert_array_equal(after, before / 2.0)


def test_each_point_can_have_its_own_modulus(artifacts: Artifacts) -> None:
    model, strain = Model(artifacts["elasticity"]), random_strain(7)
    E = np.linspace(50e3, 350e3, 7)
    model.set_parameter("elasticity.E", E)
    stress = model.forward({"strain": strain})["stress"]
    assert relative_error(stress, oracle.elastic_stress(strain, E, 0.3)) < 1e-12


def test_a_float32_artifact_takes_what_its_packages_take(artifacts: Artifacts) -> None:
    """neml2-compile 3.1.0 traces in float64 whatever --dtype says, so the packages decide."""
    model = Model(artifacts["elasticity_float32"], dtype="float32")
    dtype = np.dtype(model.inputs[0].dtype)
    strain = random_strain(7).astype(dtype)
    stress = model.forward({"strain": strain})["stress"]
    assert stress.dtype == dtype
    expected = oracle.elastic_stress(strain.astype(float), 200e3, 0.3)
    assert relative_error(stress, expected) < 8.0 * np.finfo(dtype).eps


def test_a_static_batch_runs_in_blocks_of_its_size(artifacts: Artifacts) -> None:
    """Compiled for two points: NEML2's own runtime returns two if it is asked for ten."""
    model = Model(artifacts["elasticity_static"])
    for points in (2, 10):
        strain = random_strain(points)
        stress = model.forward({"strain": strain})["stress"]
        assert relative_error(stress, oracle.elastic_stress(strain, 200e3, 0.3)) < 1e-12
    with pytest.raises(FatalError, match="fixed batch of 2"):
        model.forward({"strain": random_strain(3)})


def test_grains_of_a_point_are_strained_each_on_its_own(artifacts: Artifacts) -> None:
    strain = random_strain(3, 5)  # three points of five grains
    stress = Model(artifacts["elasticity_grains"]).forward({"strain": strain})["stress"]
    assert relative_error(stress, oracle.elastic_stress(strain, 200e3, 0.3)) < 1e-12


# ---- viscoplasticity ----


def test_viscoplasticity_over_a_cyclic_history(artifacts: Artifacts) -> None:
    """60 steps, three cycles, of points that differ in amplitude and in rate."""
    model = Model(artifacts["viscoplastic"])
    amplitudes = np.repeat([0.01, -0.006, 0.003, 0.0005], 3)
    dt = np.tile([0.1, 1.0, 100.0], 4)
    state = expected = np.zeros((amplitudes.size, 19))
    old_strain = cyclic_strain(amplitudes, 0)
    for step in range(1, 61):
        strain = cyclic_strain(amplitudes, step)
        old_state, state = state, pack(model.forward(step_inputs(state, strain, old_strain, dt)))
        expected = VISCOPLASTIC.advance(expected, strain, old_strain, dt)
        for name, where in STATE.items():
            assert relative_error(state[..., where], expected[..., where]) < 1e-8, (name, step)
        assert_solved(model, VISCOPLASTIC, state, old_state, strain, old_strain, dt)
        old_strain = strain


def assert_solved(
    model: Model,
    law: Viscoplasticity,
    state: Array,
    old_state: Array,
    strain: Array,
    old_strain: Array,
    dt: Array,
) -> None:
    """The oracle's residual at the returned state meets the tolerance of the solver."""
    norm = np.linalg.norm(law.residual(state, old_state, strain, old_strain, dt), axis=-1)
    start = np.linalg.norm(law.residual(old_state, old_state, strain, old_strain, dt), axis=-1)
    # Two ways to evaluate one residual differ by the round-off of its greatest terms.
    round_off = 1e-13 * (start + np.linalg.norm(state, axis=-1))
    atol, rtol = float(model.options["atol"]), float(model.options["rtol"])
    assert np.all(norm <= np.maximum(atol, rtol * start) + round_off)


def test_one_time_serves_all_points(artifacts: Artifacts) -> None:
    model, inputs = Model(artifacts["viscoplastic"]), one_plastic_step(5)
    scalar_time = {**inputs, "t": np.array(1.0), "t~1": np.array(0.0)}
    for name, value in model.forward(scalar_time).items():
        np.testing.assert_array_equal(value, model.forward(inputs)[name])


@pytest.mark.parametrize("kind", ["BACKTRACKING", "STRONG_WOLFE"])
def test_a_line_search_finds_the_same_state(artifacts: Artifacts, kind: str) -> None:
    model, inputs = Model(artifacts["viscoplastic"]), one_plastic_step(9)
    plain = pack(model.forward(inputs))
    model.options["ls_type"] = kind
    model.options["ls_max_iters"] = 10
    assert relative_error(pack(model.forward(inputs)), plain) < 1e-8


@pytest.mark.parametrize("points", [1, 3, 64, 1000])
def test_a_point_does_not_see_its_batch(artifacts: Artifacts, points: int) -> None:
    model, inputs = Model(artifacts["viscoplastic"]), one_plastic_step(1000)
    whole = model.forward(inputs)
    part = model.forward({name: value[:points] for name, value in inputs.items()})
    for name, value in part.items():
        np.testing.assert_array_equal(value, whole[name][:points])


@pytest.mark.parametrize("chunk", [1, 2, 17, 256, 5000])
def test_a_point_does_not_see_its_chunk(artifacts: Artifacts, chunk: int) -> None:
    model, inputs = Model(artifacts["viscoplastic"]), one_plastic_step(300)
    whole = model.forward(inputs)
    model.options["chunk"] = chunk
    for name, value in model.forward(inputs).items():
        np.testing.assert_array_equal(value, whole[name])


def test_one_bad_point_leaves_the_others_as_they_are(artifacts: Artifacts) -> None:
    model, inputs = Model(artifacts["viscoplastic"]), one_plastic_step(100)
    whole = model.forward(inputs)
    strain = inputs["strain"].copy()
    strain[37, 2] = 1e200
    with pytest.raises(ConvergenceError) as caught:
        model.forward({**inputs, "strain": strain})
    others = np.arange(100) != 37
    np.testing.assert_array_equal(caught.value.converged_mask, others)
    for name, value in caught.value.outputs.items():
        np.testing.assert_array_equal(value[others], whole[name][others])
        assert np.all(np.isnan(value[37]))


# ---- parameters inside a residual ----


@pytest.mark.parametrize("points", [1, 6])
def test_a_parameter_inside_the_residual(artifacts: Artifacts, points: int) -> None:
    model, inputs = Model(artifacts["isotropic_hardening"]), one_plastic_step(points, unknowns=7)
    model.set_parameter("yield_stress", np.array(90.0))
    model.set_parameter("residual.elasticity.E", np.array(150e3))
    law = replace(ISOTROPIC_HARDENING, E=150e3, yield_stress=90.0)
    assert_matches(model, law, inputs)


def test_each_point_can_have_its_own_yield_stress(artifacts: Artifacts) -> None:
    model, inputs = Model(artifacts["isotropic_hardening"]), one_plastic_step(6, unknowns=7)
    yield_stress = np.linspace(50.0, 400.0, 6)
    model.set_parameter("yield_stress", yield_stress)
    assert_matches(model, replace(ISOTROPIC_HARDENING, yield_stress=yield_stress), inputs)


def assert_matches(model: Model, law: Viscoplasticity, inputs: Arrays) -> None:
    old_state = pack(
        {name: inputs[f"{name}~1"] for name in ("stress", "equivalent_plastic_strain")}
    )
    expected = unpack(law.advance(old_state, inputs["strain"], inputs["strain~1"], inputs["t"]))
    for name, value in model.forward(inputs).items():
        assert relative_error(value, expected[name]) < 1e-8


# ---- predictors ----


def test_an_iterated_predictor_saves_newton_steps(artifacts: Artifacts, tmp_path: Path) -> None:
    """A predictor moves the start of a solve, never its end: so the steps are counted."""
    once = tmp_path / "crystal"
    shutil.copytree(artifacts["crystal"], once)
    metadata = json.loads((once / "metadata.json").read_text())
    (feedback,) = (s["predictor_feedback"] for s in metadata["segments"] if s["kind"] == "implicit")
    feedback["iterations"] = 1
    (once / "metadata.json").write_text(json.dumps(metadata))

    rate = np.array([[0.1, -0.05, -0.05, 0.02, 0.0, -0.01]])
    cold_start = {
        "deformation_rate": rate,
        "vorticity": np.array([[0.1, -0.05, -0.05]]),
        "dislocation_density~1": np.full((1, 12), 10.0),
        "elastic_strain~1": np.zeros((1, 6)),
        "orientation~1": np.array([[0.2, -0.1, 0.05]]),
        "t": np.array([0.01]),
        "t~1": np.zeros(1),
        "t~2": np.zeros(1),
    }
    full, short = Model(artifacts["crystal"]), Model(once)
    outputs, report = evaluate(full, cold_start)
    outputs_once, report_once = evaluate(short, cold_start)
    assert report_once["iterations"] > report["iterations"]
    for name, value in outputs.items():
        assert relative_error(outputs_once[name], value) < 1e-8
