"""The whole orchestration of a model in plain Python, over compiled graphs alone.

Segments, Newton's method and line search, the implicit-function theorem, Krylov solvers,
substepping and derivatives: what the library does natively is here in readable numpy.
It is the oracle of the library, and where a new solver is tried first. It is not fast.

    model = neml2_capi.Model("aoti/viscoplastic", engine="python")
"""

__all__: list[str] = []
