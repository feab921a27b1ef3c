"""A residual as an implicit segment of an artifact, which Newton's method solves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from neml2_capi.export._artifact import Artifact, Json, input_pair, parameter_pair
from neml2_capi.export._law import Law
from neml2_capi.export._points import Shape, jacobian
from neml2_capi.export._variables import Pairs, Parameter, Variable

Entries = Sequence[Variable | Parameter]


class ImplicitSegment:
    """r(u, g, p) = 0 for the unknowns u, with givens g and parameters p.

    The packages take u and g as one vector each, (*B, size), in which the variables lie side by
    side in the order of their declaration, and then the parameters, with one value per point.
    """

    def __init__(
        self,
        artifact: Artifact,
        residual: Law,
        unknowns: Sequence[Variable],
        givens: Sequence[Variable],
        parameters: Sequence[Parameter],
    ) -> None:
        self._artifact = artifact
        self._residual = residual
        self._unknowns, self._givens, self._parameters = unknowns, givens, parameters
        self._n, self._m = _size(unknowns), _size(givens)
        self._shapes: list[Shape] = [(self._n,), (self._m,), *(p.shape for p in parameters)]

    def compile(self, by_given: Pairs, by_parameter: Pairs, predictor: str | None) -> Json:
        """Compile all packages; return the segment's metadata."""
        n, names = self._n, [f"{unknown.name}_residual" for unknown in self._unknowns]
        residuals = [
            Variable(name, u.type, u.shape) for name, u in zip(names, self._unknowns, strict=True)
        ]
        segment: Json = {
            "kind": "implicit",
            "residual_package": self._artifact.add("_residual", self._negative, self._shapes),
            "unknowns": [_inner(variable) for variable in self._unknowns],
            "givens": [self._given(variable) for variable in self._givens],
            "residuals": [_inner(variable) for variable in residuals],
            "unknown_group_infos": [_group(self._unknowns)],
            "given_group_infos": [_group(self._givens)],
            "residual_group_infos": [_group(residuals)],
            "param_inputs": [parameter.name for parameter in self._parameters],
            "max_substepping_level": 0,
            "incremental_variables": [],
            "jacobian_package": self._artifact.add("_jacobian", self._linearized, self._shapes),
            "solve_package": self._artifact.add_batch("_solve", _solve, [(n, n), (n,)]),
        }
        if by_given:
            segment |= self._sensitivity_of_givens(by_given)
        if by_parameter:
            segment |= self._sensitivity_of_parameters(by_parameter)
        if predictor == "history":
            segment |= self._history_predictor()
        return segment

    # What the packages compute, at one point

    def _r(self, u: Any, g: Any, *parameters: Any) -> Any:
        """The residual as one vector."""
        values = (*_parts(u, self._unknowns), *_parts(g, self._givens), *parameters)
        return torch.cat([part.reshape(-1) for part in self._residual(*values)])

    def _negative(self, *values: Any) -> Any:
        return -self._r(*values)

    def _linearized(self, *values: Any) -> tuple[Any, Any]:
        """(dr/du, -r)."""
        r, (operator,) = jacobian(self._r, [0])(*values)
        return operator, -r

    def _by_givens(self, *values: Any) -> Any:
        """dr/dg."""
        _, (operator,) = jacobian(self._r, [1])(*values)
        return operator

    def _by_parameters(self, *values: Any) -> tuple[Any, Any]:
        """(dr/du, dr/dp), with the parameters side by side."""
        positions = [0, *range(2, len(values))]
        _, blocks = jacobian(self._r, positions)(*values)
        return blocks[0], torch.cat([block.reshape(self._n, -1) for block in blocks[1:]], dim=1)

    # Derivatives of the solution, by the implicit function theorem: du/dx = -(dr/du)^-1 dr/dx

    def _sensitivity_of_givens(self, pairs: Pairs) -> Json:
        places = _places(pairs, self._unknowns, self._givens)
        return {
            "jacobian_given_package": self._artifact.add(
                "_jacobian_given", self._by_givens, self._shapes
            ),
            "solve_ift_package": self._solve_blocks("_solve_ift", places, self._m),
            "input_sensitivity": {"kind": "direct"},
            "jacobian_pairs": [input_pair(*place) for place in places],
        }

    def _sensitivity_of_parameters(self, pairs: Pairs) -> Json:
        places = _places(pairs, self._unknowns, self._parameters)
        columns = _size(self._parameters)
        return {
            "dr_dparam_package": self._artifact.add(
                "_dr_dparam", self._by_parameters, self._shapes
            ),
            "solve_param_package": self._solve_blocks("_solve_param", places, columns),
            "param_sensitivity": {"kind": "direct"},
            "param_jacobian_pairs": [parameter_pair(*place) for place in places],
        }

    def _solve_blocks(self, part: str, places: list[Any], columns: int) -> str:
        def blocks(operator: Any, right: Any) -> tuple[Any, ...]:
            x = -torch.linalg.solve(operator, right)
            return tuple(
                x[:, row : row + out.size, column : column + given.size].reshape(
                    (-1, *out.shape, *given.shape)
                )
                for out, given, row, column in places
            )

        return self._artifact.add_batch(part, blocks, [(self._n, self._n), (self._n, columns)])

    # The first guess

    def _history_predictor(self) -> Json:
        """An unknown `x` begins at `x~1`, if this is given."""
        given = {variable.name for variable in self._givens}
        kept = [unknown for unknown in self._unknowns if f"{unknown.name}~1" in given]
        if not kept:
            return {}
        shapes = [unknown.shape for unknown in kept]
        return {
            "predictor_package": self._artifact.add_batch("_predictor", _same, shapes),
            "predictor_inputs": [{"name": f"{unknown.name}~1"} for unknown in kept],
            "predictor_outputs": [{"name": unknown.name} for unknown in kept],
        }

    def _given(self, variable: Variable) -> Json:
        """A given, and what it is in an increment: the old or new value of what."""
        givens = {given.name for given in self._givens}
        name, old = variable.name, f"{variable.name}~1"
        current = name.removesuffix("~1")
        role, pair = "static", None
        if name != current and current in {unknown.name for unknown in self._unknowns}:
            role, pair = "old_state", current
        elif name != current and current in givens:
            role, pair = "old_force", current
        elif old in givens:
            role, pair = "cur_force", old
        return {**_inner(variable), "role": role, "pair": pair}


