"""Help > About: what this program is, what it is made of, how to cite it, under which licences."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import PySide6
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QTabWidget, QTextBrowser, QWidget

import desktop
from desktop import resources
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import lay_out, set_up
from desktop.ui.sizes import fitting

_LIBRARIES = (
    *("PySide6-Essentials", "pyqtgraph", "numpy", "numba", "pandas", "h5py", "scipy", "isal", "openpyxl"),
    *("python-pptx", "tomli-w", "psutil", "platformdirs"),
)
#: What the methods are from, and the program itself.
_CITATION = """\
Phasewright {version}: phases of processor-utilization curves, experiments with artificial delays, and the
factor model of run times. Say the version and the SHA-256 of the trace (both are in every report).

The methods:

P. H. Worley, Modeling Histogram Data with Piecewise Polynomials, ORNL/TM-11637, Oak Ridge National
Laboratory, 1990 (phases).

G. Lyon, R. Snelick, R. Kacker, Synthetic-Perturbation Tuning of MIMD Programs, NISTIR 5131, 1993;
R. Snelick, J. JáJá, R. Kacker, G. Lyon, Synthetic-Perturbation Techniques for Screening Shared Memory
Programs, NISTIR 5139, 1993; G. Lyon, R. Kacker, A. Linz, A Scalability Test for Parallel Code, NISTIR 5417,
National Institute of Standards and Technology, 1994 (experiments).

E. Strohmaier, Statistical Performance Modeling: Case Study of the NPB 2.1 Results, UTK-CS-97-354, University
of Tennessee, 1997 (factor model).
"""


def versions() -> list[tuple[str, str]]:
    """Names and versions of the program and of what it runs on."""
    listed = [
        ("Phasewright", desktop.__version__),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        ("Qt for Python", PySide6.__version__),
        ("System", f"{platform.platform()}, display {QGuiApplication.platformName() or 'none'}"),
    ]
    for name in _LIBRARIES:
        try:
            listed.append((name, version(name)))
        except PackageNotFoundError:
            # A frozen program holds the library without what the installer knows of it.
            continue
    return listed


def versions_text() -> str:
    """The versions as text, a line `name: version` for each."""
    return "\n".join(f"{name}: {number}" for name, number in versions())


class About(Dialog):
    """Versions, citation and licences, each on a page; Copy takes the versions."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, "about", "About Phasewright")
        head = set_up(QLabel(), wordWrap=True, text="<span style='font-size: large'><b>Phasewright "
                      f"{desktop.__version__}</b></span><br>Explains why a parallel program is slow: "
                      "traces become phases.")  # fmt: skip
        self.pages = QTabWidget()
        for title, text in (
            ("Versions", "\n\n".join(f"**{name}** {number}" for name, number in versions())),
            ("How to cite", _CITATION.format(version=desktop.__version__)),
            ("Licences", _licences()),
        ):
            page = set_up(QTextBrowser(), openLinks=False, accessibleName=title, markdown=text)
            self.pages.addTab(page, title)
        buttons = self.closing()
        copy = buttons.addButton("&Copy versions", QDialogButtonBox.ButtonRole.ActionRole)
        set_up(copy, objectName="copy", clicked=lambda: QGuiApplication.clipboard().setText(versions_text()))
        lay_out(self, head, self.pages, buttons)
        self.resize(fitting(self, 34, 26))


def _licences() -> str:
    """Of the program, and the notices that come with what is bundled."""
    home = resources.folder()
    parts = [
        "**Phasewright** is free software under the BSD 3-Clause licence. Qt for Python is used under the "
        "LGPL 3; the other libraries under their own free licences (BSD, MIT, Apache and PSF)."
    ]
    for folder in ("samples", "examples"):
        parts.append((home / folder / "ORIGIN.md").read_text(encoding="utf-8"))
    for title, file in (
        ("Bundled font: DejaVu Sans", home / "fonts" / "LICENSE-DejaVu.txt"),
        ("Bundled trace fft_16_picl: MPICH", home / "samples" / "fft_16_picl" / "MPICH-NOTICE.txt"),
    ):
        text = file.read_text(encoding="utf-8", errors="replace")
        parts.append(f"# {title}\n\n" + "\n".join(f"    {line}" for line in text.splitlines()))
    return "\n\n".join(parts)
