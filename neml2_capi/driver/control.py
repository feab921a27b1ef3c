"""Stresses that are prescribed instead of strains: components of an output and an input."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.components import components
from neml2_capi._ffi.errors import ConvergenceError, FatalError, unknown_name
from neml2_capi._ffi.labels import Array, Label
from neml2_capi._ffi.library import lib
from neml2_capi.driver.arguments import is_number
from neml2_capi.driver.forces import Force, Table, parts_of, typed

if TYPE_CHECKING:
    from neml2_capi._ffi.variables import Variable
    from neml2_capi.model import Model
    from neml2_capi.model.call import Call

#: Components that vanish in tests that have a name.
NAMED = {
    "uniaxial": ("yy", "zz", "yz", "xz", "xy"),
    "biaxial": ("zz", "yz", "xz", "xy"),
    "plane stress": ("zz", "yz", "xz"),
}
#: The one of them in which one component does not vanish, and which that is.
UNIAXIAL, _ALONG = "uniaxial", "xx"
#: Of the greatest component of a point; in a model of float32, as many units in its last place.
TOLERANCE, _UNITS = 1e-9, 64
#: The strain that does not matter, of the tolerance, which times the tangent is a stress.
_LEAST_STRAIN = 1e-3
_ITERATIONS, _HALVINGS = 25, 6
#: The least part by which a whole step must lessen what is missing. Else it is halved, so often.
_DECREASE, _CUTS = 0.25, 8
#: Size of a difference of inputs, instead of a tangent.
_DIFFERENCE = 1e-6


class Control:
    """Which components of an output are prescribed, and what they shall be.

    Components of an input at the same places are found by Newton's method with a line search, for
    each point: with the derivative, if it was compiled; else with differences that are improved as
    Broyden does (A class of methods for solving nonlinear simultaneous equations, 1965).
    """

    def __init__(self, model: Model, values: Mapping[str, Any], clock: Table) -> None:
        """`values` are components by output, or by "output:input"."""
        if len(values) != 1:
            raise Label("control").refuse(
                f"has {len(values)} outputs; expected one, such as 'stress'",
                lib.NEML2_ERROR_ARGUMENT,
            )
        ((key, parts),) = values.items()
        self.output, self.input = conjugates(model, key)
        name, said = self.output.name, ""
        if isinstance(parts, str):
            if parts not in NAMED:
                raise unknown_name("control", parts, NAMED)
            said, parts = parts, dict.fromkeys(NAMED[parts], 0.0)
        if not isinstance(parts, Mapping) or not parts:
            raise _refuse(name, f"expected its components by name, or one of {', '.join(NAMED)}")
        said = said or (UNIAXIAL if UNIAXIAL in parts else "")
        parts = with_named(name, parts)
        vanishing = _vanishing(model, self.input)
        parts = {
            part: value
            for part, value in parts.items()
            if part not in vanishing or not is_number(value) or value != 0
        }
        known = [component.name for component in components(self.output)]
        lacking = [part for part in parts if part not in known]
        if said and lacking:
            raise _refuse(
                name,
                f"is {said!r}, which prescribes {', '.join(lacking)}, and this model has "
                f"{', '.join(known)} only: name the components that you prescribe",
            )
        found = parts_of(Label("control", name), parts, self.output, clock)
        #: The components that are prescribed, by name; none if all of them vanish by a hypothesis.
        self.components = list(found)
        #: Where they stand in a row, and by what they are stored times.
        self.free = np.array([number for number, _, _ in found.values()])
        self.factors = [factor for _, factor, _ in found.values()]
        self.forces: list[Force] = [force for _, _, force in found.values()]
        pairs = {(d.output, d.variable) for d in model.derivatives}
        self._has_tangent = (name, self.input.name) in pairs
        #: Strain, stress and tangent of the last increment, from which a search begins; or nothing.
        self.last: tuple[Array, ...] = ()

    def check_others(self, given: Any) -> None:
        """The components that are not found, of an input that is `given` as drive() takes it.

        FatalError if one is both prescribed and found. A warning names components that are not
        prescribed: they do not move, which is seldom meant.
        """
        if not isinstance(given, Mapping):
            return
        output, name = self.output.name, self.input.name
        for part in self.components:
            if part in given:
                raise _refuse(
                    f"{output}.{part}",
                    f"is prescribed, and so is {name}.{part}, which is found for it: expected one "
                    "of them",
                )
        parts = [component.name for component in components(self.input)]
        held = [part for part in parts if part not in self.components and part not in given]
        if held:
            whole = (
                f', or give control={{"{output}": {{"{UNIAXIAL}": stress}}}} if all other '
                "stresses vanish"
                if self.components == [_ALONG]
                else ""
            )
            warnings.warn(
                f"the components {', '.join(held)} of {name!r} are held at zero: neither they nor "
                f"those in {output!r} are prescribed. Name them in the forces or in the control"
                f"{whole}",
                stacklevel=3,
            )

    @property
    def derivatives(self) -> dict[str, dict[str, bool]]:
        """Derivatives that a call must give, as Model.bind() takes them."""
        return {self.output.name: {self.input.name: True}} if self._has_tangent else {}

    def solve(self, call: Call, step: int, fraction: float) -> Array:
        """Find the free components at the end of an increment, whose forces are loaded.

        Returns the iterations of the model, (*B,). ConvergenceError if it fails at a point, or
        if components are not found; then nothing has changed but the arrays of the end.
        """
        points = _Points(self, call, self._targets(step, fraction, call.batch))
        points.begin(self.last)
        for _ in range(_ITERATIONS):
            points.evaluate()
            if points.done.all():
                self.last = points.state()
                return points.iterations.reshape(call.batch)
            points.advance()
        raise points.failed()

    def _targets(self, step: int, fraction: float, batch: tuple[int, ...]) -> Array:
        targets = np.empty((*batch, len(self.forces)))
        for i, (factor, force) in enumerate(zip(self.factors, self.forces, strict=True)):
            value = factor * force.at(step, fraction)
            targets[..., i] = typed(np.asarray(value), force.label, self.output.dtype)
        return targets.reshape(-1, len(self.forces))


class _Points:
    """All points of one increment: rows of strains, stresses and tangents."""

    def __init__(self, control: Control, call: Call, targets: Array) -> None:
        self._control, self._call, self._targets = control, call, targets
        self._free, count = control.free, control.output.point_shape
        size = int(np.prod(count))
        #: Rows of the bound arrays; an evaluation reads the one and writes the other.
        self._strain = np.asarray(call.inputs[control.input.name]).reshape(-1, size)
        self._stress = np.asarray(call.outputs[control.output.name]).reshape(-1, size)
        points = len(self._strain)
        self.iterations = np.zeros(points, np.int32)
        self.done = np.zeros(points, bool)
        self._tangent: Array | None = None
        self._good: Array | None = None  # strains at which the model last converged
        self._residual = np.zeros_like(targets)
        self._step = np.zeros_like(targets)
        #: Where the last Newton step began, what was missing there, and how often it was halved.
        self._from, self._missing = np.zeros_like(targets), np.full(points, np.inf)
        self._cuts = np.zeros(points, int)

    def begin(self, last: tuple[Array, ...]) -> None:
        """Start where the tangent of the last increment says."""
        if not last:
            return
        strain, stress, tangent = last
        if self._control._has_tangent:
            self._tangent = tangent
        free = self._free
        change = self._strain - strain
        change[:, free] = 0.0
        missing = (
            self._targets - stress[:, free] - np.einsum("pij,pj->pi", tangent[:, free], change)
        )
        self._good = self._strain.copy()
        self._good[:, free] = strain[:, free]
        step = _solved(_square(tangent, free), missing)
        self._strain[:, free] = strain[:, free] + np.where(np.isfinite(step), step, 0.0)

    def evaluate(self) -> None:
        """Call the model; if it fails, go back half way to where it last converged."""
        asked = ~self.done  # the others are what they were, and are not counted again
        for _ in range(_HALVINGS):
            try:
                self._call()
                break
            except ConvergenceError as error:
                self._count(asked)
                asked = bad = ~np.asarray(error.converged_mask).reshape(-1)
                if self._good is None:
                    raise
                middle = (self._strain[bad] + self._good[bad]) / 2
                if np.array_equal(middle, self._strain[bad]):
                    raise
                self._strain[bad] = middle
                self._step[bad] /= 2
        else:
            self._call()
        self._count(asked)
        self._good = self._strain.copy()
        before, self._residual = self._residual, self._stress[:, self._free] - self._targets
        self._update(self._residual - before)
        assert self._tangent is not None
        scale = np.maximum(np.abs(self._stress).max(axis=1), np.abs(self._targets).max(axis=1))
        stiffness = np.abs(self._tangent).max(axis=(1, 2))
        scale = scale + _LEAST_STRAIN * np.where(np.isfinite(stiffness), stiffness, 0.0)
        tolerance = max(TOLERANCE, _UNITS * float(np.finfo(self._stress.dtype).eps))
        near = np.abs(self._residual) <= (tolerance * scale)[:, None]
        self.done = near.all(axis=1) & np.isfinite(scale)  # all is near, by an infinite stress

    def advance(self) -> None:
        """Take a Newton step at the points that are not done, or half of one that was too long."""
        assert self._tangent is not None
        missing, found = np.abs(self._residual).max(axis=1), self._strain[:, self._free]
        enough = (1.0 - _DECREASE * 0.5**self._cuts) * self._missing
        long = ~self.done & (missing > enough) & (self._cuts < _CUTS)
        self._cuts = np.where(long, self._cuts + 1, 0)
        self._missing = np.where(long, self._missing, missing)
        self._from = np.where(long[:, None], self._from, found)
        step = -_solved(_square(self._tangent, self._free), self._residual)
        step = np.where(long[:, None], (self._from - found) / 2, step)
        self._step = np.where(self.done[:, None], 0.0, step)
        self._strain[:, self._free] += self._step

    def state(self) -> tuple[Array, Array, Array]:
        assert self._tangent is not None
        return self._strain.copy(), self._stress.copy(), self._tangent

    def failed(self) -> ConvergenceError:
        call, control = self._call, self._control
        batch, worst = call.batch, int(np.abs(self._residual).max(axis=1).argmax())
        report = {name: np.array(value) for name, value in call.report.items()}
        report["suggested_cut"] = np.where(self.done, 1.0, 0.5).reshape(batch)
        report["status"] = np.where(self.done, 0, lib.NEML2_NOT_CONVERGED).reshape(batch)
        return ConvergenceError(
            f"{control.output.name} was not found as prescribed at {(~self.done).sum()} of "
            f"{self.done.size} points: it lacks {np.abs(self._residual[worst]).max():.3g} after "
            f"{_ITERATIONS} iterations over {control.input.name}",
            report=report,
            converged_mask=self.done.reshape(batch),
            outputs={name: np.array(value) for name, value in call.outputs.items()},
        )

    def _count(self, asked: Array) -> None:
        counted = np.asarray(self._call.report["iterations"]).reshape(-1)
        self.iterations += np.where(asked, counted, 0)

    def _update(self, change: Array) -> None:
        """The tangent: as compiled, else by differences first and Broyden's update then."""
        control, size = self._control, self._strain.shape[1]
        if control._has_tangent:
            blocks = self._call.derivatives[control.output.name][control.input.name]
            tangent = np.asarray(blocks).reshape(-1, size, size)
            tangent = np.broadcast_to(tangent, (len(self._strain), size, size)).copy()
            if self._tangent is not None:  # a power law has none where it begins to flow
                known = np.isfinite(tangent).all(axis=(1, 2), keepdims=True)
                tangent = np.where(known, tangent, self._tangent)
            self._tangent = tangent
        elif self._tangent is None:
            self._tangent = self._differences()
        else:
            square = np.einsum("pi,pi->p", self._step, self._step)
            moved = square > 0
            free = _square(self._tangent, self._free)
            error = change - np.einsum("pij,pj->pi", free, self._step)
            update = np.einsum("pi,pj->pij", error[moved], self._step[moved])
            rows = np.ix_(moved, self._free, self._free)
            self._tangent[rows] += update / square[moved, None, None]

    def _differences(self) -> Array:
        """Forward differences in all components; the stress is then as before."""
        strain, stress = self._strain.copy(), self._stress.copy()
        size = strain.shape[1]
        tangent = np.empty((len(strain), size, size))
        for k in range(size):
            self._strain[:, k] += _DIFFERENCE
            self._call()
            self._count(~self.done)
            tangent[:, :, k] = (self._stress - stress) / (self._strain[:, k] - strain[:, k])[
                :, None
            ]
            self._strain[...] = strain
        self._call()
        return tangent


