"""What the text of a header promises to who includes it, and what cannot be a header."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from header_hosts import WARNINGS, built, evaluated, opened, points_of, text_of
from kernel_setup import require_compiler, with_kernels
from states import repeated, state_of

from neml2_capi import examples
from neml2_capi.cli.commands import neml2_capi as command
from neml2_capi.header import header
from neml2_capi.kernels.folder import KernelError

pytestmark = pytest.mark.numbers

EXAMPLE = "example isotropic_hardening"


@pytest.fixture(scope="module")
def text() -> str:
    return text_of(opened(EXAMPLE))


def checked(source: Path, *options: str) -> str:
    """What a compiler says of a source."""
    words = [require_compiler("g++"), *WARNINGS, "-fsyntax-only", *options]
    return subprocess.run([*words, str(source)], capture_output=True, text=True).stderr


def written(folder: Path, text: str, more: str = "") -> Path:
    source = folder / "program.cpp"
    source.write_text(text + more)
    return source


def test_the_command_names_the_law_by_the_file(tmp_path: Path) -> None:
    path = str(examples.path("elasticity"))
    for file, word in (("steel.hpp", "namespace steel {"), ("steel.cl", "__kernel void neml2")):
        done = CliRunner().invoke(command, ["header", path, "-o", str(tmp_path / file)])
        assert done.exit_code == 0, done.output
        assert word in (tmp_path / file).read_text()
    assert "  real strain[6]; /* strain: SR2, 6 */" in (tmp_path / "steel.hpp").read_text()


def test_the_only_element_type_is_taken(tmp_path: Path) -> None:
    path, file = str(with_kernels("elasticity_float32")), tmp_path / "steel.hpp"
    done = CliRunner().invoke(command, ["header", path, "-o", str(file)])
    assert done.exit_code == 0, done.output
    assert "namespace steel {" in file.read_text()


def test_it_includes_nothing(text: str, tmp_path: Path) -> None:
    assert checked(written(tmp_path, text), "-nostdinc", "-ffreestanding") == ""


@pytest.mark.parametrize("word", ["inline __attribute__((always_inline))", "[[gnu::cold]]"])
def test_a_host_says_what_stands_before_functions(word: str, text: str, tmp_path: Path) -> None:
    assert checked(written(tmp_path, text), f"-DNEML2_FUNCTION={word}") == ""


def test_fast_math_is_refused(text: str, tmp_path: Path) -> None:
    assert "compile without -ffast-math" in checked(written(tmp_path, text), "-ffast-math")


def test_a_kernel_of_a_thread_a_point_is_there_if_it_is_asked_for(
    text: str, tmp_path: Path
) -> None:
    threads = "struct { unsigned x; } blockIdx, blockDim, threadIdx;\n"
    assert "neml2_update" not in checked(written(tmp_path, text, "void (*kernel)() = 0;\n"))
    source = written(tmp_path, threads + text, "const void *kernel = (const void *)neml2_update;\n")
    assert checked(source, '-DNEML2_KERNEL=extern "C"') == ""
    assert "neml2_update" in checked(source)


@pytest.mark.parametrize("name", ["gamma", "exp", "main", "std", "co_await", "template", "index"])
def test_a_law_may_have_the_name_of_something_else(name: str, tmp_path: Path) -> None:
    model = opened("example elasticity")
    root = Path(model.describe()["leaf"]).parents[1]
    text = header(root, model, "c++", name)
    assert f"namespace {name}_ {{" in text
    before = "#include <cmath>\n#include <cstring>\n#include <math.h>\n#include <strings.h>\n"
    source = written(tmp_path, before + text, "int main() { return 0; }\n")
    assert checked(source, "-std=c++20") == ""


def test_two_laws_of_one_name_are_in_one_program(tmp_path: Path) -> None:
    """Functions of one do not become those of the other when they are linked."""
    use = "int {0}() {{ law::outputs out; return law::update(law::inputs(), out).status; }}\n"
    sources = []
    for name in ("elasticity", "isotropic_hardening"):
        sources.append(tmp_path / f"{name}.cpp")
        sources[-1].write_text(text_of(opened(f"example {name}")) + use.format(name))
    (tmp_path / "main.cpp").write_text(
        "int elasticity();\nint isotropic_hardening();\n"
        "int main() { return 10 * elasticity() + isotropic_hardening(); }\n"
    )
    program = tmp_path / "program"
    words = [require_compiler("g++"), *WARNINGS, *map(str, sources), str(tmp_path / "main.cpp")]
    subprocess.run([*words, "-o", str(program)], check=True)
    assert subprocess.run([program]).returncode == 2  # a step of no time does not converge


#: Derives by one input after the other, over numbers that no derivative is.
_BY_ONE = """
#include <cstdio>
#include <cstring>

