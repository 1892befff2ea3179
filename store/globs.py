"""Path patterns, with one meaning everywhere: ``*`` stays inside a folder, ``**`` crosses folders."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache


def matches_any(path: str, patterns: Iterable[str]) -> bool:
    return _compiled(tuple(patterns)).fullmatch(path) is not None


@lru_cache(maxsize=512)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """All of them as one: a look at ten thousand files asks a hundred thousand times. Of none, what nothing matches."""
    return re.compile("|".join(f"(?:{_translate(pattern)})" for pattern in patterns) or r"(?!)", re.DOTALL)


def _translate(pattern: str) -> str:
    """``**/`` is any number of folders, none included; a pattern that ends in ``/`` means all below it.

    Anybody may send a pattern, so none may take long. What stands between two ``**`` is looked for once, at its first
    place, which leaves the most for the rest (an atomic group); so is what follows a ``*``. Only the last ``**`` tries
    one place after the other.
    """
    if pattern.endswith("/"):
        pattern += "**"
    pattern = re.sub(r"\*{3,}", "**", pattern)
    first, *pieces = re.split(r"((?:(?<![^/])\*\*/)+|\*\*)", pattern)  # what stands between, and what crosses folders
    crossings, rests = pieces[::2], pieces[1::2]
    parts = [_translate_part(first, is_last=not rests)]
    for number, (crossing, rest) in enumerate(zip(crossings, rests, strict=True), start=1):
        is_last = number == len(rests)
        part = _translate_part(rest, is_last=is_last)
        if crossing.endswith("/"):
            parts.append(f"(?:.*/)?{part}" if is_last else f"(?>(?:.*?/)??{part})")
        else:
            parts.append(f".*{part}" if is_last else f"(?>.*?{part})")
    return "".join(parts)


def _translate_part(part: str, *, is_last: bool) -> str:
    """Of a pattern, what crosses no folders; after the last one of it nothing may be left."""
    fixed, *others = ("".join("[^/]" if char == "?" else re.escape(char) for char in each) for each in part.split("*"))
    return fixed + "".join(
        f"[^/]*{each}" if is_last and number == len(others) else f"(?>[^/]*?{each})"
        for number, each in enumerate(others, start=1)
    )


def static_prefix(pattern: str) -> str:
    """The folder that everything matching lies in; "" = anywhere."""
    folders = []
    for part in pattern.split("/")[:-1]:
        if any(mark in part for mark in "*?"):
            break
        folders.append(part)
    return "/".join(folders)
