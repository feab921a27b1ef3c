"""Bad input: a clear error that names what is wrong, says what was expected, and does no harm."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from states import random_like, recorded

from neml2_capi import ConvergenceError, FatalError, Model, load_model
from neml2_capi._ffi.errors import unknown_name
from neml2_capi._ffi.library import lib

Array = NDArray[np.float64]

STRAIN = np.array([[1e-3, -3e-4, -2e-4, 2e-4, -1e-4, 5e-5], [2e-3, 1e-4, 3e-4, 1e-4, 4e-4, 2e-4]])
PACKAGE = Path("cpu/float64/elasticity.pt2")


def hooke(strain: Array, young: float = 200e3, poisson: float = 0.3) -> Array:
    """Stress in Mandel notation."""
    stress = young / (1 + poisson) * strain
    volumetric = young * poisson / ((1 + poisson) * (1 - 2 * poisson)) * strain[..., :3].sum(-1)
    stress[..., :3] += volumetric[..., None]
    return stress


def assert_works(model: Model) -> None:
    stress = model.forward({"strain": STRAIN})["stress"]
    np.testing.assert_allclose(stress, hooke(STRAIN), rtol=1e-12)


@pytest.fixture(scope="module")
def elasticity(artifacts: Mapping[str, Path]) -> Model:
    return Model(artifacts["elasticity"])


@pytest.fixture(scope="module")
def viscoplastic(artifacts: Mapping[str, Path]) -> Model:
    return Model(artifacts["viscoplastic"])


@pytest.fixture
def broken(artifacts: Mapping[str, Path], tmp_path: Path) -> Path:
    """A copy of the elasticity artifact, to be broken."""
    return Path(shutil.copytree(artifacts["elasticity"], tmp_path / "elasticity"))


@contextmanager
def refused(status: str, *words: str, subject: str | None = None) -> Iterator[None]:
    """A FatalError of this status, whose message has these words."""
    with pytest.raises(FatalError) as caught:
        yield
    error = caught.value
    assert error.status == getattr(lib, f"NEML2_ERROR_{status}"), error
    assert not error.recoverable
    for word in words:
        assert word in str(error)
    if subject is not None:
        assert error.subject == subject


def first_step(points: int, **changes: Any) -> dict[str, Any]:
    """The inputs of a viscoplastic step from rest into the plastic range."""
    strain = np.linspace(0.5, 1, points)[:, None] * np.array([0.01, -3e-3, -3e-3, 1e-3, 2e-3, 5e-4])
    zero = np.zeros((points, 6))
    inputs = {"strain": strain, "strain~1": zero, "t": 1.0, "t~1": 0.0, "stress~1": zero}
    inputs |= {"equivalent_plastic_strain~1": np.zeros(points), "X1~1": zero, "X2~1": zero}
    return inputs | changes


# ------------------------------------------------------------------------------------------------
# Inputs
# ------------------------------------------------------------------------------------------------


def test_missing_input(elasticity: Model, viscoplastic: Model) -> None:
    with refused("MISSING", "strain", "(6,)", subject="strain"):
        elasticity.forward({})
    inputs = first_step(2)
    del inputs["X1~1"]
    with refused("MISSING", "X1~1", subject="X1~1"):  # nothing defaults, history neither
        viscoplastic.forward(inputs)
    assert_works(elasticity)


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [
        ("input", "inputs"),
        ("key", "keys"),
        ("hypothesis", "hypotheses"),
        ("quantity with a unit", "quantities with a unit"),
        ("input or parameter", "inputs or parameters"),
        ("column of 'a or b.csv'", "columns of 'a or b.csv'"),
    ],
)
def test_an_unknown_name_lists_the_known_ones(kind: str, kinds: str) -> None:
    assert f"The {kinds} are: strain, t" in str(unknown_name(kind, "x", ["strain", "t"]))
    assert str(unknown_name(kind, "x", [])) == f"unknown {kind} 'x'. There are no {kinds}"


def test_unknown_input(elasticity: Model) -> None:
    with refused("NAME", "strian", "did you mean 'strain'", subject="strian"):
        elasticity.forward({"strian": STRAIN})
    with refused("NAME", "temperature", "strain"):
        elasticity.forward({"strain": STRAIN, "temperature": 300.0})
    assert_works(elasticity)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 5), (6, 2), (2, 6, 1), (2, 7)])
def test_wrong_trailing_shape(elasticity: Model, shape: tuple[int, ...]) -> None:
    with refused("SHAPE", "strain", str(shape).replace(",)", ""), "(6,)", subject="strain"):
        elasticity.forward({"strain": np.zeros(shape)})
    assert_works(elasticity)


def test_what_loses_nothing_is_converted(elasticity: Model) -> None:
    """Integers, and one number of another type."""
    strain = np.eye(6)
    expected = elasticity.forward({"strain": strain})["stress"]
    for dtype in ("int8", "int32", "int64", "uint16"):
        found = elasticity.forward({"strain": strain.astype(dtype)})["stress"]
        np.testing.assert_array_equal(found, expected)
    with refused("DTYPE", "strain", "float64", "int64", subject="strain"):
        elasticity.forward({"strain": np.full(6, 2**53 + 1)})
    for value in (np.float32(2.0**17), np.array(2**17), np.array(2.0**17, np.float32)):
        found = elasticity.forward({"strain": strain}, {"E": value})["stress"]
        np.testing.assert_allclose(found, expected * 2.0**17 / 200e3, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bool"])
def test_wrong_dtype(elasticity: Model, dtype: str) -> None:
    with refused("DTYPE", "strain", "float64", dtype, subject="strain"):
        elasticity.forward({"strain": STRAIN.astype(dtype)})
    assert_works(elasticity)


@pytest.mark.parametrize("value", ["text", object(), [[1, 2], [3]], np.array(["a"] * 6), 1j])
def test_what_is_no_array(elasticity: Model, value: Any) -> None:
    with refused("DTYPE", "strain", subject="strain"):
        elasticity.forward({"strain": value})
    assert_works(elasticity)


def test_other_byte_order(elasticity: Model) -> None:
    with refused("DTYPE", "strain", "byte order", subject="strain"):
        elasticity.forward({"strain": STRAIN.astype(STRAIN.dtype.newbyteorder())})
    assert_works(elasticity)


def test_incompatible_batches(viscoplastic: Model) -> None:
    with refused("SHAPE", "t", "(3,)", "(2,)"):
        viscoplastic.forward(first_step(2, t=np.ones(3)))
    outputs = viscoplastic.forward(first_step(2, t=np.ones((3, 1))))  # these do broadcast
    assert outputs["stress"].shape == (3, 2, 6)


def test_nan_in_an_explicit_model_propagates(elasticity: Model) -> None:
    strain = STRAIN.copy()
    strain[1, 0] = np.nan
    stress = elasticity.forward({"strain": strain})["stress"]
    assert np.isnan(stress[1, :3]).all()
    np.testing.assert_allclose(stress[0], hooke(STRAIN)[0], rtol=1e-12)
    assert_works(elasticity)


def test_a_step_of_zero_is_named_without_advice_to_cut_it(viscoplastic: Model) -> None:
    inputs = first_step(3)
    inputs["t"] = np.full_like(inputs["t"], 0.0)
    with pytest.raises(ConvergenceError) as caught:
        viscoplastic.forward(inputs)
    message = str(caught.value)
    assert "Of point 0, |r| = nan at the guess" in message and "a step of zero, t = t~1" in message
    assert "smaller step does not mend" in message and "Reduce" not in message
    assert caught.value.report["suggested_cut"].tolist() == [1.0] * 3


def test_a_step_that_is_too_great_is_told_with_its_norm(artifacts: Mapping[str, Path]) -> None:
    model = Model(artifacts["viscoplastic"])
    model.options["miters"] = 3
    with pytest.raises(ConvergenceError, match=r"\|r\| = \S+e\S+ after 2 iterations: reduce the"):
        model.forward(first_step(3))


def test_nan_in_an_implicit_model_spoils_its_point_only(viscoplastic: Model) -> None:
    good = viscoplastic.forward(first_step(4))
    inputs = first_step(4)
    inputs["strain"][2, 1] = np.nan
    with pytest.warns(RuntimeWarning, match="the input 'strain' is not finite"):
        viscoplastic.forward(inputs)
    outputs, report = viscoplastic.evaluate(inputs)
    assert report["status"].tolist() == [0, 0, lib.NEML2_NON_FINITE, 0]
    assert report["suggested_cut"].tolist() == [1.0] * 4
    for name, value in outputs.items():
        assert np.isnan(value[2]).all()
        np.testing.assert_array_equal(value[[0, 1, 3]], good[name][[0, 1, 3]])
    again = viscoplastic.forward(first_step(4))
    np.testing.assert_array_equal(again["stress"], good["stress"])


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "every other": lambda a: np.repeat(a, 2, axis=0)[::2],
    "a column block": lambda a: np.hstack([a, a])[:, :6],
    "reversed": lambda a: a[::-1].copy()[::-1],
    "read-only": lambda a: np.frombuffer(a.tobytes()).reshape(a.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_gives_the_right_result(elasticity: Model, layout: str) -> None:
    strain = LAYOUTS[layout](STRAIN)
    np.testing.assert_array_equal(strain, STRAIN)
    stress = elasticity.forward({"strain": strain})["stress"]
    np.testing.assert_allclose(stress, hooke(STRAIN), rtol=1e-12)


def test_one_value_for_all_points(elasticity: Model) -> None:
    strain = np.broadcast_to(STRAIN[0], (5, 6))
    stress = elasticity.forward({"strain": strain})["stress"]
    np.testing.assert_allclose(stress, hooke(strain), rtol=1e-12)


# ------------------------------------------------------------------------------------------------
# Parameters, options and handles
# ------------------------------------------------------------------------------------------------


def test_parameter_that_does_not_fit_changes_nothing(elasticity: Model) -> None:
    with refused("DTYPE", "elasticity.E", "float64", "float32"):
        elasticity.set_parameter("elasticity.E", np.ones(1, np.float32))
    with refused("NAME", "elasticity.nu", "elasticity.E"):
        elasticity.set_parameter("elasticity.nu", 0.2)
    with refused("SHAPE", "elasticity.E", "(3,)"):
        elasticity.forward({"strain": STRAIN}, {"elasticity.E": np.ones(3)})
    assert_works(elasticity)


def test_option_out_of_its_bounds_changes_nothing(viscoplastic: Model) -> None:
    before = dict(viscoplastic.options)
    wrong: dict[str, float | str] = {"atol": -1.0, "miters": 0, "ls_type": "GOLDEN", "chunk": -1}
    for name, value in wrong.items():
        with refused("ARGUMENT", name, subject=name):
            viscoplastic.options[name] = value
    with refused("NAME", "tolerance", "atol"):
        viscoplastic.options["tolerance"] = 1.0
    with refused("ARGUMENT", "ls_cutback"):  # the second of two: the first is taken back
        viscoplastic.set_solver_config(1e-3, 1e-3, 5, "BACKTRACKING", 1, -2.0, 1e-3)
    assert dict(viscoplastic.options) == before


def test_closed_model(artifacts: Mapping[str, Path]) -> None:
    model = Model(artifacts["elasticity"])
    parameters = model.named_parameters()
    view = parameters["elasticity.E"]
    model.close()
    model.close()
    for use in (
        lambda: model.forward({"strain": STRAIN}),
        lambda: model.set_parameter("elasticity.E", 1.0),
        lambda: parameters["elasticity.E"],
        lambda: model.options["atol"],
    ):
        with refused("ARGUMENT", "closed"):
            use()
    assert view == 200e3  # what was handed out stays valid


# ------------------------------------------------------------------------------------------------
# Derivatives
# ------------------------------------------------------------------------------------------------


def test_derivatives_that_were_not_compiled(viscoplastic: Model, elasticity: Model) -> None:
    """Neither zeros nor nothing: an error that says which options of neml2-compile add them."""
    inputs, cotangents = first_step(2), {"stress": np.zeros((2, 6))}
    functions: list[Callable[[], Any]] = [
        lambda: viscoplastic.jvp(inputs, {}),
        lambda: viscoplastic.vjp(inputs, cotangents),
        lambda: viscoplastic.jacobian(inputs),
    ]
    for with_respect_to_inputs in functions:
        with refused("UNSUPPORTED", "neml2-compile -d OUTPUT:INPUT", "-d : for all"):
            with_respect_to_inputs()
    # Its parameter can be changed, but no derivative with respect to it was compiled.
    for with_respect_to_parameters in (
        lambda: elasticity.param_jacobian({"strain": STRAIN}),
        lambda: elasticity.param_vjp({"strain": STRAIN}, cotangents),
        lambda: viscoplastic.param_jacobian(inputs),
        lambda: viscoplastic.param_vjp(inputs, cotangents),
    ):
        with refused("UNSUPPORTED", "neml2-compile -p PARAMETER -d OUTPUT:PARAMETER"):
            with_respect_to_parameters()
    assert_works(elasticity)


def test_a_pair_that_was_not_compiled_is_absent(artifacts: Mapping[str, Path]) -> None:
    model, inputs = Model(artifacts["polycrystal"]), recorded("polycrystal", "in")
    assert model.outputs.names == ["stress", "strain"]
    assert model.jacobian(inputs)[1].keys() == {"strain"}
    assert "strength" not in model.jacobian(inputs)[1]["strain"]
    assert model.jvp(inputs, random_like(inputs))[1].keys() == {"strain"}
    adjoints = model.vjp(inputs, {"stress": np.ones((4, 3, 6))})[1]
    assert adjoints.keys() == {"applied_stress", "strain~1", "t", "t~1"}


def test_a_direction_of_an_unknown_name(elasticity: Model) -> None:
    inputs = {"strain": STRAIN}
    with refused("NAME", "unknown input 'strian'", "did you mean 'strain'", subject="strian"):
        elasticity.jvp(inputs, {"strian": STRAIN})
    with refused("NAME", "unknown input 'stress'", subject="stress"):
        elasticity.jvp(inputs, {"stress": STRAIN})
    with refused("NAME", "unknown output 'strain'", "stress", subject="strain"):
        elasticity.vjp(inputs, {"strain": STRAIN})
    assert_works(elasticity)


@pytest.mark.parametrize("shape", [(), (5,), (2, 5), (6, 2), (3, 6), (2, 6, 1)], ids=str)
def test_a_direction_of_a_wrong_shape(elasticity: Model, shape: tuple[int, ...]) -> None:
    wrong = np.zeros(shape)
    with refused("SHAPE", "tangent of 'strain'", subject="strain"):
        elasticity.jvp({"strain": STRAIN}, {"strain": wrong})
    with refused("SHAPE", "cotangent of 'stress'", subject="stress"):
        elasticity.vjp({"strain": STRAIN}, {"stress": wrong})
    assert_works(elasticity)


@pytest.mark.parametrize("value", [STRAIN.astype("float32"), STRAIN.astype(complex), "text"])
def test_a_direction_of_a_wrong_type(elasticity: Model, value: Any) -> None:
    with refused("DTYPE", "tangent of", "strain", subject="strain"):
        elasticity.jvp({"strain": STRAIN}, {"strain": value})
    with refused("DTYPE", "cotangent of", "stress", subject="stress"):
        elasticity.vjp({"strain": STRAIN}, {"stress": value})
    assert_works(elasticity)


@pytest.mark.parametrize("directions", [None, STRAIN, ["strain"]], ids=["None", "array", "list"])
def test_directions_that_are_no_mapping(elasticity: Model, directions: Any) -> None:
    with refused("ARGUMENT", "tangents must be a mapping", subject="tangents"):
        elasticity.jvp({"strain": STRAIN}, directions)
    with refused("ARGUMENT", "cotangents must be a mapping", subject="cotangents"):
        elasticity.vjp({"strain": STRAIN}, directions)


def test_wrong_inputs_and_parameters_of_derivatives(artifacts: Mapping[str, Path]) -> None:
    model, inputs = Model(artifacts["relaxation"]), recorded("relaxation", "in")
    missing = {name: value for name, value in inputs.items() if name != "t"}
    tangents, cotangents = random_like(inputs), random_like(model.forward(inputs))
    full = "update.residual.elasticity.E"
    evaluations: list[Callable[..., Any]] = [
        model.jacobian,
        model.param_jacobian,
        lambda inputs, overrides=None: model.jvp(inputs, tangents, overrides),
        lambda inputs, overrides=None: model.vjp(inputs, cotangents, overrides),
        lambda inputs, overrides=None: model.param_vjp(inputs, cotangents, overrides),
    ]
    for evaluate in evaluations:
        with refused("MISSING", "'t' is missing", subject="t"):
            evaluate(missing)
        with refused("SHAPE", full, "(3,)", "(4,)", subject=full):
            evaluate(inputs, {"E": np.ones(3)})
        with refused("DTYPE", full, "float32", subject=full):
            evaluate(inputs, {"E": np.ones(4, np.float32)})
        with refused("NAME", "unknown parameter 'nu'", full, subject="nu"):
            evaluate(inputs, {"nu": 0.3})


# ------------------------------------------------------------------------------------------------
# Artifacts
# ------------------------------------------------------------------------------------------------


def unchecked(root: Path) -> Path:
    """An artifact whose kernels do not note the checksum of its metadata, as older ones."""
    for path in root.glob("kernels/*/kernels.json"):
        document = json.loads(path.read_text())
        document.pop("metadata_checksum", None)
        path.write_text(json.dumps(document))
    return root


def edit_metadata(root: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = unchecked(root) / "metadata.json"
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))


def edit_package(path: Path, suffix: str, before: str, after: str) -> None:
    """Replace text in the entry of a package that ends with `suffix`, and write a good zip."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    (name,) = [name for name in entries if name.endswith(suffix)]
    assert before.encode() in entries[name]
    entries[name] = entries[name].replace(before.encode(), after.encode())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def test_missing_folder(tmp_path: Path) -> None:
    with refused("FILE", str(tmp_path / "nothing")):
        Model(tmp_path / "nothing")


