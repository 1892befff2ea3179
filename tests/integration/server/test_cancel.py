"""``$/cancelRequest``: the answer is an error, what has not begun does not begin, and what runs is told."""

import asyncio
import threading

import pytest

from memoryd.daemon.dispatch import Method
from memoryd.daemon.limits import Limits
from memoryd.store.cancellation import check_cancelled


def request(id_, method, **params):
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def cancel(id_):
    return {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id_}}


class Held:
    """A method that works in stages until it is let go, and counts how far it came."""

    def __init__(self):
        self.begun, self.stopped, self.gate = [], [], threading.Event()

    def __call__(self, params):
        self.begun.append(params["n"])
        try:
            while not self.gate.wait(0.005):
                check_cancelled()
        except Exception:
            self.stopped.append(params["n"])
            raise
        return params["n"]


def test_cancelled_request_is_answered_with_an_error_and_its_work_stops(running_server, raw_client, wait_until, path):
    held = Held()
    with running_server(path, {"held": Method(held)}) as told, raw_client(path) as client:
        client.send(request("a", "held", n=1))
        wait_until(lambda: held.begun == [1])
        client.send(cancel("a"))
        answer = client.read()
        assert answer["id"] == "a"
        assert answer["error"]["code"] == -32800
        assert answer["error"]["data"] == {"code": "cancelled", "hint": None, "retryable": False}
        wait_until(lambda: held.stopped == [1])
        client.ask("ping", id_="after")
        assert client.read()["id"] == "after"
    assert [facts[:1] + facts[2:3] for facts in told.requests] == [("held", "cancelled"), ("ping", None)]
    assert told.errors == []


def test_work_that_has_not_begun_is_not_begun(running_server, raw_client, wait_until, path):
    held = Held()
    with running_server(path, {"held": Method(held)}, limits=Limits(threads=1)), raw_client(path) as client:
        client.send(request(1, "held", n=1))
        wait_until(lambda: held.begun == [1])
        client.send(request(2, "held", n=2), cancel(2))
        assert client.read()["id"] == 2
        held.gate.set()
        assert client.read()["result"] == 1
        client.send(request(3, "held", n=3))
        assert client.read()["result"] == 3
    assert held.begun == [1, 3]


def test_cancellation_in_the_same_breath_finds_its_request(running_server, raw_client, path):
    held = Held()
    with running_server(path, {"held": Method(held)}), raw_client(path) as client:
        for n in range(50):
            one = b'{"jsonrpc":"2.0","id":%d,"method":"held","params":{"n":1}}\n' % n
            two = b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}' % n
            client.send(one + two)
            answer = client.read()
            assert (answer["id"], answer["error"]["data"]["code"]) == (n, "cancelled")
    assert held.begun == []


def test_one_of_a_batch_can_be_cancelled(running_server, raw_client, wait_until, path):
    held = Held()
    with running_server(path, {"held": Method(held)}), raw_client(path) as client:
        client.send([request(1, "held", n=1), request(2, "held", n=2)])
        wait_until(lambda: sorted(held.begun) == [1, 2])
        client.send(cancel(1))
        wait_until(lambda: held.stopped == [1])
        held.gate.set()
        first, second = client.read()
    assert first["error"]["data"]["code"] == "cancelled"
    assert second["result"] == 2


def test_cancellation_gets_through_while_every_place_is_taken(running_server, raw_client, wait_until, path):
    held = Held()
    limits = Limits(max_in_flight=2)
    with running_server(path, {"held": Method(held)}, limits=limits), raw_client(path) as client:
        client.send(request(1, "held", n=1), request(2, "held", n=2))
        wait_until(lambda: len(held.begun) == 2)
        client.send(cancel(2))
        assert client.read()["id"] == 2
        held.gate.set()
        assert client.read()["result"] == 1


def test_waiting_method_on_the_loop_is_cancelled_too(running_server, raw_client, wait_until, path):
    async def wait(params):
        await asyncio.Event().wait()

    with running_server(path, {"wait": Method(wait)}) as told, raw_client(path) as client:
        client.send(request(1, "wait"))
        wait_until(lambda: told.server.in_flight == 1)
        client.send(cancel(1))
        assert client.read_error() == "cancelled"
        wait_until(lambda: told.server.in_flight == 0)


@pytest.mark.parametrize("params", [{"id": 99}, {"id": "1"}, {"id": None}, {"id": [1]}, {"id": True}, {}, {"idd": 1}])
def test_cancelling_nothing_or_another_clients_request_changes_nothing(
    running_server, raw_client, wait_until, path, params
):
    held = Held()
    with running_server(path, {"held": Method(held)}), raw_client(path) as client, raw_client(path) as other:
        client.send(request(1, "held", n=1))
        wait_until(lambda: held.begun == [1])
        client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params})
        other.send(cancel(1))
        for each in (client, other):
            each.ask("ping", id_="ping")
            assert each.read()["result"] == "pong"
        held.gate.set()
        assert client.read()["result"] == 1


@pytest.mark.parametrize("end", ["leaves", "times out"])
def test_work_for_nobody_stops(running_server, raw_client, wait_until, path, end):
    held = Held()
    limits = Limits(request_timeout_s=0.1 if end == "times out" else 30)
    with running_server(path, {"held": Method(held)}, limits=limits), raw_client(path) as client:
        client.send(request(1, "held", n=1))
        wait_until(lambda: held.begun == [1])
        if end == "leaves":
            client.close()
        wait_until(lambda: held.stopped == [1])


def test_cancellation_as_a_request_is_answered(memory, served, raw_client, path):
    with served(memory, path), raw_client(path) as client:
        client.send(request("c", "$/cancelRequest", id=7))
        assert client.read() == {"jsonrpc": "2.0", "id": "c", "result": None}
