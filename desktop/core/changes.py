"""Changes of a predicted run: another network, faster or slower computing, balance; and their words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from desktop.core.machine import IDEAL, Machine
from desktop.core.units import quantity

#: Values of `Changes.no_wait` for waiting in receives, and in all collective operations.
ALL = MESSAGES, COLLECTIVES = "messages", "collectives"


@dataclass(frozen=True)
class Changes:
    """Changes to a run; by default none.

    network : a machine in place of the recorded network.
    regions : (region by name, factor): its own computing, without regions inside, is so many times faster.
    longer : (region by name, seconds): each of its calls computes so much longer.
    phases : (phase from 0, factor): all computing in it is so many times faster.
    balanced : phases (from 0) in which every location computes as long as their mean.
    slower : (first, last, factor): locations from the first to the last rank compute so many times longer.
    no_wait : operations without waiting: `MESSAGES`, `COLLECTIVES`, or a collective operation by name.

    Raises
    ------
    ValueError : a factor that is not above 0.
    """

    network: Machine | None = None
    regions: tuple[tuple[str, float], ...] = ()
    longer: tuple[tuple[str, float], ...] = ()
    phases: tuple[tuple[int, float], ...] = ()
    balanced: tuple[int, ...] = ()
    slower: tuple[tuple[int, int, float], ...] = ()
    no_wait: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        factors = [(name, x) for name, x in self.regions]
        factors += [(f"phase {k + 1}", x) for k, x in self.phases]
        factors += [(f"ranks {a} to {b}", x) for a, b, x in self.slower]
        for name, factor in factors:
            if not (factor > 0 and math.isfinite(factor)):
                raise ValueError(f"the factor {factor:g} of {name} is not possible, it must be above 0")

    @property
    def sentence(self) -> str:
        """All changes in words; "" if there are none."""
        return "; ".join(_words(self))

    def called(self, names: Mapping[str, str]) -> Changes:
        """The same with other names of regions, for its sentence."""
        regions, longer = (
            tuple((names.get(name, name), x) for name, x in pairs) for pairs in (self.regions, self.longer)
        )
        no_wait = tuple(name if name in ALL else names.get(name, name) for name in self.no_wait)
        return replace(self, regions=regions, longer=longer, no_wait=no_wait)


#: No changes.
NONE = Changes()


def _words(changes: Changes) -> Iterator[str]:
    if changes.network is not None:
        yield machine_words(changes.network)
    for name, factor in changes.regions:
        yield f"{name} {_times(factor)} faster"
    for name, seconds in changes.longer:
        yield f"each call of {name} {quantity(seconds, 's')} longer"
    for k, factor in changes.phases:
        yield f"phase {k + 1} {_times(factor)} faster"
    for k in changes.balanced:
        yield f"phase {k + 1} balanced"
    for first, last, factor in changes.slower:
        who = f"rank {first}" if first == last else f"ranks {first} to {last}"
        yield f"{who} {_times(factor)} slower"
    for name in changes.no_wait:
        yield "no waiting for messages" if name == MESSAGES else f"no waiting in {name}"


def _times(factor: float) -> str:
    return f"{factor:.4g} times"


def machine_words(network: Machine) -> str:
    """A network in words."""
    if network == IDEAL:
        return "ideal network"
    wide = quantity(network.bandwidth, "B/s") if math.isfinite(network.bandwidth) else "infinite"
    words = f"latency {quantity(network.latency_s, 's')}, bandwidth {wide}"
    if math.isfinite(network.eager):
        words += f", rendezvous above {quantity(network.eager, 'B')}"
    return words + (f", {network.buses} buses" if network.buses else "")
