"""Young's modulus is halved in the model, and then another one at each point in one call only."""

import numpy as np
from scenario import YOUNG, elastic_strains, hooke, load, near, print_points

model = load("elasticity")
parameters = model.named_parameters()
strain = elastic_strains(8)

assert parameters["elasticity.E"] == YOUNG
stress = model.forward({"strain": strain})["stress"]
assert near(stress, hooke(YOUNG, strain))
print_points("stress", stress)

parameters["elasticity.E"] = parameters["elasticity.E"] / 2
assert parameters["elasticity.E"] == YOUNG / 2
half = model.forward({"strain": strain})["stress"]
assert near(half, stress / 2)
print_points("stress", half)

young = 100e3 * (np.arange(8) + 1)
stress = model.forward({"strain": strain}, {"elasticity.E": young})["stress"]
assert near(stress, hooke(young, strain))
print_points("stress", stress)
assert parameters["elasticity.E"] == YOUNG / 2
assert near(model.forward({"strain": strain})["stress"], hooke(YOUNG / 2, strain))
