"""The TOML file of a run, with changes of its keys from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from neml2_capi._document import Node, parse_toml, read_toml
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib


def read(file: Path, settings: Iterable[str] = ()) -> Node:
    """The file, with `settings` such as "times.steps=20" in place of what it says."""
    return changed(read_toml(file), settings)


def changed(node: Node, settings: Iterable[str]) -> Node:
    """A table of a file, with `settings` in place of what it says."""
    document: dict[str, Any] = node.value
    _flatten_parameters(document)
    for setting in settings:
        change = _setting(setting)
        _flatten_parameters(change)
        _merge(document, change)
    return Node(node.file, node.key, document)


def _setting(setting: str) -> dict[str, Any]:
    key, separator, value = setting.partition("=")
    if separator and key.strip():
        for text in (value, json.dumps(value)):  # a word needs no quotes
            try:
                return parse_toml(f"{key} = {text}")
            except (ValueError, RecursionError):
                pass
    raise FatalError(
        f"--set {setting}: expected KEY=VALUE, for example times.steps=20",
        lib.NEML2_ERROR_ARGUMENT,
        setting,
    )


def _flatten_parameters(document: dict[str, Any]) -> None:
    """A dot in a key of TOML makes a table, and in the name of a parameter does not."""
    parameters = document.get("parameters")
    if isinstance(parameters, dict):
        document["parameters"] = dict(_leaves(parameters))


def _leaves(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _merge(table: dict[str, Any], change: dict[str, Any]) -> None:
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(table.get(key), dict):
            _merge(table[key], value)
        else:
            table[key] = value
