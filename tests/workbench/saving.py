"""A process that edits and saves a project until it is killed; run by test_keeping.

``python -m tests.workbench.saving save|autosave FILE FOLDER INTERVAL``; every line it prints is
``WORD N TIME``: the number of edits so far when an edit was made, an autosave was begun, or a saving had
returned.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from desktop.workbench.keeping import ProjectStore
from desktop.workbench.workbench import Workbench


def say(word: str, number: int) -> None:
    print(word, number, time.monotonic(), flush=True)


def main(mode: str, file: Path, folder: Path, interval: float) -> None:
    bench = Workbench()
    projects = ProjectStore(bench, lambda trace: None, print, lambda: None, folder=folder)
    number = len(projects.workspace.tables)
    last = time.monotonic()
    while True:
        number += 1
        projects.add_files(tables=(file.parent / f"{number}.csv",))
        say("edited", number)
        if mode == "save":
            projects.save(file)
            say("saved", number)
        elif time.monotonic() - last >= interval:
            last = time.monotonic()
            say("begun", number)
            projects.autosave()
            while projects.busy:
                time.sleep(0.0005)
            say("saved", number)
        else:
            time.sleep(0.002)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4]))
