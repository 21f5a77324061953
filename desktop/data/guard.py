"""Makes programs started by this process end with it, however it ends.

A process that is killed cannot clean up, so a shell does it: it waits at the end of a pipe, which the system
closes when this process is gone, and then ends what is still running. It sleeps while programs run and is not
their parent, so it neither disturbs measurements nor is part of them; unlike a signal on the parent's death
it reaches everything that a program started itself, whichever thread started it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
from functools import cache

#: Stores numbers of process groups until they are dropped; at the end of the input, kills the rest.
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
    """Call `keep` and `drop` for process groups, by the number of their first process, from any thread."""

    def __init__(self) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # what ends our group must not end the shell
        )
        atexit.register(self._end)

    def keep(self, group: int) -> None:
        """To be called as soon as the group exists."""
        self._tell(f"keep {group}\n")

    def drop(self, group: int) -> None:
        """To be called before the number can be reused by another group."""
        self._tell(f"drop {group}\n")

    def _tell(self, line: str) -> None:
        assert self._shell.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody ended the shell: only its help is lost
            os.write(self._shell.stdin.fileno(), line.encode())  # short enough to be written atomically

    def _end(self) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait()


@cache
def guard() -> Guard | None:
    """The guard of this process; None if the system has no process groups."""
    return Guard() if hasattr(os, "killpg") else None
