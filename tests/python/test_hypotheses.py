"""Laws under the hypotheses of elements: plane stress, uniaxial stress and the others."""

from __future__ import annotations

import pickle
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest
from differences import central_differences
from native import PREBUILT
from numpy.typing import NDArray
from states import Artifacts, recorded

from neml2_capi import ConvergenceError, FatalError, Model, Results, drive, examples

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]

NAMES = ("xx", "yy", "zz", "yz", "xz", "xy")
FACTORS = dict(zip(NAMES, np.sqrt([1, 1, 1, 2, 2, 2]), strict=True))
#: By hypothesis: components that are given, and components of which the stress vanishes.
HYPOTHESES = {
    "plane_strain": ("xx yy zz xy", ""),
    "axisymmetrical": ("xx yy zz xy", ""),
    "generalised_plane_strain": ("xx yy zz xy", ""),
    "plane_stress": ("xx yy xy", "zz yz xz"),
    "uniaxial": ("xx", "yy zz yz xz xy"),
    "beam": ("xx xz xy", "yy zz yz"),
    "plane_beam": ("xx xy", "yy zz yz xz"),
    "shell": ("xx yy yz xz xy", "zz"),
    "axisymmetrical_generalised_plane_strain": ("xx yy zz", ""),
}


class Law(NamedTuple):
    """A law that is driven by `strain`, in times of which `step` is the length."""

    path: Any
    strain: str = "strain"
    step: float = 1.0
    scale: float = 1.0

    def open(self, hypothesis: str = "tridimensional") -> Model:
        strain = None if hypothesis == "tridimensional" else self.strain
        model = Model(self.path, hypothesis=hypothesis, strain=strain)
        model.options.update({"atol": 1e-13, "rtol": 1e-12, "miters": 50})
        return model


def law_of(name: str, artifacts: Artifacts) -> Law:
    if name == "crystal":
        # The rate of the strain is given, of 1e-3 at the end.
        return Law(artifacts[name], "deformation_rate", 1e-2, 10.0)
    return Law(examples.path(name))


LAWS = ["elasticity", "isotropic_hardening", "chaboche", "crystal"]
STEPS = 6
#: Of the strain at the end.
STRAIN = dict(zip(NAMES, (8e-3, -3e-3, 2e-3, 1e-3, -2e-3, 5e-3), strict=True))


def forces(law: Law, parts: str, model: Model) -> tuple[Array, dict[str, Any]]:
    """Times, and what a law is given: components of its strain by name, that grow and turn back."""
    times = law.step * np.arange(STEPS + 1.0)
    path = np.array([0, 0.3, 0.6, 1.0, 0.7, 0.4, 0.1])
    given: dict[str, Any] = {
        law.strain: {name: law.scale * STRAIN[name] * path for name in parts.split()}
    }
    if "vorticity" in model.inputs.names:
        given["vorticity"] = np.array([0.01, -0.02, 0.015])
    if "elasticity.E" in model.parameters.names:
        times = np.arange(STEPS + 1.0)
    return times, given


def initial(law: Law) -> dict[str, Any]:
    if law.strain == "strain":
        return {}
    state = recorded("crystal", "in")
    return {
        "dislocation_density": state["dislocation_density~1"][0],
        "orientation": state["orientation~1"][0],
    }


def under(law: Law, hypothesis: str) -> tuple[Model, Results]:
    model = law.open(hypothesis)
    times, given = forces(law, HYPOTHESES[hypothesis][0], model)
    return model, drive(model, times, given, initial(law))


def in_three_dimensions(law: Law, hypothesis: str) -> Results:
    """Return the results of drive(), which finds the strains of stresses that vanish."""
    model = law.open()
    given_parts, free = HYPOTHESES[hypothesis]
    times, given = forces(law, given_parts, model)
    control = {f"stress:{law.strain}": dict.fromkeys(free.split(), 0.0)} if free else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # zero strains are meant
        return drive(model, times, given, initial(law), control=control)


