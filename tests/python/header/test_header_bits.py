"""A header in a host program, beside lanes: the same bits, statuses and iterations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from header_hosts import (
    FUSING,
    assert_same_bits,
    built,
    compiled,
    evaluated,
    evaluated_by_program,
    evaluated_by_structures,
    in_lanes,
    opened,
    points_of,
    points_of_care,
    size_of,
    text_of,
)
from kernel_setup import require_compiler
from slow import later

from neml2_capi import Model
from neml2_capi._ffi.library import lib

pytestmark = pytest.mark.numbers

#: Models of which every graph has a kernel; the increments of these are cut.
CUT = ["substepping", "ramped_bar"]
MODELS = [
    "elasticity",
    "elasticity_float32",
    "elasticity_parameters",
    "viscoplastic",
    "combined_hardening",
    "chaboche",
    "isotropic_hardening",
    "isotropic_hardening_parallel",
    "radial_return",
    "relaxation",
    "polycrystal",
    "crystal",
    "crystal_powers",
    "gmres",
    "bicgstab",
    "warm_start",
    "bar",
    "transient",
    *CUT,
]
#: Compilers and their options; the last is for what a program does that it may not.
BUILDS = {
    "g++ as it is": ("g++",),
    "g++ with fused operations": ("g++", *FUSING),
    "clang++ as it is": ("clang++",),
    "clang++ with fused operations": ("clang++", *FUSING),
    "clang++ that always fuses": ("clang++", *FUSING, "-ffp-contract=fast"),
}
CHECKED = [*FUSING, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
CHECKED += ["-Wno-maybe-uninitialized"]  # its own branches confuse gcc


def compare(name: str, folder: Path, compiler: str, *options: str, program: bool = False) -> None:
    model = opened(name)
    inputs, text = points_of(name, model), text_of(model)
    if program:
        host = compiled(text, folder, compiler, *options)
        ours = evaluated_by_program(host, model, inputs)
    else:
        ours = evaluated(built(text, folder, compiler, *options), model, inputs)
    theirs = in_lanes(model, inputs)
    good = ours.status <= lib.NEML2_NON_FINITE
    assert good.any() and (ours.status > 0).any()
    assert_same_bits(ours, theirs)
    np.testing.assert_array_equal(ours.cut, theirs.cut)
    if name in CUT:
        was_cut = ours.iterations >= model.options["miters"]
        assert (good & was_cut).any() and (~good & was_cut).any()


@pytest.mark.parametrize(
    "build",
    [
        "g++ as it is",
        pytest.param("g++ with fused operations", marks=pytest.mark.full("compiles a text")),
    ],
)
@pytest.mark.parametrize("name", ["example isotropic_hardening", "ramped_bar"])
def test_a_law_has_the_bits_of_lanes(name: str, build: str, tmp_path: Path) -> None:
    compiler, *options = BUILDS[build]
    compare(name, tmp_path, require_compiler(compiler), *options)


@pytest.mark.full("each of five builds takes seconds")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", MODELS)
def test_models_have_the_bits_of_lanes(name: str, build: str, tmp_path: Path) -> None:
    compiler, *options = BUILDS[build]
    compare(name, tmp_path, require_compiler(compiler), *options)


@pytest.mark.full("sanitizers take long to compile")
@pytest.mark.parametrize("name", [name for name in MODELS if "crystal" not in name])
def test_nothing_is_undefined(name: str, tmp_path: Path) -> None:
    compare(name, tmp_path, require_compiler("g++"), *CHECKED, program=True)


@pytest.mark.parametrize(
    "name",
    [
        "example isotropic_hardening",
        *(
            pytest.param(name, marks=pytest.mark.full("compiles a text"))
            for name in [*MODELS, "example chaboche"]
        ),
    ],
)
def test_derivatives_by_parameters_have_the_bits_of_lanes(name: str, tmp_path: Path) -> None:
    """They are columns behind the columns of inputs, which stay what they are."""
    model = opened(name)
    if not model.parameter_derivatives:
        pytest.skip("no derivative with respect to a parameter was compiled")
    inputs = points_of(name, model)
    host = built(text_of(model, parameters=True), tmp_path, require_compiler("g++"), "-O1")
    ours = evaluated(host, model, inputs, by_parameters=True)
    theirs = in_lanes(model, inputs, by_parameters=True)
    assert_same_bits(ours, theirs)
    assert theirs.tangent[:, sum(map(size_of, model.inputs)) :].any()


def test_structures_give_what_arrays_do(tmp_path: Path) -> None:
    """By the parameters and settings that the artifact has."""
    model = opened("example isotropic_hardening")
    inputs = points_of("example isotropic_hardening", model)
    host = built(text_of(model), tmp_path, require_compiler("g++"), "-O1")
    theirs, ours = in_lanes(model, inputs), evaluated_by_structures(host, model, inputs)
    assert_same_bits(ours, theirs)
    np.testing.assert_array_equal(ours.cut, theirs.cut)
    assert 0 < points_of_care(host, model, inputs) < len(ours.status) / 2


def test_a_parameter_may_be_one_of_each_point(tmp_path: Path) -> None:
    model = opened("example isotropic_hardening")
    inputs = points_of("example isotropic_hardening", model)
    host = built(text_of(model), tmp_path, require_compiler("g++"), "-O1")
    factor = np.linspace(0.5, 2.0, len(inputs["t"]))
    factor[7] = np.nan
    values = {name: value * factor for name, value in model.named_parameters().items()}
    ours = evaluated(host, model, inputs, np.stack([*values.values()]))
    for name, value in values.items():
        model.set_parameter(name, value)
    assert_same_bits(ours, in_lanes(model, inputs))


@pytest.mark.parametrize("rule", later(["BACKTRACKING", "STRONG_WOLFE"], ["BACKTRACKING"]))
def test_a_line_search_tries_the_same_steps(rule: str, tmp_path: Path) -> None:
    model = opened("example isotropic_hardening")
    inputs = points_of("example isotropic_hardening", model)
    without = in_lanes(model, inputs).iterations
    model.options.update({"ls_max_iters": 5, "ls_type": rule, "ls_c": 0.1})
    ours = evaluated(built(text_of(model), tmp_path, "g++", "-O1"), model, inputs)
    assert_same_bits(ours, in_lanes(model, inputs))
    assert (ours.iterations != without).any()


def compare_law(law: Any, folder: Path, compiler: str, **declared: Any) -> None:
    """A law of torch, with derivatives by inputs and by its parameter q."""
    from neml2_capi import export  # it needs torch

    export.model(
        law,
        folder / "law",
        givens={"x~1": (6,), "e": (6,)},
        parameters={"q": 0.8},
        kernels="only",
        progress=False,
        **declared,
    )
    model = Model(folder / "law")
    values = np.random.default_rng(0).normal(size=(2, 17, 6))
    inputs = {"x~1": values[0], "e": values[1]}
    host = built(text_of(model, parameters=True), folder / compiler, compiler, *FUSING)
    theirs = in_lanes(model, inputs, by_parameters=True)
    assert (theirs.status == 0).all()
    assert_same_bits(evaluated(host, model, inputs, by_parameters=True), theirs)


@pytest.mark.full("torch")
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_zeros_of_a_right_hand_side_have_the_sign_of_lanes(compiler: str, tmp_path: Path) -> None:
    """A derivative of -0, of a relu that does not act: lanes and headers begin sums with 0."""
    torch = pytest.importorskip("torch")

    def law(unknowns: Any, givens: Any, parameters: Any) -> Any:
        x, acting = unknowns["x"], torch.relu(givens["e"]) * parameters["q"]
        return {"x": x - givens["x~1"] - acting + 0.1 * torch.tanh(x) * acting.sum()}

    compare_law(law, tmp_path, require_compiler(compiler), unknowns={"x": (6,)})


@pytest.mark.full("torch")
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_one_direction_is_solved_for_as_several_are(compiler: str, tmp_path: Path) -> None:
    """Lanes take the derivative by the only parameter alone, and a header with all others."""
    torch = pytest.importorskip("torch")

    def law(unknowns: Any, givens: Any, parameters: Any) -> Any:
        x, d, strain = unknowns["x"], unknowns["d"], givens["e"]
        twice = torch.cat([d, d])
        direction = twice / torch.sqrt(twice @ twice + 0.1)
        return {
            "x": 0.7 * x - givens["x~1"] - strain * parameters["q"] + 0.3 * direction,
            "d": d - 0.3 * strain[:3] * parameters["q"],
        }

    unknowns = {"x": (6,), "d": (3,)}
    compare_law(law, tmp_path, require_compiler(compiler), unknowns=unknowns)
