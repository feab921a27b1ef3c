"""Results of a driver: arrays over time, by name."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from neml2_capi._ffi.errors import FatalError, unknown_name
from neml2_capi._ffi.kinds import NUMPY, Kind
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.outside import written
from neml2_capi._ffi.tensor import Tensor
from neml2_capi._ffi.variables import Variable, Variables
from neml2_capi.driver.arguments import file_name, names_of, wrong
from neml2_capi.driver.derived import Derived
from neml2_capi.driver.npz import read_npz, write_npz
from neml2_capi.driver.tables import axes_of, columns_of, draw, table_of, write_csv
from neml2_capi.model.evaluation import check_mapping, kind_of_results

if TYPE_CHECKING:
    from neml2_capi.model import Model

_Self = TypeVar("_Self", bound="Results")
#: The libraries that have data frames.
_FRAMES = ("pandas", "polars")
#: In a file: the types of the variables, as JSON.
_TYPES = "variables.json"


class Results(Derived):
    """The history of a driven model, a mapping of names to arrays; the first axis is time.

    They are, where n is the number of times, B the batch of points, and "point shape" the shape of
    a variable at one point, (*sub_batch_shape, *base_shape):

    - `t`: the times, (n,), or (n, *B) if each point has its own;
    - prescribed inputs, `strain` for example: (n, *B, *point shape), without B if one value
      serves all points;
    - outputs, `stress` for example: (n, *B, *point shape);
    - `stress:strain`, a derivative: (n, *B, *shape of stress, *shape of strain);
    - `report.iterations` and so on: (n, *B);
    - `substeps`: (n,), in how many increments a step was made: 1 if it was not cut, 0 for the
      initial state.
    """

    def __init__(self, arrays: Mapping[str, Any], variables: Iterable[Variable] = ()) -> None:
        """Keep arrays whose first axes have one length.

        Parameters
        ----------
        arrays
            The arrays by name; they are not copied.
        variables
            The model's variables, which tell the components of the arrays of their names.

        Raises
        ------
        FatalError
            They are no arrays by name, or no variables.
        """
        check_mapping("arrays", arrays)
        variables = tuple(variables) if isinstance(variables, Iterable) else (variables,)
        for each in variables:
            if not isinstance(each, Variable):
                raise wrong("variables", f"must be the variables of a model; got {each!r}")
        names_of("arrays", arrays)
        super().__init__()
        self._arrays = dict(arrays)
        #: The batch B of all points, and the names of arrays that have another or none.
        self._batch: tuple[int, ...] = ()
        self._others: frozenset[str] = frozenset()
        #: The parameters of the model.
        self._parameters: Variables | None = None
        self._variables = {v.name: v for v in variables if v.name in self._arrays}

    def __getitem__(self, name: str) -> Any:
        try:
            return self._arrays[name]
        except KeyError:
            raise unknown_name("result", name, self._arrays) from None

    def __contains__(self, name: object) -> bool:
        return name in self._arrays  # without making the error that tells the names

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
            (n, *B) each; (n,) if one value serves all points.
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
            With "t", "point", which counts from 0 if there are several, "strain.xx" and so on.

        Raises
        ------
        FatalError
            There is no such library, or these are no results over time.
        """
        if not isinstance(library, str) or library not in _FRAMES:
            raise wrong("library", f"must be one of {', '.join(_FRAMES)}; got {library!r}")
        columns = self._over_time()
        return _imported(library).DataFrame(table_of(columns))

    def to_xarray(self) -> Any:
        """A data set of xarray, which must be installed, with columns() as its variables.

        Returns
        -------
        xarray.Dataset
            Over "time", and "point" or "point_0", "point_1" and so on of a batch. "t" is a
            coordinate of time if all points have the same.
        """
        columns = self._over_time()
        axes = max(values.ndim for values in columns.values()) - 1
        batch = ["point"] if axes == 1 else [f"point_{axis}" for axis in range(axes)]
        named = {n: (["time", *batch[: v.ndim - 1]], v) for n, v in columns.items() if n != "t"}
        dimensions = ["time", *batch[: columns["t"].ndim - 1]]
        return _imported("xarray").Dataset(named, coords={"t": (dimensions, columns["t"])})

    def plot(self, *curves: str, axes: Any = None, units: Mapping[str, str] | None = None) -> Any:
        """Draw columns over each other with matplotlib, a line for each point.

        Parameters
        ----------
        curves
            "strain.xx:stress.xx" and so on, a diagram for each.
        axes
            If one curve is drawn; by default a new figure.
        units : mapping of str to str, optional
            What stands beside a name on its axis, {"stress": "MPa", "t": "s"}, by columns or by
            variables with all their components. An artifact does not know its units.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Raises
        ------
        FatalError
            A column is unknown, or matplotlib is not installed.
        """
        columns = self._over_time()
        if not curves:
            raise wrong("curves", 'must be one at least, such as "strain.xx:stress.xx"')
        for curve in curves:
            axes_of(curve, list(columns))
        known = [*columns, *dict.fromkeys(name.rpartition(".")[0] or name for name in columns)]
        for name in units or ():
            if name not in known:
                raise unknown_name("column or variable", name, known)
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
            draw(diagram, columns, curve, units or {})
        return diagrams[0][0].figure

    def _over_time(self) -> dict[str, NDArray[Any]]:
        """The columns; FatalError if they are not of some times."""
        arrays = self._numpy()
        lengths = {name: values.shape[:1] for name, values in arrays.items()}
        if "t" not in arrays or set(lengths.values()) != {lengths["t"]} or not lengths["t"]:
            told = ", ".join(f"{name} {arrays[name].shape}" for name in arrays) or "none"
            raise FatalError(
                f"these are no results over time: expected 't', (n,), and arrays of its length; "
                f"got {told}",
                lib.NEML2_ERROR_SHAPE,
                "t",
            )
        return self.columns()

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

        Raises
        ------
        UnknownNameError
            There is no such array.
        """
        hidden = names_of("names", names)
        for name in hidden - self.keys():
            raise unknown_name("result", name, self._arrays)
        kept = {name: value for name, value in self.items() if name not in hidden}
        return self._with(kept)

    def _with(self, arrays: Mapping[str, Any]) -> Results:
        """Return these results with other arrays."""
        results = Results(arrays, self._variables.values())
        results._gradients, results._slopes = self._gradients, self._slopes
        results._batch, results._others = self._batch, self._others
        results._parameters = self._parameters
        return results

    def _shape_of(self, name: str, batch: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an array of the same run with parameters of a batch."""
        shape = tuple(self[name].shape)
        if name in self._others:
            return shape
        return (
            *shape[:1],
            *np.broadcast_shapes(self._batch, batch),
            *shape[1 + len(self._batch) :],
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file: all arrays as npz, or columns() as csv.

        Parameters
        ----------
        path
            A name that ends in .csv is one of text, with a row for each time and point. Any other
            is a file of numpy, which numpy.load() and load() read; .npz is appended if it is
            missing. "variables.json" has the types of the variables there.

        Raises
        ------
        FatalError
            The file cannot be written, or would be inside the installed package; or these are no
            results over time, for csv.
        """
        name = file_name("path", path)
        if os.path.isdir(name):  # noqa: PTH112
            raise wrong("path", f"is the folder {name}: name a file in it")
        if name.lower().endswith(".csv"):
            self._save(name, "csv")
        else:
            self._save(name if name.lower().endswith(".npz") else f"{name}.npz", "npz")

    def _save(self, path: str | os.PathLike[str], form: str) -> None:
        with written(path, "the results") as stream:
            if form == "csv":
                write_csv(stream, self._over_time())
                return
            types = json.dumps([asdict(variable) for variable in self._variables.values()])
            write_npz(stream, {**self._numpy(), _TYPES: np.array(types)})

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
            The file cannot be read, or is damaged.
        """
        name = file_name("path", path)
        arrays = read_npz(name)
        return cls(arrays, _variables(name, arrays.pop(_TYPES, np.array("[]"))))

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in self.items())
        return f"<Results: {shapes}>"


def _variables(file: str, text: Array) -> list[Variable]:
    """The types that save() wrote."""
    shapes = ("base_shape", "sub_batch_shape")
    try:
        told = json.loads(str(text))
        found = [Variable(**{**each, **{k: tuple(each[k]) for k in shapes}}) for each in told]
        for variable in found:
            sizes = all(type(size) is int and size >= 0 for size in variable.point_shape)
            texts = (variable.name, variable.type, variable.dtype)
            if not sizes or not all(isinstance(each, str) for each in texts):
                raise ValueError(f"{variable} is no variable")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FatalError(
            f"{file} is damaged: its {_TYPES} is not what Results.save() writes ({error}). The "
            "arrays in it may be read with numpy.load()",
            lib.NEML2_ERROR_FILE,
            "path",
        ) from error
    return found


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
    """Return what hands an array out as the model does, if arrays of the kind `given` were."""
    kind = kind_of_results(model._engine.kind, given)

    def give(array: Array) -> Any:
        return array if kind is NUMPY else kind.hand_out(Tensor(array)._open(), array)

    return give
