"""Text from strangers: a terminal obeys none of it, a spreadsheet computes none of it."""

from __future__ import annotations

import csv
import io
import re
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pandas import DataFrame

from desktop.cli import run
from desktop.data.frames import as_csv_text
from desktop.data.tables import read_table
from desktop.printing import Printed, as_csv, guarded, printable, unguarded
from desktop.ui.tables import comma_separated, tab_separated
from tests.data_layer import otf2_writer
from tests.data_layer.otf2_writer import Event, Place

EVIL = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x9b31m\rphasewright: all is well"
COMMAND = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Regions with such names, whose file has one too."""
    folder = tmp_path_factory.mktemp("evil \x1b[31m folder")
    events = [Event(0, "Enter", (0,)), Event(5, "Enter", (1,)), Event(900, "Leave", (1,))]
    places = [Place(k, [*events, Event(1000 + k, "Leave", (0,))]) for k in range(2)]
    return otf2_writer.write(folder, places, regions={0: EVIL, 1: "=1+1\nfake: line"})


@pytest.mark.parametrize(
    "command",
    [
        "import {0} -o {1}",
        "info {0}",
        "stats {0} -n 2",
        "stats {0} -n 2 --csv",
        "phases {0} -n 2",
        "phases {0} --max-n 3",
        "compare {0} {0} -n 2",
        "report {0} -o {1}.html --plots curve",
        "model {0}",
        "spt effects {0}",
        "spt run {0}",
        "stats {0}/none\x1b[2J",
        "nothing\x1b[2J",
    ],
)
def test_no_command_prints_commands_of_a_terminal(
    trace: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.format(trace, tmp_path / "out.h5") for word in command.split(" ")]
    run(words)
    told, wrong = capsys.readouterr()
    assert (told + wrong).strip()
    assert not COMMAND.search(told + wrong), repr(told + wrong)
    assert isinstance(sys.stdout, Printed) is False
    if command == "stats {0} -n 2":
        assert "\ufffd" in told and "\nfake" not in told


@pytest.mark.parametrize(
    "code", [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x206A), 0xFEFF]
)
def test_what_is_not_seen_or_turns_text_shows(code: int) -> None:
    if code not in (0x200C, 0x200D):  # joiners, which scripts need
        assert "\ufffd" in printable(f"a{chr(code)}b") or " " in printable(f"a{chr(code)}b")


def test_a_line_is_as_long_as_it_may_be() -> None:
    assert [printable("abcde", most) for most in (6, 5, 4)] == ["abcde", "abcde", "abc…"]


@given(st.text())
def test_a_stream_keeps_lines_and_shows_the_rest(text: str) -> None:
    out = io.StringIO()
    Printed(out).write(text)
    assert not COMMAND.search(out.getvalue()) and out.getvalue().count("\n") == text.count("\n")
    plain = "".join(c for c in text if c.isalnum())
    assert plain == "".join(c for c in out.getvalue() if c.isalnum())


def test_what_an_encoding_lacks_is_spelled_out() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii")
    print("Ω \udcff", file=Printed(stream))  # type: ignore[arg-type]  # as good as a stream
    stream.flush()
    assert raw.getvalue() == b"\\u03a9 \\ufffd\n"


@given(st.text(alphabet=st.sampled_from("=+-@'1.e %sµ|!A\t\n\r\x1b,\"")))
@example("'=1")
@example(" ''-1")
def test_no_cell_is_a_formula_and_every_text_comes_back(text: str) -> None:
    cell = next(csv.reader(io.StringIO("".join(as_csv([(text,)])))), [""])[0]
    number = re.fullmatch(r"[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?( ?[A-Za-zµ°%/²]{1,12})?", cell)
    assert cell[:1] not in ("=", "+", "-", "@") or number
    assert unguarded(cell) == printable(text)
    assert next(csv.reader(io.StringIO(comma_separated([[text, "x"]])))) == [cell, "x"]
    assert tab_separated([[text, "x"]]) == f"{cell}\tx\n"


@pytest.mark.parametrize("number", ["-1", "+0.5", "-2.5e-07", "-3 %", "-1.2 ms", "+1"])
def test_numbers_stay_numbers(number: str) -> None:
    assert guarded(number) == number


@pytest.mark.parametrize(
    "evil", ["=1+1", "+A1", "-2+3+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "-A1", "- 1"]
)
def test_formulas_are_text(evil: str) -> None:
    assert guarded(evil).startswith("'")


def test_the_factor_model_guards_its_cells_and_reads_them_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["code,system,p,time"]
    for code, work in (("=1+1", 8.0), ("b", 20.0)):
        for system, speed in (("@s", 1.0), ("t", 3.0)):
            rows += [f"{code},{system},{p},{work / speed / p + 0.1 * work}" for p in (1, 2, 4, 8)]
    table = tmp_path / "runs.csv"
    table.write_text("\n".join(rows) + "\n")
    assert run(["model", str(table), "--functions", "1/p", "--csv"]) == 0
    told = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    cells = [cell for row in told for cell in row]
    assert "'=1+1" in cells and "'@s" in cells
    assert not [cell for cell in cells if cell[:1] in "=@" and cell]
    again = read_table(table.read_text().replace("=1+1", "'=1+1").replace("@s", "'@s"))
    assert {row.code for row in again.rows} == {"=1+1", "b"} and {row.system for row in again.rows} == {
        "@s",
        "t",
    }


@settings(deadline=None)  # the first example loads pandas
@given(st.lists(st.text(alphabet=st.sampled_from("=+-@'1.e ;,\t\"\n#a")), min_size=1, max_size=3))
def test_no_cell_of_a_frame_that_is_written_is_a_formula(texts: list[str]) -> None:
    frame = DataFrame({"text": texts, "number": range(len(texts))})
    rows = list(csv.reader(io.StringIO(as_csv_text(frame))))
    assert [row[0] for row in rows] == ["text", *(guarded(text) for text in texts)]
    assert [row[1] for row in rows[1:]] == [str(k) for k in range(len(texts))]
