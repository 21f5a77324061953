"""``phasewright stats``: the numbers of the statistics, in three forms that agree."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from desktop import cli
from desktop.data.opening import open_trace
from desktop.data.statistics import SINGLE, Statistics
from desktop.resources import samples
from tests.data_layer import archives

KEYS = {
    *(
        "name",
        "level",
        *SINGLE,
        "ideal_s",
        "ideal_note",
        "activities",
        "accounts",
        "concurrency",
        "roles",
        "regions",
    ),
    *("locations", "most_loaded", "idlest", "messages", "waiting_note", "note", "changes", "causes"),
}

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return next(archives.unpack("mpt_farm_6_dilated", tmp_path).rglob("*.otf2"))


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = cli.run([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def as_json(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    code, out, err = run(capsys, "stats", *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_json_says_what_the_statistics_say(trace, capsys, tmp_path) -> None:  # type: ignore[no-untyped-def]
    told = as_json(capsys, trace, "-n", 3, "--model", "constant")
    names = [part["name"] for part in told["ranges"]]
    assert names == ["run", "phase 1", "phase 2", "phase 3"]
    breaks = told["breaks_s"]
    with open_trace(trace, output=tmp_path / "trace.h5") as store:
        ranges = [(breaks[0], breaks[-1]), *pairwise(breaks)]
        for part, stats in zip(told["ranges"], Statistics(store).ranges(ranges, replay=True), strict=True):
            assert set(part) == KEYS
            for name in SINGLE:
                assert part[name] == getattr(stats, name)
            # A constant phase's level over P is its parallel efficiency, but for a tick at each end.
            rounding = 2 / store.ticks_per_second / part["duration_s"]
            assert part["level"] / part["processors"] == pytest.approx(
                part["parallel_efficiency"], abs=rounding
            )
    whole, *phases = told["ranges"]
    for key in ("sent", "received", "bytes_sent"):
        assert sum(phase["messages"][key] for phase in phases) == whole["messages"][key]
    assert sum(pair["count"] for pair in whole["messages"]["matrix"]) == whole["messages"]["sent"] == 405
    assert len(whole["locations"]) == 6 and whole["most_loaded"][0] == "rank 4"
    assert not whole["changes"] and not phases[0]["changes"]
    assert phases[1]["changes"] and phases[1]["changes"][0]["sentence"].endswith(".")
    for part in told["ranges"]:
        assert sum(row["share"] for row in part["regions"]) == pytest.approx(1)
        assert sum(step["share"] for step in part["concurrency"]) == pytest.approx(1)
        for place in part["locations"]:
            assert place["waiting_s"] + place["transfer_s"] == pytest.approx(place["communication_s"])
            assert sum(place["accounts"].values()) == pytest.approx(part["duration_s"], rel=1e-12)
            assert place["accounts"]["computing_s"] == pytest.approx(place["computing_s"])
        causes, path = part["causes"], part["causes"]["critical_path"]
        assert causes["waiting_s"] == pytest.approx(sum(place["waiting_s"] for place in part["locations"]))
        for key in ("locations", "regions"):
            waits = [row["waits_direct_s"] + row["waits_indirect_s"] for row in causes[key]]
            assert sum(waits) == pytest.approx(causes["waiting_s"])
            costs = [row["costs_short_term_s"] + row["costs_long_term_s"] for row in causes[key]]
            assert sum(costs) == pytest.approx(causes["costs_s"])
            assert sum(row["path_s"] for row in causes[key]) == pytest.approx(path["length_s"])
        assert path["length_s"] == pytest.approx(part["duration_s"], abs=1e-9)
        for one, other in pairwise(path["segments"]):
            assert one["end_s"] == other["start_s"] and one["location"] != other["location"]
        for name, seconds in part["accounts"].items():
            assert sum(place["accounts"][name] for place in part["locations"]) == pytest.approx(seconds)
        assert sum(part["accounts"].values()) == pytest.approx(part["duration_s"] * 6)


def test_whom_everybody_waits_for_is_named_first(trace, capsys) -> None:  # type: ignore[no-untyped-def]
    """The farm's rank 4 computes longest: rank 0 waits for it, and ranks 1 to 3 for rank 0."""
    (run_,) = as_json(capsys, trace)["ranges"]
    causes = run_["causes"]
    assert causes["costs_s"] == pytest.approx(causes["waiting_s"]) and causes["unexplained_s"] == 0
    first, second = causes["delays"][:2]
    assert (first["location"], first["region"]) == (4, "(no region)")
    costs = [one["short_term_s"] + one["long_term_s"] for one in (first, second)]
    assert costs[0] > 0.9 * causes["waiting_s"] and costs[0] > 10 * costs[1]
    code, out, _ = run(capsys, "stats", trace)
    assert code == 0 and "rank 4 in (no region) made others wait" in out
    assert not re.search(r"\de[−+-]?\d", out), "an exponent in a sentence"


