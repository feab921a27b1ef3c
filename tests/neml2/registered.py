"""Read the graphs of every registered model of NEML2 as kernels, and write docs/neml2-types.md.

    git clone https://github.com/applied-material-modeling/neml2
    python tests/neml2/registered.py neml2 [TYPE ...]

A model type is tried in the input files of NEML2's own tests that have it: the graphs of values and
derivatives are traced and read, and nothing is compiled. It runs on kernels if all graphs of one of
these files do, which lanes need. A TYPE renews its row of the page alone. It needs NEML2 3.1,
torch, and half an hour.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import re
import tempfile
from pathlib import Path
from typing import Any

import regression

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "neml2-types.md"
#: Seconds for one input file.
LONGEST = 600

_HEAD = """# NEML2's registered types on point kernels

NEML2 3.1 registers {count} types. {models} of them are models, each tried in the input files of
NEML2's own tests (commit 2f6d7d2a) that have it: a model runs on kernels if the graphs of its value
and of its derivatives do; "values alone" has the error of NEML2's exporter, which writes no graph
of its derivatives. {others} are solvers, drivers, systems and data, which have no graph of their
own; a row is of the last run of its type. The command that did it, and wrote this page, is
`python tests/neml2/registered.py CHECKOUT_OF_NEML2`.

