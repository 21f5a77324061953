"""Programs that were started end with this one, however it ends.

Whoever is killed outright can clean up nothing, so a shell does it: it waits at the end of a pipe, which the
system closes when this process is gone, and then ends what is still running. It sleeps while programs run and
is no parent of theirs, so it neither disturbs nor enters what is measured; and unlike a signal on the death
of the parent it reaches whatever a program started itself, and does not care which thread started it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
from functools import cache

#: Keeps the numbers of process groups until they are dropped; at the end of the input, ends those left.
_SCRIPT = """
groups=
while read -r word group; do
  left=
  for one in $groups; do [ "$one" = "$group" ] || left="$left $one"; done
  groups=$left
  [ "$word" = keep ] && groups="$left $group"
done
for one in $groups; do kill -s KILL -- "-$one"; done
"""


class Guard:
    """`keep` and `drop` process groups, by the number of their first process, from any thread."""

    def __init__(self) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # what ends our group must not end it
        )
        atexit.register(self._end)

    def keep(self, group: int) -> None:
        """To be called as soon as the group is there."""
        self._tell(f"keep {group}\n")

    def drop(self, group: int) -> None:
        """To be called before the number can become that of another group."""
        self._tell(f"drop {group}\n")

    def _tell(self, line: str) -> None:
        assert self._shell.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody ended the shell: nothing is lost but its help
            os.write(self._shell.stdin.fileno(), line.encode())  # so short that it is never torn

    def _end(self) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait()


@cache
def guard() -> Guard | None:
    """The one of this process; None where the system has no process groups."""
    return Guard() if hasattr(os, "killpg") else None
