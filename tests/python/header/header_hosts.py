"""Headers of laws in a host program, and what lanes give for the same points."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from kernel_setup import with_kernels
from numpy.typing import NDArray
from states import RECORDED, repeated, state_of

from neml2_capi import ConvergenceError, Model, examples
from neml2_capi.header import header

HOST = Path(__file__).with_name("host.cpp")
WARNINGS = ("-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
#: With fused multiply-adds, which compilers make of products and sums if nothing hinders them.
FUSING = ("-O3", "-march=haswell")
POINTS = 61

Array = NDArray[Any]
Arrays = Mapping[str, Array]


@dataclass
class Results:
    """Of points: components first, points last."""

    outputs: Array
    tangent: Array
    status: Array
    iterations: Array
    norm: Array
    cut: Array


def opened(name: str) -> Model:
    """A model of the tests, or an example of the package, that runs on its kernels alone."""
    root = examples.path(name.removeprefix("example ")) if " " in name else with_kernels(name)
    model = Model(root, dtype="float32" if name.endswith("float32") else "float64")
    model.options["kernels"] = "required"
    if f"{name}/solver" in RECORDED:
        for option, value in zip(
            ("atol", "rtol", "miters"), RECORDED[f"{name}/solver"], strict=True
        ):
            model.options[option] = value
    return model


def text_of(model: Model, language: str = "c++", **options: Any) -> str:
    root = Path(model.describe()["leaf"]).parents[1]
    return header(root, model, language, "law", **options)


def points_of(name: str, model: Model) -> dict[str, Array]:
    """States of the model, and points that fail: NaN, infinities, loads that are far too large."""
    inputs = repeated(state_of(name.removeprefix("example "), model), POINTS)
    for k, value in enumerate(inputs.values()):
        rows = value.reshape(POINTS, -1)
        rows[(3 * k) % POINTS, 0] = np.nan
        rows[(3 * k + 1) % POINTS, 0] = np.inf
        rows[(3 * k + 2) % POINTS] *= 1e6
        rows[(5 * k + 17) % POINTS] *= -30.0
        rows[(5 * k + 18) % POINTS] *= 0.0
    return inputs


def size_of(variable: Any) -> int:
    return math.prod((*variable.sub_batch_shape, *variable.base_shape))


def side_by_side(arrays: Sequence[Array], dtype: Any) -> Array:
    """(components, points), without a gap."""
    rows = [np.asarray(array).reshape(len(array), -1) for array in arrays]
    return np.ascontiguousarray(np.concatenate(rows, axis=1).T.astype(dtype))


def compiled(text: str, folder: Path, compiler: str, *options: str) -> Path:
    """A host with the header."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "law.hpp").write_text(text)
    made = folder / f"host{len(list(folder.iterdir()))}"
    words = [compiler, *WARNINGS, *options, "-DHEADER=<law.hpp>", "-DLAW=law", f"-I{folder}"]
    subprocess.run([*words, str(HOST), "-o", str(made)], check=True)
    return made


