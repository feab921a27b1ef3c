"""Threads of the library: how many, in a child process too, and what an error in one does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from states import load, random_like, recorded, repeated

from neml2_capi import FatalError, Model

ELASTICITY = Path(__file__).resolve().parents[2] / "examples" / "artifacts" / "elasticity"


def child(script: str, **variables: str) -> str:
    """What a new interpreter prints."""
    command = [sys.executable, "-I", "-c", script, str(ELASTICITY)]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **variables}
    ).stdout.strip()


def test_python_uses_all_processors_unless_the_environment_says_otherwise() -> None:
    script = "import neml2_capi, sys; print(neml2_capi.Model(sys.argv[1]).options['threads'])"
    assert float(child(script, NEML2_CAPI_THREADS="3")) == 3
    assert float(child("import os; os.environ.pop('NEML2_CAPI_THREADS', None); " + script)) == 0


@pytest.mark.parametrize("wanted", ["many", "-1", "1.5", "", "99999"])
def test_a_wrong_number_of_threads_in_the_environment_is_named(wanted: str) -> None:
    script = (
        "import neml2_capi, sys\n"
        "try: neml2_capi.Model(sys.argv[1])\n"
        "except neml2_capi.FatalError as error: print(error)"
    )
    said = child(script, NEML2_CAPI_THREADS=wanted)
    assert "NEML2_CAPI_THREADS" in said and f"'{wanted}'" in said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")  # that is what is tested
def test_a_child_of_fork_has_threads_of_its_own(artifacts: Mapping[str, Path]) -> None:
    model = load(artifacts, "isotropic_hardening")
    inputs = repeated(recorded("isotropic_hardening", "in"), 2000)
    model.options["threads"], model.options["chunk"] = 3, 16
    expected = model.forward(inputs)["stress"]
    process = os.fork()
    if process == 0:
        same = np.array_equal(model.forward(inputs)["stress"], expected)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    np.testing.assert_array_equal(model.forward(inputs)["stress"], expected)


def test_an_error_in_a_thread_reaches_the_caller(artifacts: Mapping[str, Path]) -> None:
    """A derivative that is refused in the middle of the batch, and nowhere else."""
    model = load(artifacts, "grains")
    inputs = repeated(recorded("grains", "in"), 400)
    tangents = random_like(inputs)
    tangents["strain"][...] = tangents["strain"][:, :1]
    model.options["threads"], model.options["chunk"] = 4, 8
    expected = model.jvp(inputs, tangents)[1]
    tangents["strain"][203, 1] *= 2.0
    for _ in range(20):
        with pytest.raises(FatalError, match="same change at all 4 sub-batch sites"):
            model.jvp(inputs, tangents)
    tangents["strain"][203, 1] /= 2.0
    for name, value in model.jvp(inputs, tangents)[1].items():
        np.testing.assert_array_equal(value, expected[name])


def test_failed_points_are_told_whatever_thread_met_them(artifacts: Mapping[str, Path]) -> None:
    model = load(artifacts, "isotropic_hardening")
    inputs = repeated(recorded("isotropic_hardening", "in"), 1000)
    inputs["strain"][[17, 500, 999]] = 1e200
    results = []
    for threads in (1, 4):
        model.options["threads"], model.options["chunk"] = threads, 16
        outputs, report = model.evaluate(inputs)
        assert np.flatnonzero(report["status"]).tolist() == [17, 500, 999]
        results.append(outputs["stress"])
    one, other = results
    np.testing.assert_array_equal(one, other)


def test_a_model_may_be_called_while_another_has_the_threads(model: Model) -> None:
    """From a second thread, which then works alone."""
    from concurrent.futures import ThreadPoolExecutor

    strain = np.random.default_rng(0).standard_normal((200_000, 6)) * 1e-3
    expected = model.forward({"strain": strain})["stress"]
    model.options["threads"], model.options["chunk"] = 2, 512
    with ThreadPoolExecutor(4) as callers:
        for result in callers.map(lambda _: model.forward({"strain": strain}), range(12)):
            np.testing.assert_array_equal(result["stress"], expected)
