"""Models on the ranks of MPI, with mpi4py.

Each rank has a model of its own, and points of its own. If a node has several devices, each of
its ranks keeps one of them; if points fail on one rank, all must cut the step:

    from neml2_capi import ConvergenceError, Model, Scheduler, mpi

    scheduler = mpi.keep_rank(Scheduler("cpu", batch_size=512))
    with mpi.together():
        model = Model("aoti/viscoplastic", scheduler=scheduler)
    try:
        with mpi.together():
            outputs = model.forward(inputs)
    except ConvergenceError:
        ...  # every rank is here: cut the step

`comm` is a communicator of mpi4py, MPI.COMM_WORLD if it is not given. All that takes one is
collective: every rank of it must call, or the others wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.errors import ConvergenceError, Error, FatalError
from neml2_capi._ffi.library import lib

if TYPE_CHECKING:
    from neml2_capi.model.scheduler import Scheduler

__all__ = ["keep_rank", "local_rank", "together"]


def local_rank(comm: Any = None) -> tuple[int, int]:
    """Tell which of the ranks on this node this one is; collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm, optional
        The ranks that count; MPI.COMM_WORLD by default.

    Returns
    -------
    rank : int
        The number of this rank among the ranks of `comm` on its node, from 0.
    size : int
        How many they are.

    Raises
    ------
    FatalError
        MPI is not initialized, or `comm` is no communicator that this process is in.
    """
    node = _usable(comm).Split_type(_mpi().COMM_TYPE_SHARED)
    try:
        return node.Get_rank(), node.Get_size()
    finally:
        node.Free()


def keep_rank(scheduler: Scheduler, comm: Any = None) -> Scheduler:
    """Keep of the devices of a scheduler the one that is this rank's; collective.

    It is the device of the number of the rank on its node, modulo their count.

    Parameters
    ----------
    scheduler
        The devices of the node, the same on each of its ranks; it is changed.
    comm : mpi4py.MPI.Intracomm, optional
        The ranks that share them; MPI.COMM_WORLD by default.

    Returns
    -------
    Scheduler
        The same scheduler, with one device.

    Raises
    ------
    FatalError
        A node has fewer ranks than devices, so that some would be idle. All ranks raise it, and no
        scheduler is changed.
    """
    comm = _usable(comm)
    rank, size = local_rank(comm)
    with together(comm):
        if not 0 < len(scheduler.devices) <= size:
            scheduler.keep_rank(rank, size)  # it says what is wrong, and changes nothing
    return scheduler.keep_rank(rank, size)


@contextmanager
def together(comm: Any = None) -> Iterator[None]:
    """Have what is raised within on one rank raised on all of them; collective.

    A rank raises what it has met itself, and otherwise the worst that another has met. What it has
    computed within is good. A fatal error of another comes before points of its own, which are its
    `__cause__`. An interrupt goes its own way: it is for ending the job.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm, optional
        The ranks that go together; MPI.COMM_WORLD by default.

    Raises
    ------
    FatalError
        Another rank has failed. It holds no results.
    ConvergenceError
        Points of another rank failed, and none here. It holds no results.
    """
    comm = _usable(comm)
    failure: Exception | None = None
    try:
        yield
    except Exception as error:
        failure = error
    status = 0
    if failure is not None:
        status = failure.status if isinstance(failure, Error) else lib.NEML2_ERROR_RUNTIME
    fatal, recoverable = _greatest((-status, status), comm)
    if fatal > 0 and status >= 0:
        message = "another rank of the communicator has failed: its error is raised there"
        raise FatalError(message, -fatal, "comm") from failure
    if failure is not None:
        raise failure
    if recoverable > 0:
        message = "points of another rank of the communicator failed: cut the step here, too"
        raise ConvergenceError(message, recoverable, "comm")


def _greatest(values: tuple[int, ...], comm: Any) -> list[int]:
    """Return the greatest that a rank has of each value."""
    received = np.empty(len(values), dtype=np.int32)
    comm.Allreduce(np.array(values, dtype=np.int32), received, op=_mpi().MAX)
    return [int(value) for value in received]


def _usable(comm: Any) -> Any:
    """The communicator, once MPI can be asked about it."""
    mpi = _mpi()
    if mpi.Is_finalized():
        raise FatalError("MPI was finalized before: do that last", subject="MPI")
    if not mpi.Is_initialized():
        raise FatalError("MPI is not initialized: call mpi4py.MPI.Init() first", subject="MPI")
    comm = mpi.COMM_WORLD if comm is None else comm
    if isinstance(comm, mpi.Comm) and comm == mpi.COMM_NULL:
        raise FatalError(
            "the communicator is COMM_NULL: this process is in none; call with one that it is in",
            subject="comm",
        )
    if not isinstance(comm, mpi.Intracomm):
        raise FatalError(
            f"a communicator of mpi4py is needed, an Intracomm; got {type(comm).__name__}",
            subject="comm",
        )
    return comm


def _mpi() -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"neml2_capi.mpi needs mpi4py and an MPI that it can load ({error}): "
            "pip install mpi4py, and install Open MPI or MPICH"
        ) from error
    return MPI
