"""Packages on libtorch: as on the built-in runtime if that has all, else as in torch."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_agreement, uncertainties
from conftest import compiled
from native import (
    CC,
    HOSTS,
    PREBUILT,
    ROOT,
    TESTS,
    c_program,
    command,
    folder,
    fortran_program,
    needs_fortran,
    run,
)
from numpy.typing import NDArray
from programs import built
from states import Artifacts, load, state_of

import neml2_capi
from neml2_capi import FatalError, Graph, Model
from neml2_capi._ffi.runtime import libtorch

sys.path.insert(0, str(ROOT / "tests" / "models"))
from recipes import RECIPES

Array = NDArray[Any]
CHECKS_MODULE = TESTS / "fortran" / "checks.f90"
ELASTICITY = PREBUILT / "elasticity"
PACKAGE = ELASTICITY / "cpu" / "float64" / "elasticity.pt2"
NETWORKS = ["convolution", "attention", "eigenvalues"]
OTHERS = "NEML2_CAPI_TEST_LIBTORCH"  # names other versions of libtorch, as PATH does folders

try:
    libtorch()
except FatalError as missing:
    pytestmark = pytest.mark.skip(reason=str(missing))


@pytest.fixture(scope="module")
def networks() -> Path:
    """The packages of tests/models/networks.py."""
    return compiled("networks")


def close(ours: Array, theirs: Array, tolerance: float) -> None:
    """Equal except for round-off, by the greatest value."""
    assert ours.shape == theirs.shape
    scale = max(float(np.abs(theirs).max(initial=0.0)), 1e-300)
    assert float(np.abs(ours - theirs).max(initial=0.0)) <= tolerance * scale


def python(code: str, **environment: str | Path) -> str:
    """What a Python of its own prints, which has this package and no libtorch yet."""
    settings = os.environ | {name: str(value) for name, value in environment.items()}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=settings
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ------------------------------------------------------------------------------------------------
# Models
# ------------------------------------------------------------------------------------------------


def with_exact_steps(artifact: Path, folder: Path) -> Path:
    """The artifact, or, if a Krylov solver makes the Newton steps, a copy that solves them to
    round-off.

    As compiled, the solver leaves an error in the last step, and round-off decides after which
    iteration it stops: by 2e-12 of the solution the runtimes differed for that.
    """
    file = artifact / "metadata.json"
    metadata = json.loads(file.read_text()) if file.is_file() else {}
    krylov = (metadata.get("solver_config") or {}).get("krylov")
    if not krylov:
        return artifact
    krylov |= {"abs_tol": 0.0, "rel_tol": 1e-13}
    root = Path(shutil.copytree(artifact, folder / artifact.name))
    (root / "metadata.json").write_text(json.dumps(metadata))
    return root


@pytest.mark.parametrize("name", RECIPES)
def test_a_model_gives_the_same_on_both(artifacts: Artifacts, tmp_path: Path, name: str) -> None:
    root = with_exact_steps(artifacts[name], tmp_path)
    ours, theirs = (load({name: root}, name, runtime=each) for each in ("builtin", "libtorch"))
    assert (ours.runtime, theirs.runtime) == ("builtin", "libtorch")
    state = state_of(name, ours)
    moved = uncertainties(ours, name, state)
    assert_agreement(theirs, ours, name, state, {k: 5 * v for k, v in moved.items()})


def test_an_exported_model_is_the_same_on_libtorch(exported: Path, surrogate: Path) -> None:
    roots = [file.parent for file in sorted(exported.glob("*/metadata.json"))]
    assert len(roots) == 3
    random = np.random.default_rng(5)
    for root in (*roots, surrogate):
        (dtype,) = (folder.name for folder in (root / "cpu").iterdir())
        ours, theirs = (Model(root, dtype=dtype, runtime=each) for each in ("builtin", "libtorch"))
        assert (ours.runtime, theirs.runtime) == ("builtin", "libtorch")
        inputs = {
            v.name: (0.0 if v.name.endswith("~1") else 1e-3)
            * random.standard_normal((4, *v.base_shape)).astype(dtype)
            for v in ours.inputs
        }
        if "t" in inputs:
            inputs["t"][:] = 1.0
        moved = uncertainties(ours, root.name, inputs)
        assert_agreement(theirs, ours, root.name, inputs, {k: 5 * v for k, v in moved.items()})


def test_points_that_fail_are_the_same_on_both() -> None:
    reports = []
    for runtime in ("builtin", "libtorch"):
        model = Model(PREBUILT / "viscoplastic", runtime=runtime)
        model.options["miters"] = 3
        inputs = {v.name: np.zeros((40, *v.base_shape)) for v in model.inputs}
        inputs["strain"][:, 0] = np.linspace(0, 0.1, 40)
        inputs["t"][:] = 1.0
        reports.append(model.evaluate(inputs)[1])
    assert 0 < np.count_nonzero(reports[0]["status"]) < 40
    for key in ("status", "iterations"):
        np.testing.assert_array_equal(reports[0][key], reports[1][key])


def test_a_singular_matrix_is_a_failed_point_and_no_failure(graphs: Path) -> None:
    solve = Graph(graphs / "root_solve.pt2", runtime="libtorch")
    operator = np.array([[[2.0]], [[4.0]]], np.float32)
    (step,) = solve(operator, np.ones((2, 1), np.float32))
    np.testing.assert_array_equal(step, [[0.5], [0.25]])


def test_the_built_in_runtime_is_taken_where_it_has_all() -> None:
    assert Model(ELASTICITY).runtime == Graph(PACKAGE).runtime == "builtin"
    assert Model(ELASTICITY, runtime="auto").runtime == "builtin"


def test_a_stub_is_loaded_for_a_runtime() -> None:
    stub = ELASTICITY.parent / "elasticity_aoti.i"
    assert Model.from_stub(stub, "elasticity", runtime="libtorch").runtime == "libtorch"


# ------------------------------------------------------------------------------------------------
# Graphs
# ------------------------------------------------------------------------------------------------


def test_a_graph_gives_the_same_on_both(graphs: Path) -> None:
    random, packages = np.random.default_rng(6), sorted(graphs.glob("*.pt2"))
    assert packages
    for package in packages:
        ours, theirs = (Graph(package, runtime=each) for each in ("builtin", "libtorch"))
        inputs = [
            (1 + 8 * random.random(np.maximum(given.least, 1))).astype(given.dtype)
            for given in ours.inputs
        ]
        for builtin, other in zip(ours(*inputs), theirs(*inputs), strict=True):
            close(other, builtin, 1e-6 if builtin.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("runtime", ["auto", "libtorch"])
def test_what_the_built_in_runtime_lacks_is_as_in_torch(
    networks: Path, name: str, runtime: str
) -> None:
    known = dict(np.load(networks / f"{name}.npz"))
    graph = Graph(networks / f"{name}.pt2", runtime=runtime)
    assert graph.runtime == "libtorch"
    tolerance = 1e-6 if known["in_0"].dtype == np.float32 else 1e-14
    for _ in range(2):
        close(graph(known["in_0"])[0], known["out_0"], tolerance)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_built_in_runtime_says_what_it_lacks(networks: Path, name: str) -> None:
    with pytest.raises(FatalError, match=r"runtime does not have: a.+Run it on libtorch"):
        Graph(networks / f"{name}.pt2", runtime="builtin")


def test_a_custom_operator_is_called_with_arguments_of_all_kinds(networks: Path) -> None:
    pytest.importorskip("torch")
    from scaling import define

    define()
    known = dict(np.load(networks / "scaled.npz"))
    outputs = Graph(networks / "scaled.pt2")(known["in_0"], known["in_1"])
    for i, output in enumerate(outputs):
        close(output, known[f"out_{i}"], 1e-14)


def test_a_library_in_c_registers_an_operator(networks: Path) -> None:
    """Without Python's torch: the library is linked with libtorch, and its schema is declared."""
    place = Path(libtorch()[0]).parent
    library = folder() / "custom_operator.so"
    link = (f"-L{place}", "-ltorch_cpu", f"-Wl,-rpath-link,{place}")
    command(CC, "-shared", "-fPIC", HOSTS / "custom_operator.c", "-o", library, *link)
    python(f"""if True:
        import ctypes, sys
        import numpy as np
        from neml2_capi import Graph
        from neml2_capi._ffi.library import lib
        from neml2_capi._ffi.runtime import libtorch
        libtorch()
        assert ctypes.CDLL({str(library)!r}).register_operator() == 0
        assert lib.neml2_operator_declare(b"neml2_capi_host::twice(Tensor x) -> Tensor") == 0
        known = np.load({str(networks / "twice.npz")!r})
        (result,) = Graph({str(networks / "twice.pt2")!r})(known["in_0"])
        np.testing.assert_array_equal(result, known["out_0"])
        assert "torch" not in sys.modules
    """)


