"""Tables of trials, and the words of ``phasewright spt`` that need no program to run."""

from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from desktop import cli
from desktop.core.design import orthogonal_array, plackett_burman, regular, run_sheet
from desktop.core.effects import analyse
from desktop.data.runs import (
    is_runs,
    kind_of,
    read_array,
    read_effects,
    read_places,
    read_runs,
    read_table,
    write_sheet,
)
from desktop.errors import TableError
from desktop.workbench.effect_comparison import tables_in

DATA = Path(__file__).parent.parent / "data" / "spt"


def table(tmp_path, text):
    path = tmp_path / "runs.csv"
    path.write_text(text, encoding="utf-8")
    return path


def run(capsys, *words):
    code = cli.run(["spt", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("pair", [("-", "+"), ("-1", "1"), ("-1", "+1"), ("0", "1"), ("1", "2")])
def test_levels_as_people_write_them(tmp_path, pair):
    low, high = pair
    text = f"time,a,note,b\n3,{low},x,{low}\n4,{high},y,{low}\n5,{low},z,{high}\n9,{high},,{high}\n"
    found = read_runs(table(tmp_path, text))
    assert found.data.factors == ("a", "b")
    assert found.data.x.tolist() == [[-1, -1], [1, -1], [-1, 1], [1, 1]]
    assert found.data.y.tolist() == [3, 4, 5, 9] and found.response == "time"


def test_one_column_per_replicate_and_one_row_per_trial_agree(tmp_path):
    wide = read_runs(table(tmp_path, "a,response1,response2\n-,1,2\n+,5,7\n"))
    assert wide.replicates == 2
    long = read_runs(table(tmp_path, "replicate,a,response\n1,-,1\n1,+,5\n2,-,2\n2,+,7\n"))
    assert long.replicates == 2
    for found in (wide, long):
        assert analyse(found.data).effects[0].value == pytest.approx(4.5)
    assert analyse(wide.data).effects[0].se == pytest.approx(analyse(long.data).effects[0].se)


def test_the_response_is_found_or_asked_for(tmp_path):
    path = table(tmp_path, "a,foo,bar\n-,1,2\n+,5,7\n")
    with pytest.raises(
        TableError, match="several columns that could be the response: foo, bar, call that column response"
    ):
        read_runs(path)
    assert read_runs(path, response="bar").data.y.tolist() == [2, 7]
    with pytest.raises(TableError, match="no column 'baz', line 1, its columns are a, foo, bar"):
        read_runs(path, response="baz")
    screen = read_runs(DATA / "measured_2026-11-21_screen_2p6m2.csv")
    assert screen.response == "wall_s" and "cpu_s" in screen.others
    assert screen.data.factors == tuple(f"F{i}" for i in range(1, 7))


def test_missing_responses_are_kept_as_missing(tmp_path):
    found = read_runs(table(tmp_path, "run,a,response\n1,-,1\n2,+,\n3,-,crash\n4,+,5\n"))
    assert np.isnan(found.data.y).tolist() == [False, True, True, False]
    assert found.data.label == ("1", "2", "3", "4")


def test_runs_without_a_finite_response_are_named_and_the_rest_analysed(tmp_path, capsys):
    path = table(tmp_path, "run,a,b,wall\n1,-,-,1\n2,+,-,inf\n3,-,+,crash\n4,+,+,5\n5,+,-,3\n6,-,-,1\n")
    assert cli.run(["spt", "effects", str(path), "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["missing_runs"] == ["2", "3"] and "(run 2, 3)" in found["notes"][0]
    assert found["notes"][-1] == "runs.csv: line 4, column wall: 'crash' is no number and counts as missing"
    assert {e["term"]: e["value"] for e in found["effects"]} == pytest.approx({"a": 2.0, "b": 2.0})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# first try\na,b,r1,r2\n-,-,1,2\n\n+,-,oops,nan\n-,+,3,\n+,+,4,x\n-,+,3,4\n",
         "line 5, column r1: 'oops'; line 7, column r2: 'x' are no numbers and count as missing"),
        ("a,b,wall\n0,0,1\n1,0,crash\n2,2,3\n0,1,5\n",
         "line 3, column wall: 'crash' is no number and counts as missing"),
        ("place,delay,wall\n,0,1\nx,1,oops\nx,1,2\nx,3,4\n,0,1.1\n",
         "line 3, column wall: 'oops' is no number and counts as missing"),
        ("a,wall\n" + "-,no\n+,1\n-,2\n" * 10,
         "'no'; line 23, column wall: 'no' and 2 more are no numbers and count as missing"),
    ],
)  # fmt: skip
def test_a_word_for_a_response_is_told_with_its_place(tmp_path, capsys, text, words):
    path = table(tmp_path, text)
    cli.run(["spt", "effects", str(path)])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("note: runs.csv: line ") and last.endswith(words)
    cli.run(["spt", "effects", str(path), "--json"])
    assert json.loads(capsys.readouterr().out)["notes"][-1] == last.removeprefix("note: ")


def test_a_trial_without_a_number_is_called_by_its_line(tmp_path):
    found = read_runs(table(tmp_path, "a,wall\n-,1\n+,2\n\n-,3\n"))
    assert found.data.label == ("line 2", "line 3", "line 5") and found.refused == ""
    assert read_runs(table(tmp_path, "who,a,wall\nx,-,1\ny,+,3\n")).data.label == ("x", "y")


def test_other_columns_are_no_factors(tmp_path):
    """Marks that are no levels, constants of other things, and what is constant in the chosen rows only."""
    text = "a,note,threads,shift,wall\n-,-,1,-1,1\n+,slow,1,1,2\n-,-,1,0.5,3\n+,-,1,7,5\n"
    found = read_runs(table(tmp_path, text))
    assert (found.data.factors, found.response) == (("a",), "wall")
    chosen = read_runs(table(tmp_path, "a,b,wall\n-,-,1\n+,-,2\n-,+,3\n+,+,5\n"), where={"b": "+"})
    assert chosen.data.factors == ("a",)


def test_of_a_journal_the_trials_that_count_are_read(tmp_path):
    lines = [
        "1,1,ok,-1,5,,0",
        "2,1,ok,+1,99,,0",
        "2,1,excluded,+1,,,",
        "3,1,failed,-1,,,",
        "3,2,ok,-1,7,,0",
        "2,2,disturbed,+1,50,,0.9",
        "2,3,disturbed,+1,9,,0.1",
        "4,1,disturbed,+1,60,,0.2",
        "4,2,ok,+1,11,,0",
    ]
    path = table(
        tmp_path, "\n".join(["# {}", "order,attempt,status,a,value,note,other_busy_cores", *lines]) + "\n"
    )
    found = read_runs(path, response="value").data
    assert dict(zip(found.label, found.y, strict=True)) == {"1": 5, "2": 9, "3": 7, "4": 11}


@pytest.mark.parametrize(
    "words", ["--generators =a", "--generators a=", "--generators ab=a", "--generators a", "--terms ,"]
)
def test_words_that_name_no_effect(tmp_path, capsys, words):
    path = table(tmp_path, "a,b,wall\n-,-,1\n+,-,2\n-,+,3\n+,+,5\n")
    assert cli.run(["spt", "effects", str(path), *words.split()]) == 1
    assert "error of the program" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b,wall\n-,+,1\n+,-,2\n-,-,3\n+,0,4\n", "b is '0', while other rows have other signs, line 5"),
        ("a,b,wall\n-1,1,1\n1,-1,2\n1,2,4\n", "b is '2', while other rows have other signs, line 4"),
        ("a,b,wall\n-1,-1,1\n1,-1,2\n", "b is '-1' in every trial, so it has no effect to see, line 2"),
        ("a,b,wall\n-,+,1\n+,+,2\n", r"b is '\+' in every trial, so it has no effect to see, line 2"),
        ("a,response\n", "holds no trial"),
        ("", "holds no table"),
        ("a,a,response\n-,-,1\n", "two columns 'a'"),
        ("x,response\n3,1\n4,2\n5,3\n", "no column of two levels"),
        ("a,b\n-,\n+,\n", "no column of responses"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, sentence):
    with pytest.raises(TableError, match=sentence):
        read_runs(table(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,response\n-,1\n1,2\n", "a is '1', while other rows have other signs, line 3"),
        ("a,response\n-,1\nhigh,2\n+,3\n", "a is 'high', while other rows have other signs, line 3"),
        ("a,response\n7,1\n7,2\n", "a is '7' in every trial"),
    ],
)
def test_levels_that_are_none(tmp_path, text, sentence):
    with pytest.raises(TableError, match=sentence):
        read_runs(table(tmp_path, text), factors=["a"])


@settings(deadline=None, max_examples=60)
@given(
    some.sampled_from(
        [b"a,response\n", b"a,b,response\n", b"place,delay,response\n", b"term,effect,delay\n"]
    ),
    some.one_of(some.binary(max_size=200), some.text("012-+.,;\n xf", max_size=120).map(str.encode)),
)
def test_any_bytes_end_in_trials_or_one_sentence(tmp_path_factory, heading, data):
    path = tmp_path_factory.mktemp("any") / "runs.csv"
    path.write_bytes(heading + data)
    is_runs(path)
    for read in (read_runs, read_table, read_array, read_places, read_effects):
        try:
            read(path)
        except TableError as error:
            assert str(error) and "\n" not in str(error)
    try:
        tables_in(path)
    except (TableError, ValueError) as error:
        assert str(error) and "\n" not in str(error)


def test_a_sheet_comes_back(tmp_path):
    for design in (regular(["push", "pop", "swap", "lock"], 8), plackett_burman([f"f{i}" for i in range(9)])):
        path = tmp_path / "sheet.csv"
        sheet = run_sheet(design, 3, seed=4)
        write_sheet(path, design, sheet)
        rows = list(csv.DictReader(path.open(newline="")))
        assert [int(r["treatment"]) - 1 for r in rows] == sheet.treatment.tolist()
        for row in rows:
            row["response"] = str(sum(int(row[f]) for f in design.factors))
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=sorted(rows[0]))  # any order of columns
            writer.writeheader()
            writer.writerows(rows)
        found = read_runs(path)
        assert set(found.data.factors) == set(design.factors) and found.replicates == 3
        mains = [e for e in analyse(found.data).effects if len(e.members) == 1]
        assert [e.value for e in mains] == pytest.approx([2.0] * len(design.factors))
    write_sheet(path, orthogonal_array("L9", ["a", "b"]), run_sheet(orthogonal_array("L9", ["a", "b"]), 1, 1))
    assert {row["a"] for row in csv.DictReader(path.open(newline=""))} == {"0", "1", "2"}


