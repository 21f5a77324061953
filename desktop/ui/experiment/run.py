"""Step 3: the commands and the user's consent, the trials as they come in, and responses from elsewhere."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QLabel, QLineEdit, QProgressBar

from desktop.core.units import capital, count, digits, left, quantity, trimmed
from desktop.data.columns import Column, TableRow, Value
from desktop.data.experiment import Experiment, Trial
from desktop.ui.experiment.parts import Step, command_list
from desktop.ui.mnemonics import rename
from desktop.ui.pages import asked_path, beside, button, group, lay_out, quiet, row, scrolled, set_up, stacked
from desktop.ui.tables import FrameView
from desktop.workbench.experimenting import ExperimentBench, ExperimentSnapshot, ImportedTrials

_TONES = {"failed": "warning", "disturbed": "warning", "excluded": "faint", "planned": "faint"}


class RunStep(Step):
    """Buttons that act on the runner, and one line a trial."""

    title = "Run"

    def __init__(self, bench: ExperimentBench) -> None:
        super().__init__(bench)
        self.commands = command_list("All commands that would be run")
        self.heading = quiet()
        self.agree = set_up(
            QCheckBox("I have &read these commands; run them when I say so"), objectName="agree",
            clicked=self._agree,
        )  # fmt: skip
        self.check = button(
            "&Check and estimate",
            bench.check,
            "Build and run it without delays and with all of them",
            "check",
        )
        self.run = button("R&un", bench.run, "Run all remaining trials", "run")
        self.pause = button("&Pause", bench.pause_or_go_on, "After the trial that is running", "pause")
        wide = max(button(text, bench.stop).sizeHint().width() for text in ("Pause", "Go on"))
        self.pause.setMinimumWidth(wide)
        self.stop = button("S&top after this trial", bench.stop, "", "stop")
        dropped = "Discard the running trial"
        self.stop_now = button("Stop at once", lambda: bench.stop(at_once=True), dropped, "stop_now")
        self.progress = set_up(QProgressBar(), textVisible=False, accessibleName="Trials done")
        self.stands = set_up(QLabel(), wordWrap=True, alignment=Qt.AlignmentFlag.AlignTop)
        # As much room whatever it says: the buttons above it would move while trials run.
        self._room = scrolled(self.stands)
        self._room.setFixedHeight(4 * self.fontMetrics().lineSpacing() + 4)
        self.trials = set_up(FrameView("Trials", paste=True), pasted=self._pasted)
        self.trials.frames.edited.connect(self._typed)
        self.reason = set_up(QLineEdit(), placeholderText="Reason")
        self.reason.setAccessibleName("Reason for leaving the chosen trial out")
        self.leave_out = button("Leave trial out", self._leave_out, "It is kept in the file, with the reason")
        self.elsewhere = quiet(
            "Measured elsewhere? Type responses into the table, paste them (Ctrl+V) from the chosen row on, "
            "or open a table in any order of columns."
        )
        top = group("Commands", self.heading, self.commands, self.agree)
        buttons = row(self.check, self.run, self.pause, self.stop, self.stop_now, None)
        controls = group("Trials", buttons, self.progress, self._room)
        ways = row(
            button("Open responses…", self._open, "A table with a heading, columns in any order"),
            button("Paste responses", self.trials.paste, "From the chosen row on, or as the heading says"),
            button("Collect job results", bench.collect, "What a job array left in results/"),
            None,
        )
        self.entering = group("Responses from elsewhere", self.elsewhere, ways)
        self._side = stacked((top, 1), controls, self.entering)
        below = stacked((self.trials, 1), row(QLabel("Chosen trial:"), self.reason, self.leave_out))
        lay_out(self.content, beside(self._side, below, 44))

    # ---- showing

    def show_snapshot(self, old: ExperimentSnapshot, new: ExperimentSnapshot) -> None:
        experiment, imported = new.project.experiment, new.project.imported
        self._side.setVisible(experiment is not None)
        if imported is not None:
            if imported is not old.project.imported:
                self._show_imported(imported)
            return
        if experiment is None:
            return
        if new.commands is not old.commands:
            self.commands.setPlainText("\n".join(new.commands))
        shell = ", handed to a shell," if experiment.program.shell else ""
        self.heading.setText(f"{count(len(new.commands), 'command')}{shell} in {experiment.folder}:")
        self.agree.setChecked(new.consented)
        self.agree.setEnabled(bool(new.commands) and not new.consented)
        idle = new.running == "idle"
        self.check.setEnabled(idle and new.consented)
        self.run.setEnabled(idle and new.consented)
        rename(self.pause, "Go on" if new.running == "paused" else "Pause")
        for widget in (self.pause, self.stop):
            widget.setEnabled(new.running in ("running", "paused"))
        self.stop_now.setEnabled(not idle)
        self.leave_out.setEnabled(idle)
        self.entering.setEnabled(idle)
        self._show_progress(new)
        changed = (new.trials, new.design, experiment) != (old.trials, old.design, old.project.experiment)
        if changed or old.project.imported is not None:
            self._show_trials(experiment, new.trials)

    def _show_progress(self, new: ExperimentSnapshot) -> None:
        state = new.state
        done, planned = (len(state.good), state.planned) if state else (0, 0)
        self.progress.setRange(0, max(planned, 1))
        self.progress.setValue(done)
        parts = [f"{done} of {count(planned, 'trial')} done"]
        if state and state.given_up:
            parts.append(f"{count(len(state.given_up), 'treatment')} given up after three failures")
        if new.task is not None and new.running != "idle":
            parts.append(new.task.text or new.task.title)
        elif math.isfinite(new.run_s) and done < planned:
            parts.append(left((planned - done) * new.run_s))
        if new.estimate is not None:
            e = new.estimate
            parts.append(
                f"one unperturbed run takes {quantity(e.run_s, 's')} (standard deviation "
                f"{quantity(e.sigma_s, 's', 2)}); {count(e.replicates, 'replicate')} would show an effect of "
                "a tenth of it"
            )
        if new.running in ("paused", "stopping"):
            parts.append({"paused": "paused after this trial"}.get(new.running, "stopping"))
        if not new.consented and new.running == "idle" and done < planned:
            parts.append("read the commands and tick the box to run")
        if planned and done == planned and new.running == "idle":
            parts.append("step 4 reads them, step 2 adds replicates or a fold")
        text = "; ".join(parts)
        self.stands.setText(f"{capital(text)}.")

    def _show_trials(self, experiment: Experiment, trials: tuple[Trial, ...]) -> None:
        columns = [
            Column("Order", "Place in the random order"),
            Column("Status"),
            *(Column(r.name, "Type or paste what was measured elsewhere", r.unit or "", editable=True)
              for r in experiment.responses),
            Column("Replicate"),
            Column("Treatment"),
            *map(Column, experiment.names),
            Column("Attempt"),
            Column("Others", "Cores that other work kept busy during the trial", "cores"),
            Column("Load", "Load average of the machine"),
            Column("Note"),
        ]  # fmt: skip
        excluded = {(t.order, t.attempt): t.note for t in trials if t.status == "excluded"}
        by_order: dict[int, list[Trial]] = defaultdict(list)
        for trial in trials:
            if trial.status != "excluded":
                by_order[trial.order].append(trial)
        rows = []
        missing: tuple[Value, ...] = (None,) * len(experiment.responses)
        for order, (replicate, treatment) in experiment.planned().items():
            place: tuple[Value, ...] = (replicate + 1, treatment + 1, *experiment.signs(treatment))
            for trial in by_order.get(order, []):
                reason = excluded.get((order, trial.attempt))
                status, note = (trial.status, trial.note) if reason is None else ("excluded", reason)
                measured: list[Value] = [v if math.isfinite(v) else None for v in
                                         (*trial.responses, trial.other_busy_cores, trial.load)]  # fmt: skip
                values = tuple(measured[:-2]) or missing
                cells = (order, status, *values, *place, trial.attempt, *measured[-2:], note)
                rows.append(TableRow(cells, f"{order}.{trial.attempt}", _TONES.get(status, "")))
            if not by_order.get(order):
                cells = (order, "planned", *missing, *place, None, None, None, "")
                rows.append(TableRow(cells, f"{order}.0", "faint"))
        self.trials.show_rows(columns, rows)

    def _show_imported(self, imported: ImportedTrials) -> None:
        if imported.table is None:
            self.trials.show_rows((), [])
            return
        data = imported.table.data
        out = dict(imported.left_out)
        columns = [
            Column("Trial"), Column("Block"), *map(Column, data.factors), Column(imported.table.response),
            Column("Status"), Column("Note"),
        ]  # fmt: skip
        rows = []
        for k, label in enumerate(data.label):
            array = imported.table.array
            levels = [trimmed(v, 6) if array else "+" if v > 0 else "−" for v in data.x[k]]
            y = float(data.y[k])
            status = "left out" if label in out else "ok" if math.isfinite(y) else "no response"
            trial: Value = int(label) if label.isdigit() else label
            cells = (trial, int(data.block[k]) + 1, *levels, y, status, out.get(label, ""))
            rows.append(TableRow(cells, label, "" if status == "ok" else "faint"))
        self.trials.show_rows(columns, rows)

    # ---- acting

    def _agree(self, on: bool) -> None:
        if on:
            self.bench.consent()

    def _leave_out(self) -> None:
        key, reason = self.trials.key, self.reason.text()
        if not key:
            self.bench.complain("choose a trial in the table first")
            return
        imported = self.bench.snapshot.project.imported is not None
        order = int(key.partition(".")[0]) if not imported else 0
        if self.bench.leave_out(key, reason) if imported else self.bench.exclude(order, reason):
            self.reason.clear()

    def _typed(self, key: str, column: int, text: str) -> None:
        experiment = self.bench.snapshot.project.experiment
        if experiment is None or not text:
            return
        column_of, order = column - 2, int(key.partition(".")[0])
        value = self.bench.result_of(lambda: _number(text))
        if value is None:
            return
        state = self.bench.snapshot.state
        good = next((t for t in state.good.values() if t.order == order), None) if state else None
        values = list(good.responses if good else (math.nan,) * len(experiment.responses))
        if values[column_of] != value:
            values[column_of] = value
            self.bench.enter({order: tuple(values)})

    def _pasted(self, text: str, key: str) -> None:
        if self.bench.snapshot.project.experiment is not None:
            self.bench.paste(text, int(key.partition(".")[0]) if key else 1)

    def _open(self) -> None:
        path = asked_path(self, "Responses", files="Tables (*.csv *.tsv *.txt)")
        if path is not None:
            self.open_responses(path)

    def open_responses(self, path: Path) -> None:
        """Enter the responses in a table."""
        text = self.bench.result_of(lambda: path.read_text(encoding="utf-8-sig"))
        if text is not None:
            self.bench.paste(text)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is no number; write it with a point, such as {digits(0.125)}")
    return value
