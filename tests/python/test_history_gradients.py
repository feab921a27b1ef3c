"""Derivatives of a whole history, forward and backward, against central differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from driving import plan
from kernel_setup import with_kernels
from numpy.typing import NDArray
from states import Artifacts, load, recorded

from neml2_capi import ConvergenceError, FatalError, Model, Results, drive, examples, experiments
from neml2_capi.driver.linearized import Linearized
from neml2_capi.driver.slopes import carried, stepped

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]
Run = Callable[[Mapping[str, Any], Any], Results]

TIMES = np.linspace(0.0, 10.0, 13)
CYCLE = 0.008 * np.sin(0.5 * np.pi * TIMES)[:, np.newaxis] * [1.0, -0.6, 0.2]
STRAIN = CYCLE[..., np.newaxis] * [1.0, -0.4, -0.3, 0.1, 0.0, 0.2]
E, YIELD = 190e3, np.array([140.0, 150.0, 160.0])
#: Relative, of central differences.
_STEP = 3e-5


@pytest.fixture(params=["isotropic_hardening", "chaboche"])
def steel(request: pytest.FixtureRequest) -> Iterator[Model]:
    with Model(examples.path(request.param)) as model:
        model.options["rtol"] = 1e-13
        yield model


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control finds stresses to round-off, so that differences of results tell more."""
    monkeypatch.setattr("neml2_capi.driver.control.TOLERANCE", 1e-13)


def agrees(run: Run, given: Mapping[str, Any], outputs: list[str], within: float = 1e-7) -> Results:
    """Gradients along a direction of all that is `given`, by differences of results."""
    random = np.random.default_rng(1)
    results = run(given, list(given))
    cotangents = {o: random.normal(size=results[o].shape) for o in outputs}
    gradients = results.gradient(cotangents)
    for name, value in given.items():
        value = np.asarray(value, float)
        moved = random.normal(size=value.shape) * (np.abs(value).max() or 1e-3)
        if name == "t":
            moved[0] = 0.0
        ahead, behind = (
            run({**given, name: value + sign * _STEP * moved}, None) for sign in (1, -1)
        )
        change = {o: (ahead[o] - behind[o]) / (2 * _STEP) for o in outputs}
        expected = sum(float((cotangents[o] * change[o]).sum()) for o in outputs)
        size = sum(float(np.abs(cotangents[o] * change[o]).sum()) for o in outputs)
        assert gradients[name].shape == value.shape, name
        found = float((gradients[name] * moved).sum())
        assert abs(found - expected) <= within * size + 1e-15, (name, found, expected)
        if results._gradients and name in results._gradients.constants:
            forward = {o: results.derivative(o, name) for o in outputs}
            for o, slopes in forward.items():
                along = _along(slopes, moved, value.shape, results[o].shape)
                least = 1e-15 * np.abs(results[o]).max() / _STEP  # what differences see
                scale = 10 * within * np.abs(change[o]).max() + 10 * least
                assert np.abs(along - change[o]).max() <= scale, (o, name)
    return results


def _along(slopes: Array, moved: Array, shape: tuple[int, ...], output: tuple[int, ...]) -> Array:
    """A derivative (n, *B, *output, *point) times a direction that points have, or share."""
    axes = slopes.ndim - len(output)  # of a point of what it is by
    own = moved.reshape(shape)
    batch = own.ndim - axes
    point = own.shape[batch:]
    own = own.reshape(*own.shape[:batch], *(1,) * (len(output) - 1 - batch), *point)
    product: Array = (slopes * own).sum(axis=tuple(range(len(output), slopes.ndim)))
    return product


