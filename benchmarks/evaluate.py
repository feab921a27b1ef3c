"""One contestant in Python, as a process of its own: the protocol is the same as in serve.h.

    python evaluate.py KIND ARTIFACT INPUTS OPERATION POINTS THREADS

where KIND is "forward" for neml2_capi.Model with numpy, "bound" for a bound call of it, or "neml2"
for neml2.aoti.Model with torch. What is not needed is not imported: the start is measured, too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[np.float64]]
    Work = Callable[[], Any]


def read_arrays(folder: Path, points: int) -> Arrays:
    """The arrays of arrays.h; all of them if `points` is 0."""
    import numpy as np

    arrays = {}
    for line in (folder / "index.txt").read_text().splitlines():
        name, *shape = line.split()
        count = points * int(np.prod([int(n) for n in shape])) if points else -1
        values = np.fromfile(folder / f"{name}.bin", count=count)
        arrays[name] = values.reshape(-1, *map(int, shape))
    return arrays


def steps_of(path: Arrays, points: int) -> Iterator[Arrays]:
    """The forces of each step, old and new, of the first points."""
    for k in range(1, len(path["t"])):
        yield {name: path[name][k, :points] for name in path} | {
            f"{name}~1": path[name][k - 1, :points] for name in path
        }


def capi(kind: str, artifact: str, inputs: Path, operation: str, points: int, threads: int) -> Work:
    """neml2_capi with numpy."""
    import neml2_capi

    model = neml2_capi.Model(artifact)
    if "threads" in model.options:
        model.options["threads"] = threads
    elif threads > 1:
        raise NotImplementedError("neml2_capi has no option 'threads'")
    if kind == "bound":
        return bound(model, inputs, operation, points)
    if operation == "transient":
        path = read_arrays(inputs / "path", 0)
        shapes = {v.name: (points, *v.sub_batch_shape, *v.base_shape) for v in model.outputs}
        return lambda: transient(model.forward, path, zeros_of(shapes), points)
    given = read_arrays(inputs / "inputs", points)
    if operation == "jvp":
        tangents = read_arrays(inputs / "tangents", points)
        return lambda: model.jvp(given, tangents)
    evaluate = model.jacobian if operation == "jacobian" else model.forward
    return lambda: evaluate(given)


def bound(model: Any, inputs: Path, operation: str, points: int) -> Work:
    """A call of which all arrays stay in their place."""
    if operation == "transient" or not hasattr(model, "bind"):
        raise NotImplementedError("neml2_capi.Model has no bind() for this")
    given = read_arrays(inputs / "inputs", points)
    if operation == "jacobian":
        call = model.bind(given, derivatives=True)
        results = call.outputs, call.derivatives
    elif operation == "jvp":
        call = model.bind(given, tangents=read_arrays(inputs / "tangents", points))
        results = call.outputs, call.jvps
    else:
        call = model.bind(given)
        results = call.outputs

    def run() -> Any:
        call()
        return results

    return run


def zeros_of(shapes: dict[str, tuple[int, ...]]) -> Arrays:
    import numpy as np

    return {name: np.zeros(shape) for name, shape in shapes.items()}


def transient(forward: Callable[[Any], Any], path: Any, state: Any, points: int) -> Any:
    """Through all steps from `state` on; the last outputs."""
    for forces in steps_of(path, points):
        state = forward(forces | {f"{name}~1": value for name, value in state.items()})
    return state


def neml2(artifact: str, inputs: Path, operation: str, points: int, threads: int) -> Work:
    """NEML2's own runtime with torch."""
    import torch
    from neml2.aoti import Model

    torch.set_num_threads(threads)
    model = Model(artifact)

    def tensors(folder: str, points: int = points) -> dict[str, torch.Tensor]:
        return {n: torch.from_numpy(v) for n, v in read_arrays(inputs / folder, points).items()}

    if operation == "transient":
        path = tensors("path", 0)
        shapes = zip(model.output_names, model.output_base_shapes, strict=True)
        state = {n: torch.zeros((points, *shape), dtype=torch.float64) for n, shape in shapes}
        return lambda: transient(model.forward, path, state, points)
    given = tensors("inputs")
    if operation == "jvp":
        tangents = tensors("tangents")
        return lambda: model.jvp(given, tangents)
    evaluate = model.jacobian if operation == "jacobian" else model.forward
    return lambda: evaluate(given)


def named(result: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of a result with the names that the programs in C++ give them."""
    if isinstance(result, Mapping):
        yield from result.items()
        return
    outputs, derivatives = result
    yield from outputs.items()
    for name, value in derivatives.items():
        if isinstance(value, Mapping):
            yield from ((f"{name},{by}", block) for by, block in value.items())
        else:
            yield f"{name},jvp", value


def write(result: Any, folder: Path, count: int, points: int) -> None:
    import numpy as np

    for name, value in named(result):
        array = np.asarray(value)
        if array.ndim == 0 or len(array) != points:  # the same for all points
            array = np.broadcast_to(array, (points, *array.shape))
        np.ascontiguousarray(array[:count]).tofile(folder / f"{name}.bin")


def main() -> None:
    kind, artifact, inputs, operation, points, threads = sys.argv[1:]
    start = time.perf_counter()
    task = (artifact, Path(inputs), operation, int(points), int(threads))
    try:
        work = neml2(*task) if kind == "neml2" else capi(kind, *task)
        result = work()
    except Exception as error:
        print("failed", str(error).partition("\n")[0], flush=True)
        return
    print("ready", time.perf_counter() - start, flush=True)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "run":
            calls = range(int(arguments[0]))
            start = time.perf_counter()
            for _ in calls:
                result = work()
            print(time.perf_counter() - start, flush=True)
        else:
            write(result, Path(arguments[0]), int(arguments[1]), int(points))
            print("written", flush=True)


if __name__ == "__main__":
    main()
