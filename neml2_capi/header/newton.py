"""Newton's method of a system, as statements; the rules are those of text/rules.inc."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neml2_capi.header.groups import Groups, block_size, sub_matrices
from neml2_capi.header.kernels import Kernel
from neml2_capi.header.statements import Place, Statements


@dataclass(frozen=True)
class Run:
    """A kernel with its arrays, and room for what it keeps."""

    kernel: Kernel
    inputs: Sequence[Place]
    outputs: Sequence[Place]
    kept: Place | None

    def prepare(self, text: Statements) -> None:
        if self.kernel.prepares:
            arrays = ", ".join(place.pointer for place in [*self.inputs, self.kept] if place)
            text.line(f"{self.kernel.name}_prepare({arrays});")

    def call(self, text: Statements) -> None:
        arrays = [place.pointer for place in [*self.inputs, *self.outputs]]
        arrays.append(self.kept.pointer if self.kept else "0")
        text.line(f"{self.kernel.name}_run({', '.join(arrays)});")


@dataclass(frozen=True)
class Search:
    """What a line search tries: unknowns, and their residual by a kernel."""

    trial: Place
    r: Place
    run: Run


@dataclass(frozen=True)
class System:
    """An implicit segment: the arrays of its Newton's method."""

    name: str
    groups: Groups
    u: Place
    r: Place
    step: Place
    #: The Jacobian and the residual.
    run: Run
    #: The call of the function that solves with the whole Jacobian, without its last arguments.
    pivoting: str
    #: The Newton step; its last output is not 1 if its pivots are not trusted.
    newton_step: Run | None
    search: Search | None
    is_cut: bool

    @property
    def size(self) -> int:
        return self.u.components

    def solve_by_pivoting(self, text: Statements, right: Place, sides: int) -> None:
        text.line(f"singular = {self.pivoting}, {right.pointer}, {sides});")

    def solve(self, text: Statements) -> None:
        """Writes the loop. It leaves the report in of_system, and the unknowns in u."""
        search = self.search
        self.run.prepare(text)
        if search:
            search.run.prepare(text)
        text.line("of_system = new_report(not_converged);")
        text.line("norm = first = wide_fill(0.0);")
        text.line("singular = 0 != 0;")
        text.line(f"settled = 0 {'!=' if self.is_cut else '=='} 0;")
        text.begin("for (int i = 0;; ++i)")
        if search:
            text.begin("if (i == 0)")
            text.copy(self.u, search.trial)
            search.run.call(text)
            text.line(f"norm = norm_of({search.r.pointer}, {self.size});")
            text.end()
        else:
            self.run.call(text)
            text.line(f"norm = norm_of({self.r.pointer}, {self.size});")
        text.line("if (i == 0) first = norm;")
        text.line("of_system.residual_norm = plain(norm);")
        text.line("of_system.iterations = i;")
        text.line("status = newton_verdict(norm, first, singular, settled, rules);")
        text.line("if (status != undecided) of_system.status = status;")
        text.line("if (status != undecided || i + 1 >= rules.miters) break;")
        if search:
            self.run.call(text)
        self._take_step(text)
        if search:
            self._search(text, search)
        else:
            self._advance(text)
        text.end()
        text.begin("if (of_system.status != ok)")
        norm = "wide_fill(of_system.residual_norm)"
        text.line(f"of_system.suggested_cut = plain(newton_suggested_cut(first, {norm}));")
        text.end()
        text.line("add_report(&all, of_system);")

    def _take_step(self, text: Statements) -> None:
        if self.newton_step:
            self.newton_step.prepare(text)
            self.newton_step.call(text)
            text.line("singular = 0 != 0;")
            text.begin(f"if ({self.newton_step.outputs[-1].element(0)} != 1)")
        text.copy(self.r, self.step)
        self.solve_by_pivoting(text, self.step, 1)
        if self.newton_step:
            text.end()

    def _advance(self, text: Statements) -> None:
        """The full step. If increments may be cut, tells whether it was small enough."""
        if self.is_cut:
            text.line("made = wide_fill(0.0);")
        text.begin(f"for (int k = 0; k < {self.size}; ++k)")
        text.line(f"trial = {self.u.array}[k] + {self.step.array}[k];")
        if self.is_cut:
            text.line(f"difference = widened(trial - {self.u.array}[k]);")
            text.line("made += difference * difference;")
        text.line(f"{self.u.array}[k] = trial;")
        text.end()
        if self.is_cut:
            self._settle(text, "wide_square_root(made)", self.u)

    def _search(self, text: Statements, search: Search) -> None:
        """Cuts the step until the residual has decreased enough; the last trial is taken anyway."""
        n, u, trial = self.size, self.u, search.trial
        text.line("before = norm;")
        text.line(f"slope = product_with({search.r.pointer}, {self.step.pointer}, {n});")
        text.line("alpha = wide_fill(1.0);")
        text.begin("for (int j = 1; j < rules.ls_max_iters; ++j)")
        text.begin(f"for (int k = 0; k < {n}; ++k)")
        step = f"narrowed(alpha) * {self.step.array}[k]"
        text.line(f"{trial.array}[k] = {u.array}[k] + {step};")
        text.end()
        search.run.call(text)
        text.line(f"norm = norm_of({search.r.pointer}, {n});")
        text.line("if (newton_has_decreased(norm, before, alpha, slope, rules)) break;")
        text.line("alpha = alpha / rules.ls_cutback;")
        text.end()
        if self.is_cut:
            self._settle(text, f"distance_of({trial.pointer}, {u.pointer}, {n})", trial)
        text.copy(trial, u)

    def _settle(self, text: Statements, made: str, trial: Place) -> None:
        size = f"norm_of({trial.pointer}, {self.size})"
        text.line(f"settled = newton_has_settled({made}, {size}, rules);")