def test_effect_tables(tmp_path):
    path = table(tmp_path, "factor,main_effect,se\nF1,2.5,0.1\nF2,1,\n")
    assert kind_of(path) == "effects"
    found = read_effects(path)[0.0, 0.0]
    assert found["F1"] == (2.5, 0.1) and np.isnan(found["F2"][1])
    assert kind_of(DATA / "nistir5131_table2_runs.csv") == "runs"
    with pytest.raises(TableError, match="'much', which is no number, line 2"):
        read_effects(table(tmp_path, "factor,effect\nF1,much\n"))
    with pytest.raises(TableError, match="has F1 twice, line 3"):
        read_effects(table(tmp_path, "factor,effect\nF1,1\nF1,2\n"))


def test_one_table_of_effects_at_several_numbers_of_processors():
    """NISTIR 5417, tables 1 and 2."""
    found = read_effects(DATA / "nistir5417_tables1_2_iub.csv")
    assert list(found) == [(0, 8), (0, 24)]
    assert found[0, 8]["F17"] == (6.03, 0.04) and found[0, 24]["F17"] == (2.14, 0.12)


# --- arrays and sizes of the delay ---


def test_5131_table_4_is_an_array_as_printed_and_as_reconstructed():
    printed = read_array(DATA / "nistir5131_table4_printed_rows.csv")
    whole = read_array(DATA / "nistir5131_table4_oa25_reconstructed.csv")
    for found in (printed, whole):
        assert found.array and found.response.startswith("response_s") and len(found.data.factors) == 6
    assert printed.data.label == ("1", "7", "16", "25") and printed.data.y.tolist() == [66, 47, 33, 50]
    known = whole.only(np.isfinite(whole.data.y)).data
    # A level and its delay say the same, so only one of the columns is a factor.
    assert known.label == printed.data.label and (7 * known.x).tolist() == printed.data.x.tolist()