def places(parts: str) -> list[int]:
    return [NAMES.index(name) for name in parts.split()]


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_a_law_under_a_hypothesis_is_the_law_with_stresses_that_vanish(
    artifacts: Artifacts, name: str, hypothesis: str
) -> None:
    law = law_of(name, artifacts)
    given, free = HYPOTHESES[hypothesis]
    _, results = under(law, hypothesis)
    expected = in_three_dimensions(law, hypothesis)
    scale = np.abs(expected["stress"]).max()
    stress = np.asarray(expected["stress"])[:, places(given)]
    np.testing.assert_allclose(results["stress"], stress, rtol=0, atol=1e-9 * scale)
    if free:
        strain = np.asarray(expected[law.strain])[:, places(free)]
        largest = np.abs(expected[law.strain]).max()
        # drive() ends at 1e-9 of the stress, which is not quite 1e-9 of the strain.
        np.testing.assert_allclose(
            results[f"{law.strain}_transverse"], strain, rtol=0, atol=2e-9 * largest
        )
    for state in {"equivalent_plastic_strain", "X1", "elastic_strain"} & set(results):
        np.testing.assert_allclose(
            results[state], expected[state], rtol=0, atol=1e-8 * np.abs(expected[state]).max()
        )


def point(law: Law, hypothesis: str) -> tuple[Model, dict[str, Array]]:
    """The inputs of the last step but three, in which plastic laws flow."""
    model, results = under(law, hypothesis)
    times, given = forces(law, HYPOTHESES[hypothesis][0], model)
    last = 3
    inputs = {"t": times[last], "t~1": times[last - 1], "t~2": times[last - 2], **given}
    named = given[law.strain]
    parts = HYPOTHESES[hypothesis][0].split()
    path = np.array([named[part] * FACTORS[part] for part in parts]).T
    inputs[law.strain], inputs[f"{law.strain}~1"] = path[last], path[last - 1]
    for history in model.histories:
        if history.output is not None:
            inputs[history.input] = np.asarray(results[history.output])[last - history.age]
    return model, {name: np.asarray(inputs[name]) for name in model.inputs.names}


@pytest.mark.parametrize(
    "name", [*LAWS[:-1], pytest.param("crystal", marks=pytest.mark.full("seconds for each"))]
)
@pytest.mark.parametrize(
    "hypothesis", ["plane_strain", "plane_stress", "uniaxial", "beam", "plane_beam", "shell"]
)
def test_condensed_derivatives_are_differences(
    artifacts: Artifacts, name: str, hypothesis: str
) -> None:
    law = law_of(name, artifacts)
    model, inputs = point(law, hypothesis)
    _, blocks = model.jacobian(inputs)
    checked = 0
    for output, by_input in blocks.items():
        for variable, block in by_input.items():
            if model.inputs[variable].sub_batch_shape or variable.startswith("t~"):
                continue
            largest = max(np.abs(inputs[variable]).max(), 1e-3)

            def of(value: Array, output: str = output, variable: str = variable) -> Array:
                return np.asarray(model.forward({**inputs, variable: value})[output])

            axes, step = len(model.inputs[variable].base_shape), 1e-3 * largest
            expected = central_differences(of, inputs[variable][None], step, axes)[0]
            noise = 1e-12 * np.abs(of(inputs[variable])).max() / step
            np.testing.assert_allclose(
                block,
                expected,
                rtol=0,
                atol=1e-6 * np.abs(expected).max() + noise,
                err_msg=f"{output}:{variable}",
            )
            checked += 1
    assert checked > 0
    assert "stress" in blocks and law.strain in blocks["stress"]


