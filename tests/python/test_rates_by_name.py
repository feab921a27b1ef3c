"""Variables that are rates or increments by their name: hosts and strain measures guess none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neml2_capi import Model
from neml2_capi._ffi.errors import FatalError
from neml2_capi.plugin import make
from neml2_capi.umat import DraftError, draft
from neml2_capi.umat.guess import is_change

torch = pytest.importorskip("torch")

from neml2_capi import export  # noqa: E402

pytestmark = [pytest.mark.full("laws are exported by torch"), pytest.mark.native]

CHANGES = (
    *("strain_rate", "strainRate", "Strain-Rates", "rate_of_strain", "strain_dot", "delta_strain"),
    *("strain_increment", "dstrain", "d_rate/strain", "stress_rate", "stressrate"),
)
WHOLE = ("strain", "total_strain", "E_strain", "saturated_strain", "separate_stress", "adstrain")

Tensors = Mapping[str, Any]


def of_rate(strain: str, stress: str) -> Callable[[Tensors, Tensors], dict[str, Any]]:
    def law(inputs: Tensors, parameters: Tensors) -> dict[str, Any]:
        return {stress: inputs["stress~1"] + 2e5 * inputs[strain] * (inputs["t"] - inputs["t~1"])}

    return law


@pytest.fixture(scope="module")
def law(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    folder = tmp_path_factory.mktemp("laws")

    def made(strain: str, stress: str) -> Path:
        place = folder / f"{strain}_{stress}"
        if not place.exists():
            inputs = {strain: "SR2", "stress~1": "SR2", "t": "Scalar", "t~1": "Scalar"}
            if stress != "stress":
                del inputs["stress~1"], inputs["t"], inputs["t~1"]
            declared: dict[str, Any] = {"inputs": inputs, "outputs": {stress: "SR2"}}
            of = of_rate(strain, stress) if stress == "stress" else (lambda e: 2e5 * e)
            export.model(of, place, **declared, kernels="only")
        return place

    return made


def test_a_name_says_whether_it_is_a_rate() -> None:
    assert [name for name in CHANGES if not is_change(name)] == []
    assert [name for name in WHOLE if is_change(name)] == []


@pytest.mark.parametrize("name", ["strain_rate", "strain_increment"])
def test_hosts_pass_no_rate_of_the_strain(
    law: Callable[[str, str], Path], tmp_path: Path, name: str
) -> None:
    """The plug-in gave the strain as the rate."""
    told = f"The input '{name}' is a rate or an increment by its name, and hosts pass strains"
    for refused in (
        lambda: draft(law(name, "stress")),
        lambda: make(law(name, "stress"), tmp_path / "librate.so"),
    ):
        with pytest.raises(DraftError, match=told) as error:
            refused()
        assert "with the inputs 'strain' and 'strain~1'" in str(error.value)
        assert "say so with --strain" in str(error.value)
    assert not (tmp_path / "librate.so").exists()
    assert f"strain = '{name}'" in draft(law(name, "stress"), strain=name)


def test_hosts_take_no_rate_of_the_stress(law: Callable[[str, str], Path]) -> None:
    told = "The output 'stress_rate' is a rate or an increment by its name, and hosts take stresses"
    with pytest.raises(DraftError, match=told):
        draft(law("strain", "stress_rate"))
    assert "stress = 'stress_rate'" in draft(law("strain", "stress_rate"), stress="stress_rate")


@pytest.mark.parametrize(
    "strain, stress, told",
    [
        ("strain_rate", "stress", "the input 'strain_rate' is a rate or an increment by its name"),
        ("dstrain", "stress", "the input 'dstrain' is a rate or an increment by its name"),
        ("strain", "stress_rate", "the output 'stress_rate' is a rate or an increment"),
    ],
)
def test_a_strain_measure_has_no_rate(
    law: Callable[[str, str], Path], strain: str, stress: str, told: str
) -> None:
    with pytest.raises(FatalError, match=told):
        Model(law(strain, stress), strain_measure="logarithmic")
    named = Model(law(strain, stress), strain_measure="logarithmic", strain=strain, stress=stress)
    assert "deformation_gradient" in named.inputs.names


def test_names_of_whole_strains_are_guessed(law: Callable[[str, str], Path]) -> None:
    assert "strain = 'saturated_strain'" in draft(law("saturated_strain", "stress"))
    measured = Model(law("saturated_strain", "stress"), strain_measure="logarithmic")
    assert "deformation_gradient" in measured.inputs.names


def test_a_hypothesis_solves_for_the_rate(law: Callable[[str, str], Path]) -> None:
    """The rate is what the caller passes, by its name."""
    model = Model(law("strain_rate", "stress"), hypothesis="uniaxial")
    inputs = {name: np.zeros(model.inputs[name].point_shape) for name in model.inputs.names}
    inputs |= {"strain_rate": np.array([1e-3]), "t": np.array(2.0)}
    outputs = model.forward(inputs)
    np.testing.assert_allclose(outputs["stress"], [400.0], rtol=1e-12)
    np.testing.assert_allclose(outputs["strain_rate_transverse"], 0, atol=1e-12)