@pytest.mark.parametrize("name", sorted(p.name for p in DATA.glob("*.csv")))
def test_what_tables_hold_is_told_from_their_columns(name):
    array = {"nistir5131_table4_printed_rows.csv", "nistir5131_table4_oa25_reconstructed.csv"}
    wanted = "array" if name in array else "places" if "delay_magnitude" in name else None
    kind = kind_of(DATA / name)
    assert kind == wanted if wanted else kind in ("runs", "effects")
    if "measured" in name and "2p" in name:
        assert kind == "runs", "however many columns of counts stand beside the levels"
    if wanted:
        assert is_runs(DATA / name)


def test_a_mixed_array_is_one(tmp_path):
    made = orthogonal_array("L18", ("a", "b", "c"))
    path = tmp_path / "runs.csv"
    write_sheet(path, made, run_sheet(made, 2, 3))
    text = path.read_text().splitlines()
    path.write_text("\n".join([text[0], *(f"{line}{k}" for k, line in enumerate(text[1:]))]))
    found = read_array(path)
    assert kind_of(path) == "array" and found.data.factors == ("a", "b", "c") and found.replicates == 2
    for row, line in zip(found.data.x, text[1:], strict=True):
        treatment = int(line.split(",")[2]) - 1
        assert row.tolist() == made.levels[treatment].tolist()
    named = read_array(path, factors=["a", "c"])
    assert named.data.factors == ("a", "c")


