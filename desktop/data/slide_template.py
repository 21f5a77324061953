"""A user's template for slides (.potx, .pptx): its layouts by kind, the space on them, and whether they are
dark.

Templates may come from anyone: they are read within bounds, must have no macros, and load nothing external.
"""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from desktop.errors import FileError

if TYPE_CHECKING:
    from pptx.presentation import Presentation
    from pptx.shapes.autoshape import Shape
    from pptx.shapes.base import BaseShape
    from pptx.slide import SlideLayout

#: A slide, layout or master: python-pptx's types do not allow iterating over their placeholders.
AnySlide: TypeAlias = Any

#: Most bytes of a template as a file and unpacked, and most parts.
LARGEST, UNPACKED, PARTS = 64 << 20, 256 << 20, 4096
# mm: a smaller slide is not readable.
_LEAST = (100.0, 50.0)
_EMU = 36000.0
# Layouts to look for, by their names in the format; if a template has none of the first kind, the next one.
_KINDS = {
    "title": (("title",), ""),
    "text": (("obj", "tx"), ""),
    "heading": (("secHead",), "title"),
    "only": (("titleOnly",), "text"),
}
_CALLED = {"title": "Title Slide", "text": "Title and Content"}
_TYPES = b"[Content_Types].xml"
_MAIN = "application/vnd.openxmlformats-officedocument.presentationml.{}.main+xml"


@dataclass(frozen=True)
class Room:
    """Where a slide shows something, in mm."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True)
class SlideTemplate:
    """An empty `deck`, its `layouts` by kind, their space, and whether their background is dark."""

    deck: Presentation
    layouts: dict[str, SlideLayout]
    room: Room
    dark: bool


def read_template(path: Path) -> SlideTemplate:
    """Read a template.

    Raises
    ------
    FileError : it cannot be read, is no template, contains macros or external references, or lacks a layout.
    OSError : there is no such file.
    """
    from pptx import Presentation

    content = _cleaned(path)
    try:
        deck = Presentation(io.BytesIO(content))
        _drop_slides(deck)
        layouts = _layouts(deck, path)
        room, dark = box(places(layouts["text"])[0]), _is_dark(layouts["text"])
    except FileError:
        raise
    except Exception as error:  # files from anyone can make python-pptx fail in any way
        reason = f"cannot be read as a template ({type(error).__name__})"
        raise FileError(reason, file=path, hint=_AGAIN) from None
    if room.width < _LEAST[0] or room.height < _LEAST[1]:
        reason = f"leaves {room.width:.0f} by {room.height:.0f} mm in its layout {layouts['text'].name}"
        raise FileError(f"{reason}, too little to be read", file=path, hint="make its content larger")
    return SlideTemplate(deck, layouts, room, dark)


_AGAIN = "save it again from the program that made it, as .potx"


def _cleaned(path: Path) -> bytes:
    """The file as a presentation without the files of its slides, after checking it."""
    if path.stat().st_size > LARGEST:
        raise FileError(f"is larger than {LARGEST >> 20} MiB, too large for a template", file=path)
    cleaned = io.BytesIO()
    try:
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(cleaned, "w", zipfile.ZIP_DEFLATED) as target:
            parts = source.infolist()
            if len(parts) > PARTS or sum(part.file_size for part in parts) > UNPACKED:
                raise FileError("unpacks to more than a template needs", file=path, hint=_AGAIN)
            for part in parts:
                content = source.read(part)
                name = part.filename.lower()
                if name.endswith((".xml", ".rels")):
                    _check(name, content, path)
                types = part.filename.encode() == _TYPES
                if "vbaproject" in name or "/activex/" in name or (types and b"macroEnabled" in content):
                    raise FileError(
                        "holds macros, which slides here never have",
                        file=path,
                        hint="save it without them, as .potx",
                    )
                if types:
                    text = content.decode()
                    content = text.replace(_MAIN.format("template"), _MAIN.format("presentation")).encode()
                target.writestr(part.filename, content)
    except (zipfile.BadZipFile, UnicodeDecodeError, NotImplementedError, RuntimeError, EOFError) as error:
        raise FileError(
            f"is no template of slides ({type(error).__name__})", file=path, hint="take a .potx or .pptx"
        ) from None
    return cleaned.getvalue()


def _check(name: str, content: bytes, path: Path) -> None:
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise FileError(f"declares entities in {name}, which no template does", file=path, hint=_AGAIN)
    if name.endswith(".rels") and "/slides/" not in name:  # its slides are not used
        for relation in re.findall(rb"<Relationship\b[^>]*>", content):
            if b'"External"' in relation.replace(b"'", b'"') and b"/hyperlink" not in relation:
                raise FileError(f"loads from elsewhere in {name}", file=path, hint="embed it in the template")


def _drop_slides(deck: Presentation) -> None:
    listed = deck.slides._sldIdLst  # python-pptx has no method for this
    for one in list(listed):
        deck.part.drop_rel(one.rId)
        listed.remove(one)
    for shows in list(deck.part._element.iter("{*}custShowLst")):  # these refer to removed slides
        shows.getparent().remove(shows)


def places(slide: AnySlide, *kinds: str) -> list[Shape]:
    """Its placeholders of some kinds, by the format's names; by default those for content."""
    shapes = []
    for shape in slide.placeholders:
        kind = next(shape._element.iter("{*}ph")).get("type", "obj")
        if kind in kinds or (not kinds and kind in ("obj", "body", "subTitle")):
            shapes.append(shape)
    return shapes


