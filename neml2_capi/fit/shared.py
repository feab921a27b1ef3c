"""How residuals scatter if some of them are made of the same measured values.

Measured values scatter independently, and residuals are linear in them: M, (residuals, values), in
deviations. The covariance of residuals is K = M M'. If each residual has a value of its own, K is
1, and what follows is the usual: the inverse of J' J, and as many degrees of freedom as there are
more residuals than parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from neml2_capi.fit.terms import Terms

Array = NDArray[np.float64]

#: Of the greatest singular value: less is round-off.
ROUND_OFF = 1e-9


def sources(parts: Sequence[Terms | None], sizes: Sequence[int], is_known: bool) -> Any:
    """Derivatives of residuals by measured values, in deviations: sparse, (residuals, values).

    If no deviation is known, residuals have the mean square 1. An experiment that failed counts as
    one whose residuals have a value each.
    """
    from scipy.sparse import block_diag, csr_array, identity

    blocks = []
    for part, size in zip(parts, sizes, strict=True):
        if part is None:
            blocks.append(csr_array(identity(size)))
        elif size:
            numbers = np.repeat(np.arange(size), part.values.shape[1])
            places = numbers, part.values.ravel()
            blocks.append(csr_array((part.shares.ravel(), places)))
    found = csr_array(block_diag(blocks))
    if not is_known:
        found *= np.sqrt(found.shape[0] / found.power(2).sum())
    return found


def spread(data: Array, prior: Array, made_of: Any) -> tuple[float, float]:
    """The mean of the sum of squared residuals for a scatter of 1, and its degrees of freedom.

    The mean is of data and priors that are both true; the degrees of freedom are Satterthwaite's,
    2 mean^2 / variance. `data` and `prior` are derivatives of residuals, `made_of` is sources().
    """
    whole = np.concatenate([data, prior])
    lengths = np.linalg.norm(whole, axis=0)
    left, singular, _ = np.linalg.svd(whole / np.where(lengths > 0, lengths, 1), False)
    axes = left[: len(data), singular > ROUND_OFF * singular.max(initial=0.0)]
    # S = 1 - Q Q' takes from data what the parameters follow, S^2 = 1 - Q (1 + rest) Q'.
    rest = np.eye(axes.shape[1]) - axes.T @ axes
    more = np.eye(len(rest)) + rest
    by_values = made_of.T @ axes
    once, twice = by_values.T @ by_values, made_of @ by_values
    of_prior = rest @ (np.eye(len(rest)) - rest)
    mean = made_of.power(2).sum() - np.trace(more @ once) + np.trace(of_prior)
    square = (made_of.T @ made_of).power(2).sum() - 2 * np.trace(more @ twice.T @ twice)
    square += np.trace(more @ once @ more @ once) + np.trace(of_prior @ of_prior)
    square += 2 * np.trace(np.linalg.matrix_power(rest, 3) @ once)
    if not mean > ROUND_OFF * len(data) or not square > 0:
        return 0.0, 0.0
    return float(mean), float(mean**2 / square)
