"""Any bytes at all are framed, parsed and answered; and what the fuzzer once found worth keeping still is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoryd.daemon.methods import Methods
from memoryd.daemon.openrpc import request_type
from memoryd.daemon.params import declared_params
from tests.fuzz.harness import exercise

SEEDS = sorted((Path(__file__).parent / "seeds").iterdir())

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
METHODS = sorted(Methods.names())


@st.composite
def requests(draw: st.DrawFn) -> Any:
    """A request that is right but for what is not."""
    method = draw(st.sampled_from(METHODS))
    names = st.sampled_from([*declared_params(request_type(method)), "unknown"])
    request: dict[str, Any] = {"jsonrpc": "2.0", "id": draw(JSON), "method": method}
    request["params"] = draw(st.dictionaries(names, JSON, max_size=5) | JSON)
    for name in draw(st.lists(st.sampled_from(list(request)), max_size=2, unique=True)):
        request[name] = draw(JSON)
        if draw(st.booleans()):
            del request[name]
    return request


def encode(value: Any) -> bytes:
    return json.dumps(value).encode()


BODIES = st.one_of(requests().map(encode), st.lists(requests(), max_size=7).map(encode), JSON.map(encode), st.binary())
LINES = st.lists(BODIES, max_size=4).map(b"\n".join)
FRAMES = st.lists(
    st.tuples(BODIES, st.integers(-2, 2) | st.just(0)).map(
        lambda pair: b"Content-Length: %d\r\n\r\n%b" % (len(pair[0]) + pair[1], pair[0])
    ),
    max_size=4,
).map(b"".join)


@settings(max_examples=400)
@given(LINES | FRAMES | st.binary(max_size=200))
@example(b"Content-Length: 2000\r\n\r\n" + b"x" * 2000 + b"Content-Length: 2\r\n\r\n{}")
def test_any_bytes_get_sound_answers(data: bytes) -> None:
    exercise(data)


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from([b"Content-Length", b": ", b"5", b"\r\n", b"\n", b"\r", b"{}", b"[]", b" ", b"\x00", b"c"])
    )
)
def test_any_order_of_the_parts_of_a_frame_gets_sound_answers(parts: list[bytes]) -> None:
    exercise(b"".join(parts))
    exercise(b"Content-" + b"".join(parts))


def test_seeds_of_the_fuzzer_get_sound_answers() -> None:
    assert len(SEEDS) >= 20
    for seed in SEEDS:
        exercise(seed.read_bytes())


@pytest.mark.parametrize("size", [1023, 1024, 1025])
def test_limit_on_the_size_is_the_same_in_both_framings(size: int) -> None:
    body = b'"' + b"x" * (size - 2) + b'"'
    exercise(body + b"\n{}")
    exercise(b"Content-Length: %d\r\n\r\n%b" % (size, body))
