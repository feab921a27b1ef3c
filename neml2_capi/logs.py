"""What the library has to tell of its work, through the module `logging`.

    import logging

    logging.basicConfig()
    logging.getLogger("neml2_capi.newton").setLevel(logging.DEBUG)  # Newton's history

The loggers are `neml2_capi.newton` (a warning if points fail; at INFO a line for each solve, at
DEBUG one for each iteration), `.linear` (Krylov solvers), `.substep`, `.model` (what was loaded),
`.tensor` (copies of what cannot be read in place), `.bounds` (values for which a law is not valid),
`.driver` (steps and cuts of `drive`) and `.sweep` (what failed in a `sweep`, and workers that were
lost). They are like any others: nothing is printed unless a handler is there, but warnings of
`.bounds`, and a level may be set on them, on `neml2_capi` or on the root. The environment variable
NEML2_LOGS, as in `NEML2_LOGS=all=info,newton=debug`, sets their levels when this package is
imported.

The library queues records, of the levels that the loggers have: whenever a level changes in
`logging`, the library follows. So a call costs nothing more if no logger listens. Records are
handed to the loggers when a call ends, before it raises, on the thread that called.
"""

from neml2_capi._ffi.logs import CHANNELS

__all__ = ["CHANNELS"]
