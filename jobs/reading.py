"""A file's bytes, and the text in them, whatever they are."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from memoryd.jobs.workspace import signature_of
from memoryd.store.errors import FileUnreadable

_BINARY_SHARE = 0.1  # of characters that are no text
_REPLACEMENT = "\ufffd"
_READ_BYTES = 1 << 20
_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)  # the last two: a circle of links, a socket
_MOST_LINKS = 40  # as the kernel follows
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a named pipe that lies where a note is expected must not hang the worker.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class FileRead:
    data: bytes  # empty where the file is too large
    size: int
    signature: str  # of the moment before the read, so that a change during it is seen later
    too_large: bool

    @property
    def content_hash(self) -> str:
        if self.too_large:
            return f"unread:{self.signature}"
        return blake2b(self.data, digest_size=16).hexdigest()


def open_file(path: Path, root: Path) -> int | None:
    """A descriptor of a regular file, the caller's to close; None if there is none. Never follows a link out of the
    root."""
    if not path.is_relative_to(root) or ".." in path.parts:
        return None
    try:
        descriptor = _open_beneath(root, path.relative_to(root).parts)
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise unreadable(path, error) from error
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def read_file(path: Path, root: Path, max_bytes: int) -> FileRead | None:
    """A regular file's bytes; None if there is none. Never follows a link out of the root."""
    descriptor = open_file(path, root)
    if descriptor is None:
        return None
    try:
        found = os.fstat(descriptor)
        data = b"" if found.st_size > max_bytes else _read_up_to(descriptor, max_bytes + 1)
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        os.close(descriptor)
    if max(found.st_size, len(data)) > max_bytes:
        return FileRead(b"", max(found.st_size, len(data)), signature_of(found), too_large=True)
    return FileRead(data, len(data), signature_of(found), too_large=False)


def _open_beneath(root: Path, parts: tuple[str, ...]) -> int:
    """A descriptor of what lies there, opened step by step from the root, none of the steps through a link.

    A link is not followed but looked up, and the walk begins anew at the root with where it leads. So it does not
    matter what becomes of a link between the look and the open: nothing outside is ever opened.
    """
    for _ in range(_MOST_LINKS):
        link = _walk(root, parts)
        if isinstance(link, int):
            return link
        walked, rest = link
        try:
            real = Path(os.path.realpath(root.joinpath(*walked)))
        except OSError as error:
            if error.errno == errno.EINVAL:  # it is no link any more
                continue
            raise
        if not real.is_relative_to(root):
            raise OSError(errno.ENOENT, "it leads out of the workspace")
        parts = (*real.relative_to(root).parts, *rest)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _walk(root: Path, parts: tuple[str, ...]) -> int | tuple[tuple[str, ...], tuple[str, ...]]:
    """The descriptor; or the way to the first link, and the way that is left behind it."""
    here = os.open(root, _FOLDER)
    for depth, name in enumerate(parts, start=1):
        folder = here
        try:
            here = os.open(name, _FILE if depth == len(parts) else _FOLDER, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(name, folder):
                return parts[:depth], parts[depth:]
            raise
        finally:
            os.close(folder)
    return here


def _is_link(name: str, folder: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _read_up_to(descriptor: int, most: int) -> bytes:
    data = bytearray()
    while len(data) < most and (more := os.read(descriptor, min(most - len(data), _READ_BYTES))):
        data += more
    return bytes(data)


def decode_text(data: bytes) -> tuple[str | None, list[str]]:
    """The text with ``\\n`` line ends, and what was odd about it; None = no text."""
    notices: list[str] = []
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", errors="replace")
        notices.append("UTF-16: read as such")
    else:
        text = data.decode("utf-8-sig", errors="replace")
    bad = text.count(_REPLACEMENT)
    nul = text.count("\0")
    if text and (bad + nul) / len(text) > _BINARY_SHARE:
        return None, notices
    if bad:
        notices.append(f"not valid UTF-8: {bad} characters replaced")
    if nul:
        notices.append(f"{nul} NUL characters replaced")
        text = text.replace("\0", _REPLACEMENT)
    return text.replace("\r\n", "\n"), notices


def unreadable(path: Path, error: OSError) -> FileUnreadable:
    return FileUnreadable(
        f"{path.name} cannot be read: {error.strerror}",
        hint=f"Check the permissions of {path}; it is tried again by itself",
    )
