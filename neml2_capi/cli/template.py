"""Files for `neml2-capi run` and `verify` to start from, from what an artifact takes."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from neml2_capi import Model
from neml2_capi._document import Node, parse_toml
from neml2_capi._ffi.components import column, components
from neml2_capi._ffi.variables import Variable
from neml2_capi._rest import plausible
from neml2_capi.artifact.files import describe_any
from neml2_capi.cli.driver_file import Array, loading
from neml2_capi.cli.prescription import prescribed
from neml2_capi.cli.screen import require_new, shape, write_new
from neml2_capi.umat.guess import TEMPERATURES, TIMES

_HEAD = """\
# Run it with: neml2-capi {command} {file}
# Units are the model's. Paths are relative to this file.
artifact = {artifact}
{dtype}# For many points, in sub-batches; or on several devices, devices = [{{ ... }}, {{ ... }}].
# scheduler = {{ device = "cpu", batch_size = 512 }}
# The law under the hypothesis of an element, or by another strain, as Model takes it.
# hypothesis = "plane_stress"

[times]
end = 10.0
steps = 100
# list = [0.0, 0.1, 1.0, 10.0]   # instead of end and steps
"""
_FORCES = """
# What the model is driven by. A value over time is a number, or one of
#   ramp = 0.01                    from 0 at the first time to 0.01 at the last
#   ramp = { from = 0.0, to = 0.01, until = 5.0 }
#   cycle = { amplitude = 0.01, period = 10.0, mean = 0.0, shape = "triangle" }     or "sine"
#   points = [[0.0, 0.0], [2.0, 0.01], [10.0, -0.01]]           a line through [time, value]
#   file = "test.csv", column = "exx", time = "t", scale = 0.01                     or an npz file
# A tensor has one for each component that is not zero, or one for all: strain.ramp = 0.01 with
# strain.direction = { xx = 1.0, yy = -0.3, zz = -0.3 }. xy is the component of the tensor, half of
# an engineering shear; a list of 6 numbers is as stored, in Mandel notation. For several material
# points, give a list instead of a number, as long as there are points.
# Stresses instead of strains: control.stress = "uniaxial" (all but xx vanish), "biaxial" (all
# but xx and yy) or "plane stress"; or components of it, [control.stress] with xx.ramp = 100.0.
"""
_EXPECTED = """
# A test has what stands above it, unless it says it itself: [test.forces.strain], for example.
# Expected values of an output or a force, met to atol + rtol * |expected|, are one of
#   points = [[5.0, 100.0], [10.0, 120.0]]      values at times
#   file = "test.csv", column = "sxx"           a column of a csv or npz file, at its rows' times
#   artifact = "other"                          what another artifact gives of the same load
#   expression = "E * strain.xx"                of columns, parameters and [constants]
# or constant, ramp or cycle, as above. at = "steps", or a list of times, says where it is compared.
[[test]]
name = "as it was"
rtol = 1e-6

