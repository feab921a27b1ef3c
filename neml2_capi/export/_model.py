"""A law or a residual, written in torch, as a whole artifact."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._rest import slopes_at_rest
from neml2_capi.artifact.bounds import from_mappings, require_fit
from neml2_capi.export._artifact import Artifact, envelope
from neml2_capi.export._forward import forward_segment
from neml2_capi.export._implicit import ImplicitSegment
from neml2_capi.export._law import Law
from neml2_capi.export._settings import place_of, require_choices, solver_config
from neml2_capi.export._variables import (
    Declarations,
    Parameter,
    Variable,
    declared,
    promoted,
    requested,
    require_different_names,
)
from neml2_capi.export.targets import require_target
from neml2_capi.model import Model


def model(
    law: Callable[..., Any],
    path: str | os.PathLike[str],
    *,
    inputs: Declarations | None = None,
    outputs: Declarations | None = None,
    unknowns: Declarations | None = None,
    givens: Declarations | None = None,
    parameters: Mapping[str, Any] | None = None,
    derivatives: bool | Iterable[str] = True,
    bounds: Mapping[str, Any] | None = None,
    physical_bounds: Mapping[str, Any] | None = None,
    predictor: str | None = "history",
    atol: float = 1e-10,
    rtol: float = 1e-8,
    miters: int = 25,
    dtype: str = "float64",
    target: str = "x86-64-v3",
    kernels: str = "auto",
    progress: bool | None = None,
) -> Path:
    """Compile a material law to an artifact.

    The law is a function of torch tensors, or a torch.nn.Module, for ONE material point: a SR2 has
    the shape (6,), a Scalar (). It chooses by torch.where(), not by `if`. It is either a law

        def elasticity(strain, E):
            return E * strain

        export.model(elasticity, "aoti/elasticity", inputs={"strain": "SR2"},
                     outputs={"stress": "SR2"}, parameters={"E": 200e3})

    from `inputs` to `outputs`, or a residual of `unknowns` and `givens`, to be solved by Newton's
    method, with one equation for each unknown, of its shape:

        def relaxation(unknowns, givens, parameters):
            x, old = unknowns["x"], givens["x~1"]
            return {"x": x - old + parameters["rate"] * givens["dt"] * x**3}

        export.model(relaxation, "aoti/relaxation", unknowns={"x": "Scalar"},
                     givens={"x~1": "Scalar", "dt": "Scalar"}, parameters={"rate": 0.1})

    The outputs are then the unknowns and the inputs the givens. `x~1` is the history of `x`, which
    the drivers carry from step to step.

    Variables are declared by their types in NEML2, "SR2" (Mandel notation), "Scalar" and others, or
    by a shape, such as (4,). Units are yours. A warning names what the built-in provider lacks.

    Parameters
    ----------
    law
        What is called with a dictionary of tensors for each of inputs (or unknowns and givens) and
        parameters; one whose arguments all have names of variables and parameters is called by
        these, and one of a single tensor, such as torch.nn.Sequential, with this tensor. It returns
        a dictionary, or tensors in the order of the declaration. It may write into tensors that it
        has made, not into its arguments.
    path
        The folder of the artifact.
    inputs : mapping of str to type or shape, optional
        What a law takes.
    outputs : mapping of str to type or shape, optional
        What a law returns.
    unknowns : mapping of str to type or shape, optional
        What a residual is solved for.
    givens : mapping of str to type or shape, optional
        What a residual takes beside them.
    parameters : mapping of str to array, optional
        Values from which on they can be set at run time, one for all points or one for each; all
        other numbers, and what modules hold, become constants of the code.
    derivatives
        Whether derivatives of all pairs are compiled; or those, such as ["stress:strain", ":E"]. A
        nonlinear solve needs none.
    bounds : mapping of str to pair, optional
        Where the law is valid: (lower, upper) of an input or a parameter, {"temperature": (20,
        600)}; None for an open side, or a sequence with one for each component. What becomes of
        points beyond is the option `bounds` of the model.
    physical_bounds : mapping of str to pair, optional
        Bounds beyond which a value has no meaning: such points fail.
    predictor
        Where the solve begins: "history" at `x~1` if it is given, and at zero otherwise; None at
        zero.
    atol
        The norm of its residual below which a point has converged; this, `rtol` and `miters` can be
        changed at run time.
    rtol
        The same, as a fraction of the first norm.
    miters
        The bound of iterations: at most `miters` - 1 steps are made.
    dtype
        "float64" or "float32".
    target
        As in export.package(). Kernels are built for all of them, or for "native" alone.
    kernels
        Point kernels in C beside the packages: "auto" writes them, and builds them if there is a
        C compiler, and warns of what has none, by the line of the law; "only" leaves the packages
        out (some seconds instead of one to three minutes of processor time), and refuses what has
        none; "no" writes none.
    progress
        Whether the standard error shows each package before it is compiled; None if this is a
        terminal.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    FatalError
        `path` is inside the installed package or cannot be written, a declaration or a setting is
        not understood, a parameter is no finite number, the law returns something else than
        declared, changes its arguments, torch cannot trace it, or with kernels="only" it has no
        kernel; the line of the law is named. Nothing is written then.
    """
    folder = place_of(path)
    require_choices(predictor, dtype, kernels)
    require_target(target)
    solver = solver_config(atol, rtol, miters)
    promoted_parameters = promoted(parameters, dtype)
    implicit = unknowns is not None or givens is not None
    if implicit == (inputs is not None or outputs is not None):
        raise FatalError(
            "declare inputs and outputs for a law, or unknowns and givens for a residual",
            lib.NEML2_ERROR_ARGUMENT,
        )
    taken = declared("givens" if implicit else "inputs", givens if implicit else inputs)
    made = declared("unknowns" if implicit else "outputs", unknowns if implicit else outputs)
    require_different_names(taken, made, promoted_parameters)
    by_input, by_parameter = requested(derivatives, made, taken, promoted_parameters)
    limits = from_mappings(bounds, physical_bounds)
    require_fit(limits, _sizes(taken) | _sizes(promoted_parameters))
    with Artifact(folder, dtype, target, kernels, progress) as artifact:
        if implicit:
            residual = Law(law, (made, taken, promoted_parameters), made)
            residual.try_once(artifact.dtype)
            solved = ImplicitSegment(artifact, residual, made, taken, promoted_parameters)
            segment = solved.compile(by_input, by_parameter, predictor)
        else:
            direct = Law(law, (taken, promoted_parameters), made)
            direct.try_once(artifact.dtype)
            segment = forward_segment(
                artifact, direct, taken, promoted_parameters, made, by_input, by_parameter
            )
        metadata = envelope(taken, made, segment, promoted_parameters, (by_input, by_parameter))
        if implicit:
            metadata["solver_config"] = solver
        artifact.write(metadata, limits)
    _try_at_rest(folder, dtype)
    return folder


def _sizes(variables: Sequence[Variable] | Sequence[Parameter]) -> dict[str, int]:
    """The numbers of components, by name."""
    return {each.name: each.size for each in variables}


def _try_at_rest(folder: Path, dtype: str) -> None:
    """Warn of derivatives that are not finite where jobs begin."""
    with suppress(FatalError), Model(folder, dtype=dtype) as made:
        for warning in slopes_at_rest(made):
            warnings.warn(warning, RuntimeWarning, stacklevel=3)
