"""Learning what noise looks like, when the memory has changed much and nothing is left to embed."""

from __future__ import annotations

from memoryd.jobs.semantics import Semantics
from memoryd.store.database import Database
from memoryd.store.queue import Queue
from memoryd.store.search.calibration import calibrate_noise, calibration_due


def calibrate(database: Database, semantics: Semantics, queue: Queue) -> bool:
    """Whether there was something to learn. While passages wait for their vectors there will be another time."""
    generation = semantics.generation()
    if generation is None or "embed" in queue.waiting_kinds():
        return False
    with database.read() as sql:
        due = calibration_due(sql, generation.fingerprint)
    if due:
        calibrate_noise(database, semantics, generation.fingerprint)
    return due
