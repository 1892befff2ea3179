"""Where LanceDB's tables are: in a folder of this machine, or behind a URI such as ``s3://bucket/folder``.

A folder is moved, measured and removed like any other. Behind a URI there is nothing to move: a damaged table stays
where it is, and the one in its stead has the next number in its name.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from memoryd.store.outage import Outage
from memoryd.store.protocols import Clock

ReadOptions = Callable[[], Mapping[str, str]]

# LanceDB repeats each request by itself, many times over; when it is tried again is the outage's to say.
DEFAULT_OPTIONS: Final = {"connect_timeout": "5s", "timeout": "20s", "client_max_retries": "0"}

_TABLE = re.compile(r"vectors_(.+?)(?:-(\d+))?")


class VectorPlace:
    def __init__(self, uri: str | Path, options: ReadOptions = dict, clock: Clock = time.time) -> None:
        """``options`` reads the keys anew each time. Where there is no ``://`` it is a folder."""
        self.uri = re.sub(r"(?<!:)/{2,}", "/", str(uri))
        self.folder = None if "://" in self.uri else Path(uri)
        self.outage = Outage(clock)
        self._options = options
        self.connection: tuple[dict[str, str], Any] | None = None  # with these options; making one takes requests
        self._set_aside: dict[str, int] = {}  # fingerprint -> the last number that was given up, in this process

    def __str__(self) -> str:
        return self.uri

    @property
    def is_remote(self) -> bool:
        return self.folder is None

    def options(self) -> dict[str, str] | None:
        """What LanceDB is to be told besides the URI, keys included: never to be shown."""
        return {**DEFAULT_OPTIONS, **self._options()} if self.is_remote else None

    def table_path(self, fingerprint: str) -> Path:
        """The folder of a generation's table; far away it is but a name, and never looked for on this disk."""
        return Path(self.uri) / f"vectors_{fingerprint}.lance"

    def set_aside(self, table: Path) -> str | None:
        """Give up a generation's table far away: the next number is its successor. None: it is a folder to be moved."""
        if not self.is_remote or table.parent != Path(self.uri):
            return None
        fingerprint = table.stem.removeprefix("vectors_")
        number = self._set_aside[fingerprint] = self._set_aside.get(fingerprint, 0) + 1
        return f"{self.uri.rstrip('/')}/{table_name(fingerprint, number)}.lance"

    def choose_table(self, fingerprint: str, listed: Iterable[str]) -> tuple[str, bool]:
        """The name of a generation's table, and whether it is there already."""
        numbers = [number for number in numbers_of(fingerprint, listed) if number > self._set_aside.get(fingerprint, 0)]
        if numbers:
            self._set_aside[fingerprint] = max(numbers) - 1  # its predecessors are behind us
            return table_name(fingerprint, max(numbers)), True
        return table_name(fingerprint, self._set_aside.get(fingerprint, 0) + 1), False


def as_place(place: VectorPlace | Path) -> VectorPlace:
    return VectorPlace(place) if isinstance(place, Path) else place


def table_name(fingerprint: str, number: int = 1) -> str:
    return f"vectors_{fingerprint}" if number == 1 else f"vectors_{fingerprint}-{number}"


def numbers_of(fingerprint: str, listed: Iterable[str]) -> list[int]:
    """The numbers of a generation's tables, those that were given up among them."""
    found = (_TABLE.fullmatch(name) for name in listed)
    return sorted(int(match[2] or 1) for match in found if match and match[1] == fingerprint)


def fingerprints_of(listed: Iterable[str]) -> set[str]:
    return {match[1] for name in listed if (match := _TABLE.fullmatch(name))}
