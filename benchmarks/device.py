"""Models on a device by their text: points per second, beside what the device could do.

    python benchmarks/device.py [NAME ...] [--device cuda:0] [--points 1000 100000]
                                [--gflops G --gbytes B] [--jacobian] [--packages]

prints for models of tests/models/compile.py and numbers of points: the first call, which compiles;
the least time of a call, with gathering and copies to and from arrays of the host; the time of the
device alone, as the log of "model" tells it; points per second of both, of a call over tensors of
torch on a card of CUDA, with its wait, and of lanes on all processors; and with --packages of what
neml2-compile makes for the card, on the same tensors by libtorch, whose results are compared. (Then
neml2, its torch for CUDA and a C++ compiler are needed.) Beside it stand the operations and bytes
of a point, and how many points a second operations and memory allow: of a card of CUDA by its
clocks, of others as --gflops and --gbytes say (10^9 operations and bytes a second). An operation is
a node of the kernels' lists, one of pow included; no product is fused with a sum, so that a core
does one operation a cycle. Bytes are those of the kernel alone: inputs, outputs, the tangent if it
is asked for, and 24 of the report.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import logging
import math
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("models", "python", "python/kernels")]

import compile as models  # noqa: E402
from kernel_setup import native_target  # noqa: E402
from states import repeated, state_of  # noqa: E402

from neml2_capi import FatalError, Model  # noqa: E402
from neml2_capi.header.beside import write_beside  # noqa: E402
from neml2_capi.kernels.folder import folders, read_metadata  # noqa: E402

DEFAULT = ["elasticity", "isotropic_hardening", "chaboche", "crystal"]
#: Cores for double precision in a multiprocessor, by the numbers of the architecture.
CORES = {(7, 0): 32, (8, 0): 32, (9, 0): 64, (10, 0): 64}
_HEAD = (
    "| model | points | first call, s | call, us a point | device, us a point | points/s, call "
    "| points/s, device | points/s, tensors | points/s, packages | points/s, lanes | operations "
    "| bytes | points/s by operations | points/s by memory |"
)


class DeviceTimes(logging.Handler):
    """Seconds of the device, added up from the log."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        if found := re.search(r"points took (\S+) s on the device", record.getMessage()):
            self.seconds += float(found[1])


def ceilings(device: str) -> tuple[float, float]:
    """Operations and bytes a second that a card of CUDA can do at best; NaN for other devices."""
    if not device.startswith("cuda"):
        return math.nan, math.nan
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:  # the model says what is missing
        return math.nan, math.nan
    cuda.cuInit(0)
    number, value = int(device.partition(":")[2] or 0), ctypes.c_int()

    def attribute(which: int) -> int:
        cuda.cuDeviceGetAttribute(ctypes.byref(value), which, number)
        return value.value

    multiprocessors, kilohertz = attribute(16), attribute(13)
    memory_kilohertz, bus_bits = attribute(36), attribute(37)
    cores = CORES.get((attribute(75), attribute(76)), 2)
    return 1e3 * kilohertz * multiprocessors * cores, 2e3 * memory_kilohertz * bus_bits / 8


def operations(root: Path, model: Model, iterations: float) -> float:
    """Operations of a point without its tangent: kernels, each as often as a point runs it."""
    (folder,) = folders(root)
    counts = {k["name"]: k["operations"] for k in read_metadata(folder)["kernels"]}
    total = 0.0
    for segment in model.describe()["segments"]:
        if segment["kind"] == "forward":
            total += counts[Path(segment["package"]).stem]
            continue
        stem = Path(segment["residual_package"]).stem.removesuffix("_residual")
        times = {"predictor": 1.0, "jacobian": iterations + 1, "solve": iterations}
        total += sum(n * counts.get(f"{stem}_{part}", 0) for part, n in times.items())
    return total


#: Bytes of a point's status, iterations, norm and cut, which a kernel always writes.
REPORT = 2 * 4 + 2 * 8


def bytes_moved(model: Model, jacobian: bool) -> int:
    """Bytes that the kernel of a law reads and writes for a point, parameters left out."""
    taken, made = (
        sum(math.prod(v.point_shape) for v in of) for of in (model.inputs, model.outputs)
    )
    numbers = taken + made + (taken * made if jacobian else 0)
    return int(np.dtype(model.dtype).itemsize) * numbers + REPORT


def least(call: Callable[[], Any], times: DeviceTimes) -> tuple[float, float]:
    """The least seconds of a call, and of the device in one."""
    seconds: list[float] = []
    on_device: list[float] = []
    while sum(seconds) < 0.5 and len(seconds) < 20:
        times.seconds = 0.0
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
        on_device.append(times.seconds)
    return min(seconds), min(on_device)


