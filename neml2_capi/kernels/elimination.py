"""The Newton step of a residual, from its Jacobian, as a straight line of operations.

It is Gaussian elimination with pivots that are chosen once, so that few entries come into being
(Markowitz, Management Science 3, 1957).
Whether the pivots were good for a point is an output: the caller solves again, with row pivoting,
if they were not.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Sequence

from neml2_capi.kernels.equal_pivots import by_equal_pivots
from neml2_capi.kernels.exchanges import solved_with_pairs
from neml2_capi.kernels.matrix import ONE, Alike, Entry, Matrix, entries_of, is_zero
from neml2_capi.kernels.program import Array, Program, program_of
from neml2_capi.kernels.scalar import Node, Scalars, constant_of

#: By how much the products that change a pivot may exceed it, before and after.
GROWTH = 1e3
#: By how much the products that make an unknown may exceed it: so much of it is round-off.
LOSS = 1e8
#: The reciprocal of a pivot is finite.
_LARGEST = 1e300
#: A step of so many operations is always a straight line, and a longer one if a loop over the dense
#: matrix takes _TIMES as many: that code stays in the instruction cache.
MOST_OPERATIONS = 50_000
_TIMES = 4
#: A step of more unknowns prepares its factors, for several right-hand sides; the engine factorises
#: a smaller matrix in the first-level cache for them.
_MOST_FACTORISED = 40


def newton_step(jacobian: Program, groups: Sequence[int]) -> Program | None:
    """The step of a residual whose unknowns are in groups of these sizes.

    Parameters
    ----------
    jacobian : Program
        It returns blocks of dr/du, group by group, and then the groups of -r.
    groups : Sequence[int]
        The sizes of the groups of unknowns, which the residual has too.

    Returns
    -------
    Program | None
        It takes what the Jacobian returns, and returns the groups of the step and `trusted`: 1
        if the pivots were good. None if the Jacobian is of another form, or a loop is better.
    """
    total = sum(groups)
    sizes = [m * n for m in groups for n in groups] + list(groups)
    if [array.components for array in jacobian.outputs] != sizes:
        return None
    s = Scalars(notes=False)  # the zeros of the matrix are known
    matrix = Matrix(s, jacobian, entries_of(jacobian, groups), total)
    sides = _sides(s, groups)
    most = max(MOST_OPERATIONS, dense_operations(total) // _TIMES)
    eliminated = _eliminated(s, matrix, sides, [None] * total, GROWTH, most)
    if not eliminated:
        return None
    made = _step(jacobian, groups, *eliminated, keeps=total > _MOST_FACTORISED)
    return made if made.operations <= most else None


def newton_step_by_sites(
    jacobian: Program,
    entries: Sequence[Entry],
    groups: Sequence[int],
    sites: Sequence[int | None],
    exchanges: bool = False,
) -> Program:
    """The step of a residual whose unknowns belong to sites, eliminated one site after the other.

    Parameters
    ----------
    jacobian : Program
        It returns what `entries` tells, the groups of -r among it.
    entries : Sequence[Entry]
        Of dr/du, by row and column. Behind the unknowns are auxiliary ones, whose equations have
        no right-hand side.
    groups : Sequence[int]
        The sizes of the groups of unknowns.
    sites : Sequence[int | None]
        By row and column: the site, None if all sites share it.
    exchanges : bool
        Whether rows that all sites share are exchanged, each point for itself: what is given there,
        a strain or a stress, may decide which unknown an equation is for.

    Returns
    -------
    Program
        It takes what the Jacobian returns, and returns the groups of the step and `trusted`.
    """
    made = _step_of(jacobian, entries, groups, sites, exchanges, None)
    assert made
    return made


def newton_step_of_equal_pivots(
    jacobian: Program, entries: Sequence[Entry], groups: Sequence[int], total: int, most: int
) -> Program | None:
    """The step without sites, in which products of equal pivots are added up before division.

    None if it takes more than `most` operations; `total` counts auxiliary unknowns, too.
    """
    made = _step_of(jacobian, entries, groups, [None] * total, False, most)
    return made if made and made.operations <= most else None


def _step_of(
    jacobian: Program,
    entries: Sequence[Entry],
    groups: Sequence[int],
    sites: Sequence[int | None],
    exchanges: bool,
    grouped: int | None,
) -> Program | None:
    sited = any(site is not None for site in sites)
    s = Alike(notes=False) if sited else Scalars(notes=False)
    # Each site has entries of its own, so that all look alike. To solve again would take far longer
    # than a Newton step more, and one pivot of many decides: much of a step may be round-off.
    matrix = Matrix(s, jacobian, entries, len(sites), equal=not sited)
    sides = _sides(s, groups)
    for number in range(len(sides), len(sites)):  # w - w(u, w) = 0
        matrix.forms[number][number] = {ONE: 1.0}
        matrix.rows[number][number] = s.constant(1.0)
        sides.append(s.constant(0.0))
    is_grouped = grouped is not None
    eliminated = _eliminated(s, matrix, sides, sites, LOSS, grouped, exchanges, is_grouped)
    return eliminated and _step(jacobian, groups, *eliminated, keeps=not sited)


def _sides(s: Scalars, groups: Sequence[int]) -> list[Node]:
    """-r, whose groups follow the blocks of the Jacobian."""
    first = len(groups) ** 2
    return [s.variable(first + i, r) for i, n in enumerate(groups) for r in range(n)]


def _step(
    jacobian: Program,
    groups: Sequence[int],
    solution: Sequence[Node],
    trusted: Node,
    keeps: bool = False,
) -> Program:
    """The kernel of a step; it may keep the factors for other right-hand sides."""
    results, at = [], 0
    for n in groups:
        results.append(list(solution[at : at + n]))
        at += n
    names = [f"step_{i}" if len(groups) > 1 else "step" for i in range(len(groups))]
    outputs = [Array(name, (n,)) for name, n in zip(names, groups, strict=True)]
    first = len(groups) ** 2  # of the groups of -r
    sides = range(first, first + len(groups))
    inputs = [
        Array(array.name, (array.in_memory,), changes=keeps and number in sides)
        for number, array in enumerate(jacobian.outputs)
    ]
    made = program_of(inputs, [*outputs, Array("trusted", ())], [*results, [trusted]])
    made.real = jacobian.real
    # Of the graph of the Jacobian: it decides.
    made.checksum = hashlib.sha256(f"step {jacobian.checksum}".encode()).hexdigest()
    return made


def dense_operations(total: int) -> int:
    """What Gaussian elimination and the two substitutions take for a matrix without zeros."""
    return 2 * total**3 // 3 + 2 * total**2


def _eliminated(
    s: Scalars,
    matrix: Matrix,
    sides: list[Node],
    sites: Sequence[int | None],
    growth: float,
    limit: int | None,
    exchanges: bool = False,
    grouped: bool = False,
) -> tuple[list[Node], Node] | None:
    """The solution, and 1 or 0 for whether it is to be trusted; None for more operations."""
    rows, total, given = [dict(row) for row in matrix.rows], len(sides), list(sides)
    above: list[set[int]] = [set() for _ in range(total)]  # the rows that have a column
    for i, entries in enumerate(rows):
        for j in entries:
            above[j].add(i)
    changes: dict[tuple[int, int], list[Node]] = defaultdict(list)
    pivots: list[tuple[int, int]] = []
    inverses: list[Node] = []
    left, columns = dict.fromkeys(range(total)), dict.fromkeys(range(total))
    begin = len(s.nodes)
    zero = s.constant(0.0)

    def subtract(i: int, j: int, change: Node) -> None:
        made = s.sub(rows[i].get(j, zero), change)
        if is_zero(made):
            rows[i].pop(j, None)
            above[j].discard(i)
        else:
            rows[i][j] = made
            above[j].add(i)

    for among in _stages(sites):
        if among is None and exchanges:
            break
        # Contributions of a site to equations that all sites share are added up first.
        shares: dict[tuple[int, int], Node] = {}
        of_sides: dict[int, Node] = {}
        last: Node | None = None
        while pivot := _cheapest(rows, above, matrix, left, columns, among, last):
            last = rows[pivot[0]][pivot[1]] if grouped else None
            if limit and len(s.nodes) - begin > limit:
                return None
            row, column = pivot
            s.site = sites[row]
            pivots.append((row, column))
            del left[row], columns[column]
            rest = sorted(j for j in rows[row] if j in columns)
            inverses.append(s.div(s.constant(1.0), rows[row][column]))
            for i in sorted(i for i in above[column] if i in left):
                factor = s.mul(rows[i][column], inverses[-1])
                for j in rest:
                    change = s.mul(factor, rows[row][j])
                    if is_zero(change):
                        continue
                    changes[i, j].append(change)
                    if among is not None and sites[i] is None and sites[j] is None:
                        shares[i, j] = s.add(shares[i, j], change) if (i, j) in shares else change
                    else:
                        subtract(i, j, change)
                change = s.mul(factor, sides[row])
                if among is not None and sites[i] is None:
                    of_sides[i] = s.add(of_sides[i], change) if i in of_sides else change
                else:
                    sides[i] = s.sub(sides[i], change)
        for (i, j), share in shares.items():
            subtract(i, j, share)
        for i, share in of_sides.items():
            sides[i] = s.sub(sides[i], share)
    if grouped:
        rows, sides, inverses, changes = by_equal_pivots(s, matrix.rows, given, pivots)
    found = [rows[i].get(j, zero) for i, j in pivots]
    checks = []
    for (i, j), pivot_value, inverse in zip(pivots, found, inverses, strict=True):
        if constant_of(pivot_value) in (None, 0):
            s.site = sites[i]
            before = matrix.rows[i].get(j, zero)
            checks.append(_good(s, before, inverse, changes[i, j], growth))
    filled = [place for place, (i, j) in enumerate(pivots) if j not in matrix.rows[i]]
    order = {column: place for place, (_, column) in enumerate(pivots)}
    solution = list(sides)
    if left:
        s.site = None
        order.update((column, total + k) for k, column in enumerate(columns))
        dense = [[rows[i].get(j, zero) for j in columns] for i in left]
        values, nonzero = solved_with_pairs(s, dense, [sides[i] for i in left])
        checks += nonzero
        for column, value in zip(columns, values, strict=True):
            solution[column] = value
    for place in range(len(pivots) - 1, -1, -1):
        row, column = pivots[place]
        s.site = sites[row]
        value, size = sides[row], s.function("abs", sides[row])
        for other in sorted((j for j in rows[row] if order[j] > place), key=order.__getitem__):
            product = s.mul(rows[row][other], solution[other])
            value, size = s.sub(value, product), s.add(size, s.function("abs", product))
        # A later pivot that was made of nothing does not tell whether this one was too small, so
        # that nothing was left of an equation. Its constant part tells, or else its own unknown.
        if filled and place < filled[-1]:
            if (part := matrix.constant(row, column)) >= 1.0 / GROWTH:
                most, tested, least = GROWTH, found[place], s.constant(part)
            else:
                most, tested, least = LOSS, value, size
            checks.append(s.ge(s.mul(s.constant(most), s.function("abs", tested)), least))
        solution[column] = s.mul(value, inverses[place])
    return solution, s.number(_all(s, checks))


def _stages(sites: Sequence[int | None]) -> list[Collection[int] | None]:
    """The rows and columns of each site; None for all that are left then."""
    by_site: dict[int, dict[int, None]] = defaultdict(dict)
    for number, site in enumerate(sites):
        if site is not None:
            by_site[site][number] = None
    return [*(by_site[site] for site in sorted(by_site)), None]


def _all(s: Scalars, checks: Sequence[Node]) -> Node:
    """Whether all hold."""
    if not checks:
        return s.constant(1.0)
    total, *others = dict.fromkeys(checks)
    for check in others:
        s.site = check.site
        total = s.and_(total, check)
    return total


def _good(s: Scalars, before: Node, inverse: Node, changes: Sequence[Node], most: float) -> Node:
    """Whether the sum of what a pivot is made of exceeds it by `most` at no time."""
    after = s.function("abs", inverse)
    if not changes:
        return s.gt(s.constant(_LARGEST), after)
    own = s.site
    size = s.function("abs", changes[0])
    for change in changes[1:]:
        s.site = change.site
        size = s.add(size, s.function("abs", change))
    s.site = own
    start, growth = s.function("abs", before), s.constant(most)
    kept = s.gt(growth, s.mul(s.add(start, size), after))
    return kept if is_zero(before) else s.and_(kept, s.ge(s.mul(growth, start), size))


def _cheapest(
    rows: list[dict[int, Node]],
    above: list[set[int]],
    matrix: Matrix,
    left: Collection[int],
    columns: Collection[int],
    among: Collection[int] | None,
    last: Node | None = None,
) -> tuple[int, int] | None:
    """The pivot that makes the fewest products, of those that are 1 and something if there are.

    Its row and column are `among` these; None if no entry is.
    """
    wanted = left if among is None else [i for i in among if i in left]
    heights: dict[int, int] = {}
    best = None
    for i in wanted:
        entries = [j for j in rows[i] if j in columns]
        for j in entries:
            if among is not None and j not in among:
                continue
            if j not in heights:
                heights[j] = sum(r in left for r in above[j]) - 1
            products = heights[j] * (len(entries) - 1)
            is_other = rows[i][j] is not last
            cost = (not matrix.constant(i, j), is_other, products, i != j, i, j)
            if best is None or cost < best:
                best = cost
    if best:
        return best[-2:]
    return (next(iter(left)), next(iter(columns))) if among is None and left else None
