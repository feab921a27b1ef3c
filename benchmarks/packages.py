"""A network as a package, run by neml2_capi.Graph, beside torch's ways to save what it compiled.

    python benchmarks/packages.py [--quick] [--rounds 15]

The network is the perceptron of tests/models/exports.py (6, 16, 16 and 6 wide, float64), for any
number of points. The contestants, which all take and return torch tensors:

    Model, kernels           a model of neml2_capi.export, from kernels alone
    Graph, built-in          a package of neml2_capi.export, on the built-in runtime
    Graph, libtorch          the same file, on libtorch
    aoti_load_package        the same file, by torch itself
    aot_compile              what torch.compile(network).forward.aot_compile saves; it is loaded
                             into the network, which Python must have made before
    eager                    the network, not compiled

A second table is of the network and its gradient by the points: forward and backward.

    save         export, compilation and writing, with the C++ compiler, nothing in torch's cache
    imports      what the first load of a process imports, beyond torch and neml2_capi
    load         reading the file, in a new process that has imported all that
    first call   the one after that, of 100 points
    call         of 1, 1,000 and 100,000 points

One thread. Times are processor times, so that what else runs on the machine matters less.
Save is one sample, times until the first call are medians of new processes; in calls the
contestants take turns. All results are compared with the network's own.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from autograd import take_turns

import neml2_capi

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "models"))

import exports  # (tests/models is no package)

Function = Callable[[Any], Any]
PACKAGE, SAVED, MODEL = "network.pt2", "network.aot", "network"


def points(count: int, gradient: bool) -> Any:
    torch.manual_seed(count)
    return torch.randn(count, 6, dtype=torch.float64, requires_grad=gradient)


# ---- the contestants ----


def export_package(network: Any, file: Path, gradient: bool) -> None:
    from neml2_capi import export

    example = torch.zeros(1, 6, dtype=torch.float64)
    export.package(network, (example,), file, backward=gradient)


def export_model(network: Any, file: Path, gradient: bool) -> None:
    from neml2_capi import export

    def law(x: Any) -> dict[str, Any]:
        return {"y": network(x)}

    export.model(law, file, inputs={"x": "SR2"}, outputs={"y": "SR2"}, kernels="only")


def save_compiled(network: Any, file: Path, gradient: bool) -> None:
    example = points(100, gradient)
    torch._dynamo.decorators.mark_unbacked(example, 0)  # a dynamic batch refuses one point
    with torch.set_grad_enabled(gradient):
        compiled = torch.compile(network, fullgraph=True).forward.aot_compile(((example,), {}))
    compiled.save_compiled_function(str(file), external_data={"network": network})


def load_compiled(network: Any, file: Path, gradient: bool) -> Function:
    with file.open("rb") as opened:
        loaded: Function = torch.compiler.load_compiled_function(
            opened, external_data={"network": network}
        )
    return loaded


def load_graph(runtime: str) -> Callable[[Any, Path, bool], Function]:
    def load(network: Any, file: Path, gradient: bool) -> Function:
        if gradient:
            from neml2_capi.torch import Graph

            module = Graph(file)
            return lambda x: module(x)[0]
        graph = neml2_capi.Graph(file, runtime)
        return lambda x: graph(x)[0]

    return load


def load_model(network: Any, file: Path, gradient: bool) -> Function:
    if gradient:
        from neml2_capi.torch import Module

        module = Module(file)
        module.model.options.update({"kernels": "required", "threads": 1})
        return lambda x: module({"x": x})["y"]
    model = neml2_capi.Model(file)
    model.options.update({"kernels": "required", "threads": 1})
    return lambda x: model.forward({"x": x})["y"]


def load_package(network: Any, file: Path, gradient: bool) -> Function:
    package: Function = torch._inductor.aoti_load_package(str(file))
    return package


@dataclass(frozen=True)
class Contestant:
    """How one saves the network in a file, and makes a function of it."""

    file: str
    load: Callable[[Any, Path, bool], Function]
    gradient: bool = True
    """Whether it has one."""
    save: Callable[[Any, Path, bool], None] = export_package


CONTESTANTS = {
    "Model, kernels": Contestant(MODEL, load_model, save=export_model),
    "Graph, built-in": Contestant(PACKAGE, load_graph("builtin")),
    "Graph, libtorch": Contestant(PACKAGE, load_graph("libtorch"), gradient=False),
    "aoti_load_package": Contestant(PACKAGE, load_package, gradient=False),
    "aot_compile": Contestant(SAVED, load_compiled, save=save_compiled),
    "eager": Contestant("", lambda network, file, gradient: network),
}


def step(function: Function, x: Any, gradient: bool) -> Any:
    """The outputs, or the gradient of their sum."""
    if not gradient:
        return function(x)
    x.grad = None
    function(x).backward(torch.ones_like(x))
    return x.grad


def check(name: str, function: Function, x: Any, gradient: bool) -> None:
    made = step(function, x, gradient).clone()
    wanted = step(exports.network(), x, gradient)
    if not torch.allclose(made, wanted, rtol=1e-12, atol=1e-14):
        raise SystemExit(f"{name} computed something else than the network")


# ---- in processes of their own ----


def processor_time() -> float:
    """Of this process and of those that it started and that have ended, in seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def timed_save(name: str, file: Path, gradient: bool) -> float:
    network = exports.network()
    start = processor_time()
    CONTESTANTS[name].save(network, file, gradient)
    return processor_time() - start


