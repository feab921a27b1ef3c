"""Drive a model through time."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.errors import unknown_name
from neml2_capi._ffi.kinds import Kinds
from neml2_capi._ffi.labels import Label
from neml2_capi.driver.arguments import (
    check_fraction,
    check_is_model,
    check_switch,
    check_text,
    names_of,
    wrong,
)
from neml2_capi.driver.blocks import Blocks
from neml2_capi.driver.checkpoint import Checkpoint
from neml2_capi.driver.control import Control
from neml2_capi.driver.forces import Force, Table, clock, force, requires_gradient
from neml2_capi.driver.given import Given, common_batch, initial_values, parameter_values
from neml2_capi.driver.gradients import Gradients
from neml2_capi.driver.history import History
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
    control: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    record: Iterable[str] | None = None,
    derivatives: Mapping[str, Any] | Sequence[str] | bool | None = None,
    report: bool = False,
    least_step: float = 2.0**-10,
    progress: bool | None = None,
    time: str = "t",
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_steps: int = 100,
) -> Results:
    """Drive a model through time, and record what it gives at each of the times.

        times = np.linspace(0, 10, 101)
        results = neml2_capi.drive(model, times, {"strain": strain})
        results["stress"]  # (101, *B, 6)

    The driver carries the history: `x~1` and `x~2` are the values of `x` one and two steps ago.
    Before the first time everything is constant, unless `initial` has an `x~1`. An input with the
    name of an output is the first guess of its solve: the last value of the output, unless it is
    prescribed. The first row of the results has the initial values of all variables with history,
    and of all that `initial` has. Other outputs and derivatives are evaluated at the first time
    with a step of zero, or of 1e-9 of the first step if a law divides by it. A control does not
    hold there: components that it finds are zero, or what the first row of an array in `forces`
    has.

    Components of an output can be prescribed instead of components of an input. They are found by
    Newton's method, with the compiled derivative if there is one, for each point:

        neml2_capi.drive(model, times, {"strain": {"xx": strain}}, control={"stress": "uniaxial"})

    If points do not converge, the increment of all points is cut as the report suggests; after
    two that succeed it is doubled again, up to a whole step. The next step begins with the fraction
    that was reached. A step that is not cut gives what model.forward() gives, bit for bit.

    Parameters
    ----------
    model
        The model, whose options hold. Units are its artifact's.
    times : array (n,) or (n, *B)
        Increasing times, for all points or for each; the first is the time of the initial state.
    forces : mapping of str to array or function
        Every input that is not history, but the time. An array has a value for each time, (n, *B,
        *point shape), linear in between, or a constant, (1, *B, *point shape) or (*point shape). A
        function takes a time, a float or (*B,) of `times`, and returns (*B, *point shape). A
        mapping has such a number for each component by name, {"xx": 1e-3, "xy": ...} for the
        tensor's own, not times sqrt(2); those that are not named are zero. The batches B broadcast.
        A history `x~1` of an `x` that the model does not have is zero, if it is left out.
    initial : mapping of str to array, optional
        Outputs at the first time, (*B, *point shape), and histories `x~1` before it. An output that
        becomes history is zero, and is recorded so, if none is given. A value without sub-batch
        sites, or with axes of size 1 in their place, holds at all of them.
    control : mapping, optional
        One output, "stress", and components of it by name, with numbers over time as in `forces`;
        or a name in their place: "uniaxial" (all but xx vanish), "biaxial" (all but xx and yy),
        "plane stress" (zz, yz and xz). {"uniaxial": stress} prescribes xx, too. The same components
        of the input of the output's type, "strain", are found, to 1e-9 of the greatest stress of a
        point (1e-5 in float32); "stress:strain" names it if there are several. A component of
        which neither the stress nor the strain is said has no strain, and a UserWarning says so. A
        model under a hypothesis (`Model(..., hypothesis="uniaxial")`) finds its strains far faster.
    parameters : mapping of str to array, optional
        Values, (*B, *base_shape), that replace stored ones in this run.
    record
        The names of the outputs and forces that are recorded; by default all but constant forces.
    derivatives : list of str, mapping or bool, optional
        A list has the names of what the whole history may be derived by, with
        `results.derivative()` and `results.gradient()`: parameters, "initial:x", and what is
        prescribed as arrays, "strain", or by component, "strain.xx" and "stress.xx". The artifact
        must have the derivatives of all outputs with history. A mapping asks for derivatives of
        single steps as in Model.bind(), recorded as `stress:strain`: if a step was cut they belong
        to its last increment; see `substeps` of Results.
    report
        Whether `report.iterations`, summed over all tries of a step, and `report.status` and
        `report.residual_norm` of its last increment are recorded.
    least_step
        The least increment, as a fraction of its step, above 0 and at most 1; 1 never cuts.
    progress
        Whether a bar is shown on stderr; by default if that is a terminal and tqdm is installed.
    time
        The input that `times` are, if the model has one of this name.
    checkpoint
        A file that holds the state and all records, renewed after `checkpoint_steps` steps and at
        the end. If it is there, the run continues from it, with the bits of one that was not
        stopped; times, forces, initial values, parameters, record and derivatives must be the same
        until the step that was reached. Arrays over time may go on.
    checkpoint_steps
        After how many steps it is renewed.

    Returns
    -------
    Results
        Arrays by name, with time as their first axis. They are of the kind of those that are given,
        as in Model. Tensors of torch of which one requires a gradient give outputs through which
        gradients run, backward through all increments: derivatives=[...] is then left out.

    Raises
    ------
    FatalError
        A name, shape or element type is wrong, or a number is not finite. Nothing was evaluated,
        unless a function of time returned it later. Or a checkpoint is damaged, of another
        artifact, of other times, parameters or records.
    StepError
        Points of a step did not converge with its least increment, or components were not found
        there. It holds the results before.
    """
    check_is_model(model)
    differentiated = requires_gradient(forces, initial, parameters, control, times)
    if checkpoint is not None and (differentiated or isinstance(derivatives, list | tuple)):
        raise wrong("checkpoint", "keeps no history for derivatives of whole runs; leave it out")
    if differentiated:
        # Imports the functions of torch only if torch is used.
        torch = importlib.import_module("neml2_capi.torch._history")
        result: Results = torch.drive(
            partial(
                drive,
                model,
                record=record,
                report=report,
                least_step=least_step,
                progress=progress,
                time=time,
            ),
            time,
            times,
            forces,
            initial,
            control=control,
            parameters=parameters,
            derivatives=derivatives,
        )
        return result
    check_fraction("least_step", least_step)
    check_switch("report", report)
    check_switch("progress", progress, also_none=True)
    check_text("time", time)
    check_mapping("forces", forces)
    asked = None
    if isinstance(derivatives, list | tuple):
        names_of("derivatives", derivatives)
        asked, derivatives = derivatives, None
    elif not isinstance(derivatives, bool | None):
        check_mapping("derivatives", derivatives)
        for output, blocks in derivatives.items():  # type: ignore[union-attr]
            check_mapping(f"derivatives of {output!r}", blocks)
    clocked = clock(times)
    controlled = _control(model, control, clocked)
    if controlled:
        forces = {controlled.input.name: {}, **forces}
        controlled.check_others(forces[controlled.input.name])
    roles = Roles(model, forces, time)
    absent = {name: np.zeros(model.inputs[name].point_shape) for name in roles.absent}
    forces = {**forces, **absent}
    prescribed = _forces(model, [n for n in roles.forces if n != time], forces, clocked)
    timed = {time: clocked, **prescribed} if time in roles.forces else prescribed
    starts = initial_values(model, roles, {} if initial is None else initial, clocked)
    replaced = parameter_values(model.parameters, {} if parameters is None else parameters)
    replaced = {name: value.finite() for name, value in replaced.items()}
    given: list[Force | Given] = [clocked, *prescribed.values(), *starts.values()]
    given += controlled.forces if controlled else []
    kinds = Kinds()
    for value in (*given, *replaced.values()):
        kinds.add_kind(value.kind, value.label)
    found = controlled.input.name if controlled else ""
    names = _recorded(model, prescribed, record, found)
    batch, kept = common_batch(model, given, replaced), names
    history = gradients = None
    if asked is not None:
        history = History(model, roles, timed, starts, replaced, batch, controlled, clocked)
        gradients = Gradients(history, asked)
        kept = list(dict.fromkeys([*names, *history.recorded]))
    increment = Increment(
        model,
        roles,
        timed,
        starts,
        replaced,
        batch,
        wanted={name for name in kept if name in model.outputs.index_of},
        derivatives=derivatives,
        control=controlled,
        spreads=bool(clocked.batch) and time not in roles.forces,
    )
    as_given = {name: force for name, force in prescribed.items() if name != found}
    rows = Record(increment.call, kept, increment.recorded, clocked.steps, report, as_given)
    # Control finds strains step by step, and a capsule is of the points of one step.
    by_step = controlled or model.options["capsule"]
    pace = Pace(least_step)
    with increment.call:
        saved = None
        if checkpoint is not None:
            about = (model, increment, rows, clocked, pace, given[1:])
            saved = Checkpoint(checkpoint, checkpoint_steps, *about)
        stepping = Stepping(
            increment,
            rows,
            clocked,
            pace,
            None if by_step else Blocks(model, roles, timed, increment, rows),
            giver(model, kinds.kind),
            (*model.inputs, *model.outputs),
            keeps=asked is not None,
        )
        step = saved.restore() if saved else 0
        if not step:
            stepping.begin(is_solved=not roles.series)
            step = 1
        with bar(clocked.steps - 1, step - 1, "step", progress) as shown:
            while step < clocked.steps:
                until = saved.until(step) if saved else clocked.steps
                made = stepping.make(step, until)
                step += made
                shown.update(made)
                if saved and step == until:
                    saved.keep(step - 1)
        results = stepping.results(clocked.steps)
    results._parameters = model.parameters
    if history is None:
        return results
    history.keep({name: rows.rows[name] for name in history.recorded}, rows.between)
    results = results.without([name for name in kept if name not in names])
    results._gradients = gradients
    return results


#: What drives the model that is its first argument, each value of `parameters` a point of its own.
DRIVERS: set[Callable[..., Results]] = {drive}


def _forces(
    model: Model, names: Iterable[str], values: Mapping[str, Any], clocked: Table
) -> dict[str, Force]:
    """Read what is prescribed over time, by name."""
    forces = {}
    for name in names:
        variable = model.inputs[model.inputs.index_of[name]]
        forces[name] = force(Label("force", name), values[name], variable, clocked)
    return forces


def _control(model: Model, control: Mapping[str, Any] | None, clocked: Table) -> Control | None:
    if control is None:
        return None
    check_mapping("control", control)
    found = Control(model, control, clocked)
    return found if found.components else None


def _recorded(
    model: Model, forces: Mapping[str, Force], record: Iterable[str] | None, found: str
) -> list[str]:
    """The names of what is recorded, forces first; `found` is one that a control finds."""
    outputs = model.outputs.names
    known = [*(name for name in forces if name not in outputs), *outputs]
    if record is None:
        return [n for n in known if n in outputs or n == found or not forces[n].constant]
    wanted = names_of("record", record)
    for name in wanted:
        if name not in known:
            raise unknown_name("recorded variable", name, known)
    return [name for name in known if name in wanted]
