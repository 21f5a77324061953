"""The keys of ``experiment.toml`` explained, and their places in a file.

The texts are written once, here: they are the comments in every description that is written, and
``resources/docs/experiment-file.md`` contains the same (a test compares them).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: (table, key) -> its meaning, in one line.
KEYS: dict[tuple[str, str], str] = {
    ("", "format"): "Version of this file's form.",
    ("", "title"): "What the experiment is called in the window and in reports.",
    ("", "responses"): "What is measured in every run; the first is analysed unless another is chosen.",
    ("program", "run"): "Run command: {out} is the built program, {args} words of the factors.",
    ("program", "build"): "Build command: {flags} of a treatment, {out} the file to be made.",
    ("program", "sources"): "Files it is built from; a change of one makes this another experiment.",
    ("program", "shell"): "true: the commands are texts for a shell; false: words, which no shell sees.",
    ("program", "check"): "Regular expression that the output of a right run matches.",
    ("program", "time_limit_s"): "Seconds after which a run is ended and counts as failed.",
    ("program", "warm_up"): "Runs before the first trial that are not recorded.",
    ("program", "flags"): "Flags of every build; SPT_DELAY is the length of a delay in units.",
    ("program", "busy_limit"): "Cores others may use beyond those at first; above, a trial is repeated.",
    ("program", "product"): "File that the build makes where it cannot write to {out}; it is copied there.",
    ("program", "join"): "Variables that several factors set: the text between their values.",
    ("design", "kind"): "regular, full, plackett-burman or orthogonal-array.",
    ("design", "runs"): "Number of treatments; without it all combinations.",
    ("design", "generators"): "Columns of a fraction, such as \"E=ABC\"; without: of least aberration.",
    ("design", "array"): "Which orthogonal array, such as \"L9\".",
    ("design", "fold"): "Mirror image: \"\" of all signs, a factor's name of its own.",
    ("design", "fold_after"): "Replicates that were planned when the fold was decided on.",
    ("design", "replicates"): "How often every treatment is run; each time is a block in its own order.",
    ("design", "seed"): "The random order follows from it.",
    ("factors", "name"): "What the factor is called in tables, plots and sentences.",
    ("factors", "file"): "Source of the place.",
    ("factors", "line"): "Line of the place in the program's own source.",
    ("factors", "routine"): "Routine of the place.",
    ("factors", "construct"): "What it stands in: function, for loop, ...",
    ("factors", "delay"): "Length of the delay of this factor alone, filled in for {delay}.",
    ("factors", "flags"): "Compiler flags at +.",
    ("factors", "arguments"): "Words of the run command at +.",
    ("factors", "environment"): "Variables of the environment at +.",
    ("factors", "low_flags"): "Compiler flags at -.",
    ("factors", "low_arguments"): "Words of the run command at -.",
    ("factors", "low_environment"): "Variables of the environment at -.",
    ("factors", "means"): "What the high level (+) means, in words, such as \"24 threads\".",
    ("factors", "low_means"): "What the low level (-) means, in words, such as \"8 threads\".",
    ("responses", "name"): "What the response is called.",
    ("responses", "kind"): "wall (elapsed), cpu (processor time), memory (largest), output (is printed).",
    ("responses", "pattern"): "Of output: a regular expression with one group, as \"time = ([0-9.]+)\".",
    ("responses", "unit"): "Unit of the response, such as \"s\".",
}  # fmt: skip

_TABLE = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]\]?")
_KEY = re.compile(r"\s*([\w-]+)\s*(\.\s*[\w-]+\s*)*=")
#: Delimiters: of a text, a text of several lines, a comment; or opening and closing brackets.
_SIGNS = re.compile(r"'''|\"\"\"|\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'|#[^\n]*|[\[\]{}]")


@dataclass(frozen=True)
class Statement:
    """A key, or with key "" the head of a table; `number`: among the tables of that name, from 1."""

    table: str
    number: int
    key: str
    line: int


def statements(text: str) -> Iterator[Statement]:
    """Tables and keys of a TOML text, in order; the contents of brackets belong to their key."""
    table, counts, depth, inside = "", {"": 1}, 0, ""
    for line, content in enumerate(text.split("\n"), 1):
        if not depth and not inside:
            if head := _TABLE.match(content):
                table = head[2].partition(".")[0]
                if head[1] == "[[" or "." not in head[2]:
                    counts[table] = counts.get(table, 0) + 1
                key = head[2].partition(".")[2]
                yield Statement(table, counts[table], key, line)
                continue
            if key_found := _KEY.match(content):
                yield Statement(table, counts[table], key_found[1], line)
        at = 0
        while at < len(content):
            if inside:
                end = content.find(inside, at)
                if end < 0:
                    break
                at, inside = end + 3, ""
                continue
            sign = _SIGNS.search(content, at)
            if sign is None:
                break
            at = sign.end()
            if sign[0] in ("'''", '"""'):
                inside = sign[0]
            elif sign[0] in "[{":
                depth += 1
            elif sign[0] in "]}":
                depth -= 1


def commented(text: str) -> str:
    """A description with a comment line before the first occurrence of every key."""
    lines, described_keys = text.split("\n"), set()
    about: dict[int, str] = {}
    for one in statements(text):
        meaning = KEYS.get((one.table, one.key))
        if meaning is not None and (one.table, one.key) not in described_keys:
            described_keys.add((one.table, one.key))
            about[one.line - 1] = f"# {meaning}"
    return "\n".join(part for k, line in enumerate(lines) for part in (*filter(None, (about.get(k),)), line))
