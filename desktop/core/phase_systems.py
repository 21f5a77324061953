"""Phases of one program on several systems: the factor model with phases as codes, and a speed for every
system and function of p.

A phase k takes on system s and p processors::

    T(k, s, p) = sum_i w_ki / r_si u_i(p)

(Strohmaier, UTK-CS-97-354, section 4.2). For given speeds r this is the law of `desktop.core.phase_model`
with the runs of all systems, so its methods (weights of sets of functions, parts of the phases, phases that
add up to the run) apply unchanged. Speeds are drawn around those of the joint factor model, with twice their
variance, and resampled by the probability of the runs of all phases (importance sampling); logarithms of
speeds of functions that are not in the factor model differ from the others by about `_APART`. Speeds are
relative to the first system.

If separate laws of the phases on each system are more probable, each system is modelled separately.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import Floats, Ints
from desktop.core.characteristic import CHARACTERISTICS
from desktop.core.factor_answers import choose
from desktop.core.factor_fit import Measurements
from desktop.core.factor_intervals import quantile
from desktop.core.factor_model import ModelFit
from desktop.core.phase_model import (
    FEWER,
    FEWEST,
    Band,
    PhaseModel,
    ScalingRuns,
    band,
    block_ends,
    model_phases,
    spreads_of,
    weigh,
)
from desktop.core.plain import JSON

#: Draws of speeds that are tried, and that are kept.
_SPEEDS, _DRAWS = 64, 32
#: Standard deviation of the logarithms of a system's speeds between functions.
_APART = 0.7
#: Standard deviation of the logarithm of the ratio of two systems' speeds.
_RATIO = 2.0
#: Least error, as a share of a time.
_LEAST = 0.004


@dataclass(frozen=True, eq=False)
class SystemsModel:
    """A model of the phases on each system; None where there is none. `joint`: all phases share the speeds of
    a system, `speed` (draws, systems, functions); else systems are modelled separately. `chance`: probability
    that phases share the speeds. `problem`: why the model is not joint."""

    systems: tuple[str, ...]
    models: tuple[PhaseModel | None, ...]
    joint: bool
    chance: float
    speed: Floats
    problem: str = ""

    @property
    def different(self) -> int:
        """Number of different p of the runs."""
        return len({p for _, model in self.fitted for p in model.data.p.tolist()})

    @property
    def fitted(self) -> tuple[tuple[str, PhaseModel], ...]:
        """The systems that have a model."""
        return tuple((s, m) for s, m in zip(self.systems, self.models, strict=True) if m is not None)

    def ratio(self, a: int, b: int, p: Floats) -> Band | None:
        """Time of the run on system a over that on b, at p (P,); None without a model of either."""
        first, second = self.models[a], self.models[b]
        if first is None or second is None:
            return None
        over = second.durations(p, noise=False)[1]
        if not self.joint:
            over = np.random.default_rng([19, 3]).permutation(over)
        return band(first.durations(p, noise=False)[1] / over)

    def speeds(self) -> list[JSON]:
        """Speeds of each system but the first, relative to the first, for functions that some phase probably
        has: system, function, value, low, high, chance (the largest probability of a phase to have it)."""
        first = self.models[0]
        if not self.joint or first is None:
            return []
        chance = np.max([(law.weights > 0).mean(axis=0) for law in first.phases], axis=0)
        rows = []
        for s, name in enumerate(self.systems[1:], 1):
            log = np.log(self.speed[:, s])
            middle, far = log.mean(axis=0), float(quantile(_DRAWS - 1)) * log.std(axis=0)
            value, low, high = np.exp(middle), np.exp(middle - far), np.exp(middle + far)
            rows += [
                {
                    "system": name, "function": one.text, "value": float(value[i]),
                    "low": float(low[i]), "high": float(high[i]), "chance": float(chance[i]),
                }
                for i, one in enumerate(CHARACTERISTICS) if chance[i] >= 0.5
            ]  # fmt: skip
        return rows


def model_runs(data: ScalingRuns) -> PhaseModel | SystemsModel:
    """`model_systems` of runs on several systems, else `model_phases`; raises as they do."""
    return model_systems(data) if data.systems else model_phases(data)


def model_systems(data: ScalingRuns) -> SystemsModel:
    """The model of runs on two or more systems (`data.systems`).

    Raises
    ------
    ValueError : fewer than `FEWEST` different p of all runs, or a phase without time.
    """
    systems = tuple(dict.fromkeys(data.systems))
    number = np.array([systems.index(name) for name in data.systems])
    by_system = [data.only(np.flatnonzero(number == s).tolist()) for s in range(len(systems))]
    if np.unique(data.p).size < FEWEST or len(systems) < 2:
        raise ValueError(
            f"{len(systems)} systems with runs on {np.unique(data.p).size} different numbers of processors "
            f"have no model, two and {FEWEST} are needed"
        )
    problem, chance, speeds = "", 0.0, None
    try:
        speeds, chance = _speeds(data, by_system, number, *_around(_factors(data, systems, number)))
    except ValueError as why:
        problem = f"{why}, so each system is modelled by itself"
    if chance < 0.5 and not problem:
        problem = (
            "the phases do not have the same ratio of speeds "
            f"(that they do has a probability of {100 * chance:.2g} %), so each system is modelled by itself"
        )
    if speeds is None or problem:
        alone = tuple(model_phases(one) if np.unique(one.p).size >= FEWEST else None for one in by_system)
        if not any(alone):
            raise ValueError(
                f"{problem}, and none has runs on {FEWEST} or more different numbers of processors"
            )
        return SystemsModel(systems, alone, False, chance, np.empty((0, 0, 0)), problem)
    model = model_phases(data, speeds[:, number])
    # (draws, systems, functions)
    each, below = (np.repeat(x, np.diff(block_ends(len(x))), axis=0) for x in (speeds, speeds[::FEWER]))
    on = tuple(_on(model, each[:, s], below[:, s], one) for s, one in enumerate(by_system))
    return SystemsModel(systems, on, True, chance, each)


def _on(model: PhaseModel, speed: Floats, below: Floats, data: ScalingRuns) -> PhaseModel:
    """The model on one system, with its `speed` (draws, functions), that of parts `below`, and its own runs
    `data`."""
    parts, accounts = (
        tuple(tuple(None if law is None else law.on(below) for law in row) for row in rows)
        for rows in (model.parts, model.accounts)
    )
    phases = tuple(law.on(speed) for law in model.phases)
    return PhaseModel(data, phases, model.run.on(speed), parts, accounts)


def _factors(data: ScalingRuns, systems: tuple[str, ...], number: Ints) -> ModelFit:
    """The joint factor model of the phases."""
    count = len(data.phases)
    if count < 2:
        raise ValueError("with one phase, the speeds of a system cannot be separated from its work")
    table = Measurements(
        tuple(f"phase {k + 1}" for k in range(count)), systems, np.tile(np.arange(count), data.p.size),
        np.repeat(number, count), np.repeat(data.p, count), data.duration.ravel(),
    )  # fmt: skip
    return choose(table, "joint", response="log", reference=systems[0], positive=True).fit


def _around(fit: ModelFit) -> tuple[Floats, Floats, list[tuple[int, int]]]:
    """Logarithms (K,) of speeds of the factor model, covariance (K, K), and (system, function)."""
    texts = [one.text for one in CHARACTERISTICS]
    which, at, values = [], [], []
    for s in range(1, len(fit.data.systems)):
        for i, name in enumerate(fit.functions):
            value, error = fit.ratio("speed", i, s, 0)
            place = fit.position.get(("speed", i, s))
            if place is not None and value > 0 and np.isfinite(error):
                which.append((s, texts.index(name)))
                at.append(place)
                values.append(value)
    if len({s for s, _ in which}) < len(fit.data.systems) - 1:
        raise ValueError("the runs do not determine the relative speeds of the systems")
    speed = np.array(values)
    spread: Floats = fit.covariance[np.ix_(at, at)] / np.outer(speed, speed)
    tails = (float(quantile(float(max(fit.df, 1)))) / 1.96) ** 2
    spread = 2.0 * tails * spread * max(1.0, (_LEAST / max(fit.s, 1e-12)) ** 2)
    precise = np.linalg.inv(spread + 1e-12 * np.eye(len(at))) + np.eye(len(at)) / _APART**2
    return np.log(speed), np.asarray(np.linalg.inv(precise), np.float64), which


# Many: the runs, and the results of the factor model.
def _speeds(
    data: ScalingRuns,
    by_system: list[ScalingRuns],
    number: Ints,
    value: Floats,
    spread: Floats,
    which: list[tuple[int, int]],
) -> tuple[Floats, float]:
    """(kept, systems, functions) equally probable draws of speeds; and the probability that all phases share
    them, against separate laws on each system, with a prior of one half."""
    rng = np.random.default_rng([19, 4])
    half = rng.standard_normal((_SPEEDS // 2, len(which)))
    normal = np.concatenate([half, -half])
    root = np.linalg.cholesky(spread)
    drawn = value + normal @ root.T
    log = np.zeros((_SPEEDS, len(by_system), len(CHARACTERISTICS)))
    # importance weights: prior density of the speeds over the density of the draws
    score = (normal**2 + np.log(2 * np.pi)).sum(axis=1) / 2 + np.log(np.diag(root)).sum()
    for s in range(1, len(by_system)):
        mine = [k for k, (of, _) in enumerate(which) if of == s]
        middle = drawn[:, mine].mean(axis=1, keepdims=True)
        log[:, s] = middle + _APART * rng.standard_normal((_SPEEDS, len(CHARACTERISTICS)))
        log[:, s, [which[k][1] for k in mine]] = drawn[:, mine]
        score -= ((drawn[:, mine] - middle) ** 2).sum(axis=1) / (2 * _APART**2)
        score -= (len(mine) - 1) / 2 * np.log(2 * np.pi * _APART**2)
        score -= middle[:, 0] ** 2 / (2 * _RATIO**2) + np.log(2 * np.pi * len(mine) * _RATIO**2) / 2
    score += [_likely(data, one[number]) for one in np.exp(log)]
    weight = np.exp(score - score.max())
    apart = float(_together(sum(_log_likelihood(one, np.ones((one.p.size, 1))) for one in by_system)))
    joint = float(score.max() + np.log(weight.mean()))
    picks = np.searchsorted(np.cumsum(weight / weight.sum()), (np.arange(_DRAWS) + 0.5) / _DRAWS)
    speeds = np.asarray(np.exp(log[np.minimum(picks, _SPEEDS - 1)]), np.float64)
    return speeds, float(1.0 / (1.0 + np.exp(np.clip(apart - joint, -700, 700))))


def _log_likelihood(data: ScalingRuns, speed: Floats) -> Floats:
    """(kinds x spreads,) log likelihood of all phases for each kind and spread of errors."""
    whole = data.duration.sum(axis=1)
    every = [
        spreads_of(weigh(data.p, data.duration[:, k], None, k + 1, whole, speed))
        for k in range(len(data.phases))
    ]
    return np.asarray(np.sum(every, axis=0), np.float64)


def _together(likely: Floats | float) -> float:
    """Log of the sum of likelihoods, given as logarithms, over all kinds and spreads."""
    return float(np.logaddexp.reduce(np.asarray(likely)))


def _likely(data: ScalingRuns, speed: Floats) -> float:
    return _together(_log_likelihood(data, speed))
