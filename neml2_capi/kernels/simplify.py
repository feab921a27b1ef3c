"""Fewer operations: shared reciprocals, and sums and products of many terms with shared pairs.

Results change by round-off only: terms are added and factors multiplied in another order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from neml2_capi.kernels.decisions import seen
from neml2_capi.kernels.program import FREE, Program, Step, live
from neml2_capi.kernels.rebuilt import Rebuilt
from neml2_capi.kernels.reciprocals import with_reciprocals
from neml2_capi.kernels.shared_terms import Term, shared_pairs

#: Sums, and operations whose results do not depend on the sign of a zero.
_BLIND = frozenset({"add", "sub", "neg", "abs", "exp", "gt", "ge", "eq"})


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
    for made_of in (with_reciprocals, _with_products, _with_sums):
        rebuilt = made_of(program)
        place = {old: rebuilt.place[new] for old, new in place.items() if new in rebuilt.place}
        program = rebuilt.program()
    return program, place


def gathered(program: Program) -> Program:
    """Sums and products of many terms, with pairs that several have."""
    return _with_sums(_with_products(program).program()).program()


def in_pairs(program: Program) -> Program:
    """Sums and products of many terms as operations of two."""
    rebuilt = Rebuilt(program)
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


def _with_products(program: Program) -> Rebuilt:
    return _gathered(program, frozenset({"mul"}), "product")


def _with_sums(program: Program) -> Rebuilt:
    return _gathered(program, frozenset({"add", "sub", "neg"}), "sum")


def _gathered(program: Program, family: frozenset[str], name: str) -> Rebuilt:
    """Chains of one kind of operation as one of many terms, with pairs that several have.

    What a decision sees stays, since terms in another order may be the next number.
    """
    compared = seen(program.steps)
    members = {
        p for p, (name, _, _) in enumerate(program.steps) if name in family and not compared[p]
    }
    roots = dict(_chains(program, members))
    shared = shared_pairs(list(roots.values()), signed=name == "sum")
    pairs = dict(enumerate(shared, -len(shared)))
    rebuilt = Rebuilt(program)
    made: dict[int, int] = {}

    def place_of(term: int) -> int:
        if term >= 0:
            return rebuilt.place[term]
        if term not in made:
            made[term] = new(Counter(pairs[term]))
        return made[term]

    def new(terms: Counter[Term]) -> int:
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


def _one_constant(rebuilt: Rebuilt, factors: list[Term]) -> list[Term]:
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


def _chains(program: Program, members: set[int]) -> Iterator[tuple[int, Counter[Term]]]:
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
        terms: Counter[Term] = Counter()
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
    read = {
        argument
        for name, arguments, _ in program.steps
        if name not in _BLIND
        for argument in arguments
    }
    return {place for place in read if program.steps[place][0] == "neg"}
