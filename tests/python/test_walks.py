"""The walks of docs/design/walks.md are what runs: few functions, and each room entered once."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import HOSTS, PACKAGE, ROOT, c_program, command

from neml2_capi import Model, examples
from neml2_capi.model import native

pytestmark = pytest.mark.native

PAGE = ROOT / "docs" / "design" / "walks.md"
RUN = ("neml2_call_run", "capi/abi/call.cpp")

#: A function, and the file that it is in.
Step = tuple[str, str]


def tables() -> Iterator[tuple[str, list[Step]]]:
    """The walks by their titles."""
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        rows = re.findall(r"^\| `(\S+)` \| (\S+) \|$", section, re.MULTILINE)
        yield section.partition("\n")[0], rows


WALKS = dict(tables())
IN_PYTHON = ("Forward from numpy", "Torch, to the library", "Torch, backward")


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_is_short_and_enters_each_room_once(name: str) -> None:
    walk = WALKS[name]
    assert 0 < len(walk) <= 10
    rooms = [room for room, _ in groupby(Path(file).parent for _, file in walk)]
    assert len(rooms) == len(set(rooms))


# ---- In Python: what is entered ----


def entered(function: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """The functions of the package that a call enters, each once, and the run in the library."""
    steps: list[Step] = []

    def note(frame: Any, event: str, _: Any) -> None:
        file, code = Path(frame.f_code.co_filename), frame.f_code.co_name
        # Comprehensions are functions of their own in Python 3.11 and before.
        if event == "call" and file.is_relative_to(PACKAGE) and not code.startswith("<"):
            steps.append((code, f"neml2_capi/{file.relative_to(PACKAGE)}"))

    def run(call: Any, points: int) -> int:
        steps.append(RUN)
        status: int = library_run(call, points)
        return status

    library_run = native._run
    with monkeypatch.context() as patch:
        for module in ("model.native", "torch._calls"):
            if f"neml2_capi.{module}" in sys.modules:
                patch.setattr(f"neml2_capi.{module}._run", run)
        sys.setprofile(note)
        try:
            function()
        finally:
            sys.setprofile(None)
    mine = ("run", f"tests/python/{Path(__file__).name}")
    return [step for step in dict.fromkeys(steps) if step != mine]


def told(name: str) -> list[Step]:
    """The walk of that title as `entered` has it, without the classes of the functions."""
    return [(function.rpartition(".")[2], file) for function, file in WALKS[name]]


def test_forward_from_numpy_enters_what_its_walk_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs = Model(examples.path("elasticity")), {"strain": np.full((3, 6), 1e-3)}
    model.forward(inputs)
    for _ in range(2):
        steps = entered(lambda: model.forward(inputs), monkeypatch)
        assert steps == told("Forward from numpy")


def test_torch_enters_what_its_walks_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = pytest.importorskip("torch")
    from neml2_capi.torch import Module

    material = Module(examples.path("elasticity"), parameters=[])
    strain = torch.full((3, 6), 1e-3, dtype=torch.float64, requires_grad=True)
    results: list[Any] = []
    for _ in range(2):  # the first one makes a plan
        results.clear()
        steps = entered(lambda: results.append(material(strain=strain)["stress"]), monkeypatch)
    assert steps == told("Torch, to the library")
    total = results[0].sum()
    assert entered(total.backward, monkeypatch) == told("Torch, backward")
    assert strain.grad.shape == strain.shape


# ---- In C++: each calls the next ----


def bodies(function: str, file: str) -> list[str]:
    """The definitions of a function in a file: all of its name, in its class if it has one."""
    text = re.sub(r"//[^\n]*", "", (ROOT / file).read_text(encoding="utf-8"))
    holder, _, name = function.rpartition("::")
    assert re.search(rf"\b{holder}\b", text), f"{file} has no {holder}"
    found = []
    for match in re.finditer(rf"\b{name}\([^;{{}}]*\)[^;{{}}()]*\{{", text):
        end, depth = match.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found.append(text[match.end() : end])
    assert found, f"{file} does not define {function}"
    return found


@pytest.mark.parametrize("name", [name for name in WALKS if name not in IN_PYTHON])
def test_each_function_of_a_walk_in_c_plus_plus_calls_the_next(name: str) -> None:
    for (function, file), (following, _) in pairwise(WALKS[name]):
        called = re.compile(rf"\b{following.rpartition('::')[2]}(<\w+>)?\(")
        assert any(called.search(body) for body in bodies(function, file)), (
            f"{function}: {following}"
        )
    assert bodies(*WALKS[name][-1])


def called(trace: Path) -> set[tuple[str, str]]:
    """The functions that call one another, by what callgrind wrote: each has a number."""
    names: dict[str, str] = {}
    pairs, caller = set(), ""
    for kind, number, name in re.findall(r"^(c?fn)=(\(\d+\))(?: (.*))?$", trace.read_text(), re.M):
        if name:
            names[number] = name
        if kind == "fn":
            caller = number
        else:
            pairs.add((caller, number))
    return {(names[one], names[other]) for one, other in pairs}


@pytest.mark.full("valgrind")
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind was not found")
def test_each_function_on_kernels_calls_the_next_when_it_runs(tmp_path: Path) -> None:
    program, trace = c_program(HOSTS / "one_strain.c"), tmp_path / "trace"
    options = (
        "--tool=callgrind",
        f"--callgrind-out-file={trace}",
        "--toggle-collect=neml2_call_run",
    )
    command("valgrind", *options, program, examples.path("elasticity"))
    walk = [function for function, _ in WALKS["Run on kernels"]]
    walk = walk[: walk.index("walk") + 1]  # the rest is inline

    def is_of(name: str, function: str) -> bool:
        called = function.replace("::", "(<.+>)?::")
        return bool(re.search(rf"\b{called}(<.+>)?(\(|$|::{{lambda)", name))

    pairs = called(trace)
    for one, other in pairwise(walk):
        assert any(is_of(a, one) and is_of(b, other) for a, b in pairs), f"{one}: {other}"
