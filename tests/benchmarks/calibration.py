"""What the analysis of an experiment states against what it holds in simulation.

    python -m tests.benchmarks.calibration [DRAWS] [WORD ...] [--keep FILE]

prints one row a statement: what is stated, and what is found in DRAWS draws (10,000), of rows with a WORD in
their name. With --keep every 500 draws of a row are written to FILE, and a campaign that was stopped goes on
from there. Run with an older tree before this one on PYTHONPATH, the same rows show what that one held.
`tests/core/test_calibration.py` holds a short version.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from unittest.mock import patch

import numpy as np

from desktop.core import effect_tables as tables
from desktop.core import effects as core
from desktop.core.design import names_for, regular
from desktop.data import confirm as confirming
from desktop.data.answer import answer

try:
    from desktop.workbench import effect_comparison as comparing
except ImportError:  # an older tree
    comparing = tables
try:
    from desktop.core import power as planning
except ImportError:  # an older tree
    planning = core

try:
    from desktop.core.power import after_loss
except ImportError:  # an older tree, which says the same with and without

    def after_loss(treatments: int, replicates: int, lost: int = 1) -> float:
        return 0.9


Generator = np.random.Generator


@dataclass(frozen=True)
class Row:
    """A statement. `draw`: one simulated experiment, 1 where it happened (NaN: not in question). `stated`: in
    which share of them it should; `kind`: ``=`` in that share, ``<`` at most in that, ``>`` at least, ``~``
    only to be told."""

    name: str
    stated: float
    draw: Callable[[Generator], float]
    kind: str = "="


Sizes = dict[tuple[int, ...], float]


def design(runs: int, factors: int = 0) -> np.ndarray:
    """(runs, factors) levels: a full factorial of up to six factors, or a fraction of so many."""
    return regular(names_for(factors or int(np.log2(runs))), runs).levels.astype(float)


def with_noise(
    generator: Generator, x: np.ndarray, effects: Sizes, relative: float = 0.0, log: bool = False
) -> np.ndarray:
    """Responses at x (N, k): mean 10 and noise of standard deviation 1, or `relative` to the mean. `log`:
    effects multiply."""
    mean = np.full(len(x), 10.0)
    for members, size in effects.items():
        column = x[:, list(members)].prod(axis=1)
        mean = mean * (1 + size * (column + 1) / 2) if log else mean + size / 2 * column
    noise = generator.standard_normal(len(x))
    return mean * (1 + relative * noise) if relative else mean + noise


def experiment(
    generator: Generator, runs: int, replicates: int, *, relative: float = 0.0, drift: float = 0.0,
    line: float = 0.0, effects: Sizes | None = None, log: bool = False, factors: int = 0,
) -> core.Trials:  # fmt: skip
    """`with_noise` of a whole experiment; `drift`: standard deviation between replicates, `line`: slope over
    the whole run."""
    levels = design(runs, factors)
    x = np.concatenate([generator.permutation(levels) for _ in range(replicates)])
    block = np.repeat(np.arange(replicates), runs)
    y = with_noise(generator, x, effects or {}, relative, log)
    y = y + drift * generator.standard_normal(replicates)[block] + line * np.linspace(-1, 1, len(x))
    return core.trials(names_for(levels.shape[1]), x, y, block)


def marked(found: core.Effects, without: tuple[tuple[int, ...], ...] = ()) -> list[bool]:
    return [e.significant for e in found.effects if e.members not in without]


def options(**wanted: object) -> dict[str, object]:
    """Those that this tree knows."""
    known = signature(core.analyse).parameters
    return {name: value for name, value in wanted.items() if name in known}


# --- marks ---


def each(runs: int, replicates: int, **given: object) -> Callable[[Generator], float]:
    threshold = str(given.pop("threshold", "t"))
    return lambda g: float(
        np.mean(marked(core.analyse(experiment(g, runs, replicates, **given), threshold=threshold)))
    )


def some(runs: int, replicates: int, **given: object) -> Callable[[Generator], float]:
    threshold = str(given.pop("threshold", "familywise"))
    return lambda g: float(
        any(marked(core.analyse(experiment(g, runs, replicates, **given), threshold=threshold)))
    )


def clicked(runs: int, kept: int, replicates: int = 1) -> Callable[[Generator], float]:
    """All but the largest terms are clicked away: is any of these marked?"""

    def draw(g: Generator) -> float:
        data = experiment(g, runs, replicates)
        every = core.analyse(data)
        largest = sorted(every.effects, key=lambda e: -abs(e.value))[:kept]
        found = core.analyse(data, terms=[e.members for e in largest], error="interactions")
        return float(any(marked(found)))

    return draw


def clicked_real(g: Generator) -> float:
    """Two real effects and three clicked ones that are none: is one of these marked?"""
    real = {(0,): 8.0, (1, 2): 6.0}
    data = experiment(g, 16, 1, effects=real)
    largest = sorted(core.analyse(data).effects, key=lambda e: -abs(e.value))[:5]
    found = core.analyse(data, terms=[e.members for e in largest])
    return float(any(marked(found, tuple(real))))


def discoveries(g: Generator) -> float:
    """Share of none among the marked."""
    real = {(0,): 3.0, (1,): 3.0, (2,): 3.0, (3,): 3.0}
    found = core.analyse(experiment(g, 16, 2, effects=real), threshold="fdr")
    false, every = sum(marked(found, tuple(real))), sum(marked(found))
    return false / every if every else 0.0


def power(runs: int, replicates: int, lost: int = 0, drift: float = 0.0) -> Callable[[Generator], float]:
    """An effect of the size that is said to be found with 90 % is found."""
    size = planning.detectable(1.0, runs, replicates)

    def draw(g: Generator) -> float:
        data = experiment(g, runs, replicates, drift=drift, effects={(0,): size})
        if lost:
            data.y[g.choice(len(data.y), lost, replace=False)] = np.nan
        return float(core.analyse(data).effect("A").significant)

    return draw


# --- suspects ---


def suspected(runs: int, replicates: int, **given: object) -> Callable[[Generator], float]:
    return lambda g: float(bool(core.analyse(experiment(g, runs, replicates, **given)).suspects))


def found_out(runs: int, replicates: int, **given: object) -> Callable[[Generator], float]:
    """One trial is off by six standard deviations of the noise: is it named?"""

    def draw(g: Generator) -> float:
        data = experiment(g, runs, replicates, **given)
        bad = int(g.integers(len(data.y)))
        data.y[bad] += 6.0
        return float(str(bad + 1) in [s.label for s in core.analyse(data).suspects])

    return draw


# --- verdicts and fits ---


def verdict(replicates: int, relative: float = 0.0) -> Callable[[Generator], float]:
    """A factor whose share does not change (40, 48 on few, 20, 24 on many processors) is given a verdict."""
    x = np.tile([[-1.0, -1], [1, -1], [-1, 1], [1, 1]], (replicates, 1))
    mean = np.tile([40.0, 48.0, 20.0, 24.0], replicates)

    def draw(g: Generator) -> float:
        noise = g.standard_normal(len(x))
        y = mean * (1 + relative * noise) if relative else mean + 0.5 * noise
        found = core.analyse(core.trials(["f", "s"], x, y), blocks=False)
        half = [e.half for e in found.effects]
        known = {"df": found.effects[0].df} if "df" in signature(tables.scale_test).parameters else {}
        test = tables.scale_test(found.mean, *half, found.effects[0].se / 2, **known)
        if test.verdict in ("no effect", "system does not speed up"):
            return np.nan
        return float(test.verdict in ("scales", "does not scale"))

    return draw


def bent(sizes: int, df: int = 0) -> Callable[[Generator], float]:
    """Effects in proportion to the delay are called not linear. ``df``: of estimated standard errors."""
    delay = 3.0 ** np.arange(sizes)

    def draw(g: Generator) -> float:
        se = 0.1 * np.sqrt(delay)
        effect = delay + se * g.standard_normal(sizes)
        seen = se * np.sqrt(g.chisquare(df, sizes) / df) if df else se
        known = {"df": np.full(sizes, df or np.inf)} if "df" in signature(tables.dose).parameters else {}
        return float(not tables.dose(delay, effect, seen, **known).linear)

    return draw


def serial(sizes: int, df: int = 0) -> Callable[[Generator], float]:
    """The serial part lies in its interval; without standard errors, or with those of few df."""
    p = 2.0 ** np.arange(sizes)

    def draw(g: Generator) -> float:
        effect = 20 / p + 3 + 0.3 * g.standard_normal(sizes)
        se = 0.3 * np.sqrt(g.chisquare(df, sizes) / df) if df else None
        known = {"df": np.full(sizes, float(df))} if df and hasattr(tables.OverProcessors, "df") else {}
        fit = tables.over_processors(p, effect, se, **known)
        margin = getattr(fit, "serial_margin", 2 * fit.serial_se)
        return float(abs(fit.serial - 3) < margin)

    return draw


def proposed(runs: int) -> Callable[[Generator], float]:
    """Replicates proposed from three runs make three standard errors smaller than the effect."""

    def draw(g: Generator) -> float:
        known = {"df": 2.0} if "df" in signature(planning.replicates_for).parameters else {}
        sigma = float(g.standard_normal(3).std(ddof=1))
        r = planning.replicates_for(sigma, 0.9, runs, **known)
        return float(3 * 2 / np.sqrt(runs * r) <= 0.9)

    return draw


def predicted(replicates: int, drift: float, new: bool = False) -> Callable[[Generator], float]:
    """The mean at a setting (or one new trial of another replicate) lies in its 95 % interval."""

    def draw(g: Generator) -> float:
        found = core.analyse(experiment(g, 8, replicates, drift=drift, effects={(0,): 4.0, (1,): 2.0}))
        at = found.predict([1.0, 1.0, -1.0])
        if isinstance(at, tuple):
            return float(abs(at[0] - 13.0) < 1.959964 * at[1])
        true = 13.0 + (drift * g.standard_normal() + g.standard_normal() if new else 0.0)
        return float(at.new_low < true < at.new_high if new else at.low < true < at.high)

    return draw


def confirmed(
    runs: int, replicates: int, effects: Sizes, *, factors: int = 0, gone: bool = False, lost: bool = False,
    line: float = 0.0, relative: float = 0.0, **given: float,
) -> Callable[[Generator], float]:  # fmt: skip
    """The largest effect that is named is run by itself, five times, and so is the program as it is: is the
    prediction not confirmed? `gone`: the effects are there no more. `lost`: one trial was. Where nothing is
    named, another experiment is made."""
    threshold = "familywise" if hasattr(confirming, "Prediction") else "t"  # of an older tree: what it marked

    def draw(g: Generator) -> float:
        named: tuple[str, ...] = ()
        while not named:
            data = experiment(
                g, runs, replicates, factors=factors, effects=effects, line=line, relative=relative, **given
            )
            if lost:
                data.y[int(g.integers(len(data.y)))] = np.nan
            found = core.analyse(data, threshold=threshold)
            named = answer(found).named[:1]
        levels = [1.0 if name in named else -1.0 for name in found.trials.factors]
        order = np.concatenate([g.permutation(2) for _ in range(5)]).astype(bool)
        x = np.where(order[:, None], levels, -1.0)
        y = with_noise(g, x, {} if gone else effects, relative) + line * np.linspace(-1, 1, len(x))
        # It would be the same again.
        with patch.object(confirming, "analyse", lambda *_, **__: found, create=True):
            prediction = confirming.predicted(found, levels)
        one = confirming.judged(named, prediction, y[~order], y[order])
        return float(one.verdict == "not confirmed")

    return draw


def helps(g: Generator) -> float:
    """A place without any effect is said to help."""
    lines = core.ranked(core.analyse(experiment(g, 16, 2)))
    line = lines[0]
    line = next(one for one in lines if one.effect.term == "A")
    return float(line.verdict == "helps" if hasattr(line, "verdict") else line.rank == 0)


def lost(g: Generator) -> float:
    """One trial of 32 is lost while replicates drift: are effects that are none marked?"""
    data = experiment(g, 16, 2, drift=5.0)
    data.y[int(g.integers(32))] = np.nan
    return float(np.mean(marked(core.analyse(data))))


def small_beside_large(log: bool) -> Callable[[Generator], float]:
    """Two places, one makes the run five times as long, the other ten percent longer: are these ten
    percent in the interval?"""

    def draw(g: Generator) -> float:
        data = experiment(g, 8, 3, relative=0.03, effects={(0,): 4.0, (1,): 0.1}, log=True)
        e = core.analyse(data, **options(transform=0.0 if log else 1.0)).effect("B")
        return float(e.share_low < 10 < e.share_high) if hasattr(e, "share_low") else np.nan

    return draw


def share(g: Generator) -> float:
    """The share of the unperturbed run lies in its interval, although that run is one of eight."""
    found = core.analyse(experiment(g, 8, 2, effects={(0,): 4.0}))
    if not hasattr(found.effects[0], "share_low"):
        return np.nan
    e = found.effect("A")
    return float(e.share_low < 100 * 4.0 / 8.0 < e.share_high)


def change(g: Generator) -> float:
    """The change of a share between two versions, 40 % of a run of 8 and 75 % of one of 6."""
    versions = []
    for size in (3.2, 4.5):
        base = size / 0.4 if size < 4 else 6.0
        data = experiment(g, 8, 3, effects={(0,): size})
        data.y[:] += base + size / 2 - 10
        versions.append(comparing.compared_of("", Path(), core.analyse(data), 0.0, 0.0))
    one = comparing.normalised(*versions)[0]
    return float(one.low < 35.0 < one.high)


def waited(share_of: bool) -> Callable[[Generator], float]:
    """What is waited at a barrier (1 of 4), whose own cost (0.5) was measured with noise, too."""

    def draw(g: Generator) -> float:
        data = experiment(g, 8, 4, effects={(0,): 3.0, (1,): 4.5})
        found = core.analyse(data)
        before, after = found.effect("A"), found.effect("B")
        se = 0.3
        known = {"df": before.df} if "df" in signature(tables.barrier).parameters else {}
        one = tables.barrier(
            before.value, after.value, float(np.hypot(before.se, after.se)),
            0.5 + se * g.standard_normal(), se, **known,
        )  # fmt: skip
        if not hasattr(one, "share_low"):
            return np.nan
        return float(one.share_low < 0.25 < one.share_high if share_of else one.low < 1.0 < one.high)

    return draw


def taken_off(g: Generator) -> float:
    """An effect that is none, on a response that follows a covariate which is not balanced, is marked."""
    data = experiment(g, 8, 3)
    clock = g.standard_normal(len(data.y)) + data.x[:, 0]
    data.y[:] -= 2 * clock
    found = core.analyse(data.__class__(**vars(data) | {"beside": {"clock": clock}}), covariate="clock")
    return float(found.effect("A").significant)


def exponent(g: Generator) -> float:
    """The scaling exponent of perfectly shared work, from two tables of 6 degrees of freedom."""
    df = 6
    one, two = 20 + g.standard_normal(), 10 + g.standard_normal()
    se = np.sqrt(g.chisquare(df, 2) / df)
    known = {"df": (df, df)} if "df" in signature(tables.scaling).parameters else {}
    found = tables.scaling({"A": (one, se[0])}, 4, {"A": (two, se[1])}, 8, **known)[0]
    if not hasattr(found, "exponent_low"):
        return np.nan
    return float(found.exponent_low < -1 < found.exponent_high)


#: Effects of experiments that are confirmed.
TWO: Sizes = {(0,): 3.0, (1,): 3.0}
PAIR: Sizes = {(0,): 3.0, (0, 1): 0.6}
SEVEN: Sizes = {(j,): 3.0 for j in range(7)}

ROWS: tuple[Row, ...] = (
    *(
        Row(f"Lenth's margin, one effect, {n} runs", 0.05, each(n, 1, threshold="lenth"))
        for n in (8, 16, 32, 64)
    ),
    *(
        Row(f"Lenth's simultaneous margin, any, {n} runs", 0.05, some(n, 1, threshold="lenth-simultaneous"))
        for n in (8, 16, 32, 64)
    ),
    Row("one effect, 8 runs x 2", 0.05, each(8, 2)),
    Row("one effect, 16 runs x 6", 0.05, each(16, 6)),
    Row("one effect, 64 runs x 2, drift of replicates", 0.05, each(64, 2, drift=3.0)),
    Row("one effect, 16 runs x 3, drift over the run", 0.05, each(16, 3, line=3.0)),
    Row("one effect, 16 runs x 2, noise 20 %", 0.05, each(16, 2, relative=0.2)),
    Row("family-wise, any of 15, 16 runs x 2", 0.05, some(16, 2)),
    Row("family-wise, any of 63, 64 runs x 2", 0.05, some(64, 2)),
    Row("family-wise, any of 15, 16 runs x 1", 0.05, some(16, 1)),
    Row("false discovery rate, 4 of 15 real", 0.05 * 11 / 15, discoveries),
    Row("terms clicked away, 3 of 7 kept", 0.05, clicked(8, 3)),
    Row("terms clicked away, 5 of 15 kept", 0.05, clicked(16, 5)),
    Row("terms clicked away, 20 of 63 kept", 0.05, clicked(64, 20)),
    Row("terms clicked away, 2 real of 5 kept", 0.05, clicked_real, "<"),
    Row("terms clicked away, 5 of 15 kept, x 2", 0.05, clicked(16, 5, 2)),
    Row("power 90 %, 8 runs x 2", 0.9, power(8, 2)),
    Row("power 90 %, 16 runs x 3, drift", 0.9, power(16, 3, drift=5.0)),
    Row("power after one trial was lost, 16 runs x 2, drift", after_loss(16, 2), power(16, 2, 1, 5.0)),
    Row("one effect, 16 runs x 2, drift, one trial lost", 0.05, lost),
    Row("suspects, 16 runs x 1", 0.05, suspected(16, 1), "<"),
    Row("suspects, 16 runs x 2", 0.05, suspected(16, 2), "<"),
    *(
        Row(f"suspects, 16 runs x 3, noise {100 * s:g} %", 0.05,
            suspected(16, 3, relative=s, effects={(0,): 12.0, (1,): 4.0}), "<")
        for s in (0.01, 0.05, 0.2)
    ),
    Row("suspects, 16 runs x 3, drift", 0.05, suspected(16, 3, drift=4.0), "<"),
    Row("trial 6 sigma off named, 16 runs x 3", 0.97, found_out(16, 3), ">"),
    Row("trial 6 sigma off named, 16 runs x 3, drift, 4 active", 0.94,
        found_out(16, 3, drift=4.0, effects={(0,): 4.0, (1,): 2.0, (0, 1): 1.5, (2,): 1.2}), ">"),
    *(Row(f"verdict on factor and scale, r = {r}", 0.05, verdict(r)) for r in (2, 3, 6)),
    Row("verdict on factor and scale, r = 2, noise 2 %", 0.05, verdict(2, 0.02)),
    *(Row(f"not linear over {k} sizes", 0.05, bent(k)) for k in (3, 5, 8)),
    *(Row(f"not linear over {k} sizes, 4 df each", 0.05, bent(k, 4)) for k in (3, 8)),
    *(Row(f"a/p + b, b in its interval, K = {k}", 0.95, serial(k)) for k in (3, 4, 6)),
    Row("a/p + b, b in its interval, K = 4, SE of 6 df", 0.95, serial(4, 6)),
    Row("replicates from three runs are enough", 0.9, proposed(16), ">"),
    *(Row(f"prediction of a mean, r = {r}, drift", 0.95, predicted(r, 2.0)) for r in (2, 3, 6)),
    Row("prediction of a mean, r = 3, no drift", 0.95, predicted(3, 0.0), ">"),
    Row("prediction of a new trial, r = 4, drift", 0.95, predicted(4, 2.0, True)),
    *(Row(f"right, not confirmed, {name}", 0.05, draw, "<") for name, draw in (
        ("one of three, 8 runs x 3", confirmed(8, 3, {(0,): 3.0})),
        ("one of four, 16 runs x 2", confirmed(16, 2, {(0,): 3.0})),
        ("two of six that are equal, 16 runs x 2", confirmed(16, 2, TWO, factors=6)),
        ("a pair of 0.6 beside one of 3, 16 runs x 2", confirmed(16, 2, PAIR)),
        ("the same of six factors in 16 runs x 2", confirmed(16, 2, PAIR, factors=6)),
        ("one just named, 16 runs x 2", confirmed(16, 2, {(0,): 1.0})),
        ("seven that are equal, 8 runs x 2", confirmed(8, 2, SEVEN, factors=7)),
        ("one of four, 16 runs x 1", confirmed(16, 1, {(0,): 3.0})),
        ("two of six, 64 runs x 1", confirmed(64, 1, TWO)),
        ("one of three, 8 runs x 6", confirmed(8, 6, {(0,): 2.0})),
        ("16 runs x 2, drift of replicates", confirmed(16, 2, PAIR, drift=3.0)),
        ("16 runs x 3, drift over both", confirmed(16, 3, PAIR, line=2.0)),
        ("16 runs x 2, noise 1 %", confirmed(16, 2, PAIR, relative=0.01)),
        ("16 runs x 2, noise 20 %", confirmed(16, 2, {(0,): 6.0, (0, 1): 1.2}, relative=0.2)),
        ("16 runs x 2, one trial lost", confirmed(16, 2, PAIR, lost=True)),
    )),
    *(Row(f"wrong, not confirmed, {name}", 1.0, draw, "~") for name, draw in (
        ("one of 3 in 8 runs x 3", confirmed(8, 3, {(0,): 3.0}, gone=True)),
        ("one of 3 in 16 runs x 2", confirmed(16, 2, {(0,): 3.0}, gone=True)),
        ("one of 3 of six factors, 16 runs x 2", confirmed(16, 2, {(0,): 3.0}, factors=6, gone=True)),
        ("one of 3 of six factors, 64 runs x 1", confirmed(64, 1, {(0,): 3.0}, gone=True)),
        ("two of 3 of six factors, 16 runs x 2", confirmed(16, 2, TWO, factors=6, gone=True)),
        ("one of 3 in 8 runs x 6", confirmed(8, 6, {(0,): 3.0}, gone=True)),
        ("one of 5 in 16 runs x 2", confirmed(16, 2, {(0,): 5.0}, gone=True)),
    )),
    Row("'helps' for no effect", 0.025, helps),
    Row("+10 % beside x5, in its interval, as it is", 0.95, small_beside_large(False), "~"),
    Row("+10 % beside x5, in its interval, logarithm", 0.95, small_beside_large(True)),
    Row("share in its interval, 8 runs x 2", 0.95, share),
    Row("scaling exponent in its interval", 0.95, exponent),
    Row("change between versions in its interval", 0.95, change),
    Row("what is waited at a barrier in its interval", 0.95, waited(False)),
    Row("share of a barrier in its interval", 0.95, waited(True)),
    Row("one effect, a covariate taken off", 0.05, taken_off),
)  # fmt: skip


#: Draws that are made, and kept, at a time.
PIECE = 500


def piece(row: Row, number: int, draws: int = PIECE) -> list[float]:
    """Number of draws that say anything, sum, and sum of squares. Each piece has its own seed, so that a
    campaign can stop and go on."""
    generator = np.random.default_rng([sum(map(ord, row.name)), number])
    look = "suspects" if hasattr(core, "suspects") else "_suspects"
    # Rows that are not about trials that do not fit need not look for these.
    about = row.name.startswith(("suspects", "trial"))
    left_out = nullcontext() if about else patch.object(core, look, lambda *_: ())
    with np.errstate(all="ignore"), left_out:
        values = np.array([row.draw(generator) for _ in range(draws)])
    values = values[np.isfinite(values)]
    return [float(values.size), float(values.sum()), float((values**2).sum())]


def found(pieces: list[list[float]]) -> tuple[float, float]:
    """Share in which it happened, and its standard error."""
    if not pieces or not (sums := np.sum(pieces, axis=0))[0]:
        return np.nan, np.nan
    mean = sums[1] / sums[0]
    return float(mean), float(np.sqrt(max(sums[2] / sums[0] - mean**2, 0.0) / sums[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("draws", type=int, nargs="?", default=10_000)
    parser.add_argument("words", nargs="*", help="only rows with one of these in their name")
    parser.add_argument("--keep", type=Path, help="file of the pieces; what it has is not made again")
    given = parser.parse_args()
    size = min(PIECE, given.draws)
    rows = [row for row in ROWS if not given.words or any(word in row.name for word in given.words)]
    known: dict[str, dict[int, list[float]]] = {row.name: {} for row in ROWS}
    if given.keep and given.keep.exists():
        for line in given.keep.read_text(encoding="utf-8").splitlines():
            name, number, *sums = line.split("\t")
            known.setdefault(name, {})[int(number)] = [float(one) for one in sums]
    failed: dict[str, str] = {}
    # Every row gets its piece before any gets the next: whenever this is stopped, there is a whole table.
    for number in range(-(-given.draws // size)):
        for row in rows:
            if number in known[row.name] or row.name in failed:
                continue
            try:
                known[row.name][number] = sums = piece(row, number, size)
            except (TypeError, ValueError, KeyError) as why:
                failed[row.name] = str(why)
                continue
            if given.keep:
                with given.keep.open("a", encoding="utf-8") as file:
                    file.write("\t".join([row.name, str(number), *map(repr, sums)]) + "\n")
    print(f"{'statement':<60}{'stated':>8}{'found':>8}        draws")
    for row in rows:
        if row.name in failed:
            print(f"{row.name:<60}{100 * row.stated:>7.1f}%   not there: {failed[row.name][:40]}")
            continue
        share_found, error = found(list(known[row.name].values()))
        sign = {"<": "at most", ">": "at least"}.get(row.kind, "")
        print(
            f"{row.name:<60}{100 * row.stated:>7.1f}%{100 * share_found:>7.1f}% ± {100 * error:.1f}"
            f"{size * len(known[row.name]):>8} {sign}"
        )


if __name__ == "__main__":
    main()
