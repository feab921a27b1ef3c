"""The scatter of a viscoplastic law: a thousand parameter sets on a cluster of Dask.

    python examples/sweep_dask.py examples/artifacts/combined_hardening scatter
    python examples/sweep_dask.py ARTIFACT DIRECTORY tcp://SCHEDULER:8786

The first line makes a cluster of this machine, the second one takes the cluster that is there.
Interrupt it, and start it again: it goes on where it was. The results stay in the directory.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from dask.distributed import Client

import neml2_capi

SETS = 1000
# Half a cycle of shear in 40 s, in Mandel notation.
TIMES = np.linspace(0.0, 40.0, 21)
STRAIN = 0.01 * np.sin(np.pi * TIMES / 40.0)[:, np.newaxis] * np.array([0, 0, 0, 0, 0, 1.0])


def main() -> None:
    artifact, directory, *scheduler = sys.argv[1:]
    model = neml2_capi.Model(artifact)
    model.options["threads"] = 1  # the workers share the machine
    run = partial(neml2_capi.drive, model, TIMES, {"strain": STRAIN}, record="stress")

    random = np.random.default_rng(1)
    parameters = {
        "E": random.normal(200e3, 5e3, SETS),  # MPa
        "yield_stress": random.normal(150.0, 10.0, SETS),
    }
    with Client(*scheduler) as client:
        results = neml2_capi.sweep(run, parameters, client, directory=directory, batch=20)

    print(results)
    shear = results["stress"][..., 5] / np.sqrt(2.0)  # (sets, times), in MPa
    for step in (5, 10, 20):
        low, middle, high = np.nanpercentile(shear[:, step], (5, 50, 95))
        print(f"{TIMES[step]:4.0f} s: {low:8.2f} {middle:8.2f} {high:8.2f} MPa (5, 50 and 95 %)")


if __name__ == "__main__":
    main()
