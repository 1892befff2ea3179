"""Where damaged files are put: out of the way, named, and never so many that they fill the disk.

``<data>/quarantine/<time>-<store>/`` holds the files as they were found and ``incident.json``, which says what was
wrong. The stores are derived, so nothing here is ever read back; it is for the person who wants to know why.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from memoryd.store.errors import StoreFull, StoreUnavailable
from memoryd.store.failpoints import failpoint
from memoryd.store.protocols import Clock

KEPT_INCIDENTS = 3
KEPT_BYTES = 256 * 2**20  # of files, all incidents together; what was wrong is kept whatever the size

_NOTE = "incident.json"


@dataclass(frozen=True, slots=True)
class Incident:
    """A store that was found damaged and begun anew."""

    store: str  # "ledger", "embedding_cache" or "vectors"
    at: float  # unix time
    reason: str
    folder: str  # where its files are, or the table that was left far away


class Quarantine:
    def __init__(self, folder: Path, clock: Clock, *, kept: int = KEPT_INCIDENTS, kept_bytes: int = KEPT_BYTES) -> None:
        self._folder = folder
        self._clock = clock
        self._kept = kept
        self._kept_bytes = kept_bytes

    def take(self, store: str, files: Sequence[Path], reason: str, left: str | None = None) -> Incident:
        """Move these files away, as far as they are there; or note what is ``left`` where it is, far away.

        Raises ``StoreFull`` or ``StoreUnavailable``.
        """
        now = self._clock()
        with _translated_errors(self._folder):
            failpoint("quarantine.take.before")
            place = self._make_place(store, now)
            incident = Incident(store, now, reason, left or str(place))
            (place / _NOTE).write_text(json.dumps(asdict(incident), indent=2) + "\n", encoding="utf-8")
            failpoint("quarantine.take.noted")
            for file in files:
                if os.path.lexists(file):
                    file.rename(place / file.name)
                    failpoint("quarantine.take.moved")
            failpoint("quarantine.take.after")
        self._prune()
        return incident

    def incidents(self) -> list[Incident]:
        """What is remembered, newest first."""
        found = []
        for place in self._places():
            try:
                note = json.loads((place / _NOTE).read_text(encoding="utf-8"))
                left = str(note["folder"])
                where = left if "://" in left else str(place)
                found.append(Incident(str(note["store"]), float(note["at"]), str(note["reason"]), where))
            except (OSError, ValueError, KeyError, TypeError):  # cut off by a crash: there is nothing to tell of it
                continue
        return found

    def _make_place(self, store: str, now: float) -> Path:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        place = self._folder / f"{stamp}-{store}"
        while place.exists():  # two in one moment
            place = place.with_name(f"{place.name}-again")
        place.mkdir(mode=0o700)
        return place

    def _places(self) -> list[Path]:
        """The newest first: they are named by their time."""
        try:
            return sorted((place for place in self._folder.iterdir() if place.is_dir()), reverse=True)
        except FileNotFoundError:
            return []

    def _prune(self) -> None:
        """Forget the oldest; of what is too large, keep only what was wrong with it."""
        room = self._kept_bytes
        for number, place in enumerate(self._places()):
            if number >= self._kept:
                shutil.rmtree(place, ignore_errors=True)
                continue
            size = folder_bytes(place)
            if size <= room:
                room -= size
                continue
            for entry in place.iterdir():
                if entry.name == _NOTE:
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)


def folder_bytes(folder: Path) -> int:
    """What a folder takes on disk, as far as it can be looked at while others write in it."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += Path(parent, name).lstat().st_size
            except FileNotFoundError:  # removed while they are counted
                continue
    return total


@contextmanager
def _translated_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        failure = StoreFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StoreUnavailable
        raise failure(
            f"Damaged files cannot be moved to {folder}: {error.strerror}",
            hint=f"Check that {folder.parent} is yours to write and has space left",
        ) from error
