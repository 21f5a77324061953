"""What a trace's page says of phases, read off the screen, and whether two of its sentences contradict.

Everything is taken from what stands there (labels, tables, texts, what is painted), as a user reads it: a
number that is said twice has to be the same within the digits that are said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView, QLabel, QTextBrowser, QWidget

from desktop.ui.tables import FrameView
from desktop.ui.trace_page import TracePage

PREFIX = {"": 1.0, "n": 1e-9, "µ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "min": 60.0}
_SPACES = str.maketrans({" ": "", "\u202f": "", "\u2009": "", "\xa0": "", "−": "-"})
_VALUE = r"([-−]?\d[\d\u202f\u2009\xa0]*(?:\.\d+)?(?:e[-+−]?\d+)?)"
_TIME = _VALUE + r" (n|µ|m|)s\b"
_WEIGHT = {"constant": math.sqrt(2), "linear": math.sqrt(4 / 3)}


class Said:
    """A number as it stands there: its value, and half of its last digit."""

    def __init__(self, text: str, scale: float = 1.0, digits: int = 15) -> None:
        plain = text.translate(_SPACES)
        mantissa, _, power = plain.partition("e")
        self.value = float(plain) * scale
        last = -len(mantissa.partition(".")[2]) + int(power or 0)
        size = math.floor(math.log10(abs(float(plain)))) if float(plain) else 0
        self.half = 0.501 * scale * 10.0 ** max(last, size - digits + 1)

    def agrees(self, other: Said | float, more: float = 0.0) -> bool:
        value, half = (other.value, other.half) if isinstance(other, Said) else (other, 0.0)
        return abs(self.value - value) <= self.half + half + more + 1e-9 * abs(value)


def times(text: str, digits: int = 15) -> list[Said]:
    """All times in a text, seconds; `digits`: as many are told, though zeros at the end are left out."""
    return [Said(v, PREFIX[p], digits) for v, p in re.findall(_TIME, text)]


def cells(view: QAbstractItemView) -> list[dict[str, tuple[str, str]]]:
    """Rows of a table: by the title of the column, what stands there, and the unit."""
    model, found = view.model(), []
    heads = [
        str(model.headerData(k, Qt.Orientation.Horizontal)).partition("\n")
        for k in range(model.columnCount())
    ]
    for row in range(model.rowCount()):
        texts = (str(model.data(model.index(row, k)) or "") for k in range(model.columnCount()))
        found.append({title: (text, unit) for (title, _, unit), text in zip(heads, texts, strict=True)})
    return found


def scale_of(unit: str) -> float:
    """Of a unit of time, alone or as a factor: ms, proc·ms."""
    for part in unit.split("·"):
        if found := re.fullmatch(r"(n|µ|m|)s", part):
            return PREFIX[found[1]]
    return PREFIX["min"] if unit == "min" else 1.0


class Screen:
    """A page as it is seen: `show` brings a panel to the front and settles."""

    def __init__(self, page: TracePage, show: Callable[[], object]) -> None:
        self.page, self._show = page, show
        self.wrong: list[str] = []

    def shown(self, panel: str) -> QWidget:
        self.page.show_panel(panel)
        self._show()
        return self.page.panel(panel)

    def ask(self, true: bool, *words: object) -> None:
        if not true:
            self.wrong.append(" ".join(map(str, words)))


def disagreements(page: TracePage, settle: Callable[[], object]) -> list[str]:
    """What two sentences on a page say that cannot both be true."""
    screen = Screen(page, settle)
    facts = figures_of(screen.shown("phases"))
    table = cells(screen.shown("table").findChild(FrameView))
    _numbers(screen, facts, table)
    _errors(screen, facts, table)
    if table and "Efficiency" in table[0]:
        _levels(screen, table)
    _suggestion(screen, facts, table)
    _plots(screen, facts, table)
    _causes(screen, table)
    _changes(screen, table)
    _iterations(screen)
    return screen.wrong


def figures_of(panel: QWidget) -> dict[str, str]:
    """The figures of the panel Phases, whole."""
    found = {name: figure.full_text for name in FACTS for figure in [panel.findChild(QLabel, name)]}
    found["n"] = str(panel.n.value())  # type: ignore[attr-defined]
    found["model"] = str(panel.model.currentData())  # type: ignore[attr-defined]
    found["button"] = panel.findChild(QWidget, "suggested").text()  # type: ignore[union-attr]
    found["curve"] = panel.epsilon_plot.accessibleDescription()  # type: ignore[attr-defined]
    return found


FACTS = tuple(
    f"fact_{name}" for name in ("epsilon", "worst", "sse", "equal", "certificate", "suggestion", "second")
)


def _said(row: dict[str, tuple[str, str]], title: str) -> Said:
    text, unit = row[title]
    return Said(text, scale_of(unit))


def _numbers(screen: Screen, facts: dict[str, str], table: list[dict[str, tuple[str, str]]]) -> None:
    """How many phases there are, when, for how long."""
    n = len(table)
    if facts["model"] != "budget":
        fewer = n < int(facts["n"]) and re.search("suffice|reproduce", facts["fact_equal"])
        said = facts["n"], "table", n, facts["fact_equal"]
        screen.ask(int(facts["n"]) == n or bool(fewer), "spin box", *said)
    screen.ask([row["#"][0] for row in table] == [str(k + 1) for k in range(n)], "numbers of phases")
    worst_phase = re.fullmatch(r"phase (\d+), r\.m\.s\. .*", facts["fact_worst"])
    screen.ask(worst_phase is not None and int(worst_phase[1]) <= n, facts["fact_worst"], "of", n)
    for a, b in pairwise(table):
        screen.ask(a["End"] == b["Start"], "phases do not meet", a["End"], b["Start"])
    for row in table:
        start, end, length = (_said(row, title) for title in ("Start", "End", "Duration"))
        off = abs(end.value - start.value - length.value)
        screen.ask(off <= start.half + end.half + length.half, "duration", row)
        low, high = row["Earliest end"][0], row["Latest end"][0]
        if "–" not in (low, high):
            low_s, high_s = _said(row, "Earliest end"), _said(row, "Latest end")
            inside = low_s.value - low_s.half <= end.value + end.half
            inside &= end.value - end.half <= high_s.value + high_s.half
            screen.ask(inside, "end outside of its range", row)
            room = _said(row, "Range")
            near = abs(high_s.value - low_s.value - room.value) <= high_s.half + low_s.half + room.half
            screen.ask(near, "length of the range", row)
        else:
            screen.ask({low, high, row["Range"][0]} == {"–"}, "half a range", row)


def _errors(screen: Screen, facts: dict[str, str], table: list[dict[str, tuple[str, str]]]) -> None:
    """Errors of phases, of all of them, and what is the best possible."""
    mixed = facts["model"] == "mixed"
    errors = [Said(row["Error"][0]) for row in table]
    rms = [Said(row["R.m.s."][0]) for row in table]
    lengths = [_said(row, "Duration") for row in table]
    for e, r, d, row in zip(errors, rms, lengths, table, strict=True):
        width = math.sqrt(max(d.value, 0.0))
        slack = r.half * width + e.half + r.value * width * d.half / max(d.value, 1e-300)
        screen.ask(abs(e.value - r.value * width) <= slack, "error and r.m.s.", row)
    # the phases' weights follow from their degrees
    kinds = [("constant", "linear", "")[min(int(row["Degree"][0]), 2)] for row in table]
    weights = [_WEIGHT.get(kind, 1.0) if mixed else 1.0 for kind in kinds]
    weighted = [w * e.value for w, e in zip(weights, errors, strict=True)]
    slack = [1.5 * w * e.half for w, e in zip(weights, errors, strict=True)]
    own = any(int(row["Degree"][0]) > 2 for row in table)
    epsilon = Said(re.match(_VALUE, facts["fact_epsilon"])[1])  # type: ignore[index]
    if not own:
        off = abs(max(weighted) - epsilon.value)
        screen.ask(off <= epsilon.half + max(slack), "ε", facts["fact_epsilon"], weighted)
        said = re.match(_VALUE + " %", facts["fact_equal"])
        if said is not None and max(weighted) > 0:
            ratio, near = 100 * min(weighted) / max(weighted), 100 * max(slack) * 2 / max(weighted)
            screen.ask(Said(said[1]).agrees(ratio, near), "equidistribution", said[0], ratio)
        worst = int(re.match(r"phase (\d+)", facts["fact_worst"])[1]) - 1  # type: ignore[index]
        screen.ask(
            weighted[worst] + slack[worst] >= max(weighted) - max(slack), "largest error", worst + 1, weighted
        )
        stated = Said(re.search(r"r\.m\.s\. " + _VALUE, facts["fact_worst"])[1])  # type: ignore[index]
        screen.ask(stated.agrees(rms[worst]), "its r.m.s.", facts["fact_worst"], table[worst]["R.m.s."])
    sse = Said(re.search(r"\(" + _VALUE, facts["fact_sse"])[1])  # type: ignore[index]
    total = sum(e.value**2 for e in errors)
    loose = sum(2 * e.value * e.half for e in errors)
    screen.ask(sse.agrees(total, loose), "squared error", facts["fact_sse"], total)
    whole = Said(re.match(_VALUE, facts["fact_sse"])[1])  # type: ignore[index]
    span = sum(d.value for d in lengths)
    near = whole.agrees(
        math.sqrt(total / span), math.sqrt(total / span) * (loose / max(total, 1e-300) + 1e-3)
    )
    screen.ask(near, "r.m.s. of the run", facts["fact_sse"], math.sqrt(total / span))
    bounds = [Said(v) for v in re.findall(_VALUE, facts["fact_certificate"].partition(",")[0])]
    if bounds:
        screen.ask(bounds[0].value <= bounds[-1].value, "bounds", facts["fact_certificate"])
        screen.ask(bounds[0].value <= epsilon.value + epsilon.half, "ε below what is possible", facts)
    fall = re.match(rf"Error falls from {_VALUE} at n = (\d+) to {_VALUE} at n = (\d+)", facts["curve"])
    if fall is not None:
        screen.ask(Said(fall[3]).value <= Said(fall[1]).value, facts["curve"])
        n = int(facts["n"])
        if n == int(fall[2]) and "as suggested" not in facts["fact_equal"]:
            screen.ask(
                Said(fall[1]).agrees(epsilon), "error of one phase", facts["curve"], facts["fact_epsilon"]
            )


def _levels(screen: Screen, table: list[dict[str, tuple[str, str]]]) -> None:
    """Processors, shares of them, work, in the table, the line below, the page Trace, and the statistics."""
    texts = [one.text() for one in screen.page.frame.findChildren(QLabel) if one.isVisible()]
    line = next((m for t in texts if (m := re.fullmatch(_HEADLINE, t))), None)
    screen.ask(line is not None, "no headline", texts)
    work = [_said(row, "Work") for row in table]
    span = _said(table[-1], "End").value - _said(table[0], "Start").value
    for row, done in zip(table, work, strict=True):
        mean, length = Said(row["Mean"][0]), _said(row, "Duration")
        loose = done.half + mean.half * length.value + mean.value * length.half
        screen.ask(abs(done.value - mean.value * length.value) <= loose, "work", row)
    if line is None:
        return
    of, share = Said(line[4]), Said(line[5])
    total = sum(one.value for one in work)
    loose = sum(one.half for one in work)
    screen.ask(
        Said(line[3]).agrees(total / span, loose / span + 1e-3 * total / span), "mean", line[0], total / span
    )
    screen.ask(share.agrees(100 * Said(line[3]).value / of.value, 0.1), "share", line[0])
    for row in table:
        mean, part = Said(row["Mean"][0]), Said(row["Efficiency"][0])
        screen.ask(part.agrees(100 * mean.value / of.value, 100 * mean.half / of.value), "efficiency", row)
        if named := re.match(r"computing (\d+) %", row["Name"][0]):
            screen.ask(abs(float(named[1]) - part.value) < 1, "computing in the name", row)
        for said in re.findall(r"(\d+) %", row["Name"][0]):
            screen.ask(float(said) <= 100, "share in the name", row)
    tick = tick_of(screen.page)
    for row in cells(screen.shown("statistics").findChild(FrameView, "statistics")):
        columns = [row[f"Phase {k + 1}"][0] for k in range(len(table)) if f"Phase {k + 1}" in row]
        screen.ask(len(columns) in (0, len(table)), "phases in the statistics", row)
        what = row["Quantity"][0]
        titles = {"Duration": "Duration", "Mean computing": "Mean", "Parallel efficiency": "Efficiency"}
        for text, phase in zip(columns, table, strict=False):
            if what in titles and (found := re.match(_VALUE + r"(?: (\S+))?", text)):
                # Statistics count in whole ticks of the trace's clock.
                length, most = _said(phase, "Duration").value, {"Mean": of.value, "Efficiency": 100.0}
                loose = tick if what == "Duration" else most[titles[what]] * tick / length
                said = Said(found[1], scale_of(found[2] or ""))
                screen.ask(said.agrees(_said(phase, titles[what]), loose), what, text, phase)
        if what == "Critical path":
            on = re.match(_TIME, row["Whole run"][0])
            screen.ask(on is None or Said(on[1], PREFIX[on[2]]).value <= span * 1.01, "critical path", row)


def tick_of(page: TracePage) -> float:
    """Of the trace's clock, seconds."""
    run = page.workbench.snapshot.run
    assert run is not None
    return run.utilization.unit


