"""The socket's place in the file system: made private, taken over when stale, never taken from another."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

from memoryd.store.errors import AlreadyRunning, ConfigInvalid

PROBE_TIMEOUT_S = 1.0

SocketIdentity = tuple[int, int]  # device and inode: tells our socket file from another of the same name


def bind_listener(path: Path) -> tuple[socket.socket, SocketIdentity]:
    """A bound socket of mode 0600 in a folder of mode 0700, both so from birth.

    To be called under the instance lock (between looking and removing nobody else may bind) and before other
    threads start, because the umask belongs to the whole process.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _problems_about(path):
            _make_folder(path.parent)
            _remove_stale(path)
            with _umask(0o177):
                listener.bind(os.fspath(path))
            return listener, _identify(path)
    except BaseException:
        listener.close()
        raise


def check_inherited(listener: socket.socket) -> None:
    """Raises ``ConfigInvalid`` unless it is a Unix stream socket, as ``memoryd.socket`` passes it."""
    if listener.family != socket.AF_UNIX or listener.type != socket.SOCK_STREAM:
        raise ConfigInvalid(
            ("The inherited socket is not a Unix stream socket.",),
            hint="In the .socket unit use ListenStream= with an absolute path.",
        )


def remove_listener(path: Path, identity: SocketIdentity) -> None:
    """Removes the socket file if it is still the one that was bound."""
    with contextlib.suppress(FileNotFoundError):
        if _identify(path) == identity:
            path.unlink()


def peer_uid(connection: socket.socket) -> int:
    """Who connected, as the kernel knows it."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
    _pid, uid, _gid = struct.unpack("iII", credentials)
    return int(uid)


def has_left(connection: socket.socket) -> bool:
    """Whether the peer has closed the connection for good, not just its own side of it."""
    if connection.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(connection, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))


def _make_folder(folder: Path) -> None:
    with _umask(0o077):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    others_may_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
    if status.st_uid not in (0, os.geteuid()) or others_may_write:
        raise ConfigInvalid(
            (f"{folder} can be changed by other users, who could put a socket of their own there.",),
            hint=f"Make it yours alone (chmod 700 {folder}) or choose another socket path.",
        )


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ConfigInvalid(
            (f"{path} is in the way: it is not a socket.",),
            hint="Move it away or choose another socket path.",
        )
    if _answers(path):
        raise AlreadyRunning(
            f"Another daemon answers on {path}.", hint="Ask it with 'memoryd status', or stop it first."
        )
    path.unlink()


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_TIMEOUT_S)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            return False
        except (BlockingIOError, TimeoutError):
            return True  # its queue of connections is full: busy, not dead
        return True


def _identify(path: Path) -> SocketIdentity:
    status = path.lstat()
    return status.st_dev, status.st_ino


@contextlib.contextmanager
def _problems_about(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise ConfigInvalid(
            (f"The socket {path} cannot be made: {reason}.",), hint="Choose another socket path."
        ) from exc


@contextlib.contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
