"""A daemon that was told ten thousand kinds of nonsense answers the next question as if nothing had been."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import socket
import threading
from typing import Any

from tests.support.daemon import Machine

REQUESTS = 12_000
A_CONNECTION = 100  # requests; some end it earlier

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": "lighthouse", "limit": 2}),
    ("get", {"path": "memory/a.md", "from": 1}),
    ("why_not", {"query": "lighthouse", "passage": "memory/a.md:1"}),
    ("status", {"brief": True}),
    ("index", {"wait": False}),
    ("settings.get", {}),
    ("settings.set", {"settings": {"fusion": "weighted"}}),
    ("events.subscribe", {"events": ["document"]}),
    ("events.unsubscribe", {}),
    ("initialize", {"protocol_version": 1}),
    ("rpc.discover", {}),
    ("ping", {}),
    ("$/cancelRequest", {"id": 1}),
]
ODD: list[Any] = [
    None, True, False, -1, 0, 1.5, 2**63, 10**400, "", " ", "\0", "\ud800", "../../etc/passwd", "/etc/passwd",
    "x" * 5000, "\u202e", [], [[]], {}, {"a": {"b": []}}, [1, "a", None], "2026-99-99", "NEAR(", '"', "*", float("nan"),
]  # fmt: skip


class Mutator:
    """Requests that are wrong in a way or three, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def message(self) -> bytes:
        rng = self._random
        method, params = rng.choice(GOOD)
        request: Any = {"jsonrpc": "2.0", "id": rng.choice([1, "a", None, 2.5]), "method": method, "params": {**params}}
        for _ in range(rng.randint(1, 3)):
            request = rng.choice([self._odd_param, self._odd_field, self._without, self._other])(request)
        body = json.dumps(request, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
        return rng.choice([self._whole, self._whole, self._cut, self._flip, self._repeat, self._nest])(body)

    def _odd(self) -> Any:
        return copy.deepcopy(self._random.choice(ODD))

    def _odd_param(self, request: Any) -> Any:
        if isinstance(request, dict) and isinstance(request.get("params"), dict):
            names = [*request["params"], "query", "limit", "path", "settings", "events", "nonsense"]
            request["params"][self._random.choice(names)] = self._odd()
        return request

    def _odd_field(self, request: Any) -> Any:
        if isinstance(request, dict):
            request[self._random.choice(["jsonrpc", "id", "method", "params", "extra"])] = self._odd()
        return request

    def _without(self, request: Any) -> Any:
        if isinstance(request, dict) and request:
            del request[self._random.choice(list(request))]
        return request

    def _other(self, request: Any) -> Any:
        return self._random.choice([request, [request], [request, 1, []], self._odd()])

    def _whole(self, body: bytes) -> bytes:
        return body

    def _cut(self, body: bytes) -> bytes:
        return body[: self._random.randrange(len(body) + 1)]

    def _flip(self, body: bytes) -> bytes:
        flipped = bytearray(body)
        for _ in range(self._random.randint(1, 8)):
            flipped[self._random.randrange(len(flipped))] = self._random.randrange(256)
        return bytes(flipped).replace(b"\n", b" ")

    def _repeat(self, body: bytes) -> bytes:
        return body * self._random.randint(2, 5)

    def _nest(self, body: bytes) -> bytes:
        return self._random.choice([b"[", b'{"a":', b'{"params":']) * self._random.randint(1, 3000) + body

    def frame(self, body: bytes, *, headers: bool) -> bytes:
        if not headers:
            return body + b"\n"
        wrong = self._random.choice([b"-5", b"abc", b"", b"1 2"]) if self._random.random() < 0.005 else None
        return b"Content-Length: %b\r\n\r\n%b" % (wrong or b"%d" % len(body), body)


def tell(machine: Machine, mutator: Mutator, *, headers: bool) -> tuple[int, int]:
    """Sends one connection's worth and reads to the end; returns how many were sent, and how many bytes came back."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(os.fspath(machine.socket))
        frames = [mutator.frame(mutator.message(), headers=headers) for _ in range(A_CONNECTION)]

        def send() -> None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a broken header ends it
                for frame in frames:
                    client.sendall(frame)
                client.shutdown(socket.SHUT_WR)

        sending = threading.Thread(target=send)
        sending.start()
        received = 0
        with contextlib.suppress(ConnectionResetError):
            while data := client.recv(1 << 20):
                received += len(data)
        sending.join()
    return len(frames), received


def test_after_ten_thousand_malformed_requests_the_next_is_answered_right(machine: Machine) -> None:
    machine.write("memory/a.md", "The lighthouse keeper.\n")
    machine.env = {"MEMORYD_SERVER__MAX_REQUEST_BYTES": "20000"}
    with machine.daemon() as daemon:
        daemon.settle()
        pid = daemon.call("ping")["pid"]
        sent = received = 0
        mutator = Mutator(seed=5)
        while sent < REQUESTS:
            frames, size = tell(machine, mutator, headers=sent // A_CONNECTION % 2 == 1)
            sent += frames
            received += size
        assert received > 50 * sent  # nearly every one was answered
        assert daemon.call("ping")["pid"] == pid
        daemon.call("settings.set", reset=True)
        daemon.wait_for("lighthouse", "memory/a.md")
        assert daemon.call("search", query="lighthouse")["degraded"] is None
        assert daemon.call("get", path="memory/a.md")["text"] == "The lighthouse keeper."
        assert daemon.events("method_failed") == []