def test_levels_of_an_array_that_are_none(tmp_path):
    path = table(tmp_path, "a,b,wall\n0,1,3\n1,much,4\n2,0,5\n")
    with pytest.raises(TableError, match="b is 'much', which is no level, line 3"):
        read_array(path, factors=["a", "b"])
    with pytest.raises(TableError, match="no column of levels"):
        read_array(table(tmp_path, "wall\n1\n2\n"))


def test_one_place_at_a_time(tmp_path):
    text = "place,delay,wall\nnone,,10\nf,100,12\ng,100,10\nbase,0,11\nf,300,17\n"
    found = read_places(table(tmp_path, text))
    assert found.array and found.data.factors == ("f", "g")
    assert found.data.x.tolist() == [[0, 0], [100, 0], [0, 100], [0, 0], [300, 0]]
    assert found.delay.tolist() == [0, 100, 100, 0, 300]
    with pytest.raises(TableError, match="delay is '-5', which is no size, line 2"):
        read_places(table(tmp_path, "place,delay,wall\nf,-5,10\n"))
    with pytest.raises(TableError, match="no trial with a delay"):
        read_places(table(tmp_path, "place,delay,wall\nf,0,10\n"))


def test_a_remark_on_the_delay_is_no_size(tmp_path):
    assert read_runs(table(tmp_path, "a,delay,wall\n-,short,1.5\n+,long,2.5\n")).delay is None


# --- the command ---


