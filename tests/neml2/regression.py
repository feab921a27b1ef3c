"""Run NEML2's regression scenarios on point kernels, and write docs/neml2-scenarios.md.

    git clone https://github.com/applied-material-modeling/neml2
    python tests/neml2/regression.py neml2 [NAME ...] [--jobs N]

Each scenario is compiled by `neml2-capi compile --kernels only`, driven by `neml2_capi.drive` on
its own times, forces and initial values with `convergence = batch`, and compared with the same
model run by NEML2's Python in torch, at all steps, and with its recorded results. A NAME is a part
of a path. It needs NEML2 3.1, torch, a C compiler, and two hours of one processor; what was
compiled and driven before is kept in ~/.cache/neml2_capi/neml2-scenarios by content.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "neml2-scenarios.md"
CACHE = Path.home() / ".cache" / "neml2_capi" / "neml2-scenarios"
TOLERANCE = 1e-8
#: Seconds that a scenario may take.
LONGEST = 3600
#: The processor that kernels are compiled for.
TARGET = "x86-64-v3" if platform.machine() == "x86_64" else platform.machine()

_HEAD = """# NEML2's regression scenarios on point kernels

Each of the {count} scenarios in `tests/regression` of NEML2 3.1 (commit 2f6d7d2a) is compiled by
`neml2-capi compile --kernels only`, driven by `neml2_capi.drive` with `convergence = batch` on its
own forces, and compared at all steps with the same model in NEML2's own Python: the greatest
difference of a variable, relative to its greatest value, is at most 1e-8. Recorded results are
compared with the tolerances of the scenario. The command that did it, and wrote this page, is
`python tests/neml2/regression.py CHECKOUT_OF_NEML2`; a row is of the last run of its scenario.

"""


# ---- one scenario, in a process of its own ----


def prepare(checkout: Path) -> None:
    """Import once what every scenario needs."""
    import eager
    import torch

    importlib.import_module("neml2.drivers.TransientRegression")
    importlib.import_module("neml2_capi")
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    sys.path.insert(0, str(checkout / "tests" / "regression"))
    importlib.import_module("_fixtures")  # it registers models
    eager.install()


def _drivers(file: Path) -> list[Any]:
    import nmhit

    return [
        child
        for top in nmhit.parse_file(file, [], []).children(nmhit.NodeType.Section)
        for child in (top.children(nmhit.NodeType.Section) if top.path() == "Drivers" else [])
    ]


def regression_of(file: Path) -> Any:
    """NEML2's regression of a scenario; its `driver` is the driver."""
    from neml2 import load_input

    os.chdir(file.parent)
    for section in _drivers(file):
        if section.param_optional_str("type", "") == "TransientRegression":
            return load_input(file).get_driver(section.path().rpartition("/")[2])
    raise ValueError(f"{file} has no regression")


def describe(file: Path, driver: Any) -> dict[str, Any]:
    """What a compilation needs to know: the model, and the sites of what is given."""
    names = [section.param_optional_str("model", "") for section in _drivers(file)]
    model = next(name for name in names if name)
    spec = driver.model.input_spec
    sites = {}
    for name, value in {**driver.ics, **driver.prescribed}.items():
        known = name if name in spec else f"{name}~1"
        if value.sub_batch_ndim and known in spec:
            sites[known] = list(value.sub_batch_shape)
    declared = bool(driver.declared_sub_batch_shapes)
    return {"model": model, "sites": {} if declared else sites}


def reference(regression: Any, into: Path) -> None:
    """Write the results of NEML2's Python, and the recorded ones, as arrays over the steps."""
    import numpy as np
    import torch
    from neml2.drivers.TransientRegression import _load_gold

    driver = regression.driver
    with torch.no_grad():
        driver.run()
    found: dict[str, Any] = {}
    for name in driver.model.output_spec:
        rows = [
            driver.result_out[step][name].data.detach().numpy() for step in range(1, driver.nsteps)
        ]
        found[f"eager:{name}"] = np.stack(np.broadcast_arrays(*rows))
    try:
        gold = _load_gold(Path(regression.reference))
        for name in driver.model.output_spec:
            rows = [
                gold[f"output.{step}.{name}"].detach().numpy() for step in range(1, driver.nsteps)
            ]
            found[f"gold:{name}"] = np.stack(np.broadcast_arrays(*rows))
    except Exception as error:
        found["no gold"] = str(error)[:200]
    found["tolerance"] = np.array([regression.rtol, regression.atol])
    np.savez(into, **found)


