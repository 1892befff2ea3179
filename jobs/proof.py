"""What was proven last, and what changed since: so that status never claims more than somebody has looked at."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from memoryd.jobs.drift import Drift


@dataclass(frozen=True, slots=True)
class Proof:
    at: float  # unix time at which the look began
    light: bool  # by stat and ids alone
    root: str | None  # of a full look
    drift: tuple[Drift, ...]  # what was not in sync, and could not be put right
    pending: int  # documents that were being worked on
    failed: int = 0  # documents that could not be, so that nothing is claimed of them

    @property
    def in_sync(self) -> bool:
        return not self.drift


class Proofs:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Proof | None = None
        self._doubted = False  # a full look found what a light one may not see
        self._changed: set[tuple[str, str]] = set()  # documents, since the last proof
        self._meanwhile: set[tuple[str, str]] = set()  # documents, since the look that goes on began

    def last(self) -> tuple[Proof | None, set[tuple[str, str]]]:
        """The last proof, and the documents that changed since."""
        with self._lock:
            return self._last, set(self._changed)

    def needs_full_look(self) -> bool:
        """Whether a light look would claim too much: the last full one ended with drift."""
        with self._lock:
            return self._doubted

    def begin_look(self) -> None:
        with self._lock:
            self._meanwhile = set()

    def note_change(self, workspace: str, path: str) -> None:
        with self._lock:
            self._changed.add((workspace, path))
            self._meanwhile.add((workspace, path))

    def keep(self, proof: Proof) -> None:
        with self._lock:
            self._last = proof
            self._changed = self._meanwhile
            self._meanwhile = set(self._changed)
            if not proof.light:
                self._doubted = not proof.in_sync
