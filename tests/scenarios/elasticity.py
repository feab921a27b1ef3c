"""Hooke's law at 8 points."""

from scenario import YOUNG, elastic_strains, hooke, load, near, print_points

model = load("elasticity")
strain = elastic_strains(8)
stress = model.forward({"strain": strain})["stress"]
assert near(stress, hooke(YOUNG, strain))
print_points("stress", stress)
