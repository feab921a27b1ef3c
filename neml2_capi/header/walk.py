"""The walk of a point through the segments of a model, as statements; as capi/kernels/layout.h."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from neml2_capi.engine.description import Key, Promoted, point_shape
from neml2_capi.header.definitions import Definition
from neml2_capi.header.groups import Groups, Part, block_size, sub_matrices
from neml2_capi.header.kernels import Kernel
from neml2_capi.header.links import Links, Local, local
from neml2_capi.header.newton import Run, Search, System, pivoting
from neml2_capi.header.parts import Parts
from neml2_capi.header.statements import Place, Statements
from neml2_capi.kernels.folder import KernelError
from neml2_capi.model.model import Model

#: The setting that has a bit for each input, and behind them each parameter, to derive by.
DERIVATIVES = "derivatives"


class Walk:
    """Statements for the values of a model, and for the derivatives of its segments.

    Inputs stand side by side in x, parameters in p.
    """

    def __init__(
        self,
        model: Model,
        described: Any,
        kernels: Mapping[str, Kernel],
        missing: Mapping[str, str],
        derive: bool,
        by_parameters: bool,
    ) -> None:
        self.described, self._kernels, self._missing = described, kernels, missing
        self._derive, self.by_parameters = derive, derive and by_parameters
        self._searches = model.options["ls_max_iters"] > 1
        self.text = Statements()
        self.values: dict[str, Place] = {}
        self.parameters: dict[str, Place] = {}
        #: Of the tangent: all inputs side by side, then all parameters if they have columns.
        self.width = 0
        self.functions: list[Definition] = []
        for array, of, names, places in (
            ("x", model.inputs, described.inputs, self.values),
            ("p", model.parameters, described.parameters, self.parameters),
        ):
            offset = 0
            for variable, inside in zip(of, names, strict=True):
                size = math.prod(point_shape(variable))
                places[inside.name] = Place(array, offset, size)
                offset += size
            if array == "x" or self.by_parameters:
                self.width += offset
        #: Those that the caller gives: a segment may make a value of the same name.
        self.inputs = dict(self.values)

    def column(self, key: Key) -> tuple[int, int]:
        """The first column of an input or a parameter in the tangent, and how many it has."""
        if isinstance(key, Promoted):
            place = self.parameters[key.parameter]
            inputs = sum(given.components for given in self.inputs.values())
            return inputs + place.offset, place.components
        return self.inputs[key].offset, self.inputs[key].components

    def wants(self, key: Key) -> str:
        """The condition of what derives with respect to an input or a parameter."""
        names = [*self.inputs, *(Promoted(name) for name in self.parameters)]
        return f"((rules.{DERIVATIVES} >> {min(names.index(key), 63)}) & 1) != 0"

    def value(self, name: str) -> Place:
        if name not in self.values:
            raise KernelError(
                f"no segment makes {name} before it is used: the artifact is damaged; compile the "
                "model again"
            )
        return self.values[name]

    def add(self, segment: Any) -> Links:
        """The statements of a segment, and what it does to derivatives."""
        self.text.line("")
        if segment.kind == "forward":
            return self._add_forward(segment)
        return self._add_implicit(segment)

    def _kernel(self, package: str) -> Kernel:
        stem = package.removesuffix(".pt2")
        if stem not in self._kernels:
            reason = self._missing.get(stem, "compile the model again with --kernels auto")
            raise KernelError(f"{package} has no kernel, and a header is made of kernels: {reason}")
        return self._kernels[stem]

    def _run(self, package: str, inputs: Sequence[Place], outputs: Sequence[Place] = ()) -> Run:
        """A kernel with its arrays; outputs that have no place yet get one."""
        kernel, made = self._kernel(package), list(outputs)
        for n in range(len(outputs), len(kernel.outputs)):
            made.append(self.text.place(f"{kernel.name}_{n}", kernel.outputs[n]))
        for places, sizes in ((inputs, kernel.inputs), (made, kernel.outputs)):
            if tuple(place.components for place in places) != sizes:
                raise _of_other_arrays(package)
        kept = self.text.place(f"{kernel.name}_kept", kernel.kept) if kernel.kept else None
        return Run(kernel, list(inputs), made, kept)

    def _arguments(self, graph: Any) -> list[Place]:
        return [*map(self.value, graph.inputs), *(self.parameters[n] for n in graph.parameters)]

    def _add_forward(self, segment: Any) -> Links:
        text, links = self.text, Links()
        given = self._arguments(segment)
        run = self._run(segment.package, given)
        if len(run.outputs) != len(segment.outputs):
            raise _of_other_arrays(segment.package)
        pairs = segment.pairs if self._derive and segment.jacobian_package else []
        if pairs:
            derived = self._run(segment.jacobian_package, given, run.outputs)
            if len(derived.outputs) != len(run.outputs) + len(pairs):
                raise _of_other_arrays(segment.jacobian_package)
            text.begin("if (derive)")
            derived.prepare(text)
            derived.call(text)
            text.end("else")
        run.prepare(text)
        run.call(text)
        if pairs:
            text.end()
        self.values.update(zip(segment.outputs, run.outputs, strict=True))
        for number, pair in enumerate(pairs, len(run.outputs)):
            columns = self.value(pair.input).components
            links.locals.append(self._block(pair, pair.input, derived.outputs[number], columns))
        if self.by_parameters and segment.parameter_jacobian_package:
            links.locals += self._by_parameters(segment, given)
        return links

    def _block(self, pair: Any, key: Key, block: Place, columns: int) -> Local:
        rows = self.value(pair.output).components
        if block.components != rows * columns:
            raise KernelError(
                f"d {pair.output} / d {pair.input} has sub-batch axes, and a header has no "
                "such derivatives: write it with values alone"
            )
        return Local(pair.output, key, 0, block, columns, rows, columns, 0)

    def _by_parameters(self, segment: Any, given: Sequence[Place]) -> list[Local]:
        """The derivatives of a forward segment with respect to parameters."""
        text, pairs = self.text, segment.parameter_pairs
        run = self._run(segment.parameter_jacobian_package, given)
        if len(run.outputs) != len(pairs):
            raise _of_other_arrays(segment.parameter_jacobian_package)
        text.begin("if (derive)")
        run.prepare(text)
        run.call(text)
        text.end()
        return [
            self._block(pair, Promoted(pair.input), block, self.parameters[pair.input].components)
            for pair, block in zip(pairs, run.outputs, strict=True)
        ]

    def _add_implicit(self, segment: Any) -> Links:
        text = self.text
        if not segment.jacobian_package:
            raise KernelError(f"{segment.residual_package} has no Jacobian: compile it with one")
        parts = None
        if segment.max_substepping_level > 0:
            parts = Parts(segment.substeps, segment.max_substepping_level, self.values, text)
            parts.begin()
            self.values.update(parts.values)
        self._predict(segment)
        stem = segment.residual_package.removesuffix(".pt2").removesuffix("_residual")
        u, g, r = (Groups(x) for x in (segment.unknowns, segment.givens, segment.residuals))
        if r.size != u.size or not u.size:
            raise KernelError(
                f"{segment.residual_package} has more or fewer equations than unknowns"
            )
        givens = text.place(f"{stem}_givens", g.size)
        parameters = [self.parameters[name] for name in segment.parameters]

        def operands(at: Place) -> list[Place]:
            return [*_split(at, u), *_split(givens, g), *parameters]

        system = self._system(segment, stem, u, r, operands)
        for part in g.parts:
            for value, packed in _pieces(part, self.value(part.name), givens):
                text.copy(value, packed)
        for part in u.parts:
            guess = self._guess(part.name, part.size)
            for value, packed in _pieces(part, guess, system.u):
                text.copy(value, packed)
        system.solve(text)
        if parts:
            parts.judge()
        for part in u.parts:
            self.values[part.name] = text.place(part.name, part.size)
            for value, packed in _pieces(part, self.values[part.name], system.u):
                text.copy(packed, value)
        links = Links(system=system, parts=parts)
        if self._derive:
            links.locals = self._sensitivity(segment, system, operands(system.u), r, g)
        return links

    def keeps_factors(self, segment: Any) -> bool:
        """Tell whether the Newton step of an implicit segment factors its matrix once for all."""
        kernel = self._kernels.get(segment.solve_package.removesuffix(".pt2"))
        return bool(kernel and kernel.prepares)

    def end(self, links: Links) -> None:
        """The end of a segment, behind its derivatives."""
        text = self.text
        if links.parts:
            links.parts.end(self.values)
            self.values.update(links.parts.wholes)
        if not links.system:
            return
        links.system.report(text)
        text.begin("if (of_system.status != ok)")
        for part in links.system.groups.parts:
            text.line(f"invalidate({self.values[part.name].pointer}, {part.size});")
        text.end()

    def _guess(self, name: str, size: int) -> Place:
        """Where an unknown begins: at zero if nothing made it before."""
        if name not in self.values:
            self.values[name] = self.text.place(f"{name}_guess", size)
            self.text.copy(None, self.values[name])
        return self.values[name]

    def _system(self, segment: Any, stem: str, u: Groups, r: Groups, operands: Any) -> System:
        """The arrays and kernels of Newton's method."""
        text = self.text
        unknowns, residual = text.place(f"{stem}_u", u.size), text.place(f"{stem}_r", r.size)
        step = text.place(f"{stem}_step", u.size)
        jacobian = self._kernel(segment.jacobian_package)
        outputs: list[Place] = []
        for row in r.all:
            for column in u.all:
                n = len(outputs)
                size = jacobian.outputs[n] if n in jacobian.sparse else block_size(row, column)
                outputs.append(text.place(f"{stem}_jacobian_{n}", size))
        known = len(outputs) + len(r.all)
        outputs += _split(residual, r)
        run = self._run(segment.jacobian_package, operands(unknowns), outputs)
        if len(run.outputs) - known != (2 if jacobian.auxiliaries else 0):
            raise _of_other_arrays(segment.jacobian_package)
        newton_step = None
        if segment.solve_package.removesuffix(".pt2") in self._kernels:
            made = [*_split(step, u), text.place(f"{stem}_trusted", 1)]
            newton_step = self._run(segment.solve_package, run.outputs, made)
        levels, searches = segment.max_substepping_level, self._searches
        trial = text.place(f"{stem}_trial", u.size) if levels or searches else None
        search = None
        if trial and searches:
            of_trial = text.place(f"{stem}_trial_r", u.size)
            run_of_trial = self._run(segment.residual_package, operands(trial), _split(of_trial, r))
            search = Search(of_trial, run_of_trial)
        function, blocks = pivoting(f"{stem}_pivoting", jacobian, r, u)
        self.functions.append(function)
        given = ", ".join(run.outputs[k].pointer for k in blocks)
        solve = f"{stem}_pivoting({given}"
        return System(
            stem, u, unknowns, residual, step, run, solve, newton_step, trial, search, levels
        )

    def _predict(self, segment: Any) -> None:
        text, graph, feedback = self.text, segment.predictor, segment.feedback
        if not graph:
            return
        if feedback:
            first = text.place(feedback.input, math.prod(point_shape(feedback)))
            self.values[feedback.input] = first
            text.copy(None, first)
        unknowns = {v.name: v for group in segment.unknowns for v in group.variables}
        for name in graph.inputs:
            if name in unknowns:
                self._guess(name, math.prod(point_shape(unknowns[name])))
        run = self._run(graph.package, self._arguments(graph))
        self.values.update(zip(graph.outputs, run.outputs, strict=True))
        run.prepare(text)
        if not feedback or feedback.iterations == 1:
            run.call(text)
            return
        text.begin("for (int pass = 1;; ++pass)")
        run.call(text)
        text.line(f"if (pass >= {feedback.iterations}) break;")
        text.copy(self.value(feedback.output), self.value(feedback.input))
        text.end()

    def _sensitivity(
        self, segment: Any, system: System, operands: list[Place], rows: Groups, givens: Groups
    ) -> list[Local]:
        """dr/dg, in blocks of groups."""
        text, found = self.text, []
        if not segment.given_sensitivity or segment.given_sensitivity.block_package:
            raise KernelError(
                f"{segment.residual_package}: its derivatives with respect to its givens were not "
                "compiled; compile the model with -d, or write values alone"
            )
        run = self._run(segment.given_sensitivity.operator_package, operands)
        text.begin("if (derive)")
        if system.search:
            system.run.call(text)
        run.call(text)
        pairs = [(row, j, column) for row in rows.all for j, column in enumerate(givens.all)]
        for number, (row, j, column) in enumerate(pairs):
            block = run.outputs[number]
            if number in run.kernel.sparse:
                stored = run.kernel.sparse[number]
                whole = text.place(f"{system.name}_by_givens_{number}", block_size(row, column))
                text.copy(None, whole)
                for slot, to in enumerate(stored):
                    text.line(f"{whole.element(to)} = {block.element(slot)};")
                block = whole
            for matrix in sub_matrices(row, column):
                found += [local(block, matrix, part) for part in givens.parts if part.group == j]
        if self.by_parameters and segment.parameter_sensitivity:
            found += self._parameter_sensitivity(segment, operands, rows)
        text.end()
        return found

    def _parameter_sensitivity(
        self, segment: Any, operands: list[Place], rows: Groups
    ) -> list[Local]:
        """dr/dp, a matrix with the columns of all parameters; as add_parameter_sensitivity()."""
        sensitivity = segment.parameter_sensitivity
        if not sensitivity.operator_package or any(group.sites != 1 for group in rows.all):
            raise KernelError(
                f"{segment.residual_package}: its derivatives with respect to parameters are of "
                "an old form, or have sites"
            )
        run = self._run(sensitivity.operator_package, operands)
        if len(run.outputs) != 2:
            raise _of_other_arrays(sensitivity.operator_package)
        run.prepare(self.text)
        run.call(self.text)
        block = run.outputs[1]
        width = block.components // rows.size
        columns = {pair.input: pair.column for pair in sensitivity.pairs}
        return [
            Local(
                "",
                Promoted(name),
                0,
                block.from_(column, 0),
                width,
                rows.size,
                self.parameters[name].components,
                0,
            )
            for name, column in columns.items()
        ]


def _of_other_arrays(package: str) -> KernelError:
    return KernelError(
        f"{package}: its kernel takes or returns other arrays than the metadata says; compile the "
        "model again"
    )


def _split(place: Place, groups: Groups) -> list[Place]:
    return [place.from_(group.first, group.size) for group in groups.all]


def _pieces(part: Part, value: Place, packed: Place) -> list[tuple[Place, Place]]:
    """The places of a variable: its own, and those in packed groups."""
    if value.components != part.size:
        raise KernelError(
            f"{part.name} has another size before: the artifact is damaged; compile the model again"
        )
    if part.is_whole:
        return [(value, packed.from_(part.first, part.size))]
    return [
        (
            value.from_(k * part.piece, part.piece),
            packed.from_(part.first + k * part.apart, part.piece),
        )
        for k in range(part.pieces)
    ]
