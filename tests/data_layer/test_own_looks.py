"""A template and a style sheet of the user's own: honoured in slides and pages, or refused in a sentence."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pptx import Presentation
from pptx.util import Mm

from desktop import cli
from desktop.data import slide_template
from desktop.data.report import Paragraph, Points, Report, ReportTable, Section, Slide, to_html
from desktop.data.slide_template import read_template
from desktop.data.slides import to_pptx
from desktop.data.style_sheet import read_style_sheet
from desktop.errors import DesktopError

WHEN = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
_TYPES, _MAIN = "[Content_Types].xml", "presentationml.{}.main+xml"
Parts = dict[str, bytes]


def unpacked(content: bytes) -> Parts:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: Parts, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def house_style() -> Parts:
    """A template as an organisation has one: 4:3, dark, its own fonts, colours, places, two slides in it."""
    deck = Presentation()
    for _ in range(2):
        deck.slides.add_slide(deck.slide_layouts[1]).shapes.title.text = "Fill me in"
    text = deck.slide_layouts[1]
    text.placeholders[1].left, text.placeholders[1].top = Mm(30), Mm(60)
    text.placeholders[1].width, text.placeholders[1].height = Mm(200), Mm(110)
    made = io.BytesIO()
    deck.save(made)
    parts = unpacked(made.getvalue())
    theme = next(name for name in parts if "/theme/" in name)
    drawn = parts[theme].decode()
    for name, colour in (("dk1", "F0F0F0"), ("lt1", "102030"), ("accent1", "FF8800")):
        drawn = re.sub(
            rf"<a:{name}>.*?</a:{name}>", f'<a:{name}><a:srgbClr val="{colour}"/></a:{name}>', drawn
        )
    parts[theme] = re.sub('latin typeface="[^"]*"', 'latin typeface="Georgia"', drawn).encode()
    parts[_TYPES] = parts[_TYPES].replace(
        _MAIN.format("presentation").encode(), _MAIN.format("template").encode()
    )
    return parts


REPORT = Report(
    "A run", "Phasewright", WHEN,
    (Section("More", (Paragraph("Some words."),)),
     Section("Tables", (ReportTable("Long", ("A", "B"), tuple((f"row {k}", "1") for k in range(40))),))),
    ({"source": {"name": "traces.otf2"}},), "It waits.",
    (Slide("A title that is as long as findings are, with names of regions and numbers of ranks in it, " * 2,
           ReportTable("Few", ("A", "B"), (("x", "1"), ("y", "2"))), "Say it"),
     Slide("Points", Points(("one", "two")))),
    appendix=True, notes="Begin",
)  # fmt: skip


def test_slides_are_on_the_layouts_of_a_template(tmp_path: Path) -> None:
    template = read_template(packed(house_style(), tmp_path / "house.potx"))
    assert template.dark, "figures on it are dark, too"
    assert (template.room.left, template.room.width) == (pytest.approx(30), pytest.approx(200))
    content = to_pptx(REPORT, lambda picture: b"", template=template)
    deck = Presentation(io.BytesIO(content))
    assert (deck.slide_width, deck.slide_height) == (9144000, 6858000)
    shown = [slide.shapes.title.text_frame.text for slide in deck.slides]
    assert shown[:1] == ["A run"] and "Fill me in" not in shown and len(shown) == len(set(shown))
    used = [slide.slide_layout.name for slide in deck.slides]
    assert used[:4] == ["Title Slide", "Title Only", "Title and Content", "Section Header"]
    assert [deck.slides[k].notes_slide.notes_text_frame.text for k in (0, 1)] == ["Begin", "Say it"]
    for slide in deck.slides:
        for shape in slide.shapes:
            assert shape.left >= 0 and shape.left + shape.width <= deck.slide_width, shape.name
            assert shape.top + shape.height <= deck.slide_height, shape.name
            assert not shape.is_placeholder or (shape.has_text_frame and shape.text_frame.text), (
                "no empty place"
            )
    whole = b"".join(part for name, part in unpacked(content).items() if name.startswith("ppt/slides/"))
    assert b"srgbClr" not in whole and b"latin" not in whole, "colours and fonts are the theme's"
    assert b"Georgia" in next(part for name, part in unpacked(content).items() if "/theme/" in name)
    title = deck.slides[1].shapes.title.text_frame.paragraphs[0].runs[0]
    assert 12 <= title.font.size.pt < 44, "a long title is set smaller"
    assert len(unpacked(content)) < 90 and not [
        name for name in unpacked(content) if "slides/slide99" in name
    ]


def without(*types: str) -> Callable[[Parts], None]:
    """Layouts lose their titles."""

    def change(parts: Parts) -> None:
        for name in parts:
            if name.startswith("ppt/slideLayouts/slideLayout"):
                parts[name] = re.sub(rb'type="(ctrTitle|title)"( |/)', rb'type="body"\2', parts[name])

    return change


def part(name: str, content: bytes) -> Callable[[Parts], None]:
    return lambda parts: parts.update({name: content})


def types(old: str, new: str) -> Callable[[Parts], None]:
    return lambda parts: parts.update({_TYPES: parts[_TYPES].replace(old.encode(), new.encode())})


def linked(parts: Parts) -> None:
    name = "ppt/slideMasters/_rels/slideMaster1.xml.rels"
    link = b'<Relationship Id="rId99" TargetMode="External" Target="http://x/y.png" Type="http://a/image"/>'
    parts[name] = parts[name].replace(b"</Relationships>", link + b"</Relationships>")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("title"), "has no layout for Title Slide; its layouts are Title Slide, Title and Content"),
        (types(_MAIN.format("template"), "presentationml.template.macroEnabled.main+xml"), "holds macros"),
        (part("ppt/vbaProject.bin", b"x"), "holds macros"),
        (linked, "loads from elsewhere in ppt/slidemasters"),
        (part("ppt/x.xml", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'), "declares entities in ppt/x.xml"),
        (part("ppt/presentation.xml", b"<p"), "cannot be read as a template"),
        (part(_TYPES, b"\xff"), "is no template of slides"),
        (lambda parts: parts.clear(), "cannot be read as a template"),
        (part("ppt/media/bomb.bin", bytes(2 << 20)), "unpacks to more than a template needs"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_template_that_is_no_good_is_told_in_a_sentence(
    change: Callable[[Parts], Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slide_template, "UNPACKED", 1 << 20)
    parts = house_style()
    change(parts)
    path = packed(parts, tmp_path / "strange.potx")
    with pytest.raises(DesktopError, match=said) as error:
        read_template(path)
    assert "strange.potx" in str(error.value) and "\n" not in str(error.value)


def bounded(path: Path, monkeypatch: pytest.MonkeyPatch, **bounds: int) -> None:
    for name, value in bounds.items():
        monkeypatch.setattr(slide_template, name, value)
    read_template(path)


def test_templates_up_to_their_bounds_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(house_style(), tmp_path / "house.potx")
    held = house_style()
    size, count, unpacks = path.stat().st_size, len(held), sum(map(len, held.values()))
    bounded(path, monkeypatch, LARGEST=size, PARTS=count, UNPACKED=unpacks)
    for too_little in ({"LARGEST": size - 1}, {"PARTS": count - 1}, {"UNPACKED": unpacks - 1}):
        with (
            monkeypatch.context() as patch,
            pytest.raises(DesktopError, match=r"too large|more than a template"),
        ):
            bounded(path, patch, **too_little)


def related(name: str, kind: str, quote: str = '"') -> Callable[[Parts], None]:
    mode = f"TargetMode={quote}External{quote}"
    link = f"<Relationship Id='rId99' {mode} Target='http://x/y' Type='http://a/{kind}'/>"

    def change(parts: Parts) -> None:
        found = next(part for part in parts if name in part and part.endswith(".rels"))
        parts[found] = parts[found].replace(b"</Relationships>", f"{link}</Relationships>".encode())

    return change


def test_links_may_lead_elsewhere_but_nothing_is_loaded_from_there(tmp_path: Path) -> None:
    for k, change in enumerate(
        (related("slideLayout1.", "hyperlink"), related("slides/_rels/slide1.", "image"), lambda parts: None)
    ):
        parts = house_style()
        change(parts)
        read_template(packed(parts, tmp_path / f"{k}.potx"))
    for quote in "\"'":
        parts = house_style()
        related("slideLayout1.", "image", quote)(parts)
        with pytest.raises(DesktopError, match="loads from elsewhere in ppt/slidelayouts"):
            read_template(packed(parts, tmp_path / "bad.potx"))
    parts = house_style()
    parts["ppt/activeX/x.bin"] = b"x"
    with pytest.raises(DesktopError, match="holds macros"):
        read_template(packed(parts, tmp_path / "bad.potx"))
    parts = house_style()
    parts["ppt/media/x.png"] = b"<!ENTITY"
    read_template(packed(parts, tmp_path / "picture.potx"))


def redone(tmp_path: Path, change: Callable[[Any], object]) -> slide_template.SlideTemplate:
    deck = Presentation()
    change(deck)
    deck.save(str(tmp_path / "out.pptx"))
    return read_template(tmp_path / "out.pptx")


def retyped(**kinds: str) -> Callable[[Any], None]:
    """Layouts by name get another type, so that they are no more found by it."""

    def change(deck: Any) -> None:
        for layout in deck.slide_layouts:
            if (kind := kinds.get(layout.name.replace(" ", "_"))) is not None:
                layout._element.set("type", kind)

    return change


def test_layouts_are_found_by_what_they_are_for(tmp_path: Path) -> None:
    def named(change: Callable[[Any], object]) -> dict[str, str]:
        return {kind: layout.name for kind, layout in redone(tmp_path, change).layouts.items()}

    first, text = "Title Slide", "Title and Content"
    usual = {"title": first, "text": text, "heading": "Section Header", "only": "Title Only"}
    assert named(lambda deck: None) == usual
    assert named(retyped(Section_Header="cust")) == usual | {"heading": first}
    assert named(retyped(Title_Only="cust")) == usual | {"only": text}
    assert named(retyped(Title_Slide="cust")) == usual, "it has a place for a centred title"
    # Of the others that have one place for text beside the title.
    assert named(retyped(Title_and_Content="cust")) == usual
    untyped = retyped(**{name.replace(" ", "_"): "cust" for name in usual.values()})
    assert named(untyped) == {"title": first, "text": text, "heading": first, "only": text}

    def no_text(deck: Any) -> None:
        for layout in deck.slide_layouts:
            for place in slide_template.places(layout):
                place._element.getparent().remove(place._element)

    with pytest.raises(
        DesktopError, match="has no layout for Title and Content; its layouts are Title Slide"
    ):
        redone(tmp_path, no_text)


def test_too_little_room_is_told(tmp_path: Path) -> None:
    def sized(width: float, height: float) -> Callable[[Any], None]:
        def change(deck: Any) -> None:
            place = slide_template.places(deck.slide_layouts[1])[0]
            place.left, place.top, place.width, place.height = Mm(20), Mm(30), Mm(width), Mm(height)

        return change

    room = redone(tmp_path, sized(100, 50)).room
    assert (room.left, room.top, room.width, room.height) == pytest.approx((20, 30, 100, 50))
    for size in ((99, 50), (100, 49)):
        said = f"leaves {size[0]} by {size[1]} mm in its layout Title and Content, too little"
        with pytest.raises(DesktopError, match=said):
            redone(tmp_path, sized(*size))


def grounded(of: str, colour: str) -> Callable[[Any], None]:
    from pptx.oxml import parse_xml

    names = " ".join(
        f'xmlns:{k}="http://schemas.openxmlformats.org/{v}/2006/main"'
        for k, v in (("p", "presentationml"), ("a", "drawingml"))
    )

    def change(deck: Any) -> None:
        holder = deck.slide_layouts[1] if of == "layout" else deck.slide_master
        for former in list(holder._element.cSld.iter("{*}bg")):
            former.getparent().remove(former)
        ground = f"<p:bg {names}><p:bgPr><a:solidFill>{colour}</a:solidFill><a:effectLst/></p:bgPr></p:bg>"
        holder._element.cSld.insert(0, parse_xml(ground))

    return change


def test_how_dark_a_ground_is(tmp_path: Path) -> None:
    def dark(*changes: Callable[[Any], None]) -> bool:
        return redone(tmp_path, lambda deck: [change(deck) for change in changes]).dark

    def plain(colour: str) -> str:
        return f'<a:srgbClr val="{colour}"/>'

    assert not dark(), "a theme is white on the whole"
    for colour in ("000000", "0000FF", "800000", "606060"):
        assert dark(grounded("layout", plain(colour))), colour
        assert dark(grounded("master", plain(colour))), colour
    for colour in ("FFFFFF", "00FF00", "FFFF00", "808080", "00FFFF"):
        assert not dark(grounded("layout", plain(colour))), colour
    assert not dark(grounded("master", plain("000000")), grounded("layout", plain("FFFFFF"))), (
        "the layout's counts"
    )
    assert dark(grounded("master", '<a:schemeClr val="tx1"/>')), "text on white is black"
    assert dark(grounded("layout", '<a:schemeClr val="tx2"/>'))
    assert not dark(grounded("layout", '<a:schemeClr val="bg2"/>'))


def test_a_title_has_the_size_that_the_layout_its_master_or_the_styles_say(tmp_path: Path) -> None:
    deck = redone(tmp_path, lambda deck: None).deck
    layout = deck.slide_layouts[1]
    head = slide_template.places(layout, "title")[0]

    def size() -> float:
        return slide_template.title_size(layout, head)

    assert size() == 44
    style = next(deck.slide_master._element.iter("{*}titleStyle"))
    next(style.iter("{*}defRPr")).set("sz", "3300")
    assert size() == 33

    def said(place: Any, size: str) -> None:
        styles = next(place._element.iter("{*}lstStyle"))
        for level in list(styles):
            styles.remove(level)
        styles.append(styles.makeelement(styles.tag.replace("lstStyle", "lvl1pPr"), {}))
        styles[0].append(styles.makeelement(styles.tag.replace("lstStyle", "defRPr"), {"sz": size}))

    said(slide_template.places(deck.slide_master, "title")[0], "2900")
    assert size() == 29
    said(head, "2500")
    assert size() == 25
    said(head, "large")
    assert size() == 29, "no number says nothing"
    for element in (head._element, deck.slide_master._element):
        for level in list(element.iter("{*}lvl1pPr")):
            level.getparent().remove(level)
    assert size() == 44, "as PowerPoint has it where nothing is said"


def test_long_titles_are_as_small_as_their_place_asks(tmp_path: Path) -> None:
    path = packed(house_style(), tmp_path / "house.potx")

    def size(title: str) -> float:
        made = to_pptx(Report(title, "", WHEN, (), (), story=(Slide(title, Points(("one",))),)),
                       lambda picture: b"", template=read_template(path))  # fmt: skip
        (run,) = Presentation(io.BytesIO(made)).slides[1].shapes.title.text_frame.paragraphs[0].runs
        return 44.0 if run.font.size is None else run.font.size.pt

    sizes = [size(("mmmm " * count).strip()) for count in (1, 8, 16, 24, 40, 64)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == 44 > sizes[-1] >= 12
    assert len(set(sizes)) >= 4, "no smaller than it has to be"


def test_a_template_has_no_slides_of_its_own_and_no_shows_of_them(tmp_path: Path) -> None:
    from pptx.oxml import parse_xml

    main = "http://schemas.openxmlformats.org/presentationml/2006/main"

    def shown(deck: Any) -> None:
        deck.slides.add_slide(deck.slide_layouts[0])
        deck.part._element.append(parse_xml(f'<p:custShowLst xmlns:p="{main}"/>'))

    deck = redone(tmp_path, shown).deck
    assert len(deck.slides) == 0 and not list(deck.part._element.iter("{*}custShowLst"))
    made = io.BytesIO()
    deck.save(made)
    assert not [name for name in unpacked(made.getvalue()) if name.startswith("ppt/slides/")]


def test_what_is_no_archive_is_no_template(tmp_path: Path) -> None:
    (tmp_path / "a.potx").write_bytes(b"no zip")
    with pytest.raises(DesktopError, match="is no template of slides"):
        read_template(tmp_path / "a.potx")


GOOD = """/* url(http://a/in-a-comment) */
@media (width < 60em) { h1 { color: rebeccapurple } }
body { background: url("data:image/png;base64,AAAA"); font-family: Georgia }
svg { filter: url(#f) }
"""


def test_a_style_sheet_follows_ours_and_the_policy_stays(tmp_path: Path) -> None:
    (tmp_path / "own.css").write_text(GOOD, encoding="utf-8")
    page = to_html(REPORT, lambda picture: "", own_style=read_style_sheet(tmp_path / "own.css"))
    plain = to_html(REPORT, lambda picture: "")
    assert page.index("rebeccapurple") > page.index("overflow-wrap") and "rebeccapurple" not in plain
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', page + plain)
    strict = "default-src 'none'; style-src 'unsafe-inline'"
    assert policy == [f"{strict}; img-src data:; font-src data:", strict]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a{}\n@import 'http://x/y.css';", "loads from elsewhere in line 2"),
        (b"a{background:url( 'http://x/y.png')}", "loads from elsewhere in line 1"),
        (b"a{background:url(//x/y.png)}", "loads from elsewhere"),
        (b"a{background:u\\72l(http://x)}", "loads from elsewhere"),
        (b"@\\69mport 'y'", "loads from elsewhere"),
        (b"a{background:image-set('http://x' 1x)}", "loads from elsewhere"),
        (b"a{}</style><script>alert(1)</script>", "holds '</' in line 1"),
        (b"\xff\xfe", "is no text in UTF-8 \\(byte 0\\)"),
        (b" " * (1 << 20) + b" ", "is larger than 1024 KiB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_style_sheet_that_is_no_good_is_told_in_a_sentence(text: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "own.css").write_bytes(text)
    with pytest.raises(DesktopError, match=said):
        read_style_sheet(tmp_path / "own.css")


def test_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    template, css = packed(house_style(), tmp_path / "house.potx"), tmp_path / "own.css"
    css.write_text(GOOD, encoding="utf-8")
    (tmp_path / "c.csv").write_text("0,2\n1,3\n2,1\n4,2\n6,0\n")
    told = ["report", str(tmp_path / "c.csv"), "-n", "2"]
    made = {kind: tmp_path / f"r.{kind}" for kind in ("pptx", "html", "pdf")}
    assert cli.run([*told, "-o", str(made["pptx"]), "--template", str(template), "--appendix"]) == 0
    deck = Presentation(str(made["pptx"]))
    assert deck.slide_width == 9144000
    pictures = [shape for slide in deck.slides for shape in slide.shapes if shape.shape_type == 13]
    assert pictures and all(shape.width == Mm(200) and shape.height <= Mm(110) for shape in pictures)
    for shape in pictures:
        wide, high = shape.image.size
        assert wide / high == pytest.approx(shape.width / shape.height, rel=0.01), "no figure is stretched"
    texts = [shape.text_frame.text for slide in deck.slides for shape in slide.shapes if shape.has_text_frame]
    assert any(f"--template {template}" in text for text in texts), "it says how it is made again"
    for words in ([], ["--live"]):
        assert cli.run([*told, "-o", str(made["html"]), "--css", str(css), *words]) == 0
        assert "rebeccapurple" in made["html"].read_text(encoding="utf-8")
    capsys.readouterr()
    for kind, word, file in (("html", "template", template), ("pptx", "css", css), ("pdf", "css", css)):
        code = cli.run([*told, "-o", str(made[kind]), f"--{word}", str(file)])
        assert code != 0 and f"--{word} is for ." in capsys.readouterr().err
    assert cli.run([*told, "-o", str(made["pptx"]), "--template", str(tmp_path / "none.potx")]) == 1
    assert "none.potx" in capsys.readouterr().err
