"""Drafts of the mapping files of a plug-in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from native import PREBUILT, ROOT

from neml2_capi import examples
from neml2_capi._ffi.variables import Derivative, History, Variable, Variables
from neml2_capi.plugin import make
from neml2_capi.umat import DraftError, draft
from neml2_capi.umat.guess import guess
from neml2_capi.umat.properties import KEYS

pytestmark = pytest.mark.native


def test_the_draft_of_a_law_with_history_is_complete(tmp_path: Path) -> None:
    lines = draft(PREBUILT / "combined_hardening", tmp_path / "steel.nml").splitlines()
    for line in (
        "!   *MATERIAL, NAME=STEEL",
        "!   *DEPVAR",
        "!   13,",
        "!   *USER MATERIAL, CONSTANTS=2, UNSYMM",
        "!   200000, 150",
        "!   1          equivalent_plastic_strain: scalar",
        "!   2 to 7     X1: symmetric; 11, 22, 33, 12, 13, 23; shear not doubled",
        "! The order is UMAT's; VUMAT and Kratos have 11, 22, 33, 12, 23, 13. An offset",
        "  strain = 'strain'  ! STRAN + DSTRAN",
        "  stress = 'stress'",
        "  time = 't'  ! TIME(2) + DTIME",
        "&state name = 'equivalent_plastic_strain', kind = 'scalar', statev = 1 /",
        "&state name = 'X1', kind = 'symmetric', statev = 2 /",
        "&state name = 'X2', kind = 'symmetric', statev = 8 /",
        "&parameter name = 'E', props = 1 /",
        "&parameter name = 'yield_stress', props = 2 /",
    ):
        assert line in lines
    assert not any("predef" in line for line in lines)


def test_the_draft_of_a_law_without_history_has_no_states(tmp_path: Path) -> None:
    text = draft(PREBUILT / "elasticity", tmp_path / "elasticity.nml")
    assert "*DEPVAR" not in text and "&state" not in text
    assert "&parameter name = 'elasticity.E', props = 1 /" in text


def test_a_model_without_tangent_is_refused_with_what_to_compile() -> None:
    with pytest.raises(DraftError, match="neml2-compile -d stress:strain"):
        draft(PREBUILT / "viscoplastic")


def test_names_can_be_said(artifacts: Mapping[str, Path], tmp_path: Path) -> None:
    text = draft(artifacts["radial_return"], tmp_path / "steel.nml")
    assert "strain = 'total_strain'" in text and "stress = 'cauchy_stress'" in text
    with pytest.raises(DraftError, match="No output can be the stress"):
        draft(artifacts["radial_return"], stress="gamma")


def test_an_input_has_one_role() -> None:
    for roles in ({"temperature": "t"}, {"time": "t", "temperature": "t"}):
        with pytest.raises(DraftError, match="'t' cannot be both the time and the temperature"):
            draft(examples.path("chaboche"), **roles)


REFUSED = {
    "crystal": "'t~2' is the value 2 steps before. A host keeps values of one step",
    "polycrystal": "No output can be the stress",
    "grains": "No input can be the strain",
}


@pytest.mark.parametrize("name, message", REFUSED.items())
def test_what_umat_cannot_drive_is_refused(
    artifacts: Mapping[str, Path], name: str, message: str
) -> None:
    with pytest.raises(DraftError, match=message):
        draft(artifacts[name])


def test_a_refusal_names_the_host(artifacts: Mapping[str, Path], tmp_path: Path) -> None:
    with pytest.raises(DraftError, match="The host kratos keeps values of one step"):
        draft(artifacts["crystal"], host="kratos")
    with pytest.raises(DraftError, match="The host calculix keeps values of one step"):
        make(artifacts["crystal"], tmp_path / "libcrystal.so", host="calculix")


class Law:
    """Requirements of a draft: strain to stress, and more inputs, histories and outputs."""

    def __init__(self, inputs: Sequence[Variable], states: Sequence[Variable]) -> None:
        strain, stress = (_variable(name, "SR2", 6) for name in ("strain", "stress"))
        histories = [replace(state, name=f"{state.name}~1") for state in states]
        self.inputs = Variables("input", [strain, *inputs, *histories])
        self.outputs = Variables("output", [stress, *states])
        self.parameters = Variables("parameter", [])
        self.derivatives = [Derivative("stress", "strain", (6, 6), True)]
        self.histories = [History(f"{state.name}~1", 1, state.name, None) for state in states]

    def __enter__(self) -> Law:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _variable(name: str, type: str, *shape: int, sites: tuple[int, ...] = ()) -> Variable:
    return Variable(name, type, shape, sites, "float64")


def draft_of(law: Law, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("neml2_capi.umat.in_double", lambda path, refusal: law)
    return draft("law")


def test_states_of_each_kind_are_placed_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    states = [
        _variable("density", "Scalar", sites=(12,)),
        _variable("director", "Vec", 3),
        _variable("F", "R2", 3, 3),
        _variable("back", "SR2", 6, sites=(2,)),
    ]
    text = draft_of(Law([], states), monkeypatch)
    for line in (
        "&state name = 'density', kind = 'scalar', statev = 1 /",
        "&state name = 'director', kind = 'vector', statev = 13 /",
        "&state name = 'F', kind = 'tensor', statev = 16 /",
        "&state name = 'back', kind = 'symmetric', statev = 25 /",
        "!   36,",
    ):
        assert line in text.splitlines()
    assert "25 to 36   back: symmetric; 11, 22, 33, 12, 13, 23; shear not doubled; 2 sites" in text


def test_a_plug_in_of_an_older_artifact_knows_kinds_by_their_shapes() -> None:
    """Without types, back stresses must not be taken for six scalars, which do not turn."""
    shapes = {"density": (), "director": (3,), "F": (3, 3), "back": (6,)}
    law = Law([], [_variable(name, "", *shape) for name, shape in shapes.items()])
    law.inputs = Variables("input", [replace(v, type="") for v in law.inputs])
    law.outputs = Variables("output", [replace(v, type="") for v in law.outputs])
    states = guess(law).states  # type: ignore[arg-type]
    assert [state.kind for state in states] == ["scalar", "vector", "tensor", "symmetric"]


def test_what_cannot_be_guessed_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = [_variable(name, "Scalar") for name in ("T", "time", "porosity")]
    text = draft_of(Law(inputs, []), monkeypatch)
    assert "time = 'time'" in text and "temperature = 'T'" in text
    assert "TO DO: what is the input porosity?" in text
    assert "&field name = 'porosity', predef = 0 /" in text.splitlines()


def test_an_orientation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DraftError, match="'orientation' is of type MRP"):
        draft_of(Law([], [_variable("orientation", "MRP", 3)]), monkeypatch)


def test_a_history_without_an_output_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    law = Law([_variable("damage~1", "Scalar")], [])
    law.histories.append(History("damage~1", 1, None, None))
    with pytest.raises(DraftError, match="'damage~1' is a history without an output 'damage'"):
        draft_of(law, monkeypatch)


def test_an_input_that_is_no_scalar_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DraftError, match="'vorticity' has 3 values"):
        draft_of(Law([_variable("vorticity", "WR2", 3)], []), monkeypatch)


def test_two_stresses_are_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    law = Law([], [_variable("back_stress", "SR2", 6)])
    law.derivatives.append(Derivative("back_stress", "strain", (6, 6), True))
    assert "stress = 'stress'" in draft_of(law, monkeypatch)  # the plain name
    law.outputs = Variables(
        "output", [_variable(name, "SR2", 6) for name in ("front_stress", "back_stress")]
    )
    law.derivatives.append(Derivative("front_stress", "strain", (6, 6), True))
    with pytest.raises(DraftError, match="Say it with --stress and --strain"):
        draft_of(law, monkeypatch)


def test_an_artifact_of_another_type_is_refused(artifacts: Mapping[str, Path]) -> None:
    with pytest.raises(DraftError, match="computes in float32, and hosts and pages in float64"):
        draft(artifacts["elasticity_float32"])


def test_the_page_of_plug_ins_has_each_property_of_a_mapping() -> None:
    page = (ROOT / "docs" / "hosts" / "plug-in.md").read_text(encoding="utf-8").splitlines()
    rows = [
        f"| `&{group}` | `{key}` | {what} |"
        for group, keys in KEYS.items()
        for key, what in keys.items()
    ]
    first = page.index(rows[0])
    assert page[first : first + len(rows)] == rows
