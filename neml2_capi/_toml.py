"""A TOML file whose errors name the key, what was expected, and what it may have meant."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import Error, FatalError
from neml2_capi._ffi.library import lib

if sys.version_info >= (3, 11):
    import tomllib
else:
    try:
        import tomli as tomllib
    except ImportError:
        raise ImportError(
            "to read TOML, Python 3.10 needs tomli; install with: pip install tomli"
        ) from None

__all__ = ["Node", "load", "tomllib"]


class Node:
    """A value of the file, and where it stands."""

    def __init__(self, file: Path, key: str, value: Any) -> None:
        self.file, self.key, self.value = file, key, value

    def refuse(self, problem: str, status: int | None = None) -> FatalError:
        where = f"{self.file}: {self.key}" if self.key else str(self.file)
        code = lib.NEML2_ERROR_ARGUMENT if status is None else status
        return FatalError(f"{where}: {problem}", code, self.key)

    def expected(self, what: str) -> FatalError:
        return self.refuse(f"expected {what}; got {_shown(self.value)}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """An error inside is one of this value."""
        try:
            yield
        except Error as error:
            raise self.refuse(str(error), error.status) from error
        except OSError as error:
            problem = f"{error.filename}: {error.strerror}"
            raise self.refuse(problem, lib.NEML2_ERROR_FILE) from error

    # --------------------------------------------------------------------------------------------
    # Tables
    # --------------------------------------------------------------------------------------------

    @property
    def is_table(self) -> bool:
        return isinstance(self.value, dict)

    def __contains__(self, name: str) -> bool:
        return self.is_table and name in self.value

    def __getitem__(self, name: str) -> Node:
        return Node(self.file, f"{self.key}.{name}" if self.key else name, self.value[name])

    def table(self, known: Iterable[str] | None = None, kind: str = "key") -> dict[str, Node]:
        """The entries of a table; refused where one has a name that is not `known`."""
        if not self.is_table:
            raise self.expected("a table")
        entries = {name: self[name] for name in self.value}
        if known is not None:
            for name, entry in entries.items():
                entry.must_be_in(known, name, kind)
        return entries

    def must_be_in(self, known: Iterable[str], name: str, kind: str) -> None:
        names = list(known)
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            there = f" The {kind}s are: {', '.join(names)}" if names else f" There are no {kind}s"
            raise self.refuse(f"unknown {kind} {name!r}{hint}{there}", lib.NEML2_ERROR_NAME)

    def find(self, name: str) -> Node | None:
        present = name in self
        return self[name] if present else None

    def required(self, name: str, what: str) -> Node:
        if name not in self:
            raise self.refuse(f"{name!r} is missing: {what}", lib.NEML2_ERROR_MISSING)
        return self[name]

    def tables(self, what: str) -> list[Node]:
        """The tables of a list, one at least."""
        items = self.value if isinstance(self.value, list) else []
        if not items or not all(isinstance(item, dict) for item in items):
            raise self.expected(what)
        return [Node(self.file, f"{self.key}[{i}]", item) for i, item in enumerate(items)]

    # --------------------------------------------------------------------------------------------
    # Values
    # --------------------------------------------------------------------------------------------

    def text(self, what: str = "a text") -> str:
        if not isinstance(self.value, str):
            raise self.expected(what)
        return self.value

    def texts(self, what: str) -> list[str]:
        if isinstance(self.value, list) and all(isinstance(item, str) for item in self.value):
            return list(self.value)
        raise self.expected(what)

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.expected("true or false")
        return self.value

    def count(self, what: str) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 1:
            raise self.expected(what)
        return self.value

    def number(self, what: str = "a number") -> float:
        if not isinstance(self.value, (int, float)) or isinstance(self.value, bool):
            raise self.expected(what)
        return float(self.value)

    def numbers(self, what: str = "a number, or a list of numbers") -> NDArray[np.float64]:
        """An array of numbers; () for a single one."""
        try:
            array = np.asarray(self.value)
        except ValueError:  # rows of unequal lengths
            raise self.expected(what) from None
        if array.dtype.kind not in "iuf" or not array.size:
            raise self.expected(what)
        return array.astype(np.float64)


def load(file: Path) -> dict[str, Any]:
    """The document; FatalError where there is none, or it is not TOML."""
    try:
        document: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        problem = error.strerror or str(error)
        raise Node(file, "", None).refuse(problem, lib.NEML2_ERROR_FILE) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Node(file, "", None).refuse(f"this is not TOML: {error}") from error
    return document


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
