"""The journal's protocol, against a real datagram socket in the journal's place."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.journal import JournalLogger, encode_entry, is_journal, render_fields

Entry = dict[str, str]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(os.fspath(tmp_path / "socket"))
        end.settimeout(20)
        yield end


def parse(data: bytes) -> Entry:
    """As journald reads an entry."""
    fields: Entry = {}
    while data:
        line, _, rest = data.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if equals:
            data = rest
        else:
            (length,) = struct.unpack("<Q", rest[:8])
            value, data = rest[8 : 8 + length], rest[8 + length + 1 :]
        fields[name.decode()] = value.decode()
    return fields


def receive(journal: socket.socket) -> Entry:
    data, descriptors, _, _ = socket.recv_fds(journal, 1 << 20, 1)
    if not descriptors:
        return parse(data)
    assert data == b""
    (file,) = descriptors
    try:
        with pytest.raises(PermissionError):  # sealed: the reader may trust what it maps
            os.ftruncate(file, 0)
        return parse(os.pread(file, 1 << 26, 0))
    finally:
        os.close(file)


def test_event_is_an_entry_with_priority_and_fields(journal: socket.socket, tmp_path: Path) -> None:
    logger = JournalLogger(str(tmp_path / "socket"))
    event = {"event": "job_done", "level": "warning", "timestamp": "x", "took_ms": 1.5, "path": "a b.md", "none": None}
    logger.warning(render_fields(None, "", {**event, "odd-key": ["é", 1]}))
    assert receive(journal) == {
        "MESSAGE": 'job_done took_ms=1.5 path=a b.md odd-key=["é", 1]',
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "memoryd",
        "MEMORYD_EVENT": "job_done",
        "MEMORYD_LEVEL": "warning",
        "MEMORYD_TOOK_MS": "1.5",
        "MEMORYD_PATH": "a b.md",
        "MEMORYD_ODD_KEY": '["é", 1]',
    }


def test_traceback_is_kept_whole(journal: socket.socket, tmp_path: Path) -> None:
    entry = render_fields(None, "", {"event": "failed", "level": "error", "exception": "Traceback:\n  boom\nEnd"})
    JournalLogger(str(tmp_path / "socket")).error(entry)
    received = receive(journal)
    assert received["MESSAGE"] == "failed\nTraceback:\n  boom\nEnd"
    assert received["MEMORYD_EXCEPTION"] == "Traceback:\n  boom\nEnd"
    assert received["PRIORITY"] == "3"


def test_entry_too_large_for_a_datagram_arrives_as_a_sealed_file(journal: socket.socket, tmp_path: Path) -> None:
    large = "x" * (8 << 20)
    JournalLogger(str(tmp_path / "socket")).info(render_fields(None, "", {"event": "large", "facts": large}))
    assert receive(journal)["MEMORYD_FACTS"] == large


@given(st.dictionaries(st.from_regex(r"[A-Z][A-Z0-9_]{0,20}", fullmatch=True), st.text()))
def test_every_text_comes_back_as_it_was_sent(fields: Entry) -> None:
    sent = {name: value.encode("utf-8", "backslashreplace").decode() for name, value in fields.items()}
    assert parse(encode_entry(fields)) == sent


@given(st.dictionaries(st.text(), st.text()))
def test_every_key_becomes_a_name_that_the_journal_takes(facts: Entry) -> None:
    for name in parse(render_fields(None, "", {"event": "odd", **facts})):
        assert name[0].isascii()
        assert name[0].isupper()
        assert len(name) <= 64
        assert all(char.isascii() and (char.isupper() or char.isdigit() or char == "_") for char in name)


def test_without_a_journal_the_line_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logger = JournalLogger(str(tmp_path / "nobody"))
    logger.info(render_fields(None, "", {"event": "serving", "pid": 7}))
    logger.info(render_fields(None, "", {"event": "failed", "exception": "two\nlines"}))
    assert capsys.readouterr().err == "serving pid=7\nfailed\n"


def test_only_the_stream_that_systemd_connected_is_the_journal(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("w") as stream, (tmp_path / "other").open("w") as other:
        found = os.fstat(stream.fileno())
        environ = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}
        assert is_journal(stream, environ)
        assert not is_journal(other, environ)
        assert not is_journal(stream, {})


LOG_ONE_LINE = """
import os, structlog, logging, sys
from memoryd.daemon import journal
from memoryd.daemon.logs import configure_logs
configure_logs("info", sys.argv[1], include_text=False)
structlog.get_logger().info("query_done", query="my secret")
"""


@pytest.mark.parametrize(("matches", "format", "as_json"), [(True, "json", True), (False, "auto", True)])
def test_json_lines_where_they_are_asked_for_or_nobody_keeps_a_journal(
    tmp_path: Path, matches: bool, format: str, as_json: bool
) -> None:
    file = tmp_path / "stderr"
    with file.open("w") as stream:
        found = os.fstat(stream.fileno())
        environ = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"} if matches else {}
        subprocess.run(
            [sys.executable, "-c", LOG_ONE_LINE, format], env={**os.environ, **environ}, stderr=stream, check=True
        )
    assert json.loads(file.read_text())["query"] == "<9 characters>"
