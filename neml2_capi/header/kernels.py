"""Kernels of an artifact as functions of one point."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from neml2_capi.header.definitions import Definition, chosen, definitions, needed
from neml2_capi.header.one_number import of_one
from neml2_capi.kernels.folder import C, KernelError, checksum
from neml2_capi.kernels.tables import identifier
from neml2_capi.kernels.variables import with_variables_apart

_SPARSE = re.compile(r"static const int32_t output_(\d+)_places\[\] = \{([^}]*)\};")
_TABLE = re.compile(r"^const neml2_kernel \w+ = \{\s*(.*?)\};", re.MULTILINE | re.DOTALL)
_CALLS = re.compile(r"^OF_(ONE|TWO)\((\w+)\)", re.MULTILINE)


@dataclass(frozen=True)
class Kernel:
    """A kernel: what it takes and returns, and its functions."""

    name: str
    inputs: tuple[int, ...]  # components in memory
    outputs: tuple[int, ...]
    #: Of outputs that store some components alone: which.
    sparse: Mapping[int, tuple[int, ...]]
    kept: int
    auxiliaries: int
    prepares: bool
    functions: tuple[Definition, ...] = field(repr=False)


def read_kernel(folder: Path, entry: Mapping[str, Any]) -> Kernel:
    """A kernel by its entry in kernels.json. KernelError if its source is not as that says."""
    path = folder / str(entry["source"])
    if not path.is_file() or checksum(path) != entry["source_checksum"]:
        raise KernelError(
            f"{path} is missing, or was changed since it was written, by its checksum in "
            "kernels.json; compile the model again"
        )
    text = path.read_text(encoding="utf-8")
    found = _TABLE.search(text)
    if not found:
        raise KernelError(f"{path} is no kernel of this version; compile the model again")
    values = [value.strip() for value in found[1].split(",")]
    if len(values) < 17:
        raise KernelError(f"{path} is a kernel of an old form; compile the model again")
    kept, prepares, auxiliaries = int(values[11]), values[12] != "0", int(values[16])
    found_in = definitions(chosen(text, entry["real"] == "float32"))
    known = [replace(d, text=with_variables_apart(d.text)) for d in found_in]
    name = identifier(entry["name"])
    roots = ["run", "prepare"] if prepares else ["run"]
    used = needed(roots, known)
    names = {d.name: f"{name}_{d.name}" for d in used}
    tables = {d.name: d.tables for d in used if not d.text}
    counts = len(entry["inputs"]), len(entry["outputs"])
    functions = []
    for definition in (d for d in used if d.text):
        made = _with_arguments(of_one(definition), *counts)
        read = [table for word in sorted(made.words & tables.keys()) for table in tables[word]]
        functions.append(replace(made, tables=tuple(read)).renamed(names))
    return Kernel(
        name,
        tuple(_stored(array) for array in entry["inputs"]),
        tuple(_stored(array) for array in entry["outputs"]),
        _places(text, entry["outputs"]),
        kept,
        auxiliaries,
        prepares,
        tuple(functions),
    )


def _places(text: str, outputs: Sequence[Mapping[str, Any]]) -> dict[int, tuple[int, ...]]:
    """Return the places of stored entries, by sparse output; an output of zeros has none."""
    found = {int(number): places.split(",") for number, places in _SPARSE.findall(text)}
    return {n: tuple(int(p) for p in each[: _stored(outputs[n])] if p) for n, each in found.items()}


def _stored(array: Mapping[str, Any]) -> int:
    return int(array.get("stored", math.prod(array["shape"])))


def _with_arguments(function: Definition, inputs: int, outputs: int) -> Definition:
    """A function that takes each array by itself, instead of arrays of arrays."""
    head, brace, body = function.text.partition(") {")
    head = re.sub(r"(const )?void \*results", "lanes *results", head)
    head = re.sub(r"^static", "FUNCTION", head)
    body = body.replace("(lanes *)results", "results").replace("[CALLS]", "[4]")
    unused = []
    for kind, pointer, count in (
        ("input", "const lanes *", inputs),
        ("output", "lanes *", outputs),
    ):
        names = [f"{kind}_{n}_" for n in range(count)]
        given = ", ".join(f"{pointer}{name}" for name in names)
        head, taken = re.subn(rf"(const )?void \*const \*{kind}s", given, head)
        body = re.sub(rf"\n  \(void\){kind}s;", "", body)
        body = re.sub(rf"\b{kind}s\[(\d+)\]", rf"{kind}_\1_", body)
        body = re.sub(rf"\b{kind}s\b", ", ".join(names), body)
        if taken:
            unused += [name for name in names if not re.search(rf"\b{name}\b", body)]
    lines = "".join(f"\n  (void){name};" for name in unused)
    return replace(function, text=f"{head}{brace}{lines}{body}")


def calls(single: bool) -> Iterator[Definition]:
    """The functions that functions.h makes of those of numbers: lanes_NAME, and each_NAME."""
    for arguments, name in _CALLS.findall((C / "functions.h").read_text(encoding="utf-8")):
        names = ("x", "y") if arguments == "TWO" else ("x",)
        given = ", ".join(f"lanes {x}" for x in names)
        of = ", ".join(f"widened({x})" if single else x for x in names)
        value = f"narrowed(wide_{name}({of}))" if single else f"wide_{name}({of})"
        yield Definition(
            f"lanes_{name}", f"FUNCTION lanes lanes_{name}({given}) {{ return {value}; }}"
        )
        arrays = ", ".join(f"{'' if x == 'x' else 'const '}lanes *{x}" for x in names)
        elements = ", ".join(f"{x}[i]" for x in names)
        yield Definition(
            f"each_{name}",
            f"FUNCTION void each_{name}({arrays}, int count, int one) {{\n"
            "  (void)one;\n"
            f"  for (int i = 0; i < count; ++i) x[i] = lanes_{name}({elements});\n}}",
        )
