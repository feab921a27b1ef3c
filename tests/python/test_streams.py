"""Pipes and devices in place of files, which might wait for ever, or never end."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from neml2_capi import FatalError, Model, Results, drive, examples
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.library import ffi, lib

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")

TIMES = np.linspace(0, 2, 3)


@pytest.mark.parametrize("name", ["pipe", "/dev/full", "/dev/zero", "/dev/null"])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    """A pipe without a writer never ended, and a device filled the memory."""
    path, steel = tmp_path / name, Model(examples.path("chaboche"))
    if name == "pipe":
        os.mkfifo(path)
    no_file = f"{path}.*it is a device, a pipe or a socket; expected a file"
    with pytest.raises(FatalError, match=no_file):
        steel.load_state(path)
    with pytest.raises(FatalError, match=no_file):
        steel.save_state(path, steel.state(2))
    with pytest.raises(FatalError, match=no_file):
        drive(steel, TIMES, {"strain": np.zeros((3, 6))}, checkpoint=path)
    with pytest.raises(FatalError, match=no_file):
        Results.load(path)


def test_the_library_puts_no_file_in_place_of_a_pipe(tmp_path: Path) -> None:
    """Nor of a device, as a process of root could."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    model = Model(examples.path("elasticity"))
    call = model._engine.new_call()
    status = lib.neml2_call_state_save(call[0], str(path).encode(), 1, 0, 0.0)
    with pytest.raises(FatalError, match=f"{path} cannot be written: .* a device or a pipe"):
        check(status)
    status = lib.neml2_call_state_load(ffi.NULL, ffi.NULL, call[0], str(path).encode(), 1)
    with pytest.raises(FatalError, match=f"{path}: it is not a file"):
        check(status)
    assert path.is_fifo() and list(tmp_path.iterdir()) == [path]
    lib.neml2_call_free(call)