def timed_load(name: str, file: Path, gradient: bool, modules: list[str]) -> list[float]:
    """Of importing, of loading, and of the first call."""
    network, x = exports.network(), points(100, gradient)
    times = [time.process_time()]
    for module in modules:
        with contextlib.suppress(ImportError):  # what was compiled is a module, too
            importlib.import_module(module)
    times.append(time.process_time())
    function = CONTESTANTS[name].load(network, file, gradient)
    times.append(time.process_time())
    step(function, x, gradient)
    times.append(time.process_time())
    check(name, function, x, gradient)
    return [end - start for start, end in itertools.pairwise(times)]


def imported(name: str, file: Path, gradient: bool) -> list[str]:
    """What loading and the first call import."""
    network, x, before = exports.network(), points(100, gradient), set(sys.modules)
    step(CONTESTANTS[name].load(network, file, gradient), x, gradient)
    return [module for module in sys.modules if module not in before]


TASKS: dict[str, Callable[..., Any]] = {
    "save": timed_save,
    "load": timed_load,
    "imported": imported,
}


def in_a_new_process(task: str, name: str, file: Path, gradient: bool, *more: Any) -> Any:
    given = json.dumps([name, str(file), gradient, *more])
    command = [sys.executable, __file__, "--task", task, given]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def carry_out(task: str, given: str) -> None:
    name, file, gradient, *more = json.loads(given)
    with torch.set_grad_enabled(gradient):
        print(json.dumps(TASKS[task](name, Path(file), gradient, *more)))


# ---- the tables ----


def measure(folder: Path, gradient: bool, counts: list[int], rounds: int, loads: int) -> None:
    """Print a table."""
    heads = [
        "",
        "save, s",
        "imports, ms",
        "load, ms",
        "first call, ms",
        *(f"call, {n:,}, us" for n in counts),
    ]
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    rows: dict[str, list[str]] = {}
    functions: dict[str, Function] = {}
    saves: dict[str, float] = {}
    for name, contestant in CONTESTANTS.items():
        if gradient and not contestant.gradient:
            continue
        file = folder / contestant.file
        rows[name] = ["-"] * 4
        if contestant.file:
            if contestant.file not in saves:
                saves[contestant.file] = in_a_new_process("save", name, file, gradient)
            modules = in_a_new_process("imported", name, file, gradient)
            loaded = [in_a_new_process("load", name, file, gradient, modules) for _ in range(loads)]
            medians = [1e3 * statistics.median(column) for column in zip(*loaded, strict=True)]
            rows[name] = [f"{saves[contestant.file]:.1f}", *(f"{time:.2f}" for time in medians)]
        functions[name] = contestant.load(exports.network(), file, gradient)
    for count in counts:
        x = points(count, gradient)
        for name, function in functions.items():
            check(name, function, x, gradient)
        steps = [partial(step, function, x, gradient) for function in functions.values()]
        for name, times in zip(functions, take_turns(steps, rounds), strict=True):
            rows[name].append(f"{1e6 * statistics.median(times):.1f}")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--quick", action="store_true", help="does it run? Few samples, and torch's cache"
    )
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)  # of in_a_new_process
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.task:
        carry_out(*arguments.task)
        return
    # All that compiles does so in the process whose time is taken.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    counts, loads = ([1, 1000], 1) if arguments.quick else ([1, 1000, 100_000], 5)
    rounds = 1 if arguments.quick else arguments.rounds
    for gradient in (False, True):
        print("\nforward and backward\n" if gradient else "forward\n")
        with tempfile.TemporaryDirectory() as folder, torch.set_grad_enabled(gradient):
            if not arguments.quick:
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(folder) / "cache")
            measure(Path(folder), gradient, counts, rounds, loads)


if __name__ == "__main__":
    main()
