"""What a model tells about itself: variables, derivatives, histories, segments."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from states import ALL, Artifacts, recorded

from neml2_capi import Model, UnknownNameError


@pytest.mark.parametrize("name", ALL)
def test_derivatives_are_the_blocks_that_there_are(artifacts: Artifacts, name: str) -> None:
    model, inputs = Model(artifacts[name]), recorded(name, "in")
    jacobian = model.jacobian(inputs)[1]
    points = len(next(iter(inputs.values())))
    for derivative in model.derivatives:
        block = jacobian[derivative.output].pop(derivative.variable)
        batch = (points,) if derivative.batched else ()
        assert block.shape == (*batch, *derivative.shape)
    assert not any(jacobian.values())


@pytest.mark.parametrize("name", ALL)
def test_parameter_derivatives_are_the_blocks_that_there_are(
    artifacts: Artifacts, name: str
) -> None:
    model, inputs = Model(artifacts[name]), recorded(name, "in")
    if not model.parameter_derivatives:
        return
    jacobian = model.param_jacobian(inputs)[1]
    points = len(next(iter(inputs.values())))
    for derivative in model.parameter_derivatives:
        block = jacobian[derivative.output].pop(derivative.variable)
        assert derivative.batched
        assert block.shape == (points, *derivative.shape)
    assert not any(jacobian.values())


def test_only_what_was_compiled_is_a_derivative(artifacts: Artifacts) -> None:
    polycrystal = Model(artifacts["polycrystal"])
    assert {(d.output, d.variable, d.shape) for d in polycrystal.derivatives} == {
        ("strain", "applied_stress", (6, 6)),
        ("strain", "strain~1", (6, 6)),
        ("strain", "t", (6,)),
        ("strain", "t~1", (6,)),
    }
    viscoplastic = Model(artifacts["viscoplastic"])
    assert viscoplastic.derivatives == viscoplastic.parameter_derivatives == ()


def test_derivatives_have_the_names_of_the_boundary(artifacts: Artifacts) -> None:
    model = Model(artifacts["radial_return"])
    assert "cauchy_stress" in {d.output for d in model.derivatives}
    assert "total_strain" in {d.variable for d in model.derivatives}
    assert {d.variable for d in model.parameter_derivatives} == {"yield_stress"}


# ---- histories ----


def test_a_history_knows_what_it_becomes(artifacts: Artifacts) -> None:
    model = Model(artifacts["isotropic_hardening"])
    # An input has the value of an output before, of a state; or of an input, of a force.
    assert {(h.input, h.age, h.output, h.current) for h in model.histories} == {
        ("strain~1", 1, None, "strain"),
        ("t~1", 1, None, "t"),
        ("stress~1", 1, "stress", None),
        ("equivalent_plastic_strain~1", 1, "equivalent_plastic_strain", None),
    }


def test_a_history_of_two_steps_has_its_age(artifacts: Artifacts) -> None:
    histories = {h.input: h for h in Model(artifacts["crystal"]).histories}
    assert (histories["t~1"].age, histories["t~2"].age) == (1, 2)
    assert histories["orientation~1"].output == "orientation"
    assert histories["dislocation_density~1"].output == "dislocation_density"


def test_a_history_of_an_initial_guess_has_both(artifacts: Artifacts) -> None:
    histories = {h.input: h for h in Model(artifacts["warm_start"]).histories}
    history = histories["equivalent_plastic_strain~1"]
    assert history.output == history.current == "equivalent_plastic_strain"


def test_a_history_of_nothing_is_named_and_not_guessed(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(artifacts["isotropic_hardening"], tmp_path / "artifact"))
    metadata = json.loads((root / "metadata.json").read_text())
    metadata.setdefault("boundary_aliases", {})["inputs"] = {"strain~1": "deformation~1"}
    (root / "metadata.json").write_text(json.dumps(metadata))
    (history,) = (h for h in Model(root).histories if h.input == "deformation~1")
    assert (history.age, history.output, history.current) == (1, None, None)


def test_an_explicit_model_has_no_history(artifacts: Artifacts) -> None:
    assert Model(artifacts["grains"]).histories == ()


# ---- unknowns and segments ----


def test_unknowns_are_what_the_segments_solve_for(artifacts: Artifacts) -> None:
    names = {name: Model(artifacts[name]).unknowns.names for name in ALL}
    assert names["elasticity_parameters"] == []
    assert names["radial_return"] == ["gamma"]
    assert sorted(names["isotropic_hardening"]) == ["equivalent_plastic_strain", "stress"]
    (stress,) = (u for u in Model(artifacts["polycrystal"]).unknowns if u.name == "stress")
    assert (stress.sub_batch_shape, stress.base_shape) == ((3,), (6,))


def test_a_description_lists_the_segments(artifacts: Artifacts) -> None:
    document = Model(artifacts["radial_return"]).describe()
    assert [segment["kind"] for segment in document["segments"]] == [
        "forward",
        "implicit",
        "forward",
    ]
    # It has the names inside the model, with the names of the boundary beside them.
    assert document["inputs"][0]["name"] == "strain"
    assert "total_strain" in str(document["aliases"])


def test_a_description_has_the_same_form_for_all_models(artifacts: Artifacts) -> None:
    keys = {frozenset(Model(artifacts[name]).describe()) for name in ALL}
    assert len(keys) == 1


# ---- names ----


def test_the_last_component_of_a_parameter_is_enough(artifacts: Artifacts) -> None:
    model, inputs = Model(artifacts["relaxation"]), recorded("relaxation", "in")
    full = model.param_jacobian(inputs, {"update.residual.elasticity.E": 100e3})[1]
    short = model.param_jacobian(inputs, {"E": 100e3})[1]
    assert short["stress"].keys() == {"update.residual.elasticity.E"}
    for output, row in full.items():
        for name, block in row.items():
            np.testing.assert_array_equal(short[output][name], block)
    with pytest.raises(UnknownNameError, match=r"update\.residual\.elasticity\.E"):
        model.param_jacobian(inputs, {"elasticity": 100e3})
