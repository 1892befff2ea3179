"""Whether the pauses of embedding that are configured can be: what Linux tells of CPU pressure and of the battery."""

from __future__ import annotations

from memoryd.daemon.config import Index
from memoryd.daemon.doctor.finding import Finding, ok, warning
from memoryd.jobs.surroundings import PRESSURE_FILE, Surroundings


def check_pauses(settings: Index, seen: Surroundings) -> Finding:
    if settings.pause_on_pressure and seen.pressure is None:
        return warning(
            "pauses",
            f"embedding is never paused for pressure: this kernel tells none (no /{PRESSURE_FILE})",
            "Start Linux with psi=1, or set index.pause_on_pressure = 0",
        )
    words = []
    if settings.pause_on_pressure:
        words.append(f"from {settings.pause_on_pressure:g} % CPU pressure on (now {seen.pressure:.0f} %)")
    if settings.pause_on_battery:
        power = {None: "there is none", True: "now", False: "plugged in now"}[seen.on_battery]
        words.append(f"on battery ({power})")
    return ok("pauses", f"embedding is paused {' and '.join(words)}" if words else "embedding is never paused")
