"""What neml2_capi.mpi says over several communicators; mpi_communicators.c tells the output."""

from __future__ import annotations

import pytest
from mpi4py import MPI

from neml2_capi import ConvergenceError, Device, FatalError, Scheduler, mpi

WORLD, SELF = MPI.COMM_WORLD, MPI.COMM_SELF
LAST = WORLD.rank == WORLD.size - 1


def scheduler_of(devices: int) -> Scheduler:
    return Scheduler([Device(f"cuda:{i}", batch_size=100) for i in range(devices)])


def keep() -> None:
    """A device for each rank, but no more: one with too many devices fails all."""
    scheduler = scheduler_of(WORLD.size + 1 if WORLD.rank == 0 else 1)
    before = scheduler.devices
    with pytest.raises(FatalError) as failure:
        mpi.keep_rank(scheduler)
    assert scheduler.devices == before
    assert (WORLD.rank == 0) != ("another rank" in str(failure.value))
    with pytest.raises(FatalError):
        mpi.keep_rank(Scheduler(()) if LAST else scheduler)
    assert scheduler.devices == before
    with pytest.raises(FatalError):
        mpi.keep_rank(scheduler_of(2), SELF)


def agree() -> None:
    """All raise, each its own error if it has one that is as bad."""
    with mpi.together():
        pass
    with pytest.raises(ConvergenceError) as points, mpi.together():
        if LAST:
            raise ConvergenceError("own")
    assert (str(points.value) == "own") == LAST
    assert (points.value.converged_mask is None) and points.value.recoverable
    if WORLD.size == 1:
        return
    with pytest.raises((FatalError, OSError)) as fatal, mpi.together():
        if WORLD.rank == 0:
            raise OSError("own")
        if LAST:
            raise ConvergenceError("points")
    assert (str(fatal.value) == "own") == (WORLD.rank == 0)
    if LAST:
        assert str(fatal.value.__cause__) == "points"
    with mpi.together(SELF):
        pass


def refuse() -> None:
    with pytest.raises(FatalError, match="COMM_NULL"):
        mpi.local_rank(MPI.COMM_NULL)
    with pytest.raises(FatalError, match="communicator of mpi4py is needed, an Intracomm; got int"):
        mpi.local_rank(3)


def main() -> None:
    parity, reversed_ = WORLD.Split(WORLD.rank % 2, WORLD.rank), WORLD.Split(0, -WORLD.rank)
    values = [value for comm in (None, parity, reversed_, SELF) for value in mpi.local_rank(comm)]
    (kept,) = mpi.keep_rank(scheduler_of(min(WORLD.size, 3)), reversed_).devices
    keep()
    agree()
    refuse()
    for line in WORLD.gather([*values, int(kept.device.removeprefix("cuda:"))]) or ():
        print(*line)


main()
