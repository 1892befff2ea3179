"""Path patterns, with one meaning everywhere: ``*`` stays inside a folder, ``**`` crosses folders."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache


def matches_any(path: str, patterns: Iterable[str]) -> bool:
    return any(_compiled(pattern).fullmatch(path) for pattern in patterns)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_translate(pattern), re.DOTALL)


def _translate(pattern: str) -> str:
    """``**/`` is any number of folders, none included; a pattern that ends in ``/`` means all below it."""
    if pattern.endswith("/"):
        pattern += "**"
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        rest = pattern[position:]
        if rest.startswith("**/") and (position == 0 or pattern[position - 1] == "/"):
            parts.append("(?:.*/)?")
            position += 3
        elif rest.startswith("**"):
            parts.append(".*")
            position += 2
        elif rest[0] == "*":
            parts.append("[^/]*")
            position += 1
        elif rest[0] == "?":
            parts.append("[^/]")
            position += 1
        else:
            parts.append(re.escape(rest[0]))
            position += 1
    return "".join(parts)


def static_prefix(pattern: str) -> str:
    """The folder that everything matching lies in; "" = anywhere."""
    folders = []
    for part in pattern.split("/")[:-1]:
        if any(mark in part for mark in "*?"):
            break
        folders.append(part)
    return "/".join(folders)