def driven(driver: Any, artifact: Path, reference: Path) -> dict[str, Any]:
    """Drive the artifact, and compare."""
    import numpy as np

    import neml2_capi

    model = neml2_capi.Model(artifact)
    model.options["convergence"] = "batch"
    forces = {n: v.data.numpy() for n, v in driver.prescribed.items() if n in model.inputs.index_of}
    initial = {name: value.data.numpy() for name, value in driver.ics.items()}
    kept = {h.output for h in model.histories} | set(model.inputs.names)
    results = neml2_capi.drive(
        model,
        driver.prescribed_time.data.numpy(),
        forces,
        {name: value for name, value in initial.items() if name in kept},
        least_step=1.0,
        progress=False,
        time=driver.time_name,
    )
    worst, worst_gold = (0.0, ""), None
    with np.load(reference) as known:
        rtol, atol = known["tolerance"]
        for name in model.outputs.names:
            ours = results[name][1:]
            if f"eager:{name}" in known:
                worst = max(worst, (_difference(ours, known[f"eager:{name}"]), name))
            if f"gold:{name}" in known:
                gold = _aligned(known[f"gold:{name}"], ours)
                excess = float(np.max(np.abs(ours - gold) - atol - rtol * np.abs(gold)))
                worst_gold = max(worst_gold or (-np.inf, ""), (excess, name))
    return {"difference": worst[0], "of": worst[1], "gold": worst_gold, "steps": len(ours)}


def _aligned(theirs: Any, ours: Any) -> Any:
    """Their values for the batch of ours, which may have axes of size 1 more."""
    import numpy as np

    while theirs.ndim < ours.ndim:
        theirs = theirs[:, None]
    while theirs.ndim > ours.ndim:
        (axis, *_) = [i for i in range(1, theirs.ndim) if theirs.shape[i] == 1]
        theirs = theirs.squeeze(axis)
    return np.broadcast_to(theirs, np.broadcast_shapes(theirs.shape, ours.shape))


def _difference(ours: Any, theirs: Any) -> float:
    import numpy as np

    theirs = _aligned(theirs, ours)
    if not np.isfinite(theirs).all():
        return float("nan")
    size = float(np.abs(theirs).max())
    return float(np.abs(ours - theirs).max()) / (size or 1.0)


# ---- all of them ----


def _key(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, Path) else str(part).encode())
    return digest.hexdigest()[:20]


def _versions() -> str:
    from importlib.metadata import version

    return " ".join(version(name) for name in ("neml2", "torch"))


def _sources() -> list[Path]:
    """What decides what is compiled."""
    folders = [ROOT / "neml2_capi" / "kernels", ROOT / "neml2_capi" / "cli"]
    return sorted(p for f in folders for p in f.rglob("*") if p.suffix in (".py", ".h"))


def compiled(checkout: Path, file: Path, about: dict[str, Any]) -> Path:
    """The artifact of a scenario; RuntimeError with the reason if there is none."""
    key = _key(file, *_sources(), _versions(), json.dumps(about))
    folder = CACHE / key / str(about["model"])
    if (folder / "metadata.json").is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    words = [str(file), "--model", about["model"], "-q"]
    words += ["--load", str(checkout / "tests/regression/_fixtures")]
    for name, sites in about["sites"].items():
        words += ["--example-batch-shape", f"{name}={example_shape(sites)}"]
    ours = ["-m", "neml2_capi.cli", "compile", "--kernels", "only", "--target", TARGET]
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        if told := _failed([*ours, *words, "--output-dir", scratch]):
            theirs = ["-m", "neml2.cli.aoti_compile", *words, "--output-dir", scratch]
            also = "neml2-compile refuses it, too: " if _failed(theirs) else ""
            raise RuntimeError(f"{also}{told}")
        (Path(scratch) / about["model"]).replace(folder)
    return folder


def example_shape(sites: list[int]) -> str:
    """What neml2-compile takes for a variable of two points with these sites."""
    return f"(2;{','.join(map(str, sites))})"


