"""Lines out of bytes that arrive in any pieces."""

import tracemalloc

import pytest

from memoryd.daemon.framing import LineFraming
from memoryd.store.errors import RequestTooLarge


def test_line_is_a_message_when_its_newline_arrives():
    framing = LineFraming(100)
    assert framing.feed(b'{"a"') == []
    assert framing.feed(b":1}\n{}") == [b'{"a":1}']
    assert framing.feed(b"\n") == [b"{}"]


def test_last_line_needs_no_newline():
    framing = LineFraming(100)
    framing.feed(b"{}")
    assert framing.end() == [b"{}"]
    assert framing.end() == []


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"  \t \n", b"\n\n\n"])
def test_blank_lines_are_nothing(blank):
    assert LineFraming(100).feed(blank) == []


def test_line_of_exactly_the_limit_passes_and_one_more_byte_does_not():
    assert LineFraming(3).feed(b"abc\n") == [b"abc"]
    assert isinstance(LineFraming(3).feed(b"abcd\n")[0], RequestTooLarge)


def test_too_long_line_is_reported_once_at_once_and_the_next_line_is_read():
    framing = LineFraming(4)
    assert [type(message) for message in framing.feed(b"12345")] == [RequestTooLarge]
    assert framing.feed(b"67890") == []
    assert framing.feed(b"more\nok\n") == [b"ok"]


def test_too_long_line_is_not_kept():
    framing = LineFraming(1024)
    piece = b"x" * 65536
    tracemalloc.start()
    try:
        for _ in range(1024):
            framing.feed(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1024 * 1024


def test_answer_is_framed_as_a_line_that_reads_back():
    assert LineFraming(100).feed(LineFraming.frame(b"{}")) == [b"{}"]