def test_rows_and_table_agree_with_json(trace, capsys) -> None:  # type: ignore[no-untyped-def]
    words = (trace, "-n", 2, "--start", 0.05, "--end", 0.2)
    told = as_json(capsys, *words)
    code, out, _ = run(capsys, "stats", *words, "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and [row["name"] for row in rows] == ["window", "phase 1", "phase 2"]
    for row, part in zip(rows, told["ranges"], strict=True):
        assert float(row["parallel_efficiency"]) == part["parallel_efficiency"]
        assert float(row["idle_s"]) == part["activities"]["idle_s"]
        assert float(row["account_late_sender_s"]) == part["accounts"]["late_sender_s"] > 0
        assert int(row["messages_sent"]) == part["messages"]["sent"]
    assert rows[0]["start_s"] == "0.05"
    code, out, _ = run(capsys, "stats", *words)
    assert code == 0 and max(map(len, out.splitlines())) <= 100
    assert "what changed from phase 1 to phase 2" in out and "Late receiver" in out
    for part in told["ranges"]:
        assert f"{100 * part['parallel_efficiency']:.1f}%" in out


def test_a_curve_has_what_a_curve_has(tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "curve.csv"
    path.write_text("0 4\n2 1\n3 2\n5 0\n")
    (whole,) = as_json(capsys, path)["ranges"]
    assert whole["computing"] == pytest.approx(13 / 5)
    assert whole["load_balance"] is None and whole["messages"] is None and whole["locations"] == []
    code, out, _ = run(capsys, "stats", path, "-n", 2, "--model", "constant")
    assert code == 0 and "The source is a curve" in out


def test_wrong_words_are_said(trace, capsys) -> None:  # type: ignore[no-untyped-def]
    code, _, err = run(capsys, "stats", trace, "-n", 1, "--model", "budget")
    assert code == 1 and "budget" in err
    code, _, err = run(capsys, "stats", trace, "--start", 9)
    assert code == 1 and "outside the curve" in err
    assert run(capsys, "stats", trace, "--json", "--csv")[0] == 2


def test_phases_are_those_of_the_other_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """Breakpoints of the sample may lie in ranges in which structure events are."""
    file = samples()[0].path
    shown = [json.loads(run(capsys, word, file, "-n", 4, "--json")[1]) for word in ("phases", "stats")]
    assert any(shown[0]["break_events"]) and shown[0]["breaks_s"] == shown[1]["breaks_s"]


def test_a_phase_ends_at_an_event_only_where_its_breakpoint_is(capsys: pytest.CaptureFixture[str]) -> None:
    """One of its ranges holds an event to which the breakpoint cannot move alone without a larger error."""
    file = Path(__file__).parent / "data" / "otf2" / "mpt_jacobi2d_9_dilated.tar.gz"
    told = json.loads(run(capsys, "phases", file, "-n", 5, "--json")[1])
    lines = [line for line in run(capsys, "phases", file, "-n", 5)[1].splitlines() if " end" in line]
    near = 0.004 * (told["breaks_s"][-1] - told["breaks_s"][0])
    kinds = set()
    for k, events in enumerate(told["break_events"], 1):
        if events:
            there = abs(events[0]["time_s"] - told["breaks_s"][k]) <= near
            kinds.add(there)
            start = f"phase {k} {'ends' if there else 'could as well end'} where {events[0]['text']}, at "
            assert any(line.startswith(start) for line in lines)
    assert kinds == {True, False}
