"""Reports of each point of an evaluation."""

from __future__ import annotations

from neml2_capi._ffi.library import lib

#: Numbers in the header, and element types, by name.
REPORTS = {
    "status": (lib.NEML2_REPORT_STATUS, "int32"),
    "iterations": (lib.NEML2_REPORT_ITERATIONS, "int32"),
    "residual_norm": (lib.NEML2_REPORT_RESIDUAL_NORM, "float64"),
    "suggested_cut": (lib.NEML2_REPORT_SUGGESTED_CUT, "float64"),
    "rescue_solves": (lib.NEML2_REPORT_RESCUE_SOLVES, "int32"),
}

#: Reports that exist only if an option asks for them.
OF_OPTIONS = {"rescue_solves": "rescue", "residual_history": "collect_history"}

#: The others.
ALWAYS = tuple(name for name in REPORTS if name not in OF_OPTIONS)
