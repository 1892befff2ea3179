"""systemd's side, played by a datagram socket and by systemd-socket-activate itself."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time

import pytest

from memoryd.daemon.notify import Notifier, listen_fds


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """The service manager's end, and the address that it would put into NOTIFY_SOCKET."""
    address = str(tmp_path / "notify") if request.param == "path" else f"@memoryd-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind("\0" + address[1:] if address.startswith("@") else address)
        end.settimeout(20)
        yield end, address


def test_each_state_arrives_as_one_datagram(manager):
    end, address = manager
    notifier = Notifier({"NOTIFY_SOCKET": address})
    notifier.ready("serving 3 notes")
    notifier.status("two\nlines  \ud800")
    notifier.watchdog()
    notifier.stopping("bye")
    assert [end.recv(1000) for _ in range(4)] == [
        b"READY=1\nSTATUS=serving 3 notes",
        b"STATUS=two lines ?",
        b"WATCHDOG=1",
        b"STOPPING=1\nSTATUS=bye",
    ]


def test_reload_is_told_with_the_time_at_which_it_began(manager):
    end, address = manager
    before = time.monotonic_ns() // 1000
    Notifier({"NOTIFY_SOCKET": address}).reloading()
    state, moment = end.recv(1000).decode().split("\nMONOTONIC_USEC=")
    assert state == "RELOADING=1"
    assert before <= int(moment) <= time.monotonic_ns() // 1000


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nonexistent/notify"}])
def test_without_a_manager_nothing_happens(environ):
    Notifier(environ).ready("fine")


def test_full_queue_of_the_manager_does_not_block_us(manager):
    _, address = manager
    notifier = Notifier({"NOTIFY_SOCKET": address})
    for _ in range(1000):
        notifier.watchdog()


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": str(os.getpid())}, 0.5),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_watchdog_time_is_read_if_it_is_meant_for_us(environ, seconds):
    assert Notifier(environ).watchdog_s == seconds


@pytest.mark.parametrize(
    "environ",
    [{}, {"LISTEN_FDS": "1"}, {"LISTEN_PID": "1", "LISTEN_FDS": "1"}, {"LISTEN_PID": "7", "LISTEN_FDS": "x"}],
)
def test_sockets_meant_for_nobody_or_another_are_not_taken(environ):
    assert listen_fds(environ, pid=7) == []
    assert environ == {}


SERVE_INHERITED = """
import asyncio, os, pathlib, sys
from memoryd.daemon.dispatch import Method
from memoryd.daemon.limits import Limits
from memoryd.daemon.notify import listen_fds
from memoryd.daemon.server import Server

async def main():
    (listener,) = listen_fds(os.environ, os.getpid())
    assert "LISTEN_FDS" not in os.environ
    assert not os.get_inheritable(listener.fileno())
    asked = asyncio.Event()
    async def ping(params):
        asked.set()
        return os.getpid()
    ignore = lambda *facts: None
    server = Server({"ping": Method(ping)}, socket_path=pathlib.Path(sys.argv[1]), listener=listener,
                    limits=Limits(), on_request=ignore, on_error=ignore)
    await server.start()
    await asked.wait()
    await server.stop(5)

asyncio.run(main())
"""


@pytest.mark.skipif(not shutil.which("systemd-socket-activate"), reason="systemd-socket-activate is not there")
def test_socket_passed_by_systemd_is_served(raw_client, wait_until, tmp_path):
    path = tmp_path / "activated.sock"
    command = [
        "systemd-socket-activate",
        f"--listen={path}",
        sys.executable,
        "-c",
        SERVE_INHERITED,
        str(path),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as activator:
        try:
            connected = []

            def connect():
                with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):  # bound, not listening yet
                    connected.append(raw_client(path))
                return connected

            wait_until(connect)
            with connected[0] as client:
                client.ask("ping")
                answer = client.read()
            assert answer is not None, activator.stderr.read()
            assert answer["result"] == activator.pid
            assert activator.wait(20) == 0
        finally:
            activator.kill()
    assert path.exists()
