"""A user's script that uses the whole package, for mypy --strict; it is not run."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import neml2_capi
from neml2_capi import (
    AggregateError,
    Call,
    CompiledModel,
    ConvergenceError,
    Device,
    Error,
    FatalError,
    Graph,
    GraphInput,
    GraphOutput,
    Model,
    Results,
    Scheduler,
    StepError,
    SweepError,
    SweepResults,
    Tensor,
    UnknownNameError,
    Variable,
    drive,
    examples,
    experiments,
    load_model,
    mandel,
    operator,
    register_operator,
    sweep,
    unregister_operator,
)
from neml2_capi.solvers import Newton, System

Array = NDArray[Any]


def pull(strain: Array) -> dict[str, Any]:
    model = Model(examples.path("chaboche"))
    model["E"] = 180e3
    state = model.state(len(strain))
    outputs = model(state.inputs(strain=mandel.from_voigt(strain, shear="engineering"), t=1.0))
    state.advance(outputs)
    print(state.copy()["stress"], mandel.to_tensor(outputs["stress"]), model.inputs["strain"].type)
    results = experiments.tension(model, np.linspace(0, 10, 11), 0.01)
    assert_type(results, Results)
    results.save("pull.csv")
    print(results.to_frame(), results.columns()["stress.xx"])
    held = drive(model, [0.0, 1.0], {"strain": {"xx": 1e-3}}, control={"stress": "uniaxial"})
    return dict(held)


def load(folder: Path) -> Model:
    model = Model(folder / "viscoplastic", device="cpu", dtype=np.float64)
    with Model.from_stub(folder / "viscoplastic_aoti.i", "viscoplastic") as other:
        assert_type(other, Model)
        print(other.closed, other)
    inputs: list[Variable] = list(model.inputs)
    print(
        [variable.name for variable in inputs], model.outputs[0].base_shape, model.outputs[0].type
    )
    for history in model.histories:
        print(history.input, history.age, history.output or history.current)
    print(model.describe()["leaf"], {d.output: d.shape for d in model.derivatives})
    return copy.deepcopy(model)


def scheduled(folder: Path, rank: int) -> Model:
    scheduler = Scheduler([Device("cpu", 512), Device("cuda:0", batch_size=4096, priority=2.0)])
    devices: tuple[Device, ...] = scheduler.keep_rank(rank, 2).devices
    print([(d.device, d.runtime, d.batch_size, d.capacity, d.priority) for d in devices])
    model = Model(folder / "viscoplastic", scheduler=Scheduler.from_toml(folder / "node.toml"))
    assert_type(model.scheduler, Scheduler | None)
    assert_type(model.points_evaluated, tuple[int, ...])
    load_model(folder / "elasticity_aoti.i", "elasticity", scheduler=Scheduler("cpu", 512))
    return model


def settings(model: Model) -> None:
    model.options["atol"] = 1e-12
    model.options["ls_type"] = "STRONG_WOLFE"
    model.options.update({"rtol": 1e-9, "miters": 30})
    least, greatest = model.options.bounds("rtol")
    assert_type(least + greatest, float)
    model.set_solver_config(1e-10, 1e-8, 25, "BACKTRACKING", 10, 2.0, 1e-3)
    model.set_parameter("E", 100e3)
    for name, value in model.named_parameters().items():
        print(name, value)


def evaluate(model: Model, strain: NDArray[np.float64], history: Mapping[str, Array]) -> Array:
    inputs: dict[str, Array | float] = {"strain": strain, "t": 1.0, **history}
    outputs = model.forward(inputs)
    assert_type(outputs, dict[str, Array])
    outputs = model.forward(inputs, {"E": 100e3}, Newton(rtol=1e-10, hook=print))
    outputs, report = model.evaluate(inputs)
    assert_type(report["status"], Array)
    print(np.flatnonzero(report["status"]), int(report["iterations"].max()))
    outputs, along = model.jvp(inputs, {"strain": strain})
    outputs, adjoints = model.vjp({"strain": [1e-3, 0.0]}, {"stress": outputs["stress"]})
    outputs, blocks = model.jacobian(inputs)
    assert_type(blocks["stress"]["strain"], Array)
    outputs, by_parameters = model.param_jacobian(inputs, {"E": Tensor(strain)})
    gradients = model.param_vjp(inputs, {"stress": outputs["stress"]})
    assert_type(gradients, dict[str, Array])
    stress: Array = outputs["stress"] + along["stress"] + by_parameters["stress"]["E"]
    return stress + adjoints["strain"]


class Grid:
    """An array of a library that speaks DLPack, but has no types of ours."""

    def __dlpack__(self, stream: int | None = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def norm(self) -> float:
        return 0.0


def evaluate_others(model: Model, strain: Grid) -> float:
    stress = model.forward({"strain": strain})["stress"]
    assert_type(stress, Grid)
    inputs: dict[str, Grid | float] = {"strain": strain, "t": 1.0}
    assert_type(model.forward(inputs, {"E": np.ones(3)}), dict[str, Grid])
    assert_type(model.forward({"strain": strain, "t": 1.0}), dict[str, Any])
    outputs, blocks = model.jacobian({"strain": strain})
    assert_type(blocks, dict[str, dict[str, Grid]])
    return outputs["stress"].norm() + model.evaluate({"strain": strain})[1]["status"].norm()


def loop(model: Model, strain: Array) -> None:
    stress = np.zeros_like(strain)
    call: Call = model.bind(
        {"strain": strain},
        {"stress": stress},
        derivatives={"stress": {"strain": True}},
        report={"iterations": True},
    )
    for _ in range(10):
        strain *= 1.1
        print(call()["stress"], call.derivatives["stress"]["strain"], call.batch, call.points)
        status: int = call.run()
        print(status, call.report["status"])
        call.swap("stress~1", "stress")
        call.bind({"strain": strain.copy()}, report=True)
    call.close()


def through_time(model: Model, strain: Array, folder: Path) -> Array | None:
    times = np.linspace(0.0, 1.0, 11)
    try:
        results = drive(
            model,
            times,
            {"strain": strain, "temperature": 300.0, "rate": lambda t: t * np.ones(6)},
            {"stress": np.zeros(6)},
            derivatives=True,
            report=True,
            progress=False,
        )
    except StepError as error:
        print(error.step, error.time, error.results["stress"])
        return None
    assert_type(results, Results)
    results.save(folder / "results.npz")
    stress: Array = Results.load(folder / "results.npz")["stress"]
    return stress


def scatter(model: Model, strain: Array, folder: Path) -> Array:
    run = partial(drive, model, np.linspace(0.0, 1.0, 11), {"strain": strain}, record="stress")
    moduli = np.linspace(150e3, 250e3, 100)
    with ThreadPoolExecutor(2) as pool:
        results = sweep(run, {"E": moduli}, pool, directory=folder, batch=10, progress=False)
    assert_type(results, SweepResults)
    try:
        sweep(run, [{"E": modulus} for modulus in moduli], ThreadPoolExecutor, failures="raise")
    except SweepError as error:
        print({item: failure.message for item, failure in error.results.failures.items()})
    return np.asarray(SweepResults.load(folder)["stress"][results.done])


def relax(system: System) -> None:
    u = system.guess()
    for _ in range(10):
        u = u + system.step(u)[0]
    system.accept(u)


def solve(model: Model, inputs: Mapping[str, Array]) -> dict[str, Any]:
    with model.solve(inputs) as solve:
        for system in solve:
            relax(system)
        return solve.end()


def errors(model: Model, strain: Array) -> float:
    try:
        model.forward({"strain": strain})
    except ConvergenceError as error:
        failed = ~error.converged_mask
        print(failed, error.outputs["stress"], error.unknowns, error.report["iterations"])
        return float(error.report["suggested_cut"].min())
    except UnknownNameError as error:
        print(error.subject)
    except FatalError as error:
        print(error.status, error)
    except AggregateError as error:
        print([str(one) for one in error.errors])
    except Error as error:
        print(error.recoverable)
    return 1.0


@operator("mylib::scale(Tensor x, float factor=1.0) -> Tensor")
def scale(x: Array, factor: float) -> Array:
    return factor * x


def operators() -> Array:
    name = register_operator("mylib::twice(Tensor x) -> Tensor", lambda x: 2 * x)
    unregister_operator(name)
    return scale(np.ones(3), 2.0)


def others(folder: Path) -> None:
    graph = Graph(folder / "elasticity.pt2")
    taken: tuple[GraphInput, ...] = graph.inputs
    returned: tuple[GraphOutput, ...] = graph.outputs
    (stress,) = graph.flat(np.ones((3, 6)), [100e3] * 3)
    assert_type(stress, Array)
    print(graph(np.ones((3, 6)), **{taken[1].name: 100e3}))
    print(taken[0].dtype, taken[0].least, taken[0].shape, taken[0].strides, graph.num_outputs)
    print(returned[0].name, returned[0].dtype, returned[0].shape, graph.call_spec)
    print(Graph((folder / "elasticity.pt2").read_bytes(), guards=False))
    tensor = Tensor.zeros((3, 6), "float32")
    array: Array = tensor.share().numpy()
    print(tensor.shape, tensor.dtype, np.asarray(tensor), array)
    compiled: CompiledModel = load_model(folder / "elasticity_aoti.i", "elasticity")
    print(compiled(np.ones(6))[0], compiled.input_spec["strain"], neml2_capi.__version__)
