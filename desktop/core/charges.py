"""Charges: the time of a range, charged to locations and their activities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.wait_tree import FAMILIES

#: `Charges.account` of a process that has not begun yet (`Account.ABSENT`: one that has ended).
NOT_BEGUN = 100
#: `Charges.account` of a process in MPI_Finalize.
ENDING = 101

SENDER, AFTER, RECEIVER, BARRIER, TOGETHER, ROOT = range(len(FAMILIES))


@dataclass(frozen=True, eq=False)
class Charges:
    """The charges of a range of a run.

    location, region, account : (rows,) activity of a location: region (-1: none) and number of `Account`.
    own_s : (rows,) its time. below_s : (rows, `wait_tree.COLUMNS`) processor-seconds that others waited for
        it meanwhile, as in `wait_tree`. seen : (rows,) how often others waited for it.
    waiting_s : (locations, families) waiting time of each location.
    calls : (families,) the region with most of that time, -1 none.
    collective : (regions,) whether it is a call of all members of a communicator.
    is_processor : (locations,). processors, duration_s, computing : as in `RangeStats`.
    hub : the location that nearly all messages come from or go to; -1: none.
    messages, bytes : number and bytes of the messages that are under way at some time of the range. members :
        (regions, 2) calls of collective operations of which that is true, and bytes.
    serialisation, balance : efficiencies, None or NaN where they are not known.
    doubt_s : processor-seconds of waiting that contradicting clocks may change; inf: waiting is not known.
    held_s : by account and region, (locations,) time that threads waited for each, where that is known.
    """

    start_s: float
    end_s: float
    location: Ints
    region: Ints
    account: Ints
    own_s: Floats
    below_s: Floats
    seen: Ints
    waiting_s: Floats
    calls: Ints
    collective: Flags
    is_processor: Flags
    processors: float
    computing: float
    hub: int = -1
    messages: int = 0
    bytes: int = 0
    members: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    serialisation: float | None = None
    balance: float | None = None
    doubt_s: float = 0.0
    held_s: Mapping[tuple[int, int], Floats] = field(default_factory=dict)

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s

    @property
    def whole_s(self) -> float:
        """All processor-seconds."""
        return self.processors * self.duration_s

    @property
    def lost_s(self) -> float:
        """Processor-seconds without computing."""
        return self.whole_s - self.computing * self.duration_s


@dataclass(frozen=True)
class RunCosts:
    """Processor-seconds of a run by activity (number of an account, name of a region) and name of a location:
    its own time, and the time that others wait for it."""

    processors: float
    times: dict[tuple[int, str, str], Floats]
