"""What a user sees on the way from an example without delays to a table, with every template.

    python -m tests.benchmarks.transcripts [TEMPLATE ...] [-o resources/docs/templates.md]

runs the commands in a folder of its own and writes them with what they said, word for word but for the name
of that folder. It takes about half a minute a template. The tests run the same steps (`test_templates.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import tempfile
from pathlib import Path

from desktop import cli
from desktop.core.units import capital
from desktop.data.templates import TEMPLATES

HEAD = """# From a program to a table, with every template

Each transcript was made by running the commands as shown: the example of the template is copied, delays are
written into the copy, it is built, tested and run, and the table is read. Nothing was prepared, and only
the name of the folder was left out. The machine's two processors had other work at the same time, so wall
times vary. Two threads that wait for each other were then many times slower than one, so the table of
openmp shows that load and says nothing about OpenMP. Made by `python -m tests.benchmarks.transcripts`. The
templates are described in [Experiments with artificial
delays](spt.md#a-program-of-your-own-in-ten-minutes).
"""


def said(words: list[str], folder: Path) -> str:
    """A command and what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = cli.run(words)
    text = out.getvalue().replace(f"{folder}{os.sep}", "").rstrip()
    if code:
        raise SystemExit(f"{' '.join(words)} ended with {code}: {text}")
    shown = " ".join(word if " " not in word else f'"{word}"' for word in words)
    return f"$ phasewright {shown}\n{text}\n"


def transcript(name: str) -> str:
    """All commands of one template."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept).resolve()
        os.chdir(folder)
        try:
            parts = [said(["spt", "new", name, "--from", name], folder)]
            changed = sorted((folder / name / "program").rglob("heat*.[cfp]*"))[:1]
            for file in changed:
                lines = [
                    line for line in file.read_text(encoding="utf-8").splitlines() if "spt_delay" in line
                ]
                parts.append(f"$ grep -h spt_delay {file.relative_to(folder)}\n" + "\n".join(lines) + "\n")
            parts.append(said(["spt", "run", name, "--check", "--yes"], folder))
            parts.append(said(["spt", "run", name, "--yes"], folder))
        finally:
            os.chdir(before)
    block = "\n".join(parts).rstrip()
    return f"\n## {name}\n\n{capital(TEMPLATES[name].text)}.\n\n```\n{block}\n```\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("templates", nargs="*", default=list(TEMPLATES))
    parser.add_argument("-o", "--output", type=Path, default=Path("resources/docs/templates.md"))
    given = parser.parse_args()
    missing = {tool for name in given.templates for tool in TEMPLATES[name].needs if not shutil.which(tool)}
    if missing:
        raise SystemExit(f"not installed here: {', '.join(sorted(missing))}")
    # Open MPI refuses to run for root, as who containers run.
    os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    os.environ.setdefault("OMPI_MCA_rmaps_base_oversubscribe", "1")
    output = given.output.resolve()
    output.write_text(HEAD + "".join(map(transcript, given.templates)), encoding="utf-8")


if __name__ == "__main__":
    main()
