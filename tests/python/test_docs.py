"""What the documentation shows: every block of code runs, and prints what stands there."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import recipes  # of tests/models, which conftest.py has on the path
from conftest import Artifacts
from markdown_it import MarkdownIt
from native import FORTRAN, MPI_SETTINGS, MPIEXEC, PACKAGE, PREBUILT, ROOT, command, installed
from pages import Block, Reader, blocks_of
from programs import built

from neml2_capi.examples import FOLDER

pytestmark = pytest.mark.native

PAGES = {
    str(path.relative_to(ROOT)): path
    for path in (
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "examples").rglob("README.md")),
    )
    if path.parent.name != "reference"  # whose examples are tested where they come from
}
REFERENCE = [f"docs/reference/{name}.md" for name in ("python", "c", "command-line")]
# What begins with _ is of the inside; or, in export/, takes minutes of a compiler: test_export.py.
MODULES = {
    str(path.relative_to(PACKAGE.parent)): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if not path.name.startswith("_") or path.name in ("__init__.py", "__main__.py")
}

# What examples take as read: a path of strain (Mandel notation), and where a model is in it.
GIVEN = """
import numpy as np
import neml2_capi
import neml2_capi.solvers
from neml2_capi import Graph, Model

path = np.linspace(0, 1e-3, 101)[:, None, None] * np.array([[1.0, -0.3, -0.3, 0, 0, 0]])
strain, stress = path[-1].copy(), np.zeros((1, 6))
model = Model("aoti/elasticity")
inputs = {"strain": strain}
"""
# What the examples of one page or module take as read besides.
GIVEN_TO = {
    "docs/overview.md": """
path = np.linspace(0, 1e-3, 101)[:, None, None] * np.array([[1.0, -0.3, -0.3, 0, 0, 0]])
history = {h.input: np.zeros(6 if "X" in h.input or "s" in h.input[:2] else ())
           for h in Model("aoti/isotropic_hardening").histories}
time, measured = 1.0, 100.0
""",
    "neml2_capi/driver/__init__.py": """
import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot as plt
strain = path
""",
    "neml2_capi/driver/transient.py": "strain = path",
    "neml2_capi/graph/graph.py": "E = np.array([200e3, 200e3])\nstrain = path[-2:, 0]",
    "neml2_capi/model/states.py": "steel = Model(neml2_capi.examples.path('chaboche'))",
    "neml2_capi/model/state.py": """
model = Model(neml2_capi.examples.path("chaboche"))
path = zip(np.linspace(0, 1, 11)[1:], path[10::10])
""",
    "neml2_capi/mpi.py": """
inputs = {v.name: np.zeros(v.base_shape) for v in Model("aoti/viscoplastic").inputs}
inputs.update(t=1.0, strain=strain)
""",
    "neml2_capi/neml2.py": """
import torch
strain = torch.tensor(strain)
""",
    "neml2_capi/solvers.py": """
model = Model("aoti/combined_hardening")
inputs = {v.name: np.zeros(v.base_shape) for v in model.inputs}
inputs.update(t=1.0, strain=strain)
""",
    "neml2_capi/jax/history.py": """
import jax, neml2_capi.jax
jax.config.update("jax_enable_x64", True)
""",
    "neml2_capi/sweeps/__init__.py": "times, strain = np.linspace(0, 1, 101), path",
    "neml2_capi/sweeps/results.py": """
results = neml2_capi.sweep(lambda parameters: {"stress": stress}, {"E": np.ones(3)})
""",
    "neml2_capi/sweeps/run_all.py": """
from functools import partial
times, strain = np.linspace(0, 1, 101), path
""",
    "neml2_capi/torch/module.py": """
