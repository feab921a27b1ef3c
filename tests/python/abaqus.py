"""Run the driver of tests/umat over a plug-in, and evaluate the same increments without it.

The conversions between Abaqus' notation and the model's are written here a second time, with
full tensors of second and fourth order.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from native import LINK, MODULES, ROOT, TESTS, fortran_modules, kept
from numpy.typing import NDArray
from patience import PATIENCE
from scipy.spatial.transform import Rotation

from neml2_capi import Model
from neml2_capi._ffi.library import library_path
from neml2_capi.plugin import PluginError, make
from neml2_capi.umat.properties import Mapping

Array = NDArray[np.float64]

UMAT = TESTS / "umat"
DRIVER = ("case", "host", "driver")
CHECKS = (
    *("-fcheck=all", "-finit-real=snan", "-ffpe-trap=invalid,zero,overflow"),
    *("-std=f2018", "-O1", "-g", "-Wall", "-Wextra", "-Wno-unused-dummy-argument", "-Werror"),
)

#: Abaqus' components.
PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
#: The pairs of Mandel's notation.
MANDEL = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))


@cache
def driver(main: Path | None = None) -> Path:
    """The driver, or another program, over the shell of plug-ins: one is there at run time."""
    shell = kept("", ("cp",), Path(library_path()).with_name("libneml2_plugin.so"), "libumat.so")
    sources = [UMAT / "driver" / f"{name}.f90" for name in DRIVER] if main is None else [main]
    options = (os.environ.get("FC", "gfortran"), *CHECKS, "-fopenmp", f"-L{shell}")
    return kept("program", options, *sources, UMAT / "without_abaqus.f90", "-lumat") / "program"


@cache
def example() -> Path:
    """The driver over the UMAT of examples/umat."""
    sources = [ROOT / "examples" / "umat" / "umat.f90", UMAT / "without_abaqus.f90"]
    sources += [UMAT / "driver" / f"{name}.f90" for name in DRIVER]
    module = fortran_modules(*MODULES)
    options = (os.environ.get("FC", "gfortran"), *CHECKS, "-fopenmp", f"-I{module}")
    return kept("program", options, *sources, *sorted(module.glob("*.o")), *LINK) / "program"


def plug_in(maps: Path, output: Path) -> None:
    """Make the plug-in of all mappings in a folder, each of which names its artifact."""
    files = sorted(maps.glob("*.nml"))
    artifacts = [re.findall(r"artifact = '(.*)'", file.read_text()) for file in files]
    roots = [file.parent / str(*names) for file, names in zip(files, artifacts, strict=True)]
    make(roots, output, mapping=files)


@dataclass(frozen=True)
class Step:
    """As the driver understands it."""

    strain: Sequence[float] = (0.0,) * 6
    free: str = "FFFFFF"
    time: float = 1.0
    increments: int = 1
    rotation: Sequence[float] = (0.0, 0.0, 0.0)
    temperature: float = 0.0
    fields: Sequence[float] = (0.0,)


@dataclass(frozen=True)
class Case:
    material: str
    steps: Sequence[Step]
    props: Sequence[float] = (200e3, 150.0)
    nstatv: int = 13
    ntens: int = 6
    points: int = 1

    def text(self) -> str:
        def numbers(values: Sequence[float]) -> str:
            return ", ".join(repr(value) for value in values)

        lines = [
            f"&material name = '{self.material.upper()}', nstatv = {self.nstatv},",
            f"  ntens = {self.ntens}, points = {self.points}, nprops = {len(self.props)}",
            *([f"  props = {numbers(self.props)}"] if self.props else []),
            "/",
        ]
        for step in self.steps:
            lines += [
                f"&step time = {step.time!r}, increments = {step.increments},",
                f"  strain = {numbers(step.strain)}, free = {', '.join(step.free)},",
                f"  rotation = {numbers(step.rotation)}, temperature = {step.temperature!r},",
                f"  fields = {numbers(step.fields)}",
                "/",
            ]
        return "\n".join(lines) + "\n"


@dataclass
class Increment:
    """What the driver printed of one, in Abaqus' notation."""

    time: float
    dtime: float
    stran: Array = field(default_factory=lambda: np.empty(0))
    stress: Array = field(default_factory=lambda: np.empty(0))
    ddsdde: Array = field(default_factory=lambda: np.empty(0))
    statev: Array = field(default_factory=lambda: np.empty(0))


@dataclass
class Result:
    """The history of each point, and the factors that its increments were cut by."""

    text: str
    points: list[list[Increment]]
    cuts: list[list[float]]


def drive(case: Case, maps: Path, threads: int = 1) -> Result:
    """Run the driver to success."""
    done = attempt(case, maps, threads)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout[-2000:]}{done.stderr}"
    return read(case, done.stdout)


def read(case: Case, output: str) -> Result:
    """What the driver printed."""
    points: list[list[Increment]] = [[] for _ in range(case.points)]
    cuts: list[list[float]] = [[] for _ in range(case.points)]
    for line in output.splitlines():
        word, number, *texts = line.split()
        values = np.array([float(text) for text in texts])
        point = int(number) - 1
        if word == "cut":
            cuts[point].append(values[1])
        elif word == "time":
            points[point].append(Increment(*values))
        elif word == "ddsdde":
            points[point][-1].ddsdde = values.reshape(case.ntens, case.ntens).T  # by columns
        else:
            setattr(points[point][-1], word, values)
    return Result(output, points, cuts)


