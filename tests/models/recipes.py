"""Input files and options that the models of the tests are compiled from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
MODELS = ROOT / "tests" / "models"


@dataclass(frozen=True)
class Recipe:
    """Arguments of neml2-compile."""

    input: Path
    model: str
    options: tuple[str, ...] = ()
    version: str = ""  # of neml2, if it is not the installed one
    driver: str = ""  # of that model, which the stub keeps


def _derivatives(*pairs: str) -> tuple[str, ...]:
    """Options for OUT:IN, where a missing OUT is all outputs, and ":" all but parameters."""
    return tuple(argument for pair in pairs for argument in ("-d", pair))


def _parameters(*names: str) -> tuple[str, ...]:
    """Parameters that can change at run time, and their derivatives."""
    promoted = tuple(argument for name in names for argument in ("-p", name))
    return promoted + _derivatives(*(f":{name}" for name in names))


_ELASTICITY = EXAMPLES / "models" / "elasticity.i"
_CHABOCHE = EXAMPLES / "models" / "viscoplastic.i"
_HARDENING = MODELS / "isotropic_hardening.i"
_CREEP = MODELS / "creep.i"
_BAR = MODELS / "bar.i"
_E = "residual.elasticity.E"
_SY = "residual.normality.yield_surface.yield_function.sy"
_RETURN_SY = "update.return_map.surface.yield_function.sy"

RECIPES = {
    "elasticity": Recipe(_ELASTICITY, "elasticity", ("-p", "elasticity.E", "-d", "stress:strain")),
    # No derivatives.
    "viscoplastic": Recipe(_CHABOCHE, "viscoplastic"),
    # A finite-element host wants a tangent, and constants from its input file.
    "combined_hardening": Recipe(
        _CHABOCHE,
        "viscoplastic",
        (
            *("-p", _E, "--rename-parameter", f"{_E}:E"),
            *("-p", _SY, "--rename-parameter", f"{_SY}:yield_stress"),
            *_derivatives("stress:strain"),
        ),
    ),
    "chaboche": Recipe(_CHABOCHE, "viscoplastic", _derivatives(":")),
    "elasticity_float32": Recipe(_ELASTICITY, "elasticity", ("--dtype", "float32")),
    # A batch of exactly two points.
    "elasticity_static": Recipe(
        _ELASTICITY, "elasticity", ("--no-dynamic-batch", "--example-batch-shape", "(2,)")
    ),
    # Five grains per point, on a sub-batch axis of the input and the output.
    "elasticity_grains": Recipe(
        _ELASTICITY,
        "elasticity",
        ("--example-batch-shape", "strain=(2;5)", *_derivatives(":")),
    ),
    "elasticity_parameters": Recipe(
        _ELASTICITY,
        "elasticity",
        (*_parameters("elasticity.E", "elasticity.nu"), *_derivatives(":")),
    ),
    # Only one output has the axis of the grains.
    "grains": Recipe(MODELS / "grains.i", "grains", _derivatives(":")),
    "isotropic_hardening": Recipe(
        _HARDENING,
        "viscoplastic",
        (*_parameters(_E, _SY), *_derivatives(":"), "--rename-parameter", f"{_SY}:yield_stress"),
    ),
    # Traced with a large batch: the packages hold OpenMP regions.
    "isotropic_hardening_parallel": Recipe(
        _HARDENING, "viscoplastic", ("--example-batch-shape", "(100000,)")
    ),
    # Variables have other names for a caller than inside the model.
    "radial_return": Recipe(
        MODELS / "radial_return.i",
        "radial_return",
        (
            *_parameters(_RETURN_SY),
            *_derivatives(":"),
            *("--rename-input", "strain:total_strain", "--rename-output", "stress:cauchy_stress"),
            *("--rename-parameter", f"{_RETURN_SY}:yield_stress"),
        ),
    ),
    # Both segments take the modulus.
    "relaxation": Recipe(
        MODELS / "relaxation.i",
        "relaxation",
        (*_parameters("update.residual.elasticity.E"), *_derivatives(":")),
    ),
    # Derivatives with sub-batch axes cannot be compiled.
    "polycrystal": Recipe(
        MODELS / "polycrystal.i",
        "polycrystal",
        _derivatives(*(f"strain:{name}" for name in ("applied_stress", "strain~1", "t", "t~1"))),
    ),
    "crystal": Recipe(
        MODELS / "crystal.i",
        "crystal",
        _derivatives(
            *(
                f"{out}:{given}"
                for out in ("stress", "elastic_strain", "orientation")
                for given in ("deformation_rate", "vorticity", "t", "orientation~1")
            )
        ),
    ),
    "gmres": Recipe(_CREEP, "creep", (*_derivatives(":"), "Solvers/newton/linear_solver:=gmres")),
    # Stopped before inner products fall below NEML2's absolute 2e-16.
    "bicgstab": Recipe(
        _CREEP,
        "creep",
        (
            *_parameters(_E),
            *_derivatives(":"),
            "Solvers/newton/linear_solver:=bicgstab",
            "Solvers/newton/abs_tol:=2e-8",
            "Solvers/bicgstab/abs_tol:=2e-8",
            "Solvers/bicgstab/rel_tol:=1e-6",
            "Models/creep/input_sensitivity_solver=accurate_gmres",
            "Models/creep/param_sensitivity_solver=accurate_bicgstab",
        ),
    ),
    # The initial guess of an unknown that is not predicted is an input, of the output's name.
    "warm_start": Recipe(
        _CREEP, "creep", (*_derivatives(":"), "Models/predictor/unknowns_Scalar:=''")
    ),
    # Twelve iterations are too few for a large increment.
    "substepping": Recipe(
        _CREEP,
        "creep",
        (
            *_parameters(_E),
            *_derivatives(":"),
            "Solvers/newton/max_its:=12",
            "Models/creep/max_substepping_level=5",
        ),
    ),
    # Only the predictor reads t~2 and strain~2, and only the parts of an increment the old stress.
    "bar": Recipe(_BAR, "bar", _derivatives(":")),
    "ramped_bar": Recipe(
        _BAR,
        "bar",
        (
            *_derivatives(":"),
            "Solvers/newton/max_its:=8",
            "Models/bar/max_substepping_level=6",
            "Models/bar/incremental_variables=stress",
        ),
    ),
    "transient": Recipe(MODELS / "transient.i", "relaxation", driver="driver"),
    # Older schemas: 2, 3, 7 and 12. Until 3.0.3 there is no choice of derivatives.
    "elasticity_3.0.0": Recipe(_ELASTICITY, "elasticity", ("-p", "E"), version="3.0.0"),
    "elasticity_3.0.3": Recipe(_ELASTICITY, "elasticity", ("-p", "E"), version="3.0.3"),
    "elasticity_3.0.6": Recipe(
        _ELASTICITY,
        "elasticity",
        (*_parameters("elasticity.E"), *_derivatives(":")),
        version="3.0.6",
    ),
    "creep_3.0.0": Recipe(_CREEP, "creep", version="3.0.0"),
    "creep_3.0.3": Recipe(_CREEP, "creep", version="3.0.3"),
    "creep_3.0.6": Recipe(_CREEP, "creep", (*_parameters(_E), *_derivatives(":")), version="3.0.6"),
    "creep_3.0.7": Recipe(_CREEP, "creep", (*_parameters(_E), *_derivatives(":")), version="3.0.7"),
}

#: Models that the tests of kernels take besides; not in the archive.
#: Of neml2_capi/examples, by kernels alone.
_SHIPPED_HARDENING = (
    *(*_parameters(_E), *_parameters(_SY), *_derivatives(":")),
    *("--rename-parameter", f"{_E}:E", "--rename-parameter", f"{_SY}:yield_stress"),
)
SHIPPED = {
    "elasticity": Recipe(
        _ELASTICITY,
        "elasticity",
        (
            *(*_parameters("elasticity.E"), *_derivatives(":")),
            *("--rename-parameter", "elasticity.E:E"),
        ),
    ),
    "isotropic_hardening": Recipe(_HARDENING, "viscoplastic", _SHIPPED_HARDENING),
    "chaboche": Recipe(_CHABOCHE, "viscoplastic", _SHIPPED_HARDENING),
}

KERNEL_RECIPES = {
    # Powers that are no products, on twelve slip systems.
    "crystal_powers": Recipe(MODELS / "crystal_powers.i", "crystal"),
}
