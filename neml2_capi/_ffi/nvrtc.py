"""CUDA's compiler, as the package nvidia-cuda-nvrtc has it."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path

#: Where the package has its folder lib: from CUDA 13 on, and before.
_PLACES = ("nvidia.cu13", "nvidia.cuda_nvrtc")


def load() -> bool:
    """Load it into the process, where the library finds it by its name; whether it is there."""
    for place in _PLACES:
        try:
            spec = importlib.util.find_spec(place)
        except ModuleNotFoundError:  # there is no package nvidia
            return False
        for folder in (spec and spec.submodule_search_locations) or ():
            # The compiler opens its builtins by their name.
            files = [
                file
                for pattern in ("libnvrtc-builtins.so.*", "libnvrtc.so.*")
                for file in sorted(Path(folder, "lib").glob(pattern))
            ]
            for file in files:
                ctypes.CDLL(str(file))
            if files:
                return True
    return False
