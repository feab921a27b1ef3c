"""Settings of a model: its parameters, and the options of its solver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neml2_capi._ffi.options import Options
from neml2_capi.model.described import Described
from neml2_capi.model.parameters import Parameters


class Settings(Described):
    """Parameters and options of a model."""

    def __getitem__(self, name: str) -> Any:
        """A view of a parameter, as of named_parameters()."""
        return self.named_parameters()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Replace a parameter, as set_parameter() does."""
        self.set_parameter(name, value)

    if not TYPE_CHECKING:  # which would then take any attribute

        def __setattr__(self, name: str, value: Any) -> None:
            # An attribute of this name would look like the parameter or the option, and be neither.
            ready = "_engine" in vars(self) and not self._engine.closed
            if ready and not name.startswith("_") and not hasattr(type(self), name):
                own = {each.rpartition(".")[2] for each in self.parameters.names}
                where = "model" if name in own else "model.options" if name in self.options else ""
                if where:
                    raise AttributeError(
                        f"{name!r} is no attribute: {where}[{name!r}] = value sets it"
                    )
            super().__setattr__(name, value)

    # It is no sequence of parameters, which Python would take it for by __getitem__().
    __iter__ = None
    __contains__ = None

    def _ipython_key_completions_(self) -> list[str]:
        return self.parameters.names

    def named_parameters(self) -> Parameters:
        """Return the parameters as a live mapping of views: writing to one changes the model.

        `model.named_parameters()["elasticity.E"][...] = 100e3` takes effect from the next call on.

        Returns
        -------
        Parameters
            Views by name, (*B, *base_shape) each.
        """
        return Parameters(self._engine)

    def set_parameter(self, name: str, value: Any) -> None:
        """Replace a parameter by a copy of a value.

        Parameters
        ----------
        name
            Its qualified name, or the last component if that is unique.
        value : array
            The new value, (*B, *base_shape), where B broadcasts with the batch of the inputs.

        Raises
        ------
        FatalError
            There is no such parameter, or a shape or type is wrong; nothing was changed.
        """
        self._engine.set_parameter(self.parameters.resolve(name), value)

    @property
    def options(self) -> Options:
        """The solver options as a live mapping: `model.options["atol"] = 1e-12`."""
        return self._engine.options

    def set_solver_config(
        self,
        atol: float,
        rtol: float,
        miters: int,
        ls_type: str,
        ls_max_iters: int,
        ls_cutback: float,
        ls_c: float,
        substep_del_tol: float = 1e-6,
    ) -> None:
        """Set the options of the Newton solve; when one is refused, none is changed.

        Parameters
        ----------
        atol
            The bound of the residual norm.
        rtol
            The bound of the residual norm relative to the first one.
        miters
            The bound of iterations: at most `miters` - 1 steps are made.
        ls_type
            The line search, "BACKTRACKING" or "STRONG_WOLFE".
        ls_max_iters
            The bound of its trials, of which there are fewer; 1 is no line search.
        ls_cutback
            What the step length is divided by after each trial.
        ls_c
            The fraction of the expected decrease that a trial must reach.
        substep_del_tol
            The bound of the relative Newton step in the substepping solve.

        Raises
        ------
        FatalError
            A value is out of its bounds or choices.
        """
        self.options.update(
            {
                "atol": atol,
                "rtol": rtol,
                "miters": miters,
                "ls_type": ls_type,
                "ls_max_iters": ls_max_iters,
                "ls_cutback": ls_cutback,
                "ls_c": ls_c,
                "substep_del_tol": substep_del_tol,
            }
        )
