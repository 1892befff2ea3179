"""JSON-RPC as bytes: what is understood, what is refused, and with which words."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.framing import LineFraming
from memoryd.daemon.protocol import (
    ERROR_NUMBERS,
    Refusal,
    Request,
    WireError,
    encode_batch,
    encode_error,
    encode_result,
    error_of,
    parse_message,
)
from memoryd.store.errors import Busy, MemorydError, RequestTooLarge, all_errors

MAX_BATCH = 10


def parse(value):
    return parse_message(json.dumps(value).encode(), MAX_BATCH)


def request(**members):
    return {"jsonrpc": "2.0", "id": 1, "method": "ping", **members}


def test_request_is_understood():
    assert parse(request(params={"a": 1})) == Request(1, "ping", {"a": 1}, is_notification=False)


def test_params_may_be_left_out():
    assert parse(request()).params == {}


def test_request_without_id_is_a_notification_and_one_with_null_is_not():
    assert parse({"jsonrpc": "2.0", "method": "ping"}).is_notification
    assert not parse(request(id=None)).is_notification


@pytest.mark.parametrize("id_", ["a", "", 0, -1, 1.5, 10**400, None, "\ud800"])
def test_id_comes_back_as_it_was(id_):
    understood = parse(request(id=id_))
    assert json.loads(encode_result(understood.id, None))["id"] == id_


@pytest.mark.parametrize("id_", [True, False, [], {}, [1]])
def test_id_of_another_kind_is_refused_with_null(id_):
    refusal = parse(request(id=id_))
    assert (refusal.id, refusal.error.code) == (None, "invalid_request")


@pytest.mark.parametrize(
    "members",
    [
        {"jsonrpc": "1.0"},
        {"jsonrpc": 2.0},
        {"method": 7},
        {"method": None},
        {"params": "x"},
        {"params": None},
    ],
)
def test_malformed_request_is_refused_under_its_own_id(members):
    refusal = parse(request(**members))
    assert (refusal.id, refusal.error.code) == (1, "invalid_request")


@pytest.mark.parametrize("value", [1, "text", None, True, 1.5])
def test_json_that_is_no_object_is_an_invalid_request(value):
    assert parse(value).error.code == "invalid_request"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "Expecting"),
        (b'{"id": 1} trailing', "Extra data"),
        (b'"\xff"', "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b"[" * 500_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"id": ' + b"9" * 100_000 + b"}", "out of range"),
        (b'{"id": 1e999}', "out of range"),
        (b'{"id": NaN}', "out of range"),
        (b'{"id": -Infinity}', "out of range"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'"\x00"', "control character"),
    ],
)
def test_what_is_not_json_is_a_parse_error_that_says_why(line, reason):
    refusal = parse_message(line, MAX_BATCH)
    assert refusal.error.code == "parse_error"
    assert reason in refusal.error.message


def test_batch_keeps_order_and_refuses_only_its_bad_members():
    batch = parse([request(id="a"), 1, {"jsonrpc": "2.0", "method": "note"}])
    assert [type(item) for item in batch] == [Request, Refusal, Request]


def test_empty_batch_and_too_long_batch_get_one_error():
    assert parse([]).error.code == "invalid_request"
    assert "at most 10" in parse([1] * 11).error.message


def test_every_error_has_its_own_number():
    codes = {kind.code for kind in (MemorydError, *all_errors())}
    assert codes <= ERROR_NUMBERS.keys()
    assert len(set(ERROR_NUMBERS.values())) == len(ERROR_NUMBERS)
    standard = {-32700, -32600, -32601, -32602, -32603}
    assert ERROR_NUMBERS["cancelled"] == -32800  # as editors' libraries know it
    ours = set(ERROR_NUMBERS.values()) - standard - {-32800}
    assert all(-32099 <= n <= -32000 for n in ours)


def test_error_carries_code_hint_and_whether_to_try_again():
    answer = json.loads(encode_error(7, error_of(Busy("Full.", hint="Wait."))))
    assert answer == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {
            "code": -32021,
            "message": "Full.",
            "data": {"code": "busy", "hint": "Wait.", "retryable": True},
        },
    }


def test_answer_is_compact_readable_and_one_line_of_valid_utf8():
    answer = encode_result(1, {"text": "日本\n\u2028\ud800\\\udc00"})
    assert "日本" in answer.decode("utf-8")
    assert b"\n" not in answer
    assert b": " not in answer
    assert json.loads(answer)["result"]["text"] == "日本\n\u2028\ud800\\\udc00"


@pytest.mark.parametrize("result", [float("nan"), {1, 2}, object()])
def test_result_that_json_cannot_hold_raises(result):
    with pytest.raises((TypeError, ValueError)):
        encode_result(1, result)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
MEMBERS = st.fixed_dictionaries({}, optional=dict.fromkeys(("jsonrpc", "id", "method", "params"), JSON))
REQUESTS = MEMBERS | MEMBERS.map(lambda members: request(**members))
LINES = (
    st.binary(max_size=200)
    | st.binary(min_size=40, max_size=90).map(lambda data: b'{"jsonrpc":"2.0","id":1,"method":"' + data)
    | (REQUESTS | st.lists(REQUESTS, max_size=MAX_BATCH + 1) | JSON).map(lambda v: json.dumps(v).encode())
)


def answer_of(message):
    """What a server whose only method answers null sends back."""
    if isinstance(message, RequestTooLarge):
        return encode_error(None, error_of(message))
    parsed = parse_message(message, MAX_BATCH)
    parts = [
        encode_error(item.id, item.error) if isinstance(item, Refusal) else encode_result(item.id, None)
        for item in (parsed if isinstance(parsed, list) else [parsed])
        if isinstance(item, Refusal) or not item.is_notification
    ]
    return encode_batch(parts) if isinstance(parsed, list) and parts else b"".join(parts)


@given(st.lists(LINES, max_size=6), st.lists(st.integers(0, 600), max_size=8))
def test_any_bytes_in_any_split_get_exactly_one_answer_per_line(lines, cuts):
    stream = b"\n".join(lines)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    framing = LineFraming(max_bytes=150)
    messages = []
    for start, end in pairwise(edges):
        messages += framing.feed(stream[start:end])
    messages += framing.end()

    asked = [line for line in stream.split(b"\n") if len(line) > 150 or line.strip()]
    assert len(messages) == len(asked)
    for message in messages:
        answer = answer_of(message)
        assert b"\n" not in answer
        if answer:
            json.loads(answer.decode("utf-8"))


@given(st.text(), st.text(), st.none() | st.text())
def test_any_text_in_an_error_is_valid_on_the_wire(code, message, hint):
    error = json.loads(encode_error(None, WireError(code, message, hint)).decode("utf-8"))["error"]
    assert error["message"] == message
    assert error["data"]["hint"] == hint