def _solve(operator: Any, right: Any) -> Any:
    """The Newton step (dr/du)^-1 (-r)."""
    return torch.linalg.solve(operator, right.unsqueeze(-1)).squeeze(-1)


def _same(*values: Any) -> tuple[Any, ...]:
    return tuple(value.clone() for value in values)


def _size(entries: Entries) -> int:
    return sum(entry.size for entry in entries)


def _parts(vector: Any, variables: Sequence[Variable]) -> list[Any]:
    parts = torch.split(vector, [variable.size for variable in variables])
    return [part.reshape(v.shape) for part, v in zip(parts, variables, strict=True)]


def _offsets(entries: Entries) -> dict[str, int]:
    offsets, offset = {}, 0
    for entry in entries:
        offsets[entry.name] = offset
        offset += entry.size
    return offsets


def _places(pairs: Pairs, unknowns: Sequence[Variable], entries: Entries) -> list[Any]:
    """Of each pair: its output and input, and the row and column where its block begins."""
    rows, columns = _offsets(unknowns), _offsets(entries)
    out = {unknown.name: unknown for unknown in unknowns}
    of = {entry.name: entry for entry in entries}
    return [(out[o], of[i], rows[o], columns[i]) for o, i in pairs]


def _inner(variable: Variable) -> Json:
    return {
        "name": variable.name,
        "var_size": variable.size,
        "sub_batch_shape": [],
        "base_shape": list(variable.shape),
    }


def _group(variables: Sequence[Variable]) -> Json:
    """All of them in one vector."""
    return {
        "structure": "dense",
        "sub_batch_shape": [],
        "var_names": [variable.name for variable in variables],
        "per_var_info": [_inner(variable) for variable in variables],
    }