def test_an_operator_that_no_library_registered_is_named(networks: Path) -> None:
    told = python(f"""if True:
        import numpy as np
        from neml2_capi import Graph
        from neml2_capi._ffi.library import lib
        lib.neml2_operator_declare(b"neml2_capi_host::twice(Tensor x) -> Tensor")
        try:
            Graph({str(networks / "twice.pt2")!r})(np.ones((4, 3)))
        except Exception as error:
            print(error)
    """)
    assert re.search("twice.pt2: .*neml2_capi_host::twice", told), told


def test_a_custom_operator_that_nobody_told_of_is_named(networks: Path) -> None:
    told = python(f"""if True:
        from neml2_capi import Graph
        try:
            Graph({str(networks / "scaled.pt2")!r})
        except Exception as error:
            print(error)
    """)
    assert "neml2_capi_test::scale, whose schema is not known" in told
    assert "neml2_operator_declare" in told


@pytest.mark.filterwarnings("ignore:Warning only once")
def test_why_an_operator_failed_is_told(networks: Path) -> None:
    torch = pytest.importorskip("torch")
    from scaling import define

    define()
    with torch.library._scoped_library("neml2_capi_test", "IMPL") as library:

        def fail(*_: object, **__: object) -> None:
            raise ValueError("on purpose")

        graph = Graph(networks / "scaled.pt2")
        known = np.load(networks / "scaled.npz")
        library.impl("scale", fail, "CPU", allow_override=True)
        with pytest.raises(FatalError, match=r"scaled\.pt2: .*neml2_capi_test::scale.*on purpose"):
            graph(known["in_0"], known["in_1"])


