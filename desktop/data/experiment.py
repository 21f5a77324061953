"""An SPT experiment on disk: one readable description, one append-only journal.

``experiment.toml`` describes the program to build and run, how every factor is switched on, what is measured
and the design; ``trials.csv`` gets one line per trial. Everything else (builds, analyses) can be derived from
the two. Reading them never runs anything.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
import shlex
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import tomli_w

from desktop.core.array_search import ArraySearch, array_search
from desktop.core.design import (
    MOST_TRIALS,
    Design,
    RunSheet,
    foldover,
    orthogonal_array,
    plackett_burman,
    regular,
    run_sheet,
)
from desktop.core.effects import Trials, trials
from desktop.core.plain import JSON
from desktop.data.atomic import lock_file, write_text
from desktop.data.description import commented, statements
from desktop.data.naming import DESCRIPTION
from desktop.data.reading import plain
from desktop.data.structure import Decoder, Misfit
from desktop.errors import ExperimentError, explained, reason

FORMAT = 1
JOURNAL, BUILDS = "trials.csv", "builds"
#: Most attempts at one trial: the first, and two more at the end of its replicate.
ATTEMPTS = 3
_LARGEST = 1 << 20
#: Columns of the journal before those of factors and responses, and after them.
_BEFORE = ("order", "replicate", "treatment", "attempt", "status")
_AFTER = ("exit", "start", "duration_s", "other_busy_cores", "load", "build", "note", "other_busy_limit",
          "clock_mhz")  # fmt: skip
#: Those that are numbers; columns that may be missing in journals of older versions.
_MEASURED = ("duration_s", "other_busy_cores", "load", "other_busy_limit", "clock_mhz")
_LATER = ("other_busy_limit", "clock_mhz")
#: Measurements of the machine's state, on which the response may depend.
COVARIATES = ("other_busy_cores", "load", "clock_mhz")
#: Reserved: not allowed as names of factors or responses.
RESERVED = {*_BEFORE, *_AFTER}
_COMMANDS = ("run", "build")
_SCHEMA = "the handbook's page The file of an experiment says what every key may be"

ResponseKind = Literal["wall", "cpu", "memory", "output"]
#: The flag that says the size of all delays that have none of their own.
_DELAY = re.compile(r"-DSPT_DELAY=(\d+)")
UNITS: dict[str, str] = {"wall": "s", "cpu": "s", "memory": "B", "output": ""}


@dataclass(frozen=True)
class Switch:
    """What a level adds: compiler flags, words of the run command, environment variables."""

    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def words(self) -> str:
        """Its words, as typed in a shell."""
        return " ".join((*(f"{k}={v}" for k, v in self.environment), *self.flags, *self.arguments))


@dataclass(frozen=True)
class Factor:
    """A place in the program (or a setting); `high` is added at +, `low` at -. `delay` is in units of
    ``spt_delay``, 0 for a factor that is no delay. `means`, `low_means`: descriptions of the levels."""

    name: str
    high: Switch
    low: Switch = Switch()
    file: str = ""
    line: int = 0
    routine: str = ""
    construct: str = ""
    delay: int = 0
    means: str = ""
    low_means: str = ""

    @property
    def place(self) -> str:
        """Where it is, for use in a sentence: ``swap(), line 175``; "" for a setting."""
        routine = f"{self.routine}()" if re.fullmatch(r"[\w:.~]+", self.routine) else self.routine
        if routine and self.construct.endswith(("loop", "block")):
            routine = f"the {self.construct} of {routine}"
        return ", ".join(filter(None, (routine, f"line {self.line}" if self.line else "")))

    @property
    def has_own_delay(self) -> bool:
        """Whether the size of its delay is filled into its words."""
        words = (*self.high.flags, *self.high.arguments, *dict(self.high.environment).values())
        return any("{delay}" in word for word in words)

    @property
    def is_delay(self) -> bool:
        """Whether + delays something; else it is a setting."""
        return bool(self.place or self.delay)

    @property
    def levels(self) -> tuple[str, str]:
        """The meaning of − and +: as described, else what they add."""
        high = self.means
        if not high and self.place:
            unit = "µs" if "SPT_FACTORS" in dict(self.high.environment) else "units"
            size = f" of {self.delay} {unit}" if self.delay else ""
            high = f"a delay{size} in {self.place}"
        return self.low_means or self.low.words or "as it is", high or self.high.words


@dataclass(frozen=True)
class Response:
    """`pattern` (kind ``output``): a regular expression with one group, a number in the output. `unit`: None
    for the default of the kind."""

    name: str
    kind: ResponseKind = "wall"
    pattern: str = ""
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.unit is None:
            object.__setattr__(self, "unit", UNITS[self.kind])

    def problem(self) -> str:
        problem = _no_pattern("pattern", self.pattern)
        if not problem and self.kind == "output" and re.compile(self.pattern).groups != 1:
            return "pattern needs one group, such as 'time = ([0-9.]+)'"
        return problem


@dataclass(frozen=True)
class Program:
    """Commands are lists of words; only with `shell` they are passed to a shell. ``{flags}``, ``{args}``,
    ``{out}`` are filled in. `check`: a regular expression that the output of a correct run matches.
    `product`: the file made by a build that cannot be told to write ``{out}``. `busy_limit`: cores that other
    programs may use beyond what they do before the first trial. `join`: environment variables whose values
    from several factors are joined, and the separator."""

    run: tuple[str, ...]
    build: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    shell: bool = False
    check: str = ""
    time_limit_s: float = 600.0
    warm_up: int = 1
    flags: tuple[str, ...] = ()
    busy_limit: float = 0.05
    product: str = ""
    join: dict[str, str] = field(default_factory=dict)

    @property
    def delay(self) -> int | None:
        """Units of every delay that has no size of its own; None if no flag says it."""
        return next((int(m[1]) for m in map(_DELAY.fullmatch, self.flags) if m), None)

    def with_delay(self, units: int) -> Program:
        """With this size in its flags; 0: in none."""
        flag = f"-DSPT_DELAY={units}" if units else ""
        flags = [flag if _DELAY.fullmatch(one) else one for one in self.flags]
        flags += [flag] if self.delay is None else []
        return replace(self, flags=tuple(filter(None, flags)))

    def problem(self) -> str:
        if not self.run:
            return 'run is missing, write run = ["./program", "argument"]'
        return _below(self, time_limit_s=0.001, warm_up=0, busy_limit=0) or _no_pattern("check", self.check)


@dataclass(frozen=True)
class Plan:
    """The design, as made from these words by `desktop.core.design`. `fold_after`: replicates of the first
    half that were planned when the fold was decided, 0 if that was before the first trial."""

    kind: str = "regular"
    runs: int | None = None
    generators: tuple[str, ...] = ()
    array: str = ""
    fold: str | None = None
    fold_after: int = 0
    replicates: int = 1
    seed: int = 1

    def problem(self) -> str:
        if self.kind not in ("regular", "full", "plackett-burman", "orthogonal-array"):
            return f"the design kind {self.kind!r} is not known"
        return _below(self, runs=0, fold_after=0, replicates=1, seed=0)


@dataclass(frozen=True)
class Experiment:
    """The contents of ``experiment.toml``. `folder`: where it is; commands run there."""

    folder: Path
    title: str
    program: Program
    factors: tuple[Factor, ...]
    responses: tuple[Response, ...]
    plan: Plan

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(factor.name for factor in self.factors)

    @property
    def name(self) -> str:
        """Its title, or else the name of its folder."""
        return self.title or self.folder.name

    def design(self) -> Design:
        """The design of the plan; raises ValueError where there is none."""
        return _designed(self.names, replace(self.plan, fold_after=0, replicates=1, seed=1))

    def sheet(self) -> RunSheet:
        """The run sheet of the plan; raises ValueError where there is none."""
        return run_sheet(self.design(), self.plan.replicates, self.plan.seed, self.plan.fold_after)

    def folded(self, fold: str | None, *, begun: bool) -> Experiment:
        """The experiment with this fold; if it has `begun`, the mirror image follows what is planned."""
        after = self.plan.replicates if begun and fold is not None else 0
        return replace(self, plan=replace(self.plan, fold=fold, fold_after=after))

    def planned(self) -> dict[int, tuple[int, int]]:
        """Order (from 1) -> replicate, treatment, of every trial in the order of the run sheet."""
        sheet = self.sheet()
        return dict(enumerate(zip(sheet.replicate.tolist(), sheet.treatment.tolist(), strict=True), 1))

    def index_of(self, response: str | None) -> int:
        """The place of a response; of None the first.

        Raises
        ------
        ExperimentError : there is no such response.
        """
        names = [one.name for one in self.responses]
        if response is not None and response not in names:
            raise ExperimentError(
                f"has no response {response!r}", file=self.folder, hint=f"it has {', '.join(names)}"
            )
        return names.index(response) if response is not None else 0

    @property
    def lowest(self) -> tuple[int, ...]:
        """The lowest level of every factor: the unperturbed program."""
        return tuple(self.design().levels.min(axis=0).tolist())

    def raised(self, *factors: int) -> tuple[int, ...]:
        """The lowest levels, with these factors (by their places) at +."""
        return tuple(1 if j in factors else level for j, level in enumerate(self.lowest))

    def levels(self, treatment: int) -> tuple[int, ...]:
        return tuple(self.design().levels[treatment].tolist())

    def signs(self, treatment: int) -> list[str]:
        """The levels of a treatment as shown in tables: + and −; for an array their numbers."""
        array = self.plan.kind == "orthogonal-array"
        return [str(v) if array else "+" if v > 0 else "−" for v in self.levels(treatment)]

    def switches(self, levels: Sequence[int]) -> Switch:
        """What a treatment adds, in the order of the factors. The delays of an array grow with the level."""
        flags: list[str] = []
        arguments: list[str] = []
        environment: dict[str, str] = {}
        array = self.plan.kind == "orthogonal-array"
        for factor, level in zip(self.factors, levels, strict=True):
            on = level > 0
            side = factor.high if on else factor.low
            size = factor.delay * (level if array else 1)
            flags += [word.replace("{delay}", str(size)) for word in side.flags]
            arguments += [word.replace("{delay}", str(size)) for word in side.arguments]
            for name, value in side.environment:
                value = value.replace("{delay}", str(size))
                # Several factors that set one variable join their values, or are refused (`_used`).
                before = environment.get(name)
                environment[name] = value if before is None else f"{before}{self.joined[name]}{value}"
        return Switch(tuple(flags), tuple(arguments), tuple(environment.items()))

    @property
    def joined(self) -> dict[str, str]:
        """Variables whose values from several factors are joined; that of the Python module always is."""
        return {"SPT_FACTORS": ","} | self.program.join

    def commands(self, levels: Sequence[int]) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]:
        """Build command, run command and environment of a treatment; the build's place is its key."""
        switch = self.switches(levels)
        flags = (*self.program.flags, *switch.flags)
        out = str(Path(BUILDS) / self.build_key(flags))
        build, run = self.program.build, self.program.run
        if self.program.shell:  # one text, which the shell splits
            build, run = ((" ".join(words),) if words else () for words in (build, run))
        build = _filled(build, flags, (), out)
        run = _filled(run, flags, switch.arguments, os.path.join(".", out), self.program.shell)
        return build, run, dict(switch.environment)

    def build_key(self, flags: Sequence[str]) -> str:
        """Key of sources, build command and flags: equal builds are made once."""
        digest = hashlib.sha256(json.dumps([list(flags), list(self.program.build)]).encode())
        for name, content in sorted(self.source_hashes().items()):
            digest.update(f"{name}\0{content}\0".encode())
        return digest.hexdigest()[:16]

    def source_hashes(self) -> dict[str, str]:
        """SHA-256 of every source; raises `ExperimentError` if one cannot be read."""
        hashes = {}
        for name in self.program.sources:
            with explained(ExperimentError, f"source {name} cannot be read", file=self.folder):
                hashes[name] = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()
        return hashes

    def identity(self) -> JSON:
        """What must not change while trials are collected. More replicates may be added, and a fold after
        them: `read_journal` checks that it changes no earlier trial."""
        program = asdict(self.program)
        for unimportant in ("sources", "time_limit_s", "busy_limit"):
            del program[unimportant]
        # Journals from before these keys belong to experiments that do not use them.
        program = {k: v for k, v in program.items() if v or k not in ("product", "join")}
        plan = asdict(replace(self.plan, fold=None)) if self.plan.fold_after else asdict(self.plan)
        for may_grow in ("replicates", "fold_after"):
            del plan[may_grow]
        return {
            "factors": [
                {k: v for k, v in asdict(factor).items() if k not in ("means", "low_means")}
                for factor in self.factors
            ],
            "responses": [asdict(response) for response in self.responses],
            "program": program,
            "design": plan,
            "sources": self.source_hashes(),
        }