def pivoting(
    name: str, kernel: Kernel, rows: Groups, columns: Groups
) -> tuple[str, Statements, list[int]]:
    """The function that puts a Jacobian together and solves with the whole of it.

    Returns its head, its statements, and which outputs of the kernel it takes.
    """
    text, n = Statements(), columns.size
    known = len(rows.all) * len(columns.all)
    blocks = list(range(known))
    matrix = text.place("matrix", n * n)
    if known == 1 and not kernel.sparse and rows.all[0].sites == 1:
        text.copy(Place("block_0", 0, n * n), matrix)
    else:
        text.copy(None, matrix)
        pairs = [(row, column) for row in rows.all for column in columns.all]
        for k, (row, column) in enumerate(pairs):
            places = [0] * block_size(row, column)
            for part in sub_matrices(row, column):
                for r in range(part.rows):
                    for c in range(part.columns):
                        to = (part.row + r) * n + part.column + c
                        places[part.at + r * part.stride + c] = to
            if k in kernel.sparse:
                places = [places[p] for p in kernel.sparse[k]]
            text.line(f"place(block_{k}, {text.table(places)}, {len(places)}, {matrix.pointer});")
    if kernel.auxiliaries:
        by = known + len(rows.all)
        blocks += [by, by + 1]
        slopes = text.place("slopes", kernel.auxiliaries * n)
        stored = [
            f"block_{k}, {text.table(kernel.sparse[k])}, {len(kernel.sparse[k])}"
            for k in blocks[-2:]
        ]
        rest = f"{n}, {kernel.auxiliaries}, {slopes.pointer}, {matrix.pointer}"
        text.line(f"substitute({', '.join(stored)}, {rest});")
    text.line(f"return solve({matrix.pointer}, right, {n}, sides);")
    given = ", ".join([*(f"const lanes *block_{k}" for k in blocks), "lanes *right", "int sides"])
    return f"FUNCTION mask {name}({given})", text, blocks
