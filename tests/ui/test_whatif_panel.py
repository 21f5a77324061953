"""The panel "What if" in the real window: sliders, what they predict, what is drawn, what would help most."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTreeView

from desktop import resources
from desktop.core.labels import ACTIVITIES
from desktop.core.units import grouped, quantity
from desktop.data.material import tables
from desktop.data.structure import Decoder, Misfit, encode
from desktop.ui.exporting import material_of
from desktop.ui.frame import Frame
from desktop.workbench.model import Project, names
from tests.data_layer import archives

pytestmark = pytest.mark.usefixtures("own_cache")

TIMEOUT = 60_000


@pytest.fixture
def window(qtbot, settings, no_thread_left):
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.resize(1500, 950)
    made.frame.show()
    yield made
    made.frame.close_unasked()


@pytest.fixture
def panel(qtbot, window):
    window.open_path(next(s.path for s in resources.samples() if "cholesky" in str(s.path)))
    qtbot.waitUntil(
        lambda: window.workbench.snapshot.fit is not None and not window.workbench.busy, timeout=TIMEOUT
    )
    assert window.workbench.snapshot.what_if.prediction is None  # nobody has asked
    window.show_panel("whatif")
    settled(qtbot, window)
    return window.panel("whatif")


def settled(qtbot, window):
    def done() -> bool:
        what_if = window.workbench.snapshot.what_if
        return (
            what_if.prediction is not None
            and what_if.helps is not None
            and not what_if.outdated
            and not window.workbench.busy
        )

    qtbot.waitUntil(done, timeout=TIMEOUT)


def test_sliders_predict_and_draw_and_are_taken_back(qtbot, window, panel):
    bench = window.workbench
    assert panel.words.text().startswith("The run lasts 1168 ms")
    assert bench.snapshot.what_if.drawn is None and panel.region.count() == 3
    panel.region.setCurrentIndex(panel.region.findText("factor"))
    panel.region_speed.put(2.0)
    panel.region_speed.turned.emit()
    settled(qtbot, window)
    found = bench.snapshot.what_if.drawn
    assert found.changes.regions == (("factor", panel.region_speed.number),)
    assert found.duration_s < found.recorded_s and "factor 2 times faster" in panel.words.text()
    described = window.curve_view.description()
    assert [series.ink for series in described.lanes[0].series][-1] == "predicted"
    assert described.lanes[0].moved.tolist() == found.breaks_s.tolist()
    assert any(entry.words.startswith("What if: ") for entry in described.legend)
    assert any("factor 2 times faster" in remark for remark in described.remarks)

    # A figure and its table say the same.
    material = material_of(bench.snapshot)
    assert material.predicted.duration_s == found.duration_s
    rows = list(tables(material, "curve")["predicted"])
    assert rows[0] == ("start_s", "end_s", "processors") and math.isclose(rows[-1][1], found.duration_s)

    assert panel.reset.isEnabled()
    qtbot.mouseClick(panel.reset, Qt.MouseButton.LeftButton)
    assert bench.snapshot.what_if.drawn is None and panel.region_speed.number == 1.0
    assert "predicted" not in [series.ink for series in window.curve_view.description().lanes[0].series]
    assert panel.words.text().startswith("The run lasts 1168 ms") and panel.region_speed.isEnabled()
    # Also what is being predicted is taken back at once, and sliders go on.
    panel.region_speed.put(4.0)
    panel.region_speed.turned.emit()
    assert bench.snapshot.what_if.outdated
    assert panel.words.text() == "The run lasts 1168 ms. Predicting …", (
        "there is no number yet, nor 'no change'"
    )
    qtbot.mouseClick(panel.reset, Qt.MouseButton.LeftButton)
    assert panel.words.text().startswith("The run lasts 1168 ms") and panel.region_speed.isEnabled()
    panel.region_speed.put(2.0)
    panel.region_speed.turned.emit()
    settled(qtbot, window)
    assert bench.snapshot.what_if.drawn.duration_s == found.duration_s


def test_regions_have_the_names_that_the_project_gives_them(qtbot, window, panel):
    bench = window.workbench

    def listed() -> str:
        model = panel.helps.model()
        return "\n".join(str(model.index(row, 0).data()) for row in range(model.rowCount()))

    assert panel.region.findText("factor") >= 0 and "factor twice as fast" in listed()
    bench.name_region("factor", "decompose")
    assert panel.region.findText("factor") == -1 and "decompose twice as fast" in listed()
    panel.region.setCurrentIndex(panel.region.findText("decompose"))
    panel.region_speed.put(2.0)
    panel.region_speed.turned.emit()
    settled(qtbot, window)
    assert bench.snapshot.what_if.drawn.changes.regions == (("factor", 2.0),), "saved by the trace's name"
    assert "decompose 2 times faster" in panel.words.text()
    assert any("decompose 2 times faster" in remark for remark in window.curve_view.description().remarks)
    bench.name_region("factor", "solve")
    assert "solve 2 times faster" in panel.words.text()
    assert any("solve 2 times faster" in remark for remark in window.curve_view.description().remarks)


def test_a_range_is_shown_with_its_reason(qtbot, window, monkeypatch, tmp_path):
    monkeypatch.setattr("desktop.data.whatif.crowding", lambda store: "4 threads shared 2 cores.")
    window.open_path(next(archives.unpack("ezt_psort_8_dilated", tmp_path).rglob("*.otf2")))
    qtbot.waitUntil(
        lambda: window.workbench.snapshot.fit is not None and not window.workbench.busy, timeout=TIMEOUT
    )
    window.show_panel("whatif")
    settled(qtbot, window)
    panel, what_if = window.panel("whatif"), window.workbench.snapshot.what_if
    assert "shared" not in panel.words.text() and math.isnan(what_if.prediction.low_s)
    panel.rank_speed.put(4.0)
    panel.rank_speed.turned.emit()
    settled(qtbot, window)
    found = window.workbench.snapshot.what_if.prediction
    assert found.low_s < found.duration_s
    said = f"{quantity(found.low_s, 's')} to {quantity(found.duration_s, 's')} instead of"
    assert panel.words.text().startswith(said) and panel.words.text().endswith("4 threads shared 2 cores.")


def test_the_last_of_many_turns_is_predicted(qtbot, window, panel):
    panel.network.setCurrentIndex(1)
    panel.network.activated.emit(1)
    for latency in (1e-6, 1e-5, 1e-4, 1e-3):
        panel.latency.put(latency)
        panel.latency.turned.emit()
    settled(qtbot, window)
    found = window.workbench.snapshot.what_if.prediction
    assert found.changes.network.latency_s == panel.latency.number == 1e-3
    assert found.duration_s > found.recorded_s
    panel.buses.setValue(2)
    settled(qtbot, window)
    bench, nav = window.workbench, window.curve_view.navigation
    found = bench.snapshot.what_if.prediction
    assert found.changes.network.buses == 2
    # The axis is as long as the run would be; what was asked is undone, and kept with the project.
    assert nav.end == nav.b == pytest.approx(found.duration_s)
    tree = encode(bench.project, Path("/"))
    assert Decoder(Path("/"), names()).decode(Project, tree).what_if == found.changes
    for wrong in ({"network": {"latency_s": -1.0}}, {"regions": [["factor", 0.0]]}):
        with pytest.raises(Misfit, match="not possible"):
            Decoder(Path("/"), names()).decode(Project, {"what_if": wrong})
    bench.undo()
    settled(qtbot, window)
    assert bench.project.what_if is None and bench.snapshot.what_if.drawn is None
    assert panel.network.currentIndex() == 0 and nav.end == nav.b == pytest.approx(found.recorded_s)
    bench.redo()
    settled(qtbot, window)
    assert bench.snapshot.what_if.drawn.changes == found.changes and panel.buses.value() == 2


def test_an_entry_of_what_would_help_is_applied(qtbot, window, panel):
    helps = window.workbench.snapshot.what_if.helps
    order = [(one.bound, -one.saved_s) for one in helps]
    assert order == sorted(order) and not helps[0].bound
    model = panel.helps.model()
    rows = [model.index(k, 0).data() for k in range(model.rowCount())]
    assert [text.startswith("Bound: ") for text in rows] == [one.bound for one in helps] and any(
        one.bound for one in helps
    )
    place = next(k for k, one in enumerate(helps) if one.title == "forward_solve twice as fast")
    panel.helps.chosen.emit(place)
    settled(qtbot, window)
    found = window.workbench.snapshot.what_if.drawn
    assert found.changes == helps[place].changes
    assert found.saved_s == pytest.approx(helps[place].saved_s)
    assert (panel.region.currentText(), panel.region_speed.number) == (
        "forward_solve",
        pytest.approx(2, rel=0.01),
    )


def test_an_entry_can_be_applied_again_and_says_what_it_is_compared_with(qtbot, window, panel):
    helps, view = window.workbench.snapshot.what_if.helps, panel.helps
    place = next(k for k, one in enumerate(helps) if one.title == "Half the latency")

    def click() -> None:
        index = view.frames.index(place, 0)
        view.scrollTo(index)
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(index).center())
        settled(qtbot, window)

    click()
    assert view.keys == (place,)
    assert window.actions_by_id["undo"].text() == "Undo change the prediction"
    said = panel.words.text()
    assert (
        f"That is {quantity(helps[place].saved_s, 's')} less than on the network as it is estimated" in said
    )
    shown = {value.text() for value, _ in panel._values}
    network = helps[place].changes.network
    assert {quantity(network.latency_s, "s"), quantity(network.bandwidth, "B/s")} <= shown
    assert f"latency {quantity(network.latency_s, 's')}" in said
    qtbot.mouseClick(panel.reset, Qt.MouseButton.LeftButton)
    settled(qtbot, window)
    assert view.keys == () and window.workbench.snapshot.what_if.changes is None
    click()
    assert window.workbench.snapshot.what_if.prediction.changes == helps[place].changes
    panel.latency.setValue(panel.latency.value() + 10)
    settled(qtbot, window)
    assert view.keys == () and panel.latency.number != network.latency_s


def test_why_nothing_is_predicted_is_said_as_the_profile_names_its_activities(qtbot, window):
    """In this trace no receive is known, and the tracer was busy for a moment."""
    window.open_path(next(s.path for s in resources.samples() if "wave1d" in str(s.path)))
    qtbot.waitUntil(
        lambda: window.workbench.snapshot.fit is not None and not window.workbench.busy, timeout=TIMEOUT
    )
    window.show_panel("whatif")
    panel = window.panel("whatif")
    why = f"{grouped(1400)} messages sent here are not known to be received."
    said = f"Nothing can be predicted for this run. {why}"
    qtbot.waitUntil(lambda: panel.words.text() == said, timeout=TIMEOUT)
    assert not panel.region_speed.isEnabled()
    window.show_panel("profile")
    view = window.panel("profile").findChild(QTreeView)
    qtbot.waitUntil(lambda: view.isVisible() and view.model().rowCount() > 0, timeout=TIMEOUT)
    frame = view.frames.frame
    assert set(frame["activity"]) - {""} <= set(ACTIVITIES.values())
    assert "Not measured" in set(frame["activity"])


def test_other_phases_are_other_changes(qtbot, window, panel):
    window.workbench.set_n(5)
    settled(qtbot, window)
    assert panel.phase.count() == 5
    panel.phase.setCurrentIndex(4)
    panel.balanced.setChecked(True)
    settled(qtbot, window)
    assert window.workbench.snapshot.what_if.prediction.changes.balanced == (4,)
    window.workbench.set_n(2)  # there is no fifth one any more
    settled(qtbot, window)
    assert window.workbench.snapshot.what_if.problem == "" and panel.phase.count() == 2


def test_all_settings_are_seen_on_a_small_screen(qtbot, window, panel):
    window.frame.resize(1366, 768)
    for part in (panel.words, panel.reset, panel.network, panel.eager, panel.last_rank, panel.rank_speed):
        qtbot.waitUntil(
            lambda part=part: part.visibleRegion().boundingRect().size() == part.size(), timeout=TIMEOUT
        )


def test_a_curve_is_said_to_have_no_causes_and_no_prediction(qtbot, window, tmp_path):
    (tmp_path / "curve.csv").write_text("0 1\n1 4\n2 2\n3 0\n")
    window.open_path(tmp_path / "curve.csv")
    qtbot.waitUntil(
        lambda: window.workbench.snapshot.fit is not None and not window.workbench.busy, timeout=TIMEOUT
    )
    window.show_panel("whatif")
    settled(qtbot, window)
    panel = window.panel("whatif")
    said = "Nothing can be predicted for this run. The source is a curve"
    assert panel.words.text().startswith(said) and not panel.network.isEnabled()
    assert window.panel("phases").why.toPlainText().startswith("This is a curve without events")
