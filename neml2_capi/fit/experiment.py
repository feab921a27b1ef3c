"""One test of a material: what was prescribed, and what was measured."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi.driver.arguments import check_text, is_number, wrong
from neml2_capi.fit import cycles
from neml2_capi.fit.columns import check_labels, components, keyed, rowwise, times
from neml2_capi.fit.tables import read_csv, read_frame

Array = NDArray[np.float64]

#: What residuals are made of.
LOSSES = ("values", "curve", "peaks", "ratcheting")
#: More than any strain of a law of small strains: it is in percent.
_LARGEST_STRAIN = 0.4


@dataclass(frozen=True)
class Experiment:
    """A test in which a strain or a stress was prescribed, and the other one measured.

    Stresses that are neither prescribed nor beside a prescribed strain vanish: a strain xx alone is
    a tension test, xx and xy one of a tube. What was measured may have NaN: it was not seen there.
    """

    #: In messages and figures.
    name: str
    #: (n,) increasing, s.
    t: Array
    #: Components over time by name, the tensor's: {"xx": (n,)}.
    strain: dict[str, Array]
    #: As strain, in the units of the model, MPa mostly.
    stress: dict[str, Array]
    #: "strain" or "stress": which is prescribed.
    control: str = "strain"
    #: What residuals are made of: some of "values", "curve", "peaks", "ratcheting".
    loss: tuple[str, ...] = ("values",)
    #: Of the squares of its residuals.
    weight: float = 1.0
    #: Standard deviation of what was measured, one or (n,); None if it is not known.
    deviation: Any = None
    #: Other inputs of the model, constant or (n,): {"temperature": 293.15}.
    forces: dict[str, Any] = field(default_factory=dict)
    #: By which parameters may have values of their own: {"temperature": 20}.
    labels: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        name: str,
        *,
        strain: Any = None,
        stress: Any = None,
        t: Any = None,
        rate: float | None = None,
        control: str = "strain",
        loss: str | tuple[str, ...] = "values",
        weight: float = 1.0,
        deviation: Any = None,
        forces: Mapping[str, Any] | None = None,
        labels: Mapping[str, Any] | None = None,
    ) -> Experiment:
        """Make an experiment of arrays.

        Parameters
        ----------
        name
            In messages and figures.
        strain : array (n,) or mapping of str to array
            Components by name, or xx alone. Rows in which the prescribed one or the time is NaN are
            left out; NaN of the other is not fitted.
        stress : array (n,) or mapping of str to array
            Components by name, or xx alone. Rows in which the prescribed one or the time is NaN are
            left out; NaN of the other is not fitted.
        t : array (n,), optional
            Increasing times, s. If the first prescribed value is not 0, a row of zeros is put
            before.
        rate
            Instead of times: how fast the prescribed one goes, 1/s or MPa/s. A row in which it
            stays takes a thousandth of the mean step. Without both, a row takes 1 s.
        control
            "strain" or "stress": which of them is prescribed.
        loss
            "values": what was measured, at each time; "curve": the distance of each point from the
            model's stress over strain, both scaled by their range; "peaks": values at reversals
            of what is prescribed alone; "ratcheting": the mean of the extremes of each cycle.
            Several may be given; deviations count a row once, though several look at it.
        weight
            Of the squares of its residuals; with 0 the test is only drawn.
        deviation : float or array (n,), optional
            Standard deviation of what was measured, in its units; by default residuals are divided
            by the greatest measured value, and the scatter is estimated from them. All tests of a
            fit have one, or none.
        forces : mapping, optional
            Other inputs of the model, constant or (n,).
        labels : mapping, optional
            What Parameter(per=...) distinguishes: {"temperature": 20}; a value is a text, a finite
            number, or True or False.

        Returns
        -------
        Experiment
            It, checked.

        Raises
        ------
        FatalError
            A name, length or number is wrong.
        """
        check_text("name", name)
        if control not in ("strain", "stress"):
            raise wrong("control", f"of {name!r} must be 'strain' or 'stress'; got {control!r}")
        wanted = tuple(loss) if isinstance(loss, list | tuple) else (loss,)
        if not wanted:
            raise wrong("loss", f"of {name!r} is empty; expected one of {', '.join(LOSSES)}")
        for each in wanted:
            if each not in LOSSES:
                raise wrong("loss", f"of {name!r} must be of {', '.join(LOSSES)}; got {each!r}")
            if wanted.count(each) > 1:
                raise wrong("loss", f"of {name!r} has {each!r} twice; say weight = 2 instead")
        for argument, mapping in (("forces", forces), ("labels", labels)):
            if mapping is not None and not isinstance(mapping, Mapping):
                raise wrong(argument, f"of {name!r} must be a mapping of names; got {mapping!r}")
        check_labels(name, labels or {})
        strains, stresses = components(name, "strain", strain), components(name, "stress", stress)
        prescribed = strains if control == "strain" else stresses
        measured = stresses if control == "strain" else strains
        if not prescribed or not measured:
            raise wrong(
                "strain" if not strains else "stress",
                f"of {name!r} is missing: one is prescribed, and the other was measured",
            )
        for part in measured:
            if part not in prescribed and (control == "strain" or "curve" in wanted):
                raise wrong(
                    "stress" if control == "strain" else "loss",
                    f"{part} of {name!r} was measured, and no strain {part} is prescribed: it "
                    "vanishes in the model"
                    if control == "strain"
                    else f"of {name!r} has 'curve', stress over strain, and there is no stress "
                    f"{part}: say 'values'",
                )
        first = next(iter(prescribed.values()))
        time = times(name, t, rate, first)
        for kind, values in (("strain", strains), ("stress", stresses)):
            for part, value in values.items():
                if value.shape != time.shape:
                    raise wrong(
                        kind,
                        f"{part} of {name!r} has the shape {value.shape}; expected "
                        f"{time.shape}, as many values as the test has rows",
                    )
        rows = np.isfinite(time) & np.all([np.isfinite(v) for v in prescribed.values()], axis=0)
        columns = {"t": time, **keyed("strain", strains), **keyed("stress", stresses)}
        kept = {key: value[rows] for key, value in columns.items()}
        others = {
            key: rowwise("forces", f"{key} of {name!r}", value, rows)
            for key, value in (forces or {}).items()
        }
        scatter = None
        if deviation is not None:
            scatter = rowwise("deviation", f"of {name!r}", deviation, rows)
            if not np.all(np.asarray(scatter) > 0):
                raise wrong("deviation", f"of {name!r} must be above 0; got {np.min(scatter):g}")
        if not is_number(weight) or not 0 <= weight < np.inf:
            raise wrong(
                "weight", f"of {name!r} must be a finite number, 0 at least; got {weight!r}"
            )
        if len(kept["t"]) == 0:
            raise wrong(control, f"of {name!r} has no number at all")
        backward = kept["t"][1:] <= kept["t"][:-1]
        if backward.any():
            place = int(np.argmax(backward))
            before, after = np.flatnonzero(rows)[place : place + 2]
            raise wrong(
                "t",
                f"of {name!r} does not increase after row {before}, from {time[before]:g} to "
                f"{time[after]:g}: sort the rows, or leave repeated ones out",
            )
        starts = [kept[f"{control}.{part}"][0] for part in prescribed]
        if any(abs(value) > 0 for value in starts):  # the state before is without strain and stress
            kept, others, scatter = _from_zero(kept, others, scatter, measured, control)
        if len(kept["t"]) < 2:
            raise wrong("t", f"of {name!r}: expected two rows at least")
        kinds = ("strain.", "stress.")
        _check_strain(name, *({k: v for k, v in kept.items() if k.startswith(x)} for x in kinds))
        return cls(
            name,
            kept["t"],
            {part: kept[f"strain.{part}"] for part in strains},
            {part: kept[f"stress.{part}"] for part in stresses},
            control,
            wanted,
            float(weight),
            scatter,
            others,
            dict(labels or {}),
        )

    @classmethod
    def from_csv(
        cls,
        file: str | os.PathLike[str],
        *,
        columns: Mapping[str, str] | None = None,
        units: Mapping[str, str] | None = None,
        decimal: str = ".",
        separator: str | None = None,
        name: str = "",
        **options: Any,
    ) -> Experiment:
        """Read an experiment from a text file with a row of names.

        Parameters
        ----------
        file
            The file; empty fields are missing values, and lines that begin with # are left out,
            except for names that stand in the last one before the numbers.
        columns : mapping of str to str, optional
            The column of "t", "strain", "stress", or of a component, "strain.xy"; by default of the
            same name.
        units : mapping of str to str, optional
            What the file has, {"stress": "GPa", "strain": "%", "t": "min"}; by default what stands
            in the column's name, "stress [GPa]" or "stress / GPa", or in a line under the names;
            else MPa, 1 and s, in which the model is.
        decimal
            "." or ",".
        separator
            Between fields; by default what the first line has: a tab, a semicolon or a comma.
        name
            By default the file's.
        options
            Others of of().

        Returns
        -------
        Experiment
            It, checked.

        Raises
        ------
        FatalError
            The file cannot be read, or a column is missing; the message has the line.
        """
        table = read_csv(file, columns or {}, units or {}, decimal, separator)
        named = name or Path(file).stem
        return cls.of(named, **{**table, **options})

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        columns: Mapping[str, str] | None = None,
        units: Mapping[str, str] | None = None,
        name: str = "experiment",
        **options: Any,
    ) -> Experiment:
        """Read an experiment from a data frame, or a mapping of columns.

        Parameters
        ----------
        frame
            Of pandas or polars, or a mapping of names to arrays.
        columns
            As of from_csv().
        units
            As of from_csv().
        name
            In messages and figures.
        options
            Others of of().

        Returns
        -------
        Experiment
            It, checked.

        Raises
        ------
        FatalError
            A column is missing, or has no numbers.
        """
        return cls.of(name, **{**read_frame(frame, columns or {}, units or {}), **options})

    @property
    def prescribed(self) -> dict[str, Array]:
        """Components over time that the test was driven by."""
        return self.strain if self.control == "strain" else self.stress

    @property
    def measured(self) -> dict[str, Array]:
        """Components over time that were seen, NaN if they were not."""
        return self.stress if self.control == "strain" else self.strain

    @property
    def seen(self) -> str:
        """The name of what was measured: "stress", or "strain" if that was not prescribed."""
        return "stress" if self.control == "strain" else "strain"

    @property
    def reversals(self) -> NDArray[np.int64]:
        """The rows at which the first prescribed component turns, with the last row."""
        return cycles.reversals(next(iter(self.prescribed.values())))


def _from_zero(
    kept: dict[str, Array],
    others: dict[str, Any],
    scatter: Any,
    measured: Mapping[str, Array],
    control: str,
) -> tuple[dict[str, Array], dict[str, Any], Any]:
    """Put a row of zeros before, in which nothing was measured."""
    seen = "stress" if control == "strain" else "strain"
    times = kept["t"]
    length = times[1] - times[0] if len(times) > 1 else 1.0
    before = 0.0 if times[0] > 0 else times[0] - length
    first = dict.fromkeys(kept, 0.0) | {f"{seen}.{part}": np.nan for part in measured}
    first["t"] = before
    kept = {key: np.concatenate([[first[key]], value]) for key, value in kept.items()}
    others = {
        key: np.concatenate([value[:1], value]) if np.ndim(value) else value
        for key, value in others.items()
    }
    if scatter is not None and np.ndim(scatter):
        scatter = np.concatenate([scatter[:1], scatter])
    return kept, others, scatter


def _check_strain(name: str, strains: Mapping[str, Array], stresses: Mapping[str, Array]) -> None:
    for key, value in strains.items():
        largest = np.nanmax(np.abs(value), initial=0.0)
        if largest > _LARGEST_STRAIN:
            others = [np.nanmax(np.abs(x), initial=0.0) for x in stresses.values()]
            if largest > 100 * _LARGEST_STRAIN and max(others) < _LARGEST_STRAIN:
                raise wrong(
                    "strain",
                    f"of {name!r} goes to {largest:g}, and its stress to {max(others):g}: they "
                    "seem to be exchanged",
                )
            word, unit, by = "percent", "%", "100"
            if largest > 100 * _LARGEST_STRAIN:
                word, unit, by = "microstrain", "microstrain", "1e6"
            raise wrong(
                "strain",
                f"of {name!r} goes to {largest:g} ({key}), which is {100 * largest:g} percent: it "
                f'seems to be in {word}. Divide it by {by}, or say units = {{strain = "{unit}"}}',
            )
