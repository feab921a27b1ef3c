"""Mistakes that mypy --strict finds in a user's script, each at the line that is marked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import neml2_capi
from neml2_capi import Model

strain: NDArray[np.float64] = np.zeros((3, 6))

Model()  # error: call-arg
Model(3)  # error: arg-type
Model("aoti/elasticity", engine=1)  # error: arg-type
model = Model("aoti/elasticity")
model.forwards({"strain": strain})  # error: attr-defined
model.forward(strain)  # error: call-overload
model.forward({"strain": strain}, solver=3)  # error: call-overload
model.forward({"strain": strain})["stress"].norm()  # error: attr-defined
model.forward({"strain": strain}).stress  # error: attr-defined
outputs, report, rest = model.evaluate({"strain": strain})  # error: misc
model.jacobian({"strain": strain})[0]["stress"]["strain", 1, 2]  # error: index
model.inputs[0].shape  # error: attr-defined
model.inputs[1.5]  # error: call-overload
model.dtype = "float32"  # error: misc
model.options["atol"] = [1]  # error: assignment
model.set_parameter("E")  # error: call-arg
call = model.bind({"strain": strain}, {"stress": strain}, derivative=True)  # error: call-arg
number: str = call.run()  # error: assignment
neml2_capi.drive(model, [0.0, 1.0], strain)  # error: arg-type
neml2_capi.load_model("aoti/elasticity_aoti.i")  # error: call-arg
neml2_capi.Scheduler("cpu", "512")  # error: arg-type
neml2_capi.Device("cpu", batch=512)  # error: call-arg
Model("aoti/elasticity", scheduler="cpu")  # error: arg-type
neml2_capi.models  # error: attr-defined
error = neml2_capi.ConvergenceError("text")
error.mask  # error: attr-defined
