"""Files are written whole or not at all, and never into the installed package, which pip owns."""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib, library_path
from neml2_capi._ffi.refusals import reason_of
from neml2_capi._ffi.strings import require_path

#: As it is imported, and where its files and its library are: in a checkout these may differ.
_PACKAGES = {
    os.path.dirname(os.path.dirname(found))  # noqa: PTH120
    for file in (__file__, library_path())
    for found in (os.path.abspath(file), os.path.realpath(file))  # noqa: PTH100
}


def require_outside(path: str | os.PathLike[str]) -> None:
    """Call it before anything is written at a path.

    Raises
    ------
    FatalError
        The path is empty or, with its links followed, in the folder of this package.
    """
    require_path(path)
    name, place = os.fspath(path), os.path.realpath(path)
    for package in _PACKAGES:
        # A library that NEML2_CAPI_LIBRARY names may lie anywhere.
        if not os.path.isfile(os.path.join(package, "__init__.py")):  # noqa: PTH113, PTH118
            continue
        if os.path.commonpath((os.path.realpath(package), place)) == os.path.realpath(package):
            link = "" if place == os.path.abspath(name) else " (a link leads there)"  # noqa: PTH100
            raise FatalError(
                f"{name} is inside the installed package, {package}{link}: nothing is written "
                "there, since pip replaces it. Name a folder of your own; to work on the "
                'examples, copy them: cp -rL "$(python -m neml2_capi --examples)" aoti',
                lib.NEML2_ERROR_ARGUMENT,
                name,
            )


@contextmanager
def written(
    path: str | os.PathLike[str], what: str = "the file", *, executable: bool = False
) -> Iterator[IO[bytes]]:
    """A stream that becomes the file at a path when all is in it; else what was there stays.

    Raises
    ------
    FatalError
        The path is inside this package, or the system refuses, with its reason.
    """
    given, place, part = _places(path)
    try:
        if _is_kept(given):
            content = io.BytesIO()
            yield content
            given.write_bytes(content.getvalue())
            return
        try:
            with part.open("wb") as stream:
                yield stream
            if executable:
                part.chmod(0o755)
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise _refused(path, what, error) from error


def require_writable(path: str | os.PathLike[str], what: str = "the file") -> None:
    """Call it before a long computation whose results written() shall write at a path.

    A device or a pipe is not opened: a reader of it would be waited for, or see its end.

    Raises
    ------
    FatalError
        The path is inside this package, or the system refuses, with its reason.
    """
    given, _, part = _places(path)
    try:
        if given.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if _is_kept(given):
            if not os.access(given, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        part.open("wb").close()
        part.unlink()
    except OSError as error:
        raise _refused(path, what, error) from error


def _places(path: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """A path outside this package, where its links lead, and a file for what is not yet whole."""
    require_outside(path)
    place = Path(os.path.realpath(path))
    part = place.with_name(f".neml2-{os.getpid()}-{threading.get_ident()}.part")
    return Path(os.fsdecode(path)), place, part


def _is_kept(given: Path) -> bool:
    """Whether a device or a pipe is there, which is not replaced; /dev/stdout may lead to one."""
    return given.exists() and not given.is_file()


def _refused(path: str | os.PathLike[str], what: str, error: OSError) -> FatalError:
    return FatalError(
        f"{what} cannot be written to {os.fspath(path)}: {reason_of(error)}; name another file",
        lib.NEML2_ERROR_FILE,
        "path",
    )
