"""The asyncio client against the real server, and against one that ends."""

import asyncio
import contextlib
import json
import threading

import pytest

from memoryd.daemon.async_client import AsyncClient
from memoryd.daemon.dispatch import Method
from memoryd.daemon.limits import Limits
from memoryd.store import errors


@contextlib.asynccontextmanager
async def odd_server(path, converse):
    """A server of the test's own; at its end every conversation has come to one."""
    conversations = set()

    async def admit(reader, writer):
        conversations.add(asyncio.current_task())
        await converse(reader, writer)
        writer.close()

    async with await asyncio.start_unix_server(admit, path):
        yield
    await asyncio.gather(*conversations)


def test_calls_run_side_by_side_on_one_connection_and_each_gets_its_own_answer(running_server, path):
    gate = threading.Event()

    async def echo(params):
        return params["number"]

    methods = {"slow": Method(lambda params: gate.wait(20)), "echo": Method(echo)}

    async def ask(told):
        async with AsyncClient(path) as client:
            slow = asyncio.create_task(client.call("slow"))
            numbers = await asyncio.gather(*(client.call("echo", {"number": number}) for number in range(50)))
            assert numbers == list(range(50))
            assert not slow.done()
            assert told.server.connections == 1
            gate.set()
            assert await slow is True

    with running_server(path, methods) as told:
        asyncio.run(ask(told))


def test_daemon_restarted_between_two_calls_is_not_noticed(running_server, path):
    async def ask():
        async with AsyncClient(path) as client:
            for _ in range(3):
                with running_server(path):
                    assert await client.call("ping") == "pong"
                    assert await client.call("ping") == "pong"
            with pytest.raises(errors.NotRunning) as caught:
                await client.call("ping")
            assert caught.value.hint == "Start it with 'memoryd run'."

    asyncio.run(ask())


@pytest.mark.parametrize(("method", "asked"), [("ping", 3), ("settings.set", 2)])
def test_call_lost_with_its_connection_is_asked_again_once_if_that_is_safe(tmp_path, method, asked):
    heard = []

    async def answer(reader, writer):
        first = not heard
        while line := await reader.readline():
            request = json.loads(line)
            heard.append(request["method"])
            if not first or len(heard) > 1:
                break
            writer.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": 0}).encode() + b"\n")

    async def ask():
        path = tmp_path / "odd.sock"
        async with odd_server(path, answer), AsyncClient(path, timeout=20) as client:
            assert await client.call(method) == 0
            with pytest.raises(errors.NotRunning, match="closed the connection"):
                await client.call(method)

    asyncio.run(ask())
    assert heard == [method] * asked


def test_first_call_of_all_that_meets_a_daemon_as_it_stops_is_asked_again(tmp_path):
    heard = []

    async def answer(reader, writer):
        request = json.loads(await reader.readline())
        heard.append(request["method"])
        if len(heard) > 1:
            writer.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": "ok"}).encode() + b"\n")

    async def ask():
        path = tmp_path / "odd.sock"
        async with odd_server(path, answer), AsyncClient(path, timeout=20) as client:
            assert await client.call("status") == "ok"

    asyncio.run(ask())
    assert heard == ["status", "status"]


def test_call_over_its_time_is_timed_out_and_the_others_go_on(running_server, path):
    gate = threading.Event()

    async def ask():
        async with AsyncClient(path, timeout=0.2) as client:
            with pytest.raises(errors.TimedOut, match=r"slow within 0\.2 s"):
                await client.call("slow")
            client._timeout = 20
            assert await client.call("ping") == "pong"
        gate.set()

    with running_server(path, {"slow": Method(lambda params: gate.wait(20))}):
        asyncio.run(ask())


def test_cancelled_call_tells_the_daemon(tmp_path):
    heard = []

    async def listen(reader, writer):
        while line := await reader.readline():
            heard.append(json.loads(line))

    async def ask():
        path = tmp_path / "odd.sock"
        async with odd_server(path, listen), AsyncClient(path, timeout=20) as client:
            call = asyncio.create_task(client.call("search", {"query": "boats"}))
            async with asyncio.timeout(20):
                while not heard:
                    await asyncio.sleep(0.01)
                call.cancel()
                while len(heard) < 2:
                    await asyncio.sleep(0.01)
            assert call.cancelled()

    asyncio.run(ask())
    assert heard[1] == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": heard[0]["id"]}}