@lru_cache(maxsize=64)
def _designed(names: tuple[str, ...], plan: Plan) -> Design:
    """Cached, as every trial needs its levels."""
    if plan.kind == "plackett-burman":
        design = plackett_burman(names, plan.runs)
    elif plan.kind == "orthogonal-array":
        design = orthogonal_array(plan.array, names)
    else:
        design = regular(names, plan.runs, plan.generators or None)
    return design if plan.fold is None else foldover(design, plan.fold or None)


def _filled(
    words: Sequence[str], flags: Sequence[str], args: Sequence[str], out: str, shell: bool = False
) -> tuple[str, ...]:
    """``{flags}`` and ``{args}`` as separate words become as many words as there are; arguments without a
    place of their own come last."""
    filled: list[str] = []
    for word in words:
        if word == "{flags}" and not shell:
            filled += flags
        elif word == "{args}" and not shell:
            filled += args
        else:
            word = word.replace("{flags}", shlex.join(flags)).replace("{args}", shlex.join(args))
            filled.append(word.replace("{out}", out))
    if any("{args}" in word for word in words):
        return tuple(filled)
    return (" ".join([*filled, *map(shlex.quote, args)]),) if shell else (*filled, *args)


# --- the description ---


def read_experiment(path: Path) -> Experiment:
    """Read ``experiment.toml``, given its path or its folder.

    Raises
    ------
    ExperimentError : it cannot be read, or is invalid; names the key.
    """
    path = Path(path)
    if path.is_dir():
        path = path / DESCRIPTION
    try:
        if path.stat().st_size > _LARGEST:
            raise ExperimentError(f"is larger than {_LARGEST >> 20} MB", file=path)
        text = plain(path).read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except OSError as error:
        raise ExperimentError(f"cannot be read ({reason(error)})", file=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExperimentError(f"is no description of an experiment ({error})", file=path) from None
    try:
        return _understood(tables, path.absolute().parent)
    except ExperimentError as error:
        where = _with_line(text, error.where or "", error.what)
        raise ExperimentError(error.what, file=path, where=where, hint=error.hint or _SCHEMA) from None
    except ValueError as error:
        where = _with_line(text, "[design]", str(error))
        raise ExperimentError(str(error), file=path, where=where, hint=_SCHEMA) from None


def _with_line(text: str, where: str, what: str) -> str:
    """`where` in a description with its line number: that of the key named there, or else of the first one
    named in `what`."""
    table = re.match(r"\[+(\w+)\]+ ?(\d+)?(?: (\w+))?", where)
    keys = [table[3]] if table and table[3] else re.findall(r"\w+", what)[:1]
    section = (table[1], int(table[2] or 1)) if table else ("", 1)
    lines = {(s.table, s.number, s.key): s.line for s in statements(text)}
    for key in (*keys, ""):
        # An array of tables may be written inline under its own name.
        line = lines.get((*section, key)) or (lines.get(("", 1, section[0])) if not key else None)
        if line:
            return ", ".join(filter(None, (where, f"line {line}")))
    return where


@dataclass(frozen=True)
class _FactorTable:
    """A factor as written in the file."""

    name: str
    file: str = ""
    line: int = 0
    routine: str = ""
    construct: str = ""
    delay: int = 0
    flags: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    low_flags: tuple[str, ...] = ()
    low_arguments: tuple[str, ...] = ()
    low_environment: dict[str, str] = field(default_factory=dict)
    means: str = ""
    low_means: str = ""

    def factor(self) -> Factor:
        high = Switch(self.flags, self.arguments, tuple(self.environment.items()))
        low = Switch(self.low_flags, self.low_arguments, tuple(self.low_environment.items()))
        place = (self.file, self.line, self.routine, self.construct)
        return Factor(self.name, high, low, *place, self.delay, self.means, self.low_means)

    @staticmethod
    def of(one: Factor) -> _FactorTable:
        high, low = ((s.flags, s.arguments, dict(s.environment)) for s in (one.high, one.low))
        place = (one.file, one.line, one.routine, one.construct)
        return _FactorTable(one.name, *place, one.delay, *high, *low, one.means, one.low_means)

    def problem(self) -> str:
        for name in (*self.environment, *self.low_environment):
            if not name or "=" in name or "\0" in name:
                return f"{name!r} is no name of an environment variable"
        one = self.factor()
        if one.high == one.low:
            return 'does nothing: both levels are the same, write flags = ["-DF1"]'
        return _below(self, line=0, delay=0)


@dataclass(frozen=True)
class _Description:
    program: Program
    factors: tuple[_FactorTable, ...]
    title: str = ""
    responses: tuple[Response, ...] | None = None
    design: Plan = Plan()


def _below(one: object, **least: float) -> str:
    """An error text about numbers that are too small."""
    for name, low in least.items():
        value = getattr(one, name)
        if value is not None and not low <= value:
            return f"{name} is {value!r}, it must be a number from {low:g} on"
    return ""


def _no_pattern(name: str, pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        return f"{name} is no regular expression ({error})"
    return ""


def _understood(tables: JSON, folder: Path) -> Experiment:
    if tables.get("format") != FORMAT:
        newer = isinstance(tables.get("format"), int) and tables["format"] > FORMAT
        raise ExperimentError(
            f"has format {tables.get('format')!r}, this program knows {FORMAT}",
            hint="use a newer Phasewright" if newer else "is it an experiment?",
        )
    tables = {key: value for key, value in tables.items() if key != "format"}
    if not isinstance(tables.get("factors"), list) or not tables["factors"]:
        raise ExperimentError("names no factors", hint="add a [[factors]] table for every place")
    program, design, responses = tables.get("program"), tables.get("design"), tables.get("responses")
    if isinstance(program, dict) and program.get("shell") is True:  # one text, which the shell splits
        tables["program"] = {
            k: [v] if k in _COMMANDS and isinstance(v, str) else v for k, v in program.items()
        }
    if isinstance(design, dict):
        tables["design"] = design | {"runs": design.get("runs") or None}
    if isinstance(responses, list):
        tables["responses"] = [
            {"name": one.get("kind", "wall")} | one if isinstance(one, dict) else one for one in responses
        ] or None
    try:
        table = Decoder().decode(_Description, tables)
    except Misfit as misfit:
        first = misfit.problems[0]
        named = re.match(r"(program|design|(factors|responses)\[(\d+)\])[.:]? ?", first)
        if named is None:
            raise ExperimentError(first) from None
        where = f"[[{named[2]}]] {int(named[3]) + 1}" if named[2] else f"[{named[1]}]"
        raise ExperimentError(first[named.end() :], where=where) from None
    factors = tuple(one.factor() for one in table.factors)
    experiment = Experiment(
        folder, table.title, table.program, factors, table.responses or (Response("wall"),), table.design
    )
    names = [*experiment.names, *(r.name for r in experiment.responses)]
    for name in names:
        if names.count(name) > 1 or name in RESERVED or not name or re.search(r"[\s,:*=\"']", name):
            raise ExperimentError(
                f"{name!r} cannot be the name of a factor or response",
                hint="names must differ, have no blanks or signs, and be no column of the journal",
            )
    product = (folder / experiment.program.product).resolve()
    if not product.is_relative_to(folder.resolve()):
        raise ExperimentError(
            f"product {experiment.program.product!r} lies outside the experiment", where="[program] product"
        )
    for name in experiment.program.sources:
        if not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise ExperimentError(f"source {name!r} lies outside the experiment", where="[program] sources")
    _used(experiment)
    count = experiment.design().runs * experiment.plan.replicates
    if count > MOST_TRIALS:
        raise ExperimentError(
            f"asks for {count} trials, up to {MOST_TRIALS} are possible", where="[design] replicates"
        )
    experiment.sheet()
    return experiment


def _used(experiment: Experiment) -> None:
    """Check that what a level adds reaches the program, or all treatments would be the same."""
    program = experiment.program
    owners: dict[str, str] = {}
    for factor in experiment.factors:
        for name in dict((*factor.low.environment, *factor.high.environment)):
            before = owners.setdefault(name, factor.name)
            if before != factor.name and name not in experiment.joined:
                raise ExperimentError(
                    f"factors {before} and {factor.name} both set {name}, and one would overwrite the other",
                    where="[[factors]]",
                    hint=f'give each a variable of its own, or write join = {{ {name} = " " }} in [program]',
                )
    if program.build and not any("{out}" in word for word in program.run):
        raise ExperimentError(
            "run does not name {out}, so it would not run what is built",
            where="[program] run",
            hint='write run = ["{out}", "argument"]',
        )
    places = [*program.build, *program.run]
    for factor in experiment.factors:
        if factor.high.flags != factor.low.flags and not any("{flags}" in word for word in places):
            raise ExperimentError(
                f"the flags of factor {factor.name} are used in no command",
                where="[program]",
                hint="write {flags} where the compiler takes them; a program takes arguments",
            )
        array = experiment.plan.kind == "orthogonal-array"
        if array and not (factor.delay and factor.has_own_delay):
            raise ExperimentError(
                f"factor {factor.name} is the same at every level but the lowest",
                where="[[factors]]",
                hint="give it a delay, and write {delay} where its size belongs",
            )


def checked(experiment: Experiment) -> Experiment:
    """The experiment as it would be read back after writing.

    Raises
    ------
    ExperimentError, ValueError : it is invalid; names the key.
    """
    return _understood(tomllib.loads(described(experiment)), experiment.folder)


def write_experiment(experiment: Experiment) -> Path:
    """Write ``experiment.toml`` into its folder, atomically.

    Raises
    ------
    ExperimentError : trials were already collected for another description.
    """
    path = experiment.folder / DESCRIPTION
    journal = experiment.folder / JOURNAL
    if journal.exists() and _collected(journal):
        _same(experiment, _header(journal))
        read_journal(experiment)
    write_text(path, described(experiment))
    return path


def described(experiment: Experiment) -> str:
    """The text of ``experiment.toml``."""

    def table(values: JSON) -> JSON:
        # An empty text has a meaning there.
        filled = {k: v for k, v in values.items() if v is not None and (k in ("fold", "unit") or v != "")}
        if not filled.get("fold_after", 1):
            del filled["fold_after"]
        return {k: plain(v) for k, v in filled.items() if v not in ((), [], {})}

    def plain(value: object) -> object:
        if isinstance(value, dict):
            return table(value)
        return [plain(v) for v in value] if isinstance(value, list | tuple) else value

    program = table(asdict(experiment.program))
    program["run"] = list(experiment.program.run)
    if experiment.program.shell:
        program |= {k: " ".join(program[k]) for k in _COMMANDS if k in program}
    return commented(
        tomli_w.dumps(
            {
                "format": FORMAT,
                "title": experiment.title,
                "program": program,
                "design": table(asdict(experiment.plan)),
                "factors": [
                    {k: v for k, v in table(asdict(_FactorTable.of(one))).items() if v}
                    for one in experiment.factors
                ],
                "responses": [table(asdict(response)) for response in experiment.responses],
            }
        )
    )


# --- the journal ---


@dataclass(frozen=True)
class Trial:
    """One line of the journal. `status`: ``ok``, ``failed``, ``disturbed`` (others used more cores than
    `other_busy_limit`; counts if no quiet one follows) or ``excluded`` (by the user; excludes the trial with
    that order and attempt). `clock_mhz`: mean frequency of the processors; NaN if unknown."""

    order: int
    replicate: int
    treatment: int
    attempt: int
    status: str
    responses: tuple[float, ...] = ()
    exit: int = 0
    start: str = ""
    duration_s: float = math.nan
    other_busy_cores: float = math.nan
    load: float = math.nan
    build: str = ""
    note: str = ""
    other_busy_limit: float = math.nan
    clock_mhz: float = math.nan


class Journal:
    """The trials of an experiment, appended one by one and flushed to disk before the next begins.

    Locked while it is open, so that no other process adds to it.

    Raises
    ------
    ExperimentError : it belongs to another description, is damaged, or is in use.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.path = experiment.folder / JOURNAL
        self._file = self.path.open("a+b")
        try:
            # A process just started by a killed run may hold its lock for a moment.
            if not lock_file(self._file.fileno(), patience_s=1.0):
                raise ExperimentError("is being added to by another run of this experiment", file=self.path)
            self._cut_unfinished()
            if not self.path.stat().st_size or not _collected(self.path):
                # A changed description is harmless before the first trial.
                self._file.truncate(0)
                identity = json.dumps(experiment.identity(), sort_keys=True)
                responses = (response.name for response in experiment.responses)
                columns = ",".join([*_BEFORE, *experiment.names, *responses, *_AFTER])
                self._append(f"# {identity}\n{columns}\n")
            else:
                _same(experiment, _header(self.path))
            with self.path.open(encoding="utf-8") as file:
                file.readline()
                # A journal from an older version keeps its own columns.
                self._columns = frozenset(next(csv.reader([file.readline()]), []))
            self.trials = read_journal(experiment)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, trial: Trial) -> None:
        """Append a trial; it is on the disk when this returns."""
        self._append(_line(self.experiment, trial, self._columns))
        self.trials = (*self.trials, trial)

    def _append(self, text: str) -> None:
        self._file.seek(0, os.SEEK_END)
        self._file.write(text.encode("utf-8"))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _cut_unfinished(self) -> None:
        """Remove a partial last line, left by a killed process."""
        self._file.seek(0)
        data = self._file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data) and data.startswith(b"# {"):
            self._file.truncate(whole)


def _line(experiment: Experiment, trial: Trial, columns: Collection[str]) -> str:
    array = experiment.plan.kind == "orthogonal-array"
    levels = [str(v) if array else f"{v:+d}" for v in experiment.levels(trial.treatment)]
    values = trial.responses or (math.nan,) * len(experiment.responses)
    cells = vars(trial) | {"note": " ".join(trial.note.split())}
    after = [_plain(cells[name]) if name in _MEASURED else cells[name] for name in _AFTER if name in columns]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(
        [trial.order, trial.replicate + 1, trial.treatment + 1, trial.attempt, trial.status, *levels,
         *map(_plain, values), *after]
    )  # fmt: skip
    return out.getvalue()


def _plain(value: float) -> str:
    return repr(float(value)) if math.isfinite(value) else ""


def _header(journal: Path) -> JSON:
    with journal.open("rb") as file:
        first = file.readline(_LARGEST)
    try:
        header = json.loads(first.decode("utf-8").removeprefix("#"))
        if not isinstance(header, dict):
            raise ValueError
        return header
    except ValueError:
        raise ExperimentError(
            "does not begin like a journal",
            file=journal,
            where="line 1",
            hint="move it away to start anew",
        ) from None


def _collected(journal: Path) -> bool:
    """Whether a journal contains any trial; raises `ExperimentError` if it is no journal."""
    if not journal.stat().st_size:
        return False
    _header(journal)
    with journal.open("rb") as file:
        return len(file.readlines(2 * _LARGEST)[:3]) > 2 or bool(file.read(1))


def _same(experiment: Experiment, before: JSON) -> None:
    """Refuse to mix trials of different experiments, naming the differences."""
    now = json.loads(json.dumps(experiment.identity()))
    differs, hint = [], "start a new experiment in a folder of its own"
    was = before.get("design")
    if experiment.plan.fold is not None and isinstance(was, dict) and was.get("fold") is None:
        hint = f"to fold the trials already run, write fold_after = {experiment.plan.replicates} in [design]"
    for part in sorted(set(now) | set(before)):
        a, b = before.get(part), now.get(part)
        if a == b:
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            differs += [f"{part}: {key}" for key in sorted(set(a) | set(b)) if a.get(key) != b.get(key)]
        else:
            differs.append(part)
    if differs:
        raise ExperimentError(
            "its trials were collected with something else: " + ", ".join(differs[:8]),
            file=experiment.folder / JOURNAL,
            hint=hint,
        )


def read_journal(experiment: Experiment) -> tuple[Trial, ...]:
    """All trials so far; an unfinished last line is left out.

    Raises
    ------
    ExperimentError : a line is damaged, or is no trial of this plan.
    """
    path = experiment.folder / JOURNAL
    if not path.exists():
        return ()
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = text[: text.rfind("\n") + 1].splitlines()
    reader = csv.DictReader(lines[1:])
    trials: list[Trial] = []
    design = experiment.design()
    keys = experiment.planned() if experiment.plan.fold_after else {}
    try:
        for row in reader:
            if not (int(row["replicate"]) >= 1 and 1 <= int(row["treatment"]) <= design.runs):
                raise ValueError("there is no such treatment")
            replicate, treatment = int(row["replicate"]) - 1, int(row["treatment"]) - 1
            levels = [int(row[name]) for name in experiment.names]
            order, key = int(row["order"]), (replicate, treatment)
            # The fold may have changed, or begin too early.
            if (keys and keys.get(order) != key) or levels != design.levels[treatment].tolist():
                raise ExperimentError(
                    f"its trial {row['order']} is none of this plan",
                    file=path,
                    where=f"line {reader.line_num + 1}",
                    hint="a fold must come after all trials already run, and stay once its trials have begun",
                )
            trials.append(
                Trial(
                    order,
                    replicate,
                    treatment,
                    int(row["attempt"]),
                    row["status"],
                    tuple(_value(row[r.name]) for r in experiment.responses),
                    int(row["exit"] or 0),
                    row["start"],
                    **{
                        name: _value(row.get(name, "") if name in _LATER else row[name]) for name in _MEASURED
                    },
                    build=row["build"],
                    note=row["note"],
                )
            )
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise ExperimentError(
            f"is damaged ({reason(error, 'it is not what was written here')})",
            file=path,
            where=f"line {reader.line_num + 1}",
            hint="repair or move it",
        ) from None
    return tuple(trials)


def _value(text: str) -> float:
    return float(text) if text else math.nan


@dataclass(frozen=True)
class State:
    """Where an experiment stands. `good`: the trial that counts for each (replicate, treatment). `attempts`:
    so far, including excluded ones. `given_up`: those that failed too often."""

    good: Mapping[tuple[int, int], Trial]
    attempts: Mapping[tuple[int, int], int]
    given_up: frozenset[tuple[int, int]]
    planned: int

    @property
    def waiting(self) -> int:
        """Number of trials still to be run."""
        return self.planned - len(self.good) - len(self.given_up - set(self.good))

    @property
    def finished(self) -> bool:
        return self.waiting <= 0


def state_of(experiment: Experiment, done: Sequence[Trial]) -> State:
    """The state according to the journal: excluded trials do not count and are to be run again."""
    excluded = {(t.order, t.attempt) for t in done if t.status == "excluded"}
    good: dict[tuple[int, int], Trial] = {}
    attempts: dict[tuple[int, int], int] = {}
    used: dict[tuple[int, int], int] = {}
    for trial in done:
        key = (trial.replicate, trial.treatment)
        if trial.status == "excluded":
            continue
        attempts[key] = attempts.get(key, 0) + 1
        if (trial.order, trial.attempt) in excluded:
            continue
        used[key] = used.get(key, 0) + 1
        best = good.get(key)
        if (trial.status == "ok" and (best is None or best.status != "ok")) or (
            trial.status == "disturbed"
            and (best is None or (best.status != "ok" and trial.other_busy_cores < best.other_busy_cores))
        ):
            good[key] = trial
    given_up = frozenset(key for key, count in used.items() if count >= ATTEMPTS and key not in good)
    runs = experiment.design().runs
    return State(good, attempts, given_up, runs * experiment.plan.replicates)


def to_trials(experiment: Experiment, response: str | None = None) -> Trials:
    """The measurements so far, for `desktop.core.effects.analyse`.

    Raises
    ------
    ExperimentError : there is no such response, or factors have more than two levels.
    """
    at = experiment.index_of(response)
    if experiment.plan.kind == "orthogonal-array":
        raise ExperimentError("has factors of several levels", hint="rank its runs by response instead")
    by_key = state_of(experiment, read_journal(experiment)).good
    good = [by_key[key] for key in sorted(by_key)]
    design = experiment.design()
    treatment = np.array([one.treatment for one in good], np.int64)
    return trials(
        experiment.names,
        design.levels[treatment].astype(np.float64),
        np.array([one.responses[at] for one in good], np.float64),
        np.array([one.replicate for one in good], np.int64),
        [str(one.order) for one in good],
        None if experiment.plan.fold is None else design.blocks[treatment],
        {name: np.array([getattr(one, name) for one in good], np.float64) for name in COVARIATES},
    )


def search(experiment: Experiment, response: str | None = None) -> ArraySearch:
    """The treatments of an array, ranked by the measurements so far.

    Raises
    ------
    ExperimentError : there is no such response. ValueError : no trial has one yet.
    """
    at = experiment.index_of(response)
    good = state_of(experiment, read_journal(experiment)).good
    treatment = np.array([t for _, t in good], np.int64)
    y = np.array([trial.responses[at] for trial in good.values()], np.float64)
    return array_search(experiment.names, experiment.design().levels, treatment, y)


def table_of(path: Path) -> Path:
    """The table of trials that is named: of an experiment, by its folder or description, its journal."""
    if path.is_dir():
        return path / JOURNAL
    return path.with_name(JOURNAL) if path.name == DESCRIPTION else path


def experiment_of(path: Path) -> Experiment | None:
    """The experiment that is named, by its folder, description or journal; None for another table.

    Raises
    ------
    ExperimentError : it cannot be read, or is invalid.
    """
    if path.is_dir() or path.suffix == ".toml":
        return read_experiment(path)
    described = path.name == JOURNAL and (path.parent / DESCRIPTION).is_file()
    return read_experiment(path.parent) if described else None


def exclude(experiment: Experiment, order: int, reason: str) -> None:
    """Mark the trial that counts under this order as an outlier, with a reason; it will be run again.

    Raises
    ------
    ExperimentError : there is no such trial, or no reason.
    """
    if not reason.strip():
        raise ExperimentError("a trial is left out for a reason only, give one")
    with Journal(experiment) as journal:
        good = state_of(experiment, journal.trials).good.values()
        trial = next((one for one in good if one.order == order), None)
        if trial is None:
            raise ExperimentError(f"there is no trial {order} that counts", file=journal.path)
        journal.add(Trial(order, trial.replicate, trial.treatment, trial.attempt, "excluded", note=reason))
