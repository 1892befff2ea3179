"""Messages out of bytes that arrive in any pieces, in lines or behind headers."""

import tracemalloc

import pytest

from memoryd.daemon.any_framing import AnyFraming
from memoryd.daemon.framing import LineFraming
from memoryd.daemon.header_framing import MAX_HEADER_BYTES, HeaderFraming
from memoryd.store.errors import FramingInvalid, RequestTooLarge


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


def framed(body):
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_bodies_are_found_in_any_pieces(step):
    framing, data = HeaderFraming(100), framed(b'{"a":1}') + framed(b"") + b"\r\n" + framed(b"\r\n\r\n") + framed(b"{}")
    messages = [m for at in range(0, len(data), step) for m in framing.feed(data[at : at + step])]
    assert messages == [b'{"a":1}', b"", b"\r\n\r\n", b"{}"]
    assert not framing.partial
    assert framing.end() == []


def test_body_of_exactly_the_limit_passes_and_one_more_byte_does_not():
    assert HeaderFraming(3).feed(framed(b"abc")) == [b"abc"]
    framing = HeaderFraming(3)
    refused, following = framing.feed(framed(b"abcd") + framed(b"ok"))
    assert isinstance(refused, RequestTooLarge)
    assert following == b"ok"


def test_body_that_is_too_large_is_not_kept():
    framing = HeaderFraming(1024)
    assert len(framing.feed(b"Content-Length: %d\r\n\r\n" % (64 << 20))) == 1
    piece = b"x" * 65536
    tracemalloc.start()
    try:
        for _ in range(1024):
            assert framing.feed(piece) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1024 * 1024
    assert framing.feed(framed(b"ok")) == [b"ok"]


def test_header_that_never_ends_is_not_kept():
    framing = HeaderFraming(1024)
    messages = framing.feed(b"Content-Length: 1\r\n" + b"X: y\r\n" * MAX_HEADER_BYTES)
    assert [type(message) for message in messages] == [FramingInvalid]
    assert framing.broken
    assert framing.feed(framed(b"{}")) == []


def test_stream_that_ends_inside_a_message_is_told():
    for begun in (b"Content-Length: 5\r\n", b"Content-Length: 5\r\n\r\n", b"Content-Length: 5\r\n\r\n123"):
        framing = HeaderFraming(100)
        framing.feed(begun)
        assert framing.partial
        assert [type(message) for message in framing.end()] == [FramingInvalid]


@pytest.mark.parametrize(
    ("data", "messages", "answer"),
    [
        (b"{}\n", [b"{}"], b"[]\n"),
        (b"\n\n  {}\n", [b"{}"], b"[]\n"),
        (b"[]\nContent-Length: 2\n", [b"[]", b"Content-Length: 2"], b"[]\n"),
        (b"Cont\n", [b"Cont"], b"[]\n"),
        (b"Contents\n", [b"Contents"], b"[]\n"),
        (b"GET / HTTP/1.1\r\n", [b"GET / HTTP/1.1\r"], b"[]\n"),
        (framed(b"{}"), [b"{}"], b"Content-Length: 2\r\n\r\n[]"),
        (b"\r\n" + framed(b"{}").lower(), [b"{}"], b"Content-Length: 2\r\n\r\n[]"),
    ],
)
@pytest.mark.parametrize("step", [1, 1000])
def test_first_bytes_show_the_framing_for_good(data, messages, answer, step):
    framing = AnyFraming(100)
    assert [m for at in range(0, len(data), step) for m in framing.feed(data[at : at + step])] == messages
    assert framing.frame(b"[]") == answer


def test_client_that_has_said_nothing_yet_is_answered_in_lines():
    framing = AnyFraming(100)
    assert framing.frame(b"{}") == b"{}\n"
    framing.feed(b" \r\n ")
    assert not framing.partial
    framing.feed(b"Conten")
    assert framing.partial
    assert framing.end() == [b"Conten"]