def _layouts(deck: Presentation, path: Path) -> dict[str, SlideLayout]:
    every = [layout for master in deck.slide_masters for layout in master.slide_layouts]
    titled = [layout for layout in every if places(layout, "title", "ctrTitle")]
    layouts: dict[str, SlideLayout] = {}
    for kind, (types, otherwise) in _KINDS.items():
        candidates = [layout for layout in titled if layout._element.get("type") in types]
        if kind == "title":
            candidates += [layout for layout in titled if places(layout, "ctrTitle")]
        if kind == "text":
            candidates = [one for one in candidates if places(one)]
            candidates += [one for one in titled if len(places(one)) == 1 and not places(one, "ctrTitle")]
        if candidates:
            layouts[kind] = candidates[0]
        elif otherwise:
            layouts[kind] = layouts[otherwise]
        else:
            names = ", ".join(layout.name for layout in every[:12]) or "none"
            reason = f"has no layout for {_CALLED[kind]}; its layouts are {names}"
            raise FileError(reason, file=path, hint="add one, with places for a title and for text")
    return layouts


def box(shape: BaseShape) -> Room:
    """Position and size of a placeholder in a layout, or from the master if the layout has none."""
    return Room(*(getattr(shape, side) / _EMU for side in ("left", "top", "width", "height")))


def _is_dark(layout: SlideLayout) -> bool:
    """Whether the layout's background is dark; by the theme if it is a picture or gradient."""
    from pptx.opc.constants import RELATIONSHIP_TYPE

    master = layout.slide_master
    theme = master.part.part_related_by(RELATIONSHIP_TYPE.THEME).blob.decode(errors="replace")
    named = "bg1"
    for holder in (layout, master):
        ground = next(holder._element.iter("{*}bg"), None)
        if ground is None:
            continue
        plain = next(ground.iter("{*}srgbClr"), None)
        if plain is not None:
            return _luminance(plain.get("val")) < 0.4
        scheme = next(ground.iter("{*}schemeClr"), None)
        named = named if scheme is None else scheme.get("val")
        break
    mapped = next(master._element.iter("{*}clrMap")).get(named, named)
    colour = re.search(
        rf'<a:{re.escape(mapped)}>.*?(?:lastClr|srgbClr val)="([0-9A-Fa-f]{{6}})"', theme, re.S
    )
    return colour is not None and _luminance(colour[1]) < 0.4


def _luminance(colour: str) -> float:
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (0, 2, 4))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def title_size(layout: SlideLayout, place: Shape) -> float:
    """Point size of the title in its placeholder of a layout, or from its master if the layout has none."""
    master = layout.slide_master
    titles = [place._element, *(one._element for one in places(master, "title"))]
    for element in (*titles, *master._element.iter("{*}titleStyle")):
        level = next(element.iter("{*}lvl1pPr"), None)
        run = None if level is None else next(level.iter("{*}defRPr"), None)
        if run is not None and run.get("sz", "").isdecimal():
            return int(run.get("sz")) / 100
    return 44.0
