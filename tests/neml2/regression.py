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
import os
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
#: Seconds that one part of a scenario may take.
LONGEST = 3600

_HEAD = """# NEML2's regression scenarios on point kernels

Each of the {count} scenarios in `tests/regression` of NEML2 3.1 (commit 2f6d7d2a) is compiled by
`neml2-capi compile --kernels only`, driven by `neml2_capi.drive` with `convergence = batch` on its
own forces, and compared at all steps with the same model in NEML2's own Python: the greatest
difference of a variable, relative to its greatest value, is at most 1e-8. Recorded results are
compared with the tolerances of the scenario. The command that did it, and wrote this page, is
`python tests/neml2/regression.py CHECKOUT_OF_NEML2`; a row is of the last run of its scenario.

"""


# ---- one scenario, in a process of its own ----


def _scenario(checkout: Path, file: Path) -> Any:
    """NEML2's driver of a scenario, and its regression."""
    import eager
    import torch
    from neml2 import load_input

    torch.set_num_threads(1)
    sys.path.insert(0, str(checkout / "tests" / "regression"))
    importlib.import_module("_fixtures")  # it registers models

    eager.install()
    os.chdir(file.parent)
    inputs = load_input(file)
    regression = inputs.get_driver(_driver_of(file))
    return regression, regression.driver


def _driver_of(file: Path) -> str:
    import nmhit

    for top in nmhit.parse_file(file, [], []).children(nmhit.NodeType.Section):
        for child in top.children(nmhit.NodeType.Section) if top.path() == "Drivers" else []:
            if child.param_optional_str("type", "") == "TransientRegression":
                return str(child.path().rpartition("/")[2])
    raise ValueError(f"{file} has no regression")


def describe(checkout: Path, file: Path) -> dict[str, Any]:
    """What a compilation needs to know: the model, and the sites of what is given."""
    _, driver = _scenario(checkout, file)
    import nmhit

    model = ""
    for top in nmhit.parse_file(file, [], []).children(nmhit.NodeType.Section):
        for child in top.children(nmhit.NodeType.Section) if top.path() == "Drivers" else []:
            model = model or child.param_optional_str("model", "")
    spec = driver.model.input_spec
    sites = {}
    for name, value in {**driver.ics, **driver.prescribed}.items():
        known = name if name in spec else f"{name}~1"
        if value.sub_batch_ndim and known in spec:
            sites[known] = list(value.sub_batch_shape)
    declared = bool(driver.declared_sub_batch_shapes)
    return {"model": model, "sites": {} if declared else sites}


def reference(checkout: Path, file: Path, into: Path) -> None:
    """The results of NEML2's Python, and the recorded ones, as arrays over the steps."""
    import numpy as np
    import torch
    from neml2.drivers.TransientRegression import _load_gold

    regression, driver = _scenario(checkout, file)
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


def driven(checkout: Path, file: Path, artifact: Path, reference: Path) -> dict[str, Any]:
    """Drive the artifact, and compare."""
    import numpy as np

    import neml2_capi

    _, driver = _scenario(checkout, file)
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


def _part(checkout: Path, file: Path, *words: str) -> str:
    """Run one part of a scenario in a process of its own; its last line, or an error."""
    command = [sys.executable, __file__, str(checkout), "--part", str(file), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise RuntimeError(lines[-1] if lines else f"it ended with {done.returncode}")
    return done.stdout.splitlines()[-1]


def compiled(checkout: Path, file: Path) -> Path:
    """The artifact of a scenario; RuntimeError with the reason if there is none."""
    about = json.loads(_part(checkout, file, "describe"))
    key = _key(file, *_sources(), _versions(), json.dumps(about))
    folder = CACHE / key / str(about["model"])
    if (folder / "metadata.json").is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "neml2_capi.cli", "compile", str(file), "--kernels", "only"]
    command += ["--model", about["model"], "--load", str(checkout / "tests/regression/_fixtures")]
    for name, sites in about["sites"].items():
        shape = f"(2;{','.join(map(str, sites))})"
        command += ["--example-batch-shape", f"{name}={shape}"]
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        done = subprocess.run(
            [*command, "--output-dir", scratch, "-q"],
            capture_output=True,
            text=True,
            timeout=LONGEST,
            cwd=file.parent,
        )
        if done.returncode:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            raise RuntimeError(f"not compiled: {lines[-1] if lines else done.returncode}")
        (Path(scratch) / about["model"]).replace(folder)
    return folder


def run(checkout: Path, file: Path) -> dict[str, Any]:
    """The row of a scenario: its results, or the reason why there are none."""
    name = file.relative_to(checkout / "tests" / "regression").as_posix()
    try:
        gold = file.parent / "gold" / "result.pt"
        known = CACHE / f"{_key(file, gold if gold.is_file() else '', _versions())}.npz"
        known.parent.mkdir(parents=True, exist_ok=True)
        artifact = compiled(checkout, file)
        if not known.is_file():
            _part(checkout, file, "reference", str(known))
        row: dict[str, Any] = json.loads(_part(checkout, file, "driven", str(artifact), str(known)))
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        row = {"reason": " ".join(str(error).split())[:300]}
    row["name"] = name
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


def _do_part(checkout: Path, file: Path, part: str, *words: str) -> Any:
    if part == "describe":
        return describe(checkout, file)
    if part == "reference":
        return reference(checkout, file, Path(words[0]))
    return driven(checkout, file, Path(words[0]), Path(words[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path, help="of NEML2")
    parser.add_argument("names", nargs="*", help="parts of the paths of scenarios; all by default")
    parser.add_argument("--jobs", type=int, default=1, help="scenarios at a time")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    checkout = arguments.checkout.resolve()
    if arguments.part:
        file, part, *words = arguments.part
        try:
            print(json.dumps(_do_part(checkout, Path(file), part, *words)))
        except Exception as error:
            traceback.print_exc()
            sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())}")
        return
    files = sorted((checkout / "tests" / "regression").rglob("*.i"))
    wanted = [f for f in files if any(n in f.as_posix() for n in arguments.names or [""])]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        rows = list(pool.map(lambda file: run(checkout, file), wanted))
    PAGE.write_text(page([last_row(checkout, file) for file in files]), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    sys.exit(0 if all(map(passes, rows)) else 1)


if __name__ == "__main__":
    main()
