"""What happens at each limit of the server, seen from a real client."""

import asyncio
import contextlib
import math
import os
import threading
from pathlib import Path

import pytest

from memoryd.daemon.dispatch import Method
from memoryd.daemon.limits import Limits

MIB = 1024 * 1024


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_line_of_64_mib_is_refused_once_without_being_kept(running_server, raw_client, path):
    limits = Limits(max_request_bytes=MIB)
    with running_server(path, limits=limits), raw_client(path) as client:
        client.ask("ping")
        client.read()
        before = resident_bytes()
        piece = b"x" * MIB
        for _ in range(64):
            client.socket.sendall(piece)
        assert client.read_error() == "request_too_large"
        assert resident_bytes() - before < 16 * MIB
        client.send(b"")  # ends the line
        client.ask("ping", id_="next")
        assert client.read() == {"jsonrpc": "2.0", "id": "next", "result": "pong"}


def test_flood_of_connections_is_served_up_to_the_limit_and_told_busy_beyond(
    running_server, raw_client, wait_until, path
):
    with running_server(path, limits=Limits(max_connections=50)) as told, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(raw_client(path)) for _ in range(300)]
        outcomes = []
        for client in clients:
            with contextlib.suppress(BrokenPipeError):  # refused already; the reason can be read all the same
                client.ask("ping")
            answer = client.read()
            outcomes.append(answer.get("result") or answer["error"]["data"]["code"])
        assert outcomes.count("pong") == 50
        assert outcomes.count("busy") == 250
        assert told.server.connections == 50
        for client in clients:
            client.close()
        wait_until(lambda: told.server.connections == 0)
        with raw_client(path) as client:
            client.ask("ping")
            assert client.read()["result"] == "pong"


@pytest.mark.parametrize("as_batch", [False, True])
def test_requests_beyond_the_limit_in_flight_wait(running_server, raw_client, wait_until, path, as_batch):
    gate, running = threading.Semaphore(0), []

    def hold(params):
        running.append(params["n"])
        gate.acquire(timeout=20)
        return params["n"]

    limits = Limits(max_in_flight=2, threads=8)
    with running_server(path, {"hold": Method(hold)}, limits=limits) as told, raw_client(path) as client:
        requests = [{"jsonrpc": "2.0", "id": n, "method": "hold", "params": {"n": n}} for n in range(6)]
        client.send(*([requests] if as_batch else requests))
        for done in range(5):
            wait_until(lambda done=done: len(running) == done + 2)
            assert told.server.in_flight == 2
            gate.release()
        gate.release()
        answers = client.read() if as_batch else [client.read() for _ in range(6)]
    assert sorted(answer["result"] for answer in answers) == list(range(6))


@pytest.mark.parametrize("on_loop", [True, False])
def test_request_over_its_time_gets_a_typed_error_and_the_next_is_served(running_server, raw_client, path, on_loop):
    gate = threading.Event()

    async def never(params):
        await asyncio.Event().wait()

    methods = {"slow": Method(never if on_loop else lambda params: gate.wait(20))}
    limits = Limits(request_timeout_s=0.05)
    with running_server(path, methods, limits=limits), raw_client(path) as client:
        client.ask("slow")
        error = client.read()["error"]
        client.ask("ping")
        assert client.read()["result"] == "pong"
        gate.set()
    assert error["data"]["code"] == "timed_out"
    assert error["data"]["retryable"] is True
    assert error["message"] == "slow took longer than 0.05 s."


def test_method_with_its_own_limit_ignores_the_servers(running_server, raw_client, path):
    methods = {
        "index": Method(lambda params: threading.Event().wait(0.2), timeout_s=math.inf),
        "brief": Method(lambda params: threading.Event().wait(0.2), timeout_s=0.01),
    }
    with running_server(path, methods, limits=Limits(request_timeout_s=0.02)), raw_client(path) as client:
        client.ask("index")
        assert client.read()["result"] is False
        client.ask("brief")
        assert client.read_error() == "timed_out"


def test_ping_is_answered_while_every_thread_is_busy(running_server, raw_client, wait_until, path):
    gate = threading.Event()
    methods = {"slow": Method(lambda params: gate.wait(20))}
    with running_server(path, methods, limits=Limits(threads=1)) as told, raw_client(path) as client:
        for n in range(3):
            client.ask("slow", id_=n)
        wait_until(lambda: told.server.in_flight == 3)
        client.ask("ping", id_="ping")
        assert client.read()["id"] == "ping"
        gate.set()
        assert sorted(client.read()["id"] for _ in range(3)) == [0, 1, 2]


def test_client_that_never_reads_is_dropped_and_the_others_are_served(running_server, raw_client, wait_until, path):
    limits = Limits(write_timeout_s=0.1, write_buffer_bytes=64 * 1024, max_in_flight=4)
    methods = {"big": Method(lambda params: "x" * MIB)}
    with running_server(path, methods, limits=limits) as told, raw_client(path) as deaf:
        deaf.send(b'{"jsonrpc":"2.0","id":1,"method":"big"}\n' * 20)  # at once: most wait, already read
        wait_until(lambda: told.server.connections == 0)
        assert sum(facts[4] for facts in told.requests) <= 5 * (MIB + 100)
        with raw_client(path) as client:
            client.ask("ping")
            assert client.read()["result"] == "pong"


