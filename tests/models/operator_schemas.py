"""The operators that operators.py compiles calls of, and that the tests register."""

LIBRARY = "neml2_capi_operators"
SATURATE = (
    f"{LIBRARY}::saturate(Tensor x, float scale=1.0, bool twice=False, int order=1) -> Tensor"
)
MODE = f"{LIBRARY}::saturate.mode(Tensor x, str mode) -> Tensor"
COLLECT = (
    f"{LIBRARY}::collect(Tensor x, int n, float f, bool b, str s, int[] axes, float[] weights, "
    "bool[] flags, Tensor? missing=None, Tensor[]? more=None, Tensor?[]? some=None, SymInt m=3, "
    "int? none=None) -> (Tensor, Tensor, Tensor)"
)
CURVE = f"{LIBRARY}::curve(Tensor x, float limit, float rate) -> Tensor"
LIMIT, RATE = 100.0, 50.0