def _failed(words: list[str]) -> str:
    """What a command of Python says when it fails; nothing if it succeeds."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=LONGEST)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("Error")]
    return (errors or lines)[-1] if done.returncode else ""


def _row(checkout: Path, file: Path) -> dict[str, Any]:
    regression = regression_of(file)
    artifact = compiled(checkout, file, describe(file, regression.driver))
    gold = file.parent / "gold" / "result.pt"
    known = CACHE / f"{_key(file, gold if gold.is_file() else '', _versions())}.npz"
    if not known.is_file():
        reference(regression, known)
    return driven(regression.driver, artifact, known)


def _child(pipe: Any, checkout: Path, file: Path) -> None:
    try:
        pipe.send(_row(checkout, file))
    except Exception as error:
        traceback.print_exc()
        pipe.send({"reason": " ".join(f"{type(error).__name__}: {error}".split())[:300]})


def run(checkout: Path, file: Path) -> dict[str, Any]:
    """The row of a scenario: its results, or the reason why there are none."""
    ours, theirs = multiprocessing.Pipe()
    # A process of its own inherits what is imported.
    process = multiprocessing.get_context("fork").Process(
        target=_child, args=(theirs, checkout, file)
    )
    process.start()
    theirs.close()
    row: dict[str, Any] = {"reason": f"it takes more than {LONGEST} s"}
    try:
        if ours.poll(LONGEST):
            row = ours.recv()
    except EOFError:
        row = {"reason": "its process ended"}
    process.kill()
    process.join()
    row["name"] = file.relative_to(checkout / "tests" / "regression").as_posix()
    print(json.dumps(row), flush=True)
    _row_file(file).parent.mkdir(parents=True, exist_ok=True)
    _row_file(file).write_text(json.dumps(row))
    return row


def _row_file(file: Path) -> Path:
    return CACHE / "rows" / f"{_key(file, _versions())}.json"


def last_row(checkout: Path, file: Path) -> dict[str, Any]:
    """The row of the last run of a scenario."""
    if _row_file(file).is_file():
        row: dict[str, Any] = json.loads(_row_file(file).read_text())
        return row
    name = file.relative_to(checkout / "tests" / "regression").as_posix()
    return {"name": name, "reason": "not run yet"}


def passes(row: dict[str, Any]) -> bool:
    """Whether a scenario agrees with NEML2's Python."""
    return "reason" not in row and row["difference"] <= TOLERANCE


def page(rows: list[dict[str, Any]]) -> str:
    """The table of all scenarios."""
    good = sum(map(passes, rows))
    golds = [row["gold"][0] <= 0 for row in rows if row.get("gold")]
    lines = [f"{good} of {len(rows)} agree; {sum(golds)} of {len(golds)} recorded results do.", ""]
    lines += ["| scenario | steps | greatest difference | of | recorded results | reason |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for row in sorted(rows, key=lambda row: str(row["name"])):
        if "reason" in row:
            reason = row["reason"].replace("|", "\\|")
            lines.append(f"| {row['name']} | | | | | {reason} |")
            continue
        gold = row["gold"]
        told = "none" if not gold else "agree" if gold[0] <= 0 else f"differ in `{gold[1]}`"
        reason = "" if passes(row) else "**differs**"
        difference = f"{row['difference']:.1e}"
        lines.append(
            f"| {row['name']} | {row['steps']} | {difference} | `{row['of']}` | {told} | {reason} |"
        )
    return _HEAD.format(count=len(rows)) + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path, help="of NEML2")
    parser.add_argument("names", nargs="*", help="parts of the paths of scenarios; all by default")
    parser.add_argument("--jobs", type=int, default=1, help="scenarios at a time")
    arguments = parser.parse_args()
    checkout = arguments.checkout.resolve()
    prepare(checkout)
    files = sorted((checkout / "tests" / "regression").rglob("*.i"))
    wanted = [f for f in files if any(n in f.as_posix() for n in arguments.names or [""])]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        rows = list(pool.map(lambda file: run(checkout, file), wanted))
    PAGE.write_text(page([last_row(checkout, file) for file in files]), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    sys.exit(0 if all(map(passes, rows)) else 1)


if __name__ == "__main__":
    main()
