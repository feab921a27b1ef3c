"""What the functions of the headers are called in C++ and in Fortran, by who calls them there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

Callers = dict[str, list[str]]

# What calls do not tell: errors are exceptions in C++, and what is done in several ways.
_CPP: Callers = {
    "neml2_error_status": ["Error::status"],
    "neml2_error_cause": ["Error::cause"],
    "neml2_error_message": ["Error::what"],
    "neml2_error_subject": ["Error::subject"],
    "neml2_error_record": [],
    "neml2_model_variable_count": ["Model::variables"],
    "neml2_model_variable_find": ["Model::variable"],
    "neml2_model_variable_inspect": ["Model::variables"],
    "neml2_operator_unregister": ["Operator::~Operator"],
}
_FORTRAN: Callers = {
    "neml2_call_bind": [
        f"neml2_call%bind_{name}"
        for name in ("input", "output", "parameter", "tangent", "jvp", "cotangent", "adjoint")
    ],
    "neml2_operator_call_get_text": ["neml2_operator_call%get"],
    "neml2_tensor_share": ["assignment(=)"],
}
for _kind in ("tensors", "integers", "reals"):
    _both = ["neml2_operator_call%get", "neml2_operator_call%get_list"]
    _FORTRAN[f"neml2_operator_call_get_{_kind}"] = _both


@dataclass
class _Member:
    """A function of a class, or of the namespace."""

    owner: str
    name: str
    public: bool
    words: set[str] = field(default_factory=set)

    @property
    def full_name(self) -> str:
        return f"{self.owner}::{self.name}" if self.owner else self.name


def cpp_face(source: str, functions: list[str]) -> Callers:
    """The members and functions of the C++ headers that call each function."""
    members = _members(source)
    found = {name: _callers(name, members) for name in functions if name not in _CPP}
    freed = {f"neml2_{m.owner.lower()}_free": f"~{m.owner}" for m in members}
    return found | _CPP | {name: [freed[name]] for name in functions if name in freed}


def _callers(name: str, members: list[_Member], owner: str = "") -> list[str]:
    """The public members that name a function, themselves or through private ones."""
    found: list[str] = []
    for member in members:
        if name not in member.words or member.name == name or owner not in ("", member.owner):
            continue
        if member.public:
            found.append(member.full_name)
        else:
            found += _callers(member.name, members, member.owner)
    return list(dict.fromkeys(found))


def _members(source: str) -> list[_Member]:
    source = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), source, flags=re.S)
    source = re.sub(r"^namespace detail \{\n.*?^\}", "", source, flags=re.S | re.M)
    members: list[_Member] = []
    owner, public = "", True
    for line in source.splitlines():
        if found := re.match(r"(class|struct) (\w+)[^;]*\{", line):
            owner, public = found[2], found[1] == "struct"
        elif line.startswith("};"):
            owner, public = "", True
        elif found := re.match(r" (public|private):", line):
            public = found[1] == "public"
        if found := re.match(
            r"  (?! )[^=({]*?(~?\w+)\(" if owner else r"\w[^=(]*?([\w:]+)\(", line
        ):
            home, _, name = found[1].rpartition("::")
            members.append(_Member(home or owner, name, public))
        if members:
            members[-1].words |= set(re.findall(r"\w+", line))
    return members


def fortran_face(source: str, functions: list[str]) -> Callers:
    """The procedures of the Fortran modules of a function's name, else those that call it."""
    bound: dict[str, dict[str, set[str]]] = {}
    for name, body in re.findall(r"^  type[, ].*?:: (\w+)\n(.*?)^  end type", source, re.S | re.M):
        names = bound[name] = {}
        for line in body.splitlines():
            if found := re.match(r"    (?:procedure|generic) :: (\w+) => (.+)", line):
                names[found[1]] = set(re.findall(r"\w+", found[2]))
    public = set(re.findall(r"\w+", " ".join(re.findall(r"^  public :: (.*)$", source, re.M))))
    pattern = (
        r"^  (?:[\w() ]*)(?:subroutine|function) (\w+)\(.*?\n(.*?)^  end (?:subroutine|function)"
    )
    bodies = re.findall(pattern, source.partition("\ncontains\n")[2], re.S | re.M)
    face: Callers = {}
    for function in functions:
        kind = max((kind for kind in bound if function.startswith(f"{kind}_")), key=len, default="")
        verb = function.removeprefix(f"{kind}_")
        own = re.compile(rf"\bc_{function.removeprefix('neml2_')}\b")
        callers = {name for name, body in bodies if own.search(body)}
        if function in _FORTRAN:
            face[function] = _FORTRAN[function]
        elif kind and (verb in bound[kind] or verb == "free"):
            face[function] = [f"{kind}%{verb}"]
        elif function in public:
            face[function] = [function]
        else:
            face[function] = [
                f"{kind}%{name}"
                for kind, names in bound.items()
                for name, procedures in names.items()
                if callers & procedures
            ]
    return face
