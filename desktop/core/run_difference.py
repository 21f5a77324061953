"""Why one run takes longer than another: the difference of their durations, divided among its causes.

The duration of a run is the time of its average processor. All of that time is charged to what locations do
(`desktop.core.charges`): a processor that waits is charged to the location that it waits for. So the
difference of two durations is the sum, over all activities, of how much longer an average processor of one
run does this or waits for others that do it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from desktop.core.accounts import Account
from desktop.core.arrays import Floats
from desktop.core.charges import ENDING, NOT_BEGUN, Charges, RunCosts
from desktop.core.labels import ACCOUNTS
from desktop.core.matching import NONE
from desktop.core.root_causes import NAMED, Naming
from desktop.core.units import brief, seconds, trimmed

if TYPE_CHECKING:
    from desktop.core.contrast import Alignment

#: Runs whose durations differ by less than this part take equally long; then activities are named from
#: `APART` of the duration on.
ALIKE, APART = 0.01, 0.1
#: Else activities and phases are named from this part of the difference on, at most `MOST`.
WORTH, MOST = 0.2, 2
#: Their regions are calls that show one difference together: the call with most of it is named.
_CALLS = (Account.MOVING, Account.UNKNOWN, Account.OVERHEAD, Account.STARTUP, ENDING)

_TITLES = {int(one): ACCOUNTS[one.name.lower()][0] for one in Account} | {
    NOT_BEGUN: "Processes that have not begun", ENDING: "Shutdown", int(Account.STARTUP): "Start-up",
    int(Account.UNKNOWN): "Unclassified communication",
}  # fmt: skip


def run_costs(of: Charges, words: Naming) -> RunCosts:
    """The costs of a run, from its charges."""
    times: dict[tuple[int, str, str], Floats] = defaultdict(lambda: np.zeros(2))
    both = np.stack([of.own_s, of.below_s.sum(axis=1)], axis=1)
    rows = zip(of.account.tolist(), of.region.tolist(), of.location.tolist(), both, strict=True)
    for account, region, location, time in rows:
        times[account, words.region(region) if region >= 0 else "", words.location(location)] += time
    return RunCosts(of.processors, dict(times))


@dataclass(frozen=True)
class CostDifference:
    """An activity that takes longer or shorter, seconds of an average processor: its own time (`own_s`), and
    waiting for it (`waits_s`). `location`: the only one whose own time has changed much, or ""."""

    account: int
    region: str
    location: str
    own_s: float
    waits_s: float

    @property
    def total_s(self) -> float:
        return self.own_s + self.waits_s

    @property
    def words(self) -> str:
        """``computing in relax +350 ms``, with its location, or how much of it is waiting."""
        title = _TITLES[self.account]
        title = title if title.startswith("I/O") else title[:1].lower() + title[1:]
        text = f"{title} in {self.region}" if self.region else title
        text = f"{text} {_signed(self.total_s)}"
        if 0.1 <= self.waits_s / self.total_s <= 1:
            who = f" for {self.location}" if self.location else ""
            return f"{text} ({brief(abs(self.waits_s), 3)} of it waiting{who})"
        return f"{text} ({self.location})" if self.location else text


def cost_differences(run: RunCosts, reference: RunCosts) -> list[CostDifference]:
    """The differences of all activities, which add up to that of the durations, the largest first."""
    parts: dict[tuple[int, str], dict[str, Floats]] = defaultdict(lambda: defaultdict(lambda: np.zeros(2)))
    calls: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    here, there = _computing_regions(run), _computing_regions(reference)
    # Regions that each run has for itself are the same work under other names, of another tracer say.
    renamed = here ^ there if here - there and there - here else set()
    for sign, costs in ((1, run), (-1, reference)):
        for (account, region, location), time in costs.times.items():
            unnamed = account in _CALLS or (account == Account.COMPUTING and region in renamed)
            parts[account, "" if unnamed else region][location] += sign * time / costs.processors
            calls[account][region] += sign * float(time.sum()) / costs.processors
    differences = []
    for (account, region), by_location in parts.items():
        own, waits = np.sum(list(by_location.values()), axis=0).tolist()
        total = own + waits
        # Waiting for one late location delays others, for which still others wait: its own time shows it.
        changed = {location: abs(float(time[0])) for location, time in by_location.items()}
        first, *others = sorted(changed, key=lambda location: -changed[location])
        alone = not others or changed[first] > 2 * changed[others[0]]
        alone = alone and by_location[first][0] * total * run.processors > NAMED * total**2
        if account in _CALLS:
            region = max(calls[account], key=lambda call: calls[account][call] * total)
        differences.append(CostDifference(account, region, first if alone else "", own, waits))
    return sorted(differences, key=lambda one: -abs(one.total_s))


def _computing_regions(run: RunCosts) -> set[str]:
    """The regions in which at least a twentieth of the computing is."""
    times: dict[str, float] = defaultdict(float)
    for (account, region, _), time in run.times.items():
        if account == Account.COMPUTING:
            times[region] += float(time[0])
    return {region for region, time in times.items() if time >= 0.05 * sum(times.values())}


def explain_differences(alignment: Alignment) -> list[str]:
    """For each run but the reference a sentence on why it takes longer or shorter, and one on its phases."""
    sentences = []
    reference = alignment.runs[alignment.reference]
    for k, run in enumerate(alignment.runs):
        if k == alignment.reference:
            continue
        longer = run.curve.duration - reference.curve.duration
        parts = cost_differences(run.costs, reference.costs) if run.costs and reference.costs else []
        names = {**reference.called, **run.called}
        parts = [replace(one, region=names.get(one.region, one.region)) for one in parts]
        on, at = "", ""
        if run.curve.capacity != reference.curve.capacity and reference.curve.quantity.counted:
            on, at = f" on {run.curve.capacity:g} processors", f" on {reference.curve.capacity:g}"
        head = f"{run.name} takes {seconds(run.curve.duration)}{on}"
        if abs(longer) < ALIKE * reference.curve.duration:
            text = f"{head}, as long as {reference.name}{at}"
            large = [one for one in parts if abs(one.total_s) > APART * reference.curve.duration][:MOST]
            sentences.append(
                f"{text}, but not for the same reasons: per processor, {_list(large)}."
                if large
                else f"{text}."
            )
            continue
        ratio = run.curve.duration / reference.curve.duration
        text = (
            f"{head}, {brief(abs(longer), 3)} {'longer' if longer > 0 else 'less'} than {reference.name}{at}"
        )
        large = [one for one in parts if abs(one.total_s) >= WORTH * abs(longer)] or parts[:1]
        towards = [one for one in large if one.total_s * longer > 0][:MOST]
        against = [one for one in large if one.total_s * longer < 0][:MOST]
        text += f" ({trimmed(ratio, 3)} times)"
        text += f": per processor, {_list(towards)}" if towards else ""
        sentences.append(text + (f"; against that {_list(against)}." if against else "."))
        if len(alignment.rows) > 1:
            sentences += _by_phase(alignment, k, longer)
    return sentences


def _by_phase(alignment: Alignment, k: int, longer: float) -> list[str]:
    """A sentence on the phases in which run `k` differs most from the reference."""
    phases = []
    for r, row in enumerate(alignment.rows.tolist()):
        ours, theirs = (
            0.0 if row[i] == NONE else float(alignment.runs[i].fit.duration[row[i]])
            for i in (k, alignment.reference)
        )
        if abs(ours - theirs) >= WORTH * abs(longer):
            phases.append((ours - theirs, alignment.label(r)))
    phases.sort(key=lambda one: -abs(one[0]))
    texts = [f"{label} {_signed(value)}" for value, label in phases[:MOST]]
    return [f"By phase: {', '.join(texts)}."] if texts else []


def _signed(value_s: float) -> str:
    return f"{'+' if value_s > 0 else '−'}{brief(abs(value_s), 3)}"


def _list(parts: Sequence[CostDifference]) -> str:
    return ", ".join(one.words for one in parts)
