"""Labels that name arrays in errors, and the common batch of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib

Array = NDArray[Any]


class Label(NamedTuple):
    """Purpose of an array, to name it in an error."""

    kind: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}" if self.name else f"the {self.kind}"

    def refuse(self, reason: str, status: int) -> FatalError:
        return FatalError(f"{self} {reason}", status, self.name)

    def batch_of(self, shape: Sequence[int], point: tuple[int, ...]) -> tuple[int, ...]:
        """The batch axes of a shape; FatalError unless it ends with the shape of a point."""
        split = max(len(shape) - len(point), 0)
        if tuple(shape[split:]) != point:
            raise self.refuse(
                f"has the shape {tuple(shape)}; expected batch axes and then {point}",
                lib.NEML2_ERROR_SHAPE,
            )
        return tuple(shape[:split])


def common_batch(
    batches: Iterable[tuple[Label, tuple[int, ...]]], batch: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Broadcast `batch` and these; FatalError names the first that does not."""
    for label, own in batches:
        try:
            batch = np.broadcast_shapes(batch, own)
        except ValueError:
            raise label.refuse(
                f"has the batch {own}, which does not broadcast with the batch {batch} of those "
                "before it",
                lib.NEML2_ERROR_SHAPE,
            ) from None
    return batch


def listed(names: Iterable[str]) -> list[str]:
    """Names in order, of which one may stand alone."""
    return [names] if isinstance(names, str) else list(names)


def with_stored(
    batch: tuple[int, ...], stored: Iterable[tuple[Label, tuple[int, ...]]]
) -> tuple[int, ...]:
    """Broadcast `batch` and the batches of stored parameters.

    FatalError if one has no values and there are points: results would be empty, though no array
    of the evaluation is.
    """
    for label, own in stored:
        if 0 in own and 0 not in batch:
            raise label.refuse(
                f"was set to no values, {own}, and there are points: set it to one value, or to "
                "one for each point",
                lib.NEML2_ERROR_SHAPE,
            )
        batch = common_batch([(label, own)], batch)
    return batch