int main() {
  const double given[] = {GIVEN};
  const int first[] = {FIRST};
  law::inputs in;
  std::memcpy(&in, given, sizeof in);
  law::outputs out;
  law::tangent all, none;
  for (double &value : none.values) value = 77.0;
  all = none;
  law::settings rules;
  if (law::update(in, out, &all, law::parameters(), rules).status != 0) return 1;
  for (int n = 0; first[n] < law::tangent::columns; ++n) {
    law::tangent some = none;
    rules.derivatives = 1LL << n;
    if (law::update(in, out, &some, law::parameters(), rules).status != 0) return 2;
    for (int i = 0; i < law::tangent::rows; ++i)
      for (int j = 0; j < law::tangent::columns; ++j) {
        const int at = i * law::tangent::columns + j, of_this = first[n] <= j && j < first[n + 1];
        const double expected = of_this ? all.values[at] : none.values[at];
        if (some.values[at] != expected) return std::printf("%d %d %d\\n", n, i, j);
      }
  }
}
"""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("elasticity", id="one forward segment"),
        pytest.param("isotropic_hardening", id="columns of the last system"),
        pytest.param("radial_return", id="bands of columns"),
        pytest.param("gmres", id="columns at once"),
        pytest.param("crystal", id="a crystal", marks=pytest.mark.full("g++ compiles its law")),
    ],
)
def test_a_host_says_by_which_inputs_to_derive(name: str, tmp_path: Path) -> None:
    model = opened(name)
    given = [np.ravel(value) for value in repeated(state_of(name, model), 1).values()]
    first = np.cumsum([0, *(value.size for value in given)])
    program = _BY_ONE.replace("GIVEN", ", ".join(repr(float(x)) for x in np.concatenate(given)))
    program = program.replace("FIRST", ", ".join(map(str, first)))
    text, file = text_of(model), tmp_path / "program"
    words = [require_compiler("g++"), *WARNINGS, str(written(tmp_path, text, program))]
    subprocess.run([*words, "-o", str(file)], check=True)
    done = subprocess.run([file], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_opencl_is_understood_by_clang(tmp_path: Path) -> None:
    for name in ("elasticity", "isotropic_hardening", "chaboche"):
        source = tmp_path / f"{name}.cl"
        source.write_text(text_of(opened(f"example {name}"), "opencl"))
        words = [require_compiler("clang"), "-x", "cl", "-cl-std=CL1.2", "-fsyntax-only"]
        words += ["-Xclang", "-finclude-default-header", "-Wextra", "-Werror"]
        done = subprocess.run([*words, str(source)], capture_output=True, text=True)
        assert done.stderr == ""


@pytest.mark.parametrize("name", ["elasticity_grains", "grains"])
def test_values_alone_need_no_derivatives(name: str, tmp_path: Path) -> None:
    """The derivatives of these models have the axis of the grains."""
    model = opened(name)
    with pytest.raises(KernelError, match=r"d \w+ / d strain has sub-batch axes.*values alone"):
        text_of(model)
    host = built(text_of(model, derivatives=False), tmp_path, require_compiler("g++"))
    inputs = points_of(name, model)
    made = evaluated(host, model, inputs).outputs
    theirs = [value.reshape(len(value), -1) for value in model.forward(inputs).values()]
    np.testing.assert_array_equal(made, np.concatenate(theirs, axis=1).T)


def test_a_graph_without_a_kernel_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        command,
        ["header", str(with_kernels("elasticity_static")), "-o", str(tmp_path / "steel.hpp")],
    )
    assert done.exit_code == 1
    assert "elasticity.pt2 has no kernel, and a header is made of kernels" in done.output
    assert not (tmp_path / "steel.hpp").exists()
