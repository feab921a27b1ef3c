"""Newton's method of a system, as statements, by the rules of text/rules.inc."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neml2_capi.header.definitions import Definition
from neml2_capi.header.groups import Groups, block_size, sub_matrices
from neml2_capi.header.kernels import Kernel
from neml2_capi.header.statements import Place, Statements
from neml2_capi.kernels.systems import Group

#: A walk without care leaves a point whose pivots are not trusted to one that exchanges rows: its
#: matrix is indexed by numbers of the run, and would keep all arrays of the walk in memory. So it
#: does a point that fails, whose results take registers.
LEAVE = "if (!careful) { told->status = undecided; return; }"


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
    """What a line search takes: the residual of a trial, by a kernel."""

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
    #: The unknowns behind a step, if they do not take the place of those before at once.
    trial: Place | None
    search: Search | None
    #: How often an increment may be halved.
    levels: int

    @property
    def size(self) -> int:
        return self.u.components

    @property
    def is_cut(self) -> bool:
        """Whether the increment of a point that fails is cut."""
        return self.levels > 0

    def solve_by_pivoting(self, right: Place, sides: int | str) -> str:
        """The statement, which overwrites right-hand sides with solutions."""
        return f"singular = {self.pivoting}, {right.pointer}, {sides});"

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
            text.copy(self.u, self.trial or self.u)
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
        to = self.trial or self.u
        if search:
            self._search(text, search, to)
        else:
            self._step(text, to, f"{self.step.array}[k]")
        if self.is_cut:
            sizes = f"distance_of({to.pointer}, {self.u.pointer}, {self.size})"
            sizes += f", norm_of({to.pointer}, {self.size})"
            text.line(f"settled = newton_has_settled({sizes}, rules);")
        if self.trial:
            text.copy(self.trial, self.u)
        text.end()

    def report(self, text: Statements) -> None:
        """Adds the report of the system to those before."""
        text.begin("if (of_system.status != ok)")
        text.line(LEAVE)
        norm, initial = "wide_fill(of_system.residual_norm)", "first"
        if self.is_cut:
            initial = "whole_first"
        text.line(f"of_system.suggested_cut = plain(newton_suggested_cut({initial}, {norm}));")
        text.end()
        if self.is_cut:
            text.line("of_system.iterations = spent;")
        text.line("add_report(&all, of_system);")

    def _take_step(self, text: Statements) -> None:
        if self.newton_step:
            self.newton_step.prepare(text)
            self.newton_step.call(text)
            text.line("singular = 0 != 0;")
            text.begin(f"if ({self.newton_step.outputs[-1].element(0)} != 1)")
            text.line(LEAVE)
        text.copy(self.r, self.step)
        text.line(self.solve_by_pivoting(self.step, 1))
        if self.newton_step:
            text.end()

    def _step(self, text: Statements, to: Place, step: str) -> None:
        text.begin(f"for (int k = 0; k < {self.size}; ++k)")
        text.line(f"{to.array}[k] = {self.u.array}[k] + {step};")
        text.end()

    def _search(self, text: Statements, search: Search, trial: Place) -> None:
        """Cuts the step until the residual has decreased enough; the last trial is taken anyway."""
        text.line("before = norm;")
        text.line(f"slope = product_with({search.r.pointer}, {self.step.pointer}, {self.size});")
        text.line("alpha = wide_fill(1.0);")
        text.begin("for (int j = 1; j < rules.ls_max_iters; ++j)")
        self._step(text, trial, f"narrowed(alpha) * {self.step.array}[k]")
        search.run.call(text)
        text.line(f"norm = norm_of({search.r.pointer}, {self.size});")
        text.line("if (newton_has_decreased(norm, before, alpha, slope, rules)) break;")
        text.line("alpha = alpha / rules.ls_cutback;")
        text.end()


def pivoting(
    name: str, kernel: Kernel, rows: Groups, columns: Groups
) -> tuple[Definition, list[int]]:
    """The function that puts a Jacobian together and solves with the whole of it.

    Returns it, and which outputs of the kernel it takes.
    """
    text, n = Statements(), columns.size
    pairs = [(row, column) for row in rows.all for column in columns.all]
    blocks = [k for k in range(len(pairs)) if kernel.sparse.get(k) != ()]  # others are zero
    matrix = text.place("matrix", n * n)
    text.copy(None, matrix)
    for k, (row, column) in enumerate(pairs):
        places = _places(row, column, n)
        if k in kernel.sparse:
            places = [places[p] for p in kernel.sparse[k]]
        for slot, to in enumerate(places):
            text.line(f"{matrix.array}[{to}] = block_{k}[{slot}];")
    if kernel.auxiliaries:
        by = len(pairs) + len(rows.all)
        blocks += [by, by + 1]
        _substitute(text, kernel, by, matrix, n)
    text.line(f"return solve({matrix.pointer}, right, {n}, sides);")
    given = ", ".join([*(f"const lanes *block_{k}" for k in blocks), "lanes *right", "int sides"])
    return text.function(f"FUNCTION mask {name}({given})"), blocks


def _places(row: Group, column: Group, n: int) -> list[int]:
    """Where the components of a block are in the whole matrix."""
    places = [0] * block_size(row, column)
    for part in sub_matrices(row, column):
        for r in range(part.rows):
            for c in range(part.columns):
                to = (part.row + r) * n + part.column + c
                places[part.at + r * part.stride + c] = to
    return places


def _substitute(text: Statements, kernel: Kernel, by: int, matrix: Place, n: int) -> None:
    """Adds what residuals depend on through auxiliary unknowns w: dr/dw dw/du.

    Each w depends on unknowns and on those before it.
    """
    count = kernel.auxiliaries
    slopes = text.place("slopes", n * count)
    text.copy(None, slopes)
    of = [(slot, *divmod(p, n + count)) for slot, p in enumerate(kernel.sparse[by + 1])]
    for slot, row, column in of:
        if column < n:
            text.line(f"{slopes.element(row * n + column)} = block_{by + 1}[{slot}];")
    rows = [(by + 1, *entry, slopes) for entry in of]
    rows = [(k, slot, row, column - n, to) for k, slot, row, column, to in rows if column >= n]
    rows += [(by, slot, *divmod(p, count), matrix) for slot, p in enumerate(kernel.sparse[by])]
    for k, slot, row, column, to in rows:
        source, into = slopes.from_(column * n, n), to.from_(row * n, n)
        text.line(f"add_row(block_{k}[{slot}], {source.pointer}, {into.pointer}, {n});")
