"""Extra-P, run by an interpreter that has the package ``extrap``: cells as JSON in, values as JSON out.

It wants another PySide6 than we do, so it lives in an environment of its own; see
`tests.benchmarks.factor_model`.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any


def fitted(cell: dict[str, Any]) -> dict[str, Any]:
    """``p`` and ``value`` of a cell are modelled, ``at`` is where the model is asked."""
    from extrap.entities.callpath import Callpath
    from extrap.entities.coordinate import Coordinate
    from extrap.entities.measurement import Measurement
    from extrap.entities.metric import Metric
    from extrap.modelers.single_parameter.basic import SingleParameterModeler

    modeler = SingleParameterModeler()
    modeler.allow_negative_exponents = cell["falling"]
    runs: dict[float, list[float]] = {}
    for p, value in zip(cell["p"], cell["value"], strict=True):
        runs.setdefault(p, []).append(value)
    where = Callpath("cell"), Metric("time")
    points = [Measurement(Coordinate(p), *where, values) for p, values in sorted(runs.items())]
    function = modeler.create_model(points).hypothesis.function
    return {"value": [float(function.evaluate(p)) for p in cell["at"]], "function": str(function)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    json.dump([fitted(cell) for cell in json.load(sys.stdin)], sys.stdout)
