"""One daemon a data folder: a lock that the kernel takes back when the process ends, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from memoryd.store.errors import AlreadyRunning, StoreUnavailable


class InstanceLock:
    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnavailable(
                f"{path} cannot be opened: {error.strerror}",
                hint=f"Check that {path.parent} is yours to write, or choose another with paths.data",
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise AlreadyRunning(
                f"Another memoryd (process {holder or 'unknown'}) has the data folder {path.parent}",
                hint="Ask it with 'memoryd status'; stop it first, or give this one another paths.data",
            ) from error
        # The name of whoever had it last is there unless that one stopped in good order.
        self.was_cut_off = os.fstat(self._descriptor).st_size > 0
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same; only the name is missing
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self, *, in_good_order: bool = False) -> None:
        if in_good_order:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
