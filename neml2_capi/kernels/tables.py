"""The description of a kernel in C: what its caller must know, as static data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from neml2_capi.kernels.program import Array, Program


def identifier(name: str) -> str:
    """A name of C: strain~1 becomes strain_old, and strain~2 strain_old2."""
    name = re.sub(r"~(\d+)", lambda m: "_old" + ("" if m[1] == "1" else m[1]), name)
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    return name if re.match(r"[A-Za-z]", name) else f"x{name}"


def quoted(text: str) -> str:
    """A string literal of C: bytes of UTF-8, and no trigraph."""
    plain = {byte: chr(byte) for byte in range(0x20, 0x7F) if byte not in b'"?\\'}
    return '"' + "".join(plain.get(byte, f"\\{byte:03o}") for byte in text.encode()) + '"'


def structure(program: Program, output: int) -> list[int]:
    """Of each component that is stored of an output: 0 computed, 1 zero, 2 another constant."""
    found = []
    for _, place in stored(program, output):
        name, _, data = program.steps[place]
        found.append(0 if name != "constant" else 1 if data == 0 else 2)
    return found


def of_scalars(program: Program, output: int) -> list[int]:
    """The components of an output that are computed of scalars alone, none of them an unknown.

    They are the same for any strain.
    """
    known: list[bool] = []
    for name, arguments, data in program.steps:
        if name == "variable":
            array, component = program.inputs[data[0]], data[1]
            sizes = [p.components for p in array.parts if 0 <= component - p.offset < p.components]
            size = sizes[0] if sizes else array.components
            known.append(size == 1 and not array.name.startswith("unknowns"))
        else:
            known.append(all(known[place] for place in arguments))
    return [
        i
        for i, place in stored(program, output)
        if known[place] and program.steps[place][0] != "constant"
    ]


def stored(program: Program, output: int) -> list[tuple[int, int]]:
    """The components of an output that are stored, and their steps."""
    places = program.results[output]
    components = program.outputs[output].stored
    return list(zip(range(len(places)) if components is None else components, places, strict=True))


def table(
    program: Program,
    name: str,
    kept: int,
    prepared: bool,
    operations: int,
    more: Sequence[str] = ("0", "0", "0"),
) -> Iterator[str]:
    """The definition of neml2_kernel_NAME; `more`: its fields from run_one on."""
    for kind, arrays in (("input", program.inputs), ("output", program.outputs)):
        for number, array in enumerate(arrays):
            yield from _parts(f"{kind}_{number}_parts", array)
            if kind == "output":
                digits = ", ".join(map(str, structure(program, number)))
                yield f"static const signed char output_{number}_structure[] = {{{digits}}};"
        rows = ", ".join(_row(kind, number, array) for number, array in enumerate(arrays))
        yield f"static const neml2_kernel_array kernel_{kind}s[] = {{{rows}}};\n"
    sparse = [number for number, array in enumerate(program.outputs) if array.stored is not None]
    for number in sparse:
        digits = ", ".join(map(str, program.outputs[number].stored or (0,)))  # none: no array
        yield f"static const int32_t output_{number}_places[] = {{{digits}}};"
    if sparse:
        rows = ", ".join(
            f"{{{n}, {program.outputs[n].components}, output_{n}_places}}" for n in sparse
        )
        yield f"static const neml2_kernel_sparse sparse[] = {{{rows}}};\n"
    fields = [
        "NEML2_KERNEL_VERSION",
        "sizeof(neml2_kernel)",
        quoted(name),
        quoted(program.checksum),
        "sizeof(real)",
        "LANES",
        str(len(program.inputs)),
        str(len(program.outputs)),
        "kernel_inputs",
        "kernel_outputs",
        str(operations),
        str(kept),
        "prepare" if prepared else "0",
        "run",
        str(len(sparse)),
        "sparse" if sparse else "0",
        str(program.auxiliaries),
        *more,
    ]
    yield f"const neml2_kernel {symbol(name)} = {{"
    yield f"    {', '.join(fields)}}};"


def symbol(name: str) -> str:
    """The symbol of a kernel."""
    return f"neml2_kernel_{identifier(name)}"


def kernel_set(model: str, names: Sequence[str]) -> str:
    """The C source that lists the kernels of a model."""
    of_model = f"neml2_kernels_of_{identifier(model)}"
    declarations = [f"extern const neml2_kernel {symbol(name)};" for name in names]
    rows = ", ".join(f"&{symbol(name)}" for name in names)
    return "\n".join(
        [
            f"/* The kernels of {model}. Generated. */",
            '#include "neml2_kernel.h"',
            "",
            *declarations,
            "",
            f"static const neml2_kernel *const kernels[] = {{{rows}}};",
            "static const neml2_kernel_set set = {NEML2_KERNEL_VERSION, sizeof(neml2_kernel_set),",
            f"                                     {quoted(model)}, {len(names)}, kernels}};",
            "",
            f"const neml2_kernel_set *{of_model}(void);",
            f"const neml2_kernel_set *{of_model}(void) {{ return &set; }}",
            "",
            "#ifdef NEML2_KERNELS_SHARED",
            "/* The only symbol that a shared object exports. */",
            '__attribute__((visibility("default"))) const neml2_kernel_set *neml2_kernels(void) {',
            "  return &set;",
            "}",
            "#endif",
            "",
        ]
    )


def _parts(name: str, array: Array) -> Iterator[str]:
    if array.parts:
        rows = (f"{{{quoted(p.name)}, {p.offset}, {p.components}}}" for p in array.parts)
        yield f"static const neml2_kernel_part {name}[] = {{{', '.join(rows)}}};"


def _row(kind: str, number: int, array: Array) -> str:
    use = "NEML2_KERNEL_PER_POINT" if array.per_point else "NEML2_KERNEL_UNIFORM"
    parts = f"{kind}_{number}_parts" if array.parts else "0"
    structured = f"output_{number}_structure" if kind == "output" else "0"
    fields = [quoted(array.name), str(array.in_memory), use, str(int(array.changes))]
    fields += [str(len(array.parts)), parts, structured]
    return f"{{{', '.join(fields)}}}"