def test_outputs_that_are_inputs_outlive_them(graphs: Path) -> None:
    graph = Graph(graphs / "aliases.pt2", runtime="libtorch")
    values = np.random.default_rng(1).random((4, 3))
    given = values.copy()
    same, view, doubled, transposed = graph(given)
    given[:] = np.nan
    del given
    np.testing.assert_array_equal(same, values)
    np.testing.assert_array_equal(view, values[:, 1:])
    np.testing.assert_array_equal(doubled, 2 * values)
    np.testing.assert_array_equal(transposed, 2 * values.T)


def test_whole_numbers_and_a_graph_without_inputs(graphs: Path) -> None:
    divide = Graph(graphs / "integer_division.pt2", runtime="libtorch")
    np.testing.assert_array_equal(divide(np.array([7, -7]), np.array([2, 2]))[0], [3, -4])
    with pytest.raises(FatalError, match=r"integer_division\.pt2"):
        divide(np.array([7, 7]), np.array([2, 0]))
    constant = Graph(graphs / "no_inputs.pt2", runtime="libtorch")
    np.testing.assert_array_equal(constant()[0], [7, 7, 7])


def test_inputs_are_checked_as_ever(networks: Path) -> None:
    graph = Graph(networks / "convolution.pt2")
    with pytest.raises(FatalError, match=r"must have the sizes \(2\.\.\d+, 3, 9, 9\)"):
        graph(np.zeros((4, 3, 9, 8), np.float32))
    with pytest.raises(FatalError, match="must be float32"):
        graph(np.zeros((4, 3, 9, 9)))


def test_any_number_of_threads_may_call(networks: Path) -> None:
    graph = Graph(networks / "convolution.pt2")
    images = np.load(networks / "convolution.npz")["in_0"]
    given = [images + shift for shift in range(8)]
    expected = [graph(image)[0] for image in given]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            for ours, theirs in zip(pool.map(lambda i: graph(i)[0], given), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)


def test_runs_hold_no_memory(networks: Path) -> None:
    graph = Graph(networks / "eigenvalues.pt2")
    matrices = np.random.default_rng(2).random((500, 3, 3))

    def resident() -> int:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    for _ in range(200):
        graph(matrices)
    before = resident()
    for _ in range(2000):
        graph(matrices)
    assert resident() - before < 5 << 20  # of 72 MB that went through


# ------------------------------------------------------------------------------------------------
# Other languages
# ------------------------------------------------------------------------------------------------


def test_c_chooses() -> None:
    run(built("c_test_runtimes"), NEML2_CAPI_LIBTORCH=libtorch()[0])


