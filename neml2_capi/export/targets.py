"""The options by which Inductor compiles for a processor."""

from __future__ import annotations

from typing import Any

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi.artifact.targets import TARGETS

#: Bits of a vector register, by what ATen calls the capability; 1 is without vectors.
_VECTORS = {"default": 1, "avx2": 256, "avx512": 512}


def inductor_options(target: str) -> dict[str, Any]:
    """Options by which Inductor compiles for `target`, as `neml2-capi compile --target` does."""
    environment = TARGETS[target]
    if not environment:
        return {}
    return {
        "cpp.march": environment["TORCHINDUCTOR_CPP_MARCH"],
        "cpp.simdlen": _VECTORS[environment["ATEN_CPU_CAPABILITY"]],
    }


def require_target(target: str) -> None:
    """FatalError unless there is a target of that name."""
    if target not in list(TARGETS):
        raise FatalError(
            f"there is no target {target!r}; choose one of {', '.join(TARGETS)}",
            lib.NEML2_ERROR_ARGUMENT,
            "target",
        )