@pytest.mark.parametrize("hypothesis", ["plane_strain", "plane_stress", "uniaxial"])
def test_products_are_products_with_the_jacobian(hypothesis: str, artifacts: Artifacts) -> None:
    model, inputs = point(law_of("chaboche", artifacts), hypothesis)
    random = np.random.default_rng(0)
    tangents = {name: 1e-3 * random.standard_normal(np.shape(inputs[name])) for name in inputs}
    outputs, blocks = model.jacobian(inputs)
    _, along = model.jvp(inputs, tangents)
    for output, by_input in blocks.items():
        expected = sum(
            np.tensordot(block, tangents[variable], np.ndim(tangents[variable]))
            for variable, block in by_input.items()
        )
        np.testing.assert_allclose(
            along[output], expected, rtol=0, atol=1e-9 * np.abs(expected).max()
        )
    cotangents = {name: random.standard_normal(np.shape(value)) for name, value in outputs.items()}
    _, adjoints = model.vjp(inputs, cotangents)
    for variable in blocks["stress"]:
        expected = sum(
            np.tensordot(cotangents[output], by_input[variable], np.ndim(cotangents[output]))
            for output, by_input in blocks.items()
        )
        np.testing.assert_allclose(
            adjoints[variable], expected, rtol=0, atol=1e-9 * max(np.abs(expected).max(), 1e-9)
        )


def test_gradients_by_parameters_are_differences(artifacts: Artifacts) -> None:
    model, inputs = point(law_of("isotropic_hardening", artifacts), "plane_stress")
    _, blocks = model.param_jacobian(inputs)
    for name in model.parameters.names:
        value = np.asarray(model.named_parameters()[name])

        def of(values: Array, name: str = name) -> Array:
            return np.asarray(model.forward(inputs, {name: values})["stress"])

        expected = central_differences(of, value[None], 1e-4 * float(value), 0)[0]
        found = blocks["stress"][name]
        np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


def many(inputs: dict[str, Array], points: int, seed: int = 0) -> dict[str, Array]:
    """Different points around one."""
    random = np.random.default_rng(seed)
    some = {}
    for name, value in inputs.items():
        some[name] = np.repeat(value[None], points, 0)
        if name == "strain":
            some[name] *= 0.2 + random.random((points, 1))
        if (
            name == "X1~1"
        ):  # shears are left over at some points, and at others they vanish by themselves
            some[name][::3, 3:] += [2.0, -3.0, 1.0]
    return some


@pytest.mark.parametrize("hypothesis", ["plane_stress", "uniaxial", "plane_strain"])
def test_a_point_has_the_same_bits_in_any_batch(artifacts: Artifacts, hypothesis: str) -> None:
    model, inputs = point(law_of("chaboche", artifacts), hypothesis)
    some = many(inputs, 77)
    whole, tangents = model.jacobian(some)
    for chunk, threads in ((0, 1), (5, 1), (16, 2)):
        model.options.update({"chunk": chunk, "threads": threads})
        again, blocks = model.jacobian({name: value[3:50] for name, value in some.items()})
        for name, value in whole.items():
            np.testing.assert_array_equal(again[name], value[3:50])
        np.testing.assert_array_equal(
            blocks["stress"]["strain"], tangents["stress"]["strain"][3:50]
        )
    for points in (slice(8, 9), slice(20, 22)):
        again = model.forward({name: value[points] for name, value in some.items()})
        for name, value in whole.items():
            np.testing.assert_array_equal(again[name], value[points])


@pytest.mark.parametrize("name", ["elasticity", "isotropic_hardening", "chaboche"])
@pytest.mark.parametrize("hypothesis", ["plane_stress", "uniaxial", "beam", "plane_beam", "shell"])
def test_free_strains_take_few_iterations(artifacts: Artifacts, name: str, hypothesis: str) -> None:
    """Lanes solve for the unknowns and the free strains at once."""
    law = law_of(name, artifacts)
    model, inputs = point(law, hypothesis)
    some = many(inputs, 16)
    results, report = model.evaluate(some)
    given, free = (places(parts) for parts in HYPOTHESES[hypothesis])
    whole = law.open()
    full = {}
    for variable in whole.inputs:
        value = some[variable.name]
        base = variable.name.partition("~")[0]
        if base in ("strain", "stress"):
            value = np.zeros((16, 6))
            value[:, given] = some[variable.name]
            if variable.name == "strain~1":
                value[:, free] = some["strain_transverse~1"]
            elif base == "strain":
                value[:, free] = results["strain_transverse"]
        full[variable.name] = value
    alone = whole.evaluate(full)[1]["iterations"]
    more = 16 if name == "elasticity" else 0.2 * alone.sum()  # which needs one for the strains
    assert report["iterations"].sum() <= alone.sum() + more, (report["iterations"], alone)


