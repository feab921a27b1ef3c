"""The equations of the test models in numpy, solved independently of any compiled graph.

Symmetric second-order tensors are stored in Mandel notation: a double contraction is the dot
product of two 6-vectors. All functions broadcast over leading batch axes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

IDENTITY = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])

# The models add this to a squared norm before its root, to keep the derivative finite at zero.
REGULARIZATION = float(np.finfo(np.float64).eps)


def deviator(tensor: Array) -> Array:
    result: Array = tensor - tensor[..., :3].mean(axis=-1, keepdims=True) * IDENTITY
    return result


def elastic_stress(strain: ArrayLike, E: ArrayLike, nu: float) -> Array:
    """Hooke's law, lambda tr(strain) I + 2 mu strain; `E` broadcasts with the batch."""
    strain = np.asarray(strain)
    E = np.asarray(E)[..., np.newaxis]
    lame = E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu))
    mu = E / (2.0 * (1.0 + nu))
    trace = strain[..., :3].sum(axis=-1, keepdims=True)
    stress: Array = lame * trace * IDENTITY + 2.0 * mu * strain
    return stress


@dataclass(frozen=True)
class BackStress:
    """Chaboche's law: X' = (2/3 C N - g X) gamma' - A |X|^(a-1) X."""

    C: float
    g: float
    A: float
    a: float

    def rate(self, X: Array, N: Array, flow_rate: Array) -> Array:
        norm = np.sqrt((X * X).sum(axis=-1, keepdims=True) + REGULARIZATION)
        hardening = (2.0 / 3.0 * self.C * N - self.g * X) * flow_rate[..., np.newaxis]
        rate: Array = hardening - self.A * norm ** (self.a - 1.0) * X
        return rate


