"""Results put together as the module that was compiled returns them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

#: Takes the tensors of a result one after another.
Build = Callable[[Iterator[Any]], Any]


def structure(spec: str, count: int) -> Build | None:
    """Return what makes a tuple, list or dict of `count` tensors, by torch's pytree specification.

    None if it has other types or another number of tensors, or is a lone tensor: its results
    stay a tuple.
    """
    try:
        build, leaves = _builder(json.loads(spec)[1])
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
    return build if leaves == count and build is not next else None


def _builder(tree: dict[str, Any]) -> tuple[Build, int]:
    """The builder of a subtree, and how many tensors it takes."""
    kind = tree["type"]
    if kind is None:
        return next, 1
    children = [_builder(child) for child in tree["children_spec"]]
    builds, leaves = [build for build, _ in children], sum(count for _, count in children)
    if kind == "builtins.dict":
        keys = json.loads(tree["context"])
        if len(keys) != len(builds) or not all(isinstance(key, str) for key in keys):
            raise ValueError(keys)
        pairs = list(zip(keys, builds, strict=True))
        return lambda tensors: {key: build(tensors) for key, build in pairs}, leaves
    if kind == "builtins.list":
        return lambda tensors: [build(tensors) for build in builds], leaves
    if kind == "builtins.tuple":
        return lambda tensors: tuple([build(tensors) for build in builds]), leaves
    raise ValueError(kind)
