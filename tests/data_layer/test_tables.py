"""Tables of run times: what is recognised, what is refused, and with which words."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from openpyxl import Workbook

from desktop import cli
from desktop.core.factor_model import fit_individual
from desktop.data.tables import measurements, read_table, recognise, with_values
from desktop.errors import TableError

DATA = Path(__file__).parent.parent / "data" / "npb"
SHARED = Path(__file__).parents[3] / "shared" / "data" / "npb"
SURROGATE = DATA / "npb21_classA_surrogate.csv"

LISTING = """

 NAS Parallel Benchmarks 3.4 -- BT Benchmark

 BT Benchmark Completed.
 Class           =                        A
 Size            =             64x  64x  64
 Iterations      =                      200
 Time in seconds =                    {time}
 Total processes =                       {p}
 Active processes=                       {p}
 Mop/s total     =                  {rate}
 Operation type  =           floating point
 Verification    =               {verified}
 Version         =                    3.4.1
"""


def text_of(rows, header="code,system,p,time"):
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)])


ROWS = [("a", "x", 1, 8.0), ("a", "x", 2, 4.5), ("a", "y", 4, 2.0), ("b", "y", 1, 9.0)]


def test_a_plain_table():
    table = read_table(text_of(ROWS))
    assert [(r.code, r.system, r.p, r.time) for r in table.rows] == ROWS
    assert [r.line for r in table.rows] == [2, 3, 4, 5]
    data = measurements(table).data
    assert (data.codes, data.systems) == (("a", "b"), ("x", "y"))
    assert data.time.tolist() == [8.0, 4.5, 2.0, 9.0]
    assert data.work is None and data.peak is None


@pytest.mark.parametrize("separator", [",", ";", "\t", "  "])
def test_separators(separator):
    text = text_of(ROWS).replace(",", separator)
    assert [(r.code, r.system, r.p, r.time) for r in read_table(text).rows] == ROWS


def test_a_semicolon_makes_the_comma_decimal():
    table = read_table("Code;System;Cores;Time (ms)\na;x;4;1250,5\n")
    assert table.rows[0].time == pytest.approx(1.2505)
    assert table.units == {"time": "ms"}


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("Application,Machine,Procs,Elapsed [s]", {"code": 0, "system": 1, "p": 2, "time": 3}),
        ("p_cores,time_s_median,system,code", {"code": 3, "system": 2, "p": 0, "time": 1}),
        ("code,system,p,time_ms,r_peak_gflops,W", {"time": 3, "peak": 4, "work": 5}),
        ("code,system,p,t_prime,time_s_by_eq11", {"t_prime": 3}),
    ],
)
def test_headings(header, found):
    places = recognise(header.split(","))
    assert {role: places[role] for role in found} == found


def test_units_are_taken_from_headings_or_said():
    table = read_table(text_of([("a", "x", 1, 8.0, 21.6)], "code,system,p,time_min,r_peak_gflops"))
    assert table.rows[0].time == 480
    assert table.rows[0].peak == pytest.approx(21.6e9)
    said = read_table(text_of([("a", "x", 1, 8.0)]), units={"time": "us"})
    assert said.rows[0].time == pytest.approx(8e-6)
    with pytest.raises(TableError, match="unit 'fortnights'"):
        read_table(text_of([("a", "x", 1, 8.0)]), units={"time": "fortnights"})


def test_columns_can_be_named():
    text = text_of([("a", "x", 1, 8.0, 3.0)], "code,system,p,time,inner loop")
    table = read_table(text, columns={"time": "inner loop"})
    assert table.rows[0].time == 3.0
    with pytest.raises(TableError, match=r"no column 'outer', line 1, its columns are 'code'"):
        read_table(text, columns={"time": "outer"})
    with pytest.raises(TableError, match="no column meaning 'colour'"):
        read_table(text, columns={"colour": "p"})


def test_t_prime_is_taken_as_it_stands():
    table = read_table(SURROGATE)
    assert table.transformed
    assert measurements(table).data.transformed
    # A column that is plainly the time wins.
    both = read_table(text_of([("a", "x", 1, 8.0, 3.0)], "code,system,p,time,t_prime"))
    assert not both.transformed and both.rows[0].time == 8.0


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("a", "x", 0, 1), "p is '0', it must be a positive whole number"),
        (("a", "x", 2.5, 1), "p is '2.5'"),
        (("a", "x", "many", 1), "p is 'many'"),
        (("a", "x", 2, 0), "the time is '0', it must be a positive number"),
        (("a", "x", 2, "-3"), "the time is '-3'"),
        (("a", "x", 2, "inf"), "the time is 'inf'"),
        (("", "x", 2, 1), "no code is named"),
        (("a", "", 2, 1), "no system is named"),
        (("a", "x", 2), "the time is nan"),
    ],
)
def test_a_row_that_cannot_be_used_keeps_its_reason(row, reason):
    table = read_table(text_of([*ROWS, row]))
    assert reason in table.rows[-1].reason
    chosen = measurements(table)
    assert len(chosen.data) == len(ROWS)
    assert [bad.line for bad in chosen.excluded] == [6]


def test_numbers_are_numbers(monkeypatch):
    """Not what Python makes of underlines, nor what no product fits into; no row is dropped unsaid."""
    text = "code,system,p,time\na,x,1_0,1\na,x,2,1_000\na,x,1e300,1\na,x,1,1e300\na,x,1,1e-300\na,x,4,2\n"
    assert [bool(row.reason) for row in read_table(text).rows] == [True] * 5 + [False]
    with pytest.raises(TableError, match="no unit of 'foo'"):
        read_table(text, units={"foo": "s"})
    monkeypatch.setattr("desktop.data.frames.ROWS", 5)
    with pytest.raises(TableError, match="more than 5 rows"):
        read_table(text)


def test_rows_are_excluded_and_taken_back():
    table = read_table(text_of([*ROWS, ("a", "x", -1, 1)]))
    without = table.exclude([2, 6], "machine was busy")
    assert [r.reason for r in without.rows] == ["machine was busy", "", "", "", "machine was busy"]
    assert len(measurements(without).data) == 3
    back = without.exclude([2, 6], "")
    assert back.rows[0].reason == "" and "p is" in back.rows[4].reason


def test_repeats():
    table = read_table(text_of([("a", "x", 2, t) for t in (3.0, 1.0, 8.0)] + [("a", "y", 2, 5.0)]))
    assert measurements(table).data.time.tolist() == [3.0, 1.0, 8.0, 5.0]
    median = measurements(table, "median")
    assert median.data.time.tolist() == [3.0, 5.0] and median.lines == (2, 5)
    assert measurements(table, "minimum").data.time.tolist() == [1.0, 5.0]


def test_similar_names_are_offered_not_merged():
    table = read_table(text_of([("BT", "IBM SP2", 1, 1), ("bt", "IBM  SP2", 2, 1), ("BT", "ibm_sp2", 4, 1)]))
    assert set(table.similar) == {("BT", "bt"), ("IBM  SP2", "IBM SP2", "ibm_sp2")}
    assert len(measurements(table).data.systems) == 3
    merged = table.rename(("IBM  SP2", "ibm_sp2"), "IBM SP2").rename(("bt",), "BT")
    assert merged.similar == ()
    assert measurements(merged).data.systems == ("IBM SP2",)


def test_work_and_peak():
    header = "code,system,p,time,W,r_peak"
    table = read_table(text_of([("a", "x", 1, 2, 10, 5), ("b", "y", 2, 2, 20, 6)], header))
    data = measurements(table).data
    assert data.work.tolist() == [10, 20] and data.peak.tolist() == [5, 6]
    partly = measurements(read_table(text_of([("a", "x", 1, 2, 10, 5), ("b", "y", 2, 2, "", 6)], header)))
    assert partly.data.work is None
    assert partly.dropped == ("work is missing for 'b', so it is used for none",)
    with pytest.raises(TableError, match=r"a has work 10 and 30, line 3, column W"):
        measurements(read_table(text_of([("a", "x", 1, 2, 10, 5), ("a", "y", 2, 2, 30, 6)], header)))
    with pytest.raises(TableError, match=r"peak of x is -5, it must be positive, line 2, column r_peak"):
        measurements(read_table(text_of([("a", "x", 1, 2, 10, -5)], header)))


def test_values_from_tables_of_their_own(tmp_path):
    table = read_table(text_of([("BT", "Cray T3D", 1, 2), ("SP", "IBM SP2", 4, 2)]))
    peaked = with_values(table, DATA / "npb21_processor_peaks.csv", "peak")
    assert [row.peak for row in peaked.rows] == [150e6, 266e6]
    other = tmp_path / "peaks.csv"
    other.write_text("machine,r_peak_gflops\nnobody,3\n")
    with pytest.raises(TableError, match="names no system"):
        with_values(table, other, "peak")
    other.write_text("machine,r_peak_gflops\nCray T3D,fast\n")
    with pytest.raises(TableError, match="peak of Cray T3D is 'fast', which is no number, line 2"):
        with_values(table, other, "peak")
    for beyond in ("inf", "1e305"):
        other.write_text(f"machine,r_peak_gflops\nCray T3D,{beyond}\n")
        with pytest.raises(TableError, match=f"'{beyond}', which is beyond what is measured, line 2"):
            with_values(table, other, "peak")


def test_values_come_in_any_separated_table_and_fail_in_a_sentence(tmp_path):
    found = read_table("code,system,p,time\na,x,1,1\n")
    path = tmp_path / "peaks.csv"
    path.write_text("# of the makers\nsystem;r_peak\nx;0,5\n")
    assert with_values(found, path, "peak").rows[0].peak == 0.5
    for source in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(TableError, match="cannot be read"):
            with_values(found, source, "peak")
    path.write_text("system,r_peak\nx,5\ny," + "5" * 200_000 + "\n")
    with pytest.raises(TableError, match="cannot be read"):
        with_values(found, path, "peak")


def test_spreadsheet(tmp_path):
    book = Workbook()
    book.active.append(["Code", "System", "Cores", "Time [ms]"])
    for row in ROWS:
        book.active.append(list(row))
    path = tmp_path / "runs.xlsx"
    book.save(path)
    rows = read_table(path).rows
    assert [(r.code, r.system, r.p) for r in rows] == [row[:3] for row in ROWS]
    assert [r.time for r in rows] == pytest.approx([row[3] / 1000 for row in ROWS])
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(TableError, match="cannot be read as a spreadsheet"):
        read_table(path)


def test_listings_of_the_nas_benchmarks(tmp_path):
    for system, p, time in (("cluster a", 4, 20.5), ("cluster a", 16, 6.25), ("cluster b", 4, 30.0)):
        (tmp_path / system).mkdir(exist_ok=True)
        body = LISTING.format(time=time, p=p, rate=168300.0 / time, verified="SUCCESSFUL")
        (tmp_path / system / f"bt.{p}.out").write_text(body)
    bad = LISTING.format(time=1, p=2, rate=3, verified="UNSUCCESSFUL").replace("BT", "LU")
    (tmp_path / "cluster b" / "lu.out").write_text(bad)
    (tmp_path / "notes.txt").write_text("nothing")
    table = read_table(tmp_path)
    assert [(r.code, r.system, r.p, r.time) for r in table.rows if not r.reason] == [
        ("BT.A", "cluster a", 16, 6.25),
        ("BT.A", "cluster a", 4, 20.5),
        ("BT.A", "cluster b", 4, 30.0),
    ]
    assert "verification was unsuccessful" in table.rows[-1].reason
    assert measurements(table).data.work.tolist() == pytest.approx([168300e6])
    single = read_table(tmp_path / "cluster a" / "bt.4.out")
    assert (single.rows[0].system, single.rows[0].source) == ("cluster a", "bt.4.out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match="no result listing"):
        read_table(tmp_path / "empty")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "holds no table"),
        ("code,system,p\na,x,1", "no column for the time, line 1"),
        ("system,p,time\nx,1,2", "no column for code"),
        ("code,system,p,time", "no rows below its heading"),
        (
            "code,system,p,time\na,x,0,1",
            r"no usable row: p is '0', it must be a positive whole number, line 2",
        ),
    ],
)
def test_tables_that_cannot_be_used(text, sentence):
    with pytest.raises(TableError, match=sentence):
        read_table(text)


@settings(deadline=None, max_examples=150)
@given(
    some.binary(max_size=300) | some.text(max_size=300).map(lambda t: ("code,system,p,time\n" + t).encode())
)
def test_any_bytes_end_in_a_table_or_one_sentence(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "table"
    path.write_bytes(data)
    try:
        table = read_table(path)
        measurements(table)
    except TableError as error:
        assert str(error) and "\n" not in str(error)
    else:
        assert all(row.reason or (row.time > 0 and math.isfinite(row.time)) for row in table.rows)


def listing(time: float, rate: float, processes: int) -> str:
    return (
        f" LU Benchmark Completed.\n Class           =   A\n Time in seconds =  {time}\n"
        f" Total processes =  {processes}\n Mop/s total     =  {rate}\n Verification    =  SUCCESSFUL\n"
    )


def test_a_folder_with_one_inconsistent_listing_is_read_and_the_run_is_named(tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    for k, (time, processes) in enumerate(((100.0, 1), (52.0, 2), (27.0, 4), (15.0, 8))):
        rate = 119280.0 / time * (1.3 if processes == 4 else 1.0)
        (folder / f"run{k}.out").write_text(listing(time, rate, processes))
    table = read_table(folder)
    chosen = measurements(table)
    assert len(chosen.data) == 3 and chosen.data.work == pytest.approx([1.1928e11])
    (odd,) = chosen.excluded
    assert odd.p == 4 and odd.reason.startswith("run2.out: its Mop/s total times its time are 1.551e+11")
    # Of two that differ nobody knows which is right: their times stay.
    for k in (0, 1):
        (folder / f"run{k}.out").unlink()
    both = measurements(read_table(folder))
    assert len(both.data) == 2 and both.data.work is None
    assert "not known" in read_table(folder).rows[0].note


def test_a_problem_size_is_read_and_asked_for_in_every_row(tmp_path):
    text = "code,system,p,time,problem size\na,x,1,8,1000\na,x,2,5,2000\na,x,4,3,4000\n"
    chosen = measurements(read_table(text))
    assert chosen.data.size == pytest.approx([1000, 2000, 4000])
    gap = measurements(read_table(text.replace("5,2000", "5,")))
    assert gap.data.size is None and "not known in line 3" in gap.dropped[0]


def test_a_table_of_t_prime_tells_seconds_where_work_and_peak_are_known():
    text = "code,system,p,t',w,r_peak\n" + "".join(f"a,x,{p},{2 + p},1e9,1e8\n" for p in (1, 2, 4, 8))
    fit = fit_individual(measurements(read_table(text)).data, ("1/p", "1"))
    assert fit.in_seconds and fit.data.transformed
    assert fit.seconds(0, 0, np.array([4.0])) == pytest.approx(6 * 1e9 / (4 * 1e8))


# --- the command ---


def run(capsys, *words):
    code = cli.run(["model", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def test_command_says_how_names_differ_that_look_alike(capsys, tmp_path):
    rows = [f"{code},x,{p},{100 / p!r}" for code in ("NAS-BT", "NAS_BT") for p in (1, 2, 4)]
    path = tmp_path / "alike.csv"
    path.write_text("\n".join(["code,system,p,time", *rows]))
    _, out, _ = run(capsys, path, "--functions", "1/p")
    assert "note: 'NAS-BT', 'NAS_BT' differ by case, blanks, - or _ only" in out


def test_command_says_what_the_contract_names(capsys):
    code, out, _ = run(capsys, SURROGATE, "--functions", "1/p,1/sqrt(p)", "--response", "t'", "--json")
    found = json.loads(out)
    assert code == 0
    wanted = (
        "functions response kind n npar df sse sst r2 r2_centred s aicc mean_relative_error "
        "max_relative_error parameters status starts_agreeing condition f_test warnings excluded suspect_rows"
    )
    assert set(wanted.split()) <= set(found)
    assert (found["kind"], found["n"], found["npar"], found["df"]) == ("joint", 116, 14, 102)
    assert found["sse"] == pytest.approx(130.2755, abs=1e-4)
    assert found["f_test"]["f"] == pytest.approx(6.94, abs=0.005)
    paragon = [p for p in found["parameters"] if p["system"] == "Intel Paragon"]
    assert [p["value"] for p in paragon] == pytest.approx([0.3706, 1.2206], abs=1e-4)
    assert {p["kind"] for p in found["parameters"]} == {"speed", "work"}


def test_command_ranks_pairs(capsys):
    code, out, _ = run(capsys, SURROGATE, "--all-pairs", "--individual", "--json")
    pairs = json.loads(out)["pairs"]
    assert code == 0
    assert [p["functions"] for p in pairs[:2]] == [["1/p", "1"], ["1/p", "log(p)"]]
    assert [p["sse"] for p in pairs] == sorted(p["sse"] for p in pairs)


def test_command_as_text_and_csv(capsys):
    code, out, _ = run(capsys, SURROGATE, "--individual", "--functions", "1/p, p^0.7")
    assert code == 0 and "every cell by itself" in out and "p^0.7" in out
    code, out, _ = run(capsys, SURROGATE, "--csv")
    assert out.splitlines()[0] == "kind,function,system,code,value,se"
    code, out, _ = run(capsys, SURROGATE, "--normal-forms")
    assert code == 0 and "by AICc: " in out and ". Next: 1/p + 1, log t': " in out
    assert "\nBT    IBM SP2 " in out and "p^(-" in out
    code, out, _ = run(capsys, SURROGATE, "--all-pairs", "--csv")
    assert out.splitlines()[1].startswith("1/p 1/sqrt(p),116,14,130.27")


def test_command_refuses_in_one_sentence(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text_of([("a", "x", p, 8.0 / p) for p in (1, 2, 4, 8)]))
    code, _, err = run(capsys, path, "--joint")
    assert code == 1 and "only one system" in err and err.count("\n") == 1
    code, out, _ = run(capsys, path, "--functions", "1/p", "--json")  # as the window does, cell by cell
    assert code == 0 and json.loads(out)["parameters"][0]["kind"] == "delta"
    equal = tmp_path / "equal.csv"
    equal.write_text(text_of([(c, "x", p, t) for c in "ab" for p, t in ((1, 10.0), (2, 5.0), (4, 3.0))]))
    code, _, err = run(capsys, equal)
    assert (code, err) == (0, "")  # cells without a variance are no warning of numpy's
    code, _, err = run(capsys, path, "--functions", "__import__('os').system('x')")
    assert code == 1 and "not understood" in err
    path.write_text(path.read_text() + "\na,x,0,1\n")
    code, _, err = run(capsys, path, "--individual", "--functions", "1/p")
    assert code == 3 and "line 6 is excluded: p is '0'" in err


@pytest.mark.skipif(not SHARED.exists(), reason="the measured times are not part of the project (GPL-3.0)")
def test_real_table_from_the_command(capsys):
    code, out, _ = run(
        capsys, SHARED / "ukhpc_scaling.csv", "--systems", SHARED / "ukhpc_systems.csv",
        "--functions", "1/p,1", "--response", "t'", "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["sse"] == pytest.approx(5.0028, abs=1e-4)


def test_remarks_may_hold_more_cells_than_rows(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("# a, b, c, d, e, f, g\ncode;system;p;time\n# x;y;z;u;v;w\nLU;a;2;1,5\n")
    (row,) = read_table(path).rows
    assert (row.line, row.code, row.p, row.time) == (4, "LU", 2.0, 1.5)


def test_a_quoted_cell_that_does_not_end_is_told_with_its_line():
    with pytest.raises(TableError, match=r"quotation mark.*line 3"):
        read_table('code,system,p,time\nLU,a,1,2\n"LU,a,2,1\nLU,a,4,1\n')
    (row,) = read_table('code,system,p,time\n"L\nU",a,1,2\n').rows
    assert row.line == 3 and row.code == "L\nU"


def test_a_line_of_many_cells_in_a_long_table_takes_no_memory():
    """A hundred thousand cells in one line times as many lines would be 80 GB."""
    text = "code,system,p,time\n" + "," * 100_000 + "\n" + "a,b,1,2\n" * 100_000
    with pytest.raises(TableError, match="cells are read"):
        read_table(text)
