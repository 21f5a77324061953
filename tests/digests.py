"""Some of the summaries that an import makes, for stores that are written with them or without."""

from desktop.data.digest import EventDigest
from desktop.data.profile import PathNotes, TrafficDigest
from desktop.data.store import StoreWriter
from desktop.data.timeline import Strips


def strips(writer: StoreWriter) -> EventDigest:
    return EventDigest(writer, strips=Strips(writer))


def paths(writer: StoreWriter) -> EventDigest:
    return EventDigest(writer, notes=PathNotes(writer))


TIMELINE = (strips,)
PROFILE = (paths, TrafficDigest)
