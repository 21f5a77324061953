"""What stands on slides: all of it, readable, inside of its place, and in the order in which it is told."""

from __future__ import annotations

import io
import itertools
import re
import textwrap
import zipfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pptx import Presentation
from pptx.enum.text import PP_ALIGN
from pptx.util import Mm

from desktop.data import slides
from desktop.data.material import Material
from desktop.data.report import (
    Block,
    Paragraph,
    Picture,
    Points,
    Report,
    ReportCommand,
    ReportTable,
    Section,
    Slide,
)
from desktop.data.slides import OWN, Theme, to_pptx

WHEN = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a4944415478da63f80f00010101"
    "0018dd8db00000000049454e44ae426082"
)
FEW = ReportTable("Few", ("Name", "Value", "Share"), (("x", "1", "2"), ("y", "2", ""), ("z", "3", "4")))
MM_PER_POINT = 25.4 / 72
words = st.lists(st.integers(1, 12).map(lambda n: "m" * n), min_size=1, max_size=40).map(" ".join)


def report(*sections: Section, story: Sequence[Slide] = (), appendix: bool = True, **more: Any) -> Report:
    known = {"finding": "It waits.", "facts": ({"source": {"name": "a.otf2"}},), **more}
    facts = known.pop("facts")
    return Report(
        "A run", "Phasewright", WHEN, sections, facts, story=tuple(story), appendix=appendix, **known
    )


def deck(made: Report, theme: Theme = "light") -> Any:
    return Presentation(io.BytesIO(to_pptx(made, lambda picture: PIXEL, theme=theme)))


def blocks(*held: Block, title: str = "More") -> Any:
    """The slides after the title and the appendix's heading."""
    return list(deck(report(Section(title, held))).slides)[2:]


def title(slide: Any) -> str:
    return str(slide.shapes.title.text_frame.text)


def body(slide: Any) -> Any:
    """The place for text beside the title."""
    return next(
        shape
        for shape in slide.placeholders
        if shape.placeholder_format.type.name in ("BODY", "OBJECT", "SUBTITLE")
    ).text_frame


def tables(slide: Any) -> list[Any]:
    return [shape for shape in slide.shapes if shape.has_table]


# ---- how text is measured