def test_cpp_chooses() -> None:
    run(built("cpp_face_test_runtimes"), NEML2_CAPI_LIBTORCH=libtorch()[0])


@needs_fortran
def test_fortran_chooses() -> None:
    program = built("fortran_test_runtimes")
    run(program, NEML2_CAPI_LIBTORCH=libtorch()[0])


NETWORK_PROGRAMS = {
    "C": lambda: c_program(HOSTS / "network.c"),
    "Fortran": lambda: fortran_program(HOSTS / "network.f90", CHECKS_MODULE),
}


@pytest.mark.parametrize("name", ["convolution", "attention"])
@pytest.mark.parametrize("language", ["C", pytest.param("Fortran", marks=needs_fortran)])
def test_a_network_is_as_in_torch_from(
    networks: Path, tmp_path: Path, language: str, name: str
) -> None:
    known = dict(np.load(networks / f"{name}.npz"))
    known["in_0"].tofile(tmp_path / "input")
    sizes = map(str, known["in_0"].shape)
    program = NETWORK_PROGRAMS[language]()
    files = networks / f"{name}.pt2", tmp_path / "input"
    printed = run(program, *files, *sizes, NEML2_CAPI_LIBTORCH=libtorch()[0])
    close(np.array(printed.split(), dtype=np.float32), known["out_0"].ravel(), 1e-6)


# ------------------------------------------------------------------------------------------------
# The command line
# ------------------------------------------------------------------------------------------------


def neml2_capi_says(*arguments: str | Path) -> str:
    """What the command neml2-capi prints."""
    for needed in ("click", "rich"):
        pytest.importorskip(needed)
    return command(sys.executable, "-m", "neml2_capi.cli", *arguments)


@pytest.fixture
def artifact(tmp_path: Path, networks: Path) -> Path:
    """Elasticity with another package, which calls what only libtorch has."""
    root = tmp_path / "elasticity"
    shutil.copytree(ELASTICITY, root)
    shutil.copy(networks / "eigenvalues.pt2", root / PACKAGE.relative_to(ELASTICITY))
    return root


def test_inspect_says_what_a_package_runs_on(artifact: Path) -> None:
    packages = json.loads(neml2_capi_says("inspect", artifact, "--json"))["packages"]
    other = [package for package in packages if package["runtime"] != "builtin"]
    (package,) = other
    assert (package["file"], package["runtime"]) == ("elasticity.pt2", "libtorch")
    assert "aten::_linalg_eigh" in package["why"]
    assert f"libtorch {libtorch()[1]}" in package["why"]
    assert {p["why"] for p in packages if p not in other} == {
        "the built-in runtime has all that it calls"
    }
    assert re.search(r"elasticity\.pt2, libtorch: ", neml2_capi_says("inspect", artifact))


def test_doctor_says_what_a_package_runs_on() -> None:
    assert "runs on the built-in runtime: it has all" in neml2_capi_says("doctor", ELASTICITY)
    document = json.loads(neml2_capi_says("doctor", ELASTICITY, "--json"))
    assert {choice["runtime"] for choice in document["runtimes"]} == {"builtin"}


def test_the_choice_is_told_with_its_reason(networks: Path) -> None:
    pytest.importorskip("click")
    from neml2_capi.cli.runtimes import choose

    choice = choose(networks / "convolution.pt2")
    assert re.match(
        "convolution.pt2 runs on libtorch: The package calls what the built-in runtime does not "
        r"have: aoti_torch_cpu_.+ \(libtorch [\d.]+: .+libtorch_cpu.so\)",
        str(choice),
    )
    unknown = choose(networks / "twice.pt2")
    assert unknown.runtime == ""
    assert str(unknown).startswith("twice.pt2 runs on nothing: ")


# ------------------------------------------------------------------------------------------------
# Which libtorch
# ------------------------------------------------------------------------------------------------


