"""A real HTTP server on a real port whose files misbehave as told."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ServedFile:
    """What a path answers; each trouble is spent on one request, in order."""

    body: bytes
    etag: str | None = '"v1"'
    ranges: bool = True
    content_type: str = "application/octet-stream"
    headers: dict[str, str] = field(default_factory=dict)
    redirect: str | None = None  # answered with 302 and `headers`
    login: str | None = None  # the Authorization header that is asked for
    troubles: list[Trouble] = field(default_factory=list)


@dataclass(frozen=True)
class Trouble:
    """One failure: a status instead of the body, or a connection reset after so many bytes of it."""

    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    reset_after: int | None = None


class FileServer:
    """Files by path, and every request that came in."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.files: dict[str, ServedFile] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []  # path, headers in lower case

    def serve(self, path: str, body: bytes, **options: Any) -> str:
        self.files[path] = ServedFile(body, **options)
        return self.url + path

    def ranges_asked(self, path: str) -> list[str | None]:
        return [headers.get("range") for asked, headers in self.requests if asked == path]


@contextmanager
def run_file_server() -> Iterator[FileServer]:
    httpd = _Server(("127.0.0.1", 0), _Handler)
    server = FileServer(f"http://127.0.0.1:{httpd.server_port}")
    httpd.files = server  # type: ignore[attr-defined]
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests; it is not reported on stderr."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: FileServer = self.server.files  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        server.requests.append((path, {key.lower(): value for key, value in self.headers.items()}))
        file = server.files.get(path)
        if file is None:
            self._answer(404, b"no such file")
        elif file.login is not None and self.headers.get("Authorization") != file.login:
            self._answer(401, b"who are you")
        elif file.redirect is not None:
            self._answer(302, b"", Location=file.redirect, **file.headers)
        else:
            self._send(file, file.troubles.pop(0) if file.troubles else Trouble())

    def _send(self, file: ServedFile, trouble: Trouble) -> None:
        if trouble.status is not None:
            self._answer(trouble.status, b"not now", **dict(trouble.headers))
            return
        start = self._asked_start(file)
        headers = {"Content-Type": file.content_type, **file.headers}
        if file.etag:
            headers["ETag"] = file.etag
        if start is not None and start >= len(file.body):
            self._answer(416, b"", **{"Content-Range": f"bytes */{len(file.body)}"})
            return
        if start is not None:
            headers["Content-Range"] = f"bytes {start}-{len(file.body) - 1}/{len(file.body)}"
        body = file.body[start or 0 :]
        self.send_response(200 if start is None else 206)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if trouble.reset_after is None:
            self.wfile.write(body)
            return
        self.wfile.write(body[: trouble.reset_after])
        self.wfile.flush()
        self.close_connection = True

    def _asked_start(self, file: ServedFile) -> int | None:
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        if match is None or not file.ranges or (condition is not None and condition != file.etag):
            return None
        return int(match[1])

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are in ``FileServer.requests``; stderr stays quiet."""
