"""Compiled graphs: any AOTInductor package, not only a material model's."""

from neml2_capi._ffi.tensor import Tensor
from neml2_capi.graph.graph import Graph, GraphInput, GraphOutput

__all__ = ["Graph", "GraphInput", "GraphOutput", "Tensor"]
