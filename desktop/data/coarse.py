"""A coarse curve of a store on another machine, computed there: some 100 kB, while the exact one may be many
MB.

The answer is checked against what the import stored about the whole run, and never used as the exact curve.
"""

from __future__ import annotations

import zlib
from contextlib import suppress

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.curve import StepCurve
from desktop.core.envelope import averaged
from desktop.data.events import Activity
from desktop.data.remote_frames import inflated
from desktop.data.store import TraceStore
from desktop.data.utilization import EXACT, Rules, Utilization, build, with_import
from desktop.errors import DesktopError, StoreError
from desktop.progress import Progress

#: Equal steps of a coarse curve; number of steps up to which the exact curve arrives as soon.
STEPS, FEW = 1 << 13, 1 << 17
_FORM = np.dtype("<f4")


def remote_coarse(store: TraceStore, rules: Rules) -> Utilization | None:
    """Processors in each activity, as means over `STEPS` equal parts of the run; None if the exact curve is
    here or arrives as soon, or the coarse one cannot be fetched."""
    far = store.elsewhere
    if far is None or not (rules.default_classes and store.totals and store.rows("outline", 0)):
        return None
    if store.rows("utilization", 0) <= FEW or store.brought("utilization"):
        return None
    end = int(store.column("outline", "end")[0])
    if not 0 < end < EXACT:
        return None  # a damaged file; the exact curve reports it
    edges = _edges(end)
    shape = len(Activity), edges.size - 1
    size = _FORM.itemsize * shape[0] * shape[1]
    with suppress(DesktopError, ValueError):
        content = inflated(far.ask({"coarse": True}, size), size)
        counts = np.frombuffer(content, _FORM).reshape(shape).astype(np.float64)
        use = with_import(store, rules, edges, counts)
        if counts.min() >= 0 and counts.sum(axis=0).max() <= use.processors * (1 + 1e-5):
            return use
    return None


def coarse_for(store: TraceStore, progress: Progress) -> bytes:
    """The answer for `remote_coarse`, on the machine of the store.

    Raises
    ------
    StoreError : the store has no such curve, or is damaged.
    """
    if not store.rows("utilization", 0):
        raise StoreError("has no curve that was kept", file=store.path)
    use = build(store, Rules(), progress)
    edges = _edges(int(use.edges[-1]))
    means = np.zeros((len(Activity), edges.size - 1), _FORM)
    for k, counts in enumerate(use.counts):
        progress.step(k, len(Activity))
        if counts.any():
            curve = StepCurve(use.edges, counts, float(use.processors), use.unit)
            means[k] = averaged(curve, edges).level
    return zlib.compress(means.tobytes(), 1)


def _edges(end: int) -> Floats:
    """Edges of the equal parts of a run of `end` ticks, in whole ticks."""
    return np.unique(np.rint(np.linspace(0.0, float(end), STEPS + 1)))
