"""A real S3-compatible server (moto's) as a process of its own, on a free port of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memoryd.store.place import VectorPlace
from memoryd.store.protocols import Clock
from tests.support.waiting import eventually

KEY_ID, SECRET = "AKIATHEKEYOFATEST", "the-secret-of-a-test/which+must=never-show"
BUCKET = "memory"


@dataclass(frozen=True, slots=True)
class S3Server:
    port: int

    def make_bucket(self, name: str = BUCKET) -> None:
        self.ask("PUT", f"/{name}")

    def ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        address = f"http://127.0.0.1:{self.port}{path}"
        with urllib.request.urlopen(urllib.request.Request(address, data, method=method), timeout=30) as answer:
            return bytes(answer.read())


@contextmanager
def run_s3(folder: Path, **environ: str) -> Iterator[S3Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "moto.log").open("wb") as log:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("moto_server"), "--host", "127.0.0.1", "--port", str(port)],
            env={**os.environ, "PYTHONWARNINGS": "ignore", **environ},
            stdout=log,
            stderr=log,
        )
    try:
        eventually(lambda: _listens(port), what="the S3 server listens")
        server = S3Server(port)
        server.make_bucket()
        yield server
    finally:
        process.terminate()
        process.wait(30)


def _listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def storage_options(port: int, **more: str) -> dict[str, str]:
    return {
        "endpoint": f"http://127.0.0.1:{port}",
        "region": "us-east-1",
        "allow_http": "true",
        "access_key_id": KEY_ID,
        "secret_access_key": SECRET,
        **more,
    }


def s3_place(port: int, folder: str, options: Mapping[str, str] | None = None, **clock: Clock) -> VectorPlace:
    uri = f"s3://{BUCKET}/{folder.lstrip('/')}"
    return VectorPlace(uri, lambda: storage_options(port, **(options or {})), **clock)
