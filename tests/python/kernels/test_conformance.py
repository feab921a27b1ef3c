"""The table of tests/conformance, on kernels: no result is of a wrong class, few units are lost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="graphs are read with torch")
pytest.importorskip("mpmath", reason="the exact values are mpmath's")

from kernel_setup import native_target  # noqa: E402

from neml2_capi.export._compile import traced  # noqa: E402
from neml2_capi.export._points import batched  # noqa: E402
from neml2_capi.kernels.evaluate import evaluate  # noqa: E402
from neml2_capi.kernels.trace import read  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parents[2] / "conformance"))

import conformance  # noqa: E402
from table import OPERATORS  # noqa: E402

pytestmark = pytest.mark.full("operators are exported by torch")


#: Operators whose intermediate results are larger or smaller than their results.
_WIDER = ["std", "var", "norm", "mean", "gelu", "elu", "logsumexp", "softmax", "hypot", "sinh"]


@pytest.mark.parametrize(("dtype", "names"), [("float64", list(OPERATORS)), ("float32", _WIDER)])
def test_operators_mean_on_kernels_what_they_mean_in_torch(dtype: str, names: list[str]) -> None:
    found: dict[str, Any] = {
        name: verdict
        for name, _, verdict in conformance.verdicts(names, dtype, [native_target()], 2)
    }
    wrong = {
        name: (conformance.cell(verdict), verdict.example, verdict.at)
        for name, verdict in found.items()
        if not conformance.is_right(OPERATORS[name], verdict)
    }
    assert set(found) == set(names)
    assert not wrong
    assert np.isfinite([verdict.ulp for verdict in found.values()]).all()


def test_the_table_has_a_hundred_operators() -> None:
    assert len(OPERATORS) >= 100


#: Operators whose derivatives torch has written by hand.
_BY_HAND = ["hardtanh", "relu6", "threshold", "elu", "selu", "celu", "gelu", "gelu, tanh", "silu"]
_BY_HAND += ["logsigmoid", "softplus", "leaky_relu", "hardswish", "sigmoid", "tanh", "softmax"]
_BY_HAND += ["log_softmax", "max over an axis", "atanh", "hypot", "atan2", "logit"]


def test_derivatives_that_torch_has_written_by_hand_are_known() -> None:
    def derivatives(x: Any, y: Any) -> Any:
        def laws(*values: Any) -> Any:
            return torch.stack([OPERATORS[name].law(torch, *values) for name in _BY_HAND])

        return torch.func.jacrev(laws, (0, 1))(x, y)

    examples = (torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64))
    program = read(traced(batched(derivatives, [(), ()], torch.float64), examples, [0, 0]))
    x, y = np.array([[0.3, 0.7, -0.4, 1.7, -2.3], [0.9, -0.6, 0.35, 2.2, 1.1]])
    found = evaluate(program, [x[None], y[None]])
    expected = torch.func.vmap(derivatives)(torch.tensor(x), torch.tensor(y))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs.numpy().T, rtol=1e-11, atol=1e-13)
