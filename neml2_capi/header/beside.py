"""The text of a law beside its kernels, for the library to run on devices."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from pathlib import Path

from neml2_capi._ffi.outside import written
from neml2_capi.engine.description import point_shape
from neml2_capi.header.face import together
from neml2_capi.header.write import header
from neml2_capi.kernels.folder import KernelError
from neml2_capi.model import Variable
from neml2_capi.model.model import Model

#: By the target: the language of the text, and its file in the folder of kernels.
TARGETS = {"opencl": ("opencl", "device.cl"), "cuda": ("c++", "device.cu")}
#: Before the ending of a file whose text derives with respect to parameters, too.
_BY_PARAMETERS = "_by_parameters"


def write_beside(folder: Path, target: str) -> tuple[Path, str]:
    """Write the text of a law into the folder of its kernels.

    Beside it there is one that derives with respect to parameters, too, which only calls that ask
    for it compile. First lines tell the model that a text is of, which the library compares.
    Returns the file, and why it has values alone; empty if it has derivatives, too. KernelError if
    the law cannot be such a text.
    """
    root = folder.parent.parent
    language, name = TARGETS[target]
    file = folder / name
    further = file.with_stem(file.stem + _BY_PARAMETERS)
    with Model(root, dtype=folder.name) as model:
        first, reason = _first_line(model, root), ""
        try:
            law = header(root, model, language, bounds=False, arrays=True)
        except KernelError as error:
            law = header(root, model, language, derivatives=False, bounds=False, arrays=True)
            reason = str(error)
            first += ", values alone"
        _write(file, first, law)
        further.unlink(missing_ok=True)
        if model.parameter_derivatives and not reason:
            try:
                law = header(root, model, language, parameters=True, bounds=False, arrays=True)
            except KernelError:  # the library tells that there is no such text
                return file, reason
            _write(further, f"{first}, by parameters", law)
    return file, reason


def _write(file: Path, first: str, law: str) -> None:
    with written(file, "the text of the law") as stream:
        stream.write(f"{first}\n{law}".encode())


def _first_line(model: Model, root: Path) -> str:
    inputs, parameters, outputs = map(_size, (model.inputs, model.parameters, model.outputs))
    checksum = zlib.crc32((root / "metadata.json").read_bytes())
    return (
        f"// neml2_capi 5: {inputs} inputs, {parameters} parameters, {outputs} outputs, "
        f"{model.dtype}, metadata {checksum}{', together' if together(model) else ''}"
    )


def _size(variables: Iterable[Variable]) -> int:
    return sum(math.prod(point_shape(v)) for v in variables)
