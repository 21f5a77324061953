"""OTF traces written and read the slow way: one line, one regular expression at a time.

The grammar is stated here a second time, in other words than in the importer, and nothing is shared with it.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_ENDING = re.compile(rb"^([0-9a-f]+)\n\*[0-9a-f]+\n\Z", re.M)
SHORT = {
    "E": "enter",
    "L": "leave",
    "S": "send",
    "R": "receive",
    "CNT": "counter",
    "COP": "collective",
    "COPB": "begin",
    "COPE": "end",
    "PB": "start",
    "PE": "stop",
}
LONG = {
    "ENTER": "enter",
    "LEAVE": "leave",
    "SEND": "send",
    "RECEIVE": "receive",
    "COUNTER": "counter",
    "COLLOP": "collective",
    "COLLOPBEGIN": "begin",
    "COLLOPEND": "end",
    "PROCESSBEGIN": "start",
    "PROCESSEND": "stop",
}
RECORDS = SHORT | LONG
FIELDS = {
    "L": "LEN",
    "T": "TAG",
    "C": "COMM",
    "X": "SCL",
    "RT": "ROOT",
    "S": "SENT",
    "R": "RECVD",
    "D": "DUR",
    "H": "HANDLEID",
    "V": "VALUE",
}
NEEDED = {"send": {"LEN", "TAG"}, "receive": {"LEN", "TAG"}, "begin": {"HANDLEID"}, "counter": {"VALUE"}}
NOT_GIVEN = 2**32 - 1
DAY = 86400
#: The operations that each type of the format may stand for, as MPI 4.0 sorts them (section 6.2.2), and what
#: the type is called. A scan, which is of no type, may be recorded as any of them.
SCANS = {"Scan", "Exscan"}
TYPES = {
    1: ("Barrier", {"Barrier"}),
    2: ("one-to-all", {"Bcast", "Scatter", "Scatterv"}),
    3: ("all-to-one", {"Gather", "Gatherv", "Reduce"}),
    4: (
        "all-to-all",
        {
            *("Barrier", "Allgather", "Allgatherv", "Allreduce", "Alltoall", "Alltoallv", "Alltoallw"),
            *("Reduce_scatter", "Reduce_scatter_block"),
        },
    ),
}
OPERATIONS = SCANS.union(*(operations for _, operations in TYPES.values()))


@dataclass
class Process:
    """Rows as the importer's tables have them, with numbers of the trace."""

    records: int = 0
    times: list[int] = field(default_factory=list)
    ended: bool = False
    events: list[tuple[int, int, int]] = field(default_factory=list)  # time, kind, function
    messages: list[tuple[int, ...]] = field(default_factory=list)  # time, kind, peer, comm, tag, bytes
    # begin, end, (operation, function around it), comm, root, sent, got
    collectives: list[tuple[Any, ...]] = field(default_factory=list)
    metrics: list[tuple[int, int, int]] = field(default_factory=list)  # time, counter, value
    marks: list[tuple[int, str]] = field(default_factory=list)
    begun: list[tuple[Any, ...]] = field(default_factory=list)  # matching id (-1: until the leave), row
    entered: int = -1
    within: int = 0  # the function entered last


@dataclass
class Read:
    processes: dict[int, Process]
    odd: Counter[str]
    complete: bool


def content(file: Path) -> bytes:
    """What a file holds; of a compressed one, what comes before an error."""
    data = file.read_bytes()
    if file.suffix != ".z":
        return data
    inflater = zlib.decompressobj()
    found = []
    for byte in data:
        try:
            found.append(inflater.decompress(bytes([byte])))
        except zlib.error:
            break
    return b"".join(found)