def parts(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of drive() by the names that derivatives have."""
    initial = {n.removeprefix("initial:"): v for n, v in given.items() if n.startswith("initial:")}
    parameters = {n: v for n, v in given.items() if n in ("E", "yield_stress")}
    return {"initial": initial, "parameters": parameters}


def test_strain_driven(steel: Model) -> None:
    def run(given: Mapping[str, Any], asked: Any) -> Results:
        forces = {"strain": given["strain"]}
        return drive(steel, given["t"], forces, derivatives=asked, **parts(given))

    agrees(
        run,
        {
            "E": E,
            "yield_stress": YIELD,
            "strain": STRAIN,
            "t": TIMES,
            "initial:stress": np.array([10.0, 20, 0, 0, 5, 0]),
            "initial:equivalent_plastic_strain": np.full(3, 1e-3),
        },
        ["stress", "equivalent_plastic_strain"],
        1e-6,
    )


def test_tension_moves_the_lateral_strains(steel: Model) -> None:
    def run(given: Mapping[str, Any], asked: Any) -> Results:
        forces = {"strain": {"xx": given["strain.xx"]}}
        control = {"stress": "uniaxial"}
        return drive(steel, TIMES, forces, control=control, derivatives=asked, **parts(given))

    given = {
        "E": E,
        "yield_stress": YIELD,
        "strain.xx": CYCLE,
        "initial:stress": np.array([10.0, 0, 0, 0, 0, 0]),
    }
    agrees(run, given, ["stress", "strain", "equivalent_plastic_strain"], 1e-6)


def test_stress_driven_with_a_prescribed_shear(steel: Model) -> None:
    pulled = 200 * np.sin(0.5 * TIMES)

    def run(given: Mapping[str, Any], asked: Any) -> Results:
        return drive(
            steel,
            TIMES,
            {"strain": {"xy": given["strain.xy"]}},
            control={"stress": {"xx": given["stress.xx"], **dict.fromkeys(FREE, 0.0)}},
            derivatives=asked,
            **parts(given),
        )

    given = {"E": E, "strain.xy": 2e-3 * np.cos(TIMES), "stress.xx": pulled}
    agrees(run, given, ["strain", "stress"], 2e-6)


FREE = ("yy", "zz", "yz", "xz")


def test_steps_that_are_cut(steel: Model) -> None:
    """Increments within steps count, and forces are interpolated between the times."""
    steel.options["miters"] = 7 if "X1" in steel.outputs.names else 5
    coarse = TIMES[::3]

    def run(given: Mapping[str, Any], asked: Any) -> Results:
        if "strain" in given:
            forces, control = {"strain": given["strain"]}, None
        else:
            forces, control = {"strain": {"xx": given["strain.xx"]}}, {"stress": "uniaxial"}
        return drive(steel, coarse, forces, control=control, derivatives=asked, **parts(given))

    constants = {"E": E, "yield_stress": YIELD}
    results = agrees(run, {**constants, "strain": STRAIN[::3]}, ["stress"], 1e-6)
    assert results["substeps"].max() > 1
    results = agrees(run, {**constants, "strain.xx": CYCLE[::3]}, ["stress", "strain"], 1e-6)
    assert results["substeps"].max() > 1


def test_a_law_without_history() -> None:
    elasticity = Model(examples.path("elasticity"))

    def run(given: Mapping[str, Any], asked: Any) -> Results:
        forces = {"strain": {"xx": given["strain.xx"]}}
        control = {"stress": "uniaxial"}
        return drive(elasticity, TIMES, forces, control=control, derivatives=asked, **parts(given))

    results = agrees(run, {"E": E, "strain.xx": CYCLE[:, 0]}, ["stress", "strain"])
    # stress = E strain in a tension test
    np.testing.assert_allclose(results.derivative("stress", "E")[:, 0], CYCLE[:, 0], rtol=1e-9)


@pytest.mark.parametrize("name", ["radial_return", "relaxation", "warm_start"])
def test_other_laws(artifacts: Artifacts, name: str) -> None:
    """Histories of forces and of outputs that are no stress, renamed variables, first guesses."""
    model = load(artifacts, name)
    model.options["rtol"] = 1e-13
    times, forces, initial = plan(name, 5)
    parameters = {p: np.asarray(v, float) for p, v in model.named_parameters().items()}

    def run(given: Mapping[str, Any], asked: Any) -> Results:
        return drive(
            model,
            times,
            {force: given.get(force, forces[force]) for force in forces},
            {
                **initial,
                **{v.name: given[k] for v in model.outputs if (k := f"initial:{v.name}") in given},
            },
            parameters={p: given[p] for p in parameters},
            derivatives=asked,
        )

    state = {
        f"initial:{h.output}": initial[h.output] for h in model.histories if h.output in initial
    }
    agrees(run, {**parameters, **forces, **state}, list(model.outputs.names)[:2], 1e-5)


def test_results_that_are_changed_leave_gradients_alone() -> None:
    model, times, strain = (
        Model(examples.path("chaboche")),
        np.linspace(0, 1, 11),
        np.zeros((11, 6)),
    )
    strain[:, 0] = np.linspace(0, 0.01, 11)
    results = drive(model, times, {"strain": strain}, derivatives=["E"])
    cotangent = {"stress": np.ones((11, 6))}
    before = results.gradient(cotangent)["E"]
    for name in ("strain", "stress", "t"):
        results[name][...] *= 100
    np.testing.assert_array_equal(results.gradient(cotangent)["E"], before)


def test_memory_is_bounded_and_changes_nothing(steel: Model) -> None:
    def results() -> Results:
        return experiments.tension(
            steel, TIMES, CYCLE, parameters={"E": E}, derivatives=["E", "yield_stress"]
        )

    cotangents = {"stress": np.ones((13, 3, 6)), "strain": np.full((13, 3, 6), 1e5)}
    whole, parts = results(), results()
    gradients, less = whole.gradient(cotangents), parts.gradient(cotangents, memory=1)
    for name in gradients:
        np.testing.assert_allclose(less[name], gradients[name], rtol=1e-12)
        few = parts.derivative("strain", name, memory=1)
        np.testing.assert_allclose(few, whole.derivative("strain", name), rtol=1e-9, atol=1e-16)


@pytest.mark.parametrize("memory", [1 << 25, 1])
@pytest.mark.parametrize("cut", [False, True])
def test_the_library_carries_what_matrices_do(steel: Model, cut: bool, memory: int) -> None:
    """Derivatives in lanes, and by numpy from the blocks of all increments."""
    if cut:
        steel.options["miters"] = 7 if "X1" in steel.outputs.names else 5
    given = {"E": E, "yield_stress": YIELD, "initial:stress": np.array([10.0, 20, 0, 0, 5, 0])}
    results = drive(
        steel, TIMES[:: 3 if cut else 1], {"strain": STRAIN[:: 3 if cut else 1]},
        derivatives=list(given), **parts(given),
    )  # fmt: skip
    assert cut == (results["substeps"].max() > 1)
    gradients = results._gradients
    assert gradients
    wanted = list(gradients.asked.values())
    columns = [column for each in wanted for column in each.columns]
    linear = Linearized(gradients._history, ["stress", "equivalent_plastic_strain"], columns)
    ways = []
    for way in (carried, stepped):
        pieces = list(way(linear, linear.outputs, wanted, memory))
        assert (len(pieces) > 4) == (memory == 1)
        whole = {}
        for key in pieces[0].by:
            of_points: dict[int, list[Array]] = {}
            for piece in pieces:
                of_points.setdefault(piece.points.start, []).append(piece.by[key])
            whole[key] = np.concatenate([np.concatenate(v) for v in of_points.values()], axis=1)
        ways.append(whole)
    for key, expected in ways[1].items():
        within = 1e-11 * np.abs(expected).max()
        np.testing.assert_allclose(ways[0][key], expected, rtol=1e-9, atol=within)


def test_the_library_carries_derivatives_through_parts_of_increments() -> None:
    """Of a law that cuts increments itself: in lanes, and by matrices."""
    with Model(with_kernels("substepping")) as model:
        model.options.update({"kernels": "required", "rtol": 1e-13, "miters": 8})
        strain = recorded("substepping", "in")["strain"]
        times = np.linspace(0.0, 3.0, 4)
        results = drive(
            model, times, {"strain": np.multiply.outer(times / 3, strain)}, derivatives=["E"]
        )
        zeros = {v.name: np.zeros((len(strain), *v.base_shape)) for v in model.inputs}
        first = model.evaluate({**zeros, "strain": strain / 3, "t": np.ones(len(strain))})[1]
        assert first["iterations"].max() > 8
        gradients = results._gradients
        assert gradients
        wanted = list(gradients.asked.values())
        columns = [column for each in wanted for column in each.columns]
        linear = Linearized(gradients._history, ["stress"], columns)
        ours, theirs = (
            np.concatenate([p.by["stress", "E"] for p in way(linear, ["stress"], wanted, 1 << 25)])
            for way in (carried, stepped)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11 * np.abs(theirs).max())


def test_gradients_by_constants_take_no_matrices(
    steel: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("matrices of increments")

    monkeypatch.setattr(Linearized, "blocks", refused)
    results = drive(steel, TIMES, {"strain": STRAIN}, derivatives=["E", "yield_stress"])
    results.gradient({"stress": np.ones((13, 3, 6))})
    results.derivative("stress", "E")


def test_what_is_asked_wrongly_is_named(steel: Model, artifacts: Artifacts) -> None:
    def tension(*asked: str) -> Results:
        return experiments.tension(steel, TIMES, CYCLE, derivatives=asked)

    for asked, message in (
        ("F", "unknown parameter 'F'"),
        ("initial:F", "unknown initial value 'F'"),
        ("strain", "is found or prescribed by components"),
        ("strain.yy", "unknown prescribed component"),
        ("stress", "'stress.xx' for example"),
    ):
        with pytest.raises(FatalError, match=message):
            tension(asked)
    with pytest.raises(FatalError, match="is a function of time"):
        experiments.tension(steel, TIMES, lambda t: 1e-3 * t, derivatives=["strain.xx"])
    results = tension("E")
    with pytest.raises(FatalError, match="unknown result with derivatives 't'"):
        results.derivative("t", "E")
    with pytest.raises(FatalError, match="unknown derivative that was asked for 'yield_stress'"):
        results.derivative("stress", "yield_stress")
    with pytest.raises(FatalError, match=r"has the shape \(3,\); expected \(13, 3, 6\)"):
        results.gradient({"stress": np.zeros(3)})
    with pytest.raises(FatalError, match=r"drive.. was asked for no derivatives"):
        experiments.tension(steel, TIMES, CYCLE).derivative("stress", "E")
    with pytest.raises(FatalError, match="-d stress:"):
        experiments.tension(Model(artifacts["combined_hardening"]), TIMES, 0.01, derivatives=["E"])
    with pytest.raises(FatalError, match="has two axes of times"):
        tension("strain.xx").derivative("stress", "strain.xx")


def test_a_step_without_a_derivative_is_named(
    steel: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = experiments.tension(steel, TIMES, CYCLE, derivatives=["E"])
    exact = Linearized._evaluated

    def spoiled(*arguments: Any, **options: Any) -> Array:
        partial = exact(*arguments, **options)
        partial[3, 1, 0] = np.nan
        return partial

    monkeypatch.setattr(Linearized, "_evaluated", spoiled)
    with pytest.raises(
        ConvergenceError, match=r"of step 4 is not finite, at t = 3\.3+ and point 1"
    ):
        results.derivative("stress", "E")


@pytest.mark.parametrize("cut", [False, True], ids=["whole steps", "cut steps"])
def test_derivatives_are_of_what_was_driven(cut: bool) -> None:
    """A caller's arrays, written over afterwards, changed what derivatives were of, in silence."""
    model = Model(examples.path("chaboche"))
    if cut:
        model.options["miters"] = 5
    times, strain, start = np.linspace(0, 1, 5), CYCLE[:5].copy(), np.ones(6)
    factor = [1.0]

    def run() -> list[Results]:
        def pulled(time: float) -> float:
            return 0.01 * factor[0] * time

        initial = {"stress": start}
        free = {"yy": held, **dict.fromkeys(["zz", "yz", "xz", "xy"], 0.0)}
        return [
            drive(
                model, times, {"strain": {"xx": each}}, initial, derivatives=["E"], control=control
            )
            for each in (strain, pulled)
            for control in (None, {"stress": free})
        ]

    held = np.zeros(5)
    before = [each.derivative("stress", "E") for each in run()]
    driven = run()
    assert (max(each["substeps"].max() for each in driven) > 1) == cut
    names = ("strain", *model.outputs.names)
    for changed in (
        *(times, strain, start, held),
        *(results.derivative("stress", "E") for results in driven),
        *(results[name] for results in driven for name in names),
    ):
        changed *= 3.0
    held += 5.0
    factor[0] = 7.0
    for expected, results in zip(before, driven, strict=True):
        np.testing.assert_array_equal(results.derivative("stress", "E"), expected)
        weights = np.ones(expected.shape)
        total = results.gradient({"stress": weights})["E"]
        np.testing.assert_allclose(total, expected.sum(), rtol=1e-9)


@pytest.mark.parametrize("batch", [(0,), (2, 0)], ids=str)
@pytest.mark.parametrize("control", [None, {"stress": "uniaxial"}], ids=["", "control"])
def test_no_points_have_derivatives(batch: tuple[int, ...], control: Any) -> None:
    """They were a ValueError of numpy, or a division by zero."""
    model = Model(examples.path("chaboche"))
    forces = {"strain": {"xx": np.zeros((4, *batch))}}
    asked = ["E", "yield_stress", "strain.xx", "initial:stress"]
    values = {"yield_stress": np.ones(batch)}
    results = drive(model, TIMES[:4], forces, control=control, parameters=values, derivatives=asked)
    assert results.derivative("stress", "E").shape == (4, *batch, 6)
    gradients = results.gradient({"stress": np.zeros((4, *batch, 6))})
    shapes = {name: gradient.shape for name, gradient in gradients.items()}
    assert shapes == {
        "E": (),
        "yield_stress": batch,
        "strain.xx": (4, *batch),
        "initial:stress": (*batch, 6),
    }
    assert gradients["E"] == 0


def test_a_gradient_by_a_constant_has_its_shape() -> None:
    """It had an axis of times, which a constant without one lacks."""
    model = Model(examples.path("chaboche"))
    for shape in ((), (1,), (1, 1), (1, 2)):
        strain = {"xx": 1e-3 * TIMES[:5], "xy": np.full(shape, 1e-4)}
        stress = {"yy": np.full(shape, 5.0), **dict.fromkeys(["zz", "yz", "xz"], 0.0)}
        results = drive(
            model,
            TIMES[:5],
            {"strain": strain},
            control={"stress": stress},
            derivatives=["strain.xy", "stress.yy"],
        )
        gradients = results.gradient({"stress": np.ones(results["stress"].shape)})
        assert {name: each.shape for name, each in gradients.items()} == {
            "strain.xy": shape,
            "stress.yy": shape,
        }
    whole = drive(model, TIMES[:5], {"strain": 1e-3 * np.ones(6)}, derivatives=["strain"])
    assert whole.gradient({"stress": np.ones((5, 6))})["strain"].shape == (6,)


@pytest.mark.full("torch")
@pytest.mark.parametrize(
    "given", [{}, {"x~1": 0.2}, {"x~2": 0.4}, {"x~1": 0.2, "x~2": 0.4}], ids=str
)
def test_a_force_before_the_first_time_is_what_is_given(tmp_path: Any, given: Any) -> None:
    """x two steps before was taken for the first x, though one step before was given."""
    pytest.importorskip("torch")
    from neml2_capi import export

    def law(i: Any, p: Any) -> Any:
        older = 2 * i["x"] * i["x~1"] + 3 * i["x~2"] ** 2 + i["x"] * i["x~3"] ** 2
        return {"y": p["c"] * (older + 0.5 * i["y~1"])}

    names = ["x", "x~1", "x~2", "x~3", "y~1"]
    export.model(
        law,
        tmp_path / "law",
        inputs=dict.fromkeys(names, "Scalar"),
        outputs={"y": "Scalar"},
        parameters={"c": 2.0},
        kernels="only",
    )
    model = Model(tmp_path / "law")

    def run(values: Mapping[str, Any], asked: Any) -> Results:
        return drive(model, TIMES[:5], {"x": values["x"]}, given, derivatives=asked)

    agrees(run, {"x": np.array([0.3, 0.5, -0.2, 0.7, 1.1])}, ["y"])


@pytest.mark.full("torch")
def test_gradients_run_through_what_torch_drives(steel: Model) -> None:
    """gradcheck, by parameters, initial values, strains, stresses and times."""
    torch = pytest.importorskip("torch")

    def tensor(value: Any) -> Any:
        return torch.tensor(value, dtype=torch.float64, requires_grad=True)

    def tension(modulus: Any, start: Any, strain: Any, times: Any) -> Any:
        # units of which differences are alike
        results = experiments.tension(
            steel,
            times,
            strain / 1e3,
            initial={"stress": start * 10},
            parameters={"E": modulus * 1e5},
        )
        return results["stress"] / 100, results["strain"] * 1e3

    times = TIMES[:5]
    start = np.array([1.0, 0, 0, 0, 0, 0])
    given = [tensor(v) for v in (1.9, start, 1e3 * CYCLE[:5], times)]
    assert torch.autograd.gradcheck(tension, given, eps=1e-5, atol=1e-5, rtol=1e-5)

    def pulled(stress: Any) -> Any:
        return experiments.uniaxial(steel, times, stress * 100)["strain"] * 1e3

    assert torch.autograd.gradcheck(pulled, [tensor(2.1)], eps=1e-5, atol=1e-5, rtol=1e-5)


@pytest.mark.full("torch")
@pytest.mark.parametrize("wrapper", ["drive", "tension", "uniaxial"])
def test_a_second_derivative_of_what_torch_drives_is_told(wrapper: str) -> None:
    """A penalty on a gradient would be lost, without an error."""
    torch = pytest.importorskip("torch")
    limit = torch.tensor(150.0, dtype=torch.float64, requires_grad=True)
    given: dict[str, Any] = {"parameters": {"yield_stress": limit}}
    with Model(examples.path("isotropic_hardening")) as model:
        if wrapper == "drive":
            results = drive(model, TIMES[:3], {"strain": STRAIN[:3, 0]}, **given)
        else:
            path = CYCLE[:3, 0] * (1.0 if wrapper == "tension" else 100.0)
            results = getattr(experiments, wrapper)(model, TIMES[:3], path, **given)
        total = results["stress"].sum() + results["strain"].sum()
        with pytest.raises(FatalError, match="second derivative of a driven model"):
            torch.autograd.grad(total, limit, create_graph=True)


@pytest.mark.full("torch")
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("place", ["parameters", "strain", "times", "initial"])
def test_a_tangent_of_forward_mode_is_refused_by_a_drive(place: str, requires_grad: bool) -> None:
    """It would be lost, without an error."""
    torch = pytest.importorskip("torch")
    forward_ad = torch.autograd.forward_ad
    values = {"parameters": 190e3, "strain": STRAIN[:3, 0], "times": TIMES[:3], "initial": 0.1}
    with Model(examples.path("isotropic_hardening")) as model, forward_ad.dual_level():
        value = torch.tensor(values[place], dtype=torch.float64, requires_grad=requires_grad)
        given = {**values, place: forward_ad.make_dual(value, torch.ones_like(value))}
        with pytest.raises(FatalError, match="forward mode"):
            drive(
                model,
                given["times"],
                {"strain": given["strain"]},
                {"equivalent_plastic_strain": given["initial"]},
                parameters={"E": given["parameters"]},
            )


@pytest.mark.full("torch")
def test_transforms_of_torch_func_are_refused_by_a_drive() -> None:
    torch = pytest.importorskip("torch")
    with Model(examples.path("isotropic_hardening")) as model:

        def stress(modulus: Any) -> Any:
            given = {"strain": STRAIN[:3, 0]}
            return drive(model, TIMES[:3], given, parameters={"E": modulus})["stress"]

        moduli = torch.full((2,), 190e3, dtype=torch.float64)
        with pytest.raises(FatalError, match=r"parameter 'E' .*torch\.func"):
            torch.func.grad(lambda modulus: stress(modulus).sum())(moduli[0])
        with pytest.raises(FatalError, match=r"parameter 'E' .*torch\.func"):
            torch.func.vmap(stress)(moduli)
        modulus = moduli[0].clone().requires_grad_()
        made = stress(modulus)
        cotangents = made.detach().expand(2, *made.shape)
        with pytest.raises(FatalError, match="is_grads_batched=True"):
            torch.autograd.grad(made, modulus, cotangents, is_grads_batched=True)


def test_a_cotangent_that_is_no_number_is_named() -> None:
    """NaN made the gradient NaN in silence, and a mask was told of a tensor."""
    model = Model(examples.path("chaboche"))
    results = experiments.tension(model, np.linspace(0, 1, 3), 0.01, derivatives=["E"])
    weights = np.ones((3, 6))
    for broken, message in (
        (np.where(np.eye(3, 6), np.nan, weights), r"cotangent 'stress' has nan at index \[0, 0\]"),
        (np.ma.masked_array(weights, np.eye(3, 6) > 0), "cotangent 'stress' is masked"),
        (weights + 1j, "cotangent 'stress' has the element type"),
        (None, "cotangent 'stress' is None"),
    ):
        with pytest.raises(FatalError, match=message):
            results.gradient({"stress": broken})
    assert np.isfinite(results.gradient({"stress": weights})["E"])


@pytest.mark.parametrize("measure", ["logarithmic", "green_lagrange", "corotational"])
@pytest.mark.parametrize("law", ["isotropic_hardening", "chaboche"])
def test_a_history_in_large_strain_has_derivatives(law: str, measure: Any) -> None:
    """The strain is of the deformation gradient alone: its other derivatives are zero."""
    model = Model(examples.path(law), strain_measure=measure)
    model.options.update({"atol": 1e-11, "rtol": 1e-12})
    times, loads = np.linspace(0, 1, 4), np.array([[1, 0.3, 0], [0, -0.5, 0.2], [0.1, 0, -0.4]])
    history = {"deformation_gradient": np.eye(3) + 0.02 * times[:, None, None] * loads}

    def run(modulus: float) -> Any:
        return drive(model, times, history, parameters={"E": modulus}, derivatives=["E"])

    results, above, below = (run(modulus) for modulus in (200e3, 200e3 + 100, 200e3 - 100))
    for name in ("pk1_stress", "strain", "equivalent_plastic_strain"):
        expected = (above[name] - below[name]) / 200
        size = max(float(abs(expected).max()), 1e-12)
        found = np.reshape(results.derivative(name, "E"), expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * size, err_msg=name)
    slope = results.gradient({"pk1_stress": np.ones_like(results["pk1_stress"])})["E"]
    assert slope == pytest.approx(results.derivative("pk1_stress", "E").sum(), rel=1e-9)
