"""spt_delay: an artificial delay for synthetic-perturbation tuning, in Python.

Factors are switched by the environment variable SPT_FACTORS, names with commas, and the delay is a time in
microseconds, of all that are on (SPT_DELAY_US) or of one, after its name::

    from spt_delay import spt_delay

    spt_delay("F1")          # at every place that might be a bottleneck

    SPT_FACTORS=F1,F4:200 SPT_DELAY_US=50 python program.py
"""

import os
import time

_WORDS = [word.strip().partition(":") for word in os.environ.get("SPT_FACTORS", "").split(",")]
_SECONDS = float(os.environ.get("SPT_DELAY_US", "50")) * 1e-6
_ON = {name: float(size) * 1e-6 if size else _SECONDS for name, _, size in _WORDS if name}


def spt_delay(factor, units=1):
    """Busy for `units` delays if `factor` is switched on; sleeping would give the processor to others."""
    seconds = _ON.get(factor)
    if seconds is not None:
        end = time.perf_counter() + units * seconds
        while time.perf_counter() < end:
            pass


def calibrate(count=2000):
    """Seconds that one delay really takes."""
    begin = time.perf_counter()
    for _ in range(count):
        end = time.perf_counter() + _SECONDS
        while time.perf_counter() < end:
            pass
    return (time.perf_counter() - begin) / count