def test_design_keys(capsys):
    code, out, _ = run(capsys, "design", "--factors", 6, "--runs", 16, "--generators", "E=ABC,F=BCD",
                       "--replicates", 3, "--seed", 9, "--json")  # fmt: skip
    found = json.loads(out)
    assert code == 0
    wanted = (
        "kind factors runs generators defining_relation resolution word_length_pattern aliases "
        "clear_main_effects clear_two_factor_interactions order seed"
    )
    assert set(wanted.split()) <= set(found)
    assert found["generators"] == ["E=ABC", "F=BCD"]
    assert found["defining_relation"] == ["ABCE", "ADEF", "BCDF"]
    assert (found["resolution"], found["word_length_pattern"]) == ("IV", [0, 3])
    assert ["A:B", "C:E"] in found["aliases"]
    assert found["clear_main_effects"] == list("ABCDEF")
    assert found["runs"][0] == [-1] * 6 and found["seed"] == 9
    assert sorted(found["order"]) == sorted(list(range(1, 17)) * 3)
    _, again, _ = run(capsys, "design", "--factors", 6, "--runs", 16, "--generators", "E=ABC,F=BCD",
                      "--replicates", 3, "--seed", 9, "--json")  # fmt: skip
    assert json.loads(again)["order"] == found["order"]


def test_design_by_resolution_and_kind(capsys):
    _, out, _ = run(capsys, "design", "--factors", "push,pop,swap,lock,code1", "--resolution", "IV", "--json")
    found = json.loads(out)
    assert (len(found["runs"]), found["resolution"]) == (16, "V")
    assert found["factors"][0] == "push"
    _, out, _ = run(capsys, "design", "--factors", 11, "--kind", "plackett-burman", "--json")
    assert len(json.loads(out)["runs"]) == 12
    _, out, _ = run(
        capsys, "design", "--factors", 6, "--kind", "orthogonal-array", "--array", "L25", "--json"
    )
    assert json.loads(out)["runs"][6] == [1, 1, 2, 3, 4, 0]
    code, out, _ = run(capsys, "design", "--factors", 12, "--offers", "--json")
    assert code == 0 and [d["runs"] for d in json.loads(out)["designs"]][:2] == [16, 20]
    _, out, _ = run(capsys, "design", "--factors", 7, "--runs", 8, "--fold", "--json")
    assert json.loads(out)["resolution"] == "IV"


def test_design_as_text_and_file(capsys, tmp_path):
    code, out, _ = run(capsys, "design", "--factors", 5, "--runs", 8, "--sigma", "0.5", "--replicates", 2)
    assert code == 0 and "Defining relation: I = " in out and "is seen with a chance of 90 %" in out
    path = tmp_path / "runs.csv"
    code, out, _ = run(capsys, "design", "--factors", 5, "--runs", 8, "-o", path)
    assert code == 0 and len(path.read_text().splitlines()) == 9


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--factors", 9, "--runs", 8),
            "9 factors cannot be estimated in 8 runs, the smallest number is 16",
        ),
        (("--factors", 6, "--runs", 8, "--resolution", "IV"), "resolution IV needs 16 runs"),
        (("--factors", 5, "--generators", "E=A"), "equal to another"),
        (("--factors", "a,a"), "a name of its own"),
        (("--factors", 400), "400 factors were requested"),
    ],
)
def test_design_refusals(capsys, words, sentence):
    code, _, err = run(capsys, "design", *words)
    assert code == 1 and sentence in err and err.count("\n") == 1


def test_effects_keys(capsys):
    code, out, _ = run(capsys, "effects", DATA / "nistir5131_table2_runs.csv", "--json")
    found = json.loads(out)
    assert code == 0
    assert {"convention", "mean", "effects", "pooled_variance", "error", "lenth", "half_normal",
            "suspect_runs"} <= set(found)  # fmt: skip
    assert found["convention"] == "effect" and found["mean"] == pytest.approx(48.026875)
    assert found["error"]["method"] == "lenth" and found["lenth"]["pse"] == pytest.approx(1.561875)
    assert found["effects"][7]["term"] == "f4" and found["effects"][7]["significant"]
    _, out, _ = run(capsys, "effects", DATA / "nistir5131_table2_runs.csv", "--half", "--json")
    half = json.loads(out)
    assert half["convention"] == "half_effect"
    assert [e["value"] * 2 for e in half["effects"]] == pytest.approx([e["value"] for e in found["effects"]])
    _, out, _ = run(capsys, "effects", DATA / "nistir5131_table3_runs_implied.csv", "--json")
    assert [s["run"] for s in json.loads(out)["suspect_runs"]] == ["9"]


