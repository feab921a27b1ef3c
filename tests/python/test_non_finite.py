"""A value, a derivative or an input that is not finite: its points say so, and are named."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import FOREIGN
from states import first_step

from neml2_capi import Model
from neml2_capi._ffi.library import lib

POINTS = 2500  # more than one chunk takes
BAD = 1777
#: Its stress is finite for a modulus of 1e-300, and its derivative by the modulus is not.
GREATEST = 1.7e308

ROUTES = ("off", "auto")


def statuses_of_one_bad_point(points: int = POINTS, bad: int = BAD) -> Any:
    status = np.full(points, lib.NEML2_OK)
    status[bad] = lib.NEML2_NON_FINITE
    return status


@pytest.fixture(params=[1, 3, POINTS])
def points(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=ROUTES)
def elasticity(request: pytest.FixtureRequest, artifacts: Mapping[str, Path]) -> Model:
    model = Model(artifacts["elasticity_parameters"])
    model.options["kernels"] = request.param
    return model


def loaded(model: Model, points: int) -> tuple[dict[str, Any], int]:
    """One point is strained so that its stress is finite, and no slope of it by a modulus is."""
    bad = min(BAD, points - 1)
    strain = np.full((points, 6), 1e-3)
    strain[bad] = GREATEST
    for name in model.parameters.names:
        model.parameters[name] = np.float64(1e-300 if "E" in name else 0.3)
    return {"strain": strain}, bad