def test_slow_reader_that_goes_on_reading_is_kept(running_server, raw_client, path):
    limits = Limits(write_timeout_s=1.0, write_buffer_bytes=64 * 1024)
    methods = {"big": Method(lambda params: "x" * 4 * MIB)}
    with running_server(path, methods, limits=limits), raw_client(path) as client:
        client.ask("big")
        answer, pace = bytearray(), threading.Event()
        while not answer.endswith(b"\n"):
            pace.wait(0.02)  # in all longer than the write time-out
            answer += client.socket.recv(64 * 1024)
        assert len(answer) > 4 * MIB


def test_idle_client_is_closed_and_dribbling_bytes_does_not_count_as_activity(
    running_server, raw_client, wait_until, path
):
    with running_server(path, limits=Limits(idle_timeout_s=0.2)) as told, raw_client(path) as client:
        client.ask("ping")
        assert client.read()["result"] == "pong"

        def dribble():
            with contextlib.suppress(OSError):
                client.socket.sendall(b" ")
            return told.server.connections == 0

        wait_until(dribble)


def test_idle_time_does_not_run_while_a_request_is_in_flight(running_server, raw_client, path):
    methods = {"slow": Method(lambda params: threading.Event().wait(0.3))}
    with running_server(path, methods, limits=Limits(idle_timeout_s=0.05)), raw_client(path) as client:
        client.ask("slow")
        assert client.read()["result"] is False
        assert client.read() is None


@pytest.mark.parametrize(
    "begun",
    [
        b'{"jsonrpc":"2.0",',
        b"Content-Le",
        b"Content-Length: 10\r\n",
        b"Content-Length: 10\r\n\r\n{",
        b"x" * (2 * MIB),  # too long, and never ends
        b"Content-Length: 999999999\r\n\r\n{",
    ],
)
def test_request_that_never_ends_is_cut_off_though_it_dribbles_on(running_server, raw_client, wait_until, path, begun):
    limits = Limits(max_request_bytes=MIB, arrival_timeout_s=0.3)
    with running_server(path, limits=limits) as told, raw_client(path) as loris:
        loris.socket.sendall(begun)

        def dribble():
            with contextlib.suppress(OSError):
                loris.socket.sendall(b"y")
            return told.server.connections == 0

        wait_until(dribble)
        said = loris.lines.read()
        assert b'"timed_out"' in said
        assert b"did not arrive whole within 0.3 s" in said


def test_client_that_sends_nothing_or_blanks_is_not_late(running_server, raw_client, path):
    with running_server(path, limits=Limits(arrival_timeout_s=0.05)), raw_client(path) as client:
        pace = threading.Event()
        for _ in range(5):
            client.socket.sendall(b"\n  \r\n")
            pace.wait(0.03)
        client.ask("ping")
        assert client.read()["result"] == "pong"


def test_waiting_for_its_own_answers_does_not_make_a_client_late(running_server, raw_client, wait_until, path):
    gate = threading.Event()
    limits = Limits(max_in_flight=1, arrival_timeout_s=0.1)
    with running_server(path, {"slow": Method(lambda _: gate.wait(20))}, limits=limits) as told:  # noqa: SIM117
        with raw_client(path) as client:
            # One answer outstanding, one request read ahead, half of a third behind it: we do not read meanwhile.
            client.ask("slow")
            client.ask("ping", id_=2)
            client.socket.sendall(b'{"jsonrpc":"2.0","id":3,')
            wait_until(lambda: told.server.in_flight == 1)
            threading.Event().wait(0.3)
            gate.set()
            client.send(b'"method":"ping"}')
            assert [client.read()["id"] for _ in range(3)] == [1, 2, 3]


def test_client_too_many_is_told_busy_in_its_own_framing_and_for_its_own_request(running_server, raw_client, path):
    with running_server(path, limits=Limits(max_connections=1)), raw_client(path) as first:
        first.ask("ping")
        first.read()
        request = {"jsonrpc": "2.0", "id": "mine", "method": "ping"}
        with raw_client(path) as second:
            second.send_framed(request)
            answer = second.read_framed()
            assert (answer["id"], answer["error"]["data"]["code"]) == ("mine", "busy")
            assert answer["error"]["data"]["retryable"] is True
            assert second.read_framed() is None
        with raw_client(path) as third:
            third.send(request)
            assert third.read()["id"] == "mine"
        with raw_client(path) as silent:
            assert silent.read_error() == "busy"


def test_deeply_nested_json_of_every_kind_is_survived(running_server, raw_client, path):
    with running_server(path, {"echo": Method(dict)}) as told, raw_client(path) as client:
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")):
            for depth in (900, 5_000, 100_000):
                value = opening * depth + b"1" + closing * depth
                client.send(b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":' + value + b"}}")
                answer = client.read()
                assert "result" in answer or answer["error"]["data"]["code"] in ("parse_error", "internal")
        client.ask("ping")
        assert client.read()["result"] == "pong"
    assert all(isinstance(exc, RecursionError) for _, exc in told.errors)
