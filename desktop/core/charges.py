"""What the time of a range is charged to: locations, and what they did then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.wait_tree import FAMILIES

#: What `Charges.account` says of a process that has not begun yet; `Account.ABSENT` of one that has ended.
NOT_BEGUN = 100
#: And of one that is in MPI_Finalize.
ENDING = 101

SENDER, AFTER, RECEIVER, BARRIER, TOGETHER, ROOT = range(len(FAMILIES))


@dataclass(frozen=True, eq=False)
class Charges:
    """What a range of a run is made of.

    location, region, account : (rows,) what a location did: region (-1: none) and number of `Account`.
    own_s : (rows,) for how long. below_s : (rows, `wait_tree.COLUMNS`) processor-seconds for which others
        waited meanwhile, as of `wait_tree`. seen : (rows,) how often somebody waited for it.
    waiting_s : (locations, families) for how long each location waited.
    calls : (families,) the region in which most of that was, -1 none.
    collective : (regions,) calls of all members of a communicator.
    is_processor : (locations,). processors, duration_s, computing : as of `RangeStats`.
    hub : the location that nearly all messages come from or go to; -1: there is none.
    messages, bytes : of the messages sent. members : (regions, 2) calls of collective operations, and bytes.
    serialisation, balance : efficiencies, None or NaN where they are not known.
    doubt_s : processor-seconds of waiting that contradicting clocks may change; inf: nobody knows who waited.
    held_s : by account and region (locations,) for how long threads waited for each, where that is known.
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
        """Those in which nothing is computed."""
        return self.whole_s - self.computing * self.duration_s
