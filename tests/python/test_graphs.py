"""Any AOTInductor package as a function of arrays: what it takes and returns, on both runtimes."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import PREBUILT, needs_fortran, run
from programs import built

from neml2_capi import FatalError, Graph, GraphOutput
from neml2_capi._ffi.runtime import libtorch
from neml2_capi.graph.pytree import structure

PACKAGE = PREBUILT / "elasticity" / "cpu" / "float64" / "elasticity.pt2"


def _libtorch_is_there() -> bool:
    try:
        return bool(libtorch())
    except FatalError:
        return False


needs_libtorch = pytest.mark.skipif(not _libtorch_is_there(), reason="there is no libtorch")
RUNTIMES = ["builtin", pytest.param("libtorch", marks=needs_libtorch)]
both = pytest.mark.parametrize("runtime", RUNTIMES)


def arguments(points: int) -> dict[str, Any]:
    random = np.random.default_rng(points)
    return {
        "strain": random.normal(size=(points, 3)),
        "old": random.normal(size=(points, 3)),
        "temperature": random.normal(size=points),
        "count": np.array([3, 4], np.int32),
    }


def expected(strain: Any, old: Any, temperature: Any, count: Any) -> dict[str, Any]:
    elastic = 2 * strain - 3 * old
    operator = np.eye(3) + strain[:, :, None] * strain[:, None, :]
    return {
        "stress": elastic * temperature[:, None],
        "parts": (elastic, count + 1),
        "solved": np.linalg.solve(operator, strain[:, :, None]),
    }


def require_equal(made: Any, wanted: dict[str, Any]) -> None:
    assert list(made) == list(wanted)
    assert isinstance(made["parts"], tuple)
    for name in ("stress", "solved"):
        np.testing.assert_allclose(made[name], wanted[name], rtol=1e-12, atol=1e-14)
    for part, other in zip(made["parts"], wanted["parts"], strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-12, atol=1e-14)
        assert part.dtype == other.dtype


# ---- what a package says ----


@both
def test_inputs_and_outputs_have_the_names_that_the_package_knows(
    signatures: Path, runtime: str
) -> None:
    graph = Graph(signatures / "named.pt2", runtime)
    # torch does not keep the name of a positional argument.
    assert [given.name for given in graph.inputs][1:] == ["old", "temperature", "count"]
    assert graph.inputs[0].name.startswith("arg")
    assert graph.outputs == (
        GraphOutput("stress", "float64", (None, 3)),
        GraphOutput("parts.0", "float64", (None, 3)),
        GraphOutput("parts.1", "int32", (2,)),
        GraphOutput("solved", None, (None, 3, 1)),
    )
    assert "temperature" in graph.call_spec[0] and "solved" in graph.call_spec[1]


def test_inputs_are_described(signatures: Path) -> None:
    _, old, temperature, count = Graph(signatures / "named.pt2").inputs
    assert (old.dtype, old.shape, old.strides) == ("float64", (range(2, 2**20 + 1), 3), (3, 1))
    assert (temperature.shape, temperature.strides) == ((range(2, 2**20 + 1),), (1,))
    assert (count.dtype, count.shape, count.strides) == ("int32", (2,), (1,))
    (columns,) = Graph(signatures / "columns.pt2").inputs
    assert (columns.order, columns.strides) == ((1, 0), (1, None))


def test_every_output_of_ours_has_a_shape_and_an_element_type(artifacts: Any) -> None:
    """Except element types that operators outside of a package return."""
    for name in ("elasticity", "viscoplastic"):
        for package in sorted(artifacts[name].rglob("*.pt2")):
            graph = Graph(package)
            zeros = [np.zeros([max(2, n) for n in i.least], i.dtype) for i in graph.inputs]
            if "solve" in package.name:
                zeros[0] = zeros[0] + np.eye(zeros[0].shape[-1])
            for output, made in zip(graph.outputs, graph.flat(*zeros), strict=True):
                assert output.dtype == made.dtype.name or "solve" in package.name, package
                assert output.shape is not None and len(output.shape) == made.ndim, package
                for told, size in zip(output.shape, made.shape, strict=True):
                    assert told in (None, size), package


# ---- calls ----


@both
@pytest.mark.parametrize("points", [1, 2, 7])
def test_a_call_takes_names_and_returns_what_the_module_did(
    signatures: Path, runtime: str, points: int
) -> None:
    graph, given = Graph(signatures / "named.pt2", runtime), arguments(points)
    wanted = expected(**given)
    require_equal(graph(*given.values()), wanted)
    strain = given.pop("strain")
    require_equal(graph(strain, **given), wanted)
    assert len(graph.flat(strain, *given.values())) == 4


def test_torch_graphs_are_called_alike(signatures: Path) -> None:
    torch = pytest.importorskip("torch")
    import neml2_capi.torch

    given = {name: torch.as_tensor(value) for name, value in arguments(4).items()}
    graph = neml2_capi.torch.Graph(signatures / "named.pt2")
    made = graph(given.pop("strain"), **given)
    wanted = expected(**arguments(4))
    wanted["parts"] = tuple(torch.as_tensor(part) for part in wanted["parts"])
    require_equal(made, wanted)
    assert isinstance(made["parts"][0], torch.Tensor)


def test_names_that_do_not_fit_are_told(signatures: Path) -> None:
    graph, given = Graph(signatures / "named.pt2"), arguments(3)
    strain = given.pop("strain")
    with pytest.raises(
        FatalError, match=r"'temperatur' is none.+ old, temperature, count"
    ) as error:
        graph(strain, **given, temperatur=0)
    assert error.value.subject == "temperatur"
    with pytest.raises(FatalError, match="'old' is given by position as well"):
        graph(strain, given["old"], **given)
    del given["count"]
    with pytest.raises(FatalError, match="'count' is missing"):
        graph(strain, **given)


def test_a_lone_tensor_comes_in_a_tuple(signatures: Path) -> None:
    made = Graph(signatures / "columns.pt2")(np.ones((4, 3)))
    assert isinstance(made, tuple) and len(made) == 1


LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


def spec(kind: str, context: str = "null", leaves: int = 2) -> str:
    tree = {"type": kind, "context": context, "children_spec": [LEAF] * leaves}
    return json.dumps([1, tree])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (spec("builtins.list"), [1, 2]),
        (spec("builtins.dict", '["b", "a"]'), {"b": 1, "a": 2}),
        (spec("builtins.dict", "[1, 2]"), None),
        (spec("some.Class"), None),
        (spec("builtins.tuple", leaves=1), None),
        (json.dumps([1, LEAF]), None),
        ("", None),
    ],
)
def test_only_plain_structures_are_built(text: str, wanted: Any) -> None:
    build = structure(text, 2)
    assert (build(iter([1, 2])) if build else None) == wanted


# ---- guards ----


@both
def test_what_does_not_fit_is_refused_by_name(signatures: Path, runtime: str) -> None:
    graph = Graph(signatures / "named.pt2", runtime)
    for name, value, says in [
        ("old", np.ones((3, 4)), r"'old'.+must have the sizes \(2\.\.1048576, 3\).+\(3, 4\)"),
        ("old", np.ones((3, 3), np.float32), "'old'.+must be float64, and is float32"),
        ("temperature", np.ones(4), r"Axis 0 of input 2 \('temperature'\).+ 3, and has 4"),
        ("count", np.ones(3, np.int32), r"'count'.+\(2,\).+\(3,\)"),
        ("count", np.full(2, 2**40), "'count'.+must be int32, and is int64"),
    ]:
        with pytest.raises(FatalError, match=says):
            graph(*{**arguments(3), name: value}.values())
    require_equal(graph(*arguments(3).values()), expected(**arguments(3)))


@both
def test_inputs_are_laid_out_as_the_package_wants_them(signatures: Path, runtime: str) -> None:
    a, b = np.arange(12.0).reshape(3, 4), np.array([2.0])
    graph = Graph(signatures / "transposed.pt2", runtime)
    assert [given.strides for given in graph.inputs] == [(1, 3), (1,)]
    for given in (a, np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2]):
        made = graph(given, b)
        for one, other in zip(made, (np.sin(a) * b, a.T @ a, a[:, 1:], b), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)
    columns = Graph(signatures / "columns.pt2", runtime)
    for n in (1, 2, 5):
        for given in (np.ones((n, 3)) * np.arange(3), np.ones((3, n)).T * np.arange(3)):
            np.testing.assert_allclose(columns(given)[0], np.sin(given) + 1, rtol=1e-13)


@both
def test_without_guards_only_the_number_of_inputs_is_checked(
    signatures: Path, runtime: str
) -> None:
    graph = Graph(signatures / "named.pt2", runtime, guards=False)
    given = arguments(3)
    require_equal(graph(*given.values()), expected(**given))
    # The same bits under another name, which nothing but a guard sees.
    as_unsigned = {**given, "count": given["count"].view(np.float32)}
    require_equal(graph(*as_unsigned.values()), expected(**given))
    with pytest.raises(FatalError, match="takes 4 inputs, 3 were given"):
        graph(*list(given.values())[:3])


# ---- element types ----


@both
def test_no_rows_give_no_rows(signatures: Path, runtime: str) -> None:
    """Constants and inputs of a fixed size keep theirs."""
    made = Graph(signatures / "named.pt2", runtime)(*arguments(0).values())
    for name in ("stress", "solved"):
        assert made[name].shape == expected(**arguments(0))[name].shape
    assert made["parts"][0].shape == (0, 3)
    np.testing.assert_array_equal(made["parts"][1], [4, 5])


def test_no_rows_of_another_shape_are_refused(signatures: Path) -> None:
    with pytest.raises(FatalError, match="Input 0"):
        Graph(signatures / "named.pt2")(*{**arguments(0), "strain": np.zeros((0, 4))}.values())


@pytest.mark.full("compiles a graph")
def test_what_rows_have_together_is_not_told_of_none(tmp_path: Path) -> None:
    """A spread that vanishes for equal rows is no number of none."""
    torch = pytest.importorskip("torch")
    graphs = pytest.importorskip("graphs")
    rows = {0: torch.export.Dim("rows", min=2, max=1 << 20)}
    package, given = tmp_path / "spread.pt2", torch.rand(8, 3, dtype=torch.float64)
    graphs.compile_graph(package, lambda x: ((x - x.mean(0)).abs().sum(0),), (given,), (rows,))
    (made,) = Graph(package)(given.numpy())
    np.testing.assert_allclose(made, (given - given.mean(0)).abs().sum(0), rtol=1e-12)
    with pytest.raises(FatalError, match="An input has no rows"):
        Graph(package)(np.zeros((0, 3)))


@both
def test_bfloat16_and_other_types_go_in_and_come_out(signatures: Path, runtime: str) -> None:
    torch = pytest.importorskip("torch")
    graph = Graph(signatures / "types.pt2", runtime)
    assert [given.dtype for given in graph.inputs] == ["bfloat16", "float16", "int32", "bool"]
    assert [made.dtype for made in graph.outputs] == [
        "bfloat16", "float16", "float32", "int32", "bool"
    ]  # fmt: skip
    for n in (1, 2, 37):
        a = torch.randn(n, 3).bfloat16()
        given = (a, torch.randn(n, 3).half(), torch.arange(3 * n).int().view(n, 3), a > 0)
        wanted = (2 * a, given[1] + 1, a.float().sum(-1), given[2] * given[3], ~given[3])
        for one, other in zip(graph(*given), wanted, strict=True):
            assert one.dtype == other.dtype
            torch.testing.assert_close(one, other)


def test_numpy_has_bfloat16_with_ml_dtypes(signatures: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.arange(6, dtype=np.float32).reshape(2, 3).astype(ml_dtypes.bfloat16)
    rest = (np.ones((2, 3), np.float16), np.ones((2, 3), np.int32), np.ones((2, 3), bool))
    for given in (a, np.asfortranarray(a)):
        made = Graph(signatures / "types.pt2")(given, *rest)
        assert made[0].dtype == a.dtype
        np.testing.assert_array_equal(made[0].astype(float), 2 * a.astype(float))


# ---- packages in memory ----


@both
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_package_is_loaded_from_its_bytes(runtime: str, kind: Any) -> None:
    file = Graph(PACKAGE, runtime)
    strain, modulus = np.full((3, 6), 1e-3), np.full([3, 1][: len(file.inputs[1].least)], 200e3)
    graph = Graph(kind(PACKAGE.read_bytes()), runtime)
    assert graph.runtime == runtime
    np.testing.assert_array_equal(graph(strain, modulus)[0], file(strain, modulus)[0])
    for other in (copy.copy(graph), pickle.loads(pickle.dumps(graph))):
        np.testing.assert_array_equal(other(strain, modulus)[0], file(strain, modulus)[0])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda content: b"", "it is empty"),
        (lambda content: content[: len(content) // 2], "truncated"),
        (lambda content: b"no archive at all, but some text", "not a zip archive"),
        (lambda content: content.replace(b"AOTInductorModelBase", b"AOTInductorModelBasf"), "CRC"),
    ],
)
def test_damaged_bytes_are_refused(damage: Any, says: str) -> None:
    with pytest.raises(FatalError, match=f"the package in memory.+{says}"):
        Graph(damage(PACKAGE.read_bytes()))


# ---- other languages ----


def test_c_has_all_of_it(signatures: Path) -> None:
    run(built("c_test_signatures"), signatures)


def test_cpp_has_all_of_it(signatures: Path) -> None:
    run(built("cpp_face_test_signatures"), signatures)


@needs_fortran
def test_fortran_has_all_of_it(signatures: Path) -> None:
    run(built("fortran_test_signatures"), signatures)