def _square(tangent: Array, free: Array) -> Array:
    return tangent[:, free[:, None], free]


def _solved(matrices: Array, right: Array) -> Array:
    """x of A x = b for each point; NaN if A is singular or not finite."""
    solution = np.full_like(right, np.nan)
    good = np.isfinite(matrices).all(axis=(1, 2)) & np.isfinite(right).all(axis=1)
    try:
        solution[good] = np.linalg.solve(matrices[good], right[good][..., None])[..., 0]
    except np.linalg.LinAlgError:
        for point in np.flatnonzero(good):
            try:
                solution[point] = np.linalg.solve(matrices[point], right[point])
            except np.linalg.LinAlgError:
                continue
    return solution


def with_named(name: str, parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Components by name, where {"uniaxial": stress} means xx, and the others vanish."""
    if UNIAXIAL not in parts:
        return parts
    if len(parts) > 1:
        raise _refuse(
            name,
            f"has {UNIAXIAL!r}, which prescribes all components, and others beside it; expected "
            "that alone, or components by name",
        )
    return {_ALONG: parts[UNIAXIAL], **dict.fromkeys(NAMED[UNIAXIAL], 0.0)}


def conjugates(model: Model, key: str) -> tuple[Variable, Variable]:
    """The output of "stress" or "stress:strain", and the input whose components are found for it.

    That is the one of the output's type which is no history, unless it is named.
    """
    name, _, given = str(key).partition(":")
    if name not in model.outputs.index_of:
        raise unknown_name("controlled output", name, model.outputs.names)
    output = model.outputs[model.outputs.index_of[name]]
    histories = {history.input for history in model.histories}
    free = [v for v in model.inputs if v.name not in histories]
    if given and given not in {v.name for v in free}:
        raise unknown_name("input of a control", given, [v.name for v in free])
    alike = [
        v
        for v in free
        if (v.type, v.point_shape) == (output.type, output.point_shape) and given in ("", v.name)
    ]
    if not all(component.name for component in components(output)):
        raise _refuse(
            name,
            f"is a {output.type}; a control finds components of a tensor or vector: prescribe "
            "the input, or solve for it outside",
        )
    if len(alike) != 1:
        raise _refuse(
            name,
            f"is a {output.type} {output.point_shape}, and the inputs of that type are "
            f"{', '.join(v.name for v in alike) or 'none'}; expected one, or its name as "
            f"'{name}:strain'",
        )
    return output, alike[0]


def _vanishing(model: Model, strain: Variable) -> set[str]:
    """The components of the stress that vanish by the model's hypothesis."""
    transverse = f"{strain.name}_transverse"
    if transverse not in model.outputs.index_of:
        return set()
    return {component.name for component in components(model.outputs[transverse])}


def _refuse(name: str, why: str) -> FatalError:
    return Label("control", name).refuse(why, lib.NEML2_ERROR_ARGUMENT)
