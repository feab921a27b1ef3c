"""Files of TOML and JSON, whose errors name the key, what was expected, and what it may mean."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import Error, FatalError, unknown_name
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.refusals import reason_of

#: A form of Node.require(): the name of a file in the same folder.
FILE_NAME = "the name of a file, without a folder"
#: In a tuple of forms: the name may be absent.
MAYBE = "absent"
_TYPES: dict[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}
_TYPES |= {dict: "a table", list: "a list", None: "null", FILE_NAME: FILE_NAME, MAYBE: MAYBE}
#: More bytes, and deeper, than a person or a correct program writes.
_LARGEST, _DEEPEST = 1 << 26, 64


class Node:
    """A value of the file, and where it stands."""

    def __init__(self, file: Path, key: str, value: Any) -> None:
        self.file, self.key, self.value = file, key, value

    def refuse(self, problem: str, status: int | None = None) -> FatalError:
        where = f"{self.file}: {self.key}" if self.key else str(self.file)
        code = lib.NEML2_ERROR_ARGUMENT if status is None else status
        return FatalError(f"{where}: {problem}", code, self.key)

    def expected(self, what: str) -> FatalError:
        return self.refuse(f"expected {what}; got {shortened(self.value)}")

    @contextmanager
    def blamed(self, kind: type[Error] = Error) -> Iterator[None]:
        """An error inside, of this kind, is one of this value."""
        try:
            yield
        except kind as error:
            raise self.refuse(str(error), error.status) from error
        except OSError as error:
            problem = f"{error.filename}: {reason_of(error)}"
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
        """The entries of a table; refused if one has a name that is not `known`."""
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
            raise self.refuse(str(unknown_name(kind, name, names)), lib.NEML2_ERROR_NAME)

    def choice(self, names: Iterable[str], kind: str) -> str:
        """A text that is one of these names."""
        known = list(names)
        name = self.text(f"one of {', '.join(known)}")
        self.must_be_in(known, name, kind)
        return name

    def find(self, name: str) -> Node | None:
        present = name in self
        return self[name] if present else None

    def required(self, name: str, what: str) -> Node:
        if name not in self:
            raise self.refuse(f"{name!r} is missing: {what}", lib.NEML2_ERROR_MISSING)
        return self[name]

    def tables(self, what: str, least: int = 1) -> list[Node]:
        """The tables of a list, so many at least."""
        items = self.value if isinstance(self.value, list) else None
        if items is None or len(items) < least or not all(isinstance(i, dict) for i in items):
            raise self.expected(what)
        return [Node(self.file, f"{self.key}[{i}]", item) for i, item in enumerate(items)]

    def require(self, form: Any) -> None:
        """FatalError, with the key, unless the value is of this form.

        A form is a type; None; FILE_NAME; a tuple of forms, of which one is enough; [form] for a
        list; {name: form} for a table with these names, and maybe others, where MAYBE in a tuple
        says that the name may be absent; {str: form} for a table of any names.
        """
        if isinstance(form, list):
            if not isinstance(self.value, list):
                raise self.expected("a list")
            for number, value in enumerate(self.value):
                Node(self.file, f"{self.key}[{number}]", value).require(form[0])
        elif isinstance(form, dict):
            entries = self.table()
            if str in form:
                form = dict.fromkeys(entries, form[str])
            for name, inner in form.items():
                if name in entries:
                    entries[name].require(inner)
                elif not (isinstance(inner, tuple) and MAYBE in inner):
                    raise self.refuse(f"{name!r} is missing", lib.NEML2_ERROR_MISSING)
        elif not any(
            _is(self.value, each) for each in (form if isinstance(form, tuple) else (form,))
        ):
            raise self.expected(_named(form))

    # --------------------------------------------------------------------------------------------
    # Values
    # --------------------------------------------------------------------------------------------

    def text(self, what: str = "a text") -> str:
        if not isinstance(self.value, str):
            raise self.expected(what)
        return self.value

    def path(self, what: str = "the path of a file") -> str:
        """A text that can be a path."""
        text = self.text(what)
        if not text or "\0" in text:
            raise self.expected(f"{what}, of one letter at least and no zero byte")
        return text

    def texts(self, what: str) -> list[str]:
        if isinstance(self.value, list) and all(isinstance(item, str) for item in self.value):
            return list(self.value)
        raise self.expected(what)

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.expected("true or false")
        return self.value

    def count(self, what: str) -> int:
        return self.whole(what, 1)

    def whole(self, what: str, least: int = 0) -> int:
        """A whole number of 64 bits."""
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
            raise self.expected(what)
        return value

    def number(self, what: str = "a number") -> float:
        """A finite number."""
        if not isinstance(self.value, (int, float)) or isinstance(self.value, bool):
            raise self.expected(what)
        try:
            value = float(self.value)
        except OverflowError:  # an integer beyond all numbers of floating point
            value = math.inf
        if not math.isfinite(value):
            raise self.expected(f"{what}, which is finite")
        return value

    def numbers(self, what: str = "a number, or a list of numbers") -> NDArray[np.float64]:
        """An array of finite numbers; () for a single one."""
        try:
            array = np.asarray(self.value)
        except (ValueError, OverflowError):  # rows of unequal lengths
            raise self.expected(what) from None
        if array.dtype.kind not in "iuf" or not array.size:
            raise self.expected(what)
        if not np.isfinite(array).all():
            raise self.expected(f"{what}, which are finite")
        return array.astype(np.float64)


def _is(value: Any, form: Any) -> bool:
    """Whether a value is of a form that has no parts."""
    if form is None:
        return value is None
    if form is MAYBE:
        return False
    if form is FILE_NAME:
        return isinstance(value, str) and Path(value).name == value != "" and "\0" not in value
    if form is int:
        return type(value) is int and abs(value) < 2**63
    if form is float:
        return type(value) is int or (type(value) is float and math.isfinite(value))
    return isinstance(value, form)


def _named(form: Any) -> str:
    return " or ".join(_TYPES[each] for each in (form if isinstance(form, tuple) else (form,)))


def parse_toml(text: str) -> dict[str, Any]:
    """The document of a text; ValueError if it is not TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError:
            raise ImportError(
                "to read TOML, Python 3.10 needs tomli; install with: pip install tomli"
            ) from None
    document: dict[str, Any] = tomllib.loads(text)
    return document