def read(data: bytes, listed: list[int], span: int = 2**61) -> Read:
    """The records of an event file. `span`: a step in time, or a duration, of so many ticks is damage."""
    processes = {number: Process() for number in listed}
    odd: Counter[str] = Counter()
    time, current, before = -1, -1, -1
    whole = data[: data.rfind(b"\n") + 1]
    for line in whole.split(b"\n")[:-1]:
        core = re.sub(rb"[ \t]*\r?\Z", b"", line.lstrip(b" \t"))
        if re.match(rb"[0-9a-f]", core):
            value = number(core, 61)
            if value is None or (time >= 0 and value - time >= span):
                odd["bad lines"] += 1
                continue
            odd["times"] += value < time
            time = value
        elif core.startswith(b"*"):
            value = number(core[1:].lstrip(b" \t"), 32)
            odd["bad lines"] += value is None
            current = -1 if value is None else value
        elif core.startswith(b"#") or re.match(rb"[A-Z]", core):
            told = record(core, odd, time, span)
            if told is None:
                continue
            before = time
            process = processes.get(current) if time >= 0 else None
            if process is None:
                odd["nobody's records" if time < 0 or current < 0 else "other processes"] += 1
            else:
                process.records += 1
                process.times.append(time)
                take(process, time, *told, line.lstrip(b" \t"), odd)
        else:
            odd["bad lines"] += core != b""
    for process in processes.values():
        odd["collectives"] += len(process.begun)
        for rows in (process.events, process.messages, process.collectives, process.metrics, process.marks):
            rows.sort(key=lambda row: row[0])
        odd["leaves"] += name_leaves(process)
    last = _ENDING.search(whole)
    ends = last is not None and int(last[1], 16) == before
    return Read(processes, +odd, ends and whole == data)


def number(text: bytes, bits: int) -> int | None:
    if not re.fullmatch(rb"[0-9a-f]{1,16}", text) or int(text, 16) >= 1 << bits:
        return None
    return int(text, 16)


def record(core: bytes, odd: Counter[str], time: int, span: int) -> tuple[str, int, dict[str, int]] | None:
    """Kind, first number and fields of a record; None: it is none."""
    if core.startswith(b"#"):
        return "comment", 0, {}
    word = re.match(rb"[A-Z]+", core)[0].decode()
    kind = RECORDS.get(word)
    if kind is None:
        if word[0] == "K":
            return None
        if word[0] in "FGMTU":
            return "other", 0, {}
        odd["unknown records"] += 1
        return None
    found = re.fullmatch(rb"[ \t]*([0-9a-f]+)?((?:[ \t]*[A-Z]+[ \t]*[0-9a-f]+)*)", core[len(word) :])
    odd["bad lines"] += 1
    if found is None or (found[1] is None and kind not in ("leave", "start", "stop")):
        return None
    first = number(found[1] or b"0", 32)
    fields = {}
    for name, digits in re.findall(rb"([A-Z]+)[ \t]*([0-9a-f]+)", found[2]):
        key = FIELDS.get(name.decode(), name.decode())
        bits = {"COMM": 32, "ROOT": 32, "VALUE": 64}.get(key, 61)
        value = number(digits, bits)
        if key not in FIELDS.values() or value is None:
            return None
        fields[key] = value
    lasting = fields.get("DUR", 0)
    if first is None or NEEDED.get(kind, set()) - fields.keys() or lasting >= min(span, 2**61 - time):
        return None
    odd["bad lines"] -= 1
    return kind, first, fields


def take(
    process: Process, time: int, kind: str, first: int, fields: dict[str, int], line: bytes, odd: Counter[str]
) -> None:
    def finish(handle: int, end: int) -> bool:
        for at in reversed(range(len(process.begun))):
            if process.begun[at][0] == handle:
                _, begin, *rest = process.begun.pop(at)
                process.collectives.append((begin, max(begin, end), *rest))
                return True
        return False

    comm = fields.get("COMM") or NOT_GIVEN
    about = (
        (first, process.within),
        comm,
        fields.get("ROOT", 0),
        fields.get("SENT", 0),
        fields.get("RECVD", 0),
    )
    if kind == "enter":
        process.events.append((time, 0, first))
        process.entered, process.within = time, first
    elif kind == "leave":
        finish(-1, time)
        process.events.append((time, 1, first))
    elif kind in ("send", "receive"):
        what = 0 if kind == "send" else 3
        process.messages.append((time, what, first, comm, fields["TAG"], fields["LEN"]))
    elif kind == "counter":
        process.metrics.append((time, first, fields["VALUE"]))
    elif kind == "collective" and fields.get("DUR"):
        process.collectives.append((time, time + fields["DUR"], *about))
    elif kind == "collective":
        finish(-1, time)
        process.begun.append((-1, min(time, max(process.entered, min(process.times))), *about))
    elif kind == "begin":
        process.begun.append((fields["HANDLEID"], time, *about))
    elif kind == "end":
        odd["collectives"] += not finish(first, time)
    elif kind == "stop":
        process.ended = True
    elif kind == "comment":
        text = line[1:].decode("utf-8", "replace").strip().removeprefix("EVTCOMMENT").strip().strip('"')
        process.marks.append((time, text))
    elif kind == "other":
        odd["other records"] += 1


