"""Accounts of processor time; every processor-second of a run belongs to exactly one.

Sources: the wait states are the patterns of Scalasca (Geimer and others, "The Scalasca performance toolset
architecture", 2010; "Scalasca performance properties", its handbook): late sender, late receiver, wait at
barrier, wait at n x n, late broadcast (here: late root), early reduce (early root), early scan (prefix). The
rest of a communication call is "moving data". "Transfer" is not an account, only an efficiency of the POP
hierarchy.

The account of a location at an instant follows from its open regions in two steps. The regions determine its
*class*: an activity, and for some of them whether it is communication, start-up, a lock ... (`CLASSES`). From
the time in communication, wait states (`desktop.data.causality`) take the part that a late partner explains.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Account(IntEnum):
    """Accounts in the order in which they are shown; names in words: `desktop.core.labels.ACCOUNTS`."""

    COMPUTING = 0  # in an activity that the curve counts
    SERIAL = 1  # worker threads outside of parallel regions: work that only some do
    LATE_SENDER = 2
    LATE_RECEIVER = 3  # a send that lasts until its receive is posted
    BARRIER = 4
    N_TO_N = 5
    LATE_ROOT = 6  # one-to-all: the others wait for the root
    EARLY_ROOT = 7  # all-to-one: the root waits for the others
    PREFIX = 8  # scan: waits for those of lower rank
    LOCK = 9
    THREADS = 10  # barriers, joins and tasks of threads
    MOVING = 11  # in communication, without a late partner
    UNKNOWN = 12  # in communication, where waiting and moving data cannot be separated
    OVERHEAD = 13  # of the library: calls that neither communicate nor wait
    IO = 14
    ACCELERATOR = 15  # the host waits for an accelerator
    STARTUP = 16  # in MPI_Init and MPI_Finalize
    ABSENT = 17  # before a location's first event and after its last one
    IDLE = 18  # idle for a reason that the trace does not say
    UNMEASURED = 19


#: Accounts in which a location waits for another one.
WAITING = frozenset(map(Account, range(Account.LATE_SENDER, Account.PREFIX + 1)))

#: Class (see above) -> number of its `desktop.data.events.Activity` and account. The first five are the
#: activities themselves; 5 and 6 are codes of `desktop.core.open_regions`.
_COMPUTING, _OVERHEAD, _IDLE, _IO, _UNMEASURED = range(5)
CLASSES: dict[int, tuple[int, Account]] = {
    _COMPUTING: (_COMPUTING, Account.COMPUTING),
    _OVERHEAD: (_OVERHEAD, Account.OVERHEAD),
    _IDLE: (_IDLE, Account.IDLE),
    _IO: (_IO, Account.IO),
    _UNMEASURED: (_UNMEASURED, Account.UNMEASURED),
    7: (_OVERHEAD, Account.MOVING),
    8: (_IDLE, Account.MOVING),
    9: (_IDLE, Account.SERIAL),
    10: (_OVERHEAD, Account.STARTUP),
    11: (_IDLE, Account.STARTUP),
    12: (_IDLE, Account.LOCK),
    13: (_IDLE, Account.THREADS),
    14: (_IDLE, Account.ACCELERATOR),
    15: (_UNMEASURED, Account.ABSENT),
}
#: Number of class numbers, including unused ones.
CLASS_NUMBERS = 16
CLASS_OF = {pair: number for number, pair in CLASSES.items()}
#: (CLASS_NUMBERS,) activity of each class; 0 of unused ones.
ACTIVITY_OF_CLASS = np.array([CLASSES.get(c, (0, Account.COMPUTING))[0] for c in range(CLASS_NUMBERS)])
