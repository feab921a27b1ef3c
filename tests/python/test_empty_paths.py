"""An empty path is said to be empty: it is not the folder where the process is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from command_line import error

from neml2_capi import FatalError, Graph, Model, Scheduler, examples, page, plugin, umat

STEEL = examples.path("chaboche")
CALLS: dict[str, Callable[[Model], Any]] = {
    "Model": lambda steel: Model(""),
    "Graph": lambda steel: Graph(""),
    "save_state": lambda steel: steel.save_state("", steel.state(2)),
    "load_state": lambda steel: steel.load_state(""),
    "Scheduler": lambda steel: Scheduler.from_toml(""),
    "draft": lambda steel: umat.draft(""),
    "page": lambda steel: page.make("", "law.html"),
    "the output of a page": lambda steel: page.make(STEEL, ""),
    "plugin": lambda steel: plugin.make("", "law.so"),
    "the output of a plug-in": lambda steel: plugin.make(STEEL, ""),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_empty_path_is_told(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Model(STEEL) as steel, pytest.raises(FatalError, match=r"^the path is empty$"):
        CALLS[name](steel)


@pytest.mark.parametrize("words", ["inspect ''", "header '' -o law.hpp", "umat law --output ''"])
def test_the_command_line_tells_it_too(words: str) -> None:
    """A variable of a shell that is not set gives one, for example."""
    assert "the path is empty" in error(*(word.strip("'") for word in words.split()))
