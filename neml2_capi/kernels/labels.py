"""Which site each operation of a graph belongs to.

Nothing depends on these labels but the speed and the length of a kernel: operations that have the
same form at many sites become loops, and each is verified then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from neml2_capi.kernels.program import Array, Program

#: What a component is, the same at all sites, and its site; None if all sites share it.
Origin = tuple[Hashable, int | None]
#: A value of more neighbours than these sums over sites, or goes from site to site.
_WIDEST = 4
#: An axis of fewer elements is none of sites, if nothing tells.
LEAST_SITES = 8


def of_variables(
    shapes: Sequence[tuple[Sequence[int], Sequence[int]]], by_site: bool = False
) -> list[Origin]:
    """The components of variables that lie side by side, or side by side in each site.

    Parameters
    ----------
    shapes : Sequence[tuple[Sequence[int], Sequence[int]]]
        By variable: its sub-batch axes, and its base shape. If there are none of the former, a long
        first axis of the latter is one of sites.
    by_site : bool
        Whether the components of all variables stand together at each site.
    """
    origins: list[list[Origin]] = []
    for number, (outer, base) in enumerate(shapes):
        if not outer and base and base[0] >= LEAST_SITES:
            outer, base = base[:1], base[1:]
        sites, size = _product(outer), _product(base)
        origins.append(
            [((number, c % size), c // size if outer else None) for c in range(sites * size)]
        )
    flat = [origin for of_one in origins for origin in of_one]
    return sorted(flat, key=lambda o: (o[1] or 0, o[0])) if by_site else flat


def of_plain(array: Array, sites: int) -> list[Origin]:
    """The components of an array whose first axis is one of so many sites, or is not."""
    shape = array.shape
    sited = len(shape) > 0 and shape[0] == sites >= LEAST_SITES
    size = _product(shape[1:]) if sited else array.components
    return [(c % size, c // size if sited else None) for c in range(array.components)]


def _product(shape: Sequence[int]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def labelled(program: Program, origins: Sequence[Sequence[Origin]]) -> list[int | None]:
    """The site of each step, by its arguments.

    The last site that an operation takes something from is its own, and that of its place in an
    array if it takes nothing from any; a value that many operations take is all sites'.
    """
    uses: Counter[int] = Counter(a for _, arguments, _ in program.steps for a in arguments)
    sites = 1 + max((s for of in origins for _, s in of if s is not None), default=-1)
    most = max(LEAST_SITES, sites // 2)
    told = program.sites or [None] * len(program.steps)
    labels: list[int | None] = []
    spans: list[tuple[int, int] | None] = []
    for place, (name, arguments, data) in enumerate(program.steps):
        label, span = None, None
        if name == "variable":
            label = origins[data[0]][data[1]][1]
            span = None if label is None else (label, label)
        elif name != "constant":  # it may be several sites'
            near, far = -1, -1
            for argument in arguments:
                own, of = labels[argument], spans[argument]
                if own is None or of is None:
                    continue
                span = of if span is None else (min(span[0], of[0]), max(span[1], of[1]))
                if of[1] - of[0] <= _WIDEST:
                    near = max(near, own)
                else:
                    far = max(far, own)
            wide = span is not None and span[1] - span[0] > _WIDEST
            if span is None:
                label = told[place]
                span = None if label is None else (label, label)
            elif not (wide and uses[place] >= most):
                label = near if near >= 0 else far
        labels.append(label)
        spans.append(None if label is None else span)
    return labels
