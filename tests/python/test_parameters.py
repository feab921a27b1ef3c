"""Promoted parameters: live views, replacement, and overrides for one call."""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from neml2_capi import FatalError, Model, UnknownNameError, drive

NAME = "elasticity.E"
STRAIN = np.array([[1e-3, -3e-4, 2e-4, 5e-4, -1e-4, 7e-4], [2e-3, 1e-4, 0, -6e-4, 3e-4, 1e-4]])


@pytest.fixture
def model(artifacts: Mapping[str, Path]) -> Model:
    return Model(artifacts["elasticity"])


def stress(model: Model, **overrides: Any) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.asarray(
        model.forward({"strain": STRAIN}, {NAME: overrides["E"]} if overrides else {})["stress"]
    )
    return result


def test_the_mapping_has_the_qualified_names(model: Model) -> None:
    parameters = model.named_parameters()
    assert list(parameters) == [NAME]
    assert len(parameters) == 1
    assert parameters[NAME].shape == ()
    assert parameters[NAME] == 200e3
    assert repr(parameters) == "{'elasticity.E': array(200000.)}"


def test_writing_to_a_numpy_view_takes_effect_on_the_next_call(model: Model) -> None:
    before = stress(model)
    model.named_parameters()[NAME][...] = 100e3
    np.testing.assert_allclose(stress(model), 0.5 * before, rtol=1e-14)


@pytest.mark.parametrize(
    "value",
    [100e3, 100_000, np.float64(100e3), np.array(100e3)],
    ids=["float", "int", "numpy scalar", "numpy array"],
)
def test_a_value_can_be_set(model: Model, value: Any) -> None:
    before = stress(model)
    model.set_parameter(NAME, value)
    np.testing.assert_allclose(stress(model), 0.5 * before, rtol=1e-14)
    model.named_parameters()[NAME] = 200e3
    np.testing.assert_array_equal(stress(model), before)


def test_what_was_set_is_a_copy(model: Model) -> None:
    value, before = np.array(200e3), stress(model)
    model.set_parameter(NAME, value)
    value[...] = 1.0
    np.testing.assert_array_equal(stress(model), before)


def test_a_view_sees_a_new_value_of_the_same_shape(model: Model) -> None:
    view = model.named_parameters()[NAME]
    model.set_parameter(NAME, 150e3)
    assert view == 150e3


def test_a_view_keeps_the_old_value_when_the_shape_changes(model: Model) -> None:
    view = model.named_parameters()[NAME]
    model.set_parameter(NAME, [100e3, 50e3])
    assert view == 200e3
    view[...] = 1.0
    assert model.named_parameters()[NAME].tolist() == [100e3, 50e3]


def test_one_value_per_point(model: Model) -> None:
    before = stress(model)
    model.set_parameter(NAME, np.array([100e3, 50e3]))
    factors = np.array([[0.5], [0.25]])
    np.testing.assert_allclose(stress(model), factors * before, rtol=1e-14)
    model.named_parameters()[NAME][1] = 200e3
    np.testing.assert_allclose(stress(model), [[0.5], [1.0]] * before, rtol=1e-14)


def test_the_batch_of_a_parameter_broadcasts_with_that_of_the_inputs(model: Model) -> None:
    before = stress(model)
    model.set_parameter(NAME, [[100e3], [50e3], [200e3]])
    after = stress(model)
    assert after.shape == (3, 2, 6)
    for result, factor in zip(after, (0.5, 0.25, 1.0), strict=True):
        np.testing.assert_allclose(result, factor * before, rtol=1e-14)


@pytest.mark.parametrize(
    "value",
    [np.ones(1, np.float32), np.array(True), True, [True, False], "steel", None, object()],
    ids=["float32", "bool", "True", "list of bool", "text", "None", "object"],
)
def test_a_value_of_a_wrong_type_names_the_parameter_and_changes_nothing(
    model: Model, value: Any
) -> None:
    before = stress(model)
    with pytest.raises(FatalError, match=NAME) as caught:
        model.set_parameter(NAME, value)
    assert caught.value.subject == NAME
    np.testing.assert_array_equal(stress(model), before)


def test_a_batch_that_does_not_fit_the_inputs_is_an_error_of_the_call(model: Model) -> None:
    model.set_parameter(NAME, [1.0, 2.0, 3.0])
    with pytest.raises(FatalError, match=NAME):
        stress(model)
    model.set_parameter(NAME, 200e3)
    assert np.isfinite(stress(model)).all()