import torch
import neml2_capi.torch
measured = 100.0
forces = {v.name: np.zeros(v.base_shape) for v in Model("aoti/isotropic_hardening").inputs}
forces.update(t=1.0, strain=strain)
""",
}
# Docstrings with lines for a shell, and who tests these.
SHELL = {
    "neml2_capi/__main__.py": "test_consumer.py",
    "neml2_capi/kernels/capture.py": "kernels/test_compile_command.py",
}


# How a page tells to copy what comes with the package.
_COPY = re.compile(r'^cp -rL "\$\(python3? -m neml2_capi --examples\)" aoti$', re.MULTILINE)


@pytest.fixture
def folder(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    artifacts: Artifacts,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Where a page is tried: a newcomer's have what comes with the package, others more."""
    page = request.node.callspec.params.get("page", "")
    more = [] if page.startswith(("README.md", "docs/tutorials/")) else [*PREBUILT.iterdir()]
    for name, value in MPI_SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    for name in ("examples", "tests") if page == "examples/umat/README.md" else ("examples",):
        (tmp_path / name).symlink_to(ROOT / name)
    if page in PAGES and _COPY.search(PAGES[page].read_text()):  # it makes its own
        return tmp_path
    (tmp_path / "aoti").mkdir()
    for path in (*more, *FOLDER.iterdir()):
        if not (tmp_path / "aoti" / path.name).exists():
            (tmp_path / "aoti" / path.name).symlink_to(path)
    return tmp_path


HOSTS = [pytest.mark.hosts, pytest.mark.full("libraries of finite elements")]
# Pages that take seconds of a processor.
LATER: dict[str, pytest.MarkDecorator | list[pytest.MarkDecorator]] = {
    "examples/fem/README.md": pytest.mark.full("the finite-element program"),
    "docs/tutorials/cpp.md": pytest.mark.full("the tutorial in C++, compiled block by block"),
    "examples/mpi/README.md": pytest.mark.full("MPI"),
    "docs/hosts/openmp.md": pytest.mark.full("a program around the header of a law"),
    "docs/hosts/fenicsx.md": HOSTS,
    "docs/hosts/petsc.md": HOSTS,
    "docs/full-field.md": HOSTS,
    "docs/hosts/scikit-fem.md": HOSTS,
    "docs/hosts/sundials.md": HOSTS,
    "docs/hosts/simcoon.md": HOSTS,
    "examples/umat/README.md": pytest.mark.full("the UMAT, built by its page"),
    "docs/tutorials/finite-elements.md": pytest.mark.full("programs of finite elements"),
    "docs/tutorials/python.md": pytest.mark.full("many commands"),
    "docs/checkpoint.md": pytest.mark.full("many commands"),
    "docs/fit.md": pytest.mark.full("fits"),
    "docs/verify.md": pytest.mark.full("many commands"),
}

# Modules that a page, or the examples of a docstring, needs.
NEEDS = {
    "neml2_capi/page/__init__.py": ["ziglang"],
    "docs/hosts/fenicsx.md": ["dolfinx_external_operator"],
    "docs/hosts/petsc.md": ["skfem", "petsc4py"],
    "docs/full-field.md": ["skfem"],
    "docs/hosts/scikit-fem.md": ["skfem"],
    "docs/hosts/sundials.md": ["sksundae"],
    "docs/hosts/simcoon.md": ["simcoon"],
}

# What pages do not build themselves, but the build of the tests.
PROGRAMS = {
    "examples/fem/README.md": ("example_fem", "Eigen"),
    "examples/mpi/README.md": ("example_mpi_fortran", "MPI"),
}


def built_programs(page: str, folder: Path) -> None:
    program, needs = PROGRAMS[page]
    (folder / "build").symlink_to(built(program, f"{needs} was not found").parent)


def try_all(name: str, blocks: list[Block], folder: Path, artifacts: Artifacts) -> None:
    """Read a page or the docstrings of a module, with the models that they name."""
    given = GIVEN + GIVEN_TO.get(name, "")
    code = "".join(block.code for block in blocks) + given
    if re.search(r"\bmpi(exec)?\b", code):
        pytest.importorskip("mpi4py")
        if not MPIEXEC:
            pytest.skip("mpiexec was not found")
    installed(*NEEDS.get(name, ()))
    for library in ("torch", "neml2", "jax", "matplotlib"):
        if re.search(rf"(import|from) {library}\b", code) or f"neml2_capi.{library}" in code:
            pytest.importorskip(library)
    for recipe in artifacts:
        place = folder / "aoti" / recipe
        if f"aoti/{recipe}" in code and place.parent.exists() and not place.exists():
            place.symlink_to(artifacts[recipe])
    # Tutorials say all themselves.
    alone = name == "README.md" or (name.startswith("docs") and name != "docs/overview.md")
    reader = Reader(folder, "" if alone else given)
    try:
        reader.read(blocks, silent=name in PAGES)
    finally:
        reader.close()


