"""A graph as a list of scalar operations, with its inputs and outputs."""

from __future__ import annotations

import gc
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from neml2_capi.kernels.scalar import Node

#: An operation: its name, the places of its arguments in the list, and its data.
Step = tuple[str, tuple[int, ...], Any]

#: Operations that compute nothing.
FREE = frozenset({"constant", "variable"})
#: Outputs of fewer components store their zeros.
_LEAST_SPARSE = 1024


class NoKernel(Exception):
    """Why a graph has no kernel: "no kernel, because ...", and the line of the law if known."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.place = place

    def __str__(self) -> str:
        reason = str(self.args[0])
        return f"{reason}, at {self.place}" if self.place else reason

    def without_folders(self) -> str:
        """The same with the name of the file alone, for an artifact that others will read."""
        file, colon, rest = self.place.partition(":")
        return str(NoKernel(str(self.args[0]), file.rpartition("/")[2] + colon + rest))


class NoValueError(NoKernel):
    """A constant of a graph has no value, so that there can be no package, either."""


@dataclass(frozen=True)
class Part:
    """A variable that lies within an array."""

    name: str
    offset: int
    components: int


@dataclass(frozen=True)
class Array:
    """An input or output, at one point."""

    name: str
    #: Without the axis of the points.
    shape: tuple[int, ...]
    #: False for one value for all points, as the package takes or returns it.
    per_point: bool = True
    parts: tuple[Part, ...] = ()
    #: Of an input: a caller repeats the graph with other values of it, and the same of all others.
    changes: bool = False
    #: Of an output: the components that are stored if others are zero and are not.
    stored: tuple[int, ...] | None = None

    @property
    def components(self) -> int:
        return math.prod(self.shape)

    @property
    def in_memory(self) -> int:
        """The components that a kernel reads or writes."""
        return self.components if self.stored is None else len(self.stored)


@dataclass
class Program:
    """Steps, in an order in which each stands behind its arguments, and what they yield."""

    inputs: list[Array]
    outputs: list[Array]
    steps: list[Step]
    #: For each output, the step of each of its components; of each that is stored, if not all are.
    results: list[list[int]]
    #: "float64" or "float32".
    real: str = "float64"
    #: Nodes of the graph that it was read from.
    graph_nodes: int = 0
    #: Of the graph as it was read; simplifications keep it.
    checksum: str = field(default="")
    #: Auxiliary unknowns of a Jacobian: its last two outputs are the derivatives of the residual
    #: with respect to them, and theirs with respect to the unknowns and earlier ones.
    auxiliaries: int = 0
    #: By step: the site that it belongs to, as its maker tells; None where it does not.
    sites: list[int | None] | None = None

    @property
    def operations(self) -> int:
        """Scalar operations of one point; a sum of three terms is two."""
        return sum(cost(step) for step in self.steps)

    def to_json(self) -> str:
        """A text from which from_json() makes the same program."""
        document = {
            "inputs": [_plain(array) for array in self.inputs],
            "outputs": [_plain(array) for array in self.outputs],
            "steps": [[name, arguments, _written(data)] for name, arguments, data in self.steps],
            "results": self.results,
            "real": self.real,
            "graph_nodes": self.graph_nodes,
            "checksum": self.checksum,
            "sites": self.sites,
        }
        return json.dumps(document)

    @staticmethod
    def from_json(text: str) -> Program:
        document = json.loads(text)
        inputs, outputs = (
            [Array(name, tuple(shape), per_point) for name, shape, per_point in document[key]]
            for key in ("inputs", "outputs")
        )
        steps = [(name, tuple(places), _read(data)) for name, places, data in document["steps"]]
        return Program(
            inputs,
            outputs,
            steps,
            document["results"],
            document["real"],
            document["graph_nodes"],
            document["checksum"],
            sites=document.get("sites"),
        )


@contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """Nodes hold no cycles, and Python would look at all of them again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def program_of(
    inputs: Sequence[Array], outputs: Sequence[Array], results: Sequence[Sequence[Node]]
) -> Program:
    """The program of nodes, without those that nothing needs; steps are in the order of making."""
    needed: dict[int, Node] = {}
    waiting = [node for of_one in results for node in of_one]
    while waiting:
        node = waiting.pop()
        if node.index not in needed:
            needed[node.index] = node
            waiting.extend(node.arguments)
    nodes = [needed[index] for index in sorted(needed)]
    place = {node.index: position for position, node in enumerate(nodes)}
    steps = [
        (node.operation, tuple(place[a.index] for a in node.arguments), node.data) for node in nodes
    ]
    found = [[place[node.index] for node in of_one] for of_one in results]
    program = Program(list(inputs), list(outputs), steps, found)
    sites = [node.site for node in nodes]
    program.sites = sites if any(site is not None for site in sites) else None
    content = json.dumps([[[n, a, _written(d)] for n, a, d in steps], found])
    program.checksum = hashlib.sha256(content.encode()).hexdigest()
    return program


def with_sparse_outputs(program: Program, count: int) -> Program:
    """The same program, whose first outputs are sparse if most of their components are zero."""
    outputs, results = list(program.outputs), list(program.results)
    for number, places in enumerate(program.results[:count]):
        zeros = {p for p in set(places) if _is_zero(program.steps[p])}
        stored = tuple(c for c, place in enumerate(places) if place not in zeros)
        if len(places) >= _LEAST_SPARSE and 2 * len(stored) < len(places):
            outputs[number] = replace(outputs[number], stored=stored)
            results[number] = [places[c] for c in stored]
    return replace(program, outputs=outputs, results=results)


def _is_zero(step: Step) -> bool:
    return step[0] == "constant" and step[2] == 0


def cost(step: Step) -> int:
    """The operations of a step."""
    name, arguments, _ = step
    if name in FREE:
        return 0
    return len(arguments) - 1 if name in ("sum", "product", "times both") else 1


def live(program: Program) -> Program:
    """The same without steps that nothing needs."""
    needed = bytearray(len(program.steps))
    for places in program.results:
        for place in places:
            needed[place] = 1
    for place in range(len(program.steps) - 1, -1, -1):
        if needed[place]:
            for argument in program.steps[place][1]:
                needed[argument] = 1
    return reordered(program, [place for place, used in enumerate(needed) if used])


def reordered(program: Program, order: Sequence[int]) -> Program:
    """The steps of `order` alone, in it."""
    place = {old: new for new, old in enumerate(order)}
    steps = [program.steps[old] for old in order]
    return Program(
        program.inputs,
        program.outputs,
        [(name, tuple(place[a] for a in arguments), data) for name, arguments, data in steps],
        [[place[old] for old in places] for places in program.results],
        program.real,
        program.graph_nodes,
        program.checksum,
        program.auxiliaries,
    )


def _plain(array: Array) -> list[Any]:
    return [array.name, array.shape, array.per_point]


def _written(data: Any) -> Any:
    """A constant in hexadecimal digits: every bit, and infinity."""
    return data.hex() if isinstance(data, float) else data


def _read(data: Any) -> Any:
    if isinstance(data, str) and data != "nan":
        return float.fromhex(data)
    return tuple(data) if isinstance(data, list) else data
