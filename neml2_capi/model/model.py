"""A compiled material model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.kinds import NUMPY, Kind
from neml2_capi._ffi.library import absolute, lib
from neml2_capi._ffi.tensor import Tensor
from neml2_capi.model.call import Call
from neml2_capi.model.functions import Functions
from neml2_capi.model.native import Native
from neml2_capi.model.opened import Opened
from neml2_capi.model.scheduler import Scheduler
from neml2_capi.model.settings import Settings
from neml2_capi.model.source import Source, source_of, view_of
from neml2_capi.model.states import States

_Self = TypeVar("_Self", bound="Model")

# The attributes that a model has when it was loaded; a class of yours may keep others.
_LOADED = ("_engine", "_options_at_load", "_source")


class Model(Functions, States, Settings):
    """A material model, compiled by `neml2-compile`.

        model = Model("aoti/elasticity")
        stress = model.forward({"strain": strain})["stress"]

    Inputs have the shape (*B, *base_shape) (see `inputs`), where the batches B of all inputs and
    parameters broadcast. They can be numpy arrays, torch tensors, arrays of any other library that
    has `__dlpack__` (jax, for example), or numbers and lists; arrays of the model's element type
    are read where they are, and never written. Results are of the same kind, over memory of their
    own; they carry no gradients. Numpy arrays, numbers and lists go along with one other kind; two
    others are a FatalError. If a library has no `from_dlpack` that makes its arrays, results are
    numpy arrays. Units are the artifact's. A symmetric tensor (SR2) is in Mandel notation: xx, yy,
    zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy.

    Any number of threads may call one model, and so may the child of a fork; the interpreter's lock
    is released meanwhile. A copy, and a pickle on its way to a worker process, hold where the
    artifact is, the options that were changed, and the parameters: the artifact is opened again.
    """

    #: The kind of the results; NUMPY: the kind of the arguments.
    _kind: Kind = NUMPY

    def __init__(
        self,
        artifact_root: str | os.PathLike[str],
        device: Any = None,
        dtype: Any = None,
        *,
        engine: str = "native",
        runtime: str = "auto",
        scheduler: Scheduler | None = None,
        strain_measure: str | None = None,
        stress_measure: str | None = None,
        material_axes: bool | None = False,
        hypothesis: str | None = "tridimensional",
        strain: str | None = None,
        stress: str | None = None,
    ) -> None:
        """Load an artifact of NEML2 3.0.0 to 3.1.

        Parameters
        ----------
        artifact_root
            Its folder, a device folder in it, its metadata.json or <model>_meta.json, or the stub
            of one compiled model. NEML2 3.0.4 to 3.0.6 kept the settings of the solver in the stub
            only: without it, its defaults hold.
        device : str or torch.device, optional
            "cpu", the default, "cuda" or "cuda:1", of those that the artifact was compiled for. A
            model on CUDA takes and returns torch tensors there; "Devices" in
            include/neml2_capi_experimental.h says what it can do, and what ran. On "opencl" or
            "opencl:1", and on CUDA without packages for it, the device compiles the text that
            `neml2-capi build-kernels ARTIFACT --target opencl` (or `cuda`) has written, and arrays
            are the host's, or stay there: docs/devices.md.
        dtype : str, numpy or torch type, optional
            "float64", the default, or "float32", of those that the artifact was compiled for.
        engine
            "native", or "python" to evaluate the same in plain Python over the compiled graphs, see
            neml2_capi.engine: slow, easy to follow and to change, and without solve().
        runtime
            What the compiled graphs call: "builtin", this package alone; "libtorch", the one of
            NEML2_CAPI_LIBTORCH or of the installed torch, 2.10 or later, which need not be
            imported; "auto", libtorch for those only of which the built-in runtime lacks something;
            "tensors", libtorch, and Newton's method and the chain rule by its operators, too, as on
            CUDA. With the engine "python" it is always the built-in one.
        scheduler
            The devices over which points are spread, in place of `device` and `runtime`; what
            becomes of it later does not count.
        strain_measure
            How a law of small strain is given large ones: "logarithmic", "green_lagrange" or
            "corotational". The model then has the input `deformation_gradient`, (*B, 3, 3), in
            place of the strain, and gives the strain and another stress, too:
            docs/large-deformation.md.
        stress_measure
            That stress: "pk1", the default, for the output `pk1_stress`, "cauchy", "pk2" or
            "kirchhoff".
        material_axes
            Whether the law is in axes of its own: the input `material_axes`, (*B, 3, 3), has their
            unit vectors as rows, and tensors are turned to them and back.
        hypothesis
            Which components of the strain are given: "plane_stress", for example. Strain and stress
            have these components only, in the order of Mandel notation; docs/hypotheses.md has
            them. Strains that are solved for are the output `strain_transverse`.
        strain
            The input and the output that the strain measure or the hypothesis is about, if their
            names do not tell.
        stress
            The input and the output that the strain measure or the hypothesis is about, if their
            names do not tell.

        Raises
        ------
        FatalError
            The artifact cannot be loaded; the message says why.
        """
        view = view_of(strain_measure, stress_measure, material_axes, hypothesis, strain, stress)
        where = absolute(artifact_root)
        self._load(source_of(where, None, device, dtype, runtime, scheduler, view), engine)

    @classmethod
    def from_stub(
        cls: type[_Self],
        stub: str | os.PathLike[str],
        name: str,
        device: Any = None,
        dtype: Any = None,
        *,
        runtime: str = "auto",
        scheduler: Scheduler | None = None,
        strain_measure: str | None = None,
        stress_measure: str | None = None,
        material_axes: bool | None = False,
        hypothesis: str | None = "tridimensional",
        strain: str | None = None,
        stress: str | None = None,
    ) -> _Self:
        """Load a model of a HIT stub, the <name>_aoti.i that stands beside an artifact.

        What an older stub says of the solver holds.

        Parameters
        ----------
        stub
            The path of the stub.
        name
            The model in it.
        device : str or torch.device, optional
            As in Model.
        dtype : str, numpy or torch type, optional
            As in Model.
        runtime
            As in Model.
        scheduler
            As in Model.
        strain_measure
            As in Model.
        stress_measure
            As in Model.
        material_axes
            As in Model.
        hypothesis
            As in Model.
        strain
            As in Model.
        stress
            As in Model.

        Returns
        -------
        Model
            The model, of the class that this is called on.

        Raises
        ------
        FatalError
            There is no such file or model, or it cannot be loaded.
        """
        model = cls.__new__(cls)
        view = view_of(strain_measure, stress_measure, material_axes, hypothesis, strain, stress)
        source = source_of(absolute(stub), name, device, dtype, runtime, scheduler, view)
        model._load(source, "native")
        return model

    def _load(self, source: Source, engine: str) -> None:
        self._source = source
        self._engine = _opened(source, engine, self._kind)
        self._options_at_load = dict(self.options)

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._engine.closed

    def close(self) -> None:
        """Free the model. Arrays that were handed out stay valid. Closing twice is allowed."""
        self._engine.close()

    def __enter__(self: _Self) -> _Self:
        self._engine._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        # The artifact is opened again, and set as it is.
        self._engine._open()
        before, parameters = self._options_at_load, self.named_parameters()
        options = {name: value for name, value in self.options.items() if value != before[name]}
        values = {name: np.array(Tensor(value)) for name, value in parameters.items()}
        own = {name: value for name, value in vars(self).items() if name not in _LOADED}
        return _reopened, (type(self), self._engine.name, self._source, options, values, own)

    def __repr__(self) -> str:
        signature = f"({', '.join(self.inputs.names)}) -> ({', '.join(self.outputs.names)})"
        closed = ", closed" if self.closed else ""
        return f"<{type(self).__name__} {signature}, {self._dtype}{closed}>"

    def _repr_html_(self) -> str:
        """A table of the variables, for notebooks."""
        rows = [
            f"<tr><td>{kind}</td><td>{v.name}</td><td>{v.type}</td><td>{v.point_shape}</td></tr>"
            for kind, variables in (
                ("input", self.inputs),
                ("output", self.outputs),
                ("parameter", self.parameters),
            )
            for v in variables
        ]
        head = "<tr><th></th><th>name</th><th>type</th><th>shape of a point</th></tr>"
        return f"<table>{head}{''.join(rows)}</table>"

    def __call__(self, inputs: Mapping[str, Any] | None = None, **named: Any) -> dict[str, Any]:
        """Evaluate the model: forward() of a mapping, of keywords, or of both.

        Parameters
        ----------
        inputs : mapping of str to array, optional
            As in forward().
        named
            The same by keywords.

        Returns
        -------
        dict of str to array
            As forward() returns them.
        """
        return self.forward({**(inputs or {}), **named})

    def bind(
        self,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any] | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        derivatives: Mapping[str, Any] | bool | None = None,
        tangents: Mapping[str, Any] | None = None,
        jvps: Mapping[str, Any] | None = None,
        cotangents: Mapping[str, Any] | None = None,
        adjoints: Mapping[str, Any] | None = None,
        report: Mapping[str, Any] | bool | None = None,
    ) -> Call:
        """Bind the model to arrays, once, to evaluate it again and again with what is in them.

            call = model.bind({"strain": strain}, derivatives=True)
            for strain[...] in path:
                call()
                print(call.outputs["stress"], call.derivatives["stress"]["strain"])

        What is read at every run is `inputs`, `parameters`, `tangents` and `cotangents`: numpy
        arrays, torch tensors and other holders of `__dlpack__` where they are, or numbers, which
        stay. The batches of arrays must be equal; one value may serve all points.

        What is written is `outputs`, `derivatives`, `jvps`, `adjoints` and `report`: for each name
        an array, True for a new one, or None for nothing. New arrays are of the kind of what is
        bound, or of numpy if that kind cannot be written (jax).

        On a device that runs the text of the kernels, the arrays may be there, of pyopencl, torch
        or cupy: all of them, on one queue or stream, in rows or in columns, and new ones are, too.

        An array is used where it is: the values of a point must be dense and row-major, and the
        points at a constant distance, as in `state[:, 3:9]`. An output may be the very array of an
        input, and else overlaps no other.

        Parameters
        ----------
        inputs : mapping of str to array
            All inputs, (*B, *sub_batch_shape, *base_shape).
        outputs : mapping, optional
            Results by output; those that are not named get new arrays.
        parameters : mapping of str to array, optional
            Values, (*B, *base_shape), that replace stored ones in this call.
        derivatives : mapping or bool, optional
            {output: {input or parameter: block}}, or True for all blocks by inputs. There is a
            block for each point, also if it is the same for all.
        tangents : mapping of str to array, optional
            Directions by input; one that is missing is zero.
        jvps : mapping, optional
            Derivatives of outputs along the tangents; new arrays by default.
        cotangents : mapping of str to array, optional
            Weights by output; one that is missing is zero.
        adjoints : mapping, optional
            Gradients of sum(cotangent * output) by input or parameter, summed over the points if
            its array is one value; new arrays by default.
        report : mapping or bool, optional
            "status", "iterations", "residual_norm" and "suggested_cut", (*B,) each, or True for all
            of them; "status" by default. "rescue_solves", too, if it is named.

        Returns
        -------
        Call
            What evaluates them. It keeps the arrays alive, and does not need the model any longer.

        Raises
        ------
        FatalError
            An array does not fit; the message says which, and why.
        """
        return Call(
            self,
            {
                "inputs": inputs,
                "parameters": parameters,
                "tangents": tangents,
                "cotangents": cotangents,
                "outputs": outputs,
                "derivatives": derivatives,
                "jvps": jvps,
                "adjoints": adjoints,
                "report": report,
            },
        )


def _reopened(
    cls: type[_Self],
    engine: str,
    source: Source,
    options: Mapping[str, Any],
    parameters: Mapping[str, Any],
    attributes: Mapping[str, Any],
) -> _Self:
    """A model like one that was loaded before."""
    model = cls.__new__(cls)
    model._load(source, engine)
    model.options.update(options)
    for name, value in parameters.items():
        model.set_parameter(name, value)
    vars(model).update(attributes)
    return model


def _opened(source: Source, engine: str, kind: Kind) -> Opened:
    """Open what evaluates the model: the library, or Python."""
    if engine == "native":
        return Native(source, kind)
    if engine == "python":
        from neml2_capi.model.in_python import InPython

        return InPython(source, kind)
    raise FatalError(
        f"there is no engine {engine!r}; there are: native, python",
        lib.NEML2_ERROR_ARGUMENT,
        "engine",
    )
