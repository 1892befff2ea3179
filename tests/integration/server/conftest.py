"""A real server on a real socket, for as long as a test asks questions."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from memoryd.daemon.dispatch import Method
from memoryd.daemon.limits import Limits
from memoryd.daemon.methods import Methods
from memoryd.daemon.server import Server
from tests.support.engine import Memory

DEADLINE_S = 20.0


async def ping(params):
    return "pong"


@contextlib.contextmanager
def running_server(path, methods=None, **options):
    """Runs a server in a thread with its own loop; gives what it told and a way to stop it early."""
    told = SimpleNamespace(requests=[], errors=[], cut_off=None, server=None, stop=None, stop_s=DEADLINE_S)
    started = threading.Event()
    failed = []

    async def serve():
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        told.stop = lambda: loop.call_soon_threadsafe(ended.set)
        options.setdefault("limits", Limits())
        told.server = Server(
            {"ping": Method(ping), **(methods or {})},
            socket_path=path,
            on_request=lambda *facts: told.requests.append(facts),
            on_error=lambda *facts: told.errors.append(facts),
            **options,
        )
        try:
            await told.server.start()
        except Exception as exc:
            failed.append(exc)
            started.set()
            await told.server.stop(0)
            return
        started.set()
        await ended.wait()
        told.cut_off = await told.server.stop(told.stop_s)

    told.thread = threading.Thread(target=asyncio.run, args=(serve(),))
    told.thread.start()
    started.wait()
    try:
        if failed:
            raise failed[0]
        yield told
    finally:
        if not failed and told.thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop ended meanwhile
                told.stop()
        told.thread.join(DEADLINE_S + 5)
        assert not told.thread.is_alive()


class RawClient:
    """Says exactly what the test says, and reads answers as they come."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(DEADLINE_S)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        self.lines = self.socket.makefile("rb")

    def send(self, *messages):
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.socket.sendall(line + b"\n")

    def send_framed(self, *messages, header=b"Content-Length: %d\r\n\r\n"):
        for message in messages:
            body = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.socket.sendall(header % len(body) + body)

    def read_framed(self):
        """None: the server has hung up, whether it had read all that it was sent or not."""
        length = None
        with contextlib.suppress(ConnectionResetError):
            while line := self.lines.readline().strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
        return None if length is None else json.loads(self.lines.read(length))

    def ask(self, method, id_=1, **params):
        self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})

    def read(self):
        line = self.lines.readline()
        return json.loads(line) if line else None

    def read_error(self):
        return self.read()["error"]["data"]["code"]

    def close(self):
        self.lines.close()
        self.socket.close()

    __enter__ = lambda self: self  # noqa: E731
    __exit__ = lambda self, *_: self.close()  # noqa: E731


def wait_until(condition):
    """Waits for a fact with a deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "the awaited condition did not come true"
        time.sleep(0.002)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "memoryd.sock"


@contextlib.contextmanager
def served(memory, path, **options):
    """The real methods over a real engine, on a real socket."""
    with memory.running() as engine:
        methods = Methods(engine, {})
        with running_server(path, methods.table(), **options) as told:
            methods.observe(told.server)
            yield told


@pytest.fixture
def memory(tmp_path):
    return Memory(tmp_path)


@pytest.fixture(name="served")
def served_fixture():
    return served


@pytest.fixture(name="running_server")
def running_server_fixture():
    return running_server


@pytest.fixture(name="raw_client")
def raw_client_fixture():
    return RawClient


@pytest.fixture(name="wait_until")
def wait_until_fixture():
    return wait_until
