"""Record what NEML2's own runtime computes for the test models, in reference.npz beside this file.

    python tests/data/make_reference.py

The published neml2 3.1.0 wheel does not run with torch 2.13, so its runtime is built from source,
into an environment of its own with torch 2.13.0 (some minutes):

    pip download --no-deps --no-binary :all: neml2==3.1.0 && tar xf neml2-3.1.0.tar.gz
    touch neml2-3.1.0/cmake/pkgconfig.cmake
    pip install scikit-build-core cmake ninja pybind11 nmhit numpy pyzag==2.0.0
    pip install --no-deps --no-build-isolation ./neml2-3.1.0    # needs the nlohmann-json headers

Recorded, with the axes [step, point, ...]:

    MODEL/in/NAME, MODEL/out/NAME  inputs of a history, and the outputs
    MODEL/norms    [step, iteration, point]: the residual norms of each Newton iteration when all
                   points iterate until all have converged; NaN beyond
    MODEL/printed  [step, iteration]: the greatest of them, as the runtime logs it, in 7 digits
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import neml2.log
import numpy as np
import torch
from neml2.aoti import Model

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))

from compile import artifact as artifact  # noqa: E402  (tests/models is no package)

Arrays = dict[str, np.ndarray]


def cyclic_strain(amplitudes: np.ndarray, steps: int, period: int) -> np.ndarray:
    """[step, point, 6]: proportional, six distinct components; unstrained at step 0."""
    direction = np.array([1.0, -0.3, -0.25, 0.35, -0.2, 0.15])
    phase = 2.0 * np.pi * np.arange(steps + 1) / period
    strain: np.ndarray = np.sin(phase)[:, None, None] * amplitudes[:, None] * direction
    return strain


def run_history(model: Model, forces: Arrays, state: Arrays) -> tuple[list[Arrays], list[Arrays]]:
    """Step through `forces`, [step, point, ...] from step 0 on, and feed the state back."""
    inputs, outputs = [], []
    for step in range(1, len(next(iter(forces.values())))):
        given = {}
        for name in model.inputs.names:
            base, _, age = name.partition("~")
            if base in forces:
                given[name] = forces[base][max(step - int(age or 0), 0)]
            else:
                given[name] = state[base]
        result = forward(model, given)
        state = {name: result[name] for name in state}
        inputs.append(given)
        outputs.append(result)
    return inputs, outputs


def forward(model: Model, given: Arrays) -> Arrays:
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in given.items()}
    return {name: value.numpy().copy() for name, value in model.forward(tensors).items()}


def printed_norms(model: Model, given: Arrays) -> np.ndarray:
    """The greatest residual norm of each iteration, from the log of the runtime."""
    lines: list[str] = []
    neml2.log.set_default_level("newton", "debug")
    neml2.log.set_sink(lambda level, line: lines.append(line))
    try:
        forward(model, given)
    finally:
        neml2.log.reset_sink()
        neml2.log.reset_defaults()
    found = re.findall(r"(?<!LS )ITERATION +\d+, \|R\| = (\S+),", "\n".join(lines))
    return np.array([float(value) for value in found])


class NewtonByHand:
    """The same iteration in full precision: the packages of the segment, called one by one."""

    def __init__(self, root: Path) -> None:
        metadata = json.loads((root / "metadata.json").read_text())
        self.segment = metadata["segments"][0]
        assert self.segment["kind"] == "implicit"
        self.config = metadata["solver_config"]
        values = {
            p["name"]: torch.tensor(p["values"][0], dtype=torch.float64)
            for p in metadata["parameters"]
        }
        self.parameters = [values[name] for name in self.segment["param_inputs"]]
        self.residual, self.jacobian, self.solve = (
            torch._inductor.aoti_load_package(
                str(root / "cpu" / "float64" / self.segment[f"{kind}_package"])
            )
            for kind in ("residual", "jacobian", "solve")
        )

    def norms(self, given: Arrays) -> np.ndarray:
        """[iteration, point]"""

        def pack(kind: str, suffix: str = "") -> list[torch.Tensor]:
            return [
                torch.cat([column(v, group, suffix) for v in group["per_var_info"]], dim=-1)
                for group in self.segment[f"{kind}_group_infos"]
            ]

        def column(variable: dict[str, Any], group: dict[str, Any], suffix: str) -> torch.Tensor:
            value = given[variable["name"] + suffix]
            grains = group["sub_batch_shape"] if group["structure"] == "block" else []
            return torch.tensor(value.reshape(len(value), *grains, -1))

        def norm(residual: list[torch.Tensor]) -> torch.Tensor:
            return torch.linalg.vector_norm(torch.cat([r.flatten(1) for r in residual], -1), dim=-1)

        # The predictor of these models is the previous state.
        u = pack("unknown", "~1")
        arguments = [*pack("given"), *self.parameters]
        norms = [norm(self.residual(*u, *arguments))]
        for _ in range(1, self.config["miters"]):
            absolute = norms[-1] < self.config["atol"]
            relative = norms[-1] / norms[0] < self.config["rtol"]
            if bool((absolute | relative).all()):
                break
            step = self.solve(*self.jacobian(*u, *arguments))
            u = [group + du for group, du in zip(u, step, strict=True)]
            norms.append(norm(self.residual(*u, *arguments)))
        history: np.ndarray = torch.stack(norms).numpy()
        return history


def record_newton(data: Arrays, name: str, root: Path, inputs: list[Arrays]) -> None:
    model = Model(str(root))
    newton = NewtonByHand(root)
    norms = [newton.norms(given) for given in inputs]
    printed = [printed_norms(model, given) for given in inputs]
    longest = max(len(n) for n in norms)
    data[f"{name}/norms"] = np.full((len(norms), longest, norms[0].shape[1]), np.nan)
    data[f"{name}/printed"] = np.full((len(norms), longest), np.nan)
    for step, (full, log) in enumerate(zip(norms, printed, strict=True)):
        data[f"{name}/norms"][step, : len(full)] = full
        data[f"{name}/printed"][step, : len(log)] = log
        # At round-off, the last norms differ between two ways to sum the same squares.
        np.testing.assert_allclose(full.max(axis=-1), log, rtol=2e-6, atol=1e-12 * log[0])


def record(data: Arrays, name: str, inputs: list[Arrays], outputs: list[Arrays]) -> None:
    for kind, steps in (("in", inputs), ("out", outputs)):
        for variable in steps[0]:
            data[f"{name}/{kind}/{variable}"] = np.stack([step[variable] for step in steps])


def main() -> None:
    torch.set_num_threads(1)
    data: Arrays = {}
    amplitudes = 0.01 * np.array([1.0, 0.6, 0.3, 0.1, 0.02, -0.5, -0.05, 0.8])
    points = len(amplitudes)
    time = np.broadcast_to(np.arange(13.0)[:, np.newaxis], (13, points))
    forces = {"strain": cyclic_strain(amplitudes, 12, 10), "t": time}

    def zeros(*names: str) -> Arrays:
        scalars = {"equivalent_plastic_strain", "gamma"}
        return {n: np.zeros((points,) if n in scalars else (points, 6)) for n in names}

    for name, state in {
        "viscoplastic": zeros("stress", "equivalent_plastic_strain", "X1", "X2"),
        "isotropic_hardening": zeros("stress", "equivalent_plastic_strain"),
    }.items():
        root = artifact(name)
        inputs, outputs = run_history(Model(str(root)), forces, state)
        record(data, name, inputs, outputs)
        record_newton(data, name, root, inputs)

    state = zeros(
        "plastic_strain", "equivalent_plastic_strain", "kinematic_plastic_strain", "gamma"
    )
    forces = {"total_strain": forces["strain"], "t": time}
    model = Model(str(artifact("radial_return")))
    record(data, "radial_return", *run_history(model, forces, state))

    grains = 1e-3 * np.arange(3 * 5 * 6, dtype=float).reshape(3, 5, 6)
    given = {"strain": grains}
    stressed = forward(Model(str(artifact("elasticity_grains"))), given)
    record(data, "elasticity_grains", [given], [stressed])

    # Four crystals, sheared and rotated; time steps of 10 ms.
    rates = np.array([[0.1, -0.05, -0.05, 0.02, 0.0, -0.01]]) * np.array(
        [[1.0], [0.5], [-0.7], [0.1]]
    )
    forces = {
        "deformation_rate": np.broadcast_to(rates, (9, 4, 6)),
        "vorticity": np.broadcast_to(np.array([0.1, -0.05, -0.05]), (9, 4, 3)),
        "t": np.broadcast_to(0.01 * np.arange(9.0)[:, np.newaxis], (9, 4)),
    }
    state = {
        "elastic_strain": np.zeros((4, 6)),
        "dislocation_density": np.broadcast_to(10.0 + 0.1 * np.arange(12.0), (4, 12)),
        "orientation": np.array(
            [[0.0, 0.0, -0.05], [0.2, -0.1, 0.0], [0.3, -0.12, 0.1], [0.1, 0.2, 0.3]]
        ),
    }
    record(data, "crystal", *run_history(Model(str(artifact("crystal"))), forces, state))

    np.savez_compressed(HERE / "reference.npz", allow_pickle=False, **data)
    for name, value in data.items():
        print(f"{name:45s} {value.shape}")


if __name__ == "__main__":
    main()
