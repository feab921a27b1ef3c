"""Iterative solvers of A x = b for a batch of independent systems, preconditioned from the left.

GMRES: Saad and Schultz, SIAM J. Sci. Stat. Comput. 7 (1986) 856.
BiCGStab: van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631.

A point stops at |residual| < abs_tol or |residual| < rel_tol |b|, and also if that is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neml2_capi._ffi.labels import Array
from neml2_capi.engine.newton import norms

# Takes and returns vectors, (points, size).
Operator = Callable[[Array], Array]


def solve(
    settings: Any, matvec: Operator, precondition: Operator, b: Array, together: bool = False
) -> tuple[Array, Array]:
    """The solutions, and the iterations that each took.

    `together`: as in NEML2; with GMRES no point stops before all have converged, and no
    denominator is less than the relative precision, whatever the scale of the system.
    """
    with np.errstate(all="ignore"):
        if settings.method == "gmres":
            return _gmres(settings, matvec, precondition, b, together)
        return _bicgstab(settings, matvec, precondition, b, together)


def solve_columns(settings: Any, a: Array, b: Array) -> Array:
    """A^-1 B with matrices, (points, size, size) and (points, size, columns), column by column.

    A column that was not found, by more than what round-off explains, is NaN.
    """
    columns = [
        solve(settings, lambda v: (a @ v[..., np.newaxis])[..., 0], lambda r: r, b[..., k])[0]
        for k in range(b.shape[-1])
    ]
    x = np.stack(columns, axis=-1)
    residual, size = np.linalg.norm(a @ x - b, axis=1), np.linalg.norm(b, axis=1)
    found = residual <= 10 * settings.abs_tol + max(10 * settings.rel_tol, 1e-8) * size
    return np.where(found[:, np.newaxis], x, np.nan)


def _gmres(
    settings: Any, matvec: Operator, precondition: Operator, b: Array, together: bool
) -> tuple[Array, Array]:
    """Restarted GMRES with Gram-Schmidt, done twice, and Givens rotations."""
    points, m = len(b), settings.restart
    floor, rounding = _floor(b, together), 10 * np.finfo(b.dtype).eps
    size = np.maximum(norms(b), floor)
    x, iterations = np.zeros_like(b), np.zeros(points, dtype=int)
    done = np.zeros(points, dtype=bool)
    for cycle in range(-(-settings.max_its // m)):
        r = precondition(b if cycle == 0 else b - matvec(x))
        beta = norms(r)
        x[np.isnan(beta)] = np.nan
        done |= _converged(settings, beta, size)
        if done.all():
            break
        basis = [r / np.maximum(beta, floor)[:, np.newaxis]]
        R, g = np.zeros((points, m, m)), np.zeros((points, m + 1))
        g[:, 0] = beta
        used = np.zeros(points, dtype=int)  # basis vectors in the solution of each point
        growing = ~done | together
        rotations: list[tuple[Array, Array]] = []
        for j in range(m):
            w = precondition(matvec(basis[j]))
            noise = -1.0 if together else rounding * norms(w)
            column = np.zeros((points, j + 2))
            for _ in range(2):
                h = np.stack([(v * w).sum(axis=1) for v in basis], axis=1)
                w = w - sum(h[:, k, np.newaxis] * v for k, v in enumerate(basis))
                column[:, :-1] += h
            column[:, -1] = norms(w)
            basis.append(w / np.maximum(column[:, -1], floor)[:, np.newaxis])
            for k, (c, s) in enumerate(rotations):
                column[:, k], column[:, k + 1] = (
                    c * column[:, k] + s * column[:, k + 1],
                    c * column[:, k + 1] - s * column[:, k],
                )
            length = np.maximum(np.hypot(column[:, j], column[:, j + 1]), floor)
            c, s = column[:, j] / length, column[:, j + 1] / length
            rotations.append((c, s))
            R[:, :j, j], R[:, j, j] = column[:, :j], length
            g[:, j], g[:, j + 1] = c * g[:, j], -s * g[:, j]
            # Below the noise nothing is left: the next cycle starts from the true residual.
            lost, ended = length <= noise, column[:, -1] <= noise
            iterations += growing & ~done
            used[growing & ~lost] = j + 1
            done |= growing & ~lost & _converged(settings, np.abs(g[:, j + 1]), size)
            growing &= ~lost & ~ended & (~done | together)
            if done.all() or not growing.any():
                break
        x += sum(
            y[:, np.newaxis] * v for y, v in zip(_back_substitute(R, g, used), basis, strict=False)
        )
    return x, iterations


def _back_substitute(R: Array, g: Array, used: Array) -> list[Array]:
    """y with R y = g, for each point in its leading `used` columns; zero beyond."""
    y = [np.zeros(len(g)) for _ in range(R.shape[1])]
    for k in reversed(range(used.max())):
        rest = sum((R[:, k, i] * y[i] for i in range(k + 1, used.max())), np.zeros(len(g)))
        y[k] = np.where(k < used, (g[:, k] - rest) / R[:, k, k], 0.0)
    return y


def _bicgstab(
    settings: Any, matvec: Operator, precondition: Operator, b: Array, together: bool
) -> tuple[Array, Array]:
    def dot(p: Array, q: Array) -> Array:
        return np.asarray((p * q).sum(axis=1, keepdims=True))

    floor = _floor(b, together)

    def nonzero(value: Array) -> Array:
        return np.where(np.abs(value) < floor, np.where(value < 0, -floor, floor), value)

    size = np.maximum(norms(b), floor)
    x, r, shadow = np.zeros_like(b), b.copy(), b
    v, p = np.zeros_like(b), np.zeros_like(b)
    rho = alpha = omega = np.ones((len(b), 1))
    iterations = np.zeros(len(b), dtype=int)
    x[np.isnan(size)] = np.nan
    done = _converged(settings, norms(r), size)
    for _ in range(settings.max_its):
        if done.all():
            break
        new_rho = dot(shadow, r)
        beta = (new_rho / nonzero(rho)) * (alpha / nonzero(omega))
        new_p = r + beta * (p - omega * v)
        p_hat = precondition(new_p)
        new_v = matvec(p_hat)
        new_alpha = new_rho / nonzero(dot(shadow, new_v))
        s = r - new_alpha * new_v
        s_hat = precondition(s)
        t = matvec(s_hat)
        new_omega = dot(t, s) / np.maximum(dot(t, t), floor)
        # Points that are done are left as they are.
        busy = ~done[:, np.newaxis]
        x = np.where(busy, x + new_alpha * p_hat + new_omega * s_hat, x)
        r = np.where(busy, s - new_omega * t, r)
        p, v = np.where(busy, new_p, p), np.where(busy, new_v, v)
        rho, alpha = np.where(busy, new_rho, rho), np.where(busy, new_alpha, alpha)
        omega = np.where(busy, new_omega, omega)
        iterations += ~done
        done = done | _converged(settings, norms(r), size)
    return x, iterations


def _floor(b: Array, together: bool) -> float:
    """The least denominator."""
    limits = np.finfo(b.dtype)
    return float(limits.eps if together else limits.tiny)


def _converged(settings: Any, norm: Array, size: Array) -> Array:
    return np.asarray(~((norm >= settings.abs_tol) & (norm / size >= settings.rel_tol)))