def test_an_array_is_ranked_without_an_experiment(capsys):
    code, out, _ = run(capsys, "effects", DATA / "nistir5131_table4_oa25_reconstructed.csv", "--json")
    found = json.loads(out)
    assert code == 3 and len(found["missing_runs"]) == 21 and "21 settings" in found["notes"][0]
    assert [(r["run"], r["mean"]) for r in found["ranking"]] == [
        ("16", 33.0), ("7", 47.0), ("25", 50.0), ("1", 66.0)
    ]  # fmt: skip
    best = found["ranking"][0]
    assert best["percent_of_unperturbed"] == 50 and list(best["levels"].values()) == [3, 0, 3, 1, 4, 2]
    printed = DATA / "nistir5131_table4_printed_rows.csv"
    code, out, _ = run(capsys, "effects", printed, "--csv")
    rows = list(csv.DictReader(out.splitlines()))
    assert code == 0 and [float(rows[0][f"F{k}"]) for k in range(1, 7)] == [21, 0, 21, 7, 28, 14]
    code, out, _ = run(capsys, "effects", printed)
    assert code == 0 and out.splitlines()[2].split()[3] == "50.0" and "14: 33" in out


def test_effects_against_the_size_of_the_delay(capsys):
    path = DATA / "measured_2026-11-21_delay_magnitude.csv"
    code, out, _ = run(capsys, "effects", path, "--json")
    found = {e["term"]: e for e in json.loads(out)["effects"]}
    assert code == 0 and set(found) == {"F1", "F2", "F4", "F5"}
    with path.open() as file:
        rows = list(csv.DictReader(file))

    def mean(treatment):
        own = [float(r["wall_s"]) for r in rows if r["treatment"] == treatment]
        return sum(own) / len(own)

    for term, one in found.items():
        for delay, value in zip(one["delays"], one["values"], strict=True):
            assert value == pytest.approx(mean(f"{term}@{delay:g}") - mean("base"))
            assert one["per_unit"][one["delays"].index(delay)] == pytest.approx(value / delay)
    assert not found["F4"]["linear"], "the call itself counts where the delay is short"
    code, out, _ = run(capsys, "effects", path, "--csv")
    assert code == 0 and len(out.splitlines()) == 1 + sum(len(one["delays"]) for one in found.values())
    code, _, err = run(capsys, "effects", DATA / "nistir5139_table13_quicksort.csv")
    assert code == 1 and "without a column `delay`" in err


def test_ranks_are_shared_within_one_standard_error(capsys):
    """Of the quicksort, F4 stands alone; those below zero are a group of their own."""
    code, out, _ = run(capsys, "effects", DATA / "measured_2026-11-21_screen_2p6m2.csv", "--json")
    rows = json.loads(out)["ranks"]
    assert code == 0 and (rows[0]["term"], rows[0]["rank"]) == ("F4", 1)
    positive = [row for row in rows if row["rank"] is not None]
    others = [row["verdict"] for row in rows if row["rank"] is None]
    assert set(others) <= {"helps", "not distinguishable from zero"} and len(rows) == 6
    assert all(row["verdict"] == "slows" for row in positive)
    for place, (before, row) in enumerate(pairwise(positive), 2):
        near = before["value"] - row["value"] <= row["se"]
        assert row["rank"] == (before["rank"] if near else place)


