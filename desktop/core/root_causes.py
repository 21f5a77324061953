"""Root causes of lost processor time, ranked by their cost, in words.

Time in which processors do not compute has been traced to locations that do not wait
(`desktop.core.wait_tree`): each lost processor-second is charged to a location and to its activity at that
time. Here these charges are grouped by activity, region, and how the others waited for it; each group is
classified as one `Kind` of the table `KINDS`, groups of the same cause are merged and described in sentences.

A rank is named if it holds over `NAMED` of a group. `STRENGTH` says how strong the evidence is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from desktop.core.accounts import Account
from desktop.core.arrays import Flags, Floats
from desktop.core.charges import AFTER, BARRIER, ENDING, NOT_BEGUN, RECEIVER, ROOT, SENDER, TOGETHER, Charges
from desktop.core.units import brief, capital, count, percent, quantity, trimmed
from desktop.core.wait_tree import FAMILIES

#: A location is named if it holds more than this part of a cause.
NAMED = 0.4
#: Causes below this part of the lost time have no sentence.
WORTH = 0.05
#: Below this part of all processor time, little is lost.
LITTLE = 0.1
#: A master only serves if it computes less than this part of the busiest other location's computing.
SERVES = 0.1
#: Size of a message (bytes) at which latency and transfer take about equally long on present networks.
SMALL = 8192
#: Networks take less than this for a small message (s), and move more than so many bytes in a second.
LATENCY_S, SLOW = 5e-4, 2e7
#: From this load balance on, there is no imbalance.
BALANCED = 0.95

#: How strong the evidence of a cause is.
STRENGTH = {
    "strong": "at least 80 % of its seconds fit the cause, seen ten times or more",
    "fair": "at least 60 % of its seconds fit the cause, seen three times or more",
    "weak": "seen once or twice, or less of its seconds fit, or clocks contradict each other",
}


@dataclass(frozen=True, eq=False)
class Group:
    """Charges of one kind: time lost while locations do `account` in `region`.

    lost_s : (locations,) charged to each. direct_s, chained_s : waiting for these directly, and by way of
    others that wait. upward : part of the waiting for senders that is for locations before the waiting one.
    work_s : (locations,) time of the account in the region. family : how others wait, -1 any. call : the
    region they wait in, or -1.
    """

    of: Charges
    account: int
    region: int
    family: int
    lost_s: Floats
    direct_s: float
    chained_s: float
    upward: float
    seen: int
    work_s: Floats
    call: int

    @property
    def total_s(self) -> float:
        return float(self.lost_s.sum())

    @cached_property
    def top(self) -> int:
        return int(np.argmax(self.lost_s))

    @cached_property
    def share(self) -> float:
        """Part of the location that holds most."""
        return float(self.lost_s[self.top] / self.total_s)

    @property
    def spread(self) -> bool:
        """Whether no location holds far more than the others."""
        return self.share <= max(NAMED, 1.5 / max(int(self.taking_part.sum()), 1))

    @cached_property
    def taking_part(self) -> Flags:
        """(locations,) which wait in this way or are waited for."""
        return (self.waits_s > 0) | (self.lost_s > 0)

    @cached_property
    def waits_s(self) -> Floats:
        """(locations,) time that each waits in this way."""
        return np.asarray(self.of.waiting_s[:, _together(self.family)].sum(axis=1))

    @cached_property
    def shared(self) -> bool:
        """Whether over half of those that take part work more than a tenth as long as the longest."""
        work = self.work_s[self.taking_part]
        return bool((work > 0.1 * work.max(initial=0.0)).mean() > 0.5) if work.size else False

    @cached_property
    def unequal(self) -> float:
        """Part of the waiting that unequal computing over the whole range explains."""
        work = self.work_s[self.taking_part]
        return min(float((work.max() - work).sum()) / self.total_s, 1.0) if work.size else 0.0

    @property
    def slowest(self) -> int:
        """The location that computes longest, of those that take part."""
        return int(np.argmax(np.where(self.taking_part, self.work_s, -1.0)))

    @cached_property
    def recovered(self) -> float:
        """Part of that inequality that would vanish if the slowest location were as fast as the second."""
        work = np.sort(self.work_s[self.taking_part])
        if work.size < 2 or work[-1] == work[0]:
            return 0.0
        return 1.0 - float((work[-2] - work[:-1]).sum() / (work[-1] - work).sum())

    @cached_property
    def mutual(self) -> float:
        """Part in which the waiting locations are also the ones waited for."""
        return float(np.minimum(self.waits_s, self.lost_s).sum() / self.total_s)

    @cached_property
    def heavy(self) -> float:
        """Part of the waiting in the sum of waiting and computing in the region."""
        computing = float(self.work_s[self.taking_part].sum())
        return self.total_s / (self.total_s + computing) if self.total_s else 0.0

    @property
    def chained(self) -> float:
        total = self.direct_s + self.chained_s
        return self.chained_s / total if total else 0.0


@dataclass(frozen=True)
class Kind:
    """A kind of cause. `test`: the part of a group's seconds that fit the kind, 0 if none; a group is of the
    first kind in the table with half or more. `says`: the sentence, without its full stop."""

    key: str
    title: str
    test: Callable[[Group], float]
    says: Callable[[Cause, Naming], str]


@dataclass(frozen=True, eq=False)
class Cause:
    """A cause of lost time in a range.

    lost_s : processor-seconds. part : of all that are lost in the range. locations : those that are charged,
    most first; `named`: whether the first one holds over `NAMED`. seen : how often a location began to wait
    for it. fits : the part of its seconds that the test of its kind explains. besides : further groups with
    at least a tenth of its seconds, which the sentence only names.
    """

    kind: Kind
    group: Group
    lost_s: float
    part: float
    locations: tuple[int, ...]
    seen: int
    fits: float
    besides: tuple[Group, ...] = ()

    @property
    def named(self) -> bool:
        return len(self.locations) > 0 and self.group.share > NAMED

    @property
    def about(self) -> int:
        """The location that the sentence names, -1 if none: the first that is charged; a waiting master, for
        whose waiting the workers are charged; or the slowest rank."""
        if self.kind.key == "idle master":
            return self.group.of.hub
        if self.kind.key == "slow rank":
            return self.group.slowest
        return self.locations[0] if self.locations else -1

    @property
    def strength(self) -> str:
        """One of `STRENGTH`."""
        waits = self.group.direct_s + self.group.chained_s
        doubted = waits > 0 and self.group.of.doubt_s > 0.1 * self.lost_s
        # A location's own loss is in the trace; only the loss of others is inferred.
        often = self.seen if waits > 0.5 * self.lost_s else max(self.seen, 10)
        if self.fits >= 0.8 and often >= 10 and not doubted:
            return "strong"
        return "fair" if self.fits >= 0.6 and often >= 3 and not doubted else "weak"


@dataclass(frozen=True)
class Naming:
    """Names of locations and regions for sentences. `ranks`: of each location, -1 none."""

    location: Callable[[int], str]
    region: Callable[[int], str]
    ranks: tuple[int, ...] = ()

    def several(self, locations: Sequence[int], most: int = 4) -> str:
        """``rank 0``, ``ranks 5-7``, ``ranks 0, 2, 4 and 9 more``."""
        names = [self.location(i) for i in locations]
        if len(names) == 1:
            return names[0]
        if len(names) == len(self.ranks):
            return f"all {len(names)} {'ranks' if len(set(self.ranks)) == len(names) else 'locations'}"
        ranks = [self.ranks[i] if i < len(self.ranks) else -1 for i in locations]
        if all(name == f"rank {rank}" for name, rank in zip(names, ranks, strict=True)):
            runs: list[list[int]] = []
            for rank in sorted(ranks):
                if runs and rank == runs[-1][-1] + 1:
                    runs[-1].append(rank)
                else:
                    runs.append([rank])
            if len(ranks) == 2:
                return f"ranks {runs[0][0]} and {runs[-1][-1]}"
            if len(runs) <= most:
                parts = [f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
                return f"ranks {', '.join(parts)}"
            names = [str(rank) for rank in ranks]
            return f"ranks {', '.join(names[:most])} and {len(names) - most} more"
        if len(names) <= most:
            return f"{', '.join(names[:-1])} and {names[-1]}"
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"


# ---- sentences


def _region(cause: Cause, words: Naming) -> str:
    """`` in region relax``, or "" without a region."""
    return f" in region {words.region(cause.group.region)}" if cause.group.region >= 0 else ""


def _call(cause: Cause, words: Naming) -> str:
    """`` in MPI_Recv``, or "" without a call."""
    return f" in {words.region(cause.group.call)}" if cause.group.call >= 0 else ""


def _who(cause: Cause, words: Naming) -> str:
    """The locations that are charged."""
    return words.several(sorted(cause.locations[:1] if cause.named else cause.locations))


def _waiters_wait(cause: Cause, words: Naming) -> str:
    """``rank 1 waits in MPI_Recv``: the locations that wait for those that are charged."""
    waits = cause.group.waits_s
    charged = set(cause.locations[:1] if cause.named else cause.locations)
    waiters = [i for i in np.flatnonzero(waits > 0.2 * waits.max(initial=0.0)).tolist() if i not in charged]
    if not waiters or len(waiters) >= int(cause.group.of.is_processor.sum()) - len(charged):
        return f"the others wait{_call(cause, words)}"
    who = words.several(waiters)
    return f"{who} {'waits' if _one(who) else 'wait'}{_call(cause, words)}"


def _one(text: str) -> bool:
    """Whether a text of `Naming.several` names one location."""
    return not text.startswith(("ranks ", "all ", "the others")) and ", " not in text and " and " not in text


def _others(group: Group, words: Naming, *but: int) -> str:
    """The other locations that take part beside `but`: ``the others``, or the only one by name."""
    others = [i for i in np.flatnonzero(group.taking_part).tolist() if i not in but]
    return words.location(others[0]) if len(others) == 1 else "the others"


def _others_wait(group: Group, words: Naming, *but: int) -> str:
    others = _others(group, words, *but)
    return f"{others} {'waits' if _one(others) else 'wait'}"


def _says_imbalance(cause: Cause, words: Naming) -> str:
    group = cause.group
    work = group.work_s[group.taking_part]
    mean = float(work.mean())
    long = np.flatnonzero(group.taking_part & (group.work_s > (mean + work.max()) / 2)).tolist()
    who = words.several(long)
    verb, them = ("computes", "it") if _one(who) else ("compute", "them")
    more = work.max() / mean
    times = (
        f"{trimmed(more, 2)} times the mean"
        if more >= 1.1
        else f"up to {percent(more - 1)} more than the mean"
    )
    waits = f"{_others_wait(group, words, *long)} for {them}{_call(cause, words)}"
    return f"Load imbalance: {who} {verb} {times}{_region(cause, words)}, and {waits}"


def _says_slow(cause: Cause, words: Naming) -> str:
    group = cause.group
    work = group.work_s[group.taking_part]
    slow = cause.about
    mean = float((work.sum() - work.max()) / (work.size - 1))
    times = f"{trimmed(work.max() / mean, 2)} times" if work.max() < 100 * mean else "more than 100 times"
    long = f"{times} as long as {_others(group, words, slow)}{_region(cause, words)}"
    waits = f"{_others_wait(group, words, slow)} for it{_call(cause, words)}"
    return f"{capital(words.location(slow))} is slow or has more work: it computes {long}, and {waits}"


def _says_alone(cause: Cause, words: Naming) -> str:
    who = capital(_who(cause, words))
    waits = f"{_others_wait(cause.group, words, cause.locations[0])} for it{_call(cause, words)}"
    return f"{who} alone computes{_region(cause, words)}, and {waits}"


def _says_late_root(cause: Cause, words: Naming) -> str:
    call = words.region(cause.group.call) if cause.group.call >= 0 else "one-to-all operations"
    in_region = _region(cause, words)
    if cause.named:
        who = _who(cause, words)
        waits = f"{_others_wait(cause.group, words, cause.locations[0])} for it"
        return f"The root of {call}, {who}, comes late: it first computes{in_region}, and {waits}"
    return f"The roots of {call} come late: each first computes{in_region}, and the others wait for it"


def _says_serial(cause: Cause, words: Naming) -> str:
    of = cause.group.of
    processors = np.flatnonzero(of.is_processor).tolist()
    ends = [words.location(processors[0]), words.location(processors[-1])]
    if cause.group.upward < 0.4:
        ends.reverse()
    direction = f" from {ends[0]} to {ends[1]}" if not 0.4 <= cause.group.upward <= 0.6 else ""
    waits = f"and the rest wait{_call(cause, words)}"
    return f"A chain of messages{direction}: one after the other computes{_region(cause, words)}, {waits}"


def _says_late_sender(cause: Cause, words: Naming) -> str:
    who, waits = _who(cause, words), _waiters_wait(cause, words)
    computes = "it computes" if _one(who) else "they compute"
    return f"Messages are sent late: {waits} for {who}, while {computes}{_region(cause, words)}"


def _says_late_receiver(cause: Cause, words: Naming) -> str:
    who, waits = _who(cause, words), _waiters_wait(cause, words)
    receives = "receives" if _one(who) else "receive"
    return f"Receives are posted late: {waits} until {who} {receives}, after computing{_region(cause, words)}"


def _says_master(cause: Cause, words: Naming) -> str:
    who = capital(_who(cause, words))
    role = f"a master that serves all others one after the other{_region(cause, words)}"
    return f"{who} is the bottleneck, {role}, and they wait for it{_call(cause, words)}"


def _says_idle_master(cause: Cause, words: Naming) -> str:
    hub = capital(words.location(cause.about))
    return f"{hub} only serves the others, as a master, and waits{_call(cause, words)} while they compute"


def _says_noise(cause: Cause, words: Naming) -> str:
    return (
        f"Noise, or work that varies: a different process takes longest each time{_region(cause, words)}, "
        f"and the rest wait for it{_call(cause, words)}, though in total all take about equally long"
    )


def _moved(group: Group) -> tuple[int, int]:
    """Number of messages, or of calls of a collective operation, under way in the range, and their bytes."""
    if group.family == TOGETHER:
        return int(group.of.members[group.region, 0]), int(group.of.members[group.region, 1])
    return group.of.messages, group.of.bytes


def _says_small(cause: Cause, words: Naming) -> str:
    times, size = _moved(cause.group)
    each = f"{'each ' if times > 1 else ''}taking {brief(cause.group.total_s / times, 2)} of processor time"
    of = f"of {quantity(size / times, 'B', 3)}{' on average' if times > 1 else ''}"
    far = ""
    if cause.group.total_s > LATENCY_S * times:
        far = f", far more than the latency of a network{_SHARED}"
    if cause.group.family == TOGETHER:
        call = words.region(cause.group.region)
        head = _long("Collective operations") if far else "Latency of collective operations"
        what = f"{count(times, 'call')} of {call} {of}, {each}{far}"
    else:
        head = _long("Messages") if far else "Latency of small messages"
        what = f"{count(times, 'message')} {of}, {each}{_call(cause, words)}{far}"
    return f"{head}: {what}{_besides(cause, words)}"


def _besides(cause: Cause, words: Naming) -> str:
    """``; also MPI_Bcast and other calls``: what else the seconds of the cause were lost in."""
    calls = [one.region for one in cause.besides if one.family == TOGETHER]
    names = list(dict.fromkeys(words.region(call) for call in calls))
    names += ["messages"] if len(calls) < len(cause.besides) else []
    # The seconds of the sentence are a number times what each takes, except for what is said here.
    rest_s = cause.lost_s - sum(one.total_s for one in (cause.group, *cause.besides))
    names += ["other calls"] if rest_s >= 0.05 * cause.lost_s else []
    return f"; also {' and '.join(', '.join(names).rsplit(', ', 1))}" if names else ""


#: A reason why something takes longer than networks do.
_SHARED = " (do processes share cores?)"


def _long(calls: str) -> str:
    return f"{calls} take long although no process is late"


def _says_bandwidth(cause: Cause, words: Naming) -> str:
    times, size = _moved(cause.group)
    together = cause.group.family == TOGETHER
    calls = count(times, "call" if together else "message")
    moves = f"{calls} of {quantity(size / times, 'B', 3)} {'moves' if times == 1 else 'move'}"
    rate = f"{quantity(size / cause.group.total_s, 'B', 2)}/s{_call(cause, words)}"
    if size < SLOW * cause.group.total_s:
        head = _long("Collective operations" if together else "Messages")
        slow = f"{head}: {moves} at {rate}, far less than the bandwidth of a network{_SHARED}"
        return f"{slow}{_besides(cause, words)}"
    return f"Moving data takes the time (bandwidth): {moves} at {rate}{_besides(cause, words)}"


def _says_io(cause: Cause, words: Naming) -> str:
    group = cause.group
    who = capital(_who(cause, words))
    io = f"I/O{_call_of(group.region, words)}"
    waits = group.direct_s + group.chained_s >= 0.1 * group.total_s
    them = f", and the others wait for {'it' if _one(who) else 'them'}" if waits else ""
    return f"{who} {'does' if _one(who) else 'do'} {io}{them}"


def _call_of(region: int, words: Naming) -> str:
    """`` (fwrite)``, or "" without a region."""
    return f" ({words.region(region)})" if region >= 0 else ""


def _says_lock(cause: Cause, words: Naming) -> str:
    who = words.several(sorted(cause.locations))
    held = _waited_for(cause, words, "if it is one lock, {} held it for {} of that")
    return f"Waiting for a lock{_call_of(cause.group.region, words)}: {who} wait for one another{held}"


def _says_threads(cause: Cause, words: Naming) -> str:
    who = words.several(sorted(cause.locations))
    last = _waited_for(cause, words, "{} came last for {} of that")
    return f"Threads wait for one another{_call_of(cause.group.region, words)}: {who}{last}"


def _says_accelerator(cause: Cause, words: Naming) -> str:
    sentence = _says("Waiting for accelerators")(cause, words)
    group = cause.group
    waited = group.lost_s - group.work_s  # waiting of others for each of these hosts
    who = int(waited.argmax())
    if waited[who] <= max(NAMED * waited.sum(), WORTH * group.total_s):
        return sentence
    part = percent(float(waited[who]) / group.total_s)
    return f"{sentence}; in {part} of it others wait for {words.location(who)}"


def _waited_for(cause: Cause, words: Naming, text: str) -> str:
    """The thread that others waited for most, if that is known and one holds over `NAMED`."""
    group = cause.group
    for_whom = group.of.held_s.get((group.account, group.region))
    if for_whom is None or for_whom.max() <= NAMED * group.total_s:
        return ""
    part = min(float(for_whom.max()) / group.total_s, 1.0)
    return "; " + text.format(words.location(int(for_whom.argmax())), percent(part))


def _says_outside(cause: Cause, words: Naming) -> str:
    who = words.several(sorted(cause.locations))
    have = "has" if _one(who) else "have"
    return (
        f"Outside of parallel regions only first threads work: {who} {have} not begun or {have} nothing to do"
    )


def _says_start(cause: Cause, words: Naming) -> str:
    of = cause.group.of
    late = np.zeros(of.is_processor.size)
    rows = of.account == NOT_BEGUN
    np.add.at(late, of.location[rows], of.own_s[rows])
    # In a part of the run, delays count from the part's start, not from the first start.
    part = of.start_s > 1e-9 * of.duration_s
    first = 0.0 if part else float(late[of.is_processor].min())
    apart = float(late[of.is_processor].max()) - first
    group, since = cause.group, "into this part of the run" if part else "after the first one"
    if group.account == NOT_BEGUN and cause.named and group.direct_s >= 0.1 * group.total_s:
        start = f"begins {brief(float(late[group.top]) - first, 2)} {since}"
        if late[group.top] >= (1 - 1e-9) * of.duration_s:
            start = "has not begun yet"
        return f"{capital(_who(cause, words))} {start}, and the others wait for it{_call(cause, words)}"
    begins = f": some begin up to {brief(apart, 2)} {since if part else 'after others'}"
    begins = begins if apart > 0.05 * of.duration_s else ""
    call = _call(cause, words) if group.account != NOT_BEGUN else ""
    return f"The start of the program takes the time{call}{begins}"


def _says_end(cause: Cause, words: Naming) -> str:
    if cause.group.account == ENDING:
        return f"The end of the program takes the time{_call(cause, words)}"
    who = words.several(sorted(cause.locations))
    of = cause.group.of
    others = [i for i in np.flatnonzero(of.is_processor).tolist() if i not in cause.locations]
    before = words.several(others) if 0 < len(others) < len(cause.locations) else "the others"
    return f"{capital(who)} {'has' if _one(who) else 'have'} ended before {before}"


def _says(text: str) -> Callable[[Cause, Naming], str]:
    """A sentence that only names who and where."""

    def says(cause: Cause, words: Naming) -> str:
        return f"{text}{_call_of(cause.group.region, words)}: {words.several(sorted(cause.locations))}"

    return says


# ---- the table


def _of(*accounts: int, fits: float = 1.0) -> Callable[[Group], float]:
    return lambda group: fits if group.account in accounts else 0.0


def _computes(family: int, test: Callable[[Group], float]) -> Callable[[Group], float]:
    """`test` for groups of that family in which the locations waited for compute; 0 for other groups."""
    return lambda group: test(group) if (group.account, group.family) == (Account.COMPUTING, family) else 0.0


def _either(test: Callable[[Group], float]) -> Callable[[Group], float]:
    """`test` for waiting for senders, for receivers, or for all in a collective operation."""
    return lambda group: max(_computes(family, test)(group) for family in (SENDER, RECEIVER, TOGETHER))


def _master(group: Group) -> float:
    hub = group.of.hub
    return float(group.lost_s[hub] / group.total_s) if hub >= 0 else 0.0


def _idle_master(group: Group) -> float:
    of, hub, waits = group.of, group.of.hub, group.waits_s
    rows = of.account == Account.COMPUTING
    work = np.bincount(of.location[rows], of.own_s[rows], of.is_processor.size)
    if hub < 0 or work[hub] > SERVES * work.max():
        return 0.0
    # The hub exchanges messages with all others, so direct waiting for these is that of the hub. Their own
    # waiting, as for their first task, may have another cause.
    direct = (group.direct_s - group.lost_s[hub]) / group.total_s
    return float(max(direct, waits[hub] / waits.sum() if waits.any() else 0.0))


def _alone(group: Group) -> float:
    return group.share if group.share >= 0.9 and group.work_s[group.top] >= 0.9 * group.work_s.sum() else 0.0


def _slow(group: Group) -> float:
    fits = group.shared and group.unequal >= 0.5 and group.recovered >= 0.6
    return max(min(group.unequal, 1.0) * group.recovered, 0.5) if fits else 0.0


def _imbalance(group: Group) -> float:
    # Work that only some do does not keep the others from receiving.
    return group.unequal if group.shared or group.family == TOGETHER else 0.0


def _serial(group: Group) -> float:
    if not (group.shared and group.spread) or group.heavy < 0.5:
        return 0.0
    return max(group.chained, group.mutual)


def _noise(group: Group) -> float:
    if group.family == TOGETHER:
        return 1.0
    return max(group.mutual, group.chained) if group.shared and group.spread else 0.0


def _moving(small: bool) -> Callable[[Group], float]:
    def test(group: Group) -> float:
        if group.account != Account.MOVING:
            return 0.0
        times, size = _moved(group)
        if not times or (size < SMALL * times) != small:
            return 0.0
        # Far beyond a network's times there is another cause too, so the evidence is weak.
        usual = group.total_s <= LATENCY_S * times if small else size >= SLOW * group.total_s
        return 1.0 if usual else 0.5

    return test


def _starts(group: Group) -> float:
    """1 for start-up calls; less for processes that have not begun, which their clocks alone say."""
    return {Account.STARTUP: 1.0, NOT_BEGUN: 0.6}.get(group.account, 0.0)


def _says_untold(cause: Cause, words: Naming) -> str:
    why = "the trace does not separate waiting from moving data"
    if np.isinf(cause.group.of.doubt_s):
        why = "the clocks contradict each other too much to say who waited for whom"
    return _says(f"Communication takes the time, and {why}")(cause, words)


#: Kinds in the order in which they are tried.
KINDS: tuple[Kind, ...] = (
    Kind("late root", "Late root", _computes(ROOT, lambda group: 1.0), _says_late_root),
    Kind("master", "Master bottleneck", _computes(SENDER, _master), _says_master),
    Kind("idle master", "Waiting master", _computes(SENDER, _idle_master), _says_idle_master),
    Kind("alone", "One works alone", _computes(TOGETHER, _alone), _says_alone),
    Kind("slow rank", "One slow rank", _either(_slow), _says_slow),
    Kind("imbalance", "Load imbalance", _either(_imbalance), _says_imbalance),
    Kind("serial", "Chain of messages", _computes(SENDER, _serial), _says_serial),
    Kind("noise", "Noise", _either(_noise), _says_noise),
    Kind("late receiver", "Late receiver", _computes(RECEIVER, lambda group: 1.0), _says_late_receiver),
    Kind("late sender", "Late sender", _computes(SENDER, lambda group: 1.0), _says_late_sender),
    Kind("small messages", "Small messages", _moving(True), _says_small),
    Kind("bandwidth", "Bandwidth", _moving(False), _says_bandwidth),
    Kind("I/O", "I/O", _of(Account.IO), _says_io),
    Kind("lock", "Lock", _of(Account.LOCK), _says_lock),
    Kind("threads", "Threads wait", _of(Account.THREADS), _says_threads),
    Kind("outside", "Outside of parallel regions", _of(Account.SERIAL), _says_outside),
    Kind("accelerator", "Accelerators", _of(Account.ACCELERATOR), _says_accelerator),
    Kind("start", "Start-up", _starts, _says_start),
    Kind("end", "Early end", _of(Account.ABSENT, ENDING), _says_end),
    Kind("overhead", "Overhead of libraries", _of(Account.OVERHEAD), _says("Calls of libraries")),
    Kind("unmeasured", "Not measured", _of(Account.UNMEASURED, fits=0.5), _says("Nothing was measured")),
    Kind("idle", "Idle", _of(Account.IDLE, fits=0.5), _says("Idle, and the trace does not say why")),
    Kind("communication", "Communication", lambda group: 0.5, _says_untold),
)  # fmt: skip


# ---- from charges to causes


def causes(of: Charges) -> list[Cause]:
    """The causes of lost time in a range, most first."""
    if not of.lost_s > 0:
        return []
    by_kind: dict[tuple[str, int, int], list[tuple[Group, Kind, float]]] = {}
    for group in _groups(of):
        kind, fits = next((kind, part) for kind in KINDS if (part := kind.test(group)) >= 0.5)
        rank = group.top if group.share > NAMED and kind.key in _NAMES_RANK else -1
        region = group.region if group.account in (Account.COMPUTING, Account.IO) else -1
        by_kind.setdefault((kind.key, region, rank), []).append((group, kind, fits))
    judged = [_cause(parts, of) for parts in by_kind.values()]
    return sorted(judged, key=lambda cause: -cause.lost_s)


#: Kinds that are separate causes for separate ranks.
_NAMES_RANK = frozenset({"late root", "master", "idle master", "alone", "slow rank", "late sender", "I/O"})
#: Accounts that are not separated by region.
_ANYWHERE = frozenset({Account.ABSENT, NOT_BEGUN, Account.SERIAL, Account.THREADS, Account.LOCK})


def _cause(parts: list[tuple[Group, Kind, float]], of: Charges) -> Cause:
    parts.sort(key=lambda part: -part[0].total_s)
    group, kind, _ = parts[0]
    lost_s = sum(part.total_s for part, _, _ in parts)
    fits = sum(part.total_s * fit for part, _, fit in parts) / lost_s
    charged = np.sum([part.lost_s for part, _, _ in parts], axis=0)
    order = np.argsort(-charged, kind="stable")
    # Locations with at least a fifth of the largest charge; at least one.
    enough = charged[order] >= 0.2 * charged[order[0]]
    who = tuple(order[: max(int(enough.sum()), 1)].tolist())
    seen = sum(part.seen for part, _, _ in parts)
    besides = tuple(part for part, _, _ in parts[1:] if part.total_s >= 0.1 * lost_s)
    return Cause(kind, group, float(lost_s), float(lost_s / of.lost_s), who, seen, float(fits), besides)


def _together(family: int) -> list[int]:
    """The families that are grouped with `family`: all for -1, both that wait for senders, or both in which
    all wait for the last."""
    if family < 0:
        return list(range(len(FAMILIES)))
    return {TOGETHER: [BARRIER, TOGETHER], SENDER: [SENDER, AFTER]}.get(family, [family])


def _groups(of: Charges) -> list[Group]:
    """Charges grouped by account, region, and how others waited."""
    locations = of.is_processor.size
    computing = of.account == Account.COMPUTING
    groups: dict[tuple[int, int, int], list[Floats]] = {}
    seen: dict[tuple[int, int, int], int] = {}
    below = of.below_s.reshape(-1, len(FAMILIES), 2)

    def add(key: tuple[int, int, int], rows: Flags, own: bool, families: list[int]) -> None:
        parts = groups.setdefault(key, [np.zeros(locations), np.zeros(2), np.zeros(len(FAMILIES))])
        waits = below[rows][:, families].sum(axis=1)
        parts[2] += below[rows].sum(axis=(0, 2))
        np.add.at(parts[0], of.location[rows], waits.sum(axis=1) + (of.own_s[rows] if own else 0.0))
        parts[1] += waits.sum(axis=0)
        seen[key] = seen.get(key, 0) + int(of.seen[rows].sum())

    for region in np.unique(of.region[computing]).tolist():
        rows = computing & (of.region == region)
        for family in (SENDER, RECEIVER, TOGETHER, ROOT):
            if below[rows][:, _together(family)].any():
                add((int(Account.COMPUTING), region, family), rows, False, _together(family))
    for account in np.unique(of.account[~computing]).tolist():
        of_account = of.account == account
        for region in np.unique(of.region[of_account]).tolist():
            rows = of_account & (of.region == region)
            place = -1 if account in _ANYWHERE else region
            family = -1
            if account == Account.MOVING:
                # Messages are one group over all calls, each collective operation is its own.
                together = bool(region >= 0 and of.collective[region])
                place, family = (region, TOGETHER) if together else (-1, SENDER)
            add((account, place, family), rows, True, _together(-1))
    return [_group(of, key, parts, seen[key]) for key, parts in groups.items() if parts[0].sum() > 0]


def _group(of: Charges, key: tuple[int, int, int], parts: list[Floats], seen: int) -> Group:
    account, region, family = key
    work = np.zeros(of.is_processor.size)
    everywhere = region < 0 and account != Account.COMPUTING
    rows = (of.account == account) & ((of.region == region) | everywhere)
    np.add.at(work, of.location[rows], of.own_s[rows])
    regions = of.region[rows]
    if everywhere and regions.size:  # name the region with the largest charge
        sums = np.bincount(regions + 1, of.own_s[rows] + of.below_s[rows].sum(axis=1))
        region = int(sums.argmax()) - 1
    direct, chained = parts[1].tolist()
    families = _together(family)
    most = families[
        int(of.below_s[rows].reshape(-1, len(FAMILIES), 2)[:, families].sum(axis=(0, 2)).argmax())
    ]
    waits = direct > 0 if account == NOT_BEGUN else family >= 0 and account != Account.MOVING
    call = int(of.calls[most]) if waits else region
    before, after = parts[2][[SENDER, AFTER]].tolist()
    upward = before / (before + after) if before + after else 0.5
    return Group(of, account, region, family, parts[0], direct, chained, upward, seen, work, call)
