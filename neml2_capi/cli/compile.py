"""neml2-capi compile."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from neml2_capi import FatalError
from neml2_capi._ffi.outside import require_outside
from neml2_capi.artifact.bounds import Interval
from neml2_capi.artifact.lock import locked
from neml2_capi.artifact.rebuild import RebuildError, System, rebuild, torch_headers
from neml2_capi.artifact.targets import SYSTEM, TARGETS
from neml2_capi.cli import bounds as bounds_of_artifact
from neml2_capi.cli import options
from neml2_capi.cli.build_kernels import show
from neml2_capi.cli.compiler import run_compiler, terminated_as_by_exit
from neml2_capi.cli.made import ADD_PACKAGES, install, try_out
from neml2_capi.kernels import capture, sites
from neml2_capi.kernels.build import NATIVE, build, compiler
from neml2_capi.kernels.build import TARGETS as KERNEL_TARGETS
from neml2_capi.kernels.collect import collect
from neml2_capi.kernels.folder import KernelError, read_metadata
from neml2_capi.kernels.whole import Staging, without_kernels

_INTERPRETER = "NEML2_CAPI_COMPILER"
#: The target whose packages have no vectors, so that they can be compiled again for any machine.
_SCALAR = "x86-64-v2"
_FOR_ONE_POINT = (
    "Write the law for one point: a package, by --kernels auto, is refused too if it gives a point "
    "what depends on others"
)
#: Of what a kernel is refused for, see kernels/pointwise.py.
_MIXES_POINTS = r" (mixes|picks or adds up) points"


class Target(click.ParamType):  # type: ignore[type-arg]
    """A processor by its name, or a machine with the age of its C library."""

    name = "NAME"

    def convert(self, value: str, parameter: object, context: object) -> str:
        if value in (*TARGETS, *KERNEL_TARGETS):
            return value
        try:
            return System(value).name
        except RebuildError:
            names = ", ".join(dict.fromkeys([*TARGETS, *KERNEL_TARGETS]))
            self.fail(
                f"{value!r} is unknown; choose one of {names}, or a system such as "
                "aarch64-linux-gnu.2.28"
            )


@click.command("compile", context_settings={"ignore_unknown_options": True})
@click.argument("file", metavar="INPUT.i", type=options.FilePath(exists=True, dir_okay=False))
@click.option("--model", metavar="NAME", help="Of the [Models] block.")
@click.option("--driver", metavar="NAME", help="Compile the model of this [Drivers] block.")
@click.option(
    "-o", "--output-dir", metavar="DIR", default="aoti", show_default=True, help="For DIR/NAME."
)
@click.option(
    "--target",
    "targets",
    type=Target(),
    multiple=True,
    help="Processors that it shall run on; several may be given. Packages are compiled for the "
    "first, x86-64-v3 by default (most since 2013). Kernels are compiled for each, by default "
    "x86-64-v2, -v3 and -v4. native is this machine's processor alone: an older one refuses what "
    "is compiled so, and says what it lacks. A system, aarch64-linux-gnu.2.28 or "
    "x86_64-linux-gnu.2.17, is given alone: packages and kernels are cross-compiled by zig (pip "
    "install ziglang) for that machine and version of glibc.",
)
@click.option(
    "--kernels",
    type=click.Choice(["auto", "only", "no"]),
    default="auto",
    show_default=True,
    help="Point kernels in C beside the packages: as well, alone (a tenth to a third of the time: "
    "4 to 110 seconds of processor time), or not. A model runs on them if they give what is asked "
    "for.",
)
@options.systems("this one always; several may be given, or all.")
@click.option("--cc", default="", metavar="CC", help="The C compiler of kernels: $CC, else cc.")
@click.option("--cxx", default="", metavar="CXX", help="The C++ compiler of a system's packages.")
@click.option(
    "-d",
    "--derivative",
    "derivatives",
    metavar="OUT:IN",
    multiple=True,
    help="Compile this derivative; ':' is all of them.",
)
@click.option(
    "-p",
    "--parameter",
    "parameters",
    metavar="NAME",
    multiple=True,
    help="Let this parameter change at run time: elasticity.E, or E if only one is called so.",
)
@click.option(
    "--dtype",
    type=click.Choice(["float64", "float32"]),
    default="float64",
    show_default=True,
    help="The element type that a host asks for, and the name of the folder. neml2-compile 3.1.0 "
    "writes packages of float64 into both: variables are float64, with a warning.",
)
@click.option(
    "--bounds",
    metavar="FILE.toml | NAME=LOWER:UPPER",
    multiple=True,
    help="Where the law is valid: bounds of an input or a parameter, temperature=20:600 for "
    "example, or a file of them. neml2-capi bounds writes them, too, and says more.",
)
@click.option(
    "--physical-bounds",
    metavar="NAME=LOWER:UPPER",
    multiple=True,
    help="Bounds beyond which a value has no meaning.",
)
@click.option("-j", "--jobs", default=1, show_default=True, help="Segments compiled at a time.")
@click.argument("others", metavar="[OPTION OF neml2-compile]...", nargs=-1)
@click.pass_context
def compile_command(
    context: click.Context,
    file: Path,
    model: str | None,
    driver: str | None,
    output_dir: str,
    targets: tuple[str, ...],
    kernels: str,
    systems: tuple[str, ...],
    cc: str,
    cxx: str,
    derivatives: tuple[str, ...],
    parameters: tuple[str, ...],
    dtype: str,
    bounds: tuple[str, ...],
    physical_bounds: tuple[str, ...],
    jobs: int,
    others: tuple[str, ...],
) -> None:
    """Compile a NEML2 input file to an artifact that runs on other machines, too.

    Runs neml2-compile for the CPU, with the processor given by --target instead of this machine's
    own, and writes a kernel in C for each package, in DIR/NAME/kernels. neml2 and torch must be
    installed for this Python, or for the one that the environment variable NEML2_CAPI_COMPILER
    names. Other options go to neml2-compile.
    """
    if (model is None) == (driver is None):
        raise click.UsageError("give --model NAME or --driver NAME: what is to be compiled")
    _require_own_folder(Path(output_dir), model)
    wanted_bounds = bounds_of_artifact.given(bounds, physical_bounds)
    if wanted_bounds and model is None and kernels == "no":
        raise click.UsageError("with --driver and --kernels no, write bounds by neml2-capi bounds")
    python = os.environ.get(_INTERPRETER) or sys.executable
    _require_compiler(python)
    words = ["--model", model] if model is not None else ["--driver", str(driver)]
    words += ["--device", "cpu", "--dtype", dtype, "-j", str(jobs)]
    words += [word for pair in derivatives for word in ("-d", pair)]
    words += [word for name in parameters for word in ("-p", name)]
    system = _system(targets, kernels)
    if system and kernels != "no" and not cc:  # before minutes of compilation
        try:
            cc = shlex.join(system.compiler(language="c"))
        except RebuildError as error:
            raise click.UsageError(str(error)) from None
    elsewhere = [] if kernels == "no" else [name for name in systems if name != SYSTEM]
    for name in elsewhere:
        compiler(KERNEL_TARGETS["x86-64-v3"], system=name)
    chosen = _target_for(system) if system else _target_of_packages(targets, kernels)
    environment = _environment(python, chosen)
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    # Another one that compiles to DIR/NAME is waited for: each would write half of it.
    lock = folder / f".{Path(model or str(driver)).name}.lock"
    with (
        terminated_as_by_exit(),
        locked(lock, wait=True),
        tempfile.TemporaryDirectory() as scratch,
        _staging(output_dir, kernels) as staging,
    ):
        environment[capture.INTO] = scratch if system or kernels != "no" else ""
        environment[capture.ONLY] = "1" if kernels == "only" else ""
        words[2:2] = ["--output-dir", str(staging.folder if staging else output_dir)]
        command = [python, sites.__file__, str(file), *words, *others]
        if status := run_compiler(command, environment, staging, output_dir):
            context.exit(status)
        wanted = [target for target in targets if target in (*KERNEL_TARGETS, NATIVE)]
        if system:
            _rebuild_packages(Path(scratch), system, python, cxx)
            wanted = _kernel_targets(system)
        if kernels == "no":
            if model:
                _bound(folder / model, wanted_bounds)
                try_out(folder / model, dtype)
            return
        folders = _write_kernels(Path(scratch), wanted, elsewhere, cc, staging)
        roots = [made.parents[1] for made in folders]
        roots = roots or ([folder / model] if model and not staging else [])
        for root in roots:
            _bound(root, wanted_bounds)
        if staging:
            install(staging, folders, Path(output_dir), dtype)
            folders = [Path(output_dir) / folder.relative_to(staging.folder) for folder in folders]
            roots = [made.parents[1] for made in folders]
        for root in roots:
            try_out(root, dtype)
        if not {"-q", "--quiet"} & set(others):
            for made in folders:
                show(made)


def _bound(artifact: Path, wanted: list[Interval]) -> None:
    """Write the bounds that are asked for; those of an artifact that was there before go."""
    try:
        bounds_of_artifact.write(artifact, wanted)
    except FatalError as error:
        bounds_of_artifact.write(artifact, [])
        raise click.ClickException(
            f"{error}. The model was compiled; write its bounds by neml2-capi bounds."
        ) from error


@contextlib.contextmanager
def _staging(output_dir: str, kernels: str) -> Iterator[Staging | None]:
    """Where an artifact without packages is written until it has been opened."""
    if kernels != "only":
        yield None
        return
    staging = Staging(Path(output_dir))
    try:
        yield staging
    finally:
        staging.remove()


def _require_own_folder(output: Path, model: str | None) -> None:
    """FatalError if what is written to DIR/NAME would be in the installed package."""
    require_outside(output)
    # The name of a driver's model is known to NEML2 only.
    for made in [output / model] if model is not None else output.glob("*"):
        require_outside(made)


def _system(targets: tuple[str, ...], kernels: str) -> System | None:
    """The system that is asked for instead of processors."""
    named = [target for target in targets if target not in (*TARGETS, *KERNEL_TARGETS)]
    if not named:
        return None
    if len(targets) > 1:
        raise click.UsageError(f"give --target {named[0]} alone: packages are for one system")
    if kernels == "only":
        raise click.UsageError("kernels need no system; give --target aarch64 or x86-64-v3")
    return System(named[0])


def _target_for(system: System) -> str:
    """The processor that Inductor writes for; code without vectors fits any machine."""
    return "x86-64-v3" if system.machine == "x86_64" else _SCALAR


def _kernel_targets(system: System) -> list[str]:
    return [name for name, target in KERNEL_TARGETS.items() if target.machine == system.machine]


def _rebuild_packages(scratch: Path, system: System, python: str, cxx: str) -> None:
    """Compile again what neml2-compile has written."""
    headers = torch_headers(python)
    for file in sorted(scratch.glob("*.json")):
        package = Path(json.loads(file.read_text(encoding="utf-8"))["package"])
        rebuild(package, system, headers, cxx)


def _target_of_packages(targets: tuple[str, ...], kernels: str) -> str:
    """The first target. A usage error if AOTInductor does not know it."""
    target = next(iter(targets), "x86-64-v3")
    if target in TARGETS:
        return target
    if kernels == "only":
        return "x86-64-v3"
    raise click.UsageError(
        f"packages cannot be compiled for {target}; name one of {', '.join(TARGETS)} first, or "
        "give --kernels only"
    )


def _write_kernels(
    scratch: Path, targets: list[str], systems: Sequence[str], cc: str, staging: Staging | None
) -> list[Path]:
    """Write the sources of kernels, and their objects if there is a compiler."""
    try:
        folders = collect(scratch)
    except KernelError as error:
        if staging:
            raise
        click.echo(f"Warning: there are no kernels: {error}", err=True)
        return []
    for folder in folders:
        _tell_what_is_missing(scratch, folder, staging)
        try:
            build(folder, targets, cc)
            for system in systems:
                build(folder, system=system)
        except KernelError as error:
            # A missing compiler may be on another machine; a source that one refuses, none takes.
            if staging and not isinstance(error.__cause__, OSError):
                raise click.ClickException(
                    f"{error}\nName another compiler with --cc, or compile with --kernels auto, "
                    "which adds packages. Nothing was written."
                ) from error
            click.echo(f"Warning: {error}\nThe sources are in {folder}.", err=True)
    return folders


def _tell_what_is_missing(scratch: Path, folder: Path, staging: Staging | None) -> None:
    """A warning, or an error if there are no packages, with the lines where operators stand."""
    root = folder.parents[1]
    metadata = json.loads((root / "metadata.json").read_text(encoding="utf-8"))
    for name, reason in without_kernels(metadata, read_metadata(folder)).items():
        captured = json.loads((scratch / f"{name}.json").read_text(encoding="utf-8"))
        told = f"{name} has no kernel: {captured.get('told', reason)}"
        if staging:
            advice = _FOR_ONE_POINT if re.search(_MIXES_POINTS, told) else ADD_PACKAGES
            raise click.ClickException(
                f"{root.name} cannot run on kernels alone: {told}. {advice}. Nothing was written."
            )
        click.echo(f"Warning: {told}. {root.name} will run on packages there.", err=True)


def _environment(python: str, target: str) -> dict[str, str]:
    # Tools that are installed beside an interpreter are found.
    path = f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, **TARGETS[target]}


def _require_compiler(python: str) -> None:
    find = (
        "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ('neml2', 'torch'))))"
    )
    try:
        found = subprocess.run([python, "-c", find], capture_output=True).returncode == 0
    except OSError as error:
        raise click.ClickException(f"{_INTERPRETER} is {python}: {error.strerror}") from error
    if not found:
        raise click.ClickException(
            f"{python} has no neml2 and torch to compile with. Install them with: pip install "
            f"'neml2_capi[compile,cli]', or name an interpreter that has them in {_INTERPRETER}."
        )
