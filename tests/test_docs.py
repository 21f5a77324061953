"""The handbook keeps its word: links, pictures, commands, keys and examples are those of the program."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from PySide6.QtGui import QKeySequence
from pytestqt.qtbot import QtBot

from desktop import cli, resources

ROOT = Path(__file__).parent.parent
DOCS = resources.folder() / "docs"
PAGES = sorted(DOCS.glob("*.md"))
TEXTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *PAGES]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")


def prose(path: Path) -> str:
    """Without code: neither blocks nor spans."""
    return re.sub(r"`[^`\n]*`", "", "\n".join(line for line, code in lines(path) if not code))


def lines(path: Path) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is code."""
    fenced, before = False, True
    for line in path.read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        indented = line.startswith("    ") and before
        yield line, fenced or fence or indented
        fenced ^= fence
        before = indented or not line.strip()


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)


def anchors(path: Path) -> set[str]:
    heads = (line.lstrip("#").strip() for line, code in lines(path) if line.startswith("#") and not code)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def targets(path: Path, pattern: re.Pattern[str] = LINK) -> Iterator[tuple[Path, str]]:
    """Files that a page links to, each with its anchor."""
    for found in pattern.finditer(prose(path)):
        link = found[found.lastindex or 1]
        if "://" not in link:
            file, _, anchor = unquote(link).partition("#")
            yield ((path.parent / file).resolve() if file else path.resolve()), anchor


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for file, anchor in targets(page):
        assert file.exists(), f"{page.name} links to {file.name}, which is not there"
        if anchor:
            assert anchor in anchors(file), f"{page.name} links to {file.name}#{anchor}"


def test_every_page_is_reached_from_the_contents() -> None:
    seen: set[Path] = set()
    ahead = [(DOCS / "index.md").resolve()]
    while ahead:
        page = ahead.pop()
        if page not in seen:
            seen.add(page)
            ahead += [file for file, _ in targets(page) if file.parent == DOCS.resolve()]
    assert {page.resolve() for page in PAGES} <= seen


def test_panels_name_places_of_the_handbook() -> None:
    from desktop.ui.panels import panels

    for panel in panels():
        file, _, anchor = panel.page.partition("#")
        assert (DOCS / file).exists(), panel
        assert not anchor or anchor in anchors(DOCS / file), panel


# ---- commands and keys


def commands() -> list[tuple[str, str]]:
    """Lines of code blocks that begin with the program's name; what is optional or explained is left out."""
    found = []
    for page in TEXTS:
        text = [line.strip() for line, code in lines(page) if code]
        for k, line in enumerate(text):
            if not line.startswith("phasewright "):
                continue
            words = re.split(r"\s{3,}", line)[0]  # before what explains them
            following = text[k + 1] if k + 1 < len(text) else ""
            found.append((page.name, f"{words} {following}" if following.startswith("[--") else words))
    return found


def tried(words: str) -> list[str]:
    """The command with its places filled: FILE by a name, [...] left out, of a|b the first."""
    while "[" in words:
        words = re.sub(r"\[[^\[\]]*\](\.\.\.)?", "", words)
    words = words.replace("...", "")
    out = []
    for word in shlex.split(words):
        word = word.split("|")[0]
        stands = {"S": "1", "N": "4", "M": "mixed", "WxH": "800x600", "ADDRESS": "tcp://h:1"}
        out.append(stands.get(word, word))
    return out


