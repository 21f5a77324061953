"""The C library libotf2 that the ``otf2`` wheel ships, bound with ctypes."""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from desktop.errors import TraceFormatError

Handle = ctypes.c_void_p
u8, u32, u64, i64, text = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64, ctypes.c_char_p
number = ctypes.POINTER(u64)

#: What a callback answers, and the error code when it has answered STOP.
GO_ON, STOP = 0, 1
INTERRUPTED = 92

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
    "Reader_GetCreator": (None, (Handle, ctypes.POINTER(Handle))),
    "Reader_GetMachineName": (None, (Handle, ctypes.POINTER(Handle))),
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
MISSING = TraceFormatError(
    "is an OTF2 archive, which cannot be read here",
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