[test.expect]
"""
#: Of a variable that a template expects: a crystal has hundreds.
_MOST_COMPONENTS = 6


def write_template(command: str, artifact: Path, output: Path | None) -> None:
    """Write a file for `run` or `verify` that goes through as it stands, or show it.

    It has a small load and the history from rest; for `verify`, a test of what the law gives today.
    """
    require_new(output)
    file = output or Path("FILE.toml")
    from_there = os.path.relpath(artifact, output.parent) if output else str(artifact)
    real = describe_any(artifact, None)["dtype"]
    head = {
        "command": command,
        "file": shlex.quote(file.name),
        "artifact": json.dumps(from_there),
        "dtype": f'dtype = "{real}"\n' if real != "float64" else "",
    }
    with Model(artifact, dtype=real) as model:
        text = _HEAD.format(**head)
        text += "".join(_loading(model))
        if command == "run":
            text += "".join(_results(model))
        else:
            there = {**parse_toml(text), "artifact": str(artifact.resolve())}
            run = loading(Node(Path(file.name), "", there))
            with run.model:
                columns = run.drive(model.outputs.names, progress=False).columns()
            text += "".join(_expected(model, columns))
    write_new(output, "the template", text)


def _expected(model: Model, columns: Mapping[str, Array]) -> Iterator[str]:
    """A test of the first columns of each output, by their values in the middle and at the end."""
    yield _EXPECTED
    for variable in model.outputs:
        for part in components(variable)[:_MOST_COMPONENTS]:
            values = columns[column(variable.name, part)]
            rows = (len(values) // 2, len(values) - 1)
            points = [[float(columns["t"][row]), float(values[row])] for row in rows]
            name = ".".join(map(_key, filter(None, (variable.name, part.name))))
            least = 1e-9 * float(np.abs(values).max()) or 1e-12
            yield f"{name} = {{ points = {json.dumps(points)}, atol = {least:.0e} }}\n"


def _loading(model: Model) -> Iterator[str]:
    time = _time(model)
    if time != "t":
        yield f"input = {json.dumps(time)}\n"
    yield _FORCES
    for variable in prescribed(model, time):
        yield _force(variable, model)
    initial = [v for v in model.outputs if any(h.output == v.name for h in model.histories)]
    yield "\n# Values at the first time; 0 if nothing is said.\n[initial]\n"
    for variable in initial:
        value = json.dumps(np.zeros(variable.point_shape).tolist())
        yield f"# {_key(variable.name)} = {value}   # {_type(variable)}\n"
    yield "\n# In place of the artifact's own.\n[parameters]\n"
    stored = model.named_parameters()
    for variable in model.parameters:
        value = json.dumps(np.asarray(stored[variable.name]).tolist())
        yield f"# {_key(variable.name)} = {value}\n"
    yield "\n# Of the solver.\n[options]\n"
    for name in ("atol", "rtol", "miters"):
        yield f"# {name} = {json.dumps(model.options[name])}\n"
    yield '# capsule = "failed"   # a folder for calls that fail, which neml2-capi replay reads\n'
    yield (
        "\n[step]\n"
        "# A step is cut if points do not converge, down to this fraction; 1 never cuts.\n"
        "# least = 0.001\n"
    )


def _results(model: Model) -> Iterator[str]:
    yield (
        "\n[checkpoint]\n"
        '# file = "run.state"   # if it is there, the run continues from it\n'
        "# steps = 10           # after how many it is renewed\n"
        "\n[output]\n"
        'file = "results.csv"   # or .npz, which holds derivatives, too\n'
        f"# variables = {json.dumps(model.outputs.names)}\n"
    )
    if model.derivatives:
        pairs = [f"{d.output}:{d.variable}" for d in model.derivatives]
        yield f"# derivatives = {json.dumps(pairs)}\n"
    yield "# report = true   # Newton's iterations, and more\n"
    x = next((v for v in prescribed(model, _time(model)) if v.point_shape), None)
    y = model.outputs[0]
    abscissa = column(x.name, components(x)[0]) if x else "t"
    curve = f"{abscissa}:{column(y.name, components(y)[0])}"
    yield f'\n[plot]\n# curves = ["{curve}"]\n# file = "plot.png"   # else a window\n'
    yield f'# units = {{ t = "s", {_key(y.name)} = "MPa" }}   # on the axes\n'


def _time(model: Model) -> str:
    return next((name for name in TIMES if name in model.inputs.names), "t")


def _force(variable: Variable, model: Model) -> str:
    """A ramp of the first component of what can strain a material, else what is plausible."""
    names = [component.name for component in components(variable)]
    head = f"\n[forces.{_key(variable.name)}]   # {_type(variable)}"
    if variable.type == "SR2":
        size = 0.01 if "strain" in variable.name.lower() else 0.001
        return f"{head}: {', '.join(names[:6])}\n{_key(names[0])}.ramp = {size}\n"
    value = plausible(model, 1)[variable.name][0]
    if variable.type == "Scalar" and variable.name not in TEMPERATURES:
        value = np.ones_like(value)
    elif variable.type not in ("Scalar", "R2"):
        value = np.zeros_like(value)
    return f"{head}\nconstant = {json.dumps(value.tolist())}\n"


def _type(variable: Variable) -> str:
    sizes = variable.point_shape
    return f"{variable.type} {shape(sizes)}" if sizes else variable.type


def _key(name: str) -> str:
    """A name as TOML has it."""
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name)
