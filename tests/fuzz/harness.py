"""What the socket makes of any bytes at all, without a socket: framing, parser, dispatcher, and every method's params.

``exercise`` raises only if memoryd is wrong. Atheris (``make fuzz``), hypothesis and the kept seeds all call it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from memoryd.daemon import requests
from memoryd.daemon.any_framing import AnyFraming
from memoryd.daemon.dispatch import Dispatcher, Method
from memoryd.daemon.framing import Message
from memoryd.daemon.limits import Limits
from memoryd.daemon.live_settings import read_table
from memoryd.daemon.methods import Methods
from memoryd.daemon.openrpc import request_type
from memoryd.daemon.params import parse_params
from memoryd.daemon.protocol import ERROR_NUMBERS, Refusal, Request, error_of, parse_message
from memoryd.store.errors import MemorydError

MAX_BYTES = 1024
MAX_BATCH = 5

_errors: list[tuple[str, Exception]] = []


def _method(name: str) -> Method:
    takes = request_type(name)

    async def read_params(params: Mapping[str, Any], *_session: object) -> str:
        if takes is None:
            return "undeclared"
        request = parse_params(takes, params)
        if isinstance(request, requests.SearchRequest | requests.SettingsSetRequest) and request.settings:
            read_table(request.settings)
        return repr(asdict(request))

    return Method(read_params)


_DISPATCHER = Dispatcher(
    {name: _method(name) for name in Methods.names()},
    Limits(),
    on_request=lambda *_facts: None,
    on_error=lambda method, exc: _errors.append((method, exc)),
)
_LOOP = asyncio.new_event_loop()


def exercise(data: bytes) -> None:
    """Frames, parses and answers the bytes; every answer must be one that JSON-RPC allows."""
    messages = _feed(data, len(data) or 1)
    step = 1 + len(data) % 7
    in_pieces = _feed(data, step)
    if [_plain(message) for message in messages] != [_plain(message) for message in in_pieces]:
        raise AssertionError(f"pieces of {step} bytes are read differently: {messages} {in_pieces}")
    for message in messages:
        if isinstance(message, MemorydError):
            _check(Refusal(None, error_of(message)))
            continue
        if len(message) > MAX_BYTES:
            raise AssertionError("a message is larger than the limit")
        parsed = parse_message(message, MAX_BATCH)
        for item in parsed if isinstance(parsed, list) else [parsed]:
            _check(item)


def _feed(data: bytes, step: int) -> list[Message]:
    framing = AnyFraming(MAX_BYTES)
    messages: list[Message] = []
    for start in range(0, len(data), step):
        messages += framing.feed(data[start : start + step])
        if framing.broken:
            return messages
    return messages + framing.end()


def _plain(message: Message) -> bytes | str:
    return message if isinstance(message, bytes) else message.message


def _check(item: Request | Refusal) -> None:
    payload = _LOOP.run_until_complete(_DISPATCHER.answer(item, 0))
    if _errors:
        method, exc = _errors.pop()
        raise AssertionError(f"{method} fell over") from exc
    if payload is None:
        if not (isinstance(item, Request) and item.is_notification):
            raise AssertionError("no answer to a request")
        return
    if b"\n" in payload:
        raise AssertionError("an answer is more than a line")
    answer = json.loads(payload)
    if answer["jsonrpc"] != "2.0" or answer["id"] != item.id or len(answer) != 3:
        raise AssertionError(f"not an answer to {item.id!r}: {answer}")
    if "error" in answer and ERROR_NUMBERS[answer["error"]["data"]["code"]] != answer["error"]["code"]:
        raise AssertionError(f"code and number differ: {answer}")
