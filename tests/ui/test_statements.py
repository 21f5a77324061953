"""What a figure states: the same in every format and every time, and what the window states."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from PySide6.QtWidgets import QApplication

from desktop.data.material import FIGURES
from desktop.ui import figures
from desktop.ui.app import load_font
from desktop.ui.figures import Look
from tests.ui.pdf_text import pdf_text
from tests.ui.test_figures import SVG, WAVE, material


@pytest.fixture(autouse=True, scope="module")
def font(qapp: QApplication) -> None:
    load_font(qapp)


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("figure", FIGURES)
def test_text_stays_text_in_svg_and_pdf(figure: str) -> None:
    """The same words, signs and numbers in both; a PDF has text of several scripts in parts."""
    made, look = material(WAVE), Look()
    root = ElementTree.fromstring(figures.svg(figure, made, look))
    drawn = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert len(drawn) > 8 and "".join(pdf_text(figures.pdf(figure, made, look))) == "".join(drawn)


@pytest.mark.parametrize("figure", FIGURES)
def test_two_exports_of_one_state_are_equal(figure: str) -> None:
    """Byte by byte, and nothing in a file says when it was made."""
    look = Look(width=120, height=80)
    files = [
        (
            figures.svg(figure, made, look),
            figures.png(figure, made, look, 100),
            figures.pdf(figure, made, look),
        )
        for made in (material(WAVE), material(WAVE))
    ]
    assert files[0] == files[1]
    pdf = files[0][2]
    assert not re.search(rb"Date[ =(\"]*D?:?[12]\d{3}", pdf)
    identity = re.findall(rb"/ID \[ <(\w+)> <(\w+)> \]", pdf)
    assert len(identity) == 1 and len(set(identity[0])) == 1
    other = figures.pdf(figure, material(WAVE, title="another"), look)
    assert re.findall(rb"/ID \[ <(\w+)>", other) != [identity[0][0]]


def test_another_process_writes_the_same_pdf() -> None:
    """Where Qt has other random numbers."""
    code = (
        "import hashlib, desktop.__main__\n"
        "from PySide6.QtWidgets import QApplication\n"
        "app = QApplication(['x', '-platform', 'offscreen'])\n"
        "from desktop.ui import figures\n"
        "from desktop.ui.app import load_font\n"
        "from desktop.core.curve import StepCurve\n"
        "from desktop.core.phases import fit\n"
        "from desktop.data.material import Material\n"
        "load_font(app)\n"
        "curve = StepCurve([0, 1, 2], [1, 2])\n"
        "made = Material('run', curve, {'computing': curve}, fit(curve, 2, 'constant'), ())\n"
        "pdf = figures.pdf('curve', made, figures.Look())\n"
        "print(hashlib.sha256(pdf).hexdigest())\n"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(found) == 1 and len(found.pop().strip()) == 64
