"""Both framings over the real socket: each client is answered in its own."""

import os
from pathlib import Path

import pytest

from memoryd.daemon.dispatch import Method
from memoryd.daemon.limits import Limits

MIB = 1024 * 1024


def request(id_, method="ping", **params):
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_each_client_is_answered_in_its_own_framing(running_server, raw_client, path):
    with running_server(path), raw_client(path) as editor, raw_client(path) as agent:
        editor.send_framed(request(1), request(2))
        agent.send(request(3))
        assert {editor.read_framed()["id"], editor.read_framed()["id"]} == {1, 2}
        assert agent.read()["id"] == 3


@pytest.mark.parametrize(
    "header",
    [
        b"content-length:%d\r\n\r\n",
        b"Content-Length: %d\n\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
        b"CONTENT-LENGTH: %d\r\nContent-Type: application/json; charset=UTF8\r\n\r\n",
        b"\r\n\r\nContent-Length: %d\r\nX-Other: yes\r\n\r\n",
    ],
)
def test_headers_are_read_as_clients_write_them(running_server, raw_client, path, header):
    with running_server(path), raw_client(path) as client:
        client.send_framed(request(1), request(2), header=header)
        assert client.read_framed()["result"] == "pong"
        assert client.read_framed()["result"] == "pong"


def test_batches_notifications_and_bad_json_are_framed_alike(running_server, raw_client, path):
    with running_server(path), raw_client(path) as client:
        client.send_framed([request(1), {"jsonrpc": "2.0", "method": "ping"}, request(2)], b"{", b"")
        answers = sorted((client.read_framed() for _ in range(3)), key=lambda answer: isinstance(answer, list))
        assert [answer["error"]["code"] for answer in answers[:2]] == [-32700, -32700]
        assert [answer["id"] for answer in answers[2]] == [1, 2]
        client.send_framed(request("on"))
        assert client.read_framed()["id"] == "on"


def test_body_of_64_mib_is_refused_without_being_kept_and_the_connection_lives(running_server, raw_client, path):
    with running_server(path, limits=Limits(max_request_bytes=MIB)), raw_client(path) as client:
        client.send_framed(request(1))
        client.read_framed()
        before = resident_bytes()
        client.socket.sendall(b"Content-Length: %d\r\n\r\n" % (64 * MIB))
        assert client.read_framed()["error"]["data"]["code"] == "request_too_large"  # before any of it was sent
        piece = b"x" * MIB
        for _ in range(64):
            client.socket.sendall(piece)
        assert resident_bytes() - before < 16 * MIB
        client.send_framed(request("next"))
        assert client.read_framed() == {"jsonrpc": "2.0", "id": "next", "result": "pong"}


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 5, 5\r\n\r\n",
        b"Content-Length: 0x10\r\n\r\n",
        b"Content-Length: \xd9\xa3\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"Content-Type: application/json\r\n\r\n",
        b"Content-Length 5\r\n\r\n",
        b"Content-" + b"x" * 70_000,
    ],
)
def test_header_without_a_length_is_told_and_the_connection_ends(running_server, raw_client, path, header):
    with running_server(path) as told:
        with raw_client(path) as client:
            client.send_framed(request(1))
            assert client.read_framed()["id"] == 1
            client.socket.sendall(header)
            assert client.read_framed()["error"]["data"]["code"] == "framing_invalid"
            assert client.read_framed() is None
        with raw_client(path) as client:
            client.send_framed(request(2))
            assert client.read_framed()["id"] == 2
    assert told.errors == []


def test_body_in_another_encoding_is_refused_and_the_next_is_read(running_server, raw_client, path):
    header = b"Content-Type: application/json; charset=utf-16\r\nContent-Length: %d\r\n\r\n"
    with running_server(path), raw_client(path) as client:
        client.send_framed(request(1), header=header)
        client.send_framed(request(2))
        codes = [client.read_framed() for _ in range(2)]
    assert {answer["id"] for answer in codes} == {None, 2}


def test_answers_count_bytes_not_characters(running_server, raw_client, path):
    with running_server(path, {"echo": Method(dict)}), raw_client(path) as client:
        client.send_framed(request(1, "echo", text="胶圈 🦊 \ud800"))
        assert client.read_framed()["result"] == {"text": "胶圈 🦊 \ud800"}
        client.send_framed(request(2))
        assert client.read_framed()["id"] == 2