def called(name: str, kind: int, function: str) -> str:
    """A collective by its definition (name and type), and by the name of the function around it.

    An operation of MPI is called by its name. Others, such as "all-to-all", are called as the call they are
    in if that is one of their type, else by the type, else as they are.
    """
    own = re.fullmatch("(?i)p?mpi_(.+?)_*", name)
    name = own[1] if own else name
    if name.capitalize() in OPERATIONS:
        return name
    kind_name, members = TYPES.get(kind, (name, set()))
    call = re.fullmatch("(?i)p?mpi_(.+?)_*", function)
    if kind in TYPES and kind != 1 and call and call[1].capitalize() in members | SCANS:
        return call[1].capitalize()
    return kind_name


def name_leaves(process: Process) -> int:
    """Give leaves of no function that of the innermost open one; how many there is none for."""
    stack: list[int] = []
    kept = []
    for time, kind, function in process.events:
        if kind == 0:
            stack.append(function)
        elif function in stack:
            del stack[len(stack) - 1 - stack[::-1].index(function)]
        elif not function and stack:
            function = stack.pop()
        if kind == 0 or function:
            kept.append((time, kind, function))
    lost = len(process.events) - len(kept)
    process.events = kept
    return lost


# ---------------------------------------------------------------- writing

DEFINED = {
    "DTR": "DEFTIMERRESOLUTION",
    "DP": "DEFPROCESS",
    "DPG": "DEFPROCESSGROUP",
    "DF": "DEFFUNCTION",
    "DFG": "DEFFUNCTIONGROUP",
    "DCO": "DEFCOLLOP",
    "DCNT": "DEFCOUNTER",
    "DV": "DEFVERSION",
    "DUI": "DEFUNIQUEID",
    "DCR": "DEFCREATOR",
    "DCMT": "DEFCOMMENT",
}
INSIDE = {"NM": "NAME", "G": "GROUP", "Y": "TYPE", "M": "MEMBERS", "PT": "PARENT", "P": "PROPERTIES"}
TOKEN = re.compile(r'"[^"]*"|[A-Z]+|[^A-Z" ]+')
WORDS = dict(zip(SHORT, LONG, strict=True)) | DEFINED


def respelled(text: str, long: bool) -> str:
    """Records with all keywords in their short or long form; times, processes and comments as they are."""
    first, inner = WORDS, FIELDS | INSIDE
    if not long:
        first, inner = ({new: old for old, new in words.items()} for words in (first, inner))
    lines = []
    for line in text.splitlines():
        if re.match("[A-Z]", line):
            word, *rest = TOKEN.findall(line)
            tokens = [first.get(word, word), *(inner.get(token, token) for token in rest)]
            line = (" " if long else "").join(tokens)
        lines.append(line + "\n")
    return "".join(lines)


def packed(data: bytes) -> bytes:
    """As the format's library packs: flushed and never finished."""
    packer = zlib.compressobj()
    return packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)


def write(folder: Path, files: dict[str, str], zipped: bool = False) -> Path:
    """Write the files of a trace, by the middle of their names ("0.def", "1.events"; "": the master)."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        if name:
            data = text.encode()
            (folder / f"trace.{name}{'.z' * zipped}").write_bytes(packed(data) if zipped else data)
    master = folder / "trace.otf"
    master.write_text(files[""])
    return master
