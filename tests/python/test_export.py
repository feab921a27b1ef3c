"""What torch modules and functions become, run by the library in every language."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import HOSTS, TESTS, c_program, fortran_program, needs_fortran, run
from scipy.optimize import brentq

import neml2_capi
from neml2_capi import Graph

torch = pytest.importorskip("torch")

import exports as laws  # noqa: E402  (of tests/models, which conftest.py has on the path)

from neml2_capi import export  # noqa: E402
from neml2_capi.export import _compile as compile_step  # noqa: E402
from neml2_capi.export.targets import inductor_options  # noqa: E402


def largest_difference(a: Any, b: Any) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())


# ---- packages ----


@pytest.mark.parametrize("points", [1, 2, 7, 300])
def test_a_network_is_equal_to_eager_for_any_batch(exported: Path, points: int) -> None:
    strain = torch.randn(points, 6, dtype=torch.float64)
    network = laws.network().requires_grad_(False)
    (made,) = Graph(exported / "network.pt2", runtime="builtin")(strain)
    assert largest_difference(made, network(strain)) < 1e-14


def test_integers_go_in_and_several_outputs_come_out(exported: Path) -> None:
    inputs = laws.some_table_inputs(9)
    made = Graph(exported / "table.pt2", runtime="builtin")(*inputs)
    expected = laws.Table()(*inputs)
    assert [tensor.dtype for tensor in made.values()] == [t.dtype for t in expected.values()]
    assert list(made) == list(expected)
    assert all(torch.equal(made[name], expected[name]) for name in expected)


def test_arguments_and_outputs_keep_their_names(exported: Path) -> None:
    graph = Graph(exported / "table.pt2")
    assert [given.name for given in graph.inputs] == ["phase", "count", "value"]
    assert [(made.name, made.dtype, made.shape) for made in graph.outputs] == [
        ("scaled", "float32", (None, 3)),
        ("half", "int32", (None,)),
        ("many", "bool", (None,)),
        ("next", "int64", (None,)),
    ]
    phase, count, value = laws.some_table_inputs(5)
    made = graph(phase, value=value, count=count)
    assert torch.equal(made["next"], phase + 1)


@pytest.mark.parametrize("runtime", ["builtin", "libtorch"])
def test_every_constant_can_be_replaced(exported: Path, runtime: str) -> None:
    """Inductor makes numbers of small ones, and of those whose elements are equal."""
    graph, law = Graph(exported / "hardening.pt2", runtime), laws.Hardening()
    x = torch.linspace(0, 0.1, 5, dtype=torch.float64)
    state = {name: value.detach().numpy() for name, value in law.state_dict().items()}
    constants = graph.constants()
    assert set(constants) == {"function.yield_stress", "function.moduli", "function.rates"}
    assert all(np.array_equal(constants[f"function.{name}"], state[name]) for name in state)
    assert largest_difference(graph(x)[0], law(x).detach()) < 1e-10
    law.load_state_dict({name: torch.as_tensor(value) * 1.5 for name, value in state.items()})
    graph.set_constants({name: value * 1.5 for name, value in constants.items()})
    assert largest_difference(graph(x)[0], law(x).detach()) < 1e-10


def test_what_does_not_fit_is_refused(exported: Path) -> None:
    phase, count, value = laws.some_table_inputs(4)
    graph = Graph(exported / "table.pt2")
    with pytest.raises(neml2_capi.FatalError, match="float32"):
        graph(phase, count, value.double())
    with pytest.raises(neml2_capi.FatalError, match=r"shape|size"):
        graph(phase, count, value[:3])


def test_what_the_built_in_provider_lacks_is_named(exported: Path) -> None:
    """At export as a warning, and by Graph as an error."""
    with pytest.raises(neml2_capi.FatalError, match="convolution"):
        Graph(exported / "convolution.pt2", runtime="builtin")
    assert "convolution" in (exported / "warnings.txt").read_text()


def test_every_package_takes_any_batch(exported: Path) -> None:
    packages = {*exported.rglob("*.pt2")} - {exported / "convolution.pt2"}
    assert len(packages) == 17
    for package in packages:
        for given in Graph(package).inputs:
            assert (given.least[0], given.greatest[0]) == (2, 1 << 20), package


def test_an_outer_product_does_not_restrict_the_batch() -> None:
    """Inductor would compile it for the few points with which it is fast."""
    weights = torch.rand(1, 3)
    program = compile_step.export(lambda x: x @ weights, (torch.ones(2, 1),), [0])
    assert torch.ops.aten.mm.default not in {node.target for node in program.graph.nodes}
    x = torch.rand(7, 1)
    assert torch.equal(program.module()(x), x @ weights)


# Errors come before anything is compiled.


def test_an_unknown_target_is_told(tmp_path: Path) -> None:
    with pytest.raises(neml2_capi.FatalError, match="x86-64-v3"):
        export.package(torch.nn.Tanh(), (torch.ones(3),), tmp_path / "a.pt2", target="pentium")
    assert list(tmp_path.iterdir()) == []


def test_a_batch_axis_that_there_is_not_is_told(tmp_path: Path) -> None:
    with pytest.raises(neml2_capi.FatalError, match="batch axis 0"):
        export.package(torch.nn.Tanh(), (torch.tensor(1.0),), tmp_path / "a.pt2")
    with pytest.raises(neml2_capi.FatalError, match="2 axes for 1"):
        export.package(
            torch.nn.Tanh(), (torch.ones(3),), tmp_path / "a.pt2", dynamic_batch=(0, None)
        )


def test_an_example_that_is_no_tensor_is_told(tmp_path: Path) -> None:
    with pytest.raises(neml2_capi.FatalError, match="example input 0"):
        export.package(torch.nn.Tanh(), (np.ones(3),), tmp_path / "a.pt2")


def test_a_package_has_its_suffix(tmp_path: Path) -> None:
    with pytest.raises(neml2_capi.FatalError, match=r"NAME\.pt2"):
        export.package(torch.nn.Tanh(), (torch.ones(3),), tmp_path / "a.so")


def test_torch_tells_what_it_cannot_export(tmp_path: Path) -> None:
    def fixed(x: Any) -> Any:
        return x.reshape(2, 3)

    with pytest.raises(neml2_capi.FatalError, match="torch cannot export"):
        export.package(fixed, (torch.ones(2, 3),), tmp_path / "a.pt2")


def test_the_target_is_that_of_neml2_capi_compile() -> None:
    assert inductor_options("x86-64-v2") == {"cpp.march": "x86-64-v2", "cpp.simdlen": 1}
    assert inductor_options("x86-64-v4") == {"cpp.march": "x86-64-v4", "cpp.simdlen": 512}
    assert inductor_options("native") == {}


def test_a_package_is_portable(exported: Path) -> None:
    """One for x86-64-v3 has no instruction of AVX-512."""
    with zipfile.ZipFile(exported / "network.pt2") as archive:
        name = next(n for n in archive.namelist() if n.endswith(".so"))
        code = exported.parent / f"{exported.name}.network.so"
        code.write_bytes(archive.read(name))
    try:
        listing = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", code], capture_output=True, text=True
        ).stdout
    except FileNotFoundError:
        pytest.skip("there is no objdump")
    finally:
        code.unlink()
    assert "%ymm" in listing
    assert "%zmm" not in listing


# ---- forward laws ----


def hooke_matrix(young: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    poisson = laws.POISSON
    matrix = young / (1 + poisson) * np.eye(6)
    matrix[:3, :3] += young * poisson / ((1 + poisson) * (1 - 2 * poisson))
    return matrix


@pytest.mark.parametrize("engine", ["native", "python"])
def test_a_law_runs_with_its_derivatives(exported: Path, engine: str) -> None:
    model = neml2_capi.Model(exported / "elasticity", engine=engine)
    strain = 1e-3 * np.random.default_rng(1).normal(size=(5, 6))
    stiffness = hooke_matrix(laws.YOUNG)
    values, blocks = model.jacobian({"strain": strain})
    assert largest_difference(values["stress"], strain @ stiffness) < 1e-10
    assert largest_difference(values["energy"], ((strain @ stiffness) * strain).sum(1) / 2) < 1e-12
    assert largest_difference(blocks["stress"]["strain"], np.tile(stiffness, (5, 1, 1))) < 1e-9
    assert largest_difference(blocks["energy"]["strain"], strain @ stiffness) < 1e-10
    _, by_young = model.param_jacobian({"strain": strain})
    assert list(by_young) == ["stress"]
    assert largest_difference(by_young["stress"]["E"] * laws.YOUNG, strain @ stiffness) < 1e-10


def test_a_parameter_may_differ_from_point_to_point(exported: Path) -> None:
    model = neml2_capi.Model(exported / "elasticity")
    assert float(model.named_parameters()["nu"]) == laws.POISSON
    strain = 1e-3 * np.random.default_rng(1).normal(size=(5, 6))
    moduli = np.linspace(1e5, 3e5, 5)
    model.set_parameter("E", moduli)
    expected = moduli[:, None] * (strain @ hooke_matrix(1.0))
    assert largest_difference(model.forward({"strain": strain})["stress"], expected) < 1e-10


def test_a_law_in_single_precision_of_any_shape(exported: Path) -> None:
    model = neml2_capi.Model(exported / "single", dtype="float32")
    fractions = np.random.default_rng(1).random((5, 4)).astype(np.float32)
    strain = np.random.default_rng(2).random((5, 6)).astype(np.float32)
    values, blocks = model.jacobian({"fractions": fractions, "strain": strain})
    stiffness = np.array([1, 2, 4, 8], dtype=np.float32)
    assert values["stress"].dtype == np.float32
    expected = (fractions @ stiffness)[:, None] * strain
    assert largest_difference(values["stress"], expected) < 1e-5
    block = blocks["stress"]["fractions"]
    assert largest_difference(block, strain[:, :, None] * stiffness) < 1e-6


# ---- residuals ----


class Perzyna:
    """The same law in numpy: radial return, one scalar equation for the plastic increment."""

    shear = laws.YOUNG / (2 * (1 + laws.POISSON))

    def __call__(self, strain: Any, dt: float, yield_stress: float = laws.YIELD) -> tuple[Any, Any]:
        """Stress and plastic strain after one step from the virgin state, of one point."""
        trial = hooke_matrix(laws.YOUNG) @ strain
        deviator = trial.copy()
        deviator[:3] -= trial[:3].mean()
        mises = np.sqrt(1.5 * deviator @ deviator)

        def equation(p: float) -> float:
            over = mises - 3 * self.shear * p - yield_stress - laws.HARDENING * p
            return float(p - dt * (max(over, 0.0) / laws.VISCOSITY) ** laws.EXPONENT)

        p = brentq(equation, 0.0, mises / (3 * self.shear), xtol=1e-18, rtol=1e-15)
        return trial - 3 * self.shear * p * deviator / mises, p


def virgin_state(points: int) -> dict[str, Any]:
    zeros = np.zeros((points, 6))
    return {"strain~1": zeros, "stress~1": zeros, "p~1": np.zeros(points), "t~1": np.zeros(points)}


def some_strains() -> Any:
    strain = np.zeros((3, 6))
    strain[:, 0] = [1e-3, 2e-3, 3e-3]
    strain[:, 4] = [0, -5e-4, -1e-3]
    return strain


@pytest.mark.parametrize("engine", ["native", "python"])
def test_a_residual_is_solved(exported: Path, engine: str) -> None:
    model = neml2_capi.Model(exported / "perzyna", engine=engine)
    strain = some_strains()
    made = model.forward({"strain": strain, "t": 1.0, **virgin_state(3)})
    for point in range(3):
        stress, p = Perzyna()(strain[point], 1.0)
        assert largest_difference(made["stress"][point], stress) < 1e-8 * np.abs(stress).max()
        assert made["p"][point] == pytest.approx(p, rel=1e-8)
    assert made["p"][2] > made["p"][1] > 1e-5


@pytest.mark.parametrize("given", ["strain", "t", "stress~1", "p~1"])
def test_the_tangent_is_that_of_differences(exported: Path, given: str) -> None:
    model = neml2_capi.Model(exported / "perzyna")
    inputs = {"strain": some_strains(), "t": np.ones(3), **virgin_state(3)}
    inputs["stress~1"] = 10.0 * np.random.default_rng(2).normal(size=(3, 6))
    _, blocks = model.jacobian(inputs)
    step = {"strain": 1e-8, "t": 1e-5, "stress~1": 1e-3, "p~1": 1e-7}[given]
    for index in range(inputs[given][0].size):
        moved = [np.array(inputs[given]) for _ in range(2)]
        for sign, array in zip((1, -1), moved, strict=True):
            array.reshape(3, -1)[:, index] += sign * step
        high, low = (model.forward({**inputs, given: array}) for array in moved)
        for out in ("stress", "p"):
            expected = (high[out] - low[out]) / (2 * step)
            block = blocks[out][given].reshape(*high[out].shape, -1)[..., index]
            scale = np.abs(blocks[out][given]).max()
            assert largest_difference(block, expected) < 1e-5 * scale


def test_parameters_of_a_residual_are_set_and_differentiated(exported: Path) -> None:
    model = neml2_capi.Model(exported / "perzyna")
    strain = some_strains()
    inputs = {"strain": strain, "t": np.ones(3), **virgin_state(3)}
    limits = np.array([100.0, 150.0, 200.0])  # of each point
    model.set_parameter("yield_stress", limits)
    made = model.forward(inputs)["stress"]
    for point, limit in enumerate(limits):
        stress, _ = Perzyna()(strain[point], 1.0, limit)
        assert largest_difference(made[point], stress) < 1e-8 * np.abs(stress).max()
    _, blocks = model.param_jacobian(inputs)
    sides = []
    for sign in (1, -1):
        model.set_parameter("yield_stress", limits + sign * 1e-3)
        sides.append(model.forward(inputs)["stress"])
    expected = (sides[0] - sides[1]) / 2e-3
    block = blocks["stress"]["yield_stress"]
    assert largest_difference(block, expected) < 1e-5 * np.abs(block).max()


def test_a_history_is_driven_through_time(exported: Path) -> None:
    model = neml2_capi.Model(exported / "perzyna")
    times = np.linspace(0, 2, 9)
    results = neml2_capi.drive(
        model, times, {"strain": lambda t: 1e-3 * t * np.array([1.0, -0.4, -0.4, 0, 0, 0])}
    )
    assert np.all(np.diff(np.asarray(results["p"]).ravel()) >= 0)
    assert {(h.input, h.output) for h in model.histories} >= {("stress~1", "stress"), ("p~1", "p")}


def test_metadata_are_those_of_schema_14(exported: Path) -> None:
    metadata = json.loads((exported / "perzyna" / "metadata.json").read_text())
    segment = metadata["segments"][0]
    roles = {given["name"]: (given["role"], given["pair"]) for given in segment["givens"]}
    assert metadata["schema_version"] == 14
    assert roles["strain"] == ("cur_force", "strain~1")
    assert roles["t~1"] == ("old_force", "t")
    assert roles["stress~1"] == ("old_state", "stress")
    assert len(metadata["derivatives"]) == 2 * 6
    assert len(metadata["parameter_derivatives"]) == 2 * 2


# ---- declarations ----


def nothing(strain: Any) -> Any:
    return strain


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({}, "declare inputs and outputs"),
        ({"inputs": {"strain": "SR2"}, "unknowns": {"x": "Scalar"}}, "declare inputs and outputs"),
        ({"inputs": {"strain": "SR2"}}, "outputs are missing"),
        ({"inputs": {"strain": "SR3"}, "outputs": {"stress": "SR2"}}, "'SR3'"),
        ({"inputs": {"strain": "SR2"}, "outputs": {"strain": "SR2"}}, "called 'strain'"),
        ({"inputs": {"strain": "SR2"}, "outputs": {"s": "SR2"}, "dtype": "int32"}, "int32"),
        ({"inputs": {"strain": "SR2"}, "outputs": {"s": (3,)}}, "'s' with the shape"),
        ({"inputs": {"strain": "SR2"}, "outputs": {"s": "SR2", "t": "SR2"}}, "1 tensors"),
        (
            {"inputs": {"strain": "SR2"}, "outputs": {"s": "SR2"}, "derivatives": ["s:x"]},
            "'x'",
        ),
        ({"unknowns": {"x": "Scalar"}, "givens": {"y": "Scalar"}, "predictor": "cubic"}, "cubic"),
    ],
)
def test_a_wrong_declaration_is_told(tmp_path: Path, declared: Any, message: str) -> None:
    with pytest.raises(neml2_capi.FatalError, match=message):
        export.model(nothing, tmp_path / "law", **declared)
    assert not (tmp_path / "law" / "metadata.json").exists()


def test_a_law_that_branches_on_values_is_told(tmp_path: Path) -> None:
    def law(strain: Any) -> Any:
        return strain if strain.sum() > 0 else -strain

    declared: Any = {"inputs": {"strain": "SR2"}, "outputs": {"stress": "SR2"}}
    with pytest.raises(neml2_capi.FatalError, match=r"torch\.where"):
        export.model(law, tmp_path / "law", **declared)


# ---- other languages ----


def numbers(printed: str) -> list[Any]:
    return [np.array(line.split(), dtype=float) for line in printed.splitlines()]


def expected_lines(exported: Path) -> dict[str, Any]:
    x = 0.5 * torch.arange(1, 4).unsqueeze(1) - 0.25 * torch.arange(6).unsqueeze(0)
    table = laws.Table()(*laws.some_table_inputs(3))
    perzyna = neml2_capi.Model(exported / "perzyna")
    inputs = {"strain": some_strains(), "t": np.ones(3), **virgin_state(3)}
    values, blocks = perzyna.jacobian(inputs)
    return {
        "network": laws.network().requires_grad_(False)(x.double()).numpy().ravel(),
        **{name: tensor.numpy().ravel() for name, tensor in table.items()},
        "stress": values["stress"].ravel(),
        "tangent": blocks["stress"]["strain"].ravel(),
    }


def test_it_runs_from_c(exported: Path) -> None:
    printed = numbers(run(c_program(HOSTS / "exported.c"), exported))
    expected = expected_lines(exported)
    for line, (name, values) in zip(printed, expected.items(), strict=True):
        assert largest_difference(line, values) <= 1e-14 * np.abs(values).max(), name


@needs_fortran
def test_it_runs_from_fortran(exported: Path) -> None:
    checks = TESTS / "fortran" / "checks.f90"
    printed = numbers(run(fortran_program(HOSTS / "exported.f90", checks), exported))
    expected = expected_lines(exported)
    del expected["many"]  # there are no bools of one byte in Fortran
    for line, (name, values) in zip(printed, expected.items(), strict=True):
        assert largest_difference(line, values) <= 1e-14 * np.abs(values).max(), name


def test_without_torch_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None; import neml2_capi.export"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert "pip install 'neml2_capi[compile]'" in done.stderr
