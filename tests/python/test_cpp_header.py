"""The C++ face: compilers accept it, its example runs, and what is wrong does not compile."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from native import CXX, INCLUDE, LINK, PREBUILT, TESTS, command, example_of, folder, run

from tools.header import contract, functions_of

pytestmark = pytest.mark.native
COMPILES = pytest.mark.full("a C++ compiler, again and again")

FUNCTIONS = set(functions_of(contract(INCLUDE)))
HEADER = "".join(path.read_text() for path in INCLUDE.glob("neml2_capi*.hpp"))
STRICT = ("-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", f"-I{INCLUDE}")
COMPILERS = [path for name in (CXX, "clang++") if (path := shutil.which(name))]


@COMPILES
@pytest.mark.parametrize("compiler", COMPILERS, ids=lambda path: Path(path).name)
@pytest.mark.parametrize(
    "standard", ["c++17", pytest.param("c++20", marks=pytest.mark.full("C++20"))]
)
def test_the_header_compiles_in_two_files_of_a_program(compiler: str, standard: str) -> None:
    source = TESTS / "abi" / "header.cpp"
    program = folder() / f"cpp-header-{standard}-{Path(compiler).name}"
    second = program.with_suffix(".o")
    flags = (f"-std={standard}", *STRICT)
    command(compiler, *flags, "-DSECOND_FILE", "-c", source, "-o", second)
    command(compiler, *flags, source, second, "-o", program, *LINK)
    run(program)


def test_it_covers_the_c_header_and_needs_nothing_else() -> None:
    # An exception carries its status.
    left_out = {"neml2_error_status"}
    assert set(re.findall(r"\bneml2_\w+", HEADER)) & FUNCTIONS == FUNCTIONS - left_out

    source, made = TESTS / "cpp_face" / "test_models.cpp", folder() / "cpp_face.o"
    command(CXX, "-std=c++17", f"-I{INCLUDE}", "-c", source, "-o", made)
    needed = {line.split()[-1] for line in command("nm", "--undefined-only", made).splitlines()}
    assert {name for name in needed if "neml2" in name} <= FUNCTIONS


@COMPILES
def test_the_example_at_the_top_compiles_as_it_stands() -> None:
    source, program = folder() / "cpp_example.cpp", folder() / "cpp_example"
    source.write_text(example_of(INCLUDE / "neml2_capi.hpp", "WHAT TO READ"))
    command(CXX, "-std=c++17", *STRICT, source, "-o", program, *LINK)
    # Hooke's law with E = 200e3 and nu = 0.3: uniaxial stress, and shear.
    numbers = [
        float(text)
        for text in re.findall(r"-?\d[\d.]*(?:e-?\d+)?", run(program, PREBUILT / "elasticity"))
    ]
    assert numbers == pytest.approx([200, 0, 0, 2e-4 * 200e3 / 1.3], rel=1e-5, abs=1e-9)


WRONG = [
    ('call.bind_input("strain", std::vector<double>(6));', "give it a name"),
    ('call.bind_input("t", 1.0, 0);', "give it a name"),
    (
        'call.bind_input("t", neml2::Tensor::zeros<double>({}).values<double>());',
        "give it a name",
    ),
    ('call.bind_input("strain", neml2::Span(std::vector<double>(6)));', "give it a name"),
    (
        'call.bind_input("t", neml2::Span<const double>(std::vector<double>(6)), 0);',
        "give it a name",
    ),
    ('call.bind_input("strain", std::array<const double, 6>{});', "give it a name"),
    ("neml2::Span<double>(neml2::Tensor::zeros<double>({6}).values<double>());", "give it a name"),
    ('call.bind_output("stress", constant);', "must not be const"),
    ("neml2::Tensor::wrap(constant, {6});", "must not be const"),
    ('call.bind_input("strain", text);', "no such element type"),
    ("neml2::Call copy = call;", "deleted"),
]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        pytest.param("call.run(1);", "nodiscard"),
        *(pytest.param(*each, marks=COMPILES) for each in WRONG),
    ],
)
def test_what_is_wrong_does_not_compile(statement: str, reason: str) -> None:
    source = folder() / "wrong.cpp"
    lines = (
        '#include "neml2_capi.hpp"',
        "void wrong(neml2::Call &call, const std::vector<double> &constant,",
        "           std::vector<const char *> &text) {",
        "  static_cast<void>(call), static_cast<void>(constant), static_cast<void>(text);",
        f"  {statement}",
        "}",
    )
    source.write_text("\n".join(lines) + "\n")
    arguments = [CXX, "-std=c++17", *STRICT, "-fsyntax-only", str(source)]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode != 0
    assert reason in done.stderr
