"""pow, exp, log and their like in lanes: errors in ulp, special values, and equal bits."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kernel_setup import TARGETS, native_target, require_compiler, runs_here
from numpy.typing import NDArray

from neml2_capi.kernels import folding
from neml2_capi.kernels.build import FLAGS
from neml2_capi.kernels.build import TARGETS as KNOWN
from neml2_capi.kernels.folder import HEADERS

pytestmark = pytest.mark.full("functions of kernels, built by two compilers")

C = Path(__file__).resolve().parents[3] / "neml2_capi" / "kernels" / "c"
OF_ONE = ["exp", "log", "expm1", "log1p", "sinh", "cosh", "tanh", "sin", "cos", "tan"]
OF_ONE += ["asin", "acos", "atan", "exp2", "log2", "log10", "asinh", "acosh", "atanh"]
OF_ONE += ["erf", "erfc", "ndtr", "round", "trunc"]
OF_TWO = ["pow", "atan2", "hypot", "fmod", "copysign"]
Vector = NDArray[np.float64]
Function = Callable[..., Vector]

#: The most units in the last place that a result is off.
MOST_ULP = {
    **dict.fromkeys(("exp", "log", "pow"), 0.7),
    **dict.fromkeys(("sin", "cos", "log1p"), 1.0),
    **dict.fromkeys(("sinh", "cosh"), 1.5),
    **dict.fromkeys(("tanh", "tan"), 2.0),
    **dict.fromkeys(("expm1", "asin", "acos", "atan"), 3.0),
    **dict.fromkeys(("exp2", "log2", "log10"), 0.7),
    **dict.fromkeys(("asinh", "acosh", "atanh", "erf", "erfc", "ndtr"), 3.0),
    **dict.fromkeys(("round", "trunc"), 0.0),
}
SPECIAL = np.array(
    [
        *(0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 7, -7, 1 / 3, -1 / 3, 2.0**53, 2.0**53 + 2),
        *(1e300, -1e300, 1e308, 5e-324, -5e-324, np.inf, -np.inf, np.nan),
    ]
)


def compiled(folder: Path, cc: str, target: str, lanes: int, *options: str) -> Function:
    """A function of the name of a function and its arguments."""
    source = folder / "functions.c"
    if not source.exists():
        arguments = "(const lanes *x, const lanes *y, lanes *z, long n)"
        loops = [
            f"void f_{n}{arguments} {{ (void)y; for (long i = 0; i < n; ++i)"
            f" z[i] = lanes_{n}(x[i]); }}"
            for n in OF_ONE
        ]
        loops += [
            f"void f_{n}{arguments} {{ for (long i = 0; i < n; ++i)"
            f" z[i] = lanes_{n}(x[i], y[i]); }}"
            for n in OF_TWO
        ]
        source.write_text("\n".join(['#include "functions.h"', *loops]) + "\n")
    made = folder / f"{cc}-{target}-{lanes}-{len(options)}.so"
    flags = [f for f in FLAGS if "visibility" not in f]
    flags += [f"-march={KNOWN[target].march}", f"-DNEML2_KERNEL_LANES={lanes}", *options]
    warnings = ["-Wall", "-Wextra", "-Werror"]
    command = [cc, *flags, *warnings, f"-I{C}", "-shared", str(source), "-o", str(made)]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(made))

    def call(name: str, x: Vector, y: Vector | None = None) -> Vector:
        blocks = -(-len(x) // lanes)
        arrays = [_aligned(blocks * lanes) for _ in range(3)]
        arrays[0][: len(x)] = x
        arrays[1][: len(x)] = 0 if y is None else y
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        getattr(library, f"f_{name}")(*pointers, ctypes.c_long(blocks))
        result: Vector = arrays[2][: len(x)].copy()
        return result

    return call


def _aligned(count: int) -> Vector:
    memory = np.zeros(count * 8 + 128, dtype=np.uint8)
    start = -memory.ctypes.data % 128
    return memory[start : start + count * 8].view(np.float64)


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory, any_cc: str) -> Function:
    return compiled(tmp_path_factory.mktemp("functions"), any_cc, native_target(), 4)


def arguments_of(name: str, count: int = 1000) -> Vector:
    random = np.random.default_rng(5)
    size = 10 ** random.uniform(-300, 300, count)
    near = random.uniform(-1, 1, count)
    ranges = {
        "exp": [random.uniform(-745, 709.7, count), near],
        "log": [size, 1 + 1e-5 * near, random.uniform(0.5, 2, count), np.full(3, 5e-324)],
        "expm1": [5 * near, 1e-3 * near],
        "log1p": [random.uniform(-0.9, 5, count), 1e-3 * near],
        "sinh": [5 * near, 710 * near, 10 ** random.uniform(-300, 0, count)],
        "cosh": [5 * near, 710 * near],
        "tanh": [5 * near, 30 * near, 10 ** random.uniform(-300, 0, count)],
        "atan": [5 * near, size],
        "exp2": [np.minimum(1074 * near, 1023.9), near],
        "log2": [size, 1 + 1e-5 * near],
        "log10": [size, 1 + 1e-5 * near],
        "asinh": [5 * near, size],
        "acosh": [1 + np.abs(near), 1 + 1e-6 * np.abs(near), size[size > 1]],
        "atanh": [near, 1e-3 * near],
        "erf": [6 * near, 1e-3 * near],
        "erfc": [26 * near, near],
        "ndtr": [37 * near, near],
        "round": [1e3 * near, 2.0**52 * near, np.arange(-9, 9) / 2],
        "trunc": [1e3 * near, 2.0**52 * near, np.arange(-9, 9) / 2],
    }
    angles = [10 * near, 1e6 * near, size[::3], np.arange(1, 300) * np.pi / 2]
    own = [near] if name in ("asin", "acos") else angles
    return np.concatenate(ranges.get(name, own))


def exact(mpmath, name: str, x):  # type: ignore[no-untyped-def]
    others = {
        "exp2": lambda x: mpmath.mpf(2) ** x,
        "log2": lambda x: mpmath.log(x, 2),
        "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
        "round": mpmath.nint,
        "trunc": lambda x: mpmath.sign(x) * mpmath.floor(abs(x)),
    }
    return (others.get(name) or getattr(mpmath, name))(x)


@pytest.mark.parametrize("name", OF_ONE)
def test_a_function_is_right_to_few_units_in_the_last_place(functions: Function, name: str) -> None:
    mpmath = pytest.importorskip("mpmath", reason="the exact values are mpmath's")
    arguments = arguments_of(name)
    results = functions(name, arguments)
    worst = 0.0
    for argument, result in zip(arguments, results, strict=True):
        digits = 360 if abs(argument) > 1e7 or abs(argument) < 1e-7 else 50
        with mpmath.workdps(digits):
            worst = max(worst, _ulp(mpmath, result, exact(mpmath, name, mpmath.mpf(argument))))
    assert worst <= MOST_ULP[name]


def test_a_power_is_right_to_one_unit_in_the_last_place(functions: Function) -> None:
    mpmath = pytest.importorskip("mpmath", reason="the exact values are mpmath's")
    random = np.random.default_rng(6)
    n = 1000
    size = 10 ** random.uniform(-300, 300, n)
    bases = [10 ** random.uniform(-3, 3, n), size, 1 + 1e-4 * random.uniform(-1, 1, n)]
    exponents = [random.uniform(-50, 50, n), random.uniform(-1, 1, n), 1e6 * random.normal(size=n)]
    x, y = np.concatenate(bases), np.concatenate(exponents)
    worst = 0.0
    with mpmath.workdps(60):
        for a, b, c in zip(x, y, functions("pow", x, y), strict=True):
            exact = mpmath.mpf(a) ** mpmath.mpf(b)
            if exact < mpmath.mpf(1.79e308) and exact > mpmath.mpf(3e-308):
                worst = max(worst, _ulp(mpmath, c, exact))
    assert 0.5 < worst <= MOST_ULP["pow"]


@pytest.mark.parametrize(("name", "most"), [("atan2", 3.0), ("hypot", 1.5), ("fmod", 0.0)])
def test_a_function_of_two_is_right_to_few_units(
    functions: Function, name: str, most: float
) -> None:
    mpmath = pytest.importorskip("mpmath", reason="the exact values are mpmath's")
    random = np.random.default_rng(8)
    n = 1000
    x = np.concatenate([random.uniform(-2, 2, n), 10 ** random.uniform(-300, 300, n)])
    y = np.concatenate([random.uniform(-2, 2, n), 10 ** random.uniform(-300, 300, n)])
    worst = 0.0
    with mpmath.workdps(400):
        for a, b, c in zip(x, y, functions(name, x, y), strict=True):
            if name == "fmod":
                assert c == np.fmod(a, b)
                continue
            value = getattr(mpmath, name)(mpmath.mpf(a), mpmath.mpf(b))
            if value > mpmath.mpf(3e-308):
                worst = max(worst, _ulp(mpmath, c, value))
    assert worst <= most


@pytest.mark.parametrize("name", ["atan2", "hypot", "fmod", "copysign"])
def test_functions_of_two_special_numbers_are_those_of_c(functions: Function, name: str) -> None:
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)))
    x, y = pairs[:, 0].copy(), pairs[:, 1].copy()
    with np.errstate(all="ignore"):
        expected = getattr(np, "arctan2" if name == "atan2" else name)(x, y)
    results = functions(name, x, y)
    np.testing.assert_allclose(results, expected, rtol=1e-15, atol=5e-324)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(results[number]), np.signbit(expected[number]))


def _ulp(mpmath, result: float, exact) -> float:  # type: ignore[no-untyped-def]
    if exact == 0:
        return 0.0 if result == 0 else np.inf
    exponent = max(int(mpmath.floor(mpmath.log(abs(exact), 2))), -1022)
    return float(abs(mpmath.mpf(float(result)) - exact) / mpmath.mpf(2) ** (exponent - 52))


def test_powers_of_special_numbers_are_those_of_c(functions: Function) -> None:
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)))
    x, y = pairs[:, 0].copy(), pairs[:, 1].copy()
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    np.testing.assert_allclose(functions("pow", x, y), expected, rtol=1e-15)
    zero = expected == 0
    results = functions("pow", x, y)
    np.testing.assert_array_equal(np.signbit(results[zero]), np.signbit(expected[zero]))


def test_a_large_exponent_is_a_whole_number_or_none(functions: Function) -> None:
    """From 2^51 on the last bit is a half, from 2^52 on a one, from 2^53 on a two."""
    exponents = [2.0**k + d for k in (50, 51, 52, 53) for d in (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0)]
    y = np.array([*exponents, *(-e for e in exponents)])
    x = np.full(len(y), -1.0)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(functions("pow", x, y), np.power(x, y))


@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_special_numbers_are_those_of_c(functions: Function, name: str) -> None:
    expected = np.array([folding.FUNCTIONS[name](value) for value in SPECIAL])
    # The quotient by the root of 2 is rounded in C, and counts in the tail.
    rtol = 2e-15 if name == "ndtr" else 1e-15
    np.testing.assert_allclose(functions(name, SPECIAL), expected, rtol=rtol, atol=5e-324)


def digest(call: Function) -> str:
    """Of the bits of many results; NaN is NaN."""
    found = hashlib.sha256()
    random = np.random.default_rng(7)
    for name in OF_ONE:
        results = call(name, np.concatenate([arguments_of(name), SPECIAL]))
        found.update(np.where(np.isnan(results), np.nan, results).tobytes())
    x = np.concatenate([10 ** random.uniform(-300, 300, 5000), SPECIAL, SPECIAL])
    y = np.concatenate([random.uniform(-3, 3, 5000), SPECIAL, SPECIAL[::-1]])
    for name in OF_TWO:
        results = call(name, x, y)
        found.update(np.where(np.isnan(results), np.nan, results).tobytes())
    return found.hexdigest()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_bits_are_equal_on_every_instruction_set_in_every_lane(
    tmp_path: Path, functions: Function, cc: str, target: str, lanes: int
) -> None:
    if not runs_here(target):
        pytest.skip(f"this processor has no {target}")
    assert digest(compiled(tmp_path, cc, target, lanes)) == digest(functions)


def test_bits_are_equal_without_a_fused_multiply_add(tmp_path: Path, functions: Function) -> None:
    require_compiler("gcc")
    made = compiled(tmp_path, "gcc", native_target(), 4, "-DNEML2_KERNEL_NO_FMA")
    assert digest(made) == digest(functions)


def test_bits_are_equal_without_optimisation(tmp_path: Path, functions: Function, cc: str) -> None:
    assert digest(compiled(tmp_path, cc, native_target(), 4, "-O0")) == digest(functions)


def test_float_results_are_rounded_doubles(tmp_path: Path, any_cc: str) -> None:
    source = tmp_path / "single.c"
    source.write_text(
        '#define NEML2_KERNEL_FLOAT\n#include "functions.h"\n'
        "void f(const lanes *x, const lanes *y, lanes *z) { *z = lanes_pow(*x, *y); }\n"
    )
    made = tmp_path / "single.so"
    flags = [f for f in FLAGS if "visibility" not in f]
    subprocess.run([any_cc, *flags, f"-I{C}", "-shared", str(source), "-o", str(made)], check=True)
    x, y, z = (np.zeros(32, dtype=np.float32)[8:] for _ in range(3))
    x, y, z = [a[(-a.ctypes.data % 16) // 4 :][:4] for a in (x, y, z)]
    x[:], y[:] = [0.3, 2, 1e30, 0], [1 / 3, 0.5, 2, 3]
    ctypes.CDLL(str(made)).f(*(ctypes.c_void_p(a.ctypes.data) for a in (x, y, z)))
    with np.errstate(over="ignore"):
        expected = np.power(x.astype(float), y.astype(float)).astype(np.float32)
    np.testing.assert_array_equal(z, expected)


def test_no_header_of_the_system_is_needed_but_stdint() -> None:
    text = "".join((C / header).read_text() for header in HEADERS)
    included = {line.split()[1] for line in text.splitlines() if line.startswith("#include")}
    assert included - {f'"{header}"' for header in HEADERS} == {"<stdint.h>"}
