"""The folder of an artifact: packages, and the metadata of schema 14 that names them."""

from __future__ import annotations

import json
import shutil
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from neml2_capi._ffi.outside import require_outside
from neml2_capi.export._compile import TRACED_POINTS, compile_program, decomposed, traced
from neml2_capi.export._points import PointFunction, Shape, batched
from neml2_capi.export._variables import Pairs, Parameter, Variable
from neml2_capi.kernels.build import build
from neml2_capi.kernels.folder import KernelError, write_sources
from neml2_capi.kernels.program import NoKernel, Program
from neml2_capi.kernels.trace import read

Json = dict[str, Any]


class Artifact:
    """An artifact for the CPU that is being written: DIR/metadata.json and DIR/cpu/DTYPE/*.pt2.

    With `kernels`, which is "auto", "only" or "no", DIR/kernels/DTYPE too.
    """

    def __init__(self, folder: Path, dtype: str, target: str, kernels: str) -> None:
        require_outside(folder)
        self._folder = folder
        self._metadata = folder / "metadata.json"
        self._leaf = folder / "cpu" / dtype
        self._target = target
        self._kernels = kernels
        self._programs: dict[str, Program | str] = {}
        self.dtype = getattr(torch, dtype)

    def add(self, part: str, function: PointFunction, shapes: Sequence[Shape]) -> str:
        """Compile a function of one point for any number of points; return the package's name.

        `shapes` are those of its arguments at one point; `part` is a suffix of the name.
        """
        return self._compile(part, batched(function, shapes, self.dtype), shapes)

    def add_batch(self, part: str, function: Callable[..., Any], shapes: Sequence[Shape]) -> str:
        """The same of a function of many points, on the first axis of all arguments."""
        return self._compile(part, function, shapes)

    def _compile(self, part: str, module: Any, shapes: Sequence[Shape]) -> str:
        examples = tuple(torch.zeros((TRACED_POINTS, *s), dtype=self.dtype) for s in shapes)
        program = traced(module, examples, [0] * len(shapes))
        name = f"{self._folder.name}{part}.pt2"
        self._metadata.unlink(missing_ok=True)  # of an artifact that was here before
        if self._kernels != "no":
            try:
                self._programs[name] = read(program)
            except NoKernel as reason:
                self._programs[name] = str(reason)
        if self._kernels != "only":
            compile_program(decomposed(program), self._leaf / name, self._target)
        return name

    def write(self, metadata: Json) -> None:
        """Write the metadata, after all packages: a folder with metadata is whole."""
        text = json.dumps({"schema_version": 14, "type": "composed", **metadata}, indent=2)
        self._metadata.parent.mkdir(parents=True, exist_ok=True)
        if self._kernels == "only":
            shutil.rmtree(self._leaf, ignore_errors=True)
        shutil.rmtree(self._folder / "kernels" / self._leaf.name, ignore_errors=True)
        if self._kernels != "no":
            self._write_kernels(text + "\n")
        self._metadata.write_text(text + "\n", encoding="utf-8")

    def _write_kernels(self, text: str) -> None:
        where = self._leaf.relative_to(self._folder).as_posix()
        versions = {"torch": torch.__version__}
        folder = write_sources(
            self._folder,
            where,
            self._programs,
            json.loads(text),
            versions,
            zlib.crc32(text.encode()),
        )
        try:
            build(folder)
        except KernelError as error:
            warnings.warn(f"{error}. The sources of kernels are in {folder}.", stacklevel=4)


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
