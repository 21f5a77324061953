"""``phasewright`` on the command line: a sub-command, or the window."""

from __future__ import annotations

import sys


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit code of `desktop.cli`."""
    from desktop import cli

    return cli.run(sys.argv[1:] if argv is None else argv)


def window() -> int:
    """Start the window from an icon: every argument is a file."""
    from desktop import cli

    return cli.run(["--", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
