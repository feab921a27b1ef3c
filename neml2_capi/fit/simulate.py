"""A model in the tests that were made: all experiments of one kind are points of one drive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.components import components
from neml2_capi._ffi.errors import ConvergenceError, FatalError, unknown_name
from neml2_capi.driver import Results, drive
from neml2_capi.driver.arguments import wrong
from neml2_capi.model.source import View

if TYPE_CHECKING:
    from neml2_capi.fit.experiment import Experiment
    from neml2_capi.model import Model

Array = NDArray[np.float64]
#: How long a row is that only fills a batch, of the last step of its experiment.
_FILLER = 1e-3


@dataclass
class Group:
    """Experiments that are driven together, and where their points are."""

    members: list[int]
    times: Array
    forces: dict[str, Any]
    #: Stresses, for which the other strains are found; None if the model finds these itself.
    control: dict[str, dict[str, Any]] | None


@dataclass
class Simulated:
    """Curves of a model in one experiment; if it failed, the reason."""

    #: By component, "stress.xx": (n,).
    curves: dict[str, Array]
    failure: str = ""
    #: What derivatives are taken of, and which point it is.
    results: Results | None = None
    point: int = 0
    #: If strains were found by a control; else they are prescribed, and no parameter moves them.
    strain_is_found: bool = True


class Simulator:
    """A model and experiments, as arguments of drive()."""

    def __init__(
        self, model: Model, experiments: Sequence[Experiment], names: tuple[str, str]
    ) -> None:
        self.model, self.experiments = model, list(experiments)
        self.strain, self.stress = names
        if self.strain not in model.inputs.index_of:
            raise unknown_name("input", self.strain, model.inputs.names)
        if self.stress not in model.outputs.index_of:
            raise unknown_name("output", self.stress, model.outputs.names)
        variable = model.inputs[model.inputs.index_of[self.strain]]
        #: By component: its number, and by what it is stored times.
        self.places = {c.name: (n, c.factor) for n, c in enumerate(components(variable))}
        for experiment in experiments:
            for part in (*experiment.strain, *experiment.stress):
                if part not in self.places:
                    raise unknown_name(f"component of {experiment.name!r}", part, self.places)
        kinds: dict[Any, list[int]] = {}
        for place, experiment in enumerate(self.experiments):
            key = (
                experiment.control,
                tuple(sorted(experiment.prescribed)),
                tuple(sorted(experiment.forces)),
            )
            kinds.setdefault(key, []).append(place)
        uniaxial = any(_is_uniaxial(experiment) for experiment in self.experiments)
        self._uniaxial = under_uniaxial_stress(model, *names) if uniaxial else None
        self._groups = [self._group(members) for members in kinds.values()]

    def run(
        self, values: Sequence[Mapping[str, float]], asked: Sequence[str] | None
    ) -> list[Simulated]:
        """Drive all experiments with parameters, a mapping for each experiment."""
        found: list[Simulated] = [Simulated({}) for _ in self.experiments]
        for group in self._groups:
            self._run(group, values, asked, found)
        return found

    def _run(
        self,
        group: Group,
        values: Sequence[Mapping[str, float]],
        asked: Sequence[str] | None,
        found: list[Simulated],
    ) -> None:
        parameters = {
            name: np.array([values[place][name] for place in group.members])
            for name in values[group.members[0]]
        }
        model, reduced = self.model, None
        if group.control is None and self._uniaxial:
            model = reduced = as_set(self._uniaxial, self.model)
        try:
            results = drive(
                model,
                group.times,
                group.forces,
                control=group.control,
                parameters=parameters,
                record=[self.strain, self.stress],
                derivatives=None if asked is None else list(asked),
                progress=False,
            )
        except ConvergenceError as error:
            if reduced:
                self._run(self._group(group.members, controlled=True), values, asked, found)
                return
            if len(group.members) > 1:  # which of them fails?
                for place in group.members:
                    self._run(self._group([place], controlled=True), values, asked, found)
                return
            found[group.members[0]] = Simulated({}, str(error))
            return
        for point, place in enumerate(group.members):
            experiment = self.experiments[place]
            rows, curves = len(experiment.t), {}
            for kind, name, parts in (
                ("strain", self.strain, experiment.strain),
                ("stress", self.stress, experiment.stress),
            ):
                for part in parts:
                    number, factor = self.places[part]
                    curves[f"{kind}.{part}"] = results[name][:rows, point, number] / factor
            broken = [key for key, value in curves.items() if not np.isfinite(value[1:]).all()]
            why = f"{', '.join(broken)} is not finite" if broken else ""
            curves = {key: np.nan_to_num(value) for key, value in curves.items()}
            found[place] = Simulated(curves, why, results, point, group.control is not None)

    def slopes(self, simulated: Simulated, place: int, asked: Sequence[str]) -> dict[str, Array]:
        """Derivatives of the curves of an experiment, (n, asked) by component."""
        assert simulated.results is not None
        rows, slopes = len(self.experiments[place].t), {}
        for key in simulated.curves:
            kind, _, part = key.partition(".")
            number, factor = self.places[part]
            output = self.strain if kind == "strain" else self.stress
            if kind == "strain" and not simulated.strain_is_found:
                slopes[key] = np.zeros((rows, len(asked)))
                continue
            slopes[key] = np.stack(
                [
                    simulated.results.derivative(output, name)[:rows, simulated.point, number]
                    for name in asked
                ],
                axis=1,
            )
            slopes[key] = np.nan_to_num(slopes[key] / factor)
        return slopes

    def _group(self, members: list[int], *, controlled: bool = False) -> Group:
        """`controlled`: find the strains by a control, even if a hypothesis could."""
        tests = [self.experiments[place] for place in members]
        longest = max(len(test.t) for test in tests)

        def filled(rows: Any) -> Array:
            """(longest, members): the last value holds on."""
            return np.stack(
                [np.concatenate([r, np.repeat(r[-1:], longest - len(r))]) for r in rows], axis=1
            )

        times = filled([test.t for test in tests])
        for column, test in enumerate(tests):
            more = longest - len(test.t)
            step = _FILLER * (test.t[-1] - test.t[-2])
            times[len(test.t) :, column] += step * np.arange(1, more + 1)
        first = tests[0]
        prescribed = {
            part: filled([t.prescribed[part] for t in tests]) for part in first.prescribed
        }
        others: dict[str, Any] = {}
        for name in first.forces:
            if name in (self.strain, "t") or name not in self.model.inputs.index_of:
                inputs = self.model.inputs.names
                known = [n for n in inputs if n not in (self.strain, "t") and "~" not in n]
                raise wrong(
                    "forces",
                    f"of {first.name!r} have {name!r}; expected inputs of the model besides its "
                    f"strain and the time: {', '.join(known) or 'it has no others'}",
                )
            if self.model.inputs[self.model.inputs.index_of[name]].point_shape:
                raise wrong("forces", f"of {first.name!r} have {name!r}, which is no scalar")
            rows = [np.broadcast_to(np.asarray(t.forces[name], float), t.t.shape) for t in tests]
            others[name] = filled(rows)
        if first.control == "strain":
            vanishing = [part for part in self.places if part not in prescribed]
            control: dict[str, Any] = dict.fromkeys(vanishing, 0.0)
            strain: dict[str, Any] = prescribed
            if self._uniaxial and not controlled and all(map(_is_uniaxial, tests)):
                control = {}
        else:
            control = {**dict.fromkeys(self.places, 0.0), **prescribed}
            strain = {}
        return Group(
            members,
            times,
            {self.strain: strain, **others},
            {f"{self.stress}:{self.strain}": control} if control else None,
        )


def _is_uniaxial(experiment: Experiment) -> bool:
    parts = {*experiment.strain, *experiment.stress}
    return experiment.control == "strain" and parts == {"xx"}


def under_uniaxial_stress(model: Model, strain: str, stress: str) -> Model | None:
    """The model under uniaxial stress, which finds lateral strains with its own unknowns.

    None if it cannot be: it is on a scheduler, a view already, or lacks a derivative.
    """
    source = model._source
    if source.view != View() or source.devices is not None or model._engine.name != "native":
        return None
    make, (kind, engine, _, *state) = model.__reduce_ex__(4)
    view = View(hypothesis="uniaxial", strain=strain, stress=stress)
    try:
        reduced: Model = make(kind, engine, source._replace(view=view), *state)
    except FatalError:
        return None
    return reduced


def as_set(model: Model, other: Model) -> Model:
    """Return a model with the options and parameters of another one."""
    model.options.update(dict(other.options))
    for name, value in other.named_parameters().items():
        model.set_parameter(name, value)
    return model
