"""Compiled models among jax's transformations: jit, grad, jvp, jacfwd, jacrev and vmap.

    import jax, neml2_capi, neml2_capi.jax

    jax.config.update("jax_enable_x64", True)  # else jax makes single precision of all numbers
    material = neml2_capi.jax.Function(neml2_capi.Model("aoti/elasticity"))
    stiffness = jax.jacfwd(lambda strain: material({"strain": strain})["stress"])

The model is an operation of jax's compiler, which reads and writes arrays where they are: on the
host, or on a GPU if the model is open there, by the text of its kernels. A batch of vmap is one
evaluation. Derivatives are the compiled ones of first order, in both modes. Differentiating through
many steps in reverse mode keeps the blocks of all of them: jax.checkpoint around a step keeps its
inputs instead.
"""

try:
    import jax as _jax  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "neml2_capi.jax needs jax 0.6 or later, which is not installed: pip install -U jax. "
        "Without it, neml2_capi.Model takes and returns numpy arrays.",
        name="jax",
    ) from error

from neml2_capi.jax.function import Function
from neml2_capi.jax.history import driven

__all__ = ["Function", "driven"]
