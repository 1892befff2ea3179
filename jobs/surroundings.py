"""What else the machine has to do, as Linux tells it: how much programs wait for a CPU, and where the power comes from.

The files are read below a root folder, so that a test can bring its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PRESSURE_FILE: Final = Path("proc/pressure/cpu")
_SUPPLIES: Final = Path("sys/class/power_supply")
_FROM_OUTSIDE: Final = ("Mains", "USB", "Wireless")
_STORED: Final = ("Battery", "UPS")


@dataclass(frozen=True, slots=True)
class Surroundings:
    pressure: float | None  # percent of the last ten seconds that some program waited for a CPU; None: it is not told
    on_battery: bool | None  # None: there is none


def look_around(root: Path = Path("/")) -> Surroundings:
    return Surroundings(read_pressure(root), read_power(root))


def read_pressure(root: Path = Path("/")) -> float | None:
    told = _read(root / PRESSURE_FILE) or ""
    found = re.search(r"^some avg10=([\d.]+)", told, re.MULTILINE)
    return float(found[1]) if found else None


def read_power(root: Path = Path("/")) -> bool | None:
    """Whether the machine runs on what it has stored. A mouse's battery is not the machine's."""
    try:
        supplies = sorted((root / _SUPPLIES).iterdir())
    except OSError:
        return None
    stored: list[str | None] = []  # what each of the machine's batteries does
    plugs: list[bool] = []  # whether each socket gives power
    for supply in supplies:
        kind = _read(supply / "type")
        if kind in _FROM_OUTSIDE:
            plugs.append(_read(supply / "online") not in (None, "0"))
        elif kind in _STORED and _read(supply / "scope") != "Device":
            stored.append(_read(supply / "status"))
    if not stored:
        return None
    if any(plugs):
        return False
    return bool(plugs) or "Discharging" in stored  # no plug is told of: what the battery does must do


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
