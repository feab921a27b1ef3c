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

#: Arguments by name, of numpy alone, and of another library.
Plains = Mapping[str, Plain]
Others = Mapping[str, A | Plain]
#: Arguments by name, of any kind.
Given = Mapping[str, Any]

T = TypeVar("T")
#: Results by name: outputs; outputs and others; outputs and {output: {variable: block}}.
Named = dict[str, T]
Both = tuple[dict[str, T], dict[str, T]]
WithBlocks = tuple[dict[str, T], dict[str, dict[str, T]]]
