"""A process that edits and saves a project until it is killed; run by test_keeping.

It tells a word, the number of edits so far and the time when an edit was made, an autosave was begun, or a
saving had returned.
"""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

from desktop.workbench.keeping import ProjectStore
from desktop.workbench.workbench import Workbench


def main(
    mode: Literal["save", "autosave"], file: Path, folder: Path, interval: float, tell: Connection
) -> None:
    def say(word: str, number: int) -> None:
        tell.send((word, number, time.monotonic()))

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
