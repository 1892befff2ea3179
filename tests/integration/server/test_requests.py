"""Requests over the real socket: in order or not, one or many, right or wrong."""

import json
import socket
import threading

import pytest

from memoryd.daemon.dispatch import Method
from memoryd.store.errors import Busy, NotFound


def request(id_, method="echo", **params):
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


ECHO = {"echo": Method(dict)}


def test_answers_come_as_they_are_ready_each_with_its_id(running_server, raw_client, path):
    gate = threading.Event()
    methods = {"slow": Method(lambda params: gate.wait(20)), **ECHO}
    with running_server(path, methods), raw_client(path) as client:
        client.send(request("slow", "slow"), request("quick", n=1))
        assert client.read() == {"jsonrpc": "2.0", "id": "quick", "result": {"n": 1}}
        gate.set()
        assert client.read() == {"jsonrpc": "2.0", "id": "slow", "result": True}


def test_a_thousand_pipelined_requests_get_their_own_answers(running_server, raw_client, path):
    with running_server(path, ECHO) as told, raw_client(path) as client:
        sender = threading.Thread(target=lambda: client.send(*(request(n, n=n) for n in range(1000))))
        sender.start()
        answers = [client.read() for _ in range(1000)]
        sender.join()
    assert {a["id"]: a["result"]["n"] for a in answers} == {n: n for n in range(1000)}
    assert len(told.requests) == 1000


def test_batch_is_answered_as_one_array_without_its_notifications(running_server, raw_client, path):
    with running_server(path, ECHO), raw_client(path) as client:
        client.send([request(1), {"jsonrpc": "2.0", "method": "echo"}, 7, request(2, "nonsense"), request(3)])
        answers = client.read()
    assert [a["id"] for a in answers] == [1, None, 2, 3]
    assert [a.get("error", {}).get("code") for a in answers] == [None, -32600, -32601, None]


def test_notifications_are_done_and_never_answered(running_server, raw_client, wait_until, path):
    with running_server(path, ECHO) as told, raw_client(path) as client:
        note = {"jsonrpc": "2.0", "method": "echo"}
        client.send(note, [note, note], {**note, "method": "nonsense"}, {**note, "params": [1]})
        client.ask("ping", id_="after")
        assert client.read()["id"] == "after"
        wait_until(lambda: len(told.requests) == 6)
    assert sorted(str(facts[2]) for facts in told.requests) == ["None"] * 4 + [
        "invalid_params",
        "method_not_found",
    ]


def test_question_of_a_client_that_ended_its_side_is_answered(running_server, raw_client, path):
    gate = threading.Event()
    with running_server(path, {"slow": Method(lambda params: gate.wait(20))}), raw_client(path) as client:
        client.socket.sendall(json.dumps(request(1, "slow")).encode())  # without a newline
        client.socket.shutdown(socket.SHUT_WR)
        gate.set()
        assert client.read()["result"] is True
        assert client.read() is None


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 200_000, -32700),
        (b'{"id":' + b"1" * 10_000 + b"}", -32700),
        (b"[]", -32600),
        (b"[" + b"1," * 200 + b"1]", -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":["by position"]}', -32602),
    ],
)
def test_bad_message_gets_its_error_and_the_connection_lives(running_server, raw_client, path, line, number):
    with running_server(path, ECHO), raw_client(path) as client:
        client.send(line)
        assert client.read()["error"]["code"] == number
        client.ask("ping")
        assert client.read()["result"] == "pong"


def test_typed_error_of_a_method_reaches_the_client_whole(running_server, raw_client, path):
    def fail(params):
        raise NotFound("There is no a.md.", hint="Look for it with 'memoryd search'.")

    with running_server(path, {"get": Method(fail)}) as told, raw_client(path) as client:
        client.ask("get")
        error = client.read()["error"]
    assert error["message"] == "There is no a.md."
    assert error["data"] == {
        "code": "not_found",
        "hint": "Look for it with 'memoryd search'.",
        "retryable": False,
    }
    assert told.errors == []


@pytest.mark.parametrize("bug", [KeyError("secret note"), StopIteration("secret note"), TimeoutError("secret note")])
@pytest.mark.parametrize("on_loop", [True, False])
def test_bug_in_a_method_is_told_to_the_log_and_hidden_from_the_client(running_server, raw_client, path, bug, on_loop):
    def fail(params):
        raise bug

    async def fail_on_loop(params):
        raise bug

    methods = {"get": Method(fail_on_loop if on_loop else fail)}
    with running_server(path, methods) as told, raw_client(path) as client:
        client.ask("get", id_=5)
        answer = client.read()
    assert (answer["id"], answer["error"]["code"]) == (5, -32603)
    assert "secret" not in json.dumps(answer)
    assert [method for method, _ in told.errors] == ["get"]


@pytest.mark.parametrize("result", [float("nan"), {1}, object()])
def test_result_that_json_cannot_hold_is_an_internal_error(running_server, raw_client, path, result):
    with running_server(path, {"get": Method(lambda params: result)}) as told, raw_client(path) as client:
        client.ask("get")
        assert client.read_error() == "internal"
    assert len(told.errors) == 1


def test_each_request_is_told_once_with_its_facts(running_server, raw_client, path):
    def refuse(params):
        raise Busy

    with running_server(path, {"refuse": Method(refuse), **ECHO}) as told, raw_client(path) as client:
        for line in (b'{"jsonrpc":"2.0","id":1,"method":"echo"}', b"nonsense"):
            client.send(line)
            client.read()
        client.ask("refuse")
        client.read()
        client.ask("my secret diary")
        client.read()
    assert [facts[0] for facts in told.requests] == ["echo", "<invalid>", "refuse", "<unknown>"]
    assert [facts[2] for facts in told.requests] == [None, "parse_error", "busy", "method_not_found"]
    assert all(facts[1] >= 0 and facts[3] > 0 and facts[4] > 0 for facts in told.requests)
    assert told.requests[0][3:] == (40, 36)


def test_log_that_cannot_be_written_costs_no_answer(running_server, raw_client, path):
    class ClosedTerminal(list):
        def append(self, facts):
            raise OSError("Input/output error")

    with running_server(path, ECHO) as told, raw_client(path) as client:
        told.requests = ClosedTerminal()
        client.ask("echo", n=1)
        assert client.read()["result"] == {"n": 1}
