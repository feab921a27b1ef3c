"""The functions of a law at one point, in words that C++ and OpenCL C share."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neml2_capi._ffi.bounds import Bound
from neml2_capi.engine.description import attributes, point_shape
from neml2_capi.header.bounds import SETTING, check_of, fails_by_setting
from neml2_capi.header.chains import Block, Chains
from neml2_capi.header.definitions import Definition, chosen, definitions, needed
from neml2_capi.header.kernels import Kernel, calls
from neml2_capi.header.newton import System
from neml2_capi.header.one_number import of_one
from neml2_capi.header.statements import Place, Statements
from neml2_capi.header.walk import Walk
from neml2_capi.kernels.folder import C, KernelError
from neml2_capi.model.model import Model

TEXT = Path(__file__).parent / "text"
#: What text/ has instead of the headers of kernels.
_OWN = re.findall(
    r"\w+",
    "INLINE FUNCTION real lanes mask wide wide_mask wide_bits fill where absolute square_root "
    "round_down wide_fill wide_where wide_absolute wide_square_root is_odd sign_where upper_half",
)
#: The words of text/rules.inc for one point.
_RULES = {
    r"const (\w+)& ": r"const \1 ",
    r"Numbers::number\(": "wide_fill(",
    r"Numbers::status\(": "(",
    r"Numbers::": "",
    r"\bMask\b": "mask",
    r"\bNorm\b": "wide",
    r"\bStatus\b": "int",
    r"\bSettings\b": "settings",
    r"\bNEML2_NOT_CONVERGED\b": "not_converged",
    r"\bNEML2_SINGULAR\b": "singular_system",
}
#: What the walk declares, if it has the word.
_VARIABLES = {
    "report": ("of_system",),
    "int": ("status", "level", "spent"),
    "int64_t": ("part",),
    "mask": ("singular", "settled", "trusted"),
    "wide": ("norm", "first", "before", "slope", "alpha", "width", "whole_first"),
}


@dataclass(frozen=True)
class Law:
    """A model at one point: what it is, its functions, and what it has side by side."""

    model: Model
    described: Any
    definitions: list[Definition]
    systems: list[System]
    derives: bool
    single: bool
    inputs: int
    parameters: int
    outputs: int
    #: The columns of the tangent.
    width: int
    bounds: Sequence[Bound]


def law_of(
    model: Model,
    kernels: Mapping[str, Kernel],
    missing: Mapping[str, str],
    derive: bool,
    bounds: Sequence[Bound],
    in_bands: bool,
    by_parameters: bool,
) -> Law:
    """The functions of a model, with its derivatives if there are some and they are wanted.

    The tangent has columns for parameters, too, `by_parameters`.

    With `in_bands` the language has NEML2_BAND: how many of all columns a device keeps at a time.
    KernelError if it has no kernel for something.
    """
    described = attributes(model.describe())
    some = described.derivatives or (by_parameters and described.parameter_derivatives)
    single, derives = model.dtype == "float32", derive and bool(some)
    walk = Walk(model, described, kernels, missing, derives, by_parameters)
    one = len(described.segments) == 1 and described.segments[0].kind == "forward"
    chains = Chains(walk, one, in_bands) if derives else None
    systems: list[System] = []
    for segment in described.segments:
        links = walk.add(segment)
        if links.system:
            systems.append(links.system)
        if chains:
            chains.push(links, segment is described.segments[-1])
        walk.end(links)
    sizes = [
        sum(math.prod(point_shape(v)) for v in of)
        for of in (model.inputs, model.parameters, model.outputs)
    ]
    own = [*walk.functions, *_walk(walk, model, chains, sizes, bounds)]
    of_kernels = [function for kernel in kernels.values() for function in kernel.functions]
    known = [*_known(single), *calls(single), *of_kernels, *own]
    found = needed(["walk"], known)
    inputs, parameters, outputs = sizes
    return Law(
        model=model,
        described=described,
        definitions=found,
        systems=systems,
        derives=derives,
        single=single,
        inputs=inputs,
        parameters=parameters,
        outputs=outputs,
        width=walk.width,
        bounds=bounds,
    )


def _known(single: bool) -> Iterator[Definition]:
    """What kernels and the walk may call."""
    found = list(definitions(chosen((TEXT / "common.h").read_text(encoding="utf-8"), single)))
    for header in ("lanes.h", "powers.h", "trigonometry.h", "special.h"):
        made = definitions(chosen((C / header).read_text(encoding="utf-8"), single))
        found += [of_one(d) for d in made if d.name not in _OWN]
    rules = (TEXT / "rules.inc").read_text(encoding="utf-8")
    for pattern, word in _RULES.items():
        rules = re.sub(pattern, word, rules)
    of_newton = list(definitions(rules))
    names = {d.name: f"newton_{d.name}" for d in of_newton}
    of_newton = [d.with_calls(names) for d in of_newton]
    macros = {d.name: d.text for d in found if d.is_macro}
    for definition in [*found, *of_newton]:
        if not definition.is_macro:
            yield definition.renamed(macros)


def _walk(
    walk: Walk, model: Model, chains: Chains | None, sizes: list[int], bounds: Sequence[Bound]
) -> Iterator[Definition]:
    """The function walk(): all segments, then outputs, derivatives and the report."""
    blocks = chains.blocks() if chains else []
    _finish(walk, model, chains, sizes)
    check = check_of(bounds, _places(model), model.dtype == "float32")
    if check:
        yield check
        walk.text.lines[:0] = _refusal(walk, blocks, sizes, fails_by_setting(bounds))
    words = {word for line in walk.text.lines for word in re.findall(r"(?<!\.)\b\w+", line)}
    declared = [
        f"  {kind} {name};" for kind, names in _VARIABLES.items() for name in names if name in words
    ]
    declared += ["  report all = new_report(ok);", "  int failed;", "  mask bad, given;"]
    if blocks:
        declared.append("  const int derive = tangent != 0;")
    for name, needs in (("tangent", blocks), ("stride", blocks), ("p", "p" in words)):
        if not needs:
            declared.append(f"  (void){name};")
    declared += [f"  (void){name};" for name in ("rules", "careful") if name not in words]
    yield walk.text.function(
        "FUNCTION void walk(const lanes *x, const lanes *p, lanes *y, GLOBAL real *tangent, "
        "int64_t stride,\n                   const settings rules, int careful, report *told)",
        declared,
    )


def _places(model: Model) -> dict[str, Place]:
    """Inputs and parameters as the walk is given them, by their names at the boundary."""
    places = {}
    for array, variables in (("p", model.parameters), ("x", model.inputs)):
        offset = 0
        for variable in variables:
            places[variable.name] = Place(array, offset, math.prod(point_shape(variable)))
            offset += places[variable.name].components
    return places


def _refusal(walk: Walk, blocks: list[Block], sizes: list[int], by_setting: bool) -> list[str]:
    """The statements that end a walk of a point beyond its bounds."""
    text = Statements()
    fails = f"rules.{SETTING}" if by_setting else "0"
    text.line(f"const int beyond = beyond_bounds(x, p, {fails});")
    text.begin("if (beyond)")
    text.line(f"invalidate(y, {sizes[2]});")
    if blocks:
        text.begin("if (derive)")
        for block in blocks:
            at = _rows(walk)[block.output] * walk.width + walk.column(block.input)[0]
            to = f"tangent + {at} * stride"
            zeros = f"write_zeros({block.rows}, {block.columns}, {walk.width}, 1, {to}, stride);"
            text.line(f"if ({walk.wants(block.input)}) {zeros}")
        text.end()
    text.line("*told = new_report(out_of_bounds);")
    text.line("told->suggested_cut = beyond == 1 ? 0.5 : 1.0;")
    text.line("return;")
    text.end()
    return text.lines


def _rows(walk: Walk) -> dict[str, int]:
    """The first row of each output in the tangent."""
    rows, offset = {}, 0
    for variable in walk.described.outputs:
        rows[variable.name] = offset
        offset += walk.value(variable.name).components
    return rows


def _finish(walk: Walk, model: Model, chains: Chains | None, sizes: list[int]) -> None:
    """Outputs, derivatives and the status of the point, by the rule of model::Marks."""
    text, (inputs, parameters, outputs) = walk.text, sizes
    text.line("")
    rows = _rows(walk)
    for variable, boundary in zip(walk.described.outputs, model.outputs, strict=True):
        value = walk.value(variable.name)
        if value.components != math.prod(point_shape(boundary)):
            raise KernelError(f"{variable.name}: its kernel has another shape than its package")
        into = Place("y", rows[variable.name], value.components)
        text.line(f"copy({value.pointer}, {into.pointer}, {into.components});")
    text.line("failed = all.status > non_finite;")
    text.line(f"bad = are_not_finite(y, {outputs});")
    text.line(f"given = are_not_finite(x, {inputs});")
    missing = f"have_no_number(x, {inputs})"
    if parameters:
        text.line(f"given = given | are_not_finite(p, {parameters});")
        missing = f"({missing} | have_no_number(p, {parameters}))"
    text.line(f"if (given && (failed || {missing})) all.status = non_finite;")
    for name, variable in ((v.name, v) for v in walk.described.inputs):
        before = walk.inputs.get(f"{name}~1")
        if before and not variable.base_shape and before.components == 1:
            now = walk.inputs[name].element(0)
            text.begin(f"if (all.iterations == 0 && {now} == {before.element(0)})")
            text.line("given = given | !is_finite(wide_fill(all.residual_norm));")
            text.end()
    text.line("if (failed && given) all.suggested_cut = 1.0;")
    text.line(f"if (failed) invalidate(y, {outputs});")
    if chains:
        chains.write(rows, walk.width)
    text.line("if (bad && all.status == ok) all.status = non_finite;")
    text.line("*told = all;")
