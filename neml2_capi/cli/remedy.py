"""Commands that mend an artifact: how its packages are compiled again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from neml2_capi.artifact.targets import TARGETS, portable_target


def compile_command(metadata: Mapping[str, Any], model: str, dtype: str) -> str:
    """What makes the artifact again as it was, for most processors.

    neml2-compile with its options, or export.model() for a law in torch.
    """
    if "exporter" in metadata:
        return _export_call(metadata, model, dtype)
    target = " ".join(f"{key}={value}" for key, value in TARGETS[portable_target()].items())
    words = ["--model", model, "--device", "cpu", "--dtype", dtype, *_options(metadata)]
    return f"{target} neml2-compile INPUT.i {shlex.join(words)}".lstrip()


def _export_call(metadata: Mapping[str, Any], model: str, dtype: str) -> str:
    """Of the law, which the artifact does not hold, with what it was declared with."""
    residual = any("unknowns" in s for s in _list(metadata, "segments") if isinstance(s, dict))
    names = ("givens", "unknowns") if residual else ("inputs", "outputs")
    words = ["RESIDUAL" if residual else "LAW", repr(model)]
    for name, key in zip(names, ("inputs", "outputs"), strict=True):
        entries = [entry for entry in _list(metadata, key) if isinstance(entry, dict)]
        shapes = {entry.get("name"): tuple(_list(entry, "base_shape")) for entry in entries}
        words.append(f"{name}={shapes}")
    entries = [entry for entry in _list(metadata, "parameters") if isinstance(entry, dict)]
    if entries:
        words.append(f"parameters={ {entry.get('name'): '...' for entry in entries} }")
    words.append(f"dtype={dtype!r}")
    return f"neml2_capi.export.model({', '.join(words)})"


def _options(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Nothing is certain of metadata that may be broken."""
    for parameter in _list(metadata, "parameters"):
        if isinstance(parameter, dict) and isinstance(parameter.get("name"), str):
            yield from ("-p", parameter["name"])
    for key in ("derivatives", "parameter_derivatives"):
        for pair in _list(metadata, key):
            if isinstance(pair, list) and len(pair) == 2:
                yield from ("-d", f"{pair[0]}:{pair[1]}")
    aliases = _dict(metadata, "boundary_aliases")
    for key in ("inputs", "outputs", "parameters"):
        for inside, outside in _dict(aliases, key).items():
            yield from (f"--rename-{key[:-1]}", f"{inside}:{outside}")


def _dict(metadata: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = metadata.get(key)
    return value if isinstance(value, dict) else {}


def _list(metadata: Mapping[str, Any], key: str) -> list[Any]:
    value = metadata.get(key)
    return value if isinstance(value, list) else []
