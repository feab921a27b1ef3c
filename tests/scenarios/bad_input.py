"""Wrong requests: each is refused with its subject, and leaves the model as it was."""

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import as_strided
from scenario import YOUNG, elastic_strains, hooke, load, near

from neml2_capi import FatalError, Model

model = load("elasticity")
strain = elastic_strains(1)
call = model.bind({"strain": strain}, {"stress": np.zeros((1, 6))})
overlapping = as_strided(np.zeros(12), shape=(2, 6), strides=(5 * 8, 8))


def refused(request: Callable[[], object]) -> None:
    try:
        request()
    except FatalError as error:
        print("error", error.status, error.subject)
    else:
        raise AssertionError("it was accepted")
    assert near(model.forward({"strain": strain})["stress"], hooke(YOUNG, strain))


refused(lambda: call.bind({"strian": strain}))
refused(lambda: call.bind({"strain": strain.astype(np.float32)}))
refused(lambda: model.bind({"strain": np.zeros((2, 6))}, {"stress": overlapping}))
refused(lambda: model.bind({}))
refused(lambda: model.options.update({"chunk": -1}))
refused(lambda: model.set_parameter("elasticity.nu", 1.0))
refused(lambda: Model("/nothing/here"))

assert (call.outputs["stress"] == 0).all()  # what was refused wrote nothing
assert near(call()["stress"], hooke(YOUNG, strain))  # and changed nothing that was bound