@pytest.mark.parametrize("page", [pytest.param(page, marks=LATER.get(page, ())) for page in PAGES])
def test_a_page_runs_and_prints_what_it_shows(
    page: str, folder: Path, artifacts: Artifacts
) -> None:
    if page in PROGRAMS:
        built_programs(page, folder)
    if page == "examples/umat/README.md" and FORTRAN is None:
        pytest.skip("no Fortran compiler was found")
    try_all(page, blocks_of(PAGES[page].read_text(), page), folder, artifacts)


def left_out() -> Iterator[Block]:
    for page, path in PAGES.items():
        try:
            blocks = blocks_of(path.read_text(), page)
        except AssertionError:  # the page fails, above
            continue
        yield from (block for block in blocks if block.reason)


@pytest.mark.parametrize("block", list(left_out()), ids=lambda block: block.place)
def test_what_is_not_run_says_why(block: Block) -> None:
    pytest.skip(f"{block.place} is not run: {block.reason}")


# ---- docstrings ----


def examples(name: str) -> list[Block]:
    """The examples in the docstrings of a module: what is indented."""
    blocks = []
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            for token in MarkdownIt().parse(inspect.cleandoc(ast.get_docstring(node) or "")):
                if token.type == "code_block" and not (name in SHELL and is_shell(token.content)):
                    place = f"{name}: {getattr(node, 'name', 'the module')}"
                    blocks.append(Block(place, "python", token.content))
    return blocks