def test_missing_metadata(broken: Path) -> None:
    (broken / "metadata.json").unlink()
    with refused("FILE", "metadata.json"):
        Model(broken)


@pytest.mark.parametrize("content", ["", "no json", '{"schema_version": 14', "[]", "null", "\xff"])
def test_metadata_that_is_not_json(broken: Path, content: str) -> None:
    (broken / "metadata.json").write_bytes(content.encode("latin-1"))
    with refused("ARTIFACT", "metadata.json"):
        Model(broken)


def test_unknown_schema(broken: Path) -> None:
    edit_metadata(broken, lambda metadata: metadata.update(schema_version=9999))
    with refused("UNSUPPORTED", "9999", "14"):
        Model(broken)


def test_metadata_without_a_field(broken: Path) -> None:
    edit_metadata(broken, lambda metadata: metadata["inputs"][0].pop("base_shape"))
    with refused("ARTIFACT", "inputs", "base_shape"):
        Model(broken)


def test_metadata_that_does_not_fit_the_package(broken: Path) -> None:
    edit_metadata(broken, lambda metadata: metadata["inputs"][0].update(base_shape=[3], var_size=3))
    with refused("ARTIFACT", "strain", "(3,)", "(6,)"):
        Model(broken)


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("kind", ["inputs", "outputs"])
@pytest.mark.parametrize("model", ["elasticity", "viscoplastic"])
def test_names_that_no_segment_knows(
    artifacts: Mapping[str, Path], tmp_path: Path, model: str, kind: str, position: int
) -> None:
    root = unchecked(Path(shutil.copytree(artifacts[model], tmp_path / model)))
    metadata = json.loads((root / "metadata.json").read_text())
    if position >= len(metadata[kind]):
        return
    name = metadata[kind][position]["name"]
    metadata[kind][position]["name"] = "renamed"
    (root / "metadata.json").write_text(json.dumps(metadata))
    # What the segments ask for, or what they do not make, is missing.
    with refused("ARTIFACT", name if kind == "inputs" else "renamed", "no earlier segment"):
        Model(root)


