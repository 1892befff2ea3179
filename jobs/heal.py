"""Damage that heals itself: a broken store is put into quarantine and rebuilt from what is sound.

Whoever meets damage reports it and goes on without; the vector lane, the only writer of LanceDB and of the cache,
puts it right at its next boundary. A lock, a full disk or a lack of permission is not damage and never gets here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from memoryd.store.errors import StoreCorrupt
from memoryd.store.protocols import Clock
from memoryd.store.quarantine import Incident, Quarantine

log = structlog.get_logger()

_OFTEN = 3  # times that a store is begun anew …
_OFTEN_SECONDS = 3600.0  # … within this, before its disk is no longer trusted


Store = TypeVar("Store")


@dataclass(frozen=True, slots=True)
class Cure:
    """How a store is begun anew."""

    store: str
    begin_anew: Callable[
        [Callable[[], object]], None
    ]  # what it is given moves the files away: call it once none is open


class Healer:
    def __init__(self, quarantine: Quarantine, clock: Clock, wake: Callable[[], None]) -> None:
        self._quarantine = quarantine
        self._clock = clock
        self._wake = wake
        self._changed = threading.Condition()
        self._damage: dict[Path, StoreCorrupt] = {}
        self._moved: StoreCorrupt | None = None  # the damage whose files were moved away last
        self._begun_anew: dict[Path, list[float]] = {}  # when, in the life of this process
        self._rebuilding: dict[str, Incident] = {}  # begun anew, and not whole yet
        # Gives up what is no file of this machine; returns where it is left, None where there are files to be moved.
        self.set_aside: Callable[[Path], str | None] = lambda _path: None

    # -- where a store is opened ------------------------------------------------------------------------------

    def open(self, store: str, path: Path, open_store: Callable[[], Store]) -> Store:
        """Open a store; begun anew where it turns out damaged."""
        try:
            return open_store()
        except StoreCorrupt as damage:
            self._take(store, path, damage)
            return open_store()

    # -- while it runs ----------------------------------------------------------------------------------------

    def report(self, damage: StoreCorrupt) -> None:
        """Anybody may call it, from any thread, in the middle of anything."""
        if damage.path is None:
            return
        with self._changed:
            known = damage.path in self._damage
            self._damage.setdefault(damage.path, damage)
        if not known:
            self._wake()

    def is_due(self) -> bool:
        """Whether there is damage that can be put right now."""
        with self._changed:
            return any(not self._happens_too_often(path) for path in self._damage)

    def heal(self, find_cure: Callable[[Path], Cure | None]) -> None:
        """Put right what was reported. Raises what prevents it; it is due again then."""
        with self._changed:
            due = {path: each for path, each in self._damage.items() if not self._happens_too_often(path)}
        for path, damage in due.items():
            cure = find_cure(path)
            if cure is not None:  # else what was damaged is no longer in use
                cure.begin_anew(partial(self._take_once, cure.store, path, damage))
            with self._changed:
                self._damage.pop(path, None)
                self._changed.notify_all()

    def wait_for_healing(self, timeout: float) -> bool:
        """Whether there was damage, and it is put right."""
        with self._changed:
            if all(map(self._happens_too_often, self._damage)):  # none, or none that is put right
                return False
            return self._changed.wait_for(lambda: all(map(self._happens_too_often, self._damage)), timeout)

    def finish(self) -> None:
        """What was begun anew is whole again."""
        with self._changed:
            done, self._rebuilding = self._rebuilding, {}
        for store, incident in done.items():
            log.info("healed", store=store, reason=incident.reason, took_s=round(self._clock() - incident.at, 1))

    # -- for status -------------------------------------------------------------------------------------------

    def rebuilding(self) -> dict[str, Incident]:
        with self._changed:
            return dict(self._rebuilding)

    def given_up(self) -> list[StoreCorrupt]:
        """Damage that came back so often that it is left alone for now."""
        with self._changed:
            return [damage for path, damage in self._damage.items() if self._happens_too_often(path)]

    def incidents(self) -> list[Incident]:
        return self._quarantine.incidents()

    # -- how --------------------------------------------------------------------------------------------------

    def _take_once(self, store: str, path: Path, damage: StoreCorrupt) -> None:
        """A second try finds the files gone, and the beginnings of the new ones in their place."""
        if self._moved is not damage:
            self._take(store, path, damage)
            self._moved = damage

    def _take(self, store: str, path: Path, damage: StoreCorrupt) -> None:
        files = [path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))]
        left = self.set_aside(path)
        incident = self._quarantine.take(store, files if left is None else (), damage.message, left)
        log.warning("store_begun_anew", store=store, reason=damage.message, quarantine=incident.folder)
        with self._changed:
            self._rebuilding[store] = incident
            self._begun_anew.setdefault(path, []).append(incident.at)

    def _happens_too_often(self, path: Path) -> bool:
        """A disk that damages what was just written would have us rebuild for ever."""
        since = self._clock() - _OFTEN_SECONDS
        return sum(at > since for at in self._begun_anew.get(path, ())) >= _OFTEN
