"""The Python engine: against closed forms, the oracle, differences, and the native engine."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_agreement, assert_close, evaluations
from differences import central_differences
from oracle import ISOTROPIC_HARDENING, elastic_stress
from slow import later
from states import ALL, DIRECT, IMPLICIT, Array, Artifacts, load, random_like, recorded, state_of

import neml2_capi
from neml2_capi import FatalError, Model
from neml2_capi._ffi.library import lib
from neml2_capi.model import tensors

pytestmark = pytest.mark.numbers

OLD = [
    *("elasticity_3.0.0", "elasticity_3.0.3", "elasticity_3.0.6"),
    *("creep_3.0.0", "creep_3.0.3", "creep_3.0.6", "creep_3.0.7"),
]
GRAINS = ["elasticity_grains", "grains"]


def python(artifacts: Artifacts, name: str, convergence: str = "point") -> Model:
    return load(artifacts, name, convergence, engine="python")


# ---- closed forms, the oracle, differences ----


def test_the_stress_of_elasticity_is_hookes_law(artifacts: Artifacts) -> None:
    model = python(artifacts, "elasticity_parameters")
    strain, E = recorded("elasticity_parameters", "in")["strain"], np.array([1e5, 2e5, 3e5, 4e5])
    given = {"strain": strain}, {"E": E, "nu": 0.3}
    outputs, blocks = model.jacobian(*given)
    assert_close(outputs["stress"], elastic_stress(strain, E, 0.3), 1e-14)
    stiffness = np.swapaxes(elastic_stress(np.eye(6), E[:, np.newaxis], 0.3), -1, -2)
    assert_close(blocks["stress"]["strain"], stiffness, 1e-14)
    by_E = model.param_jacobian(*given)[1]["stress"]["elasticity.E"]
    assert_close(by_E, elastic_stress(strain, np.ones(4), 0.3), 1e-14)


def test_viscoplasticity_follows_its_equations(artifacts: Artifacts) -> None:
    model, x = python(artifacts, "isotropic_hardening"), recorded("isotropic_hardening", "in")
    old = np.column_stack([x["stress~1"], x["equivalent_plastic_strain~1"]])
    state = ISOTROPIC_HARDENING.advance(old, x["strain"], x["strain~1"], x["t"] - x["t~1"])
    outputs = model.forward(x)
    assert_close(outputs["stress"], state[:, :6], 1e-10)
    assert_close(outputs["equivalent_plastic_strain"], state[:, 6], 1e-10)


@pytest.mark.parametrize("name", [*DIRECT, "bicgstab", "substepping"])
def test_a_block_is_what_differences_say(artifacts: Artifacts, name: str) -> None:
    model = python(artifacts, name)
    x, derivative = recorded(name, "in"), model.derivatives[-1]
    output, by = derivative.output, derivative.variable

    def forward(perturbed: Array) -> Array:
        result: Array = model.forward({**x, by: perturbed})[output]
        return result

    known = {**model.forward(x), **x}
    scale = max(float(np.abs(known[n]).max()) for n in (by, by.split("~")[0]) if n in known)
    expected = central_differences(forward, x[by], 1e-3 * scale, x[by].ndim - 1)
    round_off = 1e-11 * float(np.abs(known[output]).max()) / scale
    assert_close(model.jacobian(x)[1][output][by], expected, 1e-6, round_off)


# ---- against itself ----


@pytest.mark.parametrize("name", [name for name in ALL + OLD if name not in GRAINS])
def test_products_are_those_with_the_jacobian(artifacts: Artifacts, name: str) -> None:
    model = python(artifacts, name)
    model.options["miters"] = 50
    x = state_of(name, model)
    outputs, blocks = model.jacobian(x)
    v, w = random_like(x), random_like(outputs)
    pushed: dict[str, Any] = {}
    pulled: dict[str, Any] = {}
    for derivative in model.derivatives:
        output, by = derivative.output, derivative.variable
        points, shapes = len(x[by]), (outputs[output].shape[1:], x[by].shape[1:])
        block = np.broadcast_to(blocks[output][by], (points, *shapes[0], *shapes[1]))
        matrix = block.reshape(points, outputs[output][0].size, x[by][0].size)
        column, row = v[by].reshape(points, -1, 1), w[output].reshape(points, 1, -1)
        pushed[output] = pushed.get(output, 0.0) + (matrix @ column).reshape(outputs[output].shape)
        pulled[by] = pulled.get(by, 0.0) + (row @ matrix).reshape(x[by].shape)
    jvp, vjp = model.jvp(x, v)[1], model.vjp(x, w)[1]
    assert (jvp.keys(), vjp.keys()) == (pushed.keys(), pulled.keys())
    for output, value in pushed.items():
        assert_close(jvp[output], value, 1e-10)
    work = max(float(np.abs(w[output] * outputs[output]).max()) for output in pushed)
    for by, value in pulled.items():
        # If great terms cancel, as those by gamma~1 of radial_return do, round-off is left.
        assert_close(vjp[by], value, 1e-10, 1e-13 * work / max(np.abs(x[by]).max(), 1e-3))


# ---- against the native engine ----


@pytest.mark.parametrize("name", ALL + OLD)
def test_the_native_engine_says_the_same(artifacts: Artifacts, name: str) -> None:
    models = python(artifacts, name), load(artifacts, name)
    for model in models:
        model.options["collect_history"] = 1
    assert_agreement(*models, name, state_of(name, models[1]))


@pytest.mark.parametrize("name", later(IMPLICIT + OLD[3:], ["substepping"]))
def test_batches_that_converge_as_a_whole_agree(artifacts: Artifacts, name: str) -> None:
    models = python(artifacts, name, "batch"), load(artifacts, name, "batch")
    assert_agreement(*models, name, state_of(name, models[1]))


@pytest.mark.parametrize("name", later(IMPLICIT + OLD[3:], ["substepping"]))
def test_points_that_fail_agree(artifacts: Artifacts, name: str) -> None:
    models = python(artifacts, name), load(artifacts, name)
    x = state_of(name, models[1])
    forces = {"strain", "total_strain", "applied_stress", "deformation_rate"} & x.keys()
    for force in forces:
        x[force][-1] *= 50.0  # too much for one step
        x[force][1] = np.nan
    for model in models:
        # Inexact steps along a diverging path tell round-off apart.
        model.options["miters"] = 3 if name == "gmres" else 15
    assert models[1].evaluate(x)[1]["status"].tolist()[1] == lib.NEML2_NON_FINITE
    assert_agreement(*models, name, x)


@pytest.mark.parametrize("route", ["kernels", "packages", "python"])
def test_a_residual_that_grows_beyond_its_bound_ends_the_point(
    artifacts: Artifacts, route: str
) -> None:
    model = load(artifacts, "viscoplastic", engine="python" if route == "python" else "native")
    if route != "python":
        model.options["kernels"] = "required" if route == "kernels" else "off"
    strain = np.array([[1.0, -0.5, -0.5, 0.0, 0.0, 0.0]]) * [[1e-5], [1e-2]]
    x = model.state(2).inputs(strain=strain, t=1.0)
    model.options["collect_history"] = 1
    first, second, *_ = model.evaluate(x)[1]["residual_history"][1]
    assert second > 2 * first
    model.options["divtol"] = 2.0
    _, report = model.evaluate(x)
    assert (report["status"][1], report["iterations"][1]) == (lib.NEML2_NOT_CONVERGED, 1)
    model.options["divtol"] = 2 * second / first
    assert model.evaluate(x)[1]["iterations"][1] > 1


SEARCHED = ["isotropic_hardening", "crystal", "substepping", "creep_3.0.0"]


@pytest.mark.parametrize("search", ["BACKTRACKING", "STRONG_WOLFE"])
@pytest.mark.parametrize("name", later(SEARCHED, ["substepping"]))
def test_line_searches_agree(artifacts: Artifacts, name: str, search: str) -> None:
    models = python(artifacts, name), load(artifacts, name)
    for model in models:
        model.options.update({"ls_type": search, "ls_max_iters": 5, "ls_c": 0.3})
    assert_agreement(*models, name, state_of(name, models[1]))


@pytest.mark.parametrize("shape", [(), (0,), (4, 1), (2, 2)])
@pytest.mark.parametrize(
    "name", later(["elasticity_parameters", "radial_return", "substepping"], ["substepping"])
)
def test_batches_of_any_shape_agree(
    artifacts: Artifacts, name: str, shape: tuple[int, ...]
) -> None:
    models = python(artifacts, name), load(artifacts, name)
    count = int(np.prod(shape))
    x = {k: v[:count].reshape(shape + v.shape[1:]) for k, v in state_of(name, models[1]).items()}
    assert_agreement(*models, name, x)


@pytest.mark.parametrize("name", ["isotropic_hardening", "relaxation", "bicgstab"])
def test_parameters_that_differ_among_points_agree(artifacts: Artifacts, name: str) -> None:
    """Though residuals take one value of a parameter for all points."""
    models = python(artifacts, name), load(artifacts, name)
    for model in models:
        for parameter in model.parameters.names:
            stored = model.named_parameters()[parameter]
            model.set_parameter(parameter, stored * np.array([1.0, 1.1, 1.0, 0.9]))
    assert_agreement(*models, name, recorded(name, "in"))


def test_increments_that_are_divided_agree(artifacts: Artifacts, tmp_path: Path) -> None:
    root = Path(shutil.copytree(artifacts["creep_3.0.7"], tmp_path / "creep"))
    metadata = json.loads((root / "metadata.json").read_text())
    segment = metadata["segments"][0]
    segment["max_substepping_level"] = 6
    for given in segment["givens"]:
        # A strain that starts from zero may as well be the increment of one.
        roles = {"strain": "incremental", "strain~1": "static"}
        given["role"] = roles.get(given["name"], given["role"])
    (root / "metadata.json").write_text(json.dumps(metadata))
    models = Model(root, engine="python"), Model(root)
    x = state_of("creep_3.0.7", models[1])
    x["strain~1"][...] = 0.0
    x["strain"] *= 0.3
    for model in models:
        model.options["miters"] = 7
    assert models[1].evaluate(x)[1]["iterations"].max() > 7
    assert_agreement(*models, "creep_3.0.7", x)


@pytest.mark.parametrize("name", ["radial_return", "grains", "substepping", "elasticity_3.0.0"])
def test_models_describe_themselves_alike(artifacts: Artifacts, name: str) -> None:
    models = Model(artifacts[name], engine="python"), Model(artifacts[name])
    for what in (
        *("inputs", "outputs", "parameters", "unknowns", "histories", "dtype"),
        *("derivatives", "parameter_derivatives"),
    ):
        found, expected = (getattr(model, what) for model in models)
        assert found == expected if what == "dtype" else list(found) == list(expected), what
    python_model, native = models
    assert python_model.describe() == native.describe()
    assert dict(python_model.options) == dict(native.options)
    for option in native.options:
        assert python_model.options.choices(option) == native.options.choices(option)
        if not native.options.choices(option):
            assert python_model.options.bounds(option) == native.options.bounds(option)


# ---- as a Model ----


def test_a_written_parameter_takes_effect(artifacts: Artifacts) -> None:
    model, strain = python(artifacts, "elasticity_parameters"), np.full((2, 6), 1e-3)
    model.named_parameters()["E"][...] = 100e3
    assert_close(
        model.forward({"strain": strain})["stress"], elastic_stress(strain, 100e3, 0.3), 1e-14
    )
    model.named_parameters()["E"] = np.array([1e5, 3e5])
    E = np.array([1e5, 3e5])
    assert_close(model.forward({"strain": strain})["stress"], elastic_stress(strain, E, 0.3), 1e-14)


@pytest.mark.parametrize(
    "request_of",
    [
        lambda x: {},
        lambda x: {**x, "stran": 1.0},
        lambda x: {**x, "strain": np.zeros((4, 3))},
        lambda x: {**x, "strain": x["strain"].astype(np.float32)},
        lambda x: {**x, "strain": np.zeros((3, 6))},
        lambda x: list(x),
    ],
)
def test_bad_inputs_are_refused_alike(
    artifacts: Artifacts, request_of: Callable[[Mapping[str, Array]], Any]
) -> None:
    errors = []
    for engine in ("python", "native"):
        model = Model(artifacts["viscoplastic"], engine=engine)
        x = {v.name: np.zeros((4, *v.base_shape)) for v in model.inputs}
        with pytest.raises(FatalError) as caught:
            model.forward(request_of(x))
        errors.append((type(caught.value), caught.value.status, caught.value.subject))
        with pytest.raises(FatalError, match="neml2-compile"):
            model.jacobian(x)
    assert errors[0] == errors[1]


def test_an_option_out_of_bounds_is_refused(artifacts: Artifacts) -> None:
    options = Model(artifacts["viscoplastic"], engine="python").options
    before = dict(options)
    for name, value in (("atol", -1.0), ("miters", 2.5), ("ls_type", "NONE"), ("tol", 1.0)):
        with pytest.raises(FatalError, match=name):
            options.update({"rtol": 0.5, name: value})
    assert dict(options) == before


def test_an_adjoint_of_reduced_grains_is_refused(artifacts: Artifacts) -> None:
    model, x = python(artifacts, "grains"), recorded("grains", "in")
    with pytest.raises(FatalError, match="sub-batch sites"):
        model.vjp(x, {"mean_stress": np.ones((3, 6))})
    with pytest.raises(FatalError, match="sub-batch sites"):
        model.jvp(x, random_like(x))


def test_an_unknown_engine_is_refused(artifacts: Artifacts) -> None:
    with pytest.raises(FatalError, match="native, python"):
        Model(artifacts["elasticity"], engine="fortran")


def test_results_are_torch_tensors_where_the_model_is_one_of_torch(artifacts: Artifacts) -> None:
    torch = pytest.importorskip("torch")
    import neml2_capi.torch

    model = neml2_capi.torch.Model(artifacts["elasticity_parameters"], engine="python")
    assert isinstance(model, neml2_capi.torch.Model)
    x = recorded("elasticity_parameters", "in")
    outputs, blocks = model.jacobian(x)
    assert isinstance(outputs["stress"], torch.Tensor)
    assert isinstance(blocks["stress"]["strain"], torch.Tensor)
    given = {name: torch.from_numpy(value) for name, value in x.items()}
    plain = python(artifacts, "elasticity_parameters").forward(given)["stress"]
    assert torch.equal(plain, outputs["stress"])


# ---- what it stands on ----


class GraphsAlone:
    """The library, without what evaluates a model: graphs are left."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib

    def __getattr__(self, name: str) -> Any:
        if re.match(r"neml2_(call|report|solve|system)_", name):
            self.refusal(name)()
        return getattr(self._lib, name)

    def refusal(self, name: str) -> Callable[..., Any]:
        def refuse(*arguments: Any) -> Any:
            raise AssertionError(f"{name} was called")

        return refuse


@pytest.mark.parametrize("name", ["relaxation", "gmres", "substepping", "grains"])
def test_it_evaluates_by_graphs_alone(
    artifacts: Artifacts, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, x = artifacts[name], recorded(name, "in")
    guarded = GraphsAlone(neml2_capi._ffi.library.lib)
    for module, found in list(sys.modules.items()):
        if module.startswith("neml2_capi") and hasattr(found, "lib"):
            monkeypatch.setattr(found, "lib", guarded)
    functions = {name: (guarded.refusal(name), ()) for name in tensors._FUNCTIONS}
    monkeypatch.setattr(tensors, "_FUNCTIONS", functions)
    with pytest.raises(AssertionError, match="was called"):
        Model(path).forward(x)
    model = Model(path, engine="python")
    assert len(dict(evaluations(model, name, x))) > 6
    assert model.describe()["segments"]
    assert set(model.named_parameters()) == set(model.parameters.names)