def test_metadata_without_outputs(broken: Path) -> None:
    edit_metadata(broken, lambda metadata: metadata.update(outputs=[]))
    with refused("ARTIFACT", "outputs", "nothing to evaluate"):
        Model(broken)


def test_missing_package(broken: Path) -> None:
    (broken / PACKAGE).unlink()
    with refused("FILE", "elasticity.pt2"):
        Model(broken)


def test_missing_leaf(broken: Path) -> None:
    with refused("UNSUPPORTED", "float32", "cpu/float64"):
        Model(broken, dtype="float32")


@pytest.mark.parametrize("kept", [0, 3, 100, 50_000, -1])
def test_truncated_package(broken: Path, elasticity: Model, kept: int) -> None:
    content = (broken / PACKAGE).read_bytes()
    (broken / PACKAGE).write_bytes(content[:kept])
    with refused("ARTIFACT", "elasticity.pt2"):
        Model(broken)
    (broken / PACKAGE).write_bytes(content)
    assert_works(Model(broken))
    assert_works(elasticity)


def test_damaged_package(broken: Path) -> None:
    content = bytearray((broken / PACKAGE).read_bytes())
    content[len(content) // 2] ^= 1
    (broken / PACKAGE).write_bytes(content)
    with refused("ARTIFACT", "elasticity.pt2"):
        Model(broken)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"AOTI_MACHINE": "x86_64"', '"AOTI_MACHINE": "aarch64"'),
        ('"AOTI_CPU_ISA": "AVX2"', '"AOTI_CPU_ISA": "AVX9000"'),
        ('"AOTI_DEVICE_KEY": "cpu"', '"AOTI_DEVICE_KEY": "cuda"'),
    ],
    ids=["machine", "instruction set", "device"],
)
def test_package_for_something_else(broken: Path, before: str, after: str) -> None:
    edit_package(broken / PACKAGE, ".wrapper_metadata.json", before, after)
    with refused("UNSUPPORTED", "elasticity.pt2", after.split('"')[-2]):
        Model(broken)


