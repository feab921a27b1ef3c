"""Flags under which a compiler may change results: refused, or without effect on a law."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from header_hosts import (
    FUSING,
    WARNINGS,
    assert_same_bits,
    built,
    evaluated,
    in_lanes,
    opened,
    points_of,
    text_of,
)
from kernel_setup import require_compiler
from native import INCLUDE

from neml2_capi import examples
from neml2_capi.kernels.linked import linked

pytestmark = [pytest.mark.numbers, pytest.mark.full("many compilers take a text")]

REORDERING = "-fassociative-math -fno-signed-zeros -fno-trapping-math"
#: What gcc tells of its flags, and clang of few.
TOLD_BY_ALL = ["-ffast-math", "-ffinite-math-only"]
TOLD_BY_GCC = [
    "-funsafe-math-optimizations",
    REORDERING,
    "-freciprocal-math",
    "-fno-signed-zeros",
]
#: What no clang tells, and what it does not tell before 15.
QUIET_IN_CLANG = ["-fno-signed-zeros", "-fno-honor-nans"]
QUIET_IN_OLD_CLANG = ["-funsafe-math-optimizations", REORDERING, "-freciprocal-math"]
#: Words that let LLVM change an operation.
RELAXED = re.compile(r".* = f(?:add|div|cmp) (?:reassoc|nnan|ninf|nsz|arcp|contract|afn|fast)\b.*")
OPENCL = {
    "-ffast-math": "-cl-fast-relaxed-math",
    "-ffinite-math-only": "-cl-finite-math-only",
    "-funsafe-math-optimizations": "-cl-unsafe-math-optimizations",
    "-fno-signed-zeros": "-cl-no-signed-zeros",
}
#: A text, and how a compiler is told its language.
LANGUAGES = {
    "c++": (*WARNINGS, "-x", "c++"),
    "opencl": ("-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header"),
    "c": ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-psabi", f"-I{INCLUDE}"),
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    model, folder = opened("example isotropic_hardening"), tmp_path_factory.mktemp("texts")
    made = {language: text_of(model, language) for language in ("c++", "opencl")}
    made["c++"] += "\nint used(const law::inputs &in, law::outputs &out) {\n"
    made["c++"] += "  return law::update(in, out).status;\n}\n"
    made["c"] = linked(examples.path("isotropic_hardening"), "law")
    files = {language: folder / f"law_in_{language.replace('+', 'p')}.c" for language in made}
    for language, file in files.items():
        file.write_text(made[language])
    return files


def refused(file: Path, compiler: str, *options: str) -> bool:
    """Tell whether a compiler refuses a text, and that for its flags; else it has to take it."""
    words = [require_compiler(compiler), *options, "-fsyntax-only", str(file)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0 or "this text needs IEEE arithmetic: compile wi" in done.stderr
    return done.returncode != 0


@pytest.mark.parametrize("flags", [*TOLD_BY_ALL, *TOLD_BY_GCC])
@pytest.mark.parametrize("language", ["c++", "c"])
@pytest.mark.parametrize("compiler", ["gcc", "gcc-11"])
def test_gcc_refuses(compiler: str, language: str, flags: str, texts: dict[str, Path]) -> None:
    options, file = LANGUAGES[language], texts[language]
    assert refused(file, compiler, *options, *flags.split())
    assert not refused(file, compiler, *options, "-fno-trapping-math", "-frounding-math")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("compiler", ["clang", "clang-13", "clang-15", "clang-22"])
def test_clang_refuses_what_it_tells(compiler: str, language: str, texts: dict[str, Path]) -> None:
    told = list(TOLD_BY_ALL)
    if compiler in ("clang-15", "clang-22"):
        told += QUIET_IN_OLD_CLANG
    if language == "opencl":
        told = [OPENCL[flags] for flags in told if flags in OPENCL]
    for flags in told:
        assert refused(texts[language], compiler, *LANGUAGES[language], *flags.split()), flags


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("compiler", ["clang", "clang-13", "clang-22"])
def test_clang_computes_precisely_whatever_it_hides(
    compiler: str, language: str, texts: dict[str, Path]
) -> None:
    """By the operations that it makes of a text for a processor."""
    hidden = QUIET_IN_CLANG + (QUIET_IN_OLD_CLANG if compiler != "clang-22" else [])
    if language == "opencl":
        hidden = [OPENCL[flags] for flags in hidden if flags in OPENCL]
    for flags in hidden:
        words = [require_compiler(compiler), *LANGUAGES[language], *flags.split(), *FUSING]
        words += ["-S", "-emit-llvm", str(texts[language]), "-o", "-"]
        made = subprocess.run(words, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        assert re.search(r" = fadd .*double", made.stdout)
        assert RELAXED.findall(made.stdout) == []


@pytest.mark.parametrize("flags", [*QUIET_IN_CLANG, *QUIET_IN_OLD_CLANG])
@pytest.mark.parametrize("compiler", ["clang++-14", "clang++-13"])
def test_hidden_flags_of_clang_leave_the_bits(compiler: str, flags: str, tmp_path: Path) -> None:
    model = opened("example chaboche")
    inputs = points_of("example chaboche", model)
    host = built(text_of(model), tmp_path, require_compiler(compiler), *FUSING, *flags.split())
    assert_same_bits(evaluated(host, model, inputs), in_lanes(model, inputs))


@pytest.mark.parametrize("target", ["aarch64-linux-gnu", "wasm32", "amdgcn-amd-amdhsa"])
def test_targets_without_the_pragma_take_a_text(target: str, texts: dict[str, Path]) -> None:
    for compiler in ("clang", "clang-13"):
        options = ("-target", target, *LANGUAGES["c++"], "-nostdlib")
        assert not refused(texts["c++"], compiler, *options)
