"""Read the graphs of every registered model of NEML2 as kernels, and write docs/neml2-types.md.

    git clone https://github.com/applied-material-modeling/neml2
    python tests/neml2/registered.py neml2 [TYPE ...]

A model type is tried in the input files of NEML2's own tests that have it: the graphs of values and
derivatives are traced and read, and nothing is compiled. It runs on kernels if all graphs of one of
these files do. It needs NEML2 3.1, torch, and half an hour.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "neml2-types.md"
#: Seconds for one input file.
LONGEST = 600

_HEAD = """# NEML2's registered types on point kernels

NEML2 3.1 registers {count} types. {models} of them are models, each tried in the input files of
NEML2's own tests (commit 2f6d7d2a) that have it: a model runs on kernels if the graphs of its value
and of its derivatives do. {others} are solvers, drivers, systems and data, which have no graph of
their own. The command that did it, and wrote this page, is
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


def _reduced(model: Any) -> None:
    """Give parameters that have a value for each of several points the first one."""
    for module in model.modules():
        for stored in (module._parameters, module._buffers):
            for name, value in stored.items():
                if value is not None and value.ndim and value.shape[0] > 1:
                    stored[name] = type(value)(value[0].detach().clone())


def read(file: Path, model: str, reduce: bool) -> str:
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
            reasons.append(str(reason))
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
            export.export_model_for_aoti(file, model, folder, derivatives=[":"])
    except Exception as error:
        return f"not exported: {' '.join(str(error).split())[:160]}"
    return reasons[0] if reasons else ""


def _child(pipe: Any, *arguments: Any) -> None:
    pipe.send(read(*arguments))


def tried(file: Path, model: str) -> str:
    """The same in a process of its own, which inherits what is imported."""
    reason = ""
    for reduce in (False, True):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=_child, args=(theirs, file, model, reduce)
        )
        process.start()
        theirs.close()
        try:
            reason = str(ours.recv()) if ours.poll(LONGEST) else "it takes more than ten minutes"
        except EOFError:
            reason = "its process ended"
        process.kill()
        process.join()
        if not reason:
            break
    return reason


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
        files = [file for file, text in texts.items() if name in types_of(text)]
        reason, told = "no input file of NEML2's tests has it", ""
        for file in files[:3] if section == "Models" else []:
            if file not in known:
                known[file] = tried(file, model_of(texts[file]))
            reason, told = known[file], file.relative_to(checkout / "tests").as_posix()
            if not reason:
                break
        found.append((name, section, told, reason if section == "Models" else ""))
        print(*found[-1], sep=" | ", flush=True)
    return found


def page(found: list[tuple[str, str, str, str]]) -> str:
    """The table of all types."""
    models = [row for row in found if row[1] == "Models"]
    good = sum(not row[3] for row in models)
    lines = [f"{good} of {len(models)} models run on kernels.", ""]
    lines += ["| type | section | tried in | why not |", "| --- | --- | --- | --- |"]
    lines += [f"| {n} | {s} | {told} | {why.replace('|', '/')} |" for n, s, told, why in found]
    others = len(found) - len(models)
    return (
        _HEAD.format(count=len(found), models=len(models), others=others) + "\n".join(lines) + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path, help="of NEML2")
    parser.add_argument("types", nargs="*", help="all by default")
    arguments = parser.parse_args()
    checkout = arguments.checkout.resolve()
    sys.path.insert(0, str(checkout / "tests" / "regression"))
    importlib.import_module("neml2.cli.aoti_export")
    importlib.import_module("neml2_capi.kernels.trace")
    found = rows(checkout, arguments.types)
    if not arguments.types:
        PAGE.write_text(page(found), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
