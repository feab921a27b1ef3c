"""Names that users give: of variables, and of laws; in C++, in OpenCL C, and in a law as C."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from header_hosts import WARNINGS
from kernel_setup import require_compiler
from native import INCLUDE

from neml2_capi import Model, examples
from neml2_capi.cli.commands import neml2_capi as command
from neml2_capi.header import header
from neml2_capi.kernels.linked import linked
from neml2_capi.kernels.variables import with_variables_apart

pytestmark = pytest.mark.numbers

#: Functions and types of the texts, macros, and words of one language or the other.
VARIABLES = (
    "walk report law new_report copy is_finite compute run_one update parameters settings errno "
    "linux unix i386 asm typeof true bool nullptr thread_local constexpr half local kernel global "
    "int64_t choose fabs undecided ok fused archive neml2_kernel_set x p y tangent "
    "lanes_exp absolute each_pow sign_of square_root fill wide_exp are_finite"
)
#: Names of laws that are none of C, and that would end a comment or a line.
LAWS = ["linux", "a*/b", "/*", 'say "it"', "back\\", "two\nlines", "what??/", "7steel", "\u00e9"]
COMPILERS = {
    "c++": (("g++", *WARNINGS, "-std=gnu++17"), ("clang++", *WARNINGS, "-std=gnu++17")),
    "opencl": (
        ("clang", "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-Werror"),
    ),
    "c": (("gcc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", f"-I{INCLUDE}"),),
}


def compiled(text: str, language: str, folder: Path) -> None:
    file = folder / {"c++": "law.cpp", "opencl": "law.cl", "c": "law.c"}[language]
    file.write_text(text)
    for compiler, *options in COMPILERS[language]:
        words = [require_compiler(compiler), *options, "-fsyntax-only", str(file)]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.stderr == ""


@pytest.mark.full("a law is exported by torch")
@pytest.mark.parametrize("place", ["inputs", "outputs"])
def test_variables_may_be_named_like_anything_in_a_text(place: str, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    from neml2_capi import export

    names = {"inputs": ["one_input"], "outputs": ["one_output"], place: VARIABLES.split()}

    def law(inputs: Any, parameters: Any) -> Any:
        total = sum((k + 1.0) * torch.exp(v) * v for k, v in enumerate(inputs.values()))
        return {name: total * (k + 1) for k, name in enumerate(names["outputs"])}

    root = tmp_path / "artifact"
    inputs, outputs = (dict.fromkeys(names[kind], "Scalar") for kind in ("inputs", "outputs"))
    export.model(law, root, inputs=inputs, outputs=outputs, kernels="only", derivatives=True)
    with Model(root) as model:
        for language in ("c++", "opencl"):
            compiled(header(root, model, language, "law"), language, tmp_path)
    compiled(linked(root, "law"), "c", tmp_path)


@pytest.mark.full("a law is exported by torch")
def test_variables_may_have_any_letters(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from neml2_capi import export

    names = ["\U0001f600", "\u03c3", "a\x01", "b\x7f", "what??/", "??=define", 'say "it"', "back\\"]

    def law(inputs: Any, parameters: Any) -> Any:
        return {f"{name}2": (k + 2.0) * inputs[name] for k, name in enumerate(names)}

    root = tmp_path / "artifact"
    inputs, outputs = (
        dict.fromkeys(names, "Scalar"),
        dict.fromkeys([f"{n}2" for n in names], "Scalar"),
    )
    export.model(law, root, inputs=inputs, outputs=outputs, kernels="only")
    with Model(root) as model:
        made = model.forward(dict.fromkeys(names, 3.0))
    assert [float(made[f"{n}2"]) for n in names] == [3.0 * (k + 2) for k in range(len(names))]
    text = linked(root, "law")
    file = tmp_path / "law.c"
    file.write_text(text, encoding="utf-8")
    for standard in ("gnu17", "c99"):
        words = ["gcc", f"-std={standard}", "-Wall", "-Werror", "-Wno-psabi", f"-I{INCLUDE}"]
        done = subprocess.run([*words, "-fsyntax-only", str(file)], capture_output=True, text=True)
        assert done.stderr == ""


def test_variables_of_a_kernel_are_apart() -> None:
    kernel = (
        "static void run(const void *const *inputs, void *const *outputs) {\n"
        "  const lanes *const walk = inputs[0];\n"
        "  lanes *const linux = outputs[0];\n"
        "  const lanes walk_0 = walk[0];\n"
        "  const lanes v1 = walk_0 + other(walk_0);\n"
        "  linux[0] = v1;\n"
        "}\n"
        'static const neml2_kernel_part parts[] = {\n  {"walk", 0, 1},\n};\n'
    )
    expected = kernel
    for name in ("walk_0", "walk[", "walk =", "linux"):
        expected = expected.replace(f" {name}", f" v_{name}").replace(f"({name}", f"(v_{name}")
    assert with_variables_apart(kernel) == expected


@pytest.mark.parametrize("name", LAWS)
def test_a_law_may_have_any_name(name: str, tmp_path: Path) -> None:
    root = str(examples.path("elasticity"))
    for file, verb, language in (
        ("law.hpp", "header", "c++"),
        ("law.cl", "header", "opencl"),
        ("law.c", "static", "c"),
    ):
        arguments = [verb, root, "-o", str(tmp_path / file), "--name", name]
        done = CliRunner().invoke(command, arguments)
        assert done.exit_code == 0, done.output
        text = (tmp_path / file).read_text(encoding="utf-8")
        (tmp_path / file).unlink()
        compiled(text, language, tmp_path)
