"""The page of synthetic-perturbation experiments: five steps from the program to a table of effects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QStackedWidget, QTabWidget, QWidget

from desktop.core.units import capital
from desktop.data.atomic import write_text
from desktop.ui.experiment.actions import EXPERIMENT_COMMANDS, EXPERIMENT_MENUS, EXPERIMENT_MOUSE, STEPS
from desktop.ui.experiment.compare import CompareStep
from desktop.ui.experiment.design import DesignStep
from desktop.ui.experiment.new import NewExperimentDialog
from desktop.ui.experiment.parts import Step
from desktop.ui.experiment.program import ProgramStep
from desktop.ui.experiment.read import ReadStep
from desktop.ui.experiment.run import RunStep
from desktop.ui.page import Page
from desktop.ui.pages import first_page, quiet, scrolled, set_up
from desktop.ui.plots.chart import Chart
from desktop.ui.tables import tab_separated
from desktop.ui.workers import MainThread
from desktop.workbench.experimenting import ExperimentBench, ExperimentSnapshot

if TYPE_CHECKING:
    from desktop.ui.frame import Frame

_TITLE = "Experiment – Phasewright"
#: In the order of their tabs.
_STEPS: tuple[type[Step], ...] = (ProgramStep, DesignStep, RunStep, ReadStep, CompareStep)
S = TypeVar("S", bound=Step)


class ExperimentPage(Page):
    """Shows the snapshots of its bench, and passes on the user's actions. Opening anything runs nothing."""

    KIND = NAME = "experiment"
    COMMANDS = EXPERIMENT_COMMANDS
    MENUS = EXPERIMENT_MENUS
    MOUSE = EXPERIMENT_MOUSE
    PAGE = "spt.md"

    bench: ExperimentBench

    def __init__(self, frame: Frame, bench: ExperimentBench | None = None) -> None:
        super().__init__(frame)
        self.bench = bench or ExperimentBench(MainThread().deliver, history=frame.main.history)
        if bench is not None:
            bench.share()
            bench.pin_record_trace()
        self.setWindowTitle(f"[*]{_TITLE}")
        self._make_centre()
        self._make_actions()
        self._note = QLabel()
        self.status = (self._note,)
        self.bench.subscribe(self._show_snapshot)
        self._begin()
        self._show_snapshot(ExperimentSnapshot(), self.bench.snapshot)

    # ---- building

    def _make_centre(self) -> None:
        # From the outside inwards: Qt looks through all that is in a widget which gets a parent.
        self._stack = QStackedWidget()
        self.setCentralWidget(self._stack)
        self._stack.addWidget(scrolled(self._start_page()))
        self.steps = set_up(QTabWidget(), objectName="steps", accessibleName="Steps of the experiment")
        self._stack.addWidget(self.steps)
        self._made: dict[type[Step], Step] = {}
        self._places = {kind: QStackedWidget() for kind in _STEPS}
        for number, (name, place) in enumerate(zip(STEPS, self._places.values(), strict=True), 1):
            self.steps.addTab(place, f"{number}  {name}")
            self.steps.setTabToolTip(number - 1, f"Ctrl+{number}")
        self.steps.currentChanged.connect(self._turned)

    def step(self, kind: type[S]) -> S:
        """A step, made when it is first needed: all of them take as long as the rest of the page."""
        made = self._made.get(kind)
        if made is None:
            made = self._made[kind] = kind(self.bench)
            self._places[kind].addWidget(made)
            self._join(made)
            made.show_snapshot(ExperimentSnapshot(), self.bench.snapshot)
        assert isinstance(made, kind)
        return made

    def _turned(self, number: int) -> None:
        self.step(_STEPS[number])
        self._refresh_actions()

    @property
    def program_page(self) -> ProgramStep:
        return self.step(ProgramStep)

    @property
    def design_page(self) -> DesignStep:
        return self.step(DesignStep)

    @property
    def run_page(self) -> RunStep:
        return self.step(RunStep)

    @property
    def read_page(self) -> ReadStep:
        return self.step(ReadStep)

    @property
    def compare_page(self) -> CompareStep:
        return self.step(CompareStep)

    def _start_page(self) -> QWidget:
        text = quiet(
            "Twelve places might be the bottleneck? Put a delay at each, run a designed experiment, and read "
            "from the effects which places the run time depends on, and how sure that is.\n\n"
            "The steps lead from the program over the design and the runs to the effects. Nothing is run "
            "before you have read the commands and agreed to them."
        )
        return first_page(
            "Experiments with artificial delays", text,
            ("New experiment…", "A program of your own: it is copied, and the copy gets the delays",
             self.choose_new),
            ("Open experiment…", "A folder with experiment.toml; or drop it here", self.choose_experiment),
            ("Open table of runs…", "Trials that were run elsewhere: levels and responses, CSV or TSV",
             self.choose_runs),
            ("Paste table of runs…", "The same from the clipboard; it is kept in a file that you name",
             self.choose_paste),
            ("Copy the bundled example…", "A parallel quicksort in C with six places, for a folder that "
             "you choose; it takes about 20 seconds to build and run", self.choose_example),
        )  # fmt: skip

    # ---- showing

    def _show_snapshot(self, old: ExperimentSnapshot, new: ExperimentSnapshot) -> None:
        """Draw what differs."""
        experiment, imported = new.project.experiment, new.project.imported
        filled = experiment is not None or imported is not None
        newly_filled = filled and (old.project.experiment is None and old.project.imported is None)
        self._stack.setCurrentIndex(int(filled))
        for step in tuple(self._made.values()):
            step.show_snapshot(old, new)
        if new.name != old.name or newly_filled:
            self._show_title(new)
        self.setWindowModified(not new.saved)
        if new.task is not old.task:
            # Trials say themselves how long they take, also after a pause or a kill.
            self.show_task("task", new.task, self.bench.cancel, timed=new.running == "idle")
        if new.problem != old.problem:
            self.tell_problem(new.problem, self.bench.dismiss_problem)
        if new.note != old.note:
            self._note.setText(capital(new.note) if new.note else "")
        if newly_filled or (filled and new.name != old.name):
            table = new.project.table
            compared = imported is not None and (table is None or table.array)
            self.show_step(0 if experiment is not None else 4 if compared else 3)
        if filled:
            self.step(_STEPS[self.steps.currentIndex()])
        self._refresh_actions()

    def _show_title(self, new: ExperimentSnapshot) -> None:
        path = self.source
        if path is not None:
            self.setWindowFilePath(str(path))
            if path.exists():
                self.settings.add_recent(path)
        self.setWindowTitle(f"{new.name}[*] – {_TITLE}" if new.name else f"[*]{_TITLE}")

    @property
    def snapshot(self) -> ExperimentSnapshot:
        return self.bench.snapshot

    @property
    def name(self) -> str:
        return self.snapshot.name

    @property
    def source(self) -> Path | None:
        experiment, imported = self.snapshot.project.experiment, self.snapshot.project.imported
        path = experiment.folder if experiment else imported.path if imported else None
        return None if path is None else path.absolute()

    @property
    def busy(self) -> bool:
        """Whether a result is still awaited."""
        return self.bench.busy

    # ---- files

    def open_path(self, path: Path) -> None:
        """Open an experiment or a table of runs; nothing is run."""
        self.bench.open(path)

    def choose_new(self) -> None:
        """Ask for the folder and factors of a new experiment."""
        NewExperimentDialog(self, self.bench, self.settings.folder).open()

    def choose_experiment(self) -> None:
        """Ask for the folder of an experiment, and open it."""
        self.ask_path("Open an experiment", self.open_path, mode="folder")

    def choose_runs(self) -> None:
        """Ask for a table of runs, and open it as an experiment."""
        self.ask_path("Open a table of runs", self.open_path, "Tables (*.csv *.tsv *.txt);;All files (*)")

    def choose_paste(self) -> None:
        """Open a table from the clipboard; kept in a file, so that it can be opened again."""
        text = QGuiApplication.clipboard().text()
        if not text.strip():
            self.bench.complain("the clipboard holds no text; copy a table with its heading first")
            return

        def keep(path: Path) -> None:
            if self.bench.attempt(lambda: write_text(path, text)):
                self.open_path(path)

        self.ask_path("Keep the table as", keep, "Tables (*.csv *.tsv *.txt)", mode="save")

    def choose_example(self) -> None:
        """Ask for a folder, copy the example experiment into it, and open the copy."""

        def copy(folder: Path) -> None:
            self.bench.open_example(folder if not any(folder.iterdir()) else folder / "quicksort")

        self.ask_path("Copy the example to", copy, mode="folder")

    def choose_report(self) -> None:
        """Ask for a file, and write the answer, tables and charts into it."""
        self.ask_path("Write a report", self.write_report, "Reports (*.html *.pdf *.pptx)", mode="save")

    def write_report(self, path: Path) -> None:
        """Write it in the background; by its suffix it is HTML, a PDF document or slides."""
        from desktop.data.report import Looks
        from desktop.ui.experiment.report import compose
        from desktop.ui.reporting import write

        new = self.snapshot
        if new.effects is None or new.answer is None:
            return
        report = compose(new.name, new.effects, new.answer, new.project.measured)
        looks = Looks(user_file=self.settings.user_file(path.suffix.lower()[1:]))
        self.bench.write_beside(path, lambda job: write(report, path, looks, job))

    def choose_trace(self) -> None:
        """Ask for a trace of the program, and show in which phases the region of a factor runs."""

        def pin(path: Path) -> None:
            self.show_step(3)
            self.read_page.lower_plots.setCurrentWidget(self.read_page.pinning)
            self.bench.pin(path)

        self.ask_path("Open a trace of the program", pin)

    def open_paths(self, paths: list[Path]) -> None:
        """Open the first here, the others on pages or in windows; on step 5 add them to the comparison."""
        if self._stack.currentIndex() == 1 and self.steps.currentIndex() == 4:
            for path in paths:
                self.bench.add_table(path)
            return
        self.open_path(paths[0])
        if paths[1:]:
            self.frame.main.trace.open_paths(paths[1:])

    # ---- commands

    def show_step(self, number: int) -> None:
        """Show a step, 0 to 4: program, design, run, read, compare."""
        self.steps.setCurrentIndex(number)

    def ask_pilot(self) -> None:
        """Show step 1 with the commands of a pilot, to be run if the user agrees."""
        self.show_step(0)
        self.program_page.ask_pilot()

    def ask_confirmation(self) -> None:
        """Show step 4 with the commands of runs that confirm, to be run if the user agrees."""
        self.show_step(3)
        self.read_page.ask_confirmation()

    def toggle_half(self) -> None:
        """Show effects as coefficients (half effects), or whole again."""
        half = not self.bench.snapshot.project.analysis.half
        self.bench.set_analysis(f"show {'half' if half else 'full'} effects", half=half)

    def keep_marked(self) -> None:
        """Reduce the model to the marked terms and their main effects."""
        if not self.bench.keep_marked():
            self.say("No effect is marked")

    def copy_effects(self) -> None:
        """Copy all rows of the table of effects, separated by tabs."""
        self.read_page.effects.copy(tab_separated, everything=True)
        self.say("The effect table is on the clipboard")

    def copy_picture(self) -> None:
        """Copy the chart that has the focus, else the half-normal plot, on white whatever the theme."""
        focus = self.focusWidget()
        chart = focus if isinstance(focus, Chart) else self.read_page.half_normal
        QGuiApplication.clipboard().setImage(chart.picture())
        self.say(f"{chart.accessibleName()}: the picture is on the clipboard")

    # ---- looks

    def show_anew(self) -> None:
        for step in self._made.values():
            step.show_snapshot(ExperimentSnapshot(), self.bench.snapshot)

    def _end(self) -> None:
        if self.snapshot.running != "idle":
            self.bench.stop(at_once=True)  # others may show the experiment, which then stays open
        if self.unsaved:
            self.bench.read_again()
        self.bench.release(self._show_snapshot)

    @property
    def unsaved(self) -> str:
        """A description that is not written to its file."""
        written = self.snapshot.saved or self.snapshot.project.experiment is None
        return "" if written else f"the description of {self.snapshot.name}"

    def save_work(self) -> bool:
        return self.bench.save()

    @property
    def running(self) -> str:
        if self.snapshot.running == "idle":
            return ""
        return "Trials are running: the one that is running is dropped, all others are in the journal."
