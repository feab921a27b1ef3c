"""The function that replays an evaluation, written out for the variables of one model.

A loop over one or two variables takes longer than what it does to them, and longer than a small
evaluation. So this is what namedtuple and dataclass do: Python source is put together and run once.
For one input and one output it reads

    def replay(inputs):
        pools = memory.pools
        if type(inputs) is not dict or len(inputs) != 1 or listening:
            return None
        try:
            v0 = inputs['strain']
            if type(v0) is array and v0.dtype is t0 and v0.flags.aligned:
                s0 = v0.shape
            else:
                v0, s0 = like(v0, t0)
            pool = pools[s0]
            slot = pool.pop()
        except (LookupError, TypeError):
            return None
        owner, call, points, b0, c0 = slot
        b0[...] = v0
        status = run(call[0], points)
        if status:
            told(status)
        if (status and status != 1) or memory.pools is not pools:
            pool.append(slot)
            return None
        result = {'stress': c0()}
        pool.append(slot)
        return result
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import last_message
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.logs import drain, listening
from neml2_capi.model.binding import Key


def unrolled(
    memory: Any,
    like: Callable[..., Any],
    read: Sequence[Key],
    dtypes: Sequence[np.dtype[Any]],
    written: Sequence[Key],
) -> Callable[..., Any]:
    """The function for what is `read`, of `dtypes`, and `written`.

    `memory.pools` has lists of slots by the shapes of what is read. A slot is taken while it is in
    use: what owns a call, a pointer to the call, its number of points, an array for each of `read`
    (None where nothing is given), and for each of `written` a function that returns a new array.
    `like` gives an array and a shape for a value that is no plain array; LookupError where it
    cannot.
    """
    directed = any(key[0] != "inputs" for key in read)
    names = {
        "memory": memory,
        "like": like,
        "run": lib.neml2_call_run,
        "listening": listening,
        "told": _told,
        "array": np.ndarray,
        **{f"t{i}": dtype for i, dtype in enumerate(dtypes)},
    }
    found: dict[str, Any] = {}
    exec("\n".join(_lines(read, written, directed)), names, found)
    replay: Callable[..., Any] = found["replay"]
    return replay


def _told(status: int) -> None:
    """Log what there is of a run, but for the warning of one that is done again."""
    drain(but=last_message() if status != lib.NEML2_NON_FINITE else None)


def _lines(read: Sequence[Key], written: Sequence[Key], directed: bool) -> Iterable[str]:
    given = [i for i, key in enumerate(read) if key[0] == "inputs"]
    along = [i for i, key in enumerate(read) if key[0] != "inputs"]
    yield f"def replay(inputs{', directions' if directed else ''}):"
    yield "    pools = memory.pools"
    yield f"    if type(inputs) is not dict or len(inputs) != {len(given)} or listening:"
    yield "        return None"
    if directed:
        yield "    if type(directions) is not dict:"
        yield "        return None"
    yield "    try:"
    for i in given:
        yield f"        v{i} = inputs[{read[i][1]!r}]"
        yield from _shape(i, "if")
    for i in along:
        yield f"        v{i} = directions.get({read[i][1]!r})"
        yield f"        if v{i} is None:"
        yield f"            s{i} = None"
        yield from _shape(i, "elif")
    if directed:
        count = " + ".join(f"(v{i} is not None)" for i in along)
        yield f"        if len(directions) != {count}:"
        yield "            return None"
    yield f"        pool = pools[{', '.join(f's{i}' for i in range(len(read)))}]"
    yield "        slot = pool.pop()"
    yield "    except (LookupError, TypeError):"
    yield "        return None"
    arrays = [f"b{i}" for i in range(len(read))] + [f"c{i}" for i in range(len(written))]
    yield f"    owner, call, points, {', '.join(arrays)} = slot"
    for i in given:
        yield f"    b{i}[...] = v{i}"
    for i in along:
        yield f"    if v{i} is not None:"
        yield f"        b{i}[...] = v{i}"
    yield "    status = run(call[0], points)"
    yield "    if status:"
    yield "        told(status)"
    yield "    if (status and status != 1) or memory.pools is not pools:"
    yield "        pool.append(slot)"
    yield "        return None"
    yield f"    result = {_result(written)}"
    yield "    pool.append(slot)"
    yield "    return result"


def _shape(i: int, keyword: str) -> Iterable[str]:
    yield f"        {keyword} type(v{i}) is array and v{i}.dtype is t{i} and v{i}.flags.aligned:"
    yield f"            s{i} = v{i}.shape"
    yield "        else:"
    yield f"            v{i}, s{i} = like(v{i}, t{i})"


def _result(written: Sequence[Key]) -> str:
    """What is returned: a mapping of outputs, one of other results, or both."""
    groups: dict[str, dict[str, Any]] = {}
    for i, (group, *names) in enumerate(written):
        table = groups.setdefault("outputs" if group == "outputs" else "others", {})
        for name in names[:-1]:
            table = table.setdefault(name, {})
        table[names[-1]] = i
    tables = [_table(table) for table in groups.values()]
    return f"({', '.join(tables)})" if len(tables) > 1 else tables[0]


def _table(entry: Any) -> str:
    if isinstance(entry, int):
        return f"c{entry}()"
    return f"{{{', '.join(f'{name!r}: {_table(value)}' for name, value in entry.items())}}}"
