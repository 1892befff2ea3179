"""A real HTTP server that speaks the embedding providers' APIs, with vectors of a real embedder.

It refuses what the services refuse: a wrong path or key, no texts, a text of nothing, too many at once. Fields that
they do not know are an error here, so that what is sent is what they document.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memoryd.store.protocols import Embedder

KEY = "sk-secret-key-of-a-test"
Json = dict[str, Any]


@dataclass(frozen=True)
class Dictated:
    """One answer as it goes over the wire, in place of the API's own."""

    status: int = 200
    body: Any = None  # JSON, or bytes as they are
    headers: dict[str, str] = field(default_factory=dict)


class RefusedRequest(Exception):
    def __init__(self, status: int, body: Any) -> None:
        self.status = status
        self.body = body
        super().__init__(status)


@dataclass(frozen=True)
class Api:
    """One provider's API: how texts are read from a request, and how vectors and errors are told."""

    path: str
    read: Callable[[Json], tuple[list[str], int]]  # the texts and the wanted dimension; 0: the model's own
    tell: Callable[[list[list[float]], int], Json]
    error: Callable[[int, str], Json]
    key_header: tuple[str, str] = ("authorization", "Bearer ")
    most: int = 2048  # texts of one request


class EmbeddingServer:
    """What was asked, and what is answered next; with nothing dictated, the embedder answers."""

    def __init__(self, port: int, api: Api, embedder: Embedder | None, key: str) -> None:
        self.port = port
        self.api = api
        self.embedder = embedder
        self.key = key
        self.dictated: list[Dictated] = []
        self.always: Dictated | None = None  # while set, everything is answered so
        self.requests: list[Json] = []  # bodies
        self.headers: list[dict[str, str]] = []  # in lower case
        self.paths: list[str] = []
        self.texts: list[str] = []  # that were embedded
        self.forbidden = ""  # a text that has this is refused
        self.silent = threading.Event()  # set: nothing is answered until it is cleared or the server stops
        self.stopping = threading.Event()
        self.turn = threading.Lock()

    @property
    def url(self) -> str:
        """As it is written into ``embedder.base_url``."""
        return (
            f"http://127.0.0.1:{self.port}{self.api.path.partition('/embeddings')[0].partition('/models/')[0]}".replace(
                "/api/embed", ""
            )
        )

    def answer(self, path: str, headers: dict[str, str], body: Json) -> Json:
        name, scheme = self.api.key_header
        if self.key and headers.get(name) != f"{scheme}{self.key}":
            raise RefusedRequest(401, self.api.error(401, f"Incorrect API key provided: {headers.get(name)}"))
        if path.removeprefix("http://embeddings.invalid") != self.api.path:  # as a proxy is asked
            raise RefusedRequest(404, self.api.error(404, f"no such route: {path}"))
        texts, dimension = self.api.read(body)
        if not texts or not all(texts):
            raise RefusedRequest(400, self.api.error(400, "input cannot be an empty string"))
        if len(texts) > self.api.most:
            raise RefusedRequest(413, self.api.error(413, "too many texts"))
        if self.forbidden and any(self.forbidden in text for text in texts):
            raise RefusedRequest(400, self.api.error(400, "This text is not allowed"))
        assert self.embedder is not None
        with self.turn:
            self.texts += texts
            vectors = self.embedder.embed_documents(texts)
            tokens = sum(map(self.embedder.count_tokens, texts))
        rows = (vectors[:, : dimension or None] * 3.0).tolist()  # not of length 1: not all services normalise
        return self.api.tell(rows, tokens)


@contextmanager
def run_embedding_server(api: Api, embedder: Embedder | None = None, key: str = KEY) -> Iterator[EmbeddingServer]:
    httpd = _Server(("127.0.0.1", 0), _Handler)
    server = EmbeddingServer(httpd.server_port, api, embedder, key)
    httpd.embedding = server  # type: ignore[attr-defined]
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
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        server: EmbeddingServer = self.server.embedding  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {key.lower(): value for key, value in self.headers.items()}
        server.requests.append(body)
        server.headers.append(headers)
        server.paths.append(self.path)
        while server.silent.is_set() and not server.stopping.wait(0.01):
            pass
        if server.always or server.dictated:
            said = server.always or server.dictated.pop(0)
            self._send(said.status, said.body, said.headers)
            return
        try:
            self._send(200, server.answer(self.path, headers, deepcopy(body)), {})
        except RefusedRequest as refused:
            self._send(refused.status, refused.body, {})

    def do_CONNECT(self) -> None:
        """As a proxy that lets nobody through, but has seen where they wanted to go."""
        self.server.embedding.paths.append(self.path)  # type: ignore[attr-defined]
        self._send(502, None, {})

    def _send(self, status: int, body: Any, headers: dict[str, str]) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for key, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are in ``EmbeddingServer.requests``; stderr stays quiet."""