def test_effects_as_text_and_csv(capsys):
    code, out, _ = run(
        capsys, "effects", DATA / "nistir5139_table2_xprog_runs.csv", "--error", "interactions"
    )
    assert code == 0 and "SPT rank" in out and "\n1             F2 " in out
    code, out, _ = run(
        capsys, "effects", DATA / "nistir5139_table2_xprog_runs.csv", "--csv", "--terms", "F1,F2"
    )
    assert out.splitlines()[0].startswith("term,aliases,value,se") and len(out.splitlines()) == 3
    code, _, err = run(capsys, "effects", DATA / "nistir5131_table2_runs.csv", "--generators", "f5=f1:f2")
    assert code == 1 and "do not follow the generator f5=f1:f2" in err
    code, _, _ = run(capsys, "effects", DATA / "nistir5131_table2_runs.csv", "--generators", "f5=f1:f2:f3")
    assert code == 0


def test_scaling_words(capsys, tmp_path):
    for p in ("8", "24"):
        source = csv.DictReader((DATA / "nistir5417_tables1_2_iub.csv").open(newline=""))
        lines = [f"{r['factor']},{r['main_effect']},{r['se']}" for r in source if r["processors"] == p]
        (tmp_path / f"{p}.csv").write_text("\n".join(["factor,main_effect,se", *lines]))
    words = ("--small", tmp_path / "8.csv", "--small-p", 8, "--large", tmp_path / "24.csv", "--large-p", 24)
    code, out, _ = run(capsys, "scaling", *words, "--json")
    first = json.loads(out)["effects"][0]
    assert code == 0 and first["term"] == "F17" and first["scaling_ratio"] == pytest.approx(-0.476, abs=5e-4)
    code, out, _ = run(capsys, "scaling", *words)
    assert "exponent" in out
    both = DATA / "nistir5417_tables1_2_iub.csv"
    words = ("--small", both, "--small-p", 8, "--large", both, "--large-p", 24, "--json")
    code, out, _ = run(capsys, "scaling", *words)
    assert json.loads(out)["effects"][0] == first
    code, _, err = run(capsys, "scaling", "--small", both, "--small-p", 4, "--large", both, "--large-p", 24)
    assert code == 1 and "holds 0 tables of effects at 4 processors" in err
    code, out, _ = run(capsys, "scaling", DATA / "nistir5417_table4_isolated_factor.csv",
                       "--factor", "X_cd", "--scale", "X_s", "--se", 0.1, "--json")  # fmt: skip
    assert json.loads(out)["verdict"] == "does not scale"
    measured = DATA / "measured_2026-11-21_scaling_2p2.csv"
    words = ("--factor", "x_factor", "--scale", "x_s", "--where", "factor=F4")
    code, out, _ = run(capsys, "scaling", measured, *words)
    assert "verdict: scales" in out
    code, _, err = run(capsys, "scaling", "--small", tmp_path / "8.csv")
    assert code == 1 and "--large-p" in err
    code, _, err = run(capsys, "scaling")
    assert code == 1 and "--factor" in err


def test_trials_and_run_sheets_may_be_spreadsheets(tmp_path):
    made = regular(["A", "B"])
    sheet = run_sheet(made, 2, seed=5)
    write_sheet(tmp_path / "sheet.csv", made, sheet)
    write_sheet(tmp_path / "sheet.xlsx", made, sheet)
    import pandas as pd

    text = pd.read_csv(tmp_path / "sheet.csv", dtype=str, keep_default_na=False)
    cells = pd.read_excel(tmp_path / "sheet.xlsx", dtype=str, keep_default_na=False)
    assert list(text.columns) == ["order", "replicate", "treatment", "A", "B", "response"]
    assert text.to_numpy().tolist() == cells.to_numpy().tolist()
    cells["response"] = [f"{k}.5" for k in range(8)]
    cells.to_excel(tmp_path / "filled.xlsx", index=False)
    cells.to_csv(tmp_path / "filled.csv", index=False)
    one, other = (read_runs(tmp_path / name).data for name in ("filled.xlsx", "filled.csv"))
    assert one.factors == ("A", "B") and (one.x == other.x).all() and (one.y == np.arange(8) + 0.5).all()
