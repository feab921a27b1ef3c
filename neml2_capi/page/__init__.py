"""A law as one page for a browser: `neml2-capi page`.

    import neml2_capi.page

    neml2_capi.page.make("aoti/chaboche", "law.html")

The page holds the law as WebAssembly, and asks for no server and no network.
"""

from __future__ import annotations

import base64
import html
import json
import math
import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import Error
from neml2_capi._ffi.library import version
from neml2_capi._ffi.outside import require_writable, written
from neml2_capi._ffi.refusals import Refusal
from neml2_capi._ffi.strings import require_path
from neml2_capi._ffi.variables import Variable
from neml2_capi.driver.control import conjugates
from neml2_capi.driver.series import Roles
from neml2_capi.header import header
from neml2_capi.model.model import Model
from neml2_capi.page.compile import compiled
from neml2_capi.umat.guess import in_double

__all__ = ["PageError", "make"]

_HERE = Path(__file__).parent
_SCRIPTS = ("law.js", "plot.js", "page.js")


class PageError(Refusal):
    """Refusal to make a page: the reason, and what to do."""


def make(
    artifact: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    title: str = "",
    cc: str = "",
) -> None:
    """Write the page of an artifact.

    Parameters
    ----------
    artifact : path
        Its folder, with kernels.
    output : path
        The file to write, law.html.
    title : str
        The headline; the name of the folder by default.
    cc : str
        A clang that compiles to WebAssembly; zig by default, if it is installed.

    Raises
    ------
    PageError
        The law is not one of strain and stress, or lacks the derivative of the stress.
    CompileError
        There is no compiler, or it fails.
    KernelError
        A graph of the model has no kernel.
    FatalError
        The output is inside the installed package, or cannot be written.
    """
    require_writable(output, "the page")
    require_path(artifact)
    root = Path(artifact)
    title = title or root.resolve().name
    with in_double(root, PageError) as model:
        about = _about(model, title)
        text = header(root, model, "c++", "law")
    code = base64.b64encode(compiled(text, cc)).decode()
    parts = {
        "title": html.escape(title),
        "style": (_HERE / "page.css").read_text(encoding="utf-8"),
        "origin": html.escape(_told(about)),
        "variables": "\n".join(_rows(about)),
        "version": version(),
        # No text of JSON ends the element that it stands in.
        "about": json.dumps(about).replace("<", "\\u003c"),
        "code": code,
        "script": "".join((_HERE / script).read_text(encoding="utf-8") for script in _SCRIPTS),
    }
    frame = (_HERE / "page.html").read_text(encoding="utf-8")
    page = re.sub(r"@(\w+)@", lambda found: parts[found[1]], frame)
    with written(output, "the page") as stream:
        stream.write(page.encode())


def _about(model: Model, title: str) -> dict[str, Any]:
    """Return the facts of a law that the scripts need."""
    if "stress" not in model.outputs.index_of:
        raise PageError(
            f"A page shows an output named stress; the law has {', '.join(model.outputs.names)}."
        )
    stress = model.outputs[model.outputs.index_of["stress"]]
    if stress.type != "SR2" or len(stress.point_shape) != 1:
        raise PageError(
            "A page shows a stress of the type SR2, of the shape (6,); stress is of the type "
            f"{stress.type}, of the shape {stress.point_shape}."
        )
    stress, strain = conjugates(model, "stress")
    if (stress.name, strain.name) not in {(d.output, d.variable) for d in model.derivatives}:
        raise PageError(
            "A page finds strains by the derivative of stress with respect to "
            f"{strain.name!r}, which was not compiled: compile the model with derivatives."
        )
    histories = {history.input for history in model.histories}
    free = [v for v in model.inputs if v.name not in histories and v.name != strain.name]
    others = [v for v in free if v.name != "t" and v.name not in model.outputs.index_of]
    for other in others:
        if other.point_shape:
            raise PageError(
                f"A page has a slider for a number, and {other.name!r} is of the type {other.type}."
            )
    for name, values in model.named_parameters().items():
        if not np.isfinite(values).all():
            raise PageError(f"A slider has finite numbers, and the parameter {name!r} has others.")
    roles = Roles(model, {v.name: 0.0 for v in [strain, *others]}, "t")
    history = [[newer, older] for series in roles.series for older, newer in series.exchanges]
    history += [[f"{name}~1" if f"{name}~1" in histories else name, name] for name in roles.guesses]
    return {
        "name": title,
        "inputs": _placed(model.inputs),
        "outputs": _placed(model.outputs),
        "parameters": [
            {**place, "values": model.named_parameters()[place["name"]].reshape(-1).tolist()}
            for place in _placed(model.parameters)
        ],
        "stress": stress.name,
        "strain": strain.name,
        "time": "t" if any(v.name == "t" for v in free) else None,
        "forces": _forces(model, [v.name for v in others]),
        "history": history,
        "states": [series.name for series in roles.series if series.name in model.outputs.index_of],
        "solved": not roles.series,
    }


def _forces(model: Model, names: list[str]) -> list[dict[str, Any]]:
    """Sliders of inputs that are numbers: within their bounds, from 0 or what is nearest.

    A law that has no numbers there, as one of an absolute temperature, starts at 1 or 300.
    """
    limits = {name: _limits(model, name) for name in names}
    starts: dict[str, float] = {}
    for start in (300.0, 1.0, 0.0):
        values = {name: min(max(start, least), most) for name, (least, most) in limits.items()}
        starts = values if not starts or _has_numbers(model, values) else starts
    return [
        {
            "name": name,
            "value": starts[name],
            "least": least if math.isfinite(least) else starts[name] - 1000,
            "most": most if math.isfinite(most) else starts[name] + 1000,
        }
        for name, (least, most) in limits.items()
    ]


def _limits(model: Model, name: str) -> tuple[float, float]:
    least, most = -math.inf, math.inf
    for bound in model.bounds:
        if bound.variable == name:
            least, most = max(least, float(bound.lower)), min(most, float(bound.upper))
    return least, most


def _has_numbers(model: Model, forces: dict[str, float]) -> bool:
    """Whether a law at rest has results that are numbers."""
    inputs: dict[str, Any] = {v.name: np.zeros(v.point_shape) for v in model.inputs}
    inputs |= {"t": 1.0} if "t" in inputs else {}
    try:
        with warnings.catch_warnings():  # of what is not a number
            warnings.simplefilter("ignore")
            results = model.forward(inputs | forces)
    except Error:
        return False
    return all(np.isfinite(values).all() for values in results.values())


def _placed(variables: Any) -> list[dict[str, Any]]:
    """Variables side by side, as the functions of a header have them."""
    places, offset = [], 0
    for variable in variables:
        size = _size(variable)
        places.append(
            {"name": variable.name, "type": variable.type, "offset": offset, "size": size}
        )
        offset += size
    return places


def _size(variable: Variable) -> int:
    size = 1
    for n in variable.point_shape:
        size *= n
    return size


def _told(about: dict[str, Any]) -> str:
    count, tests = len(about["parameters"]), "four" if about["time"] else "three"
    moved = f"{count or 'No'} parameter{'s' if count != 1 else ''} to move"
    return f"{moved}, {tests} tests that follow{'' if count else ' the loading'}."


def _rows(about: dict[str, Any]) -> list[str]:
    roles = (("inputs", "input"), ("outputs", "output"), ("parameters", "parameter"))
    return [
        f'<tr><th scope="row">{html.escape(v["name"])}</th><td>{role}</td>'
        f"<td>{html.escape(v['type'] or 'number')}</td><td>{v['size']}</td></tr>"
        for kind, role in roles
        for v in about[kind]
    ]
