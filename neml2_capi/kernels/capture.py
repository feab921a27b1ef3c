"""neml2-compile, with the scalar operations of each graph written to a folder.

    NEML2_CAPI_KERNELS_INTO=DIR [NEML2_CAPI_KERNELS_ONLY=1] python capture.py OPTIONS

takes the options of neml2-compile, and short names of parameters. DIR gets NAME.pt2.json for each
package: its path, and its program or the reason why it has none; without DIR nothing is captured.
With NEML2_CAPI_KERNELS_ONLY, packages are not compiled.

The interpreter is the one that has NEML2 and torch, and may lack what neml2_capi needs. So this
file is run by its path, and replaces neml2_capi by a bare package. The processes that
neml2-compile starts run it once more, as __mp_main__.
"""

from __future__ import annotations

import difflib
import functools
import json
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

INTO = "NEML2_CAPI_KERNELS_INTO"
ONLY = "NEML2_CAPI_KERNELS_ONLY"
#: Set by sites.py if unknowns have sub-batch axes.
SITED = "NEML2_CAPI_KERNELS_SITED"


def _bare_package() -> None:
    """Make neml2_capi.kernels importable without what neml2_capi itself needs."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != here]
    if "neml2_capi" not in sys.modules:
        package = types.ModuleType("neml2_capi")
        package.__path__ = [str(here.parent)]
        sys.modules["neml2_capi"] = package


def _take_short_names() -> None:
    """Let `-p E` name the one parameter whose name ends so: `surface.elasticity.E`."""
    import neml2.cli.aoti_export as aoti_export

    validated = getattr(aoti_export, "_validate_promoted", None)
    if validated is None:  # of another NEML2, which takes whole names
        return

    def with_short_names(model: Any, promoted: Any) -> Any:
        known = [name for name, _ in (*model.named_parameters(), *model.named_buffers())]
        return validated(model, {_full_name(name, known) for name in promoted})

    aoti_export._validate_promoted = with_short_names


def _name_pairs() -> None:
    from neml2_capi.kernels.pairs import name_pairs

    name_pairs()


def _full_name(name: str, known: Sequence[str]) -> str:
    if name in known:
        return name
    found = [full for full in known if full.endswith(f".{name}")]
    if len(found) > 1:
        raise ValueError(f"-p {name} may be each of {', '.join(sorted(found))}; name one")
    if not found:
        near = difflib.get_close_matches(name, [n.rpartition(".")[2] for n in known], 1)
        hint = f"; did you mean {near[0]}" if near else ""
        raise ValueError(
            f"-p {name} is no parameter of the model{hint}. There are: {', '.join(sorted(known))}"
        )
    return found[0]


def _install(into: Path, only: bool) -> None:
    """Put ourselves between neml2-compile and AOTInductor."""
    import neml2.models.export
    import torch._inductor

    from neml2_capi.kernels.lowered import lowered
    from neml2_capi.kernels.program import NoKernel, NoValueError
    from neml2_capi.kernels.trace import read

    compile_and_package = torch._inductor.aoti_compile_and_package

    def captured(program: Any, *arguments: Any, **options: Any) -> Any:
        path = Path(options["package_path"])
        try:
            if reason := _left_out(path.name):
                raise NoKernel(reason)
            _write(into, path, program=json.loads(read(program).to_json()))
        except NoKernel as found:
            if only and isinstance(found, NoValueError):
                raise
            _write(into, path, reason=found.without_folders(), told=str(found))
        return path if only else compile_and_package(lowered(program), *arguments, **options)

    torch._inductor.aoti_compile_and_package = captured
    if only:
        neml2.models.export._patch_pt2_noexecstack = lambda path: None
        _trace_no_more_than_needed(into)


def _left_out(name: str) -> str:
    """Why a package needs no kernel; empty if it does."""
    if name.endswith("_pvjp.pt2"):
        return "the engine pulls cotangents back to parameters itself"
    return ""


def _write(into: Path, package: Path, **found: Any) -> None:
    import neml2
    import torch

    document = {"package": str(package), "torch": torch.__version__}
    document["neml2"] = str(neml2.__version__).removeprefix("v")
    (into / f"{package.name}.json").write_text(json.dumps({**document, **found}), encoding="utf-8")


def _trace_no_more_than_needed(into: Path) -> None:
    """Leave out graphs without a kernel, and Jacobians of unknowns with sites.

    Kernels derive these from the residual, and sooner.
    """
    import neml2.models.export as tracing

    compile_model = tracing.compile_model

    @functools.wraps(compile_model)
    def compiled(model: Any, inputs: Any, path: Any, **options: Any) -> Any:
        name, reason = Path(path).name, _left_out(Path(path).name)
        if os.environ.get(SITED) and name.endswith("_jacobian.pt2"):
            reason = "it is derived from the residual, which has none"
        if not reason:
            return compile_model(model, inputs, path, **options)
        _write(into, Path(path), reason=reason)
        return Path(path)

    tracing.compile_model = compiled


def main(arguments: list[str]) -> int:
    from neml2.cli import aoti_compile

    status: int = aoti_compile.main(arguments)
    return status


if __name__ in ("__main__", "__mp_main__"):
    _bare_package()
    _take_short_names()
    _name_pairs()
    if os.environ.get(INTO):
        _install(Path(os.environ[INTO]), bool(os.environ.get(ONLY)))
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
