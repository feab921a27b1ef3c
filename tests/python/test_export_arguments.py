"""What export.model() and export.package() are given beside a law: it is checked before the law."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neml2_capi import FatalError, Graph, Model

torch = pytest.importorskip("torch")

from neml2_capi import export  # noqa: E402

STRESS = {"inputs": {"strain": "SR2"}, "outputs": {"stress": "SR2"}, "derivatives": False}
HALF_MASKED = np.ma.masked_array([1.0, 2.0], mask=[False, True])


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("the law was called")


def refused(folder: Path, match: str, **given: Any) -> None:
    """An error that tells what was wrong; nothing is written, and the law was not called."""
    before = sorted(folder.rglob("*"))
    for kernels in ("auto", "only"):
        options = {**STRESS, "kernels": kernels, **given}
        with pytest.raises(FatalError, match=match):
            export.model(never, options.pop("path", folder / "law"), **options)
    assert sorted(folder.rglob("*")) == before


def exported(path: Path, value: Any, **options: Any) -> Path:
    def elasticity(strain: Any, E: Any) -> Any:
        return strain * E.sum()

    options = {**STRESS, "kernels": "only", "parameters": {"E": value}, **options}
    return export.model(elasticity, path / "law", **options)


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (float("nan"), "is nan; expected finite numbers"),
        ([1.0, -np.inf], r"has -inf at index \[1\]; expected finite numbers"),
        (None, "is None; expected numbers"),
        (True, "is of bool; expected float64"),
        (torch.tensor([True]), "is of bool; expected float64"),
        ("1", "has the element type '<U1'"),
        (1j, "has the element type .*; pass its real part"),
        (torch.tensor(1j), "has the element type .*; pass its real part"),
        (np.zeros(0), r"has the shape \(0,\); expected a number"),
        ([[], []], r"has the shape \(2, 0\); expected a number"),
        ([1.0, [2.0]], "cannot be made an array"),
        (HALF_MASKED, "is masked: fill it first"),
        (torch.ones(2).to_sparse(), "is sparse .*: pass it dense"),
    ],
)
def test_a_parameter_is_finite_numbers(tmp_path: Path, value: Any, match: str) -> None:
    """A model whose parameter was NaN was written, and could not be opened."""
    refused(tmp_path, f"parameter 'E' {match}", parameters={"E": value})


def test_a_parameter_is_finite_in_the_type_of_the_model(tmp_path: Path) -> None:
    match = "parameter 'E' is 1e[+]300, which float32 cannot hold"
    refused(tmp_path, match, parameters={"E": 1e300}, dtype="float32")


@pytest.mark.parametrize(
    "value",
    [
        2,
        torch.nn.Parameter(torch.tensor(2.0)),
        torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True),
        np.ma.masked_array([0.5, 1.5]),
        np.array([1.5, 0.5])[::-1],
    ],
)
def test_a_parameter_is_numbers_of_any_kind(tmp_path: Path, value: Any) -> None:
    """torch refused one that requires a gradient, without a word of which."""
    made = Model(exported(tmp_path, value))
    plain = value.detach() if isinstance(value, torch.Tensor) else value
    np.testing.assert_array_equal(made["E"], plain)
    np.testing.assert_array_equal(made.forward({"strain": np.ones(6)})["stress"], 2.0)


@pytest.mark.parametrize(
    "shape", [(0,), (-1,), (2, 0), (2.5,), ("a",), ((6,),), (True,), 6, None, True]
)
def test_a_shape_is_that_of_a_point(tmp_path: Path, shape: Any) -> None:
    match = "the shape of 'strain' among the inputs, is none of a point; give whole numbers from 1"
    refused(tmp_path, match, inputs={"strain": shape})
    match = "the shape of 'stress' among the outputs, is none of a point"
    refused(tmp_path, match, outputs={"stress": shape})


@pytest.mark.parametrize("shape", [(np.int64(6),), np.array([6]), torch.Size([6])])
def test_a_shape_is_whole_numbers_of_any_kind(tmp_path: Path, shape: Any) -> None:
    """Whole numbers of numpy could not be written."""
    made = Model(exported(tmp_path, 1.0, inputs={"strain": shape}, outputs={"stress": shape}))
    assert made.inputs[0].base_shape == (6,)


@pytest.mark.parametrize("name", ["", 1, None, "a\0b", "\udc80", "x" * 1025])
@pytest.mark.parametrize(("kind", "of"), [("inputs", ()), ("outputs", ()), ("parameters", 1.0)])
def test_a_name_is_a_text_that_the_library_reads(
    tmp_path: Path, kind: str, of: Any, name: Any
) -> None:
    refused(tmp_path, f"among the {kind}, is no name; give a text of 1 to", **{kind: {name: of}})


@pytest.mark.parametrize("names", [["strain"], "strain", 3, [("strain", "SR2")]])
def test_declarations_are_mappings(tmp_path: Path, names: Any) -> None:
    refused(tmp_path, "inputs are no mapping: give a mapping", inputs=names)
    refused(tmp_path, "parameters must be a mapping of names", parameters=names)


@pytest.mark.parametrize("derivatives", [1, [1], [None]])
def test_derivatives_are_pairs(tmp_path: Path, derivatives: Any) -> None:
    refused(tmp_path, "derivatives are True, False or pairs such as", derivatives=derivatives)


def test_a_pair_of_derivatives_may_stand_alone(tmp_path: Path) -> None:
    """Its first letter was said to be no output."""
    made = Model(exported(tmp_path, 2.0, derivatives="stress:strain"))
    assert [(each.output, each.variable) for each in made.derivatives] == [("stress", "strain")]


@pytest.mark.parametrize("target", ["foo", None, 3, []])
def test_a_target_is_one_of_those_there_are(tmp_path: Path, target: Any) -> None:
    """With kernels alone no other was refused, and none was built for."""
    refused(tmp_path, "there is no target .*; choose one of x86-64-v2", target=target)


@pytest.mark.parametrize(
    ("setting", "value", "wanted"),
    [
        ("miters", 0, "a whole number between 1 and"),
        ("miters", 1.5, "a whole number between 1 and"),
        ("miters", 1e9, "a whole number between 1 and"),
        ("miters", True, "a whole number between 1 and"),
        ("atol", -1.0, "a number between 0 and"),
        ("atol", np.nan, "a number between 0 and"),
        ("rtol", np.inf, "a number between 0 and"),
        ("rtol", "1", "a number between 0 and"),
        ("rtol", None, "a number between 0 and"),
    ],
)
def test_a_setting_of_the_solver_is_in_its_bounds(
    tmp_path: Path, setting: str, value: Any, wanted: str
) -> None:
    residual = {"unknowns": {"x": "Scalar"}, "givens": {"y": "Scalar"}}
    options = {**residual, "inputs": None, "outputs": None, setting: value}
    refused(tmp_path, f"option '{setting}' takes {wanted}", **options)


def test_a_setting_of_the_solver_may_be_a_number_of_numpy(tmp_path: Path) -> None:
    path = export.model(
        lambda unknowns, givens, _: {"x": unknowns["x"] ** 3 - givens["y"]},
        tmp_path / "root",
        unknowns={"x": "Scalar"},
        givens={"y": "Scalar"},
        miters=np.int32(30),
        atol=np.float32(0.5),
        kernels="only",
    )
    solver = json.loads((path / "metadata.json").read_text())["solver_config"]
    assert (solver["miters"], solver["atol"]) == (30, 0.5)


def test_a_path_leads_to_where_a_folder_can_be(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    refused(tmp_path, "nothing can be written to .*file: it is a file; name another", path=file)
    refused(tmp_path, "file is a file; name another folder", path=file / "law")
    refused(tmp_path, "File name too long; name another folder", path=tmp_path / ("a" * 300))
    for path in (3, "", "a\0b"):
        refused(tmp_path, "path must be the path of a folder; got", path=path)
    assert file.read_text() == "mine"


# ---- packages ----


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"example_inputs": torch.ones(3, 2)}, "must be a sequence of tensors, such as"),
        ({"example_inputs": None}, "must be a sequence of tensors, such as"),
        ({"dynamic_batch": 0}, "dynamic_batch is True, False or the axis of each input"),
        ({"dynamic_batch": ["0"]}, "dynamic_batch is True, False or the axis of each input"),
        ({"dynamic_batch": [True]}, "dynamic_batch is True, False or the axis of each input"),
        ({"target": None}, "there is no target None; choose one of"),
        ({"path": "folder.pt2"}, "it is a folder; name another file"),
        ({"path": "file/a.pt2"}, "file is a file; name another file"),
    ],
)
def test_what_a_package_is_made_of_is_checked_first(
    tmp_path: Path, given: dict[str, Any], match: str
) -> None:
    """Some of it was an error of Python; a folder in the way was found when all was compiled."""
    (tmp_path / "folder.pt2").mkdir()
    (tmp_path / "file").write_text("mine")
    options = {"example_inputs": (torch.ones(3, 2),), "path": "a.pt2", **given}
    path = tmp_path / options.pop("path")
    with pytest.raises(FatalError, match=match):
        export.package(never, path=path, **options)
    assert {each.name for each in tmp_path.iterdir()} == {"folder.pt2", "file"}


def test_a_law_is_exported_without_an_error_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", None)
    assert exported(tmp_path, 1.0).is_dir()


@pytest.mark.full("a package is compiled by torch")
@pytest.mark.parametrize("runtime", ["builtin", "libtorch"])
def test_a_tensor_may_be_given_twice(tmp_path: Path, runtime: str) -> None:
    """The second output was none, and a model of such a law ended the process."""

    def law(x: Any) -> tuple[Any, ...]:
        doubled = 2.0 * x
        return doubled, doubled, doubled.reshape(doubled.shape), doubled[:, 1:], x, x

    example = torch.zeros(8, 3, dtype=torch.float64)
    package = export.package(law, (example,), tmp_path / "law.pt2")
    given = torch.arange(12.0, dtype=torch.float64).reshape(4, 3)
    for found, expected in zip(Graph(package, runtime)(given), law(given), strict=True):
        assert torch.equal(found, expected)
