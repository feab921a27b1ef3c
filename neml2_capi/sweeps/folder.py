"""The directory of a sweep: what it is of, its parameter sets, its results and its failures."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from neml2_capi._document import Node, read_json
from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.outside import require_outside
from neml2_capi.artifact.lock import Busy, locked
from neml2_capi.driver.arguments import file_name
from neml2_capi.driver.npz import read_npz
from neml2_capi.sweeps.identity import digest, identity
from neml2_capi.sweeps.store import (
    Files,
    Memory,
    Store,
    put_aside,
    require_no_stream,
    told_of,
    write,
)
from neml2_capi.sweeps.work import Failure, Run
from neml2_capi.sweeps.zarr_store import Zarr

_FORMAT = 1


#: What keeps the results.
STORES = ("npz", "zarr")


class Folder:
    """A directory that holds a sweep.

    - `sweep.json`: the format, what keeps the results, and digests of what the sweep is of;
    - `parameters.npz`: the parameter sets, (sets, *shape of a value) by name;
    - `items` or `results.zarr`: the results;
    - `failures.jsonl`: a line for each failure; the last one of a set holds.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(file_name("directory", path))

    def begin(self, sets: Mapping[str, Array], run: Run, store: str) -> None:
        """Make it of this sweep, unless it is already; FatalError if it is of another."""
        mine = {**identity(run), "parameters": digest(sets)}
        file = self.path / "sweep.json"
        if os.path.lexists(file):
            kept, digests = self._description()
            names = dict.fromkeys([*mine, *digests])
            changed = [name for name in names if mine.get(name) != digests.get(name)]
            if changed:
                raise self._refused(
                    f"holds another sweep, which differs in {' and '.join(changed)}; name another "
                    "directory, or remove this one to begin again"
                )
            if kept != store:
                raise self._refused(f"keeps its results as {kept}; go on with that store")
            try:
                self.parameters()
            except FatalError as error:  # the call's own parameters are wrong
                if os.path.lexists(self.path / "parameters.npz"):
                    put_aside(self.path / "parameters.npz", error)
                write(self.path / "parameters.npz", sets)
            return
        ours = {".lock", "parameters.npz", "parameters.part", "sweep.part"}
        if any(found.name not in ours for found in self.path.iterdir()):
            raise self._refused(
                "is not empty, and holds no sweep: there is no sweep.json; name another "
                "directory, or restore that file from a copy"
            )
        write(self.path / "parameters.npz", sets)
        document = {"format": _FORMAT, "store": store, "digests": mine}
        part = file.with_suffix(".part")
        with told_of(file, "be written"):
            part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            part.replace(file)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the directory if need be; FatalError if another process, or thread, is at it."""
        require_outside(self.path)
        with contextlib.ExitStack() as stack:
            with told_of(self.path, "be made the directory of a sweep"):
                self.path.mkdir(parents=True, exist_ok=True)
            require_no_stream(self.path / ".lock", "be locked")
            with told_of(self.path / ".lock", "be locked"):
                try:
                    stack.enter_context(locked(self.path / ".lock"))
                except Busy as error:
                    raise self._refused(
                        f"is in use: {error} makes this sweep; wait for it, or stop it"
                    ) from None
            yield

    def parameters(self) -> dict[str, Array]:
        """The parameter sets, as columns; FatalError if there are none, or damaged ones."""
        _, digests = self._description()
        file = self.path / "parameters.npz"
        try:
            columns = read_npz(file, "directory")
            if not columns or digest(columns) != digests.get("parameters"):
                raise FatalError(f"{file} does not hold the sets that sweep.json tells of")
        except FatalError as error:
            raise FatalError(
                f"{error}. Make the same sweep again: that writes the file again, and runs no set "
                "that is done",
                lib.NEML2_ERROR_FILE,
                str(file),
            ) from error
        return columns

    def store(self, count: int, *, mend: bool) -> Store:
        """What keeps the results of so many sets; to `mend` is to make what is damaged again."""
        kept, _ = self._description()
        if kept == "npz":
            return Files(self.path / "items", count, mend=mend)
        return Zarr(self.path / "results.zarr", count, mend=mend)

    def failures(self, count: int) -> dict[int, Failure]:
        """Return the last failure of each item."""
        file = self.path / "failures.jsonl"
        if not os.path.lexists(file):
            return {}
        require_no_stream(file, "be read")
        with told_of(file, "be read"):
            lines = file.read_bytes().split(b"\n")
        return {item: failure for line in lines for item, failure in _failures_in(line, count)}

    def put_failures(self, failures: Mapping[int, Failure]) -> None:
        """Append failures to the file."""
        file = self.path / "failures.jsonl"
        require_no_stream(file, "be written")
        with told_of(file, "be written"), file.open("a", encoding="utf-8") as stream:
            for item, failure in failures.items():
                # The line before may have been cut short.
                stream.write(f"\n{json.dumps({'item': item, **failure._asdict()})}")

    def _description(self) -> tuple[str, dict[str, str]]:
        """The store, and the digests of what the sweep is of."""
        file = self.path / "sweep.json"
        if not os.path.lexists(file):
            raise self._refused(
                "holds no sweep: there is no sweep.json; name one that sweep() was given, or "
                "restore that file from a copy"
            )
        require_no_stream(file, "be read")
        try:
            return _described(read_json(file))
        except FatalError as error:
            raise self._refused(
                f"has a damaged sweep.json: {error}. Restore that file from a copy, or name "
                "another directory; the results of the sets are beside it, unharmed"
            ) from error

    def _refused(self, what: str) -> FatalError:
        return FatalError(
            f"the directory {self.path} {what}", lib.NEML2_ERROR_ARGUMENT, str(self.path)
        )


def _described(document: Node) -> tuple[str, dict[str, str]]:
    document.table(("format", "store", "digests"))
    form = document.required("format", f"{_FORMAT}")
    if form.whole("a number", 1) != _FORMAT:
        raise form.refuse(
            f"was written by a later version, in the format {form.value}; this one reads {_FORMAT}"
        )
    store = document.required("store", f"one of {', '.join(STORES)}")
    store.must_be_in(STORES, store.text(f"one of {', '.join(STORES)}"), "store")
    digests = document.required("digests", "what the sweep is of")
    entries = digests.table()
    for name in ("run", "parameters"):
        digests.required(name, "a digest of it")
    return store.value, {name: entry.text("a digest") for name, entry in entries.items()}


def _failures_in(line: bytes, count: int) -> Iterator[tuple[int, Failure]]:
    """The failure of a line; none if it was cut short, or is damaged: its set is run again."""
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
        told = json.loads(line)
        item, failure = told.pop("item"), Failure(**told)
        whole = isinstance(item, int) and not isinstance(item, bool) and 0 <= item < count
        if whole and all(isinstance(text, str) for text in failure):
            yield item, failure


class Unkept:
    """In place of a folder, if results stay in memory."""

    def begin(self, sets: Mapping[str, Array], run: Run, store: str) -> None:
        pass

    def locked(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def store(self, count: int, *, mend: bool) -> Store:
        return Memory()

    def failures(self, count: int) -> dict[int, Failure]:
        return {}

    def put_failures(self, failures: Mapping[int, Failure]) -> None:
        pass
