"""Laws of small strain under large deformation, and in axes of their material."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from conftest import Artifacts
from differences import central_differences
from numpy.typing import NDArray
from states import recorded

from neml2_capi import ConvergenceError, Device, Model, Scheduler, drive, mandel
from neml2_capi.errors import FatalError, UnknownNameError

Array = NDArray[np.float64]

E, NU = 200e3, 0.25  # of the shipped elasticity
MU, LAME = E / 2 / (1 + NU), E * NU / (1 + NU) / (1 - 2 * NU)
MEASURES = ("logarithmic", "green_lagrange", "corotational")
STRESSES = {
    "pk1": "pk1_stress",
    "cauchy": "cauchy_stress",
    "pk2": "pk2_stress",
    "kirchhoff": "kirchhoff_stress",
}


def rotation(angle: float, axis: int = 2) -> Array:
    i, j = (axis + 1) % 3, (axis + 2) % 3
    turn = np.eye(3)
    turn[i, i] = turn[j, j] = np.cos(angle)
    turn[j, i], turn[i, j] = np.sin(angle), -np.sin(angle)
    return turn


#: By 90 degrees, and any.
ROTATIONS = (rotation(np.pi / 2), rotation(0.7, 0) @ rotation(-1.1, 1) @ rotation(0.4))


def shear(amount: float) -> Array:
    gradient = np.eye(3)
    gradient[0, 1] = amount
    return gradient


def elastic(artifacts: Artifacts, measure: str, stress: str) -> tuple[Model, str]:
    model = Model(artifacts["elasticity_parameters"], strain_measure=measure, stress_measure=stress)
    model["elasticity.E"], model["elasticity.nu"] = E, NU
    return model, STRESSES[stress]


# ---- closed forms ----


@pytest.mark.parametrize("turn", [np.eye(3), *ROTATIONS])
def test_hencky_in_simple_shear_is_its_closed_form(artifacts: Artifacts, turn: Array) -> None:
    model, name = elastic(artifacts, "logarithmic", "kirchhoff")
    amounts = np.array([1e-6, 0.1, 0.5, 1.0, 2.0])
    outputs = model(deformation_gradient=np.stack([turn @ shear(a) for a in amounts]))
    size, root = 2 * MU * np.arcsinh(amounts / 2), np.sqrt(4 + amounts**2)
    expected = np.zeros((5, 3, 3))
    expected[:, 0, 0], expected[:, 1, 1] = size * amounts / root, -size * amounts / root
    expected[:, 0, 1] = expected[:, 1, 0] = 2 * size / root
    np.testing.assert_allclose(
        mandel.to_tensor(outputs[name]), turn @ expected @ turn.T, rtol=1e-10, atol=1e-10 * MU
    )


@pytest.mark.parametrize("turn", [np.eye(3), *ROTATIONS])
def test_hencky_in_tension_to_three_is_its_closed_form(artifacts: Artifacts, turn: Array) -> None:
    model, name = elastic(artifacts, "logarithmic", "pk1")
    stretches = np.array([0.3, 0.9, 1.5, 3.0])
    gradients = np.stack([turn @ np.diag([a, a**-NU, a**-NU]) for a in stretches])
    outputs = model(deformation_gradient=gradients)
    expected = np.zeros((4, 3, 3))
    expected[:, 0, 0] = E * np.log(stretches) / stretches
    np.testing.assert_allclose(outputs[name], turn @ expected, rtol=1e-10, atol=1e-10 * E)
    np.testing.assert_allclose(outputs["strain"][:, 0], np.log(stretches), rtol=1e-13)


@pytest.mark.parametrize("turn", [np.eye(3), *ROTATIONS])
def test_saint_venant_kirchhoff_is_its_closed_form(artifacts: Artifacts, turn: Array) -> None:
    model, name = elastic(artifacts, "green_lagrange", "pk1")
    gradients = np.stack([turn @ shear(2.0), turn @ np.diag([3.0, 0.8, 1.1])])
    green = (np.swapaxes(gradients, -1, -2) @ gradients - np.eye(3)) / 2
    trace = np.trace(green, axis1=-2, axis2=-1)[:, np.newaxis, np.newaxis]
    expected = gradients @ (2 * MU * green + LAME * trace * np.eye(3))
    np.testing.assert_allclose(
        model(deformation_gradient=gradients)[name], expected, rtol=1e-10, atol=1e-10 * E
    )


# ---- laws with a history ----


def path(steps: int) -> Array:
    """A pull and a shear together, of 20 %."""
    return np.stack(
        [shear(0.2 * s) @ np.diag([1 + 0.2 * s, 1, 1]) for s in np.arange(1, steps + 1) / steps]
    )


def followed(model: Model, gradients: Array, name: str) -> list[Array]:
    state, stresses = model.state(1), []
    for step, gradient in enumerate(gradients):
        inputs = state.inputs(deformation_gradient=gradient[np.newaxis], t=0.1 * (step + 1))
        outputs = model.forward(inputs)
        state.advance(outputs)
        stresses.append(np.asarray(outputs[name])[0])
    return stresses


@pytest.mark.parametrize("measure", MEASURES)
def test_a_law_with_history_is_objective(artifacts: Artifacts, measure: str) -> None:
    model = Model(artifacts["chaboche"], strain_measure=measure)
    straight = followed(model, path(6), "pk1_stress")
    turns = [rotation(np.pi / 12 * (k + 1)) @ rotation(0.1 * k, 0) for k in range(6)]
    turned = followed(model, np.stack(turns) @ path(6), "pk1_stress")
    for turn, before, after in zip(turns, straight, turned, strict=True):
        np.testing.assert_allclose(after, turn @ before, rtol=0, atol=1e-12 * abs(before).max())


def test_the_law_sees_the_logarithmic_strain(artifacts: Artifacts) -> None:
    law, model = (
        Model(artifacts["chaboche"]),
        Model(artifacts["chaboche"], strain_measure="corotational", stress_measure="cauchy"),
    )
    gradients = path(6)
    stresses = followed(model, gradients, "cauchy_stress")
    state = law.state(1)
    for step, gradient in enumerate(gradients):
        left, stretches, right = np.linalg.svd(gradient)
        strain = mandel.from_tensor((right.T * np.log(stretches)) @ right)
        outputs = law.forward(state.inputs(strain=strain[np.newaxis], t=0.1 * (step + 1)))
        state.advance(outputs)
        turn = left @ right
        expected = turn @ mandel.to_tensor(outputs["stress"])[0] @ turn.T
        np.testing.assert_allclose(
            mandel.to_tensor(stresses[step]), expected, rtol=1e-10, atol=1e-10 * abs(expected).max()
        )


# ---- derivatives ----


def stretched(a: float, b: float, c: float) -> Array:
    axes = rotation(0.3) @ rotation(0.9, 0)
    result: Array = ROTATIONS[1] @ axes @ np.diag([a, b, c]) @ axes.T
    return result


AXES = rotation(np.pi / 6).T  # rows: the axes of a material turned by 30 degrees

GAPS = (1e-3, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14, 1e-16)
GRADIENTS = np.stack(
    [
        shear(2.0),
        np.eye(3),
        np.diag([3.0, 0.6, 0.6]),
        *(stretched(1.2, 1.2 + gap, 0.9) for gap in GAPS),
        *(stretched(1.1, 1.1 + gap, 1.1 - gap) for gap in GAPS),
    ]
)


@pytest.mark.parametrize("stress", STRESSES)
@pytest.mark.parametrize("measure", MEASURES)
def test_the_tangent_is_what_differences_say(
    artifacts: Artifacts, measure: str, stress: str
) -> None:
    model, name = elastic(artifacts, measure, stress)

    def forward(gradients: Array) -> Array:
        outputs = model(deformation_gradient=gradients)
        return np.asarray(outputs[name])

    block = model.jacobian({"deformation_gradient": GRADIENTS})[1][name]["deformation_gradient"]
    expected = central_differences(forward, GRADIENTS, 1e-3, 2)
    np.testing.assert_allclose(block, expected, rtol=0, atol=1e-7 * abs(expected).max())


@pytest.mark.parametrize("measure", MEASURES)
def test_all_derivatives_of_a_law_with_history_are_what_differences_say(
    artifacts: Artifacts, measure: str
) -> None:
    model = Model(artifacts["isotropic_hardening"], strain_measure=measure)
    state = model.state(2)
    first, second = np.stack([path(4)[1], ROTATIONS[1] @ path(4)[1]]), path(4)[2]
    outputs = model.forward(
        state.inputs(deformation_gradient=0.01 * first + 0.99 * np.eye(3), t=0.1)
    )
    state.advance(outputs)
    inputs = state.inputs(
        deformation_gradient=0.01 * np.stack([second, ROTATIONS[1] @ second]) + 0.99 * np.eye(3),
        t=np.full(2, 0.2),
    )
    _, blocks = model.jacobian(inputs)
    for output, by in blocks.items():
        for name, block in by.items():

            def forward(value: Array, output: str = output, name: str = name) -> Array:
                return np.asarray(model.forward({**inputs, name: value})[output])

            value = np.broadcast_to(inputs[name], (2, *model.inputs[name].point_shape)).copy()
            step = 1e-6 * max(1.0, abs(value).max())
            expected = central_differences(forward, value, step, value.ndim - 1)
            np.testing.assert_allclose(
                block,
                expected,
                rtol=0,
                atol=1e-6 * max(1e-3, abs(expected).max()),
                err_msg=f"{output} by {name}",
            )


def test_products_are_those_of_the_blocks(artifacts: Artifacts) -> None:
    model, rng = (
        Model(artifacts["isotropic_hardening"], strain_measure="logarithmic"),
        np.random.default_rng(7),
    )
    inputs: dict[str, Any] = model.state(4).inputs(
        deformation_gradient=np.eye(3) + 0.003 * rng.normal(size=(4, 3, 3)), t=np.full(4, 0.1)
    )
    _, blocks = model.jacobian(inputs)
    tangents = {name: rng.normal(size=np.shape(value)) for name, value in inputs.items()}
    _, jvps = model.jvp(inputs, tangents)
    outputs = model.forward(inputs)
    cotangents = {name: rng.normal(size=value.shape) for name, value in outputs.items()}
    _, adjoints = model.vjp(inputs, cotangents)
    for output, by in blocks.items():
        rows = outputs[output].size // 4
        expected = sum(
            block.reshape(4, rows, -1) @ tangents[name].reshape(4, -1, 1)
            for name, block in by.items()
        )
        np.testing.assert_allclose(
            jvps[output].reshape(4, rows, 1), expected, rtol=1e-9, atol=1e-9 * abs(expected).max()
        )
    for name, adjoint in adjoints.items():
        expected = sum(
            np.swapaxes(by[name].reshape(4, outputs[output].size // 4, -1), -1, -2)
            @ cotangents[output].reshape(4, -1, 1)
            for output, by in blocks.items()
            if name in by
        )
        np.testing.assert_allclose(
            adjoint.reshape(4, -1, 1),
            expected,
            rtol=1e-9,
            atol=1e-9 * abs(expected).max(),
            err_msg=name,
        )


def test_blocks_by_parameters_are_what_differences_say(artifacts: Artifacts) -> None:
    model, name = elastic(artifacts, "logarithmic", "pk1")
    gradients = np.stack([shear(0.5), np.diag([1.5, 0.8, 1.0])])
    _, blocks = model.param_jacobian({"deformation_gradient": gradients})

    def of(value: float) -> Array:
        return np.asarray(
            model.forward({"deformation_gradient": gradients}, {"elasticity.nu": np.array(value)})[
                name
            ]
        )

    expected = (of(NU + 1e-5) - of(NU - 1e-5)) / 2e-5
    np.testing.assert_allclose(blocks[name]["elasticity.nu"], expected, rtol=1e-7, atol=1e-7 * E)


# ---- points ----


def test_a_point_that_is_turned_inside_out_fails_alone(artifacts: Artifacts) -> None:
    model = Model(artifacts["isotropic_hardening"], strain_measure="logarithmic")
    gradients = np.eye(3) + 0.003 * np.random.default_rng(3).normal(size=(9, 3, 3))
    inputs = model.state(9).inputs(deformation_gradient=gradients, t=0.1)
    good = model.forward(inputs)
    bad = gradients.copy()
    bad[4], bad[7] = np.diag([-1.0, 1.0, 1.0]), np.zeros((3, 3))
    with pytest.raises(
        ConvergenceError, match=r"point 4.*'deformation_gradient' is -1.*above 0"
    ) as error:
        model.forward({**inputs, "deformation_gradient": bad})
    failed = np.array([4, 7])
    np.testing.assert_array_equal(np.flatnonzero(error.value.report["status"]), failed)
    for name, value in error.value.outputs.items():
        others = np.delete(np.asarray(value), failed, axis=0)
        np.testing.assert_array_equal(others, np.delete(np.asarray(good[name]), failed, axis=0))
        assert np.isnan(np.asarray(value)[failed]).all()


def test_a_failed_point_of_a_call_keeps_what_was_there(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity"], strain_measure="logarithmic")
    gradients, stress = np.stack([np.eye(3), np.diag([-1.0, 1, 1])]), np.full((2, 3, 3), 7.0)
    call = model.bind(
        {"deformation_gradient": gradients}, {"pk1_stress": stress}, derivatives=True, report=True
    )
    with pytest.raises(ConvergenceError):
        call()
    np.testing.assert_array_equal(stress[1], np.full((3, 3), 7.0))
    np.testing.assert_allclose(stress[0], 0, atol=1e-9)
    np.testing.assert_array_equal(call.report["suggested_cut"], [1.0, 0.5])


def test_a_point_has_the_same_bits_in_any_batch(artifacts: Artifacts) -> None:
    model = Model(artifacts["isotropic_hardening"], strain_measure="logarithmic")
    model.options["threads"] = 2
    gradients = np.eye(3) + 0.003 * np.random.default_rng(5).normal(size=(1500, 3, 3))
    outputs, blocks = model.jacobian(
        model.state(1500).inputs(deformation_gradient=gradients, t=0.1)
    )
    for p in (0, 511, 512, 1499):
        alone, block = model.jacobian(
            model.state(1).inputs(deformation_gradient=gradients[p : p + 1], t=0.1)
        )
        np.testing.assert_array_equal(alone["pk1_stress"][0], outputs["pk1_stress"][p])
        for name, each in block["pk1_stress"].items():
            np.testing.assert_array_equal(each[0], blocks["pk1_stress"][name][p])


# ---- all that a model can ----


def test_a_model_of_float32_takes_large_strain(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity_float32"], dtype="float32", strain_measure="logarithmic")
    gradient = shear(0.5).astype(model.inputs["deformation_gradient"].dtype)
    outputs = model(deformation_gradient=gradient)
    twin = Model(artifacts["elasticity"], strain_measure="logarithmic")
    expected = twin(deformation_gradient=shear(0.5))["pk1_stress"]
    np.testing.assert_allclose(outputs["pk1_stress"], expected, rtol=0, atol=1e-6 * E)


def test_a_copy_and_a_scheduler_have_the_view(artifacts: Artifacts) -> None:
    model = Model(artifacts["elasticity"], strain_measure="logarithmic", material_axes=True)
    gradients = np.stack([shear(0.1 * k) for k in range(10)])
    inputs = {"deformation_gradient": gradients, "material_axes": AXES}
    expected = model.forward(inputs)["pk1_stress"]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.forward(inputs)["pk1_stress"], expected)
    spread = Model(
        artifacts["elasticity"],
        scheduler=Scheduler([Device("cpu", batch_size=3)]),
        strain_measure="logarithmic",
        material_axes=True,
    )
    np.testing.assert_array_equal(spread.forward(inputs)["pk1_stress"], expected)


def test_steps_of_a_call_are_those_of_single_calls(artifacts: Artifacts) -> None:
    model = Model(artifacts["chaboche"], strain_measure="logarithmic")
    gradients = np.concatenate([np.eye(3)[np.newaxis], path(6)])[:, np.newaxis]
    times = 0.1 * np.arange(7)
    results = drive(model, times, {"deformation_gradient": gradients})
    expected = np.stack(followed(model, path(6), "pk1_stress"))
    np.testing.assert_allclose(results["pk1_stress"][1:, 0], expected, rtol=1e-12)


# ---- what is refused ----


def test_what_does_not_fit_is_told(artifacts: Artifacts) -> None:
    with pytest.raises(UnknownNameError, match=r"strain measure.*logarithmic"):
        Model(artifacts["elasticity"], strain_measure="log")
    with pytest.raises(FatalError, match="strain_measure"):
        Model(artifacts["elasticity"], stress_measure="pk2")
    for axes in (np.eye(3), 1, "yes"):
        with pytest.raises(FatalError, match="material_axes must be True or False"):
            Model(artifacts["elasticity"], material_axes=axes)  # type: ignore[arg-type]
    with pytest.raises(FatalError, match="Name the variable"):
        Model(artifacts["crystal"], strain_measure="logarithmic")
    model = Model(artifacts["isotropic_hardening"], strain_measure="logarithmic")
    inputs = model.state(1).inputs(deformation_gradient=np.eye(3)[np.newaxis], t=0.1)
    with pytest.raises(FatalError, match="as it is"):
        model.solve(inputs)


# ---- material axes ----


def turned(model: Model, name: str, value: Array, turn: Array) -> Array:
    """A variable of a crystal in other axes, by its type: an orientation is none."""
    variables = {v.name: v for v in (*model.inputs, *model.outputs)}
    if variables[name].type == "SR2":
        return np.asarray(mandel.from_tensor(turn @ mandel.to_tensor(value) @ turn.T))
    return value @ turn.T if variables[name].type == "WR2" else value


def test_a_crystal_in_turned_axes_is_the_turned_loading(artifacts: Artifacts) -> None:
    law = Model(artifacts["crystal"])
    model = Model(artifacts["crystal"], material_axes=True)
    given = recorded("crystal", "in")
    expected, blocks = law.jacobian(given)
    inputs = {name: turned(law, name, value, AXES.T) for name, value in given.items()}
    outputs, of_view = model.jacobian({**inputs, "material_axes": AXES})
    for name, value in expected.items():
        there = turned(law, name, np.asarray(value), AXES.T)
        np.testing.assert_allclose(outputs[name], there, rtol=0, atol=1e-9 * abs(there).max())
    basis = np.asarray(
        turned(law, "stress", np.eye(6), AXES)
    ).T  # of a tensor, to the material's axes
    tangent = np.asarray(blocks["stress"]["deformation_rate"])
    there = basis.T @ tangent @ basis
    np.testing.assert_allclose(
        of_view["stress"]["deformation_rate"], there, rtol=0, atol=1e-9 * abs(there).max()
    )
