"""Closed forms: arithmetic over named curves in Python's grammar, which Python never runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: What a part of an expression is worth, by the values of names.
Part = Callable[[Mapping[str, Array]], Any]

#: More than a person writes.
_LONGEST, _DEEPEST = 4000, 60
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("sqrt", "exp", "log", "sin", "cos", "tan")},
    **{name: getattr(np, name) for name in ("sinh", "cosh", "tanh", "sign")},
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
}
CONSTANTS = {"pi": np.pi, "e": np.e}


class Expression:
    """A closed form such as `E * strain.xx`, or `sy + H * p if p > 0 else E * strain.xx`.

    It has numbers, names with dots, + - * / **, comparisons, `a if b else c` and FUNCTIONS. A name
    that is no name of Python, such as the column of a site, stands in quotes: "state.3.xy".
    """

    def __init__(self, text: str) -> None:
        """ValueError says what is no part of a closed form."""
        if len(text) > _LONGEST:
            raise ValueError(f"it is longer than {_LONGEST} characters")
        self._text = " ".join(text.split())  # of several lines, too
        #: What it reads, in order.
        self.names: list[str] = []
        try:
            tree = ast.parse(self._text, mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            raise ValueError(f"it is no expression: {getattr(error, 'msg', error)}") from None
        self._part = self._read(tree.body, _DEEPEST)

    def __call__(self, values: Mapping[str, Array]) -> Array:
        """Its value, where each of `names` has the value that is given."""
        with np.errstate(all="ignore"):  # what is not finite shows in the comparison
            return np.asarray(self._part(values), np.float64)

    def _read(self, node: ast.AST, depth: int) -> Part:
        if not depth:
            raise ValueError(f"it is nested deeper than {_DEEPEST}")
        parts: list[ast.expr]
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return partial(_constant, np.float64(str(number)))
            case ast.Name() | ast.Attribute() | ast.Constant(value=str()):
                name = self._name(node)
                self.names += [name] if name not in self.names else []
                return itemgetter(name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                made, parts = _OPERATORS[type(op)], [left, right]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
                made, parts = _OPERATORS[type(op)], [operand]
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
                made, parts = _OPERATORS[type(op)], [left, right]
            case ast.IfExp(test=test, body=body, orelse=orelse):
                made, parts = np.where, [test, body, orelse]
            case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]):
                if name not in FUNCTIONS:
                    raise ValueError(f"there is no function {name!r}; {', '.join(FUNCTIONS)}")
                made, wanted = FUNCTIONS[name], 2 if name in ("min", "max") else 1
                if len(parts) != wanted:
                    raise ValueError(f"{name}() takes {wanted} argument{'s' * (wanted > 1)}")
            case _:
                raise self._foreign(node)
        return partial(_applied, made, [self._read(part, depth - 1) for part in parts])

    def _name(self, node: ast.AST) -> str:
        """A name with dots, or in quotes."""
        last: list[str] = []
        inner = node
        while isinstance(inner, ast.Attribute):
            last, inner = [inner.attr, *last], inner.value
        match inner:
            case ast.Name(id=first) | ast.Constant(value=str(first)):
                return ".".join([first, *last])
        raise self._foreign(node)

    def _foreign(self, node: ast.AST) -> ValueError:
        text = ast.get_source_segment(self._text, node) or type(node).__name__
        return ValueError(
            f"it may not hold {text[:60]!r}; expected numbers, names, + - * / **, comparisons, "
            f"'a if b else c', {', '.join(FUNCTIONS)}"
        )


def _constant(number: Any, values: Mapping[str, Array]) -> Any:
    return number


def _applied(function: Callable[..., Any], parts: list[Part], values: Mapping[str, Array]) -> Any:
    """The value in float64: a comparison is 1 or 0."""
    return np.asarray(function(*(part(values) for part in parts)), np.float64)
