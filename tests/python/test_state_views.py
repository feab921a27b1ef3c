"""States of models that are more than the law of their artifact: none is taken for another's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neml2_capi import FatalError, Model, drive, examples
from neml2_capi._ffi.errors import check
from neml2_capi._ffi.inspection import HYPOTHESES, STRAIN_MEASURES
from neml2_capi._ffi.library import ffi, lib
from neml2_capi.model.state_file import read_state, write_state

LAW = examples.path("chaboche")

#: Models of one law, by what a state tells of them.
MODELS: dict[str, dict[str, Any]] = {
    "the law as it is": {},
    **{f"hypothesis {name}": {"hypothesis": name} for name in list(HYPOTHESES)[1:]},
    **{f"strain_measure {name}": {"strain_measure": name} for name in STRAIN_MEASURES},
    "material_axes": {"material_axes": True},
    "material_axes, hypothesis beam": {"material_axes": True, "hypothesis": "beam"},
}


class Bound:
    """A call of the library with arrays for all that carries the state."""

    def __init__(self, model: Model, value: float) -> None:
        self._call = model._engine.new_call()
        self.arrays = {
            name: np.full((2, *model.inputs[name].base_shape), value)
            for name in model.inputs.names
            if name in model.state().arrays()
        }
        for name, array in self.arrays.items():
            pointer, size = ffi.cast("void *", array.ctypes.data), array[0].size
            bind = (self._call[0], lib.NEML2_INPUT, name.encode(), pointer)
            check(lib.neml2_call_bind(*bind, lib.NEML2_FLOAT64, size))

    def save(self, path: Path) -> None:
        check(lib.neml2_call_state_save(self._call[0], str(path).encode(), 2, 3, 0.5))

    def load(self, path: Path) -> None:
        step, time = ffi.new("int64_t *"), ffi.new("double *")
        check(lib.neml2_call_state_load(step, time, self._call[0], str(path).encode(), 2))
        assert (step[0], time[0]) == (3, 0.5)


@pytest.mark.parametrize("then", MODELS)
def test_a_state_is_of_the_model_that_was_opened(then: str, tmp_path: Path) -> None:
    """The state of plane stress was taken for a beam's, of one measure for another's."""
    file, again = tmp_path / "library.state", tmp_path / "python.state"
    with Model(LAW, **MODELS[then]) as model:
        Bound(model, 1.0).save(file)
        state, step, time = model.load_state(file)
        assert (step, time) == (3, 0.5)
        model.save_state(again, state, step=step, time=time)
        own = Bound(model, 0.0)
        own.load(again)
        assert all((array == 1).all() for array in own.arrays.values())
    assert read_state(file)[1] == read_state(again)[1]
    for now in MODELS:
        if now == then:
            continue
        with Model(LAW, **MODELS[now]) as other:
            bound = Bound(other, 0.0)
            for load in (bound.load, other.load_state):
                with pytest.raises(FatalError) as refused:
                    load(file)
                assert refused.value.status == lib.NEML2_ERROR_ARTIFACT
                assert f"was written with {then}; the model has {now}. Open" in str(refused.value)
            assert not any(array.any() for array in bound.arrays.values())


def test_a_file_that_tells_of_nothing_is_of_the_law_as_it_is(tmp_path: Path) -> None:
    """As 1.0.0rc1 wrote them."""
    file = tmp_path / "run.state"
    with Model(LAW) as law, Model(LAW, hypothesis="plane_stress") as plane:
        law.save_state(file, law.state(2))
        assert "views" not in read_state(file)[1]
        law.load_state(file)
        Bound(law, 1.0).save(file)
        assert "views" not in read_state(file)[1]
        plane.save_state(file, plane.state(2))
        arrays, told = read_state(file)
        assert told.pop("views") == "hypothesis plane_stress"
        write_state(file, arrays, told)
        with pytest.raises(FatalError, match="was written with the law as it is; the model has"):
            plane.load_state(file)


def test_the_stress_measure_is_no_part_of_a_state(tmp_path: Path) -> None:
    """What is carried is the law's own stress."""
    file = tmp_path / "run.state"
    with Model(LAW, strain_measure="logarithmic", stress_measure="pk2") as one:
        one.save_state(file, one.state(2))
    with Model(LAW, strain_measure="logarithmic", stress_measure="cauchy") as other:
        other.load_state(file)


def test_a_checkpoint_of_drive_is_of_the_model_that_was_opened(tmp_path: Path) -> None:
    """Plane strain and axial symmetry have the same components."""
    file, times = tmp_path / "run.state", np.linspace(0, 3, 4)
    forces = {"strain": 1e-3 * times[:, np.newaxis] * np.ones(4)}
    drive(Model(LAW, hypothesis="plane_strain"), times, forces, checkpoint=file)
    with pytest.raises(FatalError, match="hypothesis plane_strain; the model has hypothesis axi"):
        drive(Model(LAW, hypothesis="axisymmetrical"), times, forces, checkpoint=file)
