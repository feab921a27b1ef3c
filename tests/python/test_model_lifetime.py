"""When models are closed and freed, whoever else is at work."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import _cffi_backend
import numpy as np
import pytest

from neml2_capi import FatalError, Model

Artifacts = Mapping[str, Path]
STRAIN = np.array([[1e-3, -3e-4, 2e-4, 5e-4, -1e-4, 7e-4], [2e-3, 1e-4, 0, -6e-4, 3e-4, 1e-4]])


def test_a_closed_model_says_so(artifacts: Artifacts) -> None:
    with Model(artifacts["elasticity"]) as model:
        options, parameters = model.options, model.named_parameters()
    assert model.closed
    model.close()
    assert "closed" in repr(model)
    assert repr(options) == "<Options of a closed model>"
    assert repr(parameters) == "<Parameters of a closed model>"
    assert model.inputs.names == ["strain"]
    for use in (
        lambda: model.forward({"strain": STRAIN}),
        lambda: options["atol"],
        lambda: options.update({"atol": 1.0}),
        model.__enter__,
    ):
        with pytest.raises(FatalError, match="this Model is closed"):
            use()


def test_a_model_is_freed_with_its_last_reference(artifacts: Artifacts) -> None:
    gc.disable()
    try:
        model = Model(artifacts["elasticity"])
        assert model.options["atol"] > 0
        assert len(model.named_parameters()) == 1
        seen = weakref.ref(model)
        del model
        assert seen() is None
    finally:
        gc.enable()


def test_a_library_of_something_else_is_an_import_error() -> None:
    other = _cffi_backend.__file__
    done = subprocess.run(
        [sys.executable, "-c", "import neml2_capi"],
        env={**os.environ, "NEML2_CAPI_LIBRARY": other},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {other} is not a usable neml2_capi library: ")


# Few points are evaluated by replays from the second time on.
@pytest.mark.parametrize("points", [20_000, *[2] * 20])
def test_closing_while_other_threads_evaluate_is_safe(artifacts: Artifacts, points: int) -> None:
    model = Model(artifacts["elasticity"])
    strain = np.broadcast_to(STRAIN[0], (points, 6)).copy()
    expected = model.forward({"strain": strain})["stress"]
    started, wrong = threading.Barrier(4), []

    def evaluate() -> None:
        started.wait()
        while True:
            try:
                result = model.forward({"strain": strain})["stress"]
            except FatalError as error:
                if "this Model is closed" not in str(error):
                    wrong.append(error)
                return
            if not np.array_equal(result, expected):
                wrong.append(result)

    threads = [threading.Thread(target=evaluate) for _ in range(3)]
    for thread in threads:
        thread.start()
    started.wait()
    model.forward({"strain": strain})
    model.close()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_is_left_at_the_exit_of_the_interpreter_does_no_harm(artifacts: Artifacts) -> None:
    code = f"""
import atexit, neml2_capi
model = neml2_capi.Model({str(artifacts["elasticity"])!r})
strain = [1e-3, 0, 0, 0, 0, 0]
stress, E = model.forward({{"strain": strain}})["stress"], model.named_parameters()["E"]
atexit.register(lambda: model.forward({{"strain": strain}}))
class Late:
    def __init__(self, model): self.model, self.view = model, model.named_parameters()["E"]
    def __del__(self, strain=strain, closed=neml2_capi.FatalError):
        self.view.fill(1.0)
        try: self.model.forward({{"strain": strain}})
        except closed: pass
        self.model.close()
neml2_capi.late = Late(model)
other = neml2_capi.Model({str(artifacts["elasticity"])!r})
other.itself = other
"""
    command = [sys.executable, "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_model_in_a_reference_cycle_is_closed_not_dangling(artifacts: Artifacts) -> None:
    class Late:
        def __init__(self) -> None:
            self.model, self.itself = Model(artifacts["elasticity"]), self
            self.modulus = self.model.named_parameters()["E"]

        def __del__(self) -> None:
            seen.append(float(self.modulus))
            try:
                seen.append(self.model.forward({"strain": STRAIN})["stress"].shape)
            except FatalError as error:
                seen.append(str(error))

    seen: list[Any] = []
    Late()
    gc.collect()
    assert seen[0] == 200e3
    assert seen[1] in ((2, 6), "this Model is closed")