@settings(deadline=None)
@given(words, st.floats(20, 300), st.sampled_from([10.0, 18.0, 26.0]))
def test_lines_are_counted_as_words_are_wrapped(text: str, room: float, size: float) -> None:
    letters = int(room / (size * MM_PER_POINT * 0.53))
    if letters >= 12:
        assert slides._rows(text, size, room) == len(textwrap.wrap(text, letters))


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(1, 200))
def test_a_word_longer_than_a_line_takes_several(letters: int, long: int) -> None:
    room = (letters + 0.5) * 10.0 * MM_PER_POINT * 0.53
    alone = slides._rows("x" * long, 10.0, room)
    assert alone == -(-long // letters)
    assert slides._rows("x " + "x" * long, 10.0, room) in (alone, alone + 1)
    assert slides._rows(f"{'x' * long} {'x' * letters}", 10.0, room) == alone + 1, "what follows needs a line"


@settings(deadline=None)
@given(st.lists(st.floats(1, 60), min_size=1, max_size=60), st.floats(61, 200))
def test_rows_are_shared_out_evenly_on_as_few_slides_as_hold_them(high: list[float], room: float) -> None:
    spans = slides._shared_out(high, room)
    room += 1e-6
    rows = len(high) - 1
    assert [a for a, _ in spans] == [0, *(b for _, b in spans[:-1])] and spans[-1][1] == rows
    counts = [b - a for a, b in spans]
    fits = [high[0] + sum(high[1 + a : 1 + b]) <= room for a, b in spans]
    if all(high[0] + one <= room for one in high[1:]):
        assert all(fits) and max(counts) - min(counts) <= 1
    else:
        assert counts == [1] * rows, "what fits nowhere stands alone"
    if len(spans) > 1 and all(fits):
        for pages in range(1, len(spans)):
            cuts = [round(k * rows / pages) for k in range(pages + 1)]
            assert any(high[0] + sum(high[1 + a : 1 + b]) > room for a, b in itertools.pairwise(cuts))


def test_what_fills_a_slide_to_its_edge_stands_on_one() -> None:
    assert slides._shared_out([1.0, 2.0, 3.0], 6.0) == [(0, 2)]
    assert slides._shared_out([1.0, 2.0, 3.0], 5.9) == [(0, 1), (1, 2)]
    assert slides._shared_out([1.0], 6.0) == [(0, 0)], "headings alone"


lines = st.integers(1, 6).flatmap(
    lambda columns: st.lists(st.lists(words, min_size=columns, max_size=columns), min_size=2, max_size=30)
)


@settings(deadline=None)
@given(lines, st.floats(60, 310), st.sampled_from([10.0, 12.0, 16.0]))
@example([["m"] * 4, ["m", "mmmmmmmm", "mmmmmm mm", "mmmmmmmmmmmm"]], 60.0, 12.0)  # a word fills its lines
def test_cells_fit_into_their_columns_and_rows(held: list[list[str]], across: float, size: float) -> None:
    wide, high, broken = slides._laid_out(held, size, across)
    assert sum(wide) <= across * (1 + 1e-9)
    letter, edge = size * MM_PER_POINT * 0.53, 2 * 1.8
    longest = [max(len(word) for line in held for word in line[c].split()) for c in range(len(wide))]
    if not broken:
        assert all(n * letter * 1.15 + edge <= w for n, w in zip(longest, wide, strict=True))
    else:
        assert sum(n * letter * 1.15 + edge + 0.5 for n in longest) > across, "it had to"
    for r, line in enumerate(held):
        for cell, w in zip(line, wide, strict=True):
            bold = 1.1 if r == 0 else 1.0
            text = slides._rows(cell, size * bold, w - edge - 0.5)
            assert text * size * MM_PER_POINT * 1.2 + 2 * 0.8 <= high[r], "text and the space around it"
    tallest = max(
        slides._rows(cell, size * 1.1, w - edge - 0.5)
        for line in held
        for cell, w in zip(line, wide, strict=True)
    )
    assert max(high) <= tallest * size * MM_PER_POINT * 1.2 + 2.5, "no more than that"


def test_few_short_columns_are_not_drawn_out_over_the_slide() -> None:
    narrow, _, _ = slides._laid_out([("a", "b"), ("1", "2")], 12.0, 300.0)
    middle, _, _ = slides._laid_out([("a", "b"), ("1", "2")], 12.0, 1.2 * sum(narrow) / 1.6)
    assert sum(narrow) < 40 and sum(middle) == pytest.approx(1.2 * sum(narrow) / 1.6), "what there is is used"


@settings(max_examples=40, deadline=None)
@example(6, 6, 61.0)  # stretched, the heights were rounded up: it was parted over two slides
@given(st.integers(1, 90), st.integers(1, 8), st.floats(60, 140))
def test_a_table_is_as_large_as_does_not_take_more_slides(rows: int, columns: int, room: float) -> None:
    table = ReportTable("T", ("Head",) * columns, (("one cell of it",) + ("1.234",) * (columns - 1),) * rows)
    size, wide, high = slides._measured(table, room, 308.0)
    assert len(high) == rows + 1 and len(wide) == columns
    pages = len(slides._shared_out(high, room))
    held = [tuple(map(slides._cell, line)) for line in (table.heads, *table.rows)]
    needs = {}
    for one in (16.0, 14.0, 12.0, 11.0, 10.0):
        _, heights, broken = slides._laid_out(held, one, 308.0)
        if not broken:
            needs[one] = len(slides._shared_out(heights, room))
            assert one != size or pages == needs[one] or pages == 1
    if min(needs.values()) == 1:
        assert pages == 1 and size == max(one for one, n in needs.items() if n == 1)
        assert sum(high) <= room * (1 + 1e-9)
        least = slides._laid_out(held, size, 308.0)[1]
        assert sum(high) == pytest.approx(min(room, 1.35 * sum(least))), "rows have air where there is room"
    else:
        assert pages == needs[12.0] and size == max(one for one, n in needs.items() if n == pages)


# ---- slides


@pytest.mark.parametrize("letters", [5, 60, 61, 70, 71, 125, 126, 200, 201, 320])
def test_titles_fit_into_their_places(letters: int) -> None:
    text = ("mmmm " * 100)[: letters - 1] + "m"
    made = deck(Report(text, "", WHEN, (), (), story=(Slide(text, FEW),)))
    sizes = []
    for slide in made.slides:
        head = slide.shapes.title
        (run,) = head.text_frame.paragraphs[0].runs
        size = run.font.size.pt
        high = slides._rows(run.text, size, head.width.mm) * size * MM_PER_POINT * 1.2
        assert run.text == text[: 160 if slide is made.slides[0] else 320] or run.text.endswith("…")
        assert high <= head.height.mm, "no line is outside"
        sizes.append(size)
    assert sizes[0] >= 28 and sizes[1] >= 15
    if letters <= 60:
        assert sizes == [38, 26], "short ones are large"


def test_a_percent_stays_with_its_number() -> None:
    (slide,) = list(deck(report(story=[Slide("It takes 7 % of 8 s", FEW)], appendix=False)).slides)[1:]
    assert title(slide) == "It takes 7\u00a0% of 8\u00a0s"


def test_the_title_says_of_which_runs() -> None:
    def names(count: int) -> list[str]:
        made = report(facts=tuple({"source": {"name": f"r{k}"}} for k in range(count)), appendix=False)
        said = [paragraph.text for paragraph in body(deck(made).slides[0]).paragraphs]
        assert said[:2] == ["It waits.", "Phasewright"]
        return said[2].split(", ")

    assert names(1) == ["r0"] and names(4) == ["r0", "r1", "r2", "r3"]
    assert names(5) == ["r0", "r1", "r2", "and 2 more"] and names(9)[3:] == ["and 6 more"]
    made = deck(report(appendix=False))
    sizes = [paragraph.runs[0].font.size.pt for paragraph in body(made.slides[0]).paragraphs]
    assert sizes[0] > sizes[1] == sizes[2] >= 12, "the finding first and largest"
    about = made.core_properties
    assert (about.title, about.author, about.revision) == ("A run", "Phasewright", 1)
    assert about.created == about.modified == WHEN.replace(tzinfo=None)


def test_notes_are_with_their_slides() -> None:
    story = [Slide("One", FEW, "Say\nthis"), Slide("Two", FEW), Slide("Three", FEW, "x" * 10_001)]
    made = deck(report(story=story, notes="Begin"))
    notes = [s.notes_slide.notes_text_frame.text if s.has_notes_slide else None for s in made.slides]
    assert notes[:3] == ["Begin", "Say\nthis", None]
    assert set(cast(str, notes[3])) <= {"x", "…"} and len(cast(str, notes[3])) == 10_000


def parts(made: Any) -> dict[str, list[str]]:
    """The titles of the slides of each part of the deck."""
    titles = {str(slide.slide_id): title(slide) for slide in made.slides}
    found = {}
    for section in made.part._element.iter("{*}section"):
        found[section.get("name")] = [titles[one.get("id")] for one in section.iter("{*}sldId")]
    return found


def test_a_deck_has_its_story_and_an_appendix_of_all_else() -> None:
    shown = Paragraph("Shown.")
    said = Points(("one",))
    picture = Picture("phases", 1, "The phases.", cast(Material, None))
    other = Picture("curve", 2, "The curve.", cast(Material, None))
    sections = (
        Section("Run", (), 1), Section("Told", (FEW,)), Section("Both", (FEW, shown)), Section("Empty", ()),
        Section("Figures", (picture, other)), Section("Said", (said,)),
    )  # fmt: skip
    story = [Slide("First", FEW), Slide("Second", said)]
    assert parts(deck(report(*sections, story=story))) == {
        "Story": ["A run", "First", "Second"],
        "Appendix": ["Appendix", "Run", "Both", "The curve."],
    }
    assert parts(deck(report(*sections, story=story, appendix=False))) == {
        "Story": ["A run", "First", "Second"]
    }
    assert parts(deck(report(Section("Told", (FEW,)), story=story))) == {
        "Story": ["A run", "First", "Second"]
    }
    made = deck(report(*sections, story=story)).slides
    assert body(made[3]).text == "Run · Both · Figures", "what follows"
    assert [
        shape.name for shape in made[4].placeholders if shape.has_text_frame and not shape.text_frame.text
    ] == []


def test_lists_stand_on_slides_that_hold_them() -> None:
    def placed(count: int, letters: int = 10) -> tuple[list[int], set[float]]:
        items = tuple(f"{k} " + "mmmm " * (letters // 5) for k in range(count))
        shown = blocks(Points(items))
        assert [p.text.split()[0] for s in shown for p in body(s).paragraphs] == [
            str(k) for k in range(count)
        ]
        sizes = {p.runs[0].font.size.pt for slide in shown for p in body(slide).paragraphs}
        for slide in shown:
            high = 0.0
            for paragraph in body(slide).paragraphs:
                size = paragraph.runs[0].font.size.pt
                high += slides._rows(paragraph.text, size, OWN.width - 12) * size * MM_PER_POINT * 1.2
                high += paragraph.space_after.pt * MM_PER_POINT
            assert high <= OWN.height, "text and the space below it"
        return [len(body(slide).paragraphs) for slide in shown], sizes

    assert placed(3) == ([3], {18.0})
    assert placed(15) == ([15], {14.0}), "smaller, so that one slide holds them"
    counts, sizes = placed(60)
    assert sizes == {14.0} and len(counts) == 4 and max(counts) - min(counts) <= 1
    assert len(placed(30, 800)[0]) >= 8


def test_what_announces_others_stands_with_them() -> None:
    items: list[Block] = []
    for k in range(9):
        items += [Paragraph(f"{k}:"), Points((f"{k}a", f"{k}b", f"{k}c"))]
    shown = blocks(*items, ReportCommand("run it"))
    assert len(shown) > 1
    for slide in shown:
        said = [paragraph.text for paragraph in body(slide).paragraphs]
        assert said[0].endswith(":") and not said[-1].endswith(":")
        bullets = [paragraph._p.find(".//{*}buNone") is None for paragraph in body(slide).paragraphs]
        assert bullets == [not text.endswith(":") and text != "run it" for text in said]
    # Where that does not go, each line counts by itself.
    long = blocks(Paragraph("They are:"), Points(tuple(f"{k} mm" for k in range(60))))
    assert [p.text for s in long for p in body(s).paragraphs] == [
        "They are:",
        *(f"{k} mm" for k in range(60)),
    ]


def test_sentences_stand_below_their_table() -> None:
    a, b = (ReportTable(name, ("A", "B"), (("x", "1"),), part=name) for name in ("first", "second"))
    shown = blocks(a, b, Paragraph("Of it.", "first"), Paragraph("Of none."), title="first")
    assert [title(slide) for slide in shown] == ["first", "first: second"]
    for slide, text in zip(shown, ("Of it.", "Of none."), strict=True):
        (table,) = tables(slide)
        (box,) = [shape for shape in slide.shapes if shape.has_text_frame and not shape.is_placeholder]
        assert box.text_frame.text == text and box.top >= table.top + table.height
        assert box.top + box.height <= Mm(OWN.top + OWN.height) + Mm(0.01)
        assert box.text_frame.word_wrap
    # With a list among them all is said before.
    shown = blocks(a, Paragraph("So:", "first"), Points(("one", "two")), title="X")
    assert [title(slide) for slide in shown] == ["X", "X: first"]
    assert [p.text for p in body(shown[0]).paragraphs] == ["So:", "one", "two"]
    assert [title(slide) for slide in blocks(Paragraph("Alone."))] == ["More"]


def test_tables_of_several_slides() -> None:
    rows = tuple((f"row {k}", f"{k}.5") for k in range(50))
    shown = blocks(ReportTable("Long", ("Name", "Value"), rows, note="A note."))
    assert [title(slide) for slide in shown] == [
        f"More: Long ({k + 1} of {len(shown)})" for k in range(len(shown))
    ]
    assert len(shown) > 1
    for k, slide in enumerate(shown):
        (table,) = tables(slide)
        assert table.top + table.height <= Mm(OWN.top + OWN.height)
        assert table.left == Mm(OWN.left) and table.top == Mm(OWN.top)
        assert ("A note." in [s.text_frame.text for s in slide.shapes if s.has_text_frame]) == (
            k == len(shown) - 1
        )
    drawn = [[cell.text for cell in row.cells] for s in shown for row in list(tables(s)[0].table.rows)[1:]]
    assert drawn == [[one.replace(" ", "\u00a0") for one in row] for row in rows]


def test_a_table_is_read_by_row_and_column() -> None:
    (slide,) = blocks(
        ReportTable("T", ("Name", "Kind", "Value"), (("a", "b", "1"), ("c", "d", "")) * 2, left=2)
    )
    (frame,) = tables(slide)
    cells = [list(row.cells) for row in frame.table.rows]
    for r, line in enumerate(cells):
        fills = {cell.fill.fore_color.rgb if cell.fill.type == 1 else None for cell in line}
        assert len(fills) == 1, "a row is of one colour"
        assert (None in fills) == (r in (1, 3)), "headings and every second row have a ground"
        for c, cell in enumerate(line):
            (run,) = cell.text_frame.paragraphs[0].runs
            assert run.font.bold == (r == 0) and run.font.size.pt == 16
            assert cell.text_frame.paragraphs[0].alignment == (PP_ALIGN.LEFT if c < 2 else PP_ALIGN.RIGHT)
    assert cells[0][0].fill.fore_color.rgb != cells[2][0].fill.fore_color.rgb

    def told(rows: int) -> str:
        (made,) = tables(blocks(ReportTable("T", ("A", "B"), (("x", "1"),) * rows))[0])
        return str(made._element.xpath(".//p:cNvPr")[0].get("descr"))

    assert told(1) == "T: 1 row, A, B" and told(2) == "T: 2 rows, A, B"
    assert (
        slides._cell("x" * 14 + " y") == "x" * 14 + " y"
        and slides._cell("12 345 ms") == "12\u00a0345\u00a0ms"
    )
    assert len(slides._cell("x" * 121)) == 120


def test_figures_stand_in_their_place_with_what_they_show() -> None:
    (slide,) = blocks(Picture("curve", 3, "It falls.", cast(Material, None)))
    (picture,) = [shape for shape in slide.shapes if shape.shape_type == 13]
    assert (picture.left, picture.top) == (Mm(OWN.left), Mm(OWN.top))
    assert (picture.width, picture.height) == tuple(map(Mm, slides.PICTURE))
    assert picture.name == "Figure 3" and title(slide) == "It falls."
    said = picture._element.xpath(".//p:cNvPr")[0].get("descr")
    assert said == "Utilization and its phases. It falls."
    room = slides.Room(0, 0, 160, 130)
    assert slides.picture_size(room) == (160, 100) and slides.picture_size(OWN) == slides.PICTURE
    assert slides.picture_size(slides.Room(0, 0, 160, 80)) == (160, 80)


def test_every_slide_but_the_first_has_its_number_and_the_title_of_the_report() -> None:
    made = deck(report(Section("Run", (), 1), Section("More", (FEW, Paragraph("Some.")))))
    for k, slide in enumerate(made.slides):
        ids = Counter(shape.shape_id for shape in slide.shapes)
        assert max(ids.values()) == 1, "no two shapes have one number"
        kinds = {shape.placeholder_format.type.name: shape for shape in slide.placeholders}
        assert ("SLIDE_NUMBER" in kinds) == ("FOOTER" in kinds) == (k > 0)
        assert "DATE" not in kinds
        if k:
            assert kinds["FOOTER"].text_frame.text == "A run"
            assert kinds["SLIDE_NUMBER"].left > kinds["FOOTER"].left + kinds["FOOTER"].width
        for one, other in itertools.combinations(slide.shapes, 2):
            assert (
                one.top + one.height <= other.top
                or other.top + other.height <= one.top
                or (one.left + one.width <= other.left or other.left + other.width <= one.left)
            ), f"{one.name} covers {other.name}"


def luminance(colour: str) -> float:
    """W3C, Web Content Accessibility Guidelines 2.2."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_of_a_theme_can_be_read(theme: Theme) -> None:
    content = to_pptx(report(Section("More", (FEW,))), lambda picture: PIXEL, theme=theme)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        held = archive.read("ppt/theme/theme1.xml").decode()
    named = dict(re.findall(r'<a:(dk1|lt1|dk2|accent1|hlink)><a:srgbClr val="(\w+)"/>', held))
    (frame,) = tables(list(Presentation(io.BytesIO(content)).slides)[2])
    grounds = {
        str(cell.fill.fore_color.rgb) for row in frame.table.rows for cell in row.cells if cell.fill.type == 1
    }
    assert len(grounds) == 2
    for ground in {named["lt1"], *grounds}:
        assert (luminance(ground) > 0.5) == (theme == "light")
        for name in ("dk1", "dk2", "accent1", "hlink"):
            light, dark = sorted((luminance(ground), luminance(named[name])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, ground)
    inks = {str(c.text_frame.paragraphs[0].runs[0].font.color.rgb) for r in frame.table.rows for c in r.cells}
    assert inks == {named["dk1"]}
    assert set(re.findall(r'<a:latin typeface="([^"]*)"', held)) == {"Arial"}


def test_equal_reports_are_equal_files_with_their_date() -> None:
    made = report(Section("More", (FEW,)))
    one, two = (to_pptx(made, lambda picture: PIXEL) for _ in range(2))
    assert one == two
    with zipfile.ZipFile(io.BytesIO(one)) as archive:
        assert {member.date_time for member in archive.infolist()} == {(2026, 2, 3, 4, 5, 6)}
        assert archive.testzip() is None
        assert all(member.compress_type == zipfile.ZIP_DEFLATED for member in archive.infolist())
    early = Report("A", "", datetime(1970, 1, 1, tzinfo=UTC), (), ())
    with zipfile.ZipFile(io.BytesIO(to_pptx(early, lambda picture: PIXEL))) as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
