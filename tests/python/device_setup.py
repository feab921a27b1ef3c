"""OpenCL and NVRTC for the tests: those of the system, and those of `build.py test --full`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path


def _replace(path: Path, make: Callable[[Path], None]) -> None:
    """Make a file or folder anew beside its place: other processes of the tests may do so, too."""
    made = path.with_name(f"{path.name}.{os.getpid()}")
    make(made)
    with suppress(OSError):
        made.replace(path)


def _link(path: Path, to: str) -> None:
    path.symlink_to(to)


def _write_vendors(folder: Path, intel: Path) -> None:
    folder.mkdir()
    for system in Path("/etc/OpenCL/vendors").glob("*.icd"):
        shutil.copy(system, folder)
    (folder / "intel.icd").write_text(f"{intel}\n")


def find_devices() -> None:
    """Lead this process, and those that it starts, to what NEML2_CAPI_TEST_DEVICES names."""
    named = os.environ.get("NEML2_CAPI_TEST_DEVICES")
    if not named:
        return
    folder = Path(named)
    for whole in folder.glob("lib/lib*.so"):  # a wheel has no links
        for again in whole.parent.glob(f"{whole.name}.*.*"):
            if not again.is_symlink():
                _replace(again, partial(_link, to=whole.name))
    vendors = folder / "vendors"
    if not vendors.is_dir():
        _replace(vendors, lambda made: _write_vendors(made, folder / "lib" / "libintelocl.so"))
    os.environ.setdefault("OCL_ICD_VENDORS", str(vendors))
    for compiler in folder.glob("lib/python*/site-packages/nvidia/cu*/lib/libnvrtc.so.*"):
        os.environ.setdefault("NEML2_CAPI_NVRTC", str(compiler))
