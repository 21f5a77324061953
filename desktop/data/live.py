"""A run as one HTML file in which the reader chooses n: it contains every fit, the curve, the timeline and
the texts about each phase; it needs no server and no network, and forbids both."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from itertools import pairwise
from string import Template
from typing import TYPE_CHECKING

import numpy as np

import desktop
from desktop import resources
from desktop.core.accounts import Account
from desktop.core.arrays import AnyArray
from desktop.core.charges import Charges
from desktop.core.envelope import envelope
from desktop.core.explanation import Explanation, explanation
from desktop.core.labels import ACCOUNTS, ACTIVITIES, DEGREES, MODELS
from desktop.core.phase_names import Doings, phase_names
from desktop.core.phase_stats import phase_table
from desktop.core.phases import PhaseFit, least_n, sweep
from desktop.core.plain import JSON
from desktop.core.selection import SWEEP, at_events
from desktop.core.units import time_scale, unbroken
from desktop.data.material import Material, Subject, bars, gather
from desktop.data.presence import structure
from desktop.data.root_causes import charges, naming
from desktop.data.statistics import RangeStats, Statistics
from desktop.data.style_sheet import POLICY
from desktop.printing import printable
from desktop.progress import Progress, Share

if TYPE_CHECKING:
    from desktop.data.utilization import Utilization

Span = tuple[float, float]

#: Most bytes of a page, whatever the trace.
LARGEST = 5_000_000
# Models offered to the reader.
_MODELS = ("constant", "linear", "quadratic", "mixed")
# Initial columns of the curve and cells of the timeline; both are halved until the page is small enough.
_CURVE_COLUMNS, _TIMELINE_CELLS = 1 << 18, 1 << 18
# A curve with at most so many steps is stored step by step.
_STEPS = 1 << 16
# With more events, only the shown fit has sentences: for 5 million events and 600,000 messages the page takes
# 32 s of processor time and 1.0 GB with accounts and sentences of some 840 ranges, 8 s and 0.65 GB with those
# of that fit. With more processors, only that fit has accounts, too: each range takes 200 bytes per
# processor.
_EVENTS, _PROCESSORS = 10_000_000, 2048
_CAUSES_OF_SHOWN = "Of so large a trace, causes are kept for the number of phases that was shown only."
_ONLY_SHOWN = (
    "Of so large a trace, accounts and causes are kept for the number of phases that was shown only."
)
# Values that draw a phase that is not a polynomial.
_SAMPLES = 65


def live_page(
    subject: Subject,
    palettes: Mapping[str, Mapping[str, str]],
    command: str,
    date: datetime,
    progress: Progress | None = None,
    own_style: str = "",
) -> tuple[bytes, Material]:
    """The page, and the material from which it was drawn.

    own_style : from `desktop.data.style_sheet`, follows the default.
    palettes : ``light`` and ``dark``: names of colours (those of `ACTIVITIES`, text, curve, fit ...) to
        ``#rrggbb``.
    command : the command line that makes the page again. date : when it was made.

    Raises
    ------
    ValueError : n, a breakpoint or the trace's curve is impossible, see `desktop.data.material.gather`.
    """
    progress = progress or Progress()
    material, use = gather(subject, Share(progress, 0, 0.3))
    page = _LiveRun(subject, material, use)
    facts = page.facts(palettes, Share(progress, 0.3, 0.8))
    columns, cells = _CURVE_COLUMNS, _TIMELINE_CELLS
    while True:
        arrays = {**page.curve_arrays(columns), **page.timeline(cells, Share(progress, 0.8, 0.99))}
        content = _html(facts, arrays, page.words, command, date, own_style).encode()
        if len(content) < LARGEST or cells < 1024:
            progress.step(1, 1)
            return content, material
        columns, cells = columns // 2, cells // 2


class _LiveRun:
    """The contents of a page about one run."""

    def __init__(self, subject: Subject, material: Material, use: Utilization) -> None:
        assert subject.store is not None
        self.subject, self.material, self.use = subject, material, use
        self.store, self.curve = subject.store, material.curve
        self.structure = structure(self.store, use)
        self.words = Explanation()
        events = int(self.store.places("events")[:, 1].sum())
        #: whether fits other than the shown one have accounts, and sentences
        self.all_accounts = len(self.store.locations) <= _PROCESSORS
        self.all_explained = self.all_accounts and events <= _EVENTS

    def facts(self, palettes: Mapping[str, Mapping[str, str]], progress: Progress) -> JSON:
        """Everything except arrays, as plain values."""
        current, curve, subject = self.material.fit, self.curve, self.subject
        fits = {key: list(self._fits(key)) for key in dict.fromkeys((*_MODELS, current.model))}
        statistics = Statistics(self.store)
        whole = self.use.curve()
        doings = self.structure.doings(whole if subject.limit is None else whole.window(*subject.limit))
        models = []
        for k, (key, of_model) in enumerate(fits.items()):
            part = Share(progress, k / len(fits), (k + 1) / len(fits))
            explained = of_model if self.all_explained else [fit for fit in of_model if fit is current]
            by_span = self._by_span(statistics, of_model if self.all_accounts else explained, explained, part)
            rows = [self._fit(fit, doings, by_span) for fit in of_model]
            models.append({"key": key, "name": MODELS[key], "fits": rows})
        scale = time_scale(curve.duration)
        # The reason belongs to the suggested fit, not to another with as many phases.
        suggestion = self.material.suggestion if subject.n is None and subject.breaks is None else None
        return {
            "title": self.material.title,
            "start": curve.start,
            "duration": curve.duration,
            "time": [scale.factor, scale.symbol],
            "capacity": curve.capacity if curve.quantity.counted else 0,
            "axis": curve.quantity.axis,
            "unit": curve.quantity.unit,
            "error_unit": curve.quantity.of_error,
            "shown": {"model": current.model, "n": current.requested},
            "suggested": None if suggestion is None else [suggestion.n, suggestion.reason],
            "kinds": DEGREES,
            "accounts": [list(ACCOUNTS[one.name.lower()]) for one in Account],
            "activities": ACTIVITIES,
            "note": "" if self.all_explained else _CAUSES_OF_SHOWN if self.all_accounts else _ONLY_SHOWN,
            "models": models,
            "palettes": palettes,
        }

    def _fits(self, model: str) -> Iterator[PhaseFit]:
        """The fit of every n as in the window; the shown one replaces the one with its n."""
        current, subject = self.material.fit, self.subject
        landmarks = None if subject.pure else self.structure.landmarks(self.curve, subject.events)
        basis = subject.basis if model == current.model else None
        # A budget counts parameters.
        last = max(60 if model == "budget" else SWEEP, least_n(model, subject.locked))
        result = sweep(self.curve, model, last, locked=subject.locked, basis=basis)
        fits = {fit.requested: fit for fit in result.fits}
        for n, fit in fits.items():
            fits[n] = at_events(self.curve, fit, landmarks, subject.locked)
        if model == current.model:
            fits[current.requested] = current
        yield from (fits[n] for n in sorted(fits))

    def _by_span(
        self,
        statistics: Statistics,
        fits: Sequence[PhaseFit],
        explained: Sequence[PhaseFit],
        progress: Progress,
    ) -> dict[Span, tuple[RangeStats, Charges | None]]:
        """Statistics of all phases of some fits, each range once, and charges of those in `explained`; empty
        for a source that is only a curve."""
        if statistics.of_curve or not fits:
            return {}
        causality = statistics.causality(self.use, progress)
        spans = self._spans(fits)
        ranges = dict(
            zip(spans, statistics.ranges(spans, self.use, progress, causality=causality), strict=True)
        )
        of = [span for span in self._spans(explained) if span in ranges]
        charged = (
            charges(self.store, causality, self.use, [ranges[span] for span in of], progress) if of else []
        )
        told_of = dict(zip(of, charged, strict=True))
        return {span: (stats, told_of.get(span)) for span, stats in ranges.items()}

    def _spans(self, fits: Sequence[PhaseFit]) -> list[Span]:
        """Ranges of the runs and phases of fits that contain a tick."""
        spans = {(float(fit.breaks[0]), float(fit.breaks[-1])) for fit in fits}
        spans |= {span for fit in fits for span in pairwise(fit.breaks.tolist())}
        tick = self.curve.unit
        return sorted(span for span in spans if round(span[0] / tick) < round(span[1] / tick))

    def _fit(
        self, fit: PhaseFit, doings: Doings | None, by_span: Mapping[Span, tuple[RangeStats, Charges | None]]
    ) -> JSON:
        """One fit with the texts about its phases."""
        names = phase_names(doings, fit.breaks, self.subject.phase_names, self.subject.names)
        spans = list(pairwise(fit.breaks.tolist()))
        whole = (float(fit.breaks[0]), float(fit.breaks[-1]))
        sentences = [""] * fit.n
        charged = [one[1] for span in (whole, *spans) if (one := by_span.get(span)) is not None and one[1]]
        if len(charged) == 1 + fit.n:
            words = explanation(charged, names, naming(self.store, self.subject.names))
            sentences = [printable(phase.sentence, 2000) for phase in words.phases]
            if fit is self.material.fit:
                self.words = words
        phases = []
        for k, row in enumerate(phase_table(self.curve, fit)):
            stats = by_span.get(spans[k], (None,))[0]
            parts = [] if stats is None else stats.account_parts(0.0005)
            phases.append(
                {
                    "kind": row.degree,
                    "curve": row.coefficients if row.degree < 3 else _samples(fit, *spans[k]),
                    "mean": row.mean,
                    "rms": row.rms,
                    "name": printable(names[k] if k < len(names) else "", 200),
                    "range": [float(fit.breakpoint_low[k]), float(fit.breakpoint_high[k])],
                    "accounts": [[int(one), round(part, 4)] for one, part in parts],
                    "says": sentences[k],
                }
            )
        return {"n": fit.requested, "breaks": fit.breaks.tolist(), "error": fit.epsilon, "phases": phases}

    def curve_arrays(self, columns: int) -> dict[str, AnyArray]:
        """The curve: edges (s, from its start) and levels of its steps, or exact least, greatest and mean of
        `columns` equal parts."""
        curve = self.curve
        if curve.level.size <= min(_STEPS, columns):
            return {
                "edges": (curve.edges - curve.edges[0]) * curve.unit,
                "level": curve.level.astype(np.float32),
            }
        seen = envelope(curve).columns(np.linspace(*curve.span, columns + 1))
        return {
            "low": seen.minimum.astype(np.float32),
            "high": seen.maximum.astype(np.float32),
            "mean": seen.mean.astype(np.float32),
        }

    def timeline(self, cells: int, progress: Progress) -> JSON:
        """The shares (in 255ths, rounded down) of each activity in each cell; see `Bars`."""
        if self.material.bars is None:
            return {}
        drawn = bars(self.store, self.subject.rules, self.curve, progress, cells=cells)
        if drawn is None:
            return {}
        return {
            "shares": (np.moveaxis(drawn.shares, 2, 0) * 255).astype(np.uint8),
            "columns": drawn.times - self.curve.start,
            "rows": list(drawn.labels),
            "row_names": list(drawn.names),
            "classes": list(drawn.classes),
        }


def _samples(fit: PhaseFit, start: float, end: float) -> list[float]:
    inside = np.linspace(start, end, _SAMPLES + 1)
    samples: list[float] = fit.value((inside[1:] + inside[:-1]) / 2).tolist()
    return samples


def _html(
    facts: JSON,
    arrays: Mapping[str, object],
    words: Explanation,
    command: str,
    date: datetime,
    own_style: str,
) -> str:
    home = resources.folder() / "report"
    script, style = ((home / name).read_text(encoding="utf-8") for name in ("live.js", "live.css"))
    style += own_style
    phases = [phase.sentence for phase in words.phases if len(words.phases) > 1]
    return Template((home / "live.html").read_text(encoding="utf-8")).substitute(
        title=escape(printable(facts["title"], 500)),
        subtitle=escape(f"Phasewright {desktop.__version__}, {date:%Y-%m-%d %H:%M} UTC"),
        paragraph=_page_text(words.paragraph),
        phases="".join(f"<p>{_page_text(text)}</p>\n" for text in phases),
        command=escape(printable(command, 4000)),
        version=escape(desktop.__version__),
        script=script,
        style=style,
        script_hash=_hash(script),
        style_hash=_hash(style),
        policy=POLICY if own_style else "",
        data=_packed(facts, arrays),
    )


def _page_text(text: str) -> str:
    return escape(unbroken(printable(text, 4000)))


def _hash(text: str) -> str:
    """Hash of the text between two tags, in the form used by content security policies."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _packed(facts: JSON, arrays: Mapping[str, object]) -> str:
    """Plain values and arrays, deflated, in base64: the length of the JSON (uint32), the JSON, and then each
    array at a multiple of 8 bytes; the JSON has their types, offsets and lengths."""
    places, plain, blocks, at = {}, dict(facts), [], 0
    for name, values in arrays.items():
        if not isinstance(values, np.ndarray):
            plain[name] = values
            continue
        block = np.ascontiguousarray(values).tobytes()
        places[name] = [values.dtype.str[1:], at, values.size]
        block += bytes(-len(block) % 8)
        blocks.append(block)
        at += len(block)
    text = json.dumps({**plain, "arrays": places}, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 4) % 8)
    whole = len(text).to_bytes(4, "little") + text + b"".join(blocks)
    return base64.b64encode(zlib.compress(whole, 9)).decode()
