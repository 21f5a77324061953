"""The command line: the same functions that the window uses, without a window.

Words, keys and exit codes are a contract: scripts rely on them. Nothing heavy is
imported before a command needs it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Collection, Iterator
from importlib import import_module
from pathlib import Path

from desktop import __version__, stopping
from desktop.commands.run_options import adder
from desktop.commands.terminal import DONE, FAILED, USAGE, error_words, written
from desktop.printing import Printed, printable
from desktop.progress import Cancelled
from desktop.remote import named

_CLEAR = "\r\033[K"  # the line on the terminal
#: Commands: the module of `desktop.commands` with `add_arguments` and `main`, and what they do.
COMMANDS = {
    "import": ("importing", "import traces into HDF5"),
    "info": ("info", "what a trace holds"),
    "phases": ("phases", "fit phases to the processor-utilization curve"),
    "explain": ("explain", "why the run is slow, in words: its causes and those of each phase"),
    "iterations": ("iterations", "iterations of the run, and which are unusual"),
    "compare": ("compare", "the phases of two or more runs beside each other"),
    "stats": ("stats", "POP efficiencies, region profile and messages per phase"),
    "whatif": ("whatif", "how long the run would last if something were different"),
    "report": ("report", "a report for others: HTML, PDF or slides"),
    "export": ("export", "write a trace in another program's format"),
    "record": ("record", "run an MPI program, record it, and open what was recorded"),
    "watch": ("watch", "run an MPI program and see its curve grow, or follow one that runs already"),
    "snapshot": ("snapshot", "render the window into a picture, without a display"),
    "model": ("model", "fit the factor model to a table of run times"),
    "spt": ("spt", "experiments with artificial delays"),
    "desktop": ("integration", "put the program into the menus of a Linux desktop"),
    "serve": ("serve", "serve a Phasewright on another machine, which calls this over ssh"),
    "warm-up": ("warm_up", "compile now the kernels that the first trace of each format needs"),
}


def is_command(words: list[str]) -> bool:
    """Whether the first word is a command, so that no window opens."""
    return words[:1] != [] and words[0] in COMMANDS


def run(argv: list[str]) -> int:
    """Run a command, or the window; returns the exit code.

    0 done; 3 done, but part of the input was lost; 1 not done, one sentence on standard error; 2
    usage error; 128 and the number of a signal (130 Ctrl-C, 143 SIGTERM, 129 SIGHUP): asked to end before
    it was done.
    """
    words = [word for word in argv if word != "--debug"]
    debug = len(words) < len(argv)
    words = _set_remote(words)
    with stopping.listening(), _for_people():
        if is_command(words):
            stopping.complete.clear()
            stopping.leave_no(run, _say_stopped)
        try:
            return _run(words, debug)
        finally:
            stopping.left(run)


def _set_remote(words: list[str]) -> list[str]:
    """Take out ``--remote-command WORDS``, an option of every command, and set it."""
    option = "--remote-command"
    for k, word in enumerate(words):
        if word == "--":
            break
        if (word == option and k + 1 < len(words)) or word.startswith(f"{option}="):
            value = word.partition("=")[2] if "=" in word else words[k + 1]
            os.environ["PHASEWRIGHT_REMOTE_COMMAND"] = value
            return words[:k] + words[k + (1 if "=" in word else 2) :]
    return words


@contextlib.contextmanager
def _for_people() -> Iterator[None]:
    """Let no control characters of a trace reach the terminal: output may hold text of strangers' files."""
    streams = sys.stdout, sys.stderr
    # A program without a terminal (a frozen one on Windows) may have no streams.
    sys.stdout, sys.stderr = (
        stream if stream is None or isinstance(stream, Printed) else Printed(stream) for stream in streams
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def _run(words: list[str], debug: bool) -> int:
    try:
        if is_command(words):
            options = _parser(words[:1]).parse_args(words)
            stopping.check()
            return int(options.command(options))
        return _window(words)
    except SystemExit as stop:  # argparse: 0 after --help, 2 after wrong words
        return stop.code if isinstance(stop.code, int) else USAGE
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (Cancelled, KeyboardInterrupt) as stopped:
        print(f"phasewright: {error_words(stopped)}", file=sys.stderr)
        return stopping.code()
    except Exception as error:
        if debug:
            raise
        print(f"phasewright: {error_words(error)}", file=sys.stderr)
        return FAILED


def _say_stopped() -> None:
    """Print that the command was stopped, from another thread: the main one may hold standard error."""
    files = printable(written(), 2000)
    line = f"{_CLEAR if sys.stderr.isatty() else ''}phasewright: stopped{files and f', {files}'}\n"
    os.write(2, line.encode("utf-8", "replace"))


def _parser(names: Collection[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser; arguments only of the commands in `names`, of others just the name."""
    parser = argparse.ArgumentParser(
        prog="phasewright",
        description="Explain why a parallel program is slow: traces become phases. Without a command the "
        "window opens, one for each file named.",
        epilog="examples: phasewright traces.otf2 | phasewright phases traces.otf2 -n 5 --model linear | "
        "phasewright import run.trf -o run.h5",
    )
    parser.add_argument("--version", action="version", version=f"phasewright {__version__}")
    adder(parser)("--debug", "show the traceback of an error")
    adder(parser)(
        "--remote-command WORDS", "what ssh runs on another machine (default: phasewright serve)", type=str
    )
    _window_words(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (module, text) in COMMANDS.items():
        sub = commands.add_parser(name, help=text, description=text)
        if name in names:
            command = import_module(f"desktop.commands.{module}")
            command.add_arguments(sub)
            sub.set_defaults(command=command.main)
    return parser


def _window(words: list[str]) -> int:
    """No command: the window, on the files named."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    _window_words(options)
    options.add_argument("files", nargs="*")
    how, unknown = options.parse_known_args(words)
    if unknown:
        parser = _parser(["info"])
        parser.parse_known_args([unknown[0], "info", ""])  # --help and --version end here
        parser.error(f"there is no option {unknown[0]}")
    files = how.files
    for name in files:
        if name.startswith("ssh:/"):
            named(name)
    # A word that is no file is more likely a mistyped command than a trace: say both.
    missing = [name for name in files if not name.startswith("ssh:/") and not Path(name).exists()]
    if missing:
        print(
            f"phasewright: {missing[0]}: there is no such file or command, "
            f"name a trace or one of {', '.join(COMMANDS)}",
            file=sys.stderr,
        )
        return FAILED if os.sep in missing[0] or "." in missing[0] else USAGE
    from desktop.display import obstacle

    reason = obstacle()
    if reason:
        print(
            f"phasewright: {reason}, use 'phasewright snapshot FILE -o OUT.png' or one of the other commands",
            file=sys.stderr,
        )
        return FAILED
    notice = _reset_settings() if how.reset_settings else ""
    from desktop.ui.windows import Start
    from desktop.ui.windows import run as run_window

    stopping.check()
    return run_window(files, Start(how.safe_mode, how.log_level, how.log_file, notice))


def _window_words(parser: argparse.ArgumentParser) -> None:
    add = adder(parser.add_argument_group("the window"))
    add("--safe-mode", "default settings, nothing reopened, no settings or logs written")
    add("--reset-settings", "put the settings aside and start with the default ones")
    add("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    add("--log-file FILE", "log there, not into the log folder", type=Path)


def _reset_settings() -> str:
    """Put the settings aside; a sentence on where they are."""
    from desktop.ui.settings import put_settings_aside

    place = put_settings_aside()
    notice = f"The former settings are in {place}." if place else "There were no settings to be reset."
    print(f"phasewright: {notice[0].lower()}{notice[1:-1]}", file=sys.stderr)
    return notice
