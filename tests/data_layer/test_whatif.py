"""What a run would last if something were different: identity, and changes of known effect."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from desktop.data.opening import open_trace
from desktop.data.store import TraceStore
from desktop.data.utilization import Utilization, build
from desktop.data.whatif import Rerun

DATA = Path(__file__).parents[1] / "data"
TRACES = (
    "otf2/ezt_cholesky_bcast_8_dilated.tar.gz",
    "otf2/ezt_farm_8_dilated.tar.gz",
    "otf2/ezt_psort_8_dilated.tar.gz",
    "otf2/mpt_farm_6_dilated.tar.gz",
    "otf2/mpt_jacobi2d_9_dilated.tar.gz",
    "otf2/public_scorep_ember_4.tar.gz",
    "otf2/public_scorep_pingpong_2.tar.gz",
    "otf2/public_scorep_stencil4d_32.tar.gz",
    "otf1/psort_8_short_ascii_1stream_collbeginend.tar.xz",
    "otf1/wave1d_16_long_ascii_4streams.tar.xz",
    "paraver/cholesky_ring_16.prv.xz",
    "paraver/farm_6.prv",
    "picl/v1-fft16-upshot.trf",
    "picl/v1-heat6-midsync.trf",
    "picl/v1-lu8-compact.trf",  # its clocks contradict each other
    "picl/v2-ncptl-butterfly8.trf",
)


def _opened(name: str) -> tuple[TraceStore, Utilization]:
    store = open_trace(DATA / name)
    return store, build(store)


@pytest.mark.parametrize("name", TRACES)
def test_without_changes_the_run_is_as_recorded(name: str) -> None:
    store, use = _opened(name)
    with store:
        curve = use.curve()
        quarters = [curve.start + curve.duration * k / 4 for k in (1, 2, 3)]
        program = Rerun(store, use, breaks=quarters)
        found = program.predict()
        assert found.duration_s == pytest.approx(program.recorded_s, rel=1e-12)
        assert program.recorded_s == pytest.approx(curve.duration, rel=1e-12)
        inner = program.breaks - use.start
        np.testing.assert_allclose(found.breaks_s, inner * use.unit, atol=1e-9 * curve.duration)
        drawn = found.curve
        assert drawn is not None and drawn.capacity == curve.capacity
        assert drawn.duration == pytest.approx(curve.duration, rel=1e-12)
        assert drawn.integral == pytest.approx(curve.integral, rel=1e-5)
        # Nothing is moved but to the next tick.
        at = np.linspace(0, curve.duration, 4001)[:-1]
        assert (drawn.at(at) != curve.at(curve.start + at)).mean() < 0.01