def read_toml(file: Path) -> Node:
    """The document; FatalError if there is none, or it is not TOML."""
    return _read(file, parse_toml, "TOML")


def read_json(file: Path) -> Node:
    """The document; FatalError if there is none, or it is not JSON."""
    return _read(file, json.loads, "JSON")


def parse_json(file: Path, content: bytes) -> Node:
    """The document of a text that `file` names in errors; FatalError if it is not JSON."""
    return _parsed(file, content, json.loads, "JSON")


def read_text(file: Path) -> str:
    """The text of a file; FatalError if it cannot be read, or is endless."""
    text: str = _read(file, str, "a text").value
    return text


def _read(file: Path, parse: Callable[[str], Any], language: str) -> Node:
    try:
        with file.open("rb") as stream:
            return _parsed(file, stream.read(_LARGEST + 1), parse, language)
    except OSError as error:
        problem = reason_of(error)
        raise Node(file, "", None).refuse(problem, lib.NEML2_ERROR_FILE) from error
    except ValueError as error:  # of a path
        raise Node(file, "", None).refuse(str(error)) from error


def _parsed(file: Path, content: bytes, parse: Callable[[str], Any], language: str) -> Node:
    node = Node(file, "", None)
    if len(content) > _LARGEST:
        raise node.refuse(f"it is larger than {_LARGEST >> 20} MiB, and is not read")
    try:
        document = parse(content.decode("utf-8-sig"))  # editors of Windows begin with a mark
        _require_shallow(document)
    except RecursionError as error:
        raise node.refuse(f"tables and lists are nested deeper than {_DEEPEST}") from error
    except ValueError as error:  # of the parser, of UTF-8, or of too many digits
        why = " ".join(str(error).split())
        raise node.refuse(f"this is not {language}: {why}") from error
    return Node(file, "", document)


def _require_shallow(document: Any) -> None:
    """RecursionError if a document is so deep that who walks it would fall."""
    level = [document]
    for _ in range(_DEEPEST):
        inner = [each for each in level if isinstance(each, dict | list)]
        level = [
            value for each in inner for value in (each.values() if isinstance(each, dict) else each)
        ]
    if any(isinstance(each, dict | list) for each in level):
        raise RecursionError


def shortened(value: Any) -> str:
    """A value as a message has it."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
