"""The rooms of capi/, and the order in which one stands on another; a step of `build.py check`.

python tools/includes.py [CAPI]    print what breaks the order, and files without a room
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# From the bottom to the top. A file includes headers of its own room and of rooms before it, so
# that there is no circle of rooms either.
ROOMS = (
    "base",
    "platform",
    "tensor",
    "threads",
    "lanes",
    "archive",
    "artifact",
    "graph",
    "package",
    "provider",
    "loader",
    "packages",
    "libtorch",
    "newton",
    "values",
    "kernels",
    "segments",
    "model",
    "capsule",
    "evaluation",
    "devices",
    "abi",
    "plugin",
)


# Rooms of backends: no other room includes them, but the shell of plug-ins, which holds packages.
BACKENDS = ("package", "provider", "loader", "packages", "libtorch")
ABOVE_BACKENDS = ("plugin",)


@dataclass(frozen=True)
class Library:
    """What a room that is linked apart from the library takes and gives."""

    uses: tuple[str, ...]  # rooms, whose headers need none of their sources
    offers: str  # the header that other rooms may include


APART = {
    "lanes": Library(("base",), "kernels.h"),
    "provider": Library(("tensor", "lanes", "graph", "package"), "provider.h"),
}
BESIDE_ROOMS = ("CMakeLists.txt",)
README_LINES = 60

INCLUDE = re.compile(r'\s*#\s*include\s*"capi/([^"]+)"')


@dataclass(frozen=True)
class Finding:
    """A place, what is wrong there, what is expected, and what to do."""

    file: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def findings(capi: Path) -> list[Finding]:
    """Return all that is wrong in the folder `capi`, by file and line."""
    found = []
    for file in sorted(file for file in capi.rglob("*") if file.is_file()):
        place = file.relative_to(capi)
        if place.as_posix() in BESIDE_ROOMS:
            continue
        shown = Path(capi.name) / place
        if len(place.parts) != 2 or place.parts[0] not in ROOMS:
            found.append(Finding(shown, 1, _outside(place)))
            continue
        for number, line in enumerate(_lines(file), 1):
            match = INCLUDE.match(line)
            text = _broken(capi, place.parts[0], match[1]) if match else ""
            if text:
                found.append(Finding(shown, number, text))
    for room in ROOMS:
        found.extend(_readme(capi, room))
    return found


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.suffix in (".h", ".cpp") else []


def _outside(place: Path) -> str:
    return (
        f"the file is in no room; expected capi/ROOM/{place.name} with one of ROOMS in "
        "tools/includes.py. Move it into the lowest room that has all that it includes."
    )


def _broken(capi: Path, room: str, header: str) -> str:
    """Return what is wrong with an include of `header` from `room`; empty if nothing is."""
    other = header.split("/")[0]
    if not (capi / header).is_file():
        return f"capi/{header} does not exist; expected a header. Name the place that it has now."
    if other == room or other not in ROOMS:
        return ""
    if ROOMS.index(other) > ROOMS.index(room):
        return (
            f"{room} includes capi/{header}, which is above it; expected {_below(room)}. "
            f"Move what is needed of it down, or this code up to {other}."
        )
    if other in BACKENDS and room not in (*BACKENDS, *ABOVE_BACKENDS):
        return (
            f"{room} includes capi/{header}, which is a backend's; expected none of them: the "
            "library is built without backends, too. Ask the table, capi/graph/backend.h."
        )
    if room in APART and other not in APART[room].uses:
        uses = " or ".join((room, *APART[room].uses))
        return (
            f"{room} includes capi/{header}, and is linked without {other}; expected a header of "
            f"{uses}. Move what is needed of it there."
        )
    if other in APART and header != f"{other}/{APART[other].offers}":
        return (
            f"{room} includes capi/{header}, which {other} keeps to itself; expected "
            f"capi/{other}/{APART[other].offers}. Offer it there, or move it to a lower room."
        )
    return ""


def _below(room: str) -> str:
    return "a header of " + " or ".join(ROOMS[: ROOMS.index(room) + 1])


def _readme(capi: Path, room: str) -> list[Finding]:
    if not (capi / room).is_dir():
        return []
    shown = Path(capi.name) / room / "README.md"
    expected = f"expected one of at most {README_LINES} lines"
    if not (capi / room / "README.md").is_file():
        text = f"the room has no README; {expected}. Write its purpose, types, a walk and tests."
        return [Finding(shown, 1, text)]
    lines = (capi / room / "README.md").read_text(encoding="utf-8").count("\n")
    if lines > README_LINES:
        text = f"the README has {lines} lines; {expected}. Shorten it."
        return [Finding(shown, README_LINES + 1, text)]
    return []


def main(arguments: list[str]) -> int:
    found = findings(Path(arguments[0]) if arguments else ROOT / "capi")
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
