"""What keeps an artifact from running on this machine, found without loading its code."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neml2_capi._ffi.errors import Error
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.packages import json_of
from neml2_capi.artifact.files import (
    Description,
    describe,
    kernels_file,
    leaves,
    metadata_file,
    metadata_of_leaf,
    packages_named,
    packages_of,
)
from neml2_capi.artifact.rebuild import holds_sources, this_system
from neml2_capi.artifact.targets import SYSTEM, level_here, runs_here
from neml2_capi.cli.consistency import contradictions
from neml2_capi.cli.kernel_summary import stand_in
from neml2_capi.cli.remedy import compile_command
from neml2_capi.cli.runtimes import Choice, choose, taken
from neml2_capi.kernels.folder import KernelError, object_name, read_metadata

#: Why operators are missing is the model, which no option of the compiler changes.
_OPERATORS = "calls what the built-in runtime does not have"


@dataclass(frozen=True)
class Finding:
    """Something that keeps the artifact from running."""

    #: What it is about: a package, a file, a field.
    subject: str
    #: What is wrong, and what was expected.
    problem: str
    #: What to do: a command, if one helps.
    mend: str


@dataclass(frozen=True)
class Examination:
    """What was found."""

    #: All that is wrong; empty if the artifact will run.
    findings: list[Finding]
    #: Why packages do not run here, if the kernels run in their place.
    replaced: list[Finding]


def examine(path: Path, dtype: str = "float64") -> Examination:
    """What is wrong with the artifact for the device "cpu"."""
    examiner = _Examiner(path, dtype)
    return Examination(list(examiner.findings()), examiner.replaced)


def runtimes(path: Path, dtype: str = "float64") -> list[Choice]:
    """What the packages of an artifact that will run are run on."""
    description = describe(path, dtype)
    return [choose(Path(description["leaf"]) / name) for name in packages_of(description)]


def packages_there(path: Path, dtype: str = "float64") -> list[Path]:
    """The packages of an artifact; none if the metadata cannot be read."""
    try:
        description = describe(path, dtype)
    except Error:
        return []
    return [Path(description["leaf"]) / name for name in packages_of(description)]


class _Examiner:
    def __init__(self, path: Path, dtype: str) -> None:
        self.path, self.dtype = path, dtype
        self._quoted = shlex.quote(str(path))  # as a command takes it
        self.replaced: list[Finding] = []
        self.unsupported = True  # all that packages were refused for
        self.file = metadata_file(path)
        self.metadata: Mapping[str, Any] = {}
        if self.file:
            self.metadata = _json_object(self.file)

    def findings(self) -> Iterator[Finding]:
        try:
            description = describe(self.path, self.dtype)
        except Error as error:
            yield from self._unreadable(error)
            return
        leaf = Path(description["leaf"])
        self.file = metadata_of_leaf(leaf)
        self.metadata = _json_object(self.file) if self.file else {}
        yield from self._packages_or_kernels(description, leaf)
        if description["kernels_only"]:
            yield from self._kernels(description, leaf)
        yield from self._inconsistencies(description, leaf)

    # --------------------------------------------------------------------------------------------
    # Metadata that the library refuses
    # --------------------------------------------------------------------------------------------

    def _unreadable(self, error: Error) -> Iterator[Finding]:
        """The refusal, and what else is wrong with the packages that are there."""
        leaf = self._leaf()
        missing = list(self._missing(leaf)) if leaf else []
        if not any(finding.subject == error.subject for finding in missing):
            problem = "; ".join(str(error).splitlines())
            yield Finding(error.subject, problem, self._mend_metadata(error))
        yield from missing
        if leaf:
            present = sorted(file.name for file in leaf.glob("*.pt2"))
            named = set(packages_named(self.metadata))
            yield from self._packages(leaf, (f for f in present if f in named or not named))

    def _leaf(self) -> Path | None:
        """Where the packages should be."""
        root = self.file.parent if self.file else self.path
        places = (root / "cpu" / self.dtype, root if "device" in self.metadata else None)
        return next((place for place in places if place and place.is_dir()), None)

    def _missing(self, leaf: Path) -> Iterator[Finding]:
        """If the library has found that a package is missing: all that are missing."""
        for name in dict.fromkeys(packages_named(self.metadata)):
            if not (leaf / name).is_file():
                problem = f"the package {leaf / name}, which the metadata names, is missing"
                yield Finding(name, problem, f"Copy it here, or compile again: {self._again()}")

    def _mend_metadata(self, error: Error) -> str:
        if error.status == lib.NEML2_ERROR_NAME:
            return "Name one of them instead of the artifact."
        if not self.path.exists() or (self.path.is_file() and not self.file):
            return "Give the folder that neml2-compile wrote, with metadata.json in it."
        others = (
            [leaf for leaf in leaves(self.file) if leaf.startswith("cpu/")] if self.file else []
        )
        if error.status == lib.NEML2_ERROR_UNSUPPORTED and not self._leaf() and others:
            dtype = others[0].removeprefix("cpu/")
            return f"Load it as {dtype} (here: --dtype {dtype}), or compile: {self._again()}"
        return f"Compile again, with NEML2 3.1: {self._again()}"

    def _again(self) -> str:
        root = (self.file.parent if self.file else self.path).resolve()
        return compile_command(self.metadata, root.name, self.dtype)

    # --------------------------------------------------------------------------------------------
    # Packages
    # --------------------------------------------------------------------------------------------

    def _packages_or_kernels(self, description: Description, leaf: Path) -> Iterator[Finding]:
        """What keeps packages from running, unless the kernels run in their place."""
        found = list(self._packages(leaf, iter(packages_of(description))))
        if found and self.unsupported and stand_in(description, leaf):
            self.replaced = found
        else:
            yield from found

    def _packages(self, leaf: Path, names: Iterator[str]) -> Iterator[Finding]:
        for name in dict.fromkeys(names):
            try:
                taken(leaf / name, "auto")
            except Error as error:
                self.unsupported &= error.status == lib.NEML2_ERROR_UNSUPPORTED
                for line in str(error).splitlines():
                    problem = line.removeprefix(f"{name}: ")
                    yield Finding(name, problem, self._mend_package(line, leaf, name))

    def _mend_package(self, problem: str, leaf: Path, package: str) -> str:
        mend = f"Compile again: {self._again()}"
        if _OPERATORS in problem:
            mend = f"Write the model without it, and compile again: {self._again()}"
        elif holds_sources(leaf / package):
            mend += (
                f". Or from its C++ alone: neml2-capi build-packages {self._quoted} --target "
                f"{this_system()} --output-dir DIR"
            )
        if kernels_file(leaf).is_file() and _OPERATORS not in problem:
            mend += (
                ". Or build its kernels for this machine, and it runs on them: neml2-capi "
                f"build-kernels {self._quoted}"
            )
        return mend

    def _kernels(self, description: Description, leaf: Path) -> Iterator[Finding]:
        """Kernels that are not built, or were not made; linear systems need none."""
        try:
            document = read_metadata(kernels_file(leaf).parent)
        except KernelError as error:
            yield Finding("kernels", str(error), f"Compile again: {self._again()}")
            return
        if not document["objects"]:
            build = f"Build them: neml2-capi build-kernels {self._quoted}"
            yield Finding("kernels", "the kernels are sources, and not built", build)
        elif not any(map(runs_here, document["objects"])):
            built = ", ".join(map(object_name, document["objects"]))
            here = f"{level_here()} on {SYSTEM}"
            problem = f"the kernels are built for {built}, and this machine is {here}"
            yield Finding(
                "kernels", problem, f"Build them here: neml2-capi build-kernels {self._quoted}"
            )
        solve = set(packages_named(description["segments"], "solve_package"))
        for entry in document["missing"]:
            name = Path(entry["package"]).name
            if name not in solve:
                mend = f"Compile with packages: {self._again()}"
                yield Finding(name, f"{name} has no kernel: {entry['reason']}", mend)

    # --------------------------------------------------------------------------------------------
    # What metadata and packages say of one another
    # --------------------------------------------------------------------------------------------

    def _inconsistencies(self, description: Description, leaf: Path) -> Iterator[Finding]:
        subject = self.file.name if self.file else "metadata"
        for problem in contradictions(description, leaf):
            mend = f"Take metadata and packages from one compilation: {self._again()}"
            yield Finding(subject, problem, mend)


def _json_object(file: Path) -> Mapping[str, Any]:
    """What the file holds; nothing if it is broken, which the library says."""
    try:
        value = json_of(file.read_bytes())
    except OSError:
        return {}
    return value if isinstance(value, dict) else {}
