"""A package as a function of torch, through which gradients run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.graph import Graph as _Graph
from neml2_capi.torch._autograd import Reverse


class Graph(torch.nn.Module):  # type: ignore[misc]
    """A .pt2 package among torch tensors: gradients run through it by its vjp package.

        export.package(network, examples, "network.pt2", backward=True)

        network = neml2_capi.torch.Graph("network.pt2")
        (stress,) = network(strain)
        stress.square().sum().backward()

    Gradients are with respect to the floating-point inputs, in reverse mode, and first derivatives
    only; each backward pass is one run of the vjp package. The weights in the package are
    constants; once graph.set_constants() has replaced some, there are no gradients, since the vjp
    package keeps its own. Tensors are on the CPU.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Load NAME.pt2, and NAME.vjp.pt2 if there is one.

        Parameters
        ----------
        path
            The file NAME.pt2. Without the other, asking for a gradient is a FatalError.

        Raises
        ------
        FatalError
            A package cannot be loaded, as in neml2_capi.Graph.
        """
        super().__init__()
        adjoint = Path(path).with_suffix(".vjp.pt2")
        self._path = Path(path)
        self._graph = _Graph(path)
        self._adjoint = _Graph(adjoint) if adjoint.is_file() else None

    @property
    def graph(self) -> _Graph:
        """The package itself: what its inputs must be, for example."""
        return self._graph

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Run the package.

        Parameters
        ----------
        *inputs : torch.Tensor
            Inputs by position, as neml2_capi.Graph takes them.
        **named : torch.Tensor
            The other inputs, by name.

        Returns
        -------
        tuple, list or dict of torch.Tensor
            The outputs, put together as neml2_capi.Graph does.

        Raises
        ------
        FatalError
            An input does not fit, or requires a gradient if there is no vjp package, or if
            constants were replaced.
        """
        given = self._graph._in_order(inputs, named)
        made = self._run(given)
        build = self._graph._build
        return made if build is None else build(iter(made))

    def _run(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        if not (torch.is_grad_enabled() and any(_requires_gradient(value) for value in inputs)):
            return self._graph.flat(*inputs)
        if self._adjoint is None:
            raise FatalError(
                f"{self._path} has no vjp package, and an input requires a gradient; export it "
                "with backward=True, or call it under torch.no_grad()",
                lib.NEML2_ERROR_UNSUPPORTED,
            )
        if replaced := self._graph._replaced:
            raise FatalError(
                f"constants of {self._path} were replaced by set_constants(), "
                f"{', '.join(sorted(replaced))}, and its vjp package keeps the exported ones: "
                "export the changed module, or call it under torch.no_grad()",
                lib.NEML2_ERROR_UNSUPPORTED,
            )
        results: tuple[Any, ...] = _Run.apply(self._graph, self._adjoint, *inputs)
        return results

    def extra_repr(self) -> str:
        """Name the file, for repr().

        Returns
        -------
        str
            The path in quotes.
        """
        return repr(str(self._path))


class _Run(Reverse):
    """apply(graph, adjoint, *inputs): the outputs."""

    subject = "a package"

    @staticmethod
    def forward(ctx: Any, graph: _Graph, adjoint: _Graph, *inputs: Any) -> tuple[Any, ...]:
        outputs = graph.flat(*[_plain(value) for value in inputs])
        outputs = tuple(torch.as_tensor(output) for output in outputs)
        ctx.adjoint = adjoint
        ctx.real = [output.is_floating_point() for output in outputs]
        ctx.mark_non_differentiable(*[o for o in outputs if not o.is_floating_point()])
        ctx.save_for_backward(*[torch.as_tensor(value) for value in inputs])
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        _Run.require_values(gradients)
        inputs = ctx.saved_tensors
        cotangents = [g for g, real in zip(gradients, ctx.real, strict=True) if real]
        made = iter(ctx.adjoint.flat(*map(_plain, inputs), *cotangents))
        return None, None, *[next(made) if v.is_floating_point() else None for v in inputs]


def _requires_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _plain(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value