_HEADLINE = rf"{_TIME}, on average {_VALUE} of {_VALUE} processors computing \({_VALUE} %\).*"


def _suggestion(screen: Screen, facts: dict[str, str], table: list[dict[str, tuple[str, str]]]) -> None:
    """Which n is suggested, why, and what comes next."""
    suggested = re.fullmatch(r"n = (\d+): (.*)", facts["fact_suggestion"], re.DOTALL)
    screen.ask(suggested is not None, "no suggestion", facts["fact_suggestion"])
    if suggested is None:
        return
    n, why = int(suggested[1]), suggested[2]
    screen.ask(facts["button"] == f"Use n = {n}", facts["button"], n)
    shown = "as suggested" in facts["fact_equal"]
    if shown:
        screen.ask(n == int(facts["n"]), "as suggested, but", facts["n"], n)
    budget = facts["model"] == "budget"
    ends = [_said(row, "End") for row in table[:-1]]

    def there(t: Said) -> bool:
        return any(t.agrees(end) for end in ends)

    counts = re.search(r"(\d+) of (\d+) breakpoints? at (?:a )?structure events?", why)
    alone = re.search(r"(\d+) where the curve alone changes, in up to (\d+) of (\d+) fits", why)
    if counts:
        at, of = int(counts[1]), int(counts[2])
        screen.ask(budget or of == n - 1, why, n)
        screen.ask((int(alone[1]) if alone else 0) == of - at, "breakpoints do not add up", why)
    if alone:
        screen.ask(int(alone[2]) <= int(alone[3]), why)
    if why.startswith("one phase"):
        screen.ask(n == 1 or budget, why, n)
    if "its breakpoint is" in why:
        screen.ask(n == 2 or budget, why, n)
    for on, among in re.findall(r"on (\d+) of (\d+) processors", why + facts["fact_second"]):
        screen.ask(int(on) <= int(among), why)
    misfits = [float(v) for v in re.findall(r"misfit is ([-\d.]+) higher", why)]
    screen.ask(all(v >= 0 for v in misfits), "the misfit falls without it", why)
    if shown:
        said = times(_bare(why), 4)
        screen.ask(all(there(t) for t in said), "breakpoints of the reason", why, [e.value for e in ends])
    second = re.fullmatch(r"n = (\d+): (.*)", facts["fact_second"], re.DOTALL)
    if second is None:
        return
    screen.ask(int(second[1]) != n, "next best is the same", facts["fact_second"])
    worse = re.match(r"misfit ([-\d.]+) higher", second[2])
    if worse:
        screen.ask(float(worse[1]) >= 0, "next best is better", second[2])
        # without the least of them is one of all other sets
        screen.ask(not misfits or float(worse[1]) <= misfits[-1] + 0.06, "next best", second[2], why)
        bare = _bare(second[2])
        less = (re.search(r"(?<!\w)without (.*?)(?: but with |$)", bare) or ["", ""])[1]
        more = (re.search(r"(?<!\w)with (.*)$", bare) or ["", ""])[1]
        change = [_count(part) for part in (more, less)]
        if not budget:
            screen.ask(int(second[1]) == n + change[0] - change[1], "its number", second[0], n)
        if shown:
            screen.ask(all(there(t) for t in times(less, 4)), "without what is not there", second[0])
            screen.ask(not any(there(t) for t in times(more, 4)), "with what is there", second[0])


