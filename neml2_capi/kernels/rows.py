"""A second function of a small kernel: it reads and writes rows of points, without scratch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from neml2_capi.kernels.program import Program
from neml2_capi.kernels.schedule import LONG, Schedule

#: The function that run_rows() calls, before its definition.
DECLARATION = (
    "#ifdef NEML2_KERNEL_ROWS",
    "static INTO_ROWS void run(const void *const *inputs, void *const *outputs, "
    "const void *results);",
    "#endif\n",
)
#: More of them stay in no registers, and take longer than their rows.
_MOST_OPERATIONS, _MOST_COMPONENTS = 100, 24


def takes_rows(program: Program, schedule: Schedule) -> bool:
    """Tell whether a kernel has such a function.

    Parameters
    ----------
    program : Program
        Its operations.
    schedule : Schedule
        Their order.

    Returns
    -------
    bool
        It is of a few short operations on doubles, and its arrays are of shapes that rows.h has.
    """
    given = [array.components for array in program.inputs]
    made = [array.in_memory for array in program.outputs]
    return (
        program.real == "float64"
        and not schedule.prepare
        and len(schedule.run) == 1
        and program.operations <= _MOST_OPERATIONS
        and sum(given) + sum(made) <= _MOST_COMPONENTS
        and set(made) <= {1, 6}
        and all(array.stored is None for array in program.outputs)
        and not {name for name, *_ in program.steps} & LONG
    )


def function_of_rows(
    program: Program, inputs: Sequence[str], outputs: Sequence[str]
) -> Iterator[str]:
    """The lines of run_rows(), which calls run(); `inputs` and `outputs` are names of arrays."""
    given = [array.components for array in program.inputs]
    made = [array.components for array in program.outputs]
    arrays = [*zip(inputs, given, strict=True), *zip(outputs, made, strict=True)]
    numbers = [f"{name}[{c}]" for name, count in arrays for c in range(count)]
    yield "#ifdef NEML2_KERNEL_ROWS"
    yield "static int64_t run_rows(const void *const *inputs, const int64_t *strides,"
    yield "                        void *const *outputs, int64_t blocks) {"
    yield "  for (int64_t block = 0; block < blocks; ++block) {"
    yield f"    lanes {', '.join(f'{name}[{count}]' for name, count in arrays)};"
    yield f"    const void *const given[] = {{{', '.join(inputs) or '0'}}};"
    yield f"    void *const made[] = {{{', '.join(outputs)}}};"
    for number, (name, count) in enumerate(zip(inputs, given, strict=True)):
        rows = f"(const double *)inputs[{number}] + block * LANES * strides[{number}]"
        for c in range(0, count, 2):
            shape = "pair" if c + 1 < count else "column"
            yield f"    {shape}_from_rows({rows} + {c}, strides[{number}], {name} + {c});"
    yield "    run(given, made, 0);"
    yield f"    if (!are_finite({_sum(numbers)})) return block;"
    for number, (name, count) in enumerate(zip(outputs, made, strict=True)):
        rows = f"(double *)outputs[{number}] + block * LANES * {count}"
        yield f"    {'tensor' if count == 6 else 'column'}_to_rows({name}, {rows});"
    yield "  }"
    yield "  return blocks;"
    yield "}"
    yield "#else"
    yield "#define run_rows 0"
    yield "#endif\n"


def _sum(terms: Sequence[str]) -> str:
    """A sum in which few additions wait for another."""
    if len(terms) < 3:
        return " + ".join(terms)
    half = len(terms) // 2
    return f"({_sum(terms[:half])}) + ({_sum(terms[half:])})"
