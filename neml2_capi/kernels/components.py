"""Strongly connected components of a graph."""

from __future__ import annotations

from collections.abc import Iterator


def components(needs: dict[int, list[int]]) -> list[list[int]]:
    """Strongly connected components, each behind all that it needs (Tarjan, 1972)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    found: list[list[int]] = []
    for root in needs:
        if root in number:
            continue
        work: list[tuple[int, Iterator[int]]] = [(root, iter(needs[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            for other in successors:
                if other not in number:
                    number[other] = low[other] = len(number)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(needs[other])))
                    break
                if other in on_stack:
                    low[node] = min(low[node], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    group = []
                    while True:
                        other = stack.pop()
                        on_stack.discard(other)
                        group.append(other)
                        if other == node:
                            break
                    found.append(group)
    return found