def on_tensors(model: Model, tensors: dict[str, Any], jacobian: bool) -> Callable[[], Any]:
    """Return a call over tensors of torch on the card, which waits for its end."""
    call = model.bind(tensors, derivatives=jacobian)

    def run() -> None:
        call.run()
        call.wait()

    return run


def packages_of(name: str, tensors: dict[str, Any], jacobian: bool) -> Callable[[], Any]:
    """Return the same by the packages of NEML2 for CUDA; a call returns their result."""
    import torch

    packages = Model(models.artifact(name, device="cuda"), device="cuda")

    def run() -> Any:
        result = packages.jacobian(tensors) if jacobian else packages.forward(tensors)
        torch.cuda.synchronize()
        return result

    return run


def require_agreement(ours: Any, theirs: Any) -> None:
    """Exit if outputs on the card differ by more than the tolerance of a solution."""
    for output, value in theirs.items():
        expected = value.cpu().numpy()
        scale = np.abs(expected).max()
        difference = np.abs(ours[output].reshape(expected.shape) - expected).max() / scale
        if not difference < 1e-6:
            sys.exit(
                f"{output} differs from the packages' by {difference:.1g} of its greatest value"
            )


def rows(name: str, root: Path, arguments: argparse.Namespace) -> Iterator[list[str]]:
    """A line for each number of points."""
    target = "cuda" if arguments.device.startswith("cuda") else "opencl"
    for folder in folders(root):
        write_beside(folder, target)
    top_operations, top_bytes = ceilings(arguments.device)
    top_operations = 1e9 * arguments.gflops or top_operations
    top_bytes = 1e9 * arguments.gbytes or top_bytes
    times = DeviceTimes()
    logger = logging.getLogger("neml2_capi.model")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(times)
    for points in arguments.points:
        start = time.perf_counter()
        there, lanes = Model(root, device=arguments.device), Model(root)
        some = repeated(state_of(name, lanes), 1000)  # any number has as much work a point
        inputs = {n: np.resize(v, (points, *v.shape[1:])) for n, v in some.items()}
        bound = [m.bind(inputs, derivatives=arguments.jacobian) for m in (there, lanes)]
        bound[0]()
        first = time.perf_counter() - start
        iterations = there.evaluate(inputs)[1]["iterations"].mean()
        call, device = least(bound[0], times)
        on_lanes, _ = least(bound[1], times)
        of_tensors = of_packages = math.nan
        if target == "cuda" and find_spec("torch"):
            import torch

            tensors = {n: torch.as_tensor(v, device=arguments.device) for n, v in inputs.items()}
            of_tensors, _ = least(on_tensors(there, tensors, arguments.jacobian), times)
            if arguments.packages:
                run = packages_of(name, tensors, arguments.jacobian)
                result = run()
                require_agreement(bound[0].outputs, result[0] if arguments.jacobian else result)
                of_packages, _ = least(run, times)
        needed = operations(root, there, iterations)
        moved = bytes_moved(there, arguments.jacobian)
        by_operations = math.nan if arguments.jacobian or not needed else top_operations / needed
        numbers = [call * 1e6 / points, device * 1e6 / points]
        rates = [points / t for t in (call, device, of_tensors, of_packages, on_lanes)]
        yield [
            name,
            str(points),
            f"{first:.2f}",
            *(f"{n:.4g}" for n in numbers),
            *(f"{n:.3g}" for n in rates),
            f"{needed:.0f}",
            str(moved),
            *(f"{n:.3g}" for n in (by_operations, top_bytes / moved)),
        ]
    logger.removeHandler(times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=DEFAULT, metavar="NAME")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--points", nargs="+", type=int, default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--gflops", type=float, default=0.0)
    parser.add_argument("--gbytes", type=float, default=0.0)
    parser.add_argument("--jacobian", action="store_true", help="with all blocks of derivatives")
    parser.add_argument("--packages", action="store_true", help="beside NEML2's packages")
    arguments = parser.parse_args()
    print(json.dumps({"device": arguments.device}), _HEAD, sep="\n")
    print("|" + " --- |" * (_HEAD.count("|") - 1))
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.names:
            root = shutil.copytree(models.with_kernels(name, native_target()), Path(scratch, name))
            try:
                for row in rows(name, root, arguments):
                    print("|", " | ".join(row), "|", flush=True)
            except FatalError as error:
                sys.exit(f"{error} Another device: --device opencl:0.")


if __name__ == "__main__":
    main()
