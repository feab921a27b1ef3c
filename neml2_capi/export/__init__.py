"""Compile torch modules and functions to what this library runs. It needs torch and a compiler.

`package` writes one .pt2 package, for neml2_capi.Graph and the functions neml2_graph_* of C.
`model` writes a whole artifact, for neml2_capi.Model and everything else that runs a material
model: a law, or a residual that Newton's method solves, with their derivatives.
"""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "neml2_capi.export compiles with torch, which is not installed for this Python; install "
        "it with: pip install 'neml2_capi[compile]'",
        name="torch",
    ) from error

from neml2_capi.export._model import model
from neml2_capi.export._package import package

__all__ = ["model", "package"]
