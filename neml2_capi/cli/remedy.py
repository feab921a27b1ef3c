"""Commands that mend an artifact: how its packages are compiled again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from neml2_capi.artifact.targets import TARGETS, portable_target


def compile_command(metadata: Mapping[str, Any], model: str, dtype: str) -> str:
    """neml2-compile with the options that the artifact was compiled with, for most processors."""
    target = " ".join(f"{key}={value}" for key, value in TARGETS[portable_target()].items())
    words = ["--model", model, "--device", "cpu", "--dtype", dtype, *_options(metadata)]
    return f"{target} neml2-compile INPUT.i {shlex.join(words)}".lstrip()


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
