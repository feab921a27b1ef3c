"""Operators that Inductor compiles wrongly: named in packages of others, right in ours."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neml2_capi.cli.inexact import inexact_operators

#: Lines of Inductor's vector code.
_LINES = {
    "expm1": "auto tmp1 = tmp0.exp() - decltype(tmp0)(1);",
    "atanh": "auto tmp1 = decltype(tmp0)(0.5) * "
    "((decltype(tmp0)(1) + tmp0)/(decltype(tmp0)(1) - tmp0)).log();",
    "remainder": "auto tmp2 = tmp0 - (div_floor_floating_vec(tmp0, tmp1)) * tmp1;",
    "erf": "auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0, 8); auto tmp1 = tmp0.erf();",
}


def package_of(path: Path, source: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("law/data/aotinductor/model/c1.kernel.cpp", source)
    return path


@pytest.mark.parametrize("name", _LINES)
def test_an_operator_that_inductor_compiled_wrongly_is_named(tmp_path: Path, name: str) -> None:
    (found,) = inexact_operators(package_of(tmp_path / "law.pt2", f"void f() {{ {_LINES[name]} }}"))
    assert found.startswith(name)


def test_a_package_of_others_is_not_blamed(tmp_path: Path) -> None:
    line = "auto tmp1 = tmp0.exp(); auto tmp2 = tmp0 - decltype(tmp0)(1);"
    line += _LINES["erf"].replace("float", "double")
    assert not inexact_operators(package_of(tmp_path / "law.pt2", line))
    assert not inexact_operators(tmp_path / "none.pt2")


@pytest.mark.full("packages are compiled by torch")
def test_packages_that_we_compile_are_right(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="packages are compiled by torch")
    from neml2_capi import Graph, export

    def law(x: Any) -> tuple[Any, ...]:
        elu, half = torch.nn.functional.elu, torch.logit(0.5 + x)
        few = torch.expm1(x) / x, elu(x) / x, torch.atanh(x) / x, torch.remainder(1e17 * x, 3.0)
        return *few, half, torch.nn.functional.gelu(1e9 * x - 8.0)

    path = export.package(law, (torch.zeros(4, dtype=torch.float64),), tmp_path / "law.pt2")
    assert not inexact_operators(path)
    x = -np.logspace(-18, -9, 37)
    expm1, elu, atanh, remainder, logit, gelu = Graph(path)(x)
    np.testing.assert_allclose(expm1, 1 + x / 2, rtol=1e-15)
    np.testing.assert_allclose(elu, 1 + x / 2, rtol=1e-15)
    np.testing.assert_allclose(atanh, 1, rtol=1e-15)
    np.testing.assert_array_equal(remainder, np.mod(1e17 * x, 3.0))
    np.testing.assert_allclose(logit, 4 * ((0.5 + x) - 0.5), rtol=1e-15)
    exact = [z * math.erfc(-z / math.sqrt(2)) / 2 for z in 1e9 * x - 8]
    np.testing.assert_allclose(gelu, exact, rtol=1e-13)


@pytest.mark.full("packages are compiled by torch")
def test_packages_in_single_precision_are_right(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="packages are compiled by torch")
    from neml2_capi import Graph, export

    def law(x: Any) -> tuple[Any, ...]:
        pair = torch.stack([2e38 + x, x - 2e38], -1)
        return torch.erf(x) / x, torch.nn.functional.tanhshrink(x), pair.std(-1)

    path = export.package(law, (torch.zeros(4),), tmp_path / "law.pt2")
    assert not inexact_operators(path)
    x = np.logspace(-9, -3, 37, dtype=np.float32)
    erf, tanhshrink, deviation = Graph(path)(x)
    np.testing.assert_allclose(erf[x < 1e-4], 2 / math.sqrt(math.pi), rtol=2e-7)
    assert (np.asarray(tanhshrink) >= 0).all()
    np.testing.assert_allclose(deviation, 2e38 * math.sqrt(2), rtol=2e-7)
