"""How the server stops: in order, with every answer that can still be given."""

import socket
import threading

import pytest

from memoryd.daemon.dispatch import Method
from memoryd.daemon.limits import Limits


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


def test_request_in_flight_is_answered_before_the_server_is_gone(running_server, raw_client, wait_until, path, gate):
    with (
        running_server(path, {"slow": Method(lambda params: gate.wait(20))}) as told,
        raw_client(path) as client,
    ):
        client.ask("slow")
        wait_until(lambda: told.server.in_flight == 1)
        told.stop()
        wait_until(lambda: not path.exists())
        gate.set()
        assert client.read()["result"] is True
        assert client.read() is None
        told.thread.join(20)
    assert told.cut_off == 0


def test_nobody_can_connect_once_the_stop_began(running_server, raw_client, wait_until, path, gate):
    with (
        running_server(path, {"slow": Method(lambda params: gate.wait(20))}) as told,
        raw_client(path) as client,
    ):
        client.ask("slow")
        wait_until(lambda: told.server.in_flight == 1)
        told.stop()
        wait_until(lambda: not path.exists())
        with socket.socket(socket.AF_UNIX) as late, pytest.raises(FileNotFoundError):
            late.connect(str(path))
        gate.set()


def test_requests_over_the_deadline_are_cut_off_and_counted(running_server, raw_client, wait_until, path, gate):
    with (
        running_server(path, {"slow": Method(lambda params: gate.wait(20))}) as told,
        raw_client(path) as client,
    ):
        client.send([{"jsonrpc": "2.0", "id": n, "method": "slow"} for n in range(2)])
        client.ask("slow", id_=3)
        wait_until(lambda: told.server.in_flight == 3)
        told.stop_s = 0.05
        told.stop()
        assert client.read() is None
        told.thread.join(20)
    assert told.cut_off == 3


def test_idle_clients_do_not_hold_up_the_stop(running_server, raw_client, wait_until, path):
    with running_server(path) as told, raw_client(path) as one, raw_client(path) as two:
        wait_until(lambda: told.server.connections == 2)
        one.socket.sendall(b'{"half a')
        told.stop()
        assert two.read() is None
        told.thread.join(20)
    assert told.cut_off == 0


def test_client_that_left_takes_its_queued_work_with_it(running_server, raw_client, wait_until, path, gate):
    started = []

    def slow(params):
        started.append(params)
        gate.wait(20)

    with running_server(path, {"slow": Method(slow)}, limits=Limits(threads=1)) as told:
        with raw_client(path) as client:
            for n in range(5):
                client.ask("slow", id_=n)
            wait_until(lambda: told.server.in_flight == 5)
            client.ask("nonsense")  # unread when we close: the server learns that we are gone
            wait_until(lambda: len(told.requests) == 1)
        wait_until(lambda: told.server.connections == 0)
        assert told.server.in_flight == 0
        gate.set()
    assert len(started) == 1
