"""Reads the text of a PDF that Qt wrote, by nothing but the PDF: what a reader can search and copy."""

from __future__ import annotations

import re
import zlib


def pdf_text(pdf: bytes) -> list[str]:
    """The texts of all pages, each as one `Tj` after another between two `ET`, with the fonts' own tables
    (ToUnicode) from glyphs to characters. Of the characters that look alike Qt says the first: a space is a
    tab."""
    objects = {int(n): body for n, body in re.findall(rb"(\d+) 0 obj(.*?)endobj", pdf, re.DOTALL)}

    def stream(number: int) -> bytes:
        body = objects[number]
        start = body.index(b"stream") + len(b"stream\n")
        data = body[start : body.rindex(b"endstream")]
        return zlib.decompressobj().decompress(data) if b"/FlateDecode" in body else data

    def referred(body: bytes, name: bytes) -> int:
        found = re.search(rb"/" + name + rb" (\d+) 0 R", body)
        assert found, name
        return int(found[1])

    texts = []
    for page in (body for body in objects.values() if re.search(rb"/Type /Page\b", body)):
        resources = objects[referred(page, b"Resources")]
        fonts = {}
        for name, number in re.findall(rb"/(F\d+) (\d+) 0 R", resources):
            fonts[name] = _characters(stream(referred(objects[int(number)], b"ToUnicode")))
        for block in re.findall(rb"\bBT\b(.*?)\bET\b", stream(referred(page, b"Contents")), re.DOTALL):
            table: dict[int, str] = {}
            text = ""
            for font, glyphs in re.findall(rb"/(F\d+) [\d.]+ Tf|<([0-9a-fA-F]+)> Tj", block):
                if font:
                    table = fonts[font]
                else:
                    text += "".join(table[int(glyphs[k : k + 4], 16)] for k in range(0, len(glyphs), 4))
            texts.append(text.replace("\t", " "))
    return texts


def _characters(table: bytes) -> dict[int, str]:
    """Characters by the numbers of their glyphs."""
    found: dict[int, str] = {}
    for block in re.findall(rb"beginbfrange(.*?)endbfrange", table, re.DOTALL):
        for low, high, given in re.findall(rb"<(\w+)> <(\w+)> (<\w+>|\[.*?\])", block, re.DOTALL):
            characters = [_character(c) for c in re.findall(rb"<(\w+)>", given)]
            first = int(low, 16)
            for k in range(int(high, 16) - first + 1):
                one = characters[k] if len(characters) > 1 else chr(ord(characters[0]) + k)
                found[first + k] = one
    for block in re.findall(rb"beginbfchar(.*?)endbfchar", table, re.DOTALL):
        for glyph, character in re.findall(rb"<(\w+)> <(\w+)>", block):
            found[int(glyph, 16)] = _character(character)
    return found


def _character(digits: bytes) -> str:
    return bytes.fromhex(digits.decode()).decode("utf-16-be")
