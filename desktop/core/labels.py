"""Common labels of window, reports and command line: names of activities, models of phases, accounts, what a
report holds."""

from __future__ import annotations

from desktop.core import bases

#: Names of the activities, from the bottom of a stack to its top.
ACTIVITIES = {
    "computing": "Computing",
    "overhead": "Overhead",
    "io": "I/O",
    "idle": "Idle",
    "unmeasured": "Not measured",
}
#: Kinds of phases by the degree of the polynomial, then those of the spaces.
DEGREES = ("constant", "linear", "quadratic", *(space.kind for space in bases.TABLE))
#: Names of the models of phases.
MODELS = {
    "constant": "Constant",
    "linear": "Linear",
    "quadratic": "Quadratic",
    "mixed": "Mixed",
    "budget": "Budget",
} | {space.model: space.title for space in bases.TABLE}
#: Models whose phases may be of several degrees.
MIXING = ("mixed", "budget")
#: Models of functions other than polynomials.
OWN_BASIS = tuple(space.model for space in bases.TABLE)
#: Accounts of processor time (`desktop.core.accounts.Account`, by lower-case name): title and description.
ACCOUNTS = {
    "computing": ("Computing", "Activities that the curve counts"),
    "serial": ("Outside parallel regions", "Threads that are idle while only the master works"),
    "late_sender": ("Late sender", "Waiting in a receive until the message is sent"),
    "late_receiver": ("Late receiver", "Waiting in a send until the receive is posted"),
    "barrier": ("Wait at barrier", "Waiting for the last one to enter a barrier"),
    "n_to_n": ("Wait at n-to-n collective", "Waiting for the last one to enter an all-to-all operation"),
    "late_root": ("Late root", "Waiting for the root of a one-to-all operation"),
    "early_root": ("Early root", "The root of an all-to-one operation waits for the last one"),
    "prefix": ("Wait at scan", "Waiting for those of lower rank in a prefix operation"),
    "lock": ("Waiting for a lock", "Locks and critical sections of threads"),
    "threads": ("Waiting for threads", "Barriers, joins and tasks of threads"),
    "moving": ("Moving data", "Communication without a late partner"),
    "unknown": ("Communication, unclassified", "The trace does not separate waiting from moving data"),
    "overhead": ("Library overhead", "Calls that neither communicate nor wait"),
    "io": ("I/O", "Reading and writing files"),
    "accelerator": ("Waiting for accelerator", "The host waits for an accelerator"),
    "startup": ("Start-up and end", "MPI_Init and MPI_Finalize"),
    "absent": ("Absent", "Before a location begins and after it has ended"),
    "idle": ("Idle", "Idle; the trace does not say why"),
    "unmeasured": ("Not measured", "Tracing was off, or the tracer was busy"),
}
DEFAULT_MODEL = "mixed"
#: Figures that can be drawn, in the order of a report.
FIGURES = {
    "curve": "Utilization and its phases",
    "stack": "Activities of the processors",
    "residual": "Residual of the fit",
    "epsilon": "Error by number of phases",
    "timeline": "Timeline",
    "phases": "Phase table",
    "comparison": "Runs compared",
}
#: Tables (and their sentences) that a report may leave out, by key.
TABLES = {
    "why": "Why time is lost",
    "summary": "Summary",
    "phases": "Phases, every number",
    "formulas": "Formulas",
    "breaks": "Breakpoints and their ranges",
    "certificate": "Error and its bounds",
    "efficiencies": "Efficiencies",
    "activities": "Activities",
    "accounts": "Accounts",
    "delays": "Who makes others wait",
    "helps": "What would help most",
    "loads": "Most and least loaded processors",
    "regions": "Regions that take most time",
    "changes": "What changed at each breakpoint",
    "comparison": "Phases of the compared runs",
    "scaling": "Phases over p",
    "model": "Factor models of the project",
    "file": "The file and its clocks",
    "import": "Import report",
    "options": "Options",
    "origin": "How to make the report again",
}
#: Kinds of reports, styles of their figures, grounds of slides.
STYLES = {"colour": "Colour", "grey": "Greyscale", "patterns": "Patterns and dashes"}
REPORTS = {
    "html": "HTML (one file)",
    "live": "HTML in which its reader chooses n",
    "pdf": "PDF (A4)",
    "pptx": "Slides (PPTX, 16:9)",
}
GROUNDS = {"light": "Light ground", "dark": "Dark ground"}
