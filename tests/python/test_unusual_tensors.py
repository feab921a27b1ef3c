"""Tensors of torch that a model cannot take: sparse, nested, complex, bfloat16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neml2_capi import FatalError, Model, drive, examples

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.full("it needs torch")

STRAIN = torch.full((2, 6), 1e-3, dtype=torch.float64)
NESTED = torch.nested.nested_tensor([STRAIN[0], STRAIN[1]])


@pytest.fixture(scope="module")
def model() -> Model:
    """Elastic."""
    return Model(examples.path("elasticity"))


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (STRAIN.to_sparse(), r"sparse.*tensor\.to_dense\(\)"),
        (STRAIN.to_sparse_csr(), r"sparse.*tensor\.to_dense\(\)"),
        (NESTED, "nested"),
        (STRAIN.to(torch.complex128), r"complex128.*tensor\.real"),
        (STRAIN.bfloat16(), "must be float64; got bfloat16"),
        (STRAIN.half(), "must be float64; got float16"),
        (STRAIN.long(), "must be float64; got int64"),
    ],
    ids=["sparse", "csr", "nested", "complex", "bfloat16", "float16", "int64"],
)
def test_tensors_that_a_model_cannot_take_are_told_what_to_be(
    model: Model, tensor: Any, words: str
) -> None:
    with pytest.raises(FatalError, match=rf"(?s)'strain'.*{words}"):
        model.forward({"strain": tensor})


@pytest.mark.parametrize(
    "tensor",
    [STRAIN.to_sparse(), STRAIN.to_sparse_csr(), STRAIN.float().to_mkldnn(), NESTED],
    ids=["sparse", "csr", "mkldnn", "nested"],
)
def test_a_module_tells_the_same(model: Model, tensor: Any) -> None:
    module = pytest.importorskip("neml2_capi.torch").Module(model)
    with pytest.raises(FatalError, match=r"(?s)'strain'.*(sparse or packed|nested)"):
        module({"strain": tensor})


@pytest.mark.parametrize("tensor", [STRAIN.bfloat16(), STRAIN[:1].bfloat16()])
def test_bfloat16_is_named_wherever_arrays_are_taken(model: Model, tensor: Any) -> None:
    """And there is no message that numpy lacks it."""
    with pytest.raises(FatalError, match=r"strain.*must be float64; got bfloat16"):
        drive(model, [0.0, 1.0], {"strain": tensor})
    with pytest.raises(FatalError, match=r"strain.*must be float64; got bfloat16"):
        model.bind({"strain": tensor})


def test_a_sparse_matrix_of_scipy_is_named(model: Model) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(FatalError, match=r"'strain'.*sparse.*array\.toarray\(\)"):
        model.forward({"strain": sparse.csr_matrix(np.eye(6))})