def is_shell(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return True
    return False


@pytest.mark.parametrize("module", [name for name in MODULES if examples(name)])
def test_the_examples_of_a_docstring_run(module: str, folder: Path, artifacts: Artifacts) -> None:
    try_all(module, examples(module), folder, artifacts)


# ---- what leads elsewhere, or is said elsewhere ----


@cache
def headings(path: Path) -> set[str]:
    """The anchors of a page, as forges make them."""
    tokens = MarkdownIt().parse(path.read_text())
    titles = (
        t.content for t, before in zip(tokens[1:], tokens, strict=False) if before.tag[:1] == "h"
    )
    anchors = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
    before = [anchors[:place].count(anchor) for place, anchor in enumerate(anchors)]
    return {f"{a}-{n}" if n else a for a, n in zip(anchors, before, strict=True)}


def links(path: Path) -> Iterator[str]:
    for token in MarkdownIt().enable("table").parse(path.read_text()):
        for child in token.children or []:
            if child.type == "link_open":
                yield str(child.attrs["href"])


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", *REFERENCE])
def test_a_link_leads_to_a_file_and_a_heading(page: str) -> None:
    for link in links(ROOT / page):
        if "://" in link:
            continue
        file, _, heading = link.partition("#")
        target = ROOT / page if not file else (ROOT / page).parent / file
        assert target.exists(), f"{page} leads to {link}"
        assert not heading or heading in headings(target), f"{page} leads to {link}"


ROOMS = sorted(f"{path.relative_to(ROOT)}" for path in (ROOT / "capi").glob("*/README.md"))
DESIGN = sorted(f"{path.relative_to(ROOT)}" for path in (ROOT / "docs" / "design").glob("*.md"))


@pytest.mark.parametrize("page", [*ROOMS, *DESIGN])
def test_a_file_that_a_page_of_the_house_names_is_there(page: str) -> None:
    tops = "capi|cmake|include|neml2_capi|tests|tools"
    for name in re.findall(rf"`((?:{tops})/[\w./]+)`", (ROOT / page).read_text()):
        assert (ROOT / name).exists(), f"{page} names {name}"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_runs_the_command_says_what_installs_it(page: str) -> None:
    text = PAGES[page].read_text()
    runs = any(
        re.search(r"^(\$ )?neml2-capi ", b.code, re.MULTILINE) for b in blocks_of(text, page)
    )
    if runs or (page == "README.md" and "`neml2-capi" in text):
        assert re.search(r"neml2_capi\[[a-z,]*\bcli\b[a-z,]*\]", text)


@pytest.mark.parametrize("page", PAGES)
def test_no_page_links_into_the_installed_package(page: str) -> None:
    """What a reader then compiles would be written there: a copy is theirs."""
    text = PAGES[page].read_text()
    assert not re.search(r"\bln\b.*neml2_capi", text)
    assert len(re.findall("neml2_capi --examples", text)) == len(_COPY.findall(text))


def test_the_readme_is_short_and_its_picture_there() -> None:
    text = PAGES["README.md"].read_text()
    assert len(text.splitlines()) <= 120
    assert (ROOT / "docs" / "images" / "stress-strain.png").stat().st_size > 10_000


@pytest.mark.full("it runs the demo, and compares pictures")
def test_the_picture_is_what_the_demo_makes(tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    demo = ROOT / "examples" / "demo.py"
    command(sys.executable, demo, "--artifacts", PREBUILT, "--output", tmp_path, cwd=tmp_path)
    made = image.imread(tmp_path / "stress-strain.png")
    shown = image.imread(ROOT / "docs" / "images" / "stress-strain.png")
    assert made.shape == shown.shape
    assert abs(made - shown).mean() < 0.01


def test_the_overview_compiles_what_lies_in_examples() -> None:
    text = PAGES["docs/overview.md"].read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("neml2-compile "))
    words = shlex.split(line)
    recipe = recipes.RECIPES["elasticity"]
    assert words[1:4] == [recipe.input.name, "--model", recipe.model]
    assert tuple(words[4:-2]) == recipe.options and words[-2:] == ["--output-dir", "aoti"]


# ---- the reader itself ----


def read(text: str, folder: Path) -> None:
    reader = Reader(folder)
    try:
        reader.read(blocks_of(text, "page.md"))
    finally:
        reader.close()


def test_what_is_shown_is_compared(tmp_path: Path) -> None:
    page = "```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n\n```text\n{}\n```\n"
    read(page.format("2"), tmp_path)
    with pytest.raises(AssertionError, match=r"page\.md:5"):
        read(page.format("3"), tmp_path)


def test_what_a_command_prints_is_compared(tmp_path: Path) -> None:
    page = "```sh script.sh\necho {}\n```\nSave it, and run it:\n\n```console\n{}\n```\n"
    read(page.format("a b", "$ bash script.sh\na b\n$ echo c\nc"), tmp_path)
    (tmp_path / "script.sh").unlink()
    with pytest.raises(AssertionError, match="shows"):
        read(page.format("a b", "$ bash script.sh\na c"), tmp_path)
    with pytest.raises(AssertionError, match=r"page\.md"):
        read("```console\n$ false\n```", tmp_path)


def test_what_is_printed_is_shown(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="prints"):
        read("```python\nprint(1)\n```", tmp_path)


def test_a_fragment_of_c_is_compiled_and_run(tmp_path: Path) -> None:
    page = '```c\n#include <stdio.h>\nprintf("%d\\n", {});\n```\n\n```text\n4\n```\n'
    read(page.format("2 + 2"), tmp_path)
    with pytest.raises(AssertionError, match="undeclared"):
        read(page.format("x"), tmp_path)


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("```\nwhat is this\n```", "no language"),
        ("    indented\n", "no language"),
        ("```rust\nfn main() {}\n```", "rust"),
        ("```text\n2\n```", "right before it"),
        ("```python\nprint(2)\n```\n\nIt prints:\n\n```text\n2\n```", "right before it"),
    ],
)
def test_a_block_that_nobody_would_run_is_refused(page: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        blocks_of(page, "page.md")


def test_a_block_may_say_why_it_is_not_run(tmp_path: Path) -> None:
    page = "<!-- not run: it takes\nan hour -->\n```\nneml2-compile\n```\n"
    (block,) = blocks_of(page, "page.md")
    assert block.reason == "it takes an hour"
    read(page, tmp_path)
