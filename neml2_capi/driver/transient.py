"""Drive a model through time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.kinds import Kinds
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Label
from neml2_capi.driver.forces import Force, Table, clock, force
from neml2_capi.driver.given import Given, common_batch, initial_values, parameter_values, point
from neml2_capi.driver.increment import Increment
from neml2_capi.driver.pace import Pace
from neml2_capi.driver.progress import bar
from neml2_capi.driver.record import Record
from neml2_capi.driver.results import Results, giver
from neml2_capi.driver.series import Roles
from neml2_capi.driver.stepping import Stepping
from neml2_capi.model.evaluation import check_mapping

if TYPE_CHECKING:
    from neml2_capi.model import Model


def drive(
    model: Model,
    times: Any,
    forces: Mapping[str, Any],
    initial: Mapping[str, Any] | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    record: Iterable[str] | None = None,
    derivatives: Mapping[str, Any] | bool | None = None,
    report: bool = False,
    least_step: float = 2.0**-10,
    progress: bool | None = None,
    time: str = "t",
) -> Results:
    """Drive `model` through `times`, and return what it gives at each of them.

        times = np.linspace(0, 10, 101)
        results = neml2_capi.drive(model, times, {"strain": strain})
        results["stress"]  # (101, *B, 6)

    `times` (n,), or (n, *B) where each point has its own, increase; the first is that of the
    initial state. They are the input `time` of the model, where it has one.

    `forces` are all other inputs that are not history, whatever the model is controlled by. Each is
    an array with a value for each time, (n, *B, *point shape), linear in between; a constant,
    (1, *B, *point shape) or (*point shape); or a function that takes a time (float, or (*B,) of
    `times`) and returns (*B, *point shape). The batches B broadcast. Units are the model's.

    The driver carries the history: `x~1`, `x~2` are what `x` was one and two increments before. An
    output x that becomes history is zero at the first time, and is recorded so, unless `initial`
    says otherwise, (*B, *point shape). A force is what it is at the first time. Before the first
    time both were constant, unless `initial` has an `x~1` for one step before it. An input of an
    output's name, from where the solve of it begins, is the last value unless it is prescribed.
    At the first time the model is not evaluated, unless it has no history at all; outputs of which
    no initial value is known are NaN.

    Where points do not converge, the increment of all points is cut as the report suggests; after
    two that succeed it is doubled again, up to a whole step. The next step begins with the fraction
    that was reached. A step that needs less than the fraction `least_step` of itself is a
    StepError, a ConvergenceError that holds the results before it; 1 never cuts. A step that is not
    cut gives what model.forward() gives, bit for bit.

    `record` names the outputs and forces that are recorded, all by default. With `report`,
    `report.iterations` counts those of all tries of a step, and `report.status` and
    `report.residual_norm` are of its last increment. `derivatives` are asked for as in
    Model.bind(), and recorded as `stress:strain`; where a step was cut they are those of its last
    increment (see `substeps`). `parameters` replace stored values, (*B, *base shape).

    `progress` shows a bar on stderr: True always, False never; by default where that is a terminal
    and tqdm is installed. Results are arrays of the kind of those that are given, as in Model, and
    carry no gradients.

    FatalError for a wrong name, shape or element type, before anything is evaluated but where a
    function of time returns it later.
    """
    if not 0.0 < least_step <= 1.0:
        raise FatalError(
            f"least_step, a fraction of a step, must be above 0 and at most 1; got {least_step}",
            lib.NEML2_ERROR_ARGUMENT,
            "least_step",
        )
    check_mapping("forces", forces)
    roles = Roles(model, forces, time)
    clocked = clock(times)
    prescribed = _forces(model, [n for n in roles.forces if n != time], forces, clocked)
    timed = {time: clocked, **prescribed} if time in roles.forces else prescribed
    starts = initial_values(model, roles, initial or {})
    replaced = parameter_values(model, parameters or {})
    given: list[Force | Given] = [clocked, *prescribed.values(), *starts.values()]
    kinds = Kinds()
    for value in (*given, *replaced.values()):
        kinds.add_kind(value.kind, value.label)
    names = _recorded(model, prescribed, record)
    increment = Increment(
        model,
        roles,
        timed,
        starts,
        replaced,
        common_batch(model, given, replaced),
        wanted={name for name in names if name in model.outputs.index_of},
        derivatives=derivatives,
    )
    with increment.call:
        stepping = Stepping(
            increment,
            Record(increment.call, names, clocked.steps, report),
            clocked,
            Pace(least_step),
            giver(model, kinds.kind),
        )
        stepping.begin(evaluate=not roles.series)
        with bar(clocked.steps - 1, 0, "step", progress) as shown:
            for step in range(1, clocked.steps):
                stepping.make(step)
                shown.update(1)
        return stepping.results(clocked.steps)


def _forces(
    model: Model, names: Iterable[str], values: Mapping[str, Any], clocked: Table
) -> dict[str, Force]:
    """What is prescribed over time, by name."""
    forces = {}
    for name in names:
        variable = model.inputs[model.inputs.index_of[name]]
        label, value = Label("force", name), values[name]
        forces[name] = force(label, value, point(variable), variable.dtype, clocked)
    return forces


def _recorded(model: Model, forces: Mapping[str, Force], record: Iterable[str] | None) -> list[str]:
    """The names of what is recorded, forces first."""
    outputs = model.outputs.names
    known = [*(name for name in forces if name not in outputs), *outputs]
    if record is None:
        return [name for name in known if name in outputs or not forces[name].constant]
    wanted = {record} if isinstance(record, str) else set(record)
    for name in wanted:
        if name not in known:
            raise unknown_name("recorded variable", name, known)
    return [name for name in known if name in wanted]
