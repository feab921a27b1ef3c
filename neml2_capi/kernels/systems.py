"""A residual with sites: its Jacobian, in the blocks that the artifact has, and the Newton step."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from neml2_capi.kernels.apart import (
    set_apart,
    step_without_vanishing,
    without_vanishing_entries,
)
from neml2_capi.kernels.derivatives import Linearized, linearized
from neml2_capi.kernels.elimination import (
    newton_step_by_sites,
    newton_step_of_equal_pivots,
)
from neml2_capi.kernels.labels import LEAST_SITES, Origin, labelled, of_plain, of_variables
from neml2_capi.kernels.matrix import Entry
from neml2_capi.kernels.program import Array, NoKernel, Program, program_of
from neml2_capi.kernels.scalar import Node
from neml2_capi.kernels.vertices import joined

_Json = dict[str, Any]

#: The system of a longer residual is made in one way alone, which takes half the time.
_MOST_TRIED = 20_000
#: Equations beside blocks of sites, whose rows are exchanged.
_MOST_SHARED = 40


class Group(NamedTuple):
    """Unknowns side by side; if it is of blocks, site by site."""

    first: int
    sites: int
    width: int

    @property
    def size(self) -> int:
        return self.sites * self.width


@dataclass(frozen=True)
class System:
    """The kernels of an implicit segment with sites, and what their inputs are."""

    jacobian: Program
    step: Program
    #: By input of the Jacobian, and of the step: what each component is.
    givens: list[list[Origin]]
    entries: list[list[Origin]]


def has_many_of_one_kind(segment: _Json) -> bool:
    """Whether an implicit segment has many unknowns that differ in a number alone."""
    groups = segment["unknown_group_infos"]
    return bool(_of_one_kind([v for group in groups for v in group["per_var_info"]]))


def _of_one_kind(variables: Sequence[_Json]) -> dict[str, tuple[str, int]]:
    """Variables that differ in a number alone, as X1, X2, ...: their kind, and which they are."""
    kinds: dict[tuple[str, tuple[int, ...]], list[str]] = defaultdict(list)
    for v in variables:
        if not v["sub_batch_shape"]:
            kind = re.sub(r"\d+", "#", v["name"], count=1)
            kinds[kind, tuple(v["base_shape"])].append(v["name"])
    return {
        name: (kind[0], number)
        for kind, names in kinds.items()
        if len(names) >= LEAST_SITES
        for number, name in enumerate(names)
    }


def inputs_of(program: Program, segment: _Json) -> list[list[Origin]]:
    """What the components of the inputs of a residual are: unknowns, givens, parameters."""
    groups = [*segment["unknown_group_infos"], *segment["given_group_infos"]]
    found = [_origins(group) for group in groups]
    sites = max(
        (site + 1 for origins in found for _, site in origins if site is not None), default=0
    )
    for array in program.inputs[len(groups) :]:
        found.append(of_plain(array, sites))
    return found


def _origins(group: _Json) -> list[Origin]:
    variables = group["per_var_info"]
    shapes = [(v["sub_batch_shape"], v["base_shape"]) for v in variables]
    found = of_variables(shapes, by_site=group.get("structure") == "block")
    at, kinds = 0, _of_one_kind(variables)
    for v in variables if kinds else ():
        size = math.prod([*v["sub_batch_shape"], *v["base_shape"]])
        if v["name"] in kinds:
            kind, number = kinds[v["name"]]
            found[at : at + size] = [((kind, c), number) for c in range(size)]
        at += size
    return found


def _groups(infos: Sequence[_Json]) -> list[Group]:
    found, first = [], 0
    for info in infos:
        size = len(_origins(info))
        sites = math.prod(info["sub_batch_shape"]) if info.get("structure") == "block" else 1
        found.append(Group(first, sites, size // sites))
        first += size
    return found


def system_of(residual: Program, segment: _Json) -> System:
    """The Jacobian and the step of a residual with sites.

    Raises
    ------
    NoKernel
        An operation has no derivative, or an artifact's blocks cannot hold what depends on what.
    """
    givens = inputs_of(residual, segment)
    origins = [o for of_group in givens[: len(segment["unknown_group_infos"])] for o in of_group]
    sites = [site for _, site in origins]
    marked = replace(residual, sites=labelled(residual, givens))
    numbers = _numbers(residual, segment)
    found = []
    for joins in (False, True) if residual.operations < _MOST_TRIED else (False,):
        made = linearized(marked, numbers, sites, joins)
        found.append(_system(residual, segment, made, givens, origins))
    return min(found, key=lambda s: s.jacobian.operations + s.step.operations)


def joined_systems_of(residual: Program, segment: _Json) -> Iterator[System]:
    """Jacobians and steps of a residual whose unknowns stand in one group, without sites.

    Raises
    ------
    NoKernel
        An operation has no derivative.
    """
    givens: list[list[Origin]] = [
        [((n, c), None) for c in range(a.components)] for n, a in enumerate(residual.inputs)
    ]
    numbers = _numbers(residual, segment)
    unknown = [n for n, of_input in enumerate(numbers) if of_input]
    for slopes, last in itertools.product((False, True), repeat=2):
        apart = set_apart(residual, unknown, slopes)
        for made in joined(apart, numbers, last):
            cleaned = without_vanishing_entries(made, residual.inputs)
            packed = _packed(segment, cleaned, givens[0])
            jacobian = packed.program(residual)
            entries, count = packed.entries(jacobian), len(givens[0])
            total = count + len(cleaned.auxiliaries)
            step = newton_step_by_sites(jacobian, entries, [count], [None] * total)
            most = step.operations
            others = newton_step_of_equal_pivots(jacobian, entries, [count], total, most)
            for each in (step, others) if others else (step,):
                cleaned_step = step_without_vanishing(each, jacobian)
                yield System(jacobian, cleaned_step, givens, packed.origins)


def _numbers(residual: Program, segment: _Json) -> list[Sequence[int] | None]:
    """By input: the numbers of the unknowns that it holds."""
    found: list[Sequence[int] | None] = [None] * len(residual.inputs)
    for number, group in enumerate(_groups(segment["unknown_group_infos"])):
        found[number] = range(group.first, group.first + group.size)
    return found


def _system(
    residual: Program,
    segment: _Json,
    made: Linearized,
    givens: list[list[Origin]],
    origins: list[Origin],
) -> System:
    packed = _packed(segment, made, origins)
    unknowns = _groups(segment["unknown_group_infos"])
    jacobian = packed.program(residual)
    sites = [*(site for _, site in origins), *made.sites]
    sizes = [group.size for group in unknowns]
    exchanges = any(group.sites > 1 for group in unknowns) and sites.count(None) <= _MOST_SHARED
    step = newton_step_by_sites(jacobian, packed.entries(jacobian), sizes, sites, exchanges)
    return System(jacobian, step, givens, packed.origins)


def _packed(segment: _Json, made: Linearized, origins: list[Origin]) -> _Packed:
    unknowns, rows = (_groups(segment[f"{k}_group_infos"]) for k in ("unknown", "residual"))
    of_rows = [o for info in segment["residual_group_infos"] for o in _origins(info)]
    if len(of_rows) != len(origins) or len(made.gradients) != len(origins):
        raise NoKernel("it has more or fewer equations than unknowns")
    return _Packed(made, rows, unknowns, of_rows, origins)


class _Packed:
    """dr/du in blocks of groups, -r, and what auxiliary unknowns need: sparse, all of them."""

    def __init__(
        self,
        made: Linearized,
        rows: Sequence[Group],
        columns: Sequence[Group],
        of_rows: Sequence[Origin],
        of_columns: Sequence[Origin],
    ) -> None:
        self._made, self._rows, self._columns = made, rows, columns
        self._of_rows, self._of_columns = of_rows, of_columns
        self._total, self._extra = len(of_columns), len(made.auxiliaries)
        seen: Counter[int | None] = Counter()
        self._of_extra: list[Origin] = []
        for site in made.sites:  # of those of a site, the first is like the first of another one
            self._of_extra.append((("auxiliary", seen[site]), site))
            seen[site] += 1
        #: By array: row, column and value by component.
        self._arrays: list[dict[int, tuple[int, int, Node]]] = []
        self._shapes: list[tuple[int, ...]] = []
        self._pack()
        self.origins = [
            [self._origin(array[c][0], array[c][1]) for c in sorted(array)]
            for array in self._arrays[: len(rows) * len(columns)]
        ]
        self.origins += [list(of_rows[g.first : g.first + g.size]) for g in rows]
        self.origins += [
            [self._origin(array[c][0], array[c][1]) for c in sorted(array)]
            for array in self._arrays[len(rows) * len(columns) :]
        ]

    def _pack(self) -> None:
        s = self._made.scalars
        for rows in self._rows:
            for columns in self._columns:
                sites = max(rows.sites, columns.sites)
                self._shapes.append((*((sites,) if sites > 1 else ()), rows.width, columns.width))
                self._arrays.append({})
        for row, gradient in enumerate(self._made.gradients):
            i = next(n for n, g in enumerate(self._rows) if row < g.first + g.size)
            for column, value in gradient.items():
                if column >= self._total:
                    continue
                j = next(n for n, g in enumerate(self._columns) if column < g.first + g.size)
                at = _component(self._rows[i], self._columns[j], row, column)
                s.site = value.site
                self._arrays[i * len(self._columns) + j][at] = row, column, s.neg(value)
        if not self._extra:
            return
        by_auxiliaries: dict[int, tuple[int, int, Node]] = {}
        for row, gradient in enumerate(self._made.gradients):
            for column, value in gradient.items():
                if column >= self._total:
                    s.site = value.site
                    at = row * self._extra + column - self._total
                    by_auxiliaries[at] = row, column, s.neg(value)
        width = self._total + self._extra
        auxiliaries = {
            k * width + column: (self._total + k, column, value)
            for k, gradient in enumerate(self._made.auxiliaries)
            for column, value in gradient.items()
        }
        self._arrays += [by_auxiliaries, auxiliaries]
        self._shapes += [(self._total, self._extra), (self._extra, width)]

    def _origin(self, row: int, column: int) -> Origin:
        """What an entry is, the same at all sites: its row, its column, how far apart they are."""
        first, one = self._of_rows[row] if row < self._total else self._of_extra[row - self._total]
        second, two = (
            self._of_columns[column]
            if column < self._total
            else self._of_extra[column - self._total]
        )
        apart = two - one if one is not None and two is not None else None
        return (first, second, apart), two if one is None else one

    def program(self, residual: Program) -> Program:
        """The Jacobian: blocks, the groups of -r, and then dr/dw and dw/d(u, w)."""
        count = len(self._rows) * len(self._columns)
        names = [f"block_{k}" for k in range(count)] if count > 1 else ["jacobian"]
        outputs, results = [], []
        for name, shape, array in zip(names, self._shapes, self._arrays, strict=False):
            outputs.append(Array(name, shape, stored=tuple(sorted(array))))
            results.append([array[component][2] for component in sorted(array)])
        for number, group in enumerate(self._rows):
            shape = (*((group.sites,) if group.sites > 1 else ()), group.width)
            name = f"residual_{number}" if len(self._rows) > 1 else "residual"
            outputs.append(Array(name, shape))
            results.append(self._made.values[group.first : group.first + group.size])
        names = ["by_auxiliaries", "auxiliaries"]
        for name, shape, array in zip(
            names, self._shapes[count:], self._arrays[count:], strict=False
        ):
            outputs.append(Array(name, shape, stored=tuple(sorted(array))))
            results.append([array[component][2] for component in sorted(array)])
        made = program_of(residual.inputs, outputs, results)
        made.real, made.graph_nodes = residual.real, residual.graph_nodes
        made.auxiliaries = self._extra
        made.checksum = hashlib.sha256(f"jacobian {residual.checksum}".encode()).hexdigest()
        return made

    def entries(self, jacobian: Program) -> list[Entry]:
        """Of the system with its auxiliary unknowns, whose rows are w - w(u, w) = 0."""
        count, residuals = len(self._rows) * len(self._columns), len(self._rows)
        found = []
        for number, array in enumerate(self._arrays):
            output = number if number < count else number + residuals
            places = jacobian.results[output]
            for slot, component in enumerate(sorted(array)):
                row, column, _ = array[component]
                sign = -1 if row >= self._total else 1
                found.append(Entry(row, column, places[slot], (output, slot), sign))
        return sorted(found)


def _component(rows: Group, columns: Group, row: int, column: int) -> int:
    """Where an entry stands in a block: see capi/tensor/blocks.h."""
    r, c = row - rows.first, column - columns.first
    if columns.sites == 1:
        return r * columns.width + c
    site, c = divmod(c, columns.width)
    if rows.sites > 1:
        own, r = divmod(r, rows.width)
        if own != site:
            raise NoKernel("sites of one group of unknowns depend on each other; make it dense")
    return (site * rows.width + r) * columns.width + c