def _bare(text: str) -> str:
    """A text without what stands in brackets, in which regions may have any name."""
    depth, found = 0, []
    for sign in text:
        depth += (sign == "(") - (sign == ")" and depth > 0)
        if not depth and sign != ")":
            found.append(sign)
    return "".join(found)


def _count(text: str) -> int:
    """Of "433 ms (...) and 2 more"."""
    more = re.search(r"and (\d+) more", text)
    return 0 if not text else 1 + (int(more[1]) if more else 0)


def _plots(screen: Screen, facts: dict[str, str], table: list[dict[str, tuple[str, str]]]) -> None:
    """The plot's strip, legend, lines, and what is said under the pointer."""
    n, view = len(table), screen.page.curve_view
    text = view.accessibleDescription()
    fitted = re.search(r"Fitted with (\d+) phases?|Fitted with one", text)
    screen.ask(fitted is not None and int(fitted[1] or 1) == n, text, n)
    plot = view.description()
    assert plot is not None
    spans = [tuple(span) for strip in plot.strips for span in strip.spans.tolist()]
    for (a, b), row in zip(spans, table, strict=False):
        screen.ask(_said(row, "Start").agrees(a) and _said(row, "End").agrees(b), "strip", a, b, row)
    legend = [entry.words for entry in plot.legend if entry.shown]
    drawn = next((m for words in legend if (m := re.match(r"Fit: (?:(\d+) phases?|one phase)", words))), None)
    screen.ask(drawn is not None and int(drawn[1] or 1) == n, legend, n)
    ranges = any(Said(row["Range"][0]).value > 0 for row in table if row["Range"][0] != "–")
    screen.ask(
        n == 1 or ("Breakpoint and its range" in legend) == ranges, "range in the legend", legend, ranges
    )
    said = [lane.note for lane in plot.lanes if "ε" in lane.note]
    for note in said:
        stated = re.search(rf"ε = {_VALUE}", note)
        if stated:
            screen.ask(Said(stated[1]).agrees(Said(re.match(_VALUE, facts["fact_epsilon"])[1])), note)  # type: ignore[index]
    for k, row in enumerate(table):
        middle = (_said(row, "Start").value + _said(row, "End").value) / 2
        read = view.reading(middle)
        if read is not None:
            screen.ask(read.phase == k, "phase under the pointer", k, read)
            fit = view._over.fit
            assert fit is not None
            screen.ask(abs(read.fit - float(fit.value([middle])[0])) <= 1e-6 * max(1.0, abs(read.fit)), read)


