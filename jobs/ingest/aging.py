"""Facts grow old: what has expired is removed, what was used lasts longer where its class says so."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from memoryd.jobs.ingest.fact import Fact
from memoryd.jobs.ingest.folder import FactFolder, fact_path
from memoryd.jobs.ingest.forgetting import write_facts
from memoryd.store.answers import Answers
from memoryd.store.lifespans import LIFESPANS

REFRESH_S: Final = 86_400.0  # a use is written down once a day
UNUSED_DAYS: Final = 180  # answers that no run has needed for so long are dropped


@dataclass(frozen=True, slots=True)
class Aged:
    expired: int = 0
    refreshed: int = 0
    paths: tuple[str, ...] = ()  # of the files that changed or went


class Uses:
    """Which facts were found by a search since the last look; any thread may note one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[str, float] = {}  # id -> when

    def note(self, paths: Iterable[str], now: float) -> None:
        with self._lock:
            self._used.update((PurePosixPath(path).stem, now) for path in paths)

    def take(self) -> dict[str, float]:
        with self._lock:
            used, self._used = self._used, {}
        return used


def age_facts(folder: FactFolder, answers: Answers, used: dict[str, float], now: float) -> Aged:
    """Refresh what was used, then remove what has expired. That it has is remembered before it goes."""
    expired: list[Fact] = []
    refreshed = 0
    paths: list[str] = []
    for fact in folder.read_all():
        at = used.get(fact.id)
        if at is not None and _is_refreshed(fact, at):
            fact = replace(fact, used=at)
            write_facts(folder, answers, [fact])
            refreshed += 1
            paths.append(fact_path(fact))
        if fact.expired(now):
            expired.append(fact)
    if expired:
        # A superseded fact has no passage any more that could say it; should there be one again, it is welcome.
        answers.dismiss((fact.id, fact.origin.piece) for fact in expired if not fact.superseded_by)
        for fact in expired:
            folder.remove(fact)
            paths.append(fact_path(fact))
    answers.prune(UNUSED_DAYS)
    return Aged(len(expired), refreshed, tuple(paths))


def _is_refreshed(fact: Fact, at: float) -> bool:
    last = max(fact.created, fact.used or 0.0)
    return LIFESPANS[fact.decay].refreshed and not fact.superseded_by and at - last >= REFRESH_S
