"""Learning what noise looks like, when the memory has changed much and nothing is left to embed."""

from __future__ import annotations

from memoryd.jobs.meaning import Meaning
from memoryd.store.database import Database
from memoryd.store.search.calibration import calibrate_noise, calibration_due


def calibrate(database: Database, meaning: Meaning) -> bool:
    """Whether there was something to learn about this generation."""
    with database.read() as sql:
        due = calibration_due(sql, meaning.generation.fingerprint)
    if due:
        calibrate_noise(database, meaning.forgetful(), meaning.generation.fingerprint)
    return due
