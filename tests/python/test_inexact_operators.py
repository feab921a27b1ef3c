"""Operators that Inductor compiles wrongly: named in packages of others, right in ours."""

from __future__ import annotations

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
    assert not inexact_operators(package_of(tmp_path / "law.pt2", line))
    assert not inexact_operators(tmp_path / "none.pt2")


@pytest.mark.full("packages are compiled by torch")
def test_packages_that_we_compile_are_right(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="packages are compiled by torch")
    from neml2_capi import Graph, export

    def law(x: Any) -> tuple[Any, ...]:
        elu = torch.nn.functional.elu
        return torch.expm1(x) / x, elu(x) / x, torch.atanh(x) / x, torch.remainder(1e17 * x, 3.0)

    path = export.package(law, (torch.zeros(4, dtype=torch.float64),), tmp_path / "law.pt2")
    assert not inexact_operators(path)
    x = -np.logspace(-18, -9, 37)
    expm1, elu, atanh, remainder = Graph(path)(x)
    np.testing.assert_allclose(expm1, 1 + x / 2, rtol=1e-15)
    np.testing.assert_allclose(elu, 1 + x / 2, rtol=1e-15)
    np.testing.assert_allclose(atanh, 1, rtol=1e-15)
    np.testing.assert_array_equal(remainder, np.mod(1e17 * x, 3.0))
