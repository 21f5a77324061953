"""``phasewright`` on the command line: a sub-command, or the window."""

from __future__ import annotations

import gc
import signal
import sys

from desktop.environment import set_for_ourselves

# Linear algebra is on small matrices here, for which its threads wait for each other longer than they work:
# on a busy machine a fit of the factor model took ten times as long. Read when numpy is first imported.
set_for_ourselves("OPENBLAS_NUM_THREADS", "1")
# Qt writes the fonts of a PDF in the order of a hash: with a seed of its own in each process, the same figure
# would be another file each time.
set_for_ourselves("QT_HASH_SEED", "0")


#: New objects after which a command looks for garbage: more than the 120 000 that the start makes.
_OBJECTS = 200_000


def _listen() -> None:
    # Python raises an exception at Ctrl-C; while the rest is imported, it ends the process without a word.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from desktop import stopping

    stopping.listen()


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit code of `desktop.cli`."""
    if argv is None:
        _listen()
    from desktop import cli

    if argv is not None:
        return cli.run(argv)
    words = sys.argv[1:]
    if not cli.is_command(words):
        return cli.run(words)
    # The classes and functions of what is imported are no garbage: to search them again and again, and all
    # of them at the end, takes longer than a small command.
    gc.set_threshold(_OBJECTS)
    code = cli.run(words)
    gc.freeze()
    return code


def window() -> int:
    """Start the window from an icon: every argument is a file, unless options of the window come first."""
    _listen()
    from desktop import cli

    words = sys.argv[1:]
    return cli.run(words if words[:1] and words[0].startswith("--") else ["--", *words])


if __name__ == "__main__":
    sys.exit(main())
