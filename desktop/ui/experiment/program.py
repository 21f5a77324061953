"""Step 1: which program is built and run, at which places it is delayed, and what is measured."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtWidgets import QCheckBox, QDoubleSpinBox, QInputDialog, QLineEdit, QSpinBox, QVBoxLayout

from desktop.core.units import quantity
from desktop.data.columns import Column, TableRow
from desktop.data.experiment import UNITS, Experiment, Factor, Response, Switch
from desktop.data.pilot import PILOT, SIZES, STEP, tuned
from desktop.data.places import find_places
from desktop.ui.experiment.parts import ErrandDialog, Step, command_list, described, shown_words, typed_words
from desktop.ui.pages import asked_paths, beside, button, form, group, line, quiet, row, set_up, stacked
from desktop.ui.tables import FrameView
from desktop.workbench.bench import changed
from desktop.workbench.experimenting import ExperimentBench, ExperimentSnapshot

_FACTORS = (
    Column("Use", "Whether this place is a factor of the experiment", check=True),
    Column("Name", "Its name everywhere", editable=True),
    Column("Flags", "Compiler flags at +; {delay} stands for its own delay", editable=True),
    Column("Arguments", "Words of the run command at +", editable=True),
    Column("Environment", "Variables at +, such as OMP_NUM_THREADS=4", editable=True),
    Column("Delay", "Of this factor alone, in units; filled in for {delay}", editable=True),
    Column("Low means", "What its low level is, in words", editable=True),
    Column("High means", "What its high level is, in words", editable=True),
    Column("File"),
    Column("Line"),
    Column("Routine"),
    Column("Construct", editable=True),
)
_RESPONSES = (
    Column("Name", editable=True),
    Column("Kind", f"One of {', '.join(UNITS)}; output: a number that the program prints", editable=True),
    Column(
        "Pattern", "For output: a regular expression with one group, such as wall=([0-9.]+)", editable=True
    ),
    Column("Unit", editable=True),
)


class ProgramStep(Step):
    """Fields change the description when editing ends; what is not valid is refused with a sentence."""

    title = "Program"
    limit: QDoubleSpinBox
    busy: QDoubleSpinBox

    def __init__(self, bench: ExperimentBench) -> None:
        super().__init__(bench)
        self._places: dict[str, Factor] = {}  # of all places found, whether or not they are factors
        self.folder = set_up(QLineEdit(), readOnly=True, frame=False, accessibleName="Folder")
        self.titled = line("Title", lambda text: self._edit("change the title", title=text))
        names = "Names below the folder, with blanks between them"
        self.sources = line("Sources", lambda text: self._words("sources", text), names)
        self.build = line("Build command", lambda text: self._command("build", text))
        self.run_words = line("Run command", lambda text: self._command("run", text))
        self.flags = line("Flags", lambda text: self._words("flags", text), "Of every build, at + and −")
        unseen = "Off: words are passed as they stand, and no shell sees them"
        self.shell = set_up(QCheckBox("Hand commands to a shell"), toolTip=unseen, clicked=self._set_shell)
        self.check = line(
            "Check pattern", lambda text: self._program("change the check", check=text),
            "A regular expression that the output of a right run matches",
        )  # fmt: skip
        self.limit = set_up(
            QDoubleSpinBox(), range=(0.001, 1e7), suffix=" s", accessibleName="Time limit of one run",
            editingFinished=lambda: self._program("change the time limit", time_limit_s=self.limit.value()),
        )  # fmt: skip
        self.busy = set_up(
            QDoubleSpinBox(), range=(0, 1024), singleStep=0.05, suffix=" cores",
            accessibleName="Busy cores of others above which a trial is repeated",
            editingFinished=lambda: self._program(
                "change the limit of other load", busy_limit=self.busy.value()
            ),
        )  # fmt: skip
        self.delay = set_up(
            QSpinBox(), range=(0, 1_000_000_000), specialValueText="not set",
            accessibleName="SPT_DELAY, units of every factor that has none of its own",
            editingFinished=self._set_delay, valueChanged=lambda _: self._show_seconds(),
        )  # fmt: skip
        self.find_button = button(
            "Find places", self.find_places, "Scan the sources for #ifdef NAME … spt_delay(", "find"
        )
        copies = "Copy spt_delay for C, C++, Fortran and Python here"
        self.headers = button("Add delay headers", self._add_headers, copies, "headers")
        self.choose = button("Choose sources…", self._choose_sources)
        self.factors = FrameView("Factors")
        set_up(self.factors.frames, edited=self._factor_edited, toggled=self._factor_toggled)
        self.responses = FrameView("Responses")
        self.responses.frames.edited.connect(self._response_edited)
        self.commands = command_list("First commands as they are run")
        self.places_text = quiet()
        self.pilot = button(
            "Pilot…", self.ask_pilot, "Find the size at which every place shows, one place at a time"
        )
        self.pilot_words = quiet()
        self.take = button("", self._take_pilot, "Of every place, in the description")
        self._lay_out()

    def _lay_out(self) -> None:
        fields = form(
            ("&Title", self.titled), ("Folder", self.folder), ("So&urces", self.sources),
            ("", row(self.choose, self.headers, None)), ("&Build", self.build), ("&Run", self.run_words),
            ("Fl&ags", self.flags), ("Delay (SPT_&DELAY)", self.delay),
            ("", row(self.pilot, self.take, None)), ("Chec&k pattern", self.check),
            ("Time &limit", self.limit), ("&Other load", self.busy),
        )  # fmt: skip
        program = group("Program", fields, self.shell, self.pilot_words)
        add = button("Add response", self._add_response)
        remove = button("Remove response", self._remove_response)
        left = stacked(program, (group("Responses", self.responses, row(add, remove, None)), 1))
        by_hand = "A place or a setting by hand: threads, problem size"
        add = button("Add factor…", self._ask_factor, by_hand)
        remove = button("Remove factor", self._remove_factor)
        tools = row(self.find_button, add, remove, None)
        places = group("Factors: places that are delayed", tools, self.places_text, self.factors)
        commands = group("Commands, with their words as they are run", self.commands)
        right = stacked((places, 3), (commands, 1))
        QVBoxLayout(self.content).addWidget(beside(left, right, 38))

    # ---- showing

    def show_snapshot(self, old: ExperimentSnapshot, new: ExperimentSnapshot) -> None:
        experiment = new.project.experiment
        if experiment is None:
            none = (
                "This is a table of runs, so there is no program here. File > New experiment describes one."
            )
            self.set_empty(none if new.project.imported is not None else "")
            return
        self.set_empty("")
        if old.project.experiment is None or old.project.experiment.folder != experiment.folder:
            self._places = {}
            self.places_text.setText("Tick the places that are to be factors.")
        if new.project.experiment is not old.project.experiment or new.problem:
            self._show(experiment)
        self._show_seconds()
        self._show_pilot(new)
        if new.commands is not old.commands:
            first = list(new.commands[:4])
            rest = [f"… {len(new.commands) - 4} more, all listed in step 3"] if len(new.commands) > 4 else []
            self.commands.setPlainText("\n".join(first + rest))

    def _show(self, experiment: Experiment) -> None:
        program = experiment.program
        self.folder.setText(str(experiment.folder))
        self.folder.setToolTip(str(experiment.folder))
        for field, text in (
            (self.titled, experiment.title),
            (self.sources, shown_words(program.sources, False)),
            (self.build, shown_words(program.build, program.shell)),
            (self.run_words, shown_words(program.run, program.shell)),
            (self.flags, shown_words(program.flags, False)),
            (self.check, program.check),
        ):
            if field.text() != text and not (field.hasFocus() and field.isModified()):
                field.setText(text)
                field.setCursorPosition(0)
        self.shell.setChecked(program.shell)
        self.limit.setValue(program.time_limit_s)
        self.busy.setValue(program.busy_limit)
        self.delay.setValue(program.delay or 0)
        used = {factor.name: factor for factor in experiment.factors}
        self._places |= used
        rows = []
        for name, factor in self._places.items():
            factor = used.get(name, factor)
            high, low = factor.high, factor.low
            tip = f"At −: {' '.join((*low.flags, *low.arguments))}".strip() if low != Switch() else ""
            rows.append(
                TableRow(
                    (
                        name in used, name,
                        shown_words(high.flags, False), shown_words(high.arguments, False),
                        " ".join(f"{k}={v}" for k, v in high.environment), factor.delay or None,
                        *factor.levels, factor.file, factor.line or None, factor.routine, factor.construct,
                    ),
                    name, "" if name in used else "faint", tip,
                )
            )  # fmt: skip
        self.factors.show_rows(_FACTORS, rows)
        self.responses.show_rows(
            _RESPONSES,
            [TableRow((r.name, r.kind, r.pattern, r.unit or ""), r.name) for r in experiment.responses],
        )

    def _show_pilot(self, new: ExperimentSnapshot) -> None:
        pilot = new.pilot
        self.pilot.setEnabled(new.running == "idle")
        self.pilot_words.setVisible(pilot is not None)
        experiment = new.project.experiment
        sizes = pilot.sizes if pilot is not None else {}
        self.take.setVisible(bool(pilot and sizes and experiment and tuned(experiment, pilot) != experiment))
        if pilot is not None:
            hint = " Step 5 shows effects against the delay." if pilot.largest > pilot.first else ""
            self.pilot_words.setText(f"Pilot: {pilot.reason}.{hint}")
            alike = set(sizes.values())
            self.take.setText(f"Use {min(alike)} units" if len(alike) == 1 else "Use a size for each place")
            self.take.setEnabled(new.running == "idle")

    def ask_pilot(self) -> None:
        """Show the commands of a pilot, and run it if the user agrees."""
        errand = self.bench.pilot()
        if errand is not None:
            text = (
                f"The pilot delays one place at a time, {STEP} times as long in every round, {SIZES} rounds "
                "at most; a place that shows is left out of the next. It ends when all show. Its runs go to "
                f"{PILOT} and not to the trials; stopped, it goes on from there when it is run again."
            )
            ErrandDialog(self, self.bench, errand, "Pilot", text).open()

    @described
    def _take_pilot(self, experiment: Experiment) -> None:
        """Take the delays that the pilot found."""
        pilot = self.bench.snapshot.pilot
        if pilot is not None and pilot.sizes:
            self.bench.edit("use the delays of the pilot", tuned(experiment, pilot))

    def _show_seconds(self) -> None:
        """The delay in seconds of this machine; the units of the Python module are other ones."""
        experiment = self.bench.snapshot.project.experiment
        seconds = self.delay.value() * self.bench.snapshot.unit_s
        # Not while the unit is still being measured.
        timed = seconds > 0 and experiment is not None and bool(experiment.program.build)
        self.delay.setSuffix(f" units, {quantity(seconds, 's', 2)} a call here" if timed else " units")

    # ---- editing

    @described
    def _edit(self, experiment: Experiment, /, label: str, **changes: object) -> bool:
        return self.bench.edit(label, changed(experiment, changes))

    @described
    def _program(self, experiment: Experiment, /, label: str, **changes: object) -> None:
        program = changed(experiment.program, changes)
        self.bench.edit(label, replace(experiment, program=program))

    @described
    def _command(self, experiment: Experiment, name: str, text: str) -> None:
        self._words(name, text, f"change the {name} command", shell=experiment.program.shell)

    def _words(self, name: str, text: str, label: str = "", *, shell: bool = False) -> None:
        words = self.bench.result_of(lambda: typed_words(text, shell))
        if words is not None:
            self._program(label or f"change the {name}", **{name: words})

    @described
    def _set_shell(self, experiment: Experiment, on: bool) -> None:
        program = experiment.program
        words = {which: shown_words(getattr(program, which), program.shell) for which in ("build", "run")}
        changes = {which: typed_words(text, on) for which, text in words.items()}
        self._program("use a shell" if on else "use no shell", shell=on, **changes)

    @described
    def _set_delay(self, experiment: Experiment) -> None:
        program = experiment.program
        if self.delay.value() != (program.delay or 0):
            self._program("change the delay", flags=program.with_delay(self.delay.value()).flags)

    @described
    def _choose_sources(self, experiment: Experiment) -> None:
        paths = asked_paths(self, "Sources", experiment.folder)
        inside = [path for path in paths if path.is_relative_to(experiment.folder)]
        if inside:
            sources = tuple(str(path.relative_to(experiment.folder)) for path in inside)
            self._program("choose sources", sources=sources)

    def _add_headers(self) -> None:
        added = self.bench.add_headers()
        text = f"Copied {', '.join(added)}. Include spt_delay.h, and delay a place by #ifdef F1 … "
        text += "spt_delay(SPT_DELAY); … #endif"
        self.places_text.setText(text if added else "All delay headers are here already.")

    @described
    def find_places(self, experiment: Experiment) -> None:
        """Fill the table with the places that the sources are prepared for."""
        sources = experiment.program.sources
        places = self.bench.result_of(lambda: find_places(experiment.folder, sources)) or ()
        by_name = {f.name: f for f in experiment.factors}
        moved = {}
        for place in places:
            if place.macro in by_name:
                factor = by_name[place.macro]
                moved[place.macro] = replace(
                    factor, file=place.file, line=place.line, routine=place.routine,
                    construct=factor.construct or place.construct,
                )  # fmt: skip
            else:
                self._places[place.macro] = place.factor()
        self.places_text.setText(
            f"{len(places)} prepared places found; tick those that are to be factors."
            if places
            else "No #ifdef block in these sources calls spt_delay. Add the delay headers, prepare a place, "
            "and look again."
        )
        factors = tuple(moved.get(f.name, f) for f in experiment.factors)
        if factors != experiment.factors:
            self._edit("update places", factors=factors)
        self._show_now()

    @described
    def _show_now(self, experiment: Experiment) -> None:
        """Show the description again, also in fields whose change was refused."""
        self._show(experiment)

    @described
    def _factor_toggled(self, experiment: Experiment, name: str, on: bool) -> None:
        if on:
            order = list(self._places)
            factors = sorted((*experiment.factors, self._places[name]), key=lambda f: order.index(f.name))
        else:
            factors = [f for f in experiment.factors if f.name != name]
        self._set_factors(f"{'add' if on else 'leave out'} {name}", factors)
        self._show_now()

    @described
    def _set_factors(self, experiment: Experiment, label: str, factors: list[Factor]) -> bool:
        """Set the factors; a design that no longer fits is replaced by the smallest of resolution IV."""
        if not factors:
            self.bench.complain("an experiment needs one factor at least")
            return False
        plan = experiment.plan
        if len(factors) != len(experiment.factors) and plan.kind in ("regular", "full"):
            from desktop.core.design import smallest_runs

            plan = replace(plan, runs=smallest_runs(len(factors), 4), generators=(), fold=None, fold_after=0)
        return self.bench.edit(label, replace(experiment, factors=tuple(factors), plan=plan))

    @described
    def _factor_edited(self, experiment: Experiment, name: str, column: int, text: str) -> None:
        factor = self._places.get(name)
        if factor is None:
            return
        title = _FACTORS[column].title
        edited = self.bench.result_of(lambda: _changed(factor, title, text))
        if edited is None:
            return
        factors = [edited if f.name == name else f for f in experiment.factors]
        if edited in factors and not self._set_factors(f"change {name}", factors):
            return
        pairs = ((edited.name, edited) if k == name else (k, f) for k, f in self._places.items())
        self._places = dict(pairs)
        self._show_now()

    def _ask_factor(self) -> None:
        name, ok = QInputDialog.getText(self, "Add factor", "Name of the factor (its macro):")
        if ok and name.strip():
            self.add_factor(name.strip())

    @described
    def add_factor(self, experiment: Experiment, name: str) -> None:
        """Add a factor that is switched on by a macro of its name, until the user changes that."""
        switch = Switch((f"-D{name}",)) if experiment.program.build else Switch(arguments=(f"--{name}",))
        self._set_factors(f"add {name}", [*experiment.factors, Factor(name, switch)])

    @described
    def _remove_factor(self, experiment: Experiment) -> None:
        name = self.factors.key
        if name:
            factors = [f for f in experiment.factors if f.name != name]
            if len(factors) == len(experiment.factors) or self._set_factors(f"remove {name}", factors):
                self._places.pop(name, None)
                self._show_now()

    @described
    def _response_edited(self, experiment: Experiment, name: str, column: int, text: str) -> None:
        word = ("name", "kind", "pattern", "unit")[column]
        if word == "kind" and text not in UNITS:
            self.bench.complain(f"the response {text!r} is not known, known are {', '.join(UNITS)}")
            return
        every = []
        for response in experiment.responses:
            if response.name == name:
                fields: dict[str, object] = {word: text}
                if word == "kind":
                    fields["unit"] = UNITS[text]
                    fields["pattern"] = response.pattern or ("([0-9.eE+-]+)" if text == "output" else "")
                response = changed(response, fields)
            every.append(response)
        self._edit("change a response", responses=tuple(every))

    @described
    def _add_response(self, experiment: Experiment) -> None:
        names = {r.name for r in experiment.responses}
        name = next(f"response{k}" for k in range(1, 99) if f"response{k}" not in names)
        new = Response(name, "output", f"{name}=([0-9.]+)")
        self._edit("add a response", responses=(*experiment.responses, new))

    @described
    def _remove_response(self, experiment: Experiment) -> None:
        remaining = tuple(r for r in experiment.responses if r.name != self.responses.key)
        if 0 < len(remaining) < len(experiment.responses):
            self._edit("remove a response", responses=remaining)


def _changed(factor: Factor, title: str, text: str) -> Factor:
    """The factor with another text in one cell of its row.

    Raises
    ------
    ValueError : the text makes no sense there.
    """
    if title == "Name":
        return replace(factor, name=text)
    if title == "Construct":
        return replace(factor, construct=text)
    if title.endswith("means"):
        high = title.startswith("High")
        if text == factor.levels[high]:  # as it follows from the place or the setting
            return factor
        return replace(factor, means=text) if high else replace(factor, low_means=text)
    if title == "Delay":
        if text and not text.isdigit():
            raise ValueError(f"the delay of {factor.name} is {text!r}, it must be a whole number of units")
        return replace(factor, delay=int(text or 0))
    words = typed_words(text, False)
    if title == "Flags":
        return replace(factor, high=replace(factor.high, flags=words))
    if title == "Arguments":
        return replace(factor, high=replace(factor.high, arguments=words))
    pairs = [word.partition("=") for word in words]
    bad = next((name for name, equals, _ in pairs if not name or not equals), None)
    if bad is not None:
        raise ValueError(f"{bad!r} is no variable, write NAME=value")
    return replace(factor, high=replace(factor.high, environment=tuple((n, v) for n, _, v in pairs)))
