"""The directory of a sweep: what it is of, its parameter sets, its results and its failures."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.outside import require_outside
from neml2_capi._ffi.tensor import Array
from neml2_capi.sweeps.identity import digest, identity
from neml2_capi.sweeps.store import Files, Memory, Store, write
from neml2_capi.sweeps.work import Failure, Run
from neml2_capi.sweeps.zarr_store import Zarr

_FORMAT = 1


#: What keeps the results of so many sets, by its name.
STORES: dict[str, Callable[[Path, int], Store]] = {
    "npz": lambda folder, _: Files(folder / "items"),
    "zarr": lambda folder, count: Zarr(folder / "results.zarr", count),
}


class Folder:
    """A directory that holds a sweep.

    - `sweep.json`: the format, what keeps the results, and digests of what the sweep is of;
    - `parameters.npz`: the parameter sets, (sets, *shape of a value) by name;
    - `items` or `results.zarr`: the results;
    - `failures.jsonl`: a line for each failure; the last one of a set holds.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.fspath(path))

    def begin(self, sets: Mapping[str, Array], run: Run, store: str) -> None:
        """Make it of this sweep, unless it is already; FatalError if it is of another."""
        mine = {**identity(run), "parameters": digest(sets)}
        file = self.path / "sweep.json"
        if file.exists():
            found = self._description()
            names = dict.fromkeys([*mine, *found["digests"]])
            changed = [name for name in names if mine.get(name) != found["digests"].get(name)]
            if changed:
                raise self._refused(
                    f"holds another sweep, which differs in {' and '.join(changed)}; name another "
                    "directory, or remove this one to begin anew"
                )
            if found["store"] != store:
                raise self._refused(f"keeps its results as {found['store']}; go on with that store")
            return
        ours = {".lock", "parameters.npz", "parameters.part", "sweep.part"}
        if any(found.name not in ours for found in self.path.iterdir()):
            raise self._refused("is not empty, and holds no sweep; name another directory")
        write(self.path / "parameters.npz", sets)
        document = {"format": _FORMAT, "store": store, "digests": mine}
        part = file.with_suffix(".part")
        part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        part.replace(file)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the directory if need be; FatalError where another process is at it."""
        require_outside(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("w") as file:
            try:
                # Of this process: with flock, workers that outlive it would hold the lock.
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                raise self._refused(
                    "is in use: another process makes this sweep; wait for it, or stop it"
                ) from None
            except OSError:  # a file system without locks
                pass
            yield

    def parameters(self) -> dict[str, Array]:
        """The parameter sets, as columns; FatalError where there is no sweep."""
        self._description()
        with np.load(self.path / "parameters.npz") as loaded:
            return dict(loaded)

    def store(self, count: int) -> Store:
        """What keeps the results of so many sets."""
        return STORES[self._description()["store"]](self.path, count)

    def failures(self) -> dict[int, Failure]:
        """Those that were told last, by item."""
        file = self.path / "failures.jsonl"
        found = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
            with contextlib.suppress(ValueError, KeyError, TypeError):  # a line cut short
                told = json.loads(line)
                item = told.pop("item")
                found[item] = Failure(**told)
        return found

    def put_failures(self, failures: Mapping[int, Failure]) -> None:
        """Add to what is told."""
        with (self.path / "failures.jsonl").open("a", encoding="utf-8") as file:
            for item, failure in failures.items():
                # The line before may have been cut short.
                file.write(f"\n{json.dumps({'item': item, **failure._asdict()})}")

    def _description(self) -> dict[str, Any]:
        file = self.path / "sweep.json"
        try:
            found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise self._refused("holds no sweep: there is no sweep.json") from None
        except ValueError as error:
            raise self._refused(f"has a damaged sweep.json: {error}") from None
        if found.get("format") != _FORMAT or found.get("store") not in STORES:
            raise self._refused(
                f"was written by a later version; this one reads the format {_FORMAT}"
            )
        return found

    def _refused(self, what: str) -> FatalError:
        return FatalError(
            f"the directory {self.path} {what}", lib.NEML2_ERROR_ARGUMENT, str(self.path)
        )


class Unkept:
    """In place of a folder, where results stay in memory."""

    def begin(self, sets: Mapping[str, Array], run: Run, store: str) -> None:
        pass

    def locked(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def store(self, count: int) -> Store:
        return Memory()

    def failures(self) -> dict[int, Failure]:
        return {}

    def put_failures(self, failures: Mapping[int, Failure]) -> None:
        pass