@pytest.mark.parametrize("kind", [errors.NotFound, errors.ConfigInvalid, errors.StoreFull])
def test_typed_error_of_the_server_is_the_same_class_here(running_server, path, kind):
    def fail(params):
        raise kind(("Why.",) if kind is errors.ConfigInvalid else "Why.", hint="Do this.")

    async def ask():
        async with AsyncClient(path) as client:
            with pytest.raises(kind, match="Why") as caught:
                await client.call("fail")
            assert caught.value.hint == "Do this."

    with running_server(path, {"fail": Method(fail)}):
        asyncio.run(ask())


def test_server_that_is_full_says_busy(running_server, path):
    async def ask():
        async with AsyncClient(path) as first, AsyncClient(path) as second:
            assert await first.call("ping") == "pong"
            with pytest.raises(errors.Busy):
                await second.call("ping")

    with running_server(path, limits=Limits(max_connections=1)):
        asyncio.run(ask())


@pytest.mark.parametrize("said", [b"HTTP/1.1 400\n", b"[]\n", b'{"jsonrpc":"2.0","id":99,"result":1}\n', b'{"id":'])
def test_nonsense_from_the_server_is_one_of_our_errors(tmp_path, said):
    async def answer(reader, writer):
        await reader.readline()
        writer.write(said)

    async def ask():
        path = tmp_path / "odd.sock"
        async with odd_server(path, answer), AsyncClient(path, timeout=20) as client:
            with pytest.raises(errors.MemorydError):
                await client.call("ping")

    asyncio.run(ask())


def test_answer_of_many_megabytes_is_read_whole(running_server, path):
    async def ask():
        async with AsyncClient(path) as client:
            assert len(await client.call("big")) == 8_000_000

    with running_server(path, {"big": Method(lambda params: "x" * 8_000_000)}):
        asyncio.run(ask())


async def take_all(events, seen):
    while True:
        seen.append((await anext(events)).raw["seq"])


def test_events_that_nobody_takes_wait_in_the_daemon_not_in_the_client(path):
    """A client that falls behind stops reading, so that the daemon's own bound is the one that counts."""
    count = 5000

    async def flood(reader, writer):
        request = json.loads(await reader.readline())
        writer.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {}}).encode() + b"\n")
        for number in range(count):
            params = {"seq": number, "filler": "x" * 1000}
            writer.write(json.dumps({"jsonrpc": "2.0", "method": "events.document", "params": params}).encode() + b"\n")
            try:
                async with asyncio.timeout(1.0):
                    await writer.drain()
            except TimeoutError:
                stuck.set_result(number)
                await writer.drain()
                for rest in range(number + 1, number + 11):
                    params = {"seq": rest}
                    line = json.dumps({"jsonrpc": "2.0", "method": "events.document", "params": params})
                    writer.write(line.encode() + b"\n")
                return

    async def follow():
        nonlocal stuck
        stuck = asyncio.get_running_loop().create_future()
        async with odd_server(path, flood), AsyncClient(path) as client:
            events = client.events("document")
            seen = [(await anext(events)).raw["seq"]]
            last = await stuck
            assert last < count / 2
            with pytest.raises(errors.NotRunning):
                await take_all(events, seen)
            assert seen == list(range(last + 11))  # none is lost on the way, none twice

    stuck = None
    path.parent.mkdir()
    asyncio.run(follow())


def test_events_of_a_connection_for_calls_do_not_hold_up_its_answers(path):
    async def chatty(reader, writer):
        while line := await reader.readline():
            writer.write(b'{"jsonrpc": "2.0", "method": "events.health", "params": {}}\n' * 1000)
            answer = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": "pong"}
            writer.write(json.dumps(answer).encode() + b"\n")

    async def ask():
        async with odd_server(path, chatty), AsyncClient(path, timeout=20) as client:
            assert [await client.call("ping") for _ in range(3)] == ["pong"] * 3

    path.parent.mkdir()
    asyncio.run(ask())
