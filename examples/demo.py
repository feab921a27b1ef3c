"""Two compiled material models over a cyclic strain history of 1,000 material points, from Python.

    python examples/demo.py --artifacts examples/artifacts --output demo-output

Prints what was done and how fast, and plots stress over strain. With --c-program and
--fortran-program, also runs those programs (examples/c, examples/fortran) and compares their
numbers with the same history in Python.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import neml2_capi
from neml2_capi import Model

Array = NDArray[np.float64]

POINTS = 1000
CYCLES = 2
STEPS_PER_CYCLE = 100

# Uniaxial stretch with lateral contraction, in Mandel notation.
DIRECTION = np.array([1.0, -0.3, -0.3, 0.0, 0.0, 0.0])


def strain_at(amplitudes: Array, step: int, steps_per_cycle: int) -> Array:
    """[point, 6] strains of a sinusoidal cycle."""
    phase = 2.0 * np.pi * step / steps_per_cycle
    strain: Array = (amplitudes * np.sin(phase))[:, np.newaxis] * DIRECTION
    return strain


def elastic_history(model: Model, amplitudes: Array, steps: int, period: int) -> Array:
    """[step, point, 6] stresses."""
    return np.stack(
        [
            model.forward({"strain": strain_at(amplitudes, step, period)})["stress"]
            for step in range(1, steps + 1)
        ]
    )


def viscoplastic_history(model: Model, amplitudes: Array, steps: int, period: int) -> Array:
    """[step, point, 6] stresses; steps of 1 s, from a virgin state."""
    points = len(amplitudes)
    state = {name.removesuffix("~1") for name in model.inputs.names if name.endswith("~1")}
    state &= set(model.outputs.names)
    values = {
        variable.name: np.zeros((points, *variable.base_shape))
        for variable in model.outputs
        if variable.name in state
    }
    stresses = []
    for step in range(1, steps + 1):
        inputs = {f"{name}~1": value for name, value in values.items()}
        inputs["strain"] = strain_at(amplitudes, step, period)
        inputs["strain~1"] = strain_at(amplitudes, step - 1, period)
        # One time for all points.
        values = model.forward({**inputs, "t": float(step), "t~1": float(step - 1)})
        stresses.append(values["stress"])
    return np.stack(stresses)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--artifacts", type=Path, required=True, metavar="DIR")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--c-program", type=Path, metavar="PROGRAM")
    parser.add_argument("--fortran-program", type=Path, metavar="PROGRAM")
    arguments = parser.parse_args()

    roots = [arguments.artifacts / name for name in ("elasticity", "viscoplastic")]
    elastic, viscoplastic = (Model(root) for root in roots)
    print(f"neml2_capi {neml2_capi.__version__}, numpy {np.__version__}, {libtorch()}\n")

    # From the elastic range to well beyond the yield strain, 0.1 %.
    amplitudes = np.linspace(0.0005, 0.01, POINTS)
    histories = (
        ("linear elasticity", elastic, elastic_history),
        ("viscoplasticity, 19 unknowns", viscoplastic, viscoplastic_history),
    )
    steps = CYCLES * STEPS_PER_CYCLE
    rows, stresses = [], []
    for title, model, run in histories:
        run(model, amplitudes, 1, STEPS_PER_CYCLE)  # the first call of a model is slower
        start = time.perf_counter()
        stresses.append(run(model, amplitudes, steps, STEPS_PER_CYCLE))
        rows.append((title, time.perf_counter() - start, np.abs(stresses[-1]).max()))
    print_table(rows, steps)
    picture = plot(arguments.output, amplitudes, stresses, steps)
    print(f"\nstress over strain: {picture}")

    programs = {"C": arguments.c_program, "Fortran": arguments.fortran_program}
    given = {language: program for language, program in programs.items() if program}
    return compare(given, elastic, viscoplastic, roots) if given else 0


def libtorch() -> str:
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return "runtime built in"
    return "libtorch is loaded" if "libtorch" in maps else "no libtorch in this process"


def print_table(rows: list[tuple[str, float, float]], steps: int) -> None:
    headings = (
        "model",
        "points",
        "steps",
        "time / s",
        "us per point and step",
        "max |stress| / MPa",
    )
    print(
        f"{headings[0]:30s}" + "".join(f"  {heading:>{len(heading)}s}" for heading in headings[1:])
    )
    for title, seconds, greatest in rows:
        each = seconds / (POINTS * steps) * 1e6
        cells = (f"{POINTS}", f"{steps}", f"{seconds:.3f}", f"{each:.2f}", f"{greatest:.1f}")
        print(
            f"{title:30s}"
            + "".join(f"  {c:>{len(h)}s}" for c, h in zip(cells, headings[1:], strict=True))
        )


def plot(folder: Path, amplitudes: Array, stresses: list[Array], steps: int) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.0, 5.0), layout="constrained")
    strains = [strain_at(amplitudes, step, STEPS_PER_CYCLE) for step in range(steps + 1)]
    virgin = np.zeros((1, POINTS, 6))
    elastic, viscoplastic = (np.concatenate([virgin, history]) for history in stresses)
    shown = (POINTS // 4, POINTS // 2, POINTS - 1)
    for color, point in zip(("tab:blue", "tab:orange", "tab:green"), shown, strict=True):
        strain = 100.0 * np.stack(strains)[:, point, 0]
        label = f"amplitude {100 * amplitudes[point]:.2f} %"
        # The part beyond the hydrostatic one: lateral stresses are not zero in this history.
        for history, style, name in ((viscoplastic, "-", label), (elastic, ":", None)):
            deviatoric = history[:, point, 0] - history[:, point, 1]
            axes.plot(strain, deviatoric, style, color=color, linewidth=1.2, label=name)
    axes.set_ylim(1.25 * np.array([-1.0, 1.0]) * np.abs(np.diff(viscoplastic[..., :2])).max())
    axes.set_xlabel("axial strain / %")
    axes.set_ylabel("axial less lateral stress / MPa")
    axes.set_title("J2 viscoplasticity (solid) and elasticity (dotted)")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "stress-strain.png"
    figure.savefig(picture, dpi=150)
    plt.close(figure)
    return picture


def compare(
    programs: dict[str, Path], elastic: Model, viscoplastic: Model, roots: list[Path]
) -> int:
    """Run the example programs and compare what they print with Python; 1 if they differ.

    Each takes the two artifacts and prints `elasticity` and six stresses, then a line of
    `viscoplastic`, the step and six stresses for 20 steps of 1 s, of the first of three points.
    """
    strain = np.array([1e-3, -3e-4, -3e-4, 2e-4, -1e-4, 5e-5])
    amplitudes = 0.01 * np.array([1.0, 0.5, 0.25])
    expected = {"elasticity": elastic.forward({"strain": strain})["stress"]}
    history = viscoplastic_history(viscoplastic, amplitudes, 20, 20)
    expected |= {f"viscoplastic {step + 1}": stress[0] for step, stress in enumerate(history)}

    print("\nthe same numbers from Python and from:")
    status = 0
    for language, program in programs.items():
        printed = subprocess.run(
            [str(program), *map(str, roots)], check=True, capture_output=True, text=True
        ).stdout
        difference = greatest_difference(expected, printed)
        agrees = difference <= 1e-10
        verdict = "agrees" if agrees else "DIFFERS"
        print(f"  {language:8s} {verdict}: greatest relative difference {difference:.1e}")
        status |= not agrees
    return int(status)


def greatest_difference(expected: dict[str, Any], printed: str) -> float:
    """Of the numbers in the lines of a program, relative to the greatest stress of their line."""
    lines = {}
    for line in printed.splitlines():
        *label, _, _, _, _, _, _ = words = line.split()
        lines[" ".join(label)] = np.array([float(word) for word in words[-6:]])
    if lines.keys() != expected.keys():
        raise RuntimeError(f"wanted lines of {list(expected)}, but was printed {list(lines)}")
    return max(
        float(np.abs(lines[name] - stress).max() / np.abs(stress).max())
        for name, stress in expected.items()
    )


if __name__ == "__main__":
    sys.exit(main())
