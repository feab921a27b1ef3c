"""The folder of an artifact: packages, and the metadata of schema 14 that names them."""

from __future__ import annotations

import json
import sys
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.artifact.bounds import Interval
from neml2_capi.artifact.bounds import write as write_bounds
from neml2_capi.export._agreement import agree, beside, rounding_of, some_values
from neml2_capi.export._compile import TRACED_POINTS, compile_program, decomposed, traced
from neml2_capi.export._lines import without_lines
from neml2_capi.export._points import PointFunction, Shape, batched
from neml2_capi.export._variables import Pairs, Parameter, Variable
from neml2_capi.kernels.build import NATIVE, build
from neml2_capi.kernels.evaluate import evaluate
from neml2_capi.kernels.folder import KernelError, write_sources
from neml2_capi.kernels.program import NoKernel, Program
from neml2_capi.kernels.trace import read
from neml2_capi.kernels.whole import Staging, lacks_kernel, require_opens

Json = dict[str, Any]

#: What a package computes, by the suffix of its name.
_WHAT = {
    "": "the law",
    "_jvp": "the derivative of the law",
    "_param_jacobian": "the derivative of the law by its parameters",
    "_residual": "the residual",
    "_jacobian": "the derivative of the residual by the unknowns",
    "_jacobian_given": "the derivative of the residual by the givens",
    "_dr_dparam": "the derivative of the residual by the parameters",
}


class Artifact:
    """An artifact for the CPU that is being written: DIR/metadata.json and DIR/cpu/DTYPE/*.pt2.

    With `kernels`, which is "auto", "only" or "no", DIR/kernels/DTYPE too. All is written beside
    DIR, and moved there when it is whole and can be opened: what was there stays otherwise.
    """

    def __init__(
        self, folder: Path, dtype: str, target: str, kernels: str, progress: bool | None = None
    ) -> None:
        self._final = folder
        self._target = target
        self._kernels = kernels
        there = sys.stderr is not None
        self._progress = there and (sys.stderr.isatty() if progress is None else progress)
        self._programs: dict[str, Program | str] = {}
        self._on_packages: list[str] = []
        self._type = dtype
        self.dtype = getattr(torch, dtype)

    def __enter__(self) -> Artifact:
        self._staging = Staging(self._final)
        self._folder = self._staging.folder
        self._leaf = self._folder / "cpu" / self._type
        return self

    def __exit__(self, *_: object) -> None:
        self._staging.remove()

    def add(self, part: str, function: PointFunction, shapes: Sequence[Shape]) -> str:
        """Compile a function of one point for any number of points; return the package's name.

        `shapes` are the shapes of its arguments at one point; `part` is a suffix of the name.
        """
        return self._compile(part, batched(function, shapes, self.dtype), shapes, True)

    def add_batch(self, part: str, function: Callable[..., Any], shapes: Sequence[Shape]) -> str:
        """The same of a function of many points, on the first axis of all arguments.

        A linear solve has no kernel: the engine has its own.
        """
        return self._compile(part, function, shapes, False)

    def _compile(self, part: str, module: Any, shapes: Sequence[Shape], needed: bool) -> str:
        examples = tuple(torch.zeros((TRACED_POINTS, *s), dtype=self.dtype) for s in shapes)
        program = traced(module, examples, [0] * len(shapes))
        name = f"{self._folder.name}{part}.pt2"
        if self._kernels != "no":
            try:
                self._programs[name] = self._checked(read(program), module, shapes)
            except NoKernel as reason:
                self._programs[name] = reason.without_folders()
                if needed:
                    self._tell(_WHAT[part], reason)
        if self._kernels != "only":
            if self._progress:
                print(f"compiling {name} (some ten seconds)", file=sys.stderr, flush=True)
            without_lines(program)
            shown = self._final / self._leaf.relative_to(self._folder) / name
            compile_program(decomposed(program), self._leaf / name, self._target, shown=shown)
        return name

    def _checked(self, program: Program, module: Any, shapes: Sequence[Shape]) -> Program:
        """NoKernel if the program gives other results than the graph that it was read from."""
        points = 5
        values = some_values([(points, *shape) for shape in shapes], self.dtype)
        near = beside(values)
        with torch.no_grad():
            expected, expected_near = (tree_leaves(module(*each)) for each in (values, near))
        made, made_near = (
            evaluate(program, [v.reshape(points, -1).T.numpy() for v in each])
            for each in (values, near)
        )
        for array, ours, ours_near, theirs, theirs_near in zip(
            program.outputs, made, made_near, expected, expected_near, strict=True
        ):
            theirs, theirs_near = (
                each.reshape(points if array.per_point else 1, -1).T.broadcast_to(ours.shape)
                for each in (theirs, theirs_near)
            )
            ours, ours_near = map(torch.from_numpy, (ours, ours_near))
            rounding = max(rounding_of(ours, ours_near), rounding_of(theirs, theirs_near))
            if not agree(torch.where(theirs.isfinite(), ours, theirs), theirs, rounding):
                raise NoKernel("its operations, one by one, give other results than torch")
        return program

    def _tell(self, what: str, reason: NoKernel) -> None:
        """An error, or else a warning when the artifact is there."""
        if self._kernels == "only":
            raise FatalError(
                f"{what} cannot be a kernel: {reason}. Write it with other operators, or export "
                'with kernels="auto", which compiles packages too',
                lib.NEML2_ERROR_UNSUPPORTED,
            )
        self._on_packages.append(f"{what} will run on packages, not on kernels: {reason}")

    def write(self, metadata: Json, bounds: Sequence[Interval] = ()) -> None:
        """Move all into place, with its metadata: a folder with metadata is whole."""
        document = {"schema_version": 14, "type": "composed", "exporter": "neml2_capi", **metadata}
        text = json.dumps(document, indent=2) + "\n"
        self._folder.mkdir(exist_ok=True)
        if self._kernels != "no":
            self._write_kernels(document, zlib.crc32(text.encode()))
        (self._folder / "metadata.json").write_text(text, encoding="utf-8")
        write_bounds(self._folder, bounds)
        if self._kernels == "only":
            self._require_opens()
        self._staging.install([f"cpu/{self._type}", f"kernels/{self._type}"])
        for told in self._on_packages:
            warnings.warn(told, stacklevel=4)

    def _write_kernels(self, metadata: Json, checksum: int) -> None:
        where = self._leaf.relative_to(self._folder).as_posix()
        versions = {"torch": torch.__version__}
        folder = write_sources(self._folder, where, self._programs, metadata, versions, checksum)
        try:
            build(folder, [NATIVE] if self._target == NATIVE else ())
        except KernelError as error:
            # A missing compiler may be on another machine; a source that one refuses, none takes.
            if self._kernels == "only" and not isinstance(error.__cause__, OSError):
                raise FatalError(
                    f"{error}\nName another compiler in the variable CC, or export the model with "
                    'kernels="auto", which compiles packages too',
                    lib.NEML2_ERROR_UNSUPPORTED,
                ) from error
            shown = self._final / folder.relative_to(self._folder)
            warnings.warn(f"{error}. The sources of kernels are in {shown}.", stacklevel=5)

    def _require_opens(self) -> None:
        try:
            require_opens(self._folder, self._type)
        except KernelError as error:
            told = f"the model cannot be opened: {error}"
            if lacks_kernel(error):
                told = (
                    f"the model cannot run on kernels alone: {error}. Export it with "
                    'kernels="auto", which compiles packages too'
                )
            raise FatalError(told, lib.NEML2_ERROR_UNSUPPORTED) from error


