"""Run a driver over many parameter sets.

A function, `sweep`, takes a run, parameter sets and an executor, and returns `SweepResults`:

    from functools import partial

    run = partial(neml2_capi.drive, model, times, {"strain": strain}, record="stress")
    results = neml2_capi.sweep(run, {"E": np.linspace(150e3, 250e3, 20)}, directory="night")
    results["stress"]  # (20, 101, *B, 6)

With an executor it runs elsewhere: `ProcessPoolExecutor(8)`, `MPIPoolExecutor()` of mpi4py.futures,
a client of Dask, `RayExecutor()`. What was interrupted goes on when the same call is made again.
"""

from neml2_capi.sweeps.ray import RayExecutor
from neml2_capi.sweeps.results import SweepResults
from neml2_capi.sweeps.run_all import SweepError, sweep
from neml2_capi.sweeps.work import Failure

__all__ = ["Failure", "RayExecutor", "SweepError", "SweepResults", "sweep"]