def test_commands_parse(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # where hosts that are named are noted
    found, parser = commands(), cli._parser()
    assert len(found) > 15
    for page, line in found:
        words = tried(line)[1:]
        if words[:1] and words[0] not in cli.COMMANDS:
            assert re.fullmatch(r"(ssh:)?[\w/]*[A-Z./][\w./]*", words[0]), (
                f"{page}: {words[0]} is no file and no command"
            )
            words = words[1:]
        if not words:
            continue  # the window
        if line.split()[-1] == "...":
            words.append("--help")
        try:
            parser.parse_args(words)
        except SystemExit as stop:
            assert stop.code == 0, f"{page}: {line} (as {words})"


def test_options_in_brackets_exist() -> None:
    parser = cli._parser()
    names = next(a.choices for a in parser._actions if isinstance(a.choices, dict))
    for page, line in commands():
        command = line.split()[1]
        if command in names:
            known = names[command].format_help()
            own = line.partition(" -- ")[0]  # what follows are the words of another program
            for option in re.findall(r"(?<![\w-])--[a-z][\w-]+", own):
                assert option in known or command == "spt", f"{page}: {command} has no {option}"


def test_the_tour_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from desktop.data import opening

    monkeypatch.setattr(opening, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    tour = DOCS / "tour.md"
    line = next(
        line for page, line in commands() if page == tour.name and "phases" in line and "-n 4" in line
    )
    monkeypatch.chdir(ROOT)
    assert cli.run(line.split()[1:]) == cli.DONE
    printed = capsys.readouterr().out.rstrip().splitlines()
    assert len(printed) == 8
    told = {line.strip() for line, code in lines(tour) if code}
    assert not [line for line in printed if line.strip() not in told]


KEY = re.compile(r"(?<![\w+])((?:(?:Ctrl|Alt|Shift)\+)+[A-Z0-9][A-Za-z0-9]*|F\d{1,2}|`[\[\],.A-Z]`)(?![\w+])")
#: Pages on which F and a number is a factor of an experiment.
FACTORS = {"misprints.md", "spt.md"}
#: Keys of every table and text field, which are nobody's command.
EVERYWHERE = {"Ctrl+C", "Ctrl+V"}


def program_keys() -> set[str]:
    from desktop.ui.actions import COMMANDS, MOUSE
    from desktop.ui.compare.actions import COMPARE_COMMANDS
    from desktop.ui.experiment.actions import EXPERIMENT_COMMANDS
    from desktop.ui.model.actions import MODEL_COMMANDS
    from desktop.ui.presentation import KEYS
    from desktop.ui.tables import FILTER
    from desktop.ui.watch_page import WATCH_COMMANDS

    keys = [
        key
        for row in (*COMMANDS, *COMPARE_COMMANDS, *EXPERIMENT_COMMANDS, *MODEL_COMMANDS, *WATCH_COMMANDS)
        for key in row.keys
    ]
    known = {QKeySequence(key).toString() for key in keys}
    told = " ".join(keys for keys, _ in (*KEYS, *MOUSE)) + " ".join(text for _, text in MOUSE)
    return known | {FILTER} | EVERYWHERE | set(re.findall(r"[^\s,]+", told))


def test_keys_exist() -> None:
    known = program_keys()
    named = 0
    for page in [ROOT / "README.md", *PAGES]:
        text = "\n".join(line for line, code in lines(page) if not code)
        for found in KEY.finditer(text):
            key = found[1].strip("`")
            if re.fullmatch(r"F\d+", key) and page.name in FACTORS:
                continue
            named += 1
            assert QKeySequence(key).toString() in known or key in known, f"{page.name} names the key {key}"
    assert named > 30


# ---- pictures


def test_pictures_are_used_and_exist() -> None:
    used = {file for page in TEXTS for file, _ in targets(page, PICTURE)}
    there = {file.resolve() for file in (DOCS / "pictures").glob("*.png")}
    assert used == there
    assert sum(file.stat().st_size for file in there) < 3 << 20
    for page in TEXTS:
        assert all(found[1].strip() for found in PICTURE.finditer(prose(page))), "a picture without words"


# ---- the page for newcomers


def test_three_values_go_the_way_that_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from desktop.data import opening

    monkeypatch.setattr(opening, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    page = DOCS / "three-values.md"
    named = re.findall(r"`([\w/]+\.py)`: `(\w+)`", page.read_text(encoding="utf-8"))
    assert len(named) > 20
    for file, name in named:
        tree = ast.parse((ROOT / "desktop" / file).read_text(encoding="utf-8"))
        defined = {one.name for one in ast.walk(tree) if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
        assert name in defined, f"{file} has no {name}"
    names: dict[str, Any] = {"__name__": "three"}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), names)


# ---- examples of the developers' page


def example(named: str) -> dict[str, Any]:
    """What the block of developing.md that defines `named` leaves behind."""
    code = next(block for block in blocks(DOCS / "developing.md", "python") if named in block)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "developing.md", "exec"), names)
    return names