"""


def registered() -> dict[str, str]:
    """The section of each registered type."""
    for part in ("models", "drivers", "solvers", "es", "data"):
        importlib.import_module(f"neml2.{part}")
    from neml2.factory import _registry

    return {name: getattr(kind, "SECTION", "Models") for name, kind in _registry.items()}


def types_of(text: str) -> set[str]:
    """The types that an input file has."""
    return set(re.findall(r"^\s*type\s*=\s*['\"]?(\w+)", text, re.MULTILINE))


#: The packages that lanes do without: they solve linear systems themselves.
_SPARE = re.compile("_solve|_param_vjp")
#: What the row of a model begins with of which the derivatives alone have no graphs.
_VALUES = "values alone: with derivatives "


#: Input files of ours, for types that NEML2's tests lack.
_OURS = {"VecBackwardEulerTimeIntegration": "variable = 'x'"}
#: Derivatives, the sites of all inputs of a test of one model, and whether constants are reduced.
_TRIES = ((":", "", False), (":", "", True), (":", "(2;8)", False), ("", "", False), ("", "", True))


def shapes_of(file: Path, all_inputs: str) -> dict[str, str] | str | None:
    """The sites of what the driver of a regression scenario gives, or of all inputs."""
    if "regression" not in file.parts:
        return all_inputs or None
    driver = regression.regression_of(file).driver
    sites = regression.describe(file, driver)["sites"]
    return {name: regression.example_shape(of_it) for name, of_it in sites.items()} or None


def _reduced(model: Any) -> None:
    """Give parameters that have a value for each of several points the first one."""
    for module in model.modules():
        for stored in (module._parameters, module._buffers):
            for name, value in stored.items():
                if value is not None and value.ndim and value.shape[0] > 1:
                    stored[name] = type(value)(value[0].detach().clone())


def read(file: Path, model: str, derivatives: str, shape: str, reduce: bool) -> str:
    """Trace the graphs of a model; the reason why they are no kernels, or nothing."""
    import neml2.cli.aoti_export as export
    import neml2.models.export as tracing
    import torch._inductor

    from neml2_capi.kernels import sites, trace
    from neml2_capi.kernels.program import NoKernel

    sites.install()
    reasons = []

    def compile_and_package(program: Any, *_: Any, **options: Any) -> Any:
        try:
            trace.read(program)
        except NoKernel as reason:
            if not _SPARE.search(Path(options["package_path"]).stem):
                reasons.append(reason.without_folders())
        return options["package_path"]

    torch._inductor.aoti_compile_and_package = compile_and_package
    tracing._patch_pt2_noexecstack = lambda path: None
    if reduce:
        freeze = export._freeze_remaining_parameters_to_buffers

        def reduced(module: Any) -> None:
            _reduced(module)
            freeze(module)

        export._freeze_remaining_parameters_to_buffers = reduced
    try:
        with tempfile.TemporaryDirectory() as folder:
            options = {"derivatives": [*derivatives], "example_batch_shape": shapes_of(file, shape)}
            export.export_model_for_aoti(file, model, folder, **options)
    except Exception as error:
        return f"not exported: {' '.join(str(error).split())[:160]}"
    return reasons[0] if reasons else ""


def _child(pipe: Any, *arguments: Any) -> None:
    pipe.send(read(*arguments))


def tried(file: Path, model: str) -> str:
    """The same in a process of its own, which inherits what is imported."""
    reason, first = "", ""
    for derivatives, shape, reduce in _TRIES:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=_child, args=(theirs, file, model, derivatives, shape, reduce)
        )
        process.start()
        theirs.close()
        try:
            reason = str(ours.recv()) if ours.poll(LONGEST) else "it takes more than ten minutes"
        except EOFError:
            reason = "its process ended"
        process.kill()
        process.join()
        first = first or reason
        if not reason:
            return "" if derivatives else f"{_VALUES}{first}"
    return first


def model_of(text: str) -> str:
    """The model that the first driver of an input file names."""
    found = re.search(r"^\s*model\s*=\s*['\"]?(\w+)", text[text.find("[Drivers]") :], re.MULTILINE)
    return found.group(1) if found else "model"


def rows(checkout: Path, wanted: list[str]) -> list[tuple[str, str, str, str]]:
    """For each type its section, the file that tells, and the reason why it has no kernel."""
    folders = [checkout / "tests" / "models", checkout / "tests" / "regression"]
    texts = {file: file.read_text() for folder in folders for file in sorted(folder.rglob("*.i"))}
    known: dict[Path, str] = {}
    found = []
    for name, section in sorted(registered().items()):
        if wanted and name not in wanted:
            continue
        having = [file for file, text in texts.items() if name in types_of(text)]
        files = sorted(having, key=lambda file: len(texts[file]))  # short ones take less time
        tries = [("no input file of NEML2's tests has it", "")]
        if name in _OURS and not files:
            with tempfile.NamedTemporaryFile("w", suffix=".i") as ours:
                ours.write(f"[Models]\n[model]\ntype = {name}\n{_OURS[name]}\n[]\n[]\n")
                ours.flush()
                tries = [(tried(Path(ours.name), "model"), "an input file of ours")]
        for file in files[:3] if section == "Models" else []:
            if file not in known:
                known[file] = tried(file, model_of(texts[file]))
            tries.append((known[file], file.relative_to(checkout / "tests").as_posix()))
            if not known[file]:
                break
        # The last of the best: all graphs, values alone, or none.
        reason, told = min(tries[::-1], key=lambda t: (bool(t[0]), not t[0].startswith(_VALUES)))
        found.append((name, section, told, reason if section == "Models" else ""))
        print(*found[-1], sep=" | ", flush=True)
    return found


def page(found: list[tuple[str, str, str, str]]) -> str:
    """The table of all types."""
    models = [row for row in found if row[1] == "Models"]
    good, values = (
        sum(bool(test(row[3])) for row in models)
        for test in (lambda why: not why, lambda why: why.startswith(_VALUES))
    )
    lines = [f"{good} of {len(models)} models run on kernels, {values} with values alone.", ""]
    lines += ["| type | section | tried in | why not |", "| --- | --- | --- | --- |"]
    lines += [f"| {n} | {s} | {told} | {why.replace('|', '/')} |" for n, s, told, why in found]
    others = len(found) - len(models)
    return (
        _HEAD.format(count=len(found), models=len(models), others=others) + "\n".join(lines) + "\n"
    )


def last_rows() -> dict[str, tuple[str, str, str, str]]:
    """The rows of the page by their types."""
    if not PAGE.is_file():
        return {}
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and not line.startswith(("| type ", "| --- ")):
            name, section, told, why = (cell.strip() for cell in line.split("|")[1:-1])
            rows[name] = (name, section, told, why)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path, help="of NEML2")
    parser.add_argument("types", nargs="*", help="all by default")
    arguments = parser.parse_args()
    checkout = arguments.checkout.resolve()
    regression.prepare(checkout)
    importlib.import_module("neml2.cli.aoti_export")
    importlib.import_module("neml2_capi.kernels.trace")
    found = rows(checkout, arguments.types)
    renewed = {**(last_rows() if arguments.types else {}), **{row[0]: row for row in found}}
    PAGE.write_text(page([renewed[name] for name in sorted(renewed)]), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
