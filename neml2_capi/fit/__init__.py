"""Fit the constants of a law to measurements, with what one may trust of them.

    from neml2_capi import Model, fit

    pulled = fit.Experiment.from_csv("tension.csv", columns={"strain": "eps", "stress": "sigma"})
    problem = fit.Problem(Model("aoti/steel"), [pulled], {"E": fit.Parameter(200e3, log=True)})
    found = problem.solve()
    print(found)
    found.report("steel.html")

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
