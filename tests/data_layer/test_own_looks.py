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
