"""The Jacobian of a residual by its intermediate values, some of which become auxiliary unknowns.

Each value is a vertex of a graph, whose edges are the derivatives of an operation by its arguments.
To eliminate a vertex is the chain rule: each of its successors depends on each of its predecessors
then (Griewank and Walther, Evaluating Derivatives, 2nd ed., 2008, chapter 9). Those that join many
values with many others, such as an equivalent stress, stay: they are auxiliary unknowns, so that a
Jacobian of full rank-one matrices has few entries.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from neml2_capi.kernels.derivatives import Forward, Gradient, Linearized
from neml2_capi.kernels.program import Program
from neml2_capi.kernels.scalar import MASKS, Node, Scalars, constant_of

#: The most that the elimination of a value may take more than it spares, before it stays.
_LIMITS = (0, 6, 20, 60, 100)


def joined(
    residual: Program, unknown: Sequence[Sequence[int] | None], last: bool
) -> Iterator[Linearized]:
    """The derivatives of all outputs, with fewer auxiliary unknowns each time.

    Parameters
    ----------
    residual : Program
    unknown : Sequence[Sequence[int] | None]
        By input: the numbers of the unknowns that are its components; None if they are none.
    last : bool
        Which of two values that cost the same is eliminated first: the last one or the first.

    Raises
    ------
    NoKernel
        It holds an operation that has no derivative here.
    """
    graph, found = _Graph(residual, unknown, last), -1
    for most in _LIMITS:
        graph.eliminate(most)
        if graph.left != found:
            found = graph.left
            yield graph.linearized()


class _Edges(Forward):
    """Derivatives of each operation by its arguments alone."""

    def __init__(self, residual: Program, unknown: Sequence[Sequence[int] | None]) -> None:
        super().__init__(residual, unknown, (), False)
        self._s.site = None
        one = self._s.constant(1.0)
        #: By step: its derivatives by other steps; none if it depends on no unknown.
        self.edges: list[Gradient] = []
        #: By step: the number of the unknown that it is.
        self.numbers: dict[int, int] = {}
        for place, (name, arguments, data) in enumerate(residual.steps):
            self.values.append(self._s.node(name, *(self.values[a] for a in arguments), data=data))
            edges: Gradient = {}
            if name == "variable":
                if numbers := unknown[data[0]]:
                    self.numbers[place] = numbers[data[1]]
            elif name not in MASKS:
                edges = self.gradient(place)
            self.edges.append(dict(edges))
            self.gradients.append({place: one} if edges or place in self.numbers else {})


class _Graph:
    def __init__(
        self, residual: Program, unknown: Sequence[Sequence[int] | None], last: bool
    ) -> None:
        made = _Edges(residual, unknown)
        self._s: Scalars = made.scalars
        self._values, self._numbers = made.values, made.numbers
        self._unknowns = sum(len(numbers) for numbers in unknown if numbers)
        self._steps = residual.steps
        self._results = [place for places in residual.results for place in places]
        #: By vertex: the derivatives by its predecessors. An output is a vertex below zero.
        self._by: dict[int, Gradient] = {p: g for p, g in enumerate(made.edges) if g}
        for number, place in enumerate(self._results):
            known = place in self._by or place in self._numbers
            self._by[-1 - number] = {place: self._s.constant(1.0)} if known else {}
        #: By vertex: its successors, in the order in which they were found.
        self._after: dict[int, dict[int, None]] = {p: {} for p in (*self._by, *self._numbers)}
        for vertex, gradient in self._by.items():
            for other in gradient:
                self._after[other][vertex] = None

        for vertex in self._guarded():
            self._eliminate(vertex)
        self._sign = -1 if last else 1
        self._waiting = [(*self._cost(v), v) for v in self._by if v >= 0]
        heapq.heapify(self._waiting)

    @property
    def left(self) -> int:
        """How many vertices are left."""
        return len(self._by)

    def eliminate(self, most: int) -> None:
        """Eliminate vertices, the cheapest first, while that takes few operations."""
        while self._waiting and self._waiting[0][0] <= most:
            *cost, vertex = heapq.heappop(self._waiting)
            if vertex not in self._by or tuple(cost) != self._cost(vertex):
                continue
            around = [v for v in self._by[vertex] if v in self._by]
            around += [v for v in self._after[vertex] if v >= 0]
            self._eliminate(vertex)
            for other in around:
                heapq.heappush(self._waiting, (*self._cost(other), other))

    def _guarded(self) -> list[int]:
        """Values that count in a branch alone, and may be infinite or NaN if it is not chosen."""
        #: By vertex: the branches, as a choice and the place of an argument, in which it counts.
        within: dict[int, frozenset[tuple[int, int]]] = {}
        for vertex in sorted((v for v in self._by if v >= 0), reverse=True):
            uses = [self._branches(user, vertex, within) for user in self._after[vertex]]
            within[vertex] = frozenset.intersection(*uses) if uses else frozenset()
        return sorted(vertex for vertex, branches in within.items() if branches)

    def _branches(
        self, user: int, vertex: int, within: dict[int, frozenset[tuple[int, int]]]
    ) -> frozenset[tuple[int, int]]:
        """The branches in which a value counts for another one."""
        found = within.get(user, frozenset())
        name, arguments, _ = self._steps[user] if user >= 0 else ("", (), None)
        if name == "where" and arguments.count(vertex) == 1:
            found |= {(arguments[0], arguments.index(vertex))}
        return found

    def _cost(self, vertex: int) -> tuple[int, int, int]:
        """What its elimination takes more than it spares, its products, and its turn."""
        before, after = len(self._by[vertex]), len(self._after[vertex])
        return before * after - before - after, before * after, self._sign * vertex

    def _eliminate(self, vertex: int) -> None:
        s, own = self._s, self._by.pop(vertex)
        for other in own:
            del self._after[other][vertex]
        for successor in self._after.pop(vertex):
            gradient = self._by[successor]
            factor = gradient.pop(vertex)
            for other, value in own.items():
                change = _product(s, factor, value)
                made = s.add(gradient[other], change) if other in gradient else change
                if constant_of(made) == 0:
                    if gradient.pop(other, None):
                        del self._after[other][successor]
                    continue
                gradient[other] = made
                self._after[other][successor] = None

    def linearized(self) -> Linearized:
        """All that is left, by numbers of unknowns."""
        stay = sorted(v for v in self._by if v >= 0 and self._after[v])
        numbers = {**self._numbers, **{v: self._unknowns + k for k, v in enumerate(stay)}}

        def renamed(vertex: int) -> Gradient:
            return {numbers[other]: node for other, node in self._by[vertex].items()}

        return Linearized(
            self._s,
            [self._values[place] for place in self._results],
            [renamed(-1 - number) for number in range(len(self._results))],
            [renamed(vertex) for vertex in stay],
            [None] * len(stay),
        )


def _product(s: Scalars, factor: Node, value: Node) -> Node:
    """A branch that is not chosen counts for nothing, even if it is infinite or NaN."""
    if factor.operation == "where":
        condition, one, other = factor.arguments
        if (constant_of(one), constant_of(other)) == (1, 0):
            return s.where(condition, value, other)
        if (constant_of(one), constant_of(other)) == (0, 1):
            return s.where(condition, one, value)
    return s.mul(factor, value)