def test_the_example_of_an_importer_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from desktop.data import importers, opening
    from desktop.data.opening import open_trace
    from desktop.data.utilization import build
    from desktop.errors import TraceFormatError

    place = "desktop.data.importers.ticker"
    module = ModuleType(place)
    module.__dict__.update(example("IMPORTER = "))
    monkeypatch.setitem(sys.modules, place, module)
    monkeypatch.setattr(importers, "FORMATS", ("ticker", *importers.FORMATS))
    monkeypatch.setattr(opening, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    trace = tmp_path / "run"
    trace.write_text(
        "TICKER 1\nrank 0\n0 enter main\n100 enter MPI_Recv\n300 leave MPI_Recv\nwhat?\n400 leave main\n"
        "rank 1\n0 enter main\n400 leave main\n"
    )
    with open_trace(trace) as store:
        assert store.report.lossy and [f.count for f in store.report] == [1]
        curve = build(store).curve()
        assert curve.capacity == 2
        assert curve.level.tolist() == [2, 1, 2]
        assert (np.asarray(curve.edges) * curve.unit * 1e6).tolist() == pytest.approx([0, 100, 300, 400])
    trace.write_text("TICKER 1\n")
    with pytest.raises(TraceFormatError, match="no rank"):
        open_trace(trace)


#: What one row of the table makes of a space, in a process that had it from the start.
_ONE_ROW = """
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

from desktop.core import bases

cubic = sys.modules["desktop.core.bases.cubic"] = ModuleType("desktop.core.bases.cubic")
exec(compile(Path(sys.argv[1]).read_text(encoding="utf-8"), "cubic.py", "exec"), cubic.__dict__)
bases.TABLE.append(cubic.SPACE)

from desktop import cli
from desktop.core.curve import StepCurve
from desktop.core.labels import DEGREES, MODELS
from desktop.core.phase_stats import phase_table
from desktop.core.phases import fit
from desktop.core.pieces import residual
from desktop.core.envelope import envelope
from desktop.data.report import _formula
from desktop.ui.actions import COMMANDS
from desktop.workbench.model import PhaseSettings

assert DEGREES[5] == "cubic" and MODELS["cubic"] == "Cubic"
rng = np.random.default_rng(1)
edges = np.concatenate(([0.0], np.cumsum(rng.integers(1, 9, 80)))) / 8
curve = StepCurve(edges, rng.integers(0, 9, 80), 8)
found = fit(curve, 3, "cubic")
assert found.upper / found.lower - 1 < 1e-9 and found.degree.tolist() == [5, 5, 5]
node, weight = np.polynomial.legendre.leggauss(4)
for k in range(3):
    a, b = found.breaks[k : k + 2]
    cuts = np.unique(np.concatenate([[a, b], edges[(edges > a) & (edges < b)]]))
    half = np.diff(cuts)[:, None] / 2
    t = (cuts[:-1, None] + half + half * node).ravel()
    y, w = curve.level[np.searchsorted(edges, t) - 1], np.sqrt((half * weight).ravel())
    u = (2 * t - a - b) / (b - a)
    best = np.polynomial.legendre.legfit(u, y, 3, w=w)
    np.testing.assert_allclose(found.coefficients[k], best, atol=1e-9)
    again = np.polynomial.polynomial.polyval(t - a, found.powers[k])
    np.testing.assert_allclose(found.value(t), again, atol=1e-8)
    left = (w * (y - np.polynomial.legendre.legval(u, best))) ** 2
    assert abs(found.error[k] ** 2 / left.sum() - 1) < 1e-9
told = residual(envelope(curve), found, np.linspace(0, edges[-1], 30))
assert (told.minimum <= told.mean).all() and (told.mean <= told.maximum).all()
# A cubic among levels: the mixed model and the budget take it for its price, and the table says so.
at = np.arange(400) / 200
wave = np.where(at < 1, 4.0, 4 + 40 * (at - 1) * (at - 1.5) * (at - 2)) + 0 * at
mix = StepCurve(np.arange(401.0) / 200, wave, 8)
for model, n in (("mixed", 2), ("budget", 7)):
    both = fit(mix, n, model, basis="cubic")
    assert both.degree.tolist() == [0, 5] and abs(both.breaks[1] - 1) < 0.02, both
assert [len(row.coefficients) for row in phase_table(mix, both)] == [1, 4]
assert "³" in _formula(phase_table(mix, both)[1])
assert PhaseSettings("mixed", 2, also="cubic").problem() == ""
assert "seconds" in PhaseSettings("cubic", seconds=1.0).problem()
assert any(one.id == "model_cubic" for one in COMMANDS)
path = Path(sys.argv[1]).with_name("run.csv")
path.write_text("".join(f"{t:g},{v:g}\\n" for t, v in zip(edges, [*curve.level, 0])))
assert cli.run(["phases", str(path), "--model", "cubic", "-n", "3"]) == 0
assert cli.run(["phases", str(path), "--model", "mixed", "--also", "cubic", "-n", "3", "--csv"]) == 0
page = path.with_suffix(".html")
assert cli.run(["report", str(path), "-o", str(page), "--model", "cubic", "-n", "3"]) == 0
assert "cubic" in page.read_text(encoding="utf-8")
"""


def test_the_example_of_a_space_is_all_that_a_new_basis_takes(tmp_path: Path) -> None:
    code = next(block for block in blocks(DOCS / "developing.md", "python") if "SPACE = " in block)
    (tmp_path / "cubic.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _ONE_ROW, str(tmp_path / "cubic.py")],
        capture_output=True,
        text=True,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "XDG_CACHE_HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "  cubic" in done.stdout and "cubic, n = 3" in done.stdout


def test_the_example_of_a_function_holds() -> None:
    example("Characteristic(")


def test_the_example_of_a_panel_shows_phases(qtbot: QtBot) -> None:
    from types import SimpleNamespace

    from desktop.workbench.workbench import Snapshot

    panel = example("PANEL = ")["PANEL"]
    widget = panel.make(SimpleNamespace(snapshot=Snapshot()))
    qtbot.addWidget(widget)
    widget.show_snapshot(Snapshot(), Snapshot())
    assert "No trace is open" in widget.words.text()
    rows = tuple(SimpleNamespace(start_s=a, end_s=b) for a, b in ((0, 1), (1, 4), (4, 5)))
    widget.show_snapshot(Snapshot(), SimpleNamespace(rows=rows))
    assert widget.words.text() == "Phase 2: 3.000 s"


def test_the_example_of_a_figure_draws(qtbot: QtBot) -> None:
    from desktop.core.curve import StepCurve
    from desktop.core.phase_stats import phase_table
    from desktop.core.phases import fit
    from desktop.data.material import Material
    from desktop.ui import figures
    from desktop.ui.drawing import SvgSheet

    curve = StepCurve(edges=[0, 2, 5], level=[4, 1], capacity=4)
    found = fit(curve, 2, "constant")
    material = Material("made", curve, {"computing": curve}, found, tuple(phase_table(curve, found)))
    sheet = SvgSheet(80, 50)
    frame = figures._Frame(sheet, figures.Look(width=80, height=50), {"title": ""})
    before = sheet.svg("", inline=False).count("<rect") + sheet.svg("", inline=False).count("<path")
    example("def _efficiency")["_efficiency"](frame, material)
    drawn = sheet.svg("", inline=False)
    assert drawn.count("<rect") + drawn.count("<path") > before


def test_tables_are_listed_as_they_are_declared() -> None:
    from desktop.core.frames import TABLES

    listed = (DOCS / "tables.md").read_text(encoding="utf-8").split("\n### ")[1:]
    assert len(listed) == len(TABLES)
    for text, fields in zip(listed, TABLES.values(), strict=True):
        rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in text.splitlines()
                if line.startswith("| `")]  # fmt: skip
        assert rows == [(f"`{f.name}`", f.dtype, f.unit, f.meaning) for f in fields]
