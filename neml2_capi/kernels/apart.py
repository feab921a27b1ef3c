"""A residual in fewer operations, before its Jacobian is derived from them.

What does not depend on the unknowns is set apart, so that it is computed once: the rate of the
elastic strain is the rate of the strain, without the flow. What is affine in one unknown is two
numbers, so that a trial stress is returned along its direction by one product. Sums that vanish
whatever the unknowns are, such as the trace of a flow direction, are left out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi.kernels.derivatives import Linearized
from neml2_capi.kernels.evaluate import points_of, values_of_steps
from neml2_capi.kernels.folding import FUNCTIONS
from neml2_capi.kernels.program import Array, Program, live, program_of
from neml2_capi.kernels.scalar import Node, Scalars, constant_of
from neml2_capi.kernels.simplify import gathered, in_pairs

#: A sum vanishes if it is less than this of its terms at all points that tell, and so many do: some
#: bits, since constants such as 1 / 3 are rounded.
_VANISHES, _LEAST = 2e-15, 8
_SEED = 1  # of points beside those at which a Jacobian is verified

_ARITHMETIC = frozenset({"add", "sub", "mul", "div", "neg"})

#: A factor that does not depend on the unknowns, and a value that does.
_Rest = tuple[Node, Node]
#: A value as what does not depend on the unknowns, and the rest; None if it is zero.
_Parts = tuple[Node | None, _Rest | None]


def set_apart(residual: Program, unknown: Collection[int], slopes: bool = False) -> Program:
    """The same residual, to round-off.

    Parameters
    ----------
    residual : Program
    unknown : Collection[int]
        The inputs that are unknowns.
    slopes : bool
        Whether what is affine in a value is written as a + b v, of which a and b are prepared.
    """
    parted = _Parted(residual, unknown, slopes).program()
    _, nodes = _without_vanishing(parted, _values(parted))
    results = [[nodes[place] for place in places] for places in parted.results]
    made = _same_graph(program_of(parted.inputs, parted.outputs, results), residual)
    return in_pairs(live(gathered(made)))


def without_vanishing_entries(made: Linearized, inputs: Sequence[Array]) -> Linearized:
    """Derivatives without those that vanish."""
    results = [made.values]
    results += [list(gradient.values()) for gradient in (*made.gradients, *made.auxiliaries)]
    outputs = [Array("", (len(nodes),)) for nodes in results]
    program = program_of(inputs, outputs, results)
    s, nodes = _without_vanishing(program, _values(program))
    values, *entries = ([nodes[place] for place in places] for places in program.results)
    gradients = [
        {u: d for u, d in zip(gradient, found, strict=True) if constant_of(d) != 0}
        for gradient, found in zip((*made.gradients, *made.auxiliaries), entries, strict=True)
    ]
    count = len(made.gradients)
    return Linearized(s, values, gradients[:count], gradients[count:], made.sites)


def step_without_vanishing(step: Program, jacobian: Program) -> Program:
    """The step of a Jacobian, without sums that vanish for all that the Jacobian returns."""
    values = _values(jacobian)
    inputs = [np.array([values[place] for place in places]) for places in jacobian.results]
    _, nodes = _without_vanishing(step, _values(step, inputs))
    results = [[nodes[place] for place in places] for places in step.results]
    return _same_graph(program_of(step.inputs, step.outputs, results), step)


class _Parted:
    """Each value as a sum of what does not depend on the unknowns and what does."""

    def __init__(self, old: Program, unknown: Collection[int], slopes: bool) -> None:
        self._s, self._old, self._slopes = Scalars(notes=False), old, slopes
        self._one = self._s.constant(1.0)
        self._parts: list[_Parts] = []
        for name, arguments, data in old.steps:
            if name == "variable":
                x = self._s.variable(*data)
                self._parts.append((None, (self._one, x)) if data[0] in unknown else (x, None))
            else:
                self._parts.append(self._made(name, [self._parts[a] for a in arguments], data))

    def program(self) -> Program:
        results = [[self._whole(self._parts[p]) for p in places] for places in self._old.results]
        return _same_graph(program_of(self._old.inputs, self._old.outputs, results), self._old)

    def _made(self, name: str, x: list[_Parts], data: Any) -> _Parts:
        s = self._s
        if all(rest is None for _, rest in x):
            return s.node(name, *(self._whole(part) for part in x), data=data), None
        if name in ("add", "sub"):
            (a, b), (c, d) = x
            return self._sum(name, a, c), self._sum_of_rests(name, b, d)
        if name == "neg":
            return self._each(x[0], s.neg)
        if name == "mul":
            for factor, other in (x, x[::-1]):
                if factor[1] is None and not self._is_zero(factor):
                    return self._each(other, functools.partial(s.mul, self._whole(factor)))
        if name == "div" and x[1][1] is None:
            return self._each(x[0], lambda part: s.div(part, self._whole(x[1])))
        return None, (self._one, s.node(name, *(self._whole(part) for part in x), data=data))

    def _sum(self, name: str, x: Node | None, y: Node | None) -> Node | None:
        if x is None or y is None:
            return self._s.neg(y) if name == "sub" and y is not None else x or y
        return self._s.add(x, y) if name == "add" else self._s.sub(x, y)

    def _sum_of_rests(self, name: str, x: _Rest | None, y: _Rest | None) -> _Rest | None:
        if x is None or y is None:
            return self._each((None, y), self._s.neg)[1] if name == "sub" and y else x or y
        if self._slopes and x[1] is y[1]:
            factor = self._sum(name, x[0], y[0])
            if factor and constant_of(factor) != 0:
                return factor, x[1]
        made = self._sum(name, self._value(x), self._value(y))
        assert made
        return self._one, made

    def _each(self, parts: _Parts, made: Callable[[Node], Node]) -> _Parts:
        first, rest = parts
        if rest and self._slopes:
            rest = made(rest[0]), rest[1]
        elif rest:
            rest = self._one, made(rest[1])
        return None if first is None else made(first), rest

    def _whole(self, parts: _Parts) -> Node:
        first, rest = parts
        if first is None or rest is None:
            found = self._value(rest) if rest else first
            assert found
            return found
        return self._s.add(first, self._value(rest))

    def _value(self, rest: _Rest) -> Node:
        """The product; a condition, which has no factor, stays one."""
        factor, value = rest
        return value if factor is self._one else self._s.mul(factor, value)

    def _is_zero(self, parts: _Parts) -> bool:
        return parts[0] is not None and constant_of(parts[0]) == 0


def _values(program: Program, inputs: Sequence[NDArray[Any]] = ()) -> list[NDArray[Any]]:
    """Values of all steps at some points, whatever its functions and choices are."""
    given = inputs or points_of(program, _SEED)
    return values_of_steps(program, given, np.random.default_rng(_SEED))


def _without_vanishing(
    program: Program, values: Sequence[NDArray[Any]]
) -> tuple[Scalars, list[Node]]:
    """The steps as nodes, of which those are zero that vanish at all points."""
    s, nodes, sizes = Scalars(notes=False), list[Node](), list[NDArray[Any]]()
    zeros: set[int] = set()
    with np.errstate(all="ignore"):
        for place, (name, arguments, data) in enumerate(program.steps):
            sizes.append(np.abs(values[place]))
            if name in ("add", "sub"):
                sizes[-1] = sizes[arguments[0]] + sizes[arguments[1]]
            elif name == "neg":
                sizes[-1] = sizes[arguments[0]]
            elif name == "mul" and program.steps[arguments[0]][0] == "constant":
                sizes[-1] = np.abs(values[arguments[0]]) * sizes[arguments[1]]
            tell = np.isfinite(sizes[-1]) & (sizes[-1] > 0)
            small = np.abs(values[place]) <= _VANISHES * sizes[-1]
            if name in ("add", "sub") and tell.sum() >= _LEAST and small[tell].all():
                zeros.add(place)
                nodes.append(s.constant(0.0))
                continue
            x = [nodes[argument] for argument in arguments]
            of_zero = not zeros.isdisjoint(arguments)
            nodes.append(_made(s, name, x, data, of_zero))
            if of_zero and constant_of(nodes[-1]) == 0:
                zeros.add(place)
    return s, nodes


def _made(s: Scalars, name: str, x: Sequence[Node], data: Any, of_zero: bool) -> Node:
    """The node of an operation. A zero that a law writes stays: times infinity it is NaN."""
    if name in _ARITHMETIC and (of_zero or all(constant_of(node) != 0 for node in x)):
        return getattr(s, name)(*x)  # type: ignore[no-any-return]
    if name in FUNCTIONS and of_zero:
        return s.function(name, x[0])
    return s.node(name, *x, data=data)


def _same_graph(made: Program, old: Program) -> Program:
    return replace(
        made, real=old.real, graph_nodes=old.graph_nodes, checksum=old.checksum, sites=None
    )
