"""The rooms of capi/, and the order in which one stands on another; a step of `build.py check`.

python -m tools.includes [CAPI]    print what breaks the order, and files without a room
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tools.process import ROOT, run_check

# From the bottom to the top. A file includes headers of its own room and of rooms before it, so
# that there is no circle of rooms either.
ROOMS = ["base", "platform", "tensor", "threads", "lanes", "archive", "artifact", "graph"]
ROOMS += ["package", "provider", "loader", "packages", "libtorch", "opencl", "cuda", "newton"]
ROOMS += ["values", "kernels", "segments", "model", "capsule", "checkpoint", "evaluation"]
ROOMS += ["deformation", "views", "hypotheses", "devices", "accelerator", "abi", "plugin"]
# Rooms of backends: no other room includes them, but the shell of plug-ins, which holds packages.
BACKENDS = {"package", "provider", "loader", "packages", "libtorch", "opencl", "cuda"}
ABOVE_BACKENDS = {"plugin"}
# Rooms that are linked apart from the library: rooms whose headers they take, which need none of
# their sources, and the headers that other rooms may include.
APART = {
    "lanes": (("base", "platform"), ("kernels.h", "simd.h")),
    "provider": (("tensor", "lanes", "graph", "package"), ("provider.h",)),
}
# Headers with a dot in their name, in angle brackets: of the compiler, for vectors, and for JSON.
# All others are a system's, which only the platform and the rooms of backends include.
NOT_OF_A_SYSTEM = {"immintrin.h", "xmmintrin.h", "arm_neon.h", "nlohmann/json.hpp"}
OF_A_SYSTEM = {"platform"} | BACKENDS | ABOVE_BACKENDS
README_LINES = 60

INCLUDE = re.compile(r'\s*#\s*include\s*"capi/([^"]+)"')
SYSTEM_INCLUDE = re.compile(r"\s*#\s*include\s*<([^>]*\.[^>]*)>")


def findings(capi: Path) -> Iterator[str]:
    """Yield all that is wrong in the folder `capi`, each with a place and what to do."""
    for file in sorted(file for file in capi.rglob("*") if file.is_file()):
        place = file.relative_to(capi)
        if place.as_posix() == "CMakeLists.txt":
            continue
        room = place.parts[0]
        if len(place.parts) != 2 or room not in ROOMS:
            yield (
                f"{capi.name}/{place}:1: the file is in no room; expected capi/ROOM/{place.name} "
                "with one of ROOMS in tools/includes.py. Move it into the lowest room that has all "
                "that it includes."
            )
        elif file.suffix in (".h", ".cpp"):
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                text = ""
                if match := INCLUDE.match(line):
                    text = _broken(capi, room, match[1])
                elif match := SYSTEM_INCLUDE.match(line):
                    text = _of_a_system(room, match[1])
                if text:
                    yield f"{capi.name}/{place}:{number}: {text}"
    yield from _readmes(capi)


def _broken(capi: Path, room: str, header: str) -> str:
    """Return what is wrong with an include of `header` from `room`; empty if nothing is."""
    other, _, name = header.partition("/")
    if not (capi / header).is_file():
        return f"capi/{header} does not exist; expected a header. Name the place that it has now."
    if other == room or other not in ROOMS:
        return ""
    below = ROOMS[: ROOMS.index(room) + 1]
    uses, _ = APART.get(room, (ROOMS, ()))
    _, offered = APART.get(other, ((), (name,)))
    if other not in below:
        wrong = f"which is above it; expected a header of {' or '.join(below)}. Move what is needed"
        wrong += f" of it down, or this code up to {other}."
    elif other in BACKENDS and room not in BACKENDS | ABOVE_BACKENDS:
        wrong = "which is a backend's; expected none of them: the library is built without "
        wrong += "backends, too. Ask the table, capi/graph/backend.h."
    elif other not in uses:
        wrong = f"and is linked without {other}; expected a header of "
        wrong += f"{' or '.join((room, *uses))}. Move what is needed of it there."
    elif name not in offered:
        wrong = f"which {other} keeps to itself; expected capi/{other}/{' or '.join(offered)}. "
        wrong += "Offer it there, or move it to a lower room."
    else:
        return ""
    return f"{room} includes capi/{header}, {wrong}"


def _of_a_system(room: str, header: str) -> str:
    """Return what is wrong with an include of <header> from `room`; empty if nothing is."""
    if header in NOT_OF_A_SYSTEM or room in OF_A_SYSTEM:
        return ""
    return (
        f"{room} includes <{header}>, a header of a system; expected the C++ library's: this room "
        "is built for every system. Put what is needed of it behind a header of capi/platform."
    )


def _readmes(capi: Path) -> Iterator[str]:
    for folder in [capi / room for room in ROOMS if (capi / room).is_dir()]:
        place, readme = f"{capi.name}/{folder.name}/README.md", folder / "README.md"
        lines = readme.read_text(encoding="utf-8").count("\n") if readme.is_file() else 0
        if not readme.is_file():
            yield f"{place}:1: the room has no README. Write its purpose, types, a walk and tests."
        elif lines > README_LINES:
            yield f"{place}:{README_LINES + 1}: expected at most {README_LINES} lines. Shorten it."


if __name__ == "__main__":
    run_check(findings, ROOT / "capi")