def _causes(screen: Screen, table: list[dict[str, tuple[str, str]]]) -> None:
    """Why time is lost: shares of the run, of each phase, and how many there are."""
    screen.shown("phases")
    text = screen.page.panel("phases").why.toPlainText()
    span = _said(table[-1], "End").value - _said(table[0], "Start").value
    paragraphs = text.split("\n")
    phases = [(int(m[1]), p) for p in paragraphs if (m := re.match(r"Phase (\d+)\b", p))]
    screen.ask([k for k, _ in phases] in ([], list(range(1, len(table) + 1))), "phases in the reasons", text)
    for k, paragraph in phases:
        part = re.search(r"(\d+(?:\.\d+)?) % of the run", paragraph.partition(":")[0])
        if part:
            true = 100 * _said(table[k - 1], "Duration").value / span
            screen.ask(
                Said(part[1]).agrees(true, 0.01 + 100 * tick_of(screen.page) / span),
                "share of the run",
                paragraph[:60],
                true,
            )
    level = re.search(rf"On average {_VALUE} of {_VALUE} processors compute; {_VALUE} % of their time", text)
    if level and "Efficiency" in table[0]:
        mean, of, lost = (Said(level[k]) for k in (1, 2, 3))
        screen.ask(
            lost.agrees(100 * (1 - mean.value / of.value), 100 * mean.half / of.value), "lost", level[0]
        )
    starts: dict[str, set[str]] = {}
    for who, after in re.findall(r"(\w[\w ,–]*) begins? ([\d.]+ \w+) after the first one", text):
        starts.setdefault(who.strip(), set()).add(after)
    for who, afters in starts.items():
        screen.ask(len(afters) == 1, who, "begins at", afters)