def test_the_installed_torch_is_taken_and_not_imported() -> None:
    torch = pytest.importorskip("torch")
    told = python(f"""if True:
        import sys
        from neml2_capi import Model
        from neml2_capi._ffi.runtime import libtorch
        Model({str(ELASTICITY)!r}, runtime="libtorch")
        print(*libtorch(), "torch" in sys.modules)
    """).split()
    assert Path(told[0]).samefile(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")
    assert torch.__version__.startswith(told[1])
    assert told[2] == "False"


@pytest.mark.parametrize("first", ["import torch", "load()"])
def test_torch_and_the_library_share_one_libtorch(first: str) -> None:
    pytest.importorskip("torch")
    python(f"""if True:
        import numpy as np
        from neml2_capi import Model

        def load():
            return Model({str(ELASTICITY)!r}, runtime="libtorch")

        {first}
        import torch
        strain = torch.rand(5, 6, dtype=torch.float64)
        stress = load().forward({{"strain": strain}})["stress"]
        assert isinstance(stress, torch.Tensor)
        other = Model({str(ELASTICITY)!r}).forward({{"strain": strain}})["stress"]
        torch.testing.assert_close(stress, other)
        mapped = [line.split()[-1] for line in open("/proc/self/maps") if "libtorch_cpu" in line]
        assert len(set(mapped)) == 1, mapped
    """)


def test_a_folder_without_it_is_refused(tmp_path: Path) -> None:
    message = refused(tmp_path)
    assert re.search(rf"no libtorch_cpu.so at NEML2_CAPI_LIBTORCH={tmp_path}", message)


def test_an_older_one_is_refused_with_its_version() -> None:
    message = refused(fake_libtorch("old", "0x0209"))
    assert "libtorch 2.9.0" in message
    assert "too old. Install torch 2.10 or later" in message


def test_what_one_lacks_is_named_with_its_version() -> None:
    message = refused(fake_libtorch("lacking", "0x020a", "-DFAKE_LACKS_DISPATCHER"))
    assert "libtorch 2.10.0" in message
    assert "it lacks aoti_torch_call_dispatcher" in message


def test_what_a_package_misses_there_is_named_with_the_version(networks: Path) -> None:
    message = refused(fake_libtorch("empty", "0x020d"), networks / "convolution.pt2", "auto")
    assert "built-in runtime does not have" in message
    assert "Nor can libtorch run it: The package calls what libtorch 2.13.0" in message
    assert "aoti_torch_cpu_convolution" in message


def test_a_process_holds_one_libtorch_only() -> None:
    pytest.importorskip("torch")
    message = refused(fake_libtorch("other", "0x020d"), before="import torch")
    assert "a process can hold one libtorch only" in message


def test_a_runtime_that_does_not_exist_is_refused() -> None:
    with pytest.raises(neml2_capi.UnknownNameError, match="auto, builtin, libtorch"):
        Graph(PACKAGE, runtime="libtroch")
    with pytest.raises(neml2_capi.UnknownNameError, match="auto, builtin, libtorch"):
        Model(ELASTICITY, runtime="")
    with pytest.raises(FatalError, match="runs on the built-in runtime"):
        Model(ELASTICITY, engine="python", runtime="libtorch")


@pytest.mark.parametrize("place", os.environ.get(OTHERS, "").split(os.pathsep))
def test_another_version_of_libtorch_runs_the_same_packages(place: str) -> None:
    """The tests above of models and of networks once more, in a process that has that libtorch."""
    if not place:
        pytest.skip(f"{OTHERS} names no other libtorch")
    found = python(
        "from neml2_capi._ffi.runtime import libtorch; print(*libtorch())",
        NEML2_CAPI_LIBTORCH=place,
    ).split()
    assert Path(found[0]).is_relative_to(place)
    assert found[1] != libtorch()[1]
    same = "on_both or as_in_torch or whole_numbers or outlive"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", same],
        capture_output=True,
        text=True,
        env=os.environ | {"NEML2_CAPI_LIBTORCH": place},
    )
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout, done.stdout


def refused(
    place: Path, package: Path = PACKAGE, runtime: str = "libtorch", before: str = ""
) -> str:
    """Why a package is not loaded with the libtorch at `place`."""
    return python(
        f"""if True:
        {before}
        from neml2_capi import FatalError, Graph
        try:
            Graph({str(package)!r}, runtime={runtime!r})
        except FatalError as error:
            print(error)
        """,
        NEML2_CAPI_LIBTORCH=place,
    )


def fake_libtorch(name: str, version: str, *flags: str) -> Path:
    """A folder with a libtorch_cpu.so of a version, 0x020d for 2.13, that can do nothing."""
    place = folder() / f"libtorch-{name}"
    place.mkdir(exist_ok=True)
    build = ("-shared", "-fPIC", f"-DFAKE_VERSION={version}", *flags)
    command(CC, *build, HOSTS / "fake_libtorch.c", "-o", place / "libtorch_cpu.so")
    return place
