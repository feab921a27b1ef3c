"""Models among jax' transformations: values, derivatives in both modes, batches and errors."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, Artifacts
from patience import PATIENCE
from states import load, repeated, state_of

from neml2_capi import FatalError, Model, UnknownNameError, drive, examples, experiments

jax = pytest.importorskip("jax")
jnp = jax.numpy

from neml2_capi.jax import Function, driven  # noqa: E402

EXAMPLE = ROOT / "examples" / "calibrate_jax.py"
E, NU = "elasticity.E", "elasticity.nu"
PARAMETERS = {E: 70e3, NU: 0.3}
RANDOM = np.random.default_rng(5)


@pytest.fixture(scope="module", autouse=True)
def double_precision() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture
def elasticity(artifacts: Artifacts) -> Model:
    return Model(artifacts["elasticity_parameters"])


def strains(*batch: int) -> Any:
    return jnp.asarray(RANDOM.normal(0, 1e-3, (*batch, 6)))


@pytest.mark.parametrize("points", [1, 100_000])
def test_the_function_gives_what_the_model_gives_also_under_jit(
    elasticity: Model, points: int
) -> None:
    strain = strains(points)
    expected = elasticity.forward({"strain": strain}, PARAMETERS)["stress"]
    function = Function(elasticity)
    for evaluate in (function, jax.jit(function)):
        outputs = evaluate({"strain": strain}, PARAMETERS)
        np.testing.assert_array_equal(outputs["stress"], expected)


@pytest.mark.parametrize("batch", [(0,), (0, 3), (3, 0)])
def test_no_points_have_derivatives(elasticity: Model, batch: tuple[int, ...]) -> None:
    function = Function(elasticity)

    def total(strain: Any) -> Any:
        return function({"strain": strain}, PARAMETERS)["stress"].sum()

    none = jnp.zeros((*batch, 6))
    assert jax.grad(total)(none).shape == none.shape
    assert jax.jvp(total, (none,), (none,))[1] == 0


def test_one_output_may_stand_alone(elasticity: Model) -> None:
    assert set(Function(elasticity, "stress")({"strain": strains()}, PARAMETERS)) == {"stress"}


def slope(function: Any, at: Any, step: float = 1e-4) -> Any:
    """The derivative of a function of a number, by differences of fourth order."""
    near, far = (function(at + s * step) - function(at - s * step) for s in (1, 2))
    return (8 * near - far) / (12 * step)


@pytest.mark.parametrize("nu", [0.3, np.array([0.1, 0.2, 0.3, 0.4])], ids=["one", "per point"])
def test_gradients_agree_with_differences(elasticity: Model, nu: Any) -> None:
    function, strain, weights = Function(elasticity), strains(4), strains(4)

    def energy(strain: Any, E: Any, nu: Any) -> Any:
        stress = function({"strain": strain}, {"elasticity.E": E, "elasticity.nu": nu})["stress"]
        return (weights * stress**2).sum()

    at = [strain, jnp.asarray(70e3), jnp.asarray(nu)]
    gradients = jax.grad(energy, argnums=(0, 1, 2))(*at)
    for index, (value, gradient) in enumerate(zip(at, gradients, strict=True)):
        assert gradient.shape == value.shape
        direction = value * RANDOM.uniform(0.5, 1.5, value.shape)

        def along(factor: float, index: int = index, direction: Any = direction) -> Any:
            changed = [*at[:index], at[index] + factor * direction, *at[index + 1 :]]
            return energy(*changed)

        np.testing.assert_allclose((gradient * direction).sum(), slope(along, 0.0), rtol=1e-8)


def test_gradients_through_a_newton_solve_agree_with_differences(artifacts: Artifacts) -> None:
    model = Model(artifacts["isotropic_hardening"])
    function = Function(model)
    shapes = {variable.name: variable.base_shape for variable in model.inputs}
    inputs = {name: np.zeros(shape) for name, shape in shapes.items()}
    inputs |= {"t": np.array(1.0), "strain": np.array([5e-3, -2e-3, -2e-3, 0.0, 1e-3, 0.0])}
    names = [model.parameters.names[model.parameters.resolve(n)] for n in ("E", "yield_stress")]

    def stress(factors: Any, strain: Any) -> Any:
        parameters = {names[0]: 180e3 * factors[0], names[1]: 120.0 * factors[1]}
        return jnp.linalg.norm(function({**inputs, "strain": strain}, parameters)["stress"])

    found = jax.jit(jax.grad(stress))(jnp.ones(2), inputs["strain"])
    for index, unit in enumerate(np.eye(2)):
        expected = slope(lambda x, unit=unit: stress(1.0 + x * unit, inputs["strain"]), 0.0)
        np.testing.assert_allclose(found[index], expected, rtol=1e-7)


def test_vmap_is_one_batch(elasticity: Model) -> None:
    function = Function(elasticity)
    strain, nu = strains(5, 3), jnp.linspace(0.1, 0.4, 5)

    def stress(strain: Any, nu: Any) -> Any:
        return function({"strain": strain}, {E: 70e3, NU: nu})["stress"]

    expected = elasticity.forward({"strain": strain}, {E: 70e3, NU: nu[:, None]})["stress"]
    mapped = jax.vmap(stress)(strain, nu)
    np.testing.assert_allclose(mapped, expected, rtol=1e-14)
    gradients = jax.vmap(jax.grad(lambda s, n: stress(s, n).sum(), argnums=1))(strain, nu)
    one_by_one = [
        jax.grad(lambda n, s=s: stress(s, n).sum())(n) for s, n in zip(strain, nu, strict=True)
    ]
    np.testing.assert_allclose(gradients, one_by_one, rtol=1e-12)


def test_a_jacobian_by_rows_is_the_tangent(elasticity: Model) -> None:
    function, strain = Function(elasticity), strains()
    rows = jax.jacrev(lambda s: function({"strain": s}, {})["stress"])(strain)
    tangent = elasticity.jacobian({"strain": strain})[1]["stress"]["strain"]
    np.testing.assert_allclose(rows, tangent, rtol=1e-14)


@pytest.mark.parametrize(
    "name", ["isotropic_hardening", "radial_return", "elasticity_grains", "polycrystal"]
)
def test_both_modes_agree_with_the_blocks_of_the_model(artifacts: Artifacts, name: str) -> None:
    model = load(artifacts, name)
    state = state_of(name, model)
    pairs = [(pair.output, pair.variable) for pair in model.derivatives]
    output = pairs[0][0]
    given = {name: state[name] for made, name in pairs if made == output}
    function = Function(model, [output])
    tangents = {name: RANDOM.normal(0, 1e-3, value.shape) for name, value in given.items()}

    def of(given: Any) -> Any:
        return function({**state, **given})[output]

    value, along = jax.jvp(of, (given,), (tangents,))
    expected = model.jvp(state, tangents)[1][output]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(along, expected, rtol=0, atol=1e-11 * scale)
    weights = RANDOM.normal(0, 1, value.shape)
    pulled = jax.jit(jax.vjp(of, given)[1])(weights)[0]
    left = sum(np.vdot(pulled[name], tangents[name]) for name in given)
    np.testing.assert_allclose(left, np.vdot(weights, along), rtol=1e-10)


def test_a_jacobian_by_columns_is_that_by_rows_under_jit_and_vmap(artifacts: Artifacts) -> None:
    model = Model(artifacts["isotropic_hardening"])
    function, state = Function(model), state_of("isotropic_hardening", model)

    def stress(strain: Any, E: Any) -> Any:
        return function({**{k: v[0] for k, v in state.items()}, "strain": strain}, {"E": E})[
            "stress"
        ]

    at = state["strain"], np.linspace(150e3, 210e3, len(state["strain"]))
    columns = jax.jit(jax.vmap(jax.jacfwd(stress, (0, 1))))(*at)
    rows = jax.vmap(jax.jacrev(stress, (0, 1)))(*at)
    for column, row in zip(columns, rows, strict=True):
        np.testing.assert_allclose(column, row, rtol=1e-13)


@pytest.mark.parametrize("transformed", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_bad_input_is_an_error_at_once(elasticity: Model, transformed: Any) -> None:
    function = transformed(Function(elasticity))
    with pytest.raises(UnknownNameError, match="did you mean 'strain'"):
        function({"strian": strains()})
    with pytest.raises(FatalError, match="missing inputs: strain"):
        function({})
    with pytest.raises(FatalError, match=r"'strain' has the shape \(4, 5\); expected .* \(6,\)"):
        function({"strain": jnp.zeros((4, 5))})
    with pytest.raises(FatalError, match=r"must be float64; got complex"):
        function({"strain": 1j * strains()})
    with pytest.raises(UnknownNameError, match=r"unknown parameter 'elasticity.F'"):
        function({"strain": strains()}, {"elasticity.F": 1.0})
    with pytest.raises(FatalError, match=r"'elasticity.E' has the batch \(2,\), .* \(3,\)"):
        function({"strain": strains(3)}, {E: jnp.ones(2)})


def test_what_was_not_compiled_is_an_error_and_no_zero(artifacts: Artifacts) -> None:
    model = Model(artifacts["combined_hardening"])
    function, strain = Function(model), np.array([5e-3, -2e-3, -2e-3, 0.0, 0.0, 0.0])
    inputs = {
        name: jnp.asarray(a) for name, a in model.state().inputs(strain=strain, t=1.0).items()
    }

    def along(name: str, function: Any = function) -> Any:
        return jax.jacfwd(lambda x: function({**inputs, name: x})["stress"])(inputs[name])

    with pytest.raises(FatalError, match=r"-d \S+:strain; or leave the output out"):
        along("strain")
    tangent = model.jacobian({name: np.asarray(a) for name, a in inputs.items()})[1]["stress"]
    np.testing.assert_allclose(along("strain", Function(model, ["stress"])), tangent["strain"])
    with pytest.raises(FatalError, match="stress:t was not compiled"):
        along("t", Function(model, ["stress"]))
    with pytest.raises(UnknownNameError, match="did you mean 'stress'"):
        Function(model, ["stres"])


def test_a_block_of_all_sites_is_refused(artifacts: Artifacts) -> None:
    model = Model(artifacts["grains"])
    strain = state_of("grains", model)["strain"]
    with pytest.raises(FatalError, match="mean_stress:strain was compiled for one change at all"):
        jax.jacfwd(lambda e: Function(model)({"strain": e})["mean_stress"])(strain)


@pytest.mark.parametrize(
    "twice",
    [
        jax.hessian,
        lambda energy: jax.jit(jax.hessian(jax.jit(energy))),
        lambda energy: jax.jacrev(jax.jacrev(energy)),
        lambda energy: jax.hessian(jax.checkpoint(energy)),
        lambda energy: lambda s: jax.jvp(jax.grad(energy), (s,), (s,)),
        lambda energy: jax.hessian(lambda s: jax.vmap(energy)(s[jnp.newaxis]).sum()),
        # jax takes a loop apart, without the rules of custom_jvp.
        lambda energy: jax.hessian(lambda s: jax.lax.map(energy, s).sum()),
        lambda energy: jax.jacrev(jax.jacfwd(lambda s: jax.lax.map(energy, s).sum())),
    ],
)
def test_second_derivatives_are_refused(
    elasticity: Model, twice: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
) -> None:
    function = Function(elasticity)

    def energy(strain: Any) -> Any:
        return (function({"strain": strain})["stress"] ** 2).sum()

    with pytest.raises(FatalError, match="second order are not compiled: differentiate once"):
        twice(energy)(strains(3))


def test_a_failed_solve_is_told_in_the_last_line(
    artifacts: Artifacts, capfd: pytest.CaptureFixture[str]
) -> None:
    model = Model(artifacts["isotropic_hardening"])
    inputs = model.state().inputs(strain=np.full(6, 1e200), t=1.0)
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(jax.jit(Function(model))(inputs))
    lines = str(caught.value).rstrip().splitlines()
    assert lines[-1].startswith("ABORTED: 1 of 1 points did not converge")
    assert "Traceback" not in capfd.readouterr().err


def test_a_result_that_is_not_finite_is_no_error(elasticity: Model) -> None:
    strain = strains(3).at[1, 0].set(jnp.inf)
    stress = jax.jit(Function(elasticity))({"strain": strain})["stress"]
    assert np.isfinite(stress[::2]).all()
    assert not np.isfinite(stress[1]).all()


def test_one_point_in_a_batch_has_a_gradient(elasticity: Model) -> None:
    function = Function(elasticity)
    for batch in ((1,), (1, 1)):
        found = jax.grad(lambda s: function({"strain": s}, {E: 70e3})["stress"].sum())(
            strains(*batch)
        )
        assert found.shape == (*batch, 6)


def test_batches_of_two_maps_broadcast(elasticity: Model) -> None:
    """An array that has the axis of one vmap meets one that has the axis of the other."""
    function, strain, moduli = Function(elasticity), strains(3), jnp.linspace(60e3, 80e3, 4)

    def stress(strain: Any, modulus: Any) -> Any:
        return function({"strain": strain}, {E: modulus})["stress"]

    mapped = jax.vmap(jax.vmap(stress, (0, None)), (None, 0))(strain, moduli)
    given = {"strain": np.broadcast_to(strain, (4, 3, 6))}
    expected = elasticity.forward(given, {E: np.repeat(moduli, 3).reshape(4, 3)})["stress"]
    np.testing.assert_array_equal(mapped, expected)


def test_what_the_model_is_set_to_counts_in_what_was_compiled(elasticity: Model) -> None:
    function, strain = jax.jit(Function(elasticity)), strains(3)
    for modulus in (70e3, 90e3):
        elasticity["E"] = modulus
        expected = elasticity.forward({"strain": strain})["stress"]
        np.testing.assert_array_equal(function({"strain": strain})["stress"], expected)


@pytest.mark.parametrize("transformed", [lambda f: f, jax.jit, jax.vmap, jax.jacrev])
def test_stored_parameters_by_point_must_be_given(elasticity: Model, transformed: Any) -> None:
    """They would pair with the axis of a map, or with points in another order."""
    function, strain = Function(elasticity), strains(3)
    evaluate = transformed(lambda strain: function({"strain": strain})["stress"])
    before = evaluate(strain)
    for moduli in (np.full(3, 70e3), np.full((3, 1), 70e3), np.full(2, 70e3)):
        elasticity["E"] = moduli
        with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="E' was set to values"):
            evaluate(strain)
        given = transformed(lambda strain: function({"strain": strain}, {E: 70e3})["stress"])
        given(strain)
    elasticity["E"] = 70e3
    assert evaluate(strain).shape == before.shape
    given = jax.vmap(lambda strain: function({"strain": strain}, {E: np.full(3, 70e3)})["stress"])
    assert given(strain).shape == (3, 3, 6)


def test_threads_evaluate_at_once(artifacts: Artifacts) -> None:
    model = Model(artifacts["isotropic_hardening"])
    function = jax.jit(Function(model, ["stress"]))

    def evaluated(points: int) -> bool:
        inputs = repeated(state_of("isotropic_hardening", model), points)
        expected = model.forward(inputs)["stress"]
        found = [np.asarray(function(inputs)["stress"]) for _ in range(20)]
        return all(np.array_equal(each, expected) for each in found)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(evaluated, [1, 5, 50, 500, 5, 50]))


def test_what_was_compiled_keeps_the_model_and_lets_it_go(artifacts: Artifacts) -> None:
    def alone(strain: Any) -> Any:
        return Function(Model(artifacts["elasticity"]))({"strain": strain})["stress"]

    strain = strains(3)
    expected = Model(artifacts["elasticity"]).forward({"strain": strain})["stress"]
    compiled = jax.jit(alone)
    for evaluate in (alone, compiled, jax.jit(alone).lower(strain).compile()):
        for _ in range(2):
            gc.collect()
            np.testing.assert_array_equal(evaluate(strain), expected)

    def gone() -> weakref.ref[Model]:
        model = Model(artifacts["elasticity"])
        function = Function(model)

        def stress(strain: Any) -> Any:
            return function({"strain": strain})["stress"]

        jax.block_until_ready(jax.jit(jax.jacfwd(stress))(strain[0]))
        stress(strain)
        return weakref.ref(model)

    known = gone()
    gc.collect()
    assert known() is None


def test_a_model_that_is_closed_is_told(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity"])
    function, strain = jax.jit(Function(model)), strains(3)
    jax.block_until_ready(function({"strain": strain}))
    model.close()
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="'model'"):
        jax.block_until_ready(function({"strain": strain}))
    with pytest.raises(FatalError, match="this Model is closed"):
        function({"strain": strains(4)})


def test_single_precision_of_jax_is_told(elasticity: Model) -> None:
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(FatalError, match="jax_enable_x64"):
            Function(elasticity)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_a_model_of_single_precision_needs_no_double_one(exported: Path) -> None:
    model = Model(exported / "single", dtype="float32")
    shares = RANDOM.uniform(0.1, 0.4, (3, 4)).astype(np.float32)
    strain = RANDOM.normal(0, 1e-3, (3, 6)).astype(np.float32)
    expected = model.forward({"fractions": shares, "strain": strain})["stress"]
    jax.config.update("jax_enable_x64", False)
    try:
        law = Function(model)

        def stress(given: Any) -> Any:
            return law({"fractions": given, "strain": strain})["stress"]

        np.testing.assert_array_equal(jax.jit(stress)(shares), expected)
        along = jax.jit(lambda x, t: jax.jvp(stress, (x,), (t,))[1])(shares, shares)
    finally:
        jax.config.update("jax_enable_x64", True)
    assert along.dtype == np.float32
    found = model.jvp({"fractions": shares, "strain": strain}, {"fractions": shares})[1]["stress"]
    np.testing.assert_allclose(along, found, rtol=1e-5, atol=1e-6 * np.abs(found).max())


def test_the_example_recovers_the_truth(artifacts: Artifacts) -> None:
    pytest.importorskip("scipy")
    command = [sys.executable, "-I", str(EXAMPLE), str(artifacts["isotropic_hardening"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("recovered E = 180000.0 MPa, yield_stress = 120.0 MPa\n")


def test_a_history_is_a_function_of_its_parameters() -> None:
    """A tension test and its gradient, under jit; lateral strains move with the parameters."""
    steel = Model(examples.path("isotropic_hardening"))
    times = np.linspace(0, 10, 11)
    tension = partial(experiments.tension, steel, times, 0.01)
    history = driven(tension, ["stress", "strain"])

    def loss(E: Any, yield_stress: Any) -> Any:
        found = history({"E": E, "yield_stress": yield_stress})
        return found["stress"][-1, 0] + 1e4 * found["strain"][5, 1]

    value, slopes = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(190e3, 140.0)
    names = {"E": 190e3, "yield_stress": 140.0}
    results = tension(parameters=names, derivatives=list(names))
    assert value == pytest.approx(results["stress"][-1, 0] + 1e4 * results["strain"][5, 1])
    for name, slope in zip(names, slopes, strict=True):
        along = results.derivative("stress", name)[-1, 0]
        across = results.derivative("strain", name)[5, 1]
        assert slope == pytest.approx(along + 1e4 * across)
    many = history({"E": jnp.array([180e3, 190e3, 200e3])})
    assert many["stress"].shape == (11, 3, 6)


def test_a_history_has_the_batch_of_its_parameters_and_forces() -> None:
    """Six sets of parameters were taken for the components of the stress, and refused by XLA."""
    steel = Model(examples.path("isotropic_hardening"))
    times = np.linspace(0, 10, 6)
    tension = partial(experiments.tension, steel, times, 0.01)
    strain = np.outer(times, [1e-3, 2e-3, 3e-3])[..., None] * np.eye(6)[0]
    pulled = partial(drive, steel, times, {"strain": strain})
    for run in (tension, pulled):
        history = driven(run, ["stress", "strain", "t"])
        for shape in ((), (1,), (3,), (6,), (2, 1)):
            if run is pulled and shape == (6,):
                continue
            values = np.linspace(180e3, 200e3, int(np.prod(shape))).reshape(shape)
            found, expected = history({"E": values}), run(parameters={"E": values})
            for name, array in found.items():
                assert array.shape == expected[name].shape, (name, shape)
                np.testing.assert_allclose(array, expected[name], rtol=1e-12)
            slope = jax.grad(lambda v, h=history: h({"E": v})["stress"].sum())(values)
            asked = run(parameters={"E": values}, derivatives=["E"])
            weights = {"stress": np.ones(expected["stress"].shape)}
            np.testing.assert_allclose(slope, asked.gradient(weights)["E"], rtol=1e-12)
            # The times depend on no parameter.
            assert not jax.grad(lambda v, h=history: h({"E": v})["t"].sum())(values).any()
    with pytest.raises(FatalError, match="parameters must be a mapping"):
        history([200e3])  # type: ignore[arg-type]


def test_a_history_refuses_names_and_shapes_before_it_is_driven() -> None:
    """They were refused in a callback of jax, which told them at the end of a traceback."""
    steel = Model(examples.path("isotropic_hardening"))
    times = np.linspace(0, 10, 6)
    strain = np.outer(times, [1e-3, 2e-3, 3e-3])[..., None] * np.eye(6)[0]
    history = driven(partial(drive, steel, times, {"strain": strain}), ["stress"])
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"foo": 1.0}, "unknown parameter 'foo'"),
        ({"strain": 1.0}, "unknown parameter 'strain'"),
        ({"E": np.full(2, 2e5)}, r"'E' has the batch \(2,\), which does not broadcast"),
    ]
    for parameters, message in wrong:
        for function in (history, jax.jit(history)):
            with pytest.raises(FatalError, match=message):
                function(parameters)
    with pytest.raises(UnknownNameError, match="unknown result 'stres'"):
        driven(partial(drive, steel, times, {"strain": strain}), ["stres"])({"E": 2e5})
    with pytest.raises(jax.errors.JaxRuntimeError, match="parameter 'E' is nan; expected finite"):
        jax.block_until_ready(history({"E": np.nan}))


@pytest.mark.parametrize("compiled", [False, True])
def test_ctrl_c_during_an_evaluation_is_raised(compiled: bool) -> None:
    model = Model(examples.path("chaboche"))
    one = model.state().inputs(strain=[6e-3, -3e-3, -3e-3, 0.0, 0.0, 0.0], t=1.0)
    few, many = (
        {**one, "strain": np.broadcast_to(one["strain"], (count, 6))} for count in (1, 4_000_000)
    )
    function = Function(model)
    evaluate = jax.jit(function) if compiled else function
    stress = evaluate(few)["stress"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            until_interrupted(lambda: jax.block_until_ready(evaluate(many)))
    finally:
        signal.signal(signal.SIGINT, before)
    np.testing.assert_array_equal(evaluate(few)["stress"], stress)


@pytest.mark.parametrize("compiled", [False, True])
def test_ctrl_c_during_a_history_is_raised(elasticity: Model, compiled: bool) -> None:
    def run(parameters: Any = None) -> Any:
        if parameters is not None:
            raise KeyboardInterrupt
        return experiments.tension(elasticity, [0.0, 1.0], 0.01)

    history = driven(run, ["stress"])
    evaluate = jax.jit(history) if compiled else history
    with pytest.raises(KeyboardInterrupt):
        until_interrupted(lambda: jax.block_until_ready(evaluate({E: 70e3})))


def until_interrupted(evaluate: Callable[[], Any]) -> None:
    """Evaluate, and go on after an error of jax: KeyboardInterrupt is raised a moment later."""
    with suppress(jax.errors.JaxRuntimeError, ValueError):
        evaluate()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        pass
