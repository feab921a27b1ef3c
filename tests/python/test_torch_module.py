"""A Module in a network of torch: its compiler, its default device, names and truth values."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from modules import Artifacts, Base, inputs_of, module_of  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from neml2_capi import FatalError, Model, examples, experiments  # noqa: E402
from neml2_capi import torch as capi_torch  # noqa: E402

Tensor: Any = torch.Tensor


class _Scaled(Base):  # type: ignore[misc]
    """A network with a law in it."""

    def __init__(self, law: Any, others: Mapping[str, Any]) -> None:
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
        self.law, self.others = law, others

    def forward(self, strain: Any) -> Any:
        return 3.0 * self.law({**self.others, "strain": self.factor * strain})["stress"]


def test_a_compiled_network_leaves_the_law_as_it_is(artifacts: Artifacts) -> None:
    """The compiler looked into the library, and ended by an error of its own."""
    law = module_of(artifacts, "isotropic_hardening")
    others = {v.name: torch.zeros(v.base_shape, dtype=torch.float64) for v in law.model.inputs}
    others["t"] = torch.tensor(1.0, dtype=torch.float64)
    strain = torch.tensor([5e-3, -2e-3, -2e-3, 0, 1e-3, 0], dtype=torch.float64)
    network = _Scaled(law, others)
    compiled = torch.compile(network, backend="eager")
    found, expected = compiled(strain), network(strain)
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=0.0)
    variables = list(network.parameters())
    slopes = (torch.autograd.grad(value.sum(), variables) for value in (found, expected))
    torch.testing.assert_close(*slopes, rtol=1e-14, atol=0.0)
    alone = torch.compile(law, backend="eager")({**others, "strain": strain})["stress"]
    torch.testing.assert_close(alone, law({**others, "strain": strain})["stress"])


def test_a_default_device_of_torch_moves_nothing(artifacts: Artifacts) -> None:
    """Parameters and numbers went to torch's default device, from which no model takes them."""
    with torch.device("meta"):
        module = capi_torch.Module(artifacts["elasticity_parameters"])
        module["E"] = 100e3
        outputs = module(strain=[1e-3, 0.0, 0.0, 0.0, 0.0, 0.0])
        steel = Model(examples.path("chaboche"))
        E = torch.tensor(2e5, dtype=torch.float64, device="cpu", requires_grad=True)
        pulled = experiments.tension(steel, [0.0, 1.0], 0.01, parameters={"E": E})
        (slope,) = torch.autograd.grad(pulled["stress"][-1, 0], [E])
    assert outputs["stress"].device == slope.device == torch.device("cpu")
    assert outputs["stress"][0] > 100.0 and slope != 0.0


def test_one_name_may_stand_alone(artifacts: Artifacts) -> None:
    module = capi_torch.Module(artifacts["isotropic_hardening"], "yield_stress", "stress")
    assert [name for name, _ in module.named_parameters()] == ["yield_stress"]
    assert list(module(inputs_of("isotropic_hardening"))) == ["stress"]


@pytest.mark.parametrize("value", [True, [True] * 6])
def test_truth_is_no_number(artifacts: Artifacts, value: Any) -> None:
    module = capi_torch.Module(artifacts["elasticity_parameters"])
    with pytest.raises(FatalError, match=r"must be torch\.float64; got torch\.bool"):
        module(strain=value)
    with pytest.raises(FatalError, match=r"must be torch\.float64; got torch\.bool"):
        module["E"] = value


def test_a_read_only_array_is_copied_without_a_word(artifacts: Artifacts) -> None:
    """Torch warned of the arrays of a State, which nobody can write."""
    module = capi_torch.Module(artifacts["isotropic_hardening"])
    state = module.model.state()
    given = {"strain": torch.full((6,), 1e-3).double(), "t": torch.ones(()).double()}
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outputs = module(state.inputs(given))
    finally:
        torch.set_warn_always(False)
    assert outputs["stress"].shape == (6,)


def test_an_array_is_read_as_by_a_model(artifacts: Artifacts) -> None:
    """What is behind a mask was computed with, and a reversed array was refused."""
    module = capi_torch.Module(artifacts["elasticity_parameters"])
    strain = 1e-3 * np.arange(6.0)
    with pytest.raises(FatalError, match="'strain' is masked: fill it first"):
        module(strain=np.ma.masked_array(strain, strain == 0.0))
    stress = module(strain=strain[::-1])["stress"]
    np.testing.assert_array_equal(stress.detach(), module.model(strain=strain[::-1])["stress"])


class _Wrapper(Tensor):  # type: ignore[misc]
    """A tensor without memory of its own, as libraries of distributed tensors have them."""

    @staticmethod
    def __new__(cls, whole: Any) -> Any:
        return Tensor._make_wrapper_subclass(cls, whole.shape, dtype=whole.dtype)

    @classmethod
    def __torch_dispatch__(cls, function: Any, *_: Any) -> Any:
        raise NotImplementedError(function)


def _exported(network: Any, strain: Any) -> Any:
    return torch.export.export(network, (strain,))


def _wrapped(network: Any, strain: Any) -> Any:
    return network.law(strain=_Wrapper(strain))


def _faked(network: Any, strain: Any) -> Any:
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        return network.law(strain=mode.from_tensor(strain))


def _faked_for_a_model(network: Any, strain: Any) -> Any:
    with FakeTensorMode() as mode:
        return network.law.model.forward({"strain": mode.from_tensor(strain)})


@pytest.mark.parametrize("trace", [_exported, _wrapped, _faked, _faked_for_a_model])
@pytest.mark.filterwarnings("ignore:Accessing the data pointer")
def test_a_trace_without_values_is_refused(artifacts: Artifacts, trace: Any) -> None:
    """torch.export called the law without an end, and a tensor without memory ended the process."""
    law = capi_torch.Module(artifacts["elasticity_parameters"], parameters=[])
    strain = torch.full((3, 6), 1e-3, dtype=torch.float64)
    network = _Scaled(law, {}).requires_grad_(False)
    with pytest.raises(FatalError, match=r"torch\.export and .*; torch\.compile ends its graphs"):
        trace(network, strain)
    assert network(strain).shape == (3, 6)
    none = torch.empty((0, 6), dtype=torch.float64)
    assert network(none).shape == (0, 6)