def _changes(screen: Screen, table: list[dict[str, tuple[str, str]]]) -> None:
    text = screen.shown("changes").findChild(QTextBrowser).toPlainText()
    heads = re.findall(rf"Breakpoint (\d+) at {_TIME}, phase (\d+) to (\d+)", text)
    screen.ask(len(heads) in (0, len(table) - 1), "breakpoints that are told of", text[:80], len(table))
    for k, value, prefix, a, b in heads:
        screen.ask(int(a) == int(k) and int(b) == int(k) + 1, heads)
        screen.ask(Said(value, PREFIX[prefix], 6).agrees(_said(table[int(k) - 1], "End")), "break", k, value)


def _iterations(screen: Screen) -> None:
    """How many iterations of which length, and the rows that stand below."""
    panel = screen.shown("iterations")
    texts = [one.text() for one in panel.findChildren(QLabel) if one.isVisible()]
    found = next((m for t in texts if (m := re.match(rf"(\d[\d\u202f]*) iterations of {_TIME}", t))), None)
    none = any("No iterations were found" in t for t in texts)
    screen.ask(not (found and none), texts)
    if found is None:
        return
    count = int(found[1].translate(_SPACES))
    sentence = next(t for t in texts if t.startswith(found[0]))
    if odd := re.search(r"; (\d+) (?:is|are) odd, most of all number (\d+)", sentence):
        screen.ask(int(odd[1]) <= count and int(odd[2]) <= count, sentence)
        rows = cells(panel.findChild(FrameView, "odd_iterations"))
        screen.ask(
            len(rows) == min(int(odd[1]), 10) or len(rows) == int(odd[1]), "odd ones", len(rows), sentence
        )
    for row in cells(screen.page.panel("table").findChild(FrameView)):
        if named := re.search(r"iterations (\d+)-(\d+)", row["Name"][0]):
            screen.ask(
                int(named[1]) <= int(named[2]) <= count, "iterations in the name", row["Name"], sentence
            )
