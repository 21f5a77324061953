"""The event store: one HDF5 file per imported trace. The modules in this package are private.

Layout (schema 3)::

    /                       attributes: format, schema
    /description            JSON (bytes): source, importer, clock, locations, regions, texts, report
    /tables/TABLE/COLUMN    one 1-D dataset for each column that `events.TABLES` declares
    /tables/TABLE/index     (locations, 2) int64: first row, number of rows
    /derived/TABLE/...      the same for `DERIVED`: computed from the tables, kept so that opening a store
                            needs no pass over its events
    /kept                   space for results found later (`slot`), written in place without HDF5; not in
                            older stores, and ignored by older versions

Columns have chunks of `CHUNK` rows, byte shuffle and gzip (`desktop.data.packing`), so any HDF5 program reads
them. Rows of a location are contiguous. A store may come from anyone: everything is checked against the
declaration before it is used, and nothing in a store is ever executed.

`layout` declares the tables and the values allowed in them, `description` is everything about a trace but its
rows; only `writer` and `reader` know HDF5.
"""

from desktop.data.store.blocks import LARGEST, Blocks, remote_folder
from desktop.data.store.description import ClockSummary, Description, Source
from desktop.data.store.layout import CHUNK, DERIVED, FORMER_CHUNKS, SCHEMA, SUFFIX
from desktop.data.store.reader import TraceStore, is_store, open_store
from desktop.data.store.writer import BESIDE, Digest, StoreWriter

__all__ = [
    "BESIDE",
    "CHUNK",
    "DERIVED",
    "FORMER_CHUNKS",
    "LARGEST",
    "SCHEMA",
    "SUFFIX",
    "Blocks",
    "ClockSummary",
    "Description",
    "Digest",
    "Source",
    "StoreWriter",
    "TraceStore",
    "is_store",
    "open_store",
    "remote_folder",
]