def attempt(case: Case, maps: Path, threads: int = 1) -> subprocess.CompletedProcess[str]:
    file = maps / f"{case.material}-{os.getpid()}.case"
    file.write_text(case.text())
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(maps),
        "OMP_NUM_THREADS": str(threads),
        "OMP_DYNAMIC": "false",
    }
    try:
        plug_in(maps, maps / "libumat.so")
    except PluginError as error:
        return subprocess.CompletedProcess([], 1, "", str(error))
    return subprocess.run(
        [driver(), file], capture_output=True, text=True, env=environment, timeout=PATIENCE
    )


# ------------------------------------------------------------------------------------------------
# The same without the UMAT
# ------------------------------------------------------------------------------------------------


def tensor(components: Array, shear: float = 1.0) -> Array:
    """The matrix of 4 or 6 components, whose shear is `shear` times the matrix's."""
    matrix = np.zeros((3, 3))
    for (i, j), value in zip(PAIRS, components, strict=False):
        matrix[i, j] = matrix[j, i] = value if i == j else value / shear
    return matrix


def mandel(matrix: Array) -> Array:
    return np.array([matrix[i, j] * (1.0 if i == j else np.sqrt(2.0)) for i, j in MANDEL])


def from_mandel(vector: Array) -> Array:
    matrix = np.zeros((3, 3))
    for (i, j), value in zip(MANDEL, vector, strict=True):
        matrix[i, j] = matrix[j, i] = value / (1.0 if i == j else np.sqrt(2.0))
    return matrix


def fourth_order(block: Array) -> Array:
    """C_ijkl of a tangent in Mandel notation, with both minor symmetries."""
    tangent = np.zeros((3, 3, 3, 3))
    for a, (i, j) in enumerate(MANDEL):
        for b, (k, m) in enumerate(MANDEL):
            value = block[a, b] / np.sqrt((1.0 if i == j else 2.0) * (1.0 if k == m else 2.0))
            for p, q in ((i, j), (j, i)):
                tangent[p, q, k, m] = tangent[p, q, m, k] = value
    return tangent


def components(matrix: Array) -> Array:
    return np.array([matrix[i, j] for i, j in PAIRS])


def engineering(tangent: Array) -> Array:
    """d stress / d (11, 22, 33, 2 12, 2 13, 2 23) of C_ijkl: with gamma_kl = 2 eps_kl, the sum
    C_ijkl d eps_kl + C_ijlk d eps_lk is C_ijkl d gamma_kl."""
    return np.array([[tangent[i, j, k, m] for k, m in PAIRS] for i, j in PAIRS])


def rotations(case: Case, increments: Sequence[Increment]) -> Iterator[Array]:
    """DROT of each increment."""
    ends = np.cumsum([step.time for step in case.steps])
    for increment in increments:
        middle = increment.time - increment.dtime / 2
        step = case.steps[int(np.searchsorted(ends, middle))]
        turn = np.array(step.rotation) * increment.dtime / step.time
        yield Rotation.from_rotvec(turn).as_matrix()


def direct(
    model: Model,
    mapping: Mapping,
    case: Case,
    increments: Sequence[Increment],
    offset: Array | float = 0.0,
) -> Iterator[tuple[Array, Array, Array]]:
    """Stress, tangent and STATEV of each increment, by a call of the model from where UMAT was.

    STATEV is the state less its offset.
    """
    offset = np.zeros(case.nstatv) + offset
    last = Increment(0.0, 0.0, np.zeros(6), np.zeros(6), statev=np.zeros(case.nstatv))
    for now, drot in zip(increments, rotations(case, increments), strict=True):
        turned_strain = drot @ tensor(last.stran, 2.0) @ drot.T
        turned_stress = drot @ tensor(last.stress) @ drot.T
        inputs: dict[str, Array] = {
            mapping.strain: mandel(tensor(now.stran, 2.0)),
            f"{mapping.strain}~1": mandel(turned_strain),
            f"{mapping.stress}~1": mandel(turned_stress),
            mapping.time: np.array(now.time),
            f"{mapping.time}~1": np.array(last.time),
        }
        for slot in mapping.states:
            value = (last.statev + offset)[slot.first - 1 : slot.last]
            if slot.variable.type == "SR2":
                value = mandel(drot @ tensor(value) @ drot.T)
            value = value.reshape(slot.variable.base_shape)
            inputs[f"{slot.variable.name}~1"] = inputs[slot.variable.name] = value
        outputs, blocks = model.jacobian({name: inputs[name] for name in model.inputs.names})
        statev = np.zeros(case.nstatv)
        for slot in mapping.states:
            value = outputs[slot.variable.name]
            if slot.variable.type == "SR2":
                value = components(from_mandel(value))
            statev[slot.first - 1 : slot.last] = value
        stress = components(from_mandel(outputs[mapping.stress]))[: case.ntens]
        tangent = engineering(fourth_order(blocks[mapping.stress][mapping.strain]))
        yield stress, tangent[: case.ntens, : case.ntens], statev - offset
        last = now
