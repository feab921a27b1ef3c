"""neml2-capi run: a model driven by a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from command_line import answer, error
from numpy.typing import NDArray
from running import DIRECTION, HEAD, RAMP, TIMES, Write, results_of
from states import Artifacts
from test_physics import STATE, relative_error

from neml2_capi import Model, drive

Array = NDArray[np.float64]


def equal(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_a_ramp_is_what_drive_and_the_oracle_give(artifacts: Artifacts, write_run: Write) -> None:
    found = results_of(write_run(RAMP))
    times = np.linspace(0.0, 10.0, 21)
    strain = (0.01 * (times / 10.0))[:, np.newaxis] * DIRECTION
    equal(found, drive(Model(artifacts["viscoplastic"]), times, {"strain": strain}))
    state = np.zeros(19)
    for step in range(1, len(times)):
        state = oracle.VISCOPLASTIC.advance(state, strain[step], strain[step - 1], 0.5)
        for name, where in STATE.items():
            np.testing.assert_allclose(found[name][step], state[where], rtol=1e-7, atol=1e-8)


def test_a_law_under_a_hypothesis(artifacts: Artifacts, write_run: Write) -> None:
    file = write_run("[forces.strain]\nxx.ramp = 0.01\n", "isotropic_hardening")
    file.write_text(f'hypothesis = "plane_stress"\n{file.read_text()}')
    found = results_of(file)
    model = Model(artifacts["isotropic_hardening"], hypothesis="plane_stress")
    strain = np.outer(np.linspace(0.0, 0.01, 21), np.eye(len(found["strain"][0]))[0])
    expected = drive(model, np.linspace(0.0, 10.0, 21), {"strain": strain})
    assert found["stress"].shape == (21, 3)
    np.testing.assert_allclose(found["stress"], expected["stress"], rtol=1e-12, atol=1e-10)


def test_an_unknown_hypothesis_is_refused_with_those_there_are(write_run: Write) -> None:
    file = write_run("[forces.strain]\nxx.ramp = 0.01\n")
    file.write_text(f'hypothesis = "plain_stress"\n{file.read_text()}')
    said = error("run", file)
    assert "drive.toml: hypothesis" in said
    assert "plane_stress" in said


def strain_of(write_run: Write, body: str) -> Array:
    strain: Array = results_of(write_run(body, "elasticity"))["strain"]
    return strain


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        (
            "ramp = { from = 0.01, to = -0.01, until = 5.0 }",
            np.maximum(0.01 - 0.004 * TIMES, -0.01),
        ),
        (
            "cycle = { amplitude = 0.02, period = 8.0, mean = 0.01 }",
            0.01 + 0.02 * np.sin(2.0 * np.pi * TIMES / 8.0),
        ),
        (
            'cycle = { amplitude = 0.02, period = 8.0, shape = "triangle" }',
            np.interp(TIMES, [0, 2, 6, 10], [0, 0.02, -0.02, 0.02]),
        ),
        (
            "points = [[0, 0], [3, 0.01], [10, -0.01]]",
            np.interp(TIMES, [0, 3, 10], [0, 0.01, -0.01]),
        ),
        ("constant = 0.005", np.full(21, 0.005)),
    ],
)
def test_signals(write_run: Write, signal: str, expected: Array) -> None:
    if signal.startswith("constant"):
        body = "forces.strain.xx = 0.005\noutput.variables = ['strain', 'stress']\n"
        file = write_run("", "elasticity", body + HEAD)
    else:
        file = write_run(f"[forces.strain.xx]\n{signal}\n", "elasticity")
    strain = np.broadcast_to(results_of(file)["strain"], (21, 6))
    np.testing.assert_allclose(strain[:, 0], expected, rtol=0, atol=1e-16)
    assert not strain[:, 1:].any()


def test_components_are_of_the_tensor_and_lists_are_as_stored(write_run: Write) -> None:
    """xy is half of an engineering shear; Mandel's notation stores it times sqrt(2)."""
    ends = (0.01, -0.003, -0.002, 1e-3, 2e-3, 3e-3)
    named = zip(("xx", "yy", "zz", "yz", "xz", "xy"), ends, strict=True)
    strain = strain_of(
        write_run, "[forces.strain]\n" + "".join(f"{n}.ramp = {v}\n" for n, v in named)
    )
    stored = np.array(ends) * [1, 1, 1, *[np.sqrt(2.0)] * 3]
    np.testing.assert_allclose(strain[-1], stored, rtol=1e-15)
    along = f"[forces.strain]\nramp = 1.0\ndirection = {stored.tolist()}\n"
    np.testing.assert_allclose(strain_of(write_run, along), strain, rtol=1e-14, atol=1e-18)
    file = write_run(f"[forces]\nstrain = {stored.tolist()}\n", "elasticity")
    stress = oracle.elastic_stress(stored, 200e3, 0.3)
    assert relative_error(results_of(file)["stress"][-1], stress) < 1e-12
    output = file.parent / "results.csv"
    answer("run", file, "--output", output)
    rows = list(csv.DictReader(output.open()))
    assert float(rows[3]["stress.xy"]) == pytest.approx(stress[5] / np.sqrt(2.0), rel=1e-12)


