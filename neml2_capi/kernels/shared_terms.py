"""Pairs of terms that several sums have, or pairs of factors that several products have."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator

#: Pairs are searched in sums and products of at most so many terms.
_MOST_TERMS = 60

#: A term of a sum or a factor of a product: a sign, and the place of its step.
Term = tuple[int, int]
_Pair = tuple[Term, Term]


def shared_pairs(groups: list[Counter[Term]], signed: bool) -> list[_Pair]:
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

    def renamed(t: Term) -> Term:
        return (t[0], t[1] - first - count) if t[1] < 0 else t

    for terms in groups:
        items = {renamed(t): n for t, n in terms.items()}
        terms.clear()
        terms.update(items)
    return [(renamed(a), renamed(b)) for a, b in pairs]


def _pairs_in(terms: Counter[Term], signed: bool) -> Iterator[_Pair]:
    ordered = sorted(terms)
    for i, a in enumerate(ordered):
        if terms[a] > 1:
            yield _normal(a, a, signed)
        for b in ordered[i + 1 :]:
            yield _normal(a, b, signed)


def _normal(a: Term, b: Term, signed: bool) -> _Pair:
    """One key for a pair in any order and, in sums, of any common sign."""
    if a[1] > b[1]:
        a, b = b, a
    if signed and a[0] < 0:
        return (1, a[1]), (-b[0], b[1])
    return a, b


def _sign_in(terms: Counter[Term], pair: _Pair, signed: bool) -> int:
    """The sign with which the pair is among the terms; 0 if it is not.

    A sum of these two alone is not the negative of the pair: where it vanishes it would be -0.
    """
    (s, a), (t, b) = pair
    for sign in (1, -1) if signed and terms.total() > 2 else (1,):
        enough = 2 if pair[0] == pair[1] else 1
        if terms[sign * s, a] >= enough and terms[sign * t, b] >= enough:
            return sign
    return 0


def _take(terms: Counter[Term], term: Term) -> None:
    terms[term] -= 1
    if not terms[term]:
        del terms[term]
