"""Copies and pickles of models: the artifact is opened again."""

from __future__ import annotations

import copy
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Artifacts

from neml2_capi import FatalError, Graph, Model, Tensor, load_model

STRAIN = np.linspace(-1e-3, 1e-3, 12).reshape(2, 6)


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def pickled_as_ever(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value, 2))


@pytest.fixture(params=[copy.copy, copy.deepcopy, pickled, pickled_as_ever])
def duplicate(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    function: Callable[[Any], Any] = request.param
    return function


class Named(Model):
    """A class of a user's, with arguments and attributes of its own."""

    def __init__(self, folder: Path, *, label: str) -> None:
        self.label = label
        super().__init__(folder)
        self.calls = 0


@pytest.mark.parametrize("engine", ["native", "python"])
def test_a_copy_opens_the_artifact_again_with_options_and_parameters(
    artifacts: Artifacts, duplicate: Callable[[Any], Any], engine: str
) -> None:
    model = Model(artifacts["elasticity"], engine=engine)
    model.options["atol"] = 1e-7
    model.named_parameters()["E"] = [1e5, 2e5]
    other = duplicate(model)
    assert type(other) is type(model)
    assert dict(other.options) == dict(model.options)
    expected = model.forward({"strain": STRAIN})["stress"]
    np.testing.assert_array_equal(other.forward({"strain": STRAIN})["stress"], expected)
    # They have nothing in common.
    other.named_parameters()["E"][...] = 1.0
    other.options["atol"] = 1e-3
    assert model.named_parameters()["E"].tolist() == [1e5, 2e5]
    assert model.options["atol"] == 1e-7
    model.close()
    assert not other.closed


def test_arrays_of_a_copied_state_are_never_written(
    artifacts: Artifacts, duplicate: Callable[[Any], Any]
) -> None:
    state = Model(artifacts["combined_hardening"]).state(2, {"stress": 7.0})
    other = duplicate(state)
    with pytest.raises(ValueError, match="read-only"):
        other["stress"][...] = 1.0
    inputs = other.inputs(strain=np.zeros(6), t=1.0)
    for name, value in state.inputs(strain=np.zeros(6), t=1.0).items():
        np.testing.assert_array_equal(inputs[name], value)


def test_a_copy_of_a_copy_is_like_the_first(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity"])
    model.options["rtol"] = 1e-5
    again = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    assert again.options["rtol"] == 1e-5


def test_element_type_class_and_attributes_are_kept(
    artifacts: Artifacts, duplicate: Callable[[Any], Any]
) -> None:
    single = Model(artifacts["elasticity_float32"], dtype="float32")
    assert duplicate(single).describe()["leaf"] == single.describe()["leaf"]
    named = Named(artifacts["elasticity"], label="steel")
    named.calls = 3
    other = duplicate(named)
    assert (type(other), other.label, other.calls) == (Named, "steel", 3)


def test_models_of_torch_stubs_and_graphs_are_opened_again(
    artifacts: Artifacts, duplicate: Callable[[Any], Any]
) -> None:
    stub = load_model(artifacts["elasticity"].parent / "elasticity_aoti.i", "elasticity")
    stub.model.options["atol"] = 1e-6
    other = duplicate(stub)
    np.testing.assert_array_equal(other(STRAIN)[0], stub(STRAIN)[0])
    graph = Graph(artifacts["elasticity"] / "cpu" / "float64" / "elasticity.pt2")
    assert duplicate(graph).inputs == graph.inputs
    torch = pytest.importorskip("torch")
    from neml2_capi.torch import Model as TorchModel

    model = duplicate(TorchModel(artifacts["elasticity"]))
    assert isinstance(model.forward({"strain": STRAIN})["stress"], torch.Tensor)


def test_a_pickle_is_small_and_independent_of_the_working_folder(
    artifacts: Artifacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(artifacts["viscoplastic"], tmp_path / "aoti")
    monkeypatch.chdir(tmp_path)
    model, graph = Model("aoti"), Graph("aoti/cpu/float64/viscoplastic_residual.pt2")
    pickled, pickled_graph = pickle.dumps(model), pickle.dumps(graph)
    assert len(pickled) < 1000 + len(str(tmp_path))
    monkeypatch.chdir("/")
    assert pickle.loads(pickled).outputs.names == model.outputs.names
    assert pickle.loads(pickled_graph).inputs == graph.inputs
    shutil.rmtree(tmp_path / "aoti")
    with pytest.raises(FatalError, match=f"no folder {tmp_path / 'aoti'}"):
        pickle.loads(pickled)


def test_threads_of_a_worker_are_those_of_its_environment(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model(artifacts["elasticity"])
    assert model.options["threads"] == 0
    pickled = pickle.dumps(model)
    model.options["threads"] = 3
    chosen = pickle.dumps(model)
    monkeypatch.setenv("NEML2_CAPI_THREADS", "2")
    assert pickle.loads(chosen).options["threads"] == 3
    with Model(artifacts["elasticity"]) as fresh:
        assert pickle.loads(pickled).options["threads"] == fresh.options["threads"]


def test_what_is_closed_or_bound_to_memory_says_that_it_cannot_be_copied(
    artifacts: Artifacts,
) -> None:
    model = Model(artifacts["viscoplastic"])
    inputs = {v.name: np.zeros((2, *v.base_shape)) for v in model.inputs}
    inputs["t"] += 1.0
    solve = model.solve(inputs)
    system = solve.next()
    cases: list[tuple[Any, str]] = [
        (model.bind(inputs), "a Call cannot be copied or pickled: bind another one"),
        (Tensor(STRAIN), r"a Tensor cannot be copied or pickled: take its values, tensor.numpy"),
        (solve, "a Solve cannot be copied or pickled: begin another one"),
        (system, "a System cannot be copied or pickled: it is there until the solve goes on"),
        (model.named_parameters(), r"the parameters of a model cannot .*deepcopy\(dict\("),
        (model.options, r"the options of a model cannot .*: take dict\(model.options\), or copy"),
    ]
    for value, message in cases:
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=message):
                duplicate(value)
    graph = Graph(artifacts["elasticity"] / "cpu" / "float64" / "elasticity.pt2")
    for handle in (model, graph):
        handle.close()
        with pytest.raises(FatalError, match=f"this {type(handle).__name__} is closed"):
            pickle.dumps(handle)
