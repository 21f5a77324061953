"""Words that screen, reports and command line share: names of activities and of models of phases."""

from __future__ import annotations

#: Names of the activities, from the bottom of a stack to its top.
ACTIVITIES = {
    "computing": "Computing",
    "overhead": "Overhead",
    "io": "I/O",
    "idle": "Idle",
    "unmeasured": "Not measured",
}
#: Kinds of a phase, by the degree of its polynomial; the last two are no polynomials.
DEGREES = ("constant", "linear", "quadratic", "periodic", "saturating")
#: Names of the models of phases.
MODELS = {
    "constant": "Constant",
    "linear": "Linear",
    "quadratic": "Quadratic",
    "mixed": "Mixed",
    "budget": "Budget",
    "periodic": "Periodic",
    "saturation": "Saturation",
}
#: Models that have a period or a time constant.
OWN_BASIS = ("periodic", "saturation")
DEFAULT_MODEL = "mixed"