@pytest.mark.parametrize("hypothesis", ["plane_stress", "uniaxial", "shell", "plane_strain"])
@pytest.mark.parametrize("name", ["elasticity", "isotropic_hardening", "chaboche"])
def test_lanes_and_rounds_give_the_same(artifacts: Artifacts, name: str, hypothesis: str) -> None:
    """Without kernels, each round of a Newton's method around the law's solves the law again."""
    model, inputs = point(law_of(name, artifacts), hypothesis)
    some = many(inputs, 9)
    in_lanes, tangents = model.jacobian(some)
    model.options["kernels"] = "off"
    in_rounds, others = model.jacobian(some)
    for output, value in in_rounds.items():
        scale = max(np.abs(value).max(), 1e-12)
        np.testing.assert_allclose(in_lanes[output], value, rtol=0, atol=1e-9 * scale)
        for variable, block in others[output].items():
            # Where terms of 1e5 cancel each other, their round-off is left.
            found, scale = tangents[output][variable], np.abs(block).max() + 0.1
            np.testing.assert_allclose(found, block, rtol=0, atol=1e-8 * scale)


def test_points_that_fail_are_named_and_the_others_are_solved(artifacts: Artifacts) -> None:
    model, inputs = point(law_of("chaboche", artifacts), "plane_stress")
    some = many(inputs, 9)
    good = model.forward(some)
    some["strain"][4] *= 1e6
    some["strain"][6, 0] = np.nan
    with pytest.raises(ConvergenceError, match=r"point 4") as caught:
        model.forward(some)
    report = caught.value.report
    others = [0, 1, 2, 3, 5, 7, 8]
    assert report["status"][4] in (2, 3)
    assert report["status"][6] == 1
    assert report["suggested_cut"][4] in (0.25, 0.5)
    np.testing.assert_array_equal(np.asarray(report["status"])[others], 0)
    np.testing.assert_array_equal(caught.value.outputs["stress"][others], good["stress"][others])
    assert np.isnan(caught.value.outputs["stress"][4]).all()


@pytest.mark.parametrize("kernels", ["off", "auto"])
@pytest.mark.parametrize("hypothesis", ["plane_stress", "uniaxial"])
def test_what_was_not_found_of_a_point_that_is_no_number_is_none(
    hypothesis: str, kernels: str
) -> None:
    model = Model(PREBUILT / "elasticity", hypothesis=hypothesis)
    model.options["kernels"] = kernels
    (given,) = model.inputs
    strain = np.full((3, *given.point_shape), 1e-3)
    strain.reshape(3, -1)[1, 0] = np.nan
    with pytest.warns(RuntimeWarning, match="point 1"):
        outputs = model.forward({given.name: strain})
    found = outputs["strain_transverse"]
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[[0, 2]]).all()


def test_plane_stress_of_elasticity_is_a_closed_form() -> None:
    model = Model(PREBUILT / "elasticity", hypothesis="plane_stress")
    whole = Model(PREBUILT / "elasticity")
    stiffness = np.asarray(whole.jacobian({"strain": np.zeros(6)})[1]["stress"]["strain"])
    lame, twice_mu = stiffness[0, 1], stiffness[5, 5]
    nu = lame / (2 * lame + twice_mu)
    young = twice_mu * (1 + nu)
    strain = np.array([1e-3, -4e-4, 5e-4])
    outputs, blocks = model.jacobian({"strain": strain})
    plane = young / (1 - nu**2) * np.array([[1, nu, 0], [nu, 1, 0], [0, 0, 1 - nu]])
    np.testing.assert_allclose(blocks["stress"]["strain"], plane, atol=1e-10 * young)
    np.testing.assert_allclose(outputs["stress"], plane @ strain, rtol=1e-10)
    through = -nu / (1 - nu) * (strain[0] + strain[1])
    np.testing.assert_allclose(outputs["strain_transverse"], [through, 0, 0], atol=1e-15)


