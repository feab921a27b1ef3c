"""NEML2's models without its compiled extension: Newton's method of its solvers, in torch.

The published wheel of NEML2 3.1 does not run with torch 2.13. install() replaces the function
that its eager solvers ask the extension for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Groups = list[torch.Tensor]


def install() -> None:
    """Use it for all implicit updates of this process."""
    import neml2.aoti._aoti as extension

    extension.newton_solve_eager = solve


def solve(
    residual_fn: Callable[[Groups], Groups],
    step_fn: Callable[[Groups], tuple[Groups, Groups]],
    unknown_layout: list[tuple[str, list[int]]],
    residual_layout: list[tuple[str, list[int]]],
    u0: Groups,
    *,
    atol: float,
    rtol: float,
    miters: int,
    ls_type: str,
    ls_max_iters: int,
    ls_cutback: float,
    ls_c: float,
    **_: Any,
) -> tuple[Groups, bool, int, list[str]]:
    """Iterate until the whole batch has converged: the solution, whether, and the iterations."""
    rows, columns = _axes(residual_layout), _axes(unknown_layout)
    u = list(u0)
    b = residual_fn(u)
    first = norm = _dot(b, b, rows).sqrt()
    for iteration in range(miters):
        if bool(((norm < atol) | (norm / first < rtol)).all()):
            return u, True, iteration, []
        if not bool(torch.isfinite(norm).all()):
            raise RuntimeError(f"the residual is not finite in iteration {iteration}")
        if iteration == miters - 1:
            break
        du, _before = step_fn(u)
        before, slope = _dot(b, b, rows), _dot(b, du, columns)
        share = torch.ones_like(before)
        for _trial in range(max(ls_max_iters - 1, 1)):
            trial = [x + _beside(share, n) * d for x, d, n in zip(u, du, columns, strict=True)]
            left = residual_fn(trial)
            if ls_max_iters <= 1:
                break
            squared = _dot(left, left, rows)
            armijo = before - 2 * ls_c * share * slope
            bound = (1 - ls_c * share) * before if ls_type == "STRONG_WOLFE" else armijo
            enough = (squared <= bound) | (squared <= atol**2)
            if bool(enough.all()):
                break
            share = torch.where(enough, share, share / ls_cutback)
        u, b = trial, left
        norm = _dot(b, b, rows).sqrt()
    return u, False, miters, []


def _axes(layout: list[tuple[str, list[int]]]) -> list[int]:
    """How many axes of each group are no batch."""
    return [len(sites) + 1 if structure == "block" else 1 for structure, sites in layout]


def _dot(a: Groups, b: Groups, axes: list[int]) -> torch.Tensor:
    products = [(x * y).sum(dim=list(range(-n, 0))) for x, y, n in zip(a, b, axes, strict=True)]
    total = products[0]
    for product in products[1:]:
        total = total + product
    return total


def _beside(values: torch.Tensor, axes: int) -> torch.Tensor:
    return values.reshape(values.shape + (1,) * axes)
