"""The blocking client against the real server, and against servers that misbehave."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading

import pytest

from memoryd.daemon.client import Client
from memoryd.daemon.dispatch import Method
from memoryd.daemon.limits import Limits
from memoryd.daemon.params import parse_params
from memoryd.daemon.requests import GetRequest
from memoryd.store import errors


@pytest.fixture
def misbehaving(tmp_path):
    """A server that reads one request per connection and answers with the given pieces, then closes."""
    path = tmp_path / "odd.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    threads = []
    taken = []  # for each server whether it has its connection: the first comes before the second

    def answer_with(*pieces, close=True):
        before = taken[-1] if taken else None
        taken.append(mine := threading.Event())

        def serve():
            if before:
                before.wait(20)
            connection, _ = listener.accept()
            mine.set()
            with connection:
                connection.recv(65536)
                for piece in pieces:
                    connection.sendall(piece)
                if not close:
                    connection.recv(1)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return Client(path, timeout=20)

    yield answer_with
    for thread in threads:
        thread.join(20)
    listener.close()


def answer(id_=1, **members):
    return json.dumps({"jsonrpc": "2.0", "id": id_, **members}).encode() + b"\n"


def test_calls_share_one_connection(running_server, path):
    with running_server(path, {"echo": Method(dict)}) as told, Client(path) as client:
        assert client.call("ping") == "pong"
        assert client.call("echo", {"text": "日本 \n \u2028"}) == {"text": "日本 \n \u2028"}
        assert told.server.connections == 1


def test_answer_of_many_megabytes_is_read_whole(running_server, path):
    with running_server(path, {"big": Method(lambda params: "x" * 8_000_000)}), Client(path) as client:
        assert len(client.call("big")) == 8_000_000


@pytest.mark.parametrize("kind", list(errors.all_errors()))
def test_typed_error_of_the_server_is_the_same_class_here(running_server, path, kind):
    def fail(params):
        raise kind(("Why.",) if kind is errors.ConfigInvalid else "Why.", hint="Do this.")

    with running_server(path, {"fail": Method(fail)}), Client(path) as client:
        with pytest.raises(errors.MemorydError) as caught:
            client.call("fail")
        assert client.call("ping") == "pong"
    assert type(caught.value) is kind
    assert (caught.value.message, caught.value.hint) == ("Why.", "Do this.")


def test_unknown_method_says_which_there_are(running_server, path):
    with running_server(path), Client(path) as client, pytest.raises(errors.MemorydError) as caught:
        client.call("pong")
    assert caught.value.hint == "The methods are: ping."


@pytest.mark.parametrize("left_behind", ["nothing", "stale socket", "file"])
def test_no_daemon_is_told_with_the_remedy(tmp_path, left_behind):
    path = tmp_path / "memoryd.sock"
    if left_behind == "file":
        path.write_text("")
    elif left_behind == "stale socket":
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
    with Client(path) as client, pytest.raises(errors.NotRunning) as caught:
        client.call("ping")
    assert caught.value.hint == "Start it with 'memoryd run'."


def test_path_too_long_for_a_socket_is_not_a_traceback(tmp_path):
    with Client(tmp_path / ("x" * 200)) as client, pytest.raises(errors.NotRunning, match="too long"):
        client.call("ping")


def test_server_that_is_full_says_busy(running_server, path):
    with (
        running_server(path, limits=Limits(max_connections=1)),
        Client(path) as first,
        Client(path) as second,
    ):
        first.call("ping")
        for _ in range(3):
            with pytest.raises(errors.Busy):
                second.call("ping")
        first.close()


def test_request_that_is_too_large_is_told_and_the_next_call_works(running_server, path):
    limits = Limits(max_request_bytes=1000)
    with running_server(path, {"echo": Method(dict)}, limits=limits), Client(path) as client:
        with pytest.raises(errors.RequestTooLarge):
            client.call("echo", {"text": "x" * 3_000_000})
        assert client.call("ping") == "pong"


def test_file_name_that_is_not_utf8_is_refused_by_the_server(running_server, path):
    method = Method(lambda params: parse_params(GetRequest, params).path)
    refused = pytest.raises(errors.InvalidParams, match="path holds half a surrogate pair")
    with running_server(path, {"get": method}), Client(path) as client, refused:
        client.call("get", {"path": "caf\udce9.md"})


def test_call_over_its_time_is_timed_out_and_its_late_answer_is_never_taken_for_another(running_server, path):
    gate = threading.Event()
    methods = {"slow": Method(lambda params: gate.wait(20))}
    with running_server(path, methods), Client(path, timeout=0.1) as client:
        with pytest.raises(errors.TimedOut, match=r"slow within 0\.1 s"):
            client.call("slow")
        gate.set()
        client._timeout = 20
        assert client.call("ping") == "pong"


def test_answer_in_single_bytes_is_put_together(misbehaving):
    pieces = [bytes([byte]) for byte in answer(result="ok")]
    with misbehaving(*pieces) as client:
        assert client.call("ping") == "ok"


def test_notification_before_the_answer_is_passed_over(misbehaving):
    with misbehaving(b'{"jsonrpc":"2.0","method":"event"}\n' + answer(result="ok")) as client:
        assert client.call("ping") == "ok"


@pytest.mark.parametrize("pieces", [(), (b'{"jsonrpc":"2.0","id":1,"res',)])
def test_server_that_closes_before_or_within_its_answer_is_not_running(misbehaving, pieces):
    with misbehaving(*pieces) as client, pytest.raises(errors.NotRunning, match="closed the connection"):
        client.call("settings.set")


@pytest.mark.parametrize(
    "piece",
    [
        b"HTTP/1.1 400 Bad Request\n",
        b"\xff\n",
        b"[]\n",
        b"[" * 100_000 + b"\n",
        answer(id_=99, result=1),
        answer(id_="1", result=1),
        answer(error=None),
        answer(error={"code": 1}),
        answer(id_=None, error="x"),
    ],
)
def test_nonsense_from_the_server_is_one_of_our_errors(misbehaving, piece):
    with misbehaving(piece) as client, pytest.raises(errors.MemorydError):
        client.call("ping")


def test_signals_do_not_break_a_call(running_server, path):
    ticks = []
    before = signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        methods = {"slow": Method(lambda params: threading.Event().wait(0.2))}
        with running_server(path, methods), Client(path) as client:
            assert client.call("slow") is False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ticks


def test_daemon_restarted_between_two_calls_is_not_noticed(running_server, path):
    counted = []
    methods = {"settings.set": Method(lambda params: counted.append(1) or len(counted))}
    with Client(path) as client:
        with running_server(path, methods):
            assert client.call("settings.set") == 1
        with running_server(path, methods):
            assert client.call("settings.set") == 2
        with running_server(path):
            assert client.call("ping") == "pong"
        with pytest.raises(errors.NotRunning):
            client.call("ping")
        with running_server(path):
            assert client.call("ping") == "pong"


@pytest.mark.parametrize(("method", "asked"), [("ping", 3), ("settings.set", 2)])
def test_call_lost_with_its_connection_is_asked_again_once_if_that_is_safe(tmp_path, method, asked):
    heard = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "odd.sock"))
    listener.listen()

    def serve():
        """Answers the very first call; every other one is heard, and its connection ends."""
        with contextlib.suppress(OSError):  # the test is over
            while True:
                connection, _ = listener.accept()
                with connection, connection.makefile("rb") as lines:
                    for line in lines:
                        heard.append(json.loads(line)["method"])
                        if len(heard) > 1:
                            break
                        connection.sendall(answer(id_=json.loads(line)["id"], result="ok"))

    server = threading.Thread(target=serve)
    server.start()
    try:
        with Client(tmp_path / "odd.sock", timeout=20) as client:
            assert client.call(method) == "ok"
            with pytest.raises(errors.NotRunning):
                client.call(method)
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        server.join(20)
        listener.close()
    assert heard == [method] * asked


def test_first_call_of_all_that_meets_a_daemon_as_it_stops_is_asked_again(misbehaving):
    """Under systemd the socket is still there, and whoever is started next answers."""
    misbehaving()
    with misbehaving(answer(id_=2, result="ok")) as client:
        assert client.call("status") == "ok"


def test_client_has_time_for_itself_while_the_daemon_works(path):
    """Each waits for the other: the request is out before it, and the answer comes after it."""
    path.parent.mkdir()
    asked, ready = threading.Event(), threading.Event()

    def serve():
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            asked.set()
            assert ready.wait(20)
            connection.sendall(answer(result="found"))

    def meanwhile():
        assert asked.wait(20)
        ready.set()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        server = threading.Thread(target=serve)
        server.start()
        with Client(path, timeout=30) as client:
            assert client.call("search", {"query": "boat"}, meanwhile=meanwhile) == "found"
        server.join(20)


def test_importing_the_client_imports_nothing_heavy():
    script = "import sys, memoryd.daemon.client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {
        "argparse",
        "asyncio",
        "dataclasses",
        "inspect",
        "pathlib",
        "logging",
        "numpy",
        "lancedb",
        "structlog",
        "rich",
        "typing",
    }
    ours = {name for name in done.stdout.split() if name.startswith("memoryd.")}
    at_start = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert not heavy & (set(done.stdout.split()) - set(at_start.stdout.split()))
    room = {"memoryd.daemon", "memoryd.daemon.client", "memoryd.daemon.client_wire"}
    assert ours == room | {"memoryd.store", "memoryd.store.errors"}


def test_subscriber_that_is_refused_while_it_still_asks_learns_why(path):
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def refuse():
            connection, _ = listener.accept()
            error = {"code": -32021, "message": "full", "data": {"code": "busy", "hint": None, "retryable": True}}
            connection.sendall(json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode() + b"\n")
            connection.close()

        refusing = threading.Thread(target=refuse)
        refusing.start()
        with Client(path) as client, pytest.raises(errors.Busy):
            next(client.events(workspace=["x" * 4_000_000]))  # longer than the kernel takes without a reader
        refusing.join(20)
