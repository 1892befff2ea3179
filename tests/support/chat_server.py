"""A real HTTP server that speaks the chat APIs (OpenAI's and Ollama's): a language model answers, or a test does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memoryd.jobs.llm.protocol import LanguageModel, Message


@dataclass(frozen=True)
class Dictated:
    """One answer as it goes over the wire."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    drip_s: float = 0.0  # seconds between two bytes of the body; 0: all at once
    hang_up_after: int | None = None  # bytes of the body


def answer(text: str | None) -> Dictated:
    """What the API says around a text."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Dictated(body=json.dumps({"object": "chat.completion", "choices": [choice]}).encode())


def ollama_answer(text: str | None) -> Dictated:
    """The same, as Ollama says it."""
    body = {"model": "small", "message": {"role": "assistant", "content": text}, "done": True, "done_reason": "stop"}
    return Dictated(body=json.dumps(body).encode())


class ChatServer:
    """What was asked, and what is answered next; with nothing dictated the rule answers, and without one the model."""

    def __init__(self, url: str, model: LanguageModel | None) -> None:
        self.url = url
        self.model = model
        self.root = url.removesuffix("/v1")  # as Ollama's clients are told it
        self.dictated: list[Dictated] = []
        self.rule: Callable[[dict[str, Any]], str] | None = None  # from the body of a request to its answer
        self.requests: list[dict[str, Any]] = []  # bodies
        self.headers: list[dict[str, str]] = []  # in lower case
        self.silent = threading.Event()  # set: nothing is answered until it is cleared or the server stops
        self.stopping = threading.Event()


@contextmanager
def run_chat_server(model: LanguageModel | None = None) -> Iterator[ChatServer]:
    httpd = _Server(("127.0.0.1", 0), _Handler)
    server = ChatServer(f"http://127.0.0.1:{httpd.server_port}/v1", model)
    httpd.chat = server  # type: ignore[attr-defined]
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        httpd.shutdown()
        thread.join()
        httpd.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests; it is not reported on stderr."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        chat: ChatServer = self.server.chat  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        chat.requests.append(body)
        chat.headers.append({key.lower(): value for key, value in self.headers.items()})
        while chat.silent.is_set() and not chat.stopping.wait(0.01):
            pass
        wrap = {"/v1/chat/completions": answer, "/api/chat": ollama_answer}.get(self.path)
        if wrap is None:
            self._send(chat, Dictated(404, b'{"error":{"message":"no such route","code":null}}'))
        elif chat.dictated:
            self._send(chat, chat.dictated.pop(0))
        elif chat.rule:
            self._send(chat, wrap(chat.rule(body)))
        else:
            assert chat.model is not None
            messages = [Message(message["role"], message["content"]) for message in body["messages"]]
            asked = body.get("options", body)
            most = asked.get("max_tokens") or asked["num_predict"]
            text = chat.model.complete(messages, max_tokens=most, timeout_s=60, temperature=asked["temperature"])
            self._send(chat, wrap(text))

    def _send(self, chat: ChatServer, said: Dictated) -> None:
        self.send_response(said.status)
        for key, value in {"Content-Type": "application/json", **said.headers}.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(said.body)))
        self.end_headers()
        if said.hang_up_after is not None:
            self.wfile.write(said.body[: said.hang_up_after])
            self.close_connection = True
        elif said.drip_s:
            for byte in said.body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if chat.stopping.wait(said.drip_s):
                    break
        else:
            self.wfile.write(said.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are in ``ChatServer.requests``; stderr stays quiet."""
