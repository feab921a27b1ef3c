"""Results of a driver: arrays over time, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.kinds import NUMPY, Kind
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array, Tensor
from neml2_capi.model.evaluation import kind_of_results

if TYPE_CHECKING:
    from neml2_capi.model import Model

_Self = TypeVar("_Self", bound="Results")


class Results(Mapping[str, Any]):
    """The history of a driven model, a mapping of names to arrays; the first axis is time.

    They are, where n is the number of times, B the batch of points, and "point shape" that of a
    variable at one point, (*sub_batch_shape, *base_shape):

    - `t`: the times, (n,), or (n, *B) where each point has its own;
    - prescribed inputs, `strain` for example: (n, *B, *point shape), without B where one value
      serves all points;
    - outputs, `stress` for example: (n, *B, *point shape);
    - `stress:strain`, a derivative: (n, *B, *shape of stress, *shape of strain);
    - `report.iterations` and so on: (n, *B);
    - `substeps`: (n,), in how many increments a step was made: 1 where it was not cut, 0 for the
      initial state.
    """

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        """Keep arrays whose first axes have one length.

        Parameters
        ----------
        arrays
            The arrays by name; they are not copied.
        """
        self._arrays = dict(arrays)

    def __getitem__(self, name: str) -> Any:
        try:
            return self._arrays[name]
        except KeyError:
            raise unknown_name("result", name, self._arrays) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all arrays to a file of numpy, which numpy.load() and load() read.

        Parameters
        ----------
        path
            The file; .npz is appended to a name that does not end in it.
        """
        arrays: dict[str, Any] = {name: Tensor(value).numpy() for name, value in self.items()}
        np.savez(os.fspath(path), **arrays)

    @classmethod
    def load(cls: type[_Self], path: str | os.PathLike[str]) -> _Self:
        """Read what save() wrote.

        Parameters
        ----------
        path
            The file, with its .npz.

        Returns
        -------
        Results
            The arrays, as numpy arrays in memory.

        Raises
        ------
        FatalError
            The file holds one array only.
        """
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise FatalError(
                f"{os.fspath(path)} holds one array; expected a file of Results.save(), .npz",
                lib.NEML2_ERROR_ARGUMENT,
                "path",
            )
        with loaded:
            return cls({name: loaded[name] for name in loaded.files})

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in self.items())
        return f"<Results: {shapes}>"


def giver(model: Model, given: Kind | None) -> Callable[[Array], Any]:
    """Return what hands an array out as the model does, where arrays of the kind `given` were."""
    kind = kind_of_results(model._engine.kind, given)

    def give(array: Array) -> Any:
        return array if kind is NUMPY else kind.hand_out(Tensor(array)._open(), array)

    return give
