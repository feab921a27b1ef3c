"""Types of the arrays that go in and come out: of numpy, or of another library in and out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.tensor import Tensor


class Producer(Protocol):
    """An array of any library that speaks DLPack."""

    def __dlpack__(self) -> Any: ...


#: An array of another library than numpy.
A = TypeVar("A", bound=Producer)

#: Arrays that lead to results of numpy, and go along with arrays of another library.
Plain = NDArray[Any] | Tensor | np.generic | float | list[Any] | tuple[Any, ...]

Plains = Mapping[str, Plain]
Others = Mapping[str, A | Plain]
Arrays = dict[str, NDArray[Any]]
#: {output: {input or parameter: block}}
Blocks = dict[str, Arrays]
