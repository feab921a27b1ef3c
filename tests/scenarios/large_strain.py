"""Hencky's elasticity in simple shear: a law of small strain with the logarithmic strain."""

import numpy as np
from scenario import YOUNG, artifact, near, print_points

from neml2_capi import Model

model = Model(artifact("elasticity"), strain_measure="logarithmic", stress_measure="kirchhoff")
amounts = np.array([0.5, 1.0, 1.5, 2.0])
gradient = np.tile(np.eye(3), (4, 1, 1))
gradient[:, 0, 1] = amounts
stress = model(deformation_gradient=gradient)["kirchhoff_stress"]
size, root = YOUNG / 1.3 * np.arcsinh(amounts / 2), np.sqrt(4 + amounts**2)
zero = np.zeros(4)
normal = size * amounts / root
shear = np.sqrt(2) * size * 2 / root
assert near(stress, np.stack([normal, -normal, zero, zero, zero, shear], axis=-1))
print_points("stress", stress)
