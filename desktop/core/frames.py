"""Tables that the program returns as pandas DataFrames: their columns, dtypes and units.

`TABLES` declares them; `frame` builds a table from its declaration, with the units in
``DataFrame.attrs["units"]`` (base units: s, proc, proc·s, B; "1" for a part of a whole; "" without a unit).
pandas is loaded when the first table is built. The page ``tables.md`` of the handbook lists the same, which a
test checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias, Union

import numpy as np
from numpy.typing import DTypeLike

from desktop.core.arrays import AnyArray
from desktop.core.labels import ACCOUNTS

if TYPE_CHECKING:
    from pandas import DataFrame

#: Integers, floats (NaN: not known), Booleans, texts; "any": numbers or texts.
DType = Literal["int64", "float64", "bool", "text", "any"]


@dataclass(frozen=True)
class Field:
    """A column: its name in the frame, its dtype, its base unit, its meaning."""

    name: str
    dtype: DType
    unit: str
    meaning: str


def _fields(text: str) -> tuple[Field, ...]:
    """Lines of ``name | dtype | unit | meaning``."""
    rows = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    return tuple(Field(name, dtype, unit, meaning) for name, dtype, unit, meaning in rows)  # type: ignore[arg-type]  # checked by a test


#: Columns by table, in their order.
TABLES: dict[str, tuple[Field, ...]] = {
    "phases": _fields("""
        phase | int64 | | number of the phase, from 1
        start_s | float64 | s | time of its first breakpoint
        end_s | float64 | s | time of its last breakpoint
        duration_s | float64 | s | its length
        degree | int64 | | degree of its polynomial; 3: periodic, 4: saturating
        level | float64 | proc | fitted processors at its start
        slope | float64 | proc/s | change of the fit at its start
        curvature | float64 | proc/s² | quadratic coefficient of the fit at its start
        error | float64 | proc·√s | local error: the L2 norm of curve minus fit
        end_low_s | float64 | s | earliest place of its end without a larger error; NaN: not searched
        end_high_s | float64 | s | latest place of its end without a larger error; NaN: not searched
    """),
    "phase statistics": _fields("""
        mean | float64 | proc | mean number of computing processors
        min | float64 | proc | least number of computing processors
        max | float64 | proc | largest number of computing processors
        efficiency | float64 | 1 | mean over all processors
        work | float64 | proc·s | computing processors times time
        rms | float64 | proc | root mean square deviation of the curve from the fit
        end_range_s | float64 | s | length of the range of its end without a larger error; NaN: not searched
        name | text | | its name
    """),
    "repeats": _fields("""
        repeats_low_s | float64 | s | low end of an interval for its end over repeats
        repeats_high_s | float64 | s | high end of it
        repeats | text | | level of the interval (two of fewer than 12), over how many iterations or runs
    """),
    "sweep": _fields("""
        n | int64 | | requested number of phases (parameters of model "budget")
        phases | int64 | | number of phases of the fit
        epsilon | float64 | proc·√s | largest local error
        sse | float64 | proc²·s | total squared error
        equidistribution | float64 | 1 | least over largest local error
    """),
    "statistics": _fields("""
        range | text | | name of the range
        start_s | float64 | s | its start
        end_s | float64 | s | its end
        duration_s | float64 | s | its length
        processors | float64 | proc | all processors of the run that have events
        present | float64 | proc | mean number of processors between their first and last event
        computing | float64 | proc | mean number of computing processors
        parallel_efficiency | float64 | 1 | mean computing over all processors
        load_balance | float64 | 1 | mean over maximum computing time of the processors
        communication_efficiency | float64 | 1 | maximum computing time over duration
        serialisation_efficiency | float64 | 1 | maximum computing time over the duration on an ideal network
        transfer_efficiency | float64 | 1 | duration on an ideal network over duration
        computing_part | float64 | 1 | part of the processors' time that is computing
        overhead_part | float64 | 1 | part that is overhead
        idle_part | float64 | 1 | part that is idle
        io_part | float64 | 1 | part that is I/O
        unmeasured_part | float64 | 1 | part that is not measured
        waiting | float64 | proc·s | communication in which a partner was late
        transfer | float64 | proc·s | communication that is not waiting: account "moving data"
        messages | float64 | | messages whose send is recorded in the range
        bytes | float64 | B | bytes in these messages
        costs | float64 | proc·s | waiting, at any time, that delays of the range caused
        path | float64 | s | length of the critical path in the range
    """) + tuple(Field(f"{name}_account", "float64", "proc·s", what) for name, (_, what) in ACCOUNTS.items()),
    "profile": _fields("""
        region | text | | name of the region
        role | text | | its role in the trace
        activity | text | | its class; empty outside of all regions
        exclusive | float64 | proc·s | time without what it calls, over all processors
        inclusive | float64 | proc·s | time with what it calls, over all processors
        calls | int64 | | enters in the range
        share | float64 | 1 | exclusive time of all the processors' time
        waits | float64 | proc·s | waiting for others in it
        costs | float64 | proc·s | waiting of others that it caused, short-term and long-term
        path | float64 | s | part of the critical path in it
        slack | float64 | s | least slack: how much longer it could have taken without a longer run
    """),
    "locations": _fields("""
        location | text | | name of the processor
        computing | float64 | s | in activities that the curve counts
        waits | float64 | s | waiting for others
        waits_passed_on | float64 | s | part of that which its partners only propagated
        costs | float64 | s | waiting of others that it caused
        costs_through_others | float64 | s | long-term part of that, through others that waited for it
        path | float64 | s | part of the critical path on it
        slack | float64 | s | least slack on it: how much longer it could have taken without a longer run
    """),
    "calls": _fields("""
        path | int64 | | number of the call path: the index of the frame
        parent | int64 | | the path that it is called from; -1 at the top
        depth | int64 | | calls above it
        region | text | | name of the region
        activity | text | | its class; empty outside of all regions
        inclusive | float64 | proc·s | time with what it calls, over all processors
        exclusive | float64 | proc·s | time without what it calls, over all processors
        calls | int64 | | enters in the range
        locations | int64 | | locations that passed here in the range
        low_s | float64 | s | least inclusive time of these locations
        mean_s | float64 | s | their mean inclusive time
        high_s | float64 | s | their largest inclusive time
        folded | bool | | whether it combines several paths, as there were too many
    """),
    "messages": _fields("""
        sender | text | | location that sends
        receiver | text | | location that receives; empty where it is not known
        messages | int64 | | messages sent
        bytes | int64 | B | bytes sent
        mean_size | float64 | B | bytes of a message on average
    """),
    "comparison": _fields("""
        label | text | | "run", or corresponding phases
        run | text | | name of the trace
        phase | any | | number of the phase, from 1; 0 for the whole run, None in a gap
        start_s | float64 | s | its start on the run's own axis
        duration_s | float64 | s | its length
        mean | float64 | proc | mean number of computing processors
        efficiency | float64 | 1 | mean over all processors
        work_s | float64 | proc·s | computing processors times time
        duration_difference_s | float64 | s | this run minus the reference
        duration_ratio | float64 | 1 | this run divided by the reference
        mean_difference | float64 | proc | this run minus the reference
        mean_ratio | float64 | 1 | this run divided by the reference
        efficiency_difference | float64 | 1 | this run minus the reference
        work_difference_s | float64 | proc·s | this run minus the reference
        work_ratio | float64 | 1 | this run divided by the reference
        alike | float64 | 1 | similarity of matched phases in shape and size
    """),
    "measurements": _fields("""
        line | int64 | | line of the source, from 1
        code | text | | name of the code
        system | text | | name of the system
        p | float64 | | active processors
        time | float64 | s | as measured; t' (no unit) of a table that holds it
        work | float64 | op | operations of the code
        peak | float64 | op/s | peak rate of the system
        repeat | text | | distinguishes repeated measurements
        note | text | | remark
        source | text | | where the measurement comes from
        reason | text | | why it is not used; empty where it is
        size | float64 | | problem size N; NaN where there is none
    """),
    "trials": _fields("""
        trial | text | | name of the trial: its line or number
        block | int64 | | replicate, from 0
        response | float64 | | what was measured; NaN where it is missing
    """),
    "effects": _fields("""
        term | text | | main effect or interaction
        effect | float64 | | full effect, in the unit of the response
        half_effect | float64 | | coefficient: half of it
        se | float64 | | standard error of the full effect
        df | float64 | | degrees of freedom of the error
        t | float64 | | effect over its standard error
        p | float64 | | probability of a t this large without any effect
        significant | bool | | beyond the threshold of the analysis
        half_normal | float64 | | half-normal quantile of its rank
        estimable | bool | | whether the trials can estimate it
        aliases | text | | terms that are aliased with it
    """),
    "anova": _fields("""
        source | text | | where the variation comes from
        ss | float64 | | sum of squares
        df | int64 | | degrees of freedom
        ms | float64 | | mean square
        f | float64 | | F ratio
        p | float64 | | probability of an F this large without any effect
    """),
    "factor model": _fields("""
        kind | text | | "speed" of a system, "work" of a code, or "delta" of a cell
        function | text | | characteristic function
        code | text | | name of the code; empty of a speed
        system | text | | name of the system; empty of a work
        value | float64 | | the parameter; delta in the unit of the response
        se | float64 | | its standard error; NaN where it is fixed or not determined
    """),
    "factor model cells": _fields("""
        code | text | | name of the code
        system | text | | name of the system
        p | float64 | | active processors
        used | bool | | whether the measurement was used
        response | float64 | | what is fitted: time in s, t', or the logarithm's argument
        fitted | float64 | | by the model, like the response
        residual | float64 | | response minus fit; the logarithm of their ratio where logarithms are fitted
        leverage | float64 | 1 | diagonal of the hat matrix
        studentized | float64 | | externally studentized residual
    """),
    "curve": _fields("""
        start_s | float64 | s | begin of a step
        end_s | float64 | s | its end
        level | float64 | proc | computing processors; of other curves in their unit
    """),
    "accounts": _fields("""
        range | text | | name of the range
        account | text | | account of the time
        time | float64 | proc·s | processor time in it
        share | float64 | 1 | of all the range's processor time
    """),
    "causes": _fields("""
        phase | int64 | | number of the phase, from 1; 0: the whole run
        cause | text | | kind of cause
        title | text | | the same in words
        sentence | text | | what happens, where, and what it costs
        lost | float64 | proc·s | processor time that it costs
        part | float64 | 1 | part of the lost time there
        strength | text | | of the evidence
        seen | int64 | | how often it was seen
        region | text | | where; empty if it has none
        locations | text | | locations that are charged
        start_s | float64 | s | begin of the phase that it costs most in
        end_s | float64 | s | its end
    """),
    "message list": _fields("""
        sent_s | float64 | s | when it is sent
        received_s | float64 | s | when it is received
        sender | text | | location that sends
        receiver | text | | location that receives; empty where it is not known
        bytes | int64 | B | its size
        tag | int64 | | its tag
    """),
    "events": _fields("""
        time_s | float64 | s | when
        location | text | | location of the event
        kind | text | | "enter" or "leave"
        region | text | | name of the region
    """),
    "differences": _fields("""
        phase | text | | "run", or a phase of the first run
        name | text | | name of the phase
        base_s | float64 | s | geometric mean length in the base runs
        new_s | float64 | s | the same in the new runs
        change | float64 | 1 | new over base, minus 1
        low | float64 | 1 | lower end of its 95 % interval
        high | float64 | 1 | upper end
        p | float64 | 1 | corrected for all lengths compared
        level | float64 | 1 | p at most this is a difference
        significant | any | | whether it is one; None: the scatter is not known
        over | bool | | whether it passes the limit
        base_runs | int64 | | base runs that have the phase
        new_runs | int64 | | new runs that have it
    """),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class ArrayTable:
    """A table as arrays, for tables that change at every step of a drag: a DataFrame of twenty rows takes ten
    times as long to make, and pandas half a second to load.

    `values`: columns (K,) by name, of numbers, Booleans or objects. `units`: of those that have one.
    `index` (K,): of the rows; None: 0 to K - 1.
    """

    values: Mapping[str, AnyArray]
    units: Mapping[str, str] = field(default_factory=dict)
    index: AnyArray | None = None

    @classmethod
    def of(cls, table: AnyTable) -> ArrayTable:
        """The same as arrays: columns of numbers and Booleans as they are, others of objects."""
        if isinstance(table, ArrayTable):
            return table
        numeric = {name: column.dtype.kind in "iufb" for name, column in table.items()}
        values = {n: np.asarray(table[n].to_numpy(None if plain else object)) for n, plain in numeric.items()}
        return cls(values, table.attrs.get("units", {}), np.asarray(table.index.to_numpy()))

    def __len__(self) -> int:
        return next((len(column) for column in self.values.values()), 0)

    @cached_property
    def frame(self) -> DataFrame:
        """The table as a DataFrame, with units in ``attrs["units"]``."""
        import pandas as pd

        table = pd.DataFrame(dict(self.values))
        if self.index is not None:
            table.index = pd.Index(self.index)
        table.attrs["units"] = dict(self.units)
        return table


AnyTable: TypeAlias = Union[ArrayTable, "DataFrame"]


def attributes(
    table: str, rows: Sequence[object], called: Mapping[str, str] | None = None
) -> dict[str, list[object]]:
    """The columns of a table from attributes of its rows; `called`: attributes that have another name."""
    names = {one.name: one.name for one in TABLES[table]} | dict(called or {})
    return {column: [getattr(row, name) for row in rows] for column, name in names.items()}


def array_table(fields: Sequence[Field], columns: Mapping[str, object]) -> ArrayTable:
    """A table of declared columns, without pandas; KeyError if one has no values."""
    kinds: dict[str, DTypeLike] = {"text": object, "any": object}
    values = {one.name: np.asarray(columns[one.name], kinds.get(one.dtype, one.dtype)) for one in fields}
    return ArrayTable(values, {one.name: one.unit for one in fields})


def frame(
    fields: Sequence[Field],
    columns: Mapping[str, object],
    *,
    index: object = None,
    units: Mapping[str, str] | None = None,
) -> DataFrame:
    """A DataFrame of declared columns in their order, then other columns unchanged.

    `columns`: values (K,) by name, of all `fields` and others; `units`: of the others, or instead of declared
    ones; they are in ``attrs["units"]``, by name. KeyError if a declared column has no values.
    """
    import pandas as pd

    declared: dict[str, object] = {}
    texts: dict[str, object] = {"text": "str" if pd.__version__ >= "3" else object, "any": object}
    for one in fields:
        values = columns[one.name]
        if one.dtype == "float64" and isinstance(values, list | np.ndarray):
            declared[one.name] = np.asarray(values, np.float64)  # for which a series takes ten times as long
        else:
            declared[one.name] = pd.Series(values, dtype=texts.get(one.dtype, one.dtype))
    declared |= {name: values for name, values in columns.items() if name not in declared}
    table = pd.DataFrame(declared)
    if index is not None:
        table.index = pd.Index(index)
    table.attrs["units"] = {one.name: one.unit for one in fields} | dict(units or {})
    return table