def test_variables_tell_the_components() -> None:
    model = Model(examples.path("chaboche"), hypothesis="plane_stress")
    assert model.inputs["strain"].base_shape == (3,)
    assert model.inputs["strain"].type == "SR2(xx, yy, xy)"
    assert model.outputs["strain_transverse"].type == "SR2(zz, yz, xz)"
    assert model.inputs["X1~1"].base_shape == (6,)
    pairs = {history.input: history.output for history in model.histories}
    assert pairs["strain_transverse~1"] == "strain_transverse"
    assert "stress_transverse" not in model.outputs.names
    strip = Model(examples.path("chaboche"), hypothesis="plane_strain")
    assert strip.outputs["stress_transverse"].type == "SR2(yz, xz)"
    # A law without a history needs none.
    assert Model(examples.path("elasticity"), hypothesis="uniaxial").inputs.names == ["strain"]


def test_a_model_travels_with_its_hypothesis() -> None:
    model = Model(examples.path("elasticity"), hypothesis="uniaxial")
    again = pickle.loads(pickle.dumps(model))
    strain = np.array([1e-3])
    np.testing.assert_array_equal(
        again.forward({"strain": strain})["stress"], model.forward({"strain": strain})["stress"]
    )


def test_none_is_the_law_as_it_is() -> None:
    path = examples.path("elasticity")
    for choice in ("hypothesis", "strain_measure", "stress_measure", "material_axes"):
        model, plain = Model(path, **{choice: None}), Model(path)  # type: ignore[arg-type]
        assert model.inputs.names == plain.inputs.names
        assert pickle.loads(pickle.dumps(model)).inputs.names == plain.inputs.names


def test_a_hypothesis_that_cannot_be_is_refused(artifacts: Artifacts) -> None:
    with pytest.raises(FatalError, match=r"did you mean 'plane_stress'"):
        Model(examples.path("elasticity"), hypothesis="plane_stres")
    with pytest.raises(FatalError, match=r"no input can be the strain"):
        Model(artifacts["crystal"], hypothesis="plane_stress")
    with pytest.raises(FatalError, match=r"needs the derivative 'stress:strain'"):
        Model(PREBUILT / "viscoplastic", hypothesis="plane_stress")
    with pytest.raises(FatalError, match=r"has no input 'strian'"):
        Model(examples.path("elasticity"), hypothesis="plane_stress", strain="strian")
    with pytest.raises(FatalError, match=r"shape \(\) per point"):
        Model(examples.path("chaboche"), hypothesis="plane_stress", strain="t")
    model = Model(examples.path("chaboche"), hypothesis="plane_stress")
    rest = {variable.name: np.zeros(variable.point_shape) for variable in model.inputs}
    with pytest.raises(FatalError, match="Open the law as it is"):
        model.solve(rest)
    model.options["convergence"] = "batch"
    with pytest.raises(FatalError, match="convergence = point"):
        model.forward(rest)
    with pytest.raises(FatalError, match="of small strains"):
        Model(examples.path("chaboche"), hypothesis="plane_stress", strain_measure="logarithmic")


def test_an_isotropic_law_in_turned_axes_is_the_same_law() -> None:
    angle = np.pi / 6
    c, s = np.cos(angle), np.sin(angle)
    axes = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    times, strain = np.arange(4.0), np.linspace(0, 1, 4)[:, None] * [8e-3, -3e-3, 4e-3]
    results = [
        drive(
            Model(examples.path("chaboche"), hypothesis="plane_stress", material_axes=turned),
            times,
            {"strain": strain, **({"material_axes": axes} if turned else {})},
        )
        for turned in (False, True)
    ]
    for name in ("stress", "strain_transverse", "X1"):
        expected, found = (np.asarray(each[name]) for each in results)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
