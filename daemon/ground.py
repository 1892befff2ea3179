"""Whether the ground moves under the folders that are watched: a mount, an unmount, a folder above that is renamed.

inotify tells nothing of these on the folders' own watches. The kernel does tell them, so nobody has to look every few
seconds; where it does not (the limits, a file system without it), the watchers look.
"""

from __future__ import annotations

import ctypes
import os
import select
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from memoryd.store.native_thread import name_thread

_MOUNTS: Final = "/proc/self/mountinfo"
_NONBLOCK_CLOEXEC: Final = os.O_NONBLOCK | os.O_CLOEXEC
_MOVED: Final = 0x00000400 | 0x00000800 | 0x01000000  # IN_DELETE_SELF, IN_MOVE_SELF, IN_ONLYDIR

OnMove = Callable[[], object]


class Ground:
    """One thread for all folders. Raises ``OSError`` where the kernel cannot tell."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._lock = threading.Lock()
        self._followed: dict[Path, OnMove] = {}
        self._stopping, self._stop = os.pipe2(_NONBLOCK_CLOEXEC)
        self._mounts = self._events = -1
        try:
            self._mounts = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
            self._events = self._open_events()
        except (OSError, AttributeError) as error:  # no such function: not Linux
            self._close()
            raise OSError(f"the kernel does not tell of moves: {error}") from error
        self._thread = threading.Thread(target=self._run, name="ground", daemon=True)
        self._thread.start()

    def follow(self, folder: Path, on_move: OnMove) -> None:
        """Tell when the folder may not be what it was. To be asked for anew whenever it is another one."""
        with self._lock:
            self._followed[folder] = on_move
        self._watch(folder)

    def leave(self, folder: Path) -> None:
        with self._lock:
            self._followed.pop(folder, None)

    def alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        os.write(self._stop, b"x")
        self._thread.join()
        self._close()

    def _open_events(self) -> int:
        descriptor = int(self._libc.inotify_init1(_NONBLOCK_CLOEXEC))
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return descriptor

    def _watch(self, folder: Path) -> None:
        """The folder and all above it. One that cannot be watched is looked at by the watcher, less often."""
        for each in (folder, *folder.parents):
            self._libc.inotify_add_watch(self._events, os.fsencode(each), _MOVED)

    def _run(self) -> None:
        name_thread()
        poll = select.poll()
        poll.register(self._stopping, select.POLLIN)
        poll.register(self._events, select.POLLIN)
        poll.register(self._mounts, select.POLLPRI)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._stopping in ready:
                return
            if self._events in ready:
                os.read(self._events, 1 << 16)
            with self._lock:
                followed = list(self._followed.items())
            for folder, on_move in followed:
                self._watch(folder)  # what has its name now
                on_move()

    def _close(self) -> None:
        for descriptor in (self._stopping, self._stop, self._mounts, self._events):
            if descriptor >= 0:
                os.close(descriptor)
