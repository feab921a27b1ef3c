"""The C source of a kernel."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from neml2_capi.kernels.names import Names
from neml2_capi.kernels.program import Array, Program
from neml2_capi.kernels.rows import DECLARATION, function_of_rows, takes_rows
from neml2_capi.kernels.scalar import MASKS
from neml2_capi.kernels.schedule import Schedule, Section, as_it_stands, calls_together, scheduled
from neml2_capi.kernels.superword import packed
from neml2_capi.kernels.tables import stored, table

#: What lanes.h and functions.h call a function.
_CALLS = {
    "sqrt": "square_root",
    "abs": "absolute",
    "sign": "sign_of",
    "floor": "round_down",
    "where": "where",
    "scale": "scale_of",
    "greatest": "greatest",
    "least": "least",
    "pack": "pack_of",
}
_ARITHMETIC = ("sum", "product", "times both", "mul", "add", "sub", "div", "quotient", "neg")
_SYMBOLS = {"gt": ">", "ge": ">=", "eq": "==", "and": "&", "or": "|"}
#: How tight an expression holds together.
_ATOM, _PRODUCT, _SUM, _OTHER = 3, 2, 1, 0
#: An expression that is used once and is no longer than this stands within the next one.
_LONGEST = 90
#: Of single precision.
_LARGEST_SINGLE = (2 - 2**-23) * 2.0**127


def source(program: Program, name: str, origin: str, ready: Program | None = None) -> str:
    """The C source of a kernel.

    Parameters
    ----------
    program : Program
        The operations, simplified.
    name : str
        The package that the kernel stands for, without .pt2.
    origin : str
        One line that says from what it was made, for the comment at the head.
    ready : Program, optional
        The same with terms in the order in which they are ready, for when no numbers of a point
        stand side by side in vectors.

    Returns
    -------
    str
        A file that includes neml2_kernel.h and functions.h, and defines neml2_kernel_NAME.
    """
    schedule = scheduled(program)
    of_one = None if schedule.prepare else packed(program)
    if ready and not of_one:
        program, schedule = ready, scheduled(ready)
    has_rows = takes_rows(program, schedule)
    writer = _Writer(program, schedule, "run", packs=not of_one)
    body = [*(DECLARATION if has_rows else ()), *writer.functions()]
    if has_rows:
        body += function_of_rows(program, writer.inputs, writer.outputs)
    if of_one:
        body += ["#ifdef NEML2_KERNEL_PACKS", ""]
        body += _Writer(of_one, as_it_stands(of_one), "run_one").functions()
        body += ["#else", "#define run_one 0", "#endif", ""]
    prepared, operations = bool(schedule.prepare), program.operations
    run_one = "run_one" if of_one or writer.one else "0"
    more = (run_one, "0", "run_rows" if has_rows else "0")
    body += table(program, name, schedule.kept, prepared, operations, more)
    head = head_of(program, name, origin, operations)
    if has_rows:
        head.insert(-1, '#include "rows.h"')
    return "\n".join([*head, *body]) + "\n"


def head_of(program: Program, name: str, origin: str, operations: int) -> list[str]:
    """The lines before the first function."""
    head = [
        f"/* {name}: a kernel of one graph, in lanes of material points.",
        " *",
        f" * {origin}",
        f" * Graph: {program.graph_nodes} nodes of ATen, SHA-256 {program.checksum}.",
        f" * Kernel: {operations} operations on {program.real} a point.",
        " * Generated: change the model, or the generator, not this text.",
        " */",
    ]
    if program.real == "float32":
        head.append("#define NEML2_KERNEL_FLOAT")
    return [*head, '#include "functions.h"', '#include "neml2_kernel.h"', ""]


@dataclass
class Text:
    """An expression in C, or a number."""

    text: str
    tightness: int
    #: The same as lanes, if it is a plain number.
    number: bool = False

    def within(self, least: int) -> str:
        return self.text if self.tightness >= least else f"({self.text})"

    @property
    def lanes(self) -> str:
        return f"fill({self.text})" if self.number else self.text


class _Writer:
    """The functions of a kernel: prepare(), and run() or run_one()."""

    def __init__(self, program: Program, schedule: Schedule, run: str, packs: bool = True) -> None:
        self.program, self._schedule, self._run = program, schedule, run
        self._single = program.real == "float32"
        calls = any(
            len(places) > 1
            for section in schedule.run
            for places in calls_together(program, section.places)
        )
        #: Whether a function is for one point, in C; empty if nothing depends on it.
        self.one = ("one" if run == "run" else "1") if packs and calls else ""
        names = Names()
        self.inputs = [names.new(array.name) for array in program.inputs]
        self.outputs = [names.new(array.name) for array in program.outputs]
        self._components = [list(_component_names(array, names)) for array in program.inputs]
        self.uses: Counter[int] = Counter(a for _, args, _ in program.steps for a in args)
        self.writes: dict[int, list[str]] = {}
        for number, output in enumerate(self.outputs):
            for slot, (_, place) in enumerate(stored(program, number)):
                self.writes.setdefault(place, []).append(f"{output}[{slot}]")

    def functions(self) -> Iterator[str]:
        """All functions; prepare() and run() last."""
        schedule = self._schedule
        if schedule.prepare:
            yield from self._function("prepare", schedule.prepare, schedule.shared_in_prepare)
        yield from self._function(self._run, schedule.run, schedule.shared_in_run)

    def _function(self, what: str, sections: list[Section], shared: int) -> Iterator[str]:
        """One of the two, with those that it is cut into before it."""
        run = what != "prepare"
        names = ["inputs", "outputs", "results"] if run else ["inputs", "results"]
        both = run and self.one == "one"
        if both:
            what, names = "compute", [*names, "one"]
        types = {
            "inputs": "const void *const *inputs",
            "outputs": "void *const *outputs",
            "results": "const void *results" if run else "void *results",
            "shared": "lanes *shared",
            "one": "int one",
        }
        bodies = [Statements(self, section, run).lines() for section in sections]
        if len(bodies) > 1:
            parameters = ", ".join(types[name] for name in [*names, "shared"])
            for number, lines in enumerate(bodies):
                yield f"FUNCTION void {what}_{number}({parameters}) {{"
                yield from self._with_pointers(lines, [*names, "shared"], run)
                yield "}\n"
            given = ", ".join([*names, "shared"])
            calls = [f"  {what}_{number}({given});" for number in range(len(bodies))]
            bodies = [[f"  lanes shared[{max(shared, 1)}];", *calls]]
        lines = [line for body in bodies for line in body] + (self._rest() if run else [])
        kind = "FUNCTION" if both else "static"
        yield f"{kind} void {what}({', '.join(types[name] for name in names)}) {{"
        yield from self._with_pointers(lines, names, run)
        yield "}\n"
        if both:
            given = ", ".join(types[name] for name in names[:-1])
            for number, name in enumerate(("run", "run_one")):
                yield f"static void {name}({given}) {{"
                yield f"  compute(inputs, outputs, results, {number});\n}}\n"

    def _with_pointers(self, lines: list[str], names: list[str], run: bool) -> Iterator[str]:
        """Lines, behind declarations of the arrays that they mention."""
        text = "\n".join(lines)
        declared = []
        if "kept[" in text:
            declared.append(f"  {'const ' if run else ''}lanes *const kept = results;")
        for kind, arrays, owner in (
            ("const lanes", self.inputs, "inputs"),
            ("lanes", self.outputs, "outputs"),
        ):
            for number, name in enumerate(arrays):
                if re.search(rf"\b{name}\[", text):
                    declared.append(f"  {kind} *const {name} = {owner}[{number}];")
        yield from declared
        head = "\n".join(declared)
        for name in names:
            if not re.search(rf"\b{name}\b", head + text):
                yield f"  (void){name};"
        yield from lines

    def _rest(self) -> list[str]:
        """Outputs that are constants, inputs, or known from prepare()."""
        computed = {p for section in self._schedule.run for p in section.places}
        stored = {p: s for section in self._schedule.prepare for p, s in section.stores.items()}
        lines = []
        for place, targets in self.writes.items():
            name, _, data = self.program.steps[place]
            if place in computed:
                continue
            if name == "constant":
                value = f"c{place}"
                lines.append(f"  const lanes {value} = {self.constant(data).lanes};")
            elif name == "variable":
                value = f"{self.inputs[data[0]]}[{data[1]}]"
            else:
                value = stored[place]
            lines += [f"  {target} = {value};" for target in targets]
        return lines

    def variable(self, data: tuple[int, int]) -> tuple[str, str]:
        """The name of a component of an input, and its declaration."""
        array, component = data
        name = self._components[array][component]
        return name, f"  const lanes {name} = {self.inputs[array]}[{component}];"

    def constant(self, data: object) -> Text:
        return number(data, self._single)

    def assignment(self, target: str, value: str) -> str:
        return f"  {target} = {value};"


def number(data: object, single: bool) -> Text:
    """A constant."""
    value = float("nan") if data == "nan" else float(data)  # type: ignore[arg-type]
    if single and abs(value) > _LARGEST_SINGLE:
        value = math.copysign(math.inf, value)
    if value != value:
        return Text('(real)__builtin_nan("")', _OTHER, True)
    if value in (float("inf"), -float("inf")):
        sign = "-" if value < 0 else ""
        return Text(f"{sign}(real)__builtin_inf()", _OTHER, True)
    text = repr(value) + ("f" if single else "")
    return Text(text, _ATOM if value >= 0 else _OTHER, True)


class Operations(Protocol):
    """What statements are written of."""

    program: Program
    #: Whether a function is for one point, in C; empty if nothing depends on it.
    one: str

    @property
    def uses(self) -> Mapping[int, int]:
        """How many others need each step."""

    @property
    def writes(self) -> Mapping[int, list[str]]:
        """The outputs that each step is."""

    def constant(self, data: object) -> Text: ...

    def variable(self, data: tuple[int, int]) -> tuple[str, str]: ...

    def assignment(self, target: str, value: str) -> str: ...


class Statements:
    """The statements of one function."""

    def __init__(self, writer: Operations, section: Section, run: bool) -> None:
        self._writer, self._section, self._run = writer, section, run
        self._program = writer.program
        self._known: dict[int, Text] = {}
        self._lines: list[str] = []
        own = set(section.places)
        self._inside = {a for p in section.places for a in self._program.steps[p][1] if a in own}

    def lines(self) -> list[str]:
        for places in calls_together(self._program, self._section.places):
            if len(places) > 1 and self._run and self._writer.one:
                self._call_together(places)
            else:
                for place in places:
                    self._state(place, self._expression(place))
        return self._lines

    def _call_together(self, places: list[int]) -> None:
        """Several calls of one function, by arrays of arguments; results stand in the first."""
        columns = zip(*(self._program.steps[place][1] for place in places), strict=True)
        arrays = [f"{name}{places[0]}" for name in ("calls", "others")]
        for array, column in zip(arrays, columns, strict=False):
            values = ", ".join([self._value(argument).lanes for argument in column])
            self._lines.append(f"  lanes {array}[CALLS] = {{{values}}};")
        given = arrays[: len(self._program.steps[places[0]][1])]
        name = self._program.steps[places[0]][0]
        self._lines.append(f"  each_{name}({', '.join(given)}, {len(places)}, {self._writer.one});")
        for slot, place in enumerate(places):
            self._state(place, Text(f"{arrays[0]}[{slot}]", _ATOM))

    def _state(self, place: int, made: Text) -> None:
        """The statement of a step, or an expression for the next one."""
        writer = self._writer
        name = self._program.steps[place][0]
        targets = writer.writes.get(place, []) if self._run else []
        store = self._section.stores.get(place)
        uses = writer.uses.get(place, 0)
        if not targets and not store and uses == 1 and len(made.text) <= _LONGEST:
            self._known[place] = made
            return
        kind, cast = ("mask", "(lanes)") if name in MASKS else ("lanes", "")
        if len(targets) == 1 and not store and not uses:
            text = f"{cast}{made.within(_ATOM)}" if cast else made.lanes
            self._lines.append(writer.assignment(targets[0], text))
            return
        value = f"v{place}"
        if place in self._inside or targets or not store:
            self._lines.append(f"  const {kind} {value} = {made.lanes};")
        else:
            value = made.within(_ATOM) if kind == "mask" else made.lanes
        if store:
            self._lines.append(f"  {store} = {cast}{value};")
        self._lines += [writer.assignment(target, f"{cast}{value}") for target in targets]
        self._known[place] = Text(value, _ATOM)

    def _value(self, place: int) -> Text:
        """An argument: known here, or loaded at its first use."""
        if place in self._known:
            return self._known[place]
        name, _, data = self._program.steps[place]
        if name == "constant":
            return self._writer.constant(data)
        if name == "variable":
            found, declaration = self._writer.variable(data)
            self._lines.append(declaration)
        else:
            found, kind = f"v{place}", "mask" if name in MASKS else "lanes"
            cast = "(mask)" if kind == "mask" else ""
            self._lines.append(f"  const {kind} {found} = {cast}{self._section.loads[place]};")
        self._known[place] = Text(found, _ATOM)
        return self._known[place]

    def _expression(self, place: int) -> Text:
        """The operation of a step; of plain numbers alone it is one, too."""
        name, places, _ = self._program.steps[place]
        x = [self._value(p) for p in places]
        made = self._operation(place, x)
        if name in _ARITHMETIC and all(value.number for value in x):
            made = Text(made.text, made.tightness, True)
        return made

    def _operation(self, place: int, x: Sequence[Text]) -> Text:
        name, _, data = self._program.steps[place]
        if name == "sum":
            text = ("-" if data[0] < 0 else "") + x[0].within(_PRODUCT)
            for sign, term in zip(data[1:], x[1:], strict=True):
                text += f" {'+' if sign > 0 else '-'} {term.within(_PRODUCT)}"
            return Text(text, _SUM)
        if name == "product":
            # A quotient first needs no brackets, and others do: the order of rounding stays.
            first = x[0].within(_PRODUCT) if "/" not in x[0].text else x[0].within(_ATOM)
            return Text(" * ".join([first, *(f.within(_ATOM) for f in x[1:])]), _PRODUCT)
        if name == "times both":
            return Text(" * ".join(f.within(_ATOM) for f in x), _PRODUCT)
        if name == "mul":
            return Text(f"{x[0].within(_ATOM)} * {x[1].within(_ATOM)}", _PRODUCT)
        if name in ("add", "sub"):
            symbol = "+" if name == "add" else "-"
            return Text(f"{x[0].within(_PRODUCT)} {symbol} {x[1].within(_PRODUCT)}", _SUM)
        if name in ("div", "quotient"):
            return Text(f"{x[0].within(_PRODUCT)} / {x[1].within(_ATOM)}", _PRODUCT)
        if name == "neg":
            return Text(f"-{x[0].within(_ATOM)}", _SUM)
        if name == "not":
            return Text(f"~{x[0].within(_ATOM)}", _OTHER)
        if name in _SYMBOLS:
            return Text(f"{x[0].within(_SUM)} {_SYMBOLS[name]} {x[1].within(_SUM)}", _OTHER)
        if name == "lane":
            return Text(f"lane_of({x[0].text}, {data})", _ATOM)
        call = _CALLS.get(name, f"lanes_{name}")
        return Text(f"{call}({', '.join(value.lanes for value in x)})", _ATOM)


def _component_names(array: Array, names: Names) -> Iterator[str]:
    """strain_0, strain_1, ... of a variable or of the parts of an array."""
    if not array.parts:
        for component in range(array.components):
            yield names.new(array.name + (f"_{component}" if array.components > 1 else "_value"))
    for part in array.parts:
        for component in range(part.components):
            yield names.new(part.name + (f"_{component}" if part.components > 1 else "_value"))