def built(text: str, folder: Path, compiler: str, *options: str) -> ctypes.CDLL:
    """A host with the header as a shared object.

    It is linked without the options: for some, compilers link a start that takes denormal numbers
    for zero in all of the process that loads it.
    """
    made = compiled(text, folder, compiler, *options, "-c", "-fPIC")
    library = made.with_suffix(".so")
    subprocess.run([compiler, "-shared", str(made), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def columns_of(model: Model, by_parameters: bool) -> list[Any]:
    """What the tangent has columns of."""
    return [*model.inputs, *(model.parameters if by_parameters else ())]


def room_for(model: Model, points: int, by_parameters: bool = False) -> Results:
    wanted = columns_of(model, by_parameters)
    rows, columns = (sum(map(size_of, of)) for of in (model.outputs, wanted))
    return Results(
        np.zeros((rows, points), model.dtype),
        np.zeros((rows, columns, points), model.dtype),
        np.zeros(2 * points, np.int32),
        np.zeros(points, np.int32),
        np.zeros(2 * points),
        np.ones(points),
    )


def stored(model: Model) -> Array:
    """The parameters that a model has, and one number more."""
    values = [np.ravel(value) for value in model.named_parameters().values()]
    return np.concatenate([*values, np.zeros(1)]).astype(model.dtype)


def split(results: Results) -> Results:
    points = len(results.status) // 2
    results.status, results.iterations = results.status[:points], results.status[points:]
    results.norm, results.cut = results.norm[:points], results.norm[points:]
    return results


def evaluated(
    host: ctypes.CDLL,
    model: Model,
    inputs: Arrays,
    parameters: Array | None = None,
    *,
    by_parameters: bool = False,
) -> Results:
    """What the host gives for the points, by arrays; parameters may be (components, points)."""
    x = side_by_side([inputs[v.name] for v in model.inputs], model.dtype)
    p = stored(model) if parameters is None else np.ascontiguousarray(parameters, model.dtype)
    results = room_for(model, x.shape[1], by_parameters)
    host.by_arrays(
        ctypes.c_longlong(x.shape[1]),
        *(pointer(x), pointer(p), ctypes.c_int(p.ndim > 1), pointer(results.outputs)),
        pointer(results.tangent) if model.derivatives or by_parameters else None,
        *(pointer(results.status), pointer(results.norm)),
        *(ctypes.c_double(model.options[k]) for k in ("atol", "rtol", "divtol")),
        ctypes.c_longlong(int(model.options["miters"])),
    )
    return split(results)


def evaluated_by_structures(host: ctypes.CDLL, model: Model, inputs: Arrays) -> Results:
    x = side_by_side([inputs[v.name] for v in model.inputs], model.dtype)
    results = room_for(model, x.shape[1])
    arrays = (results.outputs, results.tangent, results.status, results.norm)
    host.by_structures(ctypes.c_longlong(x.shape[1]), pointer(x), *map(pointer, arrays))
    return split(results)


def points_of_care(host: ctypes.CDLL, model: Model, inputs: Arrays) -> int:
    """How many points have rows exchanged."""
    x = side_by_side([inputs[v.name] for v in model.inputs], model.dtype)
    results, p = room_for(model, x.shape[1]), stored(model)
    arrays = (x, p, results.outputs, results.tangent, results.status, results.norm)
    host.points_of_care.restype = ctypes.c_longlong
    return int(host.points_of_care(ctypes.c_longlong(x.shape[1]), *map(pointer, arrays)))


def evaluated_by_program(host: Path, model: Model, inputs: Arrays) -> Results:
    x = side_by_side([inputs[v.name] for v in model.inputs], model.dtype)
    results = room_for(model, x.shape[1])
    head = [x.shape[1], *(model.options[k] for k in ("atol", "rtol", "miters"))]
    given = np.array(head).tobytes() + x.tobytes() + stored(model)[:-1].tobytes()
    done = subprocess.run([host], input=given, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    place = 0
    for array in (results.outputs, results.tangent, results.status, results.norm):
        made = np.frombuffer(done.stdout, array.dtype, array.size, place)
        array[...] = made.reshape(array.shape)
        place += made.nbytes
    return split(results)


def pointer(array: Array) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def in_lanes(model: Model, inputs: Arrays, *, by_parameters: bool = False) -> Results:
    """What the library gives on kernels. Derivatives that were not compiled are zero."""
    outputs: Any
    report: Any
    found: Any
    outputs, report = model.evaluate(inputs)
    blocks: list[tuple[str, str, Any]] = []
    jacobians = [model.jacobian] if model.derivatives else []
    jacobians += [model.param_jacobian] if by_parameters else []
    for jacobian in jacobians:
        try:
            outputs, found = jacobian(inputs)
        except ConvergenceError as error:
            outputs, found, report = error.outputs, error.derivatives, error.report
        blocks += [(o, v, np.asarray(b)) for o, of in found.items() for v, b in of.items()]
    values = side_by_side([outputs[v.name] for v in model.outputs], model.dtype)
    wanted = columns_of(model, by_parameters)
    rows, columns = _firsts(model.outputs), _firsts(wanted)
    sizes = {v.name: size_of(v) for v in (*model.outputs, *wanted)}
    width = sum(map(size_of, wanted))
    tangent = np.zeros((*values.shape[:1], width, values.shape[1]), model.dtype)
    for output, variable, block in blocks:
        row, column, shape = rows[output], columns[variable], (sizes[output], sizes[variable])
        block = np.broadcast_to(block.reshape(-1, *shape), (values.shape[1], *shape))
        into = tangent[row : row + shape[0], column : column + shape[1]]
        into[...] = np.moveaxis(block, 0, -1)
    return Results(
        values,
        tangent,
        report["status"],
        report["iterations"],
        report["residual_norm"],
        report["suggested_cut"],
    )


def _firsts(variables: Any) -> dict[str, int]:
    sizes = [size_of(v) for v in variables]
    return {v.name: sum(sizes[:k]) for k, v in enumerate(variables)}


def assert_same_bits(ours: Results, theirs: Results, points: Any = slice(None)) -> None:
    """Of all that is reported, except for the bits of NaN, which a compiler chooses."""
    for name in ("status", "iterations", "norm", "outputs", "tangent"):
        a, b = (np.asarray(getattr(each, name))[..., points] for each in (ours, theirs))
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
        assert same.all(), (name, np.argwhere(~same)[:5], a[~same][:5], b[~same][:5])
