"""The Jacobian of a residual of many sites, from its own operations.

Forward differentiation with sparse gradients (Griewank and Walther, Evaluating Derivatives, 2nd
ed., 2008, chapters 3 and 7). A value that depends on the unknowns of many sites, such as a volume
fraction, becomes an auxiliary unknown: else each site would depend on all others, and the Jacobian
would be full.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from neml2_capi.kernels.program import NoKernel, Program
from neml2_capi.kernels.scalar import MASKS, Node, Scalars, constant_of

#: A value of more sites than these is an auxiliary unknown, if more is made of it than one sum.
_MOST_SITES = 6

#: Of a value that becomes one at its site: its least unknowns and uses, and the entries it saves.
_LEAST_JOINED, _LEAST_SPARED = 4, 8

#: By unknown: the derivative with respect to it.
Gradient = dict[int, Node]


@dataclass
class Linearized:
    """r(u, w) and w(u, w) with their derivatives, as nodes; w are auxiliary unknowns, behind u."""

    scalars: Scalars
    #: Of the outputs, one after the other.
    values: list[Node]
    #: Of each output.
    gradients: list[Gradient]
    #: Of each auxiliary unknown, by unknowns and by those that were made before.
    auxiliaries: list[Gradient] = field(default_factory=list)
    #: Of each auxiliary unknown: its site, None if all share it.
    sites: list[int | None] = field(default_factory=list)


def linearized(
    residual: Program,
    unknown: Sequence[Sequence[int] | None],
    sites: Sequence[int | None],
    joins: bool,
) -> Linearized:
    """The derivatives of all outputs.

    Parameters
    ----------
    residual : Program
        Its `sites` are known.
    unknown : Sequence[Sequence[int] | None]
        By input: the numbers of the unknowns that are its components; None if they are none.
    sites : Sequence[int | None]
        By unknown: its site, None if all sites share it.
    joins : bool
        Whether values of one site become auxiliary unknowns, too, where that saves entries.

    Raises
    ------
    NoKernel
        It holds an operation that has no derivative here.
    """
    return Forward(residual, unknown, sites, joins).linearized()


class _Shared(Scalars):
    """Nodes of which several sites make the same one, of what all share, belong to none."""

    def node(self, operation: str, *arguments: Node, data: Hashable = None) -> Node:
        found = super().node(operation, *arguments, data=data)
        if found.site != self.site and all(x.site is None for x in arguments):
            found.site = None
        return found


class Forward:
    """Derivatives of the operations of a residual, one after the other."""

    def __init__(
        self,
        residual: Program,
        unknown: Sequence[Sequence[int] | None],
        sites: Sequence[int | None],
        joins: bool,
    ) -> None:
        self._program, self._unknown, self._sites = residual, unknown, sites
        self._joins = joins
        self._s = _Shared(notes=False)
        self._uses: Counter[int] = Counter(a for _, args, _ in residual.steps for a in args)
        self._uses.update(place for places in residual.results for place in places)
        self.values: list[Node] = []
        self.gradients: list[Gradient] = []
        self._auxiliaries: list[Gradient] = []
        self._sites_of_auxiliaries: list[int | None] = []

    @property
    def scalars(self) -> Scalars:
        return self._s

    def linearized(self) -> Linearized:
        s, steps = self._s, self._program.steps
        labels = self._program.sites or [None] * len(steps)
        terms = self._terms()
        for place, (name, arguments, data) in enumerate(steps):
            s.site = labels[place]
            self.values.append(s.node(name, *(self.values[a] for a in arguments), data=data))
            if name == "variable":
                numbers = self._unknown[data[0]]
                self.gradients.append({numbers[data[1]]: s.constant(1.0)} if numbers else {})
                continue
            gradient = {} if name in MASKS else self.gradient(place)
            if place not in terms and self._is_wide(gradient):
                gradient = self._as_unknown(gradient, None)
            elif self._joins and self._is_many(gradient, self._uses[place]):
                gradient = self._as_unknown(gradient, labels[place])
            self.gradients.append(gradient)
        results = [place for places in self._program.results for place in places]
        values = [self.values[place] for place in results]
        gradients = [self.gradients[place] for place in results]
        return Linearized(s, values, gradients, self._auxiliaries, self._sites_of_auxiliaries)

    def _terms(self) -> set[int]:
        """Steps that are a term of one sum, or an output, and of nothing else."""
        found = {p for places in self._program.results for p in places if self._uses[p] == 1}
        for name, arguments, _ in self._program.steps:
            if name in ("add", "sub", "neg"):
                found.update(a for a in arguments if self._uses[a] == 1)
            elif name == "mul" and self._program.steps[arguments[0]][0] == "constant":
                found.update(a for a in arguments[1:] if self._uses[a] == 1)
        return found

    def _is_wide(self, gradient: Gradient) -> bool:
        if len(gradient) <= _MOST_SITES:
            return False
        seen = {self._sites[u] for u in gradient if u < len(self._sites)} - {None}
        return len(seen) > _MOST_SITES

    @staticmethod
    def _is_many(gradient: Gradient, uses: int) -> bool:
        """Whether a value, such as a norm, joins more pairs than it has arguments and uses."""
        count = len(gradient)
        return min(count, uses) >= _LEAST_JOINED and count * uses - count - uses >= _LEAST_SPARED

    def _as_unknown(self, gradient: Gradient, site: int | None) -> Gradient:
        self._auxiliaries.append(gradient)
        self._sites_of_auxiliaries.append(site)
        return {len(self._sites) + len(self._auxiliaries) - 1: self._s.constant(1.0)}

    def gradient(self, place: int) -> Gradient:
        name, arguments, _ = self._program.steps[place]
        given = [a for a in arguments if self.gradients[a]]
        if not given:
            return {}
        s, v = self._s, self.values[place]
        x = [self.values[a] for a in arguments]
        g = [self.gradients[a] for a in arguments]
        if name == "add":
            return self._sum(arguments, s.add)
        if name == "sub":
            return self._sum(arguments, s.sub)
        if name == "neg":
            return {u: s.neg(d) for u, d in self._each(g[0])}
        if name == "mul":
            return self._combined([(x[1], g[0]), (x[0], g[1])])
        if name in ("div", "quotient"):
            gradient = self._combined([(s.constant(1.0), g[0]), (s.neg(v), g[1])])
            return {u: s.div(d, x[1]) for u, d in self._each(gradient)}
        if name == "pow":
            by_base = _of_power(s, x[0], x[1], v) if g[0] else x[0]
            by_exponent = s.mul(v, s.function("log", x[0])) if g[1] else x[0]
            return self._combined([(by_base, g[0]), (by_exponent, g[1])])
        if name == "where":
            return self._chosen(x[0], g[1], g[2])
        if name in ("greatest", "least"):
            first = s.gt(x[0], x[1]) if name == "greatest" else s.gt(x[1], x[0])
            return self._chosen(first, g[0], g[1])
        if name == "hypot":
            return self._combined([(s.div(a, v), d) for a, d in zip(x, g, strict=True)])
        if name == "atan2":
            square = s.add(s.mul(x[0], x[0]), s.mul(x[1], x[1]))
            return self._combined([(s.div(x[1], square), g[0]), (s.neg(s.div(x[0], square)), g[1])])
        if name in _FLAT:
            return {}
        if name not in _SLOPES or any(g[1:]):
            raise NoKernel(f"its operation {name} has no derivative here")
        return self._combined([(_SLOPES[name](s, x[0], v), g[0])])

    def _each(self, gradient: Gradient) -> Iterator[tuple[int, Node]]:
        """All entries; what is made of those of many sites belongs to the site of the unknown."""
        own, s = self._s.site, self._s
        for u, d in gradient.items():
            if len(gradient) > _MOST_SITES and u < len(self._sites):
                s.site = own if self._sites[u] is None else self._sites[u]
            yield u, d
        s.site = own

    def _sum(self, arguments: Sequence[int], combine: Callable[[Node, Node], Node]) -> Gradient:
        """The first gradient and the second; a long one that nothing else needs is not copied."""
        s, zero = self._s, self._s.constant(0.0)
        first, second = (self.gradients[a] for a in arguments)
        made = (
            first if self._uses[arguments[0]] == 1 and arguments[0] != arguments[1] else dict(first)
        )
        if len(second) > len(made) and combine == s.add and self._uses[arguments[1]] == 1:
            made, second = second, made
        for u, d in self._each(second):
            made[u] = combine(made.get(u, zero), d)
        return made

    def _combined(self, products: Sequence[tuple[Node, Gradient]]) -> Gradient:
        s = self._s
        made: Gradient = {}
        for factor, gradient in products:
            for u, d in self._each(gradient):
                product = s.mul(factor, d)
                made[u] = s.add(made[u], product) if u in made else product
        return made

    def _chosen(self, mask: Node, first: Gradient, second: Gradient) -> Gradient:
        s, zero = self._s, self._s.constant(0.0)
        keys = dict.fromkeys((*first, *second))
        return {u: s.where(mask, first.get(u, zero), second.get(u, zero)) for u in keys}


def _of_power(s: Scalars, x: Node, exponent: Node, v: Node) -> Node:
    """y x^(y - 1), as y v / x, which spares a power where the exponent is known to be above 1."""
    value = constant_of(exponent)
    zero = s.constant(0.0)
    if value is not None and value > 1:
        return s.mul(exponent, s.where(s.eq(x, zero), zero, s.div(v, x)))
    return s.mul(exponent, s.pow(x, s.sub(exponent, s.constant(1.0))))


def _by_root(s: Scalars, x: Node, v: Node) -> Node:
    """1 / (2 sqrt(x)); 0 at x = 0 if x is a sum of squares, since a norm has no slope there."""
    half = s.div(s.constant(0.5), v)
    return s.where(s.gt(x, s.constant(0.0)), half, s.constant(0.0)) if _is_square(x) else half


def _is_square(x: Node) -> bool:
    """Whether this is a sum of squares, each times a constant perhaps, that may vanish."""
    found, waiting = False, [x]
    while waiting:
        node = waiting.pop()
        if (value := constant_of(node)) is not None:
            if value > 0:
                return False
            continue
        first, *rest = node.arguments or (node,)
        if node.operation == "add":
            waiting += [first, *rest]
        elif node.operation == "mul" and constant_of(first) is not None:
            waiting += rest
        elif node.operation == "mul" and rest and constant_of(rest[0]) is not None:
            waiting.append(first)
        elif node.operation == "mul" and rest and rest[0] is first:
            found = True
        else:
            return False
    return found


def _inverse(of: Callable[[Scalars, Node], Node]) -> Callable[[Scalars, Node, Node], Node]:
    return lambda s, x, v: s.div(s.constant(1.0), of(s, x))


def _one(s: Scalars, sign: int, x: Node) -> Node:
    """1 + x^2 or 1 - x^2."""
    return (s.add if sign > 0 else s.sub)(s.constant(1.0), s.mul(x, x))


def _bell(factor: float, width: float) -> Callable[[Scalars, Node, Node], Node]:
    """factor exp(-width x^2)."""

    def slope(s: Scalars, x: Node, v: Node) -> Node:
        inside = s.neg(s.mul(s.constant(width), s.mul(x, x)))
        return s.mul(s.constant(factor), s.function("exp", inside))

    return slope


#: By function: its derivative, from the argument and the value.
_SLOPES: dict[str, Callable[[Scalars, Node, Node], Node]] = {
    "sqrt": _by_root,
    "exp": lambda s, x, v: v,
    "expm1": lambda s, x, v: s.add(v, s.constant(1.0)),
    "exp2": lambda s, x, v: s.mul(s.constant(math.log(2)), v),
    "log": _inverse(lambda s, x: x),
    "log1p": _inverse(lambda s, x: s.add(s.constant(1.0), x)),
    "log2": _inverse(lambda s, x: s.mul(s.constant(math.log(2)), x)),
    "log10": _inverse(lambda s, x: s.mul(s.constant(math.log(10)), x)),
    "sinh": lambda s, x, v: s.function("cosh", x),
    "cosh": lambda s, x, v: s.function("sinh", x),
    "tanh": lambda s, x, v: _one(s, -1, v),
    "sin": lambda s, x, v: s.function("cos", x),
    "cos": lambda s, x, v: s.neg(s.function("sin", x)),
    "tan": lambda s, x, v: _one(s, 1, v),
    "asin": _inverse(lambda s, x: s.function("sqrt", _one(s, -1, x))),
    "acos": _inverse(lambda s, x: s.neg(s.function("sqrt", _one(s, -1, x)))),
    "atan": _inverse(lambda s, x: _one(s, 1, x)),
    "asinh": _inverse(lambda s, x: s.function("sqrt", _one(s, 1, x))),
    "acosh": _inverse(lambda s, x: s.function("sqrt", s.neg(_one(s, -1, x)))),
    "atanh": _inverse(lambda s, x: _one(s, -1, x)),
    "abs": lambda s, x, v: s.function("sign", x),
    "erf": _bell(2 / math.sqrt(math.pi), 1.0),
    "erfc": _bell(-2 / math.sqrt(math.pi), 1.0),
    "ndtr": _bell(1 / math.sqrt(2 * math.pi), 0.5),
    "copysign": lambda s, x, v: s.mul(s.function("sign", x), s.function("sign", v)),
    "fmod": lambda s, x, v: s.constant(1.0),
}
#: Their derivatives are zero.
_FLAT = frozenset({"sign", "floor", "round", "trunc"})
