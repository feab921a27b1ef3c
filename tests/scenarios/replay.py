"""A cycle whose strains are known beforehand, by one function: as one step after another."""

import numpy as np
from scenario import STATE, Points, cycle_strains, load, print_points

from neml2_capi import StepError, drive

N, STEPS = 5, 20
model = load("viscoplastic")
times = np.arange(STEPS + 1.0)
strain = np.stack([np.zeros((N, 6)), *(cycle_strains(range(N), k) for k in range(1, STEPS + 1))])
results = drive(model, times, {"strain": strain})
points = Points(model, range(N))
for k in range(1, STEPS + 1):
    points.load(k)
    points.call()
    for name, part in STATE.items():
        assert (results[name][k] == points.state[:, part]).all()
    points.accept()
print_points("state", points.state)

# Four iterations are too few once the strain turns.
model.options["miters"] = 5
try:
    drive(model, times, {"strain": strain}, least_step=1.0)
except StepError as error:
    print("made", error.step - 1)