def envelope(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    segment: Json,
    parameters: Sequence[Parameter],
    derivatives: tuple[Pairs, Pairs],
) -> Json:
    """The metadata of a model of one segment."""
    return {
        "inputs": [boundary(variable) for variable in inputs],
        "outputs": [boundary(variable) for variable in outputs],
        "segments": [segment],
        "parameters": [
            {
                "name": parameter.name,
                "shape": list(parameter.shape),
                "param_base_shape": list(parameter.shape),
                "values": parameter.values.ravel().tolist(),
                "origin": "parameter",
            }
            for parameter in parameters
        ],
        "derivatives": [list(pair) for pair in derivatives[0]],
        "parameter_derivatives": [list(pair) for pair in derivatives[1]],
    }


def boundary(variable: Variable) -> Json:
    """An input or output of the model."""
    return {
        "name": variable.name,
        "var_size": variable.size,
        "var_type": variable.type,
        "base_shape": list(variable.shape),
    }


def input_pair(output: Variable, given: Variable, row: int = 0, column: int = 0) -> Json:
    """A block of a Jacobian, and its place in the matrix of all of them."""
    return {
        "out_var": output.name,
        "in_var": given.name,
        "out_base_shape": list(output.shape),
        "in_base_shape": list(given.shape),
        "in_sub_batch_shape": [],
        "batch_independent": False,
        "row_offset": row,
        "col_offset": column,
    }


def parameter_pair(output: Variable, parameter: Parameter, row: int = 0, column: int = 0) -> Json:
    """A block of the derivatives with respect to parameters."""
    return {
        "out_var": output.name,
        "param": parameter.name,
        "out_base_shape": list(output.shape),
        "param_base_shape": list(parameter.shape),
        "row_offset": row,
        "col_offset": column,
    }
