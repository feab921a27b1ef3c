"""Fewer operations: shared reciprocals, and sums and products of many terms with shared pairs.

Results change by round-off only: terms are added and factors multiplied in another order.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from neml2_capi.kernels.decisions import DECIDE, ROUNDINGS, decisive, seen
from neml2_capi.kernels.program import FREE, Program, Step, live

#: Pairs are searched in sums and products of at most so many terms.
_MOST_TERMS = 60
#: By type: the reciprocal of a larger number is a normal one; so are products of constants.
_NORMAL = {"float64": 1e-300, "float32": 1e-30}

#: Sums, and operations whose results do not depend on the sign of a zero.
_BLIND = frozenset({"add", "sub", "neg", "abs", "exp", "gt", "ge", "eq"})

#: A term of a sum or a factor of a product: a sign, and the place of its step.
_Term = tuple[int, int]
_Pair = tuple[_Term, _Term]


def simplified(program: Program, values: Program | None = None) -> Program:
    """The same values, to round-off, by fewer operations.

    Parameters
    ----------
    program : Program
        What a graph computes.
    values : Program, optional
        What another graph of the same inputs computes: the first outputs of this one alone. They
        get the bits that they have there, and the others take what they share from them. Otherwise
        a value would change by round-off if its derivatives are asked for, since the terms that
        both have decide how they are added.
    """
    if values is None:
        return live(_fewer(program)[0])
    fewer, place = _fewer(values)
    known: dict[_Key, int] = {}
    at = {n: place[p] for p, n in enumerate(_numbers(values, known)) if p in place}
    leaf = len(program.inputs)  # an input that stands for the steps of the values
    rest = [
        ("variable", (), (leaf, at[n])) if n in at and step[0] not in FREE else step
        for n, step in zip(_numbers(program, known), program.steps, strict=True)
    ]
    results = program.results[len(values.results) :]
    others = replace(program, steps=rest, results=results, sites=None)
    steps = list(fewer.steps)
    results = fewer.results + _added(steps, _fewer(live(others))[0], leaf)
    return live(replace(program, steps=steps, results=results, sites=None))


#: What a step means, by numbers of its arguments.
_Key = tuple[str, tuple[int, ...], str]


def _numbers(program: Program, known: dict[_Key, int]) -> list[int]:
    """A number for each step; steps of one meaning share it, also those of other programs."""
    numbers: list[int] = []
    for name, arguments, data in program.steps:
        key = name, tuple(numbers[a] for a in arguments), repr(data)
        numbers.append(known.setdefault(key, len(known)))
    return numbers


def _added(steps: list[Step], others: Program, leaf: int) -> list[list[int]]:
    """Add the steps of another program that are missing, and return the places of its results.

    Its variables of the input `leaf` are places of steps.
    """
    known = {_key(step): place for place, step in enumerate(steps)}
    places: list[int] = []
    for name, arguments, data in others.steps:
        if name == "variable" and data[0] == leaf:
            places.append(data[1])
            continue
        step = name, tuple(places[a] for a in arguments), data
        places.append(known.setdefault(_key(step), len(steps)))
        if places[-1] == len(steps):
            steps.append(step)
    return [[places[p] for p in result] for result in others.results]


def _key(step: Step) -> _Key:
    """The meaning of a step, with the terms of a sum and the factors of a product in one order."""
    name, arguments, data = step
    if name == "product":
        arguments = tuple(sorted(arguments))
    elif name == "sum":
        terms = sorted(zip(arguments, data, strict=True))
        arguments, data = tuple(a for a, _ in terms), tuple(sign for _, sign in terms)
    return name, arguments, repr(data)


def _fewer(program: Program) -> tuple[Program, dict[int, int]]:
    """Fewer operations, some of which nothing needs, and the places of old steps that are left."""
    place = {p: p for p in range(len(program.steps))}
    for made_of in (_with_reciprocals, _with_products, _with_sums):
        rebuilt = made_of(program)
        place = {old: rebuilt.place[new] for old, new in place.items() if new in rebuilt.place}
        program = rebuilt.program()
    return program, place


def gathered(program: Program) -> Program:
    """Sums and products of many terms, with pairs that several have."""
    return _with_sums(_with_products(program).program()).program()


def in_pairs(program: Program) -> Program:
    """Sums and products of many terms as operations of two."""
    rebuilt = _Rebuilt(program)
    for place, (name, arguments, data) in enumerate(program.steps):
        if name not in ("sum", "product"):
            rebuilt.keep(place)
            continue
        signs = data or (1,) * len(arguments)
        terms = [rebuilt.place[a] for a in arguments]
        made = terms[0] if signs[0] > 0 else rebuilt.new(("neg", (terms[0],), None))
        for sign, term in zip(signs[1:], terms[1:], strict=True):
            operation = "mul" if name == "product" else "add" if sign > 0 else "sub"
            made = rebuilt.new((operation, (made, term), None))
        rebuilt.place[place] = made
    return rebuilt.program()


def _with_products(program: Program) -> _Rebuilt:
    return _gathered(program, frozenset({"mul"}), "product")


def _with_sums(program: Program) -> _Rebuilt:
    return _gathered(program, frozenset({"add", "sub", "neg"}), "sum")


def _with_reciprocals(program: Program) -> _Rebuilt:
    """x / z and more as products with 1 / z, if three or more are divided by one z.

    Quotients on which whole numbers depend stay, and those that a comparison sees.
    z is scaled first, since the reciprocal of a subnormal number is infinite, unless it is a norm
    that is never so small.
    """
    least = _least_values(program)
    rounded = decisive(program.steps, ROUNDINGS)
    compared = seen(program.steps, DECIDE | {"sign"})
    divisors = [
        arguments[1] if name == "div" and not rounded[p] and not compared[p] else -1
        for p, (name, arguments, _) in enumerate(program.steps)
    ]
    divisions = Counter(under for under in divisors if under >= 0)
    rebuilt = _Rebuilt(program)
    reciprocals: dict[int, tuple[int, int]] = {}
    normal: dict[int, int] = {}
    one: int | None = None
    for place, (_, arguments, data) in enumerate(program.steps):
        under = divisors[place]
        if divisions[under] < 3:
            rebuilt.keep(place)
            continue
        if one is None:
            one = rebuilt.new(("constant", (), 1.0))
        over = rebuilt.place[arguments[0]]
        if least[under] >= _NORMAL[program.real]:
            if under not in normal:
                normal[under] = rebuilt.new(("div", (one, rebuilt.place[under]), None))
            by = normal[under]
            is_one = program.steps[arguments[0]] == ("constant", (), 1.0)
            rebuilt.place[place] = by if is_one else rebuilt.new(("mul", (over, by), None))
            continue
        if under not in reciprocals:
            scale = rebuilt.new(("scale", (rebuilt.place[under],), None))
            scaled = rebuilt.new(("mul", (rebuilt.place[under], scale), None))
            reciprocals[under] = rebuilt.new(("div", (one, scaled), None)), scale
        factors = (over, *reciprocals[under])
        rebuilt.place[place] = rebuilt.new(("times both", factors, data))
    return rebuilt


def _least_values(program: Program) -> list[float]:
    """By step: what it is never less than, if it is a number."""
    found: list[float] = []
    for name, arguments, data in program.steps:
        x = [found[argument] for argument in arguments]
        least = -math.inf
        if name == "constant" and data != "nan":
            least = float(data)
        elif name == "mul" and (arguments[0] == arguments[1] or min(x) >= 0):
            least = 0.0 if arguments[0] == arguments[1] else x[0] * x[1]
        elif name == "add":
            least = x[0] + x[1]
        elif name == "sqrt":
            least = math.sqrt(max(x[0], 0.0))
        elif name in ("abs", "exp"):
            least = 0.0
        found.append(least)
    return found


class _Rebuilt:
    """A program in the making, and where the steps of the old one are in it."""

    def __init__(self, old: Program) -> None:
        self._old = old
        self.steps: list[Step] = []
        self.place: dict[int, int] = {}

    def new(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def keep(self, place: int) -> None:
        name, arguments, data = self._old.steps[place]
        self.place[place] = self.new((name, tuple(self.place[a] for a in arguments), data))

    def program(self) -> Program:
        results = [[self.place[p] for p in places] for places in self._old.results]
        return replace(self._old, steps=self.steps, results=results, sites=None)


def _gathered(program: Program, family: frozenset[str], name: str) -> _Rebuilt:
    """Chains of one kind of operation as one of many terms, with pairs that several have.

    What a decision sees stays, since terms in another order may be the next number.
    """
    compared = seen(program.steps)
    members = {
        p for p, (name, _, _) in enumerate(program.steps) if name in family and not compared[p]
    }
    roots = dict(_chains(program, members))
    shared = _shared_pairs(list(roots.values()), signed=name == "sum")
    pairs = dict(enumerate(shared, -len(shared)))
    rebuilt = _Rebuilt(program)
    made: dict[int, int] = {}

    def place_of(term: int) -> int:
        if term >= 0:
            return rebuilt.place[term]
        if term not in made:
            made[term] = new(Counter(pairs[term]))
        return made[term]

    def new(terms: Counter[_Term]) -> int:
        # Positive terms first, so that none begins with a sign if one can.
        ordered = sorted(terms.elements(), key=lambda t: (t[0] < 0, t[1]))
        places = [(sign, place_of(term)) for sign, term in ordered]
        places.sort(key=lambda t: (t[0] < 0, t[1]))
        signs = tuple(sign for sign, _ in places)
        if all(rebuilt.steps[p][0] == "constant" for _, p in places):  # a shared pair of them
            values = [sign * float(rebuilt.steps[p][2]) for sign, p in places]
            value = math.prod(values) if name == "product" else sum(values)
            return rebuilt.new(("constant", (), value if value == value else "nan"))
        if name == "product":
            places = _one_constant(rebuilt, places)
            if len(places) == 1:
                return places[0][1]
        return rebuilt.new((name, tuple(p for _, p in places), signs if name == "sum" else None))

    for place in range(len(program.steps)):
        if place not in roots:
            if place not in members:
                rebuilt.keep(place)
            continue
        terms = roots[place]
        (only,) = terms if len(terms) == 1 else (None,)
        if only is not None and only[0] > 0 and terms[only] == 1:
            rebuilt.place[place] = place_of(only[1])
        elif only is not None and terms[only] == 1:
            rebuilt.place[place] = rebuilt.new(("neg", (place_of(only[1]),), None))
        else:
            rebuilt.place[place] = new(terms)
    return rebuilt


def _one_constant(rebuilt: _Rebuilt, factors: list[_Term]) -> list[_Term]:
    """Factors of which one is the product of all usual constants; none if it is 1."""
    values = {p: float(rebuilt.steps[p][2]) for _, p in factors if _is_usual(rebuilt.steps[p])}
    if len([p for _, p in factors if p in values]) < 2:
        return factors
    value = math.prod(values[p] for _, p in factors if p in values)
    if not 1e-30 < abs(value) < 1e30:
        return factors
    rest = [(sign, p) for sign, p in factors if p not in values]
    return rest if value == 1 else [(1, rebuilt.new(("constant", (), value))), *rest]


def _is_usual(step: Step) -> bool:
    """Whether products of this constant and another one neither overflow nor lose digits."""
    return step[0] == "constant" and step[2] != "nan" and 1e-30 < abs(float(step[2])) < 1e30


def _chains(program: Program, members: set[int]) -> Iterator[tuple[int, Counter[_Term]]]:
    """The terms of each of these operations that is not itself a term of one other only."""
    uses: Counter[int] = Counter(a for _, arguments, _ in program.steps for a in arguments)
    uses.update(place for places in program.results for place in places)
    inner = {
        argument
        for place in members - _kept_signs(program)
        for argument in program.steps[place][1]
        if argument in members and uses[argument] == 1
    }
    for place in sorted(members - inner):
        terms: Counter[_Term] = Counter()
        waiting = [(1, place)]
        while waiting:
            sign, term = waiting.pop()
            operation, arguments, _ = program.steps[term]
            if term == place or term in inner:
                waiting.append((-sign if operation == "neg" else sign, arguments[0]))
                last = -sign if operation == "sub" else sign
                waiting.extend((last, argument) for argument in arguments[1:])
            else:
                terms[sign, term] += 1
        yield place, terms


def _kept_signs(program: Program) -> set[int]:
    """Negations of which an operation sees the sign if they vanish: -(x - y) is not y - x there."""
    seen = {
        argument
        for name, arguments, _ in program.steps
        if name not in _BLIND
        for argument in arguments
    }
    return {place for place in seen if program.steps[place][0] == "neg"}


def _shared_pairs(groups: list[Counter[_Term]], signed: bool) -> list[_Pair]:
    """Pairs of terms that several groups have, most frequent first; groups get their numbers.

    The pair of number k is the term k - len(pairs), a negative one: pairs may hold earlier pairs.
    """
    index: dict[_Pair, set[int]] = defaultdict(set)
    for number, terms in enumerate(groups):
        if len(terms) <= _MOST_TERMS:
            for pair in _pairs_in(terms, signed):
                index[pair].add(number)
    waiting = [(-len(where), pair) for pair, where in index.items() if len(where) > 1]
    heapq.heapify(waiting)
    pairs: list[_Pair] = []
    first = -(1 << 40)  # pairs are numbered upward from here until their count is known
    while waiting:
        expected, pair = heapq.heappop(waiting)
        found = [(n, s) for n in sorted(index[pair]) if (s := _sign_in(groups[n], pair, signed))]
        if len(found) < 2:
            continue
        if len(found) < -expected:
            index[pair] = {number for number, _ in found}
            heapq.heappush(waiting, (-len(found), pair))
            continue
        term = first + len(pairs)
        pairs.append(pair)
        fresh: set[_Pair] = set()
        for number, sign in found:
            terms = groups[number]
            for of, t in pair:
                _take(terms, (of * sign, t))
            for other in terms:
                key = _normal(other, (sign, term), signed)
                index[key].add(number)
                fresh.add(key)
            terms[sign, term] += 1
        for key in fresh:
            if len(index[key]) > 1:
                heapq.heappush(waiting, (-len(index[key]), key))
    count = len(pairs)

    def renamed(t: _Term) -> _Term:
        return (t[0], t[1] - first - count) if t[1] < 0 else t

    for terms in groups:
        items = {renamed(t): n for t, n in terms.items()}
        terms.clear()
        terms.update(items)
    return [(renamed(a), renamed(b)) for a, b in pairs]


def _pairs_in(terms: Counter[_Term], signed: bool) -> Iterator[_Pair]:
    ordered = sorted(terms)
    for i, a in enumerate(ordered):
        if terms[a] > 1:
            yield _normal(a, a, signed)
        for b in ordered[i + 1 :]:
            yield _normal(a, b, signed)


def _normal(a: _Term, b: _Term, signed: bool) -> _Pair:
    """One key for a pair in any order and, in sums, of any common sign."""
    if a[1] > b[1]:
        a, b = b, a
    if signed and a[0] < 0:
        return (1, a[1]), (-b[0], b[1])
    return a, b


def _sign_in(terms: Counter[_Term], pair: _Pair, signed: bool) -> int:
    """The sign with which the pair is among the terms; 0 if it is not.

    A sum of these two alone is not the negative of the pair: where it vanishes it would be -0.
    """
    (s, a), (t, b) = pair
    for sign in (1, -1) if signed and terms.total() > 2 else (1,):
        enough = 2 if pair[0] == pair[1] else 1
        if terms[sign * s, a] >= enough and terms[sign * t, b] >= enough:
            return sign
    return 0


def _take(terms: Counter[_Term], term: _Term) -> None:
    terms[term] -= 1
    if not terms[term]:
        del terms[term]
