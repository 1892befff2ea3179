"""How many tokens were paid for today, kept on disk: a restart does not begin the day anew."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from memoryd.store.protocols import Clock

_FOR_QUERIES: Final = 0.1  # of a day's tokens: notes can wait until tomorrow, a question cannot


class Budget:
    """Any number of threads; a day is one of UTC. ``most`` 0: there is no limit, and nothing is written."""

    def __init__(self, most: int, file: Path, clock: Clock) -> None:
        self._most = most
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        self._spent = ("", 0)  # on which day, how much: for where nothing can be written down

    def allows(self, tokens: int, *, query: bool) -> bool:
        if not self._most:
            return True
        return self.used() + tokens <= self._most * (1.0 if query else 1.0 - _FOR_QUERIES)

    def spend(self, tokens: int) -> None:
        if not self._most or tokens <= 0:
            return
        with self._lock:
            self._spent = (self._today(), self._read() + tokens)
            record = dict(zip(("day", "tokens"), self._spent, strict=True))
            with suppress(OSError):
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                beside = self._file.with_name(f".{self._file.name}.new")
                beside.write_text(json.dumps(record), encoding="utf-8")
                beside.replace(self._file)

    def used(self) -> int:
        with self._lock:
            return self._read()

    def renewed_at(self) -> float:
        """When the next day begins, in unix time."""
        today = datetime.fromtimestamp(self._clock(), UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return (today + timedelta(days=1)).timestamp()

    def _read(self) -> int:
        today = self._today()
        known = self._spent[1] if self._spent[0] == today else 0
        try:
            record = json.loads(self._file.read_text(encoding="utf-8"))
            return max(known, int(record["tokens"]) if record["day"] == today else 0)
        except (OSError, ValueError, LookupError, TypeError):
            return known

    def _today(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).date().isoformat()