def test_no_values_are_refused_if_there_are_points(model: Model) -> None:
    """All results were empty in silence; a process without points keeps such parameters."""
    for batch in ((0,), (0, 2)):
        model.set_parameter(NAME, np.zeros(batch))
        assert model.forward({"strain": np.zeros((*batch, 6))})["stress"].shape == (*batch, 6)
        for strain in (np.zeros(6), np.zeros((1, 6)), np.zeros((2, 6))):
            for evaluate in (
                lambda given: model.forward({"strain": given}),
                lambda given: model.bind({"strain": given}),
                lambda given: drive(model, [0.0, 1.0], {"strain": given[None]}),
            ):
                with pytest.raises(FatalError, match=f"{NAME}' was set to no values") as caught:
                    evaluate(strain)
                assert caught.value.subject == NAME
    overridden = model.forward({"strain": np.ones(6)}, {NAME: np.zeros(0)})  # as numpy broadcasts
    assert overridden["stress"].shape == (0, 6)


def test_an_override_holds_for_one_call(model: Model) -> None:
    before = stress(model)
    np.testing.assert_allclose(stress(model, E=100e3), 0.5 * before, rtol=1e-14)
    np.testing.assert_allclose(stress(model, E=[100e3, 50e3])[1], 0.25 * before[1], rtol=1e-14)
    assert model.named_parameters()[NAME] == 200e3
    np.testing.assert_array_equal(stress(model), before)


def test_the_last_component_of_a_name_is_enough_where_it_is_unique(model: Model) -> None:
    assert model.named_parameters()["E"] == 200e3
    model.named_parameters()["E"][...] = 100e3
    model.set_parameter("E", float(model.named_parameters()[NAME]))
    result = model.forward({"strain": STRAIN}, {"E": 200e3})["stress"]
    np.testing.assert_allclose(result, 2.0 * stress(model), rtol=1e-14)


def test_a_parameter_cannot_be_overridden_under_two_names(model: Model) -> None:
    with pytest.raises(FatalError, match=r"'elasticity.E' is given twice"):
        model.forward({"strain": STRAIN}, {"E": 1.0, NAME: 2.0})


def test_overrides_are_a_mapping(model: Model) -> None:
    np.testing.assert_array_equal(model.forward({"strain": STRAIN}, {})["stress"], stress(model))
    message = "param_overrides must be a mapping of names to arrays; got ndarray"
    with pytest.raises(FatalError, match=message):
        model.forward({"strain": STRAIN}, np.array([1.0, 2.0]))  # type: ignore[call-overload]


def test_an_ambiguous_name_lists_what_it_can_be(
    artifacts: Mapping[str, Path], tmp_path: Path
) -> None:
    root = shutil.copytree(artifacts["isotropic_hardening"], tmp_path / "artifact")
    document = root / "metadata.json"
    metadata = json.loads(document.read_text())
    names = [parameter["name"] for parameter in metadata["parameters"]]
    aliases = {name: f"part{index}.E" for index, name in enumerate(names)}
    metadata.setdefault("boundary_aliases", {})["parameters"] = aliases
    document.write_text(json.dumps(metadata))
    parameters = Model(root).named_parameters()
    with pytest.raises(UnknownNameError, match=r"'E' is ambiguous; it can be: part0.E, part1.E"):
        parameters["E"]
    assert "E" not in parameters
    assert "part1.E" in parameters


def test_an_unknown_name_lists_the_parameters(model: Model) -> None:
    parameters = model.named_parameters()
    message = "unknown parameter 'elasticity.e'; did you mean 'elasticity.E'"
    with pytest.raises(UnknownNameError, match=message):
        parameters["elasticity.e"]
    with pytest.raises(KeyError):
        parameters["nu"]
    with pytest.raises(UnknownNameError, match=r"The parameters are: elasticity.E"):
        model.set_parameter("nu", 0.3)
    with pytest.raises(UnknownNameError, match="unknown parameter 'nu'"):
        model.forward({"strain": STRAIN}, {"nu": 0.3})
    assert "nu" not in parameters
    assert parameters.get("nu") is None


def test_a_model_without_parameters_says_so(artifacts: Mapping[str, Path]) -> None:
    model = Model(artifacts["viscoplastic"])
    assert dict(model.named_parameters()) == {}
    assert list(model.parameters) == []
    with pytest.raises(UnknownNameError, match="There are no parameters"):
        model.set_parameter("E", 1.0)


def test_a_view_outlives_its_model(model: Model) -> None:
    view = model.named_parameters()[NAME]
    model.close()
    gc.collect()
    view[...] = 1.0
    assert view == 1.0
    with pytest.raises(FatalError, match="this Model is closed"):
        model.named_parameters()[NAME]
    with pytest.raises(FatalError, match="this Model is closed"):
        model.set_parameter(NAME, 1.0)
