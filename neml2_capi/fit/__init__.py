"""Fit the constants of a law to measurements, with what one may trust of them.

    from neml2_capi import Model, examples, fit

    law = Model(examples.path("elasticity"))
    pulled = fit.Experiment.of("tension", strain=[0, 1e-3, 2e-3], stress=[0, 181.0, 359.0])
    found = fit.Problem(law, [pulled], {"E": 200e3}).solve()
    print(found)  # E = 179800 +- ...

Gradients are exact: they run through lateral strains and steps that were cut. It needs scipy, and
matplotlib for figures: `pip install 'neml2_capi[fit]'`.
"""

from neml2_capi.fit.experiment import Experiment
from neml2_capi.fit.parameters import Parameter
from neml2_capi.fit.problem import Problem
from neml2_capi.fit.repeats import averaged
from neml2_capi.fit.results import Direction, Fit
from neml2_capi.fit.uncertainty import LogDensity, Profile, profile

__all__ = [
    "Direction",
    "Experiment",
    "Fit",
    "LogDensity",
    "Parameter",
    "Problem",
    "Profile",
    "averaged",
    "profile",
]
