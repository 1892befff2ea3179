"""systemd's journal, spoken to in its own protocol: each fact of an event is a field that can be asked for.

``journalctl --user -u memoryd MEMORYD_EVENT=job_failed`` needs no parsing of lines. One datagram is one entry; what is
too large for a datagram goes as a sealed memory file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import socket
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, TextIO

SOCKET = "/run/systemd/journal/socket"
PRIORITIES = {"critical": 2, "error": 3, "warning": 4, "info": 6, "debug": 7}  # as syslog has them
_LONGEST_NAME = 64
_OURS = "MEMORYD_"
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


def is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether the stream is the very one that systemd connected to the journal: a pipe put in between is not."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):  # closed, or no file at all
        return False
    return environ.get("JOURNAL_STREAM", "") == f"{found.st_dev}:{found.st_ino}"


def encode_entry(fields: Mapping[str, str]) -> bytes:
    """The fields as the journal reads them; a value of several lines is preceded by its length."""
    parts: list[bytes] = []
    for name, value in fields.items():
        data = value.encode("utf-8", "backslashreplace")
        if b"\n" in data:
            parts += [name.encode(), b"\n", len(data).to_bytes(8, "little"), data, b"\n"]
        else:
            parts += [name.encode(), b"=", data, b"\n"]
    return b"".join(parts)


def render_fields(_logger: object, _method: str, event: MutableMapping[str, Any]) -> bytes:
    """structlog's last processor: an event as an entry. What people read first is MESSAGE; the rest is for queries."""
    facts = {str(key): value for key, value in event.items() if value is not None}
    level = str(facts.pop("level", "info"))
    facts.pop("timestamp", None)  # the journal keeps its own, which cannot be wrong
    name = str(facts.pop("event", ""))
    traceback = str(facts.pop("exception", ""))
    said = " ".join([name, *(f"{key}={_text(value)}" for key, value in facts.items())])
    fields = {
        "MESSAGE": f"{said}\n{traceback}" if traceback else said,
        "PRIORITY": str(PRIORITIES.get(level, 6)),
        "SYSLOG_IDENTIFIER": "memoryd",
        f"{_OURS}EVENT": name,
        f"{_OURS}LEVEL": level,
    }
    fields |= {_field_name(key): _text(value) for key, value in facts.items()}
    if traceback:
        fields[f"{_OURS}EXCEPTION"] = traceback
    return encode_entry(fields)


class JournalLogger:
    """What structlog writes to: one entry a call. Without a journal that listens, the line goes to stderr."""

    def __init__(self, address: str = SOCKET) -> None:
        self._address = address

    def msg(self, entry: bytes) -> None:
        try:
            self._send(entry)
        except OSError:
            said = entry.removeprefix(b"MESSAGE=") if entry.startswith(b"MESSAGE=") else entry[len(b"MESSAGE\n") + 8 :]
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(said.partition(b"\n")[0].decode(errors="replace") + "\n")

    debug = info = warning = warn = error = critical = fatal = exception = log = msg

    def _send(self, entry: bytes) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            try:
                sender.sendto(entry, self._address)
            except OSError as error:
                if error.errno not in (errno.EMSGSIZE, errno.ENOBUFS):
                    raise
                self._send_as_file(sender, entry)

    def _send_as_file(self, sender: socket.socket, entry: bytes) -> None:
        file = os.memfd_create("memoryd-log", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            with os.fdopen(file, "wb", closefd=False) as writing:
                writing.write(entry)
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)  # the journal takes only what nobody can change any more
            passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, file.to_bytes(4, sys.byteorder))]
            sender.sendmsg([], passed, 0, self._address)  # socket.send_fds would ignore the address
        finally:
            os.close(file)


def _field_name(key: str) -> str:
    """As the journal allows it: capitals, digits and underscores, at most 64 of them."""
    return (_OURS + re.sub(r"[^A-Z0-9_]", "_", key.upper()))[:_LONGEST_NAME]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys that are no text, or a circle
        return repr(value)