def test_a_list_in_the_place_of_a_number_is_one_value_per_point(
    artifacts: Artifacts, write_run: Write
) -> None:
    body = (
        "[forces.strain]\nramp = [0.01, 0.02]\ndirection = { xx = 1.0 }\n"
        "[parameters]\nyield_stress = [100.0, 200.0]\n"
        "[initial]\nequivalent_plastic_strain = [0.0, 0.1]\n"
    )
    found = results_of(write_run(body, "combined_hardening"))
    strain = np.zeros((21, 2, 6))
    strain[..., 0] = (TIMES / 10.0)[:, np.newaxis] * [0.01, 0.02]
    expected = drive(
        Model(artifacts["combined_hardening"]),
        TIMES,
        {"strain": strain},
        {"equivalent_plastic_strain": np.array([0.0, 0.1])},
        parameters={"yield_stress": np.array([100.0, 200.0])},
    )
    assert found["stress"].shape == (21, 2, 6)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-12)


def test_measured_columns_drive_a_model(write_run: Write, tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("time, exx, who\n0, 0, me\n4, 2.0, me\n20, -2.0, you\n")
    body = (
        "[forces.strain.xx]\nfile = 'test.csv'\ncolumn = 'exx'\ntime = 'time'\nscale = 0.01\n"
        "[forces.strain.xy]\nfile = 'test.npz'\ncolumn = 'exy'\n"
    )
    exy = np.linspace(0.0, 1e-3, 21) ** 2
    np.savez(tmp_path / "test.npz", exy=exy)
    strain = strain_of(write_run, body)
    np.testing.assert_allclose(strain[:, 0], np.interp(TIMES, [0, 4, 20], [0, 0.02, -0.02]))
    np.testing.assert_allclose(strain[:, 5], np.sqrt(2.0) * exy)
    said = error("run", write_run(body.replace("'exx'", "'who'"), "elasticity"))
    assert "forces.strain.xx.column: the column 'who' of" in said and "not hold numbers" in said


def test_a_row_of_a_file_is_one_line(write_run: Write, tmp_path: Path) -> None:
    """A quote that is not closed took in the lines up to the next one."""
    rows = '0,0,"5 inch\n\n4,2.0,b\n8,0.0,c"\n20,-2.0,d\n'
    (tmp_path / "test.csv").write_text(f"time,exx,who\n{rows}")
    body = "[forces.strain.xx]\nfile = 'test.csv'\ncolumn = 'exx'\ntime = 'time'\nscale = 0.01\n"
    strain = strain_of(write_run, body)
    expected = np.interp(TIMES, [0, 4, 8, 20], [0, 0.02, 0, -0.02])
    np.testing.assert_allclose(strain[:, 0], expected, atol=1e-16)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("t,exx\n0,0\n10,1_0\n", "the column 'exx' of {file} does not hold numbers"),
        ("t;exx\n0;0\n\n10;0,01\n", "{file} has 2 columns in line 4, but 1 names; expected commas"),
        ("t,exx [µm]\n0,0\n", "{file} is no text in UTF-8: 'utf-8' codec"),
        (f"t,exx\n0,{'1' * 140_000}\n", "{file} has a line '0,1111"),
    ],
    ids=["underscore", "decimal commas", "latin-1", "a long field"],
)
def test_a_file_that_is_no_table_is_named(
    write_run: Write, tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "test.csv"
    file.write_bytes(content.encode("latin-1"))
    said = error("run", write_run("[forces.strain.xx]\nfile = 'test.csv'\ncolumn = 'exx'\n"))
    assert "forces.strain.xx.column: " in said and message.format(file=file) in said


@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_results_of_one_run_drive_the_next(write_run: Write, tmp_path: Path, suffix: str) -> None:
    body = "[forces.strain]\nxx.ramp = 0.01\nxy.ramp = 0.002\n"
    first = results_of(write_run(body))
    output = tmp_path / f"first.{suffix}"
    answer("run", write_run(body), "--output", output)
    second = results_of(write_run(f"[forces.strain]\nfile = 'first.{suffix}'\n"))
    np.testing.assert_allclose(second["stress"], first["stress"], rtol=1e-9, atol=1e-9)


def test_times_as_a_list_and_another_start(write_run: Write) -> None:
    head = 'artifact = "{artifact}"\n[times]\nlist = [1.0, 2.0, 4.0]\n'
    np.testing.assert_array_equal(results_of(write_run(RAMP, head=head))["t"], [1.0, 2.0, 4.0])
    found = results_of(write_run(RAMP), "--set", "times.start=5", "--set", "times.steps=5")
    np.testing.assert_array_equal(found["t"], np.linspace(5.0, 10.0, 6))


def test_options_step_and_output(artifacts: Artifacts, write_run: Write) -> None:
    body = RAMP + (
        "[options]\natol = 1e-3\nrtol = 1e-3\nconvergence = 'batch'\n"
        "[step]\nleast = 0.125\n"
        "[output]\nvariables = ['stress']\nderivatives = ['stress:strain']\nreport = true\n"
    )
    found = results_of(write_run(body, "combined_hardening"))
    model = Model(artifacts["combined_hardening"])
    model.options.update({"atol": 1e-3, "rtol": 1e-3, "convergence": "batch"})
    strain = (0.01 * (TIMES / 10.0))[:, np.newaxis] * DIRECTION
    expected = drive(
        model,
        TIMES,
        {"strain": strain},
        record=["stress"],
        derivatives={"stress": {"strain": True}},
        report=True,
    )
    equal(found, expected)


def test_failed_calls_are_kept_beside_the_file(write_run: Write, tmp_path: Path) -> None:
    body = "[forces.strain.xx]\nramp = 1e30\n[options]\ncapsule = 'failed'\n[step]\nleast = 1.0\n"
    error("run", write_run(body))
    (file,) = (tmp_path / "failed").iterdir()
    assert answer("replay", file).rstrip().endswith("reproduced, to the last bit")


def test_settings_replace_what_the_file_says(write_run: Write) -> None:
    file = write_run(
        RAMP + "[parameters]\nE = 1e5\n[output]\nfile = 'in_file.csv'\n", "combined_hardening"
    )
    found = results_of(
        file,
        *("--set", "parameters.E=5e4", "--set", "forces.strain.ramp=0.002"),
        *("--set", "times.steps = 2", "--set", "options.convergence=batch"),
    )
    assert len(found["t"]) == 3
    assert found["strain"][-1, 0] == 0.002
    elastic = oracle.elastic_stress(1e-3 * DIRECTION, 5e4, 0.3)
    assert relative_error(found["stress"][1], elastic) < 1e-10
    assert not (file.parent / "in_file.csv").exists()


def test_a_dotted_parameter_needs_no_quotes(write_run: Write) -> None:
    strain = "[forces]\nstrain = [1e-3, 0.0, 0.0, 0.0, 0.0, 0.0]\n"
    for body in ("[parameters]\nelasticity.E = 1e5\n", '[parameters]\n"elasticity.E" = 1e5\n'):
        found = results_of(write_run(strain + body, "elasticity"))
        again = results_of(
            write_run(strain + body, "elasticity"), "--set", "parameters.elasticity.E=2e5"
        )
        np.testing.assert_allclose(again["stress"], 2.0 * found["stress"], rtol=1e-14)


def test_a_scheduler_spreads_the_points(write_run: Write) -> None:
    body = RAMP + "[parameters]\nyield_stress = [110.0, 210.0, 310.0]\n"
    expected = results_of(write_run(body, "combined_hardening"))
    file = write_run(body + "[scheduler]\ndevice = 'cpu'\nbatch_size = 2\n", "combined_hardening")
    equal(results_of(file), expected)
    equal(results_of(file, "--set", "scheduler.batch_size=1"), expected)
    told = json.loads(answer("run", file, "--json"))
    assert told["points"] == [["cpu (auto)", 60]]
    assert "60 points evaluated on cpu (auto)" in answer("run", file)
    said = error("run", file, "--set", "scheduler.capacity=1")
    assert f"{file}: scheduler.capacity: " in said
