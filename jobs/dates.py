"""When a note was written, and whether that matters. Never from mtime: git and sync tools reset it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from memoryd.store.globs import matches_any

_IN_PATH = re.compile(r"(?<!\d)(\d{4})[-/_.](\d{2})[-/_.](\d{2})(?!\d)")
_COMPACT = re.compile(r"(?<!\d)((?:19|20)\d{2})(\d{2})(\d{2})(?!\d)")  # other runs of digits are numbers
_NEVER_DECAY = ("MEMORY.md", "skills/**")


def document_date(path: str, front_matter: Mapping[str, Any]) -> date | None:
    """Front matter ``date:``, else a date in the path, the one nearest to the file's name."""
    stated = front_matter.get("date")
    if isinstance(stated, str | int) and (found := _parse(str(stated))):  # 20261115 is a number to YAML
        return found
    return _parse(path)


def is_evergreen(path: str, written: date | None, evergreen: tuple[str, ...]) -> bool:
    return written is None or matches_any(path, (*_NEVER_DECAY, *evergreen))


def _parse(text: str) -> date | None:
    for pattern in (_IN_PATH, _COMPACT):
        for match in reversed(list(pattern.finditer(text))):
            try:
                return date(*map(int, match.groups()))
            except ValueError:
                continue
    return None