def test_package_that_needs_what_is_not_there(broken: Path) -> None:
    edit_package(
        broken / PACKAGE, ".wrapper.so", "aoti_torch_empty_strided", "aoti_torch_empty_strange"
    )
    with refused("UNSUPPORTED", "elasticity.pt2", "aoti_torch_empty_strange"):
        Model(broken)


@pytest.mark.parametrize("points", [1, 2, 3, 4, 7])
def test_another_batch_than_the_baked_one(artifacts: Mapping[str, Path], points: int) -> None:
    model = Model(artifacts["elasticity_static"])  # for exactly two points
    strain = np.resize(STRAIN, (points, 6))
    if points % 2:
        with refused("SHAPE", "elasticity.pt2", f"got {points}", "2 points"):
            model.forward({"strain": strain})
    else:
        stress = model.forward({"strain": strain})["stress"]
        np.testing.assert_allclose(stress, hooke(strain), rtol=1e-12)
    assert_works(model)


def test_stub_that_is_not_there(tmp_path: Path, artifacts: Mapping[str, Path]) -> None:
    with refused("FILE", "nothing.i"):
        load_model(tmp_path / "nothing.i", "elasticity")
    stub = artifacts["elasticity"].with_name("elasticity_aoti.i")
    with refused("NAME", "plasticity", "elasticity"):
        load_model(stub, "plasticity")
