"""llama-cpp-python's own OpenAI-compatible server, as a process of its own on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import eventually


@contextmanager
def run_llama_server(model: Path, key: str) -> Iterator[str]:
    """The server with an embedding model; yields its base URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "llama_cpp.server",
        "--model",
        model,
        "--model_alias",
        "minilm",
        "--embedding",
        "true",
    ]
    command += ["--host", "127.0.0.1", "--port", str(port), "--api_key", key, "--n_ctx", "512", "--n_batch", "512"]
    command += ["--n_ubatch", "512", "--n_threads", "1", "--verbose", "false"]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}/v1"

    def is_up() -> bool:
        assert process.poll() is None, process.stdout and process.stdout.read().decode()
        try:
            urllib.request.urlopen(urllib.request.Request(f"{url}/models", headers={"Authorization": f"Bearer {key}"}))
        except OSError:
            return False
        return True

    try:
        eventually(is_up, what="the llama.cpp server listens")
        yield url
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout:
            process.stdout.close()
