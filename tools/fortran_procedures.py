"""Procedures of the Fortran modules that follow from functions of the headers, one a row.

A row is a comment in a generated section, in front of its procedure:

    != name: function(value) -> argument, field + 1, argument = field, [argument]

is the procedure `name`, which calls neml2_`function`, or the function of its own name. Arguments
are the function's unless named: those stand behind the others. `argument?` is optional; [argument]
is, too, and stands behind `stat` and `errmsg`. A field is one of the structure that is inspected,
converted as written; a name of neither is what the function gives. `value` is the kind. Lines that
begin with `!=` and several spaces continue a row.

    != name: bind(role) -> argument       binds an array, in one of two roles by `of_parameter`
    != name: also(kind, ...)              is there for these kinds of numbers, as the one by hand

The comment of a procedure is the function's in its header unless one stands above the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from textwrap import wrap

from tools.header import Part, Variable

NUMBERS = {
    "int32_t": "integer(int32)",
    "int64_t": "integer(int64)",
    "double": "real(real64)",
    "char": "character(kind=c_char)",
}
TEXT = "character(:), allocatable"

# How a handle of C is found, and of what class it is, unless by c_handle() of its own.
_HANDLES = {
    "neml2_operator_call": ("self%c", "neml2_operator_call"),
    "neml2_system": ("c_system(self)", "neml2_solve"),
}
# The interface of a procedure that is an argument, its name, and the function that calls it.
_CALLBACKS = {
    "solver": ("neml2_solver", "solver", "call_solver"),
    "function": ("neml2_operator", "procedure", "call_operator"),
    "asked": ("neml2_interrupt", "asked", "ask_host"),
}
# What an array of tensors is, by its name and the kind of the variable, unless by its name alone.
_ROLES = {
    ("adjoints", "neml2_parameter"): "neml2_parameter_adjoint",
    ("blocks", "neml2_input"): "derivative",
    ("blocks", "neml2_parameter"): "parameter_derivative",
}
# Roles whose arrays may have a value for each step.
_WITH_STEPS = ("neml2_input", "neml2_output", "derivative")


@dataclass(frozen=True)
class Argument:
    """An argument that a row names."""

    name: str
    origin: str  # a parameter of the function, or a field of its structure
    conversion: str = ""  # " + 1", " /= 0"
    optional: bool = False
    last: bool = False  # behind `stat` and `errmsg`


@dataclass(frozen=True)
class Row:
    """A procedure, and what it follows from."""

    lines: list[str]  # as it stands, with a comment by hand above it
    name: str
    function: str  # without "neml2_"
    values: list[str]
    arguments: list[Argument]


_ROW = re.compile(
    r"(?:^  !(?!=)[^\n]*\n)*"
    r"^  != (\w+)(?:: (\w+)(?:\((.+?)\))?)?(?: -> (.+(?:\n  !=  .*)*))?$",
    re.MULTILINE,
)


def rows_of(section: str) -> Iterator[Row]:
    """The rows of a section."""
    for found in _ROW.finditer(section):
        name, function, values, arguments = found.groups("")
        yield Row(
            found[0].splitlines(),
            name,
            function or name.removeprefix("neml2_"),
            values.split(", ") if values else [],
            [_argument(text) for text in re.split(r",\s+(?:!=\s+)?", arguments) if text],
        )


def _argument(text: str) -> Argument:
    last = text.startswith("[")
    found = re.fullmatch(r"(?:(\w+) = )?(\w+)(.*?)(\??)", text.strip("[]"))
    assert found, text
    return Argument(found[1] or found[2], found[2], found[3], last or bool(found[4]), last)


def wrapped(statement: str, width: int = 120) -> Iterator[str]:
    """A statement, on as many lines as it needs."""
    while len(statement) > width:
        place = statement.rindex(" ", 0, width - 1)
        yield statement[:place] + " &"
        statement = "      " + statement[place + 1 :]
    yield statement


def commented(text: str, indent: str = "  ") -> Iterator[str]:
    """A comment of the header, with the names that Fortran has."""
    text = re.sub(
        r"\s*(Owned\.)?\s*(It cannot fail\.)?\s*(Errors: [^.]*\. )?Threads: .*",
        "",
        text,
        flags=re.DOTALL,
    )
    text = re.sub(r"\bNEML2_\w+", lambda found: found[0].lower(), " ".join(text.split()))
    yield from (f"{indent}! {line}" for line in wrap(text, 118 - len(indent)))


def declared(names: Iterable[tuple[str, str]], indent: str = "    ") -> Iterator[str]:
    """Declarations, of attributes and names, with one line for names of the same attributes."""
    lines: dict[str, list[str]] = {}
    for attributes, name in names:
        lines.setdefault(attributes, []).append(name)
    for attributes, found in lines.items():
        yield from wrapped(f"{indent}{attributes} :: {', '.join(found)}")


def subroutine(
    comment: Iterable[str],
    name: str,
    arguments: list[tuple[str, str]],
    optional: list[tuple[str, str]],
    locals_: list[tuple[str, str]],
    body: Iterable[str],
) -> Iterator[str]:
    """A subroutine with `stat` and `errmsg`, whose body gives `outcome`."""
    names = [declaration.partition("(")[0] for _, declaration in (*arguments, *optional)]
    names[len(arguments) : len(arguments)] = ["stat", "errmsg"]
    tail = [
        ("integer(int32), intent(out), optional", "stat"),
        (f"{TEXT}, intent(out), optional", "errmsg"),
        ("integer(int32)", "outcome"),
    ]
    yield from comment
    yield from wrapped(f"  subroutine {name}({', '.join(names)})")
    yield from declared(arguments + optional)
    yield from declared(tail + locals_)
    for line in body:
        yield from wrapped(f"    {line}")
    yield "    if (present(errmsg)) call tell(outcome, errmsg)"
    yield "    call conclude(outcome, stat)"
    yield f"  end subroutine {name}"


def procedure(row: Row, parts: dict[str, Part]) -> Iterator[str]:
    """The procedure of a row that calls a function of the header."""
    function = parts["neml2_" + row.function]
    writer = _Writer(row, function, parts)
    for parameter in function.parameters:
        writer.take(parameter)
    comment = commented(function.text) if row.lines[0].startswith("  !=") else []
    for argument in row.arguments:
        if argument.optional:
            attributes, declaration = writer.dummies[argument.name]
            writer.dummies[argument.name] = (f"{attributes}, optional", declaration)
    named = [argument.name for argument in row.arguments]
    names = [name for name in writer.dummies if name not in named and name != "self"]
    names += [a.name for a in row.arguments if not a.last and a.name != "self"]
    arguments = [writer.dummies[name] for name in ("self", *names) if name in writer.dummies]
    optional = [writer.dummies[argument.name] for argument in row.arguments if argument.last]
    yield from subroutine(comment, row.name, arguments, optional, writer.locals, writer.body())


@dataclass
class _Writer:
    """What a procedure has for each parameter of the function that it calls."""

    row: Row
    function: Part
    parts: dict[str, Part]
    dummies: dict[str, tuple[str, str]] = field(default_factory=dict)  # attributes, declaration
    locals: list[tuple[str, str]] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    # Of what is read, which come first, and of what is written; they may change `outcome`.
    checks: dict[bool, list[str]] = field(default_factory=lambda: {True: [], False: []})
    passed: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def take(self, parameter: Variable) -> None:
        """One parameter of the function."""
        name, base, levels = parameter.name, parameter.base, parameter.stars + parameter.is_array
        structure = self.parts[base].fields if base in self.parts else []
        is_read = "const" in parameter.type
        if name in _CALLBACKS:
            interface, name, caller = _CALLBACKS[name]
            self.dummies[name] = (f"procedure({interface})", name)
            self.passed.append(f"c_funloc({caller})")
        elif name == "context":
            self.passed.append(f"transfer(c_funloc({next(reversed(self.dummies))}), c_null_ptr)")
        elif name == "kind" and self.row.values:
            self.passed += self.row.values
        elif base == "neml2_source":
            self._open(structure)
        elif structure:
            self._inspect(base, structure)
        elif name in ("buffer", "capacity", "needed"):
            self._read(name)
        elif base.startswith("neml2_") and levels == 1:
            handle, owner = _HANDLES.get(base, ("c_handle(self)", base))
            self.dummies["self"] = (f"class({owner}), intent(in)", "self")
            self.passed.append(handle)
        elif parameter.is_array:
            (self._tensors if base == "neml2_tensor" else self._vector)(name, base, is_read)
        elif base == "char" and levels == 1:
            self.dummies[name] = ("character(*), intent(in)", name)
            self.passed.append(f"c_text({name})")
        elif levels == 2:
            self._owned_or_text(self._result(name), base)
        elif levels == 1 and base != "void":
            self._number(self._result(name), NUMBERS[base])
        else:
            type_ = "type(c_ptr)" if base == "void" else NUMBERS[base]
            self.dummies[name] = (f"{type_}, intent(in)", name)
            self.passed.append("index - 1" if (base, name) == ("int64_t", "index") else name)

    def body(self) -> Iterator[str]:
        """The statements up to `outcome`."""
        reads = "buffer" in self.passed
        call = f"outcome = c_{self.row.function}({', '.join(self.passed)})"
        if_ok = "if (outcome == neml2_ok) "
        yield from self.before
        if checks := self.checks[True] + self.checks[False]:
            yield "outcome = neml2_ok"
            yield from checks
            call = if_ok + call
        if reads:
            first = call.replace("(buffer, ", "(nothing, ").replace(", buffer, ", ", nothing, ")
            yield first.replace("capacity", "0_int64")
            yield if_ok + "then"
            yield "  allocate (character(kind=c_char, len=needed) :: buffer)"
            yield "  " + call.replace("capacity", "needed")
            yield "end if"
        else:
            yield call
        # A report, and results, are there also if points failed.
        if_ok = if_ok.replace("==", ">=") if "take_handles" in str(self.after) else if_ok
        if len(self.after) == 1 and not self.after[0].startswith("if "):
            yield if_ok + self.after[0]
        elif self.after:
            yield if_ok + "then"
            yield from (f"  {line}" for line in self.after)
            yield "end if"

    def _result(self, origin: str) -> Argument:
        """The argument that receives something: the one that names it, or names nothing else."""
        arguments = self.row.arguments
        named = [argument for argument in arguments if argument.origin == origin]
        known = {parameter.name for parameter in self.function.parameters} | set(self.dummies)
        if "source" in known:
            known |= {entry.name for entry in self.parts["neml2_source"].fields}
        return (named or [argument for argument in arguments if argument.origin not in known])[0]

    def _receive(self, to: Argument, type_: str, value: str, shape: str = "") -> None:
        """An argument that receives a value, or what a subroutine `call ...` gives it."""
        self.dummies[to.name] = (f"{type_}, intent(inout)", to.name + shape)
        statement = value if value.startswith("call ") else f"{to.name} = {value}"
        self.after.append(f"if (present({to.name})) {statement}" if to.optional else statement)

    def _inspect(self, base: str, structure: list[Variable]) -> None:
        self.locals.append((f"type(c_{base.removeprefix('neml2_')})", "info"))
        self.passed.append("info")
        fields = {entry.name: entry for entry in structure}
        for to in self.row.arguments:
            entry, value = fields[to.origin], f"info%{to.origin}{to.conversion}"
            if entry.base == "char":
                self._receive(to, TEXT, f"call read_c({value}, {to.name})")
            elif entry.stars:
                reversed_ = f"reversed({value}, info%ndim)"
                self._receive(to, "integer(int64), allocatable", reversed_, "(:)")
            else:
                type_ = "logical" if "/=" in to.conversion else NUMBERS[entry.base]
                self._receive(to, type_, value)

    def _read(self, name: str) -> None:
        self.passed.append(name)
        if name != "buffer":
            return
        self.locals.append(("character(kind=c_char)", "nothing(1)"))
        self.locals.append(("character(kind=c_char, len=:), allocatable", "buffer"))
        self.locals.append(("integer(int64)", "needed"))
        self.before.append("needed = 1")
        self._receive(self._result(name), TEXT, "buffer(:len(buffer) - 1)")

    def _owned_or_text(self, to: Argument, base: str) -> None:
        """A handle, or a text that is borrowed."""
        own, kind = f"c_{to.name}", base.removeprefix("neml2_")
        absent = to.optional and base != "char"
        self.locals.append(("type(c_ptr)" + ", allocatable" * absent, own))
        self.before.append(f"if (present({to.name})) " * absent + f"{own} = c_null_ptr")
        self.passed.append(own)
        if base == "char":
            self._receive(to, TEXT, f"call read_c({own}, {to.name})")
        else:
            type_ = "class" if to.name == "self" else "type"
            self._receive(to, f"{type_}({base})", f"call take({to.name}, {own}, c_{kind}_free)")

    def _number(self, to: Argument, type_: str) -> None:
        if to.conversion:
            self.locals.append((type_, f"c_{to.name}"))
            self.passed.append(f"c_{to.name}")
            self._receive(to, type_, f"c_{to.name}{to.conversion}")
        else:
            self.dummies[to.name] = (f"{type_}, intent(inout)", to.name)
            self.passed.append(to.name)

    def _tensors(self, name: str, base: str, is_read: bool) -> None:
        """An array of handles, which has one for each variable or derivative."""
        own = f"c_{name}"
        role = _ROLES.get((name, "".join(self.row.values)), f"neml2_{name.removesuffix('s')}")
        self.locals.append(("type(c_ptr), allocatable", f"{own}(:)"))
        self.passed.append(own)
        self.checks[is_read].append(f"call list_handles(self, {role}, {name}, {own}, outcome)")
        if not is_read:
            self.checks[False].append(f"if (allocated({own})) {own} = c_null_ptr")
            self.after.append(f"call take_handles({name}, {own})")
        self.dummies[name] = (f"type({base}), intent({'in' if is_read else 'inout'})", f"{name}(:)")

    def _vector(self, name: str, base: str, is_read: bool) -> None:
        """Numbers or flags of all points: (n, npoints), a Jacobian, or (npoints)."""
        shape = "(:)" if base == "int32_t" else "(:, :, :)" if name == "a" else "(:, :)"
        intent = "in" if is_read else "inout"
        self.dummies[name] = (f"{NUMBERS[base]}, intent({intent}), contiguous", name + shape)
        self.passed.append(name)
        check = f'call check_vector(self, shape({name}, int64), "{name}", outcome)'
        given = f"if (present({name})) " if self._result(name).optional else ""
        self.checks[is_read].append(given + check)

    def _open(self, structure: list[Variable]) -> None:
        """What to open: the fields of neml2_source that the row names."""
        self.locals.append(("type(c_source)", "source"))
        self.passed.append("source")
        fields = {entry.name: entry for entry in structure}
        for to in self.row.arguments:
            if to.origin not in fields:
                continue
            name, entry, own = to.name, fields[to.origin], f"c_{to.name}"
            fill = [f"source%{name} = {name}"]
            if name == "scheduler":
                self.dummies[name] = ("class(object), intent(in)", name)
                self.checks[True].append("call choose(source, scheduler, outcome)")
                continue
            if name == "content":
                bytes_ = "integer(int8), target, intent(in), contiguous"
                self.dummies[name] = (bytes_, "content(:)")
                fill = ["source%content = c_loc(content)"]
                fill.append("source%content_size = size(content, kind=int64)")
            elif entry.base == "char":
                self.dummies[name] = ("character(*), intent(in)", name)
                self.locals.append(("character(kind=c_char, len=:), allocatable, target", own))
                fill = [f"{own} = c_text({name})", f"source%{name} = c_loc({own})"]
            else:
                self.dummies[name] = (f"{NUMBERS[entry.base]}, intent(in)", name)
            given = f"if (present({name})) " if to.optional else ""
            self.before += [given + statement for statement in fill]


def binding(row: Row) -> Iterator[str]:
    """The procedure of a row of `bind`, which binds an array in a role."""
    role = row.values[0]
    names = [argument.name for argument in row.arguments]
    given = [("class(neml2_call), intent(in)", "self")]
    given += [("character(*), intent(in)", name) for name in names]
    given.append(("type(neml2_view), intent(in)", "array"))
    places = ["stride", "first"]
    if role in _WITH_STEPS:
        places.append("step_stride")
    ways = [("integer, intent(in), optional", name) for name in places]
    if len(row.values) > 1:
        role = f"merge({row.values[1]}, {role}, is_true(of_parameter))"
        ways.insert(0, ("logical, intent(in), optional", "of_parameter"))
    variable = "".join(f", variable={name}" for name in names[1:])
    call = f"outcome = bind(self, {role}, {names[0]}, array, {', '.join(places)}{variable})"
    yield from subroutine([], row.name, given, ways, [], [call])
