"""The socket in the file system: who may see it, what it may replace, who may connect."""

import contextlib
import os
import socket
import stat
import subprocess
import sys

import pytest

from memoryd.store.errors import AlreadyRunning, ConfigInvalid


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def leave_stale_socket(path):
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


def test_folder_is_0700_and_socket_0600_whatever_the_umask(running_server, path, open_umask):
    with running_server(path):
        assert mode(path.parent) == 0o700
        assert mode(path) == 0o600
        assert stat.S_ISSOCK(path.stat().st_mode)
    assert os.umask(0) == 0


def test_stale_socket_is_taken_over(running_server, raw_client, path):
    leave_stale_socket(path)
    with running_server(path), raw_client(path) as client:
        client.ask("ping")
        assert client.read()["result"] == "pong"


def test_socket_that_answers_is_left_to_its_daemon(running_server, raw_client, path):
    with running_server(path):
        with pytest.raises(AlreadyRunning), running_server(path):
            pass
        with raw_client(path) as client:
            client.ask("ping")
            assert client.read()["result"] == "pong"


def test_socket_with_a_full_queue_counts_as_answering(running_server, path):
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as stuck, socket.socket(socket.AF_UNIX) as waiting:
        stuck.bind(str(path))
        stuck.listen(0)
        waiting.connect(str(path))
        with pytest.raises(AlreadyRunning), running_server(path):
            pass
    assert path.exists()


@pytest.mark.parametrize("kind", ["file", "folder", "symlink", "datagram socket"])
def test_what_is_not_our_kind_of_socket_is_refused_and_kept(running_server, path, kind):
    path.parent.mkdir(mode=0o700)
    with contextlib.ExitStack() as stack:
        match kind:
            case "file":
                path.write_text("precious")
            case "folder":
                path.mkdir()
            case "symlink":
                path.symlink_to("elsewhere")
            case "datagram socket":
                other = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
                other.bind(str(path))
        before = path.lstat()
        with pytest.raises(ConfigInvalid) as caught, running_server(path):
            pass
        assert path.lstat() == before
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_path_too_long_for_a_socket_is_a_clear_error(running_server, tmp_path):
    path = tmp_path / ("x" * 120) / "memoryd.sock"
    with pytest.raises(ConfigInvalid, match="cannot be made: AF_UNIX path too long"), running_server(path):
        pass


def test_folder_that_others_can_write_is_refused(running_server, path):
    path.parent.mkdir()
    path.parent.chmod(0o777)
    with pytest.raises(ConfigInvalid, match="other users"), running_server(path):
        pass
    path.parent.chmod(0o1777)
    with running_server(path):
        assert mode(path) == 0o600


def test_socket_of_another_daemon_survives_our_stop(running_server, path):
    with running_server(path) as told:
        path.unlink()
        leave_stale_socket(path)
        told.stop()
        told.thread.join(20)
        assert path.exists()


CONNECT_AS = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
client = socket.socket(socket.AF_UNIX)
client.settimeout(20)
client.connect(sys.argv[1])
try:
    client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n')
    answer = client.recv(100)
except (ConnectionResetError, BrokenPipeError):
    answer = b""
print("answer:", answer)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a second user")
def test_another_user_is_closed_without_an_answer(running_server, raw_client, wait_until, tmp_path):
    # The kernel's own checks are opened on purpose, so that only ours is left.
    folders = [tmp_path, *tmp_path.parents][:-2]
    before = {folder: mode(folder) for folder in folders}
    try:
        for folder in folders:
            folder.chmod(before[folder] | 0o011)
        path = tmp_path / "memoryd.sock"
        with running_server(path) as told:
            path.chmod(0o666)
            child = subprocess.run(
                [sys.executable, "-c", CONNECT_AS, str(path)], capture_output=True, text=True, timeout=30
            )
            assert child.stdout == "answer: b''\n", child.stderr
            wait_until(lambda: told.errors)
            assert "65534" in str(told.errors[0][1])
            assert told.requests == []
            with raw_client(path) as client:
                client.ask("ping")
                assert client.read()["result"] == "pong"
    finally:
        for folder, bits in before.items():
            folder.chmod(bits)


def test_inherited_listener_is_served_and_its_file_left_alone(running_server, raw_client, path):
    path.parent.mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    with running_server(path, listener=listener), raw_client(path) as client:
        client.ask("ping")
        assert client.read()["result"] == "pong"
    assert path.exists()


def test_inherited_listener_of_another_kind_is_refused(running_server, path):
    with (
        socket.socket(socket.AF_INET) as tcp,
        pytest.raises(ConfigInvalid, match="not a Unix stream socket"),
        running_server(path, listener=tcp),
    ):
        pass