@dataclass(frozen=True)
class Viscoplasticity:
    """J2 viscoplasticity in rate form, integrated by backward Euler.

    The unknowns of a point are [stress (6), equivalent plastic strain (1), each back stress (6)].
    With S the deviator of the stress less the back stresses, and s = sqrt(3/2 S:S):

        f      = sqrt(2/3) (s - yield stress - h(p))     yield function
        N      = df/dstress = sqrt(3/2) S / s            flow direction, |N| = 1
        gamma' = <f / reference stress>^exponent         Perzyna
        p'     = -gamma' df/dh = sqrt(2/3) gamma'
        stress' = C : (strain' - gamma' N)

    With a `flow_norm`, N has this norm and p' grows with it.
    """

    E: float
    nu: float
    yield_stress: float | Array
    reference_stress: float
    exponent: float
    linear_modulus: float = 0.0
    voce_saturation: float = 0.0
    voce_rate: float = 0.0
    back_stresses: tuple[BackStress, ...] = field(default=())
    flow_norm: float = 1.0

    @property
    def unknown_count(self) -> int:
        return 7 + 6 * len(self.back_stresses)

    def isotropic_hardening(self, p: Array) -> Array:
        voce = self.voce_saturation * (1.0 - np.exp(-self.voce_rate * p))
        h: Array = self.linear_modulus * p + voce
        return h

    def residual(
        self, state: Array, old_state: Array, strain: Array, old_strain: Array, dt: Array
    ) -> Array:
        """state - old state - dt * rate(state); `state` may be complex, for its derivatives."""
        dt = np.asarray(dt)[..., np.newaxis]
        stress, p = state[..., :6], state[..., 6]
        X = [state[..., 7 + 6 * i : 13 + 6 * i] for i in range(len(self.back_stresses))]

        S = deviator(stress - sum(X, np.zeros_like(stress)))
        effective = np.sqrt(1.5 * (S * S).sum(axis=-1) + REGULARIZATION)
        N = self.flow_norm * np.sqrt(1.5) * S / effective[..., np.newaxis]
        f = np.sqrt(2.0 / 3.0) * (effective - self.yield_stress - self.isotropic_hardening(p))
        flowing = f.real > 0.0
        flow_rate = np.where(flowing, np.where(flowing, f, 1.0) / self.reference_stress, 0.0)
        flow_rate = flow_rate**self.exponent

        strain_rate = (strain - old_strain) / dt
        stress_rate = elastic_stress(strain_rate - flow_rate[..., np.newaxis] * N, self.E, self.nu)
        p_rate = self.flow_norm * np.sqrt(2.0 / 3.0) * flow_rate[..., np.newaxis]
        laws = zip(self.back_stresses, X, strict=True)
        X_rates = [law.rate(Xi, N, flow_rate) for law, Xi in laws]
        rate = np.concatenate([stress_rate, p_rate, *X_rates], axis=-1)
        residual: Array = state - old_state - dt * rate
        return residual

    def jacobian(
        self, state: Array, old_state: Array, strain: Array, old_strain: Array, dt: Array
    ) -> Array:
        """d residual / d state by complex steps: exact to round-off."""
        step = 1e-40
        columns = []
        for i in range(self.unknown_count):
            perturbed = state.astype(complex)
            perturbed[..., i] += 1j * step
            columns.append(self.residual(perturbed, old_state, strain, old_strain, dt).imag / step)
        return np.stack(columns, axis=-1)

    def sensitivity(
        self, state: Array, arguments: tuple[Array, Array, Array, Array], position: int
    ) -> Array:
        """d state / d arguments[position], the old state for example, of a step that is solved.

        By the implicit function theorem, with complex steps.
        """
        step = 1e-40
        columns = []
        for i in range(arguments[position][0].size):
            shift = np.zeros(arguments[position].shape, dtype=complex)
            shift.reshape(len(state), -1)[:, i] = 1j * step
            perturbed: list[NDArray[Any]] = [*arguments]
            perturbed[position] = arguments[position] + shift
            columns.append(self.residual(state, *perturbed).imag / step)
        right = -np.stack(columns, axis=-1)
        slopes = np.linalg.solve(self.jacobian(state, *arguments), right)
        return np.asarray(slopes)

    def advance(
        self, old_state: Array, strain: ArrayLike, old_strain: ArrayLike, dt: ArrayLike
    ) -> Array:
        """The state at the end of a step for a batch of points, each converged to round-off.

        Newton's method from the old state; a step that does not reduce the residual is halved.
        """
        strain, old_strain = np.asarray(strain), np.asarray(old_strain)
        dt = np.broadcast_to(np.asarray(dt, dtype=float), strain.shape[:-1])
        state = np.array(old_state, dtype=float)
        arguments = (old_state, strain, old_strain, dt)
        # What round-off leaves of a residual: some units in the last place of its greatest terms.
        floor = 50.0 * REGULARIZATION * np.linalg.norm(self.residual(state, *arguments), axis=-1)
        floor = np.maximum(floor, 1e-13 * np.linalg.norm(state, axis=-1))
        for _ in range(200):
            r = self.residual(state, *arguments)
            norm = np.linalg.norm(r, axis=-1)
            if np.all(norm <= floor):
                return state
            step = np.linalg.solve(self.jacobian(state, *arguments), -r[..., np.newaxis])[..., 0]
            length = np.where(norm <= floor, 0.0, 1.0)
            for _ in range(30):
                trial = state + length[..., np.newaxis] * step
                worse = np.linalg.norm(self.residual(trial, *arguments), axis=-1) > norm
                if not np.any(worse & (norm > floor)):
                    break
                length = np.where(worse, length / 2.0, length)
            state = trial
        raise RuntimeError(f"the oracle did not converge: residuals {norm}, wanted {floor}")


# The parameters of examples/models/viscoplastic.i
VISCOPLASTIC = Viscoplasticity(
    E=200e3,
    nu=0.3,
    yield_stress=150.0,
    reference_stress=120.0,
    exponent=6.0,
    voce_saturation=60.0,
    voce_rate=8.0,
    back_stresses=(
        BackStress(C=40000.0, g=400.0, A=1e-6, a=2.2),
        BackStress(C=4000.0, g=40.0, A=1e-8, a=3.2),
    ),
)

# The parameters of tests/models/isotropic_hardening.i
ISOTROPIC_HARDENING = Viscoplasticity(
    E=200e3, nu=0.3, yield_stress=150.0, reference_stress=120.0, exponent=6.0, linear_modulus=2000.0
)

# The parameters of tests/models/creep.i, where the plastic strain rate is gamma' 3/2 S / s, and
# p' = gamma'.
CREEP = replace(ISOTROPIC_HARDENING, flow_norm=float(np.sqrt(1.5)))
