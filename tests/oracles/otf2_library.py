"""An engine of the OTF2 importer that asks libotf2, which the ``otf2`` wheel ships: bound with ctypes.

Sound archives give the same rows as with the importer's own decoder, by which each proves the other. With
damaged ones the library is careless: behind the end of a cut file it goes on in memory that holds other
records, it skips what it does not know, and it does not say where the damage is.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Generator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from desktop.data.importers._otf2.definitions import Definitions
from desktop.data.importers._otf2.engine import Anchor, Damage, EngineMark, Local, Marks
from desktop.data.importers._otf2.records import FAULT, FAULTS, Block, Buffer
from desktop.errors import TraceFormatError
from tests.oracles.otf2_callbacks import GO_ON, compiled

Handle = ctypes.c_void_p
u8, u32, u64, i64, text = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64, ctypes.c_char_p
number = ctypes.POINTER(u64)

INTERRUPTED = 92  # the error code when a callback has asked for a pause

#: name (without OTF2_) -> result, arguments. A result of None: an error code, 0 is success.
PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "Error_RegisterCallback": (Handle, (Handle, Handle)),
    "Error_GetDescription": (text, (ctypes.c_int,)),
    "Reader_Open": (Handle, (text,)),
    "Reader_Close": (None, (Handle,)),
    "Reader_SetSerialCollectiveCallbacks": (None, (Handle,)),
    "Reader_GetGlobalDefReader": (Handle, (Handle,)),
    "Reader_RegisterGlobalDefCallbacks": (None, (Handle, Handle, Handle, Handle)),
    "Reader_ReadAllGlobalDefinitions": (None, (Handle, Handle, number)),
    "GlobalDefReaderCallbacks_New": (Handle, ()),
    "GlobalDefReaderCallbacks_Delete": (None, (Handle,)),
    "Reader_SelectLocation": (None, (Handle, u64)),
    "Reader_OpenDefFiles": (None, (Handle,)),
    "Reader_CloseDefFiles": (None, (Handle,)),
    "Reader_OpenEvtFiles": (None, (Handle,)),
    "Reader_CloseEvtFiles": (None, (Handle,)),
    "Reader_GetDefReader": (Handle, (Handle, u64)),
    "Reader_RegisterDefCallbacks": (None, (Handle, Handle, Handle, Handle)),
    "Reader_ReadAllLocalDefinitions": (None, (Handle, Handle, number)),
    "Reader_CloseDefReader": (None, (Handle, Handle)),
    "DefReaderCallbacks_New": (Handle, ()),
    "DefReaderCallbacks_Delete": (None, (Handle,)),
    "Reader_GetEvtReader": (Handle, (Handle, u64)),
    "Reader_RegisterEvtCallbacks": (None, (Handle, Handle, Handle, Handle)),
    "Reader_ReadLocalEvents": (None, (Handle, Handle, u64, number)),
    "Reader_CloseEvtReader": (None, (Handle, Handle)),
    "EvtReaderCallbacks_New": (Handle, ()),
    "EvtReaderCallbacks_Delete": (None, (Handle,)),
    "Reader_GetMarkerReader": (Handle, (Handle,)),
    "Reader_RegisterMarkerCallbacks": (None, (Handle, Handle, Handle, Handle)),
    "Reader_ReadAllMarkers": (None, (Handle, Handle, number)),
    "Reader_CloseMarkerReader": (None, (Handle, Handle)),
    "MarkerReaderCallbacks_New": (Handle, ()),
    "MarkerReaderCallbacks_Delete": (None, (Handle,)),
}
#: Global definitions that are kept: the C types of their fields as the library passes them, and which of them
#: are kept, in the order of `definitions.KEPT`.
LAYOUT: dict[str, tuple[tuple[Any, ...], tuple[int, ...]]] = {
    "ClockProperties": ((u64, u64, u64, u64), (0, 1, 2)),
    "String": ((u32, text), (0, 1)),
    "LocationGroup": ((u32, u32, u8, u32, u32), (0, 1, 2)),
    "Location": ((u64, u32, u8, u64, u32), (0, 1, 2, 3, 4)),
    "Region": ((u32, u32, u32, u32, u8, u8, u32, u32, u32, u32), (0, 1, 4, 5, 3, 2)),
    "Group": ((u32, u32, u8, u8, u32, u32, number), (0, 2, 3, 4, 6)),
    "Comm": ((u32, u32, u32, u32, u32), (0, 2, 1)),
    "MetricMember": ((u32, u32, u32, u8, u8, u8, u8, i64, u32), (0, 1, 4, 6, 7, 8)),
    "MetricClass": ((u32, u8, ctypes.POINTER(u32), u8, u8), (0, 2)),
    "MetricInstance": ((u32, u32, u64, u8, u64), (0, 1)),
    "CallingContext": ((u32, u32, u32, u32), (0, 1)),
}
COUNTED = {"Group": (5, 6), "MetricClass": (1, 2)}  # number of members, and the field that points to them
MISSING = TraceFormatError(
    "libotf2 is not installed here",
    hint="install the Python package otf2, which exists for Linux on x86-64 with Python 3.11",
)


class Library:
    """The functions of libotf2, with errors collected instead of printed."""

    def __init__(self, file: Path) -> None:
        # A handle of our own: the wheel's Python modules set other argument types on theirs.
        self.file = str(file)
        self._library = ctypes.CDLL(self.file)
        self._said = threading.local()
        self._keep = ctypes.CFUNCTYPE(ctypes.c_int, Handle, text, u64, text, ctypes.c_int, text, Handle)(
            self._note
        )
        for name, (result, arguments) in PROTOTYPES.items():
            function = self._library[f"OTF2_{name}"]
            function.restype, function.argtypes = result or ctypes.c_int, arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"libotf2 has no function {name}")

    def _note(self, _data: Any, _file: Any, _line: Any, _function: Any, code: int, *_format: Any) -> int:
        self._said.code = code
        return code

    def silence(self) -> None:
        """Errors are noted; whoever used the library before may have set a reporter of his own."""
        self._said.code = 0
        self.Error_RegisterCallback(self._keep, None)

    def why(self, code: int = 0) -> str:
        """The description of an error code, or of the latest error of this thread."""
        said = self.Error_GetDescription(code or getattr(self._said, "code", 0))
        return said.decode("utf-8", "replace").strip().rstrip(".").lower() if said else "unknown error"

    def set_callback(self, kind: str, record: str, callbacks: int, address: Any) -> None:
        """Register a callback; records that this version of the library does not know are left out."""
        try:
            function = self._library[f"OTF2_{kind}Callbacks_Set{record}Callback"]
        except AttributeError:
            return
        function.restype, function.argtypes = ctypes.c_int, (Handle, Handle)
        function(callbacks, address)


@cache
def library() -> Library:
    """The library of the installed wheel; TraceFormatError if there is none for this system."""
    found = find_spec("_otf2")
    for folder in found.submodule_search_locations or [] if found else []:
        for file in sorted(Path(folder).glob("_otf2.*.so")):
            try:
                return Library(file)
            except (OSError, AttributeError):
                continue  # built for another system, or not the library
    raise MISSING


class LibraryEngine:
    """Reads an archive through the library."""

    def __init__(self, anchor: Anchor, records: int) -> None:
        """`records` of a location are read at a time."""
        self.anchor, self.at_a_time = anchor, records
        self.library = lib = library()
        lib.silence()
        compiled()  # before anything of the library is open
        self._callbacks: list[tuple[Callable[..., Any], int]] = []  # with their destructors
        self._keep: list[Any] = []
        self._local: dict[int, Local] = {}
        self.reader = lib.Reader_Open(bytes(anchor.file))
        if not self.reader:
            raise TraceFormatError(
                "the anchor file of the OTF2 archive cannot be read",
                file=anchor.file,
                where=lib.why(),
                hint="copy it again",
            )
        lib.Reader_SetSerialCollectiveCallbacks(self.reader)

    def close(self) -> None:
        for delete, callbacks in self._callbacks:
            delete(callbacks)
        if self.reader:
            self.library.Reader_Close(self.reader)
        self._callbacks, self.reader = [], None

    def _set(self, kind: str, functions: dict[str, tuple[Callable[..., int], tuple[Any, ...]]]) -> int:
        """Callbacks in Python: record -> function, C types of its arguments."""
        native = {}
        for record, (function, arguments) in functions.items():
            native[record] = ctypes.CFUNCTYPE(ctypes.c_int, Handle, *arguments)(function)
        self._keep += native.values()
        return self._register(
            kind, {record: ctypes.cast(function, Handle) for record, function in native.items()}
        )

    def _register(self, kind: str, addresses: dict[str, Any]) -> int:
        callbacks: int = getattr(self.library, f"{kind}Callbacks_New")()
        self._callbacks.append((getattr(self.library, f"{kind}Callbacks_Delete"), callbacks))
        for record, address in addresses.items():
            self.library.set_callback(kind, record, callbacks, address)
        return callbacks

    def definitions(self) -> Definitions:
        lib, read, found = self.library, u64(), Definitions()

        def handler(record: str, kept: tuple[int, ...]) -> Callable[..., int]:
            def define(_data: Any, *fields: Any) -> int:
                values = list(fields)
                if record in COUNTED:
                    n, members = COUNTED[record]
                    values[members] = fields[members][: fields[n]]
                found.add(record, *(values[i] for i in kept))
                return GO_ON

            return define

        callbacks = self._set(
            "GlobalDefReader",
            {record: (handler(record, kept), fields) for record, (fields, kept) in LAYOUT.items()},
        )
        definitions = lib.Reader_GetGlobalDefReader(self.reader)
        if not definitions:
            raise Damage(lib.why())
        lib.Reader_RegisterGlobalDefCallbacks(self.reader, definitions, callbacks, None)
        code = lib.Reader_ReadAllGlobalDefinitions(self.reader, definitions, ctypes.byref(read))
        if code:
            raise Damage(f"after {read.value} definitions: {lib.why(code)}")
        found.records = read.value
        self._open(found)
        return found

    def _open(self, definitions: Definitions) -> None:
        """Load number translations and clock offsets, which the library then applies to the events itself."""
        lib, read = self.library, u64()
        locations = list(definitions.by["Location"])
        for location in locations:
            lib.Reader_SelectLocation(self.reader, location)
        offsets: list[tuple[int, int]] = []

        def clock_offset(_data: Any, time: int, offset: int, _deviation: float) -> int:
            offsets.append((time, offset))
            return GO_ON

        callbacks = self._set("DefReader", {"ClockOffset": (clock_offset, (u64, i64, ctypes.c_double))})
        opened = not lib.Reader_OpenDefFiles(self.reader)
        for location in locations:
            local = self._local[location] = Local("there are none")
            reader = lib.Reader_GetDefReader(self.reader, location) if opened else None
            if not reader:
                continue
            offsets.clear()
            lib.Reader_RegisterDefCallbacks(self.reader, reader, callbacks, None)
            code = lib.Reader_ReadAllLocalDefinitions(self.reader, reader, ctypes.byref(read))
            lib.Reader_CloseDefReader(self.reader, reader)
            local.damage = lib.why(code) if code else ""
            local.set_offsets(offsets)
        if opened:
            lib.Reader_CloseDefFiles(self.reader)

    def local(self, location: int) -> Local:
        return self._local[location]

    def events(self, location: int, local: Local, span: int) -> Generator[Block, None, None]:
        lib, buffer, read = self.library, Buffer(self.at_a_time, span), u64()
        callbacks = self._register(
            "EvtReader", {record: native.address for record, native in compiled().items()}
        )
        lib.Reader_OpenEvtFiles(self.reader)
        events = lib.Reader_GetEvtReader(self.reader, location)
        if not events:
            last = buffer.take(ended=True)
            last.fault = lib.why()
            yield last
            return
        try:
            lib.Reader_RegisterEvtCallbacks(self.reader, events, callbacks, buffer.words.ctypes.data)
            code, wanted = 0, 1
            while True:
                if not (wanted := buffer.room):
                    yield buffer.take()
                    buffer.drop()
                    continue
                code = lib.Reader_ReadLocalEvents(self.reader, events, wanted, ctypes.byref(read))
                if buffer.words[FAULT] or code not in (0, INTERRUPTED) or (not code and read.value < wanted):
                    break
            last = buffer.take(ended=True)
            last.fault = FAULTS[buffer.words[FAULT]] or (lib.why(code) if code else "")
            yield last
        finally:
            lib.Reader_CloseEvtReader(self.reader, events)

    def marks(self) -> Marks:
        found, lib, read = Marks(), self.library, u64()
        if not self.anchor.folder.with_suffix(".marker").exists():
            return found
        categories: dict[int, bytes] = {}

        def define(_data: Any, number: int, _group: bytes, category: bytes, _severity: int) -> int:
            categories[number] = category or b""
            return GO_ON

        def mark(_data: Any, time: int, _duration: int, number: int, scope: int, of: int, said: bytes) -> int:
            words = (said or categories.get(number, b"")).decode("utf-8", "replace")
            found.marks.append(EngineMark(time, words or f"mark {number}", of if scope == 1 else None))
            return GO_ON

        callbacks = self._set(
            "MarkerReader",
            {"DefMarker": (define, (u32, text, text, u8)), "Marker": (mark, (u64, u64, u32, u8, u64, text))},
        )
        markers = lib.Reader_GetMarkerReader(self.reader)
        if not markers:
            found.damage = lib.why()
            return found
        lib.Reader_RegisterMarkerCallbacks(self.reader, markers, callbacks, None)
        code = lib.Reader_ReadAllMarkers(self.reader, markers, ctypes.byref(read))
        lib.Reader_CloseMarkerReader(self.reader, markers)
        found.damage = lib.why(code) if code else ""
        return found
