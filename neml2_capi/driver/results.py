"""Results of a driver: arrays over time, by name."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.kinds import NUMPY, Kind
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array, Tensor
from neml2_capi._ffi.variables import Variable
from neml2_capi.driver.tables import axes_of, columns_of, draw, table_of, write_csv
from neml2_capi.model.evaluation import kind_of_results

if TYPE_CHECKING:
    from neml2_capi.model import Model

_Self = TypeVar("_Self", bound="Results")
#: In a file: the types of the variables, as JSON.
_TYPES = "variables.json"


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

    def __init__(self, arrays: Mapping[str, Any], variables: Iterable[Variable] = ()) -> None:
        """Keep arrays whose first axes have one length.

        Parameters
        ----------
        arrays
            The arrays by name; they are not copied.
        variables
            Those of the model, which tell the components of the arrays of their names.
        """
        self._arrays = dict(arrays)
        self._variables = {v.name: v for v in variables if v.name in self._arrays}

    def __getitem__(self, name: str) -> Any:
        try:
            return self._arrays[name]
        except KeyError:
            raise unknown_name("result", name, self._arrays) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def columns(self) -> dict[str, NDArray[Any]]:
        """A column for each component of what was recorded: "t", "strain.xx", "stress.xy".

        They are components of the tensors: Mandel's factors are divided out. Derivatives have no
        columns.

        Returns
        -------
        dict of str to array
            (n, *B) each; (n,) where one value serves all points.
        """
        return columns_of(self._numpy(), self._variables)

    def to_frame(self, library: str = "pandas") -> Any:
        """A data frame with a row for each time and point, and columns() as its columns.

        Parameters
        ----------
        library
            "pandas" or "polars", which must be installed.

        Returns
        -------
        DataFrame
            With "t", "point", which counts from 0 where there are several, "strain.xx" and so on.
        """
        return _imported(library).DataFrame(table_of(self.columns()))

    def to_xarray(self) -> Any:
        """A data set of xarray, which must be installed, with columns() as its variables.

        Returns
        -------
        xarray.Dataset
            Over "time", and "point" or "point_0", "point_1" and so on of a batch. "t" is a
            coordinate of time where all points have the same.
        """
        columns = self.columns()
        axes = max(values.ndim for values in columns.values()) - 1
        batch = ["point"] if axes == 1 else [f"point_{axis}" for axis in range(axes)]
        named = {n: (["time", *batch[: v.ndim - 1]], v) for n, v in columns.items() if n != "t"}
        dimensions = ["time", *batch[: columns["t"].ndim - 1]]
        return _imported("xarray").Dataset(named, coords={"t": (dimensions, columns["t"])})

    def plot(self, *curves: str, axes: Any = None) -> Any:
        """Draw columns over each other with matplotlib, a line for each point.

        Parameters
        ----------
        curves
            "strain.xx:stress.xx" and so on, a diagram for each.
        axes
            Where one curve is drawn; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Raises
        ------
        FatalError
            A column is unknown, or matplotlib is not installed.
        """
        columns = self.columns()
        for curve in curves:
            axes_of(curve, list(columns))
        if axes is None:
            _, diagrams = _imported("matplotlib.pyplot", "plot").subplots(
                1,
                len(curves),
                figsize=(5.0 * len(curves), 4.0),
                squeeze=False,
                layout="constrained",
            )
        else:
            diagrams = [[axes]]
        for diagram, curve in zip(diagrams[0], curves, strict=True):
            draw(diagram, columns, curve)
        return diagrams[0][0].figure

    def without(self, names: Iterable[str]) -> Results:
        """Leave some of the arrays out.

        Parameters
        ----------
        names
            Of the arrays.

        Returns
        -------
        Results
            The others, not copied.
        """
        hidden = set(names)
        kept = {name: value for name, value in self.items() if name not in hidden}
        return Results(kept, self._variables.values())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file: all arrays as npz, or columns() as csv.

        Parameters
        ----------
        path
            A name that ends in .csv is one of text, with a row for each time and point. Any other
            is a file of numpy, which numpy.load() and load() read; .npz is appended where it is
            missing. "variables.json" has the types of the variables there.
        """
        name = os.fspath(path)
        if name.endswith(".csv"):
            self._save(name, "csv")
        else:
            self._save(name if name.endswith(".npz") else f"{name}.npz", "npz")

    def _save(self, path: str | os.PathLike[str], form: str) -> None:
        if form == "csv":
            write_csv(path, self.columns())
            return
        types = json.dumps([asdict(variable) for variable in self._variables.values()])
        with Path(path).open("wb") as stream:
            arrays: dict[str, Any] = {**self._numpy(), _TYPES: np.array(types)}
            np.savez(stream, **arrays)

    def _numpy(self) -> dict[str, Any]:
        return {name: Tensor(value).numpy() for name, value in self.items()}

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise FatalError(
            "Results are many arrays by name; take one of them, or to_frame() or to_xarray().",
            lib.NEML2_ERROR_ARGUMENT,
        )

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

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
            arrays = {name: loaded[name] for name in loaded.files}
        types = json.loads(str(arrays.pop(_TYPES, "[]")))
        for each in types:
            each.update({k: tuple(each[k]) for k in ("base_shape", "sub_batch_shape")})
        return cls(arrays, [Variable(**each) for each in types])

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in self.items())
        return f"<Results: {shapes}>"


def _imported(library: str, extra: str = "") -> Any:
    try:
        return importlib.import_module(library)
    except ImportError:
        name = library.partition(".")[0]
        wanted = f"'neml2_capi[{extra}]'" if extra else name
        raise FatalError(
            f"{name} is not installed; install it with: pip install {wanted}",
            lib.NEML2_ERROR_UNSUPPORTED,
            name,
        ) from None


def giver(model: Model, given: Kind | None) -> Callable[[Array], Any]:
    """Return what hands an array out as the model does, where arrays of the kind `given` were."""
    kind = kind_of_results(model._engine.kind, given)

    def give(array: Array) -> Any:
        return array if kind is NUMPY else kind.hand_out(Tensor(array)._open(), array)

    return give
